"""Every code that sharectl gives for a reason, with its sentence: one closed set."""

from __future__ import annotations

from collections.abc import Mapping

from sharectl.control.laws import LAWS, LOADED
from sharectl.control.setpoints import SETPOINTS
from sharectl.control.steering import ACTED
from sharectl.explain.job import OBSTACLES, TARGET_KINDS, VERDICTS
from sharectl.plan.diff import EXPIRED, KINDS
from sharectl.plan.limits import LIMITS
from sharectl.plan.nodes import QUIET, REMEDIES
from sharectl.plan.plan import NODE_REASONS, REASONS
from sharectl.plan.records import GROUP_REASONS
from sharectl.plan.settings import STRATEGIES

CHANGES = {
    "deadband": "a narrower control.deadband_hs06",
    "dwell": "a shorter control.dwell_seconds",
    "max-nodes": "a larger control.max_nodes",
    "max-target-share": "a larger control.max_target_share",
    "max-changed-nodes": "a larger control.max_changed_nodes",
    "controlled": "control of more nodes (nodes.controlled)",
}
"""Code of what would change a decision -> what it is."""

_JOB_CTL = {**dict.fromkeys(QUIET, "the node is well"), **REMEDIES}
_OF_PLANS = {**REASONS, EXPIRED: "the plan before ran out before it was renewed"}
_FAMILIES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "plan": ("why a plan has targets, or none", _OF_PLANS),
    "node": ("why a node has its target, or none", NODE_REASONS),
    "group": ("why a group is helped or held back", GROUP_REASONS),
    "limit": ("bounds of the change of targets", LIMITS),
    "law": ("from an error to power to move", {**LAWS, **LOADED}),
    "acted": ("bounds and changes of setpoints and outputs", ACTED),
    "setpoint": ("power due to a group", SETPOINTS),
    "strategy": ("how groups are paired", STRATEGIES),
    "change": ("change of a target", KINDS),
    "what-if": ("change of a decision", CHANGES),
    "job": ("state of a job", VERDICTS),
    "obstacle": ("obstacle of a job on a node", OBSTACLES),
    "target-kind": ("why a target keeps a job out", TARGET_KINDS),
    "job_ctl": ("t1_JobCtlReason of a node, and what to do", _JOB_CTL),
}

FAMILIES = {family: sentence for family, (sentence, _) in _FAMILIES.items()}
"""Family -> subject of its codes."""
CODES = {family: codes for family, (_, codes) in _FAMILIES.items()}
"""Family -> code -> sentence."""


def says(family: str, code: str) -> str:
    """Sentence of a code; one that is of no table is of another version."""
    return CODES[family].get(code, "a code that this version of sharectl does not know")
