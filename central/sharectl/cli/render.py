"""``sharectl render``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Callable

from sharectl.adapters.config_file import load
from sharectl.cli.main import DEFAULT_CONFIG
from sharectl.core.quotas import central_manager_configuration

TARGETS: Mapping[str, Callable[[Mapping[str, float]], str]] = {
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
    groups = load(arguments.config).groups
    print(TARGETS[arguments.target]({name: group.pledge_hs06 for name, group in groups.items()}), end="")
    return 0
