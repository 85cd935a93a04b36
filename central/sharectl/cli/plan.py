"""``sharectl snapshot``, ``errors`` and ``plan``: the pool, the errors of its groups, targets."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple, Optional

from sharectl.cli import options, wiring
from sharectl.config.load import REPLAYED, tried
from sharectl.config.model import Config
from sharectl.cycle.doubts import doubts, power_doubts
from sharectl.errors import InputError, PoolUnavailableError, StateError
from sharectl.explain.decisions import idle_by_target
from sharectl.files import files
from sharectl.ledger import error_log
from sharectl.model import Target
from sharectl.plan.diff import ESTIMATING, plan_diff
from sharectl.plan.plan import NOTHING_KNOWN, REASONS, Decision, State, decide
from sharectl.publish.text import PLAN_MAX_BYTES, parse_plan, parse_text, target_lines
from sharectl.report import as_json, plans
from sharectl.report.pool import snapshot_tables
from sharectl.shares.errors import group_errors, usage_by_group
from sharectl.shares.groups import with_subgroups

NO_FILE = ""
"""Value of ``--diff`` without a file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of one of the verbs."""
    options.add_common(parser)
    verb = parser.prog.split()[-1]
    if verb == "snapshot":
        return
    options.add_look(parser)
    if verb == "errors":
        parser.epilog = (
            "columns: T0 Unix seconds; VO group; PLEDGE HS06; DC cores over the share; SC, MC "
            "cores held by single- and multicore jobs; DHS HS06 over the share; DPHS HS06 over "
            "the pledge; PSC, PMC single- and multicore jobs pending"
        )
        return
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
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="with --diff: decide with a key of the configuration that is otherwise, such as "
        f"control.max_nodes=50, beside the plan without it; keys of {', '.join(REPLAYED)} and of "
        "groups; may be given several times",
    )
    parser.add_argument("--all", action="store_true", help="with --diff: more than one screen")
    parser.set_defaults(usage_error=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Look at the pool, and print it, its errors or a plan."""
    verbs = {"snapshot": _snapshot, "errors": _errors, "plan": _plan}
    return verbs[arguments.verb](arguments)


def _snapshot(arguments: argparse.Namespace) -> int:
    """Print jobs of each group, the nodes, and how every daemon answered."""
    config = options.config_of(arguments)
    snapshot = options.pool_of(config).snapshot(int(time.time()))
    content = as_json.snapshot(snapshot, config.tree.names)
    if arguments.json:
        print(as_json.dumps("snapshot", content))
    else:
        snapshot_tables(content, sys.stdout)
    options.say(f"{source.name}: {source.problem}" for source in snapshot.problems)
    options.say_warnings(power_doubts(snapshot))
    return 0 if snapshot.complete else PoolUnavailableError.exit_code


def _errors(arguments: argparse.Namespace) -> int:
    """Print the header of shares_Error.log, and a row a group with the groups within it."""
    config = options.config_of(arguments)
    snapshot = options.look(arguments, config)
    law = wiring.plan_config(config)
    usage = usage_by_group(snapshot, law.shared_hs06)
    rows = with_subgroups(group_errors(usage, law.shared_hs06), law.own_hs06)
    if arguments.json:
        print(as_json.dumps("errors", as_json.errors(snapshot.taken_at, rows)))
    else:
        print(error_log.HEADER, *error_log.rows(snapshot.taken_at, rows), sep="\n")
    return 0


# ---- plan


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
    snapshot = options.look(arguments, config, decides=True)
    offline = arguments.jobs is not None
    now = snapshot.taken_at if offline else int(time.time())
    state = State() if offline else wiring.state_to_read(config, now)
    run_times = NOTHING_KNOWN if offline else wiring.known_of(config)
    law = wiring.plan_config(config, offline=offline)
    other: Optional[_Other] = None
    if arguments.settings:
        without = decide(law, state, snapshot, now, run_times)
        words = " ".join(f"--set {setting}" for setting in arguments.settings)
        idle = {node.node: node.idle_core_seconds for node in without.nodes if node.target}
        idle = idle if law.strategy in ESTIMATING else {}
        other = _Other(f"the plan without {words}", without.plan.targets, idle)
        changed = tried(config, arguments.settings, own_pledges=True)
        law = wiring.plan_config(changed, offline=offline)
    elif arguments.diff is not None:
        other = _of_file(arguments.diff, config) if arguments.diff else _published(config, now)
    decision = decide(law, state, snapshot, now, run_times)
    warnings = doubts(law, state, snapshot, now)
    if other is not None:
        _print_diff(arguments, other, decision, law.strategy)
    elif arguments.json:
        print(as_json.dumps("plan", {**as_json.plan(decision.plan), "warnings": warnings}))
    else:
        for line in target_lines(decision.plan):
            print(line)
    if other is None:
        options.say([REASONS[decision.plan.reason]])
    options.say_limits(decision.plan)
    options.say_warnings(warnings)
    return 0


def _print_diff(
    arguments: argparse.Namespace, other: _Other, decision: Decision, strategy: str
) -> None:
    nodes, plan = {node.node: node for node in decision.nodes}, decision.plan
    diff = plan_diff(other.targets, plan.targets, nodes, other.idle_core_seconds, strategy)
    if arguments.json:
        print(as_json.dumps("plan_diff", plans.diff_data(diff, plan, other.words)))
    else:
        plans.print_diff(diff, plan, other.words, sys.stdout, everything=arguments.all)


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


def _of_file(name: str, config: Config) -> _Other:
    """Targets of a plan as JSON or ``sharectl.txt``, from a file or standard input (``-``)."""
    wanted = "give what `sharectl plan --json` printed, or a sharectl.txt"
    try:
        with sys.stdin.buffer if name == "-" else files.open_bytes(Path(name)) as file:
            content = file.read(PLAN_MAX_BYTES + 1)
    except OSError as error:
        problem = f"{name}: cannot be read: {error.strerror or error}; {wanted}"
        raise InputError([problem]) from error
    try:
        is_json = content.lstrip()[:1] == b"{"
        text = content.decode("utf-8", "replace") if is_json else ""
        targets = (parse_plan(text, name) if is_json else parse_text(content, name)).targets
    except InputError as error:
        raise InputError([*error.problems, f"{name}: {wanted}"]) from error
    return _Other(name, targets, _recorded_idle(targets, config))
