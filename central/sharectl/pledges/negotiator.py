"""Pledges from the negotiator's group quotas: weighted slots, and what power such a slot stands for.

A copy of the negotiator's knobs of quotas, for while it is busy: it answers between its cycles
only.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Optional

from sharectl.condor.ad_files import content_of
from sharectl.condor.ads import evaluated, number, text, whole
from sharectl.condor.daemons import collector_question, slots, why_collector, with_address
from sharectl.condor.deadline import ask_all, words
from sharectl.condor.negotiator import quota_knobs
from sharectl.condor.quotas import (
    Knob,
    groups_of_knobs,
    knobs_of_text,
    names_of,
)
from sharectl.errors import InputError, PoolUnavailableError, StateError
from sharectl.files.documents import Document, DocumentError, record
from sharectl.model import DEFAULT_NODE_CORES, DEFAULT_NODE_HS06, Source
from sharectl.pledges.sources import Told, Wanted, ago, joined, refused, some
from sharectl.shares.pledges import SOURCE_NAME, Pledge, Pledged
from sharectl.words import shown

_MOST_BYTES = 2**22


@dataclass(frozen=True)
class KnobsCopy:
    """What it said last."""

    name: Optional[str]
    """Name of the negotiator that was asked for; None for the only one."""
    asked_at: int
    """Unix seconds."""
    knobs: tuple[Knob, ...]


def load(path: Path) -> Optional[KnobsCopy]:
    """The copy at ``path``; None if there is none.

    Raises
    ------
    InputError
        If there is one that cannot be read.
    """
    try:
        return Document(path, _MOST_BYTES).read(partial(record, KnobsCopy))
    except (OSError, DocumentError) as error:
        raise InputError([f"{path}: cannot be read: {shown(str(error))}; remove it"]) from error


def save(path: Path, name: Optional[str], asked_at: int, knobs: Sequence[Knob]) -> None:
    """Keep what the negotiator said. Raises StateError as `files.replace`."""
    copy = KnobsCopy(name, asked_at, tuple(knobs))
    Document(path, _MOST_BYTES).replace(asdict(copy))


SOURCE = "negotiator"
SCALE = 100.0
"""Factor between pledges from which a unit was rather mistaken."""
_NOT_DYNAMIC = 'SlotType =!= "Dynamic"'
_PROJECTION = ["Machine", "TotalSlotCpus", "TotalCpus", "t1_wn_hs06"]

_OF_COLLECTOR = "Failed communication with collector"
"""Part of what HTCondor's library says of a collector that does not answer."""


@dataclass(frozen=True)
class NegotiatorAccess:
    """How the negotiator is asked."""

    collector: Optional[str] = None
    """Address; None for the pool of this machine's configuration."""
    name: Optional[str] = None
    file: Optional[Path] = None
    """File with its knobs, instead of itself."""
    deadline_seconds: float = 20.0
    pool_cores: Optional[float] = None
    """Weighted slots of the pool; None for its cores."""
    weight_hs06: Optional[float] = None
    """Power of a weighted slot; None for the mean of the pool's cores."""
    copy_file: Optional[Path] = None
    """Where what it says is kept for while it is busy; None for nowhere."""
    max_age_seconds: float = 86400.0
    default_node_hs06: float = DEFAULT_NODE_HS06
    default_node_cores: int = DEFAULT_NODE_CORES


@dataclass(frozen=True)
class _Answer:
    knobs: tuple[Knob, ...]
    said_at: Optional[int]
    """Unix seconds if it is a copy."""
    cores: float
    """0 if the collector knows no node, or was not asked."""
    hs06: float


