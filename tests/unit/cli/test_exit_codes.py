"""One table of exit codes: the code has it, docs/operations.md shows it, commands keep it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sharectl import errors
from sharectl.cli.main import main
from sharectl.errors import EXIT_CODES, SharectlError
from sharectl.ledger.ledger import PLACE, Ledger
from tests.made_cycles import made

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.md"
EMPTY_PERIOD = ("--from", "2001-01-01", "--to", "2001-01-02")
ABSENT = (
    ("explain", "group", "nobody"),
    ("explain", "group", "other"),
    ("explain", "node", "nowhere"),
    ("explain", "cycle", "77"),
    ("explain", "group", "cms", "--cycle", "77"),
    ("explain", "group", "cms", "--cycle", "2001-01-01"),
    ("report", "-o", "{folder}/page", *EMPTY_PERIOD),
    ("report", "-o", "{folder}/page", "--from", "2001-01-01", "--compare", *EMPTY_PERIOD[1::2]),
    ("replay", *EMPTY_PERIOD),
    ("ledger", "export", *EMPTY_PERIOD),
    ("ledger", "export", "-o", "{folder}/out.csv", *EMPTY_PERIOD),
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        f"groups: {{alice: {{pledge_hs06: 1}}, cms: {{pledge_hs06: 1}}}}\nstate_directory: "
        f"{tmp_path}/state\n"
    )
    return path


def asked(arguments: tuple[str, ...], config: Path) -> list[str]:
    words = [word.format(folder=config.parent) for word in arguments]
    return [*words, "--config", str(config)]


@pytest.mark.parametrize("arguments", ABSENT, ids=lambda words: " ".join(words[:3]))
@pytest.mark.parametrize("recorded", [True, False])
def test_what_is_not_there_is_1_everywhere(
    config: Path, arguments: tuple[str, ...], *, recorded: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if recorded:
        Ledger(config.parent / "state" / PLACE).record(*made(0))
    assert main(asked(arguments, config)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sharectl: ")
    assert len(err.splitlines()) == 1


def test_a_missing_extra_is_69(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    Ledger(config.parent / "state" / PLACE).record(*made(0))
    export = ("ledger", "export", "--format", "parquet", "-o", "{folder}/x.parquet")
    assert main(asked(export, config)) == 69
    needs = "needs pyarrow, which is not installed: in the checkout `pip install '.[parquet]'`"
    assert needs in capsys.readouterr().err


def test_the_page_has_the_table_of_the_code() -> None:
    page = OPERATIONS.read_text().partition("## Exit codes")[2]
    assert [line for line in page.splitlines() if line.startswith("| ")][1:] == [
        f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()
    ]


def test_every_error_has_a_code_of_the_table() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, SharectlError)}
    assert {1, 65, 69, 74, 75, 78} <= codes <= set(EXIT_CODES)
