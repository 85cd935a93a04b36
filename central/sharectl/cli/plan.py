"""``sharectl pledges``, ``errors`` and ``plan``: decisions that nobody publishes."""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from math import fsum
from typing import Any

from sharectl.cli import options, wiring
from sharectl.config.model import OBSERVE, Config
from sharectl.cycle.doubts import doubts
from sharectl.errors import PoolUnavailableError
from sharectl.ledger import error_log
from sharectl.model import Target
from sharectl.plan.diff import plan_diff
from sharectl.plan.plan import REASONS, State
from sharectl.publish.text import target_lines
from sharectl.report import as_json, plans
from sharectl.report.tables import print_table
from sharectl.shares.errors import group_errors, usage_by_group
from sharectl.shares.groups import with_subgroups
from sharectl.shares.pledges import SOURCES
from sharectl.times import span

_COLUMNS = (
    "columns: T0 Unix seconds; VO group; PLEDGE HS06; DC cores over the share; SC, MC cores held "
    "by single- and multicore jobs; DHS HS06 over the share; DPHS HS06 over the pledge; PSC, PMC "
    "single- and multicore jobs pending"
)

# ---- pledges and errors

_PLEDGES = ("group", "pledge HS06", "share", "from", "age", "where")


def _add_pledges(parser: argparse.ArgumentParser) -> None:
    refresh = "ask CRIC however young the copy is, and keep what it says"
    parser.add_argument("--refresh", action="store_true", help=refresh)
    factor = "differ from those in use by more than a factor of 2"
    confirm = f"the same, and take pledges that {factor}"
    parser.add_argument("--confirm", action="store_true", help=confirm)


def _pledges(arguments: argparse.Namespace) -> int:
    """Print each group's pledge that a cycle would use now, its source and its age."""
    config, confirm = options.config_of(arguments), arguments.confirm
    writes = arguments.refresh or confirm
    if writes and config.pledges.source != "cric":
        fact = f"--refresh and --confirm are for pledges of CRIC; {arguments.config} has others"
        arguments.usage_error(f"{fact}: pledges.from: {config.pledges.source}")
    source = wiring.pledges_of(config, keep=writes, refresh=writes, confirm=confirm)
    with wiring.lock_of(config) if writes else nullcontext():
        now = int(time.time())
        pledged = source.resolve(now)
    total = fsum(pledge.hs06 for pledge in pledged.pledges if "." not in pledge.group)
    rows = [
        {
            **asdict(pledge),
            "share_ratio": pledge.hs06 / total if total > 0 else 0.0,
            "age_seconds": max(0, now - pledge.said_at) if pledge.said_at is not None else 0,
        }
        for pledge in pledged.pledges
    ]
    problem = pledged.source.problem
    content = {
        "from": config.pledges.source,
        "now": now,
        "seconds": round(pledged.source.seconds, 3),
        "problem": problem,
        "warnings": list(pledged.warnings),
        "notes": list(pledged.notes),
        "pledges": rows,
    }
    table = partial(print_table, "pledges", _PLEDGES, list(map(_cells, rows)))
    options.show(arguments, "pledges", content, table if problem is None else ())
    options.say_warnings(pledged.warnings)
    options.say(f"note: {note}" for note in pledged.notes)
    if problem is not None:
        raise PoolUnavailableError(f"pledges: {problem}")
    return 0


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    share, age = f"{row['share_ratio']:.4f}", span(row["age_seconds"])
    return row["group"], round(row["hs06"], 1), share, SOURCES[row["source"]], age, row["place"]


def _errors(arguments: argparse.Namespace) -> int:
    """Print the header of shares_Error.log, and a row a group with the groups within it."""
    config = options.config_of(arguments)
    snapshot = wiring.look(config, arguments.jobs)
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
        "moved to another node, altered and dropped, and the power that changes hands",
    )


def _plan(arguments: argparse.Namespace) -> int:
    """Print a line a target: node, held-back group, its cap in cores, helped group, request."""
    config = options.config_of(arguments)
    case = wiring.case_of(config, arguments.jobs)
    decision = case.decided()
    plan, code = decision.plan, case.exit_code
    warnings = doubts(case.config, case.snapshot)
    if arguments.diff:
        state = case.state
        if arguments.jobs is not None:
            state, code = wiring.state_to_read(config, case.now)
        beside, targets = _published(config, state, case.now)
        nodes = {node.node: node for node in decision.nodes}
        diff = plan_diff(targets, plan.targets, nodes)
        head = {"beside": beside, "sequence": plan.sequence, "reason": plan.reason}
        text = partial(plans.print_diff, diff, plan, beside)
        options.show(arguments, "plan_diff", {**head, **plans.changes_data(diff)}, text)
    else:
        content = {**asdict(plan), "warnings": warnings}
        options.show(arguments, "plan", content, target_lines(plan))
        options.say([REASONS[plan.reason]])
    options.say_limits(plan)
    options.say_warnings(warnings)
    return code


def _published(config: Config, state: State, now: int) -> tuple[str, tuple[Target, ...]]:
    """Words for the published plan, and its targets that stand."""
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


VERBS = {
    "pledges": options.Verb(_pledges, _add_pledges),
    "errors": options.Verb(_errors, shared=options.LOOK, epilog=_COLUMNS),
    "plan": options.Verb(_plan, _add_plan, shared=options.LOOK),
}
