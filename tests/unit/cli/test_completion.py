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


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_can_read_it_and_it_knows_every_option(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        required = os.environ.get("POOL_REQUIRED") == "1"
        (pytest.fail if required else pytest.skip)(f"install {shell}")
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    (script := tmp_path / "completion").write_text(text)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "dumb"}
    words = [shell, "-n", str(script)]
    done = subprocess.run(
        words, capture_output=True, timeout=HANG_SECONDS, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
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
