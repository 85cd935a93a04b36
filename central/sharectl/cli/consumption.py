"""``sharectl consumption …``: how a node's assets may be consumed, what a claim costs, and how many more fit."""

from __future__ import annotations

import argparse
from types import ModuleType

from sharectl.cli import (
    consumption_capacity,
    consumption_check,
    consumption_cost,
    consumption_examples,
    consumption_render,
)

_VERBS: dict[str, tuple[ModuleType, str]] = {
    "examples": (consumption_examples, "list the ready examples of policies, or print one"),
    "render": (consumption_render, "print the HTCondor configuration of a file of policies"),
    "check": (
        consumption_check,
        "find what is wrong with consumption policies, before or after they are used",
    ),
    "cost": (
        consumption_cost,
        "what jobs would take of slots, what that costs their groups, and how many more fit",
    ),
    "capacity": (consumption_capacity, "how many claims slots, slot types and groups can have now"),
}
"""Name → module with ``add_arguments`` and ``run``, and what it does in a line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    verbs = parser.add_subparsers(title="verbs", dest="consumption", metavar="VERB", required=True)
    for name, (module, summary) in _VERBS.items():
        described = verbs.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        module.add_arguments(described)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb that was named."""
    code: int = _VERBS[arguments.consumption][0].run(arguments)
    return code
