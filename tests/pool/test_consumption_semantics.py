"""Semantics of HTCondor that `sharectl consumption` relies on: docs/consumption-reference.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from poolbox import BoxSpec, ExecutePoint
from tests.pool import consumption_pools as pools
from tests.pool.conftest import OpenBox
from tests.pool.consumption_pools import SPLITTING, WHOLE, Cycle, Jobs, rendered, rendered_example

pytestmark = pytest.mark.semantics

LIMIT, CLAIMS = 3, 3
MOST_OFFERED = {"trixie": 30, "forky": 20}
"""Suite -> jobs of one submitter that a schedd offers in a cycle, of 30."""
OF_THREE_CLAIMS = rendered(
    f"""
startd:
  model: minimum_charge
  assets: {{cpus: {{charge: 1}}, memory: {{charge: 128}}, disk: {{charge: 128}}}}
  num_claims: {CLAIMS}
"""
)
OF_NO_CORES = rendered(
    """
startd:
  model: expressions
  assets: {cpus: {always: 0}, memory: {request: true, step: 512},
    disk: {request: true, step: 128}}
  weight: floor(MY.Memory / 512.0)
  num_claims: 8
"""
)
GIVES = f"{OF_THREE_CLAIMS}CLAIM_PARTITIONABLE_LEFTOVERS = True\n"
BY_CORES = rendered_example("cpu-centric")
NODES: Mapping[str, tuple[int, int, str, str, Jobs]] = {
    # node: cores, MiB, configuration, access point, jobs
    "gives-leftovers": (10, 16384, GIVES, WHOLE, Jobs("gives-leftovers", 8)),
    "keeps-leftovers": (10, 16384, OF_THREE_CLAIMS, SPLITTING, Jobs("keeps-leftovers", 8)),
    "no-cores": (4, 4096, OF_NO_CORES, WHOLE, Jobs("no-cores", 8)),
    "limited": (
        *(10, 16384, BY_CORES, SPLITTING),
        Jobs("limited", 6, user="limited", limit="license"),
    ),
    "wide": (30, 16384, BY_CORES, WHOLE, Jobs("wide", 30, user="many")),
}


class Seen(NamedTuple):
    """Cycles since the jobs came, and slots after them."""

    cycles: list[Cycle]
    slots: Mapping[str, Counter[tuple[int, int]]]
    """``slot1@wn`` -> (cores, MiB) of its dynamic slots."""
    free_cores: Mapping[str, int]
    """Node -> Cpus of its partitionable slot."""

    def matches(self, node: str) -> list[int]:
        """Matches of each cycle that matched anything there."""
        counts = [cycle.matches[f"slot1@{node}"] for cycle in self.cycles]
        return [count for count in counts if count]

    def running(self, node: str) -> int:
        """Dynamic slots of the node."""
        return self.slots[f"slot1@{node}"].total()


@pytest.fixture(scope="module")
def seen(open_box: OpenBox) -> Iterator[Seen]:
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(f"{node}.example.org", cores, memory_mib, None, config)
            for node, (cores, memory_mib, config, _, _) in NODES.items()
        ),
        access_points=(SPLITTING, WHOLE),
        access_config="CLAIM_RECYCLING_CONSIDER_LIMITS = False\n",
        central_config=f"{pools.NEGOTIATOR_LOGS_COSTS}LICENSE_LIMIT = {LIMIT}\n",
    )
    with open_box(spec) as box:
        pools.forbid_leftovers(box)
        wanted: dict[str, list[Jobs]] = {SPLITTING: [], WHOLE: []}
        for *_, access_point, jobs in NODES.values():
            wanted[access_point].append(jobs)
        with pools.submitted_together(box, wanted) as since:
            pass
        # All but two of the jobs that take no cores.
        most = sum(jobs.count for *_, jobs in NODES.values()) - 2
        box.wait_until(lambda: pools.running(box) >= most, 90, f"{most} jobs run")
        pools.later_cycles(box, 2)
        rows = pools.rows_of(box, "PartitionableSlot", "Machine", "Cpus")
        free = {machine.partition(".")[0]: int(float(cores)) for machine, cores in rows}
        yield Seen(pools.cycles(box, since), pools.dynamic_slots(box), free)


def test_the_access_point_alone_decides_on_leftovers_of_a_slot_with_policy(seen: Seen) -> None:
    """From 23.7.2 on the startd's own setting, True on one node, False on the other, is nothing."""
    whole = seen.matches("gives-leftovers")
    assert whole[0] == max(whole) == CLAIMS
    assert sum(whole) >= 8, "every job was matched"
    assert seen.matches("keeps-leftovers") == [CLAIMS], "the rest were not"
    assert seen.running("gives-leftovers") == seen.running("keeps-leftovers") == 8


def test_leftovers_pass_a_concurrency_limit_where_the_schedd_does_not_consider_limits(
    seen: Seen,
) -> None:
    """CLAIM_RECYCLING_CONSIDER_LIMITS, True by default, is about leftovers too."""
    assert seen.matches("limited") == [LIMIT]
    assert seen.running("limited") == 6


def test_a_claim_of_no_cores_takes_one_from_the_startd_beyond_what_there_is(seen: Seen) -> None:
    """The negotiator matches by the policy; the startd gives each a core, to less than none."""
    assert seen.matches("no-cores")[0] == 8
    assert seen.slots["slot1@no-cores"] == Counter({(1, 512): 6}), "4 cores"
    assert seen.free_cores["no-cores"] < 0


def test_jobs_that_a_schedd_offers_in_a_cycle_are_limited_in_the_later_version(
    seen: Seen, pool_suite: str
) -> None:
    """MAX_CONCURRENT_UPLOADS_PER_USER: a fifth of MAX_CONCURRENT_UPLOADS, since 25.11.0."""
    assert seen.matches("wide")[0] == MOST_OFFERED[pool_suite]
    assert seen.running("wide") == 30
