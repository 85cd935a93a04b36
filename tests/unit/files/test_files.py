from __future__ import annotations

import io
import os
import resource
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.errors import StateError
from sharectl.files import files
from sharectl.files.files import only_one
from sharectl.files.yaml import text_of


def test_replace_sets_the_mode_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "sharectl.txt"
    umask = os.umask(0o077)
    try:
        files.replace(path, ["a\n", "b\n"])
    finally:
        os.umask(umask)
    assert path.read_text(encoding="utf-8") == "a\nb\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_failed_replace_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "sharectl.txt"
    path.write_text("old", encoding="utf-8")

    def chunks() -> object:
        yield "new"
        raise OSError(28, "No space left on device")

    with pytest.raises(StateError, match=r"sharectl\.txt: cannot be written: No space left"):
        files.replace(path, chunks())  # type: ignore[arg-type]
    assert [(entry.name, entry.read_text(encoding="utf-8")) for entry in tmp_path.iterdir()] == [
        ("sharectl.txt", "old")
    ]


def test_half_a_line_from_a_crash_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("whole\nhalf of a line", encoding="utf-8")
    files.append_lines(path, ["next"])
    assert path.read_text(encoding="utf-8") == "whole\nnext\n"


def test_a_line_that_is_too_long_is_refused_and_nothing_is_added(tmp_path: Path) -> None:
    path = tmp_path / "log"
    files.append_lines(path, ["first"])
    with pytest.raises(StateError, match="longer than"):
        files.append_lines(path, ["second", "x" * files.MAX_LINE_BYTES])
    assert path.read_text(encoding="utf-8") == "first\n"


def test_without_room_for_all_lines_none_is_added(tmp_path: Path) -> None:
    path, limits = tmp_path / "log", resource.getrlimit(resource.RLIMIT_FSIZE)
    files.append_lines(path, ["first"])
    resource.setrlimit(resource.RLIMIT_FSIZE, (12, limits[1]))
    try:
        with pytest.raises(StateError, match="File too large"):
            files.append_lines(path, ["second", "third"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text(encoding="utf-8") == "first\n"


@pytest.mark.parametrize("keep", [1, 2])
def test_rotation_keeps_as_many_as_asked(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "log"
    for _ in range(3):
        path.write_text("full", encoding="utf-8")
        files.rotate(path, max_bytes=4, keep=keep)
    assert len(list(tmp_path.iterdir())) == keep


def test_what_root_makes_belongs_to_the_owner_of_the_folder(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, 12346)
    files.append_lines(tmp_path / "log", ["line"])
    with only_one(tmp_path / "lock", 0):
        pass
    folder = tmp_path.stat()
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in tmp_path.iterdir()}
    assert owners == {(folder.st_uid, folder.st_gid)}


def test_what_killed_writers_left_is_removed_once_it_is_old(tmp_path: Path) -> None:
    names = (".a[1].txt.abcdefgh", ".a[1].txt.bcdefghi", ".b.txt.abcdefgh", ".a[1].txt.swp")
    for name in names:
        (tmp_path / name).touch()
    for name in (names[0], *names[2:]):
        os.utime(tmp_path / name, (1, 1))
    files.replace(tmp_path / "a[1].txt", ["whole\n"])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted((*names[1:], "a[1].txt"))


MADE: dict[str, Callable[[Path], None]] = {
    "a symbolic link": lambda path: path.symlink_to("real"),
    "a FIFO": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3)),
}
WRITING: dict[str, Callable[[Path], None]] = {
    "replace": lambda path: files.replace(path, ["new\n"]),
    "append": lambda path: files.append_lines(path, ["new"]),
    "rotate": lambda path: files.rotate(path, max_bytes=0, keep=1),
}


@pytest.mark.parametrize("verb", WRITING)
@pytest.mark.parametrize("kind", MADE)
def test_a_link_gives_way_to_a_new_file_and_all_else_stays(
    tmp_path: Path, verb: str, kind: str
) -> None:
    path, real = tmp_path / "sharectl.txt", tmp_path / "real"
    if kind == "a device" and os.geteuid():
        pytest.skip("only root can make a device")
    real.write_text("old", encoding="utf-8")
    MADE[kind](path)
    before = os.lstat(path)
    if verb == "replace" and kind in ("a symbolic link", "a FIFO"):
        WRITING[verb](path)
        assert stat.S_ISREG(os.lstat(path).st_mode)
        assert path.read_text(encoding="utf-8") == "new\n"
    else:
        with pytest.raises(StateError, match=rf"{path}: not written: "):
            WRITING[verb](path)
        after = os.lstat(path)
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert real.read_text(encoding="utf-8") == "old"
    assert {left.name for left in tmp_path.iterdir()} == {"real", path.name}


# ---- locks


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
    folder = tmp_path / "states" / "sharectl"
    for path, is_folder in ((folder / "lock", False), (folder, True)):
        with (
            pytest.raises(StateError, match="make "),
            only_one(path, 0, is_folder=is_folder),
        ):
            pass
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "state").symlink_to("elsewhere")
    with (
        pytest.raises(StateError, match="correct state_directory"),
        only_one(tmp_path / "state" / "lock", 0),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()


# ---- reading


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


def test_standard_input_stays_open_for_the_next_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"groups: {}\n")))
    assert text_of(Path("-"), "") == "groups: {}\n"
    assert text_of(Path("-"), "") == ""
