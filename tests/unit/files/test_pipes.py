from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.files import files
from sharectl.files.yaml import text_of


def test_what_a_pipe_held_when_its_writer_went_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"text")
    os.close(writing)
    for text in ("text", ""):
        with files.open_text(Path(f"/dev/fd/{reading}")) as file:
            assert file.read() == text
    os.close(reading)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/"])
def test_what_is_neither_file_nor_pipe_is_refused(path: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - two kinds, of no common text
        files.open_text(Path(path))


def test_every_verb_that_reads_a_named_file_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "sharectl.yaml"
    config.write_text(
        f"groups: {{cms: {{pledge_hs06: 1}}}}\nstate_directory: {tmp_path}\n", encoding="utf-8"
    )
    for arguments in (["plan", "--jobs", "/dev/zero"], ["publish", "--plan", "/dev/zero"]):
        assert main([*arguments, "--config", str(config)]) == 65
        assert (
            "/dev/zero: cannot be read: it is neither a regular file nor a pipe"
            in capsys.readouterr().err
        )


def test_standard_input_stays_open_for_the_next_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"groups: {}\n")))
    assert text_of(Path("-"), "") == "groups: {}\n"
    assert text_of(Path("-"), "") == ""
