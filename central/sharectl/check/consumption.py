"""Checks of consumption policies in HTCondor configurations: files, folders, dumps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sharectl.check.consumption_rules import CHECKS
from sharectl.check.consumption_subject import MACROS, CheckedNode, ConsumptionSubject, SlotType
from sharectl.check.findings import Finding, refusal
from sharectl.condor.configuration import MAX_BYTES, Configuration, read, read_text, source_of
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.errors import InputError
from sharectl.files.files import read_regular

__all__ = ["CHECKS", "ConsumptionReport", "check", "check_text"]

STDIN, THIS_MACHINE = Path("-"), "this machine"


@dataclass(frozen=True)
class ConsumptionReport:
    """Configurations that were checked, their slots with a policy, and the findings."""

    findings: tuple[Finding, ...]
    """By check, in the order of `CHECKS`."""
    configurations: tuple[str, ...] = ()
    slots: tuple[SlotType, ...] = field(default=(), repr=False)


def check(paths: Sequence[Path], *, with_local: bool = False) -> ConsumptionReport:
    """Findings about the consumption policies of some configurations.

    Parameters
    ----------
    paths
        Folders, files, dumps, ``-``; none for this machine's configuration.
    with_local
        Put folders on top of the configuration of this machine.

    Raises
    ------
    InputError
        If a path cannot be read.
    """
    _refuse_paths(paths, with_local=with_local)
    names = tuple(str(path) for path in paths) or (THIS_MACHINE,)
    nodes: list[CheckedNode] = []
    refused: list[Finding] = []
    # A configuration that is refused ends the process that read it.
    with CondorProcess() as reader, CondorProcess() as process:
        for name in names:
            try:
                configuration = _configuration(name, reader, with_local=with_local)
                nodes.append(CheckedNode(configuration, process))
            except UnreadableConfigurationError as error:
                refused.append(refusal(error, name))
        subject = ConsumptionSubject(tuple(nodes), process)
        try:
            return ConsumptionReport((*refused, *CHECKS.findings(subject)), names, subject.slots)
        except UnreadableConfigurationError as error:
            return ConsumptionReport((*refused, refusal(error, ", ".join(names))), names)


def check_text(name: str, content: str) -> list[Finding]:
    """Findings about the policies of a snippet that is in no file; ``name`` is for places."""
    with CondorProcess() as process:
        try:
            node = CheckedNode(read_text(name, content, MACROS, process), process)
            return CHECKS.findings(ConsumptionSubject((node,), process))
        except UnreadableConfigurationError as error:
            return [refusal(error, name)]


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
