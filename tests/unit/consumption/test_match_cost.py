from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Optional

import pytest

from sharectl.cli.main import main
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
FULL = {**SLOT, "Name": '"slot1@full"', "Cpus": "0"}
JOB = {
    "RequestCpus": "1",
    "RequestMemory": "100",
    "RequestDisk": "10",
    "AccountingGroup": '"cms.bob"',
    "JobStatus": "1",
    "Requirements": "true",
}
JOB_4, JOB_8, JOB_12 = ({**JOB, "RequestCpus": cores} for cores in ("4", "8", "12"))
SHORT, NEVER = "Cpus: not enough is left", "Cpus: more than the slot has when it is empty"


def group_ad(name: str, quota: float) -> dict[str, str]:
    return {
        "Name": f'"{name}"',
        "IsAccountingGroup": "true",
        "EffectiveQuota": str(quota),
        "ConfigQuota": str(quota),
        "WeightedResourcesUsed": "0.0",
        "SurplusPolicy": '"no"',
    }


class Files:
    """Files for the command, and what it prints."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.write("quotas", group_ad("cms", 3), group_ad("atlas", 4.5))
        self.write("slots", SLOT, PLAIN)
        self.write("jobs", JOB, JOB_4, JOB)

    def write(self, name: str, *ads: Mapping[str, str]) -> None:
        texts = ("\n".join(f"{key} = {text}" for key, text in ad.items()) for ad in ads)
        (self.folder / name).write_text("\n\n".join(texts))

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

    def matches(self, *options: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.json("cost", *options)["matches"]
        return rows

    def group(self, name: str, *options: str) -> dict[str, Any]:
        rows = {group["name"]: group for group in self.json("cost", "--group", *options)["groups"]}
        row: dict[str, Any] = rows[name]
        return row


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    return Files(tmp_path, capsys)


# ---- the command, on files


def test_tables(
    files: Files, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wording and columns of all tables."""
    monkeypatch.chdir(files.folder)
    files.folder = Path()
    files.write("slots", SLOT, PLAIN, FULL)
    files.write("jobs", JOB, JOB, JOB_12, JOB_8)
    options = ["--leftovers", "on"]
    shown = [
        files.run("cost"),
        files.run("cost", "--empty"),
        files.run("cost", "--group", *options),
        files.run("capacity", *options),
        files.run("cost", "--job-constraint", "RequestCpus > 99"),
    ]
    golden("consumption/tables.txt", "\n".join(shown))


