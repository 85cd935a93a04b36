"""Laws that hold in the twin whatever jobs come, and whatever acts on its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import fsum
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from sharectl_lab.twin.engine import Setup, Twin
from sharectl_lab.twin.group_quotas import GroupQuota, QuotaTree
from sharectl_lab.twin.pool import Claim, ShapedKind, SimSlot
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.settings import Access, Negotiator
from sharectl_lab.twin.start import SlotTarget, StartKnobs
from sharectl_lab.workload.draw import Arrival, JobKind
from tests.steered import Listed

KINDS = (
    JobKind("alice", "ann", 1, 1000),
    JobKind("alice", "ann", 4, 4000),
    JobKind("cms.prod", "carl", 8, 8000),
    JobKind("cms", "eve", 1, 3000, access_point=1),
    JobKind("strangers", "sam", 2, 100),
    JobKind("alice", "ann", 1, 1000, custom=(("gpus", 1),)),
    JobKind("cms", "carl", 64),
)
NODES = (
    NodeSpec("a", (SlotSpec(16, 24_000, custom={"gpus": 1}),), 10.0),
    NodeSpec("b", (SlotSpec(8, 16_000), SlotSpec(8, 9_000)), 8.5),
    NodeSpec("c", (SlotSpec(4, 4_000),), 12.0, multicore_only=True),
)
CORES = sum(node.cores for node in NODES)
HORIZON = 4000.0


class Action(NamedTuple):
    """Change of a node at a time."""

    at: float
    node: int
    what: str
    helped_cores: int
    cap_cores: int


def listed(rows: list[tuple[int, int, int]]) -> Listed:
    """Jobs of a time, kind and run time; `number_of` tells them apart by the run time."""
    jobs = (
        Arrival(float(at), kind, seconds + number / NUMBERED)
        for number, (at, kind, seconds) in enumerate(sorted(rows))
    )
    return Listed(KINDS, tuple(jobs))


def number_of(run_seconds: float) -> int:
    """Number of a job; sums of times may be less exact."""
    return round(run_seconds * NUMBERED) % NUMBERED


def picky(slot: SimSlot, kind: ShapedKind, now: float, claimed_for: object) -> bool:
    """START of a site: slots that are odd refuse some jobs, and by night all new claims."""
    return (slot.order + kind.cores) % 4 != 0 and (claimed_for is not None or now % 1500 < 1000)


NUMBERED = 1024
arrivals = st.lists(
    st.tuples(st.integers(0, 3000), st.integers(0, len(KINDS) - 1), st.integers(1, 2000)),
    min_size=1,
    max_size=60,
).map(listed)
actions = st.lists(
    st.builds(
        Action,
        st.integers(0, 3500).map(float),
        st.integers(0, len(NODES) - 1),
        st.sampled_from(("target", "no target", "drain", "resume", "evict", "look", "pending")),
        st.sampled_from((1, 4, 8)),
        st.integers(0, 16),
    ),
    max_size=12,
)
setups = st.builds(
    Setup,
    nodes=st.just(NODES),
    pledge_hs06=st.just({"alice": 100.0, "cms": 300.0}),
    negotiator=st.builds(
        Negotiator, slot_weight=st.sampled_from(("cores", "hs06")),
        base_seconds=st.sampled_from((0.0, 5.0)), match_seconds=st.sampled_from((0.0, 7.0)),
        interval_seconds=st.sampled_from((20.0, 60.0)), consider_preemption=st.booleans(),
    ),
    quotas=st.builds(
        lambda surplus, autoregroup, quotas: QuotaTree(
            GroupQuota(name, quota, accept_surplus=surplus, autoregroup=autoregroup)
            for name, quota in quotas.items()
        ),
        st.booleans(), st.booleans(), st.sampled_from(({}, {"alice": 10.0, "cms": 20.0})),
    ),
    site_start=st.sampled_from((None, picky)),
    reads_time=st.booleans(),
    access=st.builds(
        Access,
        claim_worklife_seconds=st.sampled_from((-1.0, 0.0, 300.0, 1200.0)),
        leftovers=st.booleans(),
        consumption_policy=st.booleans(),
    ),
    start=st.builds(
        StartKnobs, enabled=st.booleans(), actuation=st.sampled_from(("live", "cron"))
    ),
    seed=st.integers(0, 3),
)  # fmt: skip


def act(twin: Twin, action: Action) -> None:
    """Change a node."""
    node = twin.nodes[action.node]
    if action.what == "target":
        target = SlotTarget("alice", action.cap_cores, "cms", action.helped_cores, twin.now + 900)
        twin.set_target(node, target)
    elif action.what == "no target":
        twin.set_target(node, None)
    elif action.what == "look":
        for slot in node.slots:
            twin.look(slot)
    elif action.what == "pending":
        twin.set_multicore_pending(action.cap_cores % 2 == 0)
    elif action.what == "evict":
        for claim in node.claims():
            twin.evict(claim)
    else:
        twin.set_draining(node, draining=action.what == "drain")


def run(setup: Setup, jobs: Listed, changes: list[Action]) -> Iterator[Twin]:
    """Twin at each of some times, the changes made."""
    twin = Twin(setup, jobs)
    for change in changes:
        twin.at(change.at, lambda _, change=change: act(twin, change))  # type: ignore[misc]
    for time in range(0, int(HORIZON) + 1, 250):
        twin.run(float(time))
        yield twin


@settings(max_examples=60, deadline=None)
@given(setups, arrivals, actions)
def test_no_core_is_given_twice(setup: Setup, jobs: Listed, changes: list[Action]) -> None:
    """Free and claimed resources of a slot are what the slot has, none below 0."""
    for twin in run(setup, jobs, changes):
        for slot in twin.slots:
            spec, claims = slot.spec, list(slot.claims)
            held, all_of = Counter(slot.free_custom), Counter(spec.custom)
            for claim in claims:
                held.update(dict(claim.kind.custom))
            assert held == all_of
            assert slot.free_cores + sum(claim.cores for claim in claims) == spec.cores
            assert slot.free_memory_mib + sum(claim.memory_mib for claim in claims) == (
                spec.memory_mib
            )
            least = (slot.free_cores, slot.free_memory_mib, *slot.free_custom.values())
            assert min(least) >= 0
            assert all(claim.job.cores <= claim.cores for claim in claims)


@settings(max_examples=60, deadline=None)
@given(setups, arrivals, actions)
def test_no_job_is_lost_or_runs_twice(setup: Setup, jobs: Listed, changes: list[Action]) -> None:
    """Jobs that came are pending, run or have ended, each once, after their whole run time."""
    ended: list[float] = []

    def note(claim: Claim, now: float) -> None:
        # An eviction is announced too.
        if claim.run_until <= now:
            ended.append(claim.run_until - claim.started_at)

    for number, twin in enumerate(run(setup, jobs, changes)):
        if not number:
            twin.on_end.append(note)
        came = [job.run_seconds for job in jobs.jobs if job.at <= twin.now]
        claims = [claim for slot in twin.slots for claim in slot.claims]
        running = [claim.run_until - claim.started_at for claim in claims]
        pending = [seconds for kind in twin.kinds for _, seconds in kind.pending]
        numbers = [number_of(seconds) for seconds in (*pending, *running, *ended)]
        assert sorted(numbers) == [number_of(seconds) for seconds in came]
        done = sum(sum(measure.done.values()) for measure in twin.measures.values())
        assert done == len(ended)
        assert len(pending) == twin.queues.pending == sum(twin.queues.groups_pending.values())
        wanted = {True: 0, False: 0}
        for kind in twin.kinds:
            wanted[kind.placeable] += kind.cores * len(kind.pending)
        assert (twin.idle.wanted, twin.idle.too_large) == (wanted[True], wanted[False])


@settings(max_examples=60, deadline=None)
@given(setups, arrivals, actions)
def test_every_core_second_is_used_or_idle_for_one_cause(
    setup: Setup, jobs: Listed, changes: list[Action]
) -> None:
    """Core-seconds of groups and of the causes of idle cores add up to the pool's."""
    for twin in run(setup, jobs, changes):
        twin.sample(250.0)
        used = fsum(measure.core_seconds for measure in twin.measures.values())
        idle = fsum(twin.idle.seconds.values())
        assert abs(used + idle - CORES * twin.now) < 1e-6 * max(1.0, CORES * twin.now)
        assert min(twin.idle.seconds.values()) >= 0
        assert twin.idle.total == sum(slot.free_cores for slot in twin.slots)
        causes: Counter[str] = Counter()
        for slot in twin.slots:
            assert slot.idle_as in (0, slot.free_cores)
            causes[slot.cause] += slot.idle_as
        assert +causes == +Counter(twin.idle.cores)


