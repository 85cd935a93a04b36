"""`sharectl init` where it must not write (tests/pool/test_documents.py has it on a pool)."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.cli.main import main

NOBODY_LISTENS = ("--collector", "127.0.0.1:1")


@pytest.mark.parametrize("kind", ["file", "folder", "link to nowhere"])
def test_what_is_there_stays_and_the_pool_is_not_asked(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sharectl.yaml"
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nowhere")
    assert main(["init", "-o", str(path), *NOBODY_LISTENS]) == 74
    err = capsys.readouterr().err
    assert err == (
        f"sharectl: {path}: exists already, and init overwrites nothing; name another file with "
        "-o, or move it away\n"
    )
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert kind != "file" or path.read_text() == "mine"


def test_a_silent_collector_is_75_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sharectl.yaml"
    assert main(["init", "-o", str(path), *NOBODY_LISTENS]) == 75
    assert "nobody listens at 127.0.0.1:1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
