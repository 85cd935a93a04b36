"""What the nodes of one cycle held and were told, as a few compressed bytes.

Columns of whole numbers, each as wide as its largest, the bytes of a column beside those of the same weight: jobs of a
kind repeat from node to node, and compress. A block needs no other one to be read, so that any of them can be removed.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sharectl.core.node_records import rounded

NODES_A_BLOCK = 256
"""So many nodes are read to look at one."""

_LEVEL = 9
_WIDTHS = ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))
_HEAD = struct.Struct("<BI")
"""Of a column: bytes of a number, how many numbers."""
_MOST_BYTES = 2**26
_EXACT, _PER_DECADE, _LEAST = 100, 90, 10


@dataclass(frozen=True)
class HeldRow:
    """Jobs of one kind on one node."""

    kind: int
    """Group and cores: a row of ``job_kinds``."""
    jobs: int
    seconds: int
    memory_mib: int


@dataclass(frozen=True)
class TargetRow:
    """What a node is told."""

    held_back: int
    """Names are rows of ``names``."""
    cap_cores: int
    helped: int
    request_cores: int


@dataclass(frozen=True)
class NodeRow:
    """One node, its names replaced by numbers of the ledger's lists."""

    node: int
    shape: int
    reason: int
    """0 for none."""
    held: tuple[HeldRow, ...] = ()
    target: tuple[TargetRow, ...] = ()
    """One, or none."""
    wait_seconds: int = 0
    idle_core_seconds: int = 0


def pack(rows: Sequence[NodeRow]) -> bytes:
    """Block of ``rows``, sorted by the number of the node."""
    held = [jobs for row in rows for jobs in row.held]
    told = [(place, target) for place, row in enumerate(rows) for target in row.target]
    waiting = [(p, row) for p, row in enumerate(rows) if row.wait_seconds or row.idle_core_seconds]
    columns: tuple[Iterable[int], ...] = (
        _steps(row.node for row in rows),
        (row.shape for row in rows),
        (row.reason for row in rows),
        (len(row.held) for row in rows),
        (jobs.kind for jobs in held),
        (jobs.jobs for jobs in held),
        (code_of(jobs.seconds) for jobs in held),
        (code_of(jobs.memory_mib) for jobs in held),
        (place for place, _ in told),
        (target.held_back for _, target in told),
        (target.cap_cores for _, target in told),
        (target.helped for _, target in told),
        (target.request_cores for _, target in told),
        (place for place, _ in waiting),
        (row.wait_seconds for _, row in waiting),
        (row.idle_core_seconds for _, row in waiting),
    )
    return zlib.compress(b"".join(map(_column, columns)), _LEVEL)


def unpack(block: bytes, only: int = 0) -> Iterator[NodeRow]:
    """Rows of a block, or the one of node ``only``.

    Raises
    ------
    ValueError
        If it is no such block.
    """
    columns = _columns(block)
    nodes, shapes, reasons, counts, kinds, jobs, seconds, memory = (next(columns) for _ in range(8))
    places, held_back, caps, helped, requests = (next(columns) for _ in range(5))
    waiting, waits, idle = (next(columns) for _ in range(3))
    target_at = dict(zip(places, map(TargetRow, held_back, caps, helped, requests)))
    wait_at = dict(zip(waiting, zip(waits, idle)))
    node = begin = 0
    for place, (step, shape, reason, count) in enumerate(zip(nodes, shapes, reasons, counts)):
        node, end = node + step, begin + count
        if only in (0, node):
            part = slice(begin, end)
            rows = zip(kinds[part], jobs[part], seconds[part], memory[part])
            held = tuple(HeldRow(kind, many, value_of(age), value_of(mib)) for kind, many, age, mib in rows)
            target = (target_at[place],) if place in target_at else ()
            yield NodeRow(node, shape, reason, held, target, *wait_at.get(place, (0, 0)))
        begin = end


def code_of(number: int) -> int:
    """Small number that stands for ``number`` to two digits."""
    value = rounded(number)
    if value < _EXACT:
        return max(0, value)
    power = len(str(value)) - 2
    return _EXACT + (power - 1) * _PER_DECADE + value // int(10**power) - _LEAST


def value_of(code: int) -> int:
    """The number that a code stands for."""
    if code < _EXACT:
        return code
    power, digits = divmod(code - _EXACT, _PER_DECADE)
    return int((digits + _LEAST) * 10 ** (power + 1))


def _steps(numbers: Iterable[int]) -> Iterator[int]:
    before = 0
    for number in numbers:
        yield number - before
        before = number


def _column(numbers: Iterable[int]) -> bytes:
    values = list(numbers)
    most = max(values, default=0)
    width, code = next((width, code) for width, code in _WIDTHS if most < 256**width or width == 8)  # noqa: PLR2004
    cells = array(code, values)
    if sys.byteorder == "big":
        cells.byteswap()
    data = cells.tobytes()
    return _HEAD.pack(width, len(values)) + b"".join(data[plane::width] for plane in range(width))


def _columns(block: bytes) -> Iterator[Sequence[int]]:
    inflate = zlib.decompressobj()
    try:
        data = inflate.decompress(block, _MOST_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    codes, position = dict(_WIDTHS), 0
    while position < len(data):
        width, count = _HEAD.unpack_from(data, position)
        position += _HEAD.size
        planes = data[position : position + width * count]
        if width not in codes or len(planes) != width * count:
            raise ValueError("a column of it is cut off")
        cells = array(codes[width])
        cells.frombytes(b"".join(_woven(planes, width, count)))
        if sys.byteorder == "big":
            cells.byteswap()
        yield cells
        position += width * count


def _woven(planes: bytes, width: int, count: int) -> Iterator[bytes]:
    woven = bytearray(width * count)
    for plane in range(width):
        woven[plane::width] = planes[plane * count : (plane + 1) * count]
    yield bytes(woven)
