"""Places that `publish:` names no more lose their targets, by the next publication."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.cycle.ports import Publisher
from sharectl.errors import PublishError, StateError
from sharectl.model import Plan, Target
from sharectl.publish import text
from sharectl.publish.former_places import FormerPlacesFile
from sharectl.publish.text import FilePublisher
from tests.fakes import NOW, FakePublisher

TARGETS = (Target("wn-1", "alice", 56, "cms", 8),)
PLAN = Plan(7, NOW, NOW + 3060, ("alice", "cms"), TARGETS, "targets")
WITHDRAWAL = replace(PLAN, sequence=8, targets=())


def places(folder: Path, *names: str, now: float = NOW, broken: bool = False) -> FormerPlacesFile:
    def publisher_of(name: str) -> Publisher:
        if name.startswith("file:"):
            return FilePublisher(Path(name.partition(":")[2]))
        return FakePublisher("no answer" if broken else None)

    return FormerPlacesFile(folder / "places.json", names, publisher_of, lambda: now)


def published(path: Path, plan: Plan = PLAN) -> str:
    FilePublisher(path).publish(plan)
    return f"file:{path}"


def test_a_collector_is_tried_until_it_is_emptied_or_its_targets_run_out(tmp_path: Path) -> None:
    places(tmp_path, "collector:").remember(PLAN)
    (emptying,) = places(tmp_path, broken=True).publishers()
    with pytest.raises(PublishError, match="publish: names collector: no more, until"):
        emptying.publish(WITHDRAWAL)
    assert places(tmp_path, now=PLAN.valid_until).publishers() == []
    (emptying,) = places(tmp_path).publishers()
    assert emptying.publish(WITHDRAWAL) == "fake"
    assert places(tmp_path).publishers() == []


@pytest.mark.parametrize("content", [b"", b"notes\n"], ids=["empty", "notes"])
def test_a_foreign_file_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    old = tmp_path / "old.txt"
    places(tmp_path, published(old)).remember(PLAN)
    old.write_bytes(content)
    (emptying,) = places(tmp_path).publishers()
    with pytest.raises(PublishError, match=str(old)):
        emptying.publish(WITHDRAWAL)
    assert old.read_bytes() == content
    assert places(tmp_path).publishers() == [], "reported once"


def test_neither_a_file_that_is_gone_nor_a_plan_without_targets_needs_anything(
    tmp_path: Path,
) -> None:
    places(tmp_path, "collector:").remember(WITHDRAWAL)
    assert not (tmp_path / "places.json").exists()
    old = tmp_path / "old" / "sharectl.txt"
    places(tmp_path, f"file:{old}").remember(PLAN)
    (emptying,) = places(tmp_path).publishers()
    assert (emptying.publish(WITHDRAWAL), old.exists()) == (str(old), False)
    assert places(tmp_path).publishers() == []


def test_a_broken_file_is_named_and_the_next_plan_begins_a_new_one(tmp_path: Path) -> None:
    broken = '{"schema_version": 1, "places": {"file:/x": "a"}}'
    (tmp_path / "places.json").write_text(broken)
    for action in (
        places(tmp_path).publishers,
        lambda: places(tmp_path, "collector:").remember(PLAN),
    ):
        with pytest.raises(StateError, match=r"places\.json: cannot be read"):
            action()
    assert len(places(tmp_path).publishers()) == 1


def test_disable_takes_targets_from_a_place_that_was_left_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, old = tmp_path / "sharectl.yaml", tmp_path / "old.txt"
    config.write_text(
        f"groups: {{alice: {{pledge_hs06: 1}}, cms: {{pledge_hs06: 1}}}}\n"
        f"state_directory: {tmp_path}\npublish: [{{file: {tmp_path}/new.txt}}]\n"
    )
    now = int(time.time())
    lasting = replace(PLAN, generated_at=now, valid_until=now + 600)
    places(tmp_path, published(old, lasting)).remember(lasting)
    assert places(tmp_path, f"file:{old}").publishers() == []
    assert len(places(tmp_path).publishers()) == 1
    assert main(["disable", "--reason", "test", "--config", str(config)]) == 0
    assert f"no targets at {old}\n" in capsys.readouterr().out
    assert text.FilePublisher(old).look()[0].targets == 0
    assert places(tmp_path).publishers() == []
