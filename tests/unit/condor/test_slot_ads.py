from __future__ import annotations

import json

import pytest

from sharectl.condor.ad_files import (
    MOST_CHARACTERS,
    AdOfFile,
    from_long,
    number_of,
    parse,
    text_of,
)
from sharectl.condor.negotiator import groups_of, groups_of_knobs
from sharectl.errors import InputError
from sharectl.shares.pledges import Group
from sharectl.words import Problems
from tests.quota_knobs import knobs_of

LONG = r"""

-- Schedd: ap-1.example.org : <127.0.0.1:42621?...
ClusterId = 7
Requirements = TARGET.Arch == "X86_64" && regexp("\.x", TARGET.Name)
Name = "a \"b\" = c"

RequestCpus=2
"""


def test_ads_of_long() -> None:
    first, second = parse(LONG, "a")
    assert (first.place, second.place) == ("a:4", "a:8")
    assert second.attributes == {"RequestCpus": "2"}
    assert first.attributes["Requirements"].endswith(r'regexp("\.x", TARGET.Name)')
    assert text_of(first.attributes, "Name") == 'a "b" = c'


def test_every_line_that_is_no_attribute_is_named() -> None:
    with pytest.raises(InputError) as raised:
        parse(f"A = 1\nwhat is this\nB == 2\nC = {'1' * MOST_CHARACTERS}\n", "f")
    assert [problem.partition(";")[0] for problem in raised.value.problems] == [
        "f:2: no attribute",
        "f:4: too long",
    ]
    assert raised.value.problems[0].endswith(" (also at 3)")


def test_no_more_problems_than_people_read() -> None:
    with pytest.raises(InputError) as raised:
        parse("x\n" * 100, "f")
    (problem,) = raised.value.problems
    assert problem.endswith("(also at 2, 3, 4, and 96 more like this)")
    problems = Problems(most=7)
    assert not problems
    for number in range(9):
        problems.add(f"f:{number}", f"{'x' * number!r} is no number")
    for letter in "abc":
        problems.add("f", letter)
    places = [line.partition(": ")[0] for line in problems.lines()]
    assert places == [*(f"f:{number}" for number in range(5)), "f", "f", "… and 5 more problems"]


@pytest.mark.parametrize("text", ["", "\n\n", "-- Schedd: ap-1\n"])
def test_a_file_without_ads_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^f: no ad in it"):
        parse(text, "f")


def test_values_that_are_written_down() -> None:
    ad = from_long('Name = "slot1@a"\nCpus = 8\nMemory = 2 * 4\nText = "a\\"b"\nnot an attribute')
    assert (text_of(ad, "name"), text_of(ad, "Text"), text_of(ad, "Cpus")) == ("slot1@a", 'a"b', "")
    assert number_of(ad, "CPUS") == 8
    assert number_of(ad, "Memory") != number_of(ad, "Memory")


# ---- groups


def test_groups_of_accounting_ads() -> None:
    written = {
        "<none>": (4.0, 0.0, 1.0, ""),
        "cms": (3.5, 3.5, 2.0, "byquota"),
        # Before the first cycle.
        "atlas": (0.0, 0.5, 0.0, ""),
        "none": (0.0, 0.0, 0.0, "what"),
    }
    names = ("EffectiveQuota", "ConfigQuota", "WeightedResourcesUsed", "SurplusPolicy")
    ads = [
        AdOfFile(name, {"Name": f'"{name}"', **dict(zip(names, map(json.dumps, values)))})
        for name, values in written.items()
    ]
    assert groups_of(ads) == [
        Group("atlas", None, 0.0, None),
        Group("cms", 3.5, 2.0, "byquota"),
        Group("none", 0.0, 0.0, None),
        Group("<none>", 4.0, 1.0, None),
    ]


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
