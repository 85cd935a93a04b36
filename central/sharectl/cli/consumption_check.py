"""``sharectl consumption check``."""

from __future__ import annotations

import argparse
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, Optional

from sharectl.check.consumption import CHECKS, Report, check
from sharectl.cli import checks
from sharectl.report import as_json

_AMOUNT = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\d+(?:\.\d+)?)\s*")


def size(text: str) -> dict[str, float]:
    """Asset, lower case → amount, from ``cpus=64,memory=256000``."""
    matches = [_AMOUNT.fullmatch(part) for part in text.split(",")]
    found = {match[1].lower(): float(match[2]) for match in matches if match}
    names = [match[1].lower() for match in matches if match]
    twice = [name for name in found if names.count(name) > 1]
    if twice:
        raise argparse.ArgumentTypeError(
            f"{text!r}: says {', '.join(twice)} more than once; write each once"
        )
    if len(found) != len(matches) or not all(math.isfinite(amount) for amount in found.values()):
        raise argparse.ArgumentTypeError(
            f"{text!r}: write amounts of assets in HTCondor's units (Memory MiB, Disk KiB), "
            "such as "
            "cpus=64,memory=256000,gpus=4"
        )
    return found


class _Together(argparse.Action):
    """Amounts of the option wherever it is written: all of them are of one slot."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: Optional[str] = None,
    ) -> None:
        so_far: dict[str, float] = getattr(namespace, self.dest)
        twice = [name for name in values if name in so_far]
        if twice:
            parser.error(
                f"argument {option_string}: says {', '.join(twice)} more than once; write each once"
            )
        setattr(namespace, self.dest, {**so_far, **values})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="DIR|FILE",
        help="folders of snippets, snippets, or what `condor_config_val -dump` printed of a node (-verbose too, which "
        "has places); - for standard input; several are compared (default: all that this "
        "machine's HTCondor reads)",
    )
    parser.add_argument(
        "--slot",
        type=size,
        action=_Together,
        default={},
        metavar="ASSET=AMOUNT,…",
        help="amounts in one slot, HTCondor's units, such as cpus=64,memory=256000,gpus=4 (default: what a whole "
        "configuration says; for snippets, nodes of several sizes, and only what is wrong on "
        "each of them); of what a SLOT_TYPE_<N> "
        "says an amount, such as cpus=10, this is the machine's; may be repeated",
    )
    checks.add_arguments(parser, CHECKS, "folders")


def run(arguments: argparse.Namespace) -> int:
    """Print the policies that were found, then what is wrong with them, one line each; 1 if anything is.

    What is only recommended is no failure.
    """
    report = check(arguments.paths, arguments.slot, with_local=arguments.with_local)
    print(_as_json(report) if arguments.json else _as_text(report))
    return checks.exit_code(report.findings)


def _as_text(report: Report) -> str:
    lines = [f"read: {name}" for name in report.configurations]
    for slot in report.slots:
        lines.append(f"{slot.configuration}, {slot.name}: SLOT_WEIGHT = {_line(slot.weight)}")
        lines += [f"  {asset}: {_line(text)}" for asset, text in slot.policies.items()]
    if not report.slots:
        lines.append("no slot with a consumption policy was there to check")
    lines += checks.as_lines(report.findings, CHECKS)
    return "\n".join(_printable(line) for line in lines)


def _as_json(report: Report) -> str:
    content = {
        "configurations": list(report.configurations),
        "slots": [asdict(slot) for slot in report.slots],
        **checks.as_content(report.findings, CHECKS),
    }
    return as_json.dumps("consumption_check", content)


def _line(text: str) -> str:
    return " ".join(text.split())


def _printable(line: str) -> str:
    """``line`` without control characters: a dump comes from another machine."""
    return "".join(character if character.isprintable() else "?" for character in line)
