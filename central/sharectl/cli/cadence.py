"""``sharectl cadence``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from sharectl.cli.cadence_look import Look
from sharectl.cli.cadence_options import (
    DEFAULT_INTERVALS,
    DEFAULT_PLOT_INTERVALS,
    duration,
    intervals,
    plot_file,
    run_time_law,
    share,
    whole_number,
    without_effect,
    worklife,
)
from sharectl.errors import StateError
from sharectl.report.cadence import Findings

_MOST_CHART_CYCLES = 16.0
_SOURCES = """from one of these; without any, from the live pool. With a law or a file no pool is asked, even where there is
one: what it would tell of cores and cycles is then not known, unless --cores and --cycle-duration say it"""

_EPILOG = """\
The loading factor of jobs that run for D seconds, at cycles every C seconds, is D / (C * (q + ceil(r))) with
q = floor(D/C), r = D/C - q: a slot that becomes free stays idle until the next cycle begins. Where run times vary it is
the ratio of the means of both, the share of their time that slots work. docs/cadence.md tells more.

  sharectl cadence                                     the live pool: its jobs, its negotiator, and what to choose
  sharectl cadence --run-time constant:255 --interval 60,300
  sharectl cadence --history jobs.json --by group      jobs.json made by: {command}
  sharectl cadence --swf LOG.swf.gz --cores 5000 --cycle-duration 12
  sharectl cadence --run-time exponential:900 --interval 60,300 --plot teeth.svg --chart

Nothing is changed anywhere: what is recommended is printed as configuration of the central manager.

exit codes: 0 ok, 2 usage, 65 bad input file, 74 a plot cannot be written, 75 a daemon of the pool did not answer (what
the others told is printed all the same), 78 configuration"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    from sharectl.cadence.asks import COMMAND

    parser.set_defaults(usage_error=parser.error)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG.format(command=COMMAND.replace("%", "%%"))
    _add_sources(parser)
    _add_costs(parser)
    out = parser.add_argument_group("output")
    out.add_argument("--json", action="store_true", help="print JSON, with a schema version")
    out.add_argument(
        "--plot",
        type=plot_file,
        action="append",
        default=[],
        metavar="FILE",
        help="draw the saw-tooth of the formula over run times in seconds and in cycles, into FILE.svg; may be "
        "repeated",
    )
    out.add_argument(
        "--chart",
        action="store_true",
        help="print as text the loading factor at the intervals of the table, and the saw-tooth of the formula",
    )


def _add_sources(parser: argparse.ArgumentParser) -> None:
    told = parser.add_argument_group("run times", _SOURCES)
    one = told.add_mutually_exclusive_group()
    one.add_argument(
        "--run-time",
        type=run_time_law,
        action="append",
        metavar="LAW",
        help="constant:SECONDS, exponential:MEAN, normal:MEAN,SD (cut off at 0) or log-normal:MEAN,SD, mean and standard "
        "deviation of the run times themselves, all in seconds up to 1e9; may be repeated",
    )
    one.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help="what `condor_history -json` printed; may be packed by gzip",
    )
    one.add_argument(
        "--swf",
        type=Path,
        metavar="FILE",
        help="a job log in Standard Workload Format; may be packed by gzip",
    )
    one.add_argument(
        "--live",
        action="store_true",
        help="history of all schedds, and the negotiator's last cycles (default)",
    )
    told.add_argument(
        "--by",
        choices=("size", "group"),
        help="also each job size, or each group, by itself; not with --run-time",
    )
    told.add_argument(
        "--limit",
        type=whole_number,
        metavar="JOBS",
        help="look at no more jobs: of each schedd the newest (default: 10000), of a file the first (default: "
        "2000000); not with --run-time",
    )
    told.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="sharectl's configuration, for its groups (live and with --history), collector and deadlines (live); without it "
        "groups are what jobs say",
    )
    told.add_argument(
        "--negotiator",
        metavar="NAME",
        help="which, where the live pool has several (condor_status -negotiator); live only",
    )


