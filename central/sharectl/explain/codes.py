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

CODES: Mapping[str, Mapping[str, str]] = {
    "plan": {**REASONS, EXPIRED: "the plan before ran out and was not renewed in time"},
    "node": NODE_REASONS,
    "group": GROUP_REASONS,
    "limit": LIMITS,
    "law": LAWS,
    "acted": ACTED,
    "setpoint": SETPOINTS,
    "strategy": STRATEGIES,
    "change": KINDS,
    "what-if": CHANGES,
    "job": VERDICTS,
    "obstacle": OBSTACLES,
    "target-kind": TARGET_KINDS,
    "job_ctl": _JOB_CTL,
}
"""Family -> code -> sentence."""

FAMILIES = {
    "plan": "why a plan has targets, or none",
    "node": "why a node has the target that it has, or none",
    "group": "why a group is helped, held back or neither",
    "limit": "what bounded the change of targets",
    "law": "how a group's error becomes power to move",
    "acted": "what bounded or changed a setpoint or an output",
    "setpoint": "what a group is entitled to",
    "strategy": "how groups are brought together",
    "change": "what becomes of a target",
    "what-if": "what would change a decision",
    "job": "what is the matter with a job",
    "obstacle": "what stands in a job's way on a node",
    "target-kind": "why a target keeps a job out",
    "job_ctl": "what a node says (t1_JobCtlReason), and what to do",
}
"""Family -> what its codes tell."""

UNKNOWN = "a code that this version of sharectl does not know"


def says(family: str, code: str) -> str:
    """Sentence of a code; one that is of no table is of another version."""
    return CODES[family].get(code, UNKNOWN)
