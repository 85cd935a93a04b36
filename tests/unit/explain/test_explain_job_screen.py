"""What `sharectl explain job` shows and advises, from findings by hand."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Optional

from sharectl.explain import job
from sharectl.explain.asks import JobFacts
from sharectl.explain.job import Headroom, Obstacle, Shortage, SlotFinding, TargetSeen, verdict
from sharectl.model import GroupError, GroupUsage
from sharectl.report.explain import JobExplanation, job_as_data, print_job
from sharectl.report.tables import print_screen
from tests.fakes import NOW

MEMORY = Obstacle("memory", "RequestMemory = 31000")
CPUS = Obstacle("cpus", "RequestCpus = 8")
TARGET = Obstacle("target", "MY.t1_TargetAdmits isnt false")


def finding(node: str, now: Sequence[Obstacle], empty: Sequence[Obstacle] = ()) -> SlotFinding:
    seen = TargetSeen("others", "alice", 0, "cms", 8, NOW + 600) if TARGET in now else None
    short = (Shortage("Memory", 31000, 20000, 30976),) if MEMORY in now else ()
    cores = (Shortage("Cpus", 8, 4, 8),) if CPUS in now else ()
    return SlotFinding(
        *(node, f"slot1@{node}", True, False, tuple(now), tuple(empty), seen),
        shortages=(*short, *cores),
    )


def explanation(*findings: SlotFinding, headroom: Optional[Headroom] = None) -> JobExplanation:
    found = verdict(findings)
    requests = {"RequestCpus": "8", "RequestMemory": "31000", "RequestDisk": "DiskUsage * 2"}
    facts: dict[str, Any] = vars(JobFacts("ap-1", 1, 5, "lhcb", "bob", requests, NOW - 60))
    return JobExplanation("6.1", NOW, found.code, facts, found, headroom)


def shown(found: JobExplanation, *, everything: bool = False) -> str:
    to = io.StringIO()
    print_job(found, to, everything=everything)
    return " ".join(to.getvalue().split())


def remedies(found: JobExplanation) -> dict[str, str]:
    return {row["code"]: row["remedy"] for row in job_as_data(found)["nodes"]["obstacles"]}


def test_what_not_even_an_empty_node_takes_has_only_remedies_that_help() -> None:
    found = explanation(*(finding(f"wn-{k}", [CPUS, MEMORY, TARGET], [MEMORY]) for k in range(3)))
    told = shown(found)
    assert found.code == "could-never"
    assert told.index("even empty 3 nodes") < told.index("in the way")
    assert "too little free memory" in told
    for useless in (
        "jobs that end there",
        "sharectl disable",
        "too few free cores",
        "Cpus: asks",
        "the target",
    ):
        assert useless not in told
    assert "change memory: a smaller request: none of these nodes is that large" in told
    assert remedies(found) == {
        "cpus": job.NO_USE,
        "memory": job.TOO_LARGE,
        "target": job.NO_USE,
    }
    everything = shown(found, everything=True)
    assert "too few free cores" in everything
    assert "sharectl disable" not in everything


def test_a_target_is_first_waited_for_and_then_switched_off_on_a_node() -> None:
    remedy = remedies(explanation(finding("wn-1", [TARGET])))["target"]
    wait, node, few, pool = (
        remedy.index(words)
        for words in (
            "2023-11-14 22:23:20 UTC",
            "/etc/sharectl/disabled",
            "control.max_nodes",
            "`sharectl disable`",
        )
    )
    assert wait < node < few < pool


def test_amounts_have_units() -> None:
    usage = GroupUsage(power_hs06=386.0)
    headroom = Headroom("lhcb", GroupError("lhcb", 200.0, 13.0, 173.0, 186.0, usage))
    told = shown(explanation(finding("wn-1", [MEMORY]), headroom=headroom))
    assert "RequestMemory = 31000 MiB, RequestDisk = DiskUsage * 2 (KiB)" in told
    assert "RequestCpus = 8," in told
    assert (
        "asks for 31000 MiB; where it is short, at most 20000 MiB free, 30976 MiB if nothing "
        "ran there" in told
    )
    assert "too little free memory: RequestMemory = 31000 MiB" in told
    assert "uses 386 HS06 and is due 213 HS06: 173 HS06 over; pledge 200 HS06" in told


def test_a_request_is_the_number_that_it_comes_to_and_a_short_expression_follows() -> None:
    long = "ifthenelse(MemoryUsage isnt undefined,MemoryUsage,( ImageSize + 1023 ) / 1024)"
    requests = {
        "RequestCpus": "8",
        "RequestDisk": "DiskUsage",
        "RequestMemory": long,
        "RequestGPUs": "nowhere",
    }
    values = {"RequestCpus": 8.0, "RequestDisk": 75.0, "RequestMemory": 1.0}
    facts = vars(JobFacts("ap-1", 1, 5, "lhcb", "bob", requests, NOW - 60, request_values=values))
    told = shown(replace(explanation(finding("wn-1", [CPUS])), facts=facts))
    assert (
        "RequestCpus = 8, RequestDisk = 75 KiB (DiskUsage), RequestMemory = 1 MiB, RequestGPUs "
        "= nowhere" in told
    )


def test_what_was_said_of_another_job_names_it() -> None:
    found = explanation(finding("wn-1", [CPUS]))
    facts = {**(found.facts or {}), "rejected": "no match found", "rejected_at": NOW - 2}
    told = shown(replace(found, facts=facts))
    assert "said: no match found, 2 s ago" in told
    assert "alike" not in told
    told = shown(replace(found, facts={**facts, "rejected_job": "5.0"}))
    assert "said: no match found, 2 s ago (of 5.0, which is alike)" in told


def test_a_screen_leaves_a_line_for_the_prompt() -> None:
    to = io.StringIO()
    print_screen(
        "title", [("row", f"number {number}") for number in range(23)], to, everything=False
    )
    lines = to.getvalue().splitlines()
    assert len(lines) == 23
    assert lines[-1] == "… and 2 lines more: --all"