def _add_costs(parser: argparse.ArgumentParser) -> None:
    costs = parser.add_argument_group("what it costs")
    costs.add_argument(
        "--interval",
        type=intervals,
        metavar="SECONDS[,…]",
        help=f"intervals to compare (default: {_listed(DEFAULT_INTERVALS)}; live, the negotiator's own too; for the "
        f"saw-tooth of --plot and --chart {_listed(DEFAULT_PLOT_INTERVALS)})",
    )
    costs.add_argument(
        "--claim-worklife",
        type=worklife,
        default=1200.0,
        metavar="SECONDS",
        help="CLAIM_WORKLIFE of the slots: a claim runs jobs back to back until one ends when it is older; 0 for one job a "
        "claim, -1 for claims that do not age (default: %(default)g, as HTCondor's; nodes are "
        "not asked)",
    )
    costs.add_argument(
        "--cores",
        type=whole_number,
        metavar="CORES",
        help="of the pool (default: live, what the collector knows; else not known, and idle time is told for one core)",
    )
    costs.add_argument(
        "--cycle-duration",
        type=duration,
        metavar="SECONDS",
        help="how long a cycle takes at most (default: live, the longest of the negotiator's last ones, and a second; "
        "else not known, and no interval is recommended)",
    )
    costs.add_argument(
        "--most-negotiating",
        type=share,
        default=0.25,
        metavar="SHARE",
        help="share of its time that the negotiator may negotiate, such as 0.25 or 25%% (default: %(default)g)",
    )
    costs.add_argument(
        "--tolerance",
        type=share,
        default=0.01,
        metavar="SHARE",
        help="the longest interval is recommended that loses at most this share of the cores' time more than the best, "
        "such as 0.01 or 1%% (default: %(default)g)",
    )


def _listed(seconds: Iterable[float]) -> str:
    return ",".join(f"{each:g}" for each in seconds)


def run(arguments: argparse.Namespace) -> int:
    """Print what each interval costs and which to choose; 75 if a daemon did not answer."""
    idle = without_effect(arguments)
    if idle:
        arguments.usage_error("; ".join(idle))
    from sharectl.cli.cadence_look import findings, look
    from sharectl.report import as_json, cadence
    from sharectl.report.tables import printable

    _draw(arguments)
    seen: Look = look(arguments)
    found = findings(arguments, seen)
    if arguments.json:
        print(as_json.dumps("cadence", {"source": seen.source, **cadence.as_content(found)}))
    else:
        cadence.print_findings(found, sys.stdout)
        if arguments.chart:
            _print_charts(found, arguments.interval or DEFAULT_PLOT_INTERVALS)
    for problem in seen.problems:
        print(f"sharectl: {printable(problem)}", file=sys.stderr)
    return 75 if seen.problems else 0


def _draw(arguments: argparse.Namespace) -> None:
    if not arguments.plot:
        return
    from sharectl.report.cadence import figure

    for path in arguments.plot:
        try:
            path.write_text(figure(arguments.interval or DEFAULT_PLOT_INTERVALS), encoding="utf-8")
        except OSError as error:
            raise StateError(f"{path}: cannot be written: {error.strerror or error}") from error


def _print_charts(found: Findings, chosen: tuple[float, ...]) -> None:
    from sharectl.report.cadence import bars, chart
    from sharectl.report.tables import printable

    blocks = "utf" in (sys.stdout.encoding or "").lower()
    for cost in found.costs[:1] if found.parts else found.costs:
        print(f"\n{printable(cost.load.name)}: {bars(cost.reused, found.basis, blocks=blocks)}")
    print(
        "\nThe saw-tooth below is of the formula, for jobs of one run time each, not of the run "
        "times above."
    )
    longest = 4 * max(chosen)
    for interval in chosen:
        # On one scale, so that they can be compared, as far as teeth can be told apart.
        cycles = min(longest / interval, _MOST_CHART_CYCLES)
        print(f"\n{chart(interval, cycles, f's, at an interval of {interval:g} s', blocks=blocks)}")
    print(f"\n{chart(1.0, 4, 'cycles', blocks=blocks)}")
