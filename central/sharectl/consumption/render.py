"""HTCondor configuration of a node from its consumption policies."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sharectl.consumption.policy import (
    CLAIMS,
    STANDARD,
    UNITS,
    AssetPolicy,
    Consumption,
    SlotPolicy,
    attribute_of,
    consumed,
    has_none,
    items,
    macros,
    weight,
)

_SUMMARIES = {
    "fixed_claims": "fixed_claims, {claims} claims, each of which costs 1.",
    "quanta_all": (
        "quanta_all, at least one quantum of every asset; weight: the fewest quanta left."
    ),
    "quanta_any": "quanta_any, none of some assets is allowed; weight: the most quanta left.",
    "minimum_charge": (
        "minimum_charge, what is asked for and at least the charge; "
        "weight: the fewest charges left."
    ),
    "expressions": "expressions, as written.",
    "none": "no consumption policy: one match in a cycle, what is left is matched in the next.",
}
_CLAIMS_AND_CORES = (
    "every claim gets a core at least: the slot must have {claims} cores or more (NUM_CPUS may say "
    "so, where jobs share cores). Claims are counted as a custom resource: where the machine has "
    "several slots, write `resources` for every slot type."
)
_NO_CORES = (
    "a claim that takes no cores gets one all the same: the startd takes it from the slot, the "
    "negotiator learns of that with the slot's next ad, and claims beyond the slot's cores are "
    "refused sooner or later."
)
_NO_MEMORY = (
    "a claim that takes no memory gets 1 MiB, and jobs are held to it where memory is limited "
    "(CGROUP_MEMORY_LIMIT_POLICY)."
)
_EVERY_CLAIM = (
    "every claim takes {name}, also of a job that asks for none; where that is not meant, take "
    "quanta_any, or expressions with `missing: 0`."
)
_MACHINES_TOTAL = (
    "the weight of a dynamic slot counts quanta of the machine's total, too few where it has "
    "several partitionable slots: write `total` for every asset there."
)
_NOT_DECLARED = (
    "no {name} are declared here: the node's configuration must say MACHINE_RESOURCE_{name}"
    "{detected}, or write declare: with the machine's units. On a node without any, a weight that "
    "counts them has no value, and a startd whose slot types want some ends as it starts (23.9.6) "
    "or makes no such slot."
)
_DETECTED = " (`use feature:GPUs` finds them, then it needs nothing more)"


def notes(policy: SlotPolicy, declared: Collection[str] = ()) -> Iterator[str]:
    """Effects of HTCondor that the policy does not show, and needs that the file does not meet."""
    if policy.model == "fixed_claims":
        yield _CLAIMS_AND_CORES.format(claims=policy.claims)
    if _may_be_zero(policy, "cpus"):
        yield _NO_CORES
    if _may_be_zero(policy, "memory"):
        yield _NO_MEMORY
    custom = {asset: rule for asset, rule in policy.assets.items() if asset not in STANDARD}
    if policy.model in ("minimum_charge", "quanta_all"):
        for asset, rule in custom.items():
            if rule.charge or rule.levels:
                yield _EVERY_CLAIM.format(name=attribute_of(asset))
    if any(rule.levels and not rule.total for rule in policy.assets.values()):
        yield _MACHINES_TOTAL
    for asset in custom:
        if asset not in declared and not has_none(policy.resources, asset):
            detected = _DETECTED if asset == "gpus" else ""
            yield _NOT_DECLARED.format(name=attribute_of(asset), detected=detected)


def _may_be_zero(policy: SlotPolicy, asset: str) -> bool:
    rule = policy.assets.get(asset, AssetPolicy())
    return policy.model == "quanta_any" or rule.always == 0 or rule.is_zero_allowed(asset)


_HEAD = (
    "# Consumption policies of this node, by `sharectl consumption render`. "
    "Change the YAML, then render again.\n"
    "# It belongs on execute points. "
    "Access points need CLAIM_PARTITIONABLE_LEFTOVERS = False only.\n"
    "# Of consumption policies, HTCondor takes up weights and amounts on condor_reconfig, "
    "slot types and numbers of claims when\n"
    "# the startd is restarted.\n"
)
_LEFTOVERS = (
    "# No schedd is to split what a claim leaves over: the negotiator has matched it, "
    "and leftovers heed neither quotas nor\n"
    "# limits. Boolean, HTCondor's default is True. "
    "From 23.7.2 it has no effect here for slots with a policy: put the same line\n"
    "# into the configuration of the access points. "
    "They ask for leftovers then of no slot of the pool.\n"
    "CLAIM_PARTITIONABLE_LEFTOVERS = False\n"
)
_BOOLEAN = "# Boolean, HTCondor's default is False."
_QUANTA = "# Amount of the slot and size of a quantum of each asset, in the asset's unit."
_TAKEN = (
    "# What a claim takes of each asset, in the asset's unit. "
    "-1 refuses the match: no request is negative, or no number."
)
_WEIGHT = (
    "# Claims that the slot can still support; a match costs what it takes of this. "
    "HTCondor's default is Cpus."
)
_STARTD_ONLY = (
    "# `STARTD.`: no other daemon is to read it. "
    "A schedd would take it as the weight of jobs, 0 of one that asks for less than a\n"
    "# charge, and the negotiator then matches no job of a group with a quota. "
    "`condor_config_val -subsystem STARTD` shows it."
)
_MATCHES = "# Matches of one cycle, at most; HTCondor's default is one for each core of the slot."
_UNROUNDED = (
    "# The startd rounds requests up before it asks the policy, the negotiator does not: "
    "they would take different\n"
    "# amounts. `undefined` leaves a request as it is; "
    "HTCondor's default is quanta of 1 core, 128 MiB, 1024 KiB."
)
_DEFAULT_STEPS = {"memory": ", in steps of 128", "disk": ", in steps of 1024"}
"""Asset -> steps of more than a unit in which HTCondor's own policy rounds requests up."""


