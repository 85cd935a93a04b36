"""Whether a node's jobs can use the file of `--key-file`, by the rules of startd_cron/target.py."""

from __future__ import annotations

import os
import pwd
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from sharectl.adapters import files, signing

USER = "condor"
NO_KEY, UNSAFE_KEY, BAD_KEY = "no-key", "unsafe-key", "bad-key"
"""Codes that nodes publish then."""

MOST_BYTES = 2**20
_FORBIDDEN_MODE = 0o027
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
    if facts.st_mode & _FORBIDDEN_MODE:
        return UNSAFE_KEY, f"{path} has mode {mode}"
    # A daemon of an ordinary user runs its jobs as that user; of root it is not known whose daemons he asks for.
    owners = {0, own_uid, *([jobs_user.uid] if jobs_user else [])}
    if facts.st_uid not in owners and (jobs_user or own_uid):
        return UNSAFE_KEY, f"{path} belongs to uid {facts.st_uid}"
    if jobs_user and not own_uid and not _may_read(path, facts, jobs_user):
        owner = f"{facts.st_uid}:{facts.st_gid}"
        return NO_KEY, f"{path} belongs to {owner} with mode {mode}, and the jobs run as uid {jobs_user.uid}"
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
    _, wrong = signing.parsed(content or b"")
    return (BAD_KEY, "; ".join(f"{path}{said}" for said in wrong[:3])) if wrong else None
