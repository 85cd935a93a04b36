"""Metrics of a cycle, as text that node_exporter reads.

Every value of a label comes from a closed set, the configuration or the pool's daemons: users could
make any number of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
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


class Metric(NamedTuple):
    """One metric, a gauge."""

    name: str
    """Without the prefix."""
    meaning: str
    labels: tuple[str, ...]
    rows: Callable[[CycleFacts], Iterable[Row]]
    """No row where a number is unknown: missing is never zero."""


def metrics_text(facts: CycleFacts) -> str:
    """Text of all metrics that are known, without timestamps."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector

    pool = {"pool": facts.pool} if facts.pool else {}

    class Cycle(Collector):
        def collect(self) -> Iterator[GaugeMetricFamily]:
            for metric in METRICS:
                family = GaugeMetricFamily(
                    PREFIX + metric.name, metric.meaning, labels=(*pool, *metric.labels)
                )
                # node_exporter drops a file with two rows of the same labels.
                for values, number in dict(metric.rows(facts)).items():
                    family.add_metric((*pool.values(), *map(printable, values)), number)
                if family.samples:
                    yield family

    registry = CollectorRegistry()
    registry.register(Cycle())
    return generate_latest(registry).decode()


# ---- rows


Rows = Callable[[CycleFacts], Iterable[Row]]


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


GROUP, OF_SIZE = ("group",), ("group", "size")

