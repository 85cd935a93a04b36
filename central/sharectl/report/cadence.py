"""What an interval costs and which to choose, as JSON and for people.

The saw-tooth: loading factor over run time, in seconds for some intervals and in cycles for any.

Lines are told apart by style and marker, not by colour alone; the text chart needs no colour at
all.

What an interval costs and which to choose, for people.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Optional, TextIO

from sharectl.cadence.choice import CHANGE, DAY_SECONDS, Beside, Choice, Knobs, Option
from sharectl.cadence.loading import loading_factor
from sharectl.cadence.loads import Load
from sharectl.report.scale import AxisUnit, Limits, ticks_up_to
from sharectl.report.svg import GROUPS, Curve, Figure, Value, document
from sharectl.report.tables import print_table, printable
from sharectl.words import counted

_HOUR_SECONDS = 3600
_COLUMNS = 80
_KNOBS = (
    # name, field of `Knobs`, what it means
    (
        "NEGOTIATOR_INTERVAL",
        "interval_seconds",
        "at most so long from the start of a cycle to the next",
    ),
    (
        "NEGOTIATOR_CYCLE_DELAY",
        "cycle_delay_seconds",
        "at least so long from the end of a cycle to the next, also when a schedd calls for one",
    ),
    (
        "NEGOTIATOR_MIN_INTERVAL",
        "min_interval_seconds",
        (
            "at least so long from the start of a cycle to the next when a schedd calls for one "
            "(HTCondor 9.2)"
        ),
    ),
)


@dataclass(frozen=True)
class Cost:
    """Some run times at some intervals."""

    load: Load
    alone: tuple[Option, ...]
    """One job a claim."""
    reused: tuple[Option, ...]
    """Claims that are used again."""


@dataclass(frozen=True)
class Findings:
    """All that is told."""

    costs: tuple[Cost, ...]
    worklife_seconds: float
    cores: Optional[int]
    duration_seconds: Optional[float]
    """How long a cycle takes at most; None if it is not known."""
    most_negotiating: float
    tolerance: float
    now: Optional[Option]
    """What the negotiator's own configuration comes to."""
    choice: Optional[Choice]
    notes: tuple[str, ...]
    """What was assumed, and what is not known."""

    @property
    def parts(self) -> tuple[Cost, ...]:
        """The groups or sizes that the first of the costs, all jobs, is made of; none of laws."""
        return self.costs[1:] if self.costs[0].load.jobs is not None else ()

    @property
    def basis(self) -> str:
        """Column that the recommendation goes by."""
        return (
            "one job a claim"
            if self.worklife_seconds == 0
            else f"claims reused {age(self.worklife_seconds)}"
        )

    def idle_hours(self, cost: Cost, number: int, *, reused: bool) -> Optional[float]:
        """Idle core-hours a day at the interval of that number; None if the cores are not known.

        A group or size has a share of the cores: that of all core-seconds, idle ones too, that its
        jobs hold.
        """
        if self.cores is None:
            return None
        option, every = (
            (each.reused if reused else each.alone)[number] for each in (cost, self.costs[0])
        )
        share = self.share(cost) * every.loading / option.loading if cost in self.parts else 1.0
        return idle_hours(option, self.cores * share)

    def share(self, cost: Cost) -> float:
        """Share of the core-seconds of all jobs that those of a group or size worked."""
        return cost.load.work / self.costs[0].load.work


def as_content(found: Findings) -> dict[str, Any]:
    """Keys: claim_worklife_seconds, cores, cycle_duration_seconds, run_times, recommendation, notes."""
    return {
        "claim_worklife_seconds": found.worklife_seconds,
        "cores": found.cores,
        "cycle_duration_seconds": found.duration_seconds,
        "run_times": [_cost(cost, found) for cost in found.costs],
        "recommendation": _recommendation(found),
        "notes": list(found.notes),
    }


