"""``sharectl explain …``: why a group, a node, a cycle or a job is treated as it is."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from textwrap import wrap
from typing import TYPE_CHECKING, Optional

from sharectl.cli import options, wiring
from sharectl.config.model import Config
from sharectl.errors import AbsentError, SharectlError
from sharectl.explain import job
from sharectl.explain.again import Explained, of_ledger, of_now
from sharectl.explain.codes import CODES, FAMILIES
from sharectl.explain.cycle import explain_cycle
from sharectl.explain.group import explain_group
from sharectl.explain.node import Since, explain_node
from sharectl.explain.what_if import Case
from sharectl.ledger.ledger import Ledger
from sharectl.model import OTHER
from sharectl.plan.nodes import NodeWords
from sharectl.plan.plan import State
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.report import as_json
from sharectl.report.explain import Page, cycle_page, group_page, job_page, node_page
from sharectl.report.tables import listed
from sharectl.shares.errors import group_errors, usage_by_group
from sharectl.shares.groups import group_of
from sharectl.times import FORMS, parse, shown
from sharectl.words import MAX_SHOWN, counted
from sharectl.words import shown as printable

if TYPE_CHECKING:
    from sharectl.explain.asks import LocatedJob
    from sharectl.shares.quotas import Group

LATEST = "latest"
LEAST_TIME = 100_000_000
"""Unix seconds from which a number is a time: no ledger counts so many cycles."""
_MOST_LOOKS = 500
"""Cycles that are searched for a complete one: some days."""
_SINCE_SECONDS = 3 * 86_400
"""Time in which the ledger is searched for the begin of a target."""
_NODES_NAMED = 3
_LABEL = 19
"""Characters before the sentence of a code."""
_AGAIN = (
    "is found by {} again, with the configuration of now and one thing changed; on a large pool "
    "fewer things are tried."
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
        add(described)
        described.set_defaults(explains=run_subject, usage_error=described.error)


def run(arguments: argparse.Namespace) -> int:
    """Explain a subject."""
    code: int = arguments.explains(arguments)
    return code


def _add_group(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a configured group; case does not count")
    _add_source(parser)


def _add_node(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", help="a node, by its short or full host name; case does not count"
    )
    _add_source(parser)


def _add_source(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a decision."""
    options.add_common(parser)
    _add_all(parser, "every node, job and sentence")
    parser.add_argument(
        "--cycle",
        type=_cycle_number,
        metavar="N",
        help="cycle number N of the ledger, or `latest` (default)",
    )
    parser.add_argument(
        "--at",
        type=options.moment(int(time.time())),
        metavar="TIME",
        help="the cycle that was the last one at that time",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="look at the pool now and decide again; nothing is published",
    )
    options.add_look(parser)
    again = _AGAIN.format("making it")
    parser.epilog = f"TIME is {FORMS}. What would change a decision {again}"


def _add_cycle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "which",
        metavar="N|latest|TIME",
        nargs="?",
        type=_cycle_or_time(int(time.time())),
        default=(None, None),
        help="number of a cycle in the ledger, `latest` (default), or a time: the last cycle then",
    )
    options.add_common(parser)
    _add_all(parser, "every group, node and change")
    again = _AGAIN.format("deciding")
    parser.epilog = f"TIME is {FORMS}. What would change the plan {again}"


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", help="CLUSTER.PROC, SCHEDD#CLUSTER.PROC, or a GlobalJobId"
    )
    parser.add_argument(
        "--schedd", metavar="NAME", help="its access point, where several have such a number"
    )
    _add_all(parser, "every clause in full")
    options.add_common(parser)
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


def _add_all(parser: argparse.ArgumentParser, more: str) -> None:
    parser.add_argument("--all", action="store_true", help=f"more than one screen: {more}")


def _cycle_number(text: str) -> Optional[int]:
    """Number of a cycle; None for the latest."""
    if text == LATEST:
        return None
    if not (text.isdecimal() and text.isascii() and int(text) < LEAST_TIME):
        raise argparse.ArgumentTypeError(
            f"{text!r}: write the number of a cycle, or {LATEST}; for times there is --at"
        )
    return int(text)


def _cycle_or_time(now: int) -> Callable[[str], tuple[Optional[int], Optional[int]]]:
    """Type of an argument: number of a cycle and time, one or both None."""

    def read(text: str) -> tuple[Optional[int], Optional[int]]:
        try:
            return _cycle_number(text), None
        except argparse.ArgumentTypeError:
            pass
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
    explained = _explained(arguments, options.config_of(arguments))
    groups = [control.group for control in explained.record.groups]
    name = arguments.name.lower()
    if name == OTHER:
        raise AbsentError(
            f"group {OTHER!r} has no pledge: it is the jobs of no configured group; groups with "
            f"one are {', '.join(groups)}"
        )
    if name not in groups:
        near = get_close_matches(name[:MAX_SHOWN], groups, 1)
        remedy = f"did you mean {near[0]}?" if near else f"its groups are {', '.join(groups)}"
        raise AbsentError(f"no group {printable(arguments.name)!r} there; {remedy}")
    why = explain_group(explained, name)
    _print(group_page(explained, why, everything=arguments.all), arguments)
    return 0


