"""Effects of consumption policies of `sharectl consumption render` on real daemons.

Three rounds of jobs: slots are filled in one cycle; quotas, concurrency limits and two access
points; costs and usage. Whatever a policy is said to do is held against slots without one, or
against an access point that splits leftovers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.condor.ad_files import AdOfFile, parse, text_of
from tests.pool import consumption_pools as pools
from tests.pool.conftest import OpenBox
from tests.pool.consumption_pools import SPLITTING, WHOLE, Cycle, Jobs, rendered_example
from tests.pool.sharectl_command import Sharectl

LIMIT = 3
QUOTA_CORES = 1
MEMORY_CENTRIC = """\
startd:
  model: expressions
  assets:
    cpus: {request: true}
    memory: {request: true, step: 512}
    disk: {request: true, step: 128}
  weight: floor(MY.Memory / 512.0)
"""
THREE_CLAIMS = """\
startd:
  model: minimum_charge
  assets:
    cpus: {charge: 1}
    memory: {charge: 128}
    disk: {charge: 128}
  num_claims: 3
"""
THREE_TYPES = "NUM_SLOTS = 3\n"
NODES: Mapping[str, tuple[int, int, str]] = {
    # node: cores, MiB, configuration
    "by-cores": (10, 16384, rendered_example("cpu-centric")),
    "by-memory": (10, 1903, pools.rendered(MEMORY_CENTRIC)),
    "by-both": (10, 4096, rendered_example("multi-centric")),
    "three-types": (16, 8192, THREE_TYPES + rendered_example("mixed-pool")),
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
        central_config=pools.NEGOTIATOR_LOGS_COSTS
        + f"GROUP_ACCEPT_SURPLUS = False\nLICENSE_LIMIT = {LIMIT}\n",
        groups=dict.fromkeys(GROUPS, QUOTA_CORES),
    )
    with open_box(spec) as running:
        pools.forbid_leftovers(running)
        yield running


# ---- one cycle fills a slot


@dataclass(frozen=True)
class Filled:
    """More jobs than fit, everywhere, submitted before the first cycle."""

    cycle: Cycle
    slots: Mapping[str, Counter[tuple[int, int]]]
    """``slot1@wn`` -> (cores, MiB) of its dynamic slots."""


DEMANDS: Mapping[str, tuple[Jobs, Mapping[str, int], Mapping[str, Counter[tuple[int, int]]]]] = {
    # node: jobs, matches of the first cycle by slot, dynamic slots of each
    "by-cores": (
        Jobs("by-cores", 15),
        {"slot1@by-cores": 10},
        {"slot1@by-cores": Counter({(1, 32): 10})},
    ),
    "by-memory": (
        Jobs("by-memory", 5),
        {"slot1@by-memory": 3},
        {"slot1@by-memory": Counter({(1, 512): 3})},
    ),
    "by-both": (
        Jobs("by-both", 12, memory_mib=512),
        {"slot1@by-both": 8},
        {"slot1@by-both": Counter({(1, 512): 8})},
    ),
    # Eight jobs: all find an id within three cycles.
    "three-claims": (Jobs("three-claims", 8), {"slot1@three-claims": 3}, {}),
    # The third type has no policy, and the rest of its four cores are left to later cycles.
    "three-types": (
        Jobs("three-types", 20),
        {"slot1@three-types": 8, "slot2@three-types": 4, "slot3@three-types": 1},
        {
            "slot1@three-types": Counter({(1, 32): 8}),
            "slot2@three-types": Counter({(1, 1024): 4}),
        },
    ),
    "plain": (Jobs("plain", 15), {"slot1@plain": 1}, {}),
}


@pytest.fixture(scope="module")
def filled(box: Box) -> Filled:
    with pools.submitted_together(
        box, {WHOLE: [wanted for wanted, _, _ in DEMANDS.values()]}
    ) as since:
        pass
    cycle = pools.first_cycle(box, since)

    def made() -> bool:
        found = pools.dynamic_slots(box)
        return all(
            found.get(name, Counter()).total() >= wanted.total()
            for _, _, slots in DEMANDS.values()
            for name, wanted in slots.items()
        )

    box.wait_until(made, 60, "all that was matched in the first cycle runs")
    pools.later_cycles(box, 1)
    return Filled(cycle, pools.dynamic_slots(box))


@pytest.mark.parametrize("node", DEMANDS)
def test_one_cycle_matches_what_fits_and_without_policy_one_job(filled: Filled, node: str) -> None:
    """Ten of fifteen jobs on ten cores; three of 512 MiB on 1903 MiB; three by claim ids."""
    _, wanted, _ = DEMANDS[node]
    seen = {
        slot: count for slot, count in filled.cycle.matches.items() if slot.endswith(f"@{node}")
    }
    assert seen == wanted


@pytest.mark.parametrize("node", [node for node, (_, _, slots) in DEMANDS.items() if slots])
def test_dynamic_slots_have_what_the_policy_takes(filled: Filled, node: str) -> None:
    """And no cycle after the first one makes more of them."""
    _, _, wanted = DEMANDS[node]
    assert {slot: filled.slots[slot] for slot in wanted} == wanted


def test_without_claim_ids_a_slot_is_not_matched_though_more_would_fit(filled: Filled) -> None:
    assert "slot1@three-claims.example.org has no claim id" in filled.cycle.text
    assert filled.cycle.text.count("has no claim id") == 1, "the others had one for each match"


# ---- quotas, limits, access points


@dataclass(frozen=True)
class Shared:
    """Cycles since the jobs came, and what runs after the last of them."""

    cycles: list[Cycle]
    running: Mapping[str, int]


@pytest.fixture(scope="module")
def shared(box: Box) -> Shared:
    wanted: dict[str, list[Jobs]] = {
        SPLITTING: [Jobs("by-memory", 1, user="both")],
        WHOLE: [
            Jobs("by-memory", 2, user="both"),
            Jobs("by-both", 6, user="limited", limit="license"),
        ],
    }
    for group, (access_point, node, _) in GROUPS.items():
        wanted[access_point].append(Jobs(node, 2, group=group))
    with pools.submitted_together(box, wanted) as since:
        pass
    allowed = sum(count for _, _, count in GROUPS.values()) + LIMIT + 3
    box.wait_until(lambda: pools.running(box) >= allowed, 60, "whatever may run runs")
    pools.later_cycles(box, 2)
    counted = {
        **{group: pools.running(box, f'AcctGroup == "{group}"') for group in GROUPS},
        "limited": pools.running(box, 'AcctGroupUser == "limited"'),
        **{access: pools.running(box, 'AcctGroupUser == "both"', access) for access in wanted},
    }
    return Shared(pools.cycles(box, since), counted)


@pytest.mark.parametrize("group", GROUPS)
def test_quota_of_one_core_lets_one_job_run_and_leftovers_pass_it(
    shared: Shared, group: str
) -> None:
    """A policy keeps the quota where the access point splits nothing; where it does, both run.

    Both versions did: the startd's own CLAIM_PARTITIONABLE_LEFTOVERS, False on the node with
    policy, does not count.
    """
    assert shared.running[group] == GROUPS[group][2]


def test_quota_below_the_weight_of_every_slot_starves_nobody(shared: Shared) -> None:
    """The seed's HTCondor ran neither without policy; this one rounds up without usage."""
    assert shared.running["plain_kept"] == 1
    assert sum(cycle.matches["slot1@plain"] for cycle in shared.cycles) == 2, (
        "one for each of the two groups"
    )


