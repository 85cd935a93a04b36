from __future__ import annotations

import os
from pathlib import Path
from typing import Callable

import pytest

from sharectl.errors import StateError
from sharectl.files.files import only_one
from sharectl.model import Disabled
from sharectl.publish.disabled_file import DisabledFile
from tests.fakes import NOW

OFF = Disabled('new "cooling" für Raum 3', "ann@cm", NOW, NOW + 60)


def written(fields: str) -> bytes:
    return b'{"schema_version": 1, ' + fields.encode() + b"}"


MADE: dict[str, Callable[[Path], object]] = {
    "empty": Path.touch,
    "wrong": lambda path: path.write_bytes(
        written('"reason": "r", "who": "a", "since": 1, "until": true')
    ),
    "folder": Path.mkdir,
    "FIFO": os.mkfifo,
    "link": lambda path: path.symlink_to("/nowhere"),
}


@pytest.mark.parametrize("kind", MADE)
def test_anything_of_its_name_counts_without_an_end(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "disabled"
    MADE[kind](path)
    os.utime(path, (NOW, NOW), follow_symlinks=False)
    off = DisabledFile(tmp_path).disabled()
    assert off is not None
    assert (off.reason, off.since, off.until) == ("made by hand", NOW, None)


def test_a_reason_cannot_steer_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "disabled").write_bytes(
        written('"reason": "\\u001b[31mred\\n", "who": "a\\tb", "since": 1, "until": null')
    )
    assert DisabledFile(tmp_path).disabled() == Disabled(r"\x1b[31mred\n", r"a\tb", 1)


def test_a_reason_is_read_back_until_it_is_removed_or_has_run_out(tmp_path: Path) -> None:
    switch = DisabledFile(tmp_path)
    assert switch.disabled() is None
    for end in (switch.enable, lambda: switch.enable_after(NOW + 60)):
        switch.disable(OFF)
        assert not switch.enable_after(NOW + 59)
        assert switch.disabled() == OFF
        end()
        assert switch.disabled() is None
    switch.enable()
    assert switch.enable_after(NOW)


def test_a_process_that_holds_the_folder_keeps_nobody_from_switching_off(tmp_path: Path) -> None:
    switch = DisabledFile(tmp_path, wait_seconds=0)
    with only_one(tmp_path, 0, is_folder=True):
        switch.disable(OFF)
        assert switch.disabled() == OFF
        assert not switch.enable_after(NOW + 60), "in doubt it stays off"


def test_a_missing_folder_and_a_folder_in_its_place_are_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="nowhere"):
        DisabledFile(tmp_path / "nowhere" / "state").disable(OFF)
    assert DisabledFile(tmp_path / "nowhere").disabled() is None
    (tmp_path / "disabled").mkdir()
    with pytest.raises(StateError, match=f"{tmp_path}/disabled"):
        DisabledFile(tmp_path).enable()
