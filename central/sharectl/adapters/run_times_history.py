"""Run times of jobs that HTCondor has on record: what `condor_history -json` printed, and ads of `Schedd.history`."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection
from math import ceil
from pathlib import Path
from typing import Any, Callable, Optional

from sharectl.adapters.ads import account, number, whole
from sharectl.adapters.run_times_file import MOST_CORES, MOST_SECONDS, Tally, opened
from sharectl.core.groups import GROUP_NAME, group_of, without_user
from sharectl.core.model import OTHER
from sharectl.core.run_times_jobs import Jobs

MOST_JOBS = 2_000_000
ATTRIBUTES = (
    "RemoteWallClockTime",
    "NumShadowStarts",
    "CpusProvisioned",
    "RequestCpus",
    "AccountingGroup",
    "JobUniverse",
)
COMMAND = f"condor_history -json -limit 100000 -attributes {','.join(ATTRIBUTES)}"
"""Makes a file that `read` reads."""
NO_TIME = "RemoteWallClockTime 0 or not there: it never ran"
NO_SLOT = "its universe needs no slot"
NO_CORES = "neither CpusProvisioned nor RequestCpus"
# Scheduler, grid and local universe, as in `adapters.schedds`.
_NO_SLOT = (7, 9, 12)
_MOST_STARTS = 100_000
_CHUNK = 2**20
_MOST_AD = 2**23
"""Characters of one job; HTCondor's own are some ten thousand."""
_TAIL = 16
"""Characters at the end of what has been read so far in which half a number or word may stand."""
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")


def count(tally: Tally, value: Callable[[str], Any], groups: Optional[Collection[str]]) -> None:
    """Add a job to the tally.

    A job that was started several times counts as so many runs, each of an equal part of its time: every start holds
    a slot.

    Parameters
    ----------
    value
        Attribute -> value in the job's ad, None if it has none.
    groups
        Configured groups; None for whatever the jobs say.
    """
    tally.seen += 1
    if value("JobUniverse") in _NO_SLOT:
        tally.left_out[NO_SLOT] += 1
        return
    total = number(value("RemoteWallClockTime"), 0.0, most=MOST_SECONDS)
    if total <= 0:
        tally.left_out[NO_TIME] += 1
        return
    cores = whole(value("CpusProvisioned"), 0, most=MOST_CORES) or whole(
        value("RequestCpus"), 0, most=MOST_CORES
    )
    if not cores:
        tally.left_out[NO_CORES] += 1
        return
    starts = whole(value("NumShadowStarts"), 1, least=1, most=_MOST_STARTS)
    group = _group(account(value("AccountingGroup")), groups)
    tally.counted[group, cores, ceil(total / starts)] += starts


def read(path: Path, groups: Optional[Collection[str]] = None, limit: int = MOST_JOBS) -> Jobs:
    """Jobs of a file that `COMMAND` or ``condor_history -jsonl`` made, packed by gzip or not; the first ``limit``.

    Raises
    ------
    InputError
        If it cannot be read or holds something else; the place is named.
    """
    tally = Tally(str(path), limit)
    with opened(path) as file:
        _read_ads(file, tally, groups)
    return tally.jobs()


def _read_ads(file: io.TextIOBase, tally: Tally, groups: Optional[Collection[str]]) -> None:
    """Ad after ad: a whole history does not fit into memory, and objects in a list or one by one are read alike."""
    decoder = json.JSONDecoder(parse_int=_int)
    text, at, line = "", 0, 1
    while not tally.full:
        between = _BETWEEN.match(text, at)
        assert between is not None  # noqa: S101 - it may match nothing
        line, at = line + between[0].count("\n"), between.end()
        try:
            ad, end = _decoded(decoder, text, at)
        except ValueError as error:
            tally.problem(line, str(error))
            return
        if end > at:
            count(tally, ad.get, groups)
            line, at = line + text.count("\n", at, end), end
            continue
        more = file.read(_CHUNK)
        if not more:
            if at < len(text):
                tally.problem(line, "the object that begins here does not end; is the file whole?")
            return
        text, at = text[at:] + more, 0


def _decoded(decoder: json.JSONDecoder, text: str, at: int) -> tuple[dict[str, Any], int]:
    """Object that begins at ``at``, and where it ends; that is ``at`` if more of the text is needed."""
    if at == len(text):
        return {}, at
    if text[at] != "{":
        raise ValueError(f"{text[at : at + 20]!r} is no job; make the file with {COMMAND}")
    try:
        ad, end = decoder.raw_decode(text, at)
    except RecursionError:
        raise ValueError("the object that begins here is nested too deeply to be a job") from None
    except json.JSONDecodeError as error:
        if len(text) - at > _MOST_AD:
            raise ValueError("the object that begins here is too long to be a job") from None
        if error.msg.startswith("Unterminated") or error.pos >= len(text) - _TAIL:
            return {}, at
        raise ValueError(f"the object that begins here is no JSON: {error.msg}") from None
    return ad, end


def _int(digits: str) -> float:
    """Whole number; one of more digits than any attribute has costs no time, and counts as no number."""
    return int(digits) if len(digits) < 20 else float("inf")  # noqa: PLR2004 - digits of 64 bits


def _group(accounting_group: Optional[str], groups: Optional[Collection[str]]) -> str:
    if groups is not None:
        return group_of(accounting_group, groups)
    name = (without_user(accounting_group) or "").partition(".")[0].lower()
    return name if GROUP_NAME.fullmatch(name) else OTHER
