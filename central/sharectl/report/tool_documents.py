"""Documents of the page, and of the tools beside the loop: cadence, consumption, simulate, tune.

As `sharectl.report.documents`.
"""

from __future__ import annotations

from typing import Annotated, Optional, TypedDict

from sharectl.cadence.choice import Beside, IntervalCost
from sharectl.cadence.filling import Filling
from sharectl.consumption.cost import Match, PricedJobs, PricedSlots
from sharectl.report.documents import Data, Spreads, WaitsRow, fields
from sharectl.shares.quotas import Group
from sharectl.sim.answers import Figures
from sharectl.sim.records import Outcome
from sharectl.sim.tuning import Candidate, Objective, Value

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


class LimitCount(TypedDict):
    """A limit that acted."""

    code: str
    """Code of the family `limit`."""
    says: str
    nodes: int


class GroupDecision(TypedDict):
    """Decision about a group."""

    group: str
    setpoint_hs06: float
    """Power that the group is entitled to."""
    error_hs06: float
    """Power used less the setpoint."""
    output_hs06: float
    """Power to move: above 0 taken from the group, below 0 given to it."""
    reason: Optional[str]
    """Code of the family `group`."""
    says: str


class PairOfGroups(TypedDict):
    """Targets by which one group gives cores to another."""

    held_back: str
    helped: str
    request_cores: int
    nodes: int


class NodeClass(TypedDict):
    """Nodes that have the same cores and power a core."""

    cores: int
    """Of a node."""
    hs06_per_core: float
    nodes: int
    controlled: int
    """Nodes that may have targets."""
    targets: int
    draining: int
    """Nodes that are being drained."""
    all_cores: int
    idle_cores: int
    hs06: float
    """Power of all."""


class IdleCause(TypedDict):
    """Cores that no job holds, for one cause."""

    cause: str
    """target, grace, draining, other or unknown."""
    cores: int


class LastCycle(TypedDict):
    """The last complete cycle."""

    taken_at: int
    """Unix seconds."""
    sequence: Optional[int]
    observed: bool
    """True with mode: observe: targets were planned, and not published."""
    reason: Optional[str]
    """Code of the family `plan`."""
    says: str
    limits: list[LimitCount]
    groups: list[GroupDecision]
    targets: list[PairOfGroups]
    node_classes: list[NodeClass]
    """The class with the most power first."""
    idle_cores: list[IdleCause]
    waits: list[WaitsRow]


class ReportDocument(TypedDict):
    """Numbers of the page."""

    made_at: int
    """Unix seconds."""
    deadband_hs06: float
    periods: list[PeriodSummary]
    """One, or two to compare, the earlier first."""
    last_cycle: Optional[LastCycle]
    """Null without a complete cycle."""


# ---- cadence


class RunTimesRow(TypedDict):
    """Run times of jobs."""

    name: str
    jobs: Optional[int]
    """Null of a law."""
    mean_seconds: float
    """Jobs counted by their cores."""


class _OfDay(TypedDict):
    cycles_per_day: float
    idle_core_hours_per_day: Optional[float]
    """With one job a claim; null if the cores are unknown."""
    idle_core_hours_per_day_claims_reused: Optional[float]


class _Fill(TypedDict, total=False):
    fill_seconds: Optional[float]
    """With --matches: time to fill the empty pool; null: never."""


class CadenceChoice(TypedDict):
    """The interval to use, with its knobs."""

    NEGOTIATOR_INTERVAL: int
    """Seconds."""
    NEGOTIATOR_CYCLE_DELAY: int
    """Seconds."""
    NEGOTIATOR_MIN_INTERVAL: int
    """Seconds."""
    by_column: str
    """Column of the table that it goes by."""
    loading_factor: float
    """Part of their time that slots work."""
    idle_core_hours_per_day: Optional[float]
    negotiating_ratio: Optional[float]
    """Part of the time that the negotiator negotiates."""
    beside_default: Annotated[Data, fields(Beside)]
    """Cost less that of HTCondor's default."""
    why: list[str]


class CadenceDocument(TypedDict):
    """Cost of negotiation intervals."""

    source: str
    """Origin of the run times."""
    claim_worklife_seconds: float
    """Below 0: claims do not age."""
    cores: Optional[int]
    cycle_duration_seconds: Optional[float]
    """Longest cycle; null if unknown."""
    run_times: RunTimesRow
    filling: Optional[Annotated[Data, fields(Filling)]]
    """Null without --matches."""
    intervals: list[Annotated[Data, fields(IntervalCost, _OfDay, _Fill, name="IntervalRow")]]
    recommendation: Optional[CadenceChoice]
    """Null if none can be given; the notes say why."""
    notes: list[str]


