"""Checks of consumption policies a table over HTCondor configurations: files, folders, dumps."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from sharectl.check import consumption_rules as rules
from sharectl.check.consumption_subject import MACROS, CheckedNode, ConsumptionSubject, node_of
from sharectl.check.findings import SYNTAX, Check, Finding, findings, refusal
from sharectl.condor.configuration import MAX_BYTES, Configuration, read, read_text, source_of
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.errors import InputError
from sharectl.files.files import read_regular

STDIN, THIS_MACHINE = Path("-"), "this machine"

CHECKS: tuple[Check[ConsumptionSubject], ...] = (
    Check(SYNTAX, "HTCondor reads every file"),
    # Before all that follows from a knob that nothing reads.
    Check(
        "knobs",
        "HTCondor has the knobs, and can read those that are True or False",
        (rules.unknown_knob, rules.invalid_boolean),
    ),
    Check("policy", "there is a consumption policy", (rules.no_policy,)),
    Check(
        "slot types",
        "slots exist and can have a policy, and the machine has what they are to have",
        (rules.slot_types, rules.wants_too_much),
    ),
    Check("expressions", "HTCondor can read policies and weights", (rules.unreadable,)),
    Check("scope", "names are asked of the slot or of the job, as is meant", (rules.wrong_scope,)),
    Check("leftovers", "access points get no leftovers of slots with a policy", (rules.leftovers,)),
    Check(
        "combinations", "no other knob works against consumption policies", (rules.combinations,)
    ),
    Check("numbers", "policies are numbers, and not negative, for every job", (rules.numbers,)),
    Check("zero", "every job takes something", (rules.zero,)),
    Check("room", "an empty slot has room for a job", (rules.room,)),
    Check(
        "claims", "matches are claimed: dynamic slots satisfy the policy", (rules.refused_claims,)
    ),
    Check("cores", "there is a core for every claim", (rules.cores,)),
    Check(
        "start",
        "START is the same for what is requested and what the policy makes of it",
        (rules.start,),
    ),
    Check(
        "weight",
        "the negotiator can evaluate SLOT_WEIGHT in every state, and it follows from the policy",
        (rules.weight_is_number, rules.weight_follows),
    ),
    Check("access points", "an idle job counts on access points", (rules.weightless_jobs,)),
    Check("nodes", "a match costs the same on all nodes", (rules.unlike_nodes,)),
)


@dataclass(frozen=True)
class ConsumptionReport:
    """Configurations that were checked, their slots with a policy, and the findings."""

    findings: tuple[Finding, ...]
    """By check, in the order of `CHECKS`."""
    configurations: tuple[str, ...] = ()
    nodes: tuple[CheckedNode, ...] = field(default=(), repr=False)


def check(
    paths: Sequence[Path],
    size: Optional[Mapping[str, float]] = None,
    *,
    with_local: bool = False,
) -> ConsumptionReport:
    """Findings about the consumption policies of some configurations.

    Parameters
    ----------
    paths
        Folders, files, dumps, ``-``; none for this machine's configuration.
    size
        Asset, lower case → amount in one slot, where the configuration does not say it.
    with_local
        Put folders on top of the configuration of this machine.

    Raises
    ------
    InputError
        If a path cannot be read, or no slot has an asset of ``size``.
    """
    _refuse_paths(paths, with_local=with_local)
    nodes: list[CheckedNode] = []
    refused: list[Finding] = []
    names = [str(path) for path in paths] or [THIS_MACHINE]
    with CondorProcess() as process:
        for name in names:
            try:
                configuration = _configuration(name, process, with_local=with_local)
                nodes.append(node_of(configuration, process))
            except UnreadableConfigurationError as error:
                refused.append(refusal(error, name))
        results = _findings(nodes, size or {}, process)
    return ConsumptionReport((*refused, *results), tuple(names), tuple(nodes))


def check_text(name: str, content: str) -> list[Finding]:
    """Findings about the policies of a snippet that is in no file; ``name`` is for places."""
    with CondorProcess() as process:
        try:
            node = node_of(read_text(name, content, MACROS, process), process)
        except UnreadableConfigurationError as error:
            return [refusal(error, name)]
        return _findings([node], {}, process)


def _findings(
    nodes: Sequence[CheckedNode], size: Mapping[str, float], process: CondorProcess
) -> list[Finding]:
    assets = {name.lower() for node in nodes for name in node.assets}
    strange = [name for name in size if name not in assets and size[name]] if nodes else []
    if strange:
        names = ", ".join(sorted(assets))
        remedy = f"write one of {names}, or declare it, MACHINE_RESOURCE_<NAME> = AMOUNT"
        raise InputError([f"--slot: slots have no asset {name}; {remedy}" for name in strange])
    try:
        return findings(CHECKS, ConsumptionSubject(tuple(nodes), process, size))
    except UnreadableConfigurationError as error:
        return [refusal(error, ", ".join(node.configuration.name for node in nodes))]


def _configuration(name: str, process: CondorProcess, *, with_local: bool) -> Configuration:
    path = Path(name)
    if name == THIS_MACHINE or path.is_dir():
        folder = None if name == THIS_MACHINE else path
        return read(source_of(folder, with_local=with_local), MACROS, process)
    stdin = path == STDIN
    content = sys.stdin.buffer.read(MAX_BYTES) if stdin else read_regular(path, MAX_BYTES)[0]
    return read_text(name, (content or b"").decode("utf-8", "replace"), MACROS, process)


def _refuse_paths(paths: Sequence[Path], *, with_local: bool) -> None:
    problems = []
    for path in paths:
        if path != STDIN and not (path.is_dir() or path.is_file()):
            problem = f"{path}: no such file or folder"
            problems.append(f"{problem}; name HTCondor configuration, a dump, or -")
        elif with_local and not path.is_dir():
            problem = f"{path}: --with-local puts folders on top of this machine's configuration"
            problems.append(f"{problem}; name a folder, or leave --with-local out")
    if problems:
        raise InputError(problems)
