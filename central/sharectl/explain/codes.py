"""Every code that sharectl gives for a reason, with its sentence: one closed set."""

from __future__ import annotations

from collections.abc import Mapping

from sharectl.control.laws import ACTED, LAWS
from sharectl.control.setpoints import SETPOINTS
from sharectl.explain.job import OBSTACLES, TARGET_KINDS, VERDICTS
from sharectl.plan.diff import EXPIRED, KINDS
from sharectl.plan.limits import LIMITS
from sharectl.plan.nodes import QUIET, REMEDIES
from sharectl.plan.plan import NODE_REASONS, REASONS
from sharectl.plan.records import GROUP_REASONS
from sharectl.plan.settings import STRATEGIES

CHANGES = {
    "pending": "other jobs wait",
    "error": "the group uses more or less power",
    "deadband": "the deadband is narrower or wider",
    "dwell": "targets need not stay as long",
    "max-nodes": "more nodes may be under targets",
    "max-target-share": "a larger share of the nodes may be under targets",
    "max-changed-nodes": "more nodes may change in one cycle",
    "output-limit": "the controllers may move more power in one cycle",
    "controlled": "the node is under control; for a cycle: one or all nodes",
    "not-reserved": "the node is not reserved; for a cycle: one or all nodes",
    "not-draining": "the node is not being drained; for a cycle: one or all nodes",
    "obeying": "the node acts on its targets; for a cycle: one or all nodes",
    "answering": "what did not answer does: then there is something to decide on",
    "enabled": "sharectl is enabled",
}
"""Code of what would change a decision -> what it is."""

_JOB_CTL = {
    **dict.fromkeys(QUIET, "the node is well: it has looked, and has no target or acts on it"),
    **REMEDIES,
}
_EXPIRED = {EXPIRED: "the plan before ran out and was not renewed in time"}
_FAMILIES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "plan": ("why a plan has targets, or none", {**REASONS, **_EXPIRED}),
    "node": ("why a node has the target that it has, or none", NODE_REASONS),
    "group": ("why a group is helped, held back or neither", GROUP_REASONS),
    "limit": ("what bounded the change of targets", LIMITS),
    "law": ("how a group's error becomes power to move", LAWS),
    "acted": ("what bounded or changed a setpoint or an output", ACTED),
    "setpoint": ("what a group is entitled to", SETPOINTS),
    "strategy": ("how groups are brought together", STRATEGIES),
    "change": ("what becomes of a target", KINDS),
    "what-if": ("what would change a decision", CHANGES),
    "job": ("what is the matter with a job", VERDICTS),
    "obstacle": ("what stands in a job's way on a node", OBSTACLES),
    "target-kind": ("why a target keeps a job out", TARGET_KINDS),
    "job_ctl": ("what a node says (t1_JobCtlReason), and what to do", _JOB_CTL),
}

FAMILIES = {family: sentence for family, (sentence, _) in _FAMILIES.items()}
"""Family -> subject of its codes."""
CODES = {family: codes for family, (_, codes) in _FAMILIES.items()}
"""Family -> code -> sentence."""


def says(family: str, code: str) -> str:
    """Sentence of a code; one that is of no table is of another version."""
    return CODES[family].get(code, "a code that this version of sharectl does not know")
