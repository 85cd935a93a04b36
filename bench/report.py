"""Cost of the page of a year: 30 groups, a cycle every 5 minutes.

The ledger is that of bench/ledger.py with fewer nodes, which no figure shows. Each command is a
process of its own, with one thread; what is required is of its processor time, so that other work
on the machine does not decide. MB are 10^6 bytes. A month is there to see that a page grows with
groups, not with time.

Exit code 1 if the year takes longer than 10 s, or its page is larger than `MOST_BYTES`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "central")]

from bench.ledger import (  # noqa: E402 - a script finds the checkout by itself
    PERIOD_SECONDS,
    SLICE,
    cycles_of_slice,
    fill,
)
from sharectl.ledger.ledger import PLACE, Ledger  # noqa: E402

NODES, GROUPS, DAYS = 100, 30, 365
LIMIT_SECONDS = 10.0
MOST_BYTES = 6e6
RUNS = 3

CONFIGURATION = """\
groups: {{group-00: {{pledge_hs06: 100}}, group-01: {{pledge_hs06: 100}}}}
publish: [file: {folder}/sharectl.txt]
state_directory: {folder}
"""


@dataclass(frozen=True)
class Cost:
    """Of one command."""

    seconds: float
    processor_seconds: float
    memory_mb: float
    page_mb: float


def main() -> int:
    """Print the table; 1 if a requirement is missed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sharectl.yaml").write_text(CONFIGURATION.format(folder=folder), encoding="utf-8")
        end = build(folder / PLACE)
        year = end - DAYS * 86400
        asked = {
            "a month": [end - 30 * 86400, end],
            "a year": [year, end],
        }
        costs = {
            what: [report(folder, periods) for _ in range(RUNS)] for what, periods in asked.items()
        }
    print(
        f"{GROUPS} groups; best of {RUNS} runs; {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f}"
    )
    print(f"{'':<28}{'seconds':>10}{'CPU s':>10}{'memory MB':>12}{'page MB':>10}")
    for what, runs in costs.items():
        best = min(runs, key=lambda cost: cost.processor_seconds)
        print(
            f"{what:<28}{best.seconds:>10.1f}{best.processor_seconds:>10.1f}{best.memory_mb:>12.0f}{best.page_mb:>10.2f}"
        )
    month, best = (
        min(costs[what], key=lambda cost: cost.processor_seconds) for what in ("a month", "a year")
    )
    print(f"page of a year by page of a month: {best.page_mb / month.page_mb:.2f}")
    met = best.processor_seconds <= LIMIT_SECONDS and best.page_mb * 1e6 <= MOST_BYTES
    print(
        f"a year within {LIMIT_SECONDS:g} s and {MOST_BYTES / 1e6:g} MB: "
        f"{'ok' if met else 'MISSED'}"
    )
    return 0 if met else 1


def build(path: Path) -> int:
    """Fill a ledger; returns Unix seconds of its end."""
    ledger = Ledger(path)
    for record, snapshot in cycles_of_slice(NODES):
        ledger.record(record, snapshot)
    fill(path, round(DAYS * 86400 / PERIOD_SECONDS / SLICE))
    span = ledger.span()
    assert span is not None  # noqa: S101 - it has just been filled
    return span[1]


def report(folder: Path, periods: list[int]) -> Cost:
    """Run the command once."""
    command = [
        sys.executable,
        "-m",
        "sharectl",
        "report",
        "--config",
        str(folder / "sharectl.yaml"),
    ]
    command += ["-o", str(folder / "page"), "--from", str(periods[0]), "--to", str(periods[1])]
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "central")},
    )
    _pid, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return Cost(
        seconds,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * 1024 / 1e6,
        (folder / "page" / "index.html").stat().st_size / 1e6,
    )


if __name__ == "__main__":
    sys.exit(main())
