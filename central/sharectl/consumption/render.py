"""HTCondor configuration of a node, made from its consumption policies: the same text for the same policies.

What an operator should know of a policy: what it means, and what HTCondor makes of it that the
policy does not say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Optional

from sharectl.consumption.claims import CLAIMS
from sharectl.consumption.policy import (
    ALWAYS_THERE,
    Always,
    Consumption,
    LeastCharge,
    Levels,
    Requested,
    Rule,
    SlotPolicy,
    attribute_of,
    consumed,
    has_none,
    items,
    macros,
    unit_of,
    weight,
)

_SUMMARIES = {
    "fixed_claims": "fixed_claims, {claims} claims, each of which costs 1.",
    "quanta_all": "quanta_all, at least one quantum of every asset; weight: the fewest quanta left.",
    "quanta_any": "quanta_any, none of some assets is allowed; weight: the most quanta left.",
    "minimum_charge": "minimum_charge, what is asked for and at least the charge; weight: the fewest charges left.",
    "expressions": "expressions, as written.",
    "none": "no consumption policy: one match in a cycle, what is left is matched in the next.",
}
_NO_CORES = (
    "a claim that takes no cores gets one all the same: the startd takes it from the slot, the "
    "negotiator learns of "
    "that with the slot's next ad, and claims beyond the slot's cores are refused sooner or later."
)
_DISK_KIB = 10 * 1024
"""Of a smaller charge, the 1 MiB that 23.9.6 adds to each claim is more than a tenth."""
_MEMORY_MIB = 1024**2
"""A claim of usual size takes far less."""
_NO_MEMORY = (
    "a claim that takes no memory gets 1 MiB, and jobs are held to it where memory is "
    "limited (CGROUP_MEMORY_LIMIT_POLICY)."
)


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
            f"every claim gets a core at least: the slot must have {policy.claims} cores or "
            "more (NUM_CPUS may say so, "
            "where jobs share cores). Claims are counted as a custom resource: where the "
            "machine has several slots, write "
            "`resources` for every slot type."
        )
    if _may_be_zero(policy, "cpus"):
        yield _NO_CORES
    if _may_be_zero(policy, "memory"):
        yield _NO_MEMORY
    yield from _other_units(policy)
    if policy.model == "expressions" and all(
        _may_be_zero(policy, asset) for asset in policy.assets
    ):
        asked = ", ".join(
            attribute_of(name) for name, rule in policy.assets.items() if rule != Always(0)
        )
        yield (
            f"a job that asks for none of {asked} takes nothing at all, and the negotiator "
            "refuses it: let every claim take some of "
            "one asset."
        )
    if policy.model in ("minimum_charge", "quanta_all"):
        for asset, rule in policy.assets.items():
            if asset not in ALWAYS_THERE and isinstance(rule, (LeastCharge, Levels)):
                yield (
                    f"every claim takes {attribute_of(asset)}, also of a job that asks for "
                    "none; where that is not meant, take "
                    "quanta_any, or expressions with `missing: 0`."
                )
    if any(isinstance(rule, Levels) and rule.total is None for rule in policy.assets.values()):
        yield (
            "the weight of a dynamic slot counts quanta of the machine's total, too few where "
            "it has several partitionable "
            "slots: write `total` for every asset there."
        )


def _other_units(policy: SlotPolicy) -> Iterator[str]:
    """Amounts that may be meant in another unit than HTCondor's."""
    disk = policy.assets.get("disk")
    if isinstance(disk, LeastCharge) and disk.amount < _DISK_KIB:
        yield (
            f"disk counts in KiB, and the charge is {disk.amount} of them: 23.9.6 gives each "
            "claim 1 MiB more, so there is disk for "
            "fewer claims than the charge promises. Charge far more than 1 MiB, such as 1048576 "
            "for 1 GiB."
        )
    memory = _least(policy.assets.get("memory"))
    if memory >= _MEMORY_MIB:
        yield (
            f"memory counts in MiB, and every claim takes {memory} of them at least, "
            f"{memory / _MEMORY_MIB:.4g} TiB: no node of usual "
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
        detected = (
            " (`use feature:GPUs` finds them, then it needs nothing more)"
            if asset == "gpus"
            else ""
        )
        yield (
            f"no {name} are declared here: the node's configuration must say "
            f"MACHINE_RESOURCE_{name}{detected}, or write declare: "
            "with the machine's units. On a node without any, a weight that counts them has no "
            "value, and a startd whose slot types "
            "want some ends as it starts (23.9.6) or makes no such slot."
        )


def _may_be_zero(policy: SlotPolicy, asset: str) -> bool:
    rule = policy.assets.get(asset)
    if policy.model == "quanta_any":
        return True
    if isinstance(rule, Requested):
        return rule.zero_allowed
    return isinstance(rule, Always) and rule.amount == 0


_HEAD = """\
# Consumption policies of this node, by `sharectl consumption render`. Change the YAML, then render again.
# It belongs on execute points. Access points need CLAIM_PARTITIONABLE_LEFTOVERS = False only.
# Of consumption policies, HTCondor takes up weights and amounts on condor_reconfig, slot types and numbers of claims when
# the startd is restarted.
"""
_STARTD_ONLY = """\
# `STARTD.`: no other daemon is to read it. A schedd would take it as the weight of jobs, 0 of one that asks for less than a
# charge, and the negotiator then matches no job of a group with a quota. `condor_config_val -subsystem STARTD` shows it.
"""
_LEFTOVERS = """\
# No schedd is to split what a claim leaves over: the negotiator has matched it, and leftovers heed neither quotas nor
# limits. Boolean, HTCondor's default is True. From 23.7.2 it has no effect here for slots with a policy: put the same line
# into the configuration of the access points. They ask for leftovers then of no slot of the pool.
CLAIM_PARTITIONABLE_LEFTOVERS = False
"""
_DEFAULT_STEPS = {"memory": ", in steps of 128", "disk": ", in steps of 1024"}
"""Asset -> how HTCondor's own policy rounds requests up, where that is to more than a unit."""


def snippet(consumption: Consumption) -> str:
    """The text of a file for ``/etc/condor/config.d``."""
    parts = [_HEAD, _LEFTOVERS, *_declared(consumption)]
    parts += ["\n".join(_policy(consumption, policy)) + "\n" for policy in consumption.policies]
    return "\n".join(parts)


def _declared(consumption: Consumption) -> Iterator[str]:
    units = dict(consumption.declared)
    # Where there are slot types, a policy of every slot is for what they leave out.
    counted = [
        policy for policy in consumption.policies if policy.slot_type is not None
    ] or consumption.policies
    claims = sum(policy.claims * (policy.slots or 1) for policy in counted)
    if claims:
        units[CLAIMS] = claims
    if units:
        yield "# Custom resources: units of the whole machine.\n" + "".join(
            f"MACHINE_RESOURCE_{attribute_of(name)} = {count}\n" for name, count in units.items()
        )


def _policy(consumption: Consumption, policy: SlotPolicy) -> Iterator[str]:
    prefix = "" if policy.slot_type is None else f"SLOT_TYPE_{policy.slot_type}_"
    name = (
        "Every slot of this node" if policy.slot_type is None else f"Slot type {policy.slot_type}"
    )
    yield f"# {name}: {summary(policy)}"
    yield from (f"# NOTE: {note}" for note in notes(policy, consumption.declared))
    yield from _slots(consumption, policy)
    if policy.model == "none":
        yield "# Boolean, HTCondor's default is False."
        yield f"{prefix}CONSUMPTION_POLICY = False"
        if prefix and any(other.slot_type is None for other in consumption.policies):
            yield "# HTCondor's default, in place of the weight of every slot."
            yield f"{prefix}SLOT_WEIGHT = Cpus"
        return
    yield "# Boolean, HTCondor's default is False."
    yield f"{prefix}CONSUMPTION_POLICY = True"
    made = macros(policy)
    if made:
        yield "# Amount of the slot and size of a quantum of each asset, in the asset's unit."
        yield from (f"{macro} = {text}" for macro, text in made.items())
    yield (
        "# What a claim takes of each asset, in the asset's unit. -1 refuses the match: no "
        "request is negative, or no number."
    )
    for asset, text in _all_consumed(consumption, policy).items():
        yield (
            f"# {unit_of(asset)}; HTCondor's default is what the job asks "
            f"for{_DEFAULT_STEPS.get(asset, '')}."
        )
        yield f"{prefix}CONSUMPTION_{asset.upper()} = {text}"
    yield (
        "# Claims that the slot can still support; a match costs what it takes of this. "
        "HTCondor's default is Cpus."
    )
    if not prefix:
        yield _STARTD_ONLY.rstrip()
    yield f"{prefix or 'STARTD.'}SLOT_WEIGHT = {weight(policy)}"
    yield "# Matches of one cycle, at most; HTCondor's default is one for each core of the slot."
    claims = "$(NUM_CPUS)" if policy.num_claims is None else str(policy.num_claims)
    yield f"{prefix}NUM_CLAIMS = {claims}"
    yield (
        "# The startd rounds requests up before it asks the policy, the negotiator does not: "
        "they would take different"
    )
    yield (
        "# amounts. `undefined` leaves a request as it is; HTCondor's default is quanta of 1 "
        "core, 128 MiB, 1024 KiB."
    )
    for asset in ("CPUS", "MEMORY", "DISK"):
        yield f"{prefix}MODIFY_REQUEST_EXPR_REQUEST{asset} = undefined"


def _all_consumed(consumption: Consumption, policy: SlotPolicy) -> dict[str, str]:
    """`consumed`, and of the claims that are counted here or for another slot type."""
    taken = consumed(policy)
    if any(other.claims for other in consumption.policies):
        taken[CLAIMS] = "1" if policy.claims else "0"
    return taken


def _slots(consumption: Consumption, policy: SlotPolicy) -> Iterator[str]:
    if not policy.resources:
        return
    resources = policy.resources
    if any(other.claims for other in consumption.policies):
        # Once there is a comma, blanks part no items any more.
        resources = ", ".join([*items(resources), f"{CLAIMS}={policy.claims}"])
    yield "# Resources of one slot of this type, and how many such slots there are."
    yield f"SLOT_TYPE_{policy.slot_type} = {resources}"
    yield f"SLOT_TYPE_{policy.slot_type}_PARTITIONABLE = True"
    yield f"NUM_SLOTS_TYPE_{policy.slot_type} = {1 if policy.slots is None else policy.slots}"
