"""Cycles of a small pool for the tests of the ledger, made by the code that a cycle runs."""

from __future__ import annotations

from dataclasses import replace

from sharectl.cycle.record import record_of
from sharectl.model import JobWaits, PlanLimits, Snapshot, Source, WaitTimes
from sharectl.plan.plan import PlanConfig, State, decide
from sharectl.plan.records import CycleRecord, rounded
from tests.fakes import NOW, running, snapshot

PERIOD_SECONDS = 1020
CONFIG = PlanConfig({"alice": 300.0, "cms": 700.0}, PlanLimits(), validity_seconds=3060)
SOURCES = (Source("collector", 0.25), Source("schedd ce-1", 1.5))


def made(number: int = 0, nodes: int = 5, held: int = 40) -> tuple[CycleRecord, Snapshot]:
    """A complete cycle, so many periods after `NOW`, and what it saw."""
    taken_at = NOW + number * PERIOD_SECONDS
    jobs = [running(f"wn-{place}", "alice", 1, held + place - number % 3) for place in range(nodes)]
    jobs += [running(f"wn-{place}", "cms", 8, 1 + place % 2) for place in range(nodes)]
    seen = replace(
        snapshot(jobs, {("cms", 8): 3 + number, ("alice", 1): 7}, sources=SOURCES),
        taken_at=taken_at,
        waits=(
            JobWaits("alice", 1, WaitTimes(7, 60, 90), WaitTimes(2, 30, 40)),
            JobWaits("cms", 8, WaitTimes(3, 86_400, 200_000 + number, sampled=True)),
        ),
    )
    decision = decide(CONFIG, State(), seen, taken_at)
    record = record_of(CONFIG, seen, decision, decision.plan, ("/srv/sharectl.txt",))
    return replace(record, seconds=3.25, configuration="0123456789ab", problems=("a line",)), seen


def incomplete(number: int = 0) -> tuple[CycleRecord, Snapshot]:
    """A cycle for which a schedd did not answer."""
    taken_at = NOW + number * PERIOD_SECONDS
    seen = Snapshot(
        taken_at, (), (), (), (*SOURCES, Source("schedd ce-2", 60.0, "no answer within 60 s"))
    )
    return record_of(CONFIG, seen, None, None, ()), seen


def as_kept(record: CycleRecord, number: int) -> CycleRecord:
    """A record as the ledger gives it back: numbered, and with waits to two digits."""
    nodes = (
        replace(
            node,
            wait_seconds=float(rounded(node.wait_seconds)),
            idle_core_seconds=float(rounded(node.idle_core_seconds)),
        )
        for node in record.nodes
    )
    return replace(record, number=number, nodes=tuple(nodes))
