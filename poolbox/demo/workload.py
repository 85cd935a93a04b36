"""The jobs of the scenario: the endless small ones and the waiting large ones."""

from __future__ import annotations

from pathlib import Path

from poolbox import Box
from poolbox.demo import pictures, scenario

HELD_BACK_JOBS_EACH = 500
HELPED_JOBS_EACH = 12
FILL_DEADLINE_SECONDS = 120.0
EXECUTE_EVENT = "001 ("


def saturate(box: Box) -> None:
    """Fill every core with small jobs, then queue large ones behind more small ones."""
    # In two portions, so that both access points get their part of the cores: the first to ask
    # would have them all.
    share = scenario.POOL_CORES // len(box.spec.access_points)
    _submit_small(box, share)
    box.wait_until(
        lambda: _each_runs(box, share // 2),
        "small jobs of both access points run",
        FILL_DEADLINE_SECONDS,
    )
    _submit_small(box, HELD_BACK_JOBS_EACH)
    box.wait_until(
        lambda: _full(box), "the small jobs hold nearly every core", FILL_DEADLINE_SECONDS
    )
    for access_point in box.spec.access_points:
        large = scenario.jobs(
            scenario.HELPED,
            scenario.MULTICORE_CORES,
            HELPED_JOBS_EACH,
            scenario.LONG_SLEEP,
            extra=f"log = {_event_log(box, access_point)}",
        )
        box.submit(large, access_point)


def large_jobs_started(box: Box) -> int:
    """How many times a large job was started so far, as the jobs' event logs say."""
    return sum(
        _event_log(box, access_point).read_text().count(f"\n{EXECUTE_EVENT}")
        for access_point in box.spec.access_points
        if _event_log(box, access_point).exists()
    )


def _event_log(box: Box, access_point: str) -> Path:
    return box.shared_directory / f"events-{access_point}.log"


def _submit_small(box: Box, count: int) -> None:
    for access_point in box.spec.access_points:
        box.submit(scenario.jobs(scenario.HELD_BACK, 1, count, scenario.SHORT_SLEEP), access_point)


def _each_runs(box: Box, count: int) -> bool:
    names = box.spec.access_points
    return all(len(box.jobs("JobStatus == 2", ("ClusterId",), name)) >= count for name in names)


def _full(box: Box) -> bool:
    held = pictures.cores_by_group(pictures.look(box))[scenario.HELD_BACK]
    return held >= scenario.POOL_CORES - 2  # at any moment one or two are between two jobs
