"""Keys that sign targets, read and applied as on a node, and the need for them.

The last line of a signed file is ``# signature: hmac-sha256 KEYID HEX``.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import stat
from collections.abc import Collection, Mapping
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Optional

from sharectl.errors import ConfigError
from sharectl.files import files

_REMEDY = (
    "let root own it, chmod 0640 or 0600; a KEYID is of a-z, 0-9, _ and -, `openssl rand -hex 32` "
    "makes a HEX"
)

Keys = Mapping[bytes, bytes]
"""Id of a key -> secret that the central manager and the nodes share."""


@cache
def nodes_program() -> Any:
    """Module of the nodes' program ``target.py``: the grammar of what they read."""
    module, path = ModuleType("target"), str(Path(__file__).with_name("target.node"))
    module.__file__ = path
    SourceFileLoader(module.__name__, path).exec_module(module)
    return module


def line(body: bytes, keys: Keys) -> str:
    """Last line, without its newline, of the text whose other bytes are ``body``."""
    key_id, secret = next(iter(keys.items()))
    digest = hmac.new(secret, body, hashlib.sha256).hexdigest()
    return f"# signature: hmac-sha256 {key_id.decode()} {digest}"


def problem_of(content: bytes, keys: Keys) -> Optional[str]:
    """Reason why nodes with these keys refuse the signature of a text; None if they accept it."""
    reader = nodes_program()
    try:
        reader.check_signature(content, keys)
    except reader.JobError as error:
        code, detail = error.args
        return f"has no signature of a key of the nodes ({code}: {detail})"
    return None


def read_keys(path: Path) -> Keys:
    """Keys in a file; the first one signs. Raises ConfigError, never with the text of a key."""
    reader = nodes_program()
    try:
        files.read_regular(path, 0)
        keys: Keys = reader.read_keys(str(path))
    except OSError as error:
        problem = f"{path}: cannot be read: {error.strerror or error}"
        raise ConfigError([f"{problem}; signing_key_file names the file of keys"]) from error
    except reader.JobError as error:
        raise ConfigError([f"{error.args[1]}; {_REMEDY}"]) from error
    return keys


# ---- trust in the way of a file to the nodes

NETWORK_FILE_SYSTEM = re.compile(
    r"9p|afs|beegfs|ceph|cifs|cvmfs|davfs|eos|glusterfs|gpfs|lustre|ncpfs|nfs4?|orangefs|pvfs2"
    r"|smb3|smbfs|fuse\.(ceph|cvmfs2|eosxd|glusterfs|sshfs)"
)
"""Types of file systems, as /proc/self/mounts names them, whose files others can write too."""
MOUNTS = Path("/proc/self/mounts")


def why_untrusted(file: Path, mounts: Path, trusted_uids: Collection[int]) -> Optional[str]:
    """Way in which others could replace ``file``; None if only root and the trusted users can."""
    kind = _file_system(file, mounts)
    if kind is not None and NETWORK_FILE_SYSTEM.fullmatch(kind):
        return f"lies on a network file system ({kind}), which other machines can write to"
    for path in (file, *file.parents):
        with contextlib.suppress(OSError):
            facts, prefix = path.stat(), "" if path == file else f"{path} "
            # The sticky bit keeps others from replacing a file, and not from making a missing one.
            is_sticky = facts.st_mode & stat.S_ISVTX and path != file.parent
            if facts.st_uid not in {0, *trusted_uids}:
                return f"{prefix}belongs to uid {facts.st_uid}"
            if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky:
                mode = stat.S_IMODE(facts.st_mode)
                return f"{prefix}can be written to by others (mode {mode:04o})"
    return None


def _file_system(file: Path, mounts: Path) -> Optional[str]:
    """Type of the file system that ``file`` lies on, or would; None if it is unknown."""
    try:
        entries = mounts.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    kinds = {}  # of several mounts at one point the last one counts
    for _, point, kind, *_ in (entry.split(" ") for entry in entries if entry.count(" ") > 1):
        kinds[Path(point)] = kind
    real = Path(os.path.realpath(file))  # the file need not be there yet
    return next((kinds[point] for point in (real, *real.parents) if point in kinds), None)
