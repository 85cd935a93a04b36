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

from sharectl.ledger.ledger import PLACE, Ledger
from tests.made_cycles import as_kept, made

CHECKOUT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'central'}"}
BEFORE = 6

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

FILE_LIMIT = """\
import resource, signal, sys
from pathlib import Path
from sharectl.ledger.ledger import Ledger
from sharectl.errors import StateError
from tests.made_cycles import made
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
ledger = Ledger(Path(sys.argv[1]))
try:
    for number in range(int(sys.argv[3]), 10000):
        ledger.record(*made(number, nodes=40))
except StateError as error:
    print(number, error)
"""

FULL_DISK = f"""\
import os, sys
from pathlib import Path
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.errors import StateError
from tests.made_cycles import made
from tests.pool.cycles_that_die import fill
from tests.unit.ledger.test_ledger_faults import kept_whole
disk = Path(sys.argv[1])
ledger = Ledger(disk / PLACE)
for number in range({BEFORE}):
    ledger.record(*made(number, nodes=40))
fill(disk, int(sys.argv[2]))
free = os.statvfs(disk).f_bavail
ledger.run_times(["alice"])
assert os.statvfs(disk).f_bavail == free
try:
    for number in range({BEFORE}, 200):
        ledger.record(*made(number, nodes=40))
except StateError as error:
    print(error)
names = [path.name for path in ledger.path.parent.iterdir()]
assert names == [ledger.path.name], "room for what is published"
(disk / "filler").unlink()
kept = kept_whole(ledger.path)
assert kept == number, (kept, number)
ledger.record(*made(kept, nodes=40))
assert kept_whole(ledger.path) == kept + 1
print("sound")
"""

FULL_FROM_THE_FIRST = """\
import sys
from pathlib import Path
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.errors import StateError
from tests.made_cycles import made
from tests.pool.cycles_that_die import fill
from tests.unit.ledger.test_ledger_faults import kept_whole
disk = Path(sys.argv[1])
ledger = Ledger(disk / PLACE)
fill(disk, int(sys.argv[2]))
try:
    ledger.record(*made(0, nodes=40))
except StateError as error:
    print(error)
(disk / "filler").unlink()
assert ledger.record(*made(0, nodes=40)) == 1
assert kept_whole(ledger.path) == 1
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


def test_a_file_that_may_grow_no_more_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / PLACE
    ledger = Ledger(path)
    for number in range(BEFORE):
        ledger.record(*made(number, nodes=40))
    limit = path.stat().st_size + 100_000
    process = child(FILE_LIMIT, path, limit, BEFORE)
    last, _, output = process.communicate(timeout=60)[0].strip().partition(" ")
    assert process.returncode == 0
    assert "make room" in output
    kept = kept_whole(path)
    assert BEFORE <= kept == int(last)
    ledger.record(*made(kept, nodes=40))
    assert kept_whole(path) == kept + 1


@pytest.mark.parametrize("free_pages", [0, 1, 3, 9])
def test_a_full_disk_loses_nothing_and_is_said(tmp_path: Path, free_pages: int) -> None:
    output = on_small_disk(tmp_path, FULL_DISK, 2048, free_pages)
    assert "make room" in output
    assert output.splitlines()[-1] == "sound"


def test_a_disk_that_is_full_from_the_first_cycle_on_has_a_ledger_once_it_is_not(
    tmp_path: Path,
) -> None:
    output = on_small_disk(tmp_path, FULL_FROM_THE_FIRST, 4096, 1)
    assert "make room" in output
    assert output.splitlines()[-1] == "sound"


def on_small_disk(folder: Path, script: str, kib: int, free_pages: int) -> str:
    """Output of a script that runs in a mount namespace, with a disk of so many KiB."""
    place = folder / "disk"
    place.mkdir()
    mount = 'mount -t tmpfs -o size="$1"k none "$2" && shift 2 && exec "$@"'
    namespace = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(kib)]
    # SQLite follows symbolic links itself, so the disk is not to be seen from here by one of /proc.
    return subprocess.run(
        [*namespace, str(place), sys.executable, "-c", script, str(place), str(free_pages)],
        env=ENVIRONMENT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    ).stdout
