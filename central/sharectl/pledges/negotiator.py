"""Pledges from the negotiator's group quotas: weighted slots, times the power of such a slot.

The negotiator answers between its cycles only: its knobs are kept for while it is busy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Optional

from sharectl.condor.ads import evaluated, number, text, whole
from sharectl.condor.daemons import ask_collector, collector_question, slots
from sharectl.condor.deadline import ask_all
from sharectl.condor.negotiator import (
    groups_of_knobs,
    names_above,
    names_of,
    quota_knobs,
    slots_of,
)
from sharectl.config.model import NegotiatorPledgesConfig
from sharectl.errors import PoolUnavailableError
from sharectl.model import DEFAULT_NODE_CORES, PoolConfig
from sharectl.pledges.join import Joined, SteeredGroup, copy_in, join, keep_copy, some
from sharectl.shares.pledges import Pledge
from sharectl.times import DAY_SECONDS, span

_SOURCE = "negotiator"
_MOST_AGE_SECONDS = DAY_SECONDS
"""Age to which the last answer is used; a negotiator that negotiates is silent for minutes."""
_PROJECTION = ["Machine", "TotalSlotCpus", "TotalCpus", "t1_wn_hs06"]


@dataclass(frozen=True)
class KnobsCopy:
    """Knobs that the negotiator had last."""

    name: Optional[str]
    """Name of the negotiator; None for the only one."""
    asked_at: int
    """Unix seconds."""
    knobs: Mapping[str, str]


@dataclass(frozen=True)
class NegotiatorPledges:
    """Quotas of the groups that are steered, as HS06."""

    access: NegotiatorPledgesConfig
    pool: PoolConfig
    wanted: Sequence[SteeredGroup]
    copy_file: Path
    keep: bool = False
    """Write the copy; a dry run does not."""

    def ask(self, now: int, warnings: list[str]) -> Joined:
        """Pledges of this moment, for `AllPledges`."""
        copy, cores, hs06 = self._answers(now, warnings)
        weight = self.access.pool_cores or cores
        slot_hs06 = self.access.weight_hs06 or (hs06 / cores if cores else 0.0)
        if not weight or not slot_hs06:
            missing = "pool_cores and weight_hs06" if not weight else "weight_hs06"
            fact = "the collector knows no execute point to tell the power of"
            raise PoolUnavailableError(f"{fact}; write pledges.negotiator.{missing}")
        names = names_of(copy.knobs)
        quotas = groups_of_knobs(copy.knobs, _SOURCE, weight)
        said_at = None if copy.asked_at == now else copy.asked_at
        in_source: dict[str, Pledge] = {}
        absent: dict[str, str] = {}
        scale = {"": 1.0}
        for wanted in self.wanted:
            name = wanted.group
            scale[name] = scale.get(name.rpartition(".")[0], 1.0)
            quota = quotas[name].weight if name in quotas else None
            if quota is None:
                missing = next((n for n in sorted(names_above(name)) if n not in names), name)
                unlisted = f"GROUP_NAMES of the negotiator has no {missing}"
                no_quota = f"the negotiator has no quota for {name}"
                absent[name] = no_quota if name in names else unlisted
                continue
            where, hs06 = f"quota {quota:g} of {name} in the negotiator", quota * slot_hs06
            in_source[name] = Pledge(
                name, hs06 * scale[name], _SOURCE, where, said_at, surplus=quotas[name].surplus
            )
            # Groups within one whose pledge is written keep their part of it.
            if wanted.written_hs06 is not None and quota:
                scale[name] = wanted.written_hs06 / hs06
        pledges, notes = join(self.wanted, in_source, absent)
        listed = {group.group for group in self.wanted}
        above = tuple(f"{name.partition('.')[0]}." for name in listed)
        others = [name for name in names if name not in listed and not name.startswith(above)]
        if others:
            fact = "the negotiator has groups that are not listed under groups, and so are not"
            notes.append(f"{fact} steered: {some(others)}")
        return pledges, notes

    def _answers(self, now: int, warnings: list[str]) -> tuple[KnobsCopy, float, float]:
        """Knobs, and cores and HS06 of the negotiator's slots, 0 where these are not needed."""
        address, seconds = self.pool.collector, self.pool.collector_deadline_seconds
        question = collector_question(address, seconds, partial(quota_knobs, name=self.access.name))
        answer = ask_all({"negotiator": question})["negotiator"]
        if answer.value is None:
            copy = self._copy(now, f"negotiator: {answer.source.problem}", warnings)
        else:
            copy = KnobsCopy(self.access.name, now, answer.value)
            if self.keep:
                keep_copy(self.copy_file, copy, warnings)
        if self.access.pool_cores and self.access.weight_hs06:
            return copy, 0.0, 0.0
        constraint = slots_of(copy.knobs)
        ask = partial(power_of_slots, pool=self.pool, constraint=constraint)
        cores, hs06 = ask_collector(address, seconds, ask)
        if constraint:
            fact = f"the negotiator sees {cores:g} cores of the pool ({constraint})"
            warnings.append(f"{fact}: quotas are shares of these, use is measured on all nodes")
        return copy, cores, hs06

    def _copy(self, now: int, problem: str, warnings: list[str]) -> KnobsCopy:
        """Copy that stands in for a negotiator with ``problem``."""
        copy = copy_in(self.copy_file, KnobsCopy, warnings)
        if copy is None or copy.name != self.access.name:
            raise PoolUnavailableError(f"no copy of an earlier answer, and {problem}")
        age = now - copy.asked_at
        if abs(age) > _MOST_AGE_SECONDS:
            raise PoolUnavailableError(f"the copy is of {span(age)} ago, too old, and {problem}")
        warnings.append(f"{problem}; what it said {span(age)} ago is in use")
        return copy


def power_of_slots(
    collector: Any, pool: PoolConfig, constraint: Optional[str]
) -> tuple[float, float]:
    """Cores and HS06 of the slots that the collector knows, with a ``constraint``."""
    cores, hs06 = 0.0, 0.0
    for ad in slots(collector, constraint, _PROJECTION):
        if text(evaluated(ad, "Machine")) is not None:
            of_slot = whole(evaluated(ad, "TotalSlotCpus"), 0)
            node_hs06 = number(evaluated(ad, "t1_wn_hs06"), 0.0) or pool.default_node_hs06
            node_cores = whole(evaluated(ad, "TotalCpus"), 0) or DEFAULT_NODE_CORES
            cores += of_slot
            hs06 += of_slot * node_hs06 / node_cores
    return cores, hs06
