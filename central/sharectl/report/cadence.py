"""Costs of negotiation intervals and the choice of one: as JSON, as one table, as one figure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Optional, TextIO

from sharectl.cadence.choice import (
    CHANGE,
    Beside,
    Comparison,
    Cost,
    IntervalCost,
    Knobs,
    Recommendation,
)
from sharectl.cadence.loads import Load
from sharectl.report.scale import AxisUnit, Limits, ticks_up_to
from sharectl.report.svg import GROUPS, Curve, Figure, Value, document
from sharectl.report.tables import WIDTH, print_table, printable
from sharectl.words import counted

MOST_TEETH = 200
_CYCLES = 8
_FEW_DIGITS = 100
_KNOBS = (
    # name, field of `Knobs`, meaning
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
        "at least so long from the start of a cycle to the next when a schedd calls (HTCondor 9.2)",
    ),
)


@dataclass(frozen=True)
class Facts:
    """Run times, and facts of the pool that came with them."""

    source: str
    loads: tuple[Load, ...]
    unasked: str = ""
    """IntervalCost because of which no pool is asked; empty for the live pool."""
    cores: Optional[int] = None
    durations: tuple[float, ...] = ()
    """Of the negotiator's last cycles, whole seconds."""
    periods: tuple[float, ...] = ()
    """From the start of the cycle before, seconds."""
    jobs_waited: bool = False
    """True if jobs waited in those cycles."""
    knobs: Mapping[str, int] = field(default_factory=dict)
    """The negotiator's own."""
    notes: Sequence[str] = ()
    problems: tuple[str, ...] = ()


def as_content(comparison: Comparison, facts: Facts) -> dict[str, Any]:
    """Costs by load and interval, the recommendation (null if there is none) and notes."""
    terms = comparison.terms
    return {
        "source": facts.source,
        "claim_worklife_seconds": terms.worklife_seconds,
        "cores": terms.cores,
        "cycle_duration_seconds": terms.duration_seconds,
        "run_times": [_cost_data(cost, comparison) for cost in comparison.costs],
        "recommendation": _recommendation(comparison),
        "notes": list(notes(comparison, facts)),
    }


def _cost_data(cost: Cost, comparison: Comparison) -> dict[str, Any]:
    return {
        "name": cost.load.name,
        "jobs": cost.load.jobs,
        "mean_seconds": cost.load.mean_seconds,
        "share_of_core_seconds": comparison.share(cost) if cost.load.jobs is not None else None,
        "intervals": [
            {
                "interval_seconds": alone.interval_seconds,
                "kept": None if alone.negotiating is None else alone.late_seconds is None,
                "cycles_begin_seconds_apart": alone.late_seconds or alone.interval_seconds,
                "loading_factor": alone.loading,
                "loading_factor_claims_reused": reused.loading,
                "idle_core_hours_per_day": comparison.idle_hours(cost, number, reused=False),
                "idle_core_hours_per_day_claims_reused": comparison.idle_hours(
                    cost, number, reused=True
                ),
                "negotiating_ratio": alone.negotiating,
                "cycles_per_day": alone.cycles_per_day,
            }
            for number, (alone, reused) in enumerate(zip(cost.alone, cost.reused))
        ],
    }


def _recommendation(comparison: Comparison) -> Optional[dict[str, Any]]:
    choice = comparison.choice
    if choice is None:
        return None
    values = asdict(choice.knobs)
    return {
        **{name: round(values[key]) for name, key, _ in _KNOBS},
        "by_column": _basis(comparison),
        "loading_factor": choice.option.loading,
        "idle_core_hours_per_day": choice.option.idle_hours(comparison.terms.cores),
        "negotiating_ratio": choice.option.negotiating,
        "beside_default": asdict(choice.beside_default),
        "worst_loading_factor": choice.worst_loading,
        "depends_on_phase": choice.phase,
        "why": list(reasons(comparison, choice)),
    }


def print_findings(comparison: Comparison, facts: Facts, to: TextIO) -> None:
    """Print the table, notes as comments, and the recommendation as configuration."""
    several = len(comparison.costs) > 1
    cores, worklife = comparison.terms.cores, comparison.terms.worklife_seconds
    first = comparison.costs[0].load
    alone = "" if several else f" of {first.name}, mean {brief(first.mean_seconds)} s"
    idle = "idle core-h/day" if cores else "idle h/day of a core"
    hours = f"; idle core-hours a day of {counted(cores, 'core')}" if cores else ""
    print_table(
        f"loading factor{alone}: share of their time that slots work while jobs wait{hours}",
        (
            *(("run times", "mean s") if several else ()),
            "interval s",
            "one job a claim %",
            idle,
            *((f"{_basis(comparison)} %", idle) if worklife else ()),
            "in cycles",
            "cycles/day",
        ),
        list(_rows(comparison)),
        to,
    )
    for note in notes(comparison, facts):
        print(_comment(note), file=to)
    if comparison.choice is not None:
        print("\n# For the central manager; nothing has been changed.", file=to)
        for reason in reasons(comparison, comparison.choice):
            print(_comment(reason), file=to)
        values = asdict(comparison.choice.knobs)
        for name, key, meaning in _KNOBS:
            print(f"{_comment(f'{meaning}, s')}\n{name} = {values[key]:.0f}", file=to)


