"""State of a job, its obstacles in each slot, and the verdict on all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from sharectl.times import shown

COULD_NOW, NOT_NOW, COULD_NEVER = "could-now", "not-now", "could-never"
NOT_YET, NO_TIME = "not-yet", "no-time"
SUSPENDED, TRANSFERRING = "suspended", "transferring"
HELD, RUNNING, COMPLETED, REMOVED = "held", "running", "completed", "removed"
NO_SLOT, UNKNOWN, NOT_EVALUATED = "no-slot", "unknown", "not-evaluated"
AT_LIMIT, AT_QUOTA, AT_CEILING = "at-limit", "at-quota", "at-ceiling"
AT_ACCESS_POINT = "at-access-point"

VERDICTS: Mapping[str, str] = {
    COULD_NOW: "some node would take it now, and the negotiator has not given it one yet",
    AT_LIMIT: "a concurrency limit that it counts for is used up",
    AT_QUOTA: "its group, or one above it, uses its quota and takes no surplus",
    AT_CEILING: "its submitter uses the ceiling that condor_userprio has set",
    AT_ACCESS_POINT: "its access point runs as many jobs as MAX_JOBS_RUNNING allows",
    NOT_NOW: "it cannot run now, and could on an empty node",
    NOT_YET: "its time has not come: only clauses on time are not true on an empty node",
    NO_TIME: "clauses on time are not true now, and no time within a year makes them true",
    COULD_NEVER: "no node would take it, even empty, without target and grace",
    HELD: "it is held until somebody releases it",
    RUNNING: "it runs",
    SUSPENDED: "it is suspended: it holds its slot and does not run until somebody continues it",
    TRANSFERRING: "it has run, and its slot sends the output back",
    COMPLETED: "it has ended",
    REMOVED: "it was removed",
    NO_SLOT: "its universe needs no slot of the pool",
    UNKNOWN: "no access point has it in its queue: condor_history has jobs that have left it",
    NOT_EVALUATED: "its expressions and the nodes' could not be evaluated in time",
}
"""Code -> state of the job."""

_FEWER = "jobs that end there"
_FEWER_OR_LESS = f"{_FEWER}, or a smaller request"
_TARGET_ENDS = (
    "the target's end; on single nodes `touch /etc/sharectl/disabled`; fewer targets by "
    "control.max_nodes; for the whole pool `sharectl disable`"
)
_OBSTACLES: Mapping[str, tuple[str, str]] = {
    "target": ("sharectl's target: the node keeps its cores for other jobs", _TARGET_ENDS),
    "grace": (
        "sharectl's grace: freed cores wait for multicore jobs",
        "the end of the grace; jobs of more than one core are let in",
    ),
    "overheat": (
        "sharectl's clause on heat: the node is too hot",
        "a node that publishes t1_overheat = False",
    ),
    "sharectl": ("another clause of sharectl's", "see START on the node"),
    "site-start": ("the site's START", "the site's configuration of START, or a job that meets it"),
    "slot-requirements": ("the slot's Requirements besides START", "the node's configuration"),
    "job-requirements": (
        "the job's own requirements",
        "the job's requirements: condor_qedit, or another submission",
    ),
    "dedicated": (
        "the node names no dedicated scheduler of the job's access point",
        'DedicatedScheduler = "DedicatedScheduler@ACCESS_POINT" in STARTD_ATTRS of nodes',
    ),
    "clock": ("a clause on time", "the time from which it is true; condor_qedit if that is past"),
    "bad-request": ("a request of the job that has no value there", "a request that is a number"),
    "cpus": ("too few free cores", _FEWER_OR_LESS),
    "memory": ("too little free memory", _FEWER_OR_LESS),
    "disk": ("too little free disk", _FEWER_OR_LESS),
    "gpus": ("too few free GPUs", _FEWER_OR_LESS),
    "resource": ("too little of a custom resource", _FEWER_OR_LESS),
    "no-resource": (
        "the node has no resource of that name",
        "a node that has it; if no resource X is meant, another name than request_X or RequestX",
    ),
    "offline": (
        "the node is offline: its ad stands for a machine that sleeps or is gone (Offline)",
        "a machine that runs; condor_rooster wakes those that can be woken",
    ),
    "draining": ("the node is being drained", "the end of the draining: condor_drain -cancel"),
    "claimed": ("the slot is claimed by another job", "the end of the job that holds it"),
}
"""Code of an obstacle on a node -> its sentence, and its remedy."""

OBSTACLES = {code: sentence for code, (sentence, _) in _OBSTACLES.items()}

UNITS = {"memory": " MiB", "disk": " KiB"}
"""Resource in lower case -> HTCondor's unit."""

TOO_LARGE = "a smaller request: none of these nodes is that large"

TARGET_KINDS: Mapping[str, str] = {
    "cap": "its group is held back, and its cap allows no more cores there",
    "size": "its group is helped there by jobs of another size",
    "others": "the node is for jobs of the helped group",
}
"""Code -> why a target keeps a job out."""

