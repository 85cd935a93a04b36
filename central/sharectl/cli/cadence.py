"""``sharectl cadence``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from math import nan
from pathlib import Path
from typing import Any, Callable

from sharectl.cadence import asks
from sharectl.cadence.choice import Knobs, Terms, compare
from sharectl.cadence.run_times import Facts, Load, parse
from sharectl.cli import options
from sharectl.condor.negotiator import KNOBS
from sharectl.config.load import load
from sharectl.config.model import PoolConfig
from sharectl.report import cadence
from sharectl.words import printable

DEFAULT_INTERVALS = (20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 600.0)
DEFAULT_PLOT_INTERVALS = (60.0, 300.0)
_USUAL = ",".join(f"{seconds:g}" for seconds in DEFAULT_INTERVALS)
_DAY_SECONDS = 86400
_MOST = 10**9
_SOURCES = """\
from one of these; without any, from the live pool. With a law or a file no pool is asked: cores and
durations of cycles are then unknown, unless --cores and --cycle-duration give them"""

_EPILOG = f"""\
The loading factor of jobs that run for D seconds, at cycles every C seconds, is
D / (C * ceil(D / C)): a slot that becomes free stays idle until the next cycle begins. Where run
times vary it is the ratio of the means of both, the share of their time that slots work.
docs/cadence.md has more.

  sharectl cadence                            the live pool: its jobs, its negotiator, a choice
  sharectl cadence --run-time constant:255 --interval 60,300
  sharectl cadence --history jobs.json --by group     jobs.json is the output of
      {asks.COMMAND}
  sharectl cadence --swf LOG.swf.gz --cores 5000 --cycle-duration 12
  sharectl cadence --run-time exponential:900 --interval 60,300 --plot teeth.svg

Nothing is changed anywhere: the recommendation is configuration of the central manager.

exit codes: 0 ok, 2 usage, 65 bad input file, 74 a plot cannot be written, 75 a daemon of the pool
did not answer (answers of the others are used all the same), 78 configuration"""

_HELP = {
    "--run-time": """constant:SECONDS, exponential:MEAN, normal:MEAN,SD (cut off at 0) or
        log-normal:MEAN,SD, mean and standard deviation of the run times themselves, all in seconds
        up to 1e9; may be repeated""",
    "--history": "what `condor_history -json` printed; may be packed by gzip",
    "--swf": "a job log in Standard Workload Format; may be packed by gzip",
    "--live": "history of all schedds, and the negotiator's last cycles (default)",
    "--by": "also each job size, or each group, by itself; not with --run-time",
    "--limit": """look at no more jobs: of each schedd the newest (default: 10000), of a file the
        first (default: 2000000); not with --run-time""",
    "--config": """sharectl's configuration, for its groups (live and with --history), collector and
        deadlines (live); without it groups are what jobs say""",
    "--negotiator": "which, where the live pool has several (condor_status -negotiator); live only",
    "--interval": f"""intervals to compare (default: {_USUAL}; live, the negotiator's own too; for
        --plot 60,300)""",
    "--claim-worklife": """CLAIM_WORKLIFE of the slots: a claim runs jobs back to back until one
        ends when it is older; 0 for one job a claim, -1 for claims that do not age (default:
        %(default)g, as HTCondor's; nodes are not asked)""",
    "--cores": """of the pool (default: live, what the collector knows; else not known, and idle
        time is told for one core)""",
    "--cycle-duration": """how long a cycle takes at most (default: live, the longest of the
        negotiator's last ones, and a second; else not known, and no interval is recommended)""",
    "--most-negotiating": """share of its time that the negotiator may negotiate, such as 0.25 or
        25%% (default: %(default)g)""",
    "--tolerance": """the longest interval is recommended that loses at most this share of the
        cores' time more than the best, such as 0.01 or 1%% (default: %(default)g)""",
    "--plot": "draw the saw-tooth of the formula over run times into FILE.svg",
}

_WITHOUT_EFFECT = {
    "--run-time": ("--by", "--limit", "--config", "--negotiator"),
    "--history": ("--negotiator",),
    "--swf": ("--config", "--negotiator"),
}
"""Source of run times -> options without effect: no pool is asked, and laws have no groups."""