class NegotiatorPledges:
    """Quotas of the groups that are steered, as HS06."""

    def __init__(
        self, access: NegotiatorAccess, wanted: Sequence[Wanted], *, keep: bool = False
    ) -> None:
        self.access = access
        self.wanted = tuple(wanted)
        self.keep = keep
        """Whether to write the copy; a dry run does not."""

    def resolve(self, now: int) -> Pledged:
        """Pledges of this moment; see `sharectl.cycle.ports.Pledges`."""
        began = time.monotonic()
        warnings: list[str] = []
        try:
            found = self._resolved(self._answer(now, warnings))
            warnings.extend(mixed_scales(found.pledges))
        except (InputError, PoolUnavailableError) as error:
            found = refused(0.0, str(error).splitlines())
        source = Source(SOURCE_NAME, time.monotonic() - began, found.source.problem)
        return replace(found, source=source, warnings=tuple(warnings))

    def _answer(self, now: int, warnings: list[str]) -> _Answer:
        access = self.access
        questions = {}
        if access.file is None:
            questions["negotiator"] = replace(
                collector_question(
                    access.collector,
                    access.deadline_seconds,
                    partial(quota_knobs, name=access.name),
                ),
                why=partial(_why_silent, access.collector),
            )
        if not (access.pool_cores and access.weight_hs06):
            questions["collector"] = collector_question(
                access.collector, access.deadline_seconds, partial(_power, access=access)
            )
        answers = ask_all(questions)
        power = answers.get("collector")
        if power is not None and power.value is None:
            raise PoolUnavailableError(
                f"collector: {with_address(access.collector, power.source.problem or '')}"
            )
        cores, hs06 = power.value if power is not None else (0.0, 0.0)
        if access.file is not None:
            text, name = content_of(access.file)
            return _Answer(tuple(knobs_of_text(text, name)), None, cores, hs06)
        told = answers["negotiator"]
        if told.value is None:
            copy = self._copy(
                now,
                f"negotiator: {_with_hint(access.collector, told.source.problem or '')}",
                warnings,
            )
            return _Answer(copy.knobs, copy.asked_at, cores, hs06)
        self._keep(now, told.value, warnings)
        return _Answer(tuple(told.value), None, cores, hs06)

    def _copy(self, now: int, problem: str, warnings: list[str]) -> KnobsCopy:
        path, most = self.access.copy_file, self.access.max_age_seconds
        copy = load(path) if path is not None else None
        if copy is None or copy.name != self.access.name:
            raise PoolUnavailableError(f"{problem}; there is no copy of what it said before")
        age = now - copy.asked_at
        if abs(age) > most:
            raise PoolUnavailableError(
                f"{problem}; the copy is of {ago(age)}, older than "
                f"pledges.negotiator.max_age_seconds ({most:g})"
            )
        warnings.append(f"{problem}; what it said {ago(age)} is in use")
        return copy

    def _keep(self, now: int, knobs: Sequence[Knob], warnings: list[str]) -> None:
        if self.keep and self.access.copy_file is not None:
            try:
                save(self.access.copy_file, self.access.name, now, knobs)
            except StateError as error:
                warnings.append(f"the copy of what the negotiator says is not kept: {error}")

    def _resolved(self, answer: _Answer) -> Pledged:
        access = self.access
        weight = access.pool_cores or answer.cores
        each = access.weight_hs06 or (answer.hs06 / answer.cores if answer.cores else 0.0)
        if not weight or not each:
            missing = "pool_cores and weight_hs06" if not weight else "weight_hs06"
            return refused(
                0.0,
                [
                    (
                        "the collector knows no execute point to tell the power of; write "
                        f"pledges.negotiator.{missing}"
                    )
                ],
            )
        place = str(access.file) if access.file else "the negotiator"
        names = names_of(answer.knobs)
        # Of a group that is not in GROUP_NAMES HTCondor ignores the quota.
        knobs = [knob for knob in answer.knobs if knob.group in ("", *names)]
        quotas = {group.name.lower(): group for group in groups_of_knobs(knobs, place, weight)}
        told: dict[str, Told] = {}
        scale = {"": 1.0}
        for one in self.wanted:
            quota = quotas[one.group].quota if one.group in quotas else None
            above = scale.get(one.group.rpartition(".")[0], 1.0)
            if quota is not None:
                where = f"quota {quota:g} of {one.group} in {place}"
                told[one.group] = Told(quota * each * above, where, quotas[one.group].surplus)
            # What is within a group whose pledge is written keeps its part of it.
            written = one.written_hs06 is not None and quota
            scale[one.group] = (
                (one.written_hs06 or 0.0) / (quota * each) if quota and written else above
            )
        absent = {
            one.group: _why_absent(one.group, names, place)
            for one in self.wanted
            if one.group not in told
        }
        pledges, problems, notes = joined(
            self.wanted, told, SOURCE, said_at=answer.said_at, absent=absent
        )
        if problems:
            return refused(0.0, problems)
        notes += _unlisted(names, self.wanted, place)
        return Pledged(Source(SOURCE_NAME, 0.0), pledges, notes=tuple(notes))


