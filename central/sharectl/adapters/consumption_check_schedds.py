"""Checks of what access points make of a weight that is meant for slots.

Without SCHEDD_SLOT_WEIGHT, a schedd takes SLOT_WEIGHT to weigh idle jobs: of an ad that has the job's requests as Cpus, Memory
and Disk (guessJobSlotWeight in src/condor_schedd.V6/schedd.cpp). It adds the whole part for each job to WeightedIdleJobs
(count_a_job), and the negotiator takes that for what a group wants (GroupEntry.cpp, NEGOTIATOR_USE_WEIGHTED_DEMAND).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Optional

from sharectl.adapters.consumption_check_settings import Setting
from sharectl.adapters.consumption_check_subject import (
    SCHEDD_USES_WEIGHT,
    SCHEDD_WEIGHT,
    WEIGHT,
    Ad,
    Node,
    Subject,
)
from sharectl.adapters.consumption_check_trials import plain, said
from sharectl.adapters.snippet_subject import Finding

_PLAIN = {"cpus": "RequestCpus", "memory": "RequestMemory"}
"""SLOT_WEIGHT → what a schedd takes instead."""
_JOBS = tuple(
    {"RequestCpus": "1", "RequestMemory": memory, "RequestDisk": disk}
    for memory, disk in itertools.product(("128", "1000", "2048", "4096"), ("1000", "1048576"))
)
"""Small jobs, as most are."""


def weighed(subject: Subject) -> Iterator[Finding]:
    """Weights by which an idle job counts as nothing: with group quotas, no slot is given for such jobs, of any group or none.

    Seen on both versions, with 0, with parts of 1 and with negative weights, by either knob; what is undefined does no harm.
    """
    for node in subject.nodes:
        chosen = _chosen(node)
        if chosen is None or not _counts(node):
            continue
        is_for_schedds = "SCHEDD" in chosen.macro.upper()
        # Knobs of slots are for execute points unless the configuration says otherwise.
        if not is_for_schedds and not node.runs("SCHEDD"):
            continue
        of_job = chosen.macro.upper().endswith(SCHEDD_WEIGHT)
        values = _values(subject, chosen.text, of_job=of_job)
        light = [(job, value) for job, value in zip(_JOBS, values) if value is not None and value < 1]
        if light:
            yield _finding(node, chosen, *light[0], every=len(light) == len(_JOBS))


def _finding(node: Node, chosen: Setting, job: Ad, value: float, *, every: bool) -> Finding:
    of_job = chosen.macro.upper().endswith(SCHEDD_WEIGHT)
    has_schedd = node.runs("SCHEDD")
    happens = (
        f"an idle job with {said(job)}{', and any other,' if every else ''} weighs {plain(value)} there, of which the whole part "
        "counts (WeightedIdleJobs): where there are group quotas, the negotiator gives nothing for such jobs, and none is matched"
    )
    if of_job:
        return Finding(
            "access points",
            chosen.place,
            f"{chosen.macro} on access points: {happens}",
            f"write {SCHEDD_WEIGHT} = RequestCpus, or another number that is 1 at least",
        )
    return Finding(
        "access points",
        chosen.place,
        f"{chosen.macro} on {'an access point' if has_schedd else 'access points, if this is for them too'}: {happens}",
        f"leave it to the execute points, as STARTD.{WEIGHT} or SLOT_TYPE_<N>_{WEIGHT}, or write {SCHEDD_WEIGHT} = RequestCpus beside "
        "it",
        advice=not has_schedd,
    )


def _chosen(node: Node) -> Optional[Setting]:
    """The knob by which a schedd of that configuration weighs jobs; None if no file sets it, or what it is cannot be known."""
    configuration = node.configuration
    for knob in (SCHEDD_WEIGHT, WEIGHT):
        for name in (f"SCHEDD.{knob}", knob):
            text, written = configuration.text(name).strip(), configuration.assignments(name)
            if written and name == knob and configuration.assignments(f"STARTD.{knob}"):
                # The configuration is read as a startd does: only as it is written, it is the schedd's.
                text = "" if "$" in written[-1].text else written[-1].text
            if text and written:
                return Setting(written[-1].name, text, configuration.place(name))
    return None


def _counts(node: Node) -> bool:
    """Whether a schedd reads that configuration, or may, and weighs jobs."""
    if node.boolean(SCHEDD_USES_WEIGHT) is False:
        return False
    is_known = node.input.is_whole or node.configuration.assignments("DAEMON_LIST")
    return node.runs("SCHEDD") or not is_known


def _values(subject: Subject, text: str, *, of_job: bool) -> list[Optional[float]]:
    """What each job weighs; None for what is no number, for which a schedd takes the job's cores."""
    if not of_job and text.lower() in _PLAIN:
        text, of_job = _PLAIN[text.lower()], True
    ads = [job if of_job else _as_slot(job) for job in _JOBS]
    rows = subject.htcondor.evaluate([text], ads, [{}])[0]
    return [_number(row[0]) for row in rows] if rows is not None else [None] * len(ads)


def _as_slot(job: Ad) -> dict[str, str]:
    return {name[len("Request") :]: text for name, text in job.items()}


def _number(value: Any) -> Optional[float]:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