def _node(arguments: argparse.Namespace) -> int:
    config = options.config_of(arguments)
    explained = _explained(arguments, config)
    node = _node_named(arguments.name, explained.record.nodes)
    since = _since(explained, node, config)
    why = explain_node(explained, node, since, _words(arguments, node.node, config))
    _print(node_page(explained, why, everything=arguments.all), arguments)
    return 0


def _node_named(name: str, records: Sequence[NodeRecord]) -> NodeRecord:
    nodes = {node.node.lower(): node for node in records}
    wanted = name.lower()
    node = nodes.get(wanted) or nodes.get(wanted.split(".")[0])
    if node is None:
        near = get_close_matches(wanted, list(nodes), 3)
        some = f"; nodes there are {listed(list(nodes), _NODES_NAMED)}" if nodes else ""
        remedy = f"; did you mean {' or '.join(near)}?" if near else some
        count = counted(len(nodes), "node")
        raise AbsentError(f"no node {printable(name)!r} among {count}{remedy}")
    return node


def _since(explained: Explained, node: NodeRecord, config: Config) -> Optional[Since]:
    """Time of the node's target, by the state of the last cycle or by the ledger."""
    if node.target is None:
        return None
    taken_at = explained.record.taken_at
    for stood in wiring.state_to_read(config, int(time.time())).standing:
        if stood.target == node.target and stood.since <= taken_at:
            return Since(stood.since, exact=True)
    ledger = wiring.ledger_of(config)
    if explained.record.number == 0 or not ledger.is_readable():
        return Since(taken_at, exact=True)
    since = taken_at
    for earlier, target in ledger.targets_of(node.node, taken_at - _SINCE_SECONDS, taken_at + 1):
        if target != node.target:
            return Since(since, exact=True)
        since = earlier
    return Since(since, exact=False)


def _words(arguments: argparse.Namespace, name: str, config: Config) -> Optional[NodeWords]:
    """Words of the node now; None where the explanation is of another time."""
    if arguments.jobs is not None or arguments.cycle is not None or arguments.at is not None:
        return None
    from sharectl.condor.nodes import ask

    return ask(
        config.pool.collector,
        name,
        int(time.time()),
        config.nodes.job_ctl_stale_seconds,
        config.pool.collector_deadline_seconds,
    )


def _cycle(arguments: argparse.Namespace) -> int:
    config = options.config_of(arguments)
    ledger = wiring.ledger_of(config)
    record = recorded(ledger, *arguments.which)
    before = complete_before(ledger, record.taken_at)
    again = _decided_again(record, before, config) if _is_complete(record) else None
    why = explain_cycle(record, before, again)
    _print(cycle_page(why, everything=arguments.all), arguments)
    return 0


def _explained(arguments: argparse.Namespace, config: Config) -> Explained:
    """The complete decision that the options choose.

    Raises
    ------
    AbsentError
        If the ledger has no such cycle.
    """
    chosen = {
        "--cycle": arguments.cycle is not None,
        "--at": arguments.at is not None,
        "--live": arguments.live,
        "--jobs": arguments.jobs is not None,
    }
    names = [name for name, is_chosen in chosen.items() if is_chosen]
    if len(names) > 1:
        arguments.usage_error(f"{' and '.join(names)} say different things; give one of them")
    if arguments.live or arguments.jobs is not None:
        return _decided_now(arguments, config)
    ledger = wiring.ledger_of(config)
    record = recorded(ledger, arguments.cycle, arguments.at)
    usable = record if _is_complete(record) else complete_before(ledger, record.taken_at)
    if usable is None or (arguments.cycle is not None and usable is not record):
        raise AbsentError(
            f"cycle {record.number} {_why_not(record)}, so there is no decision to explain: "
            f"`sharectl explain cycle {record.number}`"
        )
    if usable is not record:
        instead = f"this is cycle {usable.number}"
        options.say([f"cycle {record.number} {_why_not(record)}: {instead}"])
    return _decided_again(usable, complete_before(ledger, usable.taken_at), config)


def _decided_again(record: CycleRecord, before: Optional[CycleRecord], config: Config) -> Explained:
    # The source of pledges is not asked: the record has them.
    law = wiring.plan_config(config, wiring.UNASKED)
    return of_ledger(record, before, law, wiring.known_of(config))


def _decided_now(arguments: argparse.Namespace, config: Config) -> Explained:
    known = wiring.known_of(config)
    snapshot = options.look_to_decide(arguments, config)
    offline = arguments.jobs is not None
    state = State() if offline else wiring.state_to_read(config, snapshot.taken_at)
    law = wiring.plan_config(config, offline=offline)
    case = Case(law, state, snapshot, snapshot.taken_at, known)
    return of_now(case, str(arguments.jobs) if offline else "a look at the pool now, not published")


