"""Rendered expressions, evaluated by HTCondor's library, have the values of the models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sharectl.condor.library import CondorProcess
from sharectl.consumption.policy import (
    CLAIMS,
    QUANTA,
    AssetPolicy,
    ModelName,
    SlotPolicy,
    attribute_of,
    consumed,
    counters,
    macros,
    weight,
)
from tests.claim_models import Model, fits

MOST = {"cpus": 512, "memory": 2**22, "disk": 2**34, "tokens": 40}
NO_NUMBERS = ('real("NaN")', "-1", "-0.5", '"text"', "error", "{1}", "[a = 1]", "RequestX")
TOO_LARGE = ('real("INF")', "1e300")
COUNTED: tuple[ModelName, ...] = ("quanta_all", "quanta_any", "minimum_charge")
_MACRO = re.compile(r"\$\((\w+)\)")
Amounts = dict[str, int]
Ad = dict[str, str]
Rows = list[list[Any]]


@pytest.fixture(scope="module")
def library() -> Iterator[CondorProcess]:
    with CondorProcess() as process:
        yield process


def values(
    library: CondorProcess, policy: SlotPolicy, texts: Sequence[str], slot: Ad, jobs: Sequence[Ad]
) -> Rows:
    """Value of each expression for each job, with the macros of the policy."""
    made, expanded = macros(policy), []
    for text in texts:
        while _MACRO.search(text):
            text = _MACRO.sub(lambda match: made[match[1]], text)  # noqa: PLW2901 - in turn
        expanded.append(text)
    rows = [row[0] for row in library.evaluate(expanded, [slot], jobs) if row is not None]
    assert len(rows) == len(texts), "each can be read"
    return rows


def fit_texts(policy: SlotPolicy) -> list[str]:
    """The negotiator's own test of each asset."""
    return [f"({text}) <= MY.{attribute_of(asset)}" for asset, text in consumed(policy).items()]


def exact(counts: Mapping[str, float]) -> dict[str, Fraction]:
    return {asset: Fraction(count) for asset, count in counts.items()}


@st.composite
def slots(draw: st.DrawFn, name: ModelName) -> tuple[SlotPolicy, Amounts, Amounts]:
    """A policy of a model, amounts of a slot without claims, and amounts that are left."""
    total = {asset: draw(st.integers(1, most)) for asset, most in MOST.items()}
    left = {asset: draw(st.integers(0, most)) for asset, most in total.items()}
    if name == "minimum_charge":
        charges = {a: AssetPolicy(charge=draw(st.integers(1, most))) for a, most in MOST.items()}
        return SlotPolicy(name, charges), total, left
    if name == "fixed_claims":
        claims = draw(st.integers(1, 50))
        rest = {**left, CLAIMS: draw(st.integers(0, claims))}
        return SlotPolicy(name, claims=claims), {**total, CLAIMS: claims}, rest
    policy = SlotPolicy(name, {a: AssetPolicy(levels=draw(st.integers(1, 60))) for a in MOST})
    assume(total["disk"] >= 2)  # nine tenths of 1 KiB are none
    quanta = {counter: draw(st.integers(0, most)) for counter, most in counters(policy).items()}
    return policy, {**total, **counters(policy)}, {**left, **quanta}


def slot_ad(total: Mapping[str, int], left: Mapping[str, int]) -> Ad:
    ad = {"PartitionableSlot": "true"}
    for asset, amount in total.items():
        name = attribute_of(asset)
        # TotalSlotDisk is a real number in HTCondor's ads.
        ad[f"TotalSlot{name}"] = f"{amount}.0" if asset == "disk" else str(amount)
        ad[name] = str(left[asset])
    return ad


def job_ad(requested: Mapping[str, float]) -> Ad:
    return {f"Request{attribute_of(asset)}": str(amount) for asset, amount in requested.items()}


full_requests = st.fixed_dictionaries({asset: st.integers(0, most) for asset, most in MOST.items()})
quarters = {asset: st.integers(0, 4 * most).map(lambda n: n / 4) for asset, most in MOST.items()}
requests = st.fixed_dictionaries({}, optional=quarters)


