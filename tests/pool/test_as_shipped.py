"""The loop on a pool as HTCondor ships it: its intervals, its security, its benchmarks.

The negotiator comes every 60 s, and a node on which nothing happens sends its ad every 300 s: START
in the collector's copy must stay that of the startd all the while, or jobs are matched and refused.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bench import as_shipped_pool as as_shipped
from bench.as_shipped_pool import Watch
from poolbox import Box
from tests.pool.sharectl_command import Sharectl

pytestmark = [pytest.mark.semantics, pytest.mark.timeout(3600)]
SPEC = as_shipped.SPEC
GROUPS = {"alice": 160.0, "cms": 160.0}
QUIET_SECONDS = 150.0
"""Longer than a node's job_ctl may be silent (SHARECTL_JOB_CTL_STALE_SECONDS, 120)."""
LATEST_SECONDS = 1200.0
"""Longest wait for anything; what takes how long is measured by bench/as_shipped.py."""


def copies_seconds(box: Box) -> dict[str, float]:
    """Node -> age of the collector's copy of its slot."""
    query = ["condor_status", "-constraint", "PartitionableSlot", "-af", "Machine", "MyCurrentTime"]
    rows = [line.split() for line in box.run(query).stdout.splitlines()]
    return {machine: time.time() - float(made_at) for machine, made_at in rows}


def runs(box: Box, group: str) -> set[str]:
    jobs = box.jobs(f'JobStatus == 2 && AcctGroup == "{group}"', ("RemoteHost",))
    return {job["RemoteHost"].partition("@")[2] for job in jobs if "RemoteHost" in job}


def test_a_target_acts_and_is_withdrawn_and_no_stale_copy_lets_a_job_be_refused(
    pool: Box, tmp_path: Path
) -> None:
    box = pool  # with its last jobs it ends: until they are gone minutes would pass
    first, second = box.spec.access_points
    small = as_shipped.NODES * as_shipped.NODE_CORES
    box.submit(as_shipped.jobs("alice", 1, small, 40, 60), first)
    box.wait_until(lambda: len(runs(box, "alice")) == as_shipped.NODES, "alice has all nodes", 600)
    box.submit(as_shipped.jobs("cms", 8, as_shipped.NODES, 3000, 3000), second)
    watch = Watch.start(box, tmp_path, groups={g: {"pledge_hs06": p} for g, p in GROUPS.items()})
    assert watch.cycle().exit_code == 0, watch.cycles[-1].errors
    nodes = {effect.node for effect in watch.effects}
    assert nodes, watch.cycles[-1].record
    # The configuration does not name lhcb: nobody helps it, and it goes where START lets it. Its
    # jobs have two cores, because grace keeps single-core jobs from idle nodes.
    box.submit(as_shipped.jobs("lhcb", 2, small, 3000, 3000), first)

    began, quiet = time.monotonic(), set[str]()
    while not (quiet and runs(box, "cms")):
        assert time.monotonic() - began < LATEST_SECONDS, (copies_seconds(box), watch.effects)
        watch.watch(as_shipped.LOOK_SECONDS)
        aged = {name for name, age in copies_seconds(box).items() if age > QUIET_SECONDS}
        for effect in watch.effects:
            if effect.node in aged and effect.copy_seconds is not None:
                quiet.add(effect.node)
                assert watch.copies[effect.node].target == effect.target, (
                    "the copy forgot its target"
                )
    at_startd = [effect.startd_seconds for effect in watch.effects]
    print(f"decision to START: {at_startd}; {len(watch.refusals)} of {watch.matches} refused")
    assert None not in at_startd
    assert watch.stale_refusals() == []
    assert watch.caps_passed == []
    assert not nodes & runs(box, "lhcb")

    targets = str(box.shared_directory / "sharectl.txt")
    Sharectl(box, tmp_path).run("disable", "--reason", "test", publish=[{"file": targets}])
    watch.expect({"targets": [], "generated_at": time.time()})
    withdrawn = [effect for effect in watch.effects if not effect.target]
    assert {effect.node for effect in withdrawn} == nodes
    began = time.monotonic()
    while None in [effect.startd_seconds for effect in withdrawn]:
        assert time.monotonic() - began < LATEST_SECONDS, withdrawn
        watch.watch(as_shipped.EFFECT_LOOK_SECONDS)
    # Jobs of cms may have filled the nodes that had targets.
    box.run(["condor_rm", "-constraint", 'AcctGroup == "cms"'], host=second)
    box.wait_until(lambda: nodes & runs(box, "lhcb"), "lhcb starts where it may", LATEST_SECONDS)
