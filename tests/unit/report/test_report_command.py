from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.ledger.ledger import PLACE, Ledger
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, incomplete, made

CYCLES = 20
END = NOW + CYCLES * PERIOD_SECONDS


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose ledger has some cycles, the tenth of them incomplete."""
    ledger = Ledger(tmp_path / PLACE)
    for number in range(CYCLES):
        ledger.record(*(incomplete(number) if number == 10 else made(number)))
    return written(tmp_path)


def written(folder: Path) -> Path:
    path = folder / "sharectl.yaml"
    path.write_text(
        f"groups: {{alice: {{pledge_hs06: 100}}, cms: {{pledge_hs06: 300}}}}\npublish: [file: "
        f"{folder}/sharectl.txt]\n"
        f"pool: {{name: t1}}\nstate_directory: {folder}\n",
        encoding="utf-8",
    )
    return path


def run(
    capsys: pytest.CaptureFixture[str], config: Path, out: Path, *more: object
) -> tuple[int, str, str]:
    words = ["report", "--config", config, "-o", out, "--from", NOW, "--to", END, *more]
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_page_is_all_that_is_written_and_loads_nothing(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "folder"
    code, printed, problems = run(capsys, config, out)
    assert (code, problems) == (0, "")
    assert printed.startswith(f"{out}/index.html: ")
    assert printed.rstrip().endswith("20 cycles, 2 groups")
    assert [path.name for path in out.iterdir()] == ["index.html"]
    assert stat.S_IMODE((out / "index.html").stat().st_mode) == 0o644
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert page.count('<svg class="figure"') == 2 + 4 + 2 * 5
    banned = ("<script", "http:", "https:", "url(h", "@import", "style=", "onload")
    assert [word for word in banned if word in page] == []
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    before = (out / "index.html").stat().st_ino
    assert run(capsys, config, out, "--compare", NOW, NOW + 3 * PERIOD_SECONDS)[0] == 0
    assert (out / "index.html").stat().st_ino != before, "an older report is replaced"
    assert sorted(path.name for path in out.iterdir()) == ["index.html", "notes.txt"]


@pytest.mark.parametrize("kind", ["page", "link", "fifo", "folder"])
def test_a_foreign_file_is_not_replaced(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path, kind: str
) -> None:
    there, target = tmp_path / "index.html", tmp_path / "target"
    target.write_text("<html>home</html>", encoding="utf-8")
    if kind == "page":
        there.write_text("<html>home</html>", encoding="utf-8")
    elif kind == "link":
        there.symlink_to(target)
    elif kind == "fifo":
        os.mkfifo(there)
    else:
        there.mkdir()
    before = there.lstat()
    assert run(capsys, config, tmp_path)[0] == 74
    assert target.read_text(encoding="utf-8") == "<html>home</html>"
    assert (there.lstat().st_ino, there.lstat().st_size) == (before.st_ino, before.st_size)


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_place_that_cannot_be_written_is_named(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    code, _, problems = run(capsys, config, tmp_path / place)
    assert (code, f"{tmp_path / place}: not written" in problems) == (74, True)
    assert "in the place of a folder" in problems
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_period_without_a_cycle_replaces_no_page(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    assert run(capsys, config, tmp_path / "out")[0] == 0
    before = (tmp_path / "out" / "index.html").read_bytes()
    for more in (["--from", END, "--to", END + 86400], ["--compare", "-60d", "-30d"]):
        code, printed, problems = run(capsys, config, tmp_path / "out", *more)
        assert (code, printed) == (1, "")
        assert "no cycle in that time" in problems
    assert (tmp_path / "out" / "index.html").read_bytes() == before
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(capsys, written(empty), empty / "out")[0] == 1
    assert not (empty / "out").exists()


def test_json_has_the_numbers_of_the_page(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    code, printed, _ = run(
        capsys, config, tmp_path / "out", "--json", "--compare", NOW, NOW + PERIOD_SECONDS
    )
    content = json.loads(printed)
    assert (code, content["schema_version"], content["kind"]) == (0, 1, "report")
    before, period = content["periods"]
    assert (period["since"], period["until"]) == (NOW, END), "the shorter one is first"
    assert (before["since"], before["pool"]["cycles"]) == (NOW, 1)
    assert (period["pool"]["cycles"], period["pool"]["complete_cycles"]) == (20, 19)
    for group in period["groups"]:
        assert group["work_ratio"] == pytest.approx(
            group["work_hs06_hours"] / group["pledge_hs06_hours"]
        )
    nodes = {
        group["group"]: (group["held_back_nodes"], group["helped_nodes"])
        for group in period["groups"]
    }
    targets = period["pool"]["targets"]
    assert (nodes["alice"], nodes["cms"]) == ((targets, 0), (0, targets))


@pytest.mark.parametrize("words", [["--from", "now", "--to", "-1d"], ["--compare", "-1d", "-2d"]])
def test_periods_are_in_order(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path, words: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", "--config", str(config), "-o", str(tmp_path / "out"), *words])
    assert (ended.value.code, words[0] in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize(
    ("since", "until", "begin", "notes"),
    [
        (NOW - 30 * 86400, END, NOW, 1),
        (NOW - 360, END, NOW, 1),
        (NOW, END, NOW, 0),
        (NOW + 7, NOW + 9000, NOW + 7, 0),
    ],
)
def test_the_page_begins_where_the_ledger_does(
    capsys: pytest.CaptureFixture[str],
    config: Path,
    tmp_path: Path,
    since: int,
    until: int,
    begin: int,
    notes: int,
) -> None:
    _, printed, _ = run(capsys, config, tmp_path / "out", "--from", since, "--to", until, "--json")
    (period,) = json.loads(printed)["periods"]
    assert (period["since"], period["until"]) == (begin, until)
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert page.count("The ledger begins at 2023-11-14 22:13:20 UTC") == notes
