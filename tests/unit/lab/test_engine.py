"""Small pools whose jobs, claims and idle cores can be counted by hand."""

from __future__ import annotations

import pytest

from sharectl_lab.twin.engine import Setup, Twin
from sharectl_lab.twin.group_quotas import GroupQuota, QuotaTree
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.settings import Access, Negotiator
from sharectl_lab.twin.start import StartKnobs, is_in_grace, is_seen
from sharectl_lab.workload.draw import Arrival, JobKind
from tests.steered import Listed

ONE, EIGHT = JobKind("alice", "ann", 1, 100), JobKind("cms", "carl", 8, 800)
AT_ONCE = Negotiator(base_seconds=0.0, match_seconds=0.0)
NO_SHARECTL = StartKnobs(enabled=False)


def pool(jobs: Listed, *cores: int, **more: object) -> Twin:
    """Twin of nodes with so many cores."""
    nodes = tuple(
        NodeSpec(f"wn-{number}", (SlotSpec(count, 1000 * count),), 10.0)
        for number, count in enumerate(cores)
    )
    setup = {"negotiator": AT_ONCE, "start": NO_SHARECTL, **more}
    return Twin(Setup(nodes, {"alice": 100.0, "cms": 300.0}, **setup), jobs)  # type: ignore[arg-type]


def same(kind: JobKind, count: int, seconds: float) -> Listed:
    """Jobs that are alike."""
    return Listed((kind,), (Arrival(0.0, 0, seconds),) * count)


def running(twin: Twin) -> list[int]:
    """Jobs of each slot."""
    return [len(slot.claims) for slot in twin.slots]


def done(twin: Twin) -> int:
    """Jobs that have ended."""
    return sum(sum(measure.done.values()) for measure in twin.measures.values())


@pytest.mark.parametrize(
    ("access", "first", "second"),
    [
        pytest.param(Access(), [4, 2], [4, 2], id="the smaller slot first, and filled"),
        pytest.param(Access(leftovers=False), [1, 1], [2, 2], id="a slot once in a cycle"),
        pytest.param(Access(consumption_policy=True), [4, 2], [4, 2], id="several matches"),
    ],
)
def test_slots_are_filled(access: Access, first: list[int], second: list[int]) -> None:
    twin = pool(same(ONE, 6, 1e6), 4, 8, access=access)
    twin.run(1.0)
    assert running(twin) == first
    twin.run(61.0)
    assert running(twin) == second


@pytest.mark.parametrize(("worklife", "ended"), [(0.0, 12), (350.0, 14), (-1.0, 15)])
def test_a_claim_runs_job_after_job_until_it_is_old(worklife: float, ended: int) -> None:
    """Jobs of 100 s, cycles of 60 s: one in 120 s, four in 420 s, or one after the other."""
    twin = pool(same(ONE, 100, 100.0), 1, access=Access(claim_worklife_seconds=worklife))
    twin.run(1500.0)
    assert done(twin) == ended


def test_a_single_core_job_takes_over_the_claim_of_a_multicore_job() -> None:
    kinds = (EIGHT, EIGHT._replace(cores=1, memory_mib=100))
    jobs = Listed(kinds, (Arrival(0.0, 0, 100.0), Arrival(0.0, 1, 1000.0)))
    twin = pool(jobs, 8)
    twin.run(150.0)
    assert running(twin) == [1]
    assert twin.measures["cms"].cores == 8, "seven of them idle"
    guarded = pool(jobs, 8, start=StartKnobs())
    guarded.run(150.0)
    assert guarded.measures["cms"].cores == 0, "START of the snippet refuses it, and grace begins"
    assert guarded.counts["refusals"] == 1


def test_grace_keeps_single_core_jobs_from_a_new_block() -> None:
    kinds = (EIGHT, ONE)
    jobs = Listed(kinds, (Arrival(0.0, 0, 100.0), Arrival(10.0, 1, 1e6)))
    twin = pool(jobs, 8, start=StartKnobs(grace_seconds=300.0))
    twin.run(399.0)
    assert running(twin) == [0]
    assert twin.idle.cores["grace"] == 8
    twin.run(420.0)
    assert running(twin) == [1]


@pytest.mark.parametrize(
    ("actuation", "phase", "starts_at"),
    [("live", 50.0, 480.0), ("cron", 10.0, 480.0), ("cron", 50.0, 420.0)],
)
def test_mc_grace_has_to_see_the_cores_taken(
    actuation: str, phase: float, starts_at: float
) -> None:
    """Cores are free at 100 s, taken at 120 s, and free again at 140 s; grace lasts 300 s."""
    jobs = Listed((EIGHT, ONE), (Arrival(0.0, 0, 100.0), Arrival(110.0, 0, 20.0)))
    jobs = jobs._replace(jobs=(*jobs.jobs, Arrival(150.0, 1, 1e6)))
    twin = pool(jobs, 8, start=StartKnobs(actuation=actuation, grace_seconds=300.0))
    twin.nodes[0].mc_grace_phase = phase
    twin.run(starts_at - 1)
    assert (done(twin), running(twin)) == (2, [0])
    twin.run(starts_at)
    assert running(twin) == [1]


