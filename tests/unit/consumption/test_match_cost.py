from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Optional

import pytest

from sharectl.cli.main import main
from sharectl.consumption.asks import kinds
from sharectl.consumption.cost import (
    Match,
    Offer,
    Priced,
    PricedJobs,
    PricedSlots,
    SlotKind,
    claims_within,
    group_cost,
    leftover_claims,
)
from sharectl.shares.quotas import Group

SLOT = {
    "Name": '"slot1@wn-1"',
    "SlotType": '"Partitionable"',
    "SlotTypeID": "1",
    "PartitionableSlot": "true",
    "MachineResources": '"Cpus Memory Disk"',
    "State": '"Unclaimed"',
    "Cpus": "6",
    "TotalSlotCpus": "10",
    "Memory": "4000",
    "Disk": "100000",
    "SlotWeight": "Cpus",
    "NumClaims": "4",
    "ConsumptionCpus": "target.RequestCpus",
    "ConsumptionMemory": "quantize(target.RequestMemory, {128})",
    "ConsumptionDisk": "target.RequestDisk",
    "Requirements": "Start && MY.ConsumptionCpus <= MY.Cpus",
    "Start": "true",
}
PLAIN = {name: text for name, text in SLOT.items() if not name.startswith("Consumption")} | {
    "Name": '"slot1@wn-2"',
    "Requirements": "TARGET.RequestCpus <= MY.Cpus",
}
JOB = {
    "RequestCpus": "1",
    "RequestMemory": "100",
    "RequestDisk": "10",
    "AccountingGroup": '"cms.bob"',
    "JobStatus": "1",
    "Requirements": "true",
}


def group_ad(name: str, quota: float) -> dict[str, str]:
    return {
        "Name": f'"{name}"',
        "MyType": '"Accounting"',
        "IsAccountingGroup": "true",
        "EffectiveQuota": str(quota),
        "ConfigQuota": str(quota),
        "WeightedResourcesUsed": "0.0",
        "SurplusPolicy": '"no"',
    }


def long(*ads: Mapping[str, str]) -> str:
    return "\n\n".join("\n".join(f"{name} = {text}" for name, text in ad.items()) for ad in ads)


class Files:
    """Files for the command, and what it prints."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.write("quotas", group_ad("cms", 3), group_ad("atlas", 4.5))
        self.write("slots", SLOT, PLAIN)
        self.write("jobs", JOB, {**JOB, "RequestCpus": "4"}, JOB)

    def write(self, name: str, *ads: Mapping[str, str]) -> None:
        (self.folder / name).write_text(long(*ads))

    def run(self, verb: str, *options: str, expect: int = 0) -> str:
        files = ["--slots", str(self.folder / "slots")]
        if verb == "capacity" or "--group" in options:
            files += ["--quotas", str(self.folder / "quotas")]
        code = main(["consumption", verb, *files, "--jobs", str(self.folder / "jobs"), *options])
        printed = self.capsys.readouterr()
        assert code == expect, printed
        return printed.err if expect else printed.out

    def json(self, verb: str, *options: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.run(verb, "--json", *options))
        return content

    def group(self, name: str, *options: str) -> dict[str, Any]:
        groups = self.json("cost", "--group", *options)["groups"]
        found: dict[str, Any] = next(group for group in groups if group["name"] == name)
        return found


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    return Files(tmp_path, capsys)


# ---- the command, on files


def test_cost_of_files(files: Files) -> None:
    content = files.json("cost")
    assert (content["kind"], content["missing"], content["notes"]) == ("consumption-cost", [], [])
    assert [job["count"] for job in content["jobs"]] == [2, 1]
    keys = ("slots", "jobs", "cost", "usage", "fits", "fits_in_a_cycle")
    assert [tuple(match[key] for key in keys) for match in content["matches"]] == [
        (0, 0, 1, 1, 6, 4),
        (0, 1, 4, 4, 1, 1),
        (1, 0, 6, 1, 6, 1),
        (1, 1, 6, 4, 1, 1),
    ]
    assert content["matches"][0]["remaining"] == {"Cpus": 5, "Memory": 3872, "Disk": 99990}
    assert content["slots"][1]["no_policy_because"] == [
        f"no Consumption{asset}" for asset in ("Cpus", "Disk", "Memory")
    ]


def test_tables(
    files: Files, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wording and columns of all tables."""
    monkeypatch.chdir(files.folder)
    files.folder = Path()
    files.write("slots", SLOT, PLAIN, {**SLOT, "Name": '"slot1@full"', "Cpus": "0"})
    files.write("jobs", JOB, JOB, {**JOB, "RequestCpus": "12"}, {**JOB, "RequestCpus": "8"})
    options = ["--leftovers", "on"]
    shown = [
        files.run("cost"),
        files.run("cost", "--empty"),
        files.run("cost", "--group", *options),
        files.run("capacity", *options),
        files.run("cost", "--job-constraint", "RequestCpus > 99"),
    ]
    golden("consumption/tables.txt", "\n".join(shown))


