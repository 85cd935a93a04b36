"""HTCondor configuration of a node, made from its consumption policies: the same text for the same policies."""

from __future__ import annotations

from collections.abc import Iterator

from sharectl.core.consumption import CLAIMS
from sharectl.core.consumption_expressions import consumed, macros, weight
from sharectl.core.consumption_notes import notes, summary
from sharectl.core.consumption_rules import Consumption, SlotPolicy, attribute_of, unit_of
from sharectl.core.slot_shares import items

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
    name = "Every slot of this node" if policy.slot_type is None else f"Slot type {policy.slot_type}"
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
    yield "# What a claim takes of each asset, in the asset's unit. -1 refuses the match: no request is negative, or no number."
    for asset, text in _all_consumed(consumption, policy).items():
        yield f"# {unit_of(asset)}; HTCondor's default is what the job asks for{_DEFAULT_STEPS.get(asset, '')}."
        yield f"{prefix}CONSUMPTION_{asset.upper()} = {text}"
    yield "# Claims that the slot can still support; a match costs what it takes of this. HTCondor's default is Cpus."
    if not prefix:
        yield _STARTD_ONLY.rstrip()
    yield f"{prefix or 'STARTD.'}SLOT_WEIGHT = {weight(policy)}"
    yield "# Matches of one cycle, at most; HTCondor's default is one for each core of the slot."
    claims = "$(NUM_CPUS)" if policy.num_claims is None else str(policy.num_claims)
    yield f"{prefix}NUM_CLAIMS = {claims}"
    yield "# The startd rounds requests up before it asks the policy, the negotiator does not: they would take different"
    yield "# amounts. `undefined` leaves a request as it is; HTCondor's default is quanta of 1 core, 128 MiB, 1024 KiB."
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
