"""``sharectl.txt``, as the node job ``job_ctl`` reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Optional

from sharectl.cycle.ports import PlacedTargets
from sharectl.errors import (
    REPORT,
    InputError,
    PublishError,
    StateError,
    WithdrawnError,
)
from sharectl.files import files
from sharectl.model import Plan
from sharectl.publish import signing
from sharectl.publish.signing import Keys, nodes_program

TEXT_MAX_BYTES = 2**20
"""Size of a file that is still read, here and by ``job_ctl``."""

_MAX_PROBLEMS = 20
_SHOWN = 200
"""Characters of a problem of the nodes' program that a message shows."""


@dataclass(frozen=True)
class Seal:
    """Pool, writer and signature of every text."""

    pool: Optional[str] = None
    """Name of the pool, for nodes that are told one."""
    keys: Keys = field(default_factory=dict, repr=False)
    """The first one signs, all verify; none leaves the text unsigned."""
    key_problem: Optional[str] = None
    """Problem with the key that should sign: only withdrawals are published then, unsigned."""
    writer: Optional[str] = None
    """Name of the installation that publishes."""


@dataclass(frozen=True)
class FilePublisher:
    """Publishes plans as a file, on a file system of the nodes or for copies; see `Transport`."""

    path: Path
    seal: Seal = Seal()

    def look(self) -> list[PlacedTargets]:
        """Look at the file."""
        return [self.content()[1]]

    held = look

    def content(self) -> tuple[bytes, PlacedTargets]:
        """Bytes of the file, and its targets."""
        place, problem = str(self.path), None
        try:
            content = content_of(self.path)
            placed = parse_text(content, place)
        except InputError as error:
            return b"", PlacedTargets("file", place, str(error))
        if self.seal.keys and (fault := signing.problem_of(content, self.seal.keys)):
            remedy = "nodes with the key refuse it; `sharectl cycle` publishes it again"
            problem = f"{place}: {fault}: {remedy}"
        more = {**placed.more, "verified": bool(self.seal.keys) and problem is None}
        return content, replace(placed, problem=problem, more=more)

    def publish(self, plan: Plan) -> str:
        """Replace the file by ``plan``; returns its path."""
        self.write(plan)
        return self.arrived_at(str(self.path))

    def arrived_at(self, place: str) -> str:
        """Return ``place``, or raise WithdrawnError if the text there should be signed."""
        if self.seal.key_problem is not None:
            raise WithdrawnError(
                place,
                f"{place}: targets are withdrawn, unsigned: {self.seal.key_problem}; nodes with a "
                "key refuse what is not signed, and have no target either",
            )
        return place

    def write(self, plan: Plan) -> None:
        """Replace the file. Raises StateError, also for targets that cannot be signed."""
        if plan.targets and self.seal.key_problem is not None:
            raise PublishError(
                f"{self.path}: not published, because it cannot be signed: {self.seal.key_problem}"
            )
        refuse_unreadable(plan, self.seal.pool, str(self.path))
        text = render(plan, self.seal)
        if len(text) > TEXT_MAX_BYTES:
            raise PublishError(
                f"{self.path}: {len(plan.targets)} targets make {len(text)} bytes, and nodes read "
                f"{TEXT_MAX_BYTES}; bound them by control.max_nodes, or publish by collector"
            )
        try:
            files.replace(self.path, [text], mode=0o644)
        except StateError:
            # Without a file nodes have no target, and its room may do for one without targets.
            if plan.targets or not files.remove_regular(self.path):
                raise
            try:
                files.replace(self.path, [text], mode=0o644)
            except StateError as error:
                why = f"{error}; no file is there now, so that nodes have no target from it"
                raise WithdrawnError(str(self.path), why) from error


def target_lines(plan: Plan) -> list[str]:
    """Lines of targets: node, held-back group, its cap in cores, helped group, request in cores."""
    return [
        f"{t.node} {t.held_back} {t.cap_cores} {t.helped} {t.request_cores}" for t in plan.targets
    ]