def recorded(ledger: Ledger, number: Optional[int], at: Optional[int]) -> CycleRecord:
    """Cycle of a number, or the last one at a time, or the latest; complete or not.

    Raises
    ------
    AbsentError
        If there is none.
    """
    if at is not None:
        record = ledger.cycle_at(at)
    else:
        record = ledger.latest() if number is None else ledger.cycle(number)
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


def _why_not(record: CycleRecord) -> str:
    if record.imported:
        return "was imported, with no jobs by node"
    return "has no groups" if record.complete else "was not complete"


def _job(arguments: argparse.Namespace) -> int:
    from sharectl.explain import asks

    config = options.config_of(arguments)
    try:
        wanted = asks.job_id(arguments.id, arguments.schedd)
    except ValueError as error:
        arguments.usage_error(str(error))
    now, pool = int(time.time()), config.pool
    places = asks.schedds(pool.collector, pool.collector_deadline_seconds, wanted.schedd)
    located = asks.find(places, wanted, pool.schedd_deadline_seconds)
    if located is None:
        explained = job.JobExplanation(str(wanted), now, job.UNKNOWN)
    else:
        explained = _job_explained(str(wanted), located, config, now)
    _print(job_page(explained, everything=arguments.all), arguments)
    return 1 if explained.code in (job.UNKNOWN, job.NOT_EVALUATED) else 0


def _job_explained(name: str, located: LocatedJob, config: Config, now: int) -> job.JobExplanation:
    from sharectl.explain.asks import matched

    facts, code = located.facts, job.state_of(located.facts.status, located.facts.universe)
    if code not in (None, job.HELD):
        return job.JobExplanation(name, now, code or "", facts)
    # The longer of the two deadlines: the expressions are evaluated within it too.
    match, problem = matched(
        config.pool.collector, located, now, config.pool.schedd_deadline_seconds
    )
    if match is None:
        return job.JobExplanation(name, now, code or job.NOT_EVALUATED, facts, problem=problem)
    verdict = job.verdict(match.findings)
    quotas = job.quotas_of(facts.accounting_group, match.groups)
    headroom = _headroom(facts.accounting_group, config, quotas, now)
    return job.JobExplanation(name, now, code or verdict.code, facts, verdict, headroom)


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
    rows = group_errors(usage_by_group(snapshot, pledges), pledges)
    row = next((row for row in rows if row.group == group), None)
    if row is None:
        return job.Headroom(group, quotas)
    power_hs06 = row.usage.power_hs06
    return job.Headroom(group, quotas, row.pledge_hs06, power_hs06, row.error_hs06)


def _codes(arguments: argparse.Namespace) -> int:
    """Print each code with its sentence, by family; 1 if a named code is in no family."""
    wanted = [code.lower() for code in arguments.codes]
    chosen = {
        family: {code: says for code, says in codes.items() if not wanted or code in wanted}
        for family, codes in CODES.items()
    }
    if arguments.json:
        print(as_json.dumps("codes", {"families": dict(FAMILIES), "codes": chosen}))
    else:
        for family, codes in chosen.items():
            if codes:
                print(f"{family}: {FAMILIES[family]}")
            for code, says in codes.items():
                _print_code(f"  {code:<{_LABEL - 2}} ", says)
    known = {code for codes in CODES.values() for code in codes}
    unknown = [code for code in dict.fromkeys(wanted) if code not in known]
    for code in unknown:
        near = get_close_matches(code[: _LABEL * 2], sorted(known))
        advice = "`sharectl explain codes` prints all of them"
        advice = f"did you mean {' or '.join(near)}?" if near else advice
        options.say([f"no code {printable(code)!r}; {advice}"])
    return 1 if unknown else 0


def _print_code(label: str, says: str) -> None:
    """Print a code and its sentence, as wide as the terminal where words allow."""
    lines = wrap(
        says,
        max(shutil.get_terminal_size().columns, 2 * _LABEL),
        initial_indent=label,
        subsequent_indent=" " * (_LABEL + 1),
        break_on_hyphens=False,
        break_long_words=False,
    )
    print("\n".join(lines))


_SUBJECTS = {
    "group": (
        "what a group uses and is entitled to, and why it gives or receives",
        _add_group,
        _group,
    ),
    "node": ("what a node holds, and why it has its target or has none", _add_node, _node),
    "cycle": (
        "what one cycle saw, decided and changed, and what would change its plan",
        _add_cycle,
        _cycle,
    ),
    "job": ("what stands in the way of a job, clause by clause", _add_job, _job),
    "codes": (
        "every code that stands for a reason, with its sentence",
        _add_codes,
        _codes,
    ),
}
"""Subject -> summary, its arguments, its explanation."""
