from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.cycle.cycle import Circumstances, CycleResult, run_cycle
from sharectl.cycle.ports import Ports
from sharectl.errors import StateError
from sharectl.ledger.ledger import PLACE, Histories, Ledger
from sharectl.model import PlanLimits, Source
from sharectl.plan.plan import PlanConfig, State
from sharectl.publish.audit import AuditFile, Who
from sharectl.publish.state import StateFile
from tests.fakes import (
    NOW,
    FakePool,
    FakePublisher,
    FakeStateStore,
    World,
    running,
    snapshot,
)
from tests.logs import groups_in
from tests.made_cycles import incomplete, made
from tests.unit.ledger.conftest import changed

CONFIG = PlanConfig({"alice": 1.0, "cms": 1.0}, PlanLimits(), validity_seconds=3060)
UNEVEN = snapshot(
    [running("wn-1", "alice", 1, 64)], {("cms", 8): 3}, sources=[Source("collector", 0.1)]
)

WET = Circumstances()


@pytest.fixture
def histories(tmp_path: Path) -> Histories:
    ledger = Ledger(tmp_path / PLACE, busy_seconds=0.2)
    return Histories(tmp_path / "jobs.txt", tmp_path / "errors.log", ledger)


def ports_of(histories: Histories, publisher: FakePublisher, number: int) -> Ports:
    pool = FakePool(replace(UNEVEN, taken_at=NOW + number * 1020))
    world = World(pool, [publisher], state=FakeStateStore(State(5)))
    return replace(world.ports(), history=histories)


def cycle(
    histories: Histories, publisher: FakePublisher, number: int = 0, how: Circumstances = WET
) -> CycleResult:
    return run_cycle(CONFIG, ports_of(histories, publisher, number), NOW + number * 1020, how)


def test_a_cycle_is_in_the_log_and_in_the_ledger(histories: Histories) -> None:
    publisher = FakePublisher()
    how = Circumstances(elapsed=lambda: 2.5, configuration="0123456789ab")
    assert cycle(histories, publisher, how=how).problems == ()
    kept, (plan,) = histories.ledger.latest(), publisher.plans
    assert kept is not None
    assert (kept.seconds, kept.configuration, kept.complete) == (2.5, "0123456789ab", True)
    assert (kept.sequence, kept.published) == (plan.sequence, ("fake",))
    assert kept.sources == UNEVEN.sources
    assert {node.target for node in kept.nodes if node.target} == set(plan.targets)
    assert groups_in(histories.errors_log) == ["alice", "cms"]


def test_power_that_is_no_number_is_a_problem_and_no_traceback(
    histories: Histories, tmp_path: Path
) -> None:
    publisher, nan = FakePublisher(), float("nan")
    cycle(histories, publisher)
    jobs = tuple(job._replace(hs06_per_core=nan) for job in UNEVEN.running)
    ports = replace(
        ports_of(histories, publisher, 1),
        pool=FakePool(replace(UNEVEN, running=jobs, taken_at=NOW + 1020)),
        state=StateFile(tmp_path / "state.json"),
        audit=AuditFile(tmp_path, Who("u", None, "cm", "cycle")),
    )
    ports.state.save(State(5))
    result = run_cycle(CONFIG, ports, NOW + 1020)
    assert len(publisher.plans) == 2
    assert any("please report this line" in problem for problem in result.problems)
    assert ports.state.load().sequence == NOW + 1020


def test_a_broken_ledger_is_said_and_the_cycle_controls(
    histories: Histories, tmp_path: Path
) -> None:
    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    cycle(histories, FakePublisher())
    histories.ledger.path.write_bytes(b"no database at all" * 1000)
    before = contents()
    (warning,) = cycle(histories, FakePublisher(), 1, Circumstances(dry_run=True)).warnings
    assert f"moves it to {histories.ledger.path}.broken-DATE" in warning
    assert contents() == before, "a dry run writes nothing"
    publisher = FakePublisher()
    result = cycle(histories, publisher, 1)
    assert publisher.plans == [result.publication.plan]
    assert "is broken: file is not a database: moved to" in result.problems[-1]
    assert len(groups_in(histories.errors_log)) == 4
    assert cycle(histories, publisher, 2).problems == ()
    assert len(list(histories.ledger.cycles(0, 2**40))) == 2


def test_a_log_that_cannot_be_written_does_not_keep_the_cycle_from_the_ledger(
    histories: Histories,
) -> None:
    histories.errors_log.mkdir()
    with pytest.raises(StateError, match=r"errors\.log"):
        histories.record(*made())
    histories.record(*incomplete(1))
    kept = histories.ledger.cycles(0, 2**40)
    assert [record.complete for record in kept] == [True, False], "logs are of complete cycles"


def test_a_cycle_steers_on_whatever_is_in_the_ledger(histories: Histories) -> None:
    publisher = FakePublisher()
    assert cycle(histories, publisher).problems == ()
    changed(histories.ledger.path, "UPDATE cycles SET taken_at = 'abc'")
    (problem,) = cycle(histories, publisher, 4).problems
    assert "ledger" in problem
    assert len(publisher.plans) == 2
    assert len(groups_in(histories.errors_log)) == 4
