"""``sharectl render``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Callable

from sharectl.adapters.config_file import load
from sharectl.cli import options
from sharectl.cli.main import DEFAULT_CONFIG
from sharectl.core.group_tree import GroupTree
from sharectl.core.quotas import central_manager_configuration
from sharectl.errors import ConfigError

TARGETS: Mapping[str, Callable[[GroupTree], str]] = {
    "central-manager": central_manager_configuration,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "target", choices=tuple(TARGETS), help="central-manager: accounting groups and their quotas"
    )
    parser.add_argument(
        "--config", type=Path, default=Path(DEFAULT_CONFIG), metavar="FILE", help="default: %(default)s"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the configuration: the same text for the same pledges."""
    config = load(arguments.config)
    if config.pledges.source == "negotiator":
        raise ConfigError(
            [
                "pledges.from: negotiator: its quotas would be made from themselves; write the pledges to render them"
            ]
        )
    print(TARGETS[arguments.target](options.tree_with_pledges(config)), end="")
    return 0
