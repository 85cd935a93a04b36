"""Semantics of consumption policies, each of which HTCondor's library decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

import pytest

from sharectl.consumption.asks import MOST_CLAIMS, NamedAd, assets_of, price
from sharectl.consumption.cost import Match, Refusal
from sharectl.errors import InputError

Ad = dict[str, str]
ASSETS = ("Cpus", "Memory", "Disk")
SLOT = {
    "Name": '"slot1@wn-001"',
    "PartitionableSlot": "true",
    "MachineResources": '"Cpus Memory Disk Swap"',
    "Cpus": "10",
    "Memory": "1903",
    "Disk": "100000",
    "SlotWeight": "Cpus",
    "ConsumptionCpus": "quantize(target.RequestCpus, {1})",
    "ConsumptionMemory": "quantize(target.RequestMemory, {512})",
    "ConsumptionDisk": "quantize(target.RequestDisk, {1024})",
}
BARE = {name: text for name, text in SLOT.items() if not name.startswith("Consumption")}
JOB = {"RequestCpus": "1", "RequestMemory": "100", "RequestDisk": "10"}
NO_CPUS, NO_MEMORY = (
    {name: text for name, text in JOB.items() if name != f"Request{asset}"}
    for asset in ("Cpus", "Memory")
)
TOKENS = {
    "MachineResources": '"Cpus Memory Disk Tokens"',
    "Tokens": "3",
    "ConsumptionTokens": "1",
    **{f"Consumption{asset}": "0" for asset in ASSETS},
    "SlotWeight": "Tokens",
}
PLAIN = {"ConsumptionMemory": "target.RequestMemory"}
NO_MEMORY_TAKEN = {"ConsumptionMemory": "0"}
WITHIN = {
    "Requirements": "Start && WithinResourceLimits",
    "Start": "true",
    "WithinResourceLimits": " && ".join(
        f"ifThenElse(TARGET._cp_orig_Request{asset} isnt undefined, "
        f"TARGET.Request{asset} <= MY.{asset}, MY.Consumption{asset} <= MY.{asset})"
        for asset in ASSETS
    ),
}
"""As a startd of 23.9.6 and 25.14.1 advertises it."""


def named(name: str, ad: Mapping[str, str]) -> NamedAd:
    return NamedAd(name, {attribute.lower(): text for attribute, text in ad.items()})


def matched(slot: Mapping[str, str], job: Mapping[str, str], most: int = MOST_CLAIMS) -> Match:
    return price([named("slot", slot)], [named("job", job)], most)[0][1][0]


@pytest.mark.parametrize(
    ("slot", "has_policy"),
    [
        (SLOT, True),
        ({**BARE, "ConsumptionCpus": "1", "ConsumptionMemory": "1"}, False),
        ({**SLOT, "MachineResources": '"Cpus Memory Disk Tokens"'}, False),
        ({**SLOT, "PartitionableSlot": "undefined"}, False),
        # Names have no case; separators are commas and blanks; Swap does not count.
        ({**SLOT, "MachineResources": '"CPUS,memory\tdisk swap"'}, True),
        # A policy that can never be evaluated is a policy nonetheless.
        ({**SLOT, "ConsumptionDisk": "undefined"}, True),
    ],
)
def test_a_policy_is_one_attribute_for_every_asset_of_a_partitionable_slot(
    slot: Ad, *, has_policy: bool
) -> None:
    assert bool(assets_of(named("slot", slot).row)) is has_policy


@pytest.mark.parametrize(
    ("changes", "job", "consumed"),
    [
        ({}, JOB, (1, 512, 1024)),
        # A request that is missing is 0; a list of quanta takes its first, a single one none.
        (PLAIN, NO_MEMORY, (1, 0, 1024)),
        ({}, NO_MEMORY, (1, 512, 1024)),
        ({"ConsumptionMemory": "quantize(target.RequestMemory, 512)"}, NO_MEMORY, (1, 0, 1024)),
        # One that is there and undefined is not.
        ({}, {**JOB, "RequestMemory": "undefined"}, (1, None, 1024)),
        # A boolean is a number.
        ({"ConsumptionCpus": "true"}, JOB, (1, 512, 1024)),
        # Unscoped names are the slot's, else the job's.
        ({"ConsumptionCpus": "Cpus - RequestCpus"}, JOB, (9, 512, 1024)),
        # A missing request is 0 for its own asset only.
        (
            {"ConsumptionMemory": "ifThenElse(target.RequestCpus =?= undefined, 7, 8)"},
            NO_CPUS,
            (1, 7, 1024),
        ),
        ({"ConsumptionCpus": "0.25 * target.RequestCpus"}, JOB, (0.25, 512, 1024)),
    ],
)
def test_amounts_that_a_job_takes(
    changes: Ad, job: Ad, consumed: tuple[Optional[float], ...]
) -> None:
    assert matched({**SLOT, **changes}, job).consumed == dict(zip(ASSETS, consumed))


@pytest.mark.parametrize(
    ("changes", "job", "refused"),
    [
        ({}, {**JOB, "RequestCpus": "10"}, []),
        ({}, {**JOB, "RequestCpus": "11"}, [Refusal.SHORT]),
        ({"ConsumptionCpus": "error"}, JOB, [Refusal.NOT_A_NUMBER]),
        ({"ConsumptionCpus": '"1"'}, JOB, [Refusal.NOT_A_NUMBER]),
        ({"ConsumptionCpus": 'real("INF")'}, JOB, [Refusal.NOT_A_NUMBER]),
        ({"ConsumptionCpus": 'real("NaN")'}, JOB, [Refusal.NOT_A_NUMBER]),
        ({"ConsumptionCpus": "-1"}, JOB, [Refusal.NEGATIVE]),
        (
            {f"Consumption{asset}": f"target.Request{asset}" for asset in ASSETS},
            {},
            [Refusal.ALL_ZERO],
        ),
        # One asset that is above zero is enough.
        ({"ConsumptionDisk": "1"}, {}, []),
        (TOKENS, JOB, []),
        ({**TOKENS, "Tokens": "0"}, JOB, [Refusal.SHORT]),
        # The negotiator ends on these.
        ({"Memory": "undefined"}, JOB, [Refusal.NO_ASSET]),
        ({"SlotWeight": "ifThenElse(Cpus < 10, undefined, 10)"}, JOB, [Refusal.WEIGHT]),
        # Requirements see what the policy takes in place of the requests.
        ({**WITHIN, "Start": "TARGET.RequestCpus > 1"}, JOB, [Refusal.SLOT_REQUIREMENTS]),
        ({**WITHIN, "Start": "undefined"}, JOB, [Refusal.SLOT_REQUIREMENTS]),
        (WITHIN, {**JOB, "Requirements": "RequestMemory < 512"}, [Refusal.JOB_REQUIREMENTS]),
        # A missing request is not made up for them: a policy that expects it takes no job.
        (WITHIN, NO_MEMORY, [Refusal.SLOT_REQUIREMENTS]),
    ],
)
def test_reasons_against_a_match(changes: Ad, job: Ad, refused: list[Refusal]) -> None:
    match = matched({**SLOT, **changes}, job)
    assert [why for why, _ in match.refused] == refused
    assert not refused or (match.fits, match.cost) == (0, None)


@pytest.mark.parametrize(
    ("changes", "job", "cost", "fits"),
    [
        ({}, JOB, 1, 3),
        (NO_MEMORY_TAKEN, JOB, 1, 10),
        ({}, {**JOB, "RequestCpus": "4"}, 4, 2),
        ({"SlotWeight": "floor(Memory / 512)"}, JOB, 1, 3),
        ({"SlotWeight": "floor(Memory / 512)"}, {**JOB, "RequestMemory": "1024"}, 2, 1),
        # Matches of 3 that differ in cost: the first counts.
        ({"SlotWeight": "Cpus * Cpus"}, {**JOB, "RequestCpus": "3"}, 51, 3),
        # A weight that does not fall costs nothing, one that rises less than that.
        ({"SlotWeight": "1"}, JOB, 0, 3),
        ({"SlotWeight": "-Cpus"}, JOB, -1, 3),
        (TOKENS, JOB, 1, 3),
        # A boolean is a weight; without one the negotiator's own is taken.
        ({"SlotWeight": "Cpus > 9"}, JOB, 1, 3),
        ({"SlotWeight": "undefined"}, JOB, 1, 3),
        # Fractions are kept.
        ({**NO_MEMORY_TAKEN, "ConsumptionCpus": "0.25"}, JOB, 0.25, 40),
        # Half of the rest, again and again.
        (
            {**TOKENS, "ConsumptionTokens": "0", "ConsumptionMemory": "ceiling(Memory / 2.0)"},
            JOB,
            0,
            11,
        ),
        # The tenth would leave no core: 100 / 0 is an error, and the negotiator would end.
        ({**NO_MEMORY_TAKEN, "SlotWeight": "100 / Cpus"}, JOB, -1, 9),
        (WITHIN, {**JOB, "Requirements": "TARGET.Memory >= RequestMemory"}, 1, 3),
        ({**WITHIN, "Start": "TARGET.RequestMemory == 512"}, JOB, 1, 3),
        ({**WITHIN, "Start": "TARGET._cp_orig_RequestMemory == 100"}, JOB, 1, 3),
        ({**WITHIN, "Start": "2"}, JOB, 1, 3),
        (
            {**WITHIN, "ConsumptionMemory": "512"},
            {**NO_MEMORY, "Requirements": "RequestMemory is undefined"},
            1,
            3,
        ),
        # Requirements are evaluated before every match.
        ({**WITHIN, "Start": "Cpus > 8"}, JOB, 1, 2),
    ],
)
def test_a_match_costs_the_fall_of_the_weight(changes: Ad, job: Ad, cost: float, fits: int) -> None:
    match = matched({**SLOT, **changes}, job)
    assert (match.cost, match.fits, match.refused) == (cost, fits, ())


def test_counting_ends_at_the_number_that_is_wanted() -> None:
    for most, at_least in ((4, True), (10, False)):
        match = matched({**SLOT, **NO_MEMORY_TAKEN}, JOB, most)
        assert (match.fits, match.at_least) == (most, at_least)


def test_a_look_leaves_the_ads_as_they_were() -> None:
    """Jobs whose requests a policy replaces, or misses, cost the same beside others."""
    slot = {**SLOT, **WITHIN}
    slots = [named(f"slot {n}", {**slot, "RequestN": str(n)}) for n in (1, 2)]
    ads = [JOB, {**JOB, "RequestCpus": "3"}, NO_CPUS, {**JOB, "RequestCpus": "2"}]
    apart = [matched(slot, ad) for ad in ads]
    priced = price(slots, [named("job", ad) for ad in ads])
    assert [matches for _, matches in priced] == [apart, apart]


def test_ads_that_hang_the_library_are_refused_by_their_place() -> None:
    # A7 is worth 30 to the 7th, counted one by one; the library gives up after a while, 1000 times.
    bomb = {
        "A0": "1",
        **{f"A{at}": "sum({" + ", ".join([f"A{at - 1}"] * 30) + "})" for at in range(1, 8)},
    }
    small = {**SLOT, "ConsumptionCpus": "TARGET.RequestCpus"}
    assert matched(small, {**JOB, **bomb, "RequestCpus": "A1"}).consumed["Cpus"] == 30
    names = [f"R{number}" for number in range(1000)]
    slot = {
        **SLOT,
        "MachineResources": f'"{" ".join(names)}"',
        **dict.fromkeys(names, "1"),
        **{f"Consumption{name}": f"TARGET.Request{name}" for name in names},
    }
    job = named("job", {**bomb, **{f"Request{name}": "A7" for name in names}})
    with pytest.raises(InputError, match="evaluate slot7 with these jobs: no answer within 2"):
        price([named("slot7", slot)], [job], deadline_seconds=2)
