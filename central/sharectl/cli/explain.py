"""``sharectl explain …``: why a group, a node, a cycle or a job is treated as it is."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Optional

from sharectl.cli import options, wiring
from sharectl.config.model import Config
from sharectl.errors import AbsentError, SharectlError
from sharectl.explain import decisions, job
from sharectl.explain.codes import CODES, FAMILIES
from sharectl.explain.decisions import Explained, Since
from sharectl.explain.what_if import Case
from sharectl.ledger.ledger import Ledger
from sharectl.model import OTHER
from sharectl.plan.plan import State
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.report import as_json
from sharectl.report.explain import Page, cycle_page, group_page, node_page
from sharectl.report.explain_job import job_page
from sharectl.report.tables import listed
from sharectl.shares.errors import group_errors, usage_by_group
from sharectl.shares.groups import group_of
from sharectl.times import FORMS, parse, shown
from sharectl.words import did_you_mean
from sharectl.words import shown as printable

if TYPE_CHECKING:
    from sharectl.shares.quotas import Group

LATEST = "latest"
LEAST_TIME = 100_000_000
"""Unix seconds from which a number is a time: no ledger counts so many cycles."""
_MOST_LOOKS = 500
"""Cycles that are searched for a complete one: some days."""
_SINCE_SECONDS = 3 * 86_400
"""Time in which the ledger is searched for the begin of a target."""
_NAMES_LISTED = 6
_LABEL = 19
"""Characters before the sentence of a code."""
_AGAIN = (
    "What would change a decision is found by deciding again, with the configuration of now and "
    "one thing changed; on a large pool fewer things are tried."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    subjects = parser.add_subparsers(
        title="subjects", dest="subject", metavar="SUBJECT", required=True
    )
    for name, (summary, add, run_subject) in _SUBJECTS.items():
        described = subjects.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        described.set_defaults(explains=run_subject, usage_error=described.error)
        add(described)
        if name != "codes":
            options.add_common(described)
            help_all = "more than one screen: everything in full"
            described.add_argument("--all", action="store_true", help=help_all)


def run(arguments: argparse.Namespace) -> int:
    """Explain a subject."""
    code: int = arguments.explains(arguments)
    return code


def _add_decided(parser: argparse.ArgumentParser) -> None:
    """Add the name of a group or node, and options that choose a decision."""
    now = int(time.time())
    parser.add_argument(
        "name",
        metavar="NAME",
        help="a configured group, or a node's short or full host name; case does not count",
    )
    parser.add_argument(
        "--cycle",
        type=_cycle_or_time(now),
        metavar="N",
        help="cycle N of the ledger, or `latest` (default)",
    )
    parser.add_argument(
        "--at",
        type=options.moment(now),
        metavar="TIME",
        help="the cycle that was the last one at that time",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="look at the pool now and decide again; nothing is published",
    )
    options.add_look(parser)
    parser.epilog = f"TIME is {FORMS}. {_AGAIN}"


def _add_cycle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cycle",
        metavar="N|latest|TIME",
        nargs="?",
        type=_cycle_or_time(int(time.time())),
        help="cycle N of the ledger, `latest` (default), or a time: the last cycle then",
    )
    parser.epilog = f"TIME is {FORMS}. {_AGAIN}"


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", help="CLUSTER.PROC, SCHEDD#CLUSTER.PROC, or a GlobalJobId"
    )
    parser.add_argument(
        "--schedd", metavar="NAME", help="its access point, where several have that number"
    )
    parser.epilog = (
        "exit codes: 0 it is explained, 1 no access point knows the job or its expressions "
        "cannot be evaluated in time, 65 several access points have one of this number, 75 a "
        "daemon did not answer"
    )


def _add_codes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")
    parser.add_argument(
        "codes", nargs="*", metavar="CODE", help="only these, case does not count; default: all"
    )
    parser.epilog = "exit codes: 0 ok, 1 there is no such code"


_When = tuple[Optional[int], Optional[int]]
"""Number of a cycle or a time, the other one None."""


def _cycle_or_time(now: int) -> Callable[[str], Optional[_When]]:
    """Type of an argument that names a cycle; None for the latest."""

    def read(text: str) -> Optional[_When]:
        if text == LATEST:
            return None
        if text.isdecimal() and text.isascii() and int(text) < LEAST_TIME:
            return int(text), None
        try:
            return None, parse(text, now)
        except ValueError as error:
            raise argparse.ArgumentTypeError(
                f"{error}; or the number of a cycle, or {LATEST}"
            ) from None

    return read


def _print(page: Page, arguments: argparse.Namespace) -> None:
    page.print(sys.stdout, json=arguments.json, everything=arguments.all)


def _group(arguments: argparse.Namespace) -> int:
    config, name = options.config_of(arguments), arguments.name.lower()
    configured = config.tree.names
    if name == OTHER:
        raise AbsentError(
            f"group {OTHER!r} has no pledge: it is the jobs of no configured group; groups with "
            f"one are {', '.join(configured)}"
        )
    # An earlier cycle may have had other groups.
    if name not in configured and arguments.cycle is None and arguments.at is None:
        raise _absent("group", arguments.name, configured)
    explained = _explained(arguments, config)
    groups = [control.group for control in explained.record.groups]
    if name not in groups:
        raise _absent("group", arguments.name, groups)
    _print(group_page(explained, name, decisions.explain_group(explained, name)), arguments)
    return 0


def _node(arguments: argparse.Namespace) -> int:
    from sharectl.condor.nodes import ask

    config = options.config_of(arguments)
    explained = _explained(arguments, config)
    nodes, name = {node.node.lower(): node for node in explained.record.nodes}, arguments.name
    node = nodes.get(name.lower()) or nodes.get(name.lower().split(".")[0])
    if node is None:
        raise _absent("node", name, list(nodes))
    words = None
    # The node speaks of now, not of an earlier cycle.
    if arguments.jobs is None and arguments.cycle is None and arguments.at is None:
        pool, now = config.pool, int(time.time())
        stale_seconds = config.nodes.job_ctl_stale_seconds
        words = ask(pool.collector, node.node, now, stale_seconds, pool.collector_deadline_seconds)
    otherwise, since = decisions.explain_node(explained, node), _since(explained, node, config)
    _print(node_page(explained, node, otherwise, since, words), arguments)
    return 0


def _absent(noun: str, name: str, names: Sequence[str]) -> AbsentError:
    """Error that names neighbours of an unknown group or node."""
    some = f"there are {listed(names, _NAMES_LISTED)}" if names else "there is none"
    return AbsentError(
        f"no {noun} '{printable(name)}' there; {did_you_mean(name, names, some, most=3)}"
    )


def _since(explained: Explained, node: NodeRecord, config: Config) -> Optional[Since]:
    """Time of the node's target, by the state of the last cycle or by the ledger."""
    if node.target is None:
        return None
    since = explained.record.taken_at
    for stood in wiring.state_to_read(config, int(time.time())).standing:
        if stood.target == node.target and stood.since <= since:
            return Since(stood.since, exact=True)
    ledger = wiring.ledger_of(config)
    if explained.record.number == 0 or not ledger.is_readable():
        return Since(since, exact=True)
    for earlier, target in ledger.targets_of(node.node, since - _SINCE_SECONDS, since + 1):
        if target != node.target:
            return Since(since, exact=True)
        since = earlier
    return Since(since, exact=False)


