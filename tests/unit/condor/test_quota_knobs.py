from __future__ import annotations

import pytest

from sharectl.condor.negotiator import GroupWeight, groups_of_knobs
from sharectl.errors import InputError
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


def knobs(text: str, pool_weight: float | None = None) -> dict[str, GroupWeight]:
    return groups_of_knobs(knobs_of(text), "negotiator", pool_weight)


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
    assert knobs(KNOBS, 20.0) == {
        "atlas": (8.0, "regroup"),
        "cms": (4.0, "no"),
        "cms.prod": (2.0, "byquota"),
        "lhcb": (4.0, "byquota"),
    }
    assert knobs(KNOBS)["atlas"].weight is None


def test_all_invalid_knobs_of_quotas_are_named() -> None:
    """The negotiator ends on a boolean that is none."""
    faults = {
        "GROUP_QUOTA_a": "lots",
        "GROUP_QUOTA_b": "-1",
        "GROUP_QUOTA_c": "inf",
        "GROUP_QUOTA_DYNAMIC_d": "x",
        "GROUP_AUTOREGROUP": "maybe",
        "GROUP_ACCEPT_SURPLUS_a": "yes",
    }
    with pytest.raises(InputError) as raised:
        knobs("".join(f"{name} = {value}\n" for name, value in faults.items()))
    for problem, (name, value) in zip(raised.value.problems, faults.items(), strict=True):
        assert problem.startswith(f"negotiator: {name} is {value!r}")
