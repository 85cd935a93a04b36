"""What some nodes held and were told in one cycle, as a few bytes.

A block says what has changed since an earlier one, its base: most jobs run on from cycle to cycle,
and those that do are older by the time between, which needs no bits. A block without a base says
all.

Columns of whole numbers as a few compressed bytes.

Each column is as wide as its largest number, and the bytes of one weight stand beside each other:
that compresses.

Blocks of nodes in the ledger: each on the one of the cycle before, and every so often one that
stands alone.

Nodes of a cycle to and from the blocks of the ledger.
"""

from __future__ import annotations

import sqlite3
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import NamedTuple, Optional

from sharectl.ledger.database import Lists
from sharectl.model import Target
from sharectl.plan.records import CycleRecord, HeldJobs, NodeRecord, rounded

Column = Sequence[int]

_LEVEL = 6
_WIDTHS = ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))
_CODES = dict(_WIDTHS)
_HEAD = struct.Struct("<BI")
"""Of a column: bytes of a number, how many numbers."""
_MOST_BYTES = 2**26


def squeezed(columns: Iterable[Iterable[int]]) -> bytes:
    """Columns of numbers from 0 to 2^64 - 1 as bytes.

    Raises
    ------
    OverflowError
        If a number is none of these.
    """
    return zlib.compress(b"".join(_bytes(list(column)) for column in columns), _LEVEL)


def opened(data: bytes) -> Iterator[Column]:
    """The columns again.

    Raises
    ------
    ValueError
        If the bytes are none that `squeezed` made.
    """
    try:
        text = zlib.decompressobj().decompress(data, _MOST_BYTES)
        position = 0
        while position < len(text):
            width, count = _HEAD.unpack_from(text, position)
            position += _HEAD.size
            yield _numbers(text[position : position + width * count], width, count)
            position += width * count
    except (zlib.error, struct.error) as error:
        raise ValueError(str(error)) from error


def steps(numbers: Iterable[int]) -> Iterator[int]:
    """Each number less the one before it, of numbers that go up from 0."""
    before = 0
    for number in numbers:
        yield number - before
        before = number


def folded(number: int) -> int:
    """Number >= 0 for one of any sign: small for what is near 0."""
    return 2 * number if number >= 0 else -2 * number - 1


def unfolded(number: int) -> int:
    """The number that was folded."""
    return -(number + 1) // 2 if number & 1 else number // 2


def _bytes(numbers: list[int]) -> bytes:
    most = max(numbers, default=0)
    width, code = next((one for one in _WIDTHS if most < 256 ** one[0]), _WIDTHS[-1])
    cells = array(code, numbers)
    if sys.byteorder == "big":
        cells.byteswap()
    data = cells.tobytes()
    return _HEAD.pack(width, len(numbers)) + b"".join(data[plane::width] for plane in range(width))


def _numbers(planes: bytes, width: int, count: int) -> Column:
    if width not in _CODES or len(planes) != width * count:
        raise ValueError("a column is cut off")
    woven = bytearray(planes)
    if width > 1:
        for plane in range(width):
            woven[plane::width] = planes[plane * count : (plane + 1) * count]
    cells = array(_CODES[width])
    cells.frombytes(bytes(woven))
    if sys.byteorder == "big":
        cells.byteswap()
    return cells


Held = tuple[int, int, int, int]
"""Jobs of one kind on one node: kind (a row of ``job_kinds``), jobs, and codes of their mean seconds and MiB."""

_Columns = tuple[list[int], ...]

_FORMAT = 1
_KEPT_COLUMNS, _NEW_COLUMNS = 3, 4
_ENTRY_COLUMNS = _KEPT_COLUMNS + _NEW_COLUMNS
_NEW, _NO_TARGET, _SAME_TARGET, _OTHER_TARGET = 0, 0, 1, 2
_LONG, _MOST_MIB = 4096, 2**48
_EXACT, _PER_DECADE, _LEAST = 100, 90, 10