def _cycle(arguments: argparse.Namespace) -> int:
    config = options.config_of(arguments)
    ledger = wiring.ledger_of(config)
    record = recorded(ledger, *(arguments.cycle or (None, None)))
    before = complete_before(ledger, record.taken_at)
    again = _decided_again(record, before, config) if _is_complete(record) else None
    otherwise = decisions.explain_cycle(record, again)
    _print(cycle_page(record, before, again, otherwise), arguments)
    return 0


def _explained(arguments: argparse.Namespace, config: Config) -> Explained:
    """The complete decision that the options choose; raises AbsentError without any."""
    options_of_time = ("cycle", "at", "live", "jobs")
    chosen = [f"--{name}" for name in options_of_time if getattr(arguments, name)]
    if len(chosen) > 1:
        arguments.usage_error(f"{' and '.join(chosen)} say different things; give one of them")
    if arguments.live or arguments.jobs is not None:
        return _decided_now(arguments, config)
    ledger = wiring.ledger_of(config)
    number, at = arguments.cycle or (None, arguments.at)
    record = recorded(ledger, number, at)
    if _is_complete(record):
        return _decided_again(record, complete_before(ledger, record.taken_at), config)
    usable = complete_before(ledger, record.taken_at)
    why_not = "has no groups" if record.complete else "was not complete"
    why_not = "was imported, with no jobs by node" if record.imported else why_not
    if usable is None or number is not None:
        raise AbsentError(
            f"cycle {record.number} {why_not}, so there is no decision to explain: "
            f"`sharectl explain cycle {record.number}`"
        )
    options.say([f"cycle {record.number} {why_not}: this is cycle {usable.number}"])
    return _decided_again(usable, complete_before(ledger, usable.taken_at), config)