METRICS: Sequence[Metric] = (
    Metric(
        "build_info",
        "Version of sharectl as a label; always 1.",
        ("version",),
        lambda facts: [((facts.version,), 1)],
    ),
    Metric(
        "last_cycle_timestamp_seconds",
        "Unix time at which the last cycle looked at the pool.",
        (),
        _single(lambda facts: facts.record.taken_at),
    ),
    Metric(
        "last_success_timestamp_seconds",
        "Unix time of the last cycle without a problem; absent before the first.",
        (),
        _single(lambda facts: facts.succeeded_at),
    ),
    Metric(
        "last_cycle_duration_seconds",
        "Duration of the last cycle.",
        (),
        _single(lambda facts: facts.seconds),
    ),
    Metric(
        "last_cycle_success",
        "1 if the last cycle had no problem: the whole pool answered, all was written.",
        (),
        _single(lambda facts: facts.succeeded_at == facts.record.taken_at),
    ),
    Metric(
        "last_cycle_complete",
        "1 if the whole pool answered the last cycle; 0: no target was changed.",
        (),
        _single(lambda facts: facts.record.complete),
    ),
    Metric(
        "disabled",
        "1 while sharectl is switched off, as of the last cycle.",
        (),
        _single(lambda facts: facts.disabled),
    ),
    Metric(
        "observe",
        "1 with mode: observe: no target is published.",
        (),
        _single(lambda facts: facts.observes),
    ),
    Metric(
        "places",
        "Places of publish: that took (published) or did not take (failed) the plan of the last "
        "cycle; both 0 if there was nothing to publish.",
        ("result",),
        lambda facts: [
            (("published",), facts.places),
            (("failed",), facts.failed_places),
        ],
    ),
    Metric(
        "plan_valid_until_timestamp_seconds",
        "Unix time at which the last published plan runs out; absent before the first.",
        (),
        _single(lambda facts: facts.valid_until or None),
    ),
    Metric(
        "source_success",
        "1 if the source (collector, a schedd, pledges) answered the last cycle.",
        ("source",),
        _answered,
    ),
    Metric(
        "source_duration_seconds",
        "Time that the answer of a source took, or was waited for.",
        ("source",),
        _answer_seconds,
    ),
    Metric(
        "present_hs06",
        "Power that the groups could have, HS06: of all nodes, less what others use.",
        (),
        _single(lambda facts: facts.record.present_hs06),
    ),
    Metric(
        "shortfall_hs06",
        "Power that is due to groups and that they do not use, HS06.",
        (),
        _single(lambda facts: facts.record.shortfall_hs06),
    ),
    Metric(
        "group_pledge_hs06",
        "Pledge of a group, HS06.",
        GROUP,
        _by_group(lambda control: control.error.pledge_hs06),
    ),
    Metric(
        "group_setpoint_hs06",
        "Power that a group is entitled to now, HS06.",
        GROUP,
        _by_group(lambda control: control.setpoint_hs06),
    ),
    Metric(
        "group_power_hs06",
        "Power that a group uses, HS06.",
        GROUP,
        _by_group(lambda control: control.error.usage.power_hs06),
    ),
    Metric(
        "group_error_hs06",
        "Power used less the setpoint, HS06: above 0 the group has more than its share.",
        GROUP,
        _by_group(lambda control: control.control_error_hs06),
    ),
    Metric(
        "group_due_hs06",
        "Power that is due to a group, at most what its jobs can use, HS06.",
        GROUP,
        _by_group(lambda control: control.due_hs06),
    ),
    Metric(
        "group_shortfall_hs06",
        "Power that is due to a group and that it does not use, HS06.",
        GROUP,
        _by_group(lambda control: control.shortfall_hs06),
    ),
    Metric(
        "group_output_hs06",
        "Power to move, HS06: above 0 taken from the group, below 0 given to it.",
        GROUP,
        _by_group(lambda control: control.output_hs06),
    ),
    Metric(
        "group_running_cores",
        "Cores that jobs of a group hold; group other: jobs of no configured group.",
        OF_SIZE,
        _running_cores,
    ),
    Metric(
        "group_pending_cores",
        "Cores that pending jobs of a group request.",
        OF_SIZE,
        _pending(lambda cores: cores),
    ),
    Metric(
        "group_pending_jobs",
        "Pending jobs of a group.",
        OF_SIZE,
        _pending(lambda _cores: 1),
    ),
    Metric(
        "group_unplaceable_jobs",
        "Pending jobs of a group that no node could run if it were empty.",
        GROUP,
        _by_group(lambda control: sum(control.error.usage.unplaceable_by_cores.values())),
    ),
    Metric(
        "group_longest_wait_seconds",
        "Longest wait of pending jobs of a group; absent if none waits.",
        OF_SIZE,
        _longest(lambda waits: waits.pending.longest_seconds if waits.pending else None),
    ),
    Metric(
        "group_longest_started_wait_seconds",
        "Longest wait of jobs of a group that started in the last hour; absent if none did.",
        OF_SIZE,
        _longest(lambda waits: waits.started.longest_seconds if waits.started else None),
    ),
    Metric(
        "group_target_nodes",
        "Nodes whose target helps a group, or holds it back.",
        ("group", "role"),
        _target_nodes,
    ),
    Metric(
        "nodes",
        "Nodes of the pool.",
        (),
        _complete(lambda facts: len(facts.snapshot.nodes)),
    ),
    Metric(
        "controlled_nodes",
        "Nodes that may get targets (nodes.controlled).",
        (),
        _complete(lambda facts: sum(node.controlled for node in facts.snapshot.nodes)),
    ),
    Metric(
        "target_nodes",
        "Nodes with a target after the last cycle.",
        (),
        _complete(lambda facts: facts.record.steered_nodes),
    ),
    Metric(
        "acting_nodes",
        "Nodes that acted on a target when the last cycle looked.",
        (),
        _complete(lambda facts: sum(bool(node.obeyed_sequence) for node in facts.snapshot.nodes)),
    ),
    Metric(
        "unwilling_nodes",
        "Nodes that ignored their target for too long (not-obeying), or refuse what is published "
        "or have not run job_ctl lately (refused).",
        ("reason",),
        _unwilling,
    ),
    Metric(
        "idle_cores",
        "Cores that no job holds, by cause: kept free by a target, by grace, or other.",
        ("cause",),
        _idle_cores,
    ),
)
"""All metrics, in the order of the file."""
