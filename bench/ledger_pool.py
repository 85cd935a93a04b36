"""A synthetic pool that goes on from cycle to cycle, for the bench of the ledger."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import pi, sin

from sharectl.control.steering import SEED, steer
from sharectl.cycle.record import target_nodes
from sharectl.model import Node, PendingJobs, RunningJobs, Snapshot, Source, Standing, Target
from sharectl.plan.records import Basis, CycleRecord, as_kept, node_records
from sharectl.plan.waits import EDGES_SECONDS, BinRow, Wait, nodes_of

PERIOD_SECONDS = 1020
SIZES = ((1, 0.62), (8, 0.32), (4, 0.04), (2, 0.02))
"""Cores of a job, and which part of all jobs asks for them."""
NODE_CORES = (40, 56, 64, 64, 96, 128)
LAST_CYCLE_INCOMPLETE = 100
"""One cycle in so many."""


@dataclass
class _Job:
    group: str
    cores: int
    since: int
    until: int
    memory_mib: int


class SyntheticPool:
    """Nodes full of jobs."""

    def __init__(self, nodes: int, groups: int, seed: int) -> None:
        self.dice = random.Random(seed)
        self.groups = [f"group-{number:02}" for number in range(groups)]
        self.pledge_hs06 = {name: 100_000 / (1 + number) for number, name in enumerate(self.groups)}
        self.weights = list(self.pledge_hs06.values())
        self.nodes = [
            Node(
                f"wn-{rack:02}-{place:02}",
                f"wn-{rack:02}-{place:02}.example.org",
                cores,
                round(self.dice.uniform(9, 14), 4),
                controlled=True,
                memory_mib=cores * 4000,
            )
            for number in range(nodes)
            for rack, place in [divmod(number, 40)]
            for cores in [self.dice.choice(NODE_CORES)]
        ]
        self.jobs: dict[str, list[_Job]] = {node.name: [] for node in self.nodes}
        self.standing: tuple[Standing, ...] = ()

    def cycles(self, begin: int, count: int) -> Iterator[tuple[CycleRecord, Snapshot]]:
        """So many cycles, and what each saw, from Unix time ``begin`` on."""
        for number in range(count):
            now = begin + number * PERIOD_SECONDS
            self._go_on(now, warm=number == 0)
            snapshot = self._snapshot(now)
            yield self._record(number, snapshot), snapshot

    def _go_on(self, now: int, *, warm: bool) -> None:
        for node in self.nodes:
            jobs = self.jobs[node.name] = [job for job in self.jobs[node.name] if job.until > now]
            free = node.cores - sum(job.cores for job in jobs)
            while free > 0 and self.dice.random() < 0.97:  # noqa: PLR2004 - some cores stay idle
                cores = self._drawn(free)
                length = int(self.dice.lognormvariate(9.9, 1.0)) + 60
                spent = (
                    int(length * self.dice.random())
                    if warm
                    else self.dice.randrange(PERIOD_SECONDS)
                )
                group = self.dice.choices(self.groups, self.weights)[0]
                memory = 500 * cores * self.dice.choice((2, 4, 4, 4, 6))
                jobs.append(_Job(group, cores, now - spent, now - spent + length, memory))
                free -= cores

    def _drawn(self, free: int) -> int:
        sizes = [size for size in SIZES if size[0] <= free]
        return self.dice.choices([cores for cores, _ in sizes], [part for _, part in sizes])[0]

    def _snapshot(self, now: int) -> Snapshot:
        running = tuple(
            RunningJobs(
                node.name,
                job.group,
                job.cores,
                node.hs06_per_core,
                now - job.since,
                1,
                job.memory_mib,
            )
            for node in self.nodes
            for job in self.jobs[node.name]
        )
        swing = 1 + sin(now / 86400 * 2 * pi) / 2
        pending = tuple(
            PendingJobs(group, cores, int(swing * self.dice.paretovariate(1.2) * 20), 2000 * cores)
            for group in self.groups
            for cores, _ in SIZES[:3]
            if self.dice.random() < 0.7  # noqa: PLR2004 - many groups wait for most sizes
        )
        names = ("collector", *(f"schedd ce-{number}.example.org" for number in range(8)))
        sources = tuple(Source(name, round(self.dice.uniform(0.1, 3), 3)) for name in names)
        return Snapshot(now, tuple(self.nodes), running, pending, sources)

    def _table(self) -> tuple[BinRow, ...]:
        return tuple(
            (start, round(self.dice.uniform(1e5, 1e6)) * 10.0, round(self.dice.uniform(10, 999), 2))
            for start in EDGES_SECONDS[:22]
        )

    def _record(self, number: int, snapshot: Snapshot) -> CycleRecord:
        if number % LAST_CYCLE_INCOMPLETE == LAST_CYCLE_INCOMPLETE - 1:
            lost = Source("schedd ce-9.example.org", 60.0, "no answer within 60 s")
            return CycleRecord(
                snapshot.taken_at, 61.2, complete=False, sources=(*snapshot.sources, lost)
            )
        told = self.dice.sample(self.nodes, len(self.nodes) // 4)
        targets = [
            Target(node.name, self.groups[0], 8 * self.dice.randrange(6), self.groups[1], 8)
            for node in told
        ]
        waits = {
            target: Wait(self.dice.expovariate(1 / 7200), self.dice.expovariate(1 / 40000))
            for target in targets
        }
        reasons = {node.name: "target" if node in told else "not-needed" for node in self.nodes}
        groups = steer(self.pledge_hs06, 0.0, SEED, {}, snapshot, snapshot.taken_at)
        kept = as_kept(snapshot, self.standing)
        nodes = node_records(nodes_of(kept), targets, reasons, waits)
        # Every group has seen jobs of all ages.
        table = {name: self._table() for name in self.groups}
        basis = Basis(self.standing, run_times=table)
        self.standing = tuple(Standing(target, snapshot.taken_at) for target in targets)
        return CycleRecord(
            snapshot.taken_at,
            self.dice.uniform(2, 9),
            complete=True,
            sources=snapshot.sources,
            groups=groups,
            pending=snapshot.pending,
            nodes=nodes,
            basis=basis,
            sequence=snapshot.taken_at,
            strategy="many",
            reason="targets",
            published=("/var/lib/sharectl/sharectl.txt",),
            configuration="0123456789ab",
            idle_cores=self.dice.randrange(2000),
            target_nodes=target_nodes(self.groups, nodes),
        )