def test_an_empty_slot_has_all_its_assets(files: Files) -> None:
    assert files.json("cost", "--empty")["matches"][0]["weight_before"] == 10


def test_constraints_choose(files: Files) -> None:
    content = files.json(
        "cost", "--constraint", 'Name == "slot1@wn-2"', "--job-constraint", "RequestCpus > 1"
    )
    assert [slots["names"] for slots in content["slots"]] == [["slot1@wn-2"]]
    assert [jobs["count"] for jobs in content["jobs"]] == [1]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        (["--constraint", "Cpus >"], "--constraint: 'Cpus >'"),
        (["--constraint", "Cpus > 99"], "/slots has none that meets --constraint"),
        (["--job-constraint", "1 +"], "--job-constraint: '1 +'"),
    ],
)
def test_constraints_that_choose_nothing(files: Files, options: list[str], place: str) -> None:
    assert place in files.run("cost", *options, expect=65)


@pytest.mark.parametrize("verb", ["cost", "capacity"])
def test_files_in_each_others_place_are_refused(files: Files, verb: str) -> None:
    for name, option in (("slots", "--jobs"), ("jobs", "--slots")):
        told = files.run(verb, option, str(files.folder / name), expect=65)
        assert f"{files.folder}/{name}:1: " in told
        assert f"give {option} the output of condor_" in told
    told = files.run("cost", "--group", "--quotas", str(files.folder / "jobs"), expect=65)
    assert f"{files.folder}/jobs:1: " in told


def test_jobs_that_do_not_wait_and_dynamic_slots_are_left_out(files: Files) -> None:
    files.write("jobs", JOB, {**JOB, "JobStatus": "2"}, {**JOB, "JobUniverse": "7"})
    files.write("slots", SLOT, {**SLOT, "SlotType": '"Dynamic"'})
    content = files.json("cost")
    assert [job["count"] for job in content["jobs"]] == [1]
    assert [slots["count"] for slots in content["slots"]] == [1]
    (note,) = content["notes"]
    assert note.startswith(f"{files.folder}/jobs: 2 jobs left out")
    files.write("slots", {**SLOT, "SlotType": '"Dynamic"'})
    assert f"{files.folder}/slots has none but dynamic ones" in files.run("cost", expect=65)


def test_groups_against_their_quotas(files: Files) -> None:
    cms = files.group("cms", "--leftovers", "on")
    keys = ("quota", "jobs", "cost", "smallest_cost", "smallest_weight", "quota_below_every_weight")
    assert tuple(cms[key] for key in keys) == (3, 3, 6, 1, 6, True)
    # 2 jobs of a core, or one of 4, on the slot that a match of cost 1, or of 4, opens to the
    # schedd.
    assert (cms["leftover_claims"], cms["leftover_usage"], cms["past_quota"]) == (1, 4, 1)
    off = files.group("cms", "--leftovers", "off")
    assert (off["leftover_claims"], off["past_quota"]) == (0, 0)
    assert "taken to be on" in files.json("cost", "--group")["notes"][0]


def test_leftovers_are_unknown_only_where_they_are_off(files: Files) -> None:
    files.write("quotas", group_ad("cms", 3))
    for option in ("on", "off"):
        content = files.json("capacity", "--leftovers", option)
        (cms,) = content["groups"]
        assert (content["leftovers"], cms["claims"]) == (option == "on", 3)
        assert (cms["leftover_claims"] is None) is (option == "off")


