"""A restarted controller goes on by its state; without it, it begins afresh without a kick.

Every ``sharectl cycle`` is a process of its own. All jobs stand still, so that the errors do too,
and what changes from cycle to cycle is the controller's integral alone.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Optional

import pytest

from poolbox import Box, BoxSpec
from poolbox.spec import equal_nodes
from sharectl.control.laws import Control, Pid, Reading, step
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import GroupControl
from sharectl.plan.records import CycleRecord
from tests.pool.conftest import OpenBox
from tests.pool.looking import FIRST, SECOND, described, still
from tests.pool.sharectl_command import Sharectl

NODES = 3
NODE_HS06 = 160.0
BLOCK_HS06 = 80.0
# alice holds all 480 HS06 and is owed 380, cms the other 100: one block now, two once the integral
# says so.
GROUPS = {"alice": {"pledge_hs06": 380.0}, "cms": {"pledge_hs06": 100.0}}
ERROR_HS06 = 100.0
INTEGRAL_SECONDS = 20.0
GAP_SECONDS = 600.0
PID = Pid(integral_seconds=INTEGRAL_SECONDS, gap_seconds=GAP_SECONDS)
CONFIGURATION: dict[str, Any] = {
    "groups": GROUPS,
    "control": {
        "law": "pid",
        "strategy": "pair",
        "pid": {"integral_seconds": INTEGRAL_SECONDS},
        "gap_seconds": GAP_SECONDS,
    },
}
LONGEST_SECONDS = 60


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    """Three nodes that one group holds with jobs that do not end, while another one waits."""
    spec = BoxSpec(
        execute_points=equal_nodes(NODES, cores=16, power_hs06=NODE_HS06),
        access_points=(FIRST, SECOND),
    )
    with open_box(spec) as box:
        box.submit(described("alice", 8, 2 * NODES, 3600), FIRST)
        still(box, 2 * NODES)
        box.submit(described("cms", 8, 5, 3600), SECOND)
        box.wait_until(lambda: len(box.jobs("JobStatus == 1")) == 5, 30, "five jobs wait")
        yield box


def central_manager(box: Box, folder: Path, state_of: Optional[Path] = None) -> Sharectl:
    """Sharectl with an empty folder, or with the state that another one left."""
    folder.mkdir()
    if state_of is not None:
        shutil.copy(state_of / "state.json", folder)
    return Sharectl(box, folder)


def cycle(sharectl: Sharectl) -> CycleRecord:
    sharectl.run("cycle", **CONFIGURATION)
    record = Ledger(sharectl.folder / PLACE).latest()
    assert record is not None
    return record


def cms(record: CycleRecord) -> GroupControl:
    return next(row for row in record.groups if row.group == "cms")


def targets(sharectl: Sharectl) -> int:
    lines = sharectl.targets.read_text().splitlines()
    return sum(not line.startswith("#") for line in lines)


def never_restarted(records: list[CycleRecord]) -> list[float]:
    """Output after each look of a controller that lives through all of them."""
    outputs: list[float] = []
    state: Mapping[str, float] = {}
    before = records[0].taken_at
    for record in records:
        row = cms(record)
        reading = Reading(
            row.control_error_hs06, row.error.usage.power_hs06, most_hs06=NODES * NODE_HS06
        )
        state, output, _ = step(Control("pid", pid=PID), state, reading, record.taken_at - before)
        outputs.append(output)
        before = record.taken_at
    return outputs


def test_with_its_state_it_goes_on_and_without_it_does_not_kick(pool: Box, tmp_path: Path) -> None:
    first = central_manager(pool, tmp_path / "first")
    records = [cycle(first)]
    assert cms(records[0]).output_hs06 == pytest.approx(-ERROR_HS06)
    assert targets(first) == 1, "the error of now is worth one block"
    deadline = time.monotonic() + LONGEST_SECONDS
    while cms(records[-1]).output_hs06 > -2 * BLOCK_HS06:
        assert time.monotonic() < deadline, [cms(record) for record in records]
        records.append(cycle(first))
    assert targets(first) >= 2, "the error has lasted: its sum is worth another one"

    second = central_manager(pool, tmp_path / "second", state_of=first.folder)
    records += [cycle(second), cycle(second)]
    assert targets(second) >= 2
    outputs = [cms(record).output_hs06 for record in records]
    assert outputs == pytest.approx(never_restarted(records))
    assert outputs == sorted(outputs, reverse=True)

    third = central_manager(pool, tmp_path / "third")
    fresh = cms(cycle(third))
    assert fresh.output_hs06 == pytest.approx(-ERROR_HS06), (
        "what an error of now is worth, and no more"
    )
    assert fresh.acted == ()
    assert targets(third) == 1
