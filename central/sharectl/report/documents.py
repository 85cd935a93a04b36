"""Documents: types of the JSON that commands print, as far as this room makes it.

A key's docstring is its line in docs/json.md; units are in the names. Nothing imports this module
when a command runs: annotations name its types, and tests make the schemas of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Optional, TypedDict

from sharectl.explain.decisions import Exchange
from sharectl.explain.job import Obstacle, RefusingTarget
from sharectl.explain.prospect import Prospect
from sharectl.explain.replay import DecisionFigures, Summary
from sharectl.explain.turn import AccountedGroup, Cause, Limit, Submitter
from sharectl.model import (
    GroupError,
    GroupUsage,
    JobWaits,
    LimitNote,
    Node,
    OtherJobs,
    PendingJobs,
    Plan,
    ShadowMove,
    Source,
    Target,
    UnplaceableJobs,
)
from sharectl.plan.diff import Change, Effect
from sharectl.plan.records import GroupReason, HeldJobs, NodeRecord


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


@dataclass(frozen=True)
class Spreads(Fields):
    """As `Fields`, with a `Spread` over seeds in the place of every number."""


Data = dict[str, Any]

# ---- rows


class Coded(TypedDict):
    """A code of `sharectl explain codes` with its sentence."""

    code: str
    says: str


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


class _ChangeKind(TypedDict):
    kind: str
    """added, kept, moved, altered or dropped."""
    nodes: list[str]
    """The node, or the one before and the one after."""


TargetRow = Annotated[Data, fields(Target)]
WaitsRow = Annotated[Data, fields(JobWaits)]
SourceRow = Annotated[Data, fields(Source)]
ShadowRow = Annotated[Data, fields(ShadowMove)]
ExchangeRow = Annotated[Data, fields(Exchange)]
LimitRow = Annotated[Data, fields(LimitNote, _Says, name="LimitRow")]
UsageRow = Annotated[Data, fields(GroupUsage, _Cores, name="UsageRow", nullable=True)]
ErrorRow = Annotated[
    Data, fields(GroupError, GroupUsage, _Cores, name="ErrorRow", without=("usage",))
]
NodeRow = Annotated[Data, fields(Node, _HeldOnNode, name="NodeRow")]
GroupReasonRow = Annotated[Data, fields(GroupReason, _OfGroup, _Says, name="GroupReasonRow")]
ChangeRow = Annotated[Data, fields(Change, _ChangeKind, name="ChangeRow")]

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


class Changes(TypedDict):
    """Changes from some targets to others."""

    counts: dict[str, int]
    """Kind of a change -> targets."""
    changes: list[ChangeRow]
    effect: Annotated[Data, fields(Effect)]


class PlanDiffDocument(Changes):
    """Changes that a plan would make."""

    beside: str
    """The targets that it is compared with."""
    sequence: int
    reason: str
    """Code of the family ``plan``."""


# ---- explain


class ControlRow(TypedDict):
    """Controller of a group in a cycle."""

    group: str
    pledge_hs06: float
    power_hs06: float
    """Power used."""
    error_hs06: float
    """DHS: power used, less the pledge's share of all power used."""
    setpoint_hs06: float
    """Power that the group is entitled to now."""
    control_error_hs06: float
    """Power used less the setpoint."""
    given_hs06: Optional[float]
    """Error that its law got; null if not recorded, like the next keys."""
    output_hs06: Optional[float]
    """Power to move: above 0 taken from the group, below 0 given to it."""
    law: Optional[Coded]
    problem: Optional[str]
    """Failure of the law; null if it did not fail."""
    shadow: Optional[ShadowRow]
    acted: list[Coded]
    """Bounds and changes of the output, in order."""


_What = TypedDict("_What", {"what": str})  # noqa: UP013 - a key, and no name


class WouldChangeRow(_What):
    """One thing that would change a decision."""

    code: str
    says: str
    value: Optional[float]
    """Its value in the decision."""
    becomes: Optional[float]
    """Value from which the decision is another one."""
    outcome: str
    """The other decision."""


class _Again(TypedDict):
    decided_again: Optional[str]
    """Outcome when it is decided again with the configuration of now; null without a plan."""
    would_change: Optional[list[WouldChangeRow]]
    tried_all: Optional[bool]
    """True if all things were tried."""


class _Decided(_Again):
    source: str
    """Origin of the decision."""
    cycle: Optional[int]
    """Number in the ledger; null of a look now."""
    taken_at: int
    """Unix seconds."""
    sequence: Optional[int]
    """Of the plan that was published; null if none was."""
    observed: bool
    """True with mode: observe: targets were planned, and not published."""
    agrees: Optional[bool]
    """True if deciding again gives the recorded targets; null if nothing is recorded."""
    limits: list[LimitRow]


