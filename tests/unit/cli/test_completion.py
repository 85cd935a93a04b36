"""Completion, tried in the shells themselves."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.cli.completion import SHELLS
from sharectl.cli.main import VERBS, main
from tests.verbs import all_verbs

# As bash calls the function of a command when Tab is pressed behind the words of argv.
PRESSED_IN_BASH = """\
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
function=$(complete -p sharectl | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
"$function" sharectl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
BROKEN = "if then {{{\n"


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
    (tmp_path / "here.yaml").touch()
    (tmp_path / "folder").mkdir()
    return path


def in_bash(script: Path, *words: str) -> set[str]:
    """Proposals behind ``sharectl`` and ``words``, the last of which is begun."""
    arguments = ("-c", PRESSED_IN_BASH, "bash", str(script), "sharectl", *words)
    printed = shell("bash", "--norc", *arguments, folder=script.parent)
    return set(printed.split())


def in_fish(script: Path, *words: str) -> set[str]:
    line = shlex.quote(shlex.join(["sharectl", *words[:-1]]) + f" {words[-1]}")
    code = f"source {script}; complete -C {line}"
    printed = shell("fish", "--no-config", "-c", code, folder=script.parent)
    return {row.split("\t")[0] for row in printed.splitlines()}


@pytest.mark.parametrize(
    ("script", "proposals"), [("bash", in_bash), ("fish", in_fish)], indirect=["script"]
)
def test_words_are_completed(script: Path, proposals: object) -> None:
    assert callable(proposals)
    assert proposals(script, "") >= set(VERBS)
    assert proposals(script, "led") == {"ledger"}
    assert proposals(script, "explain", "") >= {"group", "node", "cycle", "job", "codes"}
    assert proposals(script, "cycle", "--") >= {"--config", "--json", "--dry-run"}
    assert proposals(script, "ledger", "export", "--what", "") >= {"groups", "nodes"}
    assert "here.yaml" in proposals(script, "check", "config", "--config", "he")
    assert {word.strip("/") for word in proposals(script, "report", "-o", "")} == {"folder"}


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
    assert len(options) > 50
    assert [option for option in sorted(options) if option.strip("-") not in text] == []


@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_that_cannot_read_a_script_says_so(name: str, tmp_path: Path) -> None:
    """The test above could fail."""
    (tmp_path / "broken").write_text(BROKEN)
    with pytest.raises(AssertionError):
        shell(name, "-n", "broken", folder=tmp_path)


def test_another_shell_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "csh"])
    assert ended.value.code == 2
    assert '"csh" is invalid; did you mean zsh?' in capsys.readouterr().err
