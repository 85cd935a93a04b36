"""A configuration, its ledger and the command, for the tests of this room."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sharectl.cli.main import main
from sharectl.ledger.ledger import PLACE, Ledger
from tests.made_cycles import incomplete, made


def changed(path: Path, script: str) -> None:
    """Run statements of SQL in a ledger, as an admin with `sqlite3` does."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def row_of(path: Path, query: str) -> Sequence[Any]:
    """First row of a query of a ledger."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        row: Sequence[Any] = connection.execute(query).fetchone()
    return row


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """State directory of the configuration."""
    return tmp_path / "state"


@pytest.fixture
def ledger(state: Path) -> Ledger:
    """The ledger of the configuration; nothing is in it."""
    return Ledger(state / PLACE, busy_seconds=0.2)


@pytest.fixture
def recorded(ledger: Ledger) -> Ledger:
    """The ledger with three complete cycles and an incomplete one."""
    for number in range(3):
        ledger.record(*made(number))
    ledger.record(*incomplete(3))
    return ledger


@pytest.fixture
def config(tmp_path: Path, state: Path) -> Path:
    """A configuration that keeps what is decades old."""
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        "groups: {alice: {pledge_hs06: 300}, cms: {pledge_hs06: 700}}\n"
        f"state_directory: {state}\nhistory: {{errors_log: {tmp_path}/shares_Error.log}}\n"
        "ledger: {keep_days: 36500}\n"
    )
    return path


@pytest.fixture
def run(config: Path) -> Callable[..., int]:
    """``sharectl ledger`` with some words; returns its exit code."""
    return lambda *words: main(["ledger", *map(str, words), "--config", str(config)])
