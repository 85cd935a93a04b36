"""``sharectl publish``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from sharectl.cli import wiring
from sharectl.cli.wiring import UNASKED, outlets_of
from sharectl.config.files import refuse_clashes
from sharectl.cycle.publication import Proposal, load_state, publish_unless_disabled
from sharectl.errors import DisabledError, InputError, StateError
from sharectl.files import files
from sharectl.files.files import only_one
from sharectl.plan.plan import published
from sharectl.publish import text
from sharectl.publish.text import render
from sharectl.report import as_json
from sharectl.report.pool import disabled_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    wiring.add_common(parser)
    wiring.add_dry_run(parser)
    parser.add_argument(
        "--plan",
        default="-",
        metavar="FILE",
        help="the plan, as `sharectl plan --json` printed it (default: standard input); a pipe may be silent for 60 s",
    )


def run(arguments: argparse.Namespace) -> int:
    """Publish a plan that was looked at first, as it is.

    An old one is refused: its figures no longer hold.
    """
    config = wiring.config_of(arguments)
    decided = text.parse_plan(_text(arguments.plan), arguments.plan)
    if set(decided.groups) != set(config.tree.names):
        raise InputError(
            [f"{arguments.plan}: its groups are not those of {arguments.config}; plan again"]
        )
    if decided.valid_until <= time.time():
        raise InputError(
            [f"{arguments.plan}: no longer valid since {decided.valid_until}; plan again"]
        )
    if arguments.dry_run:
        print(
            as_json.dumps("plan", as_json.plan(decided))
            if arguments.json
            else render(decided, wiring.seal_of(config)),
            end="",
        )
        return 0
    refuse_clashes(config, arguments.config)
    outlets = outlets_of(config, "publish")
    problems: list[str] = []
    with only_one(config.state_directory / "lock", config.lock_wait_seconds):
        now = int(time.time())
        before = load_state(outlets.state, now, problems)
        if decided.sequence <= before.sequence:
            raise InputError(
                [f"{arguments.plan}: a plan as new as this was published already; plan again"]
            )
        done = publish_unless_disabled(
            wiring.plan_config(config, UNASKED),
            Proposal(decided, published(before, decided, now)),
            before,
            outlets,
            now,
            problems,
        )
    if problems:
        raise StateError("\n".join(problems))
    if done.disabled is not None:
        said = disabled_words(done.disabled)
        raise DisabledError(f"not published: disabled {said}; `sharectl enable` ends that")
    if arguments.json:
        print(as_json.dumps("published", {"published": done.places, "sequence": decided.sequence}))
    else:
        for place in done.places:
            print(place)
        for place in done.left:
            print(f"no targets any more at {place}, which publish: names no more", file=sys.stderr)
    return 0


def _text(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.read(text.PLAN_MAX_BYTES + 1)
        with files.open_text(Path(name)) as file:
            return file.read(text.PLAN_MAX_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            [f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}"]
        ) from error
