"""The learned law on a pool: in shadow, decided again from the ledger, and acting."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.laws import write_policy
from tests.pool.conftest import OpenBox
from tests.pool.deployed import jobs, snippet, still
from tests.pool.sharectl_command import Sharectl

CORES = 16
HELD_BACK, HELPED = "alice", "cms"


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    """A node full of one group's jobs, while large ones of the other wait."""
    node = ExecutePoint("wn-001.example.org", CORES, power_hs06=160.0, config=snippet())
    with open_box(BoxSpec((node,))) as box:
        box.submit(jobs(HELD_BACK, 1, CORES, 3600))
        still(box, CORES)
        box.submit(jobs(HELPED, 8, 2, 3600))
        yield box


@pytest.fixture
def sharectl(pool: Box, tmp_path: Path) -> Sharectl:
    return Sharectl(pool, tmp_path)


def site(**control: Any) -> dict[str, Any]:
    groups = {HELPED: {"pledge_hs06": 950.0}, HELD_BACK: {"pledge_hs06": 50.0}}
    return {"groups": groups, "control": control}


def policy(folder: Path, error: float) -> str:
    """Policy that puts out so many times the error."""
    return str(write_policy(folder, features=["error"], weights=[error]))


def exported(sharectl: Sharectl, how: dict[str, Any]) -> list[dict[str, str]]:
    """Rows of groups in the ledger."""
    text = sharectl.run("ledger", "export", "--what", "groups", **how).stdout
    return list(csv.DictReader(text.splitlines()))


def test_in_shadow_it_is_recorded_and_nothing_follows_it(
    sharectl: Sharectl, tmp_path: Path
) -> None:
    how = site(shadow={"law": "learned", "policy": policy(tmp_path, 0.5)})
    cycles = [sharectl.json("cycle", **how) for _ in range(2)]
    policy(tmp_path, 0.0)
    cycles.append(sharectl.json("cycle", **how))
    for cycle, part in zip(cycles, (0.5, 0.5, 0.0)):
        assert [target["helped"] for target in cycle["plan"]["targets"]] == [HELPED]
        for row in cycle["controllers"]:
            shadow = row["shadow"]
            assert (row["law"], shadow["law"], shadow["problem"]) == ("latest", "learned", "")
            assert row["output_hs06"] != 0
            assert shadow["output_hs06"] == pytest.approx(part * row["output_hs06"])
    rows = exported(sharectl, how)
    assert {(row["law"], row["shadow_law"]) for row in rows} == {("latest", "learned")}
    outputs = [float(row["shadow_output_hs06"]) for row in rows if row["group"] == HELPED]
    assert [output < 0 for output in outputs] == [True, True, False]
    # The content of the policy is configuration.
    first, second, third = dict.fromkeys(row["cycle"] for row in rows)
    digests = {row["cycle"]: row["configuration"] for row in rows}
    assert digests[first] == digests[second] != digests[third]
    words = " ".join(sharectl.run("explain", "group", HELPED, **how).stdout.split())
    assert "shadow law learned would have put out" in words

    path = f"control.policy={how['control']['shadow']['policy']}"
    learned = ("--set", "control.law=learned", "--set", path)
    none = sharectl.json("replay", *learned, **how)["summary"]
    assert (none["compared"], none["was"]["targets"], none["would"]["targets"]) == (3, 3, 0)
    policy(tmp_path, 1.0)
    same = sharectl.json("replay", *learned, **how)["summary"]
    assert (same["identical"], same["agreement_ratio"]) == (3, 1.0)


def test_it_acts_and_a_broken_policy_loses_nothing(sharectl: Sharectl, tmp_path: Path) -> None:
    how = site(law="learned", policy=policy(tmp_path, 1.0))
    acting = sharectl.json("cycle", **how)
    assert [target["helped"] for target in acting["plan"]["targets"]] == [HELPED]
    kept = tmp_path / "state.json"
    files = {path: path.read_bytes() for path in (kept, sharectl.targets)}
    state = json.loads(files[kept])["controllers"][HELPED]
    assert {"learned.error_ratio", "learned.mean_ratio"} <= state.keys()
    rows = exported(sharectl, how)

    path = Path(how["control"]["policy"])
    path.write_text(path.read_text()[:40])
    broken = sharectl.run("cycle", expect=78, **how)
    assert broken.stderr.startswith(f"sharectl: control.policy: {path}: not JSON: ")
    assert {path: path.read_bytes() for path in files} == files
    assert exported(sharectl, how) == rows

    policy(tmp_path, 1.0)
    mended = sharectl.json("cycle", **how)
    assert [target["helped"] for target in mended["plan"]["targets"]] == [HELPED]
    assert [row["law"] for row in mended["controllers"]] == ["learned"] * 2
    assert len(exported(sharectl, how)) == 2 * len(rows)
