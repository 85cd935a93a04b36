"""Laws of laws that are loaded: they stop no cycle, and move nothing without bound."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from sharectl.control.laws import (
    LAWS,
    MOST_HS06,
    MOST_STATE,
    Control,
    Ewma,
    Move,
    Reading,
    Shadow,
    step,
)
from sharectl.control.learned import FEATURES, Policy, Training, law_of
from sharectl.control.steering import SteeringConfig, steer
from sharectl.model import PlanLimits, Snapshot
from sharectl.plan.plan import PlanConfig, State, decide
from sharectl.plan.settings import GiveUp
from tests.fakes import NOW, running, snapshot

MOST = 1000.0
PLEDGES = {"alice": 100.0, "cms": 300.0, "lhcb": 100.0}
powers = st.floats(-2000, 2000)
readings = st.builds(
    Reading,
    powers,
    powers,
    st.sampled_from((0.0, 50.0)),
    st.just(MOST),
    powers,
    st.dictionaries(st.sampled_from((1, 4, 8)), st.integers(1, 10**6)),
    st.integers(0, 1000),
    st.integers(0, 1000),
)
anything = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(),
    st.text(max_size=5),
    st.just(10**400),
    st.just(1j),
    st.just(object()),
    st.just([1.0]),
)
sound_states = st.dictionaries(st.text("abc_", min_size=1, max_size=3), powers, max_size=4)
names = st.text(max_size=3) | st.none() | st.integers()
states = st.one_of(anything, st.dictionaries(names, anything, max_size=4))
answers = st.one_of(
    anything, st.builds(Move, states, anything), st.builds(Move, sound_states, powers)
)
errors = st.sampled_from((ValueError, ZeroDivisionError, SystemExit, MemoryError, RecursionError))


class WordlessError(Exception):
    """Error without a text."""

    def __str__(self) -> str:
        raise ValueError("no words")


def says(answer: Any, error: Any = None) -> Any:
    """Law that answers so, or raises."""

    def law(state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Any:
        del reading, dt_seconds
        # Its own state may be changed: it is a copy.
        state.clear()  # type: ignore[attr-defined]
        if error is not None:
            raise error("broken")
        return answer

    return law


laws = st.one_of(
    st.builds(says, answers), st.builds(says, st.none(), errors | st.just(WordlessError))
)
foreign = st.dictionaries(
    st.sampled_from(("odd.a", "odder.a", "integral_hs06", "shadow.b")), powers
)


@given(laws, foreign, readings, st.floats(0, 20000))
def test_a_loaded_law_is_fenced(law: Any, state: dict[str, float], now: Reading, dt: float) -> None:
    """Its output is finite and at most all power; 0 inside the deadband; a failure has a reason.

    Its state is JSON with names of its own, and after a failure empty.
    """
    before = dict(state)
    move = step(Control("odd", loaded=law), state, now, dt)
    assert state == before
    assert abs(move.output_hs06) <= MOST
    assert move.output_hs06 == 0 or abs(move.output_hs06) > now.deadband_hs06
    assert ("law-failed" in move.acted) == bool(move.problem)
    assert move.problem.isprintable()
    if move.problem:
        assert (move.state, move.output_hs06) == ({}, 0)
    assert json.loads(json.dumps(move.state, allow_nan=False)) == move.state
    assert all(name.startswith("odd.") for name in move.state)
    assert all(isfinite(number) and abs(number) <= MOST_HS06 for number in move.state.values())


@example({}, 51.0, Reading(0.0, 0.0, 50.0, MOST, 0.0, {}, 0, 0))
@given(sound_states, powers, readings)
def test_a_sound_answer_is_taken(state: dict[str, float], wanted: float, now: Reading) -> None:
    """A finite output within the bound and beyond the deadband is the output."""
    move = step(Control("odd", loaded=says(Move(state, wanted))), {}, now, 60.0)
    assert {name[len("odd.") :]: number for name, number in move.state.items()} == state
    bounded = min(max(wanted, -MOST), MOST)
    is_inside = min(abs(now.error_hs06), abs(bounded)) <= now.deadband_hs06 > 0
    assert move.output_hs06 == (0 if is_inside else bounded)
    assert move.problem == ""


@given(foreign, readings)
def test_a_loaded_law_gets_its_own_numbers(state: dict[str, float], now: Reading) -> None:
    """Numbers of other laws, of setpoints and of a shadow are not handed to it."""
    seen: list[Mapping[str, float]] = []

    def law(own: Mapping[str, float], reading: Reading, dt_seconds: float) -> Move:
        del dt_seconds
        seen.append(own)
        return Move({}, reading.error_hs06)

    step(Control("odd", loaded=law), state, now, 60.0)
    assert seen == [{"a": state["odd.a"]} if "odd.a" in state else {}]


def test_too_much_state_is_a_failure() -> None:
    many = {str(number): 0.0 for number in range(MOST_STATE + 1)}
    for state in (many, {"a" * (MOST_STATE + 1): 0.0}, {"a\nb": 0.0}):
        assert step(Control("odd", loaded=says(Move(state, 1.0))), {}, Reading(9, 9), 1.0).problem


def test_a_law_that_is_not_loaded_moves_nothing() -> None:
    move = step(Control("odd"), {}, Reading(9, 9), 1.0)
    assert move == Move({}, 0.0, ("law-failed",), "law odd: it is not loaded")


LOOKS = st.builds(
    lambda alice, cms, waiting: snapshot(
        [running("wn-1", "alice", 1, alice), running("wn-2", "cms", 8, cms)],
        {("cms", 8): waiting, ("lhcb", 1): waiting},
    ),
    st.integers(0, 64),
    st.integers(0, 8),
    st.integers(0, 3),
)


@given(
    st.lists(LOOKS, min_size=1, max_size=4),
    laws,
    st.sampled_from(tuple(LAWS)),
    st.sampled_from((*LAWS, "odd")),
)
def test_a_shadow_changes_nothing(looks: list[Snapshot], law: Any, acting: str, name: str) -> None:
    """Outputs and codes are those of the law that acts, whatever the shadow does.

    A shadow of a built-in law does what that law would do if it acted.
    """
    shadow = Shadow(name, loaded=None if name in LAWS else law)
    ways = {
        "alone": Control(acting),
        "beside": Control(acting, shadow=shadow),
        "shadow": Control(name, loaded=shadow.loaded),
    }
    kept: dict[str, dict[str, Mapping[str, float]]] = {way: {} for way in ways}
    for number, look in enumerate(looks):
        rows = {}
        for way, control in ways.items():
            now = NOW + 1000 * number
            rows[way] = steer(PLEDGES, 0.0, SteeringConfig(control), kept[way], look, now)
            kept[way] = {row.group: row.state for row in rows[way]}
        for alone, beside, acts in zip(*rows.values()):
            assert (alone.output_hs06, alone.acted) == (beside.output_hs06, beside.acted)
            assert beside.shadow is not None
            assert beside.shadow.output_hs06 == acts.output_hs06
            assert beside.shadow.problem == acts.problem


def cycles(
    control: Control, limits: PlanLimits, strategy: str, looks: list[Snapshot]
) -> list[tuple[Any, ...]]:
    """Plan, limits that acted, codes of groups, and open blocks of each cycle."""
    config = PlanConfig(
        PLEDGES,
        limits,
        3060,
        strategy=strategy,
        steering=SteeringConfig(control),
        give_up=GiveUp(1500.0),
    )
    state, seen = State(), []
    for number, look in enumerate(looks):
        now = NOW + 1000 * number
        decision = decide(config, state, replace(look, taken_at=now), now)
        state = decision.state
        codes = [control.acted for control in decision.groups]
        seen.append((decision.plan, codes, state.blocks, [n.reason for n in decision.nodes]))
    return seen


BOUNDS = st.builds(
    PlanLimits,
    deadband_hs06=st.sampled_from((0.0, 100.0)),
    max_nodes=st.none() | st.just(1),
    max_changed_nodes=st.none() | st.just(1),
    dwell_seconds=st.sampled_from((0, 2500)),
)


@given(st.lists(LOOKS, min_size=2, max_size=5), BOUNDS, st.sampled_from(("many", "pair")))
def test_fences_act_on_a_loaded_law(
    looks: list[Snapshot], limits: PlanLimits, strategy: str
) -> None:
    """Deadband, limits, dwell and give-up do to it what they do to a built-in law of its output."""
    # An average without a past is the error, and is remembered as all others are.
    built_in = Control("ewma", ewma=Ewma(half_life_seconds=1e-3))
    expected = cycles(built_in, limits, strategy, looks)
    assert cycles(Control("odd", loaded=says_error), limits, strategy, looks) == expected


def says_error(state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Move:
    del state, dt_seconds
    return Move({}, reading.error_hs06)


TRAINING = Training((), (), "", 0.0, 0.0, "")
policies = st.lists(st.sampled_from(tuple(FEATURES)), unique=True, max_size=len(FEATURES)).flatmap(
    lambda names: st.builds(
        Policy,
        st.just(tuple(names)),
        st.tuples(*[st.floats(-1000, 1000)] * len(names)),
        st.floats(1, 1e6),
        st.just(TRAINING),
    )
)


@given(policies, st.lists(st.tuples(readings, st.floats(0, 5000)), min_size=1, max_size=6))
def test_a_policy_never_fails(policy: Policy, past: list[tuple[Reading, float]]) -> None:
    """Every sound policy has a bounded output for every reading, after every past."""
    control = Control("learned", loaded=law_of(policy))
    state: dict[str, float] = {}
    for reading, dt in past:
        move = step(control, state, reading, dt)
        assert move.problem == ""
        assert abs(move.output_hs06) <= MOST
        state = dict(move.state)


@given(policies, readings, st.floats(0.01, 100), st.floats(1, 3000))
def test_a_policy_does_not_know_the_size_of_the_pool(
    policy: Policy, now: Reading, size: float, dt: float
) -> None:
    """With all powers times a number, the output is times that number."""
    scaled: dict[str, Any] = {
        name: hs06 * size for name, hs06 in vars(now).items() if name.endswith("_hs06")
    }
    larger = replace(now, **scaled)
    here, there = (
        law_of(policy)(law_of(policy)({}, one, 0.0).state, one, dt) for one in (now, larger)
    )
    assert abs(there.output_hs06 - here.output_hs06 * size) <= 1e-6 * max(
        1.0, abs(there.output_hs06), MOST * size
    )


@given(readings, st.floats(0, 5000))
def test_the_error_alone_is_latest(now: Reading, dt: float) -> None:
    """With weight 1 of the error and no other, the law is `latest`, bounded by all power."""
    alone = law_of(Policy(("error",), (1.0,), 3600.0, TRAINING))
    output = step(Control("learned", loaded=alone), {}, now, dt).output_hs06
    wanted = step(Control(), {}, now, dt).output_hs06
    assert abs(output - min(max(wanted, -MOST), MOST)) <= 1e-9 * MOST
