"""Assets that a policy leaves out, misspells, or charges although its slots have none."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Optional

from pydantic import BaseModel

from sharectl.adapters.consumption_config import SlotConfig
from sharectl.adapters.consumption_meaning import Slots, custom_assets, rule_of, said_of
from sharectl.adapters.wording import quoted
from sharectl.adapters.yaml_syntax import Path as ValuePath
from sharectl.core.consumption import CLAIMS, MAX_AMOUNT
from sharectl.core.consumption_rules import (
    ALWAYS_THERE,
    UNITS,
    Always,
    LeastCharge,
    Levels,
    Requested,
    Written,
)
from sharectl.core.slot_shares import amount_of, has_none, is_htcondors

_ZERO = re.compile(r"[\s(]*(?:0+(?:\.0*)?|\.0+)[\s)]*")

Problem = tuple[ValuePath, str]
"""Path of what is wrong, and the message."""


def naming_problems(
    path: ValuePath, slots: Slots, written: Mapping[ValuePath, Mapping[str, Any]]
) -> Iterator[Problem]:
    """What is wrong with the names of one policy's assets, beside what all policies name.

    Parameters
    ----------
    written
        Path of each policy → its assets as they are written, sound or not.
    """
    slot, assets = slots[path]
    yield from _naming_problems(path, slot, written[path], _custom(slots, written), _declared(slots))
    yield from _never_run(path, slot, assets)
    # Of what is written wrong nobody knows what it was to take.
    if slot.model == "expressions" and len(assets) == len(written[path]):
        yield from _nothing_taken(path, slot, assets)


def _custom(slots: Slots, written: Mapping[ValuePath, Mapping[str, Any]]) -> set[str]:
    """Assets that every slot of the machine has, besides those of all slots."""
    declared = _declared(slots)
    meant = {
        name.lower() for names in written.values() for name in set(names) - set(_misspelt(names, declared))
    }
    from_resources = {name for name in custom_assets(slots) if name in UNITS}
    own = {CLAIMS} if any(slot.model == "fixed_claims" for slot, _ in slots.values()) else set()
    return (meant | from_resources) - {*ALWAYS_THERE, "swap", *own}


def _naming_problems(
    path: ValuePath,
    slot: SlotConfig,
    written: Mapping[str, Any],
    custom: Collection[str],
    declared: Collection[str],
) -> Iterator[Problem]:
    named = {name.lower() for name in written}
    yield from _share_problems(path, slot, {*custom, *named})
    if slot.model == "none":
        return
    for name in ALWAYS_THERE:
        if name not in named:
            yield (*path, "assets"), f"{name} is missing; every slot has it, write how claims take of it"
    for name, meant in _misspelt(written, declared).items():
        is_no_asset = f"{quoted(name)} is no asset of every slot, did you mean {meant}?"
        yield (
            (*path, "assets", name),
            f"{is_no_asset} Of a custom resource write declare: with the machine's units",
        )
    for name in sorted(set(custom) - named):
        if not has_none(slot.resources or "", name):
            yield (*path, "assets"), _missing(path, name)


def _missing(path: ValuePath, name: str) -> str:
    without = "" if path == ("startd",) else f", or {name}=0 in resources of a type that has none"
    return (
        f"{name} is missing; it is named elsewhere in the file, and HTCondor has it on slots of every type; write how claims take "
        f"of it (where jobs may do without: model: expressions, {name}: {{request: true, missing: 0}}, or model: quanta_any){without}"
    )


def _declared(slots: Slots) -> set[str]:
    return {
        name.lower()
        for _, assets in slots.values()
        for name, asset in assets.items()
        if getattr(asset, "declare", None) is not None
    }


def _misspelt(written: Mapping[str, Any], declared: Collection[str]) -> dict[str, str]:
    """Names that are like an asset that is missing -> that asset; what is known or declared is meant as it stands."""
    missing = [name for name in ALWAYS_THERE if name not in {other.lower() for other in written}]
    found: dict[str, str] = {}
    for name, rule in written.items():
        near = get_close_matches(name.lower(), missing, n=1)
        is_declared = name.lower() in declared or (isinstance(rule, dict) and "declare" in rule)
        if near and name.lower() not in UNITS and not is_declared:
            found[name] = near[0]
    return found


def _share_problems(path: ValuePath, slot: SlotConfig, named: Collection[str]) -> Iterator[Problem]:
    for name, share in said_of(slot).items():
        if name in named or name in UNITS or is_htcondors(name):
            continue
        near = get_close_matches(name, sorted({*named, *UNITS}), n=1)
        advice = f"did you mean {near[0]}?" if near else "write how claims take of it, or remove it here"
        yield (*path, "resources"), f"{quoted(f'{name}={share}')}: assets have no {quoted(name)}; {advice}"


def _never_run(path: ValuePath, slot: SlotConfig, assets: Mapping[str, BaseModel]) -> Iterator[Problem]:
    """Assets of which every claim takes more than the slot ever has."""
    for name, asset in assets.items():
        # Of a machine that has more than enough.
        given = amount_of(slot.resources or "", name, MAX_AMOUNT)
        least = _least(slot, name, asset)
        if given is not None and least is not None and given < least:
            remedy = (
                "give it more in resources"
                if given or name.lower() in ALWAYS_THERE
                else f"remove this line: jobs that ask for {name} are then refused, and others take none"
            )
            yield (
                (*path, "assets", name),
                f"every claim takes {least} at least, and resources give a slot {given:.15g}: nothing could ever run; {remedy}",
            )


def _nothing_taken(path: ValuePath, slot: SlotConfig, assets: Mapping[str, BaseModel]) -> Iterator[Problem]:
    """A policy by which no job takes anything: the negotiator refuses the match (cp_sufficient_assets)."""
    is_whole = {*ALWAYS_THERE} <= {name.lower() for name in assets}
    if is_whole and all(_is_nothing(slot, name, asset) for name, asset in assets.items()):
        yield (
            (*path, "assets"),
            (
                f"a claim takes 0 of {', '.join(assets)}, whatever the job asks for: the negotiator refuses every job (Consumption for "
                "all assets … was zero); let every claim take some of one asset, such as cpus: {request: true}"
            ),
        )


def _is_nothing(slot: SlotConfig, name: str, asset: BaseModel) -> bool:
    """Whether no job that can run takes anything of an asset."""
    rule = rule_of(name.lower(), asset)
    if isinstance(rule, Written):
        return _ZERO.fullmatch(rule.expression) is not None
    if isinstance(rule, Requested):
        return rule.zero_allowed and has_none(slot.resources or "", name)
    return isinstance(rule, Always) and rule.amount == 0


def _least(slot: SlotConfig, name: str, asset: BaseModel) -> Optional[int]:
    rule = rule_of(name.lower(), asset)
    if isinstance(rule, (LeastCharge, Always)):
        return rule.amount
    if isinstance(rule, Levels):
        return 1 if slot.model == "quanta_all" else 0
    if isinstance(rule, Requested):
        return 0 if rule.zero_allowed else rule.step
    return None
