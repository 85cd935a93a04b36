"""What slots would make of jobs that they do not take now, if nothing ran on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sharectl.adapters.consumption_policy_pricing import Jobs, price, when_empty
from sharectl.adapters.slot_ads import AdOfFile, text_of
from sharectl.core.claim_offers import Priced
from sharectl.core.match_cost import Match


def on_empty(
    slots: Sequence[AdOfFile], jobs: Sequence[Jobs], priced: Priced
) -> Mapping[tuple[int, int], Match]:
    """The match with the emptied slot, by the pairs of ``priced`` that make none as the slot is.

    Where slots of a kind differ when they are empty it is that of one that takes the job, if there is one.
    """
    pairs = {pair for pair, match in priced.matches.items() if match.refused or priced.slots[pair[0]].state}
    if not pairs:
        return {}
    slot_numbers = _numbers((number, priced.slots[number].names) for number in {slot for slot, _ in pairs})
    job_numbers = _numbers((number, priced.jobs[number].names) for number in {job for _, job in pairs})
    empty = price(
        [
            when_empty(slot)
            for slot in slots
            if (text_of(slot.attributes, "Name") or slot.place) in slot_numbers
        ],
        [job for job in jobs if job.ad.place in job_numbers],
        1,
    )
    found: dict[tuple[int, int], Match] = {}
    for (slot, job), match in empty.matches.items():
        for pair in _pairs(empty.slots[slot].names, empty.jobs[job].names, slot_numbers, job_numbers):
            if pair in pairs and (pair not in found or not match.refused):
                found[pair] = match
    return found


def _numbers(named: Iterable[tuple[int, Sequence[str]]]) -> Mapping[str, set[int]]:
    """Numbers of the kinds that have a member of that name."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for number, names in named:
        for name in names:
            numbers[name].add(number)
    return numbers


def _pairs(
    slots: Sequence[str],
    jobs: Sequence[str],
    slot_numbers: Mapping[str, set[int]],
    job_numbers: Mapping[str, set[int]],
) -> set[tuple[int, int]]:
    own_slots = set().union(*(slot_numbers[name] for name in slots))
    own_jobs = set().union(*(job_numbers[name] for name in jobs))
    return {(slot, job) for slot in own_slots for job in own_jobs}