def _number(least: float, most: float, *, whole: bool = False) -> Callable[[str], float]:
    """Type of an argument that is a number between two bounds, which are included."""

    def parsed(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not least <= value <= most or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            raise ValueError(f"{text[:20]!r}: write {kind} from {least:.10g} to {most:.10g}")
        return int(value) if whole else value

    return parsed


def _intervals(text: str) -> tuple[float, ...]:
    """Intervals in seconds, the shortest first, each once."""
    return tuple(sorted(set(map(_number(1, _DAY_SECONDS, whole=True), text.split(",")))))


def _share(text: str) -> float:
    """A share, as such or in percent."""
    stripped = text.strip()
    if stripped.endswith("%"):
        return _number(0.01, 99.99)(stripped[:-1]) / 100
    return _number(0.0001, 0.9999)(stripped)


def _plot_file(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() != ".svg":
        raise ValueError(f"{text[:80]!r}: write a name that ends in .svg")
    return path


_FILE = {"metavar": "FILE", "type": Path}
_SHARE = {"metavar": "SHARE", "type": _share}
_SOURCE: Mapping[str, dict[str, Any]] = {
    "--run-time": {"metavar": "LAW", "type": lambda text: (text, parse(text)), "action": "append"},
    "--history": _FILE,
    "--swf": _FILE,
    "--live": {"action": "store_true"},
}
_RUN_TIMES: Mapping[str, dict[str, Any]] = {
    "--by": {"choices": ("size", "group")},
    "--limit": {"metavar": "JOBS", "type": _number(1, _MOST, whole=True)},
    "--config": _FILE,
    "--negotiator": {"metavar": "NAME"},
}
_COSTS: Mapping[str, dict[str, Any]] = {
    "--interval": {"metavar": "SECONDS[,…]", "type": _intervals},
    "--claim-worklife": {"metavar": "SECONDS", "type": _number(-1, _MOST), "default": 1200.0},
    "--cores": {"metavar": "CORES", "type": _number(1, _MOST, whole=True)},
    "--cycle-duration": {"metavar": "SECONDS", "type": _number(0, _MOST)},
    "--most-negotiating": {**_SHARE, "default": 0.25},
    "--tolerance": {**_SHARE, "default": 0.01},
}
"""Options of each group -> keywords of argparse besides their `_HELP`."""


def _add(parser: argparse.ArgumentParser) -> None:
    run_times = parser.add_argument_group("run times", _SOURCES)
    for group, table in (
        (run_times.add_mutually_exclusive_group(), _SOURCE),
        (run_times, _RUN_TIMES),
        (parser.add_argument_group("what it costs"), _COSTS),
        (parser, {"--plot": {"metavar": "FILE", "type": _plot_file}}),
    ):
        for option, keywords in table.items():
            group.add_argument(option, help=_HELP[option], **keywords)


def _run(arguments: argparse.Namespace) -> int:
    """Print what each interval costs and which to choose; 75 if a daemon did not answer."""
    _refuse_idle_options(arguments)
    if arguments.plot:
        drawing = cadence.figure(arguments.interval or DEFAULT_PLOT_INTERVALS)
        arguments.plot.write_text(drawing, encoding="utf-8")
    facts = _facts(arguments)
    duration = arguments.cycle_duration
    if duration is None and facts.durations:
        # The negotiator's clock counts whole seconds: a cycle may have taken so much longer.
        duration = max(facts.durations) + 1
    interval, delay, shortest = (facts.knobs.get(name) for name in KNOBS)
    configured = {float(interval)} if interval and interval <= _DAY_SECONDS else set()
    terms = Terms(
        intervals=arguments.interval or tuple(sorted({*DEFAULT_INTERVALS, *configured})),
        worklife_seconds=arguments.claim_worklife,
        cores=arguments.cores or facts.cores,
        duration_seconds=duration,
        most_negotiating=arguments.most_negotiating,
        tolerance=arguments.tolerance,
        cycle_delay_seconds=Knobs.cycle_delay_seconds if delay is None else delay,
    )
    now = None
    if interval is not None and delay is not None and shortest is not None:
        now = Knobs(interval, delay, shortest)
    comparison = compare(facts.loads, terms, now)
    text = partial(cadence.print_findings, comparison, facts)
    options.show(arguments, "cadence", cadence.as_content(comparison, facts), text)
    options.say(map(printable, facts.problems))
    return 75 if facts.problems else 0


def _facts(arguments: argparse.Namespace) -> Facts:
    """Run times of the source that the options name."""
    if arguments.run_time:
        laws = tuple(Load(name, ((1.0, law),)) for name, law in arguments.run_time)
        return Facts("laws of run times", laws)
    config = load(arguments.config) if arguments.config else None
    groups = config.tree.names if config else None
    if path := arguments.history or arguments.swf:
        limit = arguments.limit or asks.FILE_MOST_JOBS
        read = partial(asks.history_read, groups=groups) if arguments.history else asks.swf_read
        jobs, most = read(path, limit=limit), f"the first {limit} jobs of {path}"
        return asks.facts_of(jobs, str(path), arguments.by, most)
    pool = config.pool if config else PoolConfig()
    return asks.ask(
        groups,
        arguments.by,
        pool.collector,
        negotiator=arguments.negotiator,
        limit=arguments.limit or asks.POOL_MOST_JOBS,
        collector_deadline_seconds=pool.collector_deadline_seconds,
        schedd_deadline_seconds=pool.schedd_deadline_seconds,
    )


def _refuse_idle_options(arguments: argparse.Namespace) -> None:
    """Usage error of options that would change nothing."""
    chosen = {name for name, value in vars(arguments).items() if value is not None}
    idle = [
        f"{option} does nothing with {source}; leave {option} out"
        for source, without_effect in _WITHOUT_EFFECT.items()
        for option in without_effect
        if {name[2:].replace("-", "_") for name in (source, option)} <= chosen
    ]
    if idle:
        arguments.usage_error("; ".join(idle))


VERBS = {"cadence": options.Verb(_run, _add, shared=("--json",), epilog=_EPILOG)}
