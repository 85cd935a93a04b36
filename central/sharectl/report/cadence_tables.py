"""What an interval costs and which to choose, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional, TextIO

from sharectl.core.cadence_knobs import Option
from sharectl.report.cadence import Cost, Findings, age, brief, comment, idle_hours, percent, snippet
from sharectl.report.tables import print_table
from sharectl.report.words import counted


def print_findings(found: Findings, to: TextIO) -> None:
    """Print the tables, the notes as comments, and what is recommended as configuration."""
    reuse = found.worklife_seconds != 0
    late = any(option.late_seconds for cost in found.costs for option in cost.alone)
    idle = _idle(found)
    shown = found.costs[:1] if found.parts else found.costs
    alone = f" of {shown[0].load.name}, mean {brief(shown[0].load.mean_seconds)} s" if len(shown) == 1 else ""
    print_table(
        f"loading factor{alone}: share of their time that slots work while jobs wait"
        + (f"; idle core-hours a day of {counted(found.cores, 'core')}" if found.cores else ""),
        (
            *(() if alone else ("run times", "mean s")),
            "interval s",
            "one job a claim %",
            idle,
            *((f"claims reused {age(found.worklife_seconds)} %", idle) if reuse else ()),
            "in cycles",
            "cycles/day",
            *(("remark",) if late else ()),
        ),
        _rows(shown, found.cores, reuse=reuse, late=late),
        to,
    )
    if found.parts:
        _print_parts(found, to, reuse=reuse)
    for note in found.notes:
        print(comment(note), file=to)
    for line in snippet(found):
        print(line, file=to)


def _rows(
    costs: Sequence[Cost], cores: Optional[int], *, reuse: bool, late: bool
) -> Iterable[Sequence[object]]:
    for cost in costs:
        for alone, reused in zip(cost.alone, cost.reused):
            yield (
                *((cost.load.name, brief(cost.load.mean_seconds)) if len(costs) > 1 else ()),
                brief(alone.interval_seconds),
                percent(alone.loading),
                brief(idle_hours(alone, cores or 1)),
                *((percent(reused.loading), brief(idle_hours(reused, cores or 1))) if reuse else ()),
                "?" if alone.negotiating is None else f"{alone.negotiating:.1%}",
                round(alone.cycles_per_day),
                *((_remark(alone),) if late else ()),
            )


def _remark(option: Option) -> str:
    return (
        "-"
        if option.late_seconds is None
        else f"cannot be kept: cycles would begin {brief(option.late_seconds)} s apart"
    )


def _print_parts(found: Findings, to: TextIO, *, reuse: bool) -> None:
    """Groups or sizes at one interval: all of them at all intervals are more than anybody reads."""
    number, why = _interval_of_parts(found)
    interval = brief(found.costs[0].alone[number].interval_seconds)
    to.write("\n")
    print_table(
        f"the same by group or size at {interval} s, {why} (--json has all intervals)",
        (
            "run times",
            "jobs",
            "mean s",
            "work %",
            "one job a claim %",
            _idle(found),
            *((f"claims reused {age(found.worklife_seconds)} %", _idle(found)) if reuse else ()),
        ),
        [_part(found, cost, number, reuse=reuse) for cost in found.parts],
        to,
    )
    if found.cores:
        print(
            comment(
                "idle core-hours of a group or size are those of its share of the cores: its share of the core-seconds that "
                "all jobs hold, worked and idle"
            ),
            file=to,
        )


def _interval_of_parts(found: Findings) -> tuple[int, str]:
    """Number of the interval to show parts at, and why that one."""
    options = found.costs[0].reused
    if found.choice is not None:
        return options.index(found.choice.option), "which is recommended"
    return len(options) - 1, "the longest of them"


def _part(found: Findings, cost: Cost, number: int, *, reuse: bool) -> Sequence[object]:
    return (
        cost.load.name,
        cost.load.jobs,
        brief(cost.load.mean_seconds),
        percent(found.share(cost)),
        percent(cost.alone[number].loading),
        _hours(found, cost, number, reused=False),
        *((percent(cost.reused[number].loading), _hours(found, cost, number, reused=True)) if reuse else ()),
    )


def _idle(found: Findings) -> str:
    return "idle core-h/day" if found.cores else "idle h/day of a core"


def _hours(found: Findings, cost: Cost, number: int, *, reused: bool) -> str:
    """Idle core-hours a day of a group or size, or those of one core that works for it."""
    hours = found.idle_hours(cost, number, reused=reused)
    if hours is None:
        hours = idle_hours((cost.reused if reused else cost.alone)[number], 1)
    return brief(hours)
