"""Semantics of consumption policies, each of which HTCondor's library decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

import pytest

from sharectl.condor.ad_files import AdOfFile
from sharectl.consumption.asks import MOST_CLAIMS, Jobs, price
from sharectl.consumption.cost import Match, Refusal, SlotKind
from sharectl.errors import InputError

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
JOB = {"RequestCpus": "1", "RequestMemory": "100", "RequestDisk": "10"}
TOKENS = {
    "MachineResources": '"Cpus Memory Disk Tokens"',
    "Tokens": "3",
    "ConsumptionTokens": "1",
    **{f"Consumption{asset}": "0" for asset in ("Cpus", "Memory", "Disk")},
    "SlotWeight": "Tokens",
}
PLAIN = {"ConsumptionMemory": "target.RequestMemory"}
WITHIN = {
    "Requirements": "Start && WithinResourceLimits",
    "Start": "true",
    "WithinResourceLimits": " && ".join(
        f"ifThenElse(TARGET._cp_orig_Request{asset} isnt undefined, TARGET.Request{asset} <= "
        f"MY.{asset}, "
        f"MY.Consumption{asset} <= MY.{asset})"
        for asset in ("Cpus", "Memory", "Disk")
    ),
}
"""As a startd of 23.9.6 and 25.14.1 advertises it."""


def matched(slot: Mapping[str, str], job: Mapping[str, str], most: int = MOST_CLAIMS) -> Match:
    priced = price([AdOfFile("slot", slot)], [Jobs(AdOfFile("job", job))], most)
    return priced.matches[0][0]


def without(ad: Mapping[str, str], name: str) -> dict[str, str]:
    return {known: text for known, text in ad.items() if known != name}


def whys(match: Match) -> list[Refusal]:
    return [refused.why for refused in match.refused]


# ---- which slots have a policy


@pytest.mark.parametrize(
    ("slot", "kind"),
    [
        (SLOT, SlotKind.POLICY),
        ({**SLOT, "PartitionableSlot": "1"}, SlotKind.POLICY),
        (without(SLOT, "ConsumptionDisk"), SlotKind.PARTITIONABLE),
        (
            {**SLOT, "MachineResources": '"Cpus Memory Disk Tokens"', "Tokens": "3"},
            SlotKind.PARTITIONABLE,
        ),
        (without(SLOT, "MachineResources"), SlotKind.PARTITIONABLE),
        ({**SLOT, "ConsumptionDisk": "1 +"}, SlotKind.PARTITIONABLE),
        (without(SLOT, "PartitionableSlot"), SlotKind.STATIC),
        ({**SLOT, "PartitionableSlot": '"true"'}, SlotKind.STATIC),
        # Names of attributes and resources have no case; separators are commas and blanks; Swap
        # does not count.
        ({**SLOT, "MachineResources": '"CPUS,memory\tdisk swap"'}, SlotKind.POLICY),
        # A policy that can never be evaluated is a policy nonetheless.
        ({**SLOT, "ConsumptionDisk": "undefined"}, SlotKind.POLICY),
    ],
)
def test_a_policy_is_one_attribute_for_every_asset_of_a_partitionable_slot(
    slot: dict[str, str], kind: SlotKind
) -> None:
    (slots,) = price([AdOfFile("slot", slot)], [Jobs(AdOfFile("job", JOB))]).slots
    assert slots.kind is kind
    assert (kind is SlotKind.POLICY) is not bool(slots.no_policy_because)


# ---- what a job takes


@pytest.mark.parametrize(
    ("changes", "job", "consumed"),
    [
        ({}, JOB, {"Cpus": 1, "Memory": 512, "Disk": 1024}),
        # A request that is not there is 0, of which a list of quanta takes its first, a single
        # quantum none.
        (PLAIN, without(JOB, "RequestMemory"), {"Cpus": 1, "Memory": 0, "Disk": 1024}),
        ({}, without(JOB, "RequestMemory"), {"Cpus": 1, "Memory": 512, "Disk": 1024}),
        (
            {"ConsumptionMemory": "quantize(target.RequestMemory, 512)"},
            without(JOB, "RequestMemory"),
            {"Cpus": 1, "Memory": 0, "Disk": 1024},
        ),
        # One that is there and undefined is not.
        ({}, {**JOB, "RequestMemory": "undefined"}, {"Cpus": 1, "Memory": None, "Disk": 1024}),
        (PLAIN, {**JOB, "RequestMemory": '"100"'}, {"Cpus": 1, "Memory": None, "Disk": 1024}),
        # A request may be an expression of the job, and see the slot.
        (
            {},
            {**JOB, "RequestMemory": "TARGET.Cpus * 60"},
            {"Cpus": 1, "Memory": 1024, "Disk": 1024},
        ),
        # What the schedd sends goes before what the user wrote.
        ({}, {**JOB, "_condor_RequestCpus": "4"}, {"Cpus": 4, "Memory": 512, "Disk": 1024}),
        # A boolean is a number.
        ({"ConsumptionCpus": "true"}, JOB, {"Cpus": 1, "Memory": 512, "Disk": 1024}),
        # Unscoped names are the slot's, else the job's.
        ({"ConsumptionCpus": "Cpus - RequestCpus"}, JOB, {"Cpus": 9, "Memory": 512, "Disk": 1024}),
        # While one asset is looked at, a request that was missing is 0 for that one only.
        (
            {"ConsumptionMemory": "ifThenElse(target.RequestCpus =?= undefined, 7, 8)"},
            without(JOB, "RequestCpus"),
            {"Cpus": 1, "Memory": 7, "Disk": 1024},
        ),
        (
            {"ConsumptionCpus": "0.25 * target.RequestCpus"},
            JOB,
            {"Cpus": 0.25, "Memory": 512, "Disk": 1024},
        ),
    ],
)
def test_what_a_job_takes(
    changes: dict[str, str],
    job: dict[str, str],
    consumed: dict[str, Optional[float]],
) -> None:
    assert matched({**SLOT, **changes}, job).consumed == consumed


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
            {
                f"Consumption{asset}": f"target.Request{asset}"
                for asset in ("Cpus", "Memory", "Disk")
            },
            {},
            [Refusal.ALL_ZERO],
        ),
        # One asset that is above zero is enough.
        ({"ConsumptionDisk": "1"}, {}, []),
        (TOKENS, JOB, []),
        ({**TOKENS, "Tokens": "0"}, JOB, [Refusal.SHORT]),
        # What makes the negotiator end.
        ({"Memory": "undefined"}, JOB, [Refusal.NO_ASSET]),
        ({"SlotWeight": "ifThenElse(Cpus < 10, undefined, 10)"}, JOB, [Refusal.WEIGHT]),
    ],
)
def test_whether_assets_suffice(
    changes: dict[str, str], job: dict[str, str], refused: list[Refusal]
) -> None:
    assert whys(matched({**SLOT, **changes}, job)) == refused


# ---- what it costs, and how many fit


@pytest.mark.parametrize(
    ("changes", "job", "cost", "fits"),
    [
        ({}, JOB, 1, 3),
        ({"ConsumptionMemory": "0"}, JOB, 1, 10),
        ({}, {**JOB, "RequestCpus": "4"}, 4, 2),
        ({"SlotWeight": "floor(Memory / 512)"}, JOB, 1, 3),
        ({"SlotWeight": "floor(Memory / 512)"}, {**JOB, "RequestMemory": "1024"}, 2, 1),
        # Two matches of 3 that differ in cost: only the first is told.
        ({"SlotWeight": "Cpus * Cpus"}, {**JOB, "RequestCpus": "3"}, 51, 3),
        # A weight that does not fall costs nothing, one that rises less than that.
        ({"SlotWeight": "1"}, JOB, 0, 3),
        ({"SlotWeight": "-Cpus"}, JOB, -1, 3),
        (TOKENS, JOB, 1, 3),
        # A boolean is a weight; where there is none the negotiator's own is taken.
        ({"SlotWeight": "Cpus > 9"}, JOB, 1, 3),
        ({"SlotWeight": "undefined"}, JOB, 1, 3),
        # Fractions are kept.
        ({"ConsumptionCpus": "0.25", "ConsumptionMemory": "0"}, JOB, 0.25, 40),
        # Half of what is left, again and again.
        (
            {
                "ConsumptionCpus": "0",
                "ConsumptionDisk": "0",
                "ConsumptionMemory": "ceiling(Memory / 2.0)",
            },
            JOB,
            0,
            11,
        ),
    ],
)
def test_a_match_costs_what_the_weight_falls_by(
    changes: dict[str, str], job: dict[str, str], cost: float, fits: int
) -> None:
    match = matched({**SLOT, **changes}, job)
    assert (match.cost, match.fits, match.refused) == (cost, fits, ())


def test_the_weight_may_not_be_lost_on_the_way() -> None:
    match = matched({**SLOT, "ConsumptionMemory": "0", "SlotWeight": "100 / Cpus"}, JOB)
    # The tenth would leave no core: 100 / 0 is an error, and the negotiator would end.
    assert match.fits == 9


def test_counting_ends_where_it_is_told_to() -> None:
    for most, at_least in ((4, True), (10, False)):
        match = matched({**SLOT, "ConsumptionMemory": "0"}, JOB, most)
        assert (match.fits, match.at_least) == (most, at_least)


# ---- Requirements see what the policy takes in place of the requests


@pytest.mark.parametrize(
    ("changes", "job", "refused"),
    [
        (WITHIN, {**JOB, "Requirements": "TARGET.Memory >= RequestMemory"}, []),
        ({**WITHIN, "Start": "TARGET.RequestMemory == 512"}, JOB, []),
        ({**WITHIN, "Start": "TARGET._cp_orig_RequestMemory == 100"}, JOB, []),
        ({**WITHIN, "Start": "TARGET.RequestCpus > 1"}, JOB, [Refusal.SLOT_REQUIREMENTS]),
        ({**WITHIN, "Start": "undefined"}, JOB, [Refusal.SLOT_REQUIREMENTS]),
        ({**WITHIN, "Start": "2"}, JOB, []),
        (WITHIN, {**JOB, "Requirements": "RequestMemory < 512"}, [Refusal.JOB_REQUIREMENTS]),
        # A request that is not there is not made up for Requirements: a policy that does not expect
        # that takes no job.
        (WITHIN, without(JOB, "RequestMemory"), [Refusal.SLOT_REQUIREMENTS]),
        (
            {
                **WITHIN,
                "ConsumptionMemory": "ifThenElse(target.RequestMemory =?= undefined, 512, 512)",
            },
            {**without(JOB, "RequestMemory"), "Requirements": "RequestMemory is undefined"},
            [],
        ),
    ],
)
def test_requirements_see_what_is_taken(
    changes: dict[str, str], job: dict[str, str], refused: list[Refusal]
) -> None:
    match = matched({**SLOT, **changes}, job)
    assert whys(match) == refused
    assert (match.fits, match.cost) == ((0, None) if refused else (3, 1))


def test_requirements_are_asked_before_every_match() -> None:
    assert matched({**SLOT, **WITHIN, "Start": "Cpus > 8"}, JOB).fits == 2


# ---- slots without policy


def test_a_slot_without_policy_is_charged_whole_and_filled_by_leftovers() -> None:
    plain = {name: text for name, text in SLOT.items() if not name.startswith("Consumption")}
    match = matched(plain, {**JOB, "RequestMemory": "300"})
    # What a startd makes of requests: cores, 128 MiB, 1024 KiB; two cores are not asked for.
    assert match.consumed == {"Cpus": 1, "Memory": 384, "Disk": 1024}
    assert (match.cost, match.fits) == (10, 4)
    assert matched(plain, without(JOB, "RequestCpus")).consumed["Cpus"] == 1
    # The startd needs a request for memory.
    assert whys(matched(plain, without(JOB, "RequestMemory"))) == [Refusal.NOT_A_NUMBER]
    assert matched({**plain, "SlotWeight": "-3"}, JOB).cost == 1.0


def test_a_static_slot_has_one_claim() -> None:
    static = {
        "Cpus": "4",
        "Memory": "4000",
        "Disk": "100000",
        "SlotWeight": "Cpus",
        "MachineResources": '"Cpus Memory Disk"',
    }
    match = matched(static, JOB)
    assert (match.cost, match.fits, match.consumed["Cpus"]) == (4, 1, 4)
    assert matched({"SlotWeight": "2"}, JOB).cost == 2


# ---- the library


def test_a_look_leaves_the_ads_as_they_were() -> None:
    """Jobs whose requests a policy replaces, and that are missing, cost the same beside others."""
    slots = [AdOfFile(f"slot {n}", {**SLOT, **WITHIN, "SlotTypeID": str(n)}) for n in (1, 2)]
    ads = [
        JOB,
        {**JOB, "_condor_RequestCpus": "3"},
        without(JOB, "RequestCpus"),
        {**JOB, "RequestCpus": "2"},
    ]
    apart = [matched(slots[0].attributes, ad) for ad in ads]
    priced = price(slots, [Jobs(AdOfFile("job", ad)) for ad in ads])
    assert list(priced.matches) == [apart, apart]


def test_ads_that_hang_the_library_are_refused_by_their_place() -> None:
    names = [f"R{number}" for number in range(1000)]
    slot = {
        **SLOT,
        "MachineResources": f'"{" ".join(names)}"',
        **dict.fromkeys(names, "1"),
        **{f"Consumption{name}": f"TARGET.Request{name}" for name in names},
    }
    # A7 is worth 30 to the 7th, counted one by one; the library gives up after a while, 1000 times.
    bomb = {
        "A0": "1",
        **{f"A{at}": "sum({" + ", ".join([f"A{at - 1}"] * 30) + "})" for at in range(1, 8)},
    }
    small = {**SLOT, "ConsumptionCpus": "TARGET.RequestCpus"}
    assert matched(small, {**JOB, **bomb, "RequestCpus": "A1"}).consumed["Cpus"] == 30
    job = Jobs(AdOfFile("job", {**bomb, **{f"Request{name}": "A7" for name in names}}))
    with pytest.raises(InputError, match="evaluate slots:7: no answer within 2 s; leave it out"):
        price([AdOfFile("slots:7", slot)], [job], deadline_seconds=2)
