"""Power that groups will give up soon, as a part of what is moved now.

A block of cores takes about an hour to collect. A group whose jobs of a size wait no more loses the
power of those that run, job by job, and other groups take the cores. Blocks that begin when the
error is there come an hour late; so what is given up within that hour counts already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import exp, fsum

from sharectl.model import Snapshot
from sharectl.plan.waits import NOTHING_SEEN, RunTimes, age_bin

FORESEEN_SECONDS = 2700.0
"""About as long as a block takes; with half and with twice as much the shortfall is larger."""


def foreseen_hs06(
    pledge_hs06: Mapping[str, float], snapshot: Snapshot, run_times: RunTimes
) -> dict[str, float]:
    """Group -> change of its power that is foreseen, HS06; groups without one are left out.

    Groups whose single-core jobs wait take what others give up, in proportion to their pledges.
    """
    kinds = {row.kind for row in snapshot.pending if row.jobs > 0 and row.placeable}
    waiting = {group for group, _ in kinds} & pledge_hs06.keys()
    lost_hs06: defaultdict[str, list[float]] = defaultdict(list)
    for _, group, cores, hs06_per_core, seconds, jobs, _ in snapshot.running:
        if group in waiting and (group, cores) not in kinds:
            mean_seconds = run_times.get(group, NOTHING_SEEN).by_bin[age_bin(seconds)]
            ends_ratio = 1 - exp(-FORESEEN_SECONDS / mean_seconds)
            lost_hs06[group].append(jobs * cores * hs06_per_core * ends_ratio)
    change_hs06 = {group: -fsum(lost) for group, lost in lost_hs06.items()}
    given_hs06 = -fsum(change_hs06.values())
    takers = {group: hs06 for group, hs06 in pledge_hs06.items() if (group, 1) in kinds}
    if given_hs06 and takers:
        whole = fsum(takers.values())
        for group, hs06 in takers.items():
            change_hs06[group] = change_hs06.get(group, 0.0) + given_hs06 * hs06 / whole
    return change_hs06