@pytest.mark.parametrize("verb", [["cost"], ["cost", "--group"], ["capacity"]])
def test_names_of_ads_steer_no_terminal(files: Files, verb: list[str]) -> None:
    bad = '"slot\x1b[31m"'
    files.write("slots", {**PLAIN, "Name": bad}, {**SLOT, "Name": bad, "ConsumptionCpus": "0"})
    files.write("jobs", {**JOB, "AccountingGroup": '"a\x1b[31m.bob"'})
    printed = files.run(*verb)
    assert "\x1b" not in printed
    assert "--group" in verb or "slot\\x1b[31m" in printed


def test_capacity_of_files(files: Files) -> None:
    content = files.json("capacity", "--request", "2", "--request", "1,8000")
    assert (content["kind"], content["claims"]) == ("consumption-capacity", 12)
    assert content["types"] == [
        {"slot_type": 1, "slots": 2, "policy_slots": 1, "claims": 12, "weight": 12}
    ]
    keys = ("claims_each", "claims_in_a_cycle", "cost", "because")
    assert [tuple(slot[key] for key in keys) for slot in content["slots"]] == [
        (6, 4, 1, ""),
        (6, 1, 6, ""),
    ]
    assert [(job["names"][0], job["claims"]) for job in content["jobs"][:2]] == [
        ("request 2", 6),
        ("request 1,8000", 0),
    ]
    cms = next(job for job in content["jobs"] if job["quota_group"] == "cms")
    assert (cms["count"], cms["claims"], cms["claims_within_quota"]) == (2, 12, 3)


def test_slots_that_have_nothing_to_give(files: Files) -> None:
    files.write(
        "slots",
        {**SLOT, "State": '"Drained"'},
        {**SLOT, "ConsumptionCpus": "undefined"},
        {**SLOT, "Cpus": "0"},
        {**SLOT, "Requirements": "false"},
    )
    content = files.json("capacity")
    assert [(slot["claims"], slot["because"]) for slot in content["slots"]] == [
        (0, "Drained"),
        (None, "no smallest request is matched"),
        (0, "Cpus: not enough is left"),
        (6, ""),
    ]
    assert [slot["weight"] for slot in content["slots"]] == [6, 6, 0, 6]
    assert content["types"][0]["weight"] == 18
    # What is not known of one slot is not known of all.
    assert content["claims"] is None
    assert "claims of the smallest request now: ?" in files.run("capacity")


def test_jobs_that_never_fit_are_told_from_those_that_wait(files: Files) -> None:
    files.write("jobs", {**JOB, "RequestCpus": "12"}, {**JOB, "RequestCpus": "8"}, JOB)
    refused = [match["refused"][:1] for match in files.json("cost")["matches"]]
    never, waits = (
        "Cpus: more than the slot has when it is empty",
        "Cpus: not enough is left",
    )
    assert refused == [[never], [waits], []] * 2
    cms = files.group("cms", "--leftovers", "off")
    assert cms["jobs_without_slot"] == 2
    shapes = files.json("capacity", "--request", "12", "--request", "8")["jobs"][:2]
    assert [(job["claims"], job["fits_empty_slot"]) for job in shapes] == [(0, False), (0, True)]


def test_slots_of_unlike_size_are_told_apart_when_they_are_emptied(files: Files) -> None:
    files.write("jobs", {**JOB, "RequestCpus": "12"})
    larger = {**SLOT, "Name": '"slot1@wn-3"', "TotalSlotCpus": "16"}
    files.write("slots", SLOT, larger)
    assert [match["refused"][0] for match in files.json("cost")["matches"]] == [
        "Cpus: more than the slot has when it is empty",
        "Cpus: not enough is left",
    ]


