from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.errors import StateError
from sharectl.files import files
from sharectl.files.files import only_one


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


def test_a_reader_never_sees_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    writer = os.fork()
    if writer == 0:
        for number in range(3000):
            files.append_lines(path, [f"{number} " + "x" * 900] * 4)
        os._exit(0)
    try:
        looks, reaped = 0, 0
        while not reaped:
            reaped, _ = os.waitpid(writer, os.WNOHANG)
            with path.open("rb") as reader:
                reader.seek(max(0, path.stat().st_size - 2000))
                seen = reader.read()
            assert not seen or seen.endswith(b"\n")
            looks += 1
    finally:
        if not reaped:
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
    assert looks > 100
    kept = [
        line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    ]
    assert len(kept) == 12000


def test_a_line_longer_than_a_page_is_refused_and_nothing_is_added(tmp_path: Path) -> None:
    path = tmp_path / "log"
    files.append_lines(path, ["first"])
    with pytest.raises(StateError, match="longer than a page"):
        files.append_lines(path, ["second", "x" * files.PAGE_BYTES])
    assert path.read_text(encoding="utf-8") == "first\n"


@pytest.mark.parametrize("keep", [0, 1])
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


def made(path: Path, kind: str) -> None:
    """Put something there that is no regular file; a link leads to a file beside it."""
    path.with_name("real").write_text("old", encoding="utf-8")
    make: dict[str, Callable[[], None]] = {
        "a symbolic link": lambda: path.symlink_to("real"),
        "a FIFO": lambda: os.mkfifo(path),
        "a folder": path.mkdir,
        "a device": lambda: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3)),
    }
    make[kind]()


WRITING: dict[str, Callable[[Path], None]] = {
    "replace": lambda path: files.replace(path, ["new\n"]),
    "append": lambda path: files.append_lines(path, ["new"]),
    "rotate": lambda path: files.rotate(path, max_bytes=0, keep=1),
}
REFUSED = [
    *(("replace", kind) for kind in ("a folder", "a device")),
    *(
        (verb, kind)
        for verb in ("append", "rotate")
        for kind in ("a symbolic link", "a FIFO", "a folder", "a device")
    ),
]


@pytest.mark.parametrize(("verb", "kind"), REFUSED)
def test_what_is_not_ours_stays_as_it_is(tmp_path: Path, verb: str, kind: str) -> None:
    path = tmp_path / "sharectl.txt"
    if kind == "a device" and os.geteuid():
        pytest.skip("only root can make a device")
    made(path, kind)
    before = os.lstat(path)
    with pytest.raises(StateError, match=rf"{path}: not written: "):
        WRITING[verb](path)
    assert (os.lstat(path).st_ino, os.lstat(path).st_mode) == (before.st_ino, before.st_mode)
    assert (tmp_path / "real").read_text(encoding="utf-8") == "old"
    assert not [left for left in tmp_path.iterdir() if left.name not in ("real", path.name)]


@pytest.mark.parametrize("kind", ["a symbolic link", "a FIFO"])
def test_a_link_gives_way_and_is_not_followed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "sharectl.txt"
    made(path, kind)
    files.replace(path, ["new\n"])
    assert stat.S_ISREG(os.lstat(path).st_mode)
    assert path.read_text(encoding="utf-8") == "new\n"
    assert (tmp_path / "real").read_text(encoding="utf-8") == "old"
