"""Files of a configuration: those that cycles write, and those that nothing may replace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, Optional

from sharectl.config.fields import Key, items_of
from sharectl.config.model import OWN_FILES, Config
from sharectl.errors import ConfigError, StateError
from sharectl.files.files import LOG_FILES
from sharectl.files.yaml import ValuePath, place
from sharectl.words import shown

CONDOR_CONFIG = "/etc/condor/condor_config"


@dataclass(frozen=True)
class NamedFile:
    """A file or folder, and the key that names it."""

    name: str
    path: Path
    is_read: bool = False
    """Read and never written."""
    rotated: int = 0
    """Older files beside it, with a dot and a number behind the name."""


def written(config: Config) -> list[NamedFile]:
    """Files that cycles write where the configuration says so."""
    keep = {"history.errors_log": LOG_FILES}
    paths = {place(at): path for key, at, path in _paths(config, ()) if key.setting.writes}
    return [NamedFile(name, path, rotated=keep.get(name, 0)) for name, path in paths.items()]


def kept(config: Config, file: Path) -> list[NamedFile]:
    """Files that sharectl keeps in ``state_directory``, or reads; ``file`` is the configuration."""
    folder = config.state_directory
    own = [NamedFile(f"state_directory.{name}", folder / name) for name in (*OWN_FILES, "ledger")]
    read = {
        "the configuration itself": file.absolute(),
        "HTCondor's configuration": Path(os.environ.get("CONDOR_CONFIG", CONDOR_CONFIG)),
        **{place(at): path for key, at, path in _paths(config, ()) if not key.setting.writes},
    }
    del read["state_directory"]
    return own + [NamedFile(name, path, is_read=True) for name, path in read.items()]


def _paths(section: Any, at: ValuePath) -> Iterator[tuple[Key, ValuePath, Path]]:
    """Paths of a section, with their keys and places."""
    for key, value in items_of(section):
        if isinstance(value, Path):
            yield key, (*at, key.name), value
        elif is_dataclass(value):
            yield from _paths(value, (*at, key.name))
        elif isinstance(value, tuple) and key.section is not None:
            for number, way in enumerate(value):
                yield from _paths(way, (*at, key.name, number))


def clashes(config: Config, file: Path) -> Iterator[str]:
    """Problems of files to write that are, on this machine, another one of sharectl's."""
    seen = kept(config, file)
    for mine in written(config):
        other = _clash(mine, seen)
        if other is not None:
            use = f"is read: {other.name}" if other.is_read else f"is written by {other.name} too"
            yield f"{mine.name}: {shown(str(mine.path))} {use}; write another path"
        seen.append(mine)


def refuse_clashes(config: Config, file: Path) -> None:
    """Raise ConfigError with all clashes."""
    problems = list(clashes(config, file))
    if problems:
        raise ConfigError(problems)


def refuse_output(path: Path, config: Config, file: Path, own: Sequence[NamedFile] = ()) -> None:
    """Raise StateError if an option names a place that sharectl reads, keeps or writes."""
    other = _clash(NamedFile("", path), [*own, *kept(config, file), *written(config)])
    if other is None:
        return
    why = f"sharectl {'reads' if other.is_read else 'writes'} {other.path} ({other.name})"
    raise StateError(f"{path}: not written: {why}; name a file elsewhere")


def _clash(file: NamedFile, others: Iterable[NamedFile]) -> Optional[NamedFile]:
    """First of ``others`` that writing ``file`` would change; None without one."""
    mine = _identities(file)
    for other in others:
        theirs = _identities(other)
        folders = tuple(f"{path}/" for path in theirs)
        if mine & theirs or any(path.startswith(folders) for path in mine):
            return other
    return None


def _identities(file: NamedFile) -> set[str]:
    """Paths that lead to a file and its rotated ones, and the inode of one that is there."""
    here = os.path.join(os.path.realpath(file.path.parent), file.path.name)  # noqa: PTH118 - a text
    older = (f"{here}.{number}" for number in range(1, file.rotated + 1))
    identities = {here, os.path.realpath(file.path), *older}
    with suppress(OSError, ValueError):
        facts = file.path.stat()
        identities.add(f"inode {facts.st_dev} {facts.st_ino}")
    return identities
