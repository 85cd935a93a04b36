"""``sharectl explain group``."""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches

from sharectl.cli import options
from sharectl.cli.explain_source import add_source, explained_of
from sharectl.errors import AbsentError
from sharectl.explain.group import explain_group
from sharectl.model import OTHER
from sharectl.report import as_json, explain
from sharectl.words import MAX_SHOWN, shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject."""
    parser.add_argument("name", metavar="NAME", help="a configured group; case does not count")
    add_source(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what a group uses, how its error and output came about, what was decided and what would change it."""
    config = options.config_of(arguments)
    explained = explained_of(arguments, config)
    groups = [control.group for control in explained.record.groups]
    name = arguments.name.lower()
    if name == OTHER:
        raise AbsentError(
            f"group {OTHER!r} has no pledge: it is the jobs of no configured group; groups with "
            f"one are {', '.join(groups)}"
        )
    if name not in groups:
        near = get_close_matches(name[:MAX_SHOWN], groups, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise AbsentError(
            f"no group {shown(arguments.name)!r} "
            f"there{meant or '; its groups are ' + ', '.join(groups)}"
        )
    found = explain_group(explained, name)
    if arguments.json:
        print(as_json.dumps("explain_group", explain.group_as_data(explained, found)))
    else:
        explain.print_group(explained, found, sys.stdout, everything=arguments.all)
    return 0
