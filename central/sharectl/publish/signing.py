"""The keys that sign targets, and the last line of a signed file: ``# signature: hmac-sha256 KEYID HEX``.

Whether a node's jobs can use the file of `--key-file`, by the rules of startd_cron/target.py.

Whether targets cross a trust boundary on their way to the nodes: then they should be signed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import pwd
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from sharectl.errors import ConfigError
from sharectl.files import files

MAX_KEY_FILE_BYTES = 2**16
MAX_KEYS = 2
"""The one in use and, while keys are changed, the one before or after it."""

_FORBIDDEN_MODE = 0o027
_BEGIN = b"# signature:"
_LINE = re.compile(rb"# signature: hmac-sha256 ([a-z0-9_-]{1,32}) ([0-9a-f]{64})\n")
_KEY_ID = re.compile(r"[a-z0-9_-]{1,32}")
_SECRET = re.compile(r"(?:[0-9A-Fa-f]{2}){32,64}")
_MAKE = "make one with `openssl rand -hex 32`"


@dataclass(frozen=True)
class Key:
    """A secret that the central manager and the nodes share."""

    key_id: str
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class Signature:
    """What the last line of a signed text says."""

    key_id: str
    digest: str
    """HMAC-SHA256, in hexadecimal digits."""


def line(body: bytes, key: Key) -> str:
    """Last line of the text whose other bytes are ``body``, without its newline."""
    return f"# signature: hmac-sha256 {key.key_id} {_digest(body, key)}"


def split(content: bytes) -> tuple[bytes, Optional[Signature]]:
    """The bytes that are signed, and the signature; all of them and None if there is none.

    Raises
    ------
    ValueError
        If there is something like a signature that is none, or one that is not the last line.
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


def problem_of(content: bytes, keys: Collection[Key]) -> Optional[str]:
    """Why nodes with these keys refuse the text; None if they believe it. Raises as `split`."""
    body, signature = split(content)
    if signature is None:
        return "is not signed"
    key = next((key for key in keys if key.key_id == signature.key_id), None)
    if key is None:
        return f"is signed with the key {signature.key_id}, which is none of {_names(keys)}"
    if not hmac.compare_digest(_digest(body, key), signature.digest):
        return f"has a signature that its text and the key {signature.key_id} do not make"
    return None


def read_keys(path: Path) -> tuple[Key, ...]:
    """Keys in the file at ``path``; the first one signs, either verifies.

    Raises
    ------
    ConfigError
        If it cannot be read, others could read or replace it, or something is wrong in it: all of
        it at once, and never the text of a key.
    """
    try:
        content, facts = files.read_regular(path, MAX_KEY_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            [
                (
                    f"{path}: cannot be read: {error.strerror or error}; signing_key_file names the "
                    "file of keys"
                )
            ]
        ) from error
    if content is None:
        raise ConfigError([f"{path}: is no regular file; write the keys into one"])
    keys, wrong = parsed(content)
    problems = [*_file_problems(facts), *wrong]
    if problems:
        raise ConfigError([f"{path}{problem}" for problem in problems])
    return keys


def _file_problems(facts: os.stat_result) -> list[str]:
    problems = []
    if facts.st_uid not in (0, os.geteuid()):
        problems.append(f": belongs to uid {facts.st_uid}; let root own it: chown root")
    if facts.st_mode & _FORBIDDEN_MODE:
        mode = stat.S_IMODE(facts.st_mode)
        problems.append(
            f": has mode {mode:04o}, so that others can read or change it; chmod 0640 or 0600"
        )
    return problems


def parsed(content: bytes) -> tuple[tuple[Key, ...], list[str]]:
    """The keys, and what is wrong, each after the number of its line."""
    if len(content) > MAX_KEY_FILE_BYTES:
        return (), [f": has more than {MAX_KEY_FILE_BYTES} bytes, so it is no file of keys"]
    problems: list[str] = []
    keys: dict[str, Key] = {}
    for number, text in enumerate(content.decode("ascii", "replace").split("\n"), start=1):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        words = text.split()
        if len(words) != 2 or not _KEY_ID.fullmatch(words[0]) or not _SECRET.fullmatch(words[1]):  # noqa: PLR2004
            problems.append(
                f":{number}: is not `KEYID HEX`: a name of a-z, 0-9, _ and -, at most 32, and "
                "an even number "
                f"of 64 to 128 hexadecimal digits; {_MAKE}"
            )
        elif words[0] in keys:
            problems.append(f":{number}: a key of this name is there already; name it otherwise")
        else:
            keys[words[0]] = Key(words[0], bytes.fromhex(words[1]))
    if len(keys) > MAX_KEYS:
        problems.append(
            f": has {len(keys)} keys; keep the one that signs first, and one other at most"
        )
    if not keys and not problems:
        problems.append(f": has no key; {_MAKE}")
    return tuple(keys.values()), problems


