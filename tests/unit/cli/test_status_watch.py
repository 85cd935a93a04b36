"""`sharectl status` on one screen, and `--watch` on a pseudo-terminal."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.report import as_json
from sharectl.report.status import status_tables
from sharectl.report.tables import LINES, WIDTH
from tests.simulated import cycles
from tests.unit.cli.conftest import Run
from tests.verbs import Terminal

HOME, ENTER, LEAVE = "\x1b[H", "\x1b[?1049h", "\x1b[?1049l"
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def status_of_a_pool() -> dict[str, Any]:
    """Content of `status --json` of a simulated pool of five groups, without its collector."""
    records = [record for record, _ in cycles(0.3)]
    record = records[-1]
    cycle = {
        "taken_at": record.taken_at,
        "seconds": record.seconds,
        "complete": True,
        "plan": {"reason": record.reason, "limits": ({"code": "dwell", "nodes": 3},)},
        "errors": as_json.errors(0, tuple(row.error for row in record.groups))["groups"],
        "controllers": [
            {
                "group": row.group,
                "due_hs06": row.due_hs06,
                "shortfall_hs06": row.shortfall_hs06,
            }
            for row in record.groups
        ],
        "present_hs06": record.present_hs06,
        "shortfall_hs06": record.shortfall_hs06,
        "groups": as_json.group_reasons(record),
        "waits": [asdict(waits) for waits in record.waits],
        "idle_cores": {
            "all": record.idle_cores,
            "target": record.idle_target_cores,
            "grace": record.idle_grace_cores,
        },
        "nodes": {"controlled": 8, "target": 5, "not_obeying": 1, "refused": 0},
    }
    place = {
        "place": "/var/lib/sharectl/sharectl.txt",
        "targets": 5,
        "sequence": record.sequence,
        "valid_for_seconds": 2954,
        "signed_by": "k2026",
        "verified": True,
    }
    nodes = {
        "problem": None,
        "slots": 8,
        "controlled": 8,
        "with_target": 5,
        "in_grace": 1,
        "idle_grace_cores": 8,
        "disabled": 0,
        "disabled_by_knob": 0,
        "multicore_only": 0,
        "hot": 0,
        "reasons": {"ok": 7, "no-target": 1},
        "versions": {"0.1.0": 8},
    }
    return {
        "now": record.taken_at + 106,
        "mode": "steer",
        "last_cycle": cycle,
        "published": [place],
        "nodes": nodes,
        "blocks": {"free": [], "left_alone": []},
    }


@pytest.mark.parametrize(("columns", "lines"), [(WIDTH, LINES), (100, 39)])
def test_five_groups_fit_on_a_screen(
    monkeypatch: pytest.MonkeyPatch, columns: int, lines: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    status, terminal, pipe = status_of_a_pool(), Terminal(), io.StringIO()
    status_tables(status, None, terminal)
    status_tables(status, None, pipe)
    shown = ANSI.sub("", terminal.getvalue()).splitlines()
    assert len(shown) <= lines, terminal.getvalue()
    assert max(map(len, shown)) <= columns
    assert "\x1b" not in pipe.getvalue()
    headings = [line.split() for line in pipe.getvalue().splitlines() if "pledge" in line]
    assert headings in ([line.split()] for line in shown if "pledge" in line)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--watch", "--json"], "not allowed with argument"),
        (["--watch"], "--watch needs a terminal"),
        (["--watch", "0"], "write whole seconds from 1 to 3600"),
        (["--watch=5m"], "write whole seconds from 1 to 3600"),
    ],
)
def test_a_watch_that_cannot_be_is_refused(run: Run, words: list[str], message: str) -> None:
    code, out, err = run("status", *words)
    assert (code, out) == (2, "")
    assert message in err


class Watched:
    """`sharectl status --watch 1` on a terminal."""

    def __init__(self, config: Path, lines: int, columns: int, **environment: str) -> None:
        self.seen = ""
        words = [sys.executable, "-m", "sharectl", "status", "--watch", "1", "--config"]
        self.pid, self.terminal = pty.fork()
        # These would stand for the terminal's size, whoever runs the tests.
        inherited = {name: os.environ[name] for name in os.environ.keys() - {"COLUMNS", "LINES"}}
        if self.pid == 0:
            # A shell ignores it for what runs in the background, and so would this.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execvpe(words[0], [*words, str(config)], {**inherited, **environment})  # noqa: S606
        self.resize(lines, columns)

    def resize(self, lines: int, columns: int) -> None:
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, size)

    def until(self, pattern: str, after: int = 0) -> int:
        """End of the first match of a pattern behind a place of all that was seen."""
        search = re.compile(pattern, re.DOTALL).search
        self.read_until(lambda: search(self.seen, after) is not None)
        match = search(self.seen, after)
        assert match
        return match.end()

    def read_until(self, comes: Callable[[], bool]) -> None:
        """Read what it writes until that has come."""
        until = time.monotonic() + HANG_SECONDS
        while not comes():
            assert time.monotonic() < until, self.seen
            if select.select([self.terminal], [], [], 1)[0]:
                try:
                    self.seen += os.read(self.terminal, 65_536).decode()
                except OSError:  # it has ended
                    pytest.fail(self.seen)

    def frames(self) -> list[list[str]]:
        """Lines of each whole screen."""
        whole = (ANSI.sub("", frame) for frame in self.seen.split(HOME)[1:-1])
        return [frame.splitlines() for frame in whole if frame]

    def ended(self) -> int:
        """Exit code once the terminal is put back."""
        self.until(re.escape(LEAVE))
        return self.waited()

    def waited(self) -> int:
        """Exit code once it has ended."""
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        """End it if a test has failed before that."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.waited()
        os.close(self.terminal)


