"""``sharectl cadence``."""

from __future__ import annotations

import argparse
import sys
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Optional

from sharectl.errors import PoolUnavailableError, StateError
from sharectl.words import counted

if TYPE_CHECKING:
    from sharectl.cadence.choice import Knobs
    from sharectl.cadence.loads import JobsRun
    from sharectl.report.cadence import Facts

DEFAULT_INTERVALS = (20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 600.0)
DEFAULT_PLOT_INTERVALS = (60.0, 300.0)
_DAY_SECONDS = 86400
_MOST_INTERVALS = 30
_MOST = 10**9
_FEW_JOBS = 100
_SOURCES = """\
from one of these; without any, from the live pool. With a law or a file no pool is asked: cores and
durations of cycles are then unknown, unless --cores and --cycle-duration give them"""

_EPILOG = """\
The loading factor of jobs that run for D seconds, at cycles every C seconds, is
D / (C * ceil(D / C)): a slot that becomes free stays idle until the next cycle begins. Where run
times vary it is the ratio of the means of both, the share of their time that slots work.
docs/cadence.md has more.

  sharectl cadence                            the live pool: its jobs, its negotiator, a choice
  sharectl cadence --run-time constant:255 --interval 60,300
  sharectl cadence --history jobs.json --by group     jobs.json is the output of
      {command}
  sharectl cadence --swf LOG.swf.gz --cores 5000 --cycle-duration 12
  sharectl cadence --run-time exponential:900 --interval 60,300 --plot teeth.svg

Nothing is changed anywhere: the recommendation is configuration of the central manager.

exit codes: 0 ok, 2 usage, 65 bad input file, 74 a plot cannot be written, 75 a daemon of the pool
did not answer (answers of the others are used all the same), 78 configuration"""

_WITHOUT_EFFECT = {
    "--run-time": ("--by", "--limit", "--config", "--negotiator"),
    "--history": ("--negotiator",),
    "--swf": ("--config", "--negotiator"),
}
"""Source of run times -> options without effect: no pool is asked, and laws have no groups."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    from sharectl.cadence.asks import COMMAND

    parser.set_defaults(usage_error=parser.error)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG.format(command=COMMAND)
    _add_sources(parser)
    _add_costs(parser)
    out = parser.add_argument_group("output")
    out.add_argument("--json", action="store_true", help="print JSON, with a schema version")
    out.add_argument(
        "--plot",
        type=_plot_file,
        action="append",
        default=[],
        metavar="FILE",
        help="draw the saw-tooth of the formula over run times in seconds and in cycles, into "
        "FILE.svg; may be repeated",
    )


def _add_sources(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("run times", _SOURCES)
    source = group.add_mutually_exclusive_group()
    source.add_argument(
        "--run-time",
        type=_law,
        action="append",
        metavar="LAW",
        help="constant:SECONDS, exponential:MEAN, normal:MEAN,SD (cut off at 0) or "
        "log-normal:MEAN,SD, mean and standard deviation of the run times themselves, all in "
        "seconds up to 1e9; may be repeated",
    )
    source.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help="what `condor_history -json` printed; may be packed by gzip",
    )
    source.add_argument(
        "--swf",
        type=Path,
        metavar="FILE",
        help="a job log in Standard Workload Format; may be packed by gzip",
    )
    source.add_argument(
        "--live",
        action="store_true",
        help="history of all schedds, and the negotiator's last cycles (default)",
    )
    group.add_argument(
        "--by",
        choices=("size", "group"),
        help="also each job size, or each group, by itself; not with --run-time",
    )
    group.add_argument(
        "--limit",
        type=_whole_number,
        metavar="JOBS",
        help="look at no more jobs: of each schedd the newest (default: 10000), of a file the "
        "first (default: 2000000); not with --run-time",
    )
    group.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="sharectl's configuration, for its groups (live and with --history), collector and "
        "deadlines (live); without it groups are what jobs say",
    )
    group.add_argument(
        "--negotiator",
        metavar="NAME",
        help="which, where the live pool has several (condor_status -negotiator); live only",
    )


def _add_costs(parser: argparse.ArgumentParser) -> None:
    costs = parser.add_argument_group("what it costs")
    usual, plotted = (
        ",".join(f"{seconds:g}" for seconds in defaults)
        for defaults in (DEFAULT_INTERVALS, DEFAULT_PLOT_INTERVALS)
    )
    costs.add_argument(
        "--interval",
        type=_intervals,
        metavar="SECONDS[,…]",
        help=f"intervals to compare (default: {usual}; live, the negotiator's own too; for "
        f"--plot {plotted})",
    )
    costs.add_argument(
        "--claim-worklife",
        type=_seconds(-_MOST),
        default=1200.0,
        metavar="SECONDS",
        help="CLAIM_WORKLIFE of the slots: a claim runs jobs back to back until one ends when it "
        "is older; 0 for one job a claim, -1 for claims that do not age (default: %(default)g, as "
        "HTCondor's; nodes are not asked)",
    )
    costs.add_argument(
        "--cores",
        type=_whole_number,
        metavar="CORES",
        help="of the pool (default: live, what the collector knows; else not known, and idle time "
        "is told for one core)",
    )
    costs.add_argument(
        "--cycle-duration",
        type=_seconds(0),
        metavar="SECONDS",
        help="how long a cycle takes at most (default: live, the longest of the negotiator's last "
        "ones, and a second; else not known, and no interval is recommended)",
    )
    costs.add_argument(
        "--most-negotiating",
        type=_share,
        default=0.25,
        metavar="SHARE",
        help="share of its time that the negotiator may negotiate, such as 0.25 or 25%% (default: "
        "%(default)g)",
    )
    costs.add_argument(
        "--tolerance",
        type=_share,
        default=0.01,
        metavar="SHARE",
        help="the longest interval is recommended that loses at most this share of the cores' "
        "time more than the best, such as 0.01 or 1%% (default: %(default)g)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what each interval costs and which to choose; 75 if a daemon did not answer."""
    idle = _without_effect(arguments)
    if idle:
        arguments.usage_error("; ".join(idle))
    from sharectl.cadence.choice import Terms, compare
    from sharectl.report import as_json, cadence
    from sharectl.report.tables import printable

    _draw(arguments)
    facts = _facts(arguments)
    duration = arguments.cycle_duration
    if duration is None and facts.durations:
        # The negotiator's clock counts whole seconds: a cycle may have taken so much longer.
        duration = max(facts.durations) + 1
    interval = float(facts.knobs.get("NEGOTIATOR_INTERVAL", 0))
    own = {interval} if 0 < interval <= _DAY_SECONDS else set()
    terms = Terms(
        intervals=arguments.interval or tuple(sorted({*DEFAULT_INTERVALS, *own})),
        worklife_seconds=arguments.claim_worklife,
        cores=arguments.cores or facts.cores,
        duration_seconds=duration,
        most_negotiating=arguments.most_negotiating,
        tolerance=arguments.tolerance,
        cycle_delay_seconds=float(
            facts.knobs.get("NEGOTIATOR_CYCLE_DELAY", Terms.cycle_delay_seconds)
        ),
    )
    comparison = compare(facts.loads, terms, _own_knobs(facts))
    if arguments.json:
        print(as_json.dumps("cadence", cadence.as_content(comparison, facts)))
    else:
        cadence.print_findings(comparison, facts, sys.stdout)
    for problem in facts.problems:
        print(f"sharectl: {printable(problem)}", file=sys.stderr)
    return 75 if facts.problems else 0


