"""``sharectl errors``, ``plan`` and ``replay``: decisions that nobody publishes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from sharectl.cli import options, wiring
from sharectl.cli.cycle import digest_of
from sharectl.config.load import REPLAYED, REPLAYED_OF_GROUPS, tried
from sharectl.config.model import OBSERVE, Config
from sharectl.cycle.doubts import doubts
from sharectl.errors import AbsentError
from sharectl.explain.decisions import replayed
from sharectl.ledger import error_log
from sharectl.ledger.ledger import Ledger
from sharectl.model import Target
from sharectl.plan.diff import plan_diff
from sharectl.plan.plan import REASONS
from sharectl.plan.records import CycleRecord
from sharectl.publish.text import target_lines
from sharectl.report import as_json, plans
from sharectl.shares.errors import group_errors, usage_by_group
from sharectl.shares.groups import with_subgroups
from sharectl.times import FORMS, MAX_SECONDS, span

_COLUMNS = (
    "columns: T0 Unix seconds; VO group; PLEDGE HS06; DC cores over the share; SC, MC cores held "
    "by single- and multicore jobs; DHS HS06 over the share; DPHS HS06 over the pledge; PSC, PMC "
    "single- and multicore jobs pending"
)

_PAGE_SECONDS = 86_400
"""The ledger is read in pages, so that cycles can write to it meanwhile."""
_REPLAY_EPILOG = (
    "A replay is an open loop: each cycle is decided on the pool as it was then, which does not "
    f"react (docs/why.md). TIME is {FORMS}."
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
        action="store_true",
        help="instead, what the plan would change beside what is published: targets added, kept, "
        "moved to another node, altered and dropped, the power that changes hands and the idle "
        "core-seconds it costs",
    )
    options.add(
        parser,
        "--set",
        help="with --diff: another value of a key of the configuration, such as "
        "control.max_nodes=50: the plan with it beside the plan without it; keys of "
        f"{', '.join(REPLAYED)} and of groups; may be given several times",
    )


def _plan(arguments: argparse.Namespace) -> int:
    """Print a line a target: node, held-back group, its cap in cores, helped group, request."""
    if arguments.settings and not arguments.diff:
        arguments.usage_error("--set goes with --diff: write both, or neither")
    config = options.config_of(arguments)
    changed = tried(config, arguments.settings, own_pledges=True)
    case = wiring.case_of(arguments, config)
    beside, targets = "", tuple[Target, ...]()
    if arguments.settings:
        beside = " ".join(("the plan without", *(f"--set {key}" for key in arguments.settings)))
        targets = case.decided().plan.targets
        law = wiring.plan_config(changed, offline=arguments.jobs is not None)
        case = replace(case, config=law)
    elif arguments.diff:
        beside, targets = _published(config, case.now)
    decision = case.decided()
    plan = decision.plan
    failed = (*decision.law_problems, *decision.shadow_problems)
    warnings = (*failed, *doubts(case.config, case.snapshot))
    if arguments.diff:
        nodes = {node.node: node for node in decision.nodes}
        diff = plan_diff(targets, plan.targets, nodes, case.config.strategy)
        text = partial(plans.print_diff, diff, plan, beside)
        options.show(arguments, "plan_diff", plans.diff_data(diff, plan, beside), text)
    else:
        content = {**as_json.plan(plan), "warnings": warnings}
        options.show(arguments, "plan", content, target_lines(plan))
        options.say([REASONS[plan.reason]])
    options.say_limits(plan)
    options.say_warnings(warnings)
    return 0


def _published(config: Config, now: int) -> tuple[str, tuple[Target, ...]]:
    """Words for the published plan, and its targets that stand."""
    state = wiring.state_to_read(config, now)
    if config.mode == OBSERVE and state.observed:
        planned = tuple(stood.target for stood in state.standing)
        return "what the last cycle would have published: mode: observe", planned
    if not state.sequence:
        return "nothing: no plan was published yet", ()
    targets = tuple(stood.target for stood in state.standing_at(now))
    over = ""
    if state.placed and not targets:
        over = f", which ran out {span(now - state.standing_until)} ago"
    return f"what is published: sequence {state.sequence}{over}", targets


# ---- replay


def _add_replay(parser: argparse.ArgumentParser) -> None:
    options.add(parser, "--from", default=0, help="default: the first cycle")
    options.add(parser, "--to", default=MAX_SECONDS, help="before it; default: now")
    options.add(
        parser,
        "--set",
        help="a key of the configuration that is otherwise, such as control.law=pid; may be "
        f"given several times: {', '.join(REPLAYED)}, groups.NAME.({'|'.join(REPLAYED_OF_GROUPS)})",
    )


def _replay(arguments: argparse.Namespace) -> int:
    """Print cycles as they were beside what would have been decided, and their sums."""
    options.refuse_no_period(arguments)
    config = options.config_of(arguments)
    settings = arguments.settings
    decides = tried(config, settings, own_pledges=False)
    unchanged = wiring.plan_config(config, wiring.UNASKED)
    configuration, law = digest_of(config), unchanged
    if digest_of(decides) != configuration:
        law = wiring.plan_config(decides, wiring.UNASKED)
    ledger = wiring.ledger_of(config)
    first, last = ledger.span() or (0, 0)
    since, until = arguments.since or first, min(arguments.until, int(time.time()) + 1)
    withdraws = decides.control.incomplete == "withdraw"
    records = _pages(ledger, since, min(until, last + 1))
    cycles = list(replayed(records, law, unchanged, configuration, withdraws=withdraws))
    if not cycles:
        raise AbsentError(options.no_cycle(ledger.span()))
    if all(cycle.would is None for cycle in cycles):
        raise AbsentError(
            "nothing to replay: no cycle in that time was complete, decided its plan and still has "
            "its nodes; name another time with --from and --to"
        )
    laws = f"law {decides.control.acting.law}, strategy {law.strategy}"
    words = ", ".join((laws, *settings))
    text = partial(plans.print_replay, cycles, words)
    heading = {"from": since, "to": until, "decides": words}
    options.show(arguments, "replay", plans.replay_data(cycles, heading), text)
    return 0


def _pages(ledger: Ledger, since: int, until: int) -> Iterator[CycleRecord]:
    for page in range(since, until, _PAGE_SECONDS):
        yield from ledger.cycles(page, min(page + _PAGE_SECONDS, until), with_nodes=True)


VERBS = {
    "errors": options.Verb(_errors, shared=options.LOOK, epilog=_COLUMNS),
    "plan": options.Verb(_plan, _add_plan, shared=options.LOOK),
    "replay": options.Verb(_replay, _add_replay, epilog=_REPLAY_EPILOG),
}
