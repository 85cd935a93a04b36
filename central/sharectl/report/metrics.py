"""Metrics of a cycle, as text that node_exporter reads.

Every value of a label comes from a closed set, the configuration or the pool's daemons: users could
make any number of others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import fsum
from pathlib import Path
from typing import NamedTuple, Optional

from sharectl.model import OTHER, GroupUsage, Snapshot, Source
from sharectl.plan.nodes import STALE
from sharectl.plan.records import CycleRecord
from sharectl.shares.errors import usage_by_group
from sharectl.shares.groups import levels_above
from sharectl.words import printable

PREFIX = "sharectl_"
"""Beginning of every name."""
BEGIN = f"# HELP {PREFIX}"
"""Beginning of the text."""


@dataclass(frozen=True)
class CycleFacts:
    """Outcome of a cycle, and what is in force after it."""

    record: CycleRecord
    snapshot: Snapshot
    seconds: float
    """Duration."""
    version: str
    pool: Optional[str] = None
    """Name of the pool; None without one."""
    observes: bool = False
    disabled: bool = False
    places: int = 0
    """Places that took the cycle's plan."""
    failed_places: int = 0
    """Places that did not take it."""
    valid_until: int = 0
    """Unix seconds at which the last published plan runs out; 0 without one."""
    succeeded_at: Optional[int] = None
    """Unix seconds of the last cycle without a problem; None if there was none."""


Row = tuple[str, tuple[str, ...], Optional[float]]
"""Name of a metric, values of its labels, and the number; None if it is unknown."""


class Metric(NamedTuple):
    """One metric, a gauge."""

    name: str
    """Without the prefix."""
    labels: tuple[str, ...]
    meaning: str


METRICS = tuple(
    Metric(name, tuple(labels.split()), meaning)
    for name, labels, meaning in (
        line.split("|")
        for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    )
)
"""All metrics, in the order of the file."""
SINGLE, MULTICORE = "single", "multicore"
"""Sizes of jobs: of one core, and of more. Users choose the number of cores."""


def metrics_text(facts: CycleFacts) -> str:
    """Text of all metrics that are known, without timestamps."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    pool = {"pool": facts.pool} if facts.pool else {}
    # node_exporter drops a file with two rows of the same labels.
    numbers: defaultdict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    for name, values, number in chain(_of_cycle(facts), _of_groups(facts), _of_nodes(facts)):
        if number is not None:
            numbers[name][values] = number

    registry = CollectorRegistry()
    for name, labels, meaning in METRICS:
        if name in numbers:
            names = (*pool, *labels)
            gauge = Gauge(PREFIX + name, meaning, names, registry=registry)
            for values, number in numbers[name].items():
                row = (*pool.values(), *map(printable, values))
                (gauge.labels(*row) if names else gauge).set(number)
    return generate_latest(registry).decode()


def _of_cycle(facts: CycleFacts) -> Iterator[Row]:
    record = facts.record
    yield "build_info", (facts.version,), 1
    yield "last_cycle_timestamp_seconds", (), record.taken_at
    yield "last_success_timestamp_seconds", (), facts.succeeded_at
    yield "last_cycle_duration_seconds", (), facts.seconds
    yield "last_cycle_success", (), facts.succeeded_at == record.taken_at
    yield "last_cycle_complete", (), record.complete
    yield "disabled", (), facts.disabled
    yield "observe", (), facts.observes
    yield "places", ("published",), facts.places
    yield "places", ("failed",), facts.failed_places
    yield "plan_valid_until_timestamp_seconds", (), facts.valid_until or None
    # A collector may have two answers.
    answers: defaultdict[str, list[Source]] = defaultdict(list)
    for source in facts.snapshot.sources:
        answers[source.name].append(source)
    for name, sources in answers.items():
        yield "source_success", (name,), all(source.problem is None for source in sources)
        yield "source_duration_seconds", (name,), fsum(source.seconds for source in sources)
    yield "present_hs06", (), record.present_hs06
    yield "shortfall_hs06", (), record.shortfall_hs06


def _of_groups(facts: CycleFacts) -> Iterator[Row]:
    record = facts.record
    for control in record.groups:
        group, usage = (control.group,), control.error.usage
        yield "group_pledge_hs06", group, control.error.pledge_hs06
        yield "group_setpoint_hs06", group, control.setpoint_hs06
        yield "group_power_hs06", group, usage.power_hs06
        yield "group_error_hs06", group, control.control_error_hs06
        yield "group_due_hs06", group, control.due_hs06
        yield "group_shortfall_hs06", group, control.shortfall_hs06
        yield "group_output_hs06", group, control.output_hs06
        yield "group_unplaceable_jobs", group, sum(usage.unplaceable_by_cores.values())
        yield from _running_cores(control.group, usage)
        for size in (SINGLE, MULTICORE):
            pending = {c: n for c, n in usage.pending_by_cores.items() if _size(c) == size}
            cores = sum(cores * jobs for cores, jobs in pending.items())
            yield "group_pending_cores", (*group, size), cores
            yield "group_pending_jobs", (*group, size), sum(pending.values())
    if record.complete:
        yield from _running_cores(OTHER, usage_by_group(facts.snapshot, (OTHER,))[OTHER])
    for group_name, nodes in record.target_nodes.items():
        yield "group_target_nodes", (group_name, "helped"), nodes.helped
        yield "group_target_nodes", (group_name, "held-back"), nodes.held_back
    groups = {control.group for control in record.groups}
    # The longest wait of a group is the last of its rows.
    for name, key in (("longest_wait", "pending"), ("longest_started_wait", "started")):
        waits = [
            (times.longest_seconds, row) for row in record.waits if (times := getattr(row, key))
        ]
        for seconds, row in sorted(waits, key=lambda wait: wait[0]):
            for around in groups.intersection((row.group, *levels_above(row.group))):
                yield f"group_{name}_seconds", (around, _size(row.cores)), seconds


def _running_cores(group: str, usage: GroupUsage) -> Iterator[Row]:
    yield "group_running_cores", (group, SINGLE), usage.single_cores
    yield "group_running_cores", (group, MULTICORE), usage.multi_cores


def _size(cores: int) -> str:
    return SINGLE if cores == 1 else MULTICORE


def _of_nodes(facts: CycleFacts) -> Iterator[Row]:
    record, nodes = facts.record, facts.snapshot.nodes
    if record.complete:
        reasons = Counter(node.reason for node in record.nodes)
        yield "nodes", (), len(nodes)
        yield "controlled_nodes", (), sum(node.controlled for node in nodes)
        yield "target_nodes", (), record.steered_nodes
        yield "acting_nodes", (), sum(bool(node.obeyed_sequence) for node in nodes)
        yield "unwilling_nodes", ("not-obeying",), reasons["not-obeying"]
        yield "unwilling_nodes", ("refused",), reasons["refused"] + reasons[STALE]
    target, grace = record.idle_target_cores, record.idle_grace_cores
    if target is not None and grace is not None:
        yield "idle_cores", ("target",), target
        yield "idle_cores", ("grace",), grace
        yield "idle_cores", ("other",), record.idle_cores - target - grace