def _cost(cost: Cost, found: Findings) -> dict[str, Any]:
    return {
        "name": cost.load.name,
        "jobs": cost.load.jobs,
        "mean_seconds": cost.load.mean_seconds,
        "share_of_core_seconds": found.share(cost) if cost.load.jobs is not None else None,
        "intervals": [
            {
                "interval_seconds": alone.interval_seconds,
                "kept": None if alone.negotiating is None else alone.late_seconds is None,
                "cycles_begin_seconds_apart": alone.late_seconds or alone.interval_seconds,
                "loading_factor": alone.loading,
                "loading_factor_claims_reused": reused.loading,
                "idle_core_hours_per_day": found.idle_hours(cost, number, reused=False),
                "idle_core_hours_per_day_claims_reused": found.idle_hours(
                    cost, number, reused=True
                ),
                "negotiating_ratio": alone.negotiating,
                "cycles_per_day": alone.cycles_per_day,
            }
            for number, (alone, reused) in enumerate(zip(cost.alone, cost.reused))
        ],
    }


def _recommendation(found: Findings) -> Optional[dict[str, Any]]:
    if found.choice is None:
        return None
    values = asdict(found.choice.knobs)
    return {
        **{name: round(values[field]) for name, field, _ in _KNOBS},
        "by_column": found.basis,
        "loading_factor": found.choice.option.loading,
        "idle_core_hours_per_day": idle_hours(found.choice.option, found.cores),
        "negotiating_ratio": found.choice.option.negotiating,
        "beside_default": asdict(found.choice.beside_default),
        "worst_loading_factor": found.choice.worst_loading,
        "depends_on_phase": found.choice.phase,
        "why": reasons(found),
    }


def idle_hours(option: Option, cores: Optional[float]) -> Optional[float]:
    """Idle core-hours a day of so many cores; None if they are not known."""
    return None if cores is None else option.idle * cores * DAY_SECONDS / _HOUR_SECONDS


def snippet(found: Findings) -> list[str]:
    """Lines of HTCondor configuration with what is recommended, and why; none if nothing is."""
    if found.choice is None:
        return []
    values: Mapping[str, float] = asdict(found.choice.knobs)
    lines = ["", "# For the central manager; nothing has been changed."]
    lines += map(comment, reasons(found))
    for name, field, meaning in _KNOBS:
        lines += [comment(f"{meaning}, s"), f"{name} = {values[field]:.0f}"]
    return lines


def reasons(found: Findings) -> list[str]:
    """Why this interval, in sentences."""
    choice, duration = found.choice, found.duration_seconds
    if choice is None or duration is None:
        return []
    share = in_percent(found.most_negotiating)
    tolerance = f"at most {in_percent(found.tolerance)} of the cores' time more"
    said = [
        f"By the column '{found.basis}' (--claim-worklife).",
        (
            f"A cycle takes up to {brief(duration)} s, and is to take at most {share} of the "
            "negotiator's time: "
            f"{brief(choice.best.interval_seconds)} s is what loses least of the intervals from "
            f"{brief(duration / found.most_negotiating)} s on: {_loss(choice.best, found.cores)}."
        ),
        (
            f"No longer one of them loses {tolerance}."
            if choice.option == choice.best
            else f"{brief(choice.option.interval_seconds)} s is the longest of them that loses {tolerance}: "
            f"{_loss(choice.option, found.cores)}."
        ),
        (
            f"The negotiator pays {choice.option.negotiating:.1%} of its time for it, in "
            f"{choice.option.cycles_per_day:.0f} cycles a day."
        ),
    ]
    said.append(_beside_default(choice))
    if choice.phase:
        said.append(
            f"Should run times come out {CHANGE:.0%} shorter or longer, it would lose up to "
            f"{1 - choice.worst_loading:.1%}: "
            "these jobs are so regular that it matters where in a cycle they end. "
            "NEGOTIATOR_MIN_INTERVAL keeps cycles in "
            "step."
        )
    busiest = choice.knobs.shortest_period_seconds(duration)
    if busiest < choice.option.interval_seconds:
        said.append(
            "Schedds that call for a cycle after each submission get one every "
            f"{brief(busiest)} s at the soonest "
            f"({duration / busiest:.1%} of the negotiator's time); slots then wait less than "
            "said here."
        )
    if found.now is not None:
        said.append(
            f"As it is configured now, a cycle begins up to {brief(found.now.interval_seconds)} "
            "s after the last: "
            f"{_loss(found.now, found.cores)}."
        )
    return said