def test_json_of_files(files: Files) -> None:
    """Figures are those of the tables; here are keys for programs."""
    cost = files.json("cost")
    assert (cost["kind"], cost["missing"], cost["notes"]) == ("consumption-cost", [], [])
    keys = ("slots", "jobs", "cost", "usage", "fits", "fits_in_a_cycle")
    assert tuple(cost["matches"][2][key] for key in keys) == (1, 0, 6, 1, 6, 1)
    assert cost["matches"][0]["remaining"] == {"Cpus": 5, "Memory": 3872, "Disk": 99990}
    assert "no ConsumptionCpus" in cost["slots"][1]["no_policy_because"]
    assert files.matches("--empty")[0]["weight_before"] == 10
    capacity = files.json("capacity", "--request", "2", "--request", "1,8000")
    assert (capacity["kind"], capacity["claims"]) == ("consumption-capacity", 12)
    types = {"slot_type": 1, "slots": 2, "policy_slots": 1, "claims": 12, "weight": 12}
    assert capacity["types"] == [types]
    claims = {job["names"][0].rpartition("/")[2]: job["claims"] for job in capacity["jobs"]}
    assert (claims["request 2"], claims["request 1,8000"], claims["jobs:1"]) == (6, 0, 12)
    chosen = ["--constraint", 'Name == "slot1@wn-2"', "--job-constraint", "RequestCpus > 1"]
    some = files.json("cost", *chosen)
    assert [slots["names"] for slots in some["slots"]] == [["slot1@wn-2"]]
    assert [jobs["count"] for jobs in some["jobs"]] == [1]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        (["--constraint", "Cpus >"], "--constraint: 'Cpus >'"),
        (["--constraint", "Cpus > 99"], "slots has none that meets --constraint"),
        (["--job-constraint", "1 +"], "--job-constraint: '1 +'"),
        (["--jobs", "slots"], "slots:1: no ad of a job"),
        (["--slots", "jobs"], "jobs:1: no ad of a slot"),
        (["--group", "--quotas", "jobs"], "jobs:1: "),
        (["--slots", "dynamic"], "dynamic has none but dynamic ones"),
    ],
)
def test_what_chooses_nothing_and_what_is_something_else_is_refused(
    files: Files, options: list[str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files.folder)
    files.write("dynamic", {**SLOT, "SlotType": '"Dynamic"'})
    assert place in files.run("cost", *options, expect=65)


def test_jobs_that_do_not_wait_and_dynamic_slots_are_left_out(files: Files) -> None:
    files.write("jobs", JOB, {**JOB, "JobStatus": "2"}, {**JOB, "JobUniverse": "7"})
    files.write("slots", SLOT, {**SLOT, "SlotType": '"Dynamic"'})
    content = files.json("cost")
    assert [row["count"] for row in (*content["jobs"], *content["slots"])] == [1, 1]
    (note,) = content["notes"]
    assert note.startswith(f"{files.folder}/jobs: 2 jobs left out")


def test_groups_against_their_quotas(files: Files) -> None:
    cms = files.group("cms", "--leftovers", "on")
    keys = ("quota", "jobs", "cost", "smallest_cost", "smallest_weight", "quota_below_every_weight")
    assert tuple(cms[key] for key in keys) == (3, 3, 6, 1, 6, True)
    # 2 jobs of a core, or one of 4, on the slot that a match of cost 1, or of 4, opens.
    assert (cms["leftover_claims"], cms["leftover_usage"], cms["past_quota"]) == (1, 4, 1)
    off = files.group("cms", "--leftovers", "off")
    assert (off["leftover_claims"], off["past_quota"]) == (0, 0)
    assert "taken to be on" in files.json("cost", "--group")["notes"][0]
    for option in ("on", "off"):
        content = files.json("capacity", "--leftovers", option)
        row = next(group for group in content["groups"] if group["name"] == "cms")
        assert (content["leftovers"], row["claims"]) == (option == "on", 3)
        assert (row["leftover_claims"] is None) is (option == "off")


@pytest.mark.parametrize("verb", [["cost"], ["cost", "--group"], ["capacity"]])
def test_names_of_ads_steer_no_terminal(files: Files, verb: list[str]) -> None:
    bad = '"slot\x1b[31m"'
    files.write("slots", {**PLAIN, "Name": bad}, {**SLOT, "Name": bad, "ConsumptionCpus": "0"})
    files.write("jobs", {**JOB, "AccountingGroup": '"a\x1b[31m.bob"'})
    printed = files.run(*verb)
    assert "\x1b" not in printed
    assert "--group" in verb or "slot\\x1b[31m" in printed


def test_slots_that_have_nothing_to_give(files: Files) -> None:
    files.write(
        "slots",
        {**SLOT, "State": '"Drained"'},
        {**SLOT, "ConsumptionCpus": "undefined"},
        FULL,
        {**SLOT, "Requirements": "false"},
    )
    content = files.json("capacity")
    assert [(slot["claims"], slot["weight"], slot["because"]) for slot in content["slots"]] == [
        (0, 6, "Drained"),
        (None, 6, "no smallest request is matched"),
        (0, 0, SHORT),
        (6, 6, ""),
    ]
    assert content["types"][0]["weight"] == 18
    assert content["claims"] is None, "unknown of one slot is unknown of all"
    assert "claims of the smallest request now: ?" in files.run("capacity")


def test_jobs_that_never_fit_are_told_from_those_that_wait(files: Files) -> None:
    files.write("jobs", JOB_12, JOB_8, JOB)
    refused = [match["refused"][:1] for match in files.matches()]
    assert refused == [[NEVER], [SHORT], []] * 2
    assert files.group("cms", "--leftovers", "off")["jobs_without_slot"] == 2
    shapes = files.json("capacity", "--request", "12", "--request", "8")["jobs"][:2]
    assert [(job["claims"], job["fits_empty_slot"]) for job in shapes] == [(0, False), (0, True)]
    larger = {**SLOT, "Name": '"slot1@wn-3"', "TotalSlotCpus": "16"}
    files.write("slots", SLOT, larger)
    files.write("jobs", JOB_12)
    assert [match["refused"][0] for match in files.matches()] == [NEVER, SHORT]


def test_gpus_are_requested_by_name(files: Files) -> None:
    gpus = {
        "MachineResources": '"Cpus Memory Disk GPUs"',
        "ConsumptionGPUs": "TARGET.RequestGPUs ?: 0",
        "GPUs": "2",
        "Requirements": "MY.ConsumptionGPUs <= MY.GPUs",
    }
    files.write("slots", {**SLOT, **gpus, "ConsumptionCpus": "0"})
    one, three = files.matches("--request", "gpus=1", "--request", "1,2000,gpus=3")[:2]
    assert (one["consumed"]["GPUs"], one["fits"], one["refused"]) == (1, 2, [])
    assert one["startd_takes_more"] == ["Cpus"]
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


def test_a_cost_that_depends_on_the_slot_is_a_lower_bound(files: Files) -> None:
    cheap = {**SLOT, "Name": '"slot2@wn-1"', "SlotWeight": "ceiling(Cpus / 4.0)"}
    files.write("jobs", *[JOB_4] * 5)
    keys = ("cost", "cost_differs", "usage", "usage_differs")
    for slots, expected in (
        ([SLOT, cheap], (5, [1, 4], 5, True)),
        ([SLOT], (20, None, 20, False)),
    ):
        files.write("slots", *slots)
        cms = files.group("cms", "--leftovers", "off")
        assert tuple(cms[key] for key in keys) == expected


def test_every_job_has_a_row_whatever_is_known_of_groups(files: Files) -> None:
    files.write(
        "jobs",
        {**JOB, "AcctGroup": '"atlas"'},
        {**JOB, "AccountingGroup": '"CMS.ann"'},
        {**JOB, "AccountingGroup": '"atlas.bob"'},
        {**JOB, "AccountingGroup": '""', "AcctGroup": '"cms"'},
    )
    files.write("quotas", group_ad("cms", 3))
    rows = files.json("cost", "--group")["groups"]
    assert [(group["name"], group["jobs"], group["quota"]) for group in rows] == [
        ("cms", 2, 3),
        ("<none>", 2, None),
    ]
    paths = [f"--{name}={files.folder / name}" for name in ("slots", "jobs")]
    assert main(["consumption", "cost", "--group", *paths]) == 0
    printed = files.capsys.readouterr().out.lower().splitlines()[2:5]
    assert [line.split()[0] for line in printed] == ["atlas", "cms", "<none>"]


def test_a_constraint_that_no_job_meets_is_not_taken_for_no_job(files: Files) -> None:
    # Of cost it is in the tables above.
    assert "meets --job-constraint" in files.run("capacity", "--job-constraint", "RequestCpus > 99")
    files.write("jobs", {**JOB, "JobStatus": "2"})
    for verb in ("cost", "capacity"):
        assert "no job waits for a slot: " in files.run(verb)


def test_claims_that_are_counted_no_further_are_noted(files: Files) -> None:
    free = {f"Consumption{asset}": "0" for asset in ("Cpus", "Memory")}
    files.write("slots", PLAIN, {**SLOT, **free, "ConsumptionDisk": "1"})
    for verb in ("cost", "capacity"):
        (note,) = (n for n in files.json(verb)["notes"] if n.startswith("slot1@wn-1: "))
        assert " 10000 " in note


@pytest.mark.parametrize("config", ["nowhere", "FOO BAR"])
def test_a_broken_configuration_of_htcondor_is_no_price(files: Files, config: str) -> None:
    """The library ends the process, or evaluates names as undefined."""
    path = files.folder / config.partition(" ")[0]
    if " " in config:
        path.write_text(config)
    command = [sys.executable, "-m", "sharectl", "consumption", "capacity", "--slots"]
    done = subprocess.run(
        [*command, files.folder / "slots"],
        env={"CONDOR_CONFIG": str(path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (65, "")
    assert "correct CONDOR_CONFIG" in done.stderr


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
    """A match may cost 2 in its cycle, and 1 afterwards; static slots have no leftovers."""
    assert claims_within(3, [Offer(1, made(2, 10, 1))]) == 3
    assert claims_within(3, [Offer(1, made(0, 10, 1, weight=1))]) == 10
    assert leftover_claims(1, [Offer(1, made(10, 1, 10), SlotKind.STATIC)]) == (0, 0)


JOBS = (PricedJobs(("job",), 4, "cms"),)


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
def test_a_quota_that_is_unknown_is_no_figure(
    group: Group, expected: tuple[Optional[bool], ...]
) -> None:
    match = made(1, 10, 1)
    slots = PricedSlots(("a", "b"), SlotKind.POLICY, {})
    cost = group_cost(group, Priced((slots,), JOBS, [[match]], [[match]]), [0], leftovers=True)
    assert (cost["quota_below_every_weight"], cost["past_quota"]) == expected


def test_jobs_without_a_slot_have_no_known_cost() -> None:
    priced, group = Priced((), JOBS, [], []), Group("cms", 3.0, 0.0, "no")
    cost = group_cost(group, priced, [0], leftovers=True)
    assert cost["jobs_without_slot"] == 4
    assert [cost[key] for key in ("cost", "usage", "smallest_weight")] == [None] * 3
