"""Formulas of a group's figures: their numbers come to their values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.control.laws import Control, Ewma, Pid
from sharectl.control.setpoints import Entitlement, Loans
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.record import record_of
from sharectl.explain.formulas import Formula, formulas, number
from sharectl.model import GroupControl, GroupError, GroupUsage, Snapshot
from sharectl.plan.plan import State, decide
from sharectl.plan.records import CycleRecord
from tests.fakes import NOW, running, snapshot
from tests.ledgers import busy, law

# The three printed rows of the seed: PLEDGE, DHS, DPHS; power is DPHS + PLEDGE.
PRINTED = {
    "cms": (87_100, -3321, -29_403),
    "atlas": (105_300, -489, -32_021),
    "alice": (71_400, 12_594, -8785),
}
SEED = {**PRINTED, "others": (100_000, -8784, -38_727)}
"""With the rest of that pool, from which its ratio comes."""


def seed_row(group: str) -> GroupControl:
    pledge, error, over = SEED[group]
    usage = GroupUsage(power_hs06=float(over + pledge))
    row = GroupError(group, float(pledge), 0.0, float(error), float(over), usage)
    return GroupControl(row, usage.power_hs06 - error, float(error), float(error))


def of(record: CycleRecord, group: str = "alice") -> dict[str, Formula]:
    return {formula.name: formula for formula in formulas(record, group)}


def steered(steering: SteeringConfig, *looks: Snapshot, **limits: float) -> list[CycleRecord]:
    config = replace(law(**limits), steering=steering)  # type: ignore[arg-type]
    records, state = [], State()
    for taken in looks:
        decision = decide(config, state, taken, taken.taken_at)
        state = decision.state
        records.append(record_of(config, taken, decision, decision.plan, ()))
    return records


def assert_computed(formula: Formula, within: float) -> None:
    value = eval(formula.numbers.replace("x", "*"))  # noqa: S307 - ours
    assert value == pytest.approx(formula.value, abs=within)


@pytest.mark.parametrize("group", PRINTED)
def test_the_rows_of_the_seed_come_out_as_they_are_printed(group: str) -> None:
    record = CycleRecord(1_627_101_243, 0.0, complete=True, groups=tuple(map(seed_row, SEED)))
    rows = of(record, group)
    assert round(float(rows["DHS"].numbers.split(" x ")[1]), 4) == 0.7006
    assert rows["DHS"].value == SEED[group][1]
    for name in ("DHS", "setpoint", "error"):
        assert_computed(rows[name], 2)


@pytest.mark.parametrize("mode", ["in_use", "present", "pledge"])
@pytest.mark.parametrize("group", ["alice", "cms"])
def test_every_setpoint_is_computed(mode: str, group: str) -> None:
    (record,) = steered(SteeringConfig(entitlement=Entitlement(setpoint=mode)), busy(1))
    assert_computed(of(record, group)["setpoint"], 1)
    assert_computed(of(record, group)["error"], 0.2)


def test_loans_are_a_term() -> None:
    entitlement = Entitlement(loans=Loans(max_lent_hs06={"alice": 500.0, "atlas": 500.0}))
    held = [running("cn-1", "alice", 1, 8), running("cn-2", "cms", 8, 8)]
    (record,) = steered(SteeringConfig(entitlement=entitlement), snapshot(held, {("cms", 8): 99}))
    assert " + " in of(record, "cms")["setpoint"].numbers
    assert_computed(of(record, "cms")["setpoint"], 1)


@pytest.mark.parametrize(
    ("half_life_seconds", "seconds", "weight"), [(1020, 3060, "0.125"), (60, 22, "0.7756")]
)
def test_the_average_is_computed_by_its_weights(
    half_life_seconds: float, seconds: int, weight: str
) -> None:
    control = Control(law="ewma", ewma=Ewma(half_life_seconds=half_life_seconds))
    later = replace(busy(3), taken_at=busy(0).taken_at + seconds)
    first, second = steered(SteeringConfig(control), busy(0), later)
    assert of(first)["average"].numbers == "as recorded"
    rows = of(second)
    assert f" x {weight}" in rows["average"].numbers
    assert_computed(rows["average"], 0.3)
    assert (rows["output"].numbers, rows["output"].value) == ("average", rows["average"].value)


def test_the_three_terms_come_to_the_output() -> None:
    control = Control(law="pid", pid=Pid(gain=0.5, derivative_seconds=600.0))
    *_, last = steered(SteeringConfig(control), busy(0), busy(1), busy(2))
    rows = of(last)
    assert rows["D"].value != 0
    assert sum(rows[name].value for name in "PID") == pytest.approx(rows["output"].value, abs=0.1)
    assert rows["output"].numbers == "P + I + D"
    assert_computed(rows["P"], 0.1)


def test_bounds_of_the_output_and_laws_of_another_version_are_named() -> None:
    (first,) = steered(SteeringConfig(), busy(0), deadband_hs06=1e6)
    assert of(first)["output"].numbers == "error = 537.9, and then: deadband"
    control = replace(seed_row("alice"), law="fuzzy", state={"mood": 1.0})
    record = CycleRecord(NOW, 0.0, complete=True, groups=(control,), setpoint="tarot")
    assert of(record)["output"].words == "mood 1"
    assert of(record)["setpoint"].numbers == "as recorded"


def test_a_number_is_never_minus_nothing() -> None:
    assert [number(value) for value in (-0.01, 0.0, -0.06)] == ["0.0", "0.0", "-0.1"]
