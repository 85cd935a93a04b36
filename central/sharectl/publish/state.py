"""``state.json`` in the state directory: what one cycle leaves for the next, and for ``sharectl status``.

Blocks of cores that one cycle hands to the next, as JSON of the state file and of the ledger.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Callable, TypeVar

from sharectl.errors import BrokenStateError, StateError
from sharectl.files import files
from sharectl.model import Standing, Target
from sharectl.plan.free_blocks import BackOff, BlockMemory, OpenBlock, TakenBlocks
from sharectl.plan.plan import State

MOST = 2**53
"""No number is as large; Python has whole numbers that are no floating-point ones."""

Row = TypeVar("Row", OpenBlock, BackOff, TakenBlocks)


def as_rows(memory: BlockMemory) -> dict[str, list[list[Any]]]:
    """Rows of each list, for JSON."""
    return {
        field.name: [list(asdict(row).values()) for row in getattr(memory, field.name)]
        for field in fields(memory)
    }


def from_rows(content: Any) -> BlockMemory:
    """Blocks of such rows, without the invalid ones: nothing is left alone for what nobody can read."""
    content = content if isinstance(content, dict) else {}
    return BlockMemory(
        open=tuple(_rows(content.get("open"), OpenBlock, _open_block)),
        back_offs=tuple(_rows(content.get("back_offs"), BackOff, _back_off)),
        taken=tuple(_rows(content.get("taken"), TakenBlocks, _taken)),
    )


def _rows(rows: Any, kind: type[Row], is_valid: Callable[[Row], bool]) -> Iterator[Row]:
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == len(fields(kind)):
            read = kind(*row)
            if is_valid(read):
                yield read


def _open_block(row: OpenBlock) -> bool:
    times = (row.started_at, row.cores, *(() if row.free_since is None else (row.free_since,)))
    return _names(row.node, row.group) and _whole(*times) and row.cores > 0


def _back_off(row: BackOff) -> bool:
    counts = _whole(row.cores, row.failures, row.until) and row.cores > 0 and row.failures > 0
    return _names(row.group, row.node) and counts and _seconds(row.seconds)


def _taken(row: TakenBlocks) -> bool:
    counts = _whole(row.cores, row.blocks) and row.cores > 0 and row.blocks > 0
    return _names(row.group) and counts and _seconds(row.wait_seconds, row.deviation_seconds)


def _names(*values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _whole(*values: Any) -> bool:
    return all(type(value) is int and abs(value) < MOST for value in values)


def _seconds(*values: Any) -> bool:
    return all(type(value) in (int, float) and 0 <= value < MOST for value in values)


SCHEMA_VERSION = 1

MAX_BYTES = 2**26
"""Size of a file that is still read: some 100,000 targets."""

_NUMBERS = ("sequence", "nodes", "schedds", "standing_until", "uncertain_nodes")


_SEQUENCE = re.compile(rb'"sequence":\s*([0-9]{1,12})\b')
_SEARCHED_BYTES = 2**22
_MOST = 10**12 - 1
"""More is no sequence: it is at most some steps ahead of Unix seconds."""


class StateFile:
    """State kept as JSON."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.clock = clock

    def load(self) -> State:
        """State of the last cycle; see `sharectl.cycle.ports.StateStore`."""
        content = self._read()
        try:
            return _state(
                content if "standing" in content else {**content, **_from_last_cycle(content)}
            )
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise self._broken(f"{type(error).__name__}: {error}") from error

    def save(self, state: State) -> None:
        """Keep ``state``; the record of the last cycle stays.

        A file that cannot be understood is put aside first.
        """
        try:
            self.load()
        except BrokenStateError as error:
            aside = self._begin_anew(state)
            raise StateError(
                f"{error.fact}; moved to {aside}, and a new one was begun: limits and "
                "controllers begin afresh, and the "
                "sequence goes up",
                supersedes=str(error),
            ) from error
        self._write({**self._read(), **_content(state)})

    def last_cycle(self) -> dict[str, Any]:
        """Record of the last cycle as `note_cycle` was given it; empty if there was none."""
        record = self._read().get("last_cycle", {})
        return record if isinstance(record, dict) else {}

    def note_cycle(self, record: dict[str, Any]) -> None:
        """Keep what ``status`` tells of the cycle that ends; the state stays."""
        self._write({**self._read(), "last_cycle": record})

    def _read(self) -> dict[str, Any]:
        try:
            text, _ = files.read_regular(self.path, MAX_BYTES + 1)
            if text is None or len(text) > MAX_BYTES:
                raise self._broken(f"no regular file of at most {MAX_BYTES} bytes")
            content = json.loads(text)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StateError(
                f"{self.path}: cannot be read: {error.strerror or error}; give this user the "
                "right to read it"
            ) from error
        except (ValueError, RecursionError) as error:
            raise self._broken(str(error)) from error
        if not isinstance(content, dict) or content.get("schema_version") != SCHEMA_VERSION:
            raise self._broken(f"schema_version is not {SCHEMA_VERSION}")
        for name in _NUMBERS:
            if not isinstance(content.get(name, 0), int):
                raise self._broken(f"{name} is not a whole number")
        return content

    def _broken(self, why: str) -> BrokenStateError:
        fact = f"{self.path}: cannot be read: {why}"
        return BrokenStateError(
            fact,
            f"the next `sharectl cycle` that publishes moves it to {self.path}.broken-DATE and "
            "begins a new one, with a "
            "sequence that still goes up",
            self._sequence_before(),
        )

    def _sequence_before(self) -> int:
        """Highest sequence that a file which is not understood can tell of, 0 if none."""
        try:
            text, facts = files.read_regular(self.path, _SEARCHED_BYTES)
        except OSError:
            return 0
        named = max((int(found[1]) for found in _SEQUENCE.finditer(text or b"")), default=0)
        # One that lost its text was written after the publishing that it told of.
        return max(named, min(max(0, int(facts.st_mtime)), _MOST))

    def _begin_anew(self, state: State) -> Path:
        """Where the broken file is from now on; ``state`` takes its place at once, so that a sequence is always there."""
        aside = files.name_aside(self.path, int(self.clock()))
        with self._moving():
            try:
                os.link(self.path, aside, follow_symlinks=False)
            except OSError:
                # A folder, or a file system without links.
                self.path.rename(aside)
        try:
            self._write(_content(state))
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(self.path.lstat(), aside.lstat()):
                    aside.unlink()
            raise
        return aside

    @contextlib.contextmanager
    def _moving(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StateError(
                f"{self.path}: is broken and cannot be moved: {error.strerror or error}; give "
                "this user the right to write "
                "in its folder, or remove it"
            ) from error

    def _write(self, content: dict[str, Any]) -> None:
        text = json.dumps({**content, "schema_version": SCHEMA_VERSION}, indent=2)
        files.replace(self.path, [text, "\n"])


def _state(content: dict[str, Any]) -> State:
    unaudited = content.get("unaudited")
    return State(
        **{name: content.get(name, 0) for name in _NUMBERS},
        standing=_standing(content.get("standing", [])),
        withdrawn=content.get("withdrawn") is True,
        unaudited=None if unaudited is None else _standing(unaudited),
        controllers=_controllers(content.get("controllers")),
        unheeding=_unheeding(content.get("unheeding")),
        blocks=from_rows(content.get("blocks")),
    )


def _content(state: State) -> dict[str, Any]:
    return {**asdict(state), "blocks": as_rows(state.blocks)}


def _controllers(groups: Any) -> dict[str, dict[str, float]]:
    """Group -> state; a group whose state is no finite numbers by name begins anew: its targets are none the worse."""
    if not isinstance(groups, dict):
        return {}
    return {group: dict(state) for group, state in groups.items() if _is_state(state)}


def _unheeding(nodes: Any) -> dict[str, int]:
    """Node -> Unix seconds; one whose time is no whole number is tried again at once."""
    if not isinstance(nodes, dict):
        return {}
    return {node: since for node, since in nodes.items() if type(since) is int}


def _is_state(state: Any) -> bool:
    return isinstance(state, dict) and all(
        type(n) in (int, float) and abs(n) <= sys.float_info.max for n in state.values()
    )


def _standing(rows: Any) -> tuple[Standing, ...]:
    found = [Standing(Target(**row["target"]), row["since"]) for row in rows]
    for stood in found:
        target = stood.target
        if not all(
            isinstance(n, int) for n in (stood.since, target.cap_cores, target.request_cores)
        ):
            raise TypeError(f"a number of the target of {target.node} is none")
        if not all(
            isinstance(name, str) for name in (target.node, target.held_back, target.helped)
        ):
            raise TypeError("a name of a target is none")
    return tuple(found)


def _from_last_cycle(content: dict[str, Any]) -> dict[str, Any]:
    """What stands, in a file of a version that kept only the record of the cycle that published it."""
    plan = (content.get("last_cycle") or {}).get("plan") or {}
    if not plan or plan.get("sequence") != content.get("sequence"):
        return {}
    rows = [{"target": target, "since": plan["generated_at"]} for target in plan["targets"]]
    return {"standing": rows, "standing_until": plan["valid_until"]}
