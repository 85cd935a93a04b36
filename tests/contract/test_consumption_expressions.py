"""Rendered expressions, evaluated by HTCondor's library, have the values of the models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sharectl.condor.library import CondorProcess
from sharectl.consumption.policy import (
    CLAIMS,
    AssetPolicy,
    ModelName,
    SlotPolicy,
    attribute_of,
    consumed,
    macros,
    weight,
)
from tests.claim_models import fits, model_of

ASSETS = ("cpus", "memory", "disk", "tokens")
MOST = {"cpus": 512, "memory": 2**22, "disk": 2**34, "tokens": 40}
HOSTILE = (
    'real("NaN")',
    'real("INF")',
    "-1",
    "-0.5",
    '"text"',
    "error",
    "1e300",
    "{1}",
    "[a = 1]",
    "RequestX",
)
_MACRO = re.compile(r"\$\((\w+)\)")


@pytest.fixture(scope="module")
def library() -> Iterator[CondorProcess]:
    with CondorProcess() as process:
        yield process


def expanded(policy: SlotPolicy, text: str) -> str:
    made = macros(policy)
    while _MACRO.search(text):
        text = _MACRO.sub(lambda found: made[found[1]], text)
    return text


def exact(counts: Mapping[str, int]) -> dict[str, Fraction]:
    return {asset: Fraction(count) for asset, count in counts.items()}


amounts = st.fixed_dictionaries({asset: st.integers(1, most) for asset, most in MOST.items()})


@st.composite
def slots(draw: st.DrawFn, name: ModelName) -> tuple[SlotPolicy, dict[str, int], dict[str, int]]:
    """A policy of a model, what a slot has without claims, and what is left of it."""
    total = draw(amounts)
    left = {asset: draw(st.integers(0, most)) for asset, most in total.items()}
    if name == "minimum_charge":
        least = {asset: AssetPolicy(charge=draw(st.integers(1, MOST[asset]))) for asset in ASSETS}
        return SlotPolicy(name, least), total, left
    if name == "fixed_claims":
        claims = draw(st.integers(1, 50))
        policy = SlotPolicy(name, claims=claims)
        return policy, {**total, CLAIMS: claims}, {**left, CLAIMS: draw(st.integers(0, claims))}
    levels = {
        asset: AssetPolicy(
            levels=draw(st.integers(1, 60)), total=draw(st.sampled_from((None, total[asset])))
        )
        for asset in ASSETS
    }
    assume(total["disk"] >= 2)  # nine tenths of 1 KiB are none
    return SlotPolicy(name, levels), total, left


def slot_ad(total: dict[str, int], left: dict[str, int]) -> dict[str, str]:
    ad = {"PartitionableSlot": "true"}
    for asset, amount in total.items():
        name = attribute_of(asset)
        # TotalSlotDisk is a real number in HTCondor's ads.
        ad[f"TotalSlot{name}"] = f"{amount}.0" if asset == "disk" else str(amount)
        ad[name] = str(left[asset])
    return ad


def job_ad(requests: dict[str, int], missing: frozenset[str]) -> dict[str, str]:
    return {
        f"Request{attribute_of(asset)}": str(amount)
        for asset, amount in requests.items()
        if asset not in missing
    }


requests = st.fixed_dictionaries({asset: st.integers(0, most) for asset, most in MOST.items()})
missing = st.frozensets(st.sampled_from(ASSETS))


@pytest.mark.parametrize("name", ["fixed_claims", "quanta_all", "quanta_any", "minimum_charge"])
@given(data=st.data())
def test_the_weight_is_the_claims_of_the_model(
    library: CondorProcess, name: ModelName, data: st.DataObject
) -> None:
    """For every slot and what remains of it, SLOT_WEIGHT has the value W(R)."""
    policy, total, left = data.draw(slots(name))
    model = model_of(policy, total)
    values = library.evaluate([expanded(policy, weight(policy))], [slot_ad(total, left)], [{}])
    assert values == [[[model.claims(exact(left))]]]


@pytest.mark.parametrize("name", ["quanta_all", "quanta_any", "minimum_charge"])
@given(data=st.data(), asked=requests, missing=missing)
def test_a_claim_consumes_the_charge_of_the_model(
    library: CondorProcess,
    name: ModelName,
    data: st.DataObject,
    asked: dict[str, int],
    missing: frozenset[str],
) -> None:
    """CONSUMPTION_<asset> has the value of the charge, also of a request that leaves assets out."""
    policy, total, left = data.draw(slots(name))
    model = model_of(policy, total)
    texts = [expanded(policy, text) for text in consumed(policy).values()]
    values = library.evaluate(texts, [slot_ad(total, left)], [job_ad(asked, missing)])
    request = {asset: Fraction(amount) for asset, amount in asked.items() if asset not in missing}
    charge = model.charge(request)
    assert values == [[[charge[asset]]] for asset in policy.assets]


@pytest.mark.parametrize("name", ["quanta_all", "quanta_any", "minimum_charge"])
@pytest.mark.parametrize("hostile", HOSTILE)
@given(data=st.data(), asset=st.sampled_from(ASSETS))
def test_no_hostile_request_is_consumed(
    library: CondorProcess, name: ModelName, hostile: str, data: st.DataObject, asset: str
) -> None:
    """A request that is no number, or below 0, has no consumption or a negative one.

    Too large a number is consumed as too much.
    """
    policy, total, left = data.draw(slots(name))
    job = {
        **job_ad(left, frozenset()),
        f"Request{attribute_of(asset)}": hostile,
        "RequestX": "error",
    }
    text = expanded(policy, consumed(policy)[asset])
    answer = library.evaluate([text], [slot_ad(total, left)], [job])[0]
    assert answer is not None
    value = answer[0][0]
    assert value in ("undefined", "error") or value < 0 or value > total[asset]


@given(sizes=st.tuples(st.integers(1, 2**40), st.fractions(0, 1)), levels=st.integers(1, 10**6))
@example(sizes=(1903, Fraction(951, 1903)), levels=10)
@example(sizes=(1903, Fraction(1)), levels=10)
def test_n_of_q_quanta_are_that_part_of_the_slot(
    library: CondorProcess, sizes: tuple[int, Fraction], levels: int
) -> None:
    """A request r takes floor(V n / Q), n = ceil(r Q / V): never less than r; Q quanta fit."""
    total, part = sizes
    asked = max(1, int(total * part))
    slot = {"PartitionableSlot": "true", "TotalSlotMemory": str(total)}
    jobs = [{"RequestMemory": str(amount)} for amount in (asked, total, 1, f"{asked - 1}.25")]
    for name in ("quanta_all", "quanta_any"):
        policy = SlotPolicy(name, {"memory": AssetPolicy(levels=levels)})
        texts = [expanded(policy, text) for text in (*consumed(policy).values(), weight(policy))]
        taken, fresh = library.evaluate(texts, [{**slot, "Memory": str(total)}], jobs)
        assert taken is not None
        assert fresh is not None
        assert taken[0] == [
            total * -(-asked * levels // total) // levels,
            total,
            max(1, total // levels),
            total * -(-asked * levels // total) // levels,
        ]
        assert taken[0][0] >= asked
        assert (
            fresh[0][0] == levels or (fresh[0][0] > levels and total < levels**2) or total < levels
        )
        assert fresh[0][0] * taken[0][2] <= total


@given(asked=st.integers(0, 10**6), step=st.integers(1, 5000), zero=st.booleans())
def test_steps(library: CondorProcess, asked: int, step: int, zero: bool) -> None:  # noqa: FBT001
    """What is asked for is consumed in whole steps, at least one unless zero is allowed."""
    rule = AssetPolicy(request=True, step=step, missing=0 if zero else None)
    policy = SlotPolicy("expressions", {"memory": rule}, "memory")
    values = library.evaluate([consumed(policy)["memory"]], [{}], [{"RequestMemory": str(asked)}])
    assert values == [[[max(-(-asked // step), 0 if zero else 1) * step]]]


@given(data=st.data(), name=st.sampled_from(["quanta_all", "quanta_any", "minimum_charge"]))
def test_a_job_cannot_forge_the_weight(
    library: CondorProcess, data: st.DataObject, name: ModelName
) -> None:
    """A job's attributes but its requests change neither a slot's weight nor its consumption."""
    policy, total, left = data.draw(slots(name))
    texts = [expanded(policy, text) for text in (weight(policy), *consumed(policy).values())]
    honest = job_ad(left, frozenset())
    forged = dict.fromkeys(slot_ad(total, left), "1") | {"PartitionableSlot": "false", **honest}
    honest_values, forged_values = (
        library.evaluate(texts, [slot_ad(total, left)], [job]) for job in (honest, forged)
    )
    assert honest_values == forged_values


@given(
    data=st.data(),
    name=st.sampled_from(["quanta_all", "quanta_any", "minimum_charge"]),
    asked=requests,
)
def test_what_fits_is_what_the_negotiator_has(
    library: CondorProcess, data: st.DataObject, name: ModelName, asked: dict[str, int]
) -> None:
    """A claim fits by the model when it fits by the negotiator's own test."""
    policy, total, left = data.draw(slots(name))
    model = model_of(policy, total)
    texts = [
        f"({expanded(policy, text)}) <= MY.{attribute_of(asset)}"
        for asset, text in consumed(policy).items()
    ]
    values = library.evaluate(texts, [slot_ad(total, left)], [job_ad(asked, frozenset())])
    assert len(values) == len(texts)
    assert all(value == [[True]] for value in values) == fits(model, exact(left), exact(asked))


