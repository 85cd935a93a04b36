"""Runs of a small scenario with each way to run a pool."""

from __future__ import annotations

from dataclasses import replace

from bench.twin import scaled
from sharectl_lab.scenarios import file
from sharectl_lab.scenarios.strategies import USUAL, read_strategies
from sharectl_lab.study.run import Run, simulate
from sharectl_lab.twin.answers import figures_of
from tests.simulated import SMALL


def test_where_multicore_work_comes_and_goes_live_has_least_error_and_idles_least() -> None:
    """`infn-t1` at a fiftieth for one turn of its multicore work.

    condor_defrag drains nearly as many nodes as live steers.
    """
    small = replace(scaled(file.load("infn-t1"), 0.02), days=4.0)
    defrag = "defrag:machines_per_hour=24:max_concurrent=2:max_whole=8"
    nothing, static, defragged, live = (
        figures_of(simulate(small, read_strategies(name)[0], 1, 4 * 86_400.0))
        for name in ("nothing", "static", defrag, "live")
    )
    for other in (static, defragged):
        assert other.multicore_starts > 1.5 * nothing.multicore_starts, "it makes room"
        assert live.shortfall_rms_ratio < other.shortfall_rms_ratio
        assert live.idle_core_hours < other.idle_core_hours


def test_with_an_equal_start_strategies_act_from_one_pool_on() -> None:
    scenario = file.parse(SMALL, "two-nodes")
    pools: set[tuple[tuple[str, float], ...]] = set()
    later: set[tuple[tuple[str, float], ...]] = set()
    for strategy in read_strategies(",".join(USUAL)):
        run = Run(scenario, strategy, 1, equal_start=True)
        for time, seen in ((run.begin, pools), (run.end, later)):
            run.twin.run(time, before=True)
            claims = [claim for slot in run.twin.slots for claim in slot.claims]
            seen.add(tuple((claim.kind.account, claim.run_until) for claim in claims))
    assert len(pools) == 1 < len(later)
