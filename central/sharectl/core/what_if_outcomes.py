"""What of a decision a change can change: what a group does, and whether a node has a target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

from sharectl.core.model import Target
from sharectl.core.plan import Decision


def role(group: str) -> Any:
    """Outcome of a decision for ``group``: whether it gives, receives or neither."""

    def outcome(decision: Decision) -> str:
        gives = any(target.held_back == group for target in decision.plan.targets)
        receives = any(target.helped == group for target in decision.plan.targets)
        return _ROLES[gives, receives]

    return outcome


_ROLES = {
    (True, True): "gives and receives",
    (True, False): "gives",
    (False, True): "receives",
    (False, False): "neither",
}


def extent(group: str) -> Any:
    """Outcome of a decision for ``group``: on how many nodes it gives or receives."""
    return lambda decision: extent_of(decision.plan.targets, group)


def extent_of(targets: Iterable[Target], group: str) -> str:
    """On how many nodes ``group`` gives or receives by ``targets``, in words."""
    targets = tuple(targets)
    gives = sum(target.held_back == group for target in targets)
    receives = sum(target.helped == group for target in targets)
    said = [
        f"{word} on {count} node{'s' * (count != 1)}"
        for word, count in (("gives", gives), ("receives", receives))
        if count
    ]
    return " and ".join(said) or "neither"


def under_target(node: str) -> Any:
    """Outcome of a decision for ``node``: whether it has a target."""
    return lambda decision: "a target" if target_on(decision, node) is not None else "no target"


def targets_in_all(decision: Decision) -> str:
    """Outcome of a decision for the pool: how many nodes have targets."""
    targets = len(decision.plan.targets)
    return f"{targets} target{'s' * (targets != 1)}" if targets else "no target"


def any_target(decision: Decision) -> str:
    """Outcome of a decision for the pool: whether any node has a target."""
    return "some targets" if decision.plan.targets else "no target"


def target_on(decision: Decision, node: str) -> Optional[Target]:
    """Target of ``node``; None if it has none."""
    return next((target for target in decision.plan.targets if target.node == node), None)