def _digest(body: bytes, key: Key) -> str:
    return hmac.new(key.secret, body, hashlib.sha256).hexdigest()


def _names(keys: Collection[Key]) -> str:
    return " and ".join(key.key_id for key in keys) or "no key"


USER = "condor"
NO_KEY, UNSAFE_KEY, BAD_KEY = "no-key", "unsafe-key", "bad-key"
"""Codes that nodes publish then."""

MOST_BYTES = 2**20
_KEY_FORBIDDEN_MODE = 0o027
_IDS = re.compile(r"(\d{1,9})\.(\d{1,9})")
_ACL = "system.posix_acl_access"


@dataclass(frozen=True)
class Reader:
    """Who runs the startd's jobs."""

    uid: int
    gids: Collection[int]


def reader(condor_ids: str) -> Optional[Reader]:
    """The user that daemons drop their rights for; None if this machine has none.

    Parameters
    ----------
    condor_ids
        HTCondor's knob CONDOR_IDS, ``UID.GID``; empty if it is not set.
    """
    match = _IDS.fullmatch(condor_ids.strip())
    if match:
        return Reader(int(match[1]), (int(match[2]),))
    try:
        user = pwd.getpwnam(USER)
    except KeyError:
        return None
    return Reader(user.pw_uid, os.getgrouplist(USER, user.pw_gid))


def problem(path: Path, jobs_user: Optional[Reader], own_uid: int) -> Optional[tuple[str, str]]:
    """Code that nodes would publish, and why; None if nothing is known to be wrong.

    Parameters
    ----------
    jobs_user
        Whose jobs read it; None if that is not known.
    own_uid
        Of this process: what only others can read is not held against the file.
    """
    try:
        facts = path.stat()
    except PermissionError:
        return None if own_uid else (NO_KEY, f"{path} cannot be reached")
    except (OSError, ValueError) as error:
        return NO_KEY, f"{path}: {getattr(error, 'strerror', None) or error}"
    wrong = _kind_problem(path, facts) or _owner_problem(path, facts, jobs_user, own_uid)
    return wrong or _content_problem(path, own_uid)


def _kind_problem(path: Path, facts: os.stat_result) -> Optional[tuple[str, str]]:
    if not stat.S_ISREG(facts.st_mode):
        return NO_KEY if stat.S_ISDIR(facts.st_mode) else UNSAFE_KEY, f"{path} is no regular file"
    if facts.st_size > MOST_BYTES:
        return NO_KEY, f"{path} is larger than {MOST_BYTES >> 20} MiB"
    return None


def _owner_problem(
    path: Path, facts: os.stat_result, jobs_user: Optional[Reader], own_uid: int
) -> Optional[tuple[str, str]]:
    mode = f"{stat.S_IMODE(facts.st_mode):04o}"
    if facts.st_mode & _KEY_FORBIDDEN_MODE:
        return UNSAFE_KEY, f"{path} has mode {mode}"
    # A daemon of an ordinary user runs its jobs as that user; of root it is not known whose daemons
    # he asks for.
    owners = {0, own_uid, *([jobs_user.uid] if jobs_user else [])}
    if facts.st_uid not in owners and (jobs_user or own_uid):
        return UNSAFE_KEY, f"{path} belongs to uid {facts.st_uid}"
    if jobs_user and not own_uid and not _may_read(path, facts, jobs_user):
        owner = f"{facts.st_uid}:{facts.st_gid}"
        return (
            NO_KEY,
            f"{path} belongs to {owner} with mode {mode}, and the jobs run as uid {jobs_user.uid}",
        )
    return None


def _may_read(path: Path, facts: os.stat_result, jobs_user: Reader) -> bool:
    try:
        by_list = _ACL in os.listxattr(path)
    except OSError:
        by_list = False
    if jobs_user.uid == 0 or by_list:  # what a list of rights says is for getfacl to tell
        return True
    if facts.st_uid == jobs_user.uid:
        return bool(facts.st_mode & stat.S_IRUSR)
    return facts.st_gid in jobs_user.gids and bool(facts.st_mode & stat.S_IRGRP)


def _content_problem(path: Path, own_uid: int) -> Optional[tuple[str, str]]:
    try:
        content, _ = files.read_regular(path, MOST_BYTES)
    except OSError as error:
        return None if own_uid else (NO_KEY, f"{path}: {error.strerror}")
    _, wrong = parsed(content or b"")
    return (BAD_KEY, "; ".join(f"{path}{said}" for said in wrong[:3])) if wrong else None


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
        # Where the sticky bit is set nobody replaces what is another's; but he may make what is not
        # there.
        reason = _writable_by_others(path, trusted, sticky_helps=path != file.parent)
        if reason is not None:
            return f"{path} {reason}" if path != file else reason
    return None


def _writable_by_others(
    path: Path, trusted: Collection[int], *, sticky_helps: bool
) -> Optional[str]:
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
