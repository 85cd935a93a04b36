"""What some nodes held and were told in one cycle, as a few bytes.

A block says what has changed since an earlier one, its base: most jobs run on from cycle to cycle, and those that do
are older by the time between, which needs no bits. A block without a base says all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Optional

from sharectl.adapters.ledger_columns import Column, folded, opened, squeezed, steps, unfolded
from sharectl.core.node_records import rounded

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
            *([target[part] for target in given if target] for part in range(len(TargetRow._fields))),
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
    entries, (flags, *targets, places, waits, idle) = columns[:_ENTRY_COLUMNS], columns[_ENTRY_COLUMNS:]
    waiting = dict(zip(_sums(places), zip(waits, idle)))
    node = begin = new = told = 0
    for place, (step, shape, reason, count, flag) in enumerate(zip(nodes, shapes, reasons, counts, flags)):
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
                tuple(_held(here, was.held, seconds, entries, begin - new, new)),
                target,
                *waiting.get(place, (0, 0)),
            )
        begin, new, told = end, new + here.count(_NEW), told + (flag == _OTHER_TARGET)


def _unknown(node: int, shape: int, reason: int) -> NodeRow:
    if not (shape and reason):
        raise ValueError(f"node {node} is not in the block before")
    return NodeRow(node, shape, 0, ())


def _held(
    moves: Column, before: Sequence[Held], seconds: int, entries: Sequence[Column], kept: int, new: int
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
