"""``sharectl publish``."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from sharectl.adapters import plan_json
from sharectl.adapters.lock import only_one
from sharectl.adapters.sharectl_file import render
from sharectl.adapters.state_file import StateFile
from sharectl.cli import options
from sharectl.cycle import publish_plan
from sharectl.errors import InputError, StateError
from sharectl.report import as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)
    options.add_dry_run(parser)
    parser.add_argument(
        "--plan",
        default="-",
        metavar="FILE",
        help="the plan, as `sharectl plan --json` printed it (default: standard input)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Publish a plan that was looked at first. An old one is refused: its figures no longer hold."""
    config = options.config_of(arguments)
    decided = plan_json.parse(_text(arguments.plan), arguments.plan)
    if set(decided.groups) != set(config.groups):
        raise InputError([f"{arguments.plan}: its groups are not those of {arguments.config}; plan again"])
    if decided.valid_until <= time.time():
        raise InputError([f"{arguments.plan}: no longer valid since {decided.valid_until}; plan again"])
    if arguments.dry_run:
        print(
            as_json.dumps("plan", as_json.plan(decided))
            if arguments.json
            else render(decided, options.seal_of(config)),
            end="",
        )
        return 0
    store = StateFile(config.state_directory / "state.json")
    problems: list[str] = []
    with only_one(config.state_directory / "lock", config.lock_wait_seconds):
        before = store.load()
        if decided.sequence <= before.sequence:
            raise InputError([f"{arguments.plan}: a plan as new as this was published already; plan again"])
        published = publish_plan(
            decided,
            replace(before, sequence=decided.sequence),
            options.publishers_of(config),
            store,
            problems,
        )
    if problems:
        raise StateError("\n".join(problems))
    if arguments.json:
        print(as_json.dumps("published", {"published": published, "sequence": decided.sequence}))
    else:
        for place in published:
            print(place)
    return 0


def _text(name: str) -> str:
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([f"{name}: cannot be read: {error}"]) from error
