"""What an operator should know of a policy: what it means, and what HTCondor makes of it that the policy does not say."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Optional

from sharectl.core.consumption_rules import (
    ALWAYS_THERE,
    Always,
    LeastCharge,
    Levels,
    Requested,
    Rule,
    SlotPolicy,
    attribute_of,
)
from sharectl.core.slot_shares import has_none

_SUMMARIES = {
    "fixed_claims": "fixed_claims, {claims} claims, each of which costs 1.",
    "quanta_all": "quanta_all, at least one quantum of every asset; weight: the fewest quanta left.",
    "quanta_any": "quanta_any, none of some assets is allowed; weight: the most quanta left.",
    "minimum_charge": "minimum_charge, what is asked for and at least the charge; weight: the fewest charges left.",
    "expressions": "expressions, as written.",
    "none": "no consumption policy: one match in a cycle, what is left is matched in the next.",
}
_NO_CORES = (
    "a claim that takes no cores gets one all the same: the startd takes it from the slot, the negotiator learns of "
    "that with the slot's next ad, and claims beyond the slot's cores are refused sooner or later."
)
_DISK_KIB = 10 * 1024
"""Of a smaller charge, the 1 MiB that 23.9.6 adds to each claim is more than a tenth."""
_MEMORY_MIB = 1024**2
"""A claim of usual size takes far less."""
_NO_MEMORY = "a claim that takes no memory gets 1 MiB, and jobs are held to it where memory is limited (CGROUP_MEMORY_LIMIT_POLICY)."


def summary(policy: SlotPolicy) -> str:
    """The model in a sentence."""
    return _SUMMARIES[policy.model].format(claims=policy.claims)


def notes(policy: SlotPolicy, declared: Collection[str] = ()) -> tuple[str, ...]:
    """Where HTCondor does something else than the policy says, or needs something that it does not say.

    Parameters
    ----------
    declared
        Custom resources that the file declares.
    """
    return (*_notes(policy), *_elsewhere(policy, declared))


def _notes(policy: SlotPolicy) -> Iterator[str]:
    if policy.model == "fixed_claims":
        yield (
            f"every claim gets a core at least: the slot must have {policy.claims} cores or more (NUM_CPUS may say so, "
            "where jobs share cores). Claims are counted as a custom resource: where the machine has several slots, write "
            "`resources` for every slot type."
        )
    if _may_be_zero(policy, "cpus"):
        yield _NO_CORES
    if _may_be_zero(policy, "memory"):
        yield _NO_MEMORY
    yield from _other_units(policy)
    if policy.model == "expressions" and all(_may_be_zero(policy, asset) for asset in policy.assets):
        asked = ", ".join(attribute_of(name) for name, rule in policy.assets.items() if rule != Always(0))
        yield (
            f"a job that asks for none of {asked} takes nothing at all, and the negotiator refuses it: let every claim take some of "
            "one asset."
        )
    if policy.model in ("minimum_charge", "quanta_all"):
        for asset, rule in policy.assets.items():
            if asset not in ALWAYS_THERE and isinstance(rule, (LeastCharge, Levels)):
                yield (
                    f"every claim takes {attribute_of(asset)}, also of a job that asks for none; where that is not meant, take "
                    "quanta_any, or expressions with `missing: 0`."
                )
    if any(isinstance(rule, Levels) and rule.total is None for rule in policy.assets.values()):
        yield (
            "the weight of a dynamic slot counts quanta of the machine's total, too few where it has several partitionable "
            "slots: write `total` for every asset there."
        )


def _other_units(policy: SlotPolicy) -> Iterator[str]:
    """Amounts that may be meant in another unit than HTCondor's."""
    disk = policy.assets.get("disk")
    if isinstance(disk, LeastCharge) and disk.amount < _DISK_KIB:
        yield (
            f"disk counts in KiB, and the charge is {disk.amount} of them: 23.9.6 gives each claim 1 MiB more, so there is disk for "
            "fewer claims than the charge promises. Charge far more than 1 MiB, such as 1048576 for 1 GiB."
        )
    memory = _least(policy.assets.get("memory"))
    if memory >= _MEMORY_MIB:
        yield (
            f"memory counts in MiB, and every claim takes {memory} of them at least, {memory / _MEMORY_MIB:.4g} TiB: no node of usual "
            f"size has room for one. Where KiB were meant, write {memory // 1024}."
        )


def _least(rule: Optional[Rule]) -> int:
    """What every claim takes at least, where the file says a number; else 0."""
    if isinstance(rule, (LeastCharge, Always)):
        return rule.amount
    return rule.step if isinstance(rule, Requested) and not rule.zero_allowed else 0


def _elsewhere(policy: SlotPolicy, declared: Collection[str]) -> Iterator[str]:
    for asset in policy.assets:
        if asset in ALWAYS_THERE or asset in declared or has_none(policy.resources, asset):
            continue
        name = attribute_of(asset)
        detected = " (`use feature:GPUs` finds them, then it needs nothing more)" if asset == "gpus" else ""
        yield (
            f"no {name} are declared here: the node's configuration must say MACHINE_RESOURCE_{name}{detected}, or write declare: "
            "with the machine's units. On a node without any, a weight that counts them has no value, and a startd whose slot types "
            "want some ends as it starts (23.9.6) or makes no such slot."
        )


def _may_be_zero(policy: SlotPolicy, asset: str) -> bool:
    rule = policy.assets.get(asset)
    if policy.model == "quanta_any":
        return True
    if isinstance(rule, Requested):
        return rule.zero_allowed
    return isinstance(rule, Always) and rule.amount == 0
