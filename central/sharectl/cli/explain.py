"""``sharectl explain …``: why a group, a node, a cycle or a job is treated as it is."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Optional, TextIO

from sharectl.cli import options, wiring
from sharectl.config.model import Config
from sharectl.errors import AbsentError, StateError
from sharectl.explain import decisions, job, what_if
from sharectl.explain.codes import CODES, FAMILIES
from sharectl.explain.decisions import Explained
from sharectl.explain.turn import Prospect, prospect
from sharectl.ledger.ledger import Ledger
from sharectl.plan.plan import State
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.report import explain as pages
from sharectl.report.tables import listed, print_hanging
from sharectl.shares.groups import group_of
from sharectl.times import FORMS, shown
from sharectl.words import did_you_mean
from sharectl.words import shown as printable

LEAST_TIME = 100_000_000
"""Unix seconds from which a number is a time: no ledger counts so many cycles."""
_CYCLE = "cycle N of the ledger, or a time: the last cycle then (default: the latest)"
_NAMES_LISTED = 6
_LABEL = 17
"""Characters of the longest code."""
_AGAIN = (
    f"TIME is {FORMS}. What would change a decision is found by deciding again, with the "
    "configuration of now and one thing changed as far as it can be."
)

_When = tuple[Optional[int], Optional[int]]
"""Number of a cycle or a time, the other one None."""


def _cycle_or_time(text: str) -> _When:
    """Type of an argument that names a cycle."""
    if text.isdecimal() and text.isascii() and int(text) < LEAST_TIME:
        return int(text), None
    try:
        return None, options.moment(text)
    except ValueError as error:
        raise ValueError(f"{error}; or the number of a cycle") from None


def _add_decided(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the name of a group or node, and options that choose a decision."""
    parser.add_argument("name", metavar="NAME", help=f"{name}; case does not count")
    moment = parser.add_mutually_exclusive_group()
    moment.add_argument("--cycle", type=_cycle_or_time, metavar="N|TIME", help=_CYCLE)
    live = "look at the pool now and decide again; nothing is published"
    moment.add_argument("--live", action="store_true", help=live)


def _explained(arguments: argparse.Namespace, config: Config) -> Explained:
    """The complete decision that the options choose; raises AbsentError without any."""
    if arguments.live:
        return decisions.of_now(wiring.case_of(config), "a look at the pool now, not published")
    ledger = wiring.ledger_of(config)
    number, at = arguments.cycle or (None, None)
    record = _recorded(ledger, number, at)
    if not record.complete:
        usable = ledger.last_complete(0, record.taken_at)
        if usable is None or number is not None:
            raise AbsentError(
                f"cycle {record.number} was not complete, so there is no decision to explain: "
                f"`sharectl explain cycle {record.number}`"
            )
        options.say([f"cycle {record.number} was not complete: this is cycle {usable.number}"])
        record = usable
    return _decided_again(record, config)


def _recorded(ledger: Ledger, number: Optional[int], at: Optional[int]) -> CycleRecord:
    """Cycle of a number, or the last one at a time, or the latest; complete or not."""
    if at is not None:
        record = ledger.cycle_at(at)
    else:
        record = ledger.latest() if number is None else ledger.cycle(number)
    if record is not None:
        return record
    wanted = f"cycle {number}" if at is None else f"cycle at or before {shown(at)}"
    raise AbsentError(options.no_cycle(ledger.span(), wanted))


def _decided_again(record: CycleRecord, config: Config) -> Explained:
    # The source of pledges is not asked: the record has them.
    return decisions.of_ledger(record, wiring.plan_config(config, wiring.UNASKED))


def _group(arguments: argparse.Namespace) -> int:
    config, name = options.config_of(arguments), arguments.name.lower()
    explained = _explained(arguments, config)
    groups = [control.group for control in explained.record.groups]
    if name not in groups:
        raise _absent("group", arguments.name, groups)
    otherwise = decisions.otherwise(explained, what_if.role(name))
    pages.group_page(explained, name, otherwise).print(sys.stdout, json=arguments.json)
    return explained.case.exit_code


def _node(arguments: argparse.Namespace) -> int:
    from sharectl.condor.node_ads import ask

    config = options.config_of(arguments)
    explained = _explained(arguments, config)
    nodes, name = {node.node.lower(): node for node in explained.record.nodes}, arguments.name
    node = nodes.get(name.lower()) or nodes.get(name.lower().split(".")[0])
    if node is None:
        raise _absent("node", name, list(nodes))
    words = None
    # The node speaks of now, not of an earlier cycle.
    if arguments.cycle is None:
        pool, now = config.pool, int(time.time())
        stale_seconds = config.nodes.job_ctl_stale_seconds
        words = ask(pool.collector, node.node, now, stale_seconds, pool.collector_deadline_seconds)
    otherwise = decisions.otherwise(explained, what_if.under_target(node.node), node.node)
    case = explained.case
    of_now = (case.state, case.exit_code)
    state, code = of_now if arguments.live else wiring.state_to_read(config, int(time.time()))
    since = _since(explained, node, state)
    pages.node_page(explained, node, otherwise, since, words).print(sys.stdout, json=arguments.json)
    return code


