"""``sharectl cadence``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Optional

from sharectl.cadence import asks
from sharectl.cadence.choice import Facts, compare
from sharectl.cadence.laws import parse
from sharectl.cli import options
from sharectl.config.load import load
from sharectl.model import PoolConfig
from sharectl.report import cadence
from sharectl.times import DAY_SECONDS

DEFAULT_INTERVALS = (20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 600.0)
_USUAL = ",".join(f"{seconds:g}" for seconds in DEFAULT_INTERVALS)
_MOST = 10**9
_SOURCES = "by default those of the live pool; with a law no pool is asked"

_EPILOG = """\
A slot that becomes free stays idle until the next cycle. The loading factor is the share of its
time that it works, while jobs wait; docs/cadence.md has the formula.

  sharectl cadence                            the live pool: its jobs, its negotiator, a choice
  sharectl cadence --run-time constant:255 --interval 60,300
  sharectl cadence --run-time exponential:900 --cores 5000 --cycle-duration 12

Nothing is changed anywhere: the recommendation is configuration of the central manager. If a daemon
does not answer, the exit code is 75, and answers of the others are used."""


def _intervals(text: str) -> tuple[float, ...]:
    """Intervals in seconds, the shortest first, each once."""
    return tuple(sorted(set(map(options.number(1, DAY_SECONDS, whole=True), text.split(",")))))


def _law(text: str) -> Facts:
    return Facts(text, parse(text))


def _add(parser: argparse.ArgumentParser) -> None:
    source = parser.add_argument_group("run times", _SOURCES).add_mutually_exclusive_group()
    source.add_argument(
        "--run-time",
        metavar="LAW",
        type=_law,
        help="constant:SECONDS, exponential:MEAN or log-normal:MEAN,SD, in seconds up to 1e9; SD "
        "is the standard deviation of run times",
    )
    source.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="the live pool, with pool: and pledges.negotiator.name of sharectl's YAML",
    )
    costs = parser.add_argument_group("what it costs")
    costs.add_argument(
        "--interval",
        metavar="SECONDS[,…]",
        type=_intervals,
        help=f"intervals to compare (default: {_USUAL}; live, the negotiator's own too)",
    )
    costs.add_argument(
        "--claim-worklife",
        metavar="SECONDS",
        type=options.number(-1, _MOST),
        default=1200.0,
        help="CLAIM_WORKLIFE of the slots; 0 for one job a claim, -1 for claims that do not age "
        "(default: %(default)g, as HTCondor's; nodes are not asked)",
    )
    costs.add_argument(
        "--cores",
        metavar="CORES",
        type=options.number(1, _MOST, whole=True),
        help="of the pool (default: what the collector knows, or unknown)",
    )
    costs.add_argument(
        "--cycle-duration",
        metavar="SECONDS",
        type=options.number(0, _MOST),
        help="longest cycle (default: of the negotiator's last ones, and a second, or unknown)",
    )


def _run(arguments: argparse.Namespace) -> int:
    """Print what each interval costs and which to choose; 75 if a daemon did not answer."""
    facts = _facts(arguments)
    facts = replace(facts, cores=arguments.cores or facts.cores)
    if arguments.cycle_duration is not None:
        facts = replace(facts, duration_seconds=arguments.cycle_duration)
    usual = {*DEFAULT_INTERVALS}
    if facts.interval_seconds and 0 < facts.interval_seconds <= DAY_SECONDS:
        usual.add(facts.interval_seconds)
    intervals = arguments.interval or tuple(sorted(usual))
    comparison = compare(facts, intervals, arguments.claim_worklife)
    content = cadence.as_content(comparison, facts)
    text = partial(cadence.print_findings, comparison, facts)
    options.show(arguments, "cadence", content, text)
    options.say(facts.problems)
    return 75 if facts.problems else 0


def _facts(arguments: argparse.Namespace) -> Facts:
    """Run times of the source that the options name."""
    law: Optional[Facts] = arguments.run_time
    if law:
        return law
    pool, negotiator = PoolConfig(), None
    if arguments.config:
        config = load(arguments.config)
        pool, negotiator = config.pool, config.pledges.negotiator.name
    return asks.ask(pool, negotiator)


VERBS = {"cadence": options.Verb(_run, _add, shared=("--json",), epilog=_EPILOG)}
