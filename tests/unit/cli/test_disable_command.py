"""`sharectl disable` and `enable`, without any pool: a withdrawal needs none."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Optional

import pytest

from sharectl.errors import SharectlError
from sharectl.files.files import only_one
from sharectl.model import Plan, Target
from sharectl.publish import text
from sharectl.publish.state import StateFile
from sharectl.publish.text import Seal
from tests.logs import changes_in
from tests.publish_plan import publish
from tests.unit.cli.conftest import Run, add

DISABLE = ("disable", "--reason", "cooling")


@pytest.fixture
def config(config: Path) -> Path:
    """Targets go to two places."""
    folder = config.parent
    (folder / "web").mkdir()
    add(config, f"publish: [{', '.join(f'{{file: {path}}}' for path in places(folder))}]\n")
    return config


def places(folder: Path) -> tuple[Path, Path]:
    return folder / "sharectl.txt", folder / "web" / "sharectl.txt"


def targets(folder: Path) -> list[Optional[int]]:
    return [text.FilePublisher(path).look()[0].targets for path in places(folder)]


def publish_targets(folder: Path) -> str:
    """Publish a plan of one target, newer than the last; returns the problems."""
    now, last = int(time.time()), StateFile(folder / "state.json").load().sequence
    rows = (Target("cn-1", "alice", 56, "cms", 8),)
    groups = ("alice", "cms")
    plan = Plan(max(now, last + 1), now, now + 1200, groups, rows, "targets", *groups)
    try:
        publish(plan, folder / "sharectl.yaml")
    except SharectlError as error:
        return str(error)
    return ""


def test_targets_go_from_every_place_and_none_is_published_until_enable(
    run: Run, tmp_path: Path
) -> None:
    assert publish_targets(tmp_path) == ""
    assert targets(tmp_path) == [1, 1]
    state = StateFile(tmp_path / "state.json").load()
    assert [stood.target.node for stood in state.standing] == ["cn-1"]
    assert (state.uncertain_nodes, state.unaudited, state.withdrawn) == (0, None, False)
    before = text.FilePublisher(places(tmp_path)[0]).look()[0].sequence or 0
    code, out, err = run(*DISABLE)
    assert (code, err) == (0, "")
    assert [f"no targets at {path}" for path in places(tmp_path)] == out.splitlines()[1:]
    assert targets(tmp_path) == [0, 0]
    assert (text.FilePublisher(places(tmp_path)[0]).look()[0].sequence or 0) > before
    publish_targets(tmp_path)
    assert targets(tmp_path) == [0, 0]
    assert run("enable")[0] == 0
    assert publish_targets(tmp_path) == ""
    assert targets(tmp_path) == [1, 1]
    assert [
        (line["event"], line.get("change"), line["who"]["verb"]) for line in changes_in(tmp_path)
    ] == [
        ("target", "added", "cycle"),
        ("disabled", None, "disable"),
        ("target", "removed", "disable"),
        ("enabled", None, "enable"),
        ("target", "added", "cycle"),
    ]


def test_the_switch_is_set_before_any_cycle_made_its_folder(run: Run, config: Path) -> None:
    folder = config.parent / "state"
    text = config.read_text(encoding="utf-8")
    state = f"state_directory: {config.parent}"
    config.write_text(text.replace(state, f"state_directory: {folder}"), encoding="utf-8")
    code, out, err = run(*DISABLE)
    assert (code, err) == (0, "")
    assert out.startswith("disabled ")
    assert (folder / "disabled").is_file()
    assert folder.stat().st_mode & 0o777 == 0o755


def test_one_place_that_fails_does_not_keep_the_other(run: Run, tmp_path: Path) -> None:
    """`unit/cycle/test_publication.py` has the cycles that try again."""
    publish_targets(tmp_path)
    first, second = places(tmp_path)
    first.unlink()
    first.mkdir()
    code, _, err = run(*DISABLE)
    assert (code, str(first) in err) == (74, True)
    assert text.FilePublisher(second).look()[0].targets == 0


def test_beside_a_cycle_that_hangs_the_switch_and_the_withdrawal_stand(
    run: Run, tmp_path: Path
) -> None:
    publish_targets(tmp_path)
    state = (tmp_path / "state.json").read_bytes()
    with only_one(tmp_path / "lock", 0):
        code, _, err = run(*DISABLE)
    assert (code, "another cycle holds the lock" in err) == (75, True)
    assert (targets(tmp_path), (tmp_path / "disabled").exists()) == ([0, 0], True)
    assert (tmp_path / "state.json").read_bytes() == state, "that is for who has the lock"


def test_a_state_that_cannot_be_read_does_not_keep_targets_there(run: Run, tmp_path: Path) -> None:
    publish_targets(tmp_path)
    (tmp_path / "state.json").write_text("{", encoding="utf-8")
    code, _, err = run(*DISABLE)
    assert (code, err.count("state.json: cannot be read"), "moved to" in err) == (74, 1, True)
    assert targets(tmp_path) == [0, 0]
    assert run(*DISABLE)[0] == 0, "it is said once"
    (aside,) = tmp_path.glob("state.json.broken-*")
    assert aside.read_bytes() == b"{"


def test_without_the_switch_the_reply_tells_how_far_targets_went(run: Run, tmp_path: Path) -> None:
    publish_targets(tmp_path)
    (tmp_path / "disabled").mkdir()
    first, second = places(tmp_path)
    code, out, err = run(*DISABLE)
    assert (code, "stop sharectl.timer" in err, targets(tmp_path)) == (74, True, [0, 0])
    first.unlink()
    first.mkdir()
    head, *emptied = run(*DISABLE)[1].splitlines()
    assert head.endswith("targets are withdrawn once, and not everywhere")
    assert emptied == [f"no targets at {second}"]
    second.unlink()
    second.mkdir()
    code, out, err = run(*DISABLE)
    assert (code, "withdrawn once" in out + err, "all the same" in err) == (74, False, False)
    assert out.startswith("NOT disabled: the switch could not be set; no target is withdrawn\n")
    assert {line["event"] for line in changes_in(tmp_path)} == {"target"}, "nothing was switched"
    reply = json.loads(run(*DISABLE, "--json")[1])
    assert (reply["disabled"], reply["published"]) == (None, [])


DURATIONS = ("", "0", "2", "-3m", "soon", "0.5s", "400d", "nan", "9" * 400)
REASONS = ("", "   ", "two\nlines", "\x1b[31m", "x" * 501)


def test_options_are_a_duration_with_a_unit_and_a_line(run: Run, tmp_path: Path) -> None:
    durations = [("--reason=r", f"--for={words}") for words in DURATIONS]
    for options in ((), *durations, *((f"--reason={words}",) for words in REASONS)):
        assert run("disable", *options)[0] == 2, options
    assert not (tmp_path / "disabled").exists()
    off = json.loads(run(*DISABLE, "--for", "1h30m", "--json")[1])["disabled"]
    assert off["until"] - off["since"] == 5400


def published_by(writer: str, folder: Path, targets: int = 1) -> None:
    """Put a newer plan of another installation where this one publishes."""
    now, (place, _) = int(time.time()), places(folder)
    rows = (Target("cn-1", "alice", 56, "cms", 8),)[:targets]
    plan = Plan(now + 2, now, now + 3060, ("alice", "cms"), rows, "targets")
    place.write_text(text.render(plan, Seal(writer=writer)), encoding="ascii")


def test_a_plan_of_another_installation_is_seen_while_disabled_and_not_overwritten(
    run: Run, tmp_path: Path
) -> None:
    partner, stranger = f"cm-2.example.org:{tmp_path}", "cm-2.example.org:/tmp/test"
    publish_targets(tmp_path)
    run(*DISABLE)
    for writer in (partner, stranger):
        published_by(writer, tmp_path, targets=0)
        assert "another sharectl" not in run("status")[2]
        published_by(writer, tmp_path)
        code, _, err = run("status")
        assert code == 1
        assert f"another sharectl, {writer}" in err
        assert "although this one is off" in err
        report = json.loads(run("check", "pool", "--json")[1])
        faults = [f["fault"] for f in report["findings"] if f["id"] == "targets"]
        assert [f"another sharectl, {writer}" in fault for fault in faults] == [True]
    run("enable")
    before = places(tmp_path)[0].read_bytes()
    assert "stays: nothing is published meanwhile" in publish_targets(tmp_path)
    assert places(tmp_path)[0].read_bytes() == before
    code, _, err = run(*DISABLE)
    assert (code, "replaced by one without targets" in err, targets(tmp_path)) == (1, True, [0, 0])


def test_of_a_pair_of_central_managers_it_says_that_the_other_one_goes_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "other central manager" not in run(*DISABLE)[1]
    systemctl = tmp_path / "systemctl"
    unit = "LoadState=loaded\nDropInPaths=/etc/systemd/system/sharectl.service.d/negotiator.conf"
    systemctl.write_text(f"#!/bin/sh\necho '{unit}'\n")
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    code, out, _ = run(*DISABLE)
    words = f"the other central manager is NOT disabled unless it shares {tmp_path}"
    assert (code, words in out) == (0, True)


@pytest.mark.parametrize("broken", ["", "no key"])
def test_a_withdrawal_needs_no_key(run: Run, config: Path, tmp_path: Path, broken: str) -> None:
    keys = tmp_path / "keys"
    keys.touch(mode=0o600)
    keys.write_text(f"a {'0123456789abcdef' * 4}\n", encoding="utf-8")
    add(config, f"signing_key_file: {keys}\n")
    publish_targets(tmp_path)
    before = [path.read_bytes() for path in places(tmp_path)]
    assert text.FilePublisher(places(tmp_path)[0]).look()[0].more["signed_by"] is not None
    keys.write_text(broken, encoding="utf-8") if broken else keys.unlink()
    assert run("cycle")[0] == 78, "targets are not published unsigned"
    assert [path.read_bytes() for path in places(tmp_path)] == before
    (tmp_path / "disabled").touch()
    assert "withdrawn, unsigned" in run("cycle")[2], "nor does a cycle after a switch by hand"
    assert (targets(tmp_path), StateFile(tmp_path / "state.json").load().withdrawn) == (
        [0, 0],
        True,
    )
    code, out, err = run(*DISABLE)
    assert (code, "disabled since" in out, "disabled all the same" in err) == (74, True, True)
    for path in places(tmp_path):
        assert f"no targets at {path}" in out
        assert f"{path}: targets are withdrawn, unsigned: {keys}" in err
        unsigned = text.FilePublisher(path).look()[0]
        assert (unsigned.targets, unsigned.more["signed_by"]) == (0, None)


def test_a_broken_configuration_is_said_not_to_have_disabled_anything(
    run: Run, config: Path
) -> None:
    add(config, "contrl: {}\n")
    code, _, err = run(*DISABLE)
    first, last = err.splitlines()
    assert (code, "contrl" in first, "NOT disabled" in last) == (78, True, True)
    assert not (config.parent / "disabled").exists()


def test_a_law_that_cannot_be_loaded_does_not_keep_targets_up(
    run: Run, config: Path, tmp_path: Path
) -> None:
    assert publish_targets(tmp_path) == ""
    add(config, "control: {law: learned}\n")
    code, _, err = run("cycle")
    assert (code, "control.law: learned acts by a policy" in err) == (78, True)
    assert run(*DISABLE)[0] == 0
    assert targets(tmp_path) == [0, 0]
