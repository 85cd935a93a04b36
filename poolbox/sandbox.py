"""The bubblewrap command that runs a box, and the system files inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from poolbox.configuration import POOL_USER, addresses
from poolbox.root import Root
from poolbox.spec import BoxSpec

POOL_ID = 1000
INIT = Path(__file__).with_name("init.py")
CHECKOUT = INIT.parents[1]
# Not taken from the root: made anew in every box, or none of its business.
OWN_TO_EACH_BOX = ("proc", "dev", "sys", "tmp", "run")
SYSTEM_FILES = ("hosts", "passwd", "group", "nsswitch.conf")


def system_files(spec: BoxSpec, home: Path) -> dict[str, str]:
    """Name below ``/etc`` → text: host names and the one ordinary user of a box."""
    return {
        "hosts": "127.0.0.1 localhost\n"
        + "".join(f"{address} {host}\n" for host, address in addresses(spec).items()),
        "passwd": "root:x:0:0:root:/:/bin/sh\n"
        f"{POOL_USER}:x:{POOL_ID}:{POOL_ID}:pool:{home}:/bin/sh\n",
        "group": f"root:x:0:\n{POOL_USER}:x:{POOL_ID}:\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }


def command(root: Root, directory: Path) -> list[str]:
    """The argv that runs `poolbox.init` for the box in ``directory``, inside ``root``."""
    binds = [("--ro-bind", str(directory / "etc" / name), f"/etc/{name}") for name in SYSTEM_FILES]
    binds += [
        ("--ro-bind", str(CHECKOUT), str(CHECKOUT)),
        ("--bind", str(directory), str(directory)),
    ]
    guests = [Path(target) for _option, _source, target in binds]
    own = [
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",  # noqa: S108
        "--dir",
        "/var/tmp",  # noqa: S108
        "--dir",
        "/run",
    ]
    return [
        "bwrap",
        *("--unshare-user", "--uid", str(POOL_ID), "--gid", str(POOL_ID)),
        *("--unshare-pid", "--as-pid-1", "--unshare-ipc"),
        *(part for entry in expose(root.path, Path("/"), guests) for part in entry),
        *own,
        *(part for bind in binds for part in bind),
        *("--chdir", str(directory), "--"),
        *(str(root.interpreter), "-I", str(INIT), str(directory)),
    ]


def expose(source: Path, target: Path, guests: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """Options of bubblewrap that show ``source`` read-only as ``target``, with room for guests.

    Nothing can be mounted onto a name that a read-only tree does not have, so a folder that lacks a
    guest is shown entry by entry instead of as a whole.
    """
    for entry in sorted(source.iterdir()):
        here = target / entry.name
        if target == Path("/") and entry.name in OWN_TO_EACH_BOX:
            continue
        if entry.is_symlink():
            yield ("--symlink", str(entry.readlink()), str(here))
        elif any(here in guest.parents and not _holds(entry, here, guest) for guest in guests):
            yield from expose(entry, here, guests)
        elif entry.is_dir() or entry.is_file():
            yield ("--ro-bind", str(entry), str(here))


def _holds(source: Path, target: Path, guest: Path) -> bool:
    return (source / guest.relative_to(target)).exists()