def refuse_unreadable(plan: Plan, pool: Optional[str], place: str) -> None:
    """Raise PublishError for targets that nodes of ``pool`` would refuse when the plan is made."""
    reader, problem = nodes_program(), ""
    nodes = {target.node.lower() for target in plan.targets}
    try:
        if plan.targets:
            content = render(plan, Seal(pool)).encode()
            reader.parse(content, 0, {"--pool": pool or ""}, set(), plan.generated_at)
    except reader.JobError as error:
        problem = f"nodes would refuse it ({error.args[0]}): {str(error.args[1])[:_SHOWN]}"
    if len(nodes) < len(plan.targets):
        problem = "a node has two targets"
    if problem:
        raise PublishError(f"{place}: not published, because {problem}; {REPORT}")


def render(plan: Plan, seal: Seal = Seal()) -> str:
    """Text of the file for ``plan``: metadata, then targets, then the signature."""
    lines = ["# sharectl: 1", f"# sequence: {plan.sequence}"]
    if seal.pool is not None:
        lines.append(f"# pool: {seal.pool}")
    if seal.writer is not None:
        lines.append(f"# writer: {seal.writer}")
    lines += [
        f"# generated: {plan.generated_at}",
        f"# valid_until: {plan.valid_until}",
        f"# groups: {','.join(plan.groups)}",
    ]
    if plan.multicore_pending is not None:
        lines.append(f"# multicore_pending: {plan.multicore_pending:d}")
    lines += [f"# targets: {len(plan.targets)}", *target_lines(plan)]
    text = "".join(f"{line}\n" for line in lines)
    return f"{text}{signing.line(text.encode('ascii'), seal.keys)}\n" if seal.keys else text


def content_of(path: Path) -> bytes:
    """Bytes of the file at ``path``; raises InputError if it cannot be read, or is not regular."""
    try:
        content, _ = files.read_regular(path, TEXT_MAX_BYTES + 1)
    except OSError as error:
        problem = f"{path}: cannot be read: {error.strerror or error}"
        remedy = "see its folder and rights, then `sharectl cycle`"
        raise InputError([f"{problem}; {remedy}"]) from error
    if content is None:
        raise InputError([f"{path}: cannot be read: it is no regular file"])
    if not content:
        raise InputError([f"{path}: is empty; publish a new one with `sharectl cycle`"])
    return content


def parse_text(content: bytes, name: str) -> PlacedTargets:
    """Targets of a text that nodes accepted when it was made, read by their program.

    One without metadata, written by hand, has no sequence and no end. Raises InputError with the
    first `_MAX_PROBLEMS` problems.
    """
    if len(content) > TEXT_MAX_BYTES:
        raise InputError([f"{name}: has more than {TEXT_MAX_BYTES} bytes; no node reads it"])
    reader, lines = nodes_program(), content.decode("ascii", "replace").split("\n")
    head = dict(line[2:].partition(": ")[::2] for line in reversed(lines) if line[:2] == "# ")
    generated_at = head.get("generated", "")
    now = int(generated_at) if reader.is_number(generated_at) else 1
    options, has_metadata = {"--pool": "", "--max-age-seconds": "60"}, "sharectl" in head
    try:
        sequence, until, _, orders = reader.parse(content, now, options, set(), now)
    except reader.JobError as error:
        code, detail = error.args
        faults = re.split("; (?=line [0-9]|# )", str(detail))[:_MAX_PROBLEMS]
        places = [re.sub("^ line ", "", f" {fault[:_SHOWN]}") for fault in faults]
        remedy = f"({code}); publish a new one with `sharectl cycle`"
        raise InputError([f"{name}:{place} {remedy}" for place in places]) from error
    return PlacedTargets(
        "file",
        name,
        targets=len(orders),
        sequence=sequence if has_metadata else None,
        valid_until=until if has_metadata else None,
        writer=head.get("writer"),
        more={"signed_by": [*head.get("signature", "").split(" "), None][1]},
    )
