"""``sharectl tune``."""

from __future__ import annotations

import argparse
import contextlib
from functools import partial
from typing import Any

from sharectl.cli import options
from sharectl.errors import INTERRUPTED
from sharectl.files.files import only_one
from sharectl_lab.pages import tune as report
from sharectl_lab.pages.simulation import days_of
from sharectl_lab.scenarios.omissions import notes_of
from sharectl_lab.study import trial
from sharectl_lab.study.many import Progress
from sharectl_lab.study.run import Episode
from sharectl_lab.study.search import Journal, Search, SearchSize, library
from sharectl_lab.study.tuning import SYNTAX, Evaluate, parameters

_SIZE = SearchSize()
_EPILOG = f"""\
Searches the settings with the least sum of missing power and idle core-hours, as percentages of the
simulated pool's. Each setting is tried on several seeds; the best ones are compared with the
default on as many seeds that the search did not use. A seed gives the same outcome whatever the
number of cores. docs/simulate.md has more.

KEYS are {SYNTAX}, with commas between them. KEY is one of control of
sharectl's configuration, or of negotiator, access, start, loop, defrag and static of scenarios and
strategies. A choice alone, such as control.law, has all its values.

  sharectl tune bursts --over control.law,control.give_up_seconds=600..14400
  sharectl tune site.yaml --over control.give_up_seconds='null|600|3600' --days 7 -o tuning
  sharectl tune infn-t1 --over control.law,control.pid.gain=0.1..2 --on-pool -o /shared/tuning \\
      --batch 32 --submit accounting_group=ops

With -o every score is kept: the same command goes on where it ended, also after Ctrl-C. With
--on-pool each batch is one cluster, and Ctrl-C removes it. A job brings sharectl with it: nodes
need Python 3.9 only, and for a scenario with START expressions of a site or requirements of jobs
HTCondor's bindings (pip install htcondor) in the interpreter that --submit executable= names.

exit codes: 0 ok, 2 usage, 65 bad input file, or no job of a group ran, 69 Optuna is not installed
(pip install 'sharectl[lab]'), 74 a file cannot be written, 75 the access point did not answer, 78
scenario, 130 interrupted: the best so far is printed"""


def _submit_command(text: str) -> tuple[str, str]:
    """Type of an argument that is a command of the submit language."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or "\n" in text:
        raise ValueError(f"{text[:40]!r}: write COMMAND=VALUE, such as accounting_group=ops")
    return key.strip(), value.strip()


def _add(parser: argparse.ArgumentParser) -> None:
    whole = partial(options.number, whole=True)
    parser.add_argument("scenario", metavar="SCENARIO", help="a shipped name, or a file")
    parser.add_argument(
        "--over", metavar="KEYS", action="append", required=True, help=f"{SYNTAX}, …"
    )
    parser.add_argument("--strategy", default="live", help="default: %(default)s")
    parser.add_argument(
        "--days", type=options.number(0.001, 10_000), help="default: the scenario's"
    )
    for option, default, most, words in (
        ("--trials", _SIZE.trials, 1_000_000, "settings to try"),
        ("--batch", _SIZE.batch, 10_000, "settings that are chosen at once"),
        ("--seeds", _SIZE.seeds, 1000, "seeds of each, and further ones for the best"),
        ("--seed", 1, 2**31, "first seed"),
    ):
        parser.add_argument(
            option, type=whole(1, most), default=default, metavar="N",
            help=f"{words} (default: %(default)s)",
        )  # fmt: skip
    parser.add_argument("--cores", type=whole(1, 4096), metavar="N", help="default: all of here")
    parser.add_argument(
        "-o", dest="folder", type=options.path, metavar="DIR", help="keeps every score"
    )
    pool = parser.add_argument_group("on an HTCondor pool")
    pool.add_argument("--on-pool", action="store_true", help="simulate in jobs; needs -o")
    pool.add_argument("--access-point", metavar="NAME", help="default: that of this machine")
    pool.add_argument(
        "--submit", type=_submit_command, action="append", default=[], metavar="COMMAND=VALUE",
        help="a command of the submit language, such as executable=/opt/python3 (default: "
        "/usr/bin/python3) or request_memory=4096 (2048); may be given several times",
    )  # fmt: skip


def _run(arguments: argparse.Namespace) -> int:
    if arguments.on_pool and arguments.folder is None:
        arguments.usage_error("--on-pool needs -o DIR, a folder that the access point sees")
    library()
    episode = trial.episode_of(arguments.scenario, arguments.strategy, arguments.days)
    days, notes = episode.scenario.days, notes_of(episode.scenario)
    options.say(notes)
    searched = parameters(arguments.over, trial.sections_of(episode))
    size = SearchSize(arguments.trials, arguments.batch, arguments.seeds)
    line, stages = options.Line(), [""]

    def progress(part: float) -> None:
        line.show(f"{stages[-1]}: {part:.0%}")

    with contextlib.ExitStack() as stack:
        journal = None
        if arguments.folder is not None:
            arguments.folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(only_one(arguments.folder, 0.0, is_folder=True))
            journal = Journal(arguments.folder, trial.subject_of(episode))
        evaluate = _evaluation(arguments, episode, progress)
        search = Search(searched, size, arguments.seed, evaluate, journal)
        try:
            tuning, code = search.run(stages.append), 0
        except KeyboardInterrupt:
            tuning, code = search.tuning(), INTERRUPTED
        finally:
            line.end()
    heading: dict[str, Any] = {
        "scenario": arguments.scenario,
        "strategy": arguments.strategy,
        "days": days,
        "seeds": [list(seeds) for seeds in search.seeds],
        "notes": notes,
    }
    begun, confirmed = (f"{seeds[0]} to {seeds[-1]}" for seeds in search.seeds)
    words = f"{arguments.scenario}, {arguments.strategy}, {days_of(days)}"
    words += f"; seeds {begun}, confirmed on {confirmed}"
    text = partial(report.print_tuning, tuning, words)
    options.show(arguments, "tune", report.as_content(tuning, heading), text)
    if code and arguments.folder is not None:
        options.say(["interrupted; the same command goes on where it ended"])
    return code


def _evaluation(arguments: argparse.Namespace, episode: Episode, progress: Progress) -> Evaluate:
    """Evaluation of tasks on this machine's cores, or on the pool."""
    if not arguments.on_pool:
        return partial(trial.run_here, episode, arguments.cores, progress)
    from sharectl_lab.study.on_pool import OnPool, Queue

    trial.cargo_of(episode, ())
    queue, cargo = Queue(arguments.access_point), partial(trial.cargo_of, episode)
    submit = dict(arguments.submit)
    say = options.say
    return OnPool(queue, arguments.folder, cargo, submit, lambda line: say([line]), progress)


VERBS = {"tune": options.Verb(_run, _add, shared=("--json",), epilog=_EPILOG)}
