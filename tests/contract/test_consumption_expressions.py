"""Rendered expressions, evaluated by HTCondor's library, have the values of the models.

`Model` has them in exact fractions. W(R) is the number of claims that the rest R of a slot
supports. Amounts are in HTCondor's units (cores, MiB, KiB). A claim takes

- fixed_claims: one of so many claims,
- quanta_all, quanta_any: of each asset, cut into Q quanta, whole quanta, in whole units; q quanta
  are left, whatever the units are; by quanta_any it may take none of some assets, and a request of
  nothing at all takes one quantum of the first asset,
- minimum_charge: what it asks for, in whole units, and at least so much of every asset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sharectl.condor.library import CondorProcess
from sharectl.consumption.policy import (
    CLAIMS,
    DISK_TENTHS,
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

MOST = {"cpus": 512, "memory": 2**22, "disk": 2**34, "tokens": 40}
NO_NUMBERS = ('real("NaN")', "-1", "-0.5", '"text"', "error", "{1}", "[a = 1]", "RequestX")
TOO_LARGE = ('real("INF")', "1e300")
COUNTED: tuple[ModelName, ...] = ("quanta_all", "quanta_any", "minimum_charge")
_MACRO = re.compile(r"\$\((\w+)\)")
Amounts = dict[str, int]
Ad = dict[str, str]
Rows = list[list[Any]]
Exact = Mapping[str, Fraction]


@dataclass(frozen=True)
class Model:
    """Claims of a policy in a slot that has ``total`` without claims."""

    policy: SlotPolicy
    total: Mapping[str, int | Fraction]

    def claims(self, remaining: Exact) -> int:
        """W(R)."""
        if self.policy.model == "minimum_charge":
            return min(floor(remaining.get(a, 0) / size) for a, size in self._charges.items())
        counts = [floor(remaining.get(counter, 0)) for counter in counters(self.policy)]
        return max(counts) if self.policy.model == "quanta_any" else min(counts)

    def charge(self, request: Exact) -> dict[str, Fraction]:
        """Amount of each asset that a claim takes: V n / Q with n = ceil(r Q / V), for quanta."""
        if self.policy.model == "fixed_claims":
            return {CLAIMS: Fraction(1)}
        if self.policy.model == "minimum_charge":
            whole = {a: Fraction(ceil(request.get(a, 0))) for a in self._charges}
            return {a: max(size, whole[a]) for a, size in self._charges.items()}
        levels = {asset: rule.levels or 0 for asset, rule in self.policy.assets.items()}
        quanta = {
            asset: self._quanta(asset, request.get(asset, 0), levels[asset]) for asset in levels
        }
        if not any(quanta.values()):
            quanta[next(iter(levels))] = 1
        taken = {a: floor(self._whole(a) * n / levels[a]) for a, n in quanta.items()}
        counts = {QUANTA.format(asset): n for asset, n in quanta.items()}
        return {name: Fraction(amount) for name, amount in {**taken, **counts}.items()}

    @property
    def _charges(self) -> dict[str, Fraction]:
        return {a: Fraction(rule.charge or 0) for a, rule in self.policy.assets.items()}

    def _quanta(self, asset: str, requested: Fraction | int, levels: int) -> int:
        total, least = self._whole(asset), int(self.policy.model == "quanta_all")
        if requested > total:
            return levels + 1
        return max(least, ceil(ceil(requested) * levels / total))

    def _whole(self, asset: str) -> Fraction:
        amount = self.total[asset]
        return Fraction(amount * DISK_TENTHS // 10 if asset == "disk" else amount)


def fits(model: Model, remaining: Exact, request: Exact) -> bool:
    return all(remaining.get(name, 0) >= amount for name, amount in model.charge(request).items())


def values(
    htcondor: CondorProcess, policy: SlotPolicy, texts: Sequence[str], slot: Ad, jobs: Sequence[Ad]
) -> Rows:
    """Value of each expression for each job, with the macros of the policy."""
    made, expanded = macros(policy), []
    for text in texts:
        while _MACRO.search(text):
            text = _MACRO.sub(lambda match: made[match[1]], text)  # noqa: PLW2901 - in turn
        expanded.append(text)
    rows = [row[0] for row in htcondor.evaluate(expanded, [slot], jobs) if row is not None]
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
    htcondor: CondorProcess, name: ModelName, data: st.DataObject, requested: Mapping[str, float]
) -> None:
    """CONSUMPTION_<asset> is the charge, also of a request in fractions, or without some assets.

    SLOT_WEIGHT is W(R) at every rest. A claim fits by the model when it fits by the negotiator's
    own test. A job's attributes but its requests change nothing.
    """
    policy, total, left = data.draw(slots(name))
    model, slot, job = Model(policy, total), slot_ad(total, left), job_ad(requested)
    texts = [*consumed(policy).values(), *fit_texts(policy), weight(policy)]
    forged = {**dict.fromkeys(slot, "1"), "PartitionableSlot": "false", **job}
    rows = values(htcondor, policy, texts, slot, [job, forged])
    charge = model.charge(exact(requested))
    assert rows[: len(charge)] == [[charge[name]] * 2 for name in consumed(policy)]
    fitting = [row[0] for row in rows[len(charge) : -1]]
    assert (fitting == [True] * len(charge)) is fits(model, exact(left), exact(requested))
    assert rows[-1] == [model.claims(exact(left))] * 2


@pytest.mark.parametrize("name", COUNTED)
@given(data=st.data(), asset=st.sampled_from(list(MOST)))
def test_no_hostile_request_is_consumed(
    htcondor: CondorProcess, name: ModelName, data: st.DataObject, asset: str
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
    (row,) = values(htcondor, policy, [consumed(policy)[counter]], slot_ad(total, left), jobs)
    for text, value in zip((*NO_NUMBERS, *TOO_LARGE), row):
        is_number = value not in ("undefined", "error")
        assert not is_number or value < 0 or (text in TOO_LARGE and value > total[counter]), text


@given(sizes=st.tuples(st.integers(1, 2**40), st.fractions(0, 1)), levels=st.integers(1, 10**6))
@example(sizes=(1903, Fraction(951, 1903)), levels=10)
@example(sizes=(1903, Fraction(1)), levels=10)
def test_n_of_q_quanta_are_that_part_of_the_slot(
    htcondor: CondorProcess, sizes: tuple[int, Fraction], levels: int
) -> None:
    """A request r takes floor(V n / Q), n = ceil(r Q / V): never less than r; Q quanta fit."""
    total, part = sizes
    request = max(1, int(total * part))
    slot = {"PartitionableSlot": "true", "TotalSlotMemory": str(total), "Memory": str(total)}
    amounts = (request, total, 1, f"{request - 1}.25")
    jobs = [{"RequestMemory": str(amount)} for amount in amounts]
    for name in ("quanta_all", "quanta_any"):
        policy = SlotPolicy(name, {"memory": AssetPolicy(levels=levels)})
        taken, quanta = values(htcondor, policy, list(consumed(policy).values()), slot, jobs)
        count = -(-request * levels // total)
        assert quanta == [count, levels, -(-levels // total), count]
        assert taken == [total * n // levels for n in quanta]
        assert taken[0] >= request
        assert taken[1] == total
        ad = {**slot, "Quanta_memory": str(levels)}
        assert values(htcondor, policy, [weight(policy)], ad, [{}]) == [[levels]]


@given(data=st.data(), name=st.sampled_from(COUNTED), requested=full_requests)
def test_a_dynamic_slot_has_what_its_jobs_consume(
    htcondor: CondorProcess, data: st.DataObject, name: ModelName, requested: Amounts
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
    rows = values(htcondor, policy, texts, ad, [job_ad(requested), job_ad(smaller)])
    assert rows == [[True, True]] * len(texts)
    assert values(htcondor, policy, [weight(policy)], ad, [{}]) == [
        [Model(policy, total).claims(charge)]
    ]


@pytest.mark.parametrize("rule", [{"always": 0}, {"always": 3}, {"even": True}, {"whole": True}])
def test_amounts_without_a_request_need_a_number_all_the_same(
    htcondor: CondorProcess, rule: dict[str, Any]
) -> None:
    policy = SlotPolicy("expressions", {"memory": AssetPolicy(**rule)}, claims=2)
    slot = {"PartitionableSlot": "true", "TotalSlotMemory": "8"}
    jobs: list[Ad] = [{"RequestMemory": text, "RequestX": "error"} for text in NO_NUMBERS]
    texts = [consumed(policy)["memory"]]
    (row,) = values(htcondor, policy, texts, slot, [*jobs, {"RequestMemory": "5"}, {}])
    *refused, first, second = row
    assert set(refused) <= {"undefined", "error", -1}
    assert first == second >= 0
