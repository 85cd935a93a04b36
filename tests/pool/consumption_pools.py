"""Pools whose slots have consumption policies: jobs, cycles one at a time, slots and usage."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

from poolbox import Box
from sharectl.consumption.file import example, parse
from sharectl.consumption.policy import snippet

SPLITTING, WHOLE = "ap-1.example.org", "ap-2.example.org"
"""Access points: one that starts jobs on leftovers, HTCondor's default, and one that must not."""
NEGOTIATOR_LOGS_MATCHES = "NEGOTIATOR_DEBUG = D_FULLDEBUG\n"
NO_LEFTOVERS = "CLAIM_PARTITIONABLE_LEFTOVERS = False\n"
_MATCH = re.compile(r"Successfully matched with (slot\d+@\w[\w-]*)")
_STARTED, _FINISHED = "Started Negotiation Cycle", "Finished Negotiation Cycle"


def rendered(policies: str) -> str:
    """Snippet of ``sharectl consumption render`` for that YAML."""
    return snippet(parse(policies, "test.yaml")).text


def rendered_example(name: str) -> str:
    return rendered(example(name))


@dataclass(frozen=True)
class Jobs:
    """Sleeping jobs for one node."""

    node: str
    count: int
    cores: int = 1
    memory_mib: int = 1
    group: str = ""
    user: str = "alice"
    limit: str = ""
    """Their concurrency limit, if any."""


def described(wanted: Sequence[Jobs]) -> str:
    """Submit description of one cluster: the negotiator sees all jobs of it, or none yet."""
    rows = [
        f"{jobs.node},{jobs.cores},{jobs.memory_mib},{jobs.group},{jobs.limit},{jobs.user}\n"
        for jobs in wanted
        for _ in range(jobs.count)
    ]
    return f"""\
executable = /bin/sleep
arguments = 600
transfer_executable = False
request_cpus = $(Cores)
request_memory = $(MiB)
request_disk = 8
requirements = TARGET.Machine == "$(Node).example.org"
accounting_group = $(Group)
accounting_group_user = $(User)
concurrency_limits = $(Limit)
queue Node,Cores,MiB,Group,Limit,User from (
{"".join(rows)})
"""


def forbid_leftovers(box: Box) -> None:
    """Forbid the schedd of `WHOLE`, and no other, to use leftovers."""
    box.write_config(WHOLE, NO_LEFTOVERS)
    box.reconfig(WHOLE)
    query = ["condor_config_val", "-schedd", "-name", WHOLE, "CLAIM_PARTITIONABLE_LEFTOVERS"]
    box.wait_until(lambda: box.run(query).stdout.strip() == "False", "the schedd has read it")


# ---- cycles


@dataclass(frozen=True)
class Cycle:
    """One negotiation cycle, as the negotiator logged it."""

    text: str

    @cached_property
    def matches(self) -> Counter[str]:
        """``slot1@wn`` -> matches with it."""
        return Counter(_MATCH.findall(self.text))


def log_of(box: Box) -> str:
    return box.log_text(box.spec.central_point, "NEGOTIATOR")


def log_length(box: Box) -> int:
    """Characters that the negotiator has logged: `cycles` after them are later ones."""
    return len(log_of(box))


def cycles(box: Box, since: int) -> list[Cycle]:
    """Cycles that began and finished after that length of the log."""
    blocks = log_of(box)[since:].split(_STARTED)[1:]
    return [Cycle(block) for block in blocks if _FINISHED in block]


@contextlib.contextmanager
def paused(box: Box) -> Iterator[None]:
    """Without negotiation, and between two cycles: one cut in two might look again afterwards."""
    pid = box.daemon_pid(box.spec.central_point, "NEGOTIATOR")

    def stopped_between_cycles() -> bool:
        os.kill(pid, signal.SIGSTOP)
        text = log_of(box)
        between = text.rfind(_FINISHED) >= text.rfind(_STARTED)
        if not between:
            os.kill(pid, signal.SIGCONT)
        return between

    try:
        box.wait_until(stopped_between_cycles, "a pause between two cycles")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def submitted_together(box: Box, wanted: Mapping[str, Sequence[Jobs]]) -> Iterator[int]:
    """Length of the log before the first cycle that sees these jobs, by access point, all of them.

    Earlier jobs are removed. Negotiation is paused within.
    """
    box.remove_jobs()
    used = "Cpus < TotalSlotCpus || Memory < TotalSlotMemory"
    box.wait_until(lambda: not rows_of(box, used, "Name"), "the collector knows free slots")
    with paused(box):
        since = log_length(box)
        for access_point, some in wanted.items():
            box.submit(described(some), access_point)
        counts = Counter({access: sum(j.count for j in some) for access, some in wanted.items()})
        box.wait_until(lambda: waiting(box) == counts, f"the collector knows of {dict(counts)}")
        yield since


def waiting(box: Box) -> Counter[str]:
    """Access point -> idle jobs that its submitters have, as the collector knows it."""
    query = ["condor_status", "-submitters", "-af", "ScheddName", "IdleJobs"]
    counts = Counter[str]()
    for line in box.run(query).stdout.splitlines():
        access_point, count = line.split()
        counts[access_point] += int(count)
    return counts


def first_cycle(box: Box, since: int) -> Cycle:
    """The first cycle after that length of the log that matched anything."""
    return box.wait_until(
        lambda: [cycle for cycle in cycles(box, since) if cycle.matches], "a cycle that matches"
    )[0]


def later_cycles(box: Box, count: int) -> None:
    """Wait for so many further cycles."""
    since = log_length(box)
    box.wait_until(lambda: len(cycles(box, since)) >= count, f"{count} further cycles")


# ---- after them


def running(box: Box, constraint: str = "True", access_point: Optional[str] = None) -> int:
    """Jobs that run, of those for which the constraint is true."""
    return len(box.jobs(f"JobStatus == 2 && {constraint}", ("ClusterId",), access_point))


def rows_of(box: Box, constraint: str, *attributes: str, of_any: bool = False) -> list[list[str]]:
    """Attributes of the slots, or of ads of any kind, that meet a constraint."""
    kind = ["-any"] if of_any else []
    query = ["condor_status", *kind, "-constraint", constraint, "-af", *attributes]
    return [line.split() for line in box.run(query).stdout.splitlines()]


def dynamic_slots(box: Box) -> Mapping[str, Counter[tuple[int, int]]]:
    """``slot1@wn`` of the partitionable slot -> (cores, MiB) of its dynamic slots -> how many."""
    slots: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    query = ('SlotType == "Dynamic"', "Name", "TotalSlotCpus", "TotalSlotMemory")
    for name, cores, mib in rows_of(box, *query):
        slot, _, host = name.partition("@")
        slots[f"{slot.split('_')[0]}@{host.split('.')[0]}"][int(float(cores)), int(mib)] += 1
    return dict(slots)
