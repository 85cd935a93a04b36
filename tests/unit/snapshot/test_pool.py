"""Start of a collector, and names in ``other``."""

from __future__ import annotations

from collections import Counter
from typing import Any, Optional

import pytest

from sharectl.model import OtherJobs
from sharectl.snapshot.pool import MOST_OTHERS, _over_budget, others, started_at
from sharectl.snapshot.schedd_jobs import JobKind, JobShape, ScheddJobs
from tests.fakes import NOW


def test_what_is_in_other_has_its_names() -> None:
    held: Counter[Optional[str]] = Counter({"CMS.prod.bob@site": 9, "Lhcb.x.bob@site": 3, None: 2})
    kinds = (JobKind("lhcb", 1, 0), 5), (JobKind("cms", 1, 0), 7), (JobKind("belle.mc", 8, 0), 1)
    waiting = ScheddJobs(dict(kinds))
    expected = (OtherJobs("lhcb", 3, 5), OtherJobs("", 2, 0), OtherJobs("belle", 0, 1))
    assert others(("cms",), held, [waiting]) == expected


def test_users_who_write_many_names_or_long_ones_fill_no_screen() -> None:
    waiting: dict[JobKind, int] = {
        JobKind(f"g{number}" * 10_000, 1, 0): 1 for number in range(3000)
    }
    named = others(("cms",), Counter(), [ScheddJobs(waiting)])
    assert len(named) == MOST_OTHERS
    assert max(len(part.name) for part in named) <= 65


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


def test_jobs_over_a_budget_name_the_user_of_the_example() -> None:
    nameless = JobShape(JobKind("cms", 8, 0, ""), 2, "", None, user="bob@site", over=True)
    shapes = [nameless, nameless._replace(jobs=3, example="ap#7.0", user="eve@site")]
    words = _over_budget(shapes)
    assert words is not None
    assert words.startswith("5 pending jobs of 2 users (such as eve@site): it takes too long")
    assert words.endswith("; see `sharectl explain job ap#7.0`")
    assert _over_budget([]) is None
