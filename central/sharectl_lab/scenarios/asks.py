"""Negotiator and START of a live pool, as the twin takes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf, nan
from typing import Any, Optional

from sharectl.condor.ad_rows import LITERAL, row_of
from sharectl.condor.ads import evaluated, number
from sharectl.condor.daemons import PARTITIONABLE, collector_question, locations, query
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.expressions import references, split
from sharectl.condor.negotiator import (
    QuotaKnob,
    cycles_and_knobs,
    groups_of_knobs,
    one_of,
    quota_knobs,
)
from sharectl.errors import InputError
from sharectl.model import PoolConfig
from sharectl.words import counted, shown
from sharectl_lab.scenarios.from_pool import some
from sharectl_lab.scenarios.scenario import Scenario
from sharectl_lab.twin.ads import SiteExpressions

_OWN = ("t1_", "mc_grace")
"""Begins of attributes of sharectl's own clauses."""
_KEYS = {"NEGOTIATOR_INTERVAL": "interval_seconds", "NEGOTIATOR_CYCLE_DELAY": "cycle_delay_seconds"}
_EVERY = 'SlotType =!= "Dynamic"'
_PROJECTION = (
    "Machine SlotType PartitionableSlot Start State Offline TotalSlotGPUs".split()  # noqa: SIM905
)
_MOST_CHARACTERS = 200
_MOST_STARTS = 5
_Ask = Callable[[Callable[[Any], Any]], Question]


def of_pool(site: Scenario, pool: PoolConfig, name: Optional[str]) -> Scenario:
    """Scenario with the quotas, surplus, intervals and START of a live pool; its notes say which.

    ``name`` is the negotiator's, None for the only one. What does not answer is as it was.
    """
    ask = partial(collector_question, pool.collector)
    answers = ask_all(
        {
            "negotiator": ask(pool.schedd_deadline_seconds, partial(_negotiator, name=name)),
            "collector": ask(pool.collector_deadline_seconds, _slots),
        }
    )
    notes = [
        f"{name} did not answer ({answer.source.problem}): HTCondor's defaults are assumed for it"
        for name, answer in answers.items()
        if answer.value is None
    ]
    if (negotiator := answers["negotiator"].value) is not None:
        site, more = _with_knobs(site, *negotiator)
        notes += more
    if (looked := answers["collector"].value) is not None:
        starts, others = looked
        at_once = partial(ask, pool.collector_deadline_seconds)
        site, more = _with_start(site, Counter(starts), at_once)
        notes += more
        notes += (f"{words} ({some(names)})" for words, names in others.items())
    return replace(site, notes=(*site.notes, *notes))


def _negotiator(collector: Any, name: Optional[str]) -> tuple[list[QuotaKnob], dict[str, int]]:
    location = one_of(locations(collector, "Negotiator"), name)
    return quota_knobs(collector, name), cycles_and_knobs(location)[1]


def _with_knobs(
    site: Scenario, quotas: Sequence[QuotaKnob], knobs: dict[str, int]
) -> tuple[Scenario, list[str]]:
    intervals = {key: float(knobs[knob]) for knob, key in _KEYS.items() if knob in knobs}
    negotiator = replace(site.negotiator, **intervals)  # type: ignore[arg-type]
    notes = [", ".join(f"{knob} {knobs[knob]} s" for knob in _KEYS if knob in knobs)]
    cores = float(sum(node.cores for node in site.nodes_of()))
    try:
        groups = groups_of_knobs(quotas, "the negotiator", cores)
    except InputError:
        groups = []
    if groups:
        policies = {group.surplus for group in groups}
        negotiator = replace(
            negotiator,
            quotas="static",
            group_quotas={group.name.lower(): group.quota or 0.0 for group in groups},
            accept_surplus="byquota" in policies,
            autoregroup="regroup" in policies,
        )
        if len(policies) > 1:
            notes.append("groups differ in GROUP_ACCEPT_SURPLUS or GROUP_AUTOREGROUP: all have it")
    words = f"quotas of {counted(len(groups), 'group')}" if groups else "no quotas"
    fact = f"from the pool's negotiator: {words}, {'; '.join(filter(None, notes))}"
    return replace(site, negotiator=negotiator), [fact]


def _slots(collector: Any) -> tuple[list[str], dict[str, list[str]]]:
    """START of the site of each slot, without sharectl's clauses; and words -> slots with them."""
    starts: list[str] = []
    others: dict[str, list[str]] = {}
    for row in map(row_of, query(collector, "Slot", _EVERY, _PROJECTION)):
        machine = row.get("machine", "").strip('"')
        offline = row.get("offline", "").lower() == "true"
        for does, words in (
            (offline, "Offline machines are left out"),
            (
                row.get("slottype") == '"Static"' and not offline,
                "static slots count as cores of their node",
            ),
            (row.get("state") == '"Owner"', "slots in state Owner are free for jobs"),
            (row.get("totalslotgpus", "0") not in ("0", "undefined"), "GPUs are not simulated"),
        ):
            if does:
                others.setdefault(words, []).append(machine)
        if row.get("partitionableslot", "").lower() == "true" and not offline:
            starts.append(_site_start(row.get("start", "true")))
    return starts, others


def _site_start(start: str) -> str:
    return " && ".join(
        clause
        for clause in split(start)
        if clause.lower() != "true"
        and not any(name.name.lower().startswith(_OWN) for name in references(clause))
    )


def _with_start(site: Scenario, starts: Counter[str], ask: _Ask) -> tuple[Scenario, list[str]]:
    """Scenario with the START of all slots if they have one, and what it reads of them."""
    listed = "; ".join(
        f"{counted(number, 'slot')}: {shown(text[:_MOST_CHARACTERS]) or 'true'}"
        for text, number in starts.most_common(_MOST_STARTS)
    )
    if len(starts) > 1:
        fact = "the pool's slots differ in START, and a scenario has one: it counts as true"
        return site, [f"{fact}; {listed}"]
    fact = f"START of the pool, without sharectl's clauses: {listed or 'unknown'}"
    taken = replace(site, start=replace(site.start, site="".join(starts) or None))
    kinds = taken.workload().kinds
    lacking = SiteExpressions(kinds, (), taken.start.site).without_owner(taken.nodes_of(), kinds)
    names = sorted({name for _, owner, name in lacking if owner == "node"})
    if not names:
        return taken, [fact]
    values = (
        ask_all({"collector": ask(partial(values_of_slots, names=names))})["collector"].value or []
    )
    if len(values) != 1:
        differs = f"slots differ in {', '.join(names)}, which it reads, so it counts as true"
        return site, [f"{fact}: {differs}"]
    attributes = {name: json.loads(text) for name, text in zip(names, values[0]) if text}
    nodes = tuple(replace(group, attributes=attributes or None) for group in taken.nodes)
    return replace(taken, nodes=nodes), [fact]


def values_of_slots(collector: Any, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Different values of these attributes on partitionable slots, each as JSON, or empty.

    Expressions are compared by their values: their texts differ where a node's name is in them.
    """
    ads = query(collector, "Slot", PARTITIONABLE, names)
    texts = [text for ad in ads for text in row_of(ad).values()]
    if not all(map(LITERAL.fullmatch, texts)):
        # An expression reads other attributes of its slot.
        ads = query(collector, "Slot", PARTITIONABLE)
    return sorted({tuple(_json(evaluated(ad, name)) for name in names) for ad in ads})


def _json(value: Any) -> str:
    """Value as JSON; empty if it is undefined, an error or a list."""
    is_known = type(value) in (bool, str) or number(value, nan, -inf, inf) == value
    return json.dumps(value) if is_known else ""
