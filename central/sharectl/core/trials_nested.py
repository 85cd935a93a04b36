"""The same with groups within groups: a node has to tell ``alice.user`` from ``alice.users`` and from ``alice``."""

from __future__ import annotations

from sharectl.core.trial_ads import HELD_BACK, HELPED, Ad, dynamic_slot, job
from sharectl.core.trials import Node, Trial, target_attributes

INNER_HELD_BACK, INNER_HELPED = f"{HELD_BACK}.user", f"{HELPED}.prod"
"""Groups of the target that nodes are tried with."""

_HELD_CORES = 64
"""Cores of the held-back group at the nodes of `sharectl.core.trials`."""
_ALIKE = f"{HELD_BACK}_user"


def nested_target(node: Node, cap_cores: int) -> dict[str, str]:
    """Attributes of a node under a target of groups within groups; one of a like name holds cores too."""
    return {
        **target_attributes(node, cap_cores),
        "t1_CurrentJobs": f'"{INNER_HELD_BACK}:{_HELD_CORES}:lhcb:3:{_ALIKE}:1000"',
        "t1_TargetGroups": f'{{"{INNER_HELD_BACK}","{INNER_HELPED}"}}',
    }


def nested_trials(node: Node) -> list[Trial]:
    """Jobs that a target of groups within groups has to let in or keep out."""
    many = node.multicore_cores
    below, at = "below its cap", "at its cap"
    caps = {below: _HELD_CORES + many, at: _HELD_CORES}
    helped = dict.fromkeys((INNER_HELPED, INNER_HELPED.upper(), f"{INNER_HELPED}.mc.eve"), True)
    mine = (INNER_HELD_BACK, INNER_HELD_BACK.title(), f"{INNER_HELD_BACK}.bob")
    strangers = (
        HELPED, f"{INNER_HELPED}uction", f"{INNER_HELPED}_x", f"{HELPED}_prod", f"x.{INNER_HELPED}", f"{HELPED}..prod",
        HELD_BACK, f"{INNER_HELD_BACK}s", _ALIKE, f"{INNER_HELD_BACK}@x", "user", "", ".",
    )  # fmt: skip
    expected = {
        below: {**helped, **dict.fromkeys(mine, True), **dict.fromkeys(strangers, False)},
        at: {**helped, **dict.fromkeys(mine, False), **dict.fromkeys(strangers, False)},
    }
    return [
        Trial(
            f"under a target of subgroups, {INNER_HELD_BACK} {where}",
            f"{many} cores of {group or 'no group'}",
            node.slot(nested_target(node, caps[where])),
            job(str(many), f'"{group}.bob"'),
            lets_in,
        )
        for where, jobs in expected.items()
        for group, lets_in in jobs.items()
    ]


def nested_slots(constants: Ad, node: Node) -> list[tuple[str, dict[str, str], int]]:
    """Situation, dynamic slot of the multicore size under a target of subgroups, and how many cores it is to count."""
    cores = node.multicore_cores
    target = {**constants, **nested_target(node, 0)}
    slots = {
        INNER_HELD_BACK: cores,
        INNER_HELD_BACK.upper(): cores,
        f"{INNER_HELD_BACK}.mc": cores,
        f"{INNER_HELD_BACK}s": 0,
        _ALIKE: 0,
        HELD_BACK: 0,
    }
    own = dynamic_slot(target, cores, HELD_BACK)
    return [
        *((f"in a slot of {name}", dynamic_slot(target, cores, name), held) for name, held in slots.items()),
        # Whose name is that of a subgroup: HTCondor, too, takes the last part for the user.
        (f"in a slot of a user of {HELD_BACK}", {**own, "AccountingGroup": f'"{INNER_HELD_BACK}@x"'}, 0),
    ]
