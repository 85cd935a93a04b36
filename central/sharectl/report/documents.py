"""Documents with schemas: types of the JSON that programs may rely on, as this room makes it.

A key's docstring is its line in docs/json.md; units are in the names. Nothing imports this module
when a command runs: annotations name its types, and tests make the schemas of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Optional, TypedDict

from sharectl.explain.job import Obstacle, RefusingTarget
from sharectl.explain.prospect import Prospect
from sharectl.explain.turn import AccountedGroup, Cause, Limit, Submitter
from sharectl.model import (
    GroupError,
    GroupUsage,
    JobWaits,
    Node,
    OtherJobs,
    PendingJobs,
    Plan,
    ShadowMove,
    Source,
    UnplaceableJobs,
)
from sharectl.plan.records import GroupReason


@dataclass(frozen=True)
class Fields:
    """Keys of an object: the fields of records, as ``asdict`` writes them."""

    records: tuple[type, ...]
    without: tuple[str, ...] = ()
    name: str = ""
    """In docs/json.md; empty: that of the only record."""
    nullable: bool = False
    """Every value may be null."""


def fields(
    *records: type, name: str = "", without: tuple[str, ...] = (), nullable: bool = False
) -> Fields:
    """Keys of ``records``, the later ones before the earlier."""
    return Fields(records, without, name, nullable)


Data = dict[str, Any]

# ---- rows


class _Cores(TypedDict):
    cores: int
    """All cores held."""


class _HeldOnNode(TypedDict):
    cores_by_group: Optional[dict[str, int]]
    """Group -> cores that its jobs hold; null if the look is incomplete."""
    held_memory_mib: Optional[int]
    """Memory that jobs hold; null if the look is incomplete."""


class _Says(TypedDict):
    says: str
    """The code's sentence."""


class _OfGroup(TypedDict):
    group: str


WaitsRow = Annotated[Data, fields(JobWaits)]
SourceRow = Annotated[Data, fields(Source)]
ShadowRow = Annotated[Data, fields(ShadowMove)]
UsageRow = Annotated[Data, fields(GroupUsage, _Cores, name="UsageRow", nullable=True)]
ErrorRow = Annotated[
    Data, fields(GroupError, GroupUsage, _Cores, name="ErrorRow", without=("usage",))
]
NodeRow = Annotated[Data, fields(Node, _HeldOnNode, name="NodeRow")]
GroupReasonRow = Annotated[Data, fields(GroupReason, _OfGroup, _Says, name="GroupReasonRow")]

# ---- snapshot, errors, plan


class SnapshotDocument(TypedDict):
    """A look at the pool. Sums of an incomplete look are null, and so are lists without a row."""

    taken_at: int
    """Unix seconds."""
    complete: bool
    """True if every daemon answered."""
    groups: dict[str, UsageRow]
    """Group, ``other`` last -> what it uses."""
    others: Optional[list[Annotated[Data, fields(OtherJobs)]]]
    """Jobs of no configured group, by the first part of their AccountingGroup."""
    nodes: Optional[list[NodeRow]]
    pending: Optional[list[Annotated[Data, fields(PendingJobs)]]]
    waits: Optional[list[WaitsRow]]
    unplaceable: Optional[list[Annotated[Data, fields(UnplaceableJobs)]]]
    """Pending jobs that no node could run."""
    untried: Optional[str]
    """Why some pending jobs were not tried on the nodes; null if all were."""
    unmaterialized: dict[str, int]
    """Group -> jobs that are not materialised before others of their cluster end: no demand."""
    sources: Optional[list[SourceRow]]
    """How each daemon answered."""


class ErrorsDocument(TypedDict):
    """Errors of the groups, unrounded, in the order of the rows."""

    taken_at: int
    """Unix seconds."""
    groups: list[ErrorRow]


class _Warnings(TypedDict, total=False):
    warnings: list[str]
    """Oddities; absent where a plan is published."""


PLAN = fields(Plan, _Warnings)
"""All of a plan: what `sharectl publish` reads."""


# ---- explain


class JobFacts(TypedDict):
    """A job as its access point has it; times are Unix seconds, 0 if unknown."""

    schedd: str
    status: int
    """JobStatus."""
    universe: int
    """JobUniverse."""
    hold_code: int
    rejected_at: int
    """LastRejMatchTime."""
    starts: int
    """NumJobStarts."""
    owner: Optional[str]
    hold_reason: Optional[str]
    rejected: Optional[str]
    """LastRejMatchReason."""
    limits: Optional[str]
    """ConcurrencyLimits."""
    remove_reason: Optional[str]
    account: Optional[str]
    """AccountingGroup, by which HTCondor charges the job."""
    submitter: Optional[str]
    """Group and user that HTCondor charges, without domain."""
    accounting_group: Optional[str]
    """Group in it: AcctGroup where the two agree."""
    accounting_user: Optional[str]
    """User in it: AcctGroupUser where they agree."""
    since: int
    """Begin of its status."""
    host: Optional[str]
    """Slot and host where it runs or ran."""
    exit_code: Optional[int]
    requests: dict[str, str]
    """RequestCpus and such -> expression."""
    request_values: dict[str, float]
    """RequestCpus and such -> value, where it is a number on its own."""


class ClauseValue(TypedDict):
    """Value of an attribute where a clause is not true."""

    way: str
    """Part of the clause: one of each of its alternatives is not true."""
    name: str
    value: str
    nodes: int


class _ObstacleRow(TypedDict):
    nodes: int
    """Nodes where it keeps the job out."""
    alone: int
    """Nodes without another obstacle."""
    says: str
    remedy: str
    values: list[ClauseValue]