Watch = Callable[..., Watched]


@pytest.fixture
def watch(config: Path) -> Iterator[Watch]:
    with ExitStack() as stack:
        yield lambda **environment: stack.enter_context(
            closing(Watched(config, 24, 80, **environment))
        )


def test_a_watch_redraws_survives_and_ends(config: Path, watch: Watch) -> None:
    watched = watch()
    # No pool is there: that is a line of the screen.
    at = watched.until(re.escape(HOME) + ".*sharectl status at .*problem.*127.0.0.1:1")
    at = watched.until(re.escape(HOME) + ".*" + re.escape(HOME) + ".*" + re.escape(HOME), at)
    before = config.read_text(encoding="utf-8")
    config.write_text(f"{before}nonsense: 1\n", encoding="utf-8")
    at = watched.until("nonsense.*" + re.escape(HOME), at)
    config.write_text(before, encoding="utf-8")
    at = watched.until("status at .*127.0.0.1:1.*" + re.escape(HOME), at)
    frames = watched.frames()
    assert len(frames) > 4
    assert {len(frame) for frame in frames} == {24}
    assert {len(line) for frame in frames for line in frame} == {80}
    watched.resize(10, 60)
    watched.read_until(lambda: [len(line) for line in watched.frames()[-1]] == [60] * 10)
    os.write(watched.terminal, termios.tcgetattr(watched.terminal)[6][termios.VINTR])
    assert watched.ended() == 0
    assert watched.seen.count(ENTER) == watched.seen.count(LEAVE) == 1
    behind = watched.seen.partition(LEAVE)[2]
    assert "Traceback" not in behind


def test_a_watch_that_is_killed_puts_the_terminal_back(watch: Watch) -> None:
    watched = watch()
    watched.until("sharectl status at ")
    os.kill(watched.pid, signal.SIGTERM)
    assert watched.ended() == 0


def test_a_watch_needs_a_terminal_that_moves_its_cursor(watch: Watch) -> None:
    watched = watch(TERM="dumb")
    watched.until("--watch needs a terminal")
    assert watched.waited() == 2
