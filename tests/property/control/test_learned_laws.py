"""Laws of the law `learned` and of shadows: they stop no cycle, and move nothing without bound."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sharectl.control.laws import LAWS, MOST_HS06, Control, Reading, Shadow, step
from sharectl.control.learned import FEATURES, MOST_WEIGHT, Policy, learned
from sharectl.control.steering import SteeringConfig, steer
from sharectl.model import Snapshot
from tests.fakes import NOW, running, snapshot
from tests.policies import HALF

MOST = 1000.0
PLEDGES = {"alice": 100.0, "cms": 300.0, "lhcb": 100.0}
powers = st.floats(-2000, 2000)
demands = st.dictionaries(st.sampled_from((1, 4, 8)), st.integers(1, 10**6))
cores = st.integers(0, 1000)
readings = st.builds(
    Reading,
    powers,
    powers,
    st.sampled_from((0.0, 50.0)),
    st.just(MOST),
    powers,
    demands,
    cores,
    cores,
)
finite = st.floats(allow_nan=False, allow_infinity=False)
any_readings = st.builds(
    Reading, finite, finite, st.just(0.0), st.floats(0, MOST_HS06), finite, demands, cores, cores
)
policies = st.lists(st.sampled_from(tuple(FEATURES)), unique=True, max_size=len(FEATURES)).flatmap(
    lambda names: st.builds(
        Policy,
        st.just(tuple(names)),
        st.tuples(*[st.floats(-MOST_WEIGHT, MOST_WEIGHT)] * len(names)),
        st.floats(1, 1e6),
        st.just({}),
    )
)


@given(policies, st.lists(st.tuples(readings | any_readings, st.floats(0, 5000)), min_size=1))
def test_a_policy_never_fails(policy: Policy, past: list[tuple[Reading, float]]) -> None:
    """Every sound policy has a bounded output for every reading, after every past.

    Its state is JSON. Inside the deadband it moves nothing.
    """
    control = Control("learned", loaded=policy)
    state: Mapping[str, float] = {}
    for reading, dt in past:
        move = step(control, state, reading, dt)
        assert abs(move.output_hs06) <= reading.most_hs06
        least_hs06 = min(abs(move.output_hs06), abs(reading.error_hs06))
        assert (
            move.output_hs06 == 0 or least_hs06 > reading.deadband_hs06 or not reading.deadband_hs06
        )
        assert all(map(isfinite, move.state.values()))
        state = json.loads(json.dumps(move.state))


@given(st.dictionaries(st.sampled_from(("learned.mean_ratio", "integral_hs06")), powers), readings)
def test_a_policy_that_was_not_read_moves_nothing(state: dict[str, float], now: Reading) -> None:
    move = step(Control("learned"), state, now, 60.0)
    assert (move.state, move.output_hs06) == ({}, 0.0)


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
    st.sampled_from((None, "no such file", HALF)),
    st.sampled_from(tuple(LAWS)),
    st.sampled_from((*LAWS, "learned")),
)
def test_a_shadow_changes_nothing(
    looks: list[Snapshot], loaded: object, acting: str, name: str
) -> None:
    """Outputs and codes are those of the law that acts, whatever the shadow does.

    A shadow does what its law would do if it acted; one that cannot be loaded does nothing.
    """
    ways = {
        "alone": Control(acting),
        "beside": Control(acting, shadow=Shadow(name, loaded=loaded)),
        "shadow": Control(name, loaded=loaded),
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
            assert (beside.shadow is None) is isinstance(loaded, str)
            assert beside.shadow is None or beside.shadow.output_hs06 == acts.output_hs06


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
        learned(policy, learned(policy, {}, one, 0.0).state, one, dt) for one in (now, larger)
    )
    assert abs(there.output_hs06 - here.output_hs06 * size) <= 1e-6 * max(
        1.0, abs(there.output_hs06), MOST * size
    )


@given(readings, st.floats(0, 5000))
def test_the_error_alone_is_latest(now: Reading, dt: float) -> None:
    """With weight 1 of the error and no other, the law is `latest`, bounded by all power."""
    alone = replace(HALF, weights=(1.0,))
    output = step(Control("learned", loaded=alone), {}, now, dt).output_hs06
    wanted = step(Control(), {}, now, dt).output_hs06
    assert abs(output - min(max(wanted, -MOST), MOST)) <= 1e-9 * MOST
