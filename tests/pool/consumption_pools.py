"""Pools whose slots have consumption policies: their parts, single cycles, and results."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from poolbox import Box
from sharectl.consumption.file import example, parse
from sharectl.consumption.render import snippet

SPLITTING, WHOLE = "ap-1.example.org", "ap-2.example.org"
"""Access points: one that starts further jobs in leftovers (default), and one that must not."""
NEGOTIATOR_LOGS_COSTS = "NEGOTIATOR_DEBUG = D_FULLDEBUG\n"
ALL_AT_ONCE = "MAX_CONCURRENT_UPLOADS_PER_USER = 0\n"
"""Access points of 25.11.0 and later offer at most 20 jobs of a user in one cycle."""
NO_LEFTOVERS = "CLAIM_PARTITIONABLE_LEFTOVERS = False\n"
SLEEP_SECONDS = 600
_MATCH = re.compile(r"Successfully matched with (slot\d+)@(\S+)\n(?:.*match cost= (\S+))?")
_STARTED, _FINISHED = "Started Negotiation Cycle", "Finished Negotiation Cycle"


def rendered(policies: str) -> str:
    """What ``sharectl consumption render`` makes of that YAML."""
    return snippet(parse(policies, "test.yaml"))


def rendered_example(name: str) -> str:
    """What it makes of the example of that name."""
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
    """Submit description of one cluster: the negotiator sees all its jobs, or none yet."""
    rows = [
        f"{each.node},{each.cores},{each.memory_mib},{each.group},{each.limit},{each.user}\n"
        for each in wanted
        for _ in range(each.count)
    ]
    return f"""\
executable = /bin/sleep
arguments = {SLEEP_SECONDS}
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
    """Tell the schedd of `WHOLE`, and no other, to take no leftovers."""
    box.write_config(WHOLE, NO_LEFTOVERS)
    box.reconfig(WHOLE)
    asked = ["condor_config_val", "-schedd", "-name", WHOLE, "CLAIM_PARTITIONABLE_LEFTOVERS"]
    box.wait_until(lambda: box.run(asked).stdout.strip() == "False", 30, "the schedd has read it")


# ---- cycles


@dataclass(frozen=True)
class Cycle:
    """One negotiation cycle, as the negotiator logged it."""

    text: str

    @property
    def matches(self) -> Counter[str]:
        """``slot1@wn`` -> matches with it."""
        return Counter(
            f"{slot}@{host.partition('.')[0]}" for slot, host, _ in _MATCH.findall(self.text)
        )

    @property
    def costs(self) -> Counter[tuple[str, float]]:
        """``slot1@wn``, cost of a match -> matches that cost this, where the log is full."""
        return Counter(
            (f"{slot}@{host.partition('.')[0]}", float(cost))
            for slot, host, cost in _MATCH.findall(self.text)
            if cost
        )


def log_length(box: Box) -> int:
    """How much the negotiator has logged so far, to see only `cycles` from here on."""
    return len(box.log_text(box.spec.central_point, "NEGOTIATOR"))


def cycles(box: Box, since: int) -> list[Cycle]:
    """Cycles that began and finished after that length of the log."""
    blocks = box.log_text(box.spec.central_point, "NEGOTIATOR")[since:].split(_STARTED)[1:]
    return [Cycle(block) for block in blocks if _FINISHED in block]


@contextlib.contextmanager
def paused(box: Box) -> Iterator[None]:
    """Pause of negotiation that begins between two cycles."""
    pid = box.daemon_pid(box.spec.central_point, "NEGOTIATOR")

    def stopped_between_cycles() -> bool:
        os.kill(pid, signal.SIGSTOP)
        text = box.log_text(box.spec.central_point, "NEGOTIATOR")
        between = text.rfind(_FINISHED) >= text.rfind(_STARTED)
        if not between:
            os.kill(pid, signal.SIGCONT)
        return between

    try:
        box.wait_until(stopped_between_cycles, 60, "a pause between two cycles")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def submitted_together(box: Box, wanted: Mapping[str, Sequence[Jobs]]) -> Iterator[int]:
    """Length of the log before the first cycle that sees all of these jobs, still paused.

    ``wanted`` are access points and what is submitted there. Earlier jobs are removed.
    """
    box.remove_jobs()
    used = [
        "condor_status",
        "-constraint",
        "Cpus < TotalSlotCpus || Memory < TotalSlotMemory",
        "-af",
        "Name",
    ]
    box.wait_until(
        lambda: not box.run(used).stdout, 60, "the collector knows that all slots are free"
    )
    with paused(box):
        since = log_length(box)
        for access_point, some in wanted.items():
            box.submit(described(some), access_point)
        counts = Counter(
            {access: sum(each.count for each in some) for access, some in wanted.items()}
        )
        box.wait_until(
            lambda: waiting(box) == counts, 60, f"the collector knows of the jobs {dict(counts)}"
        )
        yield since