class _Until(TypedDict):
    until: int
    """Unix seconds; 0 if unknown."""


class JobTargetRow(TypedDict):
    """A target that keeps the job out."""

    target: Annotated[Data, fields(RefusingTarget, _Until, name="TargetOnNode")]
    nodes: int
    says: str


class SlotCounts(TypedDict):
    """Slots, counted as by condor_q -better-analyze."""

    total: int
    refused_by_job: int
    refusing_job: int
    matching: int


class JobVerdict(TypedDict):
    """Match of the job with all nodes."""

    total: int
    """Nodes."""
    code: str
    """could-now, not-now, not-yet, no-time or could-never."""
    foremost: Optional[Annotated[Data, fields(Obstacle, _ObstacleRow, name="ObstacleRow")]]
    """Obstacle on most of the nodes that the job itself accepts; null if some would take it."""
    fitting_nodes: int
    fitting_if_empty: int
    """Nodes that would take it if nothing ran there, without target and grace."""
    later_nodes: int
    """Nodes of which only clauses on time keep it out then."""
    opens_at: Optional[int]
    """Unix seconds at which the first of these takes it; null if no time was found."""
    obstacles: list[Annotated[Data, fields(Obstacle, _ObstacleRow, name="ObstacleRow")]]
    """Of now, most nodes first."""
    never: list[Annotated[Data, fields(Obstacle, _ObstacleRow, name="ObstacleRow")]]
    """Of empty nodes."""
    targets: list[JobTargetRow]
    grace_until: int
    """Unix seconds at which the last grace ends; 0 if unknown."""
    requests: dict[str, list[float]]
    """RequestCpus and such, if not literal -> least and most that it comes to on the nodes."""
    limits: list[str]
    """ConcurrencyLimits, which can differ by node."""
    policy_nodes: int
    """Nodes with a consumption policy."""
    slots: SlotCounts


class _IdleJobs(TypedDict):
    idle_jobs: int


class JobTurn(TypedDict):
    """Turn of the job at the negotiator."""

    cause: Optional[Annotated[Data, fields(Cause)]]
    """Why it gives the job no slot; null if it may."""
    group: Optional[Annotated[Data, fields(AccountedGroup)]]
    """Null without groups, or if not known."""
    submitter: Optional[Annotated[Data, fields(Submitter)]]
    limits: list[Annotated[Data, fields(Limit)]]
    before: Optional[list[Annotated[Data, fields(Submitter, _IdleJobs, name="SubmitterAhead")]]]
    """Submitters with idle jobs that are served first; null if not known."""
    cycle_ended_at: int
    """Unix seconds of the last negotiation cycle's end; 0 if not known."""
    period_seconds: float
    """Between the starts of the last two cycles; 0 if not known."""
    problems: list[str]
    """Sources that did not answer."""


class ExplainJobDocument(TypedDict):
    """Obstacles in the way of a job."""

    job: str
    now: int
    """Unix seconds."""
    code: str
    """State of the job."""
    says: str
    access_point: Optional[JobFacts]
    """Null if no access point knows it."""
    problem: Optional[str]
    """Why the match could not be evaluated."""
    nodes: Optional[JobVerdict]
    """Null if it needs no slot now."""
    group: Optional[str]
    """Configured group, or ``other``."""
    negotiator: Optional[JobTurn]
    ledger: Optional[Annotated[Data, fields(Prospect)]]
    """By the latest complete cycle."""


# ---- report


class GroupSummary(TypedDict):
    """A group in a period: sums, and means over complete cycles; null where no cycle knows."""

    group: str
    pledge_hs06: float
    power_hs06: float
    """Power used."""
    work_hs06_hours: float
    """Power used times time."""
    pledge_hs06_hours: float
    """Pledge times the same time."""
    error_hs06: float
    """Power used less the setpoint."""
    error_rms_hs06: float
    over_ratio: float
    """Part of the time with an error above the deadband."""
    under_ratio: float
    """Part of the time with an error below it."""
    running_cores: float
    pending_jobs: float
    output_hs06: Optional[float]
    """Power to move, of the controller."""
    unplaceable_jobs: Optional[float]
    """Pending jobs that no node could run."""
    held_back_nodes: Optional[float]
    """Nodes whose target holds it back."""
    helped_nodes: Optional[float]
    """Nodes whose target helps it."""
    work_ratio: Optional[float]
    """Work by pledge."""
    error_ratio: Optional[float]
    """Error by setpoint."""


class PoolSummary(TypedDict):
    """The pool in a period: sums, and means over complete cycles; null where no cycle knows."""

    cycles: int
    complete_cycles: int
    covered_seconds: int
    """Time that complete cycles cover."""
    idle_cores: Optional[float]
    idle_target_cores: Optional[float]
    """Idle cores that targets kept from jobs."""
    idle_grace_cores: Optional[float]
    """Idle cores that grace kept from single-core jobs."""
    targets: Optional[float]
    """Nodes under a target."""
    idle_core_hours: Optional[float]
    cycle_seconds: Optional[float]
    """Duration of a cycle."""


class PeriodSummary(TypedDict):
    """A period of the ledger."""

    since: int
    """Unix seconds."""
    until: int
    """Unix seconds."""
    bucket_seconds: int
    """Width of a point of the figures."""
    pool: PoolSummary
    groups: list[GroupSummary]
    """By falling pledge."""


class ReportDocument(TypedDict):
    """Numbers of the page."""

    made_at: int
    """Unix seconds."""
    deadband_hs06: float
    periods: list[PeriodSummary]
    """One, or two to compare, the earlier first."""
    last_cycle: Optional[Data]
    """The last complete cycle, with keys of this version of sharectl; null without one."""
