"""``sharectl check config`` and ``sharectl check snippets``."""

from __future__ import annotations

import argparse

from sharectl.cli import check_config, check_snippets

_CHECKS = {
    "config": (check_config, "validate the YAML file and print it with the defaults filled in"),
    "snippets": (check_snippets, "what files of config.d make of a node, in HTCondor's own parser"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    checks = parser.add_subparsers(title="checks", dest="check", metavar="CHECK", required=True)
    for name, (module, summary) in _CHECKS.items():
        described = checks.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        module.add_arguments(described)


def run(arguments: argparse.Namespace) -> int:
    """Run the check that was named."""
    code: int = _CHECKS[arguments.check][0].run(arguments)
    return code
