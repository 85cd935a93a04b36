"""A young collector does not know the pool yet: unknown is not zero."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec
from sharectl.publish.state import StateFile
from tests.pool.conftest import OpenBox
from tests.pool.sharectl_command import Sharectl


@pytest.fixture(scope="module")
def empty_pool(open_box: OpenBox) -> Iterator[Box]:
    """A collector and schedds, but no execute point."""
    with open_box(BoxSpec(execute_points=())) as box:
        yield box


@pytest.fixture(scope="module")
def young_pool(open_box: OpenBox) -> Iterator[Box]:
    """A pool of two nodes, whose collector started seconds ago."""
    with open_box(BoxSpec.of_equal_nodes(2)) as box:
        yield box


def test_a_collector_without_nodes_makes_the_cycle_incomplete(
    empty_pool: Box, tmp_path: Path
) -> None:
    sharectl = Sharectl(empty_pool, tmp_path)
    assert "collector: it knows no execute point" in sharectl.run("cycle", expect=75).stderr
    assert not sharectl.targets.exists()


def test_a_young_collector_that_knows_less_than_before_changes_nothing(
    young_pool: Box, tmp_path: Path
) -> None:
    sharectl = Sharectl(young_pool, tmp_path)
    sharectl.run("cycle")
    (state_file,) = tmp_path.rglob("state.json")
    store = StateFile(state_file)
    before = store.load()
    assert before.nodes == 2
    published = sharectl.targets.read_bytes()
    store.save(dataclasses.replace(before, nodes=5))
    done = sharectl.run("cycle", expect=75)
    assert "knows 2 of 5 execute points of the last cycle" in done.stderr
    assert sharectl.targets.read_bytes() == published
    assert json.loads(state_file.read_text(encoding="utf-8"))["nodes"] == 5
    store.save(before)
    sharectl.run("cycle")