# ---- consumption


class _SlotsRow(TypedDict):
    count: int
    """Slots alike."""
    state: Optional[str]
    """State in which they have no claims to give; else null."""


class _JobsRow(TypedDict):
    accounting_group: Optional[str]


class _MatchRow(TypedDict):
    slots: int
    """Number in the list of slots, from 0."""
    jobs: int
    """Number in the list of jobs, from 0."""
    fits_in_a_cycle: int
    """Matches that the negotiator makes in one cycle."""
    refused: list[str]
    """Reasons against it."""


class _GroupCost(TypedDict):
    jobs: int
    jobs_without_slot: int
    """Jobs that no slot takes."""
    cost: Optional[float]
    """Of all others, each where it costs least; null if unknown."""
    cost_differs: bool
    """True if one costs more on another slot."""


class _Capacity(TypedDict):
    quota_group: Optional[str]
    slots: int
    """Slots that take such a job."""
    claims: int
    """Claims on all slots."""
    claims_within_quota: Optional[int]
    """Null without a group or quota."""


JobsRow = Annotated[Data, fields(PricedJobs, _JobsRow, name="JobsRow")]


class _PricedEnd(TypedDict):
    notes: list[str]
    empty: bool
    """True if slots and groups are as when nothing runs."""
    missing: list[str]
    """Problems of daemons that did not answer."""


class _GroupCosts(TypedDict, total=False):
    groups: list[Annotated[Data, fields(Group, _GroupCost, name="GroupCostRow")]]
    """With --group: sums by accounting group."""


class ConsumptionCostDocument(_PricedEnd, _GroupCosts):
    """Share of slots that jobs take, and its cost in weighted slots."""

    slots: list[Annotated[Data, fields(PricedSlots, _SlotsRow, name="SlotsRow")]]
    jobs: list[JobsRow]
    matches: list[Annotated[Data, fields(Match, _MatchRow, name="MatchRow")]]


class ConsumptionCapacityDocument(_PricedEnd):
    """Claims that jobs can have."""

    jobs: list[Annotated[Data, fields(PricedJobs, _JobsRow, _Capacity, name="CapacityRow")]]


# ---- simulate and tune


class RunRow(TypedDict):
    """One run."""

    seed: int
    seconds: float
    """Simulated, after the warm-up."""
    complete: bool
    note: Optional[str]


class _StrategyRow(TypedDict):
    strategy: str
    summary: str
    complete: bool
    runs: list[RunRow]


class _Outcomes(TypedDict, total=False):
    outcomes: list[Annotated[Data, fields(Outcome)]]
    """In outcome.json alone: every run with its figures over time."""


class SimulationDocument(_Outcomes):
    """Figures of strategies on one scenario."""

    scenario: str
    days: float
    """Time that was to be simulated of each, after the warm-up."""
    seeds: list[int]
    complete: bool
    """True if each run ended."""
    notes: list[str]
    """Jobs that are left out or never start, and attributes that START reads and nobody has."""
    pool_cores: Optional[int]
    pool_hs06: Optional[float]
    strategies: list[Annotated[Data, Spreads((Figures, _StrategyRow), name="StrategyRow")]]


SettingsRow = dict[str, Value]


class _CandidateRow(TypedDict):
    settings: SettingsRow
    """Key -> value; empty of the default."""


CandidateRow = Annotated[Data, fields(Candidate, _CandidateRow, name="CandidateRow")]


class TuneHeading(TypedDict):
    """Simulations of a search."""

    scenario: str
    strategy: str
    days: float
    seeds: list[list[int]]
    """Seeds of the search, and of the confirmation."""
    notes: list[str]
    """Jobs that are left out or never start, and attributes that START reads and nobody has."""


class TuneDocument(TuneHeading):
    """Outcome of a search for settings."""

    complete: bool
    """True if it was not interrupted."""
    objective: Annotated[Data, fields(Objective)]
    parameters: list[str]
    """As --over takes them."""
    tried: int
    """Settings that were tried."""
    problems: list[str]
    """Why settings have no score."""
    default: CandidateRow
    best: list[CandidateRow]
    """Best first."""
    advised: Optional[SettingsRow]
    """Settings to use; null: keep the default."""
    importance: dict[str, float]
    """Key -> its part in the difference of good settings from all."""
