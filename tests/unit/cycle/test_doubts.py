from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from sharectl.cycle.doubts import WARMUP_SECONDS, doubts, power_doubts, with_restart
from sharectl.model import OTHER, PlanLimits, Snapshot, Source, UnplaceableJobs
from sharectl.plan.plan import PlanConfig, State
from tests.fakes import NOW, running, snapshot
from tests.unit.cycle.test_cycle import INCOMPLETE, cycle, world

TWO = [running("wn-1", "alice", 1, 8), running("wn-2", "cms", 8)]
PLEDGES = {"alice": 1.0, "cms": 1.0}


CONFIG = PlanConfig(PLEDGES, PlanLimits(), 3060)


def looks() -> Iterator[Snapshot]:
    """Looks with one doubt each, of every kind."""
    seen = snapshot(TWO)
    nodes = seen.nodes
    silent = tuple(replace(node, power_assumed=True) for node in nodes)
    yield replace(seen, nodes=silent)
    some = running("wn-1", "alice", 1, 8)
    yield snapshot([some, running("wn-1", OTHER, 8)])
    yield snapshot([some], {(OTHER, 8): 3})
    yield replace(seen, untried="shapes of jobs were not tried")
    nobody = UnplaceableJobs("cms", 8, 5, "ap#1.0")
    yield replace(seen, unplaceable=(nobody,))


def test_every_doubt_is_as_it_was(golden: Callable[[str, str], None]) -> None:
    lines = [doubts(CONFIG, look) for look in looks()]
    assert {len(doubt) for doubt in lines} == {1}
    golden("cycle/doubts.txt", "".join(f"{line}\n" for (line,) in lines))


def test_an_intended_configuration_is_not_doubted() -> None:
    seen, some = snapshot(TWO), running("wn-1", "alice", 1, 8)
    one_silent = (replace(seen.nodes[0], power_assumed=True), seen.nodes[1])
    for look in (
        snapshot([], {}),
        replace(seen, nodes=one_silent),
        snapshot([some]),
        snapshot([some], {(OTHER, 8): 3, ("cms", 1): 1}),
    ):
        assert doubts(CONFIG, look) == ()
    assert power_doubts(replace(seen, nodes=())) == ()


def test_a_cycle_says_its_doubts_and_is_no_failure() -> None:
    seen = snapshot([running("wn-1", "alice", 8), running("wn-1", OTHER, 1)])
    result = cycle(world(seen))
    assert (len(result.warnings), result.problems) == (1, ())
    assert cycle(world(INCOMPLETE)).warnings == (), "missing data is never zero"


@pytest.mark.parametrize(
    ("started_seconds_ago", "nodes_before", "schedds_before", "complete"),
    [
        (10, 2, 1, True),
        (10, 0, 0, True),
        (10, 3, 1, False),
        (10, 2, 2, False),
        (WARMUP_SECONDS - 1, 3, 1, False),
        (WARMUP_SECONDS, 3, 1, True),
        (NOW, 3, 2, True),
    ],
)
def test_a_collector_that_just_started_may_not_know_all_yet(
    started_seconds_ago: int, nodes_before: int, schedds_before: int, *, complete: bool
) -> None:
    sources = [Source("collector", 0.1), Source("schedd ap-1", 0.1)]
    seen = replace(snapshot(TWO, sources=sources), collector_started_at=NOW - started_seconds_ago)
    judged = with_restart(seen, State(1, nodes_before, schedds_before))
    assert judged.complete is complete
    assert complete or f"of {nodes_before} execute points" in str(judged.problems)
