"""Formulas of a group's figures: their numbers come to their values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.control.laws import Control, Pid
from sharectl.control.setpoints import Entitlement, Loans
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.record import record_of
from sharectl.explain.formulas import Formula, formulas, number
from sharectl.model import GroupControl, GroupError, GroupUsage, Snapshot
from sharectl.plan.plan import State, decide
from sharectl.plan.records import CycleRecord
from tests.fakes import NOW, running, snapshot
from tests.ledgers import busy, law

SEED = {
    "cms": (87_100, -3321, -29_403),
    "atlas": (105_300, -489, -32_021),
    "alice": (71_400, 12_594, -8785),
    "others": (100_000, -8784, -38_727),
}
"""Printed rows (PLEDGE, DHS, DPHS), and the rest of that pool, from which its ratio comes."""


def seed_row(group: str) -> GroupControl:
    pledge, error, over = SEED[group]
    usage = GroupUsage(power_hs06=float(over + pledge))
    row = GroupError(group, float(pledge), 0.0, float(error), float(over), usage)
    return GroupControl(row, usage.power_hs06 - error, float(error), float(error))


def of(record: CycleRecord, group: str = "alice") -> dict[str, Formula]:
    return {formula.name: formula for formula in formulas(record, group)}


def last(
    steering: SteeringConfig, *looks: Snapshot, group: str = "alice", **limits: object
) -> dict[str, Formula]:
    """Formulas of a group after some cycles."""
    config, state = replace(law(**limits), steering=steering), State()  # type: ignore[arg-type]
    for taken in looks:
        decision = decide(config, state, taken, taken.taken_at)
        state = decision.state
    return of(record_of(config, looks[-1], decision, decision.plan, ()), group)


def assert_computed(formula: Formula, within: float) -> None:
    value = eval(formula.numbers.replace("x", "*"))  # noqa: S307 - ours
    assert value == pytest.approx(formula.value, abs=within)


@pytest.mark.parametrize("group", ["cms", "atlas", "alice"])
def test_the_rows_of_the_seed_come_out_as_they_are_printed(group: str) -> None:
    record = CycleRecord(1_627_101_243, 0.0, complete=True, groups=tuple(map(seed_row, SEED)))
    rows = of(record, group)
    assert round(float(rows["DHS"].numbers.split(" x ")[1]), 4) == 0.7006
    assert rows["DHS"].value == SEED[group][1]
    for name in ("DHS", "setpoint", "error"):
        assert_computed(rows[name], 2)


@pytest.mark.parametrize("group", ["alice", "cms"])
@pytest.mark.parametrize("setpoint", ["in_use", "present", "pledge", "lent"])
def test_setpoints_are_computed(group: str, setpoint: str) -> None:
    loans, taken = Loans(), busy(1)
    if lent := setpoint == "lent":
        setpoint, loans = "in_use", Loans(max_lent_hs06={"alice": 500.0, "atlas": 500.0})
        held = [running("cn-1", "alice", 1, 8), running("cn-2", "cms", 8, 8)]
        taken = snapshot(held, {("cms", 8): 99})
    steering = SteeringConfig(entitlement=Entitlement(setpoint, loans))
    rows = last(steering, taken, group=group)
    assert_computed(rows["setpoint"], 1)
    assert_computed(rows["error"], 0.2)
    assert (" + " in rows["setpoint"].numbers) is (lent and group == "cms")


@pytest.mark.parametrize(
    ("control", "word"),
    [(Control(law="ewma"), "average_hs06 "), (Control(law="pid", pid=Pid()), "integral_hs06 ")],
)
def test_laws_with_a_memory_show_it(control: Control, word: str) -> None:
    output = last(SteeringConfig(control), busy(0), busy(1))["output"]
    assert output.numbers == "as recorded"
    assert word in output.words


def test_bounds_of_the_output_and_laws_of_another_version_are_named() -> None:
    bounded = last(SteeringConfig(), busy(0), deadband_hs06=1e6)["output"]
    assert bounded.numbers == "error = 537.9, and then: deadband"
    control = replace(seed_row("alice"), law="fuzzy", state={"mood": 1.0})
    rows = of(CycleRecord(NOW, 0.0, complete=True, groups=(control,), setpoint="tarot"))
    assert (rows["output"].words, rows["setpoint"].numbers) == ("mood 1", "as recorded")
    assert [number(value) for value in (-0.01, 0.0, -0.06)] == ["0.0", "0.0", "-0.1"]
