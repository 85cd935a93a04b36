"""``sharectl.txt``, as the node job ``job_ctl`` reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from sharectl.cycle.ports import PlacedTargets
from sharectl.errors import (
    REPORT,
    InputError,
    PublishError,
    StateError,
    UnsignedError,
    WithdrawnError,
)
from sharectl.files import files
from sharectl.model import Plan, Target
from sharectl.publish import signing
from sharectl.publish.signing import SigningKey, nodes_program

FORMAT = 1
"""Version of the metadata; readers refuse any other."""
TEXT_MAX_BYTES = 2**20
"""Size of a file that is still read, here and by ``job_ctl``."""

_METADATA = re.compile(
    r"# (sharectl|sequence|pool|writer|generated|valid_until|targets|groups|multicore_pending"
    r"|signature): (.*)"
)
_NUMBERS = ("sharectl", "sequence", "generated", "valid_until", "targets")
_MAX_PROBLEMS = 20
_SHOWN = 80
"""Characters of the file that a message shows."""


@dataclass(frozen=True)
class Seal:
    """Pool, writer and signature of every text."""

    pool: Optional[str] = None
    """Name of the pool, for nodes that are told one."""
    key: Optional[SigningKey] = None
    """Signing key; None leaves the text unsigned."""
    others: tuple[SigningKey, ...] = ()
    """Keys that verify besides."""
    key_problem: Optional[str] = None
    """Problem with the key that should sign: only withdrawals are published then, unsigned."""
    writer: Optional[str] = None
    """Name of the installation that publishes."""


FILE = "file:"
"""Begin of the name of a file as a place."""


@dataclass(frozen=True)
class SharectlFile:
    """Content of a published file. Numbers are None where the file lacks that metadata."""

    targets: tuple[Target, ...]
    sequence: Optional[int]
    generated_at: Optional[int]
    """Unix seconds."""
    valid_until: Optional[int]
    """Unix seconds."""
    pool: Optional[str] = None
    writer: Optional[str] = None
    signed_by: Optional[str] = None
    """Id of the key of its signature, which nobody has verified."""


@dataclass(frozen=True)
class FilePublisher:
    """Publishes plans as a file, on a file system of the nodes or for copies; see `Transport`."""

    path: Path
    seal: Seal = Seal()

    @property
    def name(self) -> str:
        """Name of the place."""
        return f"{FILE}{self.path}"

    def look(self) -> list[PlacedTargets]:
        """Look at the file."""
        return [self.content()[1]]

    held = look

    def content(self) -> tuple[bytes, PlacedTargets]:
        """Bytes of the file, and its targets."""
        place, key, problem = str(self.path), self.seal.key, None
        try:
            content = content_of(self.path)
            file = parse_text(content, place)
        except InputError as error:
            return b"", PlacedTargets("file", place, str(error))
        if key is not None and (fault := signing.problem_of(content, [key, *self.seal.others])):
            remedy = "nodes with the key refuse it; `sharectl cycle` publishes it again"
            problem = f"{place}: {fault}: {remedy}"
        return content, PlacedTargets(
            "file",
            place,
            problem,
            targets=len(file.targets),
            sequence=file.sequence,
            valid_until=file.valid_until,
            pool=file.pool,
            writer=file.writer,
            more={"signed_by": file.signed_by, "verified": key is not None and problem is None},
        )

    def publish(self, plan: Plan) -> str:
        """Replace the file by ``plan``; returns its path."""
        self.write(plan)
        return self.arrived_at(str(self.path))

    def arrived_at(self, place: str) -> str:
        """Return ``place``, or raise UnsignedError if the text there should be signed."""
        if self.seal.key_problem is not None:
            raise UnsignedError(place, self.seal.key_problem)
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
    lines = [f"# sharectl: {FORMAT}", f"# sequence: {plan.sequence}"]
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
    return text if seal.key is None else f"{text}{signing.line(text.encode('ascii'), seal.key)}\n"


def read(path: Path) -> SharectlFile:
    """Content of the file at ``path``, signed by anybody. Raises InputError if it is invalid."""
    return parse_text(content_of(path), str(path))


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
    return content


def parse_text(content: bytes, name: str) -> SharectlFile:
    """Content of a published text. Raises InputError with the first `_MAX_PROBLEMS` problems."""
    if len(content) > TEXT_MAX_BYTES:
        raise InputError([f"{name}: has more than {TEXT_MAX_BYTES} bytes; no node reads it"])
    remedy = "publish a new one with `sharectl cycle`"
    try:
        *lines, tail = content.decode("ascii").split("\n")
    except ValueError as error:
        raise InputError([f"{name}: {error}; {remedy}"]) from error
    metadata = {m[1]: m[2] for line in reversed(lines) if (m := _METADATA.fullmatch(line))}
    rows = {
        number: line.split(" ") for number, line in enumerate(lines, 1) if line[:1] not in ("", "#")
    }
    problems = [*_problems(metadata, rows)]
    if tail:
        problems.append(f": the last line has no end: {tail[:_SHOWN]!r}")
    if problems:
        raise InputError([f"{name}{problem}; {remedy}" for problem in problems[:_MAX_PROBLEMS]])
    numbers = {key: int(metadata[key]) for key in _NUMBERS if key in metadata}
    signature = [*metadata.get("signature", "").split(" "), None]
    return SharectlFile(
        targets=tuple(
            Target(node, held_back, int(cap), helped, int(request))
            for node, held_back, cap, helped, request in rows.values()
        ),
        sequence=numbers.get("sequence"),
        generated_at=numbers.get("generated"),
        valid_until=numbers.get("valid_until"),
        pool=metadata.get("pool"),
        writer=metadata.get("writer"),
        signed_by=signature[1],
    )


def _problems(metadata: dict[str, str], rows: dict[int, list[str]]) -> Iterator[str]:
    reader = nodes_program()
    invalid = {
        key: metadata[key] for key in _NUMBERS if not reader.is_number(metadata.get(key, "0"))
    }
    for key, value in invalid.items():
        yield f": # {key}: {value[:_SHOWN]!r} is no number"
    if not invalid and int(metadata.get("sharectl", FORMAT)) != FORMAT:
        yield f": # sharectl: {metadata['sharectl']} is a format that this sharectl does not know"
    if not invalid and int(metadata.get("targets", len(rows))) != len(rows):
        yield f": # targets: {metadata['targets']}, but there are {len(rows)}"
    for number, row in rows.items():
        if not reader.is_node(row[0]) or not reader.is_order(" ".join(row[1:])):
            line, words = " ".join(row)[:_SHOWN], "node, group, cap, another group, cores"
            yield f":{number}: is not {words} (at most {reader.MAX_CORES}): {line!r}"