def test_concurrency_limit_holds_among_the_jobs_of_one_cycle(shared: Shared) -> None:
    first = next(cycle for cycle in shared.cycles if cycle.matches["slot1@by-both"])
    assert first.matches["slot1@by-both"] == shared.running["limited"] == LIMIT


def test_one_slot_serves_two_access_points_in_one_cycle(shared: Shared) -> None:
    first = next(cycle for cycle in shared.cycles if cycle.matches["slot1@by-memory"])
    assert first.matches["slot1@by-memory"] == 3
    assert (shared.running[SPLITTING], shared.running[WHOLE]) == (1, 2)


def test_without_policy_a_slot_serves_one_access_point_a_cycle(shared: Shared) -> None:
    assert [
        cycle.matches["slot1@plain"] for cycle in shared.cycles if cycle.matches["slot1@plain"]
    ] == [1, 1]


# ---- costs


SIZES: Mapping[str, list[tuple[int, int]]] = {
    "by-cores": [(1, 1), (3, 1), (2, 1)],
    "by-memory": [(1, 600), (1, 100)],
    "by-both": [(1, 512), (1, 512), (2, 1), (2, 1)],
}
"""Node -> (cores, MiB) of the jobs of its user, who is called as the node is."""


@dataclass(frozen=True)
class Priced:
    """What was predicted, and what the accountant then said."""

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
    """Node -> cost of each of its jobs, one after the other, by the pool's own ads."""
    slots = parse(box.run(["condor_status", "-long"]).stdout, "slots")
    queue = parse(box.run(["condor_q", "-name", WHOLE, "-allusers", "-long"]).stdout, "jobs")
    jobs = {
        node: [ad for ad in queue if text_of(ad.attributes, "AcctGroupUser") == node]
        for node in SIZES
    }
    found: dict[str, list[float]] = {node: [] for node in SIZES}
    for turn in range(max(map(len, SIZES.values()))):
        given = []
        for name, ads in (
            ("slots", slots),
            ("jobs", [of_node[turn] for of_node in jobs.values() if turn < len(of_node)]),
        ):
            path = folder / f"{name}.{turn}"
            path.write_text("\n\n".join(map(as_long, ads)))
            given += [f"--{name}", str(path)]
        told = Sharectl(box, folder).json("consumption", "cost", *given)
        for match in told["matches"]:
            if not match["refused"]:
                (name,) = told["slots"][match["slots"]]["names"]
                found[name.removeprefix("slot1@").partition(".")[0]].append(match["cost"])
                slots = [after(slot, name, match["remaining"]) for slot in slots]
    return found


