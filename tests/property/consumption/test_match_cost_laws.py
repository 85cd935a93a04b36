from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sharectl.condor.expressions import words_of_text
from sharectl.consumption.asks import kinds

NAMES = st.sampled_from(
    ["cpus", "memory", "start", "requirements", "slotweight", "name", "extra", "requestcpus"]
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
            if name in seen
            for word in words_of_text(text)
        }
    for ads, of_ads in zip((slots, jobs), kinds(slots, jobs)):
        assert sorted(number for kind in of_ads for number in kind) == list(range(len(ads)))
        for kind in of_ads:
            visible = [
                {name: text for name, text in ads[number].items() if name in seen}
                for number in kind
            ]
            assert visible == [visible[0]] * len(kind)


DISKS = st.one_of(st.floats(0, 1e12), st.sampled_from(["undefined", "1 + 1", "-3", "nan"]))


@given(st.lists(DISKS, min_size=1))
def test_disk_makes_kinds_in_steps_of_a_hundredth(disks: list[object]) -> None:
    """Slots of a kind differ by no more than 1 % of Disk."""
    slots = [{"machineresources": '"Cpus Disk"', "disk": str(disk)} for disk in disks]
    for kind in kinds(slots, [])[0]:
        members = [disks[member] for member in kind]
        numbers = [disk for disk in members if isinstance(disk, float)]
        if len(set(map(str, members))) > 1:
            assert numbers == members
            assert max(numbers) <= 1.0101 * min(numbers)
