"""What two years in the ledger cost: every 17 minutes a cycle of 1,000 nodes and 30 groups, 27,000 jobs.

A synthetic pool (`ledger_pool`) goes on for a slice of cycles, which the ledger records one by one:
what that takes, and how large it gets, is measured. The file of two years is then really built: the
slice is copied inside SQLite, row by row and block by block, with later numbers and times, until
61,835 cycles are there, and roll-ups are made of all of them. The copies are as large as what was
recorded; only their names and shapes of nodes are not written again, nor would they be.

Each query is asked by a process of its own, once with the file out of the kernel's cache and once
with it in it. It is judged by the processor time of the second, since the clock says what else the
machine did.

Exit code 1 if a requirement is missed. MB are 10^6 bytes. ``--cycles N`` builds fewer.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "central")]

from bench.ledger_pool import PERIOD_SECONDS, SyntheticPool  # noqa: E402 - a script finds the checkout by itself
from sharectl.ledger import sums as ledger_rollups  # noqa: E402
from sharectl.ledger.ledger import Keep, Ledger  # noqa: E402
from sharectl.model import Snapshot  # noqa: E402
from sharectl.plan.records import CycleRecord  # noqa: E402
from sharectl.report.page import POINTS  # noqa: E402

NODES, GROUPS, DAYS = 1000, 30, 730
TWO_YEARS = DAYS * 86400 // PERIOD_SECONDS
BEGIN = 1_700_000_000
SLICE = 48
"""Whole chains of blocks: as many that stand alone as in the long run."""
WARM_UP = 16
"""Cycles until the jobs that all began at once are gone."""
MOST_BYTES = 2e9
MOST_SECONDS = 1.0
MONTH, WEEK, YEAR = 30 * 86400, 7 * 86400, 365 * 86400
BLOCK_SHIFT = 2**16

QUERIES = {
    "series of two years, 500 points": f"ledger.series(end - {DAYS * 86400}, end, 500)",
    "series of two years for `report`": f"ledger.series(end - {DAYS * 86400}, end, {POINTS})",
    "series of a year, 500 points": f"ledger.series(end - {YEAR}, end, 500)",
    "series of a year for `report`": f"ledger.series(end - {YEAR}, end, {POINTS})",
    "series of a month, 500 points": f"ledger.series(end - {MONTH}, end, 500)",
    "series of a month for `report`": f"ledger.series(end - {MONTH}, end, {POINTS})",
    "a cycle by its number, with nodes": "ledger.cycle(middle)",
    "a cycle by its time, with nodes": f"ledger.cycle_at(end - {YEAR})",
    "the last cycle, with nodes": "ledger.latest()",
    "a node's week": f"ledger.node_history('wn-12-07', end - {WEEK}, end)",
    "what is known of run times": "ledger.known(['group-%02d' % n for n in range(30)])",
}
ASK = """\
import os, resource, sys, time
from pathlib import Path
from sharectl.ledger.ledger import Ledger
path, end, middle, cold = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "cold"
if cold:
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
ledger, began, spent = Ledger(path), time.perf_counter(), time.process_time()
answer = {query}
print(time.perf_counter() - began, time.process_time() - spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, bool(answer))
"""


@dataclass
class Table:
    """What is printed."""

    missed: int = 0

    def line(self, name: str, measured: str, required: str = "", *, ok: bool = True) -> None:
        """Print one figure."""
        verdict = "" if not required else "ok" if ok else "MISSED"
        self.missed += not ok
        print(f"{name:<52} {measured:>16} {required:>10}  {verdict}".rstrip(), flush=True)


def main(argv: Sequence[str]) -> int:
    """Print the table; 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--cycles", type=int, default=TWO_YEARS, help="default: %(default)s, two years"
    )
    wanted = parser.parse_args(argv).cycles
    table, began = Table(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger" / "ledger.sqlite"
        cycles = islice(
            SyntheticPool(NODES, GROUPS, seed=5).cycles(BEGIN, WARM_UP + SLICE), WARM_UP, None
        )
        last = record_slice(table, path, cycles)
        copies = max(1, round(wanted / SLICE))
        fill(path, copies)
        sizes(table, path, copies * SLICE)
        ask(table, path, copies)
        later(table, path, last, copies)
    table.line("all of this bench", f"{time.perf_counter() - began:.0f} s")
    return 1 if table.missed else 0


def record_slice(
    table: Table, path: Path, cycles: Iterator[tuple[CycleRecord, Snapshot]]
) -> tuple[CycleRecord, Snapshot]:
    """Record the slice and say what it took; returns its last cycle."""
    ledger = Ledger(path)
    took: list[float] = []
    texts: list[int] = []
    for record, snapshot in cycles:
        began = time.perf_counter()
        ledger.record(record, snapshot)
        took.append(time.perf_counter() - began)
        if len(texts) < 3:  # noqa: PLR2004 - they hardly differ
            texts.append(len(zlib.compress(json.dumps(asdict(record)["nodes"]).encode())))
    table.line("to record a cycle, median (most)", f"{median(took):.2f} s ({max(took):.2f})")
    text = median(texts)
    with sqlite3.connect(path) as connection:
        rows = (
            "SELECT avg(bytes) FROM (SELECT sum(length(block)) AS bytes FROM node_blocks WHERE depth "
            "{} 0 GROUP BY id / 65536)"
        )
        alone, chained = (
            connection.execute(rows.format(sign)).fetchone()[0] for sign in ("=", ">")
        )
    table.line("nodes of a cycle: JSON, zlib", f"{text / 1e3:.1f} kB")
    table.line("nodes of a cycle: a block that stands alone", f"{alone / 1e3:.1f} kB")
    table.line("nodes of a cycle: what changed", f"{chained / 1e3:.1f} kB")
    table.line("JSON is larger than what changed, times", f"{text / chained:.1f}")
    return record, snapshot


def fill(path: Path, copies: int) -> None:
    """Copy the slice until there are so many of it, and make the roll-ups."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    for number in range(1, copies):
        values = {
            "shift": number * SLICE,
            "seconds": number * SLICE * PERIOD_SECONDS,
            "last": SLICE,
        }
        connection.execute("BEGIN")
        for statement in copying(connection):
            connection.execute(statement, values)
        connection.execute("COMMIT")
    end = BEGIN + (copies * SLICE + WARM_UP) * PERIOD_SECONDS
    connection.execute("BEGIN")
    ledger_rollups.recover(connection, BEGIN, end)
    ledger_rollups.refresh(connection, BEGIN, end)
    first = connection.execute("SELECT min(day) FROM remaining_times").fetchone()[0]
    for day in range(first + 1, end // 86400 + 1):
        connection.execute(
            "INSERT OR IGNORE INTO remaining_times SELECT ?, group_id, bin, at_risk_seconds, "
            "ends FROM remaining_times "
            "WHERE day = ?",
            (day, first),
        )
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def copying(connection: sqlite3.Connection) -> list[str]:
    """Statements that copy the first slice."""
    shifted = {
        "number": "number + :shift",
        "cycle": "cycle + :shift",
        "taken_at": "taken_at + :seconds",
        "id": f"id + :shift * {BLOCK_SHIFT}",
        "base": "CASE base WHEN 0 THEN 0 ELSE base + :shift END",
        "chain": "chain + :shift",
    }
    which = {
        "cycles": "number <= :last",
        "group_cycles": "cycle <= :last",
        "group_sizes": "cycle <= :last",
        "node_blocks": f"id < (:last + 1) * {BLOCK_SHIFT}",
    }
    statements = []
    for table, condition in which.items():
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        values = ", ".join(shifted.get(column, column) for column in columns)
        statements.append(f"INSERT INTO {table} SELECT {values} FROM {table} WHERE {condition}")  # noqa: S608
    return statements


def sizes(table: Table, path: Path, cycles: int) -> None:
    """Say how large the file is and what is in it."""
    size = path.stat().st_size
    with sqlite3.connect(path) as connection:
        for what in ("node_blocks", "group_cycles", "group_sizes", "cycles"):
            rows = connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0]  # noqa: S608 - listed above
            table.line(f"rows of {what}", f"{rows:,}")
        parts = connection.execute(
            "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 9"
        )
        for name, part in parts:
            table.line(f"  in {name}", f"{part / 1e6:.0f} MB")
    table.line("cycles", f"{cycles:,}")
    table.line("bytes a cycle", f"{size / cycles:,.0f}")
    most = MOST_BYTES * cycles / TWO_YEARS
    table.line("file", f"{size / 1e6:.0f} MB", f"<= {most / 1e6:.0f}", ok=size <= most)


def ask(table: Table, path: Path, copies: int) -> None:
    """Say how long each query takes."""
    end = BEGIN + (copies * SLICE + WARM_UP) * PERIOD_SECONDS
    for name, query in QUERIES.items():
        took, spent, memory = {}, 0.0, 0
        for cache in ("cold", "warm"):
            command = [sys.executable, "-c", ASK.replace("{query}", query), str(path), str(end)]
            environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "central")}
            said = subprocess.run(
                [*command, str(copies * SLICE // 2 + 7), cache],
                env=environment,
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout.split()
            took[cache], spent, memory = float(said[0]), float(said[1]), int(said[2])
        table.line(name, f"{spent:.2f} s", f"<= {MOST_SECONDS:g} s", ok=spent <= MOST_SECONDS)
        table.line("  by the clock: cold, warm", f"{took['cold']:.2f} s, {took['warm']:.2f}")
        table.line("  memory of its process", f"{memory * 1024 / 1e6:.0f} MB")


def later(table: Table, path: Path, last: tuple[CycleRecord, Snapshot], copies: int) -> None:
    """Say what a cycle costs that is added to all of it, and one that has to remove what is too old."""
    record, snapshot = last
    end = BEGIN + (copies * SLICE + WARM_UP) * PERIOD_SECONDS
    for name, keep in (
        ("to record one more", Keep()),
        ("to record one more, and remove 200", Keep(days=copies * SLICE // 90)),
    ):
        end += PERIOD_SECONDS
        began = time.perf_counter()
        Ledger(path, keep).record(replace(record, taken_at=end), replace(snapshot, taken_at=end))
        table.line(name, f"{time.perf_counter() - began:.2f} s")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    table.line("memory of the process that recorded", f"{memory:.0f} MB")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
