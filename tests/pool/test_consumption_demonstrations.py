"""Purposes of consumption policies, on real daemons, from rendered snippets.

Three rounds of jobs: slots are filled in one cycle; quotas, concurrency limits and two access
points; costs and usage. Each claim is held against slots without a policy, or against an access
point that splits leftovers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.condor.ad_files import AdOfFile, parse, text_of
from tests.pool import consumption_pools as pools
from tests.pool.conftest import OpenBox
from tests.pool.consumption_pools import SPLITTING, WHOLE, Cycle, Jobs, rendered_example
from tests.pool.sharectl_command import Sharectl

LIMIT = 3
MEMORY_CENTRIC = """
startd:
  model: expressions
  assets: {cpus: {request: true}, memory: {request: true, step: 512},
    disk: {request: true, step: 128}}
  weight: floor(MY.Memory / 512.0)
"""
THREE_CLAIMS = """
startd:
  model: minimum_charge
  assets: {cpus: {charge: 1}, memory: {charge: 128}, disk: {charge: 128}}
  num_claims: 3
"""
NODES: Mapping[str, tuple[int, int, str]] = {
    # node: cores, MiB, configuration
    "by-cores": (10, 16384, rendered_example("cpu-centric")),
    "by-memory": (10, 1903, pools.rendered(MEMORY_CENTRIC)),
    "by-both": (10, 4096, rendered_example("multi-centric")),
    "three-types": (16, 8192, f"NUM_SLOTS = 3\n{rendered_example('mixed-pool')}"),
    "three-claims": (10, 16384, pools.rendered(THREE_CLAIMS)),
    "plain": (10, 16384, ""),
}
GROUPS = {
    # group of quota 1: access point and node of its two jobs, how many of them run
    "kept": (WHOLE, "by-cores", 1),
    "split": (SPLITTING, "by-cores", 2),
    "plain_split": (SPLITTING, "plain", 2),
    "plain_kept": (WHOLE, "plain", 1),
}


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(f"{node}.example.org", cores, memory_mib, None, config)
            for node, (cores, memory_mib, config) in NODES.items()
        ),
        access_points=(SPLITTING, WHOLE),
        access_config=pools.ALL_AT_ONCE,
        central_config=f"{pools.NEGOTIATOR_LOGS_COSTS}GROUP_ACCEPT_SURPLUS = False\n"
        f"LICENSE_LIMIT = {LIMIT}\n",
        groups=dict.fromkeys(GROUPS, 1),
    )
    with open_box(spec) as running:
        pools.forbid_leftovers(running)
        yield running


# ---- one cycle fills a slot

DEMANDS: Mapping[str, tuple[Jobs, list[int], list[tuple[int, int]]]] = {
    # node: jobs, matches of its slots in the first cycle, (cores, MiB) of a dynamic slot of each
    "by-cores": (Jobs("by-cores", 15), [10], [(1, 32)]),
    "by-memory": (Jobs("by-memory", 5), [3], [(1, 512)]),
    "by-both": (Jobs("by-both", 12, memory_mib=512), [8], [(1, 512)]),
    # Eight jobs: all find an id within three cycles.
    "three-claims": (Jobs("three-claims", 8), [3], []),
    # The third type has no policy, and the rest of its four cores are left to later cycles.
    "three-types": (Jobs("three-types", 20), [8, 4, 1], [(1, 32), (1, 1024)]),
    "plain": (Jobs("plain", 15), [1], []),
}


class Filled(NamedTuple):
    """More jobs than fit, everywhere, submitted before the first cycle."""

    cycle: Cycle
    slots: Mapping[str, Counter[tuple[int, int]]]
    """``slot1@wn`` -> (cores, MiB) of its dynamic slots."""


@pytest.fixture(scope="module")
def filled(box: Box) -> Filled:
    jobs = [jobs for jobs, _, _ in DEMANDS.values()]
    with pools.submitted_together(box, {WHOLE: jobs}) as since:
        pass
    cycle = pools.first_cycle(box, since)
    box.wait_until(
        lambda: pools.running(box) >= cycle.matches.total(), 60, "all that was matched runs"
    )
    pools.later_cycles(box, 1)
    return Filled(cycle, pools.dynamic_slots(box))


@pytest.mark.parametrize("node", DEMANDS)
def test_one_cycle_fills_a_slot_and_without_policy_matches_one_job(
    filled: Filled, node: str
) -> None:
    """No later cycle makes more dynamic slots of a full slot."""
    _, matches, sizes = DEMANDS[node]
    slots = [f"slot{number}@{node}" for number in range(1, len(matches) + 1)]
    assert [filled.cycle.matches[slot] for slot in slots] == matches
    for slot, count, size in zip(slots, matches, sizes):
        assert filled.slots[slot] == Counter({size: count})


def test_without_claim_ids_a_slot_is_not_matched_though_more_would_fit(filled: Filled) -> None:
    assert "slot1@three-claims.example.org has no claim id" in filled.cycle.text
    assert filled.cycle.text.count("has no claim id") == 1, "the others had one for each match"


# ---- quotas, limits, access points


class Shared(NamedTuple):
    """Cycles since the jobs came, and jobs that run after the last of them."""

    cycles: list[Cycle]
    running: Mapping[str, int]

    def first(self, slot: str) -> int:
        """Matches of the slot in the first cycle that matched it."""
        return next(count for cycle in self.cycles if (count := cycle.matches[slot]))


@pytest.fixture(scope="module")
def shared(box: Box) -> Shared:
    limited = Jobs("by-both", 6, user="limited", limit="license")
    wanted: dict[str, list[Jobs]] = {
        SPLITTING: [Jobs("by-memory", 1, user="both")],
        WHOLE: [Jobs("by-memory", 2, user="both"), limited],
    }
    for group, (access_point, node, _) in GROUPS.items():
        wanted[access_point].append(Jobs(node, 2, group=group))
    with pools.submitted_together(box, wanted) as since:
        pass
    allowed = sum(count for _, _, count in GROUPS.values()) + LIMIT + 3
    box.wait_until(lambda: pools.running(box) >= allowed, 60, "whatever may run runs")
    pools.later_cycles(box, 2)
    counts = {group: pools.running(box, f'AcctGroup == "{group}"') for group in GROUPS}
    counts["limited"] = pools.running(box, 'AcctGroupUser == "limited"')
    for access in wanted:
        counts[access] = pools.running(box, 'AcctGroupUser == "both"', access)
    return Shared(pools.cycles(box, since), counts)


@pytest.mark.parametrize("group", GROUPS)
def test_quota_of_one_core_lets_one_job_run_and_leftovers_pass_it(
    shared: Shared, group: str
) -> None:
    """The access point decides; the startd's own setting, False on the node, does not count."""
    assert shared.running[group] == GROUPS[group][2]


