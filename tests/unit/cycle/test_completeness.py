from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.cycle.doubts import WARMUP_SECONDS, with_restart
from sharectl.model import PlanLimits, Source
from sharectl.plan.plan import PlanConfig, State, decide
from tests.fakes import NOW, running, snapshot

SEEN = snapshot(
    [running("wn-1", "alice", 1), running("wn-2", "alice", 1)],
    sources=[Source("collector", 0.1), Source("schedd ap-1", 0.1)],
)


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
    seen = replace(SEEN, collector_started_at=NOW - started_seconds_ago)
    judged = with_restart(seen, State(1, nodes_before, schedds_before))
    assert judged.complete is complete


def test_the_problem_names_what_is_missing_and_until_when() -> None:
    judged = with_restart(
        replace(SEEN, collector_started_at=NOW - 10), State(1, nodes=5, schedds=2)
    )
    (problem,) = judged.problems
    assert problem.problem is not None
    assert "started 10 s ago and knows 2 of 5 execute points and 1 of 2 schedds" in problem.problem
    assert "after 330 s" in problem.problem


def test_what_a_cycle_saw_is_what_the_next_one_expects() -> None:
    state = decide(PlanConfig({"alice": 1.0}, PlanLimits(), 60), State(), SEEN, NOW).state
    assert (state.nodes, state.schedds) == (2, 1)