def _rows(comparison: Comparison) -> Iterator[Sequence[object]]:
    """All jobs at each interval; groups or sizes at the one that is recommended, or the longest."""
    several, reuse = len(comparison.costs) > 1, comparison.terms.worklife_seconds != 0
    every = comparison.costs[0].reused
    at = every.index(comparison.choice.option) if comparison.choice else len(every) - 1
    for cost in comparison.costs:
        for number, alone in enumerate(cost.alone):
            if cost in comparison.parts and number != at:
                continue
            columns = (alone, cost.reused[number]) if reuse else (alone,)
            yield (
                *((cost.load.name, brief(cost.load.mean_seconds)) if several else ()),
                brief(alone.interval_seconds),
                *(
                    cell
                    for option in columns
                    for cell in (
                        round(100 * option.loading, 2),
                        _hours(comparison, cost, number, option, reused=option is not alone),
                    )
                ),
                "?" if alone.negotiating is None else f"{alone.negotiating:.1%}",
                round(alone.cycles_per_day),
            )


def _hours(
    comparison: Comparison, cost: Cost, number: int, option: IntervalCost, *, reused: bool
) -> str:
    """Idle core-hours a day, or those of one core that works for the load."""
    hours = comparison.idle_hours(cost, number, reused=reused)
    return brief(option.idle_hours(1) if hours is None else hours)


def notes(comparison: Comparison, facts: Facts) -> Iterator[str]:
    """Assumptions, unknown values, and why nothing is recommended."""
    terms, first = comparison.terms, comparison.costs[0]
    duration = terms.duration_seconds
    longest_allowed = terms.allows(max(terms.intervals))
    unasked = f", as no pool is asked with {facts.unasked}" if facts.unasked else ""
    yield from facts.notes
    if not terms.cores:
        yield (
            f"how many cores the pool has is not known{unasked} (--cores): idle time is told for "
            "one core"
        )
    elif comparison.parts:
        yield (
            "idle core-hours of a group or size are those of its share of the core-seconds that "
            "all jobs hold, worked and idle; --json has all intervals"
        )
    if duration is None:
        yield (
            f"how long a negotiation cycle takes is not known{unasked} (--cycle-duration): no "
            "interval is recommended, because the shortest that the negotiator can keep up with is "
            "not known either"
        )
    elif not longest_allowed:
        yield (
            f"a cycle takes up to {duration:g} s: at none of these intervals would the negotiator "
            f"negotiate for at most {_percent(terms.most_negotiating)} of its time; give longer "
            "ones (--interval), or --most-negotiating"
        )
    yield from _cycle_notes(facts)
    if duration is not None and comparison.several_laws:
        yield "no interval is recommended for several laws together: give one --run-time"
    late = [option for option in first.alone if option.late_seconds]
    if late:
        which = ", ".join(f"{option.interval_seconds:g}" for option in late)
        yield (
            f"NEGOTIATOR_INTERVAL = {which} cannot be kept: a cycle takes up to {duration:g} s and "
            f"the next begins no sooner than NEGOTIATOR_CYCLE_DELAY = {terms.cycle_delay_seconds:g}"
            f" s after it, so {late[0].late_seconds:g} s after its start; figures are those of "
            "what then happens"
        )
    if duration is None or comparison.several_laws:
        return
    if comparison.choice is None and longest_allowed:
        yield (
            "no interval is recommended: each one that the negotiator can keep up with costs more "
            "idle core-hours than it saves beside HTCondor's default, NEGOTIATOR_INTERVAL = 60"
        )
    without = comparison.alone_beside_default
    if comparison.choice is not None and without is not None and without.costs_more_than_it_saves:
        yield (
            f"warning: claim reuse makes {brief(comparison.choice.option.interval_seconds)} s look "
            f"cheap. A claim goes from job to job of one user {_age(terms.worklife_seconds)}, and "
            "meanwhile other groups do not get its cores. With one job a claim this interval loses "
            f"{_more_idle(without)} than HTCondor's default: if several groups wait, choose by "
            "--claim-worklife 0"
        )


def _cycle_notes(facts: Facts) -> Iterator[str]:
    if not facts.durations:
        return
    took = ", ".join(f"{seconds:g}" for seconds in facts.durations)
    began = ", ".join(f"{seconds:g}" for seconds in facts.periods) or "?"
    yield f"the negotiator's last cycles took {took} s, in whole seconds, and began {began} s apart"
    if not facts.jobs_waited:
        yield "no job waited in these cycles: cycles of a busy pool take longer (--cycle-duration)"


