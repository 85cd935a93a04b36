"""``sharectl render``."""

from __future__ import annotations

import argparse

from sharectl.cli import options, wiring
from sharectl.errors import ConfigError
from sharectl.shares.quotas import central_manager_configuration


def _add(parser: argparse.ArgumentParser) -> None:
    target = "central-manager: accounting groups and their quotas"
    parser.add_argument("target", choices=("central-manager",), help=target)


def _run(arguments: argparse.Namespace) -> int:
    """Print the configuration: the same text for the same pledges."""
    config = options.config_of(arguments)
    if config.pledges.source == "negotiator":
        problem = "its quotas would be made from themselves; write the pledges to render them"
        raise ConfigError([f"pledges.from: negotiator: {problem}"])
    print(central_manager_configuration(wiring.tree_with_pledges(config)), end="")
    return 0


VERBS = {"render": options.Verb(_run, _add, shared=("--config",))}
