"""``sharectl consumption …``: policies of a node's assets, price and number of claims."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Callable, TextIO

from sharectl.check.consumption import CHECKS, check, check_text
from sharectl.check.findings import Level
from sharectl.cli import options
from sharectl.cli.check import add_check_arguments, show
from sharectl.condor.ad_files import AdOfFile, read, text_of
from sharectl.condor.empty_slots import emptied
from sharectl.condor.negotiator import groups_of
from sharectl.config.load import load
from sharectl.config.model import PoolConfig
from sharectl.consumption import asks, file
from sharectl.consumption.asks import Jobs, PoolAds
from sharectl.consumption.policy import Consumption, attribute_of
from sharectl.consumption.render import line_of, notes, snippet
from sharectl.errors import ConfigError, InputError, PoolUnavailableError
from sharectl.report import match_cost
from sharectl.shares.quotas import Group
from sharectl.words import counted, printable

_RENDERED = "the rendered text"
_RENDER_EPILOG = """\
The file is YAML, such as `sharectl consumption examples` prints; docs/consumption.md has all keys.

  sharectl consumption examples memory-centric > policy.yaml
  sharectl consumption render policy.yaml > /etc/condor/config.d/70-consumption.conf
  condor_restart -startd

The output is for execute points; access points need CLAIM_PARTITIONABLE_LEFTOVERS = False besides.
Effects of HTCondor that the policy does not show are in it as NOTE, and on standard error.
Findings of `sharectl consumption check` are faults at the line of the YAML: nothing is printed.
"""
_CAPACITY_EPILOG = """\
The pool is asked for slots, jobs and groups that no file has.
<none> is the root group: jobs that are in no other. It has no quota of its own but what the groups
leave, so its quota may be 0 while all that slots have counts as within it.
? is unknown, - is nothing. docs/consumption-reference.md explains the columns."""
_COST_EPILOG = f"""\
columns of --group, in weighted slots:
  no slot       pending jobs of the group that match no slot as it is
  their cost    of all others, each on the slot where it costs least, in that cycle; >= where the
                same job costs more on another slot: how many fit on the cheapest is not looked at
  usage later   charge of these jobs from the next cycle on, with the least of each; >= as above
  least cost    the smallest cost of such a match
  least weight  the smallest SlotWeight of a slot that they match: a slot without policy costs it
  past quota    usage beyond the quota that leftovers allow

