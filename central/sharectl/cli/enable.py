"""``sharectl enable``."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict

from sharectl.cli import options, wiring
from sharectl.cycle.publication import noted
from sharectl.errors import StateError
from sharectl.report import as_json
from sharectl.report.pool import disabled_words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)
    parser.epilog = "The next cycle publishes targets again."


def run(arguments: argparse.Namespace) -> int:
    """End what ``sharectl disable`` began; no error if sharectl is on already."""
    config = options.config_of(arguments)
    switch = wiring.switch_of(config)
    was = switch.disabled()
    switch.enable()
    problems: list[str] = []
    if was is not None:
        with noted(problems):
            wiring.audit_of(config, "enable").switched(was, int(time.time()), on=True)
    if arguments.json:
        print(as_json.dumps("enabled", {"was": asdict(was) if was else None}))
    elif was is None:
        print("sharectl was not disabled")
    else:
        words = disabled_words(was)
        print(f"enabled: the next cycle publishes targets again; was disabled {words}")
    if problems:
        raise StateError("\n".join(problems))
    return 0
