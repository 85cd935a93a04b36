"""Purposes and semantics of consumption policies, on real daemons, from rendered snippets.

Two rounds of jobs: claims, quotas and limits; a negotiator with threads. Each claim is held against
slots without a policy, or against an access point that splits leftovers. docs/consumption.md relies
on what is marked as semantics.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.condor.pool_look import Version
from tests.htcondor_releases import OFFERS_FEWER_JOBS, holds
from tests.pool import consumption_pools as pools
from tests.pool.conftest import OpenBox
from tests.pool.consumption_pools import SPLITTING, WHOLE, Cycle, Jobs, rendered, rendered_example
from tests.pool.deployed import list_idle_jobs_again

CENTRAL = "cm-1.example.org"
LIMIT, CLAIMS = 3, 3
MEMORY_CENTRIC = """
startd:
  model: expressions
  assets: {cpus: {request: true}, memory: {request: true, step: 512},
    disk: {request: true, step: 128}}
  weight: floor(MY.Memory / 512.0)
"""
OF_NO_CORES = (
    f"{MEMORY_CENTRIC.replace('cpus: {request: true}', 'cpus: {always: 0}')}  num_claims: 8\n"
)
OF_THREE_CLAIMS = rendered(
    f"""
startd:
  model: minimum_charge
  assets: {{cpus: {{charge: 1}}, memory: {{charge: 128}}, disk: {{charge: 128}}}}
  num_claims: {CLAIMS}
"""
)
GIVES = f"{OF_THREE_CLAIMS}CLAIM_PARTITIONABLE_LEFTOVERS = True\n"
BY_CORES = rendered_example("cpu-centric")
NODES: Mapping[str, tuple[int, int, str]] = {
    # node: cores, MiB, configuration
    "by-cores": (10, 16384, BY_CORES),
    "plain": (10, 16384, ""),
    "gives-leftovers": (10, 16384, GIVES),
    "keeps-leftovers": (10, 16384, OF_THREE_CLAIMS),
    "no-cores": (4, 4096, rendered(OF_NO_CORES)),
    "limited": (10, 16384, BY_CORES),
    "wide": (30, 16384, BY_CORES),
    "threads": (8, 8000, rendered_example("fixed-claims")),
}
GROUPS = {
    # group of quota 1: access point and node of its two jobs, how many of them run
    "kept": (WHOLE, "by-cores", 1),
    "split": (SPLITTING, "by-cores", 2),
    "plain_split": (SPLITTING, "plain", 2),
    "plain_kept": (WHOLE, "plain", 1),
}
JOBS: Mapping[str, list[Jobs]] = {
    SPLITTING: [
        Jobs("keeps-leftovers", 8),
        Jobs("limited", 6, user="passes", limit="license"),
    ],
    WHOLE: [
        Jobs("gives-leftovers", 8),
        Jobs("no-cores", 8),
        Jobs("wide", 30, user="many"),
    ],
}
MOST_RUNNING = 8 + (8 + 6 + 30) + sum(count for _, _, count in GROUPS.values())
"""Jobs that may run but for those of `passes`: six that take no cores, `LIMIT` of one limit."""


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(f"{node}.example.org", cores, memory_mib, None, config)
            for node, (cores, memory_mib, config) in NODES.items()
        ),
        access_points=(SPLITTING, WHOLE),
        access_config="CLAIM_RECYCLING_CONSIDER_LIMITS = False\n",
        central_config=f"{pools.NEGOTIATOR_LOGS_MATCHES}GROUP_ACCEPT_SURPLUS = False\n"
        f"LICENSE_LIMIT = {LIMIT}\n",
        groups=dict.fromkeys(GROUPS, 1),
    )
    with open_box(spec) as running:
        pools.forbid_leftovers(running)
        yield running


class Seen(NamedTuple):
    """Cycles since the jobs came, and jobs and slots after them."""

    cycles: list[Cycle]
    slots: Mapping[str, Counter[tuple[int, int]]]
    """``slot1@wn`` -> (cores, MiB) of its dynamic slots."""
    free_cores: Mapping[str, int]
    """Node -> Cpus of its partitionable slot."""
    running: Mapping[str, int]
    """Group -> jobs that run."""

    def matches(self, node: str) -> list[int]:
        """Matches of each cycle that matched anything there."""
        counts = [cycle.matches[f"slot1@{node}"] for cycle in self.cycles]
        return [count for count in counts if count]

    def claims(self, node: str) -> int:
        """Dynamic slots of the node."""
        return self.slots[f"slot1@{node}"].total()


@pytest.fixture(scope="module")
def seen(box: Box) -> Seen:
    wanted = {access_point: list(jobs) for access_point, jobs in JOBS.items()}
    for group, (access_point, node, _) in GROUPS.items():
        wanted[access_point].append(Jobs(node, 2, group=group))
    with pools.submitted_together(box, wanted) as since:
        pass
    begin = time.monotonic()

    def all_run() -> bool:
        if time.monotonic() > begin + 30:
            list_idle_jobs_again(box, *wanted)
        # A busy startd may refuse the claim of a leftover, whose job the limit then keeps waiting.
        passing = pools.running(box, 'AcctGroupUser == "passes"')
        return passing > LIMIT and pools.running(box) - passing >= MOST_RUNNING

    box.wait_until(all_run, f"{MOST_RUNNING} jobs run, and more than {LIMIT} that pass the limit")
    pools.later_cycles(box, 2)
    rows = pools.rows_of(box, "PartitionableSlot", "Machine", "Cpus")
    free = {machine.partition(".")[0]: int(float(cores)) for machine, cores in rows}
    running = {group: pools.running(box, f'AcctGroup == "{group}"') for group in GROUPS}
    return Seen(pools.cycles(box, since), pools.dynamic_slots(box), free, running)


# ---- claims and leftovers


@pytest.mark.semantics
def test_the_access_point_alone_decides_on_leftovers_of_a_slot_with_policy(seen: Seen) -> None:
    """From 23.7.2 on the startd's own setting, True on one node, False on the other, is nothing."""
    whole = seen.matches("gives-leftovers")
    assert whole[0] == max(whole) == CLAIMS
    assert sum(whole) >= 8, "every job was matched"
    assert seen.matches("keeps-leftovers") == [CLAIMS], "the rest were not"
    assert seen.claims("gives-leftovers") == seen.claims("keeps-leftovers") == 8
    without = "slot1@gives-leftovers.example.org has no claim id"
    assert without in "".join(cycle.text for cycle in seen.cycles), "though more would fit"


