"""Whether targets cross a trust boundary on their way to the nodes: then they should be signed."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Optional

NETWORK_FILE_SYSTEMS = frozenset(
    [
        "9p",
        "afs",
        "ceph",
        "cifs",
        "cvmfs",
        "davfs",
        "eos",
        "fuse.ceph",
        "fuse.cvmfs2",
        "fuse.eosxd",
        "fuse.glusterfs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "orangefs",
        "pvfs2",
        "smb3",
        "smbfs",
        "beegfs",
    ]
)
"""Types of file systems, as /proc/self/mounts names them, whose files others can write too."""

MOUNTS = Path("/proc/self/mounts")
_MOST_BYTES = 2**22
_OCTAL = re.compile(r"\\([0-7]{3})")


def why_untrusted(file: Path, mounts: Path, trusted_uids: Collection[int]) -> Optional[str]:
    """How others could put another file in the place of ``file``; None if only the trusted can.

    Parameters
    ----------
    mounts
        Where the mounted file systems are listed.
    trusted_uids
        Users who may write, besides root.
    """
    kind = _file_system(file, mounts)
    if kind in NETWORK_FILE_SYSTEMS:
        return f"lies on a network file system ({kind}), which other machines can write to"
    trusted = {0, *trusted_uids}
    for path in (file, *file.parents):
        # Where the sticky bit is set nobody replaces what is another's; but he may make what is not there.
        reason = _writable_by_others(path, trusted, sticky_helps=path != file.parent)
        if reason is not None:
            return f"{path} {reason}" if path != file else reason
    return None


def _writable_by_others(path: Path, trusted: Collection[int], *, sticky_helps: bool) -> Optional[str]:
    try:
        facts = path.stat()
    except OSError:
        return None
    sticky = facts.st_mode & stat.S_ISVTX
    if facts.st_uid not in trusted:
        return f"belongs to uid {facts.st_uid}"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (sticky and sticky_helps):
        return f"can be written to by others (mode {stat.S_IMODE(facts.st_mode):04o})"
    return None


def _file_system(file: Path, mounts: Path) -> Optional[str]:
    """Type of the file system that ``file`` lies on, or would; None if it cannot be told."""
    try:
        with mounts.open("rb") as stream:
            text = stream.read(_MOST_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    real = Path(os.path.realpath(file))  # the file need not be there yet
    found: tuple[int, Optional[str]] = (-1, None)
    for point, kind in _mounted(text):
        depth = len(point.parts)
        if (point == real or point in real.parents) and depth >= found[0]:
            found = depth, kind
    return found[1]


def _mounted(text: str) -> Iterator[tuple[Path, str]]:
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) > 2:  # noqa: PLR2004 - device, mount point, type
            yield Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), words[1])), words[2]
