"""Message on jobs that take too long to be tried: it names a user and a job."""

from __future__ import annotations

from sharectl.snapshot.job_shapes import JobShape
from sharectl.snapshot.pool import _over_budget
from sharectl.snapshot.schedd_jobs import JobKind


def test_jobs_over_a_budget_name_the_user_of_the_example() -> None:
    nameless = JobShape(JobKind("cms", 8, 0, ""), 2, "", None, user="bob@site", over=True)
    shapes = [nameless, nameless._replace(jobs=3, example="ap#7.0", user="eve@site")]
    words = _over_budget(shapes)
    assert words is not None
    assert words.startswith("5 pending jobs of 2 users (such as eve@site): it takes too long")
    assert words.endswith("; see `sharectl explain job ap#7.0`")
    assert _over_budget([]) is None