def as_long(ad: AdOfFile) -> str:
    return "\n".join(f"{name} = {text}" for name, text in ad.attributes.items())


def after(slot: AdOfFile, name: str, remaining: Mapping[str, float]) -> AdOfFile:
    """The slot with what remains, if it is the one of that name."""
    if text_of(slot.attributes, "Name") != name:
        return slot
    left = {asset: str(amount) for asset, amount in remaining.items()}
    return AdOfFile(slot.place, {**slot.attributes, **left})


@pytest.mark.parametrize("node", SIZES)
def test_predicted_costs_are_those_of_the_negotiator_and_of_the_accountant(
    priced: Priced, node: str
) -> None:
    """By cores, by memory and by both: two jobs cost less than their cores, two more."""
    assert len(priced.predicted[node]) == len(SIZES[node])
    logged = {
        cost: count for (slot, cost), count in priced.cycle.costs.items() if slot == f"slot1@{node}"
    }
    assert logged == Counter(priced.predicted[node])
    assert priced.charged[f"{node}@example.org"] == sum(priced.predicted[node])


def test_from_the_next_cycle_on_usage_is_the_weight_of_the_dynamic_slots(priced: Priced) -> None:
    """Costs are forgotten: a weight that is no sum over claims then differs."""
    for node in SIZES:
        assert priced.later[f"{node}@example.org"] == priced.weights[node]
    assert priced.weights["by-cores"] == priced.charged["by-cores@example.org"] == 6
    assert priced.weights["by-both"] == 4 < priced.charged["by-both@example.org"] == 6
