"""A strategy on a real pool: submit the jobs, run sharectl's cycles, read the event log."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from poolbox import Box
from poolbox.comparison import strategies
from poolbox.comparison.recording import Record, figures, runs_of
from poolbox.comparison.scenario import Comparison, Job
from poolbox.demo.scenario import TARGETS_FILE
from poolbox.demo.steering import Cycle, run_cycle
from poolbox.errors import PoolboxError
from poolbox.event_log import EXECUTE, events
from poolbox.root import htcondor_version
from poolbox.spec import SUITES
from sharectl.sim.settings import Loop
from sharectl.sim.strategies import Strategy

FILL_SECONDS = 300.0
FULL_RATIO = 0.9
"""Jobs started, as part of the cores for them, when the pool counts as full: some nodes may be
drained meanwhile."""
LOOK_SECONDS = 0.5
JOBS = """\
executable = /bin/sleep
transfer_executable = False
arguments = $(run_seconds)
request_cpus = {job.cores}
request_memory = {job.memory_mib}
request_disk = 1024
accounting_group = {job.group}
accounting_group_user = {job.group}
log = {log}
queue run_seconds from (
{lives}
)
"""


def run(comparison: Comparison, strategy: Strategy, suite: str = SUITES[0]) -> Record:
    """Record of a strategy on a pool that is started for it, and gone afterwards.

    Raises PoolboxError if the pool does not get full.
    """
    deployed = strategies.deployment(comparison, strategy, suite)
    with Box(deployed.spec) as box:
        pool = RealPool(box, comparison, strategy, deployed.loop)
        pool.work()
        runs = tuple(runs_of(pool.log, pool.first_job, pool.began))
        return Record(
            comparison=comparison.name,
            strategy=strategy.name,
            seed=comparison.seed,
            scale=comparison.scale,
            htcondor=htcondor_version(suite),
            warm_up_seconds=pool.began - pool.filled_from,
            cycles=len(pool.cycles),
            failed_cycles=sum(cycle.exit_code != 0 for cycle in pool.cycles),
            runs=runs,
            figures=figures(runs, comparison),
        )


class RealPool:
    """The jobs of a comparison on a pool, and the cycles of sharectl beside them."""

    def __init__(
        self, box: Box, comparison: Comparison, strategy: Strategy, loop: Optional[Loop]
    ) -> None:
        self.box = box
        self.comparison = comparison
        self.log = box.shared_directory / "events.log"
        self.first_job: dict[int, int] = {}
        """Cluster -> place of its first job in the list."""
        self.cycles: list[Cycle] = []
        self.filled_from = self.began = 0.0
        """Unix seconds of the begin of the warm-up, and of its end."""
        self._open_cores = sum(
            node.cores
            for node in strategies.nodes_of(comparison, strategy)
            if not node.multicore_only
        )
        self._configuration = self._configured(strategy) if loop else None
        self._period_seconds = loop.period_seconds if loop else 0.0
        self._next_cycle = 0.0

    def work(self) -> None:
        """Fill the pool, then let the time pass that counts."""
        batches = _batches(self.comparison.jobs)
        self.filled_from = time.time()
        while batches and self.comparison.jobs[batches[0].start].at < 0:
            self._submit(batches.pop(0))
        while not self._is_full():
            if time.time() - self.filled_from > FILL_SECONDS:
                raise PoolboxError(
                    f"the pool was not full after {FILL_SECONDS:g} s\n{self.box.log_tail()}"
                )
            self._pass_time()
        self.began = time.time()
        while (now := time.time() - self.began) < self.comparison.seconds:
            while batches and self.comparison.jobs[batches[0].start].at <= now:
                self._submit(batches.pop(0))
            self._pass_time()

    def _pass_time(self) -> None:
        """Wait a moment, or run a cycle that is due."""
        if self._configuration and time.time() >= self._next_cycle:
            self._next_cycle = time.time() + self._period_seconds
            self.cycles.append(run_cycle(self.box, self._configuration))
        time.sleep(LOOK_SECONDS)

    def _is_full(self) -> bool:
        if time.time() - self.filled_from < self.comparison.warm_up_seconds:
            return False
        return len(events(self.log, EXECUTE)) >= FULL_RATIO * self._open_cores

    def _submit(self, batch: range) -> None:
        jobs = self.comparison.jobs[batch.start : batch.stop]
        lives = "\n".join(f"{job.run_seconds:g}" for job in jobs)
        cluster = self.box.submit(JOBS.format(job=jobs[0], log=self.log, lives=lives))
        self.first_job[cluster] = batch.start

    def _configured(self, strategy: Strategy) -> Path:
        directory = self.box.shared_directory / "central"
        directory.mkdir()
        targets = self.box.shared_directory / TARGETS_FILE
        path = directory / "sharectl.yaml"
        path.write_text(
            json.dumps(
                strategies.sharectl_configuration(self.comparison, strategy, directory, targets)
            )
        )
        return path


def _batches(jobs: Iterable[Job]) -> list[range]:
    """Places of jobs that are submitted together: neighbours that differ in run time alone."""
    batches = []
    first = 0
    for _kind, alike in itertools.groupby(
        jobs, key=lambda job: (job.at, job.group, job.cores, job.memory_mib)
    ):
        count = sum(1 for _ in alike)
        batches.append(range(first, first + count))
        first += count
    return batches
