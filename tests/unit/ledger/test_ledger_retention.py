from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.ledger.ledger import Ledger
from sharectl.ledger.retention import Keep
from tests.made_cycles import as_kept, made
from tests.unit.ledger.conftest import changed, row_of

DAY = 86400
PAGE_BYTES = 4096


@pytest.fixture
def path(ledger: Ledger) -> Path:
    return ledger.path


def record(ledger: Ledger, numbers: range, nodes: int = 5, later_seconds: int = 0) -> None:
    for number in numbers:
        kept, seen = made(number, nodes)
        ledger.record(
            replace(kept, taken_at=kept.taken_at + later_seconds),
            replace(seen, taken_at=seen.taken_at + later_seconds, running=()),
        )


def swell(path: Path) -> None:
    """Give nodes many more bytes."""
    changed(path, "UPDATE nodes SET detail = CAST(detail || zeroblob(20000) AS BLOB)")


def numbers_in(ledger: Ledger) -> list[int]:
    return [kept.number for kept in ledger.cycles(0, 2**40)]


def test_cycles_and_their_sums_go_when_they_are_too_old_some_at_a_time(path: Path) -> None:
    ledger = Ledger(path, Keep(days=1, cycles_a_time=3, doubted_cycles=1))
    record(ledger, range(10))
    remaining = [numbers_in(ledger)]
    for number in range(4):
        record(ledger, range(number, number + 1), later_seconds=5 * DAY)
        remaining.append(numbers_in(ledger))
    assert [numbers[0] for numbers in remaining] == [1, 4, 7, 10, 11]
    assert ledger.check()["problems"] == []
    assert row_of(path, "SELECT count(DISTINCT start / 86400) FROM sums") == (1,)


def test_nodes_go_before_the_figures_of_groups(path: Path) -> None:
    ledger = Ledger(path, Keep(nodes_days=2, cycles_a_time=3, doubted_cycles=1))
    record(ledger, range(4))
    record(ledger, range(4, 6), later_seconds=3 * DAY)
    kept = list(ledger.cycles(0, 2**40, with_nodes=True))
    assert [len(cycle.nodes) for cycle in kept] == [0, 0, 0, 0, 5, 5]
    assert kept[0] == replace(as_kept(made(0)[0], 1), nodes=(), basis=None)
    assert ledger.check()["problems"] == []


def test_a_wrong_clock_for_some_hours_removes_nothing(path: Path) -> None:
    ledger = Ledger(path, Keep(days=1))
    record(ledger, range(5))
    record(ledger, range(45), later_seconds=9000 * DAY)
    assert numbers_in(ledger)[:5] == [1, 2, 3, 4, 5]
    record(ledger, range(45, 50), later_seconds=9000 * DAY)
    assert numbers_in(ledger)[0] == 6, "what lasts is no wrong clock"


def test_a_file_too_large_loses_nodes_first(path: Path) -> None:
    record(Ledger(path), range(60), nodes=20)
    swell(path)
    size = path.stat().st_size
    most = size - 30 * PAGE_BYTES
    ledger = Ledger(path, Keep(max_bytes=most, cycles_a_time=10, doubted_cycles=1))
    record(ledger, range(60, 75), nodes=20)
    pages, free = row_of(path, "SELECT * FROM pragma_page_count, pragma_freelist_count")
    assert (pages - free) * PAGE_BYTES <= most
    assert path.stat().st_size <= size + 10 * PAGE_BYTES, "new cycles use what is free"
    assert numbers_in(ledger) == list(range(1, 76)), "the figures of groups stay"
    with_nodes = [kept.number for kept in ledger.cycles(0, 2**40, with_nodes=True) if kept.nodes]
    assert with_nodes == list(range(with_nodes[0], 76))
    assert with_nodes[0] > 1
    assert ledger.cycle(75) == as_kept(made(74, 20)[0], 75)
    assert ledger.check()["problems"] == []


def test_where_no_nodes_are_left_whole_cycles_go_and_the_newest_stays(path: Path) -> None:
    ledger = Ledger(path, Keep(max_bytes=PAGE_BYTES, cycles_a_time=4, doubted_cycles=1))
    record(ledger, range(20))
    remaining = numbers_in(ledger)
    assert remaining == list(range(remaining[0], 21))
    assert len(remaining) < 20
    assert ledger.cycle(20) == as_kept(made(19)[0], 20)