def _draw(arguments: argparse.Namespace) -> None:
    from sharectl.report.cadence import figure

    for path in arguments.plot:
        try:
            drawing = figure(arguments.interval or DEFAULT_PLOT_INTERVALS)
            path.write_text(drawing, encoding="utf-8")
        except OSError as error:
            raise StateError(f"{path}: cannot be written: {error.strerror or error}") from error


def _facts(arguments: argparse.Namespace) -> Facts:
    """Run times of the source that the options name."""
    from sharectl.cadence import asks
    from sharectl.cadence.loads import Load
    from sharectl.config.load import load
    from sharectl.report.cadence import Facts

    if arguments.run_time:
        laws = tuple(Load(name, ((1.0, law),)) for name, law in arguments.run_time)
        return Facts("laws of run times", laws, unasked="--run-time")
    config = load(arguments.config) if arguments.config else None
    groups = config.tree.names if config else None
    if arguments.history:
        limit = arguments.limit or asks.FILE_MOST_JOBS
        jobs = asks.history_read(arguments.history, groups, limit)
        return _of_jobs(jobs, arguments, arguments.history, unasked="--history")
    if arguments.swf:
        jobs = asks.swf_read(arguments.swf, arguments.limit or asks.FILE_MOST_JOBS)
        return _of_jobs(jobs, arguments, arguments.swf, unasked="--swf")
    access: dict[str, Any] = {"groups": groups, "negotiator": arguments.negotiator}
    if arguments.limit:
        access["limit"] = arguments.limit
    if config is not None:
        access["collector"] = config.pool.collector
        access["collector_deadline_seconds"] = config.pool.collector_deadline_seconds
        access["schedd_deadline_seconds"] = config.pool.schedd_deadline_seconds
    pool = asks.ask(**access)
    problems = tuple(
        f"{source.name}: {source.problem}" for source in pool.sources if source.problem
    )
    if not pool.jobs.counted:
        left_out = "; ".join(_left_out(pool.jobs, None)) or "no history"
        nothing = (
            f"no schedd told of a job that ran ({left_out}): give --run-time, --history or --swf"
        )
        raise PoolUnavailableError("\n".join([*problems, nothing]))
    return _of_jobs(
        pool.jobs,
        arguments,
        None,
        source=f"the live pool, {counted(pool.schedds, 'schedd')}",
        cores=pool.cores,
        durations=tuple(cycle.duration_seconds for cycle in pool.cycles),
        periods=tuple(cycle.period_seconds for cycle in pool.cycles if cycle.period_seconds),
        jobs_waited=any(cycle.idle_jobs for cycle in pool.cycles),
        knobs=pool.knobs,
        problems=problems,
    )


