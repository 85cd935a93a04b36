"""Jobs that ran: ads of histories, and files of ``condor_history -json``."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from math import ceil
from pathlib import Path
from typing import Any, Callable

from sharectl.cadence.laws import LoggedJob
from sharectl.condor.ads import account, number, text, whole
from sharectl.errors import InputError
from sharectl.files import packed
from sharectl.shares.groups import without_user
from sharectl.words import Problems

ATTRIBUTES = (
    *("RemoteWallClockTime", "NumShadowStarts", "CpusProvisioned", "RequestCpus"),
    *("AccountingGroup", "JobUniverse", "QDate", "MemoryProvisioned", "RequestMemory"),
    *("Owner", "User"),
)
JOBS_COMMAND = f"condor_history -json -limit 100000 -attributes {','.join(ATTRIBUTES)}"
"""Makes a file that `history_jobs` reads."""
HISTORY_NO_TIME = "RemoteWallClockTime 0 or not there: it never ran"
NO_SLOT = "its universe needs no slot"
NO_CORES = "neither CpusProvisioned nor RequestCpus"
NO_SUBMISSION = "no QDate: when it was submitted is not known"
BROKEN = "broken row, passed over by skip_broken"

# Scheduler, grid and local universe, as in `condor.daemons`.
_NO_SLOT = (7, 9, 12)
_MOST_CORES = 1_000_000
_MOST_SECONDS = 10**9
_MOST_MIB = 2**40
_MOST_RUNS = 100
"""Runs of one job; a job in a loop of crashes may have any number."""
_MOST_TEXT = 2**28
"""Characters of a file; 100,000 jobs have some 40 million."""
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")
_NEXT = re.compile(r"\n\s*\{")


def left_out_notes(left_out: Counter[str]) -> list[str]:
    """Numbers of jobs that were left out, with reasons."""
    return [f"jobs left out: {count} ({why})" for why, count in left_out.items()]


def refuse_empty(jobs: Collection[Any], left_out: Counter[str], path: Path) -> None:
    """Raise InputError if no job of a file is left."""
    if not jobs:
        reasons = ", ".join(f"{count} left out: {why}" for why, count in left_out.items())
        fault = f"no job with a known run time is in it ({reasons or 'no job'})"
        remedy = f"; make the file with {JOBS_COMMAND}" if left_out[NO_SUBMISSION] else ""
        raise InputError([f"{path}: {fault}{remedy}"])


def refuse_broken(path: Path, problems: Problems) -> None:
    """Raise InputError if a log of a scenario has broken rows."""
    if problems:
        remedy = f"{path}: skip_broken: true beside file: passes over such rows, and counts them"
        raise InputError([*problems.lines(), remedy])


def jobs_of_ad(value: Callable[[str], Any], left_out: Counter[str]) -> list[LoggedJob]:
    """Job by its ad, of which ``value`` gives an attribute or None; its queue is empty.

    A job that was started several times is as many jobs, `_MOST_RUNS` at most, of an equal part of
    its time, because every start holds a slot.
    """
    total = number(value("RemoteWallClockTime"), 0.0, most=_MOST_SECONDS)
    cores = whole(value("CpusProvisioned"), 0, most=_MOST_CORES)
    cores = cores or whole(value("RequestCpus"), 0, most=_MOST_CORES)
    submitted_at = number(value("QDate"), 0.0)
    reasons = {
        NO_SLOT: value("JobUniverse") in _NO_SLOT,
        HISTORY_NO_TIME: total <= 0,
        NO_CORES: not cores,
        NO_SUBMISSION: submitted_at <= 0,
    }
    if any(reasons.values()):
        left_out[next(reason for reason, holds in reasons.items() if holds)] += 1
        return []
    # Users can write it: no run is shorter than a second.
    starts = min(whole(value("NumShadowStarts"), 1, least=1), max(1, int(total)), _MOST_RUNS)
    memory_mib = whole(value("MemoryProvisioned"), 0, most=_MOST_MIB)
    memory_mib = memory_mib or whole(value("RequestMemory"), 0, most=_MOST_MIB)
    user = (text(value("Owner")) or text(value("User")) or "user").partition("@")[0]
    group = (without_user(account(value("AccountingGroup"))) or "").lower()
    job = LoggedJob(submitted_at, ceil(total / starts), cores, memory_mib, user, group, "")
    return [job] * starts


def history_jobs(path: Path, left_out: Counter[str], *, skip: bool = False) -> list[LoggedJob]:
    """Jobs of a file that `JOBS_COMMAND` made, with ``-jsonl`` too, packed or not.

    ``skip`` passes over broken ones, and counts them. Raises InputError with the place if it
    cannot be read or holds something else.
    """
    problems = Problems()
    ads = _ads(path, left_out, problems)
    jobs = [job for ad in ads for job in jobs_of_ad(ad.get, left_out)]
    if not skip:
        refuse_broken(path, problems)
    refuse_empty(jobs, left_out, path)
    return jobs


def _ads(path: Path, left_out: Counter[str], problems: Problems) -> Iterator[dict[str, Any]]:
    """Objects of a list or one after the other; broken ones are counted, and are problems."""
    with packed.opened(path) as file:
        content = file.read(_MOST_TEXT + 1)
    if len(content) > _MOST_TEXT:
        raise InputError([f"{path}: too large; write fewer jobs (-limit)"])
    decoder, at, line, lists = json.JSONDecoder(), 0, 1, 0
    while True:
        begin = at
        at = _BETWEEN.match(content, begin).end()  # type: ignore[union-attr]
        line += content.count("\n", begin, at)
        lists += content.count("[", begin, at) - content.count("]", begin, at)
        if at == len(content):
            break
        try:
            ad, end = decoder.raw_decode(content, at)
        except (ValueError, RecursionError):
            ad = None
        if isinstance(ad, dict):
            yield ad
        else:
            left_out[BROKEN] += 1
            fault = f"{content[at : at + 20]!r} begins no job, or one that does not end"
            problems.add(f"{path}:{line}", f"{fault}; make the file with {JOBS_COMMAND}")
            following = _NEXT.search(content, at)
            end = following.start() if following else len(content)
        line += content.count("\n", at, end)
        at = end
    if lists > 0 and not problems:
        left_out[BROKEN] += 1
        problems.add(f"{path}:{line}", "the list does not end: it is cut off; make it again")
