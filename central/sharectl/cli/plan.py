"""``sharectl errors`` and ``plan``: the errors of the groups, and targets."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Optional

from sharectl.cli import options, wiring
from sharectl.config.load import REPLAYED, tried
from sharectl.config.model import Config
from sharectl.cycle.doubts import doubts
from sharectl.errors import InputError, StateError
from sharectl.explain.decisions import idle_by_target, of_now
from sharectl.explain.what_if import Case
from sharectl.ledger import error_log
from sharectl.model import Target
from sharectl.plan.diff import plan_diff
from sharectl.plan.plan import REASONS, Decision
from sharectl.publish.text import PLAN_MAX_BYTES, parse_plan, parse_text, target_lines
from sharectl.report import as_json, plans
from sharectl.shares.errors import group_errors, usage_by_group
from sharectl.shares.groups import with_subgroups

NO_FILE = ""
"""Value of ``--diff`` without a file."""
_COLUMNS = (
    "columns: T0 Unix seconds; VO group; PLEDGE HS06; DC cores over the share; SC, MC cores held "
    "by single- and multicore jobs; DHS HS06 over the share; DPHS HS06 over the pledge; PSC, PMC "
    "single- and multicore jobs pending"
)


def _errors(arguments: argparse.Namespace) -> int:
    """Print the header of shares_Error.log, and a row a group with the groups within it."""
    config = options.config_of(arguments)
    snapshot = wiring.look(arguments, config)
    law = wiring.plan_config(config)
    usage = usage_by_group(snapshot, law.shared_hs06)
    rows = with_subgroups(group_errors(usage, law.shared_hs06), law.own_hs06)
    lines = [error_log.HEADER, *error_log.rows(snapshot.taken_at, rows)]
    options.show(arguments, "errors", as_json.errors(snapshot.taken_at, rows), lines)
    return 0


# ---- plan


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--diff",
        nargs="?",
        const=NO_FILE,
        metavar="FILE",
        help="instead, what the plan would change: targets added, kept, moved to another node, "
        "altered and dropped, the power that changes hands and the idle core-seconds it costs; "
        "beside what is published, or beside FILE (a plan that `sharectl plan --json` printed, or "
        "a sharectl.txt; - for standard input)",
    )
    keys = f"control.max_nodes=50, beside the plan without it; keys of {', '.join(REPLAYED)}"
    options.add(
        parser,
        "--set",
        help="with --diff: decide with a key of the configuration that is otherwise, such as "
        f"{keys} and of groups; may be given several times",
    )
    options.add(parser, "--all", help="with --diff: more than one screen")


class _Other(NamedTuple):
    """Targets that a plan is compared with."""

    words: str
    targets: tuple[Target, ...] = ()
    idle_core_seconds: Mapping[str, float] = {}
    """Node -> what its target is expected to cost, where that is known."""


def _plan(arguments: argparse.Namespace) -> int:
    """Print a line a target: node, held-back group, its cap in cores, helped group, request."""
    if arguments.settings and arguments.diff != NO_FILE:
        arguments.usage_error("--set tells of --diff without a file: write both, or neither")
    config = options.config_of(arguments)
    changed = tried(config, arguments.settings, own_pledges=True)
    case = wiring.case_of(arguments, config)
    other: Optional[_Other] = None
    if arguments.settings:
        other = _without(arguments.settings, case)
        law = wiring.plan_config(changed, offline=arguments.jobs is not None)
        case = replace(case, config=law)
    elif arguments.diff is not None:
        other = _of_file(arguments.diff, config) if arguments.diff else _published(config, case.now)
    decision = case.decided()
    warnings = doubts(case.config, case.state, case.snapshot, case.now)
    if other is not None:
        _print_diff(arguments, other, decision, case.config.strategy)
    else:
        content = {**as_json.plan(decision.plan), "warnings": warnings}
        options.show(arguments, "plan", content, target_lines(decision.plan))
        options.say([REASONS[decision.plan.reason]])
    options.say_limits(decision.plan)
    options.say_warnings(warnings)
    return 0


def _print_diff(
    arguments: argparse.Namespace, other: _Other, decision: Decision, strategy: str
) -> None:
    nodes, plan = {node.node: node for node in decision.nodes}, decision.plan
    diff = plan_diff(other.targets, plan.targets, nodes, other.idle_core_seconds, strategy)
    text = partial(plans.print_diff, diff, plan, other.words, everything=arguments.all)
    options.show(arguments, "plan_diff", plans.diff_data(diff, plan, other.words), text)


def _without(settings: Collection[str], case: Case) -> _Other:
    """Targets of the plan without the settings that are tried."""
    explained = of_now(case, "")
    words = " ".join(f"--set {setting}" for setting in settings)
    targets, idle = explained.decision.plan.targets, idle_by_target(explained.record)
    return _Other(f"the plan without {words}", targets, idle)


def _published(config: Config, now: int) -> _Other:
    state = wiring.state_to_read(config, now)
    if not state.sequence:
        return _Other("nothing: no plan was published yet")
    targets = tuple(stood.target for stood in state.standing_at(now))
    over = ""
    if state.standing and not targets:
        over = f", which ran out {now - state.standing_until} s ago"
    words = f"what is published: sequence {state.sequence}{over}"
    return _Other(words, targets, _recorded_idle(targets, config))


def _of_file(name: str, config: Config) -> _Other:
    """Targets of a plan as JSON or ``sharectl.txt``, from a file or standard input (``-``)."""
    content = options.content_of(name, PLAN_MAX_BYTES)
    parse = parse_plan if content.lstrip()[:1] == b"{" else parse_text
    try:
        targets = parse(content, name).targets
    except InputError as error:
        wanted = "give what `sharectl plan --json` printed, or a sharectl.txt"
        raise InputError([*error.problems, f"{name}: {wanted}"]) from error
    return _Other(name, targets, _recorded_idle(targets, config))


def _recorded_idle(targets: Collection[Target], config: Config) -> dict[str, float]:
    """Idle core-seconds of the latest cycle, for nodes that have just these targets there."""
    ledger = wiring.ledger_of(config)
    try:
        record = ledger.latest() if ledger.is_readable() else None
    except StateError as error:
        options.say([str(error)])
        return {}
    if record is None:
        return {}
    same = {node.node for node in record.nodes if node.target in targets}
    return {node: idle for node, idle in idle_by_target(record).items() if node in same}


VERBS = {
    "errors": options.Verb(_errors, shared=options.LOOK, epilog=_COLUMNS),
    "plan": options.Verb(_plan, _add_plan, shared=options.LOOK),
}
