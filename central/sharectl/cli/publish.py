"""``sharectl publish``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from sharectl.cli import options, wiring
from sharectl.config.files import refuse_clashes
from sharectl.cycle.publication import Failures, Proposal, Publishing, load_state
from sharectl.errors import DisabledError, InputError
from sharectl.files import files
from sharectl.files.files import only_one
from sharectl.plan.plan import published
from sharectl.publish import text
from sharectl.report import as_json
from sharectl.report.pool import disabled_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)
    options.add_dry_run(parser)
    parser.add_argument(
        "--plan",
        default="-",
        metavar="FILE",
        help="the plan, as `sharectl plan --json` printed it (default: standard input); a pipe may "
        "be silent for 60 s",
    )


def run(arguments: argparse.Namespace) -> int:
    """Publish a plan that was looked at first, as it is; an old one is refused."""
    config, name = options.config_of(arguments), arguments.plan
    plan = text.parse_plan(_text(name), name)
    if set(plan.groups) != set(config.tree.names):
        raise InputError([f"{name}: its groups are not those of {arguments.config}; plan again"])
    if plan.valid_until <= time.time():
        raise InputError([f"{name}: no longer valid since {plan.valid_until}; plan again"])
    if arguments.dry_run:
        content = as_json.dumps("plan", as_json.plan(plan)) if arguments.json else ""
        print(content or text.render(plan, wiring.seal_of(config)), end="")
        return 0
    refuse_clashes(config, arguments.config)
    outlets = wiring.outlets_of(config, "publish")
    with only_one(config.state_directory / "lock", config.lock_wait_seconds):
        now = int(time.time())
        before, errors = load_state(outlets.state, now)
        if plan.sequence <= before.sequence:
            problem = f"{name}: a plan as new as this was published already; plan again"
            raise InputError([problem])
        law = wiring.plan_config(config, wiring.UNASKED)
        proposal = Proposal(plan, published(before, plan, now))
        done = Publishing(law, outlets, now).publish_unless_disabled(proposal, before)
    Failures([*errors, *done.errors]).raise_any()
    if done.disabled is not None:
        words = disabled_words(done.disabled)
        raise DisabledError(f"not published: disabled {words}; `sharectl enable` ends that")
    if arguments.json:
        print(as_json.dumps("published", {"published": done.places, "sequence": plan.sequence}))
        return 0
    for place in done.places:
        print(place)
    for place in done.emptied:
        print(f"no targets any more at {place}, which publish: names no more", file=sys.stderr)
    return 0


def _text(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.read(text.PLAN_MAX_BYTES + 1)
        with files.open_text(Path(name)) as file:
            return file.read(text.PLAN_MAX_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError([f"{name}: cannot be read: {reason}"]) from error