_OF_STATUS = {2: RUNNING, 3: REMOVED, 4: COMPLETED, 5: HELD, 6: TRANSFERRING, 7: SUSPENDED}
"""JobStatus -> code of `VERDICTS`."""
_WITHOUT_SLOT = (7, 9, 12)
"""Universes whose jobs hold no slot of the pool: scheduler, grid, local."""


Facts = Mapping[str, Any]
"""A job as its access point has it; texts are cut, times are Unix seconds, 0 if unknown."""


class Obstacle(NamedTuple):
    """One thing that keeps a job out of a slot."""

    code: str
    """One of `OBSTACLES`."""
    clause: str
    """Expression that is not true, or request that is too large."""


class RefusingTarget(NamedTuple):
    """Target that a slot acts on and that keeps the job out."""

    kind: str
    """One of `TARGET_KINDS`."""
    held_back: str
    cap_cores: int
    helped: str
    request_cores: int


class ClauseReading(NamedTuple):
    """Value that an attribute of a clause has, where the clause is not true."""

    way: str
    """Part of the clause that is not true: one of each of its alternatives."""
    name: str
    """Attribute, with `THE_JOBS` before one of the job."""
    value: str
    """As HTCondor prints it, such as ``undefined``."""


Obstacles = Mapping[Obstacle, Sequence[ClauseReading]]
"""Obstacles of a job in a slot, with what their clauses read there."""

THE_JOBS, UNDEFINED = "the job's ", "undefined"
MOST_VALUES = 3
"""Values of one attribute that are told apart."""


@dataclass(frozen=True)
class SlotFinding:
    """Match of the job with one partitionable or static slot."""

    node: str
    """Host name."""
    job_accepts: bool
    slot_accepts: bool
    obstacles: Obstacles = field(default_factory=dict)
    """Empty if the job could run there now."""
    empty_obstacles: Obstacles = field(default_factory=dict)
    """Obstacles that remain if nothing runs there, without target and grace."""
    target: Optional[RefusingTarget] = None
    target_until: int = 0
    """Unix seconds at which it ends unless a cycle renews it; 0 if unknown."""
    grace_until: int = 0
    """Unix seconds, if grace keeps the job out; 0 if its end is not known."""
    opens_at: Optional[int] = None
    """Unix seconds at which it may run, if clauses on time alone keep it out and one was found."""
    requests: tuple[tuple[str, float], ...] = ()
    """RequestCpus and such, and what each comes to there, of those that are expressions."""
    limits: str = ""
    """Value of the job's ConcurrencyLimits there."""
    has_policy: bool = False
    """True if it has a consumption policy."""

    @property
    def is_later(self) -> bool:
        """True if only clauses on time keep the job out when nothing runs there."""
        return {obstacle.code for obstacle in self.empty_obstacles} == {"clock"}


def verdict(findings: Sequence[SlotFinding]) -> dict[str, Any]:
    """Match of a job with all slots, as the record JobVerdict of its JSON.

    A node counts by the slot with the fewest obstacles.
    """
    nearest: dict[str, SlotFinding] = {}
    for slot in sorted(findings, key=lambda f: (len(f.obstacles), len(f.empty_obstacles))):
        nearest.setdefault(slot.node, slot)
    kept_out = [node for node in nearest.values() if node.obstacles]
    never = [node.empty_obstacles for node in kept_out if node.empty_obstacles]
    fitting, if_empty = len(nearest) - len(kept_out), len(nearest) - len(never)
    targets = _targets(kept_out)
    obstacles = _counted(node.obstacles for node in kept_out)
    of_empty = _counted(node.empty_obstacles for node in kept_out)
    lasting = {(row["code"], row["clause"]): row["nodes"] for row in of_empty}
    until = max((row["target"]["until"] for row in targets), default=0)
    later = [node for node in kept_out if node.is_later]
    times = [node.opens_at for node in later if node.opens_at is not None]
    for row in (*obstacles, *of_empty):
        row["remedy"] = _remedy(row, lasting, until)
    amounts: defaultdict[str, list[float]] = defaultdict(list)
    for name, amount in (request for slot in findings for request in slot.requests):
        amounts[name].append(amount)
    busy = [node.obstacles for node in kept_out if not node.empty_obstacles]
    foremost = _foremost(obstacles, busy) if if_empty else _foremost(of_empty, never)
    limits = {node.limits for node in nearest.values() if not node.empty_obstacles}
    waits = NOT_YET if times else NO_TIME if later else COULD_NEVER
    refused = sum(not slot.job_accepts for slot in findings)
    refusing = sum(slot.job_accepts and not slot.slot_accepts for slot in findings)
    return {
        "total": len(nearest),
        "code": COULD_NOW if fitting else NOT_NOW if if_empty else waits,
        "foremost": None if fitting else foremost,
        "fitting_nodes": fitting,
        "fitting_if_empty": if_empty,
        "later_nodes": len(later),
        "opens_at": min(times, default=None),
        "obstacles": obstacles,
        "never": of_empty,
        "targets": targets,
        "grace_until": max((node.grace_until for node in kept_out), default=0),
        "requests": {name: [min(several), max(several)] for name, several in amounts.items()},
        "limits": [] if limits == {""} else sorted(limits),
        "policy_nodes": sum(node.has_policy for node in nearest.values()),
        "slots": {
            "total": len(findings),
            "refused_by_job": refused,
            "refusing_job": refusing,
            "matching": len(findings) - refused - refusing,
        },
    }


