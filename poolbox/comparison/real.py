"""A strategy on a real pool: submit the jobs, run sharectl's cycles, read the event log."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable
from pathlib import Path

from poolbox import Box
from poolbox.comparison import strategies
from poolbox.comparison.recording import Record, record, runs_of, usage_of
from poolbox.comparison.scenario import FILL_SECONDS, JOB_MEMORY_MIB, Comparison, Job
from poolbox.demo.scenario import TARGETS_FILE
from poolbox.demo.steering import Cycle, run_cycle
from poolbox.errors import PoolboxError
from poolbox.event_log import EXECUTE, TERMINATED, events
from poolbox.root import htcondor_version
from sharectl_lab.scenarios.strategies import Strategy

MOST_FILL_SECONDS = 300.0
FULL_RATIO = 0.95
"""Cores that are held, as part of all, when the pool counts as full."""
LOOK_SECONDS = 0.5
JOBS = """\
executable = /bin/sleep
transfer_executable = False
arguments = $(run_seconds)
request_cpus = {job.cores}
request_memory = {memory_mib}
request_disk = 1024
accounting_group = {job.group}
accounting_group_user = {job.group}
log = {log}
queue run_seconds from (
{lives}
)
"""


def run(comparison: Comparison, strategy: Strategy, suite: str) -> Record:
    """Record of a strategy on a pool that is started for it, and gone afterwards.

    Raises PoolboxError if the pool does not get full.
    """
    deployed = strategies.deployment(comparison, strategy, suite)
    with Box(deployed.spec) as box:
        pool = RealPool(box, comparison, strategy, deployed)
        pool.work()
        runs = runs_of(pool.log, pool.first_job, pool.began)
    failed = sum(cycle.exit_code != 0 for cycle in pool.cycles)
    usage = usage_of(runs, comparison)
    version = htcondor_version(suite)
    return record(comparison, strategy.name, version, usage, len(pool.cycles), failed)


class RealPool:
    """The jobs of a comparison on a pool, and the cycles of sharectl beside them."""

    def __init__(
        self,
        box: Box,
        comparison: Comparison,
        strategy: Strategy,
        deployed: strategies.Deployment,
    ) -> None:
        self.box = box
        self.comparison = comparison
        self.deployed = deployed
        self.log = box.shared_directory / "events.log"
        self.first_job: dict[int, int] = {}
        """Cluster -> place of its first job in the list."""
        self.cycles: list[Cycle] = []
        self.began = 0.0
        """Unix seconds at which the demand came."""
        self._configuration = self._configured(strategy) if deployed.loop else None

    def work(self) -> None:
        """Fill the pool; let the demand come and switch the strategy on; let the time pass."""
        batches = _batches(self.comparison.jobs)
        filled_from = time.time()
        while self.comparison.jobs[batches[0].start].at < 0:
            self._submit(batches.pop(0))
        while time.time() - filled_from < FILL_SECONDS or not self._is_full():
            if time.time() - filled_from > MOST_FILL_SECONDS:
                raise PoolboxError(
                    f"the pool was not full after {MOST_FILL_SECONDS:g} s\n{self.box.log_tail()}"
                )
            time.sleep(LOOK_SECONDS)
        self.began = next_cycle = time.time()
        self._submit_due(batches)
        for host, text in self.deployed.switched_on.items():
            self.box.write_config(host, text)
            self.box.reconfig(host)
        while time.time() - self.began < self.comparison.seconds:
            self._submit_due(batches)
            if self._configuration and self.deployed.loop and time.time() >= next_cycle:
                next_cycle = time.time() + self.deployed.loop.period_seconds
                self.cycles.append(run_cycle(self.box, self._configuration))
            time.sleep(LOOK_SECONDS)

    def _is_full(self) -> bool:
        started, ended = (len(events(self.log, number)) for number in (EXECUTE, TERMINATED))
        return started - ended >= FULL_RATIO * self.comparison.cores

    def _submit_due(self, batches: list[range]) -> None:
        now = time.time() - self.began
        while batches and self.comparison.jobs[batches[0].start].at <= now:
            self._submit(batches.pop(0))

    def _submit(self, batch: range) -> None:
        jobs = self.comparison.jobs[batch.start : batch.stop]
        lives = "\n".join(f"{job.run_seconds:g}" for job in jobs)
        cluster = self.box.submit(
            JOBS.format(job=jobs[0], memory_mib=JOB_MEMORY_MIB, log=self.log, lives=lives)
        )
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
    for _kind, alike in itertools.groupby(jobs, key=lambda job: (job.at, job.group, job.cores)):
        count = sum(1 for _ in alike)
        batches.append(range(first, first + count))
        first += count
    return batches
