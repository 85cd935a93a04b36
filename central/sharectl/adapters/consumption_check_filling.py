"""Slots that are filled with the smallest ordinary job again and again: what fits, what each match costs, what is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Optional

from sharectl.adapters.consumption_check_requests import Ad, Amounts, sizes, slot_ad, smallest
from sharectl.adapters.consumption_check_subject import Node, SlotType, Subject
from sharectl.core.match_cost import Match

MOST_CLAIMS = 512
"""Claims that are followed on a slot of a check: more than the cores of any node."""
_AT_ONCE = 32
_SIZES = 4
"""Slots that are filled: the larger ones only for policies to which the smaller are too small."""


@dataclass(frozen=True)
class Filled:
    """A slot that is filled with one job again and again."""

    node: Node
    slot: SlotType
    whole: Amounts
    job: Ad
    claims: tuple[Match, ...]
    """Those that were made, in order."""
    left: Amounts
    is_full: bool
    """Whether there was room for no more."""

    @property
    def cost(self) -> Optional[float]:
        """Of the first match."""
        return self.claims[0].cost if self.claims else None


def filled_slots(subject: Subject) -> Iterator[list[Filled]]:
    """Each slot, of all sizes that it may have, filled with the smallest ordinary job that it takes."""
    for found in filled_with_each(subject):
        yield found[0]


def filled_with_each(subject: Subject) -> Iterator[list[list[Filled]]]:
    """For each slot that takes any, each kind of smallest job; and for each of these the sizes that the slot may have.

    First the job that requests one of everything, then the one that requests no custom resource.
    """
    for node, slot in subject.sound:
        amounts, _ = sizes(node, slot, subject.size)
        found = []
        jobs = [smallest(slot.policies, with_custom=True), smallest(slot.policies, with_custom=False)]
        for job in jobs if jobs[0] != jobs[1] else jobs[:1]:
            runs = (_filled(subject, node, slot, whole, job) for whole in amounts)
            filled = list(islice((one for one in runs if one.claims), _SIZES))
            if filled and all(match.cost is not None for one in filled for match in one.claims):
                found.append(filled)
        if found:
            yield found


def after(left: Amounts, match: Match) -> dict[str, float]:
    """What is left of the assets after a match."""
    taken = match.claim.consumed if match.claim is not None else {}
    return {asset: amount - taken.get(asset, 0.0) for asset, amount in left.items()}


def _filled(subject: Subject, node: Node, slot: SlotType, whole: Amounts, job: Ad) -> Filled:
    made: list[Match] = []
    left = dict(whole)
    is_full = False
    while not is_full and len(made) < MOST_CLAIMS:
        (run,) = subject.in_sequence([slot_ad(node, slot, whole, left)], [job] * _AT_ONCE)
        accepted = [match for match in run if not match.refused]
        is_full = len(accepted) < len(run)
        for match in accepted:
            left = after(left, match)
        made += accepted
    return Filled(node, slot, whole, job, tuple(made), left, is_full)
