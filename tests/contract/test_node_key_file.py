"""Files of keys that nodes and the central manager take, by the program of nodes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import target
from sharectl.errors import ConfigError
from sharectl.publish.signing import read_keys

DIGITS = "0f" * 32
KEY = f"2026a {DIGITS}\n"
Make = Callable[[Path], None]


def written(text: str, mode: int = 0o640) -> Make:
    def write(path: Path) -> None:
        path.write_text(text, encoding="latin-1")
        path.chmod(mode)

    return write


SOUND: dict[str, Make] = {
    "with a comment": written("# ours\n\n" + KEY),
    "two keys, without end": written(KEY + "b " + DIGITS.upper()),
    "blanks": written(f" a\t {DIGITS} \r\n"),
    **{f"mode {mode:o}": written(KEY, mode) for mode in (0o400, 0o440, 0o600)},
}
BAD = (
    *("", "old\n", f"OLD {DIGITS}\n", f"{'o' * 33} {DIGITS}\n", f" {DIGITS}\n", KEY + KEY),
    *(f"a {DIGITS}x\n", f"a {DIGITS[1:]}\n", f"a {DIGITS * 2}00\n", f"a {'xy' * 32}", "a 0f0f"),
    *(KEY + KEY.replace("a", "b") + KEY.replace("a", "c"), "\xff\x00" * 99, "\u00e9 0\n"),
)
UNSOUND: dict[str, tuple[Make, str]] = {
    "missing": (lambda _: None, "no-key"),
    **{
        f"mode {mode:o}": (written(KEY, mode), "unsafe-key")
        for mode in (0o601, 0o602, 0o604, 0o620, 0o642, 0o660)
    },
    "a folder": (Path.mkdir, "no-key"),
    "a FIFO": (os.mkfifo, "unsafe-key"),
    "huge": (written("#" * 2**20 + "\n" + KEY), "no-key"),
    **{f"bad {number}": (written(text), "bad-key") for number, text in enumerate(BAD)},
}


@pytest.mark.parametrize("make", SOUND.values(), ids=SOUND)
def test_a_sound_file_is_taken(make: Make, tmp_path: Path) -> None:
    make(path := tmp_path / "keys")
    assert bytes.fromhex(DIGITS) in read_keys(path).values()


@pytest.mark.parametrize(("make", "code"), UNSOUND.values(), ids=UNSOUND)
def test_any_other_is_refused_and_no_part_of_it_is_printed(
    make: Make, code: str, tmp_path: Path
) -> None:
    make(path := tmp_path / "keys")
    with pytest.raises(target.JobError) as on_node:
        target.read_keys(str(path))
    assert on_node.value.args[0] == code
    with pytest.raises(ConfigError, match=str(path)) as refused:
        read_keys(path)
    assert DIGITS[:8] not in f"{refused.value} {on_node.value.args[1]}"
