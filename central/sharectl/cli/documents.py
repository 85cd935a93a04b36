"""Documents that the verbs print with ``--json``: kind -> keys, and verb -> kinds.

Tests make docs/json.md and docs/schemas of it, and hold every document that they see against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Optional, TypedDict, Union

from sharectl.check.findings import Check, Finding
from sharectl.control.learned import Policy
from sharectl.ledger.imports import Imported
from sharectl.model import Disabled, Plan
from sharectl.report import documents as report
from sharectl.report import tool_documents as tools
from sharectl.report.documents import Data, Fields, fields
from sharectl.shares.pledges import Pledge

DisabledRow = Annotated[Data, fields(Disabled)]

# ---- cycle, publish, disable, status


class ControllerRow(TypedDict):
    """Controller of a group."""

    group: str
    setpoint_hs06: float
    """Power that the group is entitled to now."""
    control_error_hs06: float
    """Power used less the setpoint."""
    output_hs06: float
    """Power to move: above 0 taken from the group, below 0 given to it."""
    law: str
    shadow: Optional[report.ShadowRow]


class IdleCoresRow(TypedDict):
    """Idle cores of the pool."""

    all: int
    target: int
    """Idle cores that targets kept from jobs."""
    grace: Optional[int]
    """Idle cores that grace kept from single-core jobs."""


class NodeCounts(TypedDict):
    """Nodes by what they did about targets."""

    controlled: int
    """Nodes that may have targets."""
    target: int
    """Nodes with a target after the cycle."""
    not_obeying: int
    refused: int
    """Nodes that refused a plan, or have not run job_ctl lately."""


class CycleDocument(TypedDict):
    """One cycle."""

    mode: str
    """steer or observe."""
    taken_at: int
    """Unix seconds."""
    seconds: float
    """Duration."""
    complete: bool
    """True if every daemon answered."""
    unanswered: list[str]
    """Daemons that did not answer."""
    problems: list[str]
    warnings: list[str]
    published: list[str]
    """Places."""
    errors: list[report.ErrorRow]
    controllers: list[ControllerRow]
    waits: list[report.WaitsRow]
    groups: list[report.GroupReasonRow]
    plan: Optional[Annotated[Data, fields(Plan)]]
    """The plan that was published; null if none was."""
    planned_targets: Optional[int]
    """Targets that the errors call for; null of an incomplete cycle."""
    disabled: Optional[DisabledRow]
    idle_cores: Optional[IdleCoresRow]
    """Null if unknown."""
    nodes: Optional[NodeCounts]
    """Null of an incomplete cycle."""
    succeeded_at: Optional[int]
    """Unix seconds of the last cycle without a problem; null if unknown, and in a dry run."""
    metrics_problem: Optional[str]
    """Why metrics.textfile was not written."""
    report_problem: Optional[str]
    """Why report.file was not written."""
    warned_at: dict[str, int]
    """Kind of warnings -> Unix seconds at which one was printed last, in the last day."""


class PublishedDocument(TypedDict):
    """Result of `sharectl publish`."""

    published: list[str]
    """Places."""
    sequence: int


class SwitchedOffDocument(TypedDict):
    """Result of `sharectl disable`."""

    disabled: Optional[DisabledRow]
    """Null if the switch could not be set."""
    was: Optional[DisabledRow]
    """Order that was in force before."""
    published: list[str]
    """Places without targets now."""
    problems: list[str]


class SwitchedOnDocument(TypedDict):
    """Result of `sharectl enable`."""

    was: Optional[DisabledRow]
    """Order that was in force; null if there was none."""


class _KeyPlace(TypedDict):
    place: str
    problem: Optional[str]


class PlaceRow(_KeyPlace, total=False):
    """A place where nodes look for targets; only the first two keys of one that cannot be read."""

    way: str
    """file, https or collector."""
    older: bool
    """True if an older plan stands there than was published last."""
    foreign: bool
    """True if the valid plan of another installation stands there, and should not."""
    writer: Optional[str]
    """Installation that published it, HOST:STATE_DIRECTORY; null if unknown."""
    targets: int
    sequence: Optional[int]
    valid_for_seconds: Optional[int]
    """0 or less: it has run out."""
    signed_by: Optional[str]
    """Id of the key; of file and https."""
    verified: bool
    """True if the signature was verified; of file and https."""
    served: bool
    """True if the server serves the file; of https."""
    identity: Optional[str]
    """Identity of the publisher; of collector."""


class _NodesProblem(TypedDict):
    problem: Optional[str]
    """Why the collector did not answer; there is no other key then."""


class NodesNow(_NodesProblem, total=False):
    """Partitionable slots now, counted by what they do."""

    slots: int
    controlled: int
    """Of nodes under control; while observing, of those with the snippet."""
    with_target: int
    in_grace: int
    disabled: int
    """By /etc/sharectl/disabled."""
    disabled_by_knob: int
    """By SHARECTL_ENABLED."""
    multicore_only: int
    hot: list[str]
    """Nodes that publish t1_overheat = True: no job starts there."""
    reasons: dict[str, int]
    """t1_JobCtlReason -> slots."""
    refusing: dict[str, int]
    """Reasons that keep targets from nodes under control -> slots."""
    versions: dict[str, int]
    """Version of sharectl on nodes under control (t1_SharectlVersion) -> slots."""
    node_of_version: dict[str, str]
    """Version -> one of its nodes."""
    idle_cores: dict[str, int]
    """Node with a block that stood free -> idle cores now."""
    idle_grace_cores: int
    """Idle cores of slots in grace."""


class FreeBlockRow(TypedDict):
    """Cores that stand free under a target."""

    node: str
    group: str
    cores: int
    free_since: int
    """Unix seconds."""
    free_seconds: int
    give_up_seconds: float
    """Time after which the cores are given back."""


class BackOffRow(TypedDict):
    """Jobs of one group and size that did not come."""

    node: Optional[str]
    """Null: all nodes."""
    group: str
    cores: int
    failures: int
    until: int
    """Unix seconds until which it is left alone."""


class BlocksNow(TypedDict):
    """Blocks of cores that no job takes."""

    free: list[FreeBlockRow]
    left_alone: list[BackOffRow]
    failing: list[BackOffRow]


class StatusDocument(TypedDict):
    """The last cycle, what is published, and what nodes make of it."""

    version: str
    """Of sharectl here."""
    now: int
    """Unix seconds."""
    mode: str
    """steer or observe."""
    disabled: Optional[DisabledRow]
    """Null while it is on."""
    to_withdraw: bool
    """True if targets may stand."""
    withdrawn: bool
    """True if all targets were withdrawn, everywhere."""
    last_cycle: Optional[dict[str, Any]]
    """Keys of the document `cycle`; one of an earlier release may lack some. Null: none has run."""
    trends: dict[str, float]
    """Group -> change of its error in 3 hours, HS06; groups of which it is unknown are absent."""
    published: list[PlaceRow]
    nodes: NodesNow
    blocks: BlocksNow
    problems: list[str]
    """Empty: exit code 0."""


# ---- pledges, report


class _PledgeNow(TypedDict):
    share_ratio: float
    """Its part of all pledges."""
    age_seconds: int


_OfPledges = TypedDict("_OfPledges", {"from": str})


class PledgesDocument(_OfPledges):
    """Pledges that a cycle would use now."""

    now: int
    """Unix seconds."""
    seconds: float
    """Time that the source took."""
    problem: Optional[str]
    """Why they cannot be had."""
    warnings: list[str]
    notes: list[str]
    pledges: list[Annotated[Data, fields(Pledge, _PledgeNow, name="PledgeRow")]]


class PageReportDocument(tools.ReportDocument):
    """The page that was written, and its numbers."""

    page: str
    """Path."""


# ---- ledger


class LedgerInfoDocument(TypedDict):
    """Numbers of the ledger."""

    path: str
    cycles: int
    complete_cycles: int
    imported_cycles: int
    first_at: Optional[int]
    """Unix seconds; null if it is empty."""
    last_at: Optional[int]
    """Unix seconds."""
    first_cycle_with_nodes: Optional[int]
    """Number of the first cycle whose nodes are still there."""
    bytes: int
    broken: list[str]
    """Files of broken ledgers that were put aside."""


_What = TypedDict("_What", {"what": str})  # noqa: UP013 - a key, and no name


class LedgerExportDocument(_What):
    """Result of an export."""

    file: str
    format: str
    rows: int


class LedgerForgetDocument(TypedDict):
    """Result of `sharectl ledger forget`."""

    path: str
    cycles: int
    """Removed."""


class LedgerCheckDocument(TypedDict):
    """Result of `sharectl ledger check`."""

    path: str
    problems: list[str]


class _Path(TypedDict):
    path: str
    """The ledger."""


# ---- check, explain codes


class _Checked(TypedDict):
    checks: list[Annotated[Data, fields(Check)]]
    """All that were made."""
    findings: list[Annotated[Data, fields(Finding)]]


class ConfigurationDocument(TypedDict):
    """Result of `sharectl check config`."""

    valid: bool
    problems: list[str]
    """Of the file, or of this machine."""
    recommendations: list[str]
    config: Optional[dict[str, Any]]
    """The configuration with its defaults, as docs/configuration.md has it; null if not valid."""


class SnippetsDocument(_Checked):
    """Result of `sharectl check snippets`."""

    files: list[str]
    """Files that were read."""
    made: dict[str, str]
    """Knob -> its value by these files."""


class PoliciesDocument(_Checked):
    """Result of `sharectl consumption check`."""

    slots: list[str]
    """Slots with a policy."""
    weights: dict[str, Optional[float]]
    """Slot → SLOT_WEIGHT without claims, the number of claims of a model; null if unknown."""


class PoolDocument(_Checked):
    """Result of `sharectl check pool`."""

    states: dict[str, str]
    """Check -> ok, warn, fail, unknown or ignored."""
    evidence: dict[str, str]
    """Check -> facts that it goes by."""


class CodesDocument(TypedDict):
    """Every code of a reason."""

    families: dict[str, str]
    """Family -> what its codes are about."""
    codes: dict[str, dict[str, str]]
    """Family -> code -> its sentence."""


class ShippedDocument(TypedDict):
    """Names for `sharectl simulate`, each with its summary."""

    scenarios: dict[str, str]
    strategies: dict[str, str]


DOCUMENTS: Mapping[str, Union[type, Fields]] = {
    "snapshot": report.SnapshotDocument,
    "errors": report.ErrorsDocument,
    "plan": report.PLAN,
    "plan_diff": report.PlanDiffDocument,
    "published": PublishedDocument,
    "cycle": CycleDocument,
    "disabled": SwitchedOffDocument,
    "enabled": SwitchedOnDocument,
    "status": StatusDocument,
    "pledges": PledgesDocument,
    "explain_group": report.ExplainGroupDocument,
    "explain_node": report.EXPLAIN_NODE,
    "explain_cycle": report.ExplainCycleDocument,
    "explain_job": report.ExplainJobDocument,
    "codes": CodesDocument,
    "replay": report.ReplayDocument,
    "report": PageReportDocument,
    "ledger": LedgerInfoDocument,
    "ledger-export": LedgerExportDocument,
    "ledger-import": fields(Imported, _Path),
    "ledger-forget": LedgerForgetDocument,
    "ledger-check": LedgerCheckDocument,
    "config": ConfigurationDocument,
    "snippets": SnippetsDocument,
    "pool": PoolDocument,
    "consumption_check": PoliciesDocument,
    "consumption-cost": tools.ConsumptionCostDocument,
    "consumption-capacity": tools.ConsumptionCapacityDocument,
    "simulation": tools.SimulationDocument,
    "simulation_names": ShippedDocument,
    "policy": fields(Policy),
    "tune": tools.TuneDocument,
    "cadence": tools.CadenceDocument,
}
"""Kind of a document -> its keys."""

VERBS: Mapping[str, tuple[str, ...]] = {
    "snapshot": ("snapshot",),
    "errors": ("errors",),
    "plan": ("plan", "plan_diff"),
    "publish": ("published", "plan"),
    "cycle": ("cycle",),
    "disable": ("disabled",),
    "enable": ("enabled",),
    "status": ("status",),
    "pledges": ("pledges",),
    "explain group": ("explain_group",),
    "explain node": ("explain_node",),
    "explain cycle": ("explain_cycle",),
    "explain job": ("explain_job",),
    "explain codes": ("codes",),
    "replay": ("replay",),
    "report": ("report",),
    "ledger info": ("ledger",),
    "ledger export": ("ledger-export",),
    "ledger import": ("ledger-import",),
    "ledger forget": ("ledger-forget",),
    "ledger check": ("ledger-check",),
    "check config": ("config",),
    "check snippets": ("snippets",),
    "check pool": ("pool",),
    "consumption check": ("consumption_check",),
    "consumption cost": ("consumption-cost",),
    "consumption capacity": ("consumption-capacity",),
    "simulate": ("simulation", "simulation_names"),
    "learn": ("policy",),
    "tune": ("tune",),
    "cadence": ("cadence",),
}
"""Verb with ``--json`` -> kinds that it prints."""