def reasons(comparison: Comparison, choice: Recommendation) -> Iterator[str]:
    """Why this interval, in sentences."""
    terms, option = comparison.terms, choice.option
    duration = terms.duration_seconds or 0.0
    tolerance = f"at most {_percent(terms.tolerance)} of the cores' time more"
    yield f"By the column '{_basis(comparison)}' (--claim-worklife)."
    yield (
        f"A cycle takes up to {brief(duration)} s, and is to take at most "
        f"{_percent(terms.most_negotiating)} of the negotiator's time: "
        f"{brief(choice.best.interval_seconds)} s is what loses least of the intervals from "
        f"{brief(duration / terms.most_negotiating)} s on: {_loss(choice.best, terms.cores)}."
    )
    if option == choice.best:
        yield f"No longer one of them loses {tolerance}."
    else:
        yield (
            f"{brief(option.interval_seconds)} s is the longest of them that loses {tolerance}: "
            f"{_loss(option, terms.cores)}."
        )
    yield (
        f"The negotiator pays {option.negotiating:.1%} of its time for it, in "
        f"{option.cycles_per_day:.0f} cycles a day."
    )
    usual = Knobs().interval_seconds
    if option.interval_seconds == usual:
        yield "It is HTCondor's default."
    else:
        hours = choice.beside_default.negotiating_hours_per_day
        yield (
            f"Beside HTCondor's default, NEGOTIATOR_INTERVAL = {brief(usual)}, it loses "
            f"{_more_idle(choice.beside_default)}, and the negotiator negotiates "
            f"{brief(abs(hours))} h a day {'more' if hours > 0 else 'less'}."
        )
    if choice.phase:
        yield (
            f"Should run times come out {CHANGE:.0%} shorter or longer, it would lose up to "
            f"{1 - choice.worst_loading:.1%}: these jobs are so regular that it matters where in a "
            "cycle they end. NEGOTIATOR_MIN_INTERVAL keeps cycles in step."
        )
    busiest = choice.knobs.shortest_period_seconds(duration)
    if busiest < option.interval_seconds:
        yield (
            f"Schedds that call for a cycle after each submission get one every {brief(busiest)} s "
            f"at the soonest ({duration / busiest:.1%} of the negotiator's time); slots then wait "
            "less than said here."
        )
    if comparison.now is not None:
        period = brief(comparison.now.interval_seconds)
        yield (
            f"As it is configured now, a cycle begins up to {period} s after the last: "
            f"{_loss(comparison.now, terms.cores)}."
        )


def _basis(comparison: Comparison) -> str:
    """Column that the recommendation goes by."""
    worklife = comparison.terms.worklife_seconds
    if worklife == 0:
        return "one job a claim"
    return "claims reused for ever" if worklife < 0 else f"claims reused {brief(worklife)} s"


def _age(worklife_seconds: float) -> str:
    if worklife_seconds < 0:
        return "for ever"
    return f"for {brief(worklife_seconds)} s (CLAIM_WORKLIFE)"


def _more_idle(cost: Beside) -> str:
    """Idle core-hours a day more or less, or a part of the cores' time."""
    word = "more" if cost.idle_ratio > 0 else "less"
    if cost.idle_core_hours_per_day is None:
        return f"{abs(cost.idle_ratio):.2%} of the cores' time {word}"
    return f"{brief(abs(cost.idle_core_hours_per_day))} idle core-hours a day {word}"


def _loss(option: IntervalCost, cores: Optional[int]) -> str:
    lost = f"{option.idle:.1%} of the cores' time"
    hours = option.idle_hours(cores)
    if hours is None or cores is None:
        return lost
    unit = "core-hour" if brief(hours) == "1" else "core-hours"
    return f"{lost}, {brief(hours)} idle {unit} a day on {counted(cores, 'core')}"


def _comment(text: str) -> str:
    """Text as comments of HTCondor's configuration, none of which goes on in the next line."""
    return textwrap.fill(
        printable(text).rstrip("\\"),
        WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _percent(share: float) -> str:
    return f"{100 * share:g}%"


def brief(value: Optional[float]) -> str:
    """A number with at least three digits, none of them in vain."""
    if value is None:
        return "?"
    return f"{value:.0f}" if value >= _FEW_DIGITS or value == int(value) else f"{value:.3g}"


def sawteeth(interval_seconds: float, longest_seconds: float) -> list[tuple[float, float]]:
    """Corners of the saw-tooth: run time in seconds, loading factor; at most `MOST_TEETH` teeth."""
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
    """SVG file of the saw-tooth over run times in seconds, and in cycles."""
    longest = 4 * max(intervals)
    floors = [(float(cycles), cycles / (cycles + 1)) for cycles in range(_CYCLES + 1)]
    teeth = [(f"{interval:g} s", sawteeth(interval, longest)) for interval in intervals]
    in_cycles = [("any", sawteeth(1.0, _CYCLES)), ("n/(n+1)", floors)]
    return document([_panel("seconds", longest, teeth), _panel("cycles", _CYCLES, in_cycles)])


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
