"""What ``sharectl cadence`` looks at, and what comes of it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

from sharectl.cadence import asks
from sharectl.cadence.choice import (
    CHANGE,
    CLOCK_SECONDS,
    DAY_SECONDS,
    Choice,
    Knobs,
    Option,
    beside,
    choose,
    default_option,
    options,
    options_as_kept,
)
from sharectl.cadence.loads import Jobs, Load, loads
from sharectl.cli.cadence_options import DEFAULT_INTERVALS, source_of
from sharectl.condor import negotiator
from sharectl.condor.negotiator import Cycle
from sharectl.config.load import load
from sharectl.errors import PoolUnavailableError
from sharectl.report.cadence import (
    Cost,
    Findings,
    actual_period,
    age_words,
    brief,
    in_percent,
    more_idle,
)
from sharectl.words import counted

_FEW_JOBS = 100
_NOT_WORTH_IT = (
    "no interval is recommended: each one that the negotiator can keep up with costs more idle "
    "core-hours than it saves "
    "beside HTCondor's default, NEGOTIATOR_INTERVAL = 60"
)
_SEVERAL_LAWS = "no interval is recommended for several laws together: give one --run-time"


@dataclass(frozen=True)
class Look:
    """Run times, and what else was told with them."""

    source: str
    loads: tuple[Load, ...]
    cores: Optional[int] = None
    cycles: tuple[Cycle, ...] = ()
    knobs: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def look(arguments: argparse.Namespace) -> Look:
    """What the options name.

    Raises
    ------
    SharectlError
        If it cannot be read or asked, or tells of no run time.
    """
    if arguments.run_time:
        laws = tuple(Load(name, ((1.0, law),)) for name, law in arguments.run_time)
        return Look("laws of run times", laws)
    config = load(arguments.config) if arguments.config else None
    groups = config.tree.names if config else None
    if arguments.history:
        limit = arguments.limit or asks.HISTORY_MOST_JOBS
        return _of_jobs(asks.history_read(arguments.history, groups, limit), arguments)
    if arguments.swf:
        limit = arguments.limit or asks.SWF_MOST_JOBS
        return _of_jobs(asks.swf_read(arguments.swf, limit), arguments)
    told = asks.ask(_access(arguments, config, groups))
    problems = tuple(
        f"{source.name}: {source.problem}" for source in told.sources if source.problem
    )
    if not told.jobs.counted:
        left_out = "; ".join(_left_out(told.jobs, None))
        nothing = (
            f"no schedd told of a job that ran ({left_out or 'no history'}): give --run-time, "
            "--history or --swf"
        )
        raise PoolUnavailableError("\n".join([*problems, nothing]))
    seen = _of_jobs(told.jobs, arguments)
    return Look(
        f"the live pool, {counted(told.schedds, 'schedd')}",
        seen.loads,
        told.cores,
        told.cycles,
        told.knobs,
        seen.notes,
        problems,
    )


def _access(
    arguments: argparse.Namespace, config: Any, groups: Optional[tuple[str, ...]]
) -> asks.Access:
    limit = arguments.limit or asks.POOL_MOST_JOBS
    if config is None:
        return asks.Access(None, groups, arguments.negotiator, limit)
    return asks.Access(
        config.pool.collector,
        groups,
        arguments.negotiator,
        limit,
        config.pool.collector_deadline_seconds,
        config.pool.schedd_deadline_seconds,
    )


def _of_jobs(jobs: Jobs, arguments: argparse.Namespace) -> Look:
    source = arguments.history or arguments.swf
    notes = [
        (
            f"run times of {counted(jobs.jobs, 'job')}, "
            f"{counted(round(jobs.core_seconds / 3600), 'core-hour')}"
        ),
        *_left_out(jobs, source),
    ]
    if jobs.jobs < _FEW_JOBS:
        notes.append("that are few: the next ones may be quite different")
    return Look(str(source), loads(jobs, arguments.by), notes=tuple(notes))


def _left_out(jobs: Jobs, file: Optional[Path]) -> list[str]:
    notes = [f"jobs left out: {count} ({why})" for why, count in jobs.left_out.items()]
    if jobs.limit is not None:
        which = f"the first of {file}" if file else "the newest of each schedd"
        notes.append(f"no more than {counted(jobs.limit, 'job')} looked at (--limit): {which}")
    return notes


def findings(arguments: argparse.Namespace, seen: Look) -> Findings:
    """What each interval costs, and which to choose."""
    duration = arguments.cycle_duration
    if duration is None and seen.cycles:
        duration = max(cycle.duration_seconds for cycle in seen.cycles) + CLOCK_SECONDS
    chosen = arguments.interval or _intervals(seen)
    delay = float(seen.knobs.get("NEGOTIATOR_CYCLE_DELAY", Knobs().cycle_delay_seconds))

    def at(load: Load, worklife: float) -> tuple[Option, ...]:
        return options_as_kept(
            chosen,
            lambda interval: load.loading(interval, worklife),
            duration,
            delay,
            arguments.most_negotiating,
        )

    costs = tuple(_cost(load, at, arguments.claim_worklife) for load in seen.loads)
    # The first of them are all jobs together; a recommendation for one of several laws would be
    # none.
    one = len(costs) == 1 or seen.loads[0].jobs is not None
    choice = _choice(arguments, seen, costs[0], duration) if duration is not None and one else None
    return Findings(
        costs=costs,
        worklife_seconds=arguments.claim_worklife,
        cores=arguments.cores or seen.cores,
        duration_seconds=duration,
        most_negotiating=arguments.most_negotiating,
        tolerance=arguments.tolerance,
        now=_now(seen, duration, arguments.claim_worklife) if one else None,
        choice=choice,
        notes=(
            *seen.notes,
            *_notes(arguments, seen, duration, chosen),
            *([] if one or duration is None else [_SEVERAL_LAWS]),
            *_late(costs[0].alone, duration, delay),
            *_weighed(arguments, seen, costs[0], duration, choice if one else None, one=one),
        ),
    )


def _choice(
    arguments: argparse.Namespace, seen: Look, cost: Cost, duration: float
) -> Optional[Choice]:
    """Interval to recommend by the column of claims that are used again."""
    load, worklife = seen.loads[0], arguments.claim_worklife
    return choose(
        cost.reused,
        default_option(lambda seconds: load.loading(seconds, worklife), duration),
        arguments.cores or seen.cores,
        duration,
        arguments.most_negotiating,
        arguments.tolerance,
        lambda interval: load.worst_loading(interval, worklife, CHANGE),
    )


def _weighed(
    arguments: argparse.Namespace,
    seen: Look,
    cost: Cost,
    duration: Optional[float],
    choice: Optional[Choice],
    *,
    one: bool,
) -> list[str]:
    """Why no interval is worth its cost, or that the one which is would not be if claims were not used again."""
    if duration is None or not one:
        return []
    if choice is None:
        can_keep = duration <= arguments.most_negotiating * max(
            option.interval_seconds for option in cost.reused
        )
        return [_NOT_WORTH_IT] if can_keep else []
    if arguments.claim_worklife == 0:
        return []
    alone = cost.alone[cost.reused.index(choice.option)]
    default = default_option(lambda seconds: seen.loads[0].loading(seconds, 0), duration)
    without = beside(alone, default, arguments.cores or seen.cores)
    if not without.costs_more_than_it_saves:
        return []
    said = (
        f"warning: claim reuse makes {brief(alone.interval_seconds)} s look cheap. A claim goes "
        "from job to job of one user "
        f"{age_words(arguments.claim_worklife)}, and meanwhile other groups do not get its "
        "cores. With one job a claim this "
        f"interval loses {more_idle(without)} than HTCondor's default: if several groups wait, "
        "choose by --claim-worklife 0"
    )
    return [said]


def _late(offered: tuple[Option, ...], duration: Optional[float], delay: float) -> list[str]:
    """Which intervals cannot be kept."""
    late = [option for option in offered if option.late_seconds]
    if not late:
        return []
    which = ", ".join(f"{option.interval_seconds:g}" for option in late)
    said = (
        f"NEGOTIATOR_INTERVAL = {which} cannot be kept: a cycle takes up to {duration:g} s and "
        "the next begins no sooner "
        f"than NEGOTIATOR_CYCLE_DELAY = {delay:g} s after it, so {late[0].late_seconds:g} s "
        "after its start; figures are "
        "those of what then happens"
    )
    return [said]


def _intervals(seen: Look) -> tuple[float, ...]:
    """The usual ones, and the one that the negotiator has."""
    own = float(seen.knobs.get("NEGOTIATOR_INTERVAL", 0))
    return tuple(sorted({*DEFAULT_INTERVALS, *([own] if 0 < own <= DAY_SECONDS else [])}))


def _now(seen: Look, duration: Optional[float], worklife: float) -> Optional[Option]:
    """What the negotiator's configuration costs now; None if it did not tell it."""
    if len(seen.knobs) < len(negotiator.KNOBS):
        return None
    period = max(1.0, _knobs(seen).period_seconds(duration or 0))
    if period > DAY_SECONDS:
        return None
    return options([(period, seen.loads[0].loading(period, worklife))], duration)[0]


