"""Cost of the ledger: size of the file, time to write a cycle and to read.

A synthetic pool (`ledger_pool`) of 1,000 nodes, 30 groups and 27,000 jobs goes on for some cycles
of five minutes, which the ledger records one by one. The slice is then copied inside SQLite, with
later numbers and times, until there are 60 days of cycles with their nodes. Beyond that, up to two
years, a cycle has its groups alone: that part is reckoned from the size of their tables.

Each query is asked by a process of its own and judged by its processor time, because the clock
tells how busy the machine is. ``--before CHECKOUT`` records the same cycles with another checkout
of sharectl too and prints the ratio. ``--cycles N`` builds fewer.

Exit code 1 if a requirement is missed. MB are 10^6 bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Optional

CHECKOUT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":  # a script finds the checkout by itself, or the one that it is told
    HOME = os.environ.get("SHARECTL_CHECKOUT", str(CHECKOUT))
    sys.path[:0] = [str(CHECKOUT), f"{HOME}/central"]

from bench import ledger_pool  # noqa: E402
from sharectl.ledger.ledger import Ledger  # noqa: E402
from sharectl.model import Snapshot  # noqa: E402
from sharectl.plan.records import CycleRecord  # noqa: E402

NODES, GROUPS, PERIOD_SECONDS, NODES_DAYS, DAYS = 1000, 30, 300, 60, 730
BEGIN = 1_700_000_000 // 86400 * 86400
SLICE = 24
WARM_UP = 40
"""Cycles until the jobs that all began at once are gone."""
DAY = 86400
MOST_BYTES = 2e9
MOST_SECONDS = 1.0
NODES_CYCLES = NODES_DAYS * DAY // PERIOD_SECONDS

QUERIES = {
    "series of 60 days, 500 points": f"ledger.series(end - 60 * {DAY}, end, 500)",
    "series of a month for `report`": f"ledger.series(end - 30 * {DAY}, end, 1184)",
    "series of a day for `report`": f"ledger.series(end - {DAY}, end, 1184)",
    "a cycle by its number, with nodes": "ledger.cycle(middle)",
    "the last cycle, with nodes": "ledger.latest()",
    "run times": "ledger.run_times(['group-%02d' % n for n in range(30)])",
}
ASK = """\
import sys, time
from pathlib import Path
from sharectl.ledger.ledger import Ledger
path, end, middle = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
ledger, began = Ledger(path), time.process_time()
answer = {query}
print(time.process_time() - began, bool(answer))
"""


@dataclass
class Table:
    """Printed figures."""

    missed: int = 0

    def line(self, name: str, measured: str, required: str = "", *, ok: bool = True) -> None:
        """Print one figure."""
        verdict = "" if not required else "ok" if ok else "MISSED"
        self.missed += not ok
        print(f"{name:<44} {measured:>18} {required:>10}  {verdict}".rstrip(), flush=True)


def main(argv: Sequence[str]) -> int:
    """Print the table; 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cycles", type=int, default=NODES_CYCLES, help="default: %(default)s")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT")
    parser.add_argument("--slice", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.slice is not None:
        print(json.dumps(record_slice(arguments.slice)))
        return 0
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger" / "ledger.sqlite"
        earlier = _recorded(arguments.before, Path(folder) / "before") if arguments.before else None
        written(table, _recorded(CHECKOUT, path), earlier)
        copies = max(1, round(arguments.cycles / SLICE))
        fill(path, copies)
        sizes(table, path, copies * SLICE)
        ask(table, path, copies)
    return 1 if table.missed else 0


def _recorded(checkout: Path, path: Path) -> dict[str, Any]:
    """Figures of the slice, recorded by a process that has the sharectl of a checkout."""
    process = subprocess.run(
        [sys.executable, __file__, "--slice", str(path)],
        env={**os.environ, "SHARECTL_CHECKOUT": str(checkout)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    figures: dict[str, Any] = json.loads(process.stdout)
    return figures


def record_slice(path: Path) -> dict[str, float]:
    """Processor time of a cycle, its median, and bytes that it adds."""
    ledger, seconds = Ledger(path), []
    for record, snapshot in cycles_of_slice(NODES):
        began = time.process_time()
        ledger.record(record, snapshot)
        seconds.append(time.process_time() - began)
    return {"seconds": median(seconds), "bytes": path.stat().st_size / SLICE}


def cycles_of_slice(nodes: int) -> Iterator[tuple[CycleRecord, Snapshot]]:
    """Cycles to record, and the snapshot of each."""
    ledger_pool.PERIOD_SECONDS = PERIOD_SECONDS
    pool = ledger_pool.SyntheticPool(nodes, GROUPS, seed=5)
    begin = BEGIN - WARM_UP * PERIOD_SECONDS
    return islice(pool.cycles(begin, WARM_UP + SLICE), WARM_UP, None)


def written(table: Table, now: dict[str, Any], before: Optional[dict[str, Any]]) -> None:
    """Print the cost of a cycle, beside that before."""
    for name, key, unit, factor in (
        ("to record a cycle, processor time", "seconds", "s", 1.0),
        ("bytes of a cycle that has its nodes", "bytes", "kB", 1e-3),
    ):
        table.line(name, f"{now[key] * factor:.2f} {unit}")
        if before is not None:
            table.line("  before", f"{before[key] * factor:.2f} {unit}")
            table.line("  now over before", f"{now[key] / before[key]:.2f}")


def fill(path: Path, copies: int) -> None:
    """Copy the slice until there are so many of it, with its sums."""
    shifted = {
        "number": "number + :shift",
        "cycle": "cycle + :shift",
        "taken_at": "taken_at + :seconds",
        "start": "start + :seconds",
        "day": "day + 1",
    }
    tables = ("cycles", "nodes")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for number in range(1, copies):
            values = {"shift": number * SLICE, "seconds": number * SLICE * PERIOD_SECONDS}
            connection.execute("BEGIN")
            for name in tables:
                key = "number" if name == "cycles" else "cycle"
                _copy(connection, name, shifted, f"{key} <= {SLICE}", values)
            end = BEGIN + SLICE * PERIOD_SECONDS
            _copy(connection, "sums", shifted, f"start < {end}", values)
            if values["seconds"] % DAY == 0:
                where = "day = (SELECT max(day) FROM remaining_times)"
                _copy(connection, "remaining_times", shifted, where, {})
            connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _copy(
    connection: sqlite3.Connection,
    table: str,
    shifted: dict[str, str],
    where: str,
    values: dict[str, int],
) -> None:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    chosen = ", ".join(shifted.get(column, column) for column in columns)
    connection.execute(f"INSERT INTO {table} SELECT {chosen} FROM {table} WHERE {where}", values)  # noqa: S608


def sizes(table: Table, path: Path, cycles: int) -> None:
    """Print the size of the file and of its tables."""
    size = path.stat().st_size
    with closing(sqlite3.connect(path)) as connection:
        parts = dict(
            connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC")
        )
    for name, part in islice(parts.items(), 6):
        table.line(f"  in {name}", f"{part / 1e6:.0f} MB")
    most = MOST_BYTES * cycles / NODES_CYCLES
    name = f"file of {cycles:,} cycles with their nodes"
    table.line(name, f"{size / 1e6:.0f} MB", f"<= {most / 1e6:.0f}", ok=size <= most)
    of_groups = (size - parts["nodes"]) / cycles
    table.line("bytes of a cycle without its nodes", f"{of_groups / 1e3:.1f} kB")
    for period in (PERIOD_SECONDS, 1020):
        both = parts["nodes"] / cycles * NODES_DAYS + of_groups * DAYS
        whole = both * DAY / period
        table.line(f"two years, a cycle every {period} s: reckoned", f"{whole / 1e6:.0f} MB")


def ask(table: Table, path: Path, copies: int) -> None:
    """Print the processor time of each query."""
    end = BEGIN + copies * SLICE * PERIOD_SECONDS
    for name, query in QUERIES.items():
        command = [sys.executable, "-c", ASK.replace("{query}", query), str(path), str(end)]
        process = subprocess.run(
            [*command, str(copies * SLICE // 2 + 7)],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT / "central")},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        seconds = float(process.stdout.split()[0])
        required = f"<= {MOST_SECONDS:g} s"
        table.line(name, f"{seconds:.2f} s", required, ok=seconds <= MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
