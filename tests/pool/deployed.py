"""Nodes with the execute point's snippet: their configuration, targets, jobs and slots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from poolbox import Box

CHECKOUT = Path(__file__).parents[2]
SHORT_SECONDS = "$INT(short)"
"""Seconds of a job that ends not with its neighbours: 6 to 18, the same ones in every pool."""

CONSUMPTION_POLICY = """\
CONSUMPTION_POLICY = True
CONSUMPTION_CPUS = quantize(target.RequestCpus, {1})
CONSUMPTION_MEMORY = quantize(target.RequestMemory, {8})
CONSUMPTION_DISK = quantize(target.RequestDisk, {1024})
CLAIM_PARTITIONABLE_LEFTOVERS = False
SLOT_WEIGHT = Cpus
"""
"""Configuration of a node that gives its cores out by a policy, all that are matched in a cycle."""


def snippet(*lines: str, **knobs: object) -> str:
    """Snippet as it is deployed, hurried: minutes are seconds, and a run may be late.

    ``knobs``: knob without ``SHARECTL_``, in lower case -> value.
    """
    values = {
        "source": "file:$(LOCAL_DIR)/../../shared/sharectl.txt",
        "grace_seconds": 3,
        "job_ctl_period_seconds": 3,
        "mc_grace_period_seconds": 3,
        "mc_grace_stale_seconds": 90,
        **knobs,
    }
    return "".join(
        f"{line}\n"
        for line in (
            f"include : {CHECKOUT}/config.d/60-sharectl-execute-point.conf",
            f"STARTD_CRON_JOB_CTL_EXECUTABLE = {CHECKOUT}/startd_cron/job_ctl.py",
            f"STARTD_CRON_MC_GRACE_EXECUTABLE = {CHECKOUT}/startd_cron/mc_grace.py",
            *(f"SHARECTL_{name.upper()} = {value}" for name, value in values.items()),
            *lines,
        )
    )


def configure(box: Box, host: str, text: str = "") -> None:
    """Give a host a last file of configuration, and have its daemons read it."""
    box.write_config(host, text)
    box.reconfig(host)


def reads(box: Box, host: str, knob: str, word: str) -> None:
    """Wait until a word stands in a knob of the schedd of that host."""
    query = ["condor_config_val", "-schedd", "-name", host, knob]
    box.wait_until(lambda: word in box.run(query, host=host).stdout, f"{knob} has {word}")


def replace(file: Path, lines: Iterable[str]) -> None:
    """Write a file by rename, as the central manager does."""
    fresh = file.with_suffix(".fresh")
    fresh.write_text("".join(f"{line}\n" for line in lines))
    fresh.replace(file)


def publish(box: Box, *lines: str) -> None:
    """Publish targets to all nodes."""
    replace(box.shared_directory / "sharectl.txt", lines)


def hold_back(
    box: Box, cap: int, *nodes: str, held_back: str = "alice", helped: str = "cms"
) -> None:
    """Publish targets that hold back a group for jobs of eight cores, and wait for them."""
    publish(box, *(f"{node.partition('.')[0]} {held_back} {cap} {helped} 8" for node in nodes))

    def seen() -> list[object]:
        return [partitionable(box, node).get("t1_Targetcores") for node in nodes]

    box.wait_until(lambda: seen() == [[cap, 8]] * len(nodes), "nodes have their targets")


def list_idle_jobs_again(box: Box, *access_points: str) -> None:
    """Have access points list their idle jobs again, as they do at each new job.

    A job whose claim was refused while its access point made that list is not on it for up to 20
    minutes otherwise (PrioRec in HTCondor's qmgmt.cpp).
    """
    for access_point in access_points:
        if box.jobs("JobStatus == 1"):
            edit = ["condor_qedit", "-constraint", "JobStatus == 1", "JobPrio", "0"]
            box.run(edit, host=access_point, check=False)


def jobs(group: str, cores: object, count: int, seconds: object, *lines: str) -> str:
    """Submit description of jobs that sleep; ``seconds`` may be `SHORT_SECONDS`."""
    own = (f"accounting_group = {group}", "accounting_group_user = bob") if group else ()
    return "".join(
        f"{line}\n"
        for line in (
            "executable = /bin/sh",
            "transfer_executable = False",
            f"arguments = \"-c 'sleep {seconds}'\"",
            "short = 6 + $(Process) * 7 % 13",
            f"request_cpus = {cores}",
            "request_memory = 8",
            "request_disk = 8",
            *own,
            *lines,
            f"queue {count}",
        )
    )


def run(box: Box, count: int, constraint: str = "True") -> None:
    """Wait until so many jobs run, of those that meet a constraint."""
    running = f"JobStatus == 2 && ({constraint})"
    box.wait_until(lambda: len(box.jobs(running)) == count, f"{count} jobs run: {constraint}")


def cycles(box: Box) -> int:
    """Negotiation cycles that ended so far."""
    log = box.log_text(box.spec.central_point, "NEGOTIATOR")
    return log.count("Finished Negotiation Cycle")


def shown(box: Box, *words: str) -> list[list[str]]:
    """Words of each line that condor_status prints."""
    return [line.split() for line in box.run(["condor_status", *words]).stdout.splitlines()]


def on(node: str) -> str:
    """Line of a submit description that binds jobs to one node, by its full name."""
    return f'requirements = TARGET.Machine == "{node}"'


def slots(box: Box, node: str) -> list[dict[str, Any]]:
    """Ads of the node's slots, straight from its startd."""
    listing = box.run(["condor_status", "-direct", node, "-json"]).stdout
    return [ad for ad in json.loads(listing or "[]") if "Cpus" in ad]


def partitionable(box: Box, node: str) -> dict[str, Any]:
    """Ad of the node's partitionable slot."""
    return next(slot for slot in slots(box, node) if slot["SlotType"] == "Partitionable")


def held(box: Box, node: str) -> Counter[str]:
    """Cores of dynamic slots by first part of AccountingGroup."""
    cores: Counter[str] = Counter()
    for slot in slots(box, node):
        if slot["SlotType"] == "Dynamic":
            cores[str(slot.get("AccountingGroup")).partition(".")[0]] += slot["Cpus"]
    return cores


def still(box: Box, running: int) -> None:
    """Wait until so many jobs run, and the collector knows each of them and its user."""

    def seen() -> bool:
        users = box.run(
            ["condor_status", "-constraint", "PartitionableSlot", "-af:r", "ChildRemoteUser"]
        ).stdout.count("@")
        wanted = len(box.jobs("JobStatus == 2 && JobUniverse == 5"))
        return wanted == running == users

    box.wait_until(seen, f"{running} jobs run and the collector knows them")


def refusals(box: Box, node: str) -> int:
    """Matched jobs that the node has refused at claim time so far."""
    return box.log_text(node, "STARTD").count("can't be split to allocate a dynamic slot")
