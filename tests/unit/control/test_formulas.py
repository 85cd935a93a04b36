from __future__ import annotations

from dataclasses import replace
from typing import Optional

import pytest

from sharectl.control.laws import Control, Ewma, Pid
from sharectl.control.setpoints import Entitlement, Loans
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.record import record_of
from sharectl.explain.group import Formula, formulas, number
from sharectl.model import GroupControl, GroupError, GroupUsage, Snapshot
from sharectl.plan.plan import State, decide
from sharectl.plan.records import CycleRecord
from tests.fakes import NOW, running, snapshot
from tests.ledgers import busy, law

# The three printed rows of the seed: PLEDGE, DHS, DPHS; power is DPHS + PLEDGE.
SEED = {
    "cms": (87_100, -3321, -29_403),
    "atlas": (105_300, -489, -32_021),
    "alice": (71_400, 12_594, -8785),
}


def seed_row(group: str) -> GroupControl:
    pledge, error, over = SEED[group]
    usage = GroupUsage(power_hs06=float(over + pledge))
    row = GroupError(group, float(pledge), 0.0, float(error), float(over), usage)
    return GroupControl(row, usage.power_hs06 - error, float(error), float(error))


def of(record: CycleRecord, group: str, before: Optional[CycleRecord] = None) -> dict[str, Formula]:
    earlier = next((c for c in before.groups if c.group == group), None) if before else None
    return {formula.name: formula for formula in formulas(record, group, earlier)}


def steered(control: Control, looks: list[Snapshot], **of_law: object) -> list[CycleRecord]:
    config = replace(law(**of_law), steering=SteeringConfig(control))  # type: ignore[arg-type]
    records, state = [], State()
    for taken in looks:
        decision = decide(config, state, taken, taken.taken_at)
        state = decision.state
        records.append(record_of(config, taken, decision, decision.plan, ()))
    return records


def computed(formula: Formula) -> float:
    """What its numbers come to."""
    return float(eval(formula.numbers.replace("x", "*")))  # noqa: S307 - ours


@pytest.mark.parametrize("group", SEED)
def test_the_rows_of_the_seed_come_out_as_they_are_printed(group: str) -> None:
    record = CycleRecord(1_627_101_243, 0.0, complete=True, groups=tuple(map(seed_row, SEED)))
    found = of(record, group)
    assert round(float(found["DHS"].numbers.split(" x ")[1]), 4) == 0.7006
    assert found["DHS"].value == SEED[group][1]
    for name in ("DHS", "setpoint", "error"):
        assert abs(computed(found[name]) - found[name].value) < 0.5


@pytest.mark.parametrize("mode", ["in_use", "present", "pledge"])
def test_every_setpoint_is_what_its_numbers_come_to(mode: str) -> None:
    config = replace(law(), steering=SteeringConfig(entitlement=Entitlement(setpoint=mode)))
    taken = busy(1)
    decision = decide(config, State(), taken, taken.taken_at)
    record = record_of(config, taken, decision, decision.plan, ())
    for group in ("alice", "atlas", "cms"):
        found = of(record, group)
        assert abs(computed(found["setpoint"]) - found["setpoint"].value) < 1
        assert abs(computed(found["error"]) - found["error"].value) < 0.2


def test_what_is_lent_or_borrowed_is_a_term_of_its_own() -> None:
    entitlement = Entitlement(loans=Loans(max_lent_hs06={"alice": 500.0, "atlas": 500.0}))
    config = replace(law(), steering=SteeringConfig(entitlement=entitlement))
    taken = snapshot(
        [running("cn-1", "alice", 1, 8), running("cn-2", "cms", 8, 8)], {("cms", 8): 99}
    )
    decision = decide(config, State(), taken, NOW)
    found = of(record_of(config, taken, decision, decision.plan, ()), "cms")["setpoint"]
    assert " + " in found.numbers
    assert "lent, borrowed or carried over" in found.words
    assert abs(computed(found) - found.value) < 1


def test_the_average_is_what_its_weights_come_to() -> None:
    first, second = steered(
        Control(law="ewma", ewma=Ewma(half_life_seconds=1020)), [busy(0), busy(3)]
    )
    assert of(first, "alice")["average"].numbers == "as recorded"
    found = of(second, "alice", first)
    assert " x 0.125" in found["average"].numbers
    assert "3060 s later" in found["average"].words
    assert abs(computed(found["average"]) - found["average"].value) < 0.2
    assert found["output"] == Formula(
        "output", found["average"].value, "average", "the average of the errors"
    )


def test_weights_are_of_the_time_between_where_the_error_stays_the_same() -> None:
    looks = [busy(0), replace(busy(0), taken_at=busy(0).taken_at + 22)]
    first, second = steered(Control(law="ewma", ewma=Ewma(half_life_seconds=60)), looks)
    numbers = of(second, "alice", first)["average"].numbers
    assert " x 0.7756 + " in numbers
    assert numbers.endswith(" x 0.2244")


def test_weights_that_are_not_known_are_not_guessed() -> None:
    first, second = steered(Control(law="ewma"), [busy(0), busy(3)])
    control = next(each for each in second.groups if each.group == "alice")
    bare = {name: value for name, value in control.state.items() if name != "half_life_seconds"}
    older = replace(second, groups=(replace(control, state=bare),))
    assert of(older, "alice", first)["average"].numbers == "as recorded"


def test_the_three_terms_come_to_the_output() -> None:
    control = Control(law="pid", pid=Pid(gain=0.5, derivative_seconds=600.0))
    *_, last = steered(control, [busy(0), busy(1), busy(2)])
    found = of(last, "alice")
    assert found["D"].value != 0
    assert abs(sum(found[name].value for name in "PID") - found["output"].value) < 0.1
    assert found["output"].numbers == "P + I + D"
    assert computed(found["P"]) == pytest.approx(found["P"].value, abs=0.1)


def test_what_bounded_the_output_is_named() -> None:
    (first,) = steered(Control(), [busy(0)], deadband_hs06=1e6)
    assert of(first, "alice")["output"].numbers == "error = 537.9, and then: deadband"


def test_a_law_of_another_version_is_told_as_it_is_recorded() -> None:
    control = replace(seed_row("alice"), law="fuzzy", state={"mood": 1.0})
    record = CycleRecord(NOW, 0.0, complete=True, groups=(control,), setpoint="tarot")
    found = of(record, "alice")
    assert found["output"].words == "mood 1"
    assert found["setpoint"].numbers == "as recorded"


def test_a_number_is_never_minus_nothing() -> None:
    assert [number(value) for value in (-0.01, 0.0, -0.06)] == ["0.0", "0.0", "-0.1"]
