from __future__ import annotations

import os
from pathlib import Path
from typing import Callable

import pytest

from sharectl.errors import StateError
from sharectl.files.files import only_one_in
from sharectl.model import Disabled
from sharectl.publish.switch import DisabledFile
from tests.fakes import NOW

SAID = Disabled('new "cooling" für Raum 3', "ann@cm", NOW, NOW + 60)


def test_what_was_said_is_read_back_and_ends_with_enable(tmp_path: Path) -> None:
    switch = DisabledFile(tmp_path)
    assert switch.disabled() is None
    switch.disable(SAID)
    assert switch.disabled() == SAID
    switch.enable()
    assert switch.disabled() is None
    switch.enable()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"reason": 1, "who": "a", "since": 1, "until": null}',
        b'{"reason": "r", "who": "a", "since": "yesterday", "until": null}',
        b'{"reason": "r", "who": "a", "since": 1, "until": true}',
        b'{"reason": "r", "who": "a", "since": 1, "until": 1e400}',
        b'{"reason": "r", "who": "a", "since": 1}',
    ],
)
def test_a_file_that_says_nothing_counts_without_an_end(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "disabled"
    path.write_bytes(content)
    os.utime(path, (NOW, NOW))
    said = DisabledFile(tmp_path).disabled()
    assert said is not None
    assert (said.reason, said.since, said.until) == ("made by hand", NOW, None)


def test_whatever_else_has_its_name_counts(tmp_path: Path) -> None:
    path = tmp_path / "disabled"
    makers: tuple[Callable[[], object], ...] = (
        path.mkdir,
        lambda: os.mkfifo(path),
        lambda: path.symlink_to("/nowhere"),
    )
    for make in makers:
        make()
        said = DisabledFile(tmp_path).disabled()
        assert said is not None
        assert said.in_force_at(2**33)
        path.rmdir() if path.is_dir() else path.unlink()


def test_what_it_says_cannot_steer_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "disabled").write_text(
        '{"reason": "\\u001b[31mred\\n", "who": "a\\tb", "since": 1, "until": null}',
        encoding="utf-8",
    )
    said = DisabledFile(tmp_path).disabled()
    assert said == Disabled("?[31mred?", "a?b", 1)


def test_only_what_has_run_out_is_removed_by_itself(tmp_path: Path) -> None:
    switch = DisabledFile(tmp_path)
    switch.disable(SAID)
    assert not switch.enable_after(NOW + 59)
    assert switch.disabled() == SAID
    assert switch.enable_after(NOW + 60)
    assert switch.disabled() is None
    assert switch.enable_after(NOW)


def test_nobody_who_holds_the_folder_keeps_anyone_from_switching_off(tmp_path: Path) -> None:
    switch = DisabledFile(tmp_path)
    switch.wait_seconds = 0
    with only_one_in(tmp_path, 0):
        switch.disable(SAID)
        assert switch.disabled() == SAID
        assert not switch.enable_after(NOW + 60), "in doubt it stays off"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="nowhere: cannot be opened"):
        DisabledFile(tmp_path / "nowhere").disable(SAID)
    assert DisabledFile(tmp_path / "nowhere").disabled() is None


def test_a_directory_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "disabled").mkdir()
    with pytest.raises(StateError, match="cannot be removed"):
        DisabledFile(tmp_path).enable()
