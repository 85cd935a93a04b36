"""``sharectl consumption …``: policies of a node's assets, price and number of claims."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, TextIO

from sharectl.check.consumption import CHECKS, check, check_text
from sharectl.check.findings import Level
from sharectl.cli import options
from sharectl.cli.check import add_check_arguments, show
from sharectl.condor.ad_files import AdOfFile, read
from sharectl.condor.ad_rows import emptied
from sharectl.condor.negotiator import groups_of
from sharectl.config.load import load
from sharectl.consumption import asks, file
from sharectl.consumption.asks import Jobs
from sharectl.consumption.policy import STANDARD, Snippet, attribute_of, snippet
from sharectl.errors import ConfigError, InputError, PoolUnavailableError
from sharectl.model import PoolConfig
from sharectl.report import match_cost
from sharectl.shares.pledges import Group
from sharectl.words import counted

_RENDERED = "the rendered text"
_RENDER_EPILOG = """\
The file is YAML, such as `sharectl consumption examples` prints; docs/consumption.md has all keys.
The output is for execute points; access points need CLAIM_PARTITIONABLE_LEFTOVERS = False besides.
Findings of `sharectl consumption check` are faults at the line of the YAML: nothing is printed.
"""
_COST_EPILOG = """\
The pool is asked for slots, jobs and groups; with --slots, no daemon is asked for anything.
? is unknown, - is nothing. docs/consumption.md explains the columns."""
_AMOUNT = re.compile(r"([a-z_]\w*)=([1-9]\d{0,14})", re.ASCII)


# ---- examples and render


def _examples_arguments(parser: argparse.ArgumentParser) -> None:
    printed = "print this one, as YAML for `render`"
    parser.add_argument("name", nargs="?", metavar="NAME", help=printed)


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

    def in_yaml(match: re.Match[str]) -> str:
        return f"{name}:{rendered.yaml_lines[int(match[1]) - 1]}"

    return [
        re.sub(rf"{_RENDERED}:(\d+)", in_yaml, str(finding)).replace(_RENDERED, name)
        for finding in check_text(_RENDERED, rendered.text)
        # An unscoped name works until a job has it: a policy that is written now need not have one.
        if finding.level is Level.ERROR or finding.id == "scope"
    ]


# ---- check


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path",
        nargs="?",
        type=Path,
        metavar="DIR|FILE",
        help="folder of snippets, snippet, or output of `condor_config_val -dump [-verbose]`; - "
        "for standard input (default: this machine's configuration)",
    )
    add_check_arguments(parser, CHECKS, "DIR")


def _check(arguments: argparse.Namespace) -> int:
    """Print the policies, then the findings, one line each; 1 if any is more than advice."""
    findings, checked = check(arguments.path, with_local=arguments.with_local)
    lines = [] if checked else ["no slot with a consumption policy was there to check"]
    for slot in checked:
        lines.append(f"{slot.name}: SLOT_WEIGHT = {slot.weight.text}")
        lines += [f"  {asset}: {policy.text}" for asset, policy in slot.policies.items()]
    content = {"slots": [slot.name for slot in checked]}
    return show(arguments, "consumption_check", content, lines, CHECKS, findings)


# ---- cost and capacity


def _request(text: str) -> Jobs:
    """Job of a ``--request``."""
    matches = [_AMOUNT.fullmatch(part) for part in text.lower().split(",")]
    amounts = {match[1]: match[2] for match in matches if match}
    if len(amounts) < len(matches):
        raise ValueError(
            f"{text[:60]!r}: write whole numbers from 1 on, each asset once, in HTCondor's units "
            "(memory MiB, disk KiB), such as cpus=8,memory=16000,gpus=1"
        )
    amounts = {**dict.fromkeys(STANDARD, "1"), **amounts}
    ad = {f"Request{attribute_of(name)}": amount for name, amount in amounts.items()}
    custom = [attribute_of(name) for name in amounts if name not in STANDARD]
    if custom:  # as condor_submit writes it: a slot without the asset refuses the job
        ad["Requirements"] = " && ".join(f"TARGET.{name} >= Request{name}" for name in custom)
    return Jobs(AdOfFile(f"request {text}", ad))


def _cost_arguments(parser: argparse.ArgumentParser) -> None:
    _add_common(parser, "jobs of this file", "jobs of this request instead of those that pend")


def _capacity_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pending", action="store_true", help="claims for jobs that pend")
    _add_common(parser, "claims for jobs of this file", "claims for jobs of this request")


def _add_common(parser: argparse.ArgumentParser, of_jobs: str, of_request: str) -> None:
    add = parser.add_argument
    of_file: dict[str, Any] = {"type": Path, "metavar": "FILE"}
    add("--jobs", help=f"{of_jobs}: output of condor_q -all -long", **of_file)
    add(
        "--request",
        action="append",
        default=[],
        type=_request,
        metavar="ASSET=AMOUNT,…",
        help=f"{of_request}, such as cpus=8,memory=16000,gpus=1; cores, MiB of memory and KiB of "
        "disk are 1 if left out; may be repeated",
    )
    slots = "slots and groups of this file: output of condor_status -any -long; - for standard"
    add("--slots", help=f"{slots} input", **of_file)
    add("--empty", action="store_true", help="slots and groups as when nothing runs")
    config = "sharectl's configuration, for its section pool (default: this machine's pool)"
    add("--config", help=config, **of_file)


def _cost(arguments: argparse.Namespace) -> int:
    """Print amounts, cost and number of the jobs that each slot takes."""
    run = _Run(arguments, pending=not arguments.request)
    return run.show("consumption-cost", match_cost.priced(run.prices), match_cost.cost_tables)


def _capacity(arguments: argparse.Namespace) -> int:
    """Print the number of claims that jobs can have now, on all slots and within their quota."""
    if not (arguments.request or arguments.jobs or arguments.pending):
        arguments.request = [_request("cpus=1")]
    run = _Run(arguments, pending=arguments.pending)
    content = {"jobs": match_cost.capacity(run.prices, run.groups())}
    return run.show("consumption-capacity", content, match_cost.capacity_tables)


class _Run:
    """Prices of the jobs of the options, or else of those that pend, on a pool or a file of one."""

    def __init__(self, arguments: argparse.Namespace, *, pending: bool) -> None:
        self._arguments, path = arguments, arguments.slots
        self._place = PoolConfig() if arguments.config is None else load(arguments.config).pool
        self._pool = asks.look(self._place) if path is None else asks.pool_of(read(path))
        if not self._pool.slots:
            fact = f"no slot: {path or 'the pool'} has none but dynamic ones"
            raise InputError([f"{fact}; --slots wants output of condor_status -any -long"])
        self._notes: list[str] = []
        self._missing: list[str] = []
        slots, jobs = self._pool.slots, [*arguments.request, *self._jobs(pending=pending)]
        if arguments.empty:
            slots = [AdOfFile(ad.place, emptied(ad.attributes)) for ad in slots]
        self.prices = asks.price(slots, jobs)

    def _jobs(self, *, pending: bool) -> list[Jobs]:
        path, pool = self._arguments.jobs, self._pool
        if path is not None:
            every = read(path)
            jobs = asks.waiting(every)
            if others := len(every) - len(jobs):
                left_out = f"{counted(others, 'job')} left out that do not wait for a slot"
                self._notes.append(f"{path}: {left_out}")
            return jobs
        if pending and self._arguments.slots is not None:
            raise InputError(["--slots: a file of jobs is missing beside it; give --jobs, too"])
        if not pending:
            return []
        jobs, self._missing = asks.pending(self._place, pool.schedds, pool.slots)
        return jobs

    def groups(self) -> list[Group]:
        """Groups of the pool, or of the file."""
        groups = groups_of(self._pool.groups)
        if not groups:
            fact = "groups are missing: there is no ad of one; wait for a negotiation cycle"
            self._notes.append(f"{fact}, or see NEGOTIATOR_ADVERTISE_ACCOUNTING")
        return [replace(group, used=0.0) for group in groups] if self._arguments.empty else groups

    def show(
        self, name: str, content: dict[str, Any], tables: Callable[[Any, TextIO], None]
    ) -> int:
        """Print the content with notes and problems of the pool; the exit code."""
        missing, empty = self._missing, self._arguments.empty
        content |= {"notes": self._notes, "empty": empty, "missing": missing}
        options.show(self._arguments, name, content, partial(tables, content))
        options.say(missing)
        return PoolUnavailableError.exit_code if missing else 0


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
    "capacity": options.Verb(
        _capacity, _capacity_arguments, ("--json",), "claims that jobs can have", _COST_EPILOG
    ),
}
VERBS = {"consumption": options.with_actions("verb", _VERBS)}
