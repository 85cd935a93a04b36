"""Reproducible outcomes of the twin, of strategies that are better or worse by a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import pi, sin

from sharectl_lab.pages.simulation import Simulation
from sharectl_lab.twin.records import CAUSES, GroupOutcome, Outcome, Waits

PLEDGES = {"atlas": 500.0, "cms": 300.0, "alice": 200.0}
CORES, HS06_PER_CORE = 120, 10.0


def outcome(  # noqa: PLR0913 - a made-up run has many knobs
    strategy: str = "nothing",
    seed: int = 1,
    *,
    days: float = 2.0,
    swing: float = 0.2,
    idle: Sequence[str] = ("cadence", "fragmentation"),
    pledges: Mapping[str, float] = PLEDGES,
    complete: bool = True,
    interval_seconds: float = 3600.0,
) -> Outcome:
    """Outcome in which groups swing about their shares by the part ``swing`` of them."""
    count = round(days * 86_400 / interval_seconds)
    times = tuple(interval_seconds * number for number in range(1, count + 1))
    idle_cores = {
        cause: tuple(
            float(idle.index(cause) + seed + (number % 3)) if cause in idle else 0.0
            for number in range(count)
        )
        for cause in CAUSES
    }
    used = [CORES - sum(row[number] for row in idle_cores.values()) for number in range(count)]
    groups = {
        name: _group(
            place,
            name,
            pledges,
            [swing * sin(2 * pi * t / 86_400) for t in times],
            used,
            interval_seconds / 3600,
        )
        for place, name in enumerate(pledges)
    }
    zeros = (0.0,) * count
    nobody = GroupOutcome(0.0, zeros, zeros, zeros, (0,) * count, 0.0)
    return Outcome(
        scenario="small",
        strategy=strategy,
        seed=seed,
        seconds=count * interval_seconds,
        times=times,
        pool_cores=CORES,
        pool_hs06=CORES * HS06_PER_CORE,
        groups={**groups, "other": nobody},
        idle_core_seconds={cause: sum(row) * interval_seconds for cause, row in idle_cores.items()},
        idle_cores=idle_cores,
        refusals=3 * seed,
        evicted_jobs=seed if "drain" in idle else 0,
        lost_core_seconds=7200.0 * seed if "drain" in idle else 0.0,
        drained_nodes=5 if "drain" in idle else 0,
        cycles=count * 60,
        plans=count,
        changed_targets=4 * count if "target" in idle else 0,
        complete=complete,
    )


def _group(
    place: int,
    name: str,
    pledges: Mapping[str, float],
    swings: Sequence[float],
    used: Sequence[float],
    hours: float,
) -> GroupOutcome:
    """The first group has more when the second has less; all others have their share."""
    part = pledges[name] / sum(pledges.values())
    least = min([*pledges.values()][:2]) / sum(pledges.values())
    sign = {0: 1, 1: -1}.get(place, 0) if len(pledges) > 1 else 0
    cores = tuple(c * (part + sign * least * swing) for c, swing in zip(used, swings))
    power = tuple(HS06_PER_CORE * c for c in cores)
    waits = Waits(10, 3000.0, 1800.0, 7200.0, 90_000.0)
    return GroupOutcome(
        pledge_hs06=pledges[name],
        power_hs06=power,
        due_hs06=(HS06_PER_CORE * CORES * part,) * len(swings),
        cores=cores,
        pending_jobs=(5,) * len(swings),
        work_hs06_hours=sum(power) * hours,
        starts_by_cores={1: 100, 8: 20 + place},
        done_by_cores={1: 90, 8: 18},
        waits_by_cores={1: waits, 8: waits},
    )


def simulation(
    outcomes: Sequence[Outcome], *, days: float = 2.0, seeds: Sequence[int] = ()
) -> Simulation:
    """Simulation of the strategies of the outcomes."""
    names = dict.fromkeys(outcome.strategy for outcome in outcomes)
    return Simulation(
        scenario="small",
        strategies={name: f"the strategy {name}" for name in names},
        seeds=tuple(seeds or dict.fromkeys(outcome.seed for outcome in outcomes)),
        days=days,
        outcomes=list(outcomes),
    )


def compared(seeds: Sequence[int] = (1, 2, 3)) -> Simulation:
    """Three strategies with some seeds."""
    kinds = {
        "nothing": (0.4, ("cadence", "fragmentation")),
        "defrag": (0.2, ("drain", "fragmentation", "grace")),
        "live:law=pid": (0.05, ("cadence", "target")),
    }
    return simulation(
        [
            outcome(name, seed, swing=swing, idle=idle)
            for name, (swing, idle) in kinds.items()
            for seed in seeds
        ]
    )
