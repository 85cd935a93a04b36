"""Tasks in processes: order, errors, interrupts, and no process that stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS, wait_for
from sharectl.errors import ConfigError, SharectlError
from sharectl_lab.study.many import Progress, Task, run_many

CHECKOUT = Path(__file__).parents[3]


def square(number: int, progress: Progress) -> int:
    """The first task takes longest."""
    for _step in range(4 - number):
        time.sleep(0.1)
        progress(0.5)
    return number * number


def last(number: int, others: Path, progress: Progress) -> int:
    """The first task ends when another one was handed over."""
    deadline = time.monotonic() + HANG_SECONDS
    while number == 0 and not others.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
        progress(0.5)
    return number


def endless(number: int, place: Path, progress: Progress) -> tuple[int, str]:
    (place / f"{number}").write_text(str(os.getpid()))
    deadline = time.monotonic() + HANG_SECONDS
    try:
        while time.monotonic() < deadline:
            time.sleep(0.02)
            progress(0.1)
    except KeyboardInterrupt:
        return number, "partial"
    return number, "never interrupted"


def failing(_progress: Progress) -> int:
    raise ConfigError(["one", "two"])


def broken(_progress: Progress) -> int:
    raise ZeroDivisionError("by nothing")


def killed(_progress: Progress) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("processes", [1, 2])
def test_results_are_in_the_order_of_the_tasks(processes: int) -> None:
    parts: list[float] = []
    tasks = [partial(square, number) for number in range(3)]
    assert run_many(tasks, processes, parts.append) == [0, 1, 4]
    assert parts[-1] == 1.0
    assert run_many([], processes, parts.append) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_errors_of_tasks_are_errors_of_the_call(processes: int) -> None:
    with pytest.raises(SharectlError) as raised:
        run_many([failing, failing], processes, lambda _part: None)
    assert (str(raised.value), raised.value.exit_code) == ("one; two", 78)
    with pytest.raises((RuntimeError, ZeroDivisionError), match="by nothing"):
        run_many([broken, broken], processes, lambda _part: None)


def test_a_task_that_is_killed_is_an_error_and_ends_the_others(tmp_path: Path) -> None:
    tasks: list[Task[object]] = [partial(endless, 0, tmp_path), killed]
    with pytest.raises(SharectlError, match="ended with -9"):
        run_many(tasks, 2, lambda _part: None)
    begun = [int(path.read_text() or 0) for path in tmp_path.iterdir()]
    assert all(is_gone(pid) for pid in begun if pid)


CODE = """
import sys
from functools import partial
from pathlib import Path
from tests.unit.lab.test_many import endless
from sharectl_lab.study.many import run_many
if __name__ == "__main__":
    tasks = [partial(endless, number, Path(sys.argv[1])) for number in range(3)]
    print(run_many(tasks, int(sys.argv[2]), lambda part: None), flush=True)
"""


def begun(tmp_path: Path, processes: int) -> tuple[subprocess.Popen[str], list[int]]:
    """A process with endless tasks, and the processes of those that run."""
    program, place = tmp_path / "program.py", tmp_path / "begun"
    program.write_text(CODE)
    place.mkdir()
    parent = subprocess.Popen(
        [sys.executable, str(program), str(place), str(processes)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'central'}"},
        start_new_session=True,
    )

    def are_there() -> bool:
        return sum(bool(path.read_text()) for path in place.iterdir()) == processes

    wait_for(lambda: are_there() or parent.poll() is not None, "tasks run")
    return parent, [int(path.read_text()) for path in place.iterdir()]


@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "kill"])
@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupt_returns_partial_results(
    tmp_path: Path, processes: int, *, whole_group: bool
) -> None:
    parent, children = begun(tmp_path, processes)
    (os.killpg if whole_group else os.kill)(parent.pid, signal.SIGINT)
    out, _ = parent.communicate(timeout=HANG_SECONDS)
    results = [(number, "partial") if number < processes else None for number in range(3)]
    assert (parent.returncode, out.strip()) == (0, str(results))
    assert all(is_gone(pid) for pid in children)


def test_a_parent_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    parent, children = begun(tmp_path, 2)
    parent.kill()
    parent.communicate(timeout=HANG_SECONDS)
    assert len(children) == 2
    wait_for(lambda: all(is_gone(pid) for pid in children), "the tasks are gone")


@pytest.mark.parametrize("processes", [1, 2])
def test_results_are_handed_over_as_they_come(tmp_path: Path, processes: int) -> None:
    came: list[tuple[int, int]] = []
    others = tmp_path / "others"
    if processes == 1:
        others.touch()
    tasks: list[Task[int]] = [partial(last, number, others) for number in range(3)]

    def done(number: int, result: int) -> None:
        came.append((number, result))
        others.touch()

    results = run_many(tasks, processes, lambda _part: None, done)
    assert sorted(came) == list(enumerate(results))
    assert (came[0][0] == 0) == (processes == 1)
