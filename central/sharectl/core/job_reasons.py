"""The codes of ``explain job``: a closed set, each with its sentence."""

from __future__ import annotations

from collections.abc import Mapping

COULD_NOW, NOT_NOW, COULD_NEVER = "could-now", "not-now", "could-never"
HELD, RUNNING, COMPLETED, REMOVED = "held", "running", "completed", "removed"
NO_SLOT, UNKNOWN, NOT_EVALUATED = "no-slot", "unknown", "not-evaluated"

VERDICTS: Mapping[str, str] = {
    COULD_NOW: "it could run now: the negotiator has not come to it, or gives the place to others (priority, quota)",
    NOT_NOW: "it cannot run now, and could on an empty node",
    COULD_NEVER: "no node would take it, were it empty, without target and grace",
    HELD: "it is held, and nothing starts it until it is released",
    RUNNING: "it runs",
    COMPLETED: "it has ended",
    REMOVED: "it was removed",
    NO_SLOT: "it needs no slot: jobs of its universe run on the access point or elsewhere",
    UNKNOWN: "no access point knows it, neither in its queue nor in its history",
    NOT_EVALUATED: "HTCondor's library could not evaluate the expressions of the job and the nodes in time",
}
"""Code -> what is the matter with the job."""

CPUS, MEMORY, DISK, GPUS, RESOURCE = "cpus", "memory", "disk", "gpus", "resource"
RESOURCES = (CPUS, MEMORY, DISK, GPUS)

OBSTACLES: Mapping[str, str] = {
    "target": "sharectl's target: the node keeps its cores for other jobs",
    "grace": "sharectl's grace: freed cores wait for multicore jobs",
    "overheat": "sharectl's clause on heat: the node says that it is too hot",
    "sharectl": "another clause of sharectl's",
    "site-start": "the site's START",
    "slot-requirements": "the slot's Requirements besides START",
    "job-requirements": "the job's own requirements",
    "bad-request": "a request of the job that has no value there",
    CPUS: "too few free cores",
    MEMORY: "too little free memory",
    DISK: "too little free disk",
    GPUS: "too few free GPUs",
    RESOURCE: "too little of a custom resource",
    "draining": "the node is being drained",
    "claimed": "the slot is claimed by another job",
}
"""Code -> what stands in the way on a node."""

OURS = frozenset(("target", "grace", "overheat", "sharectl"))
"""Obstacles that sharectl makes."""

SHORT = frozenset((*RESOURCES, RESOURCE))
"""Obstacles that are a matter of amounts."""

TOO_LARGE = "a smaller request: none of these nodes is that large"
SMALLER = "a smaller request"
NO_USE = "none: were this gone, what `never` lists would still keep it out"
"""Remedy of what is in the way of a job that not even empty nodes would take."""

REMEDIES: Mapping[str, str] = {
    "target": "the target's end; on single nodes `touch /etc/sharectl/disabled`; fewer targets by control.max_nodes; for the "
    "whole pool `sharectl disable`",
    "grace": "the end of the grace; jobs of more than one core are let in",
    "overheat": "a node that publishes t1_overheat = False",
    "sharectl": "see START on the node",
    "site-start": "the site's configuration of START, or a job that meets it",
    "slot-requirements": "the node's configuration",
    "job-requirements": "the job's requirements: condor_qedit, or another submission",
    "bad-request": "a request that is a number",
    CPUS: "jobs that end there, or a smaller request",
    MEMORY: "jobs that end there, or a smaller request",
    DISK: "jobs that end there, or a smaller request",
    GPUS: "jobs that end there, or a smaller request",
    RESOURCE: "jobs that end there, or a smaller request",
    "draining": "the end of the draining: condor_drain -cancel",
    "claimed": "the end of the job that holds it",
}
"""Code of an obstacle -> what would take it away."""

TARGET_KINDS: Mapping[str, str] = {
    "cap": "its group is held back, and has as many cores there as its cap allows",
    "size": "its group is helped there by jobs of another size",
    "others": "the node is for jobs of the helped group",
}
"""Why a target keeps a job out."""


def code_of_resource(name: str) -> str:
    """Code of an obstacle that is a resource, such as ``Memory``, of which there is too little."""
    return name.lower() if name.lower() in RESOURCES else RESOURCE
