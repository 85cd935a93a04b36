"""Tables and JSON of `sharectl consumption cost`, of slots and jobs that are made here."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.cli.consumption import priced, print_cost, unknown_assets
from sharectl.cli.main import main
from sharectl.consumption.asks import NamedAd, price

SLOT = {
    "partitionableslot": "true",
    "machineresources": '"Cpus Memory Disk"',
    "cpus": "6",
    "memory": "4000",
    "disk": "100000",
    "slotweight": "Cpus",
    "consumptioncpus": "target.RequestCpus",
    "consumptionmemory": "quantize(target.RequestMemory, {128})",
    "consumptiondisk": "target.RequestDisk",
    "requirements": "Start && MY.ConsumptionCpus <= MY.Cpus",
    "start": "true",
}
ONE_A_KIB = {"consumptioncpus": "0", "consumptionmemory": "0", "consumptiondisk": "1"}
SLOTS = [
    NamedAd("slot1@wn-1", SLOT),
    NamedAd("slot1@wn-3", SLOT),
    NamedAd("slot1@full", {**SLOT, "cpus": "0"}),
    NamedAd("slot1@free", {**SLOT, **ONE_A_KIB}),
]
JOB = {
    "requestcpus": "1",
    "requestmemory": "100",
    "requestdisk": "10",
    "requirements": "true",
}
JOBS = [
    NamedAd("cpus=1", JOB),
    NamedAd("cpus=12", {**JOB, "requestcpus": "12"}),
]


def table_of(slots: Sequence[NamedAd], jobs: Sequence[NamedAd]) -> str:
    printed = io.StringIO()
    print_cost(priced(price(slots, jobs, most=100), jobs), printed)
    return printed.getvalue()


def test_an_asset_that_no_slot_has_is_named_with_those_there() -> None:
    assert unknown_assets(SLOTS, JOBS) == []
    typo = NamedAd("cpu=1", {**JOB, "requestcpu": "1"})
    lines = ["no slot has the asset cpu; those with a policy have Cpus, Disk, Memory"]
    assert unknown_assets(SLOTS, [*JOBS, typo]) == lines


def test_tables(golden: Callable[[str, str], None]) -> None:
    """Figures, wording and columns; claims are counted up to a number."""
    golden("consumption/tables.txt", table_of(SLOTS, JOBS))


def test_names_of_ads_steer_no_terminal() -> None:
    printed = table_of([NamedAd("slot\x1b[31m", SLOT)], JOBS)
    assert "\x1b" not in printed
    assert "slot\\x1b[31m" in printed


@pytest.mark.parametrize(
    "request_",
    [
        *("", "8", "8,gpus=1", "cpus=-1", "cpus=1,,gpus=2", "cpus=\u0663", "gpus", "gpus="),
        *("gpus=1,GPUs=2", "g-p=1", "=1", "cpus=0", "cpus=9999999999999999"),
    ],
)
def test_requests_are_whole_numbers(request_: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["consumption", "cost", f"--request={request_}"])
    assert ended.value.code == 2
    assert "argument --request: " in capsys.readouterr().err


@pytest.mark.parametrize("config", ["nowhere", "FOO BAR"])
def test_a_broken_configuration_of_htcondor_is_no_price(tmp_path: Path, config: str) -> None:
    """The library ends the process, or would evaluate names as undefined."""
    path = tmp_path / config.partition(" ")[0]
    if " " in config:
        path.write_text(config)
    done = subprocess.run(
        [sys.executable, "-m", "sharectl", "consumption", "cost", "--request", "cpus=1"],
        env={"CONDOR_CONFIG": str(path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (78, "")
    assert "name another configuration of HTCondor in CONDOR_CONFIG" in done.stderr
