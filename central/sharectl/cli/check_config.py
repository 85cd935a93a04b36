"""``sharectl check config``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sharectl.cli.options import DEFAULT_CONFIG
from sharectl.config.advice import absent, advice, idle, missing_extras, protected, unusable
from sharectl.config.load import load
from sharectl.config.service_unit import unit_of
from sharectl.config.text import as_data, render
from sharectl.errors import ConfigError
from sharectl.report import as_json
from sharectl.words import counted

_REFUSED: dict[str, object] = {
    "valid": False,
    "problems": [],
    "recommendations": [],
    "config": None,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the check."""
    named = parser.add_mutually_exclusive_group()
    named.add_argument(
        "file", type=Path, nargs="?", metavar="FILE", help=f"default: {DEFAULT_CONFIG}"
    )
    named.add_argument(
        "--config", type=Path, metavar="FILE", help="the same, as other verbs have it"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON: the configuration, or what is wrong with it",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the configuration with its defaults; 78 if something is wrong in the file, 1 if it cannot work here.

    Raises
    ------
    ConfigError
        If something is wrong and no JSON was asked for.
    """
    try:
        file = arguments.config or arguments.file or Path(DEFAULT_CONFIG)
        config = load(file)
    except ConfigError as error:
        if not arguments.json:
            raise
        print(as_json.dumps("config", {**_REFUSED, "problems": list(error.problems)}))
        return error.exit_code
    problems, unknown = unusable(config, file)
    unit = unit_of()
    refused = protected(config, unit)
    # Who has not installed the unit may run cycles in another way.
    by_service = unit is not None and unit.installed
    needed, extras = missing_extras(config)
    problems += [*(refused if by_service else []), *needed]
    recommendations = [
        *unknown,
        *absent(config, unit),
        *([] if by_service else refused),
        *advice(config),
        *idle(config),
        *extras,
    ]
    if arguments.json:
        report = {"valid": True, "problems": problems, "recommendations": recommendations}
        print(as_json.dumps("config", {**report, "config": as_data(config)}))
    else:
        print(render(config), end="", flush=True)
        for line in (*problems, *(f"recommended: {line}" for line in recommendations)):
            print(f"sharectl: {line}", file=sys.stderr, flush=True)
        print(_verdict(len(problems), len(recommendations)))
    return 1 if problems else 0


def _verdict(problems: int, recommendations: int) -> str:
    """Last line, a comment of YAML: what was printed can be used as a configuration."""
    advice = f", {recommendations} recommended" if recommendations else ""
    if problems:
        return f"# not ok: {counted(problems, 'problem')} on this machine{advice}"
    return f"# ok{advice}"
