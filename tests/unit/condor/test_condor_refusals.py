from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.condor.configuration import Given, given_file, retold
from sharectl.condor.library import UnreadableConfigurationError

OWN = {"/etc/a.conf": Given("a.conf", ["A = 1", "FOO BAR"])}
ROOT = 'Config source Error "/made/sharectl-x/root", Line 4, Include Depth 1: '


@pytest.mark.parametrize(
    ("said", "place", "problem"),
    [
        # What HTCondor says of files that are read through another one, and of a folder's.
        (
            f'Config source Error "/etc/a.conf", Line 2, Include Depth 2: ; {ROOT}',
            "a.conf:2",
            'it cannot read "FOO BAR"',
        ),
        (
            "Configuration Error Line 2 while reading config source /etc/a.conf",
            "a.conf:2",
            'it cannot read "FOO BAR"',
        ),
        (
            "Configuration Error Line 1 while reading config source /etc/a.conf; foo; bar",
            "a.conf:1",
            "foo; bar",
        ),
        (
            (
                'Config source Error "/nowhere/x", Line 0, Include Depth 3: no such file; '
                f'Config source Error "/etc/a.conf", Line 1, Include Depth 2: ; {ROOT}'
            ),
            "a.conf:1",
            "no such file",
        ),
        (
            (
                'Config source Warning "/etc/a.conf", Line 1: obsolete; Error: use feature: '
                "unknown; "
                'Config source Error "/etc/b.conf", Line 7: at X; Config source Error '
                f'"/etc/a.conf", Line 2: ; {ROOT}'
            ),
            "/etc/b.conf:7",
            "use feature: unknown; at X",
        ),
        (
            f'Config source Error "/etc/b.conf", Line 7: ; {ROOT}',
            "/etc/b.conf:7",
            "it cannot read that line",
        ),
        (
            f'Config source Error "/etc/a.conf", Line 9: ; {ROOT}',
            "a.conf:9",
            "it cannot read that line",
        ),
        (f"{ROOT}why", "", "why"),
        (ROOT, "", "it gives no reason"),
    ],
)
def test_a_refusal_is_told_of_the_operators_own_line(said: str, place: str, problem: str) -> None:
    told = retold(
        UnreadableConfigurationError(said, "/made/sharectl-x/root:4"), OWN, "/made/sharectl-x"
    )
    assert (told.place, str(told)) == (place, problem)


def test_another_refusal_is_told_as_it_is() -> None:
    error = UnreadableConfigurationError("no answer in 20 s", "/etc/a.conf:1")
    assert retold(error, OWN) is error


def test_a_copy_is_the_operators_file() -> None:
    given = {"/made/sharectl-x/configuration": Given("-", ["one", "two"])}
    said = (
        f'Config source Error "/made/sharectl-x/configuration", Line 2, Include Depth 2: ; {ROOT}'
    )
    told = retold(UnreadableConfigurationError(said), given, "/made/sharectl-x")
    assert (told.place, str(told)) == ("-:2", 'it cannot read "two"')


def test_a_file_that_cannot_be_read_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\n\xff\n")
    assert given_file(tmp_path / "a") == Given(str(tmp_path / "a"), ["one", "\ufffd"])
    assert given_file(tmp_path / "b").lines == []
