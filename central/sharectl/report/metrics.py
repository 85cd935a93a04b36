"""Metrics of a cycle, as text that node_exporter reads.

Every value of a label comes from a closed set, the configuration or the pool's daemons: users could
make any number of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Callable, NamedTuple, Optional

from sharectl.model import OTHER, GroupControl, JobWaits, Snapshot
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


Row = tuple[tuple[str, ...], float]
"""Values of the labels, and the number."""
Rows = Callable[[CycleFacts], Iterable[Row]]
"""Rows of a metric; none where a number is unknown: missing is never zero."""


class Metric(NamedTuple):
    """One metric, a gauge."""

    name: str
    """Without the prefix."""
    labels: tuple[str, ...]
    meaning: str


def metrics_text(facts: CycleFacts) -> str:
    """Text of all metrics that are known, without timestamps."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector

    pool = {"pool": facts.pool} if facts.pool else {}

    class Cycle(Collector):
        def collect(self) -> Iterator[GaugeMetricFamily]:
            for name, labels, meaning in METRICS:
                family = GaugeMetricFamily(PREFIX + name, meaning, labels=(*pool, *labels))
                # node_exporter drops a file with two rows of the same labels.
                for values, number in dict(_ROWS[name](facts)).items():
                    family.add_metric((*pool.values(), *map(printable, values)), number)
                if family.samples:
                    yield family

    registry = CollectorRegistry()
    registry.register(Cycle())
    return generate_latest(registry).decode()


# ---- rows


def _single(value: Callable[[CycleFacts], Optional[float]]) -> Rows:
    def rows(facts: CycleFacts) -> Iterator[Row]:
        number = value(facts)
        if number is not None:
            yield (), number

    return rows


def _complete(value: Callable[[CycleFacts], float]) -> Rows:
    return _single(lambda facts: value(facts) if facts.record.complete else None)


def _by_group(value: Callable[[GroupControl], Optional[float]]) -> Rows:
    def rows(facts: CycleFacts) -> Iterator[Row]:
        for control in facts.record.groups:
            number = value(control)
            if number is not None:
                yield (control.group,), number

    return rows


SINGLE, MULTICORE = "single", "multicore"
"""Sizes of jobs: of one core, and of more. Users choose the number of cores."""


def _size(cores: int) -> str:
    return SINGLE if cores == 1 else MULTICORE


def _running_cores(facts: CycleFacts) -> Iterator[Row]:
    for control in facts.record.groups:
        usage = control.error.usage
        yield (control.group, SINGLE), usage.single_cores
        yield (control.group, MULTICORE), usage.multi_cores
    if facts.record.complete:
        others = usage_by_group(facts.snapshot, (OTHER,))[OTHER]
        yield (OTHER, SINGLE), others.single_cores
        yield (OTHER, MULTICORE), others.multi_cores


def _pending(weight: Callable[[int], int]) -> Rows:
    def rows(facts: CycleFacts) -> Iterator[Row]:
        for control in facts.record.groups:
            waiting = control.error.usage.pending_by_cores.items()
            for size in (SINGLE, MULTICORE):
                sizes = (jobs * weight(cores) for cores, jobs in waiting if _size(cores) == size)
                yield (control.group, size), sum(sizes)

    return rows


def _longest(waited: Callable[[JobWaits], Optional[int]]) -> Rows:
    def rows(facts: CycleFacts) -> Iterator[Row]:
        groups = {control.group for control in facts.record.groups}
        longest: dict[tuple[str, ...], int] = {}
        for waits in facts.record.waits:
            seconds, size = waited(waits), _size(waits.cores)
            for group in groups.intersection((waits.group, *levels_above(waits.group))):
                if seconds is not None:
                    longest[group, size] = max(seconds, longest.get((group, size), 0))
        yield from sorted(longest.items())

    return rows


def _target_nodes(facts: CycleFacts) -> Iterator[Row]:
    for group, nodes in facts.record.target_nodes.items():
        yield (group, "helped"), nodes.helped
        yield (group, "held-back"), nodes.held_back


