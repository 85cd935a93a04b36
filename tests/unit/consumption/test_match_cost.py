from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.cli.main import main
from sharectl.consumption.cost import (
    Match,
    PricedJobs,
    PricedSlots,
    SlotKind,
    by_group,
    claims_within,
)
from sharectl.shares.pledges import ROOT, Group

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
Ad = Mapping[str, str]


def group_ad(name: str, quota: float) -> dict[str, str]:
    return {
        "Name": f'"{name}"',
        "IsAccountingGroup": "true",
        "EffectiveQuota": str(quota),
        "ConfigQuota": str(quota),
        "WeightedResourcesUsed": "0.0",
        "SurplusPolicy": '"no"',
    }


GROUPS = group_ad("cms", 3), group_ad("atlas", 4.5)


class Files:
    """Files for the command, and what it prints."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.write("slots", SLOT, PLAIN)
        self.write("jobs", JOB, JOB_4, JOB)

    def write(self, name: str, *ads: Mapping[str, str]) -> None:
        every = [*ads, *GROUPS] if name == "slots" else ads
        texts = ("\n".join(f"{key} = {text}" for key, text in ad.items()) for ad in every)
        (self.folder / name).write_text("\n\n".join(texts))

    def run(self, verb: str, *options: str, expect: int = 0) -> str:
        files = ["--slots", str(self.folder / "slots"), "--jobs", str(self.folder / "jobs")]
        code = main(["consumption", verb, *files, *options])
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


ONE_A_KIB = {"ConsumptionCpus": "0", "ConsumptionMemory": "0", "ConsumptionDisk": "1"}
OF_GROUPS = (
    {**JOB, "AcctGroup": '"atlas"'},
    {**JOB, "AccountingGroup": '"CMS.ann"'},
    {**JOB, "AccountingGroup": '"atlas.bob"'},
    {**JOB, "AccountingGroup": '""', "AcctGroup": '"cms"'},
)
SITUATIONS: Mapping[str, tuple[Sequence[Ad], Sequence[Ad], Sequence[str]]] = {
    # Slots, jobs, commands with their options.
    "a full slot, and jobs that are too large for now or for ever": (
        [SLOT, PLAIN, FULL],
        [JOB, JOB, JOB_12, JOB_8],
        ["cost", "cost --empty", "capacity --empty"],
    ),
    "slots that have nothing to give, and requests": (
        [
            {**SLOT, "State": '"Drained"'},
            {**SLOT, "ConsumptionCpus": "undefined"},
            {**SLOT, "Requirements": "false"},
        ],
        [JOB],
        ["capacity --request cpus=2 --request memory=8000"],
    ),
    "jobs of any group have a row, dynamic slots and users have none": (
        [
            SLOT,
            {**SLOT, "SlotType": '"Dynamic"'},
            {**group_ad("bob", 1), "IsAccountingGroup": "false"},
        ],
        OF_GROUPS,
        ["capacity --pending", "cost"],
    ),
    "claims are counted up to a number": ([PLAIN, {**SLOT, **ONE_A_KIB}], [JOB], ["cost"]),
    "no job waits": (
        [SLOT],
        [{**JOB, "JobStatus": "2"}, {**JOB, "JobUniverse": "7"}],
        ["cost", "capacity"],
    ),
}


def test_tables(
    files: Files, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures, wording and columns of all tables."""
    monkeypatch.chdir(files.folder)
    files.folder = Path()
    shown = []
    for situation, (slots, jobs, commands) in SITUATIONS.items():
        files.write("slots", *slots)
        files.write("jobs", *jobs)
        shown += [f"> {situation}: {line}\n{files.run(*line.split())}" for line in commands]
    golden("consumption/tables.txt", "\n".join(shown))