def snippet(consumption: Consumption) -> str:
    """Text of a file for ``/etc/condor/config.d``."""
    parts = [_HEAD, _LEFTOVERS, *_declared(consumption)]
    parts += ["\n".join(_policy(consumption, policy)) + "\n" for policy in consumption.policies]
    return "\n".join(parts)


def _declared(consumption: Consumption) -> Iterator[str]:
    units = dict(consumption.declared)
    # Beside slot types, a policy of every slot is for slot types that the file leaves out.
    typed = [policy for policy in consumption.policies if policy.slot_type is not None]
    counted = typed or consumption.policies
    if claims := sum((policy.claims or 0) * (policy.slots or 1) for policy in counted):
        units[CLAIMS] = claims
    if units:
        yield "# Custom resources: units of the whole machine.\n" + "".join(
            f"MACHINE_RESOURCE_{attribute_of(name)} = {count}\n" for name, count in units.items()
        )


def _policy(consumption: Consumption, policy: SlotPolicy) -> Iterator[str]:
    number = policy.slot_type
    prefix = "" if number is None else f"SLOT_TYPE_{number}_"
    name = "Every slot of this node" if number is None else f"Slot type {number}"
    claims_counted = any(other.claims for other in consumption.policies)
    yield f"# {name}: {_SUMMARIES[policy.model].format(claims=policy.claims)}"
    yield from (f"# NOTE: {note}" for note in notes(policy, consumption.declared))
    if policy.resources:
        yield from _slots(policy, with_claims=claims_counted)
    yield _BOOLEAN
    yield f"{prefix}CONSUMPTION_POLICY = {policy.model != 'none'}"
    if policy.model == "none":
        if prefix and any(other.slot_type is None for other in consumption.policies):
            yield "# HTCondor's default, in place of the weight of every slot."
            yield f"{prefix}SLOT_WEIGHT = Cpus"
        return
    if quanta := macros(policy):
        yield _QUANTA
        yield from (f"{macro} = {text}" for macro, text in quanta.items())
    yield _TAKEN
    taken = consumed(policy)
    if claims_counted:
        taken[CLAIMS] = "1" if policy.claims else "0"
    for asset, text in taken.items():
        steps = _DEFAULT_STEPS.get(asset, "")
        yield f"# {UNITS.get(asset, asset)}; HTCondor's default is what the job asks for{steps}."
        yield f"{prefix}CONSUMPTION_{asset.upper()} = {text}"
    yield _WEIGHT
    if not prefix:
        yield _STARTD_ONLY
    yield f"{prefix or 'STARTD.'}SLOT_WEIGHT = {weight(policy)}"
    yield _MATCHES
    yield f"{prefix}NUM_CLAIMS = {policy.num_claims or '$(NUM_CPUS)'}"
    yield _UNROUNDED
    for asset in STANDARD:
        yield f"{prefix}MODIFY_REQUEST_EXPR_REQUEST{asset.upper()} = undefined"


def _slots(policy: SlotPolicy, *, with_claims: bool) -> Iterator[str]:
    resources = policy.resources or ""
    if with_claims:
        # Beside a comma, the startd takes blanks for a part of an item.
        resources = ", ".join([*items(resources), f"{CLAIMS}={policy.claims or 0}"])
    yield "# Resources of one slot of this type, and how many such slots there are."
    yield f"SLOT_TYPE_{policy.slot_type} = {resources}"
    yield f"SLOT_TYPE_{policy.slot_type}_PARTITIONABLE = True"
    yield f"NUM_SLOTS_TYPE_{policy.slot_type} = {policy.slots or 1}"


def line_of(consumption: Consumption, knob: str) -> int:
    """Line of the YAML that a knob of `snippet` comes from, or of the policy around it."""
    number = re.search(r"_(\d+)(_|$)", knob)
    base = ("slot_types", number[1]) if number else ("startd",)
    name = "resources" if number and not number[2] else knob.lower()
    ranked = {(0, 0): consumption.lines.get(base, 1)}
    for path, line in consumption.lines.items():
        key = str(path[-1])
        if name.endswith(key) and (path[0] in (base[0], "startd") or "assets" in path):
            place = 3 if path[: len(base)] == base else 2 if path[0] == "startd" else 1
            ranked[place, len(key)] = line
    return ranked[max(ranked)]