{_CAPACITY_EPILOG}"""
_STANDARD = ("cpus", "memory", "disk")
_AMOUNT = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\d{1,15}(?:\.\d+)?)\s*")
_WHOLE = r"[1-9][0-9]{0,14}"
_REQUEST = re.compile(rf"(?:{_WHOLE}(?:,{_WHOLE}){{0,2}})?(?:(?:^|,)[A-Za-z_]\w*={_WHOLE})*")


# ---- examples and render


def _examples_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="print this one, as YAML for `render`"
    )


def _examples(arguments: argparse.Namespace) -> int:
    name, purposes = arguments.name, file.examples()
    if name is None:
        width = max(map(len, purposes))
        lines = [f"{key:{width}}  {purpose}" for key, purpose in purposes.items()]
        options.show(arguments, "consumption_examples", {"examples": purposes}, lines)
    else:
        text = file.example(name)
        content = {"name": name, "yaml": text}
        options.show(arguments, "consumption_example", content, text.splitlines())
    return 0


def _render_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="policies in YAML; - for standard input")


def _render(arguments: argparse.Namespace) -> int:
    consumption = file.load(arguments.file)
    text = snippet(consumption)
    if faults := _faults(text, consumption, arguments.file):
        raise ConfigError(faults)
    rows = [
        {"slot_type": policy.slot_type, "note": note}
        for policy in consumption.policies
        for note in notes(policy, consumption.declared)
    ]
    content = {"snippet": text, "notes": rows}
    options.show(arguments, "consumption_snippet", content, text.splitlines())
    for row in () if arguments.json else rows:
        number = row["slot_type"]
        where = "startd" if number is None else f"slot type {number}"
        options.say([f"{where}: {row['note']}"])
    return 0


def _faults(text: str, consumption: Consumption, name: str) -> list[str]:
    """Findings of the check in a rendered text, at the lines of the YAML that they come from."""
    knobs = [line.partition(" = ")[0] for line in text.splitlines()]

    def in_yaml(match: re.Match[str]) -> str:
        return f"{name}:{line_of(consumption, knobs[int(match[1]) - 1])}"

    return [
        re.sub(rf"{_RENDERED}:(\d+)", in_yaml, str(finding)).replace(_RENDERED, name)
        for finding in check_text(_RENDERED, text)
        # An unscoped name works until a job has it: a policy that is written now need not have one.
        if finding.level is Level.ERROR or finding.id == "scope"
    ]


# ---- check


def _size(text: str) -> dict[str, float]:
    """Asset, lower case -> amount, from ``cpus=64,memory=256000``."""
    matches = [_AMOUNT.fullmatch(part) for part in text.split(",")]
    amounts = {match[1].lower(): float(match[2]) for match in matches if match}
    if len(amounts) != len(matches):
        raise ValueError(
            f"{text!r}: write amounts of assets, each once, in HTCondor's units (Memory MiB, Disk "
            "KiB), such as cpus=64,memory=256000,gpus=4"
        )
    return amounts


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="DIR|FILE",
        help="folders of snippets, snippets, or output of `condor_config_val -dump [-verbose]`; - "
        "for standard input; several are compared (default: this machine's configuration)",
    )
    parser.add_argument(
        "--slot",
        type=_size,
        action="append",
        default=[],
        metavar="ASSET=AMOUNT,…",
        help="amounts in one slot, HTCondor's units, such as cpus=64,memory=256000,gpus=4 "
        "(default: those of the configuration; for snippets, a node of 32 cores); may be repeated",
    )
    add_check_arguments(parser, CHECKS, "folders")


def _check(arguments: argparse.Namespace) -> int:
    """Print the policies, then the findings, one line each; 1 if any is more than advice."""
    amounts = {asset: amount for slot in arguments.slot for asset, amount in slot.items()}
    report = check(arguments.paths, amounts, with_local=arguments.with_local)
    slots: list[dict[str, Any]] = [
        {
            "configuration": slot.node.configuration.name,
            "slot_type": slot.number,
            "name": slot.name,
            "policies": {asset: policy.text for asset, policy in slot.policies.items()},
            "weight": slot.weight.text,
        }
        for slot in report.slots
    ]
    lines = [f"read: {name}" for name in report.configurations]
    for slot in slots:
        lines.append(f"{slot['configuration']}, {slot['name']}: SLOT_WEIGHT = {slot['weight']}")
        lines += [f"  {asset}: {text}" for asset, text in slot["policies"].items()]
    if not slots:
        lines.append("no slot with a consumption policy was there to check")
    content = {"configurations": list(report.configurations), "slots": slots}
    return show(arguments, "consumption_check", content, lines, CHECKS, report.findings)


# ---- cost and capacity


def _request(text: str) -> Jobs:
    """Job of a ``--request``."""
    words = [word for word in text.split(",") if "=" not in word]
    named = [word.lower().split("=") for word in text.split(",") if "=" in word]
    pairs = [*zip(_STANDARD, words), *((name, amount) for name, amount in named if name)]
    amounts = dict(pairs)
    if not text or not _REQUEST.fullmatch(text) or len(amounts) < len(pairs):
        raise ValueError(
            f"{text[:60]!r}: write cores, MiB and KiB such as 8,16000,1000000, others by name such "
            "as 8,gpus=1; each is a whole number from 1 on, of 15 digits at most"
        )
    amounts = {**dict.fromkeys(_STANDARD, "1"), **amounts}
    ad = {f"Request{attribute_of(name)}": amount for name, amount in amounts.items()}
    return Jobs(AdOfFile(f"request {text}", ad))


def _cost_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--group",
        action="store_true",
        help="sums by accounting group against its quota, and how far leftovers pass it",
    )
    _add_common(parser, "jobs of this file", "jobs of this request instead of those that pend")


def _capacity_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pending", action="store_true", help="also claims for jobs that pend")
    _add_common(parser, "also claims for jobs of this file", "also claims for jobs of this request")


def _add_common(parser: argparse.ArgumentParser, of_jobs: str, of_request: str) -> None:
    add, file_of = parser.add_argument, "ads of condor_status -long or -json"
    of_file: dict[str, Any] = {"type": Path, "metavar": "FILE"}
    add("--jobs", **of_file, help=f"{of_jobs}: ads of condor_q -all -long or -json")
    add(
        "--request",
        action="append",
        default=[],
        type=_request,
        metavar="[CPUS[,MIB[,KIB]]][,NAME=AMOUNT…]",
        help=f"{of_request}: cores, MiB, KiB, each 1 if left out; GPUs and custom resources by "
        "name, such as 8,gpus=1; may be repeated",
    )
    add("--slots", **of_file, help=f"slots of this file: {file_of}; - for standard input")
    add("--constraint", metavar="EXPR", help="slots for which this is true")
    add("--job-constraint", metavar="EXPR", help="jobs for which this is true")
    add("--empty", action="store_true", help="slots and groups as when nothing runs")
    quotas = "ads of condor_status -any -constraint IsAccountingGroup -long or -json"
    add("--quotas", **of_file, help=f"groups of this file: {quotas}")
    leftovers = "CLAIM_PARTITIONABLE_LEFTOVERS of the access points (default: theirs, else on)"
    add("--leftovers", choices=("on", "off"), help=leftovers)
    config = "sharectl's configuration, for its section pool (default: this machine's pool)"
    add("--config", **of_file, help=config)


def _cost(arguments: argparse.Namespace) -> int:
    """Print amounts, cost and number of the jobs that each slot takes."""
    inputs = _Inputs(arguments)
    jobs = list(arguments.request)
    if arguments.jobs is not None or not jobs:
        jobs += inputs.jobs()
    priced = asks.price(inputs.slots, jobs)
    content = match_cost.priced(priced)
    if arguments.group:
        groups = inputs.groups()
        content["groups"] = match_cost.groups(groups, priced, leftovers=inputs.leftovers())
    return inputs.show("consumption-cost", content, match_cost.cost_tables)


def _capacity(arguments: argparse.Namespace) -> int:
    """Print the number of claims that slots, slot types and groups can have now."""
    inputs = _Inputs(arguments)
    groups = inputs.groups()
    leftovers = bool(groups) and inputs.leftovers()
    content = match_cost.capacity(
        asks.smallest_matches(inputs.slots), groups, leftovers=leftovers, empty=arguments.empty
    )
    jobs, waiting = list(arguments.request), arguments.jobs is not None or arguments.pending
    jobs += inputs.jobs() if waiting else []
    if jobs or waiting:
        content["jobs"] = match_cost.shapes(asks.price(inputs.slots, jobs), groups)
    return inputs.show("consumption-capacity", content, match_cost.capacity_tables)


class _Inputs:
    """Slots, jobs and groups of the options; the pool is asked once, for those without a file."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._place = PoolConfig() if arguments.config is None else load(arguments.config).pool
        self._notes: list[str] = []
        self._missing: list[str] = []

    @cached_property
    def _pool(self) -> PoolAds:
        constraint = self._arguments.constraint if self._arguments.slots is None else None
        asks.restricted([], constraint, "--constraint")
        return asks.look(self._place, constraint)

    @cached_property
    def slots(self) -> Sequence[AdOfFile]:
        """Partitionable and static slots."""
        path, constraint = self._arguments.slots, self._arguments.constraint
        slots: Sequence[AdOfFile]
        if path is None:
            slots = self._pool.slots
        else:
            ads = asks.checked(read(path), of_slots=True)
            whole = [ad for ad in ads if text_of(ad.attributes, "SlotType") != "Dynamic"]
            slots = asks.restricted(whole, constraint, "--constraint")
        if not slots:
            which = "that meets --constraint" if constraint else "but dynamic ones"
            raise InputError([f"no slot: {path or 'the pool'} has none {which}"])
        if self._arguments.empty:
            return [AdOfFile(slot.place, emptied(slot.attributes)) for slot in slots]
        return slots

    def jobs(self) -> list[Jobs]:
        """Jobs that wait, of ``--jobs`` or of the pool."""
        path, constraint = self._arguments.jobs, self._arguments.job_constraint
        if path is None:
            asks.restricted([], constraint, "--job-constraint")
            schedds = self._pool.schedds
            jobs, self._missing = asks.pending(self._place, schedds, self.slots, constraint)
            return jobs
        every = asks.checked(read(path), of_slots=False)
        waiting = [ad for ad in every if asks.waits(ad)]
        if others := len(every) - len(waiting):
            self._notes.append(
                f"{path}: {counted(others, 'job')} left out that do not wait for a slot"
            )
        return [Jobs(ad) for ad in asks.restricted(waiting, constraint, "--job-constraint")]

    def groups(self) -> list[Group]:
        """Groups, of ``--quotas`` or of the pool; empty where slots are of a file."""
        arguments = self._arguments
        if arguments.quotas is not None:
            groups = groups_of(read(arguments.quotas))
        elif arguments.slots is not None:
            return []
        else:
            groups = groups_of(self._pool.groups)
            if not groups:
                self._notes.append(
                    "groups are missing: the collector has no ad of one; wait for a negotiation "
                    "cycle, or see NEGOTIATOR_ADVERTISE_ACCOUNTING"
                )
        return [replace(group, used=0.0) for group in groups] if arguments.empty else groups

    def leftovers(self) -> bool:
        """Schedds use the rest of slots."""
        arguments = self._arguments
        if arguments.leftovers is not None:
            return bool(arguments.leftovers == "on")
        live = arguments.slots is None
        setting = asks.leftovers(self._place, self._pool.schedds) if live else None
        if setting is None:
            self._notes.append(
                "CLAIM_PARTITIONABLE_LEFTOVERS of the access points is taken to be on: say "
                "--leftovers off if it is not"
            )
        return setting is not False

    def show(
        self, name: str, content: dict[str, Any], tables: Callable[[Any, TextIO], None]
    ) -> int:
        """Print the content with its notes, and problems of the pool; the exit code."""
        content["notes"] = [*content["notes"], *self._notes]
        content["empty"], content["missing"] = self._arguments.empty, self._missing
        content["job_constraint"] = self._arguments.job_constraint
        options.show(self._arguments, name, content, partial(tables, content))
        options.say(map(printable, self._missing))
        return PoolUnavailableError.exit_code if self._missing else 0


_VERBS = {
    "examples": options.Verb(
        _examples,
        _examples_arguments,
        ("--json",),
        "list the ready policies, or print one",
        "to try one: sharectl consumption examples minimum-charge | sharectl consumption render -",
    ),
    "render": options.Verb(
        _render,
        _render_arguments,
        ("--json",),
        "print HTCondor's configuration for a file of policies",
        _RENDER_EPILOG,
    ),
    "check": options.Verb(
        _check,
        _check_arguments,
        ("--json",),
        "find faults of policies, before or after they are used",
    ),
    "cost": options.Verb(
        _cost,
        _cost_arguments,
        ("--json",),
        "what jobs take of slots and cost their groups, how many fit",
        _COST_EPILOG,
    ),
    "capacity": options.Verb(
        _capacity,
        _capacity_arguments,
        ("--json",),
        "how many claims slots and groups can have now",
        _CAPACITY_EPILOG,
    ),
}
VERBS = {"consumption": options.with_actions("verb", _VERBS)}
