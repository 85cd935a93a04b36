"""The ledger without room, and killed while it writes: in processes of their own, on real files."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.ledger.ledger import PLACE, Ledger
from tests.made_cycles import as_kept, made

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

RECORDS = """\
import sys
from pathlib import Path
from sharectl.ledger.ledger import Ledger
from tests.made_cycles import made
ledger = Ledger(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), 10000):
    ledger.record(*made(number, nodes=40))
    print(number, flush=True)
"""

FULL_DISK = """\
import os, sys
from pathlib import Path
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.errors import StateError
from tests.made_cycles import made
from tests.pool.cycles_that_die import fill
from tests.unit.ledger.test_ledger_faults import kept_whole
disk, pages, before = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
ledger = Ledger(disk / PLACE)
for number in range(before):
    ledger.record(*made(number, nodes=40))
fill(disk, pages)
free = os.statvfs(disk).f_bavail
ledger.run_times(["alice"])
assert os.statvfs(disk).f_bavail == free
try:
    for number in range(before, 200):
        ledger.record(*made(number, nodes=40))
except StateError as error:
    print(error)
names = [path.name for path in disk.rglob("*") if path.is_file()]
assert set(names) <= {ledger.path.name, "filler"}, "room for what is published"
(disk / "filler").unlink()
assert before == 0 or kept_whole(ledger.path) == number
assert ledger.record(*made(number, nodes=40)) == number + 1
assert kept_whole(ledger.path) == number + 1
print("sound")
"""


def child(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)


def kept_whole(path: Path) -> int:
    """Number of cycles that a file has that is in order, each of them whole."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    kept = list(Ledger(path).cycles(0, 2**40, with_nodes=True))
    for place, record in enumerate(kept):
        assert record == as_kept(made(place, nodes=40)[0], place + 1)
    return len(kept)


def test_a_killed_writer_leaves_whole_cycles(tmp_path: Path) -> None:
    path = tmp_path / PLACE
    recorded = 0
    for turn in range(6):
        process = child(RECORDS, path, recorded)
        assert process.stdout is not None
        recorded = int(process.stdout.readline()) + 1
        # At another place of a record each time.
        time.sleep(0.007 * turn)
        process.send_signal(signal.SIGKILL)
        recorded += len(process.communicate()[0].splitlines())
        kept = kept_whole(path)
        assert kept - recorded in (0, 1), (
            "each cycle that was printed is there; one more may be, that was not printed yet"
        )
        recorded = kept


@pytest.mark.parametrize(
    ("kib", "free_pages", "before"),
    [*((2048, pages, 6) for pages in (0, 1, 3, 9)), (4096, 1, 0)],
)
def test_a_full_disk_loses_nothing_and_is_said(
    tmp_path: Path, kib: int, free_pages: int, before: int
) -> None:
    """The script runs in a mount namespace, with a disk of so many KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = 'mount -t tmpfs -o size="$1"k none "$2" && shift 2 && exec "$@"'
    namespace = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(kib)]
    # SQLite follows symbolic links itself, so the disk is not to be seen from here by one of /proc.
    script = [sys.executable, "-c", FULL_DISK, str(place), str(free_pages), str(before)]
    output = subprocess.run(
        [*namespace, str(place), *script],
        env=ENVIRONMENT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=HANG_SECONDS,
    ).stdout
    assert "make room" in output
    assert output.splitlines()[-1] == "sound"
