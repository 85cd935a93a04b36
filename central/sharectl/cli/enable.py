"""``sharectl enable``."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from functools import partial

from sharectl.cli import wiring
from sharectl.cli.wiring import audit_of, switch_of
from sharectl.cycle.publication import tried
from sharectl.errors import StateError
from sharectl.report import as_json
from sharectl.report.pool import disabled_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    wiring.add_common(parser)
    parser.epilog = "The next cycle publishes targets again."


def run(arguments: argparse.Namespace) -> int:
    """End what ``sharectl disable`` began; no error if sharectl is on already."""
    config = wiring.config_of(arguments)
    switch = switch_of(config)
    was = switch.disabled()
    switch.enable()
    problems: list[str] = []
    if was is not None:
        tried(
            partial(audit_of(config, "enable").switched, on=True, said=was, now=int(time.time())),
            problems,
        )
    if arguments.json:
        print(as_json.dumps("enabled", {"was": asdict(was) if was else None}))
    elif was is None:
        print("sharectl was not disabled")
    else:
        print(
            f"enabled: the next cycle publishes targets again; was disabled {disabled_words(was)}"
        )
    if problems:
        raise StateError("\n".join(problems))
    return 0
