"""Laws of the models of claim capacity: how many claims a slot still supports, and what a claim costs."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharectl.consumption.claims import (
    CLAIMS,
    MAX_AMOUNT,
    FixedClaims,
    MinimumCharge,
    Model,
    Quanta,
    after_claim,
    exact,
    exact_amounts,
    fits,
    match_cost,
)
from sharectl.errors import InputError

ASSETS = ("cpus", "memory", "tokens")
positive = st.one_of(
    st.integers(1, 10**6),
    st.fractions(Fraction(1, 1000), 10**6, max_denominator=1000),
    st.floats(0.001, 1e6),
)
Slot = tuple[Model, dict[str, Fraction]]


def dense(most: Mapping[str, Fraction]) -> st.SearchStrategy[dict[str, Fraction]]:
    """Amounts of each asset from 0 to ``most``, the ends and simple parts often."""
    parts = st.one_of(st.sampled_from([Fraction(part, 8) for part in range(9)]), st.fractions(0, 1))
    return st.fixed_dictionaries(
        {asset: st.builds(operator.mul, parts, st.just(amount)) for asset, amount in most.items()}
    )


@st.composite
def fresh_slots(draw: st.DrawFn) -> Slot:
    """A model, and a slot without claims."""
    kind = draw(st.sampled_from(["fixed", "all", "any", "least"]))
    names = ASSETS[: draw(st.integers(1, 3))]
    if kind == "fixed":
        limit = draw(st.integers(1, 40))
        return FixedClaims(limit), {CLAIMS: Fraction(limit)}
    whole = draw(st.booleans())
    amounts = st.integers(1, 10**6).map(Fraction) if whole else positive.map(exact)
    total = {name: draw(amounts) for name in names}
    if kind == "least":
        least = {name: exact(draw(positive)) for name in names}
        return MinimumCharge(least, frozenset(names) if whole else frozenset()), total
    levels = {name: draw(st.integers(1, 40)) for name in names}
    return Quanta(total, levels, zero_allowed=kind == "any", whole=whole), total


@st.composite
def slots(draw: st.DrawFn) -> Slot:
    """A model, and what any claims or none left of a slot."""
    model, total = draw(fresh_slots())
    return model, draw(dense(total))


@st.composite
def claims_on(draw: st.DrawFn, most: dict[str, Fraction]) -> dict[str, Fraction]:
    """A request; nothing at all, and too large ones among them."""
    return draw(
        st.one_of(
            st.just({}), dense(most), dense({name: 2 * amount for name, amount in most.items()})
        )
    )


def smallest_claims(model: Model) -> list[dict[str, Fraction]]:
    """Requests of which no other is less: nothing; where a claim may take none of some assets, one quantum of any."""
    least: list[dict[str, Fraction]] = [{}]
    if isinstance(model, Quanta) and model.zero_allowed:
        least += [{asset: model.size(asset)} for asset in model.levels]
    return least


@given(slots())
def test_claims_are_a_number(slot: Slot) -> None:
    """W is a finite whole number, not below 0, for every slot and whatever is left of it."""
    model, remaining = slot
    claims = model.claims(remaining)
    assert type(claims) is int
    assert claims >= 0


@given(st.data(), slots())
def test_no_claim_costs_less_than_nothing(data: st.DataObject, slot: Slot) -> None:
    """No claim that fits has a cost below 0."""
    model, remaining = slot
    request = data.draw(claims_on(remaining))
    if fits(model, remaining, request):
        assert match_cost(model, remaining, request) >= 0


@given(st.data(), fresh_slots())
def test_costs_sum_to_what_is_gone(data: st.DataObject, slot: Slot) -> None:
    """The costs of any claims, one after the other, sum to W at the start less W at the end."""
    model, start = slot
    remaining, total = dict(start), 0
    for _ in range(data.draw(st.integers(0, 8))):
        request = data.draw(claims_on(remaining))
        if fits(model, remaining, request):
            total += match_cost(model, remaining, request)
            remaining = after_claim(model, remaining, request)
    assert total == model.claims(start) - model.claims(remaining)


@given(st.data(), fresh_slots())
def test_no_claims_left_is_no_claim_fits(data: st.DataObject, slot: Slot) -> None:
    """After any claims, W is 0 exactly when none of the smallest claims fits that the model permits."""
    model, remaining = slot
    for _ in range(data.draw(st.integers(0, 8))):
        request = data.draw(claims_on(remaining))
        if fits(model, remaining, request):
            remaining = after_claim(model, remaining, request)
    fitting = [claim for claim in smallest_claims(model) if fits(model, remaining, claim)]
    assert (model.claims(remaining) == 0) == (not fitting)


@given(st.data(), fresh_slots())
def test_what_does_not_fit_at_all_does_not_fit_larger(data: st.DataObject, slot: Slot) -> None:
    """Where W is 0, no request fits, of any size."""
    model, start = slot
    remaining = data.draw(dense(start))
    if model.claims(remaining) == 0:
        assert not fits(model, remaining, data.draw(claims_on(start)))


@given(fresh_slots().filter(lambda slot: not getattr(slot[0], "zero_allowed", False)))
def test_as_many_least_claims_fit_as_are_counted(slot: Slot) -> None:
    """Where claims take some of every asset, exactly W of the smallest fit, and each costs 1."""
    model, remaining = slot
    counted = min(model.claims(remaining), 60)
    for _ in range(counted):
        assert match_cost(model, remaining, {}) == 1
        remaining = after_claim(model, remaining, {})
    assert fits(model, remaining, {}) == (model.claims(remaining) > 0)
    assert counted == 60 or not fits(model, remaining, {})


@given(st.data(), slots())
def test_a_claim_gets_what_it_asks_for(data: st.DataObject, slot: Slot) -> None:
    """Of every asset that a model charges by request, a claim is charged no less than it asks for."""
    model, remaining = slot
    request = data.draw(claims_on(remaining))
    for asset, taken in model.charge(request).items():
        assert taken >= request.get(asset, 0) or isinstance(model, FixedClaims)
        assert taken > 0 or isinstance(model, Quanta)


@given(st.data(), slots())
def test_more_asked_for_is_never_less_charged(data: st.DataObject, slot: Slot) -> None:
    """A request that asks for more of any asset is charged no less of it, unless the other asks for nothing at all."""
    model, remaining = slot
    request, more = (data.draw(claims_on(remaining)) for _ in range(2))
    larger = {asset: max(request.get(asset, Fraction(0)), amount) for asset, amount in more.items()}
    if any(request.values()):
        charge = model.charge({**request, **larger})
        assert all(charge[asset] >= taken for asset, taken in model.charge(request).items())


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_parts_of_a_core_add_up(levels: int, cores: int) -> None:
    """A request for exactly k parts of Q, written as a float, is charged k quanta and not k + 1."""
    model = Quanta({"cpus": Fraction(cores)}, {"cpus": levels})
    for parts in {1, levels // 3 or 1, levels}:
        asked = exact(parts * cores / levels)
        assert model.charge({"cpus": asked})["cpus"] == Fraction(parts * cores, levels)


HOSTILE = (
    math.inf,
    -math.inf,
    math.nan,
    -1,
    -0.5,
    10**16,
    1e300,
    Fraction(-1, 3),
    True,
    "8",
    None,
    [1],
    10**5000,
)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_no_amount_is_hostile(number: int) -> None:
    """What is no finite number from 0 to MAX_AMOUNT is refused by name, beside all others."""
    hostile: Any = HOSTILE[number]
    with pytest.raises(InputError) as caught:
        exact_amounts({"cpus": hostile, "memory": 1, "disk": hostile})
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["cpus", "disk"]
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("count", [0, -1, 10**7, math.inf, math.nan, 1.5, True, "1"])
def test_no_count_is_hostile(count: Any) -> None:
    """Claims and quanta are whole numbers from 1 up."""
    for make in (
        lambda: FixedClaims(count),
        lambda: Quanta({"cpus": Fraction(8)}, {"cpus": count}),
    ):
        with pytest.raises(InputError):
            make()


def test_models_say_all_that_is_wrong() -> None:
    """A model names every asset that it cannot count, at once."""
    with pytest.raises(InputError, match=r"cpus: .* is 0\n?.*") as caught:
        MinimumCharge({"cpus": Fraction(0), "memory": Fraction(0)})
    assert len(caught.value.problems) == 2
    with pytest.raises(InputError) as caught:
        Quanta({"cpus": Fraction(0)}, {"cpus": 2, "memory": 3})
    assert len(caught.value.problems) == 2
    with pytest.raises(InputError):
        Quanta({"cpus": Fraction(1, 2)}, {"cpus": 2}, whole=True)
    with pytest.raises(InputError):
        MinimumCharge({})
    assert exact(MAX_AMOUNT) == MAX_AMOUNT


def test_a_claim_that_does_not_fit_is_refused() -> None:
    """What remains is never below 0."""
    with pytest.raises(InputError, match="does not fit"):
        after_claim(FixedClaims(1), {CLAIMS: Fraction(0)}, {})


@given(fresh_slots())
def test_a_fresh_slot_has_all_its_quanta(slot: Slot) -> None:
    """A slot without claims has exactly as many quanta as levels, or, in whole units, that many where it has as many units."""
    model, start = slot
    if isinstance(model, Quanta):
        for asset, levels in model.levels.items():
            quanta = model.quanta(asset, start)
            assert quanta >= min(levels, int(start[asset])) if model.whole else quanta == levels
