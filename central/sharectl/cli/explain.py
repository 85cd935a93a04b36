"""``sharectl explain …``: why a group, a node, a cycle or a job is treated as it is."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

SUBJECTS = {
    "group": (
        "explain_group",
        "what a group uses and is entitled to, and why it gives or receives",
    ),
    "node": ("explain_node", "what a node holds, and why it has its target or has none"),
    "cycle": (
        "explain_cycle",
        "what one cycle saw, decided and changed, and what would change its plan",
    ),
    "job": ("explain_job", "what stands in the way of a job, clause by clause"),
    "codes": ("explain_codes", "every code that stands for a reason, with its sentence"),
}
"""What can be explained -> module of `sharectl.cli` with ``add_arguments`` and ``run``, and what it tells."""


class _Subject(argparse.ArgumentParser):
    """Parser of one subject, whose module is loaded only when it is asked for."""

    module = ""

    def parse_known_args(self, *arguments: Any, **named: Any) -> Any:
        """What argparse makes of the arguments, once they are known."""
        if self.module:
            module, self.module = import_module(f"sharectl.cli.{self.module}"), ""
            module.add_arguments(self)
            self.set_defaults(explains=module.run)
        return super().parse_known_args(*arguments, **named)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    subjects = parser.add_subparsers(
        title="subjects", dest="subject", metavar="SUBJECT", required=True, parser_class=_Subject
    )
    for name, (module, summary) in SUBJECTS.items():
        described = subjects.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        described.module = module


def run(arguments: argparse.Namespace) -> int:
    """Explain what was named."""
    code: int = arguments.explains(arguments)
    return code
