"""Completion, tried in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.cli.completion import SHELLS
from sharectl.cli.main import VERBS, main
from tests.verbs import all_verbs


def shell(name: str, *words: str, folder: Path) -> str:
    """Output of a shell without any configuration of its user."""
    if shutil.which(name) is None:
        required = os.environ.get("POOL_REQUIRED") == "1"
        (pytest.fail if required else pytest.skip)(f"install {name}")
    done = subprocess.run(
        [name, *words],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Completion for the shell of the test, as the verb prints it."""
    capsys: pytest.CaptureFixture[str] = request.getfixturevalue("capsys")
    assert main(["completion", request.param]) == 0
    path = tmp_path / f"completion.{request.param}"
    path.write_text(capsys.readouterr().out)
    return path


@pytest.mark.parametrize("script", SHELLS, indirect=True)
def test_each_shell_can_read_it_and_it_knows_every_option(script: Path) -> None:
    name = script.suffix[1:]
    shell(name, "-n", str(script), folder=script.parent)
    text = script.read_text()
    options = {
        option
        for verb in all_verbs()
        for action in verb.actions
        for option in action.option_strings
        if option.startswith("--")
    }
    assert len(options) > 30
    assert [verb for verb in VERBS if verb not in text] == []
    assert [option for option in sorted(options) if option.strip("-") not in text] == []
