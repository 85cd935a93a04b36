"""Documents with schemas that the verbs print with ``--json``: kind -> keys.

Tests make docs/json.md and docs/schemas of it, and hold every document that they see against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Optional, TypedDict, Union

from sharectl.check.findings import Check, Finding
from sharectl.model import Disabled, Plan
from sharectl.report import documents as report
from sharectl.report.documents import Data, Fields, fields

DisabledRow = Annotated[Data, fields(Disabled)]

# ---- cycle, status


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


# ---- report


class PageReportDocument(report.ReportDocument):
    """The page that was written, and its numbers."""

    page: str
    """Path."""


# ---- check


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


DOCUMENTS: Mapping[str, Union[type, Fields]] = {
    "snapshot": report.SnapshotDocument,
    "errors": report.ErrorsDocument,
    "plan": report.PLAN,
    "cycle": CycleDocument,
    "status": StatusDocument,
    "explain_job": report.ExplainJobDocument,
    "report": PageReportDocument,
    "config": ConfigurationDocument,
    "snippets": SnippetsDocument,
    "pool": PoolDocument,
    "consumption_check": PoliciesDocument,
}
"""Kind of a document -> its keys."""