def test_json_of_files(files: Files) -> None:
    """Figures are those of the tables; here are keys for programs."""
    cost = files.json("cost")
    assert (cost["kind"], cost["missing"], cost["notes"]) == ("consumption-cost", [], [])
    keys = ("slots", "jobs", "cost", "fits", "fits_in_a_cycle")
    assert tuple(cost["matches"][2][key] for key in keys) == (1, 0, 6, 6, 1)
    assert files.json("cost", "--empty")["matches"][0]["weight_before"] == 10
    capacity = files.json("capacity", "--request", "cpus=2", "--request", "memory=8000")
    assert capacity["kind"] == "consumption-capacity"
    claims = {job["names"][0].rpartition("/")[2]: job["claims"] for job in capacity["jobs"]}
    expected = {"request cpus=2": 6, "request memory=8000": 0, "jobs:1": 12, "jobs:8": 2}
    assert claims == expected


@pytest.mark.parametrize(
    ("option", "name", "place"),
    [
        ("--jobs", "slots", "slots:1: no ad of a job"),
        ("--slots", "jobs", "jobs has none but dynamic ones"),
    ],
)
def test_a_file_of_something_else_is_refused(
    files: Files, option: str, name: str, place: str
) -> None:
    assert place in files.run("cost", option, str(files.folder / name), expect=65)


def test_jobs_that_were_asked_of_nobody_are_not_none(files: Files) -> None:
    assert main(["consumption", "cost", "--slots", str(files.folder / "slots")]) == 65
    assert "give --jobs" in files.capsys.readouterr().err


def test_names_of_ads_steer_no_terminal(files: Files) -> None:
    bad = '"slot\x1b[31m"'
    files.write("slots", {**PLAIN, "Name": bad}, {**SLOT, "Name": bad, "ConsumptionCpus": "0"})
    printed = files.run("cost")
    assert "\x1b" not in printed
    assert "slot\\x1b[31m" in printed


@pytest.mark.parametrize(
    "request_",
    [
        *("", "8", "8,gpus=1", "cpus=-1", "cpus=1,,gpus=2", "cpus=\u0663", "gpus", "gpus="),
        *("gpus=1,GPUs=2", "g-p=1", "=1", "cpus=0", "cpus=9999999999999999"),
    ],
)
def test_requests_are_whole_numbers(files: Files, request_: str) -> None:
    with pytest.raises(SystemExit) as ended:
        files.run("capacity", f"--request={request_}")
    assert ended.value.code == 2
    assert "argument --request: " in files.capsys.readouterr().err


@pytest.mark.parametrize("config", ["nowhere", "FOO BAR"])
def test_a_broken_configuration_of_htcondor_is_no_price(files: Files, config: str) -> None:
    """The library ends the process, or would evaluate names as undefined."""
    path = files.folder / config.partition(" ")[0]
    if " " in config:
        path.write_text(config)
    command = [sys.executable, "-m", "sharectl", "consumption", "capacity", "--slots"]
    done = subprocess.run(
        [*command, files.folder / "slots"],
        env={"CONDOR_CONFIG": str(path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (78, "")
    assert "name another configuration of HTCondor in CONDOR_CONFIG" in done.stderr


# ---- groups


def test_claims_of_a_group_are_bound_by_the_mean_charge() -> None:
    """A slot without policy costs all its weight in one cycle only."""
    full = Match({}, weight_before=10, cost=10, fits=10, weight_after_all=0)
    for kind, claims in ((SlotKind.PARTITIONABLE, 3), (SlotKind.STATIC, 1)):
        assert claims_within(3, [(PricedSlots(("slot",), kind, {}), full)]) == claims
    free = Match({}, weight_before=1, cost=0, fits=10, weight_after_all=1)
    assert claims_within(3, [(PricedSlots(("slot",), SlotKind.POLICY, {}), free)]) == 10


def test_jobs_count_for_the_innermost_group_that_there_is() -> None:
    names = ["cms.prod.x", "CMS.user", "cmsx", "", "atlas.y", "other.z"]
    jobs = [PricedJobs(("job",), 1, name) for name in names]
    groups = [Group(name, 1.0, 0.0, "no") for name in ("cms", "cms.prod", "Other", ROOT)]
    rows = {group.name: numbers for group, numbers in by_group(groups, jobs)}
    assert rows == {"cms": [1], "cms.prod": [0], "Other": [5], ROOT: [2, 3, 4]}
