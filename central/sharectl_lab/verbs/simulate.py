"""``sharectl simulate``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, TextIO

from sharectl.cli import options
from sharectl.errors import INTERRUPTED, InputError
from sharectl.times import span

if TYPE_CHECKING:  # a start loads no YAML
    from sharectl_lab.pages.simulation import Simulation
    from sharectl_lab.scenarios.scenario import Scenario

INDEX, OUTCOME = "index.html", "outcome.json"
_MOST = 10**6
_JSON_BEGIN = '{\n  "schema_version"'

_EPILOG = """\
SCENARIO is a shipped name (--list) or a YAML file; --show prints one, to begin from.

A strategy is NAME, NAME+NAME for both at once, and options behind colons: keys of control, loop,
defrag or static, grace or steering. A file such as ours.yaml is one too:

  summary: sharectl at 10-minute intervals, beside condor_defrag
  grace: true
  steering: live
  loop: {period_seconds: 600}
  control: {law: pid, pid: {gain: 0.5}}
  defrag: {machines_per_hour: 10, max_concurrent: 2, max_whole: 5}

  sharectl simulate bursts
  sharectl simulate bursts --strategies nothing,defrag,live --seeds 5 -o out
  sharectl simulate bursts --strategies defrag,defrag:max_concurrent=60,static+defrag:ratio=0.4
  sharectl simulate bursts --strategies live,live:law=pid:pid.gain=0.5,ours.yaml --days 3
  sharectl simulate --from-config /etc/sharectl/sharectl.yaml --days 7
  sharectl simulate small-site --bound --days 1 -o out
  sharectl simulate infn-t1 --strategies live --set negotiator.interval_seconds=300 --json

The same seed gives the same output, on any machine and Python. Ctrl-C ends the runs; the table, the
page and the JSON (complete: false) have what was simulated.

