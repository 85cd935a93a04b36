"""``sharectl.txt``: the targets of all nodes, a line each, as the node job ``job_ctl`` reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from sharectl.adapters import files
from sharectl.core.model import Plan, Target
from sharectl.errors import InputError

FORMAT = 1
"""Version of the metadata; a reader refuses one that it does not know."""

_METADATA = re.compile(r"# (sharectl|sequence|generated|valid_until|targets|groups): (.*)")
_COLUMNS = 5


@dataclass(frozen=True)
class SharectlFile:
    """What a published file says. Numbers are None where the file has no such metadata."""

    targets: tuple[Target, ...]
    sequence: Optional[int]
    generated_at: Optional[int]
    """Unix seconds."""
    valid_until: Optional[int]
    """Unix seconds."""


class FilePublisher:
    """Publishes plans as a file, on a file system that the nodes share or that is copied to them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def publish(self, plan: Plan) -> str:
        """Replace the file by ``plan``; returns its path. Raises as `sharectl.ports.Publisher`."""
        files.replace(self.path, [render(plan)], mode=0o644)
        return str(self.path)


def target_lines(plan: Plan) -> list[str]:
    """Lines of the plan's targets: node, held-back group, its cap in cores, helped group, request in cores."""
    return [f"{t.node} {t.held_back} {t.cap_cores} {t.helped} {t.request_cores}" for t in plan.targets]


def render(plan: Plan) -> str:
    """Whole text of the file for ``plan``: metadata, then targets."""
    lines = [
        f"# sharectl: {FORMAT}",
        f"# sequence: {plan.sequence}",
        f"# generated: {plan.generated_at}",
        f"# valid_until: {plan.valid_until}",
        f"# groups: {','.join(plan.groups)}",
        f"# targets: {len(plan.targets)}",
        *target_lines(plan),
    ]
    return "".join(f"{line}\n" for line in lines)


def read(path: Path) -> SharectlFile:
    """What the file at ``path`` says.

    Raises
    ------
    InputError
        If it cannot be read or is not such a file.
    """
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([f"{path}: cannot be read: {error}"]) from error
    metadata = {match[1]: match[2] for line in text.splitlines() if (match := _METADATA.fullmatch(line))}
    try:
        return SharectlFile(
            targets=tuple(
                _target(f"{path}:{number}", line)
                for number, line in enumerate(text.splitlines(), start=1)
                if line and not line.startswith("#")
            ),
            sequence=_whole(metadata.get("sequence")),
            generated_at=_whole(metadata.get("generated")),
            valid_until=_whole(metadata.get("valid_until")),
        )
    except ValueError as error:
        raise InputError([f"{path}: {error}; publish a new one with `sharectl cycle`"]) from error


def _target(place: str, line: str) -> Target:
    columns = line.split()
    if len(columns) != _COLUMNS:
        raise InputError(
            [f"{place}: needs {_COLUMNS} columns: node, group, cap, group, cores; found {line!r}"]
        )
    node, held_back, cap, helped, request = columns
    return Target(node, held_back, int(cap), helped, int(request))


def _whole(text: Optional[str]) -> Optional[int]:
    return None if text is None else int(text)