def _beside_default(choice: Choice) -> str:
    """What the choice costs beside HTCondor's default."""
    if choice.option.interval_seconds == Knobs().interval_seconds:
        return "It is HTCondor's default."
    hours = choice.beside_default.negotiating_hours_per_day
    spent = f"{brief(abs(hours))} h a day {'more' if hours > 0 else 'less'}"
    return (
        f"Beside HTCondor's default, NEGOTIATOR_INTERVAL = {brief(Knobs().interval_seconds)}, "
        "it loses "
        f"{more_idle(choice.beside_default)}, and the negotiator negotiates {spent}."
    )


def more_idle(cost: Beside) -> str:
    """Idle core-hours a day more or less, or what part of the cores' time if the cores are not known."""
    word = "more" if cost.idle_ratio > 0 else "less"
    if cost.idle_core_hours_per_day is None:
        return f"{abs(cost.idle_ratio):.2%} of the cores' time {word}"
    return f"{brief(abs(cost.idle_core_hours_per_day))} idle core-hours a day {word}"


def age_words(worklife_seconds: float) -> str:
    """How long a claim goes from job to job."""
    return (
        "for ever" if worklife_seconds < 0 else f"for {brief(worklife_seconds)} s (CLAIM_WORKLIFE)"
    )


def actual_period(knobs: Knobs, duration_seconds: float) -> Optional[str]:
    """Why cycles do not begin as often as NEGOTIATOR_INTERVAL says; None if they do."""
    period = knobs.period_seconds(duration_seconds)
    if period <= knobs.interval_seconds:
        return None
    return (
        f"NEGOTIATOR_INTERVAL = {brief(knobs.interval_seconds)} cannot be kept: a cycle of "
        f"{brief(duration_seconds)} s, "
        f"NEGOTIATOR_CYCLE_DELAY = {brief(knobs.cycle_delay_seconds)} and "
        "NEGOTIATOR_MIN_INTERVAL = "
        f"{brief(knobs.min_interval_seconds)} make it {brief(period)} s"
    )


def _loss(option: Option, cores: Optional[int]) -> str:
    hours = idle_hours(option, cores)
    lost = f"{option.idle:.1%} of the cores' time"
    return (
        lost
        if hours is None
        else f"{lost}, {brief(hours)} idle {'core-hour' if brief(hours) == '1' else 'core-hours'} a day on {counted(cores or 0, 'core')}"
    )


def comment(text: str) -> str:
    """Text as comments of HTCondor's configuration, none of which goes on in the next line."""
    return textwrap.fill(
        printable(text).rstrip("\\"),
        _COLUMNS,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def age(worklife_seconds: float) -> str:
    """For how long claims are reused."""
    return "for ever" if worklife_seconds < 0 else f"{brief(worklife_seconds)} s"


def percent(share: float) -> float:
    """A share as shown in tables."""
    return round(100 * share, 2)


def in_percent(share: float) -> str:
    """A share that was given, of whose digits none is lost but from the seventh on."""
    return f"{100 * share:g}%"


def brief(value: Optional[float]) -> str:
    """A number with three digits at least, none of them in vain."""
    assert value is not None  # noqa: S101 - callers have looked
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"  # noqa: PLR2004


MOST_TEETH = 200
_CYCLES = 8
_BLOCKS = " ▁▂▃▄▅▆▇█"


def sawteeth(interval_seconds: float, longest_seconds: float) -> list[tuple[float, float]]:
    """Corners of the saw-tooth: run time in seconds, loading factor; straight lines lie between them.

    Parameters
    ----------
    longest_seconds
        Run time that the line ends at, or after `MOST_TEETH` teeth.
    """
    corners = [(0.0, 0.0)]
    for tooth in range(1, MOST_TEETH + 1):
        end = min(tooth * interval_seconds, longest_seconds)
        corners.append((end, end / (tooth * interval_seconds)))
        if end == longest_seconds:
            break
        # Just past the beginning of a cycle a job holds its slot until the next.
        corners.append((end, tooth / (tooth + 1)))
    return corners


def figure(intervals: Sequence[float]) -> str:
    """SVG file of the saw-tooth over run times in seconds, and in cycles.

    Parameters
    ----------
    intervals
        Seconds, at least one.
    """
    longest = 4 * max(intervals)
    floors = [(float(cycles), cycles / (cycles + 1)) for cycles in range(_CYCLES + 1)]
    return document(
        [
            _panel(
                "seconds",
                longest,
                [(f"{interval:g} s", sawteeth(interval, longest)) for interval in intervals],
            ),
            _panel("cycles", _CYCLES, [("any", sawteeth(1.0, _CYCLES)), ("n/(n+1)", floors)]),
        ]
    )


def _panel(
    words: str, longest: float, lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]
) -> Figure:
    return Figure(
        key=words,
        title=f"Loading factor over run time in {words}",
        description="It rises to 1 at whole numbers of cycles, and falls to n / (n + 1) past n.",
        across=(0.0, longest),
        ticks=ticks_up_to(longest, 5),
        up=Limits(0.0, 1.0, 0.25),
        unit=AxisUnit(1.0, "loading factor"),
        curves=[
            Curve(name, f"group{number % GROUPS}", [Value(*corner) for corner in corners])
            for number, (name, corners) in enumerate(lines)
        ],
        across_words=words,
    )


