from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sharectl.condor.expressions import words_of_text
from sharectl.consumption.asks import NamedAd, kinds, seen_names

NAMES = st.sampled_from(
    ["cpus", "memory", "start", "requirements", "slotweight", "name", "extra", "requestcpus"]
)
TEXTS = st.sampled_from(["1", "2", "Cpus", "Extra > 1", '"a"', "TARGET.RequestCpus", "Start"])
ADS = st.lists(st.builds(NamedAd, st.just("ad"), st.dictionaries(NAMES, TEXTS, max_size=5)))


@given(ADS, ADS)
def test_slots_of_a_kind_do_not_differ_in_what_is_referred_to(
    slots: list[NamedAd], jobs: list[NamedAd]
) -> None:
    """Each slot is of one kind, and no expression sees attributes in which its slots differ."""
    rows = [ad.row for ad in (*slots, *jobs)]
    seen = {"requirements", "slotweight", "requestcpus"}
    for _ in range(8):
        texts = [text for row in rows for name, text in row.items() if name in seen]
        seen |= {word for text in texts for word in words_of_text(text)}
    of_slots = kinds(slots, seen_names(rows))
    assert sorted(id(ad) for kind in of_slots for ad in kind) == sorted(map(id, slots))
    for kind in of_slots:
        visible = [{n: text for n, text in ad.row.items() if n in seen} for ad in kind]
        assert visible == [visible[0]] * len(kind)
