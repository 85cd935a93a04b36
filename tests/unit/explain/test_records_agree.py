"""A recorded cycle, decided again, comes to its own targets, whatever it went by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest

from sharectl.control.laws import Control
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.record import record_of
from sharectl.explain.decisions import of_ledger
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import Node, PendingJobs, RunningJobs, Snapshot
from sharectl.plan.plan import PlanConfig, State, decide
from sharectl.plan.records import as_kept
from sharectl.plan.settings import GiveUp
from tests.fakes import NOW
from tests.ledgers import law

CYCLES, PERIOD_SECONDS, NODES, CORES = 40, 300, 10, 16
CONFIG = replace(
    law("many", max_nodes=5, max_changed_nodes=2, dwell_seconds=600),
    steering=SteeringConfig(Control(law="ewma")),
    give_up=GiveUp(seconds=700),
    obey_seconds=400,
)


@dataclass
class Pool:
    """Jobs of any age and memory; a node obeys late, or never."""

    dice: Random
    jobs: list[tuple[int, str, int, int, int, int]] = field(default_factory=list)
    """Node, group, cores, start, end, MiB."""

    def look(self, now: int, state: State) -> Snapshot:
        """Snapshot after jobs have ended and others have begun."""
        self.jobs = [job for job in self.jobs if job[4] > now]
        targets = {stood.target.node: stood for stood in state.standing}
        for number in range(NODES):
            target = targets.get(f"wn-{number}")
            free = CORES - sum(job[2] for job in self.jobs if job[0] == number)
            while free > 0:
                size, group = 1, self.dice.choice(("alice", "alice", "atlas"))
                if target is not None and number % 5:
                    size, group = target.target.request_cores, target.target.helped
                    if size > free or number % 5 == 1 or self.dice.random() < 0.5:
                        break
                begun = now - self.dice.randrange(PERIOD_SECONDS)
                end = begun + int(self.dice.lognormvariate(7.5, 1.2)) + PERIOD_SECONDS
                memory_mib = self.dice.choice((1000, 2111, 3000)) * size * (number > 3)
                self.jobs.append((number, group, size, begun, end, memory_mib))
                free -= size
        sequence = state.sequence if state.standing else 0
        nodes = tuple(
            Node(
                f"wn-{number}",
                f"wn-{number}",
                CORES,
                10.0 + number % 3,
                controlled=True,
                memory_mib=1900 * CORES,
                obeyed_sequence=0 if number % 5 == 0 else sequence,
            )
            for number in range(NODES)
        )
        running = tuple(
            RunningJobs(f"wn-{n}", group, cores, nodes[n].hs06_per_core, now - start, 1, memory_mib)
            for n, group, cores, start, _, memory_mib in self.jobs
        )
        pending = tuple(
            PendingJobs(group, cores, self.dice.randrange(40), memory_mib)
            for group, cores in (("cms", 8), ("cms", 1), ("atlas", 4))
            for memory_mib in (1030 * cores, 2040 * cores)
        )
        return Snapshot(now, nodes, running, pending)


def cycles(folder: Path, config: PlanConfig, dice: Random) -> Iterator[State]:
    """State before each cycle that is recorded; some plans arrive nowhere."""
    ledger, state, pool = Ledger(folder / PLACE), State(), Pool(dice)
    for number in range(CYCLES):
        now = NOW + number * PERIOD_SECONDS + dice.randrange(60)
        seen = pool.look(now, state)
        kept, run_times = as_kept(seen, state.standing), ledger.run_times(tuple(config.pledge_hs06))
        decision = decide(config, state, kept, now, run_times)
        record = record_of(config, seen, decision, decision.plan, ())
        ledger.record(replace(record, configuration="now"), seen)
        yield state
        uncertain = 2 if number % 9 == 0 else 0
        state = replace(decision.state, uncertain_nodes=uncertain)


@pytest.mark.parametrize("observes", [False, True])
def test_every_cycle_comes_to_its_own_targets_by_all_that_is_recorded(
    tmp_path: Path,
    *,
    observes: bool,
) -> None:
    config = replace(CONFIG, observes=observes)
    before = list(cycles(tmp_path, config, Random(observes)))
    records = list(Ledger(tmp_path / PLACE).cycles(NOW, 2**40, with_nodes=True))
    assert [record.number for record in records if not of_ledger(record, config).agrees] == []
    assert len(records) == CYCLES
    assert sum(node.target is not None for record in records for node in record.nodes) > CYCLES
    # Not agreement about nothing: blocks were taken and given up.
    assert observes or any(state.blocks.taken for state in before)
    assert observes or any(state.blocks.back_offs for state in before)
    jobs = sum(held.jobs for record in records for node in record.nodes for held in node.held)
    rows = sum(len(node.held) for record in records for node in record.nodes)
    assert rows < 0.8 * jobs, "jobs alike are not one row"
