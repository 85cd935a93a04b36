"""The command that pool tests run, imported already, is the one that users start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from poolbox.waiting import wait_for
from tests.pool import imported_command

ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[3] / "central")}


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sharectl", *arguments]
    return subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("explain", "codes"), id="it prints"),
        pytest.param(("plan", "--nope"), id="usage"),
        pytest.param(("cycle", "--config", "/nonexistent/sharectl.yaml"), id="configuration"),
    ],
)
def test_it_does_and_says_the_same(arguments: tuple[str, ...]) -> None:
    wanted = started(*arguments)
    seen = imported_command.run(arguments, ENVIRONMENT, 60)
    assert (seen.returncode, seen.stdout, seen.stderr) == (
        wanted.returncode,
        wanted.stdout,
        wanted.stderr,
    )


def test_each_run_has_its_own_environment_and_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = imported_command.run(("snapshot", "--config", "here.yaml"), ENVIRONMENT, 60)
    Path("here.yaml").write_text("nonsense: 1\n")
    wrong = imported_command.run(("snapshot", "--config", "here.yaml"), ENVIRONMENT, 60)
    assert "there is no such file" in missing.stderr
    assert "nonsense" in wrong.stderr


def test_what_takes_too_long_is_killed(tmp_path: Path) -> None:
    pipe = tmp_path / "never-written"
    os.mkfifo(pipe)
    imported_command.run(("--version",), ENVIRONMENT, 60)
    with pytest.raises(subprocess.TimeoutExpired):
        imported_command.run(("errors", "--config", str(pipe)), ENVIRONMENT, 2)
    wait_for(lambda: not is_read(pipe), 10, "nobody reads it any more")


def is_read(pipe: Path) -> bool:
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True
