"""``sharectl consumption check``."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path

from sharectl.check.consumption import CHECKS, check
from sharectl.cli import checks

_AMOUNT = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\d+(?:\.\d+)?)\s*")


def size(text: str) -> dict[str, float]:
    """Asset, lower case → amount, from ``cpus=64,memory=256000``."""
    matches = [_AMOUNT.fullmatch(part) for part in text.split(",")]
    amounts = {match[1].lower(): float(match[2]) for match in matches if match}
    if len(amounts) != len(matches) or not all(map(math.isfinite, amounts.values())):
        raise argparse.ArgumentTypeError(
            f"{text!r}: write amounts of assets, each once, in HTCondor's units (Memory MiB, Disk "
            "KiB), such as cpus=64,memory=256000,gpus=4"
        )
    return amounts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="DIR|FILE",
        help="folders of snippets, snippets, or what `condor_config_val -dump` printed of a node "
        "(-verbose too, which has places); - for standard input; several are compared (default: "
        "all that this machine's HTCondor reads)",
    )
    parser.add_argument(
        "--slot",
        type=size,
        action="append",
        default=[],
        metavar="ASSET=AMOUNT,…",
        help="amounts in one slot, HTCondor's units, such as cpus=64,memory=256000,gpus=4 "
        "(default: what a whole configuration says; for snippets, a node of 32 cores); a "
        "SLOT_TYPE_<N> with an amount of its own keeps that; may be repeated",
    )
    checks.add_arguments(parser, CHECKS, "folders")


def run(arguments: argparse.Namespace) -> int:
    """Print the policies, then the findings, one line each; 1 if any is more than advice."""
    amounts = {asset: amount for slot in arguments.slot for asset, amount in slot.items()}
    report = check(arguments.paths, amounts, with_local=arguments.with_local)
    lines = [f"read: {name}" for name in report.configurations]
    slots = []
    for node in report.nodes:
        for slot in (slot for slot in node.slot_types if slot.has_policy):
            name, weight = node.configuration.name, slot.weight.text
            policies = {asset: policy.text for asset, policy in slot.policies.items()}
            slots.append(
                {
                    "configuration": name,
                    "slot_type": slot.number,
                    "name": slot.name,
                    "policies": policies,
                    "weight": weight,
                }
            )
            lines.append(f"{name}, {slot.name}: SLOT_WEIGHT = {weight}")
            lines += [f"  {asset}: {text}" for asset, text in policies.items()]
    content = {"configurations": list(report.configurations), "slots": slots}
    if not slots:
        lines.append("no slot with a consumption policy was there to check")
    return checks.show(
        "consumption_check", content, lines, CHECKS, report.findings, json=arguments.json
    )