def waiting(box: Box) -> Counter[str]:
    """Access point -> idle jobs that its submitters have, as the collector knows it."""
    query = ["condor_status", "-submitters", "-af", "ScheddName", "IdleJobs"]
    found = Counter[str]()
    for line in box.run(query).stdout.splitlines():
        access_point, count = line.split()
        found[access_point] += int(count)
    return found


def first_cycle(box: Box, since: int) -> Cycle:
    """The first cycle after that length of the log that matched anything."""
    found = box.wait_until(
        lambda: [cycle for cycle in cycles(box, since) if cycle.matches], 60, "a cycle that matches"
    )
    return found[0]


def later_cycles(box: Box, count: int) -> None:
    """Wait for so many further cycles."""
    since = log_length(box)
    box.wait_until(lambda: len(cycles(box, since)) >= count, 60, f"{count} further cycles")


# ---- what became of them


def running(box: Box, constraint: str = "True", access_point: Optional[str] = None) -> int:
    """Jobs that run, of those for which the constraint is true."""
    return len(box.jobs(f"JobStatus == 2 && {constraint}", ("ClusterId",), access_point))


def dynamic_slots(box: Box) -> Mapping[str, Counter[tuple[int, int]]]:
    """``slot1@wn`` of the partitionable slot -> (cores, MiB) of its dynamic slots -> how many."""
    found: dict[str, Counter[tuple[int, int]]] = {}
    for name, cores, mib in _of_dynamic_slots(box, "TotalSlotCpus", "TotalSlotMemory"):
        slot, _, host = name.partition("@")
        parent = f"{slot.partition('_')[0]}@{host.partition('.')[0]}"
        found.setdefault(parent, Counter())[int(float(cores)), int(mib)] += 1
    return found


def dynamic_weights(box: Box) -> Mapping[str, float]:
    """``wn`` -> sum of SlotWeight, as evaluated on each, of its dynamic slots."""
    found: dict[str, float] = defaultdict(float)
    for name, weight in _of_dynamic_slots(box, "SlotWeight"):
        found[name.partition("@")[2].partition(".")[0]] += float(weight)
    return found


def _of_dynamic_slots(box: Box, *attributes: str) -> list[list[str]]:
    query = ["condor_status", "-constraint", 'SlotType == "Dynamic"', "-af", "Name", *attributes]
    return [line.split() for line in box.run(query).stdout.splitlines()]


def usage(box: Box) -> dict[str, float]:
    """Submitter -> WeightedResourcesUsed, as advertised after the last cycle."""
    constraint = 'MyType == "Accounting" && IsAccountingGroup =!= True'
    query = [
        "condor_status",
        "-any",
        "-constraint",
        constraint,
        "-af",
        "Name",
        "WeightedResourcesUsed",
    ]
    rows = [line.split() for line in box.run(query).stdout.splitlines()]
    return {name: float(used) for name, used in rows}


def usage_after_one_cycle(box: Box, since: int, users: Collection[str]) -> dict[str, float]:
    """`usage` after the first cycle since that length of the log; the next one forgets costs."""

    def seen() -> dict[str, float]:
        found = usage(box)
        begun = box.log_text(box.spec.central_point, "NEGOTIATOR")[since:].count(_STARTED)
        assert begun <= 1, "this machine was too slow to ask between two cycles"
        return found if set(users) <= found.keys() else {}

    return box.wait_until(seen, 60, "the accountant's ads of the first cycle")