def _absent(noun: str, name: str, names: Sequence[str]) -> AbsentError:
    some = f"there are {listed(names, _NAMES_LISTED)}" if names else "there is none"
    remedy = did_you_mean(name, names, some, most=3)
    return AbsentError(f"no {noun} '{printable(name)}' there; {remedy}")


def _since(explained: Explained, node: NodeRecord, state: State) -> Optional[int]:
    """Unix seconds since which the node's target stands, by the state; None if that has another."""
    times = (stood.since for stood in state.standing if stood.target == node.target)
    return next((since for since in times if since <= explained.record.taken_at), None)


def _add_cycle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cycle", metavar="N|TIME", nargs="?", type=_cycle_or_time, help=_CYCLE)


def _cycle(arguments: argparse.Namespace) -> int:
    config = options.config_of(arguments)
    ledger = wiring.ledger_of(config)
    record = _recorded(ledger, *(arguments.cycle or (None, None)))
    before = ledger.last_complete(0, record.taken_at)
    again, otherwise = None, None
    if record.complete:
        again = _decided_again(record, config)
        otherwise = decisions.otherwise(again, what_if.targets_in_all)
    pages.cycle_page(record, before, again, otherwise).print(sys.stdout, json=arguments.json)
    return 0


def _add_job(parser: argparse.ArgumentParser) -> None:
    forms = "CLUSTER.PROC, SCHEDD#CLUSTER.PROC, or a GlobalJobId"
    parser.add_argument("id", metavar="ID", help=forms)


def _job(arguments: argparse.Namespace) -> int:
    from sharectl.explain import asks, job_ads, turn

    config, now = options.config_of(arguments), int(time.time())
    try:
        wanted = job_ads.job_id(arguments.id)
    except ValueError as error:
        arguments.usage_error(str(error))
    pool, name = config.pool, str(wanted)
    located = job_ads.find(pool, wanted, config.tree.names)
    if located is None:
        pages.job_page(name, now, job.UNKNOWN).print(sys.stdout, json=arguments.json)
        return 1
    facts, ad = located
    code = job.state_of(facts["status"], facts["universe"])
    why = pages.NO_REASONS
    if code in (None, job.HELD):
        match, problem = job_ads.matched(pool, ad, now)
        group = group_of(f"{facts['account'] or ''}@", config.tree.names)
        why = pages.JobReasons(None if match is None else job.verdict(match), problem, group)
        code = code or (job.NOT_EVALUATED if why.verdict is None else why.verdict["code"])
    if (verdict := why.verdict) is not None:
        order = turn.turn(asks.look(pool, verdict["limits"]), facts, verdict)
        why = why._replace(order=order, prospect=_prospect(config, why.group or "", facts, now))
        if why.over or order["cause"]:
            job.no_smaller(verdict, why.over)
        if order["cause"] and code in (job.COULD_NOW, job.NOT_NOW):
            code = order["cause"]["code"]
    pages.job_page(name, now, code, facts, why).print(sys.stdout, json=arguments.json)
    return int(code == job.NOT_EVALUATED)


def _prospect(config: Config, group: str, facts: job.Facts, now: int) -> Prospect:
    """Share of a job's group, and what is known of its wait, by the latest complete cycle."""
    cores = int(facts["request_values"].get("RequestCpus", 0))
    try:
        record = wiring.ledger_of(config).last_complete(0, now + 1)
    except StateError as error:
        return Prospect(str(error))
    return prospect(record, group, cores, now)


def _codes(arguments: argparse.Namespace) -> int:
    content = {"families": FAMILIES, "codes": CODES}
    options.show(arguments, "codes", content, _print_codes)
    return 0


def _print_codes(to: TextIO) -> None:
    for family, codes in CODES.items():
        print(f"{family}: {FAMILIES[family]}", file=to)
        for code, says in codes.items():
            print_hanging(f"  {code:<{_LABEL}} ", says, to)


_SUBJECTS = {
    "group": options.Verb(
        _group,
        partial(_add_decided, name="a configured group"),
        summary="what a group uses and is entitled to, and why it gives or receives",
        epilog=_AGAIN,
    ),
    "node": options.Verb(
        _node,
        partial(_add_decided, name="the short or full name of a node's host"),
        summary="what a node holds, and why it has its target or has none",
        epilog=_AGAIN,
    ),
    "cycle": options.Verb(
        _cycle,
        _add_cycle,
        summary="what one cycle saw, decided and changed, and what would change its plan",
        epilog=_AGAIN,
    ),
    "job": options.Verb(
        _job, _add_job, summary="what stands in the way of a job, clause by clause"
    ),
    "codes": options.Verb(
        _codes, shared=("--json",), summary="every code that stands for a reason, with its sentence"
    ),
}
VERBS = {"explain": options.with_actions("subject", _SUBJECTS)}
