"""When a collector started, from what its ad says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from sharectl.condor.pool import started_at

NOW = 1_700_000_000


@pytest.mark.parametrize(
    ("ad", "started"),
    [
        ({"MonitorSelfTime": NOW, "MonitorSelfAge": 600}, NOW - 600),
        ({"MonitorSelfTime": NOW, "MonitorSelfAge": 0}, NOW),  # seen on one that had just started
        ({"MonitorSelfTime": NOW}, 0),
        ({"MonitorSelfAge": 0}, 0),
        ({"MonitorSelfTime": "soon", "MonitorSelfAge": -1}, 0),
        ({}, 0),
    ],
)
def test_a_collector_tells_when_it_started_or_not(ad: dict[str, Any], started: int) -> None:
    assert started_at(ad) == started