def test_without_policy_a_slot_is_matched_once_a_cycle_also_beyond_the_quota(
    shared: Shared,
) -> None:
    """A quota below the weight of every slot starves nobody: a submitter may round up once."""
    counts = [cycle.matches["slot1@plain"] for cycle in shared.cycles]
    assert [count for count in counts if count] == [1, 1], "one for each group and access point"


def test_concurrency_limit_holds_among_the_jobs_of_one_cycle(shared: Shared) -> None:
    assert shared.first("slot1@by-both") == shared.running["limited"] == LIMIT


def test_one_slot_serves_two_access_points_in_one_cycle(shared: Shared) -> None:
    assert shared.first("slot1@by-memory") == 3
    assert (shared.running[SPLITTING], shared.running[WHOLE]) == (1, 2)


# ---- costs

SIZES: Mapping[str, list[tuple[int, int]]] = {
    "by-cores": [(1, 1), (3, 1), (2, 1)],
    "by-memory": [(1, 600), (1, 100)],
    "by-both": [(1, 512), (1, 512), (2, 1), (2, 1)],
}
"""Node -> (cores, MiB) of the jobs of its user, who has its name."""


class Priced(NamedTuple):
    """Predictions, and figures of negotiator and accountant."""

    predicted: Mapping[str, list[float]]
    """Node -> cost of each job."""
    cycle: Cycle
    charged: Mapping[str, float]
    """Node -> usage of its user right after the cycle."""
    later: Mapping[str, float]
    """And one cycle on."""
    weights: Mapping[str, float]
    """Node -> sum of SlotWeight of its dynamic slots."""


