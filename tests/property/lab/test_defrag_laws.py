"""Laws of condor_defrag in the twin."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from sharectl_lab.twin.defrag import Defragmenter, drains_at
from sharectl_lab.twin.look import EPOCH
from sharectl_lab.twin.settings import Defrag
from tests.steered import FakeTwin, fill, kind, node

KINDS = (kind("alice"), kind("cms", 8))
KNOBS = st.builds(
    Defrag,
    interval_seconds=st.sampled_from([60.0, 600.0, 3600.0]),
    machines_per_hour=st.sampled_from([1.0, 7.0, 60.0, 500.0]),
    max_concurrent=st.sampled_from([-1, 0, 1, 3]),
    max_whole=st.sampled_from([-1, 0, 2]),
    whole_cores=st.sampled_from([None, 8]),
    rank=st.sampled_from(["badput", "cores-to-free"]),
    retirement_seconds=st.sampled_from([0.0, 2000.0, 1e9]),
)


@settings(max_examples=40, deadline=None)
@given(KNOBS, st.integers(0, 10_000))
def test_drains_stay_within_limits_and_end(knobs: Defrag, seed: int) -> None:
    """No drain begins at a poll that finds as many nodes drained as the limit allows.

    As in HTCondor a poll below the limit may begin more drains than are left of it. Each node that
    is not drained any more was resumed, and each that is drained has jobs.
    """
    twin = FakeTwin([node(number, (8, 16)[number % 2]) for number in range(6)], KINDS)
    fill(twin, Random(seed), (0, 1), most_seconds=5000.0)
    defrag = Defragmenter(twin, knobs, seed)
    interval = int(knobs.interval_seconds)
    twin.run(30_000.0)
    draining: set[str] = set()
    polls: dict[float, int] = {}
    for act in twin.acts:
        if act.name == "drain":
            polls.setdefault(act.at, len(draining))
            assert knobs.max_concurrent < 0 or polls[act.at] < knobs.max_concurrent
            draining.add(act.node)
            at = EPOCH + int(act.at)
            quota = drains_at(at, at - interval, interval, knobs.machines_per_hour)
            assert len(draining) <= polls[act.at] + quota
            assert act.at % knobs.interval_seconds == 0
        elif act.name == "resume":
            draining.remove(act.node)
    assert draining == {twin.nodes[number].spec.name for number in defrag.draining}
    assert all(each.draining == (each.spec.name in draining) for each in twin.nodes)
    assert all(each.claims() for each in twin.nodes if each.draining)
    assert twin.counts["drained_nodes"] == len(twin.acts_of("drain"))


@given(st.floats(0.05, 100.0), st.integers(10, 3600))
def test_a_day_has_as_many_drains_as_the_rate_says(per_hour: float, interval: int) -> None:
    """Over a day the polls' numbers come to the rate, but for rounding and the day's begin."""
    begin = EPOCH - EPOCH % 86_400
    polls = range(begin, begin + 86_400, interval)
    drains = sum(
        drains_at(now, before, interval, per_hour)
        for before, now in zip([begin - interval, *polls], polls)
    )
    assert abs(drains - per_hour * 24) <= 25 + 0.05 * per_hour * 24