def _unwilling(facts: CycleFacts) -> Iterator[Row]:
    if facts.record.complete:
        reasons = [node.reason for node in facts.record.nodes]
        yield ("not-obeying",), reasons.count("not-obeying")
        yield ("refused",), reasons.count("refused") + reasons.count(STALE)


def _idle_cores(facts: CycleFacts) -> Iterator[Row]:
    record = facts.record
    target, grace = record.idle_target_cores, record.idle_grace_cores
    if target is not None and grace is not None:
        yield ("target",), target
        yield ("grace",), grace
        yield ("other",), record.idle_cores - target - grace


def _sources(facts: CycleFacts) -> dict[tuple[str, ...], list[tuple[float, bool]]]:
    """Name of a source -> seconds and success of its answers: a collector may have two."""
    answers: dict[tuple[str, ...], list[tuple[float, bool]]] = {}
    for source in facts.snapshot.sources:
        answers.setdefault((source.name,), []).append((source.seconds, source.problem is None))
    return answers


def _answered(facts: CycleFacts) -> Iterator[Row]:
    for name, answers in _sources(facts).items():
        yield name, all(good for _, good in answers)


def _answer_seconds(facts: CycleFacts) -> Iterator[Row]:
    for name, answers in _sources(facts).items():
        yield name, fsum(seconds for seconds, _ in answers)


_ROWS: Mapping[str, Rows] = {
    "build_info": lambda facts: [((facts.version,), 1)],
    "last_cycle_timestamp_seconds": _single(lambda facts: facts.record.taken_at),
    "last_success_timestamp_seconds": _single(lambda facts: facts.succeeded_at),
    "last_cycle_duration_seconds": _single(lambda facts: facts.seconds),
    "last_cycle_success": _single(lambda facts: facts.succeeded_at == facts.record.taken_at),
    "last_cycle_complete": _single(lambda facts: facts.record.complete),
    "disabled": _single(lambda facts: facts.disabled),
    "observe": _single(lambda facts: facts.observes),
    "places": lambda facts: [
        (("published",), facts.places),
        (("failed",), facts.failed_places),
    ],
    "plan_valid_until_timestamp_seconds": _single(lambda facts: facts.valid_until or None),
    "source_success": _answered,
    "source_duration_seconds": _answer_seconds,
    "present_hs06": _single(lambda facts: facts.record.present_hs06),
    "shortfall_hs06": _single(lambda facts: facts.record.shortfall_hs06),
    "group_pledge_hs06": _by_group(lambda control: control.error.pledge_hs06),
    "group_setpoint_hs06": _by_group(lambda control: control.setpoint_hs06),
    "group_power_hs06": _by_group(lambda control: control.error.usage.power_hs06),
    "group_error_hs06": _by_group(lambda control: control.control_error_hs06),
    "group_due_hs06": _by_group(lambda control: control.due_hs06),
    "group_shortfall_hs06": _by_group(lambda control: control.shortfall_hs06),
    "group_output_hs06": _by_group(lambda control: control.output_hs06),
    "group_running_cores": _running_cores,
    "group_pending_cores": _pending(lambda cores: cores),
    "group_pending_jobs": _pending(lambda _cores: 1),
    "group_unplaceable_jobs": _by_group(
        lambda control: sum(control.error.usage.unplaceable_by_cores.values())
    ),
    "group_longest_wait_seconds": _longest(
        lambda waits: waits.pending.longest_seconds if waits.pending else None
    ),
    "group_longest_started_wait_seconds": _longest(
        lambda waits: waits.started.longest_seconds if waits.started else None
    ),
    "group_target_nodes": _target_nodes,
    "nodes": _complete(lambda facts: len(facts.snapshot.nodes)),
    "controlled_nodes": _complete(
        lambda facts: sum(node.controlled for node in facts.snapshot.nodes)
    ),
    "target_nodes": _complete(lambda facts: facts.record.steered_nodes),
    "acting_nodes": _complete(
        lambda facts: sum(bool(node.obeyed_sequence) for node in facts.snapshot.nodes)
    ),
    "unwilling_nodes": _unwilling,
    "idle_cores": _idle_cores,
}
METRICS = tuple(
    Metric(name, tuple(labels.split()), meaning)
    for name, labels, meaning in (
        line.split("|")
        for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    )
)
"""All metrics, in the order of the file."""
