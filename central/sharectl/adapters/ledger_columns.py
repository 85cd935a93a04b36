"""Columns of whole numbers as a few compressed bytes.

Each column is as wide as its largest number, and the bytes of one weight stand beside each other: that compresses.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence

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
