"""What daemons do with a text of a boolean knob that is an invalid boolean, and that the check finds it in what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
from tests.pool.sharectl_command import CHECKOUT

pytestmark = pytest.mark.semantics

CENTRAL, ACCESS = "cm-1.example.org", "ap-1.example.org"
OF_TYPE, STATIC = "of-type.example.org", "static.example.org"
INVALID = "is not a valid boolean"


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    nodes = (
        ExecutePoint(OF_TYPE, cores=2, config="SLOT_TYPE_1_CONSUMPTION_POLICY = yes\n"),
        ExecutePoint(
            STATIC, cores=2, config="CONSUMPTION_POLICY = 1 == 1\nSLOT_TYPE_1_PARTITIONABLE = Yes\n"
        ),
    )
    with open_box(BoxSpec(execute_points=nodes, access_points=(ACCESS,))) as running:
        yield running


def problems(box: Box, folder: Path, host: str) -> list[str]:
    """What the check finds wrong with booleans in a host's own dump."""
    dump = folder / f"{host}.dump"
    dump.write_text(box.run(["condor_config_val", "-dump", "-verbose"], host=host).stdout)
    done = subprocess.run(
        [sys.executable, "-m", "sharectl", "consumption", "check", "--json", str(dump)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT / "central")},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    found = json.loads(done.stdout)["findings"]
    return [
        one["fault"]
        for one in found
        if " is an invalid boolean: " in one["fault"] and one["level"] == "error"
    ]


def of_slot(box: Box, host: str, *names: str) -> list[str]:
    return box.run(["condor_status", host, "-af", *names]).stdout.split()


def test_a_policy_of_a_type_is_passed_over_and_what_is_partitionable_is_static(
    box: Box, tmp_path: Path
) -> None:
    assert of_slot(box, OF_TYPE, "PartitionableSlot", "ConsumptionCpus") == ["true", "undefined"]
    assert of_slot(box, STATIC, "PartitionableSlot ?: false") == ["false"]
    (of_type,) = problems(box, tmp_path, OF_TYPE)
    assert of_type.startswith(
        "SLOT_TYPE_1_CONSUMPTION_POLICY = yes is an invalid boolean: the startd ignores it"
    )
    (static,) = problems(box, tmp_path, STATIC)
    assert static.startswith(
        "SLOT_TYPE_1_PARTITIONABLE = Yes is an invalid boolean: the startd takes it for False"
    )


def test_an_expression_is_a_boolean(box: Box, tmp_path: Path) -> None:
    box.write_config(STATIC, "SLOT_TYPE_1_PARTITIONABLE = 2 > 1\n")
    box.stop_host(STATIC)
    box.start_host(STATIC)
    box.wait_until(
        lambda: (
            of_slot(box, STATIC, "PartitionableSlot ?: false", "ConsumptionCpus =!= undefined")
            == ["true"] * 2
        ),
        60,
        "the slot has a policy",
    )
    assert problems(box, tmp_path, STATIC) == []


@pytest.mark.parametrize(
    "written", ["CONSUMPTION_POLICY = Yes", "SLOT_TYPE_3_BACKFILL = t"], ids=["policy", "backfill"]
)
def test_the_startd_ends(written: str, box: Box, tmp_path: Path) -> None:
    box.write_config(OF_TYPE, f"SLOT_TYPE_1_CONSUMPTION_POLICY = False\n{written}\n")
    (found,) = problems(box, tmp_path, OF_TYPE)
    assert found.startswith(f"{written} is an invalid boolean: the startd ends")
    before = box.log_text(OF_TYPE, "STARTD").count(INVALID)
    box.stop_host(OF_TYPE)
    box.start_host(OF_TYPE)
    box.wait_until(
        lambda: box.log_text(OF_TYPE, "STARTD").count(INVALID) > before, 60, "the startd ends"
    )


def test_the_schedd_ends(box: Box, tmp_path: Path) -> None:
    """Last: no job starts any more."""
    box.write_config(ACCESS, "CLAIM_PARTITIONABLE_LEFTOVERS = Flase\n")
    (found,) = problems(box, tmp_path, ACCESS)
    assert found.startswith(
        "CLAIM_PARTITIONABLE_LEFTOVERS = Flase is an invalid boolean: the schedd ends"
    )
    box.reconfig(ACCESS)
    box.submit(
        "executable = /bin/sleep\narguments = 600\nrequest_cpus = 1\nrequest_memory = 1\nqueue\n"
    )
    box.wait_until(lambda: INVALID in box.log_text(ACCESS, "SCHEDD"), 90, "the schedd ends")
