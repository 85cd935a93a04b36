"""Laws of the models of claim capacity; test_consumption_expressions.py holds HTCondor to them."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sharectl.consumption.policy import CLAIMS
from tests.claim_models import (
    FixedClaims,
    MinimumCharge,
    Model,
    Quanta,
    after_claim,
    fits,
    match_cost,
)

ASSETS = ("cpus", "memory", "tokens")
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
    if kind == "fixed":
        limit = draw(st.integers(1, 40))
        return FixedClaims(limit), {CLAIMS: Fraction(limit)}
    names = ASSETS[: draw(st.integers(1, 3))]
    amounts = st.integers(1, 10**6).map(Fraction)
    total = {name: draw(amounts) for name in names}
    if kind == "least":
        return MinimumCharge({name: draw(amounts) for name in names}), total
    levels = {name: draw(st.integers(1, 40)) for name in names}
    return Quanta(total, levels, zero_allowed=kind == "any"), total


@st.composite
def used_slots(draw: st.DrawFn) -> tuple[Model, dict[str, Fraction], dict[str, Fraction], int]:
    """A model, a slot without claims, what some claims left of it, and the sum of their costs."""
    model, start = draw(fresh_slots())
    remaining, total = dict(start), 0
    for _ in range(draw(st.integers(0, 8))):
        request = draw(claims_on(remaining))
        if fits(model, remaining, request):
            cost = match_cost(model, remaining, request)
            assert cost >= 0, "no claim costs less than nothing"
            total += cost
            remaining = after_claim(model, remaining, request)
    return model, start, remaining, total


@st.composite
def claims_on(draw: st.DrawFn, most: dict[str, Fraction]) -> dict[str, Fraction]:
    """A request; nothing at all, and too large ones among them."""
    twice = {name: 2 * amount for name, amount in most.items()}
    return draw(st.one_of(st.just({}), dense(most), dense(twice)))


def smallest_claims(model: Model) -> list[dict[str, Fraction]]:
    """Requests of which no other is less: nothing; with zero allowed, one quantum of any."""
    least: list[dict[str, Fraction]] = [{}]
    if isinstance(model, Quanta) and model.zero_allowed:
        least += [{asset: model.size(asset)} for asset in model.levels]
    return least


@given(used_slots())
def test_costs_sum_to_what_is_gone_and_no_claims_left_is_no_claim_fits(
    used: tuple[Model, dict[str, Fraction], dict[str, Fraction], int],
) -> None:
    """Costs sum to the fall of W, which is 0 exactly when none of the smallest claims fits."""
    model, start, remaining, total = used
    assert model.claims(remaining) >= 0
    assert total == model.claims(start) - model.claims(remaining)
    fitting = [claim for claim in smallest_claims(model) if fits(model, remaining, claim)]
    assert (model.claims(remaining) == 0) == (not fitting)


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


@given(st.data(), fresh_slots())
def test_a_claim_gets_what_it_asks_for_and_more_is_never_charged_less(
    data: st.DataObject, slot: Slot
) -> None:
    model, start = slot
    request, more = (data.draw(claims_on(start)) for _ in range(2))
    charge = model.charge(request)
    for asset, taken in charge.items():
        assert taken >= request.get(asset, 0) or isinstance(model, FixedClaims)
    larger = {asset: max(request.get(asset, Fraction(0)), amount) for asset, amount in more.items()}
    # A request of nothing at all takes a quantum of the first asset.
    if any(request.values()):
        charged = model.charge({**request, **larger})
        assert {asset for asset, taken in charge.items() if charged[asset] < taken} == set()


@given(fresh_slots())
def test_a_fresh_slot_has_all_its_quanta(slot: Slot) -> None:
    """As many as levels, or as there are units if these are fewer."""
    model, start = slot
    if isinstance(model, Quanta):
        for asset, levels in model.levels.items():
            assert model.quanta(asset, start) >= min(levels, int(start[asset]))
