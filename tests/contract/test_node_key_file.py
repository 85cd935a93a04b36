"""The central manager takes the files of keys that target.py takes on a node."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import target
from sharectl.errors import ConfigError
from sharectl.publish.signing import read_keys

KEY = "2026a " + "0f" * 32 + "\n"


def written(text: str, mode: int = 0o640) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text, encoding="latin-1")
        path.chmod(mode)

    return write


SOUND = {
    "with a comment": written("# ours\n\n" + KEY),
    "two keys": written(KEY + "b " + "0F" * 64),
    **{f"mode {mode:o}": written(KEY, mode) for mode in (0o400, 0o440, 0o600)},
}
UNSOUND = {
    "missing": lambda _: None,
    **{f"mode {mode:o}": written(KEY, mode) for mode in (0o601, 0o602, 0o604, 0o620, 0o642)},
    "a folder": Path.mkdir,
    "a FIFO": os.mkfifo,
    "empty": written(""),
    "no hexadecimal digits": written("2026a " + "xy" * 32),
    "short": written("2026a 0f0f"),
    "three keys": written(KEY + KEY.replace("a", "b") + KEY.replace("a", "c")),
    "no text": written("\xff\x00" * 99),
    "huge": written("#" * 2**20 + "\n" + KEY),
}


@pytest.mark.parametrize("make", SOUND.values(), ids=SOUND)
def test_both_take_a_sound_file(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(path := tmp_path / "keys")
    assert {key.key_id.encode() for key in read_keys(path)} == set(target.read_keys(str(path)))


@pytest.mark.parametrize("make", UNSOUND.values(), ids=UNSOUND)
def test_both_refuse_any_other(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(path := tmp_path / "keys")
    with pytest.raises(ConfigError, match=str(path)):
        read_keys(path)
    with pytest.raises(target.JobError):
        target.read_keys(str(path))
