"""Loading factor of slots in the twin: a small pool, whose slots always have jobs that wait.

`sharectl.cadence` has the formula; both are told the same run times, intervals and claims.
"""

from __future__ import annotations

from collections import defaultdict
from math import ceil, fsum

from sharectl.cadence.laws import RunTimeLaw
from sharectl.sim.engine import Setup, Twin
from sharectl.sim.pool import Claim, SimSlot
from sharectl.sim.records import NodeSpec, SlotSpec
from sharectl.sim.settings import Access, Negotiator
from sharectl.sim.start import StartKnobs
from sharectl.workload.draw import DrawnWorkload, JobStream

_SLOTS = 40
_GROUP = "all"
HOLDINGS = 60
"""Times that a slot is held, about."""


def loading_factor(
    law: RunTimeLaw,
    interval_seconds: float,
    worklife_seconds: float = 0.0,
    start_seconds: float = 0.0,
    *,
    holdings: int = HOLDINGS,
    seed: int = 1,
) -> float:
    """Loading factor of single-core slots under the strategy `nothing`: work over time held.

    Parameters
    ----------
    worklife_seconds
        CLAIM_WORKLIFE; 0 for one job a claim.
    start_seconds
        Time from the begin of a cycle to the start of its jobs.
    """
    mean = law.mean_seconds
    claim_seconds = max(0.0, worklife_seconds) + mean
    until = holdings * (claim_seconds + interval_seconds)
    stream = JobStream(
        group=_GROUP,
        run_time=law,
        keep_pending=2 * _SLOTS * ceil(2 + interval_seconds / mean),
        factory_seconds=interval_seconds,
    )
    setup = Setup(
        nodes=tuple(NodeSpec(f"wn-{n}", (SlotSpec(1, 4096),), 10.0) for n in range(_SLOTS)),
        pledge_hs06={_GROUP: 1.0},
        negotiator=Negotiator(
            interval_seconds=interval_seconds,
            cycle_delay_seconds=0.0,
            base_seconds=start_seconds,
            match_seconds=0.0,
        ),
        access=Access(claim_worklife_seconds=worklife_seconds),
        start=StartKnobs(enabled=False),
    )
    twin = Twin(setup, DrawnWorkload([stream], seed, until))
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