def _decided_again(record: CycleRecord, before: Optional[CycleRecord], config: Config) -> Explained:
    # The source of pledges is not asked: the record has them.
    law = wiring.plan_config(config, wiring.UNASKED)
    return decisions.of_ledger(record, before, law, wiring.known_of(config))


def _decided_now(arguments: argparse.Namespace, config: Config) -> Explained:
    run_times = wiring.known_of(config)
    snapshot = options.look(arguments, config, decides=True)
    offline = arguments.jobs is not None
    state = State() if offline else wiring.state_to_read(config, snapshot.taken_at)
    law = wiring.plan_config(config, offline=offline)
    case = Case(law, state, snapshot, snapshot.taken_at, run_times)
    source = str(arguments.jobs) if offline else "a look at the pool now, not published"
    return decisions.of_now(case, source)


def recorded(ledger: Ledger, number: Optional[int] = None, at: Optional[int] = None) -> CycleRecord:
    """Cycle of a number, or the last one at a time, or the latest; complete or not.

    Raises
    ------
    AbsentError
        Without any.
    """
    record = ledger.latest() if number is None else ledger.cycle(number)
    if at is not None:
        record = ledger.cycle_at(at)
    if record is not None:
        return record
    span = ledger.span()
    if span is None:
        raise AbsentError(f"{ledger.path}: no cycle is in it yet: `sharectl cycle`, or --live")
    wanted = f"cycle {number}" if at is None else f"cycle at or before {shown(at)}"
    raise AbsentError(
        f"{ledger.path}: no {wanted}: it has cycles from {shown(span[0])} to {shown(span[1])}"
    )


def complete_before(ledger: Ledger, until: int) -> Optional[CycleRecord]:
    """The last complete cycle before Unix time ``until``."""
    for _ in range(_MOST_LOOKS):
        record = ledger.cycle_at(until - 1)
        if record is None or _is_complete(record):
            return record
        until = record.taken_at
    return None


def _is_complete(record: CycleRecord) -> bool:
    """True if a cycle decided, and the ledger has the look that it decided on."""
    return record.complete and not record.imported and bool(record.groups)


