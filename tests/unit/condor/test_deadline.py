from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from poolbox.waiting import wait_for
from sharectl.condor.deadline import Question, ask_all
from sharectl.files.files import only_one


def _hang() -> None:
    # As the bindings do: hold on to the process and heed nothing but SIGKILL.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


def _raise() -> None:
    raise ValueError("no such daemon")


def _die() -> None:
    os._exit(3)


def test_each_question_gets_its_answer_or_its_problem_in_its_order() -> None:
    answers = ask_all(
        {
            "hangs": Question(_hang, 0.3),
            "raises": Question(_raise, 10),
            "dies": Question(_die, 10),
            "answers": Question(lambda: list(range(100_000)), 10),
        }
    )
    assert list(answers) == ["hangs", "raises", "dies", "answers"]
    assert {name: answer.source.problem for name, answer in answers.items()} == {
        "hangs": "no answer within 0.3 s",
        "raises": "ValueError: no such daemon",
        "dies": "the query ended without an answer (exit code 3)",
        "answers": None,
    }
    assert len(answers["answers"].value) == 100_000
    assert 0.3 <= answers["hangs"].source.seconds < 5


def test_questions_are_asked_at_once(tmp_path: Path) -> None:
    """Each answers only while all the others are being asked."""

    def answer() -> int:
        (tmp_path / str(os.getpid())).touch()
        while len(list(tmp_path.iterdir())) < 6:
            time.sleep(0.02)
        return 1

    answers = ask_all({str(number): Question(answer, 60) for number in range(6)})
    assert [answer.value for answer in answers.values()] == [1] * 6


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    def hang() -> None:
        (tmp_path / str(os.getpid())).touch()
        _hang()

    ask_all({"hangs": Question(hang, 3)})
    (mark,) = tmp_path.iterdir()
    assert not Path("/proc", mark.name).exists()


HOLDER = """\
import os, sys, time
from pathlib import Path
from sharectl.condor.deadline import Question, ask_all
from sharectl.files.files import only_one

def hang():
    Path(sys.argv[2]).write_text(str(os.getpid()))
    time.sleep(600)

with only_one(Path(sys.argv[1]), 0):
    ask_all({"hangs": Question(hang, 600)})
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_killed_process_frees_the_lock_and_ends_its_children(
    tmp_path: Path, number: signal.Signals
) -> None:
    lock, mark = tmp_path / "lock", tmp_path / "child"
    command = [sys.executable, "-c", HOLDER, str(lock), str(mark)]
    with subprocess.Popen(command) as holder:
        try:
            wait_for(lambda: mark.exists() and mark.read_text(), "the child")
        finally:
            holder.send_signal(number)
    with only_one(lock, wait_seconds=0):
        pass
    wait_for(lambda: not Path("/proc", mark.read_text()).exists(), "its end")


def test_a_child_does_not_hold_the_lock_of_its_parent(tmp_path: Path) -> None:
    with only_one(tmp_path / "lock", 0), only_one(tmp_path, 0, is_folder=True):
        answers = ask_all({"child": Question(_open_files, 10)})
    assert [name for name in answers["child"].value if name.startswith(str(tmp_path))] == []


def _open_files() -> list[str]:
    places = Path("/proc/self/fd").iterdir()
    return [str(place.readlink()) for place in places if place.is_symlink()]