def _counted(nodes: Iterable[Obstacles]) -> list[dict[str, Any]]:
    """Nodes on which each obstacle keeps the job out, and the values in its clause.

    ``alone`` are those without another obstacle.
    """
    counts, alone = Counter[Obstacle](), Counter[Obstacle]()
    read: defaultdict[Obstacle, dict[tuple[str, str], Counter[str]]] = defaultdict(dict)
    for obstacles in nodes:
        counts.update([*obstacles])
        alone.update([*obstacles] if len(obstacles) == 1 else ())
        for obstacle, readings in obstacles.items():
            for way, name, value in dict.fromkeys(readings):
                read[obstacle].setdefault((way, name), Counter())[value] += 1
    return [
        {
            **obstacle._asdict(),
            "nodes": counts[obstacle],
            "alone": alone[obstacle],
            "says": OBSTACLES[obstacle.code],
            "values": _values(read[obstacle]),
        }
        for obstacle in sorted(counts, key=lambda o: (-counts[o], -alone[o], o))
    ]


def _values(read: Mapping[tuple[str, str], Counter[str]]) -> list[dict[str, Any]]:
    """Values in a clause, in its order, those on most nodes first."""
    rows = []
    for (way, name), counts in read.items():
        several = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if len(several) > MOST_VALUES:
            last = several[MOST_VALUES - 1 :]
            others = f"one of {len(last)} other values"
            several[MOST_VALUES - 1 :] = [(others, sum(nodes for _, nodes in last))]
        of_name = {"way": way, "name": name}
        rows += [{**of_name, "value": value, "nodes": nodes} for value, nodes in several]
    return rows


def _foremost(
    rows: Sequence[dict[str, Any]], nodes: Collection[Obstacles]
) -> Optional[dict[str, Any]]:
    """Row of the obstacle on most of these nodes; those that the job refuses itself are last."""
    accepted = [node for node in nodes if "job-requirements" not in {o.code for o in node}]
    counts = Counter(obstacle for node in accepted or nodes for obstacle in node)
    return max(rows, key=lambda row: counts[Obstacle(row["code"], row["clause"])], default=None)


def _remedy(row: Mapping[str, Any], lasting: Mapping[tuple[str, str], int], until: int) -> str:
    """Remedy of an obstacle.

    ``lasting`` has the empty nodes where an obstacle stays, ``until`` the last target's end.
    """
    nodes, remedy = lasting.get((row["code"], row["clause"]), 0), _OBSTACLES[row["code"]][1]
    if remedy == _FEWER_OR_LESS and nodes >= row["nodes"]:
        return TOO_LARGE
    if remedy == _FEWER_OR_LESS and row["clause"].endswith(" = 1"):
        return _FEWER  # one core or GPU: memory and disk have units
    if row["code"] == "target" and until:
        return remedy.replace("end;", f"end, {shown(until)} at the latest unless renewed;", 1)
    return remedy


def no_smaller(verdict: Mapping[str, Any], over: str) -> None:
    """Take "a smaller request" from remedies of a job that has its share, or more.

    ``over`` is by how much its group is over its share, in words; empty if another cause keeps the
    job out, wherever cores are free.
    """
    more = f", but its group is {over}: free cores are for groups below theirs" if over else ""
    for row in verdict["obstacles"]:
        if row["remedy"] in (_FEWER, _FEWER_OR_LESS):
            row["remedy"] = f"{_FEWER}{more}"


def _targets(kept_out: Iterable[SlotFinding]) -> list[dict[str, Any]]:
    """Rows of the targets that keep the job out, those on most nodes first."""
    ends: defaultdict[RefusingTarget, list[int]] = defaultdict(list)
    for node in kept_out:
        if node.target is not None:
            ends[node.target].append(node.target_until)
    rows = sorted(ends.items(), key=lambda row: (-len(row[1]), row[0].helped, row[0].cap_cores))
    return [
        {
            "target": {**target._asdict(), "until": max(every)},
            "nodes": len(every),
            "says": TARGET_KINDS[target.kind],
        }
        for target, every in rows
    ]


def state_of(status: int, universe: int) -> Optional[str]:
    """Code of `VERDICTS` by JobStatus and JobUniverse; None of a job that waits for a slot."""
    code = _OF_STATUS.get(status)
    return NO_SLOT if code is None and universe in _WITHOUT_SLOT else code
