from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

import pytest

from sharectl.cli.main import main
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.consumption.asks import BLANK, MOST_CULPRITS, Culprit, Guard, kinds
from sharectl.consumption.cost import (
    Claim,
    Demand,
    Match,
    Offer,
    claims_within,
    group_cost,
    leftover_claims,
    whole_if_it_is,
)
from sharectl.errors import InputError
from sharectl.report.match_cost import cost_tables, groups
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
QUOTAS = "GROUP_QUOTA_cms = 3\nGROUP_QUOTA_DYNAMIC_atlas = 0.5\n"


def long(*ads: Mapping[str, str]) -> str:
    return "\n\n".join("\n".join(f"{name} = {text}" for name, text in ad.items()) for ad in ads)


class Files:
    """Files for the command, and what it prints."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.write("quotas", QUOTAS)
        self.slots(SLOT, PLAIN)
        self.jobs(JOB, {**JOB, "RequestCpus": "4"}, JOB)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def slots(self, *ads: Mapping[str, str]) -> None:
        self.write("slots", long(*ads))

    def jobs(self, *ads: Mapping[str, str]) -> None:
        self.write("jobs", long(*ads))

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


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    return Files(tmp_path, capsys)


# ---- the command, on files


def test_cost_of_files(files: Files) -> None:
    content = files.json("cost")
    assert (content["kind"], content["missing"], content["notes"]) == ("consumption-cost", [], [])
    assert [job["count"] for job in content["jobs"]] == [2, 1]
    assert [
        (
            match["slots"],
            match["jobs"],
            match["cost"],
            match["usage"],
            match["fits"],
            match["fits_in_a_cycle"],
        )
        for match in content["matches"]
    ] == [(0, 0, 1, 1, 6, 4), (0, 1, 4, 4, 1, 1), (1, 0, 6, 1, 6, 6), (1, 1, 6, 4, 1, 1)]
    assert content["matches"][0]["remaining"] == {"Cpus": 5, "Memory": 3872, "Disk": 99990}
    assert content["slots"][1]["no_policy_because"] == [
        f"no Consumption{asset}" for asset in ("Cpus", "Disk", "Memory")
    ]


def test_cost_as_a_table(files: Files) -> None:
    printed = files.run("cost")
    assert "slot1@wn-1" in printed
    assert f"{files.folder}/jobs:1 (2 alike)" in printed
    assert "1, then leftovers" in printed
    assert "slot1@wn-2: no policy: no ConsumptionCpus" in printed


def test_one_after_another(files: Files) -> None:
    first, second = files.json("cost", "--sequence")["sequences"]
    assert (first["slots"], first["cost"]) == (["slot1@wn-1"], 6)
    assert [match["cost"] for match in first["matches"]] == [1, 4, 1]
    assert [match["cost"] for match in second["matches"]] == [6, None, None]
    assert "slot has one match a cycle" in second["matches"][1]["refused"][0]
    assert "cost 6 in all" in files.run("cost", "--sequence")


def test_an_empty_slot_has_all_its_assets(files: Files) -> None:
    assert files.json("cost", "--empty")["matches"][0]["weight_before"] == 10


def test_constraints_choose(files: Files) -> None:
    content = files.json(
        "cost", "--constraint", 'Name == "slot1@wn-2"', "--job-constraint", "RequestCpus > 1"
    )
    assert [slots["names"] for slots in content["slots"]] == [["slot1@wn-2"]]
    assert [jobs["count"] for jobs in content["jobs"]] == [1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--constraint", "Cpus >"],
            "--constraint: 'Cpus >' is no expression of HTCondor; write such as Cpus >= 8",
        ),
        (["--constraint", "Cpus > 99"], "/slots has none that meets --constraint"),
        (["--job-constraint", "1 +"], "--job-constraint: '1 +' is no expression of HTCondor"),
    ],
)
def test_constraints_that_choose_nothing(files: Files, options: list[str], said: str) -> None:
    assert said in files.run("cost", *options, expect=65)


@pytest.mark.parametrize("verb", ["cost", "capacity"])
@pytest.mark.parametrize("my_type", [True, False])
def test_files_in_each_others_place_are_refused(files: Files, verb: str, *, my_type: bool) -> None:
    slot, job = (
        ({**SLOT, "MyType": '"Machine"'}, {**JOB, "MyType": '"Job"'}) if my_type else (SLOT, JOB)
    )
    for ads in ((slot, slot), (job, job)):
        files.write("other", long(*ads))
        option = "--jobs" if slot in ads else "--slots"
        said = files.run(verb, option, str(files.folder / "other"), expect=65)
        assert f"{files.folder}/other:1: " in said
        why = f"MyType is '{'Machine' if slot in ads else 'Job'}'" if my_type else "no MyType"
        assert why in said
        assert f"give {option} what condor_" in said
        assert "prints (also at " in said


def test_files_with_my_type_are_taken(files: Files) -> None:
    files.slots({**SLOT, "MyType": '"Machine"'}, {**SLOT, "MyType": '"Slot"'})
    files.jobs({**JOB, "MyType": '"Job"'})
    assert files.json("cost")["matches"][0]["fits"] == 6


def test_quotas_are_read_and_checked_by_every_form_of_cost(files: Files) -> None:
    quotas = files.folder / "quotas"
    for form in ((), ("--sequence",)):
        content = files.json("cost", *form, "--quotas", str(quotas))
        assert content["notes"] == [f"{quotas}: read and checked; only --group shows quotas"]
        missing = files.run("cost", *form, "--quotas", str(files.folder / "nofile.txt"), expect=65)
        assert "nofile.txt" in missing
    files.write("quotas", "groups:\n  cms: 40\n")
    assert f"{quotas}:1: " in files.run("cost", "--quotas", str(quotas), expect=65)


def test_jobs_that_do_not_wait_and_dynamic_slots_are_left_out(files: Files) -> None:
    files.jobs(JOB, {**JOB, "JobStatus": "2"}, {**JOB, "JobUniverse": "7"})
    files.slots(SLOT, {**SLOT, "SlotType": '"Dynamic"'})
    content = files.json("cost")
    assert [job["count"] for job in content["jobs"]] == [1]
    assert [slots["count"] for slots in content["slots"]] == [1]
    assert content["notes"] == [f"{files.folder}/jobs: 2 jobs left out that do not wait for a slot"]


def test_groups_against_their_quotas(files: Files) -> None:
    content = files.json("cost", "--group")
    cms = next(group for group in content["groups"] if group["name"] == "cms")
    assert (
        cms["quota"],
        cms["jobs"],
        cms["cost"],
        cms["smallest_cost"],
        cms["smallest_weight"],
    ) == (
        3,
        3,
        6,
        1,
        6,
    )
    assert (cms["quota_below_every_weight"], cms["quota_below_every_cost"]) == (True, False)
    assert cms["one_match_at_a_time"] is True
    # 2 jobs of a core, or one of 4, on the slot that a match of cost 1, or of 4, opens to the
    # schedd.
    assert (cms["leftover_claims"], cms["leftover_usage"], cms["past_quota"]) == (1, 4, 1)
    assert "taken to be on" in content["notes"][0]
    off = next(
        group
        for group in files.json("cost", "--group", "--leftovers", "off")["groups"]
        if group["name"] == "cms"
    )
    assert (off["leftover_claims"], off["past_quota"]) == (0, 0)
    printed = files.run("cost", "--group")
    assert (
        "cms: on slots without policy it gets one match at a time, charged with the whole slot"
        in printed
    )
    assert (
        "its quota of 3 is below the weight of every such slot that its jobs match (6 at least)"
        in printed
    )
    assert (
        "cms: may run past its quota through leftovers: 1 claim, charged 4 later, 1 beyond its room"
        in printed
    )


def test_where_every_slot_has_a_policy_nobody_is_alarmed(files: Files) -> None:
    files.slots(SLOT)
    content = files.json("cost", "--group", "--leftovers", "off")
    cms = next(group for group in content["groups"] if group["name"] == "cms")
    assert (cms["quota_below_every_weight"], cms["one_match_at_a_time"], cms["verdicts"]) == (
        True,
        None,
        [],
    )
    assert "weight of every" not in files.run("cost", "--group", "--leftovers", "off")


def test_nan_is_matched_and_refused_by_the_node(files: Files) -> None:
    files.slots(SLOT)
    nan = {**JOB, "RequestMemory": 'real("NaN")'}
    files.jobs(JOB, nan, {**JOB, "RequestCpus": "2"})
    match = files.json("cost")["matches"][1]
    assert (match["fits"], match["cost"], match["consumed"]["Memory"]) == (0, None, None)
    assert match["refused"][0].startswith(
        "Memory: NaN: matched (where Requirements let it), and refused by the node"
    )
    (found,) = files.json("cost", "--sequence")["sequences"]
    first, second, third = found["matches"]
    assert (first["cost"], second["cost"], third["cost"]) == (1, None, None)
    # What NaN was taken of counts as used up.
    assert third["refused"][0] == "Memory: not enough is left"


def test_what_leftovers_would_give_is_not_said_where_they_are_off(files: Files) -> None:
    files.write("quotas", "GROUP_QUOTA_cms = 3\n")
    for option in ("on", "off"):
        content = files.json("capacity", "--leftovers", option)
        (cms,) = content["groups"]
        assert (content["leftovers"], cms["claims"]) == (option == "on", 3)
        assert (cms["leftover_claims"] is None) is (option == "off")
        row = next(
            line
            for line in files.run("capacity", "--leftovers", option).splitlines()
            if line[:3] == "cms"
        )
        assert (row.split()[5] == "-") is (option == "off")


@pytest.mark.parametrize(
    "verb", [["cost"], ["cost", "--group"], ["cost", "--sequence"], ["capacity"]]
)
def test_names_of_ads_steer_no_terminal(files: Files, verb: list[str]) -> None:
    bad = '"slot\x1b[31m"'
    files.slots({**PLAIN, "Name": bad}, {**SLOT, "Name": bad, "ConsumptionCpus": "0"})
    files.jobs({**JOB, "AccountingGroup": '"a\x1b[31m.bob"'})
    printed = files.run(*verb)
    assert "\x1b" not in printed
    assert "--group" in verb or "slot\\x1b[31m" in printed


def test_what_is_not_there_is_not_unknown(files: Files) -> None:
    files.slots({**SLOT, "Cpus": "0"})
    files.write("quotas", "GROUP_QUOTA_cms = 3\nGROUP_QUOTA_atlas = 4\n")
    for verb in (["capacity"], ["cost"], ["cost", "--group"]):
        assert "?" not in files.run(*verb)


def test_no_slot_is_said_without_a_constraint(files: Files) -> None:
    files.slots({**SLOT, "SlotType": '"Dynamic"'})
    said = files.run("cost", expect=65)
    assert f"no slot: {files.folder}/slots has none, but for dynamic ones at most" in said
    assert "--constraint" not in said


def test_capacity_of_files(files: Files) -> None:
    content = files.json("capacity", "--request", "2", "--request", "1,8000")
    assert (content["kind"], content["claims"]) == ("consumption-capacity", 12)
    assert content["types"] == [
        {"slot_type": 1, "slots": 2, "policy_slots": 1, "claims": 12, "weight": 12}
    ]
    assert [
        (slot["claims_each"], slot["claims_in_a_cycle"], slot["cost"], slot["because"])
        for slot in content["slots"]
    ] == [(6, 4, 1, ""), (6, 1, 6, "")]
    assert [
        (job["names"][0], job["claims"], job["claims_within_quota"]) for job in content["jobs"][:2]
    ] == [
        ("request 2", 6, None),
        ("request 1,8000", 0, None),
    ]
    cms = next(job for job in content["jobs"] if job["quota_group"] == "cms")
    assert (cms["count"], cms["claims"], cms["claims_within_quota"]) == (2, 12, 3)
    printed = files.run("capacity")
    assert "claims of the smallest request now: 12" in printed
    assert "by group's quota" in printed


def test_slots_that_have_nothing_to_give(files: Files) -> None:
    files.slots(
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
    files.jobs({**JOB, "RequestCpus": "12"}, {**JOB, "RequestCpus": "8"}, JOB)
    files.write("quotas", QUOTAS)
    refused = {tuple(match["refused"][:1]) for match in files.json("cost")["matches"]}
    assert refused == {
        ("Cpus: more than the slot has when it is empty",),
        ("Cpus: not enough is left",),
        (),
    }
    cms = next(group for group in files.json("cost", "--group")["groups"] if group["name"] == "cms")
    assert (cms["jobs_without_slot"], cms["jobs_without_empty_slot"]) == (2, 1)
    printed = files.run("cost", "--group")
    assert "cms: 1 of 3 jobs matches no slot, not even if it were empty" in printed
    assert "cms: 1 of 3 jobs matches no slot as it is, but would if one were empty" in printed
    shapes = files.json("capacity", "--request", "12", "--request", "8")["jobs"][:2]
    assert [(job["claims"], job["fits_empty_slot"]) for job in shapes] == [(0, False), (0, True)]
    assert "never fits" in files.run("capacity", "--request", "12")


def test_empty_slots_are_called_so(files: Files) -> None:
    files.jobs({**JOB, "RequestCpus": "12"})
    printed = files.run("cost", "--empty")
    assert "each job with each empty slot" in printed
    assert "Cpus: more than the slot has when it is empty" in printed
    assert "not enough is left" not in printed
    assert "claims of the smallest request on empty slots: 20" in files.run("capacity", "--empty")


@pytest.mark.parametrize("options", [[], ["--sequence"]])
def test_no_job_is_said_in_words(files: Files, options: list[str]) -> None:
    files.jobs({**JOB, "JobStatus": "2"})
    printed = files.run("cost", *options)
    assert printed.startswith("no job waits for a slot")
    assert "refused" not in printed


def test_a_column_without_reasons_is_left_out(files: Files) -> None:
    assert "because" not in files.run("capacity")
    files.slots({**SLOT, "Cpus": "0"})
    assert "because" in files.run("capacity")


def test_custom_resources_that_are_all_that_is_charged(files: Files) -> None:
    slot_of_tokens = {
        **SLOT,
        "MachineResources": '"Cpus Memory Disk Tokens"',
        "Tokens": "3",
        "ConsumptionTokens": "target.RequestTokens",
        **{f"Consumption{asset}": "0" for asset in ("Cpus", "Memory", "Disk")},
        "SlotWeight": "Tokens",
    }
    files.slots(slot_of_tokens)
    (slot,) = files.json("capacity")["slots"]
    assert (slot["claims"], slot["consumed"]["Tokens"]) == (3, 1)
    # Three tokens and six cores: each claim has its core, and nothing is refused.
    assert "the startd takes 1 at least" not in files.run("cost", "--request", "tokens=1")
    files.slots({**slot_of_tokens, "Tokens": "9"})
    assert "the startd takes 1 at least of Cpus for each claim" in files.run(
        "cost", "--request", "tokens=1"
    )


def test_gpus_are_requested_by_name(files: Files) -> None:
    with_gpus = {
        **SLOT,
        "MachineResources": '"Cpus Memory Disk GPUs"',
        "ConsumptionGPUs": "TARGET.RequestGPUs ?: 0",
    }
    files.slots({**with_gpus, "GPUs": "2", "Requirements": "MY.ConsumptionGPUs <= MY.GPUs"})
    content = files.json("cost", "--request", "gpus=1", "--request", "1,2000,gpus=3")
    one, three = content["matches"][:2]
    assert (one["consumed"]["GPUs"], one["fits"], one["refused"]) == (1, 2, [])
    assert three["refused"]
    claims = [job["claims"] for job in files.json("capacity", "--request", "2,gpus=1")["jobs"]]
    assert claims[0] == 2


@pytest.mark.parametrize(
    "request_",
    [
        "",
        "x",
        "1,2,3,4",
        "-1",
        "1,,2",
        "\u0663",
        "gpus",
        "gpus=",
        "gpus=1,8",
        "8,cpus=1",
        "gpus=1,GPUs=2",
        "g-p=1",
        "=1",
    ],
)
def test_requests_are_whole_numbers(files: Files, request_: str) -> None:
    with pytest.raises(SystemExit):
        files.run("capacity", f"--request={request_}")


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("0", "'0': cores must be 1 or more"),
        ("8,0,00", "'8,0,00': MiB of memory and KiB of disk must be 1 or more"),
        (
            "9" * 16,
            (
                "cores must be 1 or more, of 15 digits at most; write cores, MiB and KiB such as "
                "8,16000,1000000"
            ),
        ),
        ("8,gpus=0", "'8,gpus=0': gpus must be 1 or more"),
    ],
)
def test_requests_of_nothing_are_refused(files: Files, request_: str, said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        files.run("capacity", f"--request={request_}")
    assert ended.value.code == 2
    error = " ".join(files.capsys.readouterr().err.split())
    assert "argument --request: " in error
    assert said in error


# ---- groups


def made(cost: float, fits: int, usage: float, weight: Optional[float] = None) -> Match:
    before = fits * cost if weight is None else weight
    return Match(
        {},
        (),
        Claim({}, before, before - cost, cost),
        {},
        fits,
        weight_after_all=before - fits * cost,
        usage=usage,
    )


def test_claims_of_a_group_are_bound_by_what_is_charged_for_good() -> None:
    # Costs 2 in its cycle, 1 afterwards: the quota fills in a few cycles.
    assert claims_within(3, [Offer(1, made(2, 10, 1), has_policy=True)]) == 3
    # Costs nothing in its cycle.
    assert claims_within(3, [Offer(1, made(0, 10, 1, weight=1), has_policy=True)]) == 10
    # Each match of a slot without policy costs all of it, until the next cycle.
    assert claims_within(3, [Offer(1, made(10, 10, 1, weight=10), has_policy=False)]) == 3
    assert claims_within(0, [Offer(1, made(1, 10, 1), has_policy=True)]) == 0


def test_leftovers_fill_what_was_matched() -> None:
    assert leftover_claims(1, [Offer(3, made(10, 10, 1, weight=10), has_policy=False)]) == (10, 10)
    assert leftover_claims(
        1, [Offer(1, made(10, 1, 10), has_policy=False, partitionable=False)]
    ) == (0, 0)


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (Group("cms", None, 0.0, "no"), (None, None, None)),
        (Group("cms", 3.0, None, "no"), (True, False, None)),
        (Group("cms", 30.0, 0.0, "no"), (False, False, 0.0)),
        (Group("<none>", 3.0, 0.0, None), (None, None, None)),
        (Group("cms", 0.9, 0.0, "regroup"), (True, True, 0.0)),
    ],
)
def test_what_is_not_known_is_not_said(group: Group, expected: tuple[Optional[bool], ...]) -> None:
    cost = group_cost(
        group, [Demand(4, [Offer(2, made(1, 10, 1), has_policy=True)])], leftovers=True
    )
    assert (cost.quota_below_every_weight, cost.quota_below_every_cost, cost.past_quota) == expected
    (told,) = groups([cost])
    assert bool(told["verdicts"]) is (group.quota in (None, 0.9))
    assert cost.one_match_at_a_time is None
    cost_tables({"groups": [told]}, io.StringIO())


def test_jobs_without_a_slot_cost_nothing_that_is_known() -> None:
    cost = group_cost(Group("cms", 3.0, 0.0, "no"), [Demand(4, [])], leftovers=True)
    assert (cost.jobs_without_slot, cost.cost, cost.usage, cost.smallest_weight) == (
        4,
        None,
        None,
        None,
    )


def test_integers_stay_integers() -> None:
    assert [repr(whole_if_it_is(amount)) for amount in (3.0, 2.5, 1e300)] == ["3", "2.5", "1e+300"]


# ---- kinds and culprits


def test_kinds_are_told_apart_by_what_is_referred_to() -> None:
    slots = [{**SLOT, "Name": f'"slot1@{number}"', "LoadAvg": str(number)} for number in range(3)]
    of_slots, of_jobs = kinds(slots, [JOB, {**JOB, "ClusterId": "2"}])
    assert [len(kind.members) for kind in (*of_slots, *of_jobs)] == [3, 2]
    of_slots, _ = kinds(slots, [{**JOB, "Requirements": "TARGET.LoadAvg < 2"}])
    assert [len(kind.members) for kind in of_slots] == [1, 1, 1]
    # eval() can see what nobody writes down.
    of_slots, _ = kinds(slots, [{**JOB, "Requirements": 'eval(strcat("Load", "Avg")) < 2'}])
    assert [len(kind.members) for kind in of_slots] == [1, 1, 1]


class Tricky:
    """Answers for numbers, unless one of those that end the library is among them."""

    def __init__(self, bad_slots: Sequence[int] = (), bad_jobs: Sequence[int] = ()) -> None:
        self.bad_slots, self.bad_jobs = set(bad_slots), set(bad_jobs)
        self.opened = 0

    def open(self, deadline_seconds: float) -> CondorProcess:
        assert deadline_seconds >= 1
        self.opened += 1
        return CondorProcess()

    def ask(
        self, process: CondorProcess, slots: Sequence[int], jobs: Sequence[int]
    ) -> list[list[tuple[int, int]]]:
        del process
        if self.bad_slots & set(slots) or self.bad_jobs & set(jobs):
            raise UnreadableConfigurationError("it ended")
        return [[(slot, job) for job in jobs] for slot in slots]


@pytest.mark.parametrize(
    ("slots", "jobs"),
    [([], []), ([3], []), ([], [0]), ([3], [1]), ([0, 6], [2]), ([0, 1, 2, 3], [])],
)
def test_culprits_are_found_and_left_out(slots: list[int], jobs: list[int]) -> None:
    tricky = Tricky(slots, jobs)
    guard = Guard(tricky.open, tricky.ask)
    found = guard.results(7, 3)
    assert set(found) == {
        (slot, job)
        for slot in range(7)
        for job in range(3)
        if slot not in slots and job not in jobs
    }
    assert all(found[pair] == pair for pair in found)
    assert sorted(guard.culprits, key=lambda each: (each.is_slot, each.number)) == [
        *(Culprit(is_slot=False, number=job, problem="it ended") for job in jobs),
        *(Culprit(is_slot=True, number=slot, problem="it ended") for slot in slots),
    ]
    assert BLANK not in {job for _, job in found}


def test_so_many_culprits_are_too_many() -> None:
    tricky = Tricky(range(MOST_CULPRITS + 1))
    with pytest.raises(InputError, match="more than 5 ads make HTCondor's library end or hang"):
        Guard(tricky.open, tricky.ask).results(20, 1)


# ---- what is not known


def test_slots_that_do_not_tell_what_they_have_are_not_bottomless(files: Files) -> None:
    untold = {name: text for name, text in SLOT.items() if name != "MachineResources"}
    files.slots(SLOT, untold, {**untold, "MachineResources": '""', "ConsumptionCpus": "1"})
    files.jobs(JOB)
    note = "slot1@wn-1: MachineResources is missing or names nothing, so what the slot has"
    match = files.json("cost")["matches"][1]
    assert [match[key] for key in ("fits", "fits_in_a_cycle", "usage", "cost")] == [
        None,
        None,
        None,
        6,
    ]
    capacity = files.json("capacity")
    assert [slot["claims"] for slot in capacity["slots"]] == [6, None, None]
    assert (capacity["claims"], capacity["jobs"][0]["claims"]) == (None, None)
    assert {group["claims"] for group in capacity["groups"]} == {None}
    assert {group["past_quota"] for group in capacity["groups"]} == {None}
    (cms,) = (group for group in files.json("cost", "--group")["groups"] if group["name"] == "cms")
    assert (cms["leftover_claims"], cms["past_quota"]) == (None, None)
    for verb in (["cost"], ["cost", "--group"], ["capacity"]):
        assert sum(said.startswith(note) for said in files.json(*verb)["notes"]) == 1
        printed = files.run(*verb)
        assert " ?" in printed
        assert "0000" not in printed
    refused = files.json("cost")["matches"][2]["refused"]
    assert refused == ["the job takes nothing of any asset"]


def test_a_cost_that_depends_on_the_slot_is_told_as_a_lower_bound(files: Files) -> None:
    cheap = {**SLOT, "Name": '"slot2@wn-1"', "SlotWeight": "ceiling(Cpus / 4.0)"}
    files.slots(SLOT, cheap)
    files.jobs(*[{**JOB, "RequestCpus": "4"}] * 5)
    files.write("quotas", "GROUP_QUOTA_cms = 30\n")
    (cms,) = files.json("cost", "--group", "--leftovers", "off")["groups"]
    assert (cms["cost"], cms["cost_differs"], cms["usage"], cms["usage_differs"]) == (
        5,
        [1, 4],
        5,
        True,
    )
    row, said = files.run("cost", "--group", "--leftovers", "off").splitlines()[2:4]
    assert row.split()[5:9] == [">=", "5", ">=", "5"]
    assert (
        "cms: the same job costs 1 to 4, by the slot that it is matched with: their cost is 5 "
        "at least" in said
    )
    files.slots(SLOT)
    (cms,) = files.json("cost", "--group", "--leftovers", "off")["groups"]
    assert (cms["cost"], cms["cost_differs"], cms["usage_differs"]) == (20, None, False)
    assert ">=" not in files.run("cost", "--group", "--leftovers", "off")


def test_every_job_has_a_row_whatever_is_known_of_groups(files: Files) -> None:
    files.jobs(
        {**JOB, "AcctGroup": '"atlas"'},
        {**JOB, "AccountingGroup": '"CMS.ann"'},
        {**JOB, "AccountingGroup": '"atlas.bob"'},
        {**JOB, "AccountingGroup": '""', "AcctGroup": '"cms"'},
    )
    files.write("quotas", "GROUP_QUOTA_cms = 3\n")
    told = files.json("cost", "--group")["groups"]
    assert [(group["name"], group["jobs"], group["quota"]) for group in told] == [
        ("cms", 2, 3),
        ("<none>", 2, None),
    ]
    assert "<none>: its quota" not in files.run("cost", "--group")
    paths = [f"--{what}={files.folder / what}" for what in ("slots", "jobs")]
    assert main(["consumption", "cost", "--group", *paths]) == 0
    printed = files.capsys.readouterr().out
    rows = [line.split()[:5] for line in printed.splitlines()[2:5]]
    assert rows == [
        ["atlas", "?", "?", "?", "1"],
        ["cms", "?", "?", "?", "2"],
        ["<none>", "?", "?", "?", "1"],
    ]
    assert (
        "cms: its quota is not known: nothing is said of it (wait for a negotiation cycle, or "
        "give --quotas)" in printed
    )


@pytest.mark.parametrize("verb", [["cost"], ["cost", "--sequence"], ["capacity"]])
def test_a_constraint_that_no_job_meets_is_not_taken_for_no_job(
    files: Files, verb: list[str]
) -> None:
    said = "no job that waits for a slot meets --job-constraint: there is nothing to match"
    assert said in files.run(*verb, "--job-constraint", "RequestCpus > 99")
    files.jobs({**JOB, "JobStatus": "2"})
    assert "no job waits for a slot: there is nothing to match" in files.run(*verb)


def test_claims_that_are_counted_no_further_are_noted(files: Files) -> None:
    free = {f"Consumption{asset}": "0" for asset in ("Cpus", "Memory")}
    files.slots(PLAIN, {**SLOT, **free, "ConsumptionDisk": "1"})
    for verb in ("cost", "capacity"):
        assert (
            "slot1@wn-1: claims are counted up to 10000 a slot; it may have more"
            in files.json(verb)["notes"]
        )
