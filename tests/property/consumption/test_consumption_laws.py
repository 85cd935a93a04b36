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
Amounts = dict[str, Fraction]
PARTS = st.one_of(st.sampled_from([Fraction(part, 8) for part in range(17)]), st.fractions(0, 2))


def requests(most: Mapping[str, Fraction]) -> st.SearchStrategy[Amounts]:
    """Nothing at all, or up to twice ``most`` of each asset, its simple parts often."""
    some = {name: st.builds(operator.mul, PARTS, st.just(most[name])) for name in most}
    return st.one_of(st.just({}), st.fixed_dictionaries(some))


@st.composite
def fresh_slots(draw: st.DrawFn) -> tuple[Model, Amounts]:
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


@given(st.data(), fresh_slots())
def test_costs_sum_to_the_fall_of_the_weight_which_is_0_when_nothing_fits(
    data: st.DataObject, slot: tuple[Model, Amounts]
) -> None:
    """W is 0 exactly when none of the smallest claims fits, and no claim costs less than 0."""
    model, start = slot
    remaining, total = dict(start), 0
    for _ in range(data.draw(st.integers(0, 8))):
        request = data.draw(requests(remaining))
        if fits(model, remaining, request):
            cost = match_cost(model, remaining, request)
            assert cost >= 0
            total += cost
            remaining = after_claim(model, remaining, request)
    assert total == model.claims(start) - model.claims(remaining)
    smallest: list[Amounts] = [{}]
    if isinstance(model, Quanta) and model.zero_allowed:
        smallest += [{asset: model.size(asset)} for asset in model.levels]
    fitting = [claim for claim in smallest if fits(model, remaining, claim)]
    assert (model.claims(remaining) > 0) is bool(fitting)


@given(fresh_slots().filter(lambda slot: not getattr(slot[0], "zero_allowed", False)))
def test_as_many_least_claims_fit_as_are_counted(slot: tuple[Model, Amounts]) -> None:
    """Where claims take some of every asset, exactly W of the smallest fit, and each costs 1."""
    model, remaining = slot
    counted = min(model.claims(remaining), 60)
    for _ in range(counted):
        assert match_cost(model, remaining, {}) == 1
        remaining = after_claim(model, remaining, {})
    assert counted == 60 or not fits(model, remaining, {})


@given(st.data(), fresh_slots())
def test_a_claim_gets_its_request_and_more_is_never_charged_less(
    data: st.DataObject, slot: tuple[Model, Amounts]
) -> None:
    model, start = slot
    request, more = data.draw(requests(start)), data.draw(requests(start))
    charge = model.charge(request)
    for asset, taken in charge.items():
        assert taken >= request.get(asset, 0) or isinstance(model, FixedClaims)
    larger = {asset: max(request.get(asset, Fraction(0)), amount) for asset, amount in more.items()}
    # A request of nothing at all takes a quantum of the first asset.
    if any(request.values()):
        charged = model.charge({**request, **larger})
        assert {asset for asset, taken in charge.items() if charged[asset] < taken} == set()
    if isinstance(model, Quanta):
        for asset, levels in model.levels.items():
            assert model.quanta(asset, start) >= min(levels, int(start[asset]))
