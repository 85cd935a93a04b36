"""The twin's negotiator beside the real one: cores of each group, cycle by cycle."""

from __future__ import annotations

import math
import os
import signal
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Optional

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl_lab.twin.accountant import Accountant
from sharectl_lab.twin.group_quotas import GroupQuota, QuotaTree
from sharectl_lab.twin.negotiator import PoolWeights, SubmitterAd, negotiate
from sharectl_lab.twin.settings import Negotiator
from tests.pool.deployed import CONSUMPTION_POLICY, configure, cycles, jobs, shown
from tests.pool.trouble import stopped

CENTRAL, ACCESS, NODE = "cm-1.example.org", "ap-1.example.org", "wn-001.example.org"
CORES = 16
SPEC = BoxSpec(
    (ExecutePoint(NODE, CORES, config=CONSUMPTION_POLICY),),
    access_points=(ACCESS,),
    access_config="CLAIM_PARTITIONABLE_LEFTOVERS = False\n",
)


class Pending(NamedTuple):
    account: str
    cores: int
    number: int


class Case(NamedTuple):
    groups: Sequence[GroupQuota]
    pending: Sequence[Pending]
    cores: dict[str, int]
    """Cores of each group when nothing changes any more."""


def group(name: str, quota: float, *, surplus: bool = False, auto: bool = False) -> GroupQuota:
    return GroupQuota(name, quota, surplus, auto)


CASES = {
    # A first match in a spin may pass the quota: in the second cycle, when a slot of one core lets
    # q1 try. The root group takes surplus.
    "quotas": Case(
        [group("q1", 3), group("q2", 4), group("q3", 6)],
        [Pending("", 1, 5), Pending("q1", 2, 9), Pending("q2", 1, 9), Pending("q3", 1, 2)],
        {"": 5, "q1": 4, "q2": 4, "q3": 2},
    ),
    # 9.33 and 4.67 cores: limits are integers, so that a core stays idle.
    "surplus": Case(
        [group("s1", 8, surplus=True), group("s2", 4, surplus=True), group("s3", 4, surplus=True)],
        [Pending("s1", 1, 16), Pending("s2", 1, 16), Pending("s3", 1, 2)],
        {"s1": 9, "s2": 4, "s3": 2},
    ),
    # The quota of n1 counts beside those within it, up to its 8 cores: who is first takes them all.
    "nested": Case(
        [
            group("n1", 8),
            group("n1.a", 4, surplus=True),
            group("n1.b", 4, surplus=True),
            group("n2", 4),
        ],
        [Pending("n1.a", 1, 16), Pending("n1.b", 1, 1), Pending("n2", 1, 16)],
        {"n1.a": 8, "n2": 4},
    ),
    "autoregroup": Case(
        [group("r1", 4, auto=True), group("r2", 4)],
        [Pending("r1", 1, 16), Pending("r2", 1, 9)],
        {"r1": 12, "r2": 4},
    ),
}


class Twin:
    """The pool in memory: one partitionable slot that gives cores out by a policy."""

    def __init__(self, case: Case) -> None:
        self.tree = QuotaTree(case.groups)
        self.accountant = Accountant(86_400.0)
        self.jobs = {f"{item.account}.bob": item for item in case.pending}
        self.pending = {name: item.number for name, item in self.jobs.items()}
        self.free = CORES

    def match(self, ad: SubmitterAd, room: float) -> Optional[float]:
        cores = self.jobs[ad.name].cores
        if not self.pending[ad.name] or cores > self.free:
            return None
        if cores > room:
            return math.inf
        self.pending[ad.name] -= 1
        self.free -= cores
        self.accountant.charge(ad.name, 0.0, cores)
        return float(cores)

    def cycle(self) -> dict[str, int]:
        """Cores of each group after one more cycle."""
        running = [self.jobs[name].cores for name, used in self.accountant.usages.items() if used]
        ads = [
            SubmitterAd(name, self.pending[name] * item.cores)
            for name, item in self.jobs.items()
            if self.pending[name]
        ]
        weights = PoolWeights(CORES, min([*running, self.free]))
        negotiate(Negotiator(), self.tree, ads, self.accountant, weights, 0.0, self.match)
        usages = self.accountant.usages.items()
        return {self.jobs[name].account: int(used) for name, used in usages if used}


class Steps:
    """The pool's negotiator, stopped between its cycles."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.pid = box.daemon_pid(CENTRAL, "NEGOTIATOR")

    def logged(self, event: str) -> int:
        return self.box.log_text(CENTRAL, "NEGOTIATOR").count(event)

    def pause(self) -> None:
        def between() -> bool:
            os.kill(self.pid, signal.SIGSTOP)
            is_between = self.logged("Started Negotiation Cycle") == cycles(self.box)
            if not is_between:
                os.kill(self.pid, signal.SIGCONT)
            return is_between

        self.box.wait_until(between, "the negotiator is between two cycles")

    def cycle(self) -> None:
        """Let it do one cycle."""
        before = cycles(self.box)
        os.kill(self.pid, signal.SIGCONT)
        self.box.wait_until(lambda: cycles(self.box) > before, "a negotiation cycle ends")
        self.pause()


def configuration(groups: Sequence[GroupQuota]) -> str:
    lines = [f"GROUP_NAMES = {', '.join(item.name for item in groups)}"]
    for item in groups:
        lines += [
            f"GROUP_QUOTA_{item.name} = {item.quota}",
            f"GROUP_ACCEPT_SURPLUS_{item.name} = {item.accept_surplus}",
            f"GROUP_AUTOREGROUP_{item.name} = {item.autoregroup}",
        ]
    return "\n".join([*lines, ""])


def cores_by_group(box: Box) -> dict[str, int]:
    """Cores of dynamic slots that the collector knows, by accounting group."""
    cores: Counter[str] = Counter()
    query = ["-constraint", 'SlotType == "Dynamic"', "-af", "Cpus", "AccountingGroup"]
    for count, account in shown(box, *query):
        name = account.partition("@")[0]
        cores[name.rpartition(".")[0] if account != "undefined" else ""] += int(count)
    return dict(cores)


def deploy(box: Box, case: Case) -> None:
    configure(box, CENTRAL, configuration(case.groups))
    ads = ["-any", "-constraint", "IsAccountingGroup", "-af", "Name"]
    names = {item.name for item in case.groups}
    box.wait_until(lambda: names <= {name for (name,) in shown(box, *ads)}, "it has the groups")


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_groups_get_the_cores_that_the_law_tells_in_every_cycle(box: Box, case: Case) -> None:
    twin = Twin(case)
    deploy(box, case)
    steps = Steps(box)
    with stopped(box.daemon_pid(CENTRAL, "MASTER")), stopped(steps.pid):
        steps.pause()
        for item in case.pending:
            box.submit(jobs(item.account, item.cores, item.number, 600))
        weight = sum(item.cores * item.number for item in case.pending)
        demand = ["-submitters", "-af", "WeightedIdleJobs"]

        def idle() -> float:
            return sum(float(number) for (number,) in shown(box, *demand))

        box.wait_until(lambda: idle() == weight, "the collector knows all pending jobs")
        before: dict[str, int] = {}
        while (law := twin.cycle()) != before:
            steps.cycle()
            box.wait_until(lambda law=law: cores_by_group(box) == law, f"groups have {law}")  # type: ignore[misc]
            before = law
        assert law == case.cores
        matches = steps.logged("Successfully matched with")
        steps.cycle()
        assert steps.logged("Successfully matched with") == matches
