"""No verb ends in a traceback, whatever streams, user and numbers it is given."""

from __future__ import annotations

import errno
import mmap  # noqa: F401 - another user may not read the folder of this Python
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Callable

import pytest
import shtab  # noqa: F401 - as mmap

from sharectl.cli.main import TRACEBACK
from sharectl.errors import EXIT_CODES, INTERNAL, INTERRUPTED
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.plan.plan import State
from sharectl.publish.state import StateFile
from tests.made_cycles import made
from tests.verbs import Verb, all_verbs, run, set_output

NOBODY = 65534
VERBS = all_verbs()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Configuration, state and ledger of a pool that does not answer; any user may pass through."""
    place = Path(tempfile.mkdtemp(prefix="sharectl-verbs-"))
    place.chmod(0o755)
    try:
        (place / "sharectl.yaml").write_text(
            "groups: {alice: {pledge_hs06: 5000}, cms: {pledge_hs06: 5000}}\n"
            f"pool: {{collector: '127.0.0.1:{_closed_port()}', collector_deadline_seconds: 5}}\n"
            f"state_directory: {place}/state\nlock_wait_seconds: 5\n"
        )
        (place / "empty").touch()
        yield place
    finally:
        shutil.rmtree(place)


@pytest.fixture
def config(folder: Path) -> Path:
    """The same, with a state directory that no earlier run has touched."""
    state = folder / "state"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(mode=0o700)
    for number in range(2):
        Ledger(state / PLACE).record(*made(number))
    StateFile(state / "state.json").save(State(5))
    return folder / "sharectl.yaml"


def _closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def least(verb: Verb, config: Path) -> list[str]:
    out, empty = str(config.parent / "out"), str(config.parent / "empty")
    return verb.arguments({"output": out, "jobs": empty, "file": empty}, config)


def bad_ends(config: Path, before: Callable[[], object] = lambda: None) -> list[str]:
    """Verbs that end in a traceback, an internal error or an unknown exit code, with the line."""
    lines = []
    for verb in VERBS:
        ended = run(least(verb, config), before)
        lines += [
            f"{verb}: {line}"
            for line in (*ended.err.splitlines(), *ended.out.splitlines())
            if any(text in line for text in ("Traceback", "Exception ignored", "internal error"))
        ]
        if ended.code not in EXIT_CODES or ended.code == INTERNAL:
            lines.append(f"{verb}: exit code {ended.code}: {ended.err}")
    return lines


# ---- what a shell, cron or a service manager does with streams, folder and environment


def closed(*numbers: int) -> Callable[[], None]:
    def close() -> None:
        for number in numbers:
            os.close(number)
            setattr(sys, ("stdin", "stdout", "stderr")[number], None)

    return close


def full(number: int) -> Callable[[], object]:
    return lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), number)


def without_reader() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 1)


def nowhere() -> None:
    """No folder, no home, and neither input nor output."""
    gone = tempfile.mkdtemp()
    os.chdir(gone)
    os.rmdir(gone)  # noqa: PTH106 - it is this process's folder
    os.environ.pop("HOME", None)
    closed(0, 1)()


def become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


WAYS: dict[str, Callable[[], object]] = {
    "nowhere": nowhere,
    "errors-closed": closed(2),
    "output-ascii": lambda: set_output("ascii"),
    "output-full": full(1),
    "another-user": become_nobody,
}


@pytest.mark.parametrize("way", WAYS)
def test_streams_folders_and_users(config: Path, way: str) -> None:
    if way == "another-user" and os.geteuid():
        pytest.skip("only root can become another user")
    assert bad_ends(config, WAYS[way]) == []


def test_a_full_standard_output_is_named_and_a_failure(config: Path) -> None:
    ended = run(["explain", "codes"], full(1))
    assert ended.code == 74
    assert ended.err == "sharectl: standard output: No space left on device; make room\n"
    assert run(["--help"], full(1)).code == 74
    assert run(["status", "--config", str(config)], closed(1)).code == 1


@pytest.mark.parametrize("words", ["check config", "status", "plan", "cycle --dry-run"])
def test_a_locale_without_utf_8(config: Path, tmp_path: Path, words: str) -> None:
    """In a new process: the locale decides on names of files too, and when Python starts."""
    strange = tmp_path / "sharectl.yaml"
    place = "publish: [{file: /srv/\u00fc/sharectl.txt}]\n"
    strange.write_text(config.read_text() + place, encoding="utf-8")
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "sharectl", *words.split(), "--config", str(strange)],
        env={**locale, "PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode in set(EXIT_CODES) - {INTERNAL}


# ---- a person


def as_soon_as_it_runs(act: Callable[[], object]) -> Callable[[], None]:
    """Call ``act`` once the verb's own function is called."""

    def look(frame: FrameType, event: str, _argument: object) -> None:
        caller = frame.f_back
        file = Path(frame.f_code.co_filename)
        is_verb = file.parent.name in ("cli", "verbs") and file.name != "main.py"
        if event == "call" and is_verb and caller and caller.f_code.co_name == "_run":
            sys.setprofile(None)
            act()

    def before() -> None:
        os.environ.pop(TRACEBACK, None)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.setprofile(look)

    return before


def test_ctrl_c(config: Path) -> None:
    for verb in VERBS:
        interrupted = as_soon_as_it_runs(lambda: signal.raise_signal(signal.SIGINT))
        ended = run(least(verb, config), interrupted)
        assert (ended.code, ended.err) == (INTERRUPTED, "sharectl: interrupted\n"), str(verb)


def test_files_that_sharectl_keeps_may_hold_anything(config: Path) -> None:
    content = (
        '{"schema_version": 1, "sequence": N, "since": N, "until": N, "who": "x", "reason": "x", '
        '"places": N}'
    )
    for name in ("state.json", "places.json", "disabled"):
        (config.parent / "state" / name).write_text(content.replace("N", "9" * 5000))
    assert bad_ends(config) == []


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyError("gone"), INTERNAL, "sharectl: internal error at "),
        (BrokenPipeError(errno.EPIPE, "Broken pipe", "fifo"), 74, "sharectl: fifo: Broken pipe"),
    ],
)
def test_an_error_of_a_verb_is_one_line(error: Exception, code: int, words: str) -> None:
    def broken() -> None:
        raise error

    ended = run(["explain", "codes"], as_soon_as_it_runs(broken))
    assert (ended.code, ended.err.count("\n"), ended.err[: len(words)]) == (code, 1, words)


def test_a_reader_who_has_had_enough_changes_no_exit_code(config: Path) -> None:
    silent = run(["status", "--config", str(config)], without_reader)
    assert (silent.code, "standard output" in silent.err) == (1, False)
