"""Daemons that read an invalid boolean, and what the check says of it in their dumps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
from tests.pool.sharectl_command import consumption_findings

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


def faults(box: Box, folder: Path, host: str) -> list[str]:
    """Invalid booleans in the dump of a host."""
    faults = [finding["fault"] for finding in consumption_findings(box, folder, host)]
    return [fault for fault in faults if " is an invalid boolean: " in fault]


def of_slot(box: Box, host: str, *names: str) -> list[str]:
    return box.run(["condor_status", host, "-af", *names]).stdout.split()


def test_a_policy_of_a_type_is_passed_over_and_what_is_partitionable_is_static(
    box: Box, tmp_path: Path
) -> None:
    assert of_slot(box, OF_TYPE, "PartitionableSlot", "ConsumptionCpus") == ["true", "undefined"]
    assert of_slot(box, STATIC, "PartitionableSlot ?: false") == ["false"]
    (of_type,) = faults(box, tmp_path, OF_TYPE)
    assert of_type.startswith(
        "SLOT_TYPE_1_CONSUMPTION_POLICY = yes is an invalid boolean: the startd ignores it"
    )
    (static,) = faults(box, tmp_path, STATIC)
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
    assert faults(box, tmp_path, STATIC) == []


@pytest.mark.parametrize(
    "written", ["CONSUMPTION_POLICY = Yes", "SLOT_TYPE_3_BACKFILL = t"], ids=["policy", "backfill"]
)
def test_the_startd_ends(written: str, box: Box, tmp_path: Path) -> None:
    box.write_config(OF_TYPE, f"SLOT_TYPE_1_CONSUMPTION_POLICY = False\n{written}\n")
    (fault,) = faults(box, tmp_path, OF_TYPE)
    assert fault.startswith(f"{written} is an invalid boolean: the startd ends")
    before = box.log_text(OF_TYPE, "STARTD").count(INVALID)
    box.stop_host(OF_TYPE)
    box.start_host(OF_TYPE)
    box.wait_until(
        lambda: box.log_text(OF_TYPE, "STARTD").count(INVALID) > before, 60, "the startd ends"
    )


def test_the_schedd_ends(box: Box, tmp_path: Path) -> None:
    """Last: no job starts any more."""
    box.write_config(ACCESS, "CLAIM_PARTITIONABLE_LEFTOVERS = Flase\n")
    (fault,) = faults(box, tmp_path, ACCESS)
    assert fault.startswith(
        "CLAIM_PARTITIONABLE_LEFTOVERS = Flase is an invalid boolean: the schedd or startd ends"
    )
    box.reconfig(ACCESS)
    box.submit(
        "executable = /bin/sleep\narguments = 600\nrequest_cpus = 1\nrequest_memory = 1\nqueue\n"
    )
    box.wait_until(lambda: INVALID in box.log_text(ACCESS, "SCHEDD"), 90, "the schedd ends")
