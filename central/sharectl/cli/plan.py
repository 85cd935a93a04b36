"""``sharectl plan``."""

from __future__ import annotations

import argparse
import time

from sharectl.cli import options, wiring
from sharectl.cycle.doubts import doubts
from sharectl.model import Plan
from sharectl.plan.limits import LIMITS
from sharectl.plan.plan import NOTHING_KNOWN, REASONS, State, decide
from sharectl.publish.text import target_lines
from sharectl.report import as_json

PUBLISHED = ""
"""Value of ``--diff`` without a file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)
    options.add_look(parser)
    parser.add_argument(
        "--diff",
        nargs="?",
        const=PUBLISHED,
        metavar="FILE",
        help="instead, what the plan would change: targets added, kept, moved to another node, "
        "altered and dropped, the power that changes hands and the idle core-seconds it costs; "
        "beside what is published, or beside FILE (a plan that `sharectl plan --json` printed, or "
        "a sharectl.txt; - for standard input)",
    )
    parser.add_argument("--all", action="store_true", help="with --diff: more than one screen")


def run(arguments: argparse.Namespace) -> int:
    """Print a line a target: node, held-back group, its cap in cores, helped group, request."""
    config = options.config_of(arguments)
    snapshot = options.look_to_decide(arguments, config)
    offline = arguments.jobs is not None
    now = snapshot.taken_at if offline else int(time.time())
    state = State() if offline else wiring.state_to_read(config, now)
    law = wiring.plan_config(config, offline=offline)
    decision = decide(
        law, state, snapshot, now, NOTHING_KNOWN if offline else wiring.known_of(config)
    )
    warnings = doubts(law, state, snapshot, now)
    if arguments.diff is not None:
        from sharectl.cli.plan_diff import print_changes

        print_changes(arguments, config, decision, now)
    elif arguments.json:
        print(as_json.dumps("plan", {**as_json.plan(decision.plan), "warnings": warnings}))
    else:
        for line in target_lines(decision.plan):
            print(line)
    if arguments.diff is None:
        options.say([REASONS[decision.plan.reason]])
    say_limits(decision.plan)
    options.say_warnings(warnings)
    return 0


def say_limits(plan: Plan) -> None:
    """Print to standard error which limits acted on a plan, and on how many nodes."""
    options.say(f"{LIMITS[note.code]}: {note.nodes}" for note in plan.limits)