def test_custom_resources_that_are_all_that_is_charged(files: Files) -> None:
    slot_of_tokens = {
        **SLOT,
        "MachineResources": '"Cpus Memory Disk Tokens"',
        "Tokens": "3",
        "ConsumptionTokens": "target.RequestTokens",
        **{f"Consumption{asset}": "0" for asset in ("Cpus", "Memory", "Disk")},
        "SlotWeight": "Tokens",
    }
    files.write("slots", slot_of_tokens)
    (slot,) = files.json("capacity")["slots"]
    assert (slot["claims"], slot["consumed"]["Tokens"]) == (3, 1)
    match = files.json("cost", "--request", "tokens=1")["matches"][0]
    assert match["startd_takes_more"] == ["Cpus", "Memory"]


def test_gpus_are_requested_by_name(files: Files) -> None:
    with_gpus = {
        **SLOT,
        "MachineResources": '"Cpus Memory Disk GPUs"',
        "ConsumptionGPUs": "TARGET.RequestGPUs ?: 0",
        "GPUs": "2",
        "Requirements": "MY.ConsumptionGPUs <= MY.GPUs",
    }
    files.write("slots", with_gpus)
    one, three = files.json("cost", "--request", "gpus=1", "--request", "1,2000,gpus=3")["matches"][
        :2
    ]
    assert (one["consumed"]["GPUs"], one["fits"], one["refused"]) == (1, 2, [])
    assert three["refused"]
    assert files.json("capacity", "--request", "2,gpus=1")["jobs"][0]["claims"] == 2


@pytest.mark.parametrize(
    "request_",
    [
        *("", "x", "1,2,3,4", "-1", "1,,2", "\u0663", "gpus", "gpus=", "gpus=1,8", "8,cpus=1"),
        *("gpus=1,GPUs=2", "g-p=1", "=1", "0", "8,0,00", "9" * 16, "8,gpus=0"),
    ],
)
def test_requests_are_whole_numbers(files: Files, request_: str) -> None:
    with pytest.raises(SystemExit) as ended:
        files.run("capacity", f"--request={request_}")
    assert ended.value.code == 2
    assert "argument --request: " in files.capsys.readouterr().err


def test_a_cost_that_depends_on_the_slot_is_told_as_a_lower_bound(files: Files) -> None:
    cheap = {**SLOT, "Name": '"slot2@wn-1"', "SlotWeight": "ceiling(Cpus / 4.0)"}
    files.write("slots", SLOT, cheap)
    files.write("jobs", *[{**JOB, "RequestCpus": "4"}] * 5)
    keys = ("cost", "cost_differs", "usage", "usage_differs")
    cms = files.group("cms", "--leftovers", "off")
    assert tuple(cms[key] for key in keys) == (5, [1, 4], 5, True)
    files.write("slots", SLOT)
    cms = files.group("cms", "--leftovers", "off")
    assert tuple(cms[key] for key in keys) == (20, None, 20, False)


def test_every_job_has_a_row_whatever_is_known_of_groups(files: Files) -> None:
    files.write(
        "jobs",
        {**JOB, "AcctGroup": '"atlas"'},
        {**JOB, "AccountingGroup": '"CMS.ann"'},
        {**JOB, "AccountingGroup": '"atlas.bob"'},
        {**JOB, "AccountingGroup": '""', "AcctGroup": '"cms"'},
    )
    files.write("quotas", group_ad("cms", 3))
    told = files.json("cost", "--group")["groups"]
    assert [(group["name"], group["jobs"], group["quota"]) for group in told] == [
        ("cms", 2, 3),
        ("<none>", 2, None),
    ]
    paths = [f"--{what}={files.folder / what}" for what in ("slots", "jobs")]
    assert main(["consumption", "cost", "--group", *paths]) == 0
    printed = files.capsys.readouterr().out
    assert [line.split()[:5] for line in printed.splitlines()[2:5]] == [
        ["atlas", "?", "?", "?", "1"],
        ["cms", "?", "?", "?", "2"],
        ["<none>", "?", "?", "?", "1"],
    ]


@pytest.mark.parametrize("verb", ["cost", "capacity"])
def test_a_constraint_that_no_job_meets_is_not_taken_for_no_job(files: Files, verb: str) -> None:
    assert "meets --job-constraint" in files.run(verb, "--job-constraint", "RequestCpus > 99")
    files.write("jobs", {**JOB, "JobStatus": "2"})
    printed = files.run(verb)
    assert "no job waits for a slot" in printed
    assert "--job-constraint" not in printed


