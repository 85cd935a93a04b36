from __future__ import annotations

import pytest

from poolbox.demo import scenario
from poolbox.demo.pictures import NodePicture, NodeTarget, overshoots
from poolbox.demo.steering import Cycle
from poolbox.demo.story import Moment, Phase

NOW = 1_800_000_000


def _node(name: str, alice: int, cap: int | None) -> NodePicture:
    target = None if cap is None else NodeTarget("alice", cap, "cms", NOW)
    return NodePicture(name, 16, {"alice": alice}, target, in_grace=True, job_ctl_reason="ok")


@pytest.mark.parametrize(
    ("before", "after", "overshoots_of_alice"),
    [
        ((12, 8), (9, 8), 0),
        ((6, 8), (8, 8), 0),
        ((10, 8), (11, 8), 1),
        ((8, 8), (9, 4), 0),
        ((8, None), (16, None), 0),
    ],
)
def test_an_overshoot_is_a_rise_above_the_cap_while_it_stands(
    before: tuple[int, int | None], after: tuple[int, int | None], overshoots_of_alice: int
) -> None:
    seen = overshoots([_node("wn-001", *before)], [_node("wn-001", *after)])
    assert len(seen) == overshoots_of_alice


def _phase(*errors_hs06: float) -> Phase:
    """Cycles that find alice over her due and cms under it by so much."""
    moments = []
    for error in errors_hs06:
        rows = [{"group": "alice", "error_hs06": error}, {"group": "cms", "error_hs06": -error}]
        moments.append(Moment(NOW, (), Cycle(0, "", {"errors": rows}), fresh=True))
    return Phase("with sharectl", moments)


def test_the_demo_ends_when_the_last_cycles_find_both_groups_within_half_a_block() -> None:
    assert scenario.HALF_BLOCK_HS06 == 50

    assert _phase(640, 49, -50, 40).is_settled
    for errors in ((50, 50), (640, 51, 40, 40), (40, 40, 40, -51)):
        assert not _phase(*errors).is_settled
