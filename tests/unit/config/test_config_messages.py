"""Each fault of a configuration: its line, its place and its remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.config.load import load, parse
from sharectl.errors import ConfigError
from sharectl.files.yaml import MAX_BYTES, MAX_PROBLEMS, MAX_VALUES
from sharectl.words import printable

GROUPS = "groups: {cms: {pledge_hs06: 1}}\n"
Listing = Callable[[str, Callable[[str], list[str]], int], None]


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "F")
    return list(caught.value.problems)


def test_every_fault_is_one_problem_with_its_line_and_its_remedy(listing: Listing) -> None:
    """A new faulty configuration is a line of the golden file, as a JSON string."""

    def one_problem(text: str) -> list[str]:
        problems = problems_of(text)
        assert "\t" in text or len({problem.split(": ")[0] for problem in problems}) == 1
        assert [problem for problem in problems if "; " in problem or "?" in problem]
        return problems

    listing("config/messages.txt", one_problem, 169)


def test_so_many_values_that_reading_takes_seconds_are_refused() -> None:
    (problem,) = problems_of(f"a: [{'1,' * MAX_VALUES}]\n")
    assert "more than 20000 values" in problem


def test_all_faults_come_at_once_and_nothing_that_follows_from_one(listing: Listing) -> None:
    listing("config/several.txt", problems_of, 13)


def test_a_flood_of_problems_is_counted() -> None:
    keys = "".join(f"x{number}: 1\n" for number in range(MAX_PROBLEMS + 5))
    problems = problems_of(GROUPS + keys)
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].startswith("F: 5 more problems")


def test_text_of_a_file_cannot_steer_a_terminal() -> None:
    long = "x" * 900
    text = (
        f'"\\e[31m{long}": "\\a"\n{long}: 1\npool: "\\e{long}"\nstate_directory: "{long}"\n{GROUPS}'
    )
    problems = problems_of(text)
    assert [problem[:4] for problem in problems] == ["F:1:", "F:2:", "F:3:", "F:4:"]
    assert [one for one in problems if not one.isprintable() or len(one) > 260] == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "sharectl.yaml"
    for content, place in (
        (b"groups: {cms: {pledge_hs06: 1}}\n# caf\xe9\n", ":2: byte 0xE9"),
        ("groups: {}\n".encode("utf-16"), ":1: byte 0xFF"),
        (b"#" * (MAX_BYTES + 1), ": has more than"),
        (b"a: 1\x00\n", ":1:5: holds the character U+0000"),
    ):
        path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}{place}")
    for path, fact in (
        (tmp_path / "none.yaml", f"there is no such file; `sharectl init -o {tmp_path}/none.yaml`"),
        (Path("/dev/null/sharectl.yaml"), "Not a directory"),
        (tmp_path, "is a directory"),
        (Path(f"{tmp_path}/a\0b"), "cannot be read"),
        (Path("/dev/zero"), "it is neither a regular file nor a pipe"),
    ):
        with pytest.raises(ConfigError, match=fact) as caught:
            load(path)
        assert str(caught.value).startswith(f"{printable(path)}: ")
