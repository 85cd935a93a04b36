"""``sharectl check config``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sharectl.cli.options import DEFAULT_CONFIG
from sharectl.config.advice import findings
from sharectl.config.load import load
from sharectl.config.text import as_data, render
from sharectl.errors import ConfigError
from sharectl.report import as_json
from sharectl.words import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the check."""
    named = parser.add_mutually_exclusive_group()
    default = f"default: {DEFAULT_CONFIG}"
    named.add_argument("file", type=Path, nargs="?", metavar="FILE", help=default)
    beside = "the same, as other verbs have it"
    named.add_argument("--config", type=Path, metavar="FILE", help=beside)
    printed = "print JSON: the configuration, or what is wrong with it"
    parser.add_argument("--json", action="store_true", help=printed)


def run(arguments: argparse.Namespace) -> int:
    """Print the configuration with its defaults; 78 if it is faulty, 1 if it cannot work here.

    Raises
    ------
    ConfigError
        If it is faulty and no JSON was asked for.
    """
    file = arguments.config or arguments.file or Path(DEFAULT_CONFIG)
    try:
        config = load(file)
    except ConfigError as error:
        if not arguments.json:
            raise
        refused = {"valid": False, "problems": list(error.problems), "recommendations": []}
        print(as_json.dumps("config", {**refused, "config": None}))
        return error.exit_code
    problems, recommendations = findings(config, file)
    if arguments.json:
        report = {"valid": True, "problems": problems, "recommendations": recommendations}
        print(as_json.dumps("config", {**report, "config": as_data(config)}))
        return 1 if problems else 0
    print(render(config), end="", flush=True)
    for line in (*problems, *(f"recommended: {line}" for line in recommendations)):
        print(f"sharectl: {line}", file=sys.stderr, flush=True)
    # A comment of YAML: what was printed can be used as a configuration.
    advice = f", {len(recommendations)} recommended" if recommendations else ""
    refusal = f"not ok: {counted(len(problems), 'problem')} on this machine"
    print(f"# {refusal if problems else 'ok'}{advice}")
    return 1 if problems else 0
