from __future__ import annotations

from pathlib import Path

import pytest

from poolbox.__main__ import main
from poolbox.background import runtime_directory
from poolbox.errors import PoolboxError


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_up_says_where_the_shared_folder_and_the_scripts_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["up", "--help"])
    text = capsys.readouterr().out
    assert "SHARECTL_SOURCE = file:$(LOCAL_DIR)/../../shared/sharectl.txt" in text
    assert "STARTD_CRON_JOB_CTL_EXECUTABLE = '$PWD'/startd_cron/job_ctl.py" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up", "--suite", "sid"], "invalid choice"),
        (["up", "--nodes", "0"], "0: write a number of at least 1"),
        (["up", "--group", "cms"], "cms: write NAME=CORES or NAME=SHARE"),
        (["up", "--group", "cms=many"], "cms=many: write NAME=CORES or NAME=SHARE"),
        (["submit"], "required"),
        ([], "required"),
    ],
)
def test_usage_errors_exit_with_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status"], "no pool named 'default' (there is: none); start it"),
        (["status", "--name", "../x"], "name '../x': write letters"),
        (["up", "--config", "/no/such.config"], "/no/such.config: cannot be read"),
        (["up", "--group", "c-m-s=0.4"], "group 'c-m-s': write letters"),
    ],
)
def test_failures_exit_with_1_and_one_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("poolbox: ")
    assert message in said.err


def test_a_runtime_folder_that_others_can_write_to_is_refused() -> None:
    runtime_directory().chmod(0o777)
    with pytest.raises(PoolboxError, match="not a folder that only you can write to"):
        runtime_directory()


def test_a_runtime_folder_that_is_a_link_is_refused(runtime: Path) -> None:
    (runtime / "elsewhere").mkdir()
    (runtime / "poolbox").symlink_to(runtime / "elsewhere")
    with pytest.raises(PoolboxError, match="not a folder that only you can write to"):
        runtime_directory()
