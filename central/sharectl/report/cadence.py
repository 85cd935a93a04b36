"""Costs of negotiation intervals and the choice of one: as JSON, as one table, as one figure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.cadence.choice import (
    DAY_HOURS,
    Beside,
    Comparison,
    Cost,
    IntervalCost,
    Knobs,
    Recommendation,
    beside,
)
from sharectl.cadence.run_times import Facts
from sharectl.report.scale import AxisUnit, Limits, ticks_up_to
from sharectl.report.svg import GROUPS, Curve, Figure, Value, document
from sharectl.report.tables import WIDTH, print_table
from sharectl.words import counted, printable

MOST_TEETH = 200
_FEW_DIGITS = 100
_KNOBS = {
    "NEGOTIATOR_INTERVAL": "at most so long from the start of a cycle to the next",
    "NEGOTIATOR_CYCLE_DELAY": (
        "at least so long from the end of a cycle to the next, also when a schedd calls for one"
    ),
    "NEGOTIATOR_MIN_INTERVAL": (
        "at least so long from the start of a cycle to the next when a schedd calls (HTCondor 9.2)"
    ),
}
"""Names of the fields of `Knobs`, in their order -> meaning."""


def as_content(comparison: Comparison, facts: Facts) -> dict[str, Any]:
    """Costs by load and interval, the recommendation (or null) and notes."""
    terms, choice = comparison.terms, comparison.choice
    return {
        "source": facts.source,
        "claim_worklife_seconds": terms.worklife_seconds,
        "cores": terms.cores,
        "cycle_duration_seconds": terms.duration_seconds,
        "run_times": [_cost_content(cost, comparison) for cost in comparison.costs],
        "recommendation": _recommendation(comparison, choice) if choice else None,
        "notes": list(notes(comparison, facts)),
    }


def _cost_content(cost: Cost, comparison: Comparison) -> dict[str, Any]:
    intervals = []
    for number, option in enumerate(cost.options):
        alone, reused = (
            comparison.idle_hours(cost, number, reused=reused) for reused in (False, True)
        )
        intervals.append(
            {
                "interval_seconds": option.interval_seconds,
                "kept": None if option.negotiating is None else not option.late,
                "cycles_begin_seconds_apart": option.period_seconds,
                "loading_factor": option.alone,
                "loading_factor_claims_reused": option.loading,
                "idle_core_hours_per_day": alone,
                "idle_core_hours_per_day_claims_reused": reused,
                "negotiating_ratio": option.negotiating,
                "cycles_per_day": option.cycles_per_day,
            }
        )
    load = cost.load
    share = None if load.jobs is None else comparison.share(cost)
    facts = {"name": load.name, "jobs": load.jobs, "mean_seconds": load.mean_seconds}
    return {**facts, "share_of_core_seconds": share, "intervals": intervals}


def _recommendation(comparison: Comparison, choice: Recommendation) -> dict[str, Any]:
    cores, option = comparison.terms.cores, choice.option
    return {
        **dict(zip(_KNOBS, map(round, asdict(choice.knobs).values()))),
        "by_column": _basis(comparison),
        "loading_factor": option.loading,
        "idle_core_hours_per_day": None if cores is None else DAY_HOURS * cores * option.idle,
        "negotiating_ratio": option.negotiating,
        "beside_default": asdict(beside(option, choice.default, cores)),
        "why": list(reasons(comparison, choice)),
    }


def print_findings(comparison: Comparison, facts: Facts, to: TextIO) -> None:
    """Print the table, notes as comments, and the recommendation as configuration."""
    content, cores = as_content(comparison, facts), comparison.terms.cores
    idle = "idle core-h/day" if cores else "idle h/day of a core"
    pool = f"; idle core-hours a day of {counted(cores, 'core')}" if cores else ""
    load, several = comparison.costs[0].load, len(comparison.costs) > 1
    whose = "" if several else f" of {load.name}, mean {brief(load.mean_seconds)} s"
    columns = [*(("run times", "mean s") if several else ()), "interval s"]
    columns += ["one job a claim %", idle]
    columns += [f"{_basis(comparison)} %", idle] if comparison.terms.worklife_seconds else []
    print_table(
        f"loading factor{whose}: share of their time that slots work while jobs wait{pool}",
        [*columns, "in cycles", "cycles/day"],
        _rows(content, parts=bool(comparison.parts)),
        to,
    )
    for note in content["notes"]:
        print(_comment(note), file=to)
    if choice := content["recommendation"]:
        print("\n# For the central manager; nothing has been changed.", file=to)
        for reason in choice["why"]:
            print(_comment(reason), file=to)
        for name, meaning in _KNOBS.items():
            print(f"{_comment(f'{meaning}, s')}\n{name} = {choice[name]}", file=to)


def _rows(content: dict[str, Any], *, parts: bool) -> Iterator[Sequence[object]]:
    """All jobs at each interval; groups or sizes at the one that is recommended, or the longest."""
    loads, choice = content["run_times"], content["recommendation"]
    longest = loads[0]["intervals"][-1]["interval_seconds"]
    shown = choice["NEGOTIATOR_INTERVAL"] if choice else longest
    claims = ("", "_claims_reused") if content["claim_worklife_seconds"] else ("",)
    for load in loads:
        names = (load["name"], brief(load["mean_seconds"])) if len(loads) > 1 else ()
        for row in load["intervals"]:
            if parts and load is not loads[0] and row["interval_seconds"] != shown:
                continue
            cells: list[object] = [*names, brief(row["interval_seconds"])]
            for column in claims:
                loading = row[f"loading_factor{column}"]
                hours = row[f"idle_core_hours_per_day{column}"]
                hours = DAY_HOURS * (1 - loading) if hours is None else hours
                cells += [round(100 * loading, 2), brief(hours)]
            ratio = row["negotiating_ratio"]
            negotiating = "?" if ratio is None else f"{ratio:.1%}"
            yield (*cells, negotiating, round(row["cycles_per_day"]))


def notes(comparison: Comparison, facts: Facts) -> Iterator[str]:
    """Assumptions, unknown values, and why nothing is recommended."""
    terms, duration = comparison.terms, comparison.terms.duration_seconds
    yield from facts.notes
    if not terms.cores:
        yield "how many cores the pool has is not known (--cores): idle time is that of one core"
    elif comparison.parts:
        yield (
            "idle core-hours of a group or size are those of its share of the core-seconds that "
            "all jobs hold, worked and idle; --json has all intervals"
        )
    if facts.durations:
        took = ", ".join(f"{seconds:g}" for seconds in facts.durations)
        yield f"the negotiator's last cycles took {took} s, in whole seconds"
        if not facts.jobs_waited:
            yield "no job waited in them: cycles of a busy pool take longer (--cycle-duration)"
    if duration is None:
        yield (
            "how long a negotiation cycle takes is not known (--cycle-duration): no interval is "
            "recommended, because the negotiator might not keep up with it"
        )
        return
    late = [option for option in comparison.costs[0].options if option.late]
    if late:
        intervals = ", ".join(f"{option.interval_seconds:g}" for option in late)
        yield (
            f"NEGOTIATOR_INTERVAL = {intervals} cannot be kept: a cycle takes up to {duration:g} s "
            "and the next begins no sooner than NEGOTIATOR_CYCLE_DELAY = "
            f"{terms.cycle_delay_seconds:g} s after it, so {late[0].period_seconds:g} s after its "
            "start; figures are those of what then happens"
        )
    yield from _about_choice(comparison, duration)


def _about_choice(comparison: Comparison, duration: float) -> Iterator[str]:
    """Why nothing is recommended, or what speaks against it."""
    terms, choice = comparison.terms, comparison.choice
    if comparison.several_laws:
        yield "no interval is recommended for several laws together: give one --run-time"
    elif not terms.allows(max(terms.intervals)):
        yield (
            f"a cycle takes up to {duration:g} s: at none of these intervals would the negotiator "
            f"negotiate for at most {_percent(terms.most_negotiating)} of its time; give longer "
            "ones (--interval), or --most-negotiating"
        )
    elif choice is None:
        yield (
            "no interval is recommended: each one that the negotiator can keep up with costs more "
            "idle core-hours than it saves beside HTCondor's default, NEGOTIATOR_INTERVAL = 60"
        )
    elif terms.worklife_seconds:
        alone = beside(choice.option, choice.default, terms.cores, reused=False)
        worklife = terms.worklife_seconds
        age = "ever" if worklife < 0 else f"{brief(worklife)} s (CLAIM_WORKLIFE)"
        if alone.costs_more_than_it_saves:
            yield (
                f"warning: claim reuse makes {brief(choice.option.interval_seconds)} s look cheap. "
                f"A claim goes from job to job of one user for {age}, and meanwhile other groups "
                "do not get its cores. With one job a claim this interval loses "
                f"{_more_idle(alone)} than HTCondor's default: if several groups wait, choose by "
                "--claim-worklife 0"
            )


def reasons(comparison: Comparison, choice: Recommendation) -> Iterator[str]:
    """Why this interval, in sentences."""
    terms, option, best = comparison.terms, choice.option, choice.best
    duration = terms.duration_seconds or 0.0
    longest = "the same is" if option == best else f"{brief(option.interval_seconds)} s is"
    yield (
        f"By the column '{_basis(comparison)}' (--claim-worklife). A cycle takes up to "
        f"{brief(duration)} s, and is to take at most {_percent(terms.most_negotiating)} of the "
        f"negotiator's time: of the intervals from {brief(duration / terms.most_negotiating)} s "
        f"on, {brief(best.interval_seconds)} s loses least ({_loss(best, terms.cores)}), and "
        f"{longest} the longest that loses at most {_percent(terms.tolerance)} of the cores' time "
        f"more ({_loss(option, terms.cores)})."
    )
    if option.interval_seconds != Knobs.interval_seconds:
        cost = beside(option, choice.default, terms.cores)
        hours = cost.negotiating_hours_per_day
        yield (
            f"Beside HTCondor's default, NEGOTIATOR_INTERVAL = {Knobs.interval_seconds}, it loses "
            f"{_more_idle(cost)}, and the negotiator negotiates "
            f"{brief(abs(hours))} h a day {'more' if hours > 0 else 'less'}."
        )
    if comparison.now is not None:
        yield (
            f"As it is configured now, a cycle begins up to {brief(comparison.now.period_seconds)} "
            f"s after the last: {_loss(comparison.now, terms.cores)}."
        )


def _basis(comparison: Comparison) -> str:
    """Column that the recommendation goes by."""
    worklife = comparison.terms.worklife_seconds
    if worklife == 0:
        return "one job a claim"
    return "claims reused for ever" if worklife < 0 else f"claims reused {brief(worklife)} s"


def _more_idle(cost: Beside) -> str:
    """Idle core-hours a day more or less, or a part of the cores' time."""
    word = "more" if cost.idle_ratio > 0 else "less"
    if cost.idle_core_hours_per_day is None:
        return f"{abs(cost.idle_ratio):.2%} of the cores' time {word}"
    return f"{brief(abs(cost.idle_core_hours_per_day))} idle core-hours a day {word}"


def _loss(option: IntervalCost, cores: Optional[int]) -> str:
    lost = f"{option.idle:.1%} of the cores' time"
    if cores is None:
        return lost
    hours = brief(DAY_HOURS * cores * option.idle)
    return f"{lost}, {hours} idle core-hours a day on {counted(cores, 'core')}"


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


def brief(value: float) -> str:
    """A number with at least three digits, none of them in vain."""
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
    """SVG file of the saw-tooth over run times, for each interval."""
    longest = 4 * max(intervals)
    teeth = {f"{interval:g} s": sawteeth(interval, longest) for interval in intervals}
    drawing = Figure(
        key="saw-tooth",
        title="Loading factor over run time in seconds",
        description="It is 1 at whole numbers of cycles, and n / (n + 1) just past n.",
        across=(0.0, longest),
        ticks=ticks_up_to(longest, 5),
        up=Limits(0.0, 1.0, 0.25),
        unit=AxisUnit(1.0, "loading factor"),
        curves=[
            Curve(name, f"group{number % GROUPS}", [Value(*corner) for corner in corners])
            for number, (name, corners) in enumerate(teeth.items())
        ],
        across_words="seconds",
    )
    return document([drawing])
