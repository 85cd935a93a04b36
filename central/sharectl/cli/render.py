"""``sharectl render``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Callable

from sharectl.cli import wiring
from sharectl.cli.main import DEFAULT_CONFIG
from sharectl.config.load import load
from sharectl.errors import ConfigError
from sharectl.shares.groups import GroupTree
from sharectl.shares.quotas import central_manager_configuration

TARGETS: Mapping[str, Callable[[GroupTree], str]] = {
    "central-manager": central_manager_configuration,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "target", choices=tuple(TARGETS), help="central-manager: accounting groups and their quotas"
    )
    parser.add_argument(
        "--config",
        type=Path,
        default=Path(DEFAULT_CONFIG),
        metavar="FILE",
        help="default: %(default)s",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the configuration: the same text for the same pledges."""
    config = load(arguments.config)
    if config.pledges.source == "negotiator":
        raise ConfigError(
            [
                (
                    "pledges.from: negotiator: its quotas would be made from themselves; write the "
                    "pledges to render them"
                )
            ]
        )
    print(TARGETS[arguments.target](wiring.tree_with_pledges(config)), end="")
    return 0
