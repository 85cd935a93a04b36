"""One table of exit codes: the code has it, docs/operations.md shows it, commands keep it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from sharectl import errors
from sharectl.cli.main import main
from sharectl.errors import EXIT_CODES, SharectlError
from sharectl.ledger.ledger import PLACE, Ledger
from tests.made_cycles import made
from tests.unit.cli.conftest import Run

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
    ("ledger", "export", "-o", "{folder}/out.csv", *EMPTY_PERIOD),
)


NO_SUCH = {
    "nosuch": 2,
    "status --js": 2,
    "consumption examples nosuch": 2,
    "snippets install --role nosuch": 2,
    "cadence --run-time nosuch": 2,
    "simulate nosuch": 2,
    "simulate small-site --strategies nosuch": 2,
    "learn nosuch -o FOLDER/policy.json": 2,
    "tune nosuch --over control.dwell_seconds=0..1": 2,
    "report -o ''": 2,
    "init -o ''": 2,
    "pledges --confirm --config FOLDER/sharectl.yaml": 2,
    "simulate nosuch.yaml": 78,
    "simulate small-site --strategies nosuch.yaml": 78,
    "consumption render nosuch.yaml": 78,
    "check config --config nosuch.yaml": 78,
    "errors --jobs nosuch --config FOLDER/sharectl.yaml": 65,
    "report -o FOLDER/sharectl.yaml --config FOLDER/sharectl.yaml": 74,
}
"""Command -> its code: a word that is none of those there are, an argument that names no file."""


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of outputs: state_directory may not be one."""
    return tmp_path_factory.mktemp("out")


@pytest.mark.parametrize("arguments", ABSENT, ids=lambda words: " ".join(words[:3]))
@pytest.mark.parametrize("recorded", [True, False])
def test_what_is_not_there_is_1_everywhere(
    run: Run, tmp_path: Path, folder: Path, arguments: tuple[str, ...], *, recorded: bool
) -> None:
    if recorded:
        Ledger(tmp_path / PLACE).record(*made(0))
    code, out, err = run(*(word.format(folder=folder) for word in arguments))
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert err.startswith("sharectl: ")


@pytest.mark.parametrize("command", NO_SUCH)
def test_a_name_that_is_not_there_is_usage_and_a_file_has_the_code_of_its_kind(
    config: Path, command: str
) -> None:
    before = config.read_bytes()
    try:
        code = main(shlex.split(command.replace("FOLDER", str(config.parent))))
    except SystemExit as error:
        code = int(error.code or 0)
    assert (code, config.read_bytes()) == (NO_SUCH[command], before)


def test_a_laboratory_that_is_not_installed_is_69_and_harms_no_other_verb(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "sharectl_lab"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sharectl_lab", None)
    assert main(["simulate", "--list"]) == 69
    err = capsys.readouterr().err
    assert err.startswith("sharectl: simulate is a verb of the laboratory, of which sharectl_lab")
    assert err.endswith(" is not installed; install the package sharectl-lab\n")
    assert main(["completion", "bash"]) == 0
    assert "simulate" in capsys.readouterr().out


def test_the_page_has_the_table_of_the_code() -> None:
    page = OPERATIONS.read_text().partition("## Exit codes")[2]
    assert [line for line in page.splitlines() if line.startswith("| ")][1:] == [
        f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()
    ]


def test_every_error_has_a_code_of_the_table() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, SharectlError)}
    assert {1, 65, 69, 74, 75, 78} <= codes <= set(EXIT_CODES)