class TargetRow(NamedTuple):
    """What a node is told; names are rows of ``names``."""

    held_back: int
    cap_cores: int
    helped: int
    request_cores: int


class NodeRow(NamedTuple):
    """One node, its names replaced by numbers of the ledger's lists."""

    node: int
    shape: int
    reason: int
    """0 for none."""
    held: tuple[Held, ...]
    target: Optional[TargetRow] = None
    wait: int = 0
    """Code of seconds."""
    idle: int = 0
    """Code of core-seconds."""


Base = Mapping[int, NodeRow]
"""Number of a node -> its row in the block before."""

NO_BASE: Base = {}


@lru_cache(maxsize=65536)
def code_of(number: float) -> int:
    """Small number that stands for ``number`` to two digits."""
    value = rounded(number)
    if value < _EXACT:
        return value
    power = len(str(value)) - 2
    return _EXACT + (power - 1) * _PER_DECADE + value // int(10**power) - _LEAST


@lru_cache(maxsize=65536)
def value_of(code: int) -> int:
    """The number that a code stands for."""
    if code < _EXACT:
        return code
    power, digits = divmod(code - _EXACT, _PER_DECADE)
    return (digits + _LEAST) * int(10 ** (power + 1))


def memory_code_of(mib: int) -> int:
    """Small number for what two digits say exactly, and a large one for any other, which stays exact."""
    short = code_of(mib)
    return short if value_of(short) == mib else _LONG + min(mib, _MOST_MIB)


def memory_of(code: int) -> int:
    """The memory that a code stands for."""
    return value_of(code) if code < _LONG else code - _LONG


def pack(rows: Sequence[NodeRow], base: Base = NO_BASE, seconds: int = 0) -> bytes:
    """Block of ``rows``, which are sorted by the number of the node.

    Parameters
    ----------
    seconds
        Time since the base, >= 0.
    """
    kept, new = _columns(_KEPT_COLUMNS), _columns(_NEW_COLUMNS)
    moved: list[int] = []
    for row in rows:
        before = base.get(row.node)
        moved += _moves(row.held, before.held if before else (), seconds, kept, new)
    same = [(row, base.get(row.node)) for row in rows]
    given = [row.target for row, was in same if _target_flag(row, was) == _OTHER_TARGET]
    waiting = [(place, row) for place, row in enumerate(rows) if row.wait or row.idle]
    return squeezed(
        (
            (_FORMAT, seconds),
            steps(row.node for row in rows),
            (0 if was and was.shape == row.shape else row.shape for row, was in same),
            (0 if was and was.reason == row.reason else row.reason + 1 for row, was in same),
            (len(row.held) for row in rows),
            moved,
            *kept,
            *new,
            (_target_flag(row, was) for row, was in same),
            *(
                [target[part] for target in given if target]
                for part in range(len(TargetRow._fields))
            ),
            steps(place for place, _ in waiting),
            (row.wait for _, row in waiting),
            (row.idle for _, row in waiting),
        )
    )


