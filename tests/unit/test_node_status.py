from __future__ import annotations

from typing import Any

import pytest

from sharectl.adapters.node_status import STALE_REASON, UNKNOWN_REASON, status_of
from tests.fakes import NOW


def slot(**attributes: Any) -> dict[str, Any]:
    return {"t1_JobCtlReason": "ok", "t1_JobCtlTime": NOW - 30, "MyCurrentTime": NOW, **attributes}


def test_slots_are_counted_by_what_they_do() -> None:
    target = {"t1_Targetcores": [56, 8], "t1_TargetUntil": NOW + 9}
    seen = status_of(
        [
            slot(**target),
            slot(**{**target, "t1_TargetUntil": NOW}),
            slot(MC_GRACE=True),
            slot(t1_Disabled=True, t1_JobCtlReason="no-line"),
            slot(t1_Disabled=False),
            slot(t1_Disabled="yes"),
        ],
        NOW,
        90,
    )
    assert (seen.slots, seen.with_target, seen.in_grace, seen.disabled) == (6, 1, 1, 1)
    assert seen.reasons == {"ok": 5, "no-line": 1}


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({}, "ok"),
        ({"t1_JobCtlTime": NOW - 89}, "ok"),
        ({"t1_JobCtlTime": NOW - 90}, STALE_REASON),
        ({"t1_JobCtlTime": "soon"}, STALE_REASON),
        # The collector has an ad of ten minutes ago, and the node's clock is an hour behind: it ran in time.
        ({"t1_JobCtlTime": NOW - 4230, "MyCurrentTime": NOW - 4200}, "ok"),
        ({"t1_JobCtlTime": NOW - 4290, "MyCurrentTime": NOW - 4200}, STALE_REASON),
        ({"MyCurrentTime": None}, "ok"),
        ({"t1_JobCtlReason": None}, UNKNOWN_REASON),
    ],
)
def test_a_run_is_stale_by_the_clock_of_its_node(attributes: dict[str, Any], reason: str) -> None:
    assert list(status_of([slot(**attributes)], NOW, 90).reasons) == [reason]
