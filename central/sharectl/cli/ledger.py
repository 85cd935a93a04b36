"""``sharectl ledger …``: what is in the ledger, out of it, into it, and whether it is sound."""

from __future__ import annotations

import argparse

from sharectl.cli import ledger_check, ledger_export, ledger_forget, ledger_import, ledger_info

_ACTIONS = {
    "info": (ledger_info, "how much is in it, since when, and how large it is"),
    "export": (
        ledger_export,
        "write it as CSV, Parquet or rows of shares_Error.log: the data set to learn from",
    ),
    "import": (ledger_import, "add the rows of shares_Error.log files, none of them twice"),
    "forget": (
        ledger_forget,
        "remove rows again that were imported; nothing that a cycle recorded",
    ),
    "check": (ledger_check, "look whether the file, its sums and its cycles are in order"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    for name, (module, summary) in _ACTIONS.items():
        described = actions.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        module.add_arguments(described)


def run(arguments: argparse.Namespace) -> int:
    """Do what was named."""
    code: int = _ACTIONS[arguments.action][0].run(arguments)
    return code
