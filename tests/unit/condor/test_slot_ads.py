from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.condor.ad_files import (
    MOST_CHARACTERS,
    AdOfFile,
    from_long,
    number_of,
    parse,
    read,
    text_of,
)
from sharectl.condor.quotas import groups_of, of_knobs
from sharectl.consumption.cost import group_of
from sharectl.errors import InputError
from sharectl.shares.quotas import Group
from sharectl.words import Problems

LONG = r"""

-- Schedd: ap-1.example.org : <127.0.0.1:42621?...
ClusterId = 7
Requirements = TARGET.Arch == "X86_64" && regexp("\.x", TARGET.Name)
Name = "a \"b\" = c"

RequestCpus=2
"""
JSON = r"""
[
{
  "ClusterId": 7,
  "Requirements": "\/Expr(TARGET.Arch == \"X86_64\" && regexp(\"\\\\.x\", TARGET.Name))\/",
  "Name": "a \"b\" = c"
}
]
[
{ "RequestCpus": 2, "Flag": true, "No": false, "Zero": 0, "Half": 0.5, "Null": null,
  "List": [ 1, "x", { "Nested": 1 } ] }
]
"""


def test_long_and_json_are_the_same() -> None:
    (first, second), (same, other) = parse(LONG, "a"), parse(JSON, "b")
    assert first.attributes == same.attributes
    assert (first.place, second.place, same.place, other.place) == (
        "a:4",
        "a:8",
        "b: ad 1",
        "b: ad 2",
    )
    assert second.attributes == {"RequestCpus": "2"}
    assert other.attributes == {
        "RequestCpus": "2",
        "Flag": "true",
        "No": "false",
        "Zero": "0",
        "Half": "0.5",
        "Null": "undefined",
        "List": '{ 1, "x", [ Nested = 1 ] }',
    }


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
    assert raised.value.problems == (
        (
            "f:1: no attribute; write Name = expression, an empty line between ads (also at 2, 3, "
            "4, and 96 more like this)"
        ),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f: no ad in it"),
        ("[]", "f: no ad in it"),
        ('[{"A": 1},\n', "f:2: no JSON"),
        ("[1]", "f: ad 1: no object"),
        ('{"A": ' + "[" * 100_000, "f:1: no JSON"),
    ],
)
def test_what_is_no_ad(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=f"^{problem}"):
        parse(text, "f")


def test_problems_that_differ_are_told_up_to_a_number() -> None:
    problems = Problems(most=7)
    assert not problems
    for number in range(9):
        problems.add(f"f:{number}", f"{'x' * number!r} is no number")
    for letter in "abc":
        problems.add("f", letter)
    assert [line.partition(": ")[0] for line in problems.lines()] == [
        *(f"f:{number}" for number in range(5)),
        "f",
        "f",
        "… and 5 more problems",
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="No such file or directory; name a file that condor_status"
    ):
        read(tmp_path / "missing")


def test_values_that_are_written_down() -> None:
    ad = from_long('Name = "slot1@a"\nCpus = 8\nMemory = 2 * 4\nText = "a\\"b"\nnot an attribute')
    assert (text_of(ad, "name"), text_of(ad, "Text"), text_of(ad, "Cpus")) == ("slot1@a", 'a"b', "")
    assert number_of(ad, "CPUS") == 8
    assert number_of(ad, "Memory") != number_of(ad, "Memory")


# ---- groups


def test_groups_of_accounting_ads() -> None:
    ads = [
        AdOfFile(
            "1",
            {
                "Name": '"<none>"',
                "EffectiveQuota": "4.0",
                "ConfigQuota": "0.0",
                "WeightedResourcesUsed": "1.0",
            },
        ),
        AdOfFile(
            "2",
            {
                "Name": '"cms"',
                "EffectiveQuota": "3.5",
                "ConfigQuota": "3.5",
                "WeightedResourcesUsed": "2.0",
                "SurplusPolicy": '"byquota"',
            },
        ),
        # Before the first cycle.
        AdOfFile("3", {"Name": '"atlas"', "EffectiveQuota": "0.0", "ConfigQuota": "0.5"}),
        AdOfFile("4", {"Name": '"none"', "EffectiveQuota": "0.0", "ConfigQuota": "0.0"}),
    ]
    assert groups_of(ads) == [
        Group("atlas", None, None, None),
        Group("cms", 3.5, 2.0, "byquota"),
        Group("none", 0.0, None, None),
        Group("<none>", 4.0, 1.0, None),
    ]


def knobs(text: str, pool_weight: float | None = None) -> list[Group]:
    return of_knobs(text, "f", lambda: pool_weight)


KNOBS = """\
# a comment
GROUP_NAMES = cms, atlas, cms.prod lhcb
GROUP_QUOTA_cms = 4

Group_Quota_Dynamic_atlas = 0.5
GROUP_QUOTA_DYNAMIC_lhcb = 0.25
GROUP_QUOTA_DYNAMIC_cms.prod = 0.5
# another
GROUP_ACCEPT_SURPLUS = True
GROUP_ACCEPT_SURPLUS_cms = False
GROUP_AUTOREGROUP_atlas = true
GROUP_QUOTA_MAX_ALLOCATION_ROUNDS = 3
GROUP_PRIO_FACTOR_cms = 10
NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = False
"""


