"""Checks of consumption policies in an HTCondor configuration: a file, a folder or a dump."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Optional

from sharectl.check.consumption_rules import CHECKS
from sharectl.check.consumption_subject import MACROS, CheckedNode, SlotType
from sharectl.check.findings import Finding, refusal
from sharectl.condor.configuration import MAX_BYTES, Configuration, read, read_text, source_of
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.errors import InputError
from sharectl.files.packed import content_of

__all__ = ["CHECKS", "check", "check_text"]


def check(
    path: Optional[Path], *, with_local: bool = False
) -> tuple[list[Finding], Mapping[SlotType, Optional[float]]]:
    """Findings about the consumption policies of a configuration; slot with a policy -> weight.

    It is the weight without claims; None if it is unknown.

    Parameters
    ----------
    path
        A folder, a file, a dump or ``-``; None for this machine's configuration.
    with_local
        Put a folder on top of the configuration of this machine.

    Raises
    ------
    InputError
        If the path cannot be read.
    """
    with CondorProcess() as process:
        try:
            configuration = _configuration(path, process, with_local=with_local)
            node = CheckedNode(configuration, process)
            return CHECKS.findings(node), {slot: slot.weight_at_first for slot in node.slots}
        except UnreadableConfigurationError as error:
            return [refusal(error, str(path or "this machine"))], {}


def check_text(name: str, content: str) -> list[Finding]:
    """Findings about the policies of a snippet that is in no file; ``name`` is for places."""
    with CondorProcess() as process:
        try:
            return CHECKS.findings(CheckedNode(read_text(name, content, MACROS, process), process))
        except UnreadableConfigurationError as error:
            return [refusal(error, name)]


def _configuration(
    path: Optional[Path], process: CondorProcess, *, with_local: bool
) -> Configuration:
    if path is None or path.is_dir():
        return read(source_of(path, with_local=with_local), MACROS, process)
    if with_local:
        problem = f"{path}: --with-local puts folders on top of this machine's configuration"
        raise InputError([f"{problem}; name a folder, or leave --with-local out"])
    content, _ = content_of(path, MAX_BYTES)
    return read_text(str(path), content.decode("utf-8", "replace"), MACROS, process)
