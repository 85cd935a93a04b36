"""Blocks of cores that one cycle hands to the next, as JSON of the state file and of the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any, Callable, TypeVar

from sharectl.core.free_blocks import BackOff, BlockMemory, OpenBlock, TakenBlocks

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