def _of_jobs(
    jobs: JobsRun, arguments: argparse.Namespace, file: Optional[Path], **facts: Any
) -> Facts:
    from sharectl.cadence.loads import loads
    from sharectl.report.cadence import Facts

    hours = counted(round(jobs.core_seconds / 3600), "core-hour")
    notes = [f"run times of {counted(jobs.jobs, 'job')}, {hours}", *_left_out(jobs, file)]
    if jobs.jobs < _FEW_JOBS:
        notes.append("that are few: the next ones may be quite different")
    return Facts(**{"source": str(file), **facts}, loads=loads(jobs, arguments.by), notes=notes)


def _left_out(jobs: JobsRun, file: Optional[Path]) -> list[str]:
    notes = [f"jobs left out: {count} ({why})" for why, count in jobs.left_out.items()]
    if jobs.limit is not None:
        which = f"the first of {file}" if file else "the newest of each schedd"
        notes.append(f"no more than {counted(jobs.limit, 'job')} looked at (--limit): {which}")
    return notes


def _own_knobs(facts: Facts) -> Optional[Knobs]:
    """The negotiator's configuration; None if it did not tell all of it."""
    from sharectl.cadence.choice import Knobs
    from sharectl.condor.negotiator import KNOBS

    if len(facts.knobs) < len(KNOBS):
        return None
    return Knobs(*(float(facts.knobs[name]) for name in KNOBS))


def _without_effect(arguments: argparse.Namespace) -> list[str]:
    """Options that would change nothing."""

    def is_set(option: str) -> bool:
        return getattr(arguments, option[2:].replace("-", "_")) is not None

    return [
        f"{option} does nothing with {source}; leave {option} out"
        for source, options in _WITHOUT_EFFECT.items()
        if is_set(source)
        for option in options
        if is_set(option)
    ]


def _law(text: str) -> tuple[str, Any]:
    """A law with its name."""
    from sharectl.cadence.run_times import parse

    try:
        return text, parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _intervals(text: str) -> tuple[float, ...]:
    """Intervals in seconds, the shortest first, each once."""
    words = text.split(",")
    wrong = [word for word in words if not (word.isdecimal() and 0 < _number(word) <= _DAY_SECONDS)]
    if wrong or len(words) > _MOST_INTERVALS:
        fault = f"{wrong[0][:20]!r}" if wrong else f"{len(words)} intervals"
        raise argparse.ArgumentTypeError(
            f"{fault}: write up to {_MOST_INTERVALS} intervals in whole seconds from 1 to "
            f"{_DAY_SECONDS}, such as 60,300"
        )
    return tuple(sorted({float(word) for word in words}))


def _seconds(least: float) -> Callable[[str], float]:
    def parsed(text: str) -> float:
        value = _number(text)
        if not least <= value <= _MOST:
            from_0 = " from 0 on" if least == 0 else ""
            raise argparse.ArgumentTypeError(
                f"{text[:20]!r}: write seconds{from_0}, up to {_MOST}, such as 1200"
            )
        return value

    return parsed


def _number(text: str) -> float:
    """A number; NaN if ``text`` is no finite one."""
    try:
        value = float(text)
    except ValueError:
        return float("nan")
    return value if isfinite(value) else float("nan")


def _share(text: str) -> float:
    """A share above 0 and below 1, as such or in percent."""
    stripped = text.strip()
    value = _number(stripped[:-1]) / 100 if stripped.endswith("%") else _number(stripped)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"{text[:20]!r}: write a share between 0 and 1, such as 0.25 or 25%, which is the same"
        )
    return value


def _whole_number(text: str) -> int:
    """A whole number above 0."""
    if not (text.isdecimal() and 0 < _number(text) < _MOST):
        raise argparse.ArgumentTypeError(
            f"{text[:20]!r}: write a whole number above 0 and below {_MOST}"
        )
    return int(text)


def _plot_file(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() != ".svg":
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: write a name that ends in .svg")
    return path