@pytest.mark.semantics
def test_leftovers_pass_a_concurrency_limit_where_the_schedd_does_not_consider_limits(
    seen: Seen,
) -> None:
    """CLAIM_RECYCLING_CONSIDER_LIMITS, True by default, is about leftovers too."""
    assert seen.matches("limited") == [LIMIT]
    assert seen.claims("limited") > LIMIT


@pytest.mark.semantics
def test_a_claim_of_no_cores_takes_one_from_the_startd_beyond_what_there_is(seen: Seen) -> None:
    """The negotiator matches by the policy; the startd gives each a core, to less than none."""
    assert seen.matches("no-cores")[0] == 8
    assert seen.slots["slot1@no-cores"] == Counter({(1, 512): 6}), "4 cores"
    assert seen.free_cores["no-cores"] < 0


@pytest.mark.semantics
def test_jobs_that_a_schedd_offers_in_a_cycle_are_limited_in_later_versions(
    seen: Seen, pool_version: Version
) -> None:
    """MAX_CONCURRENT_UPLOADS_PER_USER: a fifth of MAX_CONCURRENT_UPLOADS."""
    most = 20 if holds(OFFERS_FEWER_JOBS, pool_version) else 30
    assert seen.matches("wide")[0] == most
    assert seen.claims("wide") == 30


# ---- quotas


@pytest.mark.parametrize("group", GROUPS)
def test_quota_of_one_core_lets_one_job_run_and_leftovers_pass_it(seen: Seen, group: str) -> None:
    """The access point decides; the startd's own setting, False on the node, does not count."""
    assert seen.running[group] == GROUPS[group][2]


def test_without_policy_a_slot_is_matched_once_a_cycle_also_beyond_the_quota(seen: Seen) -> None:
    """A quota below the weight of every slot starves nobody: a submitter may round up once."""
    assert seen.matches("plain") == [1, 1], "one for each group and access point"


# ---- threads


def threads(box: Box, number: int) -> None:
    box.write_config(CENTRAL, f"NEGOTIATOR_NUM_THREADS = {number}\n")
    box.reconfig(CENTRAL)


@pytest.mark.semantics
def test_with_threads_jobs_are_asked_for_what_they_request_and_not_for_what_they_take(
    box: Box,
) -> None:
    """Four jobs of 2000 MiB fit by the policy, two by what they request.

    No two jobs are alike: what is alike is matched from a list, without threads.
    """
    threads(box, 2)
    jobs = [Jobs("threads", 1, memory_mib=5000 + number) for number in range(4)]
    with pools.submitted_together(box, {WHOLE: jobs}):
        pass
    box.wait_until(lambda: pools.running(box) == 2, "two jobs run")
    pools.later_cycles(box, 2)
    assert pools.running(box) == 2
    threads(box, 1)
    box.wait_until(lambda: pools.running(box) == 4, "all four run")
