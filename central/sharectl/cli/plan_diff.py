"""``sharectl plan --diff``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sharectl.cli.wiring import ledger_of, state_to_read
from sharectl.config.model import Config
from sharectl.errors import InputError, StateError
from sharectl.explain.cycle import idle_by_target
from sharectl.files import files
from sharectl.model import Target
from sharectl.plan.diff import plan_diff
from sharectl.plan.plan import Decision
from sharectl.publish import text
from sharectl.report import as_json, plans


def print_changes(
    arguments: argparse.Namespace, config: Config, decision: Decision, now: int
) -> None:
    """Print what ``decision`` changes beside what ``--diff`` names."""
    beside, before = _before(arguments.diff, config, now)
    nodes = {node.node: node for node in decision.nodes}
    strategy = config.control.strategy
    diff = plan_diff(before, decision.plan.targets, nodes, _idle_of(before, config), strategy)
    if arguments.json:
        print(as_json.dumps("plan_diff", plans.diff_data(diff, decision.plan, beside)))
    else:
        plans.print_diff(diff, decision.plan, beside, sys.stdout, everything=arguments.all)


def _idle_of(before: tuple[Target, ...], config: Config) -> dict[str, float]:
    """Node -> idle core-seconds expected for its target of ``before``, where the latest cycle has just that one."""
    ledger = ledger_of(config)
    try:
        record = ledger.latest() if ledger.is_readable() else None
    except StateError as error:
        print(f"sharectl: {error}", file=sys.stderr)
        return {}
    if record is None:
        return {}
    same = {node.node for node in record.nodes if node.target in before}
    return {node: idle for node, idle in idle_by_target(record).items() if node in same}


def _before(name: str, config: Config, now: int) -> tuple[str, tuple[Target, ...]]:
    """What it is compared with, in words, and its targets."""
    if name:
        return name, targets_of(name)
    state = state_to_read(config, now)
    standing = tuple(stood.target for stood in state.standing_at(now))
    if not state.sequence:
        return "nothing: no plan was published yet", ()
    over = (
        ""
        if standing or not state.standing
        else f", which ran out {now - state.standing_until} s ago"
    )
    return f"what is published: sequence {state.sequence}{over}", standing


def targets_of(name: str) -> tuple[Target, ...]:
    """Targets of a plan as JSON or as ``sharectl.txt``, from the file of that name or standard input (``-``).

    Raises
    ------
    InputError
        If it is neither.
    """
    content = _content(name)
    if content.lstrip()[:1] == b"{":
        return text.parse_plan(content.decode("utf-8", "replace"), name).targets
    try:
        return text.parse_text(content, name).targets
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
            return sys.stdin.buffer.read(text.PLAN_MAX_BYTES + 1)
        with files.open_bytes(Path(name)) as file:
            return file.read(text.PLAN_MAX_BYTES + 1)
    except OSError as error:
        wanted = "give what `sharectl plan --json` printed, or a sharectl.txt"
        raise InputError(
            [f"{name}: cannot be read: {error.strerror or error}; {wanted}"]
        ) from error
