"""``sharectl check config``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sharectl.adapters.config_advice import advice, unusable
from sharectl.adapters.config_file import load
from sharectl.adapters.config_text import as_data, render
from sharectl.cli.main import DEFAULT_CONFIG
from sharectl.errors import ConfigError
from sharectl.report import as_json

_REFUSED: dict[str, object] = {"valid": False, "problems": [], "recommendations": [], "config": None}


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
    """Print the configuration with its defaults; 78 if something is wrong in the file, 1 if it cannot work here.

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
        print(as_json.dumps("config", {**_REFUSED, "problems": list(error.problems)}))
        return error.exit_code
    problems, unknown = unusable(config)
    recommendations = [*unknown, *advice(config)]
    if arguments.json:
        report = {"valid": True, "problems": problems, "recommendations": recommendations}
        print(as_json.dumps("config", {**report, "config": as_data(config)}))
    else:
        print(render(config), end="")
        for said in (*problems, *(f"recommended: {line}" for line in recommendations)):
            print(f"sharectl: {said}", file=sys.stderr)
    return 1 if problems else 0
