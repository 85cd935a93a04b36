"""``sharectl consumption …``: policies of a node's assets, and the cost of jobs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from sharectl.check.consumption import CHECKS, check, check_text
from sharectl.check.findings import Level
from sharectl.cli import options
from sharectl.cli.check import list_checks, show
from sharectl.config.load import load
from sharectl.consumption import asks, file
from sharectl.consumption.asks import NamedAd
from sharectl.consumption.cost import Match
from sharectl.consumption.policy import STANDARD, Snippet, attribute_of, snippet
from sharectl.errors import AbsentError, ConfigError
from sharectl.model import PoolConfig
from sharectl.report.tables import NONE, print_records

_RENDERED = "the rendered text"
"""Name of it in findings, which is no file."""
_RENDER_EPILOG = """\
The file is YAML, such as `sharectl consumption examples` prints; docs/consumption.md has all keys.
The output is for execute points; access points need CLAIM_PARTITIONABLE_LEFTOVERS = False besides.
Findings of `sharectl consumption check` are faults at the line of the YAML: nothing is printed.
"""
_COST_EPILOG = "? is unknown, - is nothing. docs/consumption.md explains the columns."
_AMOUNT = re.compile(r"([a-z_]\w*)=([1-9]\d{0,14})", re.ASCII)
_MATCHES = "slots, job, consumed AS takes, cost, fit, refused"


# ---- examples and render


def _examples_arguments(parser: argparse.ArgumentParser) -> None:
    printed = "print this one, as YAML for `render`"
    names = tuple(file.examples())
    parser.add_argument("name", nargs="?", metavar="NAME", choices=names, help=printed)


def _examples(arguments: argparse.Namespace) -> int:
    if arguments.name is None:
        purposes = file.examples()
        width = max(map(len, purposes))
        for name, purpose in purposes.items():
            print(f"{name:{width}}  {purpose}")
    else:
        print(file.example(arguments.name), end="")
    return 0


def _render_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="policies in YAML; - for standard input")


def _render(arguments: argparse.Namespace) -> int:
    rendered = snippet(file.load(arguments.file))
    if faults := _faults(rendered, arguments.file):
        raise ConfigError(faults)
    print(rendered.text, end="")
    return 0


def _faults(rendered: Snippet, name: str) -> list[str]:
    """Findings of the check in a rendered text, at the lines of the YAML that they come from."""
    faults = []
    for finding in check_text(_RENDERED, rendered.text):
        # An unscoped name works until a job has it: a policy that is written now need not have one.
        if finding.level is Level.ERROR or finding.id == "scope":
            line = finding.place.rpartition(":")[2]
            at = f":{rendered.yaml_lines[int(line) - 1]}" if line.isdecimal() else ""
            place = f"{_RENDERED}{at}" if at else finding.place
            faults.append(str(replace(finding, place=place).moved(_RENDERED, name)))
    return faults


# ---- check


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path",
        nargs="?",
        type=Path,
        metavar="DIR|FILE",
        help="folder of snippets, snippet, or output of `condor_config_val -dump -verbose`; - "
        "for standard input (default: this machine's configuration)",
    )
    list_checks(parser, CHECKS)


def _check(arguments: argparse.Namespace) -> int:
    """Print the policies, then the findings, one line each; 1 if any is more than advice."""
    findings, checked = check(arguments.path)
    lines = [] if checked else ["no slot with a consumption policy was there to check"]
    for slot in checked:
        lines.append(f"{slot.name}: SLOT_WEIGHT = {slot.weight.text}")
        lines += [f"  {asset}: {policy.text}" for asset, policy in slot.policies.items()]
    content = {"slots": [slot.name for slot in checked]}
    return show(arguments, "consumption_check", content, lines, CHECKS, findings)


# ---- cost


def _request(text: str) -> NamedAd:
    """Job of a ``--request``."""
    matches = [_AMOUNT.fullmatch(part) for part in text.lower().split(",")]
    amounts = {match[1]: match[2] for match in matches if match}
    if len(amounts) < len(matches):
        raise ValueError(
            f"{text[:60]!r}: write whole numbers from 1 on, each asset once, in HTCondor's units "
            "(memory MiB, disk KiB), such as cpus=8,memory=16000,gpus=1"
        )
    amounts = {**dict.fromkeys(STANDARD, "1"), **amounts}
    row = {f"request{name}": amount for name, amount in amounts.items()}
    custom = [attribute_of(name) for name in amounts if name not in STANDARD]
    if custom:  # as condor_submit writes it: a slot without the asset refuses the job
        row["requirements"] = " && ".join(f"TARGET.{name} >= Request{name}" for name in custom)
    return NamedAd(text, row)


def _cost_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--request",
        action="append",
        required=True,
        type=_request,
        metavar="ASSET=AMOUNT,…",
        help="jobs of this request, such as cpus=8,memory=16000,gpus=1; cores, MiB of memory and "
        "KiB of disk are 1 if left out; may be repeated",
    )
    config = "sharectl's configuration, for its section pool (default: this machine's pool)"
    parser.add_argument("--config", type=Path, metavar="FILE", help=config)


def _cost(arguments: argparse.Namespace) -> int:
    """Print amounts, cost and number of the jobs of each request that each slot takes."""
    pool = PoolConfig() if arguments.config is None else load(arguments.config).pool
    slots = asks.look(pool)
    if not slots:
        raise AbsentError("no slot of the pool has a consumption policy; see docs/consumption.md")
    jobs = arguments.request
    matches = priced(asks.price(slots, jobs), jobs)
    text = partial(print_cost, matches)
    options.show(arguments, "consumption-cost", {"matches": matches}, text)
    options.say(unknown_assets(slots, jobs))
    return 0


def unknown_assets(slots: Sequence[NamedAd], jobs: Sequence[NamedAd]) -> list[str]:
    """A line for each asset that jobs request and no slot with a policy has."""
    assets = {asset.lower(): asset for slot in slots for asset in asks.assets_of(slot.row)}
    remedy = f"those with a policy have {', '.join(sorted(assets.values()))}"
    requested = {name.partition("request")[2] for job in jobs for name in job.row} - {""}
    names = sorted(requested.difference(assets))
    return [f"no slot has the asset {name}; {remedy}" for name in names]


def priced(
    prices: Sequence[tuple[list[NamedAd], list[Match]]], jobs: Sequence[NamedAd]
) -> list[dict[str, Any]]:
    """Match of each job with each kind of slots, by the names of both."""
    rows = []
    for kind, matches in prices:
        for job, match in zip(jobs, matches):
            reasons = [": ".join(filter(None, (asset, why.value))) for why, asset in match.refused]
            names = {"slots": [slot.name for slot in kind], "job": job.name}
            rows.append({**names, **asdict(match), "refused": reasons})
    return rows


def print_cost(matches: Sequence[Mapping[str, Any]], to: TextIO) -> None:
    """Print `priced` as a table."""
    rows = []
    for match in matches:
        row = {**match, "refused": "; ".join(match["refused"])}
        first, *others = match["slots"]
        row["slots"] = f"{first} ({len(others) + 1} alike)" if others else first
        row["fit"] = f"{'>= ' if match['at_least'] else ''}{match['fits']}"
        row["cost"] = match["cost"] if match["fits"] else NONE
        rows.append(row)
    print_records("matches, each job with each slot as it is", _MATCHES, rows, to)


_VERBS = {
    "examples": options.Verb(
        _examples, _examples_arguments, (), "list the ready policies, or print one"
    ),
    "render": options.Verb(
        _render, _render_arguments, (), "print policies as configuration", _RENDER_EPILOG
    ),
    "check": options.Verb(
        _check, _check_arguments, ("--json",), "find faults of policies, before or after use"
    ),
    "cost": options.Verb(
        _cost, _cost_arguments, ("--json",), "what jobs take of slots and cost", _COST_EPILOG
    ),
}
VERBS = {"consumption": options.with_actions("verb", _VERBS)}
