"""Findings of `sharectl consumption check` in dumps of hosts, and what the daemons do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool import consumption_pools as pools
from tests.pool.conftest import OpenBox
from tests.pool.deployed import jobs, on
from tests.pool.own_files import host
from tests.pool.sharectl_command import consumption_findings

POLICY = """
SLOT_TYPE_1_CONSUMPTION_POLICY = True
SLOT_TYPE_1_CONSUMPTION_CPUS = quantize(TARGET.RequestCpus, {1})
SLOT_TYPE_1_CONSUMPTION_MEMORY = quantize(TARGET.RequestMemory, {128})
SLOT_TYPE_1_CONSUMPTION_DISK = quantize(TARGET.RequestDisk, {1024})
SLOT_WEIGHT = Cpus
"""
NOTHING = "".join(f"SLOT_TYPE_1_CONSUMPTION_{asset} = 0\n" for asset in ("CPUS", "MEMORY", "DISK"))
GOOD, ZERO, FRACTION, DIVIDES = "good", "zero", "fraction", "divides"
OF_TYPE, STATIC = "of-type", "static"
NODES = {
    GOOD: POLICY,
    ZERO: POLICY + NOTHING,
    FRACTION: f"{POLICY}SLOT_TYPE_1_CONSUMPTION_MEMORY = TARGET.RequestMemory * 1.1\n",
    DIVIDES: f"{POLICY}SLOT_WEIGHT = 8 / Cpus\n",
    # Booleans that are not valid.
    OF_TYPE: "SLOT_TYPE_1_CONSUMPTION_POLICY = yes\n",
    STATIC: "CONSUMPTION_POLICY = 1 == 1\nSLOT_TYPE_1_PARTITIONABLE = Yes\n",
}
CORES = 2
CENTRAL, ACCESS = "cm-1.example.org", "ap-1"
WEIGHED = "SLOT_WEIGHT = min({floor(MY.Cpus / 1.0), floor(MY.Memory / 1024.0)})\n"
QUOTAS = "GROUP_NAMES = cms\nGROUP_QUOTA_DYNAMIC_cms = 0.5\n"
INVALID = "is not a valid boolean"


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(host(name), cores=CORES, memory_mib=4096, config=text)
            for name, text in NODES.items()
        ),
        access_points=(host(ACCESS),),
        config="CLAIM_PARTITIONABLE_LEFTOVERS = False\n",
    )
    with open_box(spec) as running:
        yield running


def verdict(box: Box, folder: Path, name: str) -> dict[str, dict[str, Any]]:
    """Name of the check → its error in the dump of a host."""
    errors = consumption_findings(box, folder, host(name))
    return {finding["id"]: finding for finding in errors}


def submit(box: Box, name: str, count: int) -> int:
    assets = ("request_memory = 100", "request_disk = 1000")
    return box.submit(jobs("", 1, count, 600, *assets, on(host(name))))


def running(box: Box, cluster: int) -> int:
    return pools.running(box, f"ClusterId == {cluster}")


def of_slot(box: Box, name: str, attribute: str) -> str:
    """Expression of an attribute in the partitionable slot."""
    constraint = f'Machine == "{host(name)}" && PartitionableSlot'
    return box.run(["condor_status", "-constraint", constraint, "-af:r", attribute]).stdout.strip()


def idle_as_advertised(box: Box) -> list[list[str]]:
    """IdleJobs and WeightedIdleJobs of submitters with idle jobs."""
    query = ["condor_status", "-submitters", "-af", "IdleJobs", "WeightedIdleJobs"]
    return [row for row in map(str.split, box.run(query).stdout.splitlines()) if row[0] != "0"]


def matches_by_cycle(box: Box, cluster: int) -> list[int]:
    """How many matches of a cluster each cycle made, of those that made any."""
    cycles = pools.log_of(box).split("Started Negotiation Cycle")
    # With requests of several jobs at once, each match is logged under the first of them.
    counts = [len(re.findall(rf"Matched {cluster}\.\d+ ", cycle)) for cycle in cycles]
    return [count for count in counts if count]


def test_a_policy_that_takes_nothing_is_found_and_is_refused(box: Box, tmp_path: Path) -> None:
    assert "zero" in verdict(box, tmp_path, ZERO)
    cluster = submit(box, ZERO, 1)
    warning = f"Consumption for all assets on resource slot1@{host(ZERO)} was zero"
    box.wait_until(lambda: warning in pools.log_of(box), "the negotiator refuses")
    assert running(box, cluster) == 0


def test_a_policy_of_fractions_is_found_and_its_matches_are_refused(
    box: Box, tmp_path: Path
) -> None:
    finding = verdict(box, tmp_path, FRACTION)["claims"]
    written = box.local_directory(host(FRACTION)) / "config.d" / "30-host.config"
    line = written.read_text().splitlines().index(NODES[FRACTION].splitlines()[-1]) + 1
    assert finding["place"] == f"{written}:{line}"
    cluster = submit(box, FRACTION, 1)
    box.wait_until(lambda: len(matches_by_cycle(box, cluster)) > 1, "the job is matched again")
    assert "Request to create dslot resource refused" in box.log_text(host(FRACTION), "STARTD")
    assert running(box, cluster) == 0


def test_a_weight_of_slots_on_an_access_point_is_found_and_no_job_is_matched(
    box: Box, tmp_path: Path
) -> None:
    box.remove_jobs()
    box.write_config(CENTRAL, QUOTAS)
    box.write_config(host(ACCESS), WEIGHED)
    for name in (CENTRAL, host(ACCESS)):
        box.reconfig(name)
    finding = verdict(box, tmp_path, ACCESS)["access points"]
    assert "RequestMemory = 128, RequestDisk = 1000 weighs 0," in finding["fault"]
    cluster = submit(box, GOOD, CORES)
    box.wait_until(
        lambda: idle_as_advertised(box) == [[str(CORES), "0"]], "the idle jobs count as nothing"
    )
    pools.later_cycles(box, 3)
    assert matches_by_cycle(box, cluster) == []
    box.write_config(host(ACCESS), f"STARTD.{WEIGHED}")
    box.reconfig(host(ACCESS))
    assert verdict(box, tmp_path, ACCESS) == {}
    box.wait_until(lambda: running(box, cluster) == CORES, "what startds alone read stops no job")
    box.write_config(CENTRAL, "")
    box.reconfig(CENTRAL)


def test_a_weight_that_divides_by_what_runs_out_is_found_and_ends_the_negotiator(
    box: Box, tmp_path: Path
) -> None:
    assert "weight" in verdict(box, tmp_path, DIVIDES)
    assert "Failed to evaluate SlotWeight" not in pools.log_of(box)
    submit(box, DIVIDES, CORES)
    box.wait_until(
        lambda: "Failed to evaluate SlotWeight" in pools.log_of(box), "the negotiator ends"
    )


# ---- booleans that are not valid, and nodes that do not come back


def faults(box: Box, folder: Path, name: str) -> list[str]:
    """Invalid booleans in the dump of a host."""
    faults = [finding["fault"] for finding in consumption_findings(box, folder, host(name))]
    return [fault for fault in faults if " is an invalid boolean: " in fault]


@pytest.mark.semantics
def test_a_policy_of_a_type_is_passed_over_and_what_is_partitionable_is_static(
    box: Box, tmp_path: Path
) -> None:
    assert (of_slot(box, OF_TYPE, "ConsumptionCpus"), of_slot(box, STATIC, "Cpus")) == (
        "undefined",
        "",
    ), "the one is partitionable without a policy, the other is not"
    (of_type,) = faults(box, tmp_path, OF_TYPE)
    assert of_type.startswith("SLOT_TYPE_1_CONSUMPTION_POLICY = yes ")
    (static,) = faults(box, tmp_path, STATIC)
    assert static.startswith("SLOT_TYPE_1_PARTITIONABLE = Yes ")


@pytest.mark.semantics
def test_an_expression_is_a_boolean(box: Box, tmp_path: Path) -> None:
    box.write_config(host(STATIC), "SLOT_TYPE_1_PARTITIONABLE = 2 > 1\n")
    restart(box, STATIC)
    box.wait_until(
        lambda: "requestcpus" in of_slot(box, STATIC, "ConsumptionCpus").lower(),
        "the slot has a policy",
    )
    assert faults(box, tmp_path, STATIC) == []


@pytest.mark.parametrize(
    ("name", "written", "logged"),
    [
        (ZERO, "SLOT_TYPE_1_CONSUMPTION_MEMORY =", "Bad consumption policy expression"),
        (OF_TYPE, "CONSUMPTION_POLICY = Yes", INVALID),
        (STATIC, "SLOT_TYPE_3_BACKFILL = t", INVALID),
    ],
    ids=["empty", "policy", "backfill"],
)
@pytest.mark.semantics
def test_the_startd_ends(name: str, written: str, logged: str, box: Box, tmp_path: Path) -> None:
    """The node does not come back."""
    is_boolean = logged == INVALID
    policy = "SLOT_TYPE_1_PARTITIONABLE = True\nSLOT_TYPE_1_CONSUMPTION_POLICY = "
    box.write_config(host(name), f"{policy}{not is_boolean}\n{written}\n")
    if is_boolean:
        (fault,) = faults(box, tmp_path, name)
        assert fault.startswith(f"{written} is an invalid boolean: ")
    else:
        assert "expressions" in verdict(box, tmp_path, name)
    assert logged not in box.log_text(host(name), "STARTD")
    restart(box, name)
    box.wait_until(lambda: logged in box.log_text(host(name), "STARTD"), "the startd ends")


@pytest.mark.semantics
def test_the_schedd_ends(box: Box, tmp_path: Path) -> None:
    """Last: no job starts any more."""
    box.remove_jobs()
    box.write_config(host(ACCESS), "CLAIM_PARTITIONABLE_LEFTOVERS = Flase\n")
    (fault,) = faults(box, tmp_path, ACCESS)
    assert fault.startswith("CLAIM_PARTITIONABLE_LEFTOVERS = Flase is an invalid boolean: ")
    box.reconfig(host(ACCESS))
    submit(box, GOOD, 1)
    box.wait_until(lambda: INVALID in box.log_text(host(ACCESS), "SCHEDD"), "the schedd ends")


def restart(box: Box, name: str) -> None:
    box.stop_host(host(name))
    box.start_host(host(name))
