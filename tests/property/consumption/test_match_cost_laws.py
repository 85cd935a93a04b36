from __future__ import annotations

from math import isclose

from hypothesis import given
from hypothesis import strategies as st

from sharectl.condor.ad_files import parse
from sharectl.condor.expressions import words_of_text
from sharectl.consumption.asks import kinds
from sharectl.consumption.cost import (
    Match,
    Offer,
    PricedSlots,
    SlotKind,
    charge_of,
    claims_within,
)
from sharectl.errors import InputError

# ---- groups


def offer(slots: int, fits: int, cost: int, has_policy: bool) -> Offer:  # noqa: FBT001 - built by hypothesis
    weight = float(fits * cost)
    charge = float(cost if has_policy else weight)
    match = Match({}, weight_before=weight, cost=charge, fits=fits, weight_after_all=0.0)
    kind = SlotKind.POLICY if has_policy else SlotKind.PARTITIONABLE
    return PricedSlots(("slot",) * slots, kind, {}), match


OFFERS = st.lists(
    st.builds(offer, st.integers(1, 50), st.integers(1, 20), st.integers(0, 9), st.booleans()),
    max_size=6,
)
ROOMS = st.floats(0, 500, allow_nan=False)


@given(OFFERS, ROOMS, ROOMS)
def test_claims_grow_with_the_room_and_the_last_one_may_go_over(
    offers: list[Offer], room: float, more: float
) -> None:
    """The order of slots does not matter; all claims but the last are within the room."""
    count = claims_within(room, offers)
    charges = sorted(
        charge_of(slots, match)
        for slots, match in offers
        for _ in range(len(slots.names) * match.fits)
    )
    assert count <= claims_within(room + more, offers) <= len(charges)
    assert claims_within(float("inf"), offers) == len(charges)
    assert claims_within(room, offers[::-1]) == count
    before = sum(charges[: count - 1]) if count else 0.0
    assert before < room or isclose(before, room) or not count
    assert count == len(charges) or sum(charges[:count]) >= room - 1e-6, "room is used up"


# ---- kinds, and files


NAMES = st.sampled_from(
    ["Cpus", "Memory", "Start", "Requirements", "SlotWeight", "Name", "Extra", "RequestCpus"]
)
TEXTS = st.sampled_from(["1", "2", "Cpus", "Extra > 1", '"a"', "TARGET.RequestCpus", "Start"])
ADS = st.lists(st.dictionaries(NAMES, TEXTS, max_size=5), max_size=8)


@given(ADS, ADS)
def test_ads_of_a_kind_do_not_differ_in_what_is_referred_to(
    slots: list[dict[str, str]], jobs: list[dict[str, str]]
) -> None:
    """Each ad is of one kind, and no expression sees attributes in which its ads differ."""
    seen = {"requirements", "slotweight", "requestcpus"}
    for _ in range(8):
        seen |= {
            word
            for ad in (*slots, *jobs)
            for name, text in ad.items()
            if name.lower() in seen
            for word in words_of_text(text)
        }
    for ads, of_ads in zip((slots, jobs), kinds(slots, jobs)):
        assert sorted(number for kind in of_ads for number in kind) == list(range(len(ads)))
        for kind in of_ads:
            visible = [
                {name: text for name, text in ads[number].items() if name.lower() in seen}
                for number in kind
            ]
            assert visible == [visible[0]] * len(kind)


DISKS = st.one_of(st.floats(0, 1e12), st.sampled_from(["undefined", "1 + 1", "-3", "nan"]))


@given(st.lists(DISKS, min_size=1))
def test_disk_makes_kinds_in_steps_of_a_hundredth(disks: list[object]) -> None:
    """Slots of a kind differ by no more than 1 % of Disk."""
    slots = [{"MachineResources": '"Cpus Disk"', "Disk": str(disk)} for disk in disks]
    for kind in kinds(slots, [])[0]:
        members = [disks[member] for member in kind]
        numbers = [disk for disk in members if isinstance(disk, float)]
        if len(set(map(str, members))) > 1:
            assert numbers == members
            assert max(numbers) <= 1.0101 * min(numbers)


PIECES = ["A = 1\n", "\n", "= 2\n", '"', "-- x\n"]


@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_a_file_is_ads_or_errors_that_name_it(text: str) -> None:
    """Any file is read or refused by its name."""
    try:
        places = [ad.place for ad in parse(text, "the file")]
    except InputError as error:
        places = list(error.problems)
    assert places
    assert [place for place in places if not place.startswith("the file")] == []
