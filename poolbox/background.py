"""Pools that run on after their command has ended, found again by name."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from poolbox.box import Box
from poolbox.errors import BoxFailedError, PoolboxError
from poolbox.root import remove_tree


def runtime_directory() -> Path:
    """Folder of this user's pools by name, made if absent. Refuses that of another user."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = (
        Path(base) / "poolbox"
        if base
        else Path(tempfile.gettempdir()) / f"poolbox-of-{os.geteuid()}"
    )
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if folder.is_symlink() or state.st_uid != os.geteuid() or state.st_mode & 0o022:
        raise PoolboxError(
            f"{folder}: not a folder that only you can write to; set XDG_RUNTIME_DIR to one that is"
        )
    return folder


def start(name: str, box: Box) -> None:
    """Start the box in the background. Raises PoolboxError if a pool of that name runs."""
    link = _link(name)
    _forget_if_ended(link)
    box.start()
    try:
        link.symlink_to(box.directory)
        box.detach()
    except FileExistsError:
        box.stop()
        raise _taken(name) from None


def find(name: str) -> Box:
    """Running box of that name. Raises PoolboxError."""
    return Box.attach(_named(_link(name)))


def stop(name: str) -> Path:
    """End the pool of that name and forget it; the directory that it had."""
    link = _link(name)
    directory = _named(link)
    try:
        Box.attach(directory).stop()
    except BoxFailedError:
        _delete_what_is_left(directory)
    link.unlink()
    return directory


def _link(name: str) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise PoolboxError(f"name {name!r}: write letters, digits, dots, dashes and underscores")
    return runtime_directory() / name


def _named(link: Path) -> Path:
    if not link.is_symlink():
        others = ", ".join(sorted(path.name for path in link.parent.iterdir())) or "none"
        start_it = f"python -m poolbox up --name {link.name}"
        raise PoolboxError(
            f"no pool named {link.name!r} (there is: {others}); start it: {start_it}"
        )
    return link.readlink()


def _forget_if_ended(link: Path) -> None:
    if link.is_symlink():
        try:
            Box.attach(link.readlink())
        except BoxFailedError:
            _delete_what_is_left(link.readlink())
            link.unlink()
        else:
            raise _taken(link.name)


def _delete_what_is_left(directory: Path) -> None:
    if (directory / "box.json").is_file():
        remove_tree(directory)


def _taken(name: str) -> PoolboxError:
    return PoolboxError(
        f"a pool named {name!r} runs already; end it (python -m poolbox down --name {name}) or "
        "name another"
    )
