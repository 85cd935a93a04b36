"""Ledgers of cycles that are decided and recorded on snapshots made by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from sharectl.cycle.record import record_of
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import JobWaits, PlanLimits, Snapshot, Source, WaitTimes
from sharectl.plan.blocks import BlockMemory, TakenBlocks
from sharectl.plan.plan import PlanConfig, State, decide
from sharectl.plan.records import CycleRecord
from sharectl.publish.state import StateFile
from tests.fakes import NOW, running, snapshot

PERIOD_SECONDS = 1020
SOURCES = (Source("collector", 0.12), Source("schedd ap-1.example.org", 0.34))
KINDS = (("alice", 1), ("atlas", 1), ("cms", 8))
BEGUN = State(blocks=BlockMemory(taken=tuple(TakenBlocks(*kind, 60.0, 1e6) for kind in KINDS)))
"""State of a pool whose jobs took so many blocks that nothing bounds new ones."""
PLEDGES = {"alice": 71_400.0, "atlas": 105_300.0, "cms": 87_100.0}


def law(strategy: str = "pair", **limits: object) -> PlanConfig:
    """What decides: three groups, and ``limits``."""
    bounds = PlanLimits(**limits)  # type: ignore[arg-type]
    return PlanConfig(PLEDGES, bounds, validity_seconds=3060, strategy=strategy)


def busy(number: int, waiting: int = 40) -> Snapshot:
    """A pool that alice fills more and more, while cms waits."""
    held = [running(f"cn-{node:02}", "alice", 1, 40) for node in range(6 + number)]
    held += [running(f"cn-{node:02}", "atlas", 8, 5) for node in range(20, 28)]
    held += [running(f"cn-{node:02}", "cms", 8, 4) for node in range(30, 34)]
    taken = snapshot(
        held,
        {("cms", 8): waiting, ("atlas", 1): 7, ("alice", 1): 12},
        uncontrolled=["cn-05"],
        sources=SOURCES,
    )
    waits = (
        JobWaits("atlas", 1, WaitTimes(7, 600, 7200), WaitTimes(3, 400, 900)),
        JobWaits("cms", 8, WaitTimes(40, 97_200, 266_400, sampled=True)),
    )
    return replace(taken, taken_at=NOW + number * PERIOD_SECONDS, waits=waits)


def write(
    folder: Path,
    config: PlanConfig,
    snapshots: Iterable[Snapshot],
    configuration: str = "0123456789ab",
) -> list[CycleRecord]:
    """Records of one cycle a snapshot, which the ledger and the state in ``folder`` then have."""
    state, records = BEGUN, []
    ledger = Ledger(folder / PLACE)
    for taken in snapshots:
        known = ledger.run_times(tuple(config.pledge_hs06))
        decision = decide(config, state, taken, taken.taken_at, known)
        made = record_of(config, taken, decision, decision.plan, ("fake",))
        record = replace(made, seconds=1.25, configuration=configuration)
        state = decision.state
        records.append(replace(record, number=ledger.record(record, taken)))
    StateFile(folder / "state.json").save(state)
    return records
