"""After a real cycle `explain`, `plan --diff` and `replay` name what happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from poolbox import Box
from tests.pool.conftest import OpenBox
from tests.pool.delivery import CORES, HELD_BACK, HELPED, MULTICORE, deployed, shared, spec_of
from tests.pool.looking import described, still
from tests.pool.sharectl_command import Sharectl

STEERED, LEFT_ALONE = "wn-001", "wn-002"
SOURCE = f"file:{shared('sharectl.txt')}"
NODES = {STEERED: deployed(SOURCE, period_seconds=3), LEFT_ALONE: ""}
WAITING = 3


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    """Two nodes full of one group's jobs, while large ones of the other wait."""
    with open_box(spec_of(NODES)) as box:
        box.submit(described(HELD_BACK, 1, CORES * len(NODES), 3600))
        still(box, CORES * len(NODES))
        box.submit(described(HELPED, MULTICORE, WAITING, 3600))
        yield box


@pytest.fixture(scope="module")
def sharectl(pool: Box, tmp_path_factory: pytest.TempPathFactory) -> Sharectl:
    return Sharectl(pool, tmp_path_factory.mktemp("sharectl"))


@pytest.fixture(scope="module")
def how(pool: Box) -> dict[str, Any]:
    return {
        "publish": [{"file": str(pool.shared_directory / "sharectl.txt")}],
        "nodes": {"controlled": STEERED},
        # So that the error is worth a block on both nodes.
        "groups": {HELPED: {"pledge_hs06": 950.0}, HELD_BACK: {"pledge_hs06": 50.0}},
    }


@pytest.fixture(scope="module")
def cycle(sharectl: Sharectl, how: dict[str, Any]) -> dict[str, Any]:
    done = sharectl.json("cycle", **how)
    assert [target["node"] for target in done["plan"]["targets"]] == [STEERED]
    return done


def test_groups_are_explained_by_what_the_pool_held(
    sharectl: Sharectl, how: dict[str, Any], cycle: dict[str, Any]
) -> None:
    over = sharectl.json("explain", "group", HELD_BACK, **how)
    assert (over["sequence"], over["agrees"]) == (cycle["plan"]["sequence"], True)
    assert over["cores"] == CORES * len(NODES)
    assert [exchange["nodes"] for exchange in over["gives"]] == [[STEERED]]
    by_name = {formula["name"]: formula["value"] for formula in over["formulas"]}
    row = next(row for row in cycle["errors"] if row["group"] == HELD_BACK)
    assert by_name["DHS"] == pytest.approx(row["error_hs06"])
    under = sharectl.json("explain", "group", HELPED, **how)
    assert under["pending_by_cores"] == {str(MULTICORE): WAITING}
    assert [exchange["helped"] for exchange in under["receives"]] == [HELPED]
    without_jobs = next(flip for flip in under["would_change"] if flip["code"] == "pending")
    assert (without_jobs["becomes"], without_jobs["outcome"]) == (0.0, "neither")


def test_a_node_says_that_it_obeys(
    pool: Box, sharectl: Sharectl, how: dict[str, Any], cycle: dict[str, Any]
) -> None:
    def says() -> Any:
        return sharectl.json("explain", "node", f"{STEERED}.example.org", **how)["says"]

    pool.wait_until(
        lambda: says()["obeyed_sequence"] == cycle["plan"]["sequence"],
        60,
        "the node acts on its target",
    )
    out = sharectl.run("explain", "node", STEERED, **how).stdout
    assert f"obeyed: it acts on the target of this plan ({cycle['plan']['sequence']})" in out
    assert len(out.splitlines()) <= 24


def test_a_node_that_is_left_alone_says_why(
    sharectl: Sharectl, how: dict[str, Any], cycle: dict[str, Any]
) -> None:
    del cycle
    node = sharectl.json("explain", "node", LEFT_ALONE, **how)
    assert (node["target"], node["reason"]["code"]) == (None, "uncontrolled")
    assert node["says"]["obeyed_sequence"] is None
    assert "controlled" in {flip["code"] for flip in node["would_change"]}
    live = sharectl.json("explain", "node", LEFT_ALONE, "--live", **how)
    assert (live["cycle"], live["reason"]["code"]) == (None, "uncontrolled")


def test_the_cycle_names_its_sources_and_where_it_published(
    sharectl: Sharectl, how: dict[str, Any], cycle: dict[str, Any]
) -> None:
    told = sharectl.json("explain", "cycle", "latest", **how)
    assert (told["cycle"], told["complete"], told["before"]) == (1, True, None)
    assert {source["name"].split()[0] for source in told["sources"]} == {"collector", "schedd"}
    assert told["published"] == cycle["published"]
    assert [(e["held_back"], e["helped"]) for e in told["exchanges"]] == [(HELD_BACK, HELPED)]
    assert (told["agrees"], told["decided_again"]) == (True, "1 target")
    more = [flip["what"] for flip in told["would_change"] if flip["outcome"] == "2 targets"]
    assert f"{LEFT_ALONE} is under control (nodes.controlled)" in more
    assert len(sharectl.run("explain", "cycle", **how).stdout.splitlines()) <= 24


def test_a_plan_made_now_keeps_the_target_and_a_replay_comes_to_it(
    sharectl: Sharectl, how: dict[str, Any], cycle: dict[str, Any]
) -> None:
    del cycle
    diff = sharectl.json("plan", "--diff", **how)
    assert diff["counts"] == {"added": 0, "kept": 1, "moved": 0, "altered": 0, "dropped": 0}
    everywhere = sharectl.json("plan", "--diff", **{**how, "nodes": {"controlled": "*"}})
    assert (everywhere["counts"]["added"], everywhere["counts"]["kept"]) == (1, 1)
    assert (
        everywhere["effect"]["power_hs06"][HELD_BACK]
        < 0
        < everywhere["effect"]["power_hs06"][HELPED]
    )
    assert sharectl.json("replay", **how)["summary"]["agreement_ratio"] == 1.0
    quiet = sharectl.json("replay", "--set", "control.deadband_hs06=1000000", **how)["summary"]
    assert (quiet["was"]["targets"], quiet["would"]["targets"]) == (1, 0)