def chart(
    interval_seconds: float, cycles: float, unit: str, *, blocks: bool, columns: int = 64
) -> str:
    """The saw-tooth as text, a column of characters for each run time.

    Parameters
    ----------
    interval_seconds
        1.0 for a chart in cycles.
    cycles
        What the chart ends at.
    unit
        Of the run time.
    blocks
        Whether the output can show block elements; ``#`` if not.
    """
    rows = 10
    step = cycles * interval_seconds / columns
    heights = [
        rows * loading_factor((column + 1) * step, interval_seconds) for column in range(columns)
    ]
    lines = [f"loading factor over run time, {unit}"]
    for row in range(rows - 1, -1, -1):
        label = f"{(row + 1) / rows:4.1f}" if row % 2 else "    "
        lines.append(
            f"{label} |"
            + "".join(_cell(height - row, blocks=blocks) for height in heights).rstrip()
        )
    ticks = "".join(
        f"{tick * cycles / 4 * interval_seconds:>{columns // 4}g}" for tick in range(1, 5)
    )
    return "\n".join([*lines, "     +" + "-" * columns, f"    0 {ticks}"])


def bars(offered: Sequence[Option], basis: str, *, blocks: bool, columns: int = 50) -> str:
    """The loading factor at each interval as text, a bar for each.

    Parameters
    ----------
    basis
        What the factors are of.
    blocks
        Whether the output can show block elements; ``#`` if not.
    """
    lines = [f"loading factor at each interval, {basis}"]
    for option in offered:
        whole, rest = divmod(option.loading * columns, 1)
        bar = ("█" if blocks else "#") * int(whole) + _cell(rest, blocks=blocks)
        mark = "" if option.late_seconds is None else f"  cannot be kept: {option.late_seconds:g} s"
        lines.append(
            f"{option.interval_seconds:>6g} s |{bar:<{columns + 1}}{option.loading:6.1%}{mark}"
        )
    return "\n".join(lines)


def _cell(filled: float, *, blocks: bool) -> str:
    """One character, of which the fraction ``filled`` is full (from 0 to 1)."""
    if not blocks:
        return "#" if filled >= 0.5 else " "  # noqa: PLR2004 - half
    return _BLOCKS[max(0, min(8, round(8 * filled)))]


def print_findings(found: Findings, to: TextIO) -> None:
    """Print the tables, the notes as comments, and what is recommended as configuration."""
    reuse = found.worklife_seconds != 0
    late = any(option.late_seconds for cost in found.costs for option in cost.alone)
    idle = _idle(found)
    shown = found.costs[:1] if found.parts else found.costs
    alone = (
        f" of {shown[0].load.name}, mean {brief(shown[0].load.mean_seconds)} s"
        if len(shown) == 1
        else ""
    )
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
                *(
                    (percent(reused.loading), brief(idle_hours(reused, cores or 1)))
                    if reuse
                    else ()
                ),
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
                "idle core-hours of a group or size are those of its share of the cores: its "
                "share of the core-seconds that "
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
        *(
            (percent(cost.reused[number].loading), _hours(found, cost, number, reused=True))
            if reuse
            else ()
        ),
    )


def _idle(found: Findings) -> str:
    return "idle core-h/day" if found.cores else "idle h/day of a core"


def _hours(found: Findings, cost: Cost, number: int, *, reused: bool) -> str:
    """Idle core-hours a day of a group or size, or those of one core that works for it."""
    hours = found.idle_hours(cost, number, reused=reused)
    if hours is None:
        hours = idle_hours((cost.reused if reused else cost.alone)[number], 1)
    return brief(hours)