exit codes: 0 ok, 2 usage, an unknown scenario, strategy or option, 65 bad job log, or no job of a
group ran and there is nothing to compare, 74 the page cannot be written, 78 scenario, strategy file
or configuration, 130 interrupted (the output is usable)"""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO", help="shipped name, or a file")
    parser.add_argument(
        "--strategies",
        metavar="NAME[,…]",
        help="strategies to compare, with commas between them (default: nothing,defrag,static,"
        "static+defrag,grace,cron,live)",
    )
    for option, words in (
        ("--list", "print the shipped scenarios and strategies"),
        ("--show", "print the scenario as YAML, with what options change, to keep and edit"),
        (
            "--bound",
            "add the least shortfall that is possible without killing jobs; all begin alike",
        ),
    ):
        parser.add_argument(option, action="store_true", help=words)
    for option, default, words in (
        ("--seeds", 1, "so many seeds, from the scenario's on"),
        ("--jobs", None, "runs at once (default: a core each)"),
    ):
        whole = options.number(1, 10_000, whole=True)
        parser.add_argument(option, type=whole, default=default, metavar="N", help=words)
    parser.add_argument(
        "--days", type=options.number(1e-4, _MOST), metavar="N", help="instead of the scenario's"
    )
    options.add(
        parser,
        "--set",
        help="a key of the scenario that is otherwise, such as seed=7, control.law=pid or "
        "negotiator.interval_seconds=300; may be given several times",
    )
    parser.add_argument(
        "--from-config",
        type=Path,
        metavar="FILE",
        help="groups, control and validity are those of sharectl's configuration; without SCENARIO "
        "nodes, jobs and run times are those of its ledger's last complete cycle",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=options.path,
        metavar="DIR",
        help=f"folder for the page ({INDEX}) and all figures over time ({OUTCOME})",
    )


def _run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        return _print_shipped(arguments)
    if arguments.scenario is None and not arguments.from_config:
        arguments.usage_error("name a scenario: --list shows those that are shipped")
    if arguments.show:
        return _print_scenario(arguments)
    from sharectl.report import as_json
    from sharectl_lab.pages import simulation, simulation_page
    from sharectl_lab.scenarios.strategies import USUAL, read_strategies
    from sharectl_lab.twin.answers import NOTHING

    strategies = read_strategies(arguments.strategies or ",".join(USUAL))
    scenario = _scenario(arguments)
    _prepare(arguments.output)
    simulated = _simulated(arguments, scenario, strategies)
    if arguments.output is not None and simulated.outcomes:
        from sharectl.files import files

        content = as_json.dumps("simulation", simulation.with_series(simulated))
        files.replace(arguments.output / OUTCOME, [content, "\n"])
        files.replace(arguments.output / INDEX, [simulation_page.page(simulated)])
    text = partial(simulation.print_simulation, simulated)
    options.show(arguments, "simulation", simulation.as_content(simulated), text)
    if not simulated.comparable:
        options.say([NOTHING])
        return InputError.exit_code
    if simulated.complete:
        return 0
    options.say(["interrupted: the figures are of what was simulated until then"])
    return INTERRUPTED


def _print_shipped(arguments: argparse.Namespace) -> int:
    from sharectl.report import tables
    from sharectl_lab.scenarios import file, strategies

    joined = {"static+defrag": "both: + joins strategies"}
    content = {"scenarios": file.shipped(), "strategies": {**strategies.shipped(), **joined}}

    def text(to: TextIO) -> None:
        for kind, summaries in content.items():
            tables.print_table(kind, ("name", "summary"), summaries.items(), to)

    options.show(arguments, "simulation_names", content, text)
    return 0


def _print_scenario(arguments: argparse.Namespace) -> int:
    from sharectl_lab.scenarios import file

    changes = (arguments.from_config, arguments.settings, arguments.days)
    shipped = None if any(changes) else file.shipped_text(arguments.scenario)
    print(shipped or file.render(_scenario(arguments)), end="")
    return 0


def _scenario(arguments: argparse.Namespace) -> Scenario:
    from sharectl_lab.scenarios import file

    scenario = _of_site(arguments) if arguments.from_config else file.load(arguments.scenario)
    scenario = file.changed(scenario, arguments.settings)
    return scenario if arguments.days is None else replace(scenario, days=arguments.days)


def _of_site(arguments: argparse.Namespace) -> Scenario:
    from sharectl.cli import wiring
    from sharectl.config.load import load
    from sharectl_lab.scenarios import file, from_pool

    config = load(arguments.from_config)
    if arguments.scenario:
        return replace(
            file.load(arguments.scenario),
            groups=config.groups,
            control=config.control,
            validity_seconds=config.validity_seconds,
        )
    pledges = wiring.tree_with_pledges(config).pledge_hs06
    return from_pool.from_ledger(config, pledges, wiring.ledger_of(config))


def _prepare(folder: Optional[Path]) -> None:
    """Make the folder, and refuse what is no output of this verb, before hours of work."""
    if folder is None:
        return
    from sharectl.files import files
    from sharectl_lab.pages import simulation_page

    folder.mkdir(parents=True, exist_ok=True)
    files.refuse_foreign(folder / INDEX, simulation_page.BEGIN, "page of `sharectl simulate`")
    files.refuse_foreign(folder / OUTCOME, _JSON_BEGIN, "output of `sharectl simulate`")


def _simulated(arguments: argparse.Namespace, scenario: Scenario, strategies: Any) -> Simulation:
    from sharectl_lab.pages.simulation import Simulation
    from sharectl_lab.scenarios.extent import refuse_endless
    from sharectl_lab.scenarios.omissions import notes_of
    from sharectl_lab.study import begin, many
    from sharectl_lab.study.run import simulate

    seeds = tuple(range(scenario.seed, scenario.seed + arguments.seeds))
    for strategy in strategies:
        # A wrong setting is refused before anything runs.
        scenario.plan_config(strategy.control_settings)
        refuse_endless(scenario, strategy, scenario.end_seconds)
    omissions = notes_of(scenario)
    tasks: list[Any] = [
        partial(simulate, scenario, strategy, seed, None, equal_start=arguments.bound)
        for strategy in strategies
        for seed in seeds
    ]
    line = options.Line()
    bar = progress(f"{len(tasks)} runs", line)
    jobs = arguments.jobs or many.cores()
    results = many.run_many(tasks, jobs, bar)
    outcomes = [outcome for outcome in results if outcome is not None and outcome.seconds > 0]
    bounds: Sequence[Any] = ()
    if arguments.bound and len(outcomes) == len(tasks) and all(o.complete for o in outcomes):
        hours = begin.idle_of(outcomes)
        bar = progress("the bound", line)
        tasks = [partial(begin.bound_of, scenario, seed, *hours) for seed in seeds]
        bounds = many.run_many(tasks, jobs, bar)
    line.end()
    return Simulation(
        scenario=scenario.name,
        strategies={strategy.name: strategy.summary for strategy in strategies},
        seeds=seeds,
        days=scenario.days,
        outcomes=outcomes,
        bounds=tuple(bound for bound in bounds if bound is not None),
        omissions=tuple(omissions),
    )


def progress(
    words: str, line: options.Line, clock: Callable[[], float] = time.monotonic
) -> Callable[[float], None]:
    """Progress: the part that is done, and the time to the end if all goes on as it did."""
    begun = shown = clock()

    def show(part: float) -> None:
        nonlocal shown
        now = clock()
        if now - shown >= 1 or part >= 1:
            shown = now
            rest = (now - begun) * (1 - part) / part if part > 0 else 0.0
            remaining = f", {span(round(rest))} to go" if 0 < part < 1 else ""
            line.show(f"{part:4.0%} of {words}{remaining}")

    return show


VERBS = {"simulate": options.Verb(_run, _add, shared=("--json",), epilog=_EPILOG)}