class ExplainGroupDocument(_Decided, ControlRow):
    """Why a group gives or receives."""

    cores: int
    """All cores held."""
    single_cores: int
    """Cores held by jobs of one core."""
    multi_cores: int
    pending_by_cores: dict[int, int]
    """Cores requested -> jobs that wait."""
    unplaceable_by_cores: dict[int, int]
    """Cores requested -> jobs that wait and that no node could run."""
    waits: list[WaitsRow]
    error_cores: float
    """DC: cores held, less the pledge's share of all cores held."""
    power_minus_pledge_hs06: float
    setpoint: Coded
    state: dict[str, float]
    """State of the controller for the next cycle."""
    in_use_ratio: Optional[float]
    """All power used, by all pledges."""
    setpoint_ratio: Optional[float]
    """Power that is shared out, by all pledges."""
    reason: Optional[Coded]
    """Reason of the plan."""
    outcome: Optional[Coded]
    """Reason of the group."""
    closed_nodes: Optional[int]
    """Nodes where none of its jobs starts."""
    other_sizes_closed_nodes: Optional[int]
    """Nodes that help it where its pending jobs of other sizes do not start."""
    gives: list[ExchangeRow]
    receives: list[ExchangeRow]


class NodeSays(TypedDict):
    """State of its target as the node itself says, now."""

    obeyed_sequence: Optional[int]
    """Sequence of the plan whose target it acts on; 0: no target; null: not published."""
    refusal: Optional[Coded]
    problem: Optional[str]
    """Why it is not known."""
    switched_off: list[Coded]


class _NodePage(_Decided):
    held: list[Annotated[Data, fields(HeldJobs)]]
    idle_cores: int
    """Cores that no job holds."""
    reason: Optional[Coded]
    """Reason of the node."""
    plan_reason: Optional[Coded]
    since: Optional[int]
    """Unix seconds since which the target stands; null if unknown."""
    lost_hs06: float
    """Power that the held-back group is still to lose there."""
    gained_hs06: float
    """Power that the helped group gains there."""
    says: Optional[NodeSays]
    """Null if the node was not asked."""


EXPLAIN_NODE = fields(NodeRecord, _NodePage, without=("wait_seconds", "idle_core_seconds"))
"""Why a node has its target or has none."""


class NodeReasonRow(TypedDict):
    """A reason, and the number of nodes that have it."""

    code: str
    says: str
    nodes: int


class CycleBefore(TypedDict):
    """The complete cycle before."""

    cycle: int
    taken_at: int
    """Unix seconds."""


class ExplainCycleDocument(_Again):
    """Look, decision and changes of a cycle."""

    cycle: Optional[int]
    """Number in the ledger."""
    taken_at: int
    """Unix seconds."""
    seconds: Optional[float]
    """Duration; null of an imported cycle."""
    complete: bool
    imported: bool
    observed: bool
    """True with mode: observe: targets were planned, and not published."""
    """True if it comes from a shares_Error.log."""
    sources: list[SourceRow]
    problems: list[str]
    configuration: str
    """First digits of the SHA-256 of all settings that decide."""
    configuration_changed: bool
    strategy: Coded
    setpoint: Coded
    reason: Optional[Coded]
    """Reason of the plan; null without one."""
    sequence: Optional[int]
    published: list[str]
    """Places."""
    targets: list[TargetRow]
    exchanges: list[ExchangeRow]
    limits: list[LimitRow]
    groups: list[ControlRow]
    nodes: int
    """Number of nodes."""
    node_reasons: list[NodeReasonRow]
    idle_cores: Optional[int]
    """Cores that no job holds; null if unknown."""
    idle_target_cores: Optional[int]
    """Idle cores that targets kept from jobs."""
    idle_grace_cores: Optional[int]
    """Idle cores that grace kept from single-core jobs."""
    before: Optional[CycleBefore]
    changes: Optional[Changes]
    """Changes since the cycle before."""
    agrees: Optional[bool]
    """True if deciding again gives the recorded targets."""


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


# ---- replay


class ReplayedRow(TypedDict):
    """A cycle as it was, and as it would have been."""

    cycle: int
    """Number in the ledger."""
    taken_at: int
    """Unix seconds."""
    agreement_ratio: Optional[float]
    """Nodes with the same target in both, of those with one in either; null if not complete."""
    was: Annotated[Data, fields(DecisionFigures)]
    would: Optional[Annotated[Data, fields(DecisionFigures)]]
    note: Optional[str]
    """Why it is not compared (incomplete, overruled, no-nodes), or unlike the change alone
    (configuration, not-reproduced)."""


ReplayDocument = TypedDict(
    "ReplayDocument",
    {
        "from": int,
        "to": int,
        "decides": str,
        "note": str,
        "cycles": list[ReplayedRow],
        "summary": Annotated[Data, fields(Summary, name="ReplaySummary")],
    },
)