def _knobs(seen: Look) -> Knobs:
    return Knobs(*(float(seen.knobs[name]) for name in negotiator.KNOBS))


def _cost(load: Load, at: Callable[[Load, float], tuple[Option, ...]], worklife: float) -> Cost:
    alone = at(load, 0)
    return Cost(load, alone, at(load, worklife) if worklife != 0 else alone)


def _notes(
    arguments: argparse.Namespace, seen: Look, duration: Optional[float], chosen: tuple[float, ...]
) -> list[str]:
    """What was assumed, and what is not known."""
    notes = []
    source = source_of(arguments)
    unasked = f", as no pool is asked with {source}" if source else ""
    if not (arguments.cores or seen.cores):
        notes.append(
            f"how many cores the pool has is not known{unasked} (--cores): idle time is told "
            "for one core"
        )
    if duration is None:
        notes.append(
            f"how long a negotiation cycle takes is not known{unasked} (--cycle-duration): no "
            "interval is recommended, since "
            "the shortest that the negotiator can keep up with is not known either"
        )
    elif duration > arguments.most_negotiating * max(chosen):
        notes.append(
            f"a cycle takes up to {duration:g} s: at none of these intervals would the "
            "negotiator negotiate for at most "
            f"{in_percent(arguments.most_negotiating)} of its time; give longer ones "
            "(--interval), or --most-negotiating"
        )
    if seen.cycles:
        notes += _cycle_notes(seen, duration or 0)
    return notes


def _cycle_notes(seen: Look, duration: float) -> list[str]:
    took = ", ".join(f"{cycle.duration_seconds:g}" for cycle in seen.cycles)
    began = ", ".join(f"{cycle.period_seconds:g}" for cycle in seen.cycles if cycle.period_seconds)
    notes = [
        (
            f"the negotiator's last cycles took {took} s, in whole seconds, and began "
            f"{began or '?'} s apart"
        )
    ]
    if not any(cycle.idle_jobs for cycle in seen.cycles):
        notes.append(
            "no job waited in these cycles: cycles of a busy pool take longer (--cycle-duration)"
        )
    if len(seen.knobs) == len(negotiator.KNOBS):
        late = actual_period(_knobs(seen), duration)
        notes += [late] if late else []
    return notes
