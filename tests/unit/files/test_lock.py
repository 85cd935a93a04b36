from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sharectl.errors import StateError
from sharectl.files.files import only_one


def test_the_folder_of_the_first_cycle_is_made_where_its_place_is_there(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with only_one(tmp_path / "state" / "lock", 0):
            pass
    finally:
        os.umask(before)
    made = (tmp_path / "state").stat()
    assert stat.S_IMODE(made.st_mode) == 0o755
    assert (made.st_uid, made.st_gid) == (tmp_path.stat().st_uid, tmp_path.stat().st_gid)


def test_a_whole_path_is_not_made_and_how_to_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "my states" / "sharectl"
    with pytest.raises(StateError, match=f"mkdir -p '{folder}'"), only_one(folder / "lock", 0):
        pass
    with (
        pytest.raises(StateError, match=f"mkdir -p '{folder}'"),
        only_one(folder, 0, is_folder=True),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "state").symlink_to("elsewhere")
    with (
        pytest.raises(StateError, match="check state_directory"),
        only_one(tmp_path / "state" / "lock", 0),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()
