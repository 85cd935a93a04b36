"""`sharectl disable` and `enable`, without any pool: a withdrawal needs none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Callable

import pytest

from sharectl.cli.main import main
from sharectl.files.files import only_one
from sharectl.publish import text
from sharectl.publish.state import StateFile
from tests.logs import changes_in

NOWHERE = "127.0.0.1:1"
ROWS = ["2 cn-1 alice 60 1 10"] * 64 + ["1 PEND cms 0 8 10"] * 3


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharectl.yaml"
    (tmp_path / "web").mkdir()
    path.write_text(
        f"""
groups: {{alice: {{pledge_hs06: 100}}, cms: {{pledge_hs06: 300}}}}
pool: {{collector: "{NOWHERE}"}}
publish: [{{file: {tmp_path}/sharectl.txt}}, {{file: {tmp_path}/web/sharectl.txt}}]
state_directory: {tmp_path}
lock_wait_seconds: 0
""",
        encoding="utf-8",
    )
    return path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], config: Path) -> Run:
    """The command; it returns its exit code, output and errors."""

    def ended(*arguments: object) -> tuple[int, str, str]:
        code = main([*map(str, arguments), "--config", str(config)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return ended


def publish_targets(run: Run, config: Path) -> tuple[int, str]:
    jobs, plan = config.parent / "jobs", config.parent / "plan.json"
    jobs.write_text("".join(f"{row}\n" for row in ROWS), encoding="utf-8")
    _, out, _ = run("plan", "--jobs", jobs, "--json")
    state = StateFile(config.parent / "state.json").load()
    sequence = max(json.loads(out)["sequence"], state.sequence + 1)
    plan.write_text(json.dumps({**json.loads(out), "sequence": sequence}), encoding="utf-8")
    code, _, err = run("publish", "--plan", plan)
    return code, err


def places(config: Path) -> tuple[Path, Path]:
    return config.parent / "sharectl.txt", config.parent / "web" / "sharectl.txt"


def targets(path: Path) -> int:
    return len(text.read(path).targets)


def test_targets_go_from_every_place_and_none_is_published_until_enable(
    run: Run, config: Path
) -> None:
    assert publish_targets(run, config)[0] == 0
    assert [targets(path) for path in places(config)] == [1, 1]
    state = StateFile(config.parent / "state.json").load()
    assert [stood.target.node for stood in state.standing] == ["cn-1"]
    assert (state.uncertain_nodes, state.unaudited, state.withdrawn) == (0, None, False)
    before = text.read(places(config)[0]).sequence or 0
    code, out, err = run("disable", "--reason", "cooling")
    assert (code, err) == (0, "")
    assert [f"no targets at {path}" for path in places(config)] == out.splitlines()[1:]
    assert [targets(path) for path in places(config)] == [0, 0]
    assert (text.read(places(config)[0]).sequence or 0) > before
    code, err = publish_targets(run, config)
    assert (code, "not published: disabled" in err, "cooling" in err) == (1, True, True)
    assert [targets(path) for path in places(config)] == [0, 0]
    assert run("enable")[0] == 0
    assert publish_targets(run, config)[0] == 0
    assert [targets(path) for path in places(config)] == [1, 1]
    assert [
        (line["event"], line.get("change"), line["who"]["verb"])
        for line in changes_in(config.parent)
    ] == [
        ("target", "added", "publish"),
        ("disabled", None, "disable"),
        ("target", "removed", "disable"),
        ("enabled", None, "enable"),
        ("target", "added", "publish"),
    ]


def test_one_place_that_fails_does_not_keep_the_other_and_the_next_cycle_tries_again(
    run: Run, config: Path
) -> None:
    publish_targets(run, config)
    first, second = places(config)
    first.unlink()
    first.mkdir()
    code, _, err = run("disable", "--reason", "cooling")
    assert (code, str(first) in err, targets(second)) == (74, True, 0)
    # The pool does not answer either: a withdrawal needs no look at it.
    code, out, err = run("cycle")
    assert (code, str(first) in err, "disabled=true" in out) == (75, True, True)
    first.rmdir()
    run("cycle")
    assert targets(first) == 0
    sequence = text.read(first).sequence
    _, out, _ = run("cycle")
    assert "targets=unchanged" in out
    assert text.read(first).sequence == sequence


def test_beside_a_cycle_that_hangs_the_switch_and_the_withdrawal_stand(
    run: Run, config: Path
) -> None:
    publish_targets(run, config)
    state = (config.parent / "state.json").read_bytes()
    with only_one(config.parent / "lock", 0):
        code, _, err = run("disable", "--reason", "cooling")
    assert (code, "another cycle holds the lock" in err) == (75, True)
    assert [targets(path) for path in places(config)] == [0, 0]
    assert (config.parent / "disabled").exists()
    assert (config.parent / "state.json").read_bytes() == state, "that is for who has the lock"


def test_a_state_that_cannot_be_read_does_not_keep_targets_there(run: Run, config: Path) -> None:
    publish_targets(run, config)
    (config.parent / "state.json").write_text("{", encoding="utf-8")
    code, _, err = run("disable", "--reason", "cooling")
    assert (code, err.count("state.json: cannot be read"), "moved to" in err) == (74, 1, True)
    assert [targets(path) for path in places(config)] == [0, 0]
    assert run("disable", "--reason", "cooling")[0] == 0, "it is said once"
    (aside,) = config.parent.glob("state.json.broken-*")
    assert aside.read_bytes() == b"{"


def test_without_the_switch_the_reply_tells_how_far_targets_went(run: Run, config: Path) -> None:
    publish_targets(run, config)
    (config.parent / "disabled").mkdir()
    first, second = places(config)
    code, out, err = run("disable", "--reason", "cooling")
    assert (code, "stop sharectl.timer" in err) == (74, True)
    assert [targets(path) for path in places(config)] == [0, 0]
    first.unlink()
    first.mkdir()
    _, out, _ = run("disable", "--reason", "cooling")
    lines = out.splitlines()
    assert lines[0].endswith("targets are withdrawn once, and not everywhere")
    assert "what was there stands: disabled since" in lines[1]
    assert lines[2:] == [f"no targets at {second}"]
    second.unlink()
    second.mkdir()
    code, out, err = run("disable", "--reason", "cooling")
    assert code == 74
    assert out.startswith("NOT disabled: the switch could not be set; no target is withdrawn\n")
    assert "withdrawn once" not in out + err
    assert "disabled all the same" not in err
    assert {line["event"] for line in changes_in(config.parent)} == {"target"}, (
        "nothing was switched"
    )
    reply = json.loads(run("disable", "--reason", "cooling", "--json")[1])
    assert (reply["disabled"], reply["published"]) == (None, [])


def test_a_second_disable_tells_which_reason_it_replaces(run: Run, config: Path) -> None:
    over = {"schema_version": 1, "reason": "old", "who": "ann", "since": 1, "until": 2}
    (config.parent / "disabled").write_text(json.dumps(over), encoding="utf-8")
    _, out, _ = run("disable", "--reason", "maintenance", "--for", "2h")
    assert "was disabled" not in out
    first = out.splitlines()[0]
    _, out, _ = run("disable", "--reason", "again")
    assert out.splitlines()[1] == f"was {first}; now without an end"
    reply = json.loads(run("disable", "--reason", "third", "--json")[1])
    assert (reply["was"]["reason"], reply["disabled"]["reason"]) == ("again", "third")


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("30s", 30), ("10m", 600), ("2h", 7200), ("7d", 604_800), ("1h30m", 5400)],
)
def test_a_duration_has_a_unit(run: Run, duration: str, seconds: int) -> None:
    _, out, _ = run("disable", "--reason", "r", "--for", duration, "--json")
    off = json.loads(out)["disabled"]
    assert off["until"] - off["since"] == seconds


@pytest.mark.parametrize(
    "option",
    [
        *(
            "",
            *(
                f"--for={text}"
                for text in ("", "0", "2", "-3m", "soon", "0.5s", "400d", "nan", "9" * 400)
            ),
        ),
        *(f"--reason={text}" for text in ("", "   ", "two\nlines", "\x1b[31m", "x" * 501)),
    ],
)
def test_invalid_options_are_usage_errors(run: Run, config: Path, option: str) -> None:
    reason = ["--reason", "r"] if option.startswith("--for") else []
    with pytest.raises(SystemExit) as caught:
        run("disable", *reason, *([option] if option else []))
    assert caught.value.code == 2
    assert not (config.parent / "disabled").exists()


def test_enable_without_disable_is_no_error(run: Run) -> None:
    assert run("enable")[:2] == (0, "sharectl was not disabled\n")
    code, out, _ = run("enable", "--json")
    assert (code, json.loads(out)["was"]) == (0, None)


def test_status_shows_it(run: Run, config: Path) -> None:
    publish_targets(run, config)
    (config.parent / "disabled").touch()
    _, out, err = run("status")
    assert "made by hand" in out
    assert "not withdrawn everywhere" in err
    assert f"collector: {NOWHERE}: nobody listens at {NOWHERE}" in err
    run("disable", "--reason", "cooling")
    _, out, err = run("status")
    assert "cooling" in out
    assert "not withdrawn everywhere" not in err
    assert json.loads(run("status", "--json")[1])["disabled"]["reason"] == "cooling"


def signing(config: Path) -> Path:
    """The configuration asks for signatures from now on; the file of keys."""
    keys = config.parent / "keys"
    keys.touch(mode=0o600)
    keys.write_text(f"a {'0123456789abcdef' * 4}\n", encoding="utf-8")
    with config.open("a", encoding="utf-8") as file:
        file.write(f"signing_key_file: {keys}\n")
    return keys


@pytest.mark.parametrize("broken", ["", "no key"])
def test_a_withdrawal_needs_no_key(run: Run, config: Path, broken: str) -> None:
    keys = signing(config)
    publish_targets(run, config)
    before = [path.read_bytes() for path in places(config)]
    assert text.read(places(config)[0]).signature is not None
    keys.write_text(broken, encoding="utf-8") if broken else keys.unlink()
    assert run("cycle")[0] == 78, "targets are not published unsigned"
    assert [path.read_bytes() for path in places(config)] == before
    code, out, err = run("disable", "--reason", "cooling")
    assert (code, "disabled since" in out, "disabled all the same" in err) == (74, True, True)
    for path in places(config):
        assert f"no targets at {path}" in out
        assert f"{path}: targets are withdrawn, unsigned: {keys}" in err
        unsigned = text.read(path)
        assert (unsigned.targets, unsigned.signature) == ((), None)


def test_a_cycle_withdraws_without_a_key_where_it_was_switched_off_by_hand(
    run: Run, config: Path
) -> None:
    keys = signing(config)
    publish_targets(run, config)
    keys.unlink()
    (config.parent / "disabled").touch()
    assert "withdrawn, unsigned" in run("cycle")[2]
    assert [targets(path) for path in places(config)] == [0, 0]
    assert StateFile(config.parent / "state.json").load().withdrawn


def test_a_broken_configuration_is_said_not_to_have_disabled_anything(
    run: Run, config: Path
) -> None:
    publish_targets(run, config)
    config.write_text(config.read_text(encoding="utf-8") + "contrl: {}\n", encoding="utf-8")
    code, _, err = run("disable", "--reason", "cooling")
    first, last = err.splitlines()
    assert (code, "contrl" in first, "NOT disabled" in last) == (78, True, True)
    assert not (config.parent / "disabled").exists()