@pytest.fixture(scope="module")
def priced(box: Box, tmp_path_factory: pytest.TempPathFactory) -> Priced:
    wanted = [
        Jobs(node, 1, cores, memory_mib, user=node)
        for node, sizes in SIZES.items()
        for cores, memory_mib in sizes
    ]
    with pools.submitted_together(box, {WHOLE: wanted}) as since:
        predicted = costs(box, tmp_path_factory.mktemp("costs"))
    charged = pools.usage_after_one_cycle(box, since, [f"{node}@example.org" for node in SIZES])
    cycle = pools.first_cycle(box, since)
    box.wait_until(lambda: pools.running(box) == len(wanted), 60, "all of them run")
    pools.later_cycles(box, 2)
    return Priced(predicted, cycle, charged, pools.usage(box), pools.dynamic_weights(box))


def costs(box: Box, folder: Path) -> dict[str, list[float]]:
    """Node -> cost of each of its jobs, on the rest that those before it leave, from pool's ads."""
    slots = parse(box.run(["condor_status", "-long"]).stdout, "slots")
    queue = parse(box.run(["condor_q", "-name", WHOLE, "-allusers", "-long"]).stdout, "jobs")
    predicted: dict[str, list[float]] = {node: [] for node in SIZES}
    for ad in queue:
        (folder / "slots").write_text("\n\n".join(map(as_long, slots)))
        (folder / "jobs").write_text(as_long(ad))
        files = ["--slots", str(folder / "slots"), "--jobs", str(folder / "jobs")]
        content = Sharectl(box, folder).json("consumption", "cost", *files)
        (match,) = (match for match in content["matches"] if not match["refused"])
        (name,) = content["slots"][match["slots"]]["names"]
        predicted[name.removeprefix("slot1@").partition(".")[0]].append(match["cost"])
        rest = {asset: str(amount) for asset, amount in match["remaining"].items()}
        slots = [
            AdOfFile(slot.place, {**slot.attributes, **rest})
            if text_of(slot.attributes, "Name") == name
            else slot
            for slot in slots
        ]
    return predicted


def as_long(ad: AdOfFile) -> str:
    return "\n".join(f"{name} = {text}" for name, text in ad.attributes.items())


@pytest.mark.parametrize("node", SIZES)
def test_predicted_costs_are_those_of_the_negotiator_and_of_the_accountant(
    priced: Priced, node: str
) -> None:
    """By cores, by memory and by both: two cost less than their cores, two more than a share."""
    assert len(priced.predicted[node]) == len(SIZES[node])
    logged = Counter(
        float(cost) for slot, cost in priced.cycle.costs.elements() if slot == f"slot1@{node}"
    )
    assert logged == Counter(priced.predicted[node])
    assert priced.charged[f"{node}@example.org"] == sum(priced.predicted[node])


def test_from_the_next_cycle_on_usage_is_the_weight_of_the_dynamic_slots(priced: Priced) -> None:
    """The costs are forgotten: where the weight is no sum over claims, it is another figure."""
    for node in SIZES:
        assert priced.later[f"{node}@example.org"] == priced.weights[node]
    assert priced.weights["by-cores"] == priced.charged["by-cores@example.org"] == 6
    assert priced.weights["by-both"] == 4 < priced.charged["by-both@example.org"] == 6
