from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sharectl.errors import BrokenStateError, StateError
from sharectl.model import Standing, Target
from sharectl.plan.plan import State
from sharectl.publish.state import StateFile
from tests.fakes import NOW

TARGET = {
    "node": "wn-1",
    "held_back": "alice",
    "cap_cores": 56,
    "helped": "cms",
    "request_cores": 8,
}
BEFORE = {
    # As the version before limits wrote it.
    "sequence": NOW,
    "nodes": 3,
    "schedds": 2,
    "schema_version": 1,
    "last_cycle": {
        "taken_at": NOW,
        "plan": {
            "sequence": NOW,
            "generated_at": NOW,
            "valid_until": NOW + 3060,
            "targets": [TARGET],
        },
    },
}
STANDING = (Standing(Target(**TARGET), NOW),)  # type: ignore[arg-type]


def store(folder: Path, content: Any) -> StateFile:
    path = folder / "state.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return StateFile(path)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    state = State(
        7, 3, 2, STANDING, NOW + 60, withdrawn=True, uncertain_nodes=4, unaudited=STANDING * 2
    )
    state = replace(
        state, controllers={"cms": {"average_hs06": 0.1 + 0.2, "stepped_at_seconds": float(NOW)}}
    )
    file = StateFile(tmp_path / "state.json")
    file.save(state)
    assert file.load() == state
    file.save(State(8))
    assert file.load() == State(8)


def test_a_file_of_the_version_before_is_understood(tmp_path: Path) -> None:
    assert store(tmp_path, BEFORE).load() == State(NOW, 3, 2, STANDING, NOW + 3060)


@pytest.mark.parametrize(
    "last_cycle",
    [None, {}, {"plan": None}, {"plan": {**BEFORE["last_cycle"]["plan"], "sequence": NOW - 1}}],  # type: ignore[index]
)
def test_without_a_record_of_that_plan_nothing_is_known_to_stand(
    tmp_path: Path, last_cycle: Any
) -> None:
    assert store(tmp_path, {**BEFORE, "last_cycle": last_cycle}).load() == State(NOW, 3, 2)


def test_its_record_of_the_last_cycle_stays(tmp_path: Path) -> None:
    file = store(tmp_path, BEFORE)
    file.save(file.load())
    assert file.last_cycle() == BEFORE["last_cycle"]
    assert file.load().standing == STANDING


@pytest.mark.parametrize(
    "change",
    [
        {"standing": 5},
        {"standing": [5]},
        {"standing": [{"target": TARGET}]},
        {"standing": [{"target": {**TARGET, "cap_cores": "8"}, "since": NOW}]},
        {"standing": [{"target": {**TARGET, "node": 5}, "since": NOW}]},
        {"standing": [{"target": {**TARGET, "more": 5}, "since": NOW}]},
        {"standing": [{"target": TARGET, "since": None}]},
        {"unaudited": {"a": 1}},
        {"standing_until": "soon"},
        {"last_cycle": 5},
        {"last_cycle": {"plan": {"sequence": NOW}}},
    ],
)
def test_a_broken_file_names_itself_and_the_remedy(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(
        StateError, match=r"state\.json: cannot be read: .*moves it to .*broken-DATE"
    ):
        store(tmp_path, {**BEFORE, **change}).load()


@pytest.mark.parametrize(
    "broken",
    [
        *(None, 5, [], {"cms": 5}, {"cms": {"a": "1"}}, {"cms": {"a": True}}),
        *({"cms": {"a": float("nan")}}, {"cms": {"a": 10**400}}),
    ],
)
def test_a_controller_whose_state_is_broken_or_missing_begins_anew(
    tmp_path: Path, broken: Any
) -> None:
    """The rest of the file counts all the same: a target that stands must not be forgotten for it."""
    loaded = store(tmp_path, {**BEFORE, "controllers": broken}).load()
    assert loaded.controllers == {}
    assert loaded.standing == STANDING


def test_one_broken_controller_leaves_the_others(tmp_path: Path) -> None:
    both = {"cms": {"average_hs06": 5}, "atlas": {"average_hs06": None}}
    assert store(tmp_path, {**BEFORE, "controllers": both}).load().controllers == {
        "cms": {"average_hs06": 5}
    }


BROKEN = [
    b"{",
    b"",
    b"\xff",
    b"[]",
    b'{"schema_version": 1, "sequence": 7, "standing": 5}',
    b'{"sequence": 7',
]


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_file_is_put_aside_whole_and_said_once(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    file = StateFile(path, clock=lambda: NOW)
    aside = tmp_path / "state.json.broken-20231114T221320Z"
    with pytest.raises(BrokenStateError) as first:
        file.load()
    with pytest.raises(StateError, match=f"moved to {aside}, and a new one was begun") as caught:
        file.save(State(NOW))
    assert caught.value.supersedes == str(first.value)
    assert aside.read_bytes() == content
    file.save(State(NOW + 1))
    assert file.load() == State(NOW + 1)
    path.write_bytes(content + b" ")
    with pytest.raises(StateError, match=f"moved to {aside}-1"):
        file.save(State(NOW))
    assert (aside.read_bytes(), aside.with_name(f"{aside.name}-1").read_bytes()) == (
        content,
        content + b" ",
    )


def test_a_folder_in_its_place_is_put_aside_too(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.mkdir()
    with pytest.raises(StateError, match="moved to"):
        StateFile(path).save(State(8))
    assert StateFile(path).load() == State(8)


@pytest.mark.parametrize(
    ("content", "at_least"),
    [
        (b'{"sequence": 2000000000, "nodes"', 2_000_000_000),
        (b"", NOW),
        (b'{"sequence": %d' % 10**40, NOW),
    ],
)
def test_a_broken_file_tells_what_sequence_was_reached(
    tmp_path: Path, content: bytes, at_least: int
) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    os.utime(path, (NOW, NOW))
    with pytest.raises(BrokenStateError) as caught:
        StateFile(path).load()
    assert caught.value.sequence == at_least


def test_where_nothing_new_can_be_begun_the_broken_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"{")
    unwritable = State(8, controllers={"cms": {"a": object()}})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        StateFile(path).save(unwritable)
    assert [left.name for left in tmp_path.iterdir()] == ["state.json"]
    assert path.read_bytes() == b"{"


def test_one_that_cannot_be_opened_is_not_moved(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.symlink_to(path)
    with pytest.raises(StateError, match="give this user the right"):
        StateFile(path).save(State(8))
    assert [left.name for left in tmp_path.iterdir()] == ["state.json"]
