"""``sharectl plan``, and what it would change: ``--diff``, ``--set KEY=VALUE --diff``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sharectl.cli import options, wiring
from sharectl.config.load import REPLAYED, idle_in_replay, overridden
from sharectl.config.model import Config
from sharectl.cycle.doubts import doubts
from sharectl.errors import InputError, SettingError, StateError
from sharectl.explain.cycle import idle_by_target
from sharectl.files import files
from sharectl.model import Target
from sharectl.plan.diff import ESTIMATING, plan_diff
from sharectl.plan.plan import NOTHING_KNOWN, REASONS, Decision, State, decide
from sharectl.publish.text import PLAN_MAX_BYTES, parse_plan, parse_text, target_lines
from sharectl.report import as_json, plans

NO_FILE = ""
"""Value of ``--diff`` without a file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)
    options.add_look(parser)
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


class Other(NamedTuple):
    """Targets that a plan is compared with."""

    words: str
    targets: tuple[Target, ...]
    idle_core_seconds: Mapping[str, float]
    """Node -> what its target is expected to cost, where that is known."""


def run(arguments: argparse.Namespace) -> int:
    """Print a line a target: node, held-back group, its cap in cores, helped group, request."""
    if arguments.settings and arguments.diff != NO_FILE:
        arguments.usage_error("--set tells of --diff without a file: write both, or neither")
    config = options.config_of(arguments)
    snapshot = options.look_to_decide(arguments, config)
    offline = arguments.jobs is not None
    now = snapshot.taken_at if offline else int(time.time())
    state = State() if offline else wiring.state_to_read(config, now)
    known = NOTHING_KNOWN if offline else wiring.known_of(config)
    law = wiring.plan_config(config, offline=offline)
    other = None
    if arguments.settings:
        words = " ".join(f"--set {setting}" for setting in arguments.settings)
        other = _without(words, decide(law, state, snapshot, now, known), law.strategy)
        law = wiring.plan_config(_with(config, arguments.settings), offline=offline)
    elif arguments.diff is not None:
        other = _beside(arguments.diff, config, now)
    decision = decide(law, state, snapshot, now, known)
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
    arguments: argparse.Namespace, other: Other, decision: Decision, strategy: str
) -> None:
    nodes = {node.node: node for node in decision.nodes}
    targets = decision.plan.targets
    diff = plan_diff(other.targets, targets, nodes, other.idle_core_seconds, strategy)
    if arguments.json:
        print(as_json.dumps("plan_diff", plans.diff_data(diff, decision.plan, other.words)))
    else:
        everything = arguments.all
        plans.print_diff(diff, decision.plan, other.words, sys.stdout, everything=everything)


def _with(config: Config, settings: Sequence[str]) -> Config:
    """Configuration with keys set otherwise; keys that no decision goes by are refused."""
    changed = overridden(config, settings)
    idle = idle_in_replay(settings, own_pledges=True)
    if idle:
        raise SettingError(idle)
    return changed


def _without(settings: str, decision: Decision, strategy: str) -> Other:
    idle = {}
    if strategy in ESTIMATING:
        idle = {node.node: node.idle_core_seconds for node in decision.nodes if node.target}
    return Other(f"the plan without {settings}", decision.plan.targets, idle)


def _beside(name: str, config: Config, now: int) -> Other:
    """Targets of a file, or those that are published."""
    if name:
        targets = targets_of(name)
        return Other(name, targets, _recorded_idle(targets, config))
    state = wiring.state_to_read(config, now)
    if not state.sequence:
        return Other("nothing: no plan was published yet", (), {})
    targets = tuple(stood.target for stood in state.standing_at(now))
    over = ""
    if state.standing and not targets:
        over = f", which ran out {now - state.standing_until} s ago"
    words = f"what is published: sequence {state.sequence}{over}"
    return Other(words, targets, _recorded_idle(targets, config))


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


def targets_of(name: str) -> tuple[Target, ...]:
    """Targets of a plan as JSON or ``sharectl.txt``, from a file or standard input (``-``).

    Raises
    ------
    InputError
        If it is neither.
    """
    content = _content(name)
    if content.lstrip()[:1] == b"{":
        return parse_plan(content.decode("utf-8", "replace"), name).targets
    try:
        return parse_text(content, name).targets
    except InputError as error:
        if b"# sharectl:" in content:
            raise
        first = str(error).splitlines()[0].rpartition("; ")[0]
        raise InputError(
            [f"{name}: neither what `sharectl plan --json` printed nor a sharectl.txt; {first}"]
        ) from error


def _content(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(PLAN_MAX_BYTES + 1)
        with files.open_bytes(Path(name)) as file:
            return file.read(PLAN_MAX_BYTES + 1)
    except OSError as error:
        wanted = "give what `sharectl plan --json` printed, or a sharectl.txt"
        raise InputError(
            [f"{name}: cannot be read: {error.strerror or error}; {wanted}"]
        ) from error
