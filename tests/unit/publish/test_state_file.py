from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from sharectl.errors import BrokenStateError, StateError
from sharectl.model import Standing, Target
from sharectl.plan.blocks import BackOff, BlockMemory, Loss, NewJob, OpenBlock, TakenBlocks
from sharectl.plan.plan import State
from sharectl.publish.state import StateFile
from tests.fakes import NOW

STANDING = (Standing(Target("wn-1", "alice", 56, "cms", 8), NOW),)
STATE = State(
    7,
    3,
    2,
    STANDING,
    NOW + 60,
    withdrawn=True,
    uncertain_nodes=4,
    unaudited=STANDING * 2,
    controllers={"cms": {"average_hs06": 0.1 + 0.2, "stepped_at_seconds": float(NOW)}},
    unheeding={"wn-1": NOW},
    blocks=BlockMemory(
        open=(OpenBlock("wn-1", "cms", 8, NOW, NOW + 1, 640.0),),
        new_jobs=(NewJob("wn-1", "cms", 8, NOW - 60, 60.5),),
        back_offs=(BackOff("cms", 8, "wn-1", 1, NOW + 60, 60.5),),
        taken=(TakenBlocks("cms", 8, 60.5, 2.5, 7, 1e5),),
        losses=(Loss("cms", NOW, (8, 32), NOW - 60),),
        looked_at=NOW,
    ),
)
CONTENT = {"schema_version": 1, **json.loads(json.dumps(asdict(STATE)))}


def test_saved_state_is_loaded(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state.json")
    assert (file.load(), file.last_cycle()) == (State(), {})
    file.save(STATE)
    assert file.load() == STATE
    file.note_cycle({"taken_at": NOW})
    file.save(State(8))
    assert (file.load(), file.last_cycle()) == (State(8), {"taken_at": NOW})


def changed(*path: object, value: Any) -> bytes:
    """State file with another value at a place."""
    content = json.loads(json.dumps(CONTENT))
    inner = content
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return json.dumps(content).encode()


BROKEN = {
    "half": b"{",
    "text for cores": changed("standing", 0, "target", "cap_cores", value="8"),
    "unknown key": changed("standing", 0, "target", "more", value=5),
    "too many digits": changed("controllers", "cms", "average_hs06", value=10**400),
    "last cycle": changed("last_cycle", value=5),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_put_aside_whole(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    file = StateFile(path, clock=lambda: NOW)
    for name in ("state.json.broken-20231114T221320Z", "state.json.broken-20231114T221320Z-1"):
        path.write_bytes(content)
        with pytest.raises(BrokenStateError, match=str(path)):
            file.load()
        with pytest.raises(StateError, match=f"moved to {tmp_path / name},"):
            file.save(State(NOW))
        assert (tmp_path / name).read_bytes() == content
        assert file.load() == State(NOW)


@pytest.mark.parametrize(
    "content",
    [
        changed("controllers", "cms", "average_hs06", value=float("nan")),
        changed("controllers", value=5),
        changed("unheeding", value={"wn-1": "then"}),
        changed("blocks", value={"open": [{}]}),
    ],
)
def test_an_invalid_memory_is_dropped_and_targets_stay(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    state = StateFile(path).load()
    assert state == replace(STATE, controllers={}, unheeding={}, blocks=State().blocks)


def test_a_broken_file_tells_which_sequence_was_reached(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b'{"sequence": %d' % 10**40)
    os.utime(path, (NOW, NOW))
    with pytest.raises(BrokenStateError) as caught:
        StateFile(path).load()
    assert caught.value.sequence == NOW


@pytest.mark.parametrize("before", [b"{", json.dumps(CONTENT).encode()])
def test_a_state_that_could_not_be_read_again_is_not_written(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(before)
    with pytest.raises(StateError, match="not written: Out of range float"):
        StateFile(path).save(replace(STATE, controllers={"cms": {"average_hs06": float("nan")}}))
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]
    assert path.read_bytes() == before


def test_a_folder_of_its_name_is_renamed_and_a_link_is_not(tmp_path: Path) -> None:
    """A folder stands for files of others, of which the kernel makes no hard links."""
    path = tmp_path / "state.json"
    path.symlink_to(path)
    with pytest.raises(StateError, match="give this user the right"):
        StateFile(path).save(State(8))
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]
    path.unlink()
    path.mkdir()
    with pytest.raises(StateError, match="moved to"):
        StateFile(path).save(State(8))
    assert StateFile(path).load() == State(8)
    assert [file.is_dir() for file in tmp_path.glob("state.json.broken-*")] == [True]