@settings(max_examples=60, deadline=None)
@given(setups, arrivals, actions)
def test_the_accountant_charges_what_runs(
    setup: Setup, jobs: Listed, changes: list[Action]
) -> None:
    """Usage of a submitter is the weight of its claims."""
    weight = setup.negotiator.slot_weight
    for twin in run(setup, jobs, changes):
        for kind in twin.kinds:
            held = fsum(
                claim.cores * (1.0 if weight == "cores" else slot.node.spec.hs06_per_core)
                for slot in twin.slots
                for claim in slot.claims
                if claim.kind.submitter == kind.submitter
            )
            used = twin.accountant.usages.get(kind.submitter, 0.0)
            assert abs(used - held) < 1e-6


@settings(max_examples=60, deadline=None)
@given(setups, st.lists(st.integers(1, 900), min_size=30, max_size=60), st.integers(0, 12))
def test_a_live_cap_is_never_passed(setup: Setup, seconds: list[int], cap_cores: int) -> None:
    """While a target stands, the held-back group gets no core above its cap."""
    setup = replace(setup, start=StartKnobs(actuation="live"))
    jobs = Listed(KINDS, tuple(Arrival(0.0, 0, float(time)) for time in seconds))
    twin = Twin(setup, jobs)
    twin.set_target(twin.nodes[0], SlotTarget("alice", cap_cores, "cms", 8, HORIZON))
    (slot,) = twin.nodes[0].slots
    for time in range(0, 3000, 20):
        twin.run(float(time))
        assert sum(claim.cores for claim in slot.claims) <= cap_cores