def test_an_evicted_job_begins_again() -> None:
    twin = pool(same(ONE, 1, 500.0), 1)
    twin.run(300.0)
    (claim,) = twin.nodes[0].claims()
    twin.evict(claim)
    twin.run(790.0)
    assert done(twin) == 0
    twin.run(900.0)
    assert done(twin) == 1
    assert (twin.counts["evicted_jobs"], twin.counts["lost_core_seconds"]) == (1, 300.0)


def test_nothing_starts_on_a_node_that_is_drained() -> None:
    twin = pool(same(ONE, 20, 100.0), 4)
    twin.run(10.0)
    twin.set_draining(twin.nodes[0], draining=True)
    twin.run(1000.0)
    assert (done(twin), running(twin)) == (4, [0])
    assert twin.idle.cores["drain"] == 4
    twin.set_draining(twin.nodes[0], draining=False)
    twin.run(1060.0)
    assert running(twin) == [4]


def test_without_surplus_a_group_stays_within_its_quota() -> None:
    quotas = QuotaTree([GroupQuota("alice", 4.0), GroupQuota("cms", 12.0)])
    twin = pool(same(ONE, 50, 1e6), 16, access=Access(consumption_policy=True), quotas=quotas)
    twin.run(500.0)
    assert running(twin) == [4]
    assert twin.idle.cores["quota"] == 12


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (EIGHT, "fragmentation"),
        (EIGHT._replace(cores=64), "unmatchable"),
        (ONE._replace(custom=(("gpus", 1),)), "unmatchable"),
        (ONE._replace(requirements="TARGET.HasNothing"), "unmatchable"),
    ],
)
def test_idle_cores_have_a_cause(kind: JobKind, cause: str) -> None:
    jobs = Listed((ONE, kind), (Arrival(0.0, 0, 1e6),) * 4 + (Arrival(0.0, 1, 1e6),) * 4)
    twin = pool(jobs, 10)
    twin.run(100.0)
    assert running(twin) == [4]
    assert {name: cores for name, cores in twin.idle.cores.items() if cores} == {cause: 6}


def test_idle_cores_that_no_pending_job_asks_for_are_not_wasted() -> None:
    twin = pool(same(ONE._replace(cores=3, memory_mib=0), 1, 1e6), 2, 2, 2)
    twin.run(3600.0)
    assert twin.idle.seconds["unmatchable"] == pytest.approx(3 * 3600.0, rel=0.02)
    assert twin.idle.seconds["no-jobs"] == pytest.approx(3 * 3600.0, rel=0.02)


def test_a_job_waits_from_its_submission_to_its_start() -> None:
    jobs = Listed((ONE,), (Arrival(0.0, 0, 10.0), Arrival(30.0, 0, 10.0), Arrival(50.0, 0, 10.0)))
    twin = pool(jobs, 4)
    twin.run(200.0)
    twin.sample(200.0)
    waits = twin.outcomes()["alice"].waits_by_cores[1]
    assert (waits.jobs, waits.longest_seconds) == (3, 30.0)
    assert waits.mean_seconds == pytest.approx((0 + 30 + 10) / 3)


def test_the_first_figures_are_of_the_time_after_the_warm_up() -> None:
    twin = pool(same(ONE, 8, 1e6), 4)
    twin.run(600.0)
    twin.forget()
    twin.run(1200.0)
    twin.sample(600.0)
    (alice,) = (twin.outcomes()["alice"],)
    assert alice.cores == (4.0,)
    assert alice.power_hs06 == (40.0,)
    assert alice.due_hs06 == (40.0,), "cms, to which three quarters are pledged, has no job"
    assert alice.starts_by_cores == {}


def test_a_sites_start_may_change_with_the_time() -> None:
    """Where START reads the clock, a slot that it refused is looked at again."""

    def by_day(_slot: object, _kind: object, now: float, _claimed_for: object) -> bool:
        return now >= 1000.0

    jobs = same(ONE, 2, 1e6)
    twin = pool(jobs, 4, site_start=by_day, reads_time=True)
    twin.run(999.0)
    assert running(twin) == [0]
    assert twin.idle.cores["start"] == 4
    twin.run(1100.0)
    assert running(twin) == [2]


def test_grace_is_over_at_its_end() -> None:
    """Sums of floats are not exact, and an engine looks at the moment itself."""
    twin = pool(same(ONE, 0, 1.0), 24)
    (slot,) = twin.slots
    for tenth in range(1000):
        slot.room_since = tenth / 10
        end = slot.room_since + StartKnobs().grace_seconds
        assert not is_in_grace(slot, end, StartKnobs())


@pytest.mark.parametrize(
    ("begin", "end", "seen"),
    [(7, 67, True), (8, 67, False), (8, 68, True), (0, 7, False), (0, 8, True), (127, 127, False)],
)
def test_a_periodic_job_sees_what_lasts_until_its_next_look(
    begin: float, end: float, *, seen: bool
) -> None:
    assert is_seen(begin, end, 60, 7) is seen