def _with_hint(collector: Optional[str], problem: str) -> str:
    """``problem``, with the collector's address and where that is from, if it is the collector that did not answer."""
    return with_address(collector, problem) if _OF_COLLECTOR in problem else problem


def _why_silent(collector: Optional[str], error: Exception) -> str:
    """Why the collector did not answer, if it is what did not; otherwise what the negotiator's question says."""
    return (
        f"{_OF_COLLECTOR}: {why_collector(collector, error)}"
        if _OF_COLLECTOR in str(error)
        else words(error)
    )


def mixed_scales(pledges: Sequence[Pledge]) -> list[str]:
    """Written pledges that are so far from what the quotas come to that one of both is hardly in HS06."""
    first = [pledge for pledge in pledges if "." not in pledge.group]
    others = [pledge.hs06 for pledge in first if pledge.source == SOURCE]
    warnings = []
    for pledge in first:
        own = pledge.instead_of_hs06
        known = [own] if own else others
        if pledge.source == SOURCE or not pledge.hs06 > 0 or not known:
            continue
        least, most = min(known), max(known)
        if pledge.hs06 * SCALE <= least or pledge.hs06 >= most * SCALE:
            span = f"{least:g}" if least == most else f"{least:g} to {most:g}"
            whose = "its own quota comes to" if own else "the quotas of others come to"
            warnings.append(
                f"{pledge.place}: {pledge.hs06:g} HS06 is written, and {whose} {span}: are "
                "these the same scale? Write its "
                "pledge_hs06 in HS06, or pledges.negotiator.weight_hs06, the HS06 of a weighted "
                "slot"
            )
    return warnings


def _why_absent(group: str, names: Sequence[str], place: str) -> str:
    if group not in names:
        return f"GROUP_NAMES of {place} has no {group}"
    return f"{place} has no quota for {group}"


def _unlisted(names: Sequence[str], wanted: Sequence[Wanted], place: str) -> list[str]:
    """That the negotiator knows groups which nobody said are to be steered."""
    listed = {one.group for one in wanted}
    above = {one.group.partition(".")[0] for one in wanted}
    others = [
        name
        for name in names
        if name not in listed and ("." not in name or name.partition(".")[0] not in above)
    ]
    if not others:
        return []
    return [
        (
            f"{place} has groups that are not listed under groups, and so are not steered: "
            f"{some(others)}"
        )
    ]


def _power(collector: Any, access: NegotiatorAccess) -> tuple[float, float]:
    """Cores and HS06 of all execute points that the collector knows."""
    cores, hs06 = 0.0, 0.0
    for ad in slots(collector, projection=_PROJECTION):
        if text(evaluated(ad, "Machine")) is not None:
            of_slot = whole(evaluated(ad, "TotalSlotCpus"), 0)
            cores += of_slot
            hs06 += of_slot * _hs06_per_core(ad, access)
    return cores, hs06


def _hs06_per_core(ad: Mapping[str, Any], access: NegotiatorAccess) -> float:
    node = number(evaluated(ad, "t1_wn_hs06"), 0.0) or access.default_node_hs06
    return node / (whole(evaluated(ad, "TotalCpus"), 0) or access.default_node_cores)
