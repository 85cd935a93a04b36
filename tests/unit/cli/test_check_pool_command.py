"""``sharectl check pool`` where nothing answers: exit codes, output, bounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from sharectl.check.pool import CHECKS
from sharectl.config.fields import POOL_CHECKS
from sharectl.publish.disabled_file import user_name
from sharectl.publish.state import StateFile
from tests.unit.cli.conftest import Run


def test_a_pool_that_does_not_answer_fails_and_its_texts_are_bounded(
    run: Run, tmp_path: Path
) -> None:
    hostile = {"problems": ["a|b\x1b[2J\nc" + "d" * 5000], "taken_at": 1, "seconds": 1}
    StateFile(tmp_path / "state.json").note_cycle(hostile)
    code, out, err = run("check", "pool")
    assert (code, err, "\x1b" in out) == (1, "", False)
    assert "nobody listens" in out
    assert max(map(len, out.splitlines())) < 700


def test_checks_can_be_left_out(run: Run, config: Path) -> None:
    config.write_text(f"{config.read_text()}check: {{ignore: [reach, cycles, targets, timer]}}\n")
    out = run("check", "pool")[1]
    assert "ignored  reach, timer, cycles, targets\n" in out
    assert out.endswith(" 4 ignored\n")
    report = json.loads(run("check", "pool", "--json")[1])
    assert report["states"]["reach"] == "ignored"
    assert "nobody listens" not in str(report["findings"])
    config.write_text(f"{config.read_text()}".replace("timer]", "timr]"))
    code, _, err = run("check", "pool")
    assert (code, '"timr" is not a check of `check pool`' in err) == (78, True)


def test_the_configuration_knows_the_names_of_the_checks() -> None:
    assert [check.id for check in CHECKS] == list(POOL_CHECKS)


WITHOUT_BINDINGS = """
import sys
sys.modules["htcondor2"] = None
from sharectl.cli.main import main
sys.exit(main(["check", "pool", "--config", sys.argv[1]]))
"""


def test_without_bindings_or_a_sound_configuration_nothing_is_checked(
    run: Run, config: Path
) -> None:
    command = [sys.executable, "-c", WITHOUT_BINDINGS, str(config)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (78, "")
    assert "import of htcondor2" in ended.stderr
    assert "Traceback" not in ended.stderr
    config.write_text("groups: 1\n")
    assert run("check", "pool")[0] == 78


def test_files_that_cycles_cannot_write_are_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to("/etc/passwd")
    user = user_name(os.geteuid() or 4242)
    os.chown(tmp_path, os.geteuid() or 4242, -1)
    files = {f["place"]: f["fault"] for f in findings(run) if f["id"] == "files"}
    assert f"belongs to root, and cycles run as {user}" in files[str(tmp_path / "lock")]


def test_before_the_first_cycle_there_is_something_to_do_and_nothing_has_failed(
    run: Run, config: Path
) -> None:
    folder = config.parent / "state"
    text = config.read_text(encoding="utf-8")
    state = f"state_directory: {config.parent}"
    config.write_text(text.replace(state, f"state_directory: {folder}"), encoding="utf-8")
    report = json.loads(run("check", "pool", "--json")[1])
    states = {name: report["states"][name] for name in ("cycles", "cores")}
    assert states == {"cycles": "warn", "cores": "unknown"}
    assert [f for f in report["findings"] if "run this as root" in f["remedy"]] == []
    remedies = {f["id"]: f["remedy"] for f in report["findings"] if f["level"] == "advice"}
    assert remedies["cycles"] == "`sharectl cycle`, or enable sharectl.timer"


def findings(run: Run) -> list[dict[str, str]]:
    listed: list[dict[str, str]] = json.loads(run("check", "pool", "--json")[1])["findings"]
    return listed
