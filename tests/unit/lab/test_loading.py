"""The twin's loading factor, beside the formula of `sharectl cadence`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import ceil, fsum
from typing import Callable

import pytest

from sharectl.cadence.laws import RunTimeLaw, constant
from sharectl_lab.twin.engine import Setup, Twin
from sharectl_lab.twin.pool import Claim, SimSlot
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.settings import Access, Negotiator
from sharectl_lab.twin.start import StartKnobs
from sharectl_lab.workload.draw import DrawnWorkload, JobStream

MARGIN = 0.01
"""Share of the slots' time by which formula and twin may differ: the error of some 2,000 draws."""
INTERVAL_SECONDS = 60.0
HOLDINGS = 50
"""Times that a slot is held, about."""
SLOTS = 40
GROUP = "all"
LAWS: Mapping[str, Callable[[float], RunTimeLaw]] = {
    "constant": constant,
    "exponential": lambda mean: RunTimeLaw("exponential", (mean,)),
    "narrow": lambda mean: RunTimeLaw("log-normal", (mean, mean / 4)),
    "wide": lambda mean: RunTimeLaw("log-normal", (mean, mean)),
}


def loading_factor(law: RunTimeLaw, worklife_seconds: float, start_seconds: float) -> float:
    """Loading factor of single-core slots under the strategy `nothing`: work over time held.

    Jobs start ``start_seconds`` after the begin of a cycle; a worklife of 0 is one job a claim.
    """
    mean = law.mean_seconds
    claim_seconds = max(0.0, worklife_seconds) + mean
    until = HOLDINGS * (claim_seconds + INTERVAL_SECONDS)
    stream = JobStream(
        group=GROUP,
        run_time=law,
        keep_pending=2 * SLOTS * ceil(2 + INTERVAL_SECONDS / mean),
        factory_seconds=INTERVAL_SECONDS,
    )
    setup = Setup(
        nodes=tuple(NodeSpec(f"wn-{n}", (SlotSpec(1, 4096),), 10.0) for n in range(SLOTS)),
        pledge_hs06={GROUP: 1.0},
        negotiator=Negotiator(
            interval_seconds=INTERVAL_SECONDS,
            cycle_delay_seconds=0.0,
            base_seconds=start_seconds,
            match_seconds=0.0,
        ),
        access=Access(claim_worklife_seconds=worklife_seconds),
        start=StartKnobs(enabled=False),
    )
    twin = Twin(setup, DrawnWorkload([stream], 1, until))
    claims: defaultdict[SimSlot, defaultdict[float, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    """Slot -> begin of each claim -> run times of its jobs."""

    def note(claim: Claim, now: float) -> None:
        claims[claim.slot][claim.since].append(now - claim.started_at)

    twin.on_end.append(note)
    twin.run(until)
    work, held = [], []
    for begins in claims.values():
        # A slot is held until its next claim: the last one has none.
        *whole, last = begins
        work += [seconds for begin in whole for seconds in begins[begin]]
        held.append(last - next(iter(begins)))
    return fsum(work) / fsum(held)


@pytest.mark.parametrize("start_seconds", [0.0, 5.0])
@pytest.mark.parametrize(
    ("ratio", "worklife_seconds"),
    [(0.3, 0.0), (1.0, 0.0), (1.5, 0.0), (4.25, 0.0), (0.7, 252.0), (2.25, 252.0)],
)
@pytest.mark.parametrize("name", LAWS)
def test_the_formula_is_the_twin(
    name: str, ratio: float, worklife_seconds: float, start_seconds: float
) -> None:
    """Jobs that fill a cycle exactly need another one if they start after its begin.

    Six jobs of 42 s leave a claim just as old as its worklife, not older: it runs a seventh.
    """
    law = LAWS[name](ratio * INTERVAL_SECONDS)
    formula = law.loading(INTERVAL_SECONDS, worklife_seconds, start_seconds)
    twin = loading_factor(law, worklife_seconds, start_seconds)
    assert twin == pytest.approx(formula, abs=MARGIN)
    if (name, ratio) == ("constant", 1.0):
        assert twin == (0.5 if start_seconds else 1.0), "half of the time is lost by a late start"