@given(
    data=st.data(),
    name=st.sampled_from(["quanta_all", "quanta_any", "minimum_charge"]),
    asked=requests,
)
def test_a_dynamic_slot_has_what_its_jobs_consume(
    library: CondorProcess, data: st.DataObject, name: ModelName, asked: dict[str, int]
) -> None:
    """The dynamic slot of a claim has enough for its own job and for every smaller one.

    Also where the machine has more slots.
    """
    policy, total, _ = data.draw(slots(name))
    model = model_of(policy, total)
    own = {asset: int(taken) for asset, taken in model.charge(exact(asked)).items()}
    ad = slot_ad(own, own) | {"PartitionableSlot": "undefined", "DynamicSlot": "true"}
    ad |= {f"Total{attribute_of(asset)}": str(2 * amount) for asset, amount in total.items()}
    next_job = {asset: data.draw(st.integers(0, amount)) for asset, amount in asked.items()}
    texts = [
        f"({expanded(policy, text)}) <= MY.{attribute_of(asset)}"
        for asset, text in consumed(policy).items()
    ]
    jobs = [job_ad(each, frozenset()) for each in (asked, next_job)]
    assert library.evaluate(texts, [ad], jobs) == [[[True, True]]] * len(texts)
    # TotalCpus is a real number in the ads of 25.14.1.
    as_reals = ad | {
        f"Total{attribute_of(asset)}": f"{2 * amount}.0" for asset, amount in total.items()
    }
    (weighed,) = library.evaluate([expanded(policy, weight(policy))], [ad, as_reals], [{}])
    assert weighed is not None
    assert weighed[0] == weighed[1]


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
    ]
    assert library.evaluate(texts, [slot_ad(total, total)], [{}]) == [[[True]]] * len(texts)


@pytest.mark.parametrize(
    "rule",
    [AssetPolicy(always=0), AssetPolicy(always=3), AssetPolicy(), AssetPolicy(whole=True)],
)
@pytest.mark.parametrize("hostile", ['real("NaN")', "-1", '"text"', "error", "{1}", "RequestX"])
def test_what_is_taken_whatever_is_asked_for_needs_a_number_all_the_same(
    library: CondorProcess, rule: AssetPolicy, hostile: str
) -> None:
    policy = SlotPolicy("expressions", {"memory": rule}, claims=2)
    slot = {"PartitionableSlot": "true", "TotalSlotMemory": "8"}
    jobs = [{"RequestMemory": hostile, "RequestX": "error"}, {"RequestMemory": "5"}, {}]
    (text,) = consumed(policy).values()
    answers = library.evaluate([text], [slot], jobs)[0]
    assert answers is not None
    refused, *taken = answers[0]
    assert refused in ("undefined", "error", -1)
    assert min(taken) >= 0
    assert len(set(taken)) == 1
