"""``sharectl check config``."""

from __future__ import annotations

import argparse
from pathlib import Path

from sharectl.adapters.config_file import load
from sharectl.adapters.config_text import as_data, render
from sharectl.cli.main import DEFAULT_CONFIG
from sharectl.errors import ConfigError
from sharectl.report import as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the check."""
    parser.add_argument(
        "file",
        type=Path,
        nargs="?",
        default=Path(DEFAULT_CONFIG),
        metavar="FILE",
        help="default: %(default)s",
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON: the configuration, or what is wrong with it"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the configuration with its defaults; 78 if something is wrong in the file.

    Raises
    ------
    ConfigError
        If something is wrong and no JSON was asked for.
    """
    try:
        config = load(arguments.file)
    except ConfigError as error:
        if not arguments.json:
            raise
        print(as_json.dumps("config", {"valid": False, "problems": list(error.problems), "config": None}))
        return error.exit_code
    if arguments.json:
        print(as_json.dumps("config", {"valid": True, "problems": [], "config": as_data(config)}))
    else:
        print(render(config), end="")
    return 0
