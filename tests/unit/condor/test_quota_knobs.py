from __future__ import annotations

import pytest

from sharectl.condor.negotiator import groups_of_knobs
from sharectl.errors import InputError
from sharectl.shares.pledges import Group
from sharectl.words import Problems
from tests.quota_knobs import knobs_of


def test_no_more_problems_than_people_read() -> None:
    problems = Problems()
    assert not problems
    for number in range(500):
        problems.add(f"f:{number}", f"{'x' * number!r} is no number")
        problems.add("f", "x" * number)
    lines = problems.lines()
    assert lines[0] == "f:0: '' is no number (also at 1, 2, 3, and 496 more like this)"
    assert len(lines) == 21
    assert lines[-1].endswith("and 477 more like this)")


def knobs(text: str, pool_weight: float | None = None) -> list[Group]:
    return groups_of_knobs(knobs_of(text), "f", pool_weight)


KNOBS = """\
# a comment
GROUP_NAMES = cms, atlas, cms.prod lhcb
GROUP_QUOTA_cms = 4

Group_Quota_Dynamic_atlas = 0.5
GROUP_QUOTA_DYNAMIC_lhcb = 0.25
GROUP_QUOTA_DYNAMIC_cms.prod = 0.5
GROUP_ACCEPT_SURPLUS = True
GROUP_ACCEPT_SURPLUS_cms = False
GROUP_AUTOREGROUP_atlas = true
GROUP_QUOTA_MAX_ALLOCATION_ROUNDS = 3
GROUP_PRIO_FACTOR_cms = 10
NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = False
CPUS = lots
"""


def test_groups_of_knobs() -> None:
    assert knobs(KNOBS, 20.0) == [
        Group("atlas", 8.0, 0.0, "regroup"),
        Group("cms", 4.0, 0.0, "no"),
        Group("cms.prod", 2.0, 0.0, "byquota"),
        Group("lhcb", 4.0, 0.0, "byquota"),
    ]
    assert {group.name: group.quota for group in knobs(KNOBS)}["atlas"] is None
    beyond_one = "GROUP_QUOTA_DYNAMIC_a = 0.75\nGROUP_QUOTA_DYNAMIC_b = 0.5"
    assert [group.quota for group in knobs(beyond_one, 10.0)] == [6, 4]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        # The negotiator ends on a boolean that is none.
        (
            (
                "GROUP_QUOTA_a = lots\nGROUP_QUOTA_b = -1\nGROUP_QUOTA_c = inf\n"
                "GROUP_QUOTA_DYNAMIC_d = x\nGROUP_AUTOREGROUP = maybe\n"
                "GROUP_ACCEPT_SURPLUS_a = yes\n"
            ),
            ["f:1", "f:2", "f:3", "f:4", "f:5", "f:6"],
        ),
        ("GROUP_NAMES = cms\nCPUS = 4\nGROUP_QUOTA_ = 4\n", ["f"]),
    ],
)
def test_invalid_knobs_of_quotas_are_named_with_their_lines(text: str, places: list[str]) -> None:
    with pytest.raises(InputError) as raised:
        knobs(text)
    assert sorted(problem.split(": ")[0] for problem in raised.value.problems) == places
