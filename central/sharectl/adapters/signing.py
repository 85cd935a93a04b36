"""The keys that sign targets, and the last line of a signed file: ``# signature: hmac-sha256 KEYID HEX``."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from sharectl.adapters import files
from sharectl.errors import ConfigError

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
            "the line `# signature:` is not the last, or is not `# signature: hmac-sha256 KEYID HEX`"
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
        If it cannot be read, others could read or replace it, or something is wrong in it: all of it at once,
        and never the text of a key.
    """
    try:
        content, facts = files.read_regular(path, MAX_KEY_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            [f"{path}: cannot be read: {error.strerror or error}; signing_key_file names the file of keys"]
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
        problems.append(f": has mode {mode:04o}, so that others can read or change it; chmod 0640 or 0600")
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
                f":{number}: is not `KEYID HEX`: a name of a-z, 0-9, _ and -, at most 32, and an even number "
                f"of 64 to 128 hexadecimal digits; {_MAKE}"
            )
        elif words[0] in keys:
            problems.append(f":{number}: a key of this name is there already; name it otherwise")
        else:
            keys[words[0]] = Key(words[0], bytes.fromhex(words[1]))
    if len(keys) > MAX_KEYS:
        problems.append(f": has {len(keys)} keys; keep the one that signs first, and one other at most")
    if not keys and not problems:
        problems.append(f": has no key; {_MAKE}")
    return tuple(keys.values()), problems


def _digest(body: bytes, key: Key) -> str:
    return hmac.new(key.secret, body, hashlib.sha256).hexdigest()


def _names(keys: Collection[Key]) -> str:
    return " and ".join(key.key_id for key in keys) or "no key"
