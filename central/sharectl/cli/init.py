"""``sharectl init``: a first configuration, from the answers of the live pool."""

from __future__ import annotations

import argparse
import os
import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from sharectl.cli import options
from sharectl.condor.daemons import collector_question
from sharectl.condor.deadline import ask_all
from sharectl.condor.negotiator import Knobs, groups_of_knobs, names_of, quota_knobs, slots_of
from sharectl.config.first import AnyGroup, FirstLook, render
from sharectl.config.load import parse
from sharectl.errors import InputError, PoolUnavailableError, StateError
from sharectl.files import files
from sharectl.model import PoolConfig
from sharectl.plan.nodes import NodesConfig
from sharectl.pledges.negotiator import power_of_slots
from sharectl.publish.collector import who_may_publish
from sharectl.snapshot.pool import CondorPool
from sharectl.words import counted, printable

_EPILOG = """\
It asks the collector, the negotiator and all schedds, and writes a configuration with
mode: observe. A comment gives the origin of each value. No file is overwritten. As root it asks as
the service does; if the pool refuses that, it prints the command that makes the token."""


def _add(parser: argparse.ArgumentParser) -> None:
    place = "file to write, which must not be there yet (default, and -: standard output)"
    parser.add_argument("-o", "--output", type=options.output, metavar="FILE", help=place)
    address = "host name or address (default: COLLECTOR_HOST of this machine)"
    parser.add_argument("--collector", metavar="COLLECTOR", help=address)


def _run(arguments: argparse.Namespace) -> int:
    """Ask, then print or write."""
    path: Optional[Path] = arguments.output
    if path is not None:
        _refuse_existing(path)
        files.refuse_unwritable(path)
    look = _look(arguments.collector)
    text = render(look)
    config = parse(text, str(path or "sharectl init"))
    if path is None:
        print(text, end="")
    else:
        _refuse_existing(path)
        files.replace(path, [text])
        groups = counted(len(config.groups), "group")
        check = shlex.join(["sharectl", "check", "config", "--config", str(path)])
        print(printable(f"{path}: {groups}; now: {check}"))
    options.say(f"{source.name}: {source.problem}" for source in look.snapshot.problems)
    return 0


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        remedy = "name another file with -o, or move it away"
        raise StateError(f"{path}: exists already, and init overwrites nothing; {remedy}")


def _look(address: Optional[str]) -> FirstLook:
    """Answers of the pool; PoolUnavailableError if the collector did not tell of nodes."""
    access = PoolConfig(collector=address)
    pool = CondorPool(AnyGroup(), NodesConfig(), access, true_sizes=True)
    snapshot = pool.snapshot(int(time.time()))
    if not snapshot.nodes:
        silent = (f"{source.name}: {source.problem}" for source in snapshot.problems)
        raise PoolUnavailableError(*silent)
    seconds = access.collector_deadline_seconds
    answers = ask_all(
        {
            "negotiator": collector_question(address, seconds, _quotas),
            "publisher": collector_question(address, seconds, who_may_publish),
        }
    )
    look = FirstLook(snapshot, publisher=answers["publisher"].value, collector=address)
    silent_negotiator = answers["negotiator"].source.problem
    if silent_negotiator is not None:
        return replace(look, without_quotas=f"negotiator: {silent_negotiator}")
    return with_quotas(look, *answers["negotiator"].value)


def _quotas(collector: Any) -> tuple[Knobs, Optional[float]]:
    """Knobs of the negotiator, and the cores of its slots where these are not all; in a child."""
    knobs = quota_knobs(collector)
    constraint = slots_of(knobs)
    cores = power_of_slots(collector, PoolConfig(), constraint)[0] if constraint else None
    return knobs, cores


def with_quotas(look: FirstLook, knobs: Knobs, cores: Optional[float] = None) -> FirstLook:
    """The look with the quotas in knobs of the negotiator, or why these are invalid.

    Dynamic quotas are shares of ``cores``, or of all.
    """
    names = names_of(knobs)
    if not names:
        return look
    try:
        groups = groups_of_knobs(knobs, "the negotiator", look.cores if cores is None else cores)
    except InputError as error:
        return replace(look, without_quotas="; ".join(error.problems))
    return replace(
        look,
        quotas={name: groups[name].weight or 0.0 for name in names if name in groups},
        without_quotas="the negotiator has none above 0 for a group of the first level",
    )


VERBS = {"init": options.Verb(_run, _add, shared=(), epilog=_EPILOG)}