def unpack(block: bytes, base: Base = NO_BASE, only: Optional[int] = None) -> Iterator[NodeRow]:
    """Rows of a block on that base, or the one of node ``only``; then the base need have no other one.

    Raises
    ------
    ValueError
        If it is no such block, or not on that base.
    """
    try:
        yield from _unpacked(list(opened(block)), base, only)
    except (IndexError, StopIteration, TypeError, RuntimeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _columns(count: int) -> _Columns:
    return tuple([] for _ in range(count))


def _moves(
    held: Sequence[Held], before: Sequence[Held], seconds: int, kept: _Columns, new: _Columns
) -> Iterator[int]:
    """Where each entry of ``held`` stands in ``before``, seen from the one before it; `_NEW` for what does not.

    What else is to say of it is added to the columns ``kept``, or to those of ``new``.
    """
    places = {entry[0]: place for place, entry in enumerate(before)}
    expected = 0
    for entry in held:
        place = places.get(entry[0])
        if place is None:
            for column, number in zip(new, entry):
                column.append(number)
            yield _NEW
            continue
        was = before[place]
        kept[0].append(folded(entry[1] - was[1]))
        kept[1].append(folded(entry[2] - _older(was[2], seconds)))
        kept[2].append(folded(entry[3] - was[3]))
        yield folded(place - expected) + 1
        expected = place + 1


@lru_cache(maxsize=65536)
def _older(code: int, seconds: int) -> int:
    return code_of(value_of(code) + seconds)


def _target_flag(row: NodeRow, before: Optional[NodeRow]) -> int:
    if row.target is None:
        return _NO_TARGET
    return _SAME_TARGET if before and before.target == row.target else _OTHER_TARGET


def _unpacked(columns: Sequence[Column], base: Base, only: Optional[int]) -> Iterator[NodeRow]:
    (form, seconds), nodes, shapes, reasons, counts, moves, *columns = columns
    if form != _FORMAT:
        raise ValueError(f"format {form} is not known")
    entries, (flags, *targets, places, waits, idle) = (
        columns[:_ENTRY_COLUMNS],
        columns[_ENTRY_COLUMNS:],
    )
    waiting = dict(zip(_sums(places), zip(waits, idle)))
    node = begin = new = told = 0
    for place, (step, shape, reason, count, flag) in enumerate(
        zip(nodes, shapes, reasons, counts, flags)
    ):
        node, end = node + step, begin + count
        here = moves[begin:end]
        if only is None or node == only:
            was = base.get(node) or _unknown(node, shape, reason)
            target = was.target if flag == _SAME_TARGET else None
            if flag == _OTHER_TARGET:
                target = TargetRow(*(column[told] for column in targets))
            yield NodeRow(
                node,
                shape or was.shape,
                reason - 1 if reason else was.reason,
                tuple(_blocks_held(here, was.held, seconds, entries, begin - new, new)),
                target,
                *waiting.get(place, (0, 0)),
            )
        begin, new, told = end, new + here.count(_NEW), told + (flag == _OTHER_TARGET)


def _unknown(node: int, shape: int, reason: int) -> NodeRow:
    if not (shape and reason):
        raise ValueError(f"node {node} is not in the block before")
    return NodeRow(node, shape, 0, ())


def _blocks_held(
    moves: Column,
    before: Sequence[Held],
    seconds: int,
    entries: Sequence[Column],
    kept: int,
    new: int,
) -> Iterator[Held]:
    """Entries of one node, whose numbers begin at places ``kept`` and ``new`` of the columns."""
    jobs, ages, memory, *fresh = entries
    expected = 0
    for move in moves:
        if move == _NEW:
            yield fresh[0][new], fresh[1][new], fresh[2][new], fresh[3][new]
            new += 1
            continue
        place = expected + unfolded(move - 1)
        was = before[place]
        yield (
            was[0],
            was[1] + unfolded(jobs[kept]),
            _older(was[2], seconds) + unfolded(ages[kept]),
            was[3] + unfolded(memory[kept]),
        )
        kept, expected = kept + 1, place + 1


def _sums(numbers: Column) -> Iterator[int]:
    total = 0
    for number in numbers:
        total += number
        yield total


NODES_A_BLOCK = 256
CYCLES_A_CHAIN = 12
"""To read a cycle so many blocks of each node are read at most."""

_BLOCKS_A_CYCLE = 2**16


class Chains:
    """Blocks through one connection; the last ones read are remembered, so that cycles in order are read once each."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._read: dict[tuple[int, Optional[int]], tuple[int, Base]] = {}

    def write(self, cycle: int, taken_at: int, rows: Iterable[NodeRow]) -> None:
        """Keep what the nodes of a cycle held."""
        before = self._last()
        parts: dict[int, list[NodeRow]] = {}
        for row in sorted(rows):
            parts.setdefault(row.node // NODES_A_BLOCK, []).append(row)
        for part, content in parts.items():
            base, number, chain, depth = self._base(before, part, cycle)
            seconds = max(0, taken_at - self._taken_at(number)) if number else 0
            self._connection.execute(
                "INSERT INTO node_blocks (id, base, chain, depth, block) VALUES (?, ?, ?, ?, ?)",
                (_first_id(cycle) + part, number, chain, depth, pack(content, base, seconds)),
            )

    def rows(self, cycle: int) -> list[NodeRow]:
        """What all nodes of a cycle held. Raises ValueError."""
        ids = self._connection.execute(
            "SELECT id FROM node_blocks WHERE id >= ? AND id < ?",
            (_first_id(cycle), _first_id(cycle + 1)),
        ).fetchall()
        return [row for (one,) in ids for row in self._block(cycle, one % _BLOCKS_A_CYCLE).values()]

    def row(self, cycle: int, node: int) -> Optional[NodeRow]:
        """What one node held; None if the cycle does not know it. Raises ValueError."""
        return self._block(cycle, node // NODES_A_BLOCK, node).get(node)

    def _block(self, cycle: int, part: int, only: Optional[int] = None) -> Base:
        done, base = self._read.get((part, only), (0, NO_BASE))
        chain: list[bytes] = []
        number = cycle
        while number not in (0, done):
            found = self._connection.execute(
                "SELECT base, block FROM node_blocks WHERE id = ?", (_first_id(number) + part,)
            ).fetchone()
            if found is None and number == cycle:
                return NO_BASE
            if found is None or found[0] >= number:
                raise ValueError(
                    f"cycle {cycle}: the nodes of cycle {number}, which it goes by, are not there"
                )
            chain.append(found[1])
            number = found[0]
        if number == 0:
            base = NO_BASE
        for block in reversed(chain):
            base = {row.node: row for row in unpack(block, base, only)}
        self._read[part, only] = cycle, base
        return base

    def _base(self, before: int, part: int, cycle: int) -> tuple[Base, int, int, int]:
        """Base of a new block, its cycle (0: none), and the first cycle of the chain and the place in it."""
        alone = NO_BASE, 0, cycle, 0
        found = self._connection.execute(
            "SELECT chain, depth FROM node_blocks WHERE id = ?", (_first_id(before) + part,)
        ).fetchone()
        if found is None or found[1] + 1 >= CYCLES_A_CHAIN:
            return alone
        try:
            return self._block(before, part), before, found[0], found[1] + 1
        except ValueError:
            # What cannot be read is no base for what comes.
            return alone

    def _last(self) -> int:
        """Last cycle that has blocks; 0 if there is none."""
        newest = self._connection.execute("SELECT max(id) FROM node_blocks").fetchone()[0]
        return 0 if newest is None else int(newest) // _BLOCKS_A_CYCLE

    def _taken_at(self, cycle: int) -> int:
        row = self._connection.execute(
            "SELECT taken_at FROM cycles WHERE number = ?", (cycle,)
        ).fetchone()
        return int(row[0]) if row else 0


def first_cycle(connection: sqlite3.Connection) -> Optional[int]:
    """First cycle that has blocks; None if there is none."""
    oldest = connection.execute("SELECT min(id) FROM node_blocks").fetchone()[0]
    return None if oldest is None else int(oldest) // _BLOCKS_A_CYCLE


def remove_before(connection: sqlite3.Connection, cycle: int) -> int:
    """How many blocks were removed: those of earlier cycles, but for what the blocks from that cycle on go by."""
    needed = connection.execute(
        "SELECT min(chain) FROM (SELECT chain FROM node_blocks WHERE id >= ? ORDER BY id LIMIT ?)",
        (_first_id(cycle), _BLOCKS_A_CYCLE // NODES_A_BLOCK),
    ).fetchone()[0]
    first = cycle if needed is None else min(cycle, needed)
    return connection.execute("DELETE FROM node_blocks WHERE id < ?", (_first_id(first),)).rowcount


def _first_id(cycle: int) -> int:
    return cycle * _BLOCKS_A_CYCLE


_MOST = 10**12


class Nodes:
    """What nodes held and were told, through one connection."""

    def __init__(self, connection: sqlite3.Connection, lists: Lists) -> None:
        self._connection = connection
        self._lists = lists
        self._chains = Chains(connection)
        self._held: dict[Held, HeldJobs] = {}

    def write(self, number: int, record: CycleRecord) -> None:
        """Keep the nodes of a cycle; of two with one name the last."""
        rows = {row.node: row for row in (_row(self._lists, node) for node in record.nodes)}
        self._chains.write(number, record.taken_at, rows.values())

    def read(self, number: int) -> tuple[NodeRecord, ...]:
        """What all nodes of a cycle held, by name. Raises ValueError."""
        found = [self._record(row) for row in self._chains.rows(number)]
        return tuple(sorted(found, key=lambda node: node.node))

    def history(self, name: str, since: int, until: int) -> Iterator[tuple[int, int, NodeRecord]]:
        """Number and time of each cycle that knows the node, the oldest first, and what it held.

        Raises ValueError.
        """
        node = self._lists.nodes.known(name)
        if node is None:
            return
        cycles = self._connection.execute(
            "SELECT number, taken_at FROM cycles WHERE taken_at >= ? AND taken_at < ? ORDER BY "
            "taken_at, number",
            (since, until),
        )
        for number, taken_at in cycles:
            row = self._chains.row(number, node)
            if row is not None:
                yield number, taken_at, self._record(row)

    def _record(self, row: NodeRow) -> NodeRecord:
        lists = self._lists
        cores, power, memory_mib, controlled, reserved, draining, multicore_only = lists.shapes.row(
            row.shape
        )
        name = lists.nodes.row(row.node)[0]
        return NodeRecord(
            node=name,
            cores=cores,
            hs06_per_core=power,
            controlled=bool(controlled),
            held=tuple(self._jobs(held) for held in row.held),
            target=_target(lists, name, row.target) if row.target else None,
            reason=lists.name(row.reason) if row.reason else None,
            wait_seconds=float(value_of(row.wait)),
            idle_core_seconds=float(value_of(row.idle)),
            memory_mib=memory_mib,
            reserved=bool(reserved),
            draining=bool(draining),
            multicore_only=bool(multicore_only),
        )

    def _jobs(self, held: Held) -> HeldJobs:
        jobs = self._held.get(held)
        if jobs is None:
            kind, many, age, memory = held
            group, cores = self._lists.kinds.row(kind)
            jobs = HeldJobs(self._lists.name(group), cores, many, value_of(age), memory_of(memory))
            self._held[held] = jobs
        return jobs


def _row(lists: Lists, node: NodeRecord) -> NodeRow:
    power = float(node.hs06_per_core)
    return NodeRow(
        node=lists.nodes.number(node.node),
        shape=lists.shapes.number(
            node.cores,
            power,
            node.memory_mib,
            *map(int, (node.controlled, node.reserved, node.draining, node.multicore_only)),
        ),
        reason=lists.names.number(node.reason) if node.reason else 0,
        held=tuple(_nodes_held(lists, held) for held in node.held),
        target=_target_row(lists, node.target) if node.target else None,
        wait=code_of(_bounded(node.wait_seconds)),
        idle=code_of(_bounded(node.idle_core_seconds)),
    )


def _nodes_held(lists: Lists, held: HeldJobs) -> Held:
    kind = lists.kinds.number(lists.names.number(held.group), held.cores)
    return kind, held.jobs, code_of(held.seconds), memory_code_of(held.memory_mib)


def _target_row(lists: Lists, target: Target) -> TargetRow:
    held_back, helped = lists.names.number(target.held_back), lists.names.number(target.helped)
    return TargetRow(held_back, target.cap_cores, helped, target.request_cores)


def _bounded(number: float) -> float:
    return min(_MOST, max(0.0, number)) if isfinite(number) else float(_MOST) * (number > 0)


def _target(lists: Lists, name: str, row: TargetRow) -> Target:
    return Target(
        name, lists.name(row.held_back), row.cap_cores, lists.name(row.helped), row.request_cores
    )
