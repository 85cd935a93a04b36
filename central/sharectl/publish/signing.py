"""Keys that sign targets: signatures, files of keys, and the need for them.

The last line of a signed file is ``# signature: hmac-sha256 KEYID HEX``.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from sharectl.errors import ConfigError
from sharectl.files import files

MAX_KEYS = 2
"""The key in use and, while keys are changed, the one before or after it."""

_MAX_BYTES = 2**16
_FORBIDDEN_MODE = 0o027
_BEGIN = b"# signature:"
_LINE = re.compile(rb"# signature: hmac-sha256 ([a-z0-9_-]{1,32}) ([0-9a-f]{64})\n")
_KEY_LINE = re.compile(r"\s*([a-z0-9_-]{1,32})\s+((?:[0-9A-Fa-f]{2}){32,64})\s*")
_MAKE = "make one with `openssl rand -hex 32`"


@dataclass(frozen=True)
class SigningKey:
    """A secret that the central manager and the nodes share."""

    key_id: str
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class Signature:
    """Last line of a signed text."""

    key_id: str
    digest: str
    """HMAC-SHA256, in hexadecimal digits."""


def line(body: bytes, key: SigningKey) -> str:
    """Last line of the text whose other bytes are ``body``, without its newline."""
    return f"# signature: hmac-sha256 {key.key_id} {_digest(body, key)}"


def split(content: bytes) -> tuple[bytes, Optional[Signature]]:
    """Bytes that are signed, and the signature; all bytes and None if there is no signature.

    Raises ValueError if the signature is invalid, or not the last line.
    """
    start = content.find(b"\n" + _BEGIN) + 1 if not content.startswith(_BEGIN) else 0
    if not content.startswith(_BEGIN, start):
        return content, None
    match = _LINE.fullmatch(content, start)
    if match is None:
        raise ValueError(
            "the line `# signature:` is not the last, or is not `# signature: hmac-sha256 KEYID "
            "HEX`"
        )
    return content[:start], Signature(match[1].decode(), match[2].decode())


def problem_of(content: bytes, keys: Collection[SigningKey]) -> Optional[str]:
    """Problem of a text for nodes with these keys; None if they believe it. Raises as `split`."""
    body, signature = split(content)
    if signature is None:
        return "is not signed"
    key = next((key for key in keys if key.key_id == signature.key_id), None)
    if key is None:
        names = " and ".join(key.key_id for key in keys) or "no key"
        return f"is signed with the key {signature.key_id}, and nodes have {names}"
    if not hmac.compare_digest(_digest(body, key), signature.digest):
        return f"has a signature that its text and the key {signature.key_id} do not make"
    return None


def _digest(body: bytes, key: SigningKey) -> str:
    return hmac.new(key.secret, body, hashlib.sha256).hexdigest()


# ---- files of keys, by the rules of startd_cron/target.py


def read_keys(path: Path) -> tuple[SigningKey, ...]:
    """Keys in the file at ``path``; the first one signs, either verifies.

    Raises ConfigError with all problems, and never the text of a key: it cannot be read, others
    could read or replace it, or its content is invalid.
    """
    try:
        content, facts = files.read_regular(path, _MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or error
        problem = f"{path}: cannot be read: {reason}; signing_key_file names the file of keys"
        raise ConfigError([problem]) from error
    if content is None:
        raise ConfigError([f"{path}: is no regular file; write the keys into one"])
    keys, problems = parsed(content)
    mode = stat.S_IMODE(facts.st_mode)
    if mode & _FORBIDDEN_MODE:
        fault = f": has mode {mode:04o}, so that others can read or change it; chmod 0640 or 0600"
        problems.insert(0, fault)
    if facts.st_uid not in (0, os.geteuid()):
        fault = f": belongs to uid {facts.st_uid}; let root own it: chown root"
        problems.insert(0, fault)
    if problems:
        raise ConfigError([f"{path}{problem}" for problem in problems])
    return keys


def parsed(content: bytes) -> tuple[tuple[SigningKey, ...], list[str]]:
    """Keys, and problems, each after the number of its line."""
    if len(content) > _MAX_BYTES:
        return (), [f": has more than {_MAX_BYTES} bytes, so it is no file of keys"]
    problems: list[str] = []
    keys: dict[str, SigningKey] = {}
    for number, text in enumerate(content.decode("ascii", "replace").split("\n"), start=1):
        match = _KEY_LINE.fullmatch(text)
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        if match is None:
            problems.append(
                f":{number}: is not `KEYID HEX`: a name of a-z, 0-9, _ and -, at most 32, and an "
                f"even number of 64 to 128 hexadecimal digits; {_MAKE}"
            )
        elif match[1] in keys:
            problems.append(f":{number}: a key of this name is there already; name it otherwise")
        else:
            keys[match[1]] = SigningKey(match[1], bytes.fromhex(match[2]))
    if len(keys) > MAX_KEYS:
        problems.append(
            f": has {len(keys)} keys; keep the one that signs first, and one other at most"
        )
    if not keys and not problems:
        problems.append(f": has no key; {_MAKE}")
    return tuple(keys.values()), problems


# ---- trust in the way of a file to the nodes

NETWORK_FILE_SYSTEM = re.compile(
    r"9p|afs|beegfs|ceph|cifs|cvmfs|davfs|eos|glusterfs|gpfs|lustre|ncpfs|nfs4?|orangefs|pvfs2"
    r"|smb3|smbfs|fuse\.(ceph|cvmfs2|eosxd|glusterfs|sshfs)"
)
"""Types of file systems, as /proc/self/mounts names them, whose files others can write too."""
MOUNTS = Path("/proc/self/mounts")

_OCTAL = re.compile(r"\\([0-7]{3})")


def why_untrusted(file: Path, mounts: Path, trusted_uids: Collection[int]) -> Optional[str]:
    """Way in which others could replace ``file``; None if only root and the trusted users can.

    ``mounts`` is the file that lists the mounted file systems.
    """
    kind = _file_system(file, mounts)
    if kind is not None and NETWORK_FILE_SYSTEM.fullmatch(kind):
        return f"lies on a network file system ({kind}), which other machines can write to"
    for path in (file, *file.parents):
        with contextlib.suppress(OSError):
            facts, reason = path.stat(), ""
            # The sticky bit keeps others from replacing a file, and not from making a missing one.
            is_sticky = facts.st_mode & stat.S_ISVTX and path != file.parent
            if facts.st_uid not in {0, *trusted_uids}:
                reason = f"belongs to uid {facts.st_uid}"
            elif facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky:
                mode = stat.S_IMODE(facts.st_mode)
                reason = f"can be written to by others (mode {mode:04o})"
            if reason:
                return f"{path} {reason}" if path != file else reason
    return None


def _file_system(file: Path, mounts: Path) -> Optional[str]:
    """Type of the file system that ``file`` lies on, or would; None if it is unknown."""
    try:
        entries = mounts.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    rows = (entry.split(" ") for entry in entries if entry.count(" ") > 1)
    # Of several mounts at one point the last one counts.
    kinds = {
        Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), point)): kind
        for _, point, kind, *_ in rows
    }
    real = Path(os.path.realpath(file))  # the file need not be there yet
    return next((kinds[point] for point in (real, *real.parents) if point in kinds), None)