def _job(arguments: argparse.Namespace) -> int:
    from sharectl.explain import asks

    config, now = options.config_of(arguments), int(time.time())
    try:
        wanted = asks.job_id(arguments.id, arguments.schedd)
    except ValueError as error:
        arguments.usage_error(str(error))
    pool, name = config.pool, str(wanted)
    located = asks.find(
        pool.collector, wanted, pool.collector_deadline_seconds, pool.schedd_deadline_seconds
    )
    if located is None:
        _print(job_page(job.JobExplanation(name, now, job.UNKNOWN)), arguments)
        return 1
    facts = located.facts
    code = job.state_of(facts.status, facts.universe)
    explained = job.JobExplanation(name, now, code or job.NOT_EVALUATED, facts)
    if code in (None, job.HELD):
        # The longer of the two deadlines: the expressions are evaluated within it too.
        match, problem = asks.matched(pool.collector, located, now, pool.schedd_deadline_seconds)
        explained = explained._replace(problem=problem)
        if match is not None:
            verdict = job.verdict(match.findings)
            quotas = job.quotas_of(facts.accounting_group, match.groups)
            headroom = _headroom(facts.accounting_group, config, quotas, now)
            explained = explained._replace(
                code=code or verdict["code"], verdict=verdict, headroom=headroom
            )
    _print(job_page(explained), arguments)
    return int(explained.code == job.NOT_EVALUATED)


def _headroom(
    accounting_group: Optional[str], config: Config, quotas: tuple[Group, ...], now: int
) -> job.Headroom:
    group = group_of(accounting_group, config.groups)
    if group == OTHER:
        return job.Headroom(group, quotas)
    try:
        pledges = wiring.plan_config(config).pledge_hs06
        snapshot = options.pool_of(config).snapshot(now)
    except SharectlError as error:
        return job.Headroom(group, quotas, problem=str(error).splitlines()[0])
    if not snapshot.complete:
        silent = ", ".join(source.name for source in snapshot.problems)
        return job.Headroom(group, quotas, problem=f"use is not known: no answer from {silent}")
    for row in group_errors(usage_by_group(snapshot, pledges), pledges):
        if row.group == group:
            power_hs06 = row.usage.power_hs06
            return job.Headroom(group, quotas, row.pledge_hs06, power_hs06, row.error_hs06)
    return job.Headroom(group, quotas)


def _codes(arguments: argparse.Namespace) -> int:
    """Print each code with its sentence, by family; 1 if a named code is in no family."""
    wanted = dict.fromkeys(code.lower() for code in arguments.codes)
    chosen = {
        family: {code: says for code, says in codes.items() if not wanted or code in wanted}
        for family, codes in CODES.items()
    }
    width = max(shutil.get_terminal_size().columns, 2 * _LABEL)
    if arguments.json:
        print(as_json.dumps("codes", {"families": FAMILIES, "codes": chosen}))
    for family, codes in {} if arguments.json else chosen.items():
        if codes:
            print(f"{family}: {FAMILIES[family]}")
        for code, says in codes.items():
            label, rest = f"  {code:<{_LABEL - 2}} ", " " * (_LABEL + 1)
            lines = wrap(
                says, width, initial_indent=label, subsequent_indent=rest, break_on_hyphens=False
            )
            print("\n".join(lines))
    names = {code for codes in CODES.values() for code in codes}
    unknown = [code for code in wanted if code not in names]
    for code in unknown:
        every = "`sharectl explain codes` prints all of them"
        advice = did_you_mean(code, sorted(names), every, most=3)
        options.say([f"no code '{printable(code)}'; {advice}"])
    return 1 if unknown else 0


_Add = Callable[[argparse.ArgumentParser], None]
_Run = Callable[[argparse.Namespace], int]
_SUBJECTS: Mapping[str, tuple[str, _Add, _Run]] = {
    "group": (
        "what a group uses and is entitled to, and why it gives or receives",
        _add_decided,
        _group,
    ),
    "node": ("what a node holds, and why it has its target or has none", _add_decided, _node),
    "cycle": (
        "what one cycle saw, decided and changed, and what would change its plan",
        _add_cycle,
        _cycle,
    ),
    "job": ("what stands in the way of a job, clause by clause", _add_job, _job),
    "codes": ("every code that stands for a reason, with its sentence", _add_codes, _codes),
}
"""Subject -> summary, its arguments, its explanation."""