@pytest.mark.parametrize("name", ["fixed_claims", *COUNTED])
@given(data=st.data(), requested=requests)
def test_a_claim_consumes_the_charge_of_the_model(
    library: CondorProcess, name: ModelName, data: st.DataObject, requested: Mapping[str, float]
) -> None:
    """CONSUMPTION_<asset> is the charge, also of a request in fractions, or without some assets.

    SLOT_WEIGHT is W(R) at every rest. A claim fits by the model when it fits by the negotiator's
    own test. A job's attributes but its requests change nothing.
    """
    policy, total, left = data.draw(slots(name))
    model, slot, job = Model(policy, total), slot_ad(total, left), job_ad(requested)
    texts = [*consumed(policy).values(), *fit_texts(policy), weight(policy)]
    forged = {**dict.fromkeys(slot, "1"), "PartitionableSlot": "false", **job}
    rows = values(library, policy, texts, slot, [job, forged])
    charge = model.charge(exact(requested))
    assert rows[: len(charge)] == [[charge[name]] * 2 for name in consumed(policy)]
    fitting = [row[0] for row in rows[len(charge) : -1]]
    assert (fitting == [True] * len(charge)) is fits(model, exact(left), exact(requested))
    assert rows[-1] == [model.claims(exact(left))] * 2


@pytest.mark.parametrize("name", COUNTED)
@given(data=st.data(), asset=st.sampled_from(list(MOST)))
def test_no_hostile_request_is_consumed(
    library: CondorProcess, name: ModelName, data: st.DataObject, asset: str
) -> None:
    """A request that is no number, or below 0, has no consumption or a negative one.

    Too large a number is consumed as too much.
    """
    policy, total, left = data.draw(slots(name))
    request = f"Request{attribute_of(asset)}"
    jobs = [
        {**job_ad(left), request: text, "RequestX": "error"} for text in (*NO_NUMBERS, *TOO_LARGE)
    ]
    counter = QUANTA.format(asset) if policy.model != "minimum_charge" else asset
    (row,) = values(library, policy, [consumed(policy)[counter]], slot_ad(total, left), jobs)
    for text, value in zip((*NO_NUMBERS, *TOO_LARGE), row):
        is_number = value not in ("undefined", "error")
        assert not is_number or value < 0 or (text in TOO_LARGE and value > total[counter]), text


@given(data=st.data(), name=st.sampled_from(COUNTED), requested=full_requests)
def test_a_dynamic_slot_has_what_its_jobs_consume(
    library: CondorProcess, data: st.DataObject, name: ModelName, requested: Amounts
) -> None:
    """A dynamic slot has enough for its own job and each smaller one; so has one of several slots.

    Its weight is the least or the largest number of quanta, or of charges, that it took.
    """
    policy, total, _ = data.draw(slots(name))
    requested = {a: amount % (total[a] * 9 // 10 + 1) for a, amount in requested.items()}
    charge = Model(policy, total).charge(exact(requested))
    own = {asset: int(taken) for asset, taken in charge.items()}
    ad = slot_ad(own, own) | {"PartitionableSlot": "undefined", "DynamicSlot": "true"}
    smaller = {asset: data.draw(st.integers(0, amount)) for asset, amount in requested.items()}
    texts = fit_texts(policy)
    rows = values(library, policy, texts, ad, [job_ad(requested), job_ad(smaller)])
    assert rows == [[True, True]] * len(texts)
    assert values(library, policy, [weight(policy)], ad, [{}]) == [
        [Model(policy, total).claims(charge)]
    ]


@given(data=st.data(), claims=st.integers(1, 60))
def test_as_many_even_parts_fit_as_there_are_claims(
    library: CondorProcess, data: st.DataObject, claims: int
) -> None:
    """Even parts of ``fixed_claims`` fit ``claims`` times, of assets with a unit for each."""
    total = {asset: data.draw(st.integers(claims * 2, most * 60)) for asset, most in MOST.items()}
    policy = SlotPolicy("fixed_claims", dict.fromkeys(total, AssetPolicy()), claims=claims)
    texts = [
        f"{claims} * ({text}) <= MY.{attribute_of(asset)} && ({text}) > 0"
        for asset, text in consumed(policy).items()
        if asset != CLAIMS
    ]
    assert values(library, policy, texts, slot_ad(total, total), [{}]) == [[True]] * len(texts)


@pytest.mark.parametrize("rule", [{"always": 0}, {"always": 3}, {"even": True}, {"whole": True}])
def test_amounts_without_a_request_need_a_number_all_the_same(
    library: CondorProcess, rule: dict[str, Any]
) -> None:
    policy = SlotPolicy("expressions", {"memory": AssetPolicy(**rule)}, claims=2)
    slot = {"PartitionableSlot": "true", "TotalSlotMemory": "8"}
    jobs: list[Ad] = [{"RequestMemory": text, "RequestX": "error"} for text in NO_NUMBERS]
    texts = [consumed(policy)["memory"]]
    (row,) = values(library, policy, texts, slot, [*jobs, {"RequestMemory": "5"}, {}])
    *refused, first, second = row
    assert set(refused) <= {"undefined", "error", -1}
    assert first == second >= 0