def test_groups_of_knobs() -> None:
    assert knobs(KNOBS, 20.0) == [
        Group("atlas", 8.0, 0.0, "regroup"),
        Group("cms", 4.0, 0.0, "no"),
        Group("cms.prod", 2.0, 0.0, "byquota"),
        Group("lhcb", 4.0, 0.0, "byquota"),
    ]
    assert {group.name: group.quota for group in knobs(KNOBS)}["atlas"] is None


def test_shares_beyond_one_are_scaled() -> None:
    text = "GROUP_QUOTA_DYNAMIC_a = 1.5\nGROUP_QUOTA_DYNAMIC_b = 0.5"
    assert [group.quota for group in knobs(text, 10.0)] == [7.5, 2.5]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "GROUP_QUOTA_cms = lots",
            "GROUP_QUOTA_cms is 'lots'; write a number of weighted slots such as 40",
        ),
        (
            "GROUP_QUOTA_cms = -1",
            "GROUP_QUOTA_cms is '-1'; write a number of weighted slots such as 40",
        ),
        (
            "GROUP_QUOTA_cms = inf",
            "GROUP_QUOTA_cms is 'inf'; write a number of weighted slots such as 40",
        ),
        ("GROUP_QUOTA_DYNAMIC_cms =", "GROUP_QUOTA_DYNAMIC_cms is ''; write a share such as 0.25"),
        ("GROPU_QUOTA_cms = 4", "GROPU_QUOTA_cms is no knob of quotas; write GROUP_QUOTA_cms"),
        (
            "GROUP_QOUTA_cms.Prod = 4",
            "GROUP_QOUTA_cms.Prod is no knob of quotas; write GROUP_QUOTA_cms.Prod",
        ),
        (
            "GROUP_QUOTA_DYNMIC = 4\nGROUP_QUTA_x = 1",
            "GROUP_QUTA_x is no knob of quotas; write GROUP_QUOTA_x",
        ),
        (
            "GROUP_ACEPT_SURPLUS = True",
            "GROUP_ACEPT_SURPLUS is no knob of quotas; write GROUP_ACCEPT_SURPLUS",
        ),
        ("CPUS = 4", "CPUS is no knob of quotas; write GROUP_QUOTA_<group> = number"),
        (
            "SLOT_TYPE_1_CONSUMPTION_LICENCE = 1",
            (
                "SLOT_TYPE_1_CONSUMPTION_LICENCE is no knob of quotas; write GROUP_QUOTA_<group> = "
                "number"
            ),
        ),
        (
            "GROUP_QUOTA_ = 4",
            "GROUP_QUOTA_ is no knob of quotas; write GROUP_QUOTA_<group> = number",
        ),
        ("GROUP_AUTOREGROUP = maybe", "GROUP_AUTOREGROUP is 'maybe'; write True or False"),
        # No boolean to HTCondor, whose negotiator ends.
        (
            "GROUP_ACCEPT_SURPLUS_cms = yes",
            "GROUP_ACCEPT_SURPLUS_cms is 'yes'; write True or False",
        ),
        ("use POLICY : x", "'use POLICY : x' is no knob; write GROUP_QUOTA_<group> = number"),
        (
            "GROUP_NAMES = cmss\nGROUP_QUOTA_cms = 4",
            (
                "group 'cms' is not in GROUP_NAMES, so that HTCondor ignores it; write cmss, or add "
                "it there"
            ),
        ),
    ],
)
def test_lines_that_set_no_quota_are_named(line: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        knobs(f"{line}\n")
    last = len(line.splitlines())
    assert f"f:{last}: {said}" in raised.value.problems


def test_all_problems_of_a_file_of_quotas_at_once() -> None:
    with pytest.raises(InputError) as raised:
        knobs("GROUP_QUOTA_a = 1\nGROUP_QUOTA_b = x\nwhat\nGROPU_QUOTA_c = 1\n")
    assert sorted(problem.split(": ")[0] for problem in raised.value.problems) == [
        "f:2",
        "f:3",
        "f:4",
    ]


def test_a_file_without_any_quota() -> None:
    with pytest.raises(InputError, match="f: no quota in it; write GROUP_QUOTA_<group>"):
        knobs("GROUP_NAMES = cms\n")


@pytest.mark.parametrize(
    "ad", [{"Cpus": "1"}, {"Name": '"slot1@a"', "MyType": '"Machine"', "ConfigQuota": "1"}]
)
def test_ads_that_are_no_groups_are_named_once(ad: dict[str, str]) -> None:
    with pytest.raises(InputError) as raised:
        groups_of([AdOfFile("f:3", ad), AdOfFile("f:9", ad)])
    assert raised.value.problems[0].startswith("f:3: no group; write GROUP_QUOTA_<group>")
    assert raised.value.problems[0].endswith(" (also at 9)")
    assert len(raised.value.problems) == 1


@pytest.mark.parametrize(
    ("accounting_group", "group"),
    [
        ("cms.prod.alice", "cms.prod"),
        ("CMS.user.bob", "cms"),
        ("cms", "cms"),
        ("cmsx.alice", "<none>"),
        ("", "<none>"),
    ],
)
def test_jobs_count_for_the_innermost_group_that_there_is(
    accounting_group: str, group: str
) -> None:
    assert group_of(accounting_group, ["cms", "cms.prod"]) == group