def test_claims_that_are_counted_no_further_are_noted(files: Files) -> None:
    free = {f"Consumption{asset}": "0" for asset in ("Cpus", "Memory")}
    files.write("slots", PLAIN, {**SLOT, **free, "ConsumptionDisk": "1"})
    for verb in ("cost", "capacity"):
        (note,) = (n for n in files.json(verb)["notes"] if n.startswith("slot1@wn-1: "))
        assert " 10000 " in note


# ---- groups


def made(cost: float, fits: int, usage: float, weight: Optional[float] = None) -> Match:
    before = fits * cost if weight is None else weight
    return Match(
        {},
        weight_before=before,
        weight_after=before - cost,
        cost=cost,
        fits=fits,
        weight_after_all=before - fits * cost,
        usage=usage,
    )


def test_claims_of_a_group_are_bound_by_what_is_charged_for_good() -> None:
    # Costs 2 in its cycle, 1 afterwards: the quota fills in a few cycles.
    assert claims_within(3, [Offer(1, made(2, 10, 1))]) == 3
    # Costs nothing in its cycle.
    assert claims_within(3, [Offer(1, made(0, 10, 1, weight=1))]) == 10
    # Each match of a slot without policy costs all of it, until the next cycle.
    assert claims_within(3, [Offer(1, made(10, 10, 1, weight=10), SlotKind.PARTITIONABLE)]) == 3
    assert claims_within(0, [Offer(1, made(1, 10, 1))]) == 0


def test_leftovers_fill_what_was_matched() -> None:
    assert leftover_claims(1, [Offer(3, made(10, 10, 1, weight=10), SlotKind.PARTITIONABLE)]) == (
        10,
        10,
    )
    static = Offer(1, made(10, 1, 10), SlotKind.STATIC)
    assert leftover_claims(1, [static]) == (0, 0)


def priced(match: Match, slots: int = 2, jobs: int = 4) -> Priced:
    names = tuple(map(str, range(slots)))
    return Priced(
        (PricedSlots(names, SlotKind.POLICY, {}),),
        (PricedJobs(("job",), jobs, "cms"),),
        [[match]],
        [[match]],
    )


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (Group("cms", None, 0.0, "no"), (None, None)),
        (Group("cms", 3.0, None, "no"), (True, None)),
        (Group("cms", 30.0, 0.0, "no"), (False, 0.0)),
        (Group("<none>", 3.0, 0.0, None), (None, None)),
        (Group("cms", 0.9, 0.0, "regroup"), (True, 0.0)),
    ],
)
def test_what_is_not_known_is_not_told(group: Group, expected: tuple[Optional[bool], ...]) -> None:
    cost = group_cost(group, priced(made(1, 10, 1)), [0], leftovers=True)
    assert (cost["quota_below_every_weight"], cost["past_quota"]) == expected


def test_jobs_without_a_slot_have_no_known_cost() -> None:
    none = Priced((), (PricedJobs(("job",), 4, "cms"),), [], [])
    cost = group_cost(Group("cms", 3.0, 0.0, "no"), none, [0], leftovers=True)
    assert cost["jobs_without_slot"] == 4
    assert [cost[key] for key in ("cost", "usage", "smallest_weight")] == [None] * 3


# ---- kinds


@pytest.mark.parametrize(
    ("requirements", "slots"),
    [
        ("true", [3]),
        ("TARGET.LoadAvg < 2", [1, 1, 1]),
        # eval() can see what nobody writes down.
        ('eval(strcat("Load", "Avg")) < 2', [1, 1, 1]),
    ],
)
def test_kinds_are_told_apart_by_what_is_referred_to(requirements: str, slots: list[int]) -> None:
    ads = [{**SLOT, "Name": f'"slot1@{number}"', "LoadAvg": str(number)} for number in range(3)]
    job = {**JOB, "Requirements": requirements}
    of_slots, of_jobs = kinds(ads, [job, {**job, "Iwd": '"/tmp"'}])
    assert [len(kind) for kind in of_slots] == slots
    assert [len(kind) for kind in of_jobs] == ([1, 1] if "eval" in requirements else [2])
