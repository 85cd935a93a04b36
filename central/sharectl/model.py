"""Records that the rooms exchange. Frozen, with units in the names.

A *group* is the longest configured name that AccountingGroup begins with, part by part, in lower
case; all else is `OTHER`. A *node* is named by its short host name, or by its full name where two
nodes share a short one. Points in time are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Optional

from sharectl.settings import setting

MAX_HS06 = 1e12
"""A thousand times the power of all the world's pools: beyond it, a unit was mistaken."""

SCHEMA_VERSION = 1
"""Version of the JSON that commands print and read."""

OTHER = "other"
"""Where the jobs of groups without a pledge are counted. Never written into a ClassAd."""

DEFAULT_NODE_HS06 = 400.0
"""Power of a node that publishes none, HS06 (seed)."""

DEFAULT_NODE_CORES = 40
"""Cores of a node whose number is unknown (seed)."""


Kind = tuple[str, int]
"""Group, and cores that its jobs request."""


class RunningJobs(NamedTuple):
    """Jobs of one group, node and size that run now; cores, seconds and memory of each.

    A tuple: a look at a large pool makes tens of thousands of them.
    """

    node: str
    group: str
    cores: int
    hs06_per_core: float
    seconds: int
    jobs: int = 1
    memory_mib: int = 0
    """0 if unknown."""


@dataclass(frozen=True)
class PendingJobs:
    """Jobs of one group and size that wait; cores and memory that each requests."""

    group: str
    cores: int
    jobs: int
    memory_mib: int = 0
    """0 if unknown."""
    placeable: bool = True
    """Whether some node could run them if it were empty; if not, they are no demand."""

    @property
    def kind(self) -> Kind:
        """Group and cores."""
        return self.group, self.cores


@dataclass(frozen=True)
class OtherJobs:
    """Jobs of no configured group whose AccountingGroup begins alike."""

    name: str
    """First part of their AccountingGroup, as users write it; empty without one."""
    cores: int
    pending_jobs: int


@dataclass(frozen=True)
class WaitTimes:
    """Waiting times of a number of jobs that are alike, from their submission on."""

    jobs: int
    median_seconds: int
    longest_seconds: int
    sampled: bool = False
    """Whether not all such jobs were looked at: some may wait longer."""


@dataclass(frozen=True)
class JobWaits:
    """Waiting times of the jobs of one group and size."""

    group: str
    cores: int
    pending: Optional[WaitTimes] = None
    """Of jobs that wait; None if unknown, or if no job waits."""
    started: Optional[WaitTimes] = None
    """Of jobs that have started in the last hour and still run; None if unknown or none."""


@dataclass(frozen=True)
class UnplaceableJobs:
    """Pending jobs of one group and size that no node could run if it were empty."""

    group: str
    cores: int
    jobs: int
    example: str = ""
    """One of them, SCHEDD#CLUSTER.PROC; empty if unknown."""
    later: bool = False
    """True if only clauses on time keep them out: they are demand once these are true."""


IN_SLOTS = (2, 6, 7)
"""JobStatus of jobs that hold a slot: running, sending their output, suspended."""
SCHEDD_SOURCE = "schedd "
"""How the names of schedds among the sources begin."""


@dataclass(frozen=True)
class Source:
    """How one daemon answered."""

    name: str
    """``collector``, ``schedd ap-1.example.org`` …"""
    seconds: float
    """Time that the answer took, or was waited for."""
    problem: Optional[str] = None
    """Why there is no answer; None if there is one."""


@dataclass(frozen=True)
class ClosedTo:
    """Waiting jobs of a group that a node refuses, whatever cores and memory are free there."""

    group: str
    sizes: tuple[int, ...]
    """Cores that they request."""
    clause: str
    """Part of the node's START, or of the jobs' Requirements, that is not true."""


@lru_cache(maxsize=1024)
def _kinds_of(closed: tuple[ClosedTo, ...]) -> frozenset[Kind]:
    """All kinds; many nodes are closed to the same ones."""
    return frozenset((jobs.group, cores) for jobs in closed for cores in jobs.sizes)


@dataclass(frozen=True)
class Node:
    """An execute point as the collector knows it."""

    name: str
    machine: str
    """Full host name."""
    cores: int
    hs06_per_core: float
    controlled: bool
    memory_mib: int = 0
    """0 if unknown."""
    reserved: bool = False
    """Whether the operator keeps it free of targets, controlled or not."""
    draining: bool = False
    obeyed_sequence: Optional[int] = None
    """Sequence of the plan whose target the node acts on; 0: no target; None: not published."""
    refusal: Optional[str] = None
    """Reason code of job_ctl if the node has refused a plan; None if not, or not published."""
    deaf: Optional[str] = None
    """Why no target acts there, one of `sharectl.plan.nodes.DEAF`; None if one can, or unknown."""
    power_assumed: bool = False
    """Whether its power is that of the configuration, because it publishes no t1_wn_hs06."""
    multicore_only: bool = False
    """Whether all of its slots publish t1_MulticoreOnly = True: no single-core job starts."""
    hot: bool = False
    """True if it publishes t1_overheat = True: no job starts."""
    several_slots: bool = False
    """Whether it has several partitionable slots, each of which would compare its own cores."""
    grace_cores: int = 0
    """Idle cores that grace keeps for multicore jobs."""
    closed: tuple[ClosedTo, ...] = ()
    """Waiting jobs that it refuses for a reason that is neither a resource nor sharectl's."""

    @property
    def closed_kinds(self) -> frozenset[Kind]:
        """Kinds of ``closed``."""
        return _kinds_of(self.closed)

    def admits(self, kind: Kind) -> bool:
        """True unless it is closed to jobs of that kind."""
        return not self.closed or kind not in self.closed_kinds


@dataclass(frozen=True)
class Snapshot:
    """Jobs and nodes at one look at the pool."""

    taken_at: int
    nodes: tuple[Node, ...]
    running: tuple[RunningJobs, ...]
    pending: tuple[PendingJobs, ...]
    sources: tuple[Source, ...] = ()
    collector_started_at: int = 0
    """0 if unknown."""
    others: tuple[OtherJobs, ...] = ()
    """Largest parts of `OTHER`: the first by cores held, then by pending jobs."""
    waits: tuple[JobWaits, ...] = ()
    """Waiting times by group and cores, where known."""
    unplaceable: tuple[UnplaceableJobs, ...] = ()
    """Those of ``pending`` that are not placeable, by group and size, the most jobs first."""
    untried: Optional[str] = None
    """Why some pending jobs were not tried on the nodes, and count as placeable; or None."""
    over_budget: Optional[str] = None
    """Number of jobs that cost too much to be tried, which are not placeable, as words; or None."""

    @property
    def schedds(self) -> int:
        """Number of schedds that were asked."""
        return sum(source.name.startswith(SCHEDD_SOURCE) for source in self.sources)

    @property
    def problems(self) -> tuple[Source, ...]:
        """Sources that did not answer."""
        return tuple(source for source in self.sources if source.problem is not None)

    @property
    def complete(self) -> bool:
        """True if every source answered: only then may targets change."""
        return not self.problems


@dataclass(frozen=True)
class GroupUsage:
    """Cores, power and pending jobs of one group."""

    single_cores: int = 0
    """Cores held by jobs of one core."""
    multi_cores: int = 0
    power_hs06: float = 0.0
    pending_single_jobs: int = 0
    pending_multi_jobs: int = 0
    pending_by_cores: Mapping[int, int] = field(default_factory=dict)
    """Cores requested -> jobs that wait."""
    unplaceable_by_cores: Mapping[int, int] = field(default_factory=dict)
    """Cores requested -> those of them that no node could run if it were empty."""

    @property
    def cores(self) -> int:
        """All cores held."""
        return self.single_cores + self.multi_cores

    @property
    def demand_by_cores(self) -> dict[int, int]:
        """Cores requested -> jobs that wait and that some node could run, more than 0."""
        waiting = {
            cores: jobs - self.unplaceable_by_cores.get(cores, 0)
            for cores, jobs in self.pending_by_cores.items()
        }
        return {cores: jobs for cores, jobs in waiting.items() if jobs > 0}


@dataclass(frozen=True)
class GroupError:
    """One group's row of ``shares_Error.log``, before it is rounded."""

    group: str
    pledge_hs06: float
    error_cores: float
    """DC: cores held, less the pledge's share of all cores held."""
    error_hs06: float
    """DHS: power used, less the pledge's share of all power used."""
    power_minus_pledge_hs06: float
    """DPHS."""
    usage: GroupUsage


@dataclass(frozen=True)
class ShadowMove:
    """Output that the shadow law had for a group; nothing followed it."""

    law: str
    output_hs06: float
    """As of `GroupControl`."""
    acted: tuple[str, ...] = ()


@dataclass(frozen=True)
class GroupControl:
    """Outcome of one group's controller in one cycle."""

    error: GroupError
    setpoint_hs06: float
    """Power that the group is entitled to now."""
    control_error_hs06: float
    """Power used less the setpoint; its law got the foreseen too, or 0: ``acted`` says so."""
    output_hs06: float
    """Power to move: above 0 taken from the group, below 0 given to it; 0 in the deadband."""
    law: str = "latest"
    """One of `sharectl.control.laws.STEPS`."""
    state: Mapping[str, float] = field(default_factory=dict)
    """State for the next cycle: name with unit -> number."""
    acted: tuple[str, ...] = ()
    """Codes of the bounds and changes of the output (deadband, no demand …), in order."""
    shadow: Optional[ShadowMove] = None
    """None without a shadow law that can be loaded, and of a group with groups within it."""
    due_hs06: Optional[float] = None
    """Power that is due to it, as of `sharectl.shares.errors`; None if unknown."""
    shortfall_hs06: Optional[float] = None
    """Power that is due and that it, or each group within it, does not use; None if unknown."""

    @property
    def group(self) -> str:
        """Its name."""
        return self.error.group


@dataclass(frozen=True)
class PlanLimits:
    """Limits of a plan."""

    multicore_cores: int = setting(8, least=2, most=1024)
    """Cores taken on a node: with `pair` always, for jobs up to this size; with `many` at most, for
    single-core jobs."""
    deadband_hs06: Optional[float] = setting(None, least=0, most=MAX_HS06)
    """For errors and controllers' outputs up to this size no target begins. null: half a block of
    `multicore_cores`; in a pool of n > 64 blocks, sqrt(n) / 16 blocks."""
    max_nodes: Optional[int] = setting(None, least=1, most=1_000_000)
    """Most nodes with targets at once."""
    max_target_ratio: Optional[float] = setting(None, key="max_target_share", kind="share")
    """Most of the pool's nodes with targets, such as `"25%"`, rounded down."""
    max_changed_nodes: Optional[int] = setting(None, least=1, most=1_000_000)
    """Most nodes whose target a cycle adds, alters or removes. Targets that must go (node gone or
    not controlled, group not configured) go at once and count."""
    dwell_seconds: int = setting(0, least=0, most=604_800)
    """Least time that a published target stays as it is, unless it must go."""


@dataclass(frozen=True)
class HttpsWay:
    """File on the site's web server, fetched after writing and in ``status``."""

    file: Path = setting(writes=True)
    """File below the document root, replaced by rename."""
    url: str = setting(kind="url")
    """Address that nodes fetch, `https://HOST[:PORT]/PATH`."""
    ca_file: Optional[Path] = setting(None)
    """Trusted certificates, PEM; null: those of this machine."""
    deadline_seconds: float = 20.0
    """Time for the server: it has one small file, and a cycle waits for it."""


@dataclass(frozen=True)
class CollectorWay:
    """Ads in the pool's collectors, replaced at every cycle."""

    identity: Optional[str] = setting(None, kind="identity")
    """Identity of sharectl in the collectors, the only one that nodes believe (docs/transports.md);
    null only reports it."""
    deadline_seconds: float = 20.0
    """Time for each collector, as `PoolConfig.collector_deadline_seconds` is by default."""


@dataclass(frozen=True)
class PoolConfig:
    """Questions to daemons."""

    name: Optional[str] = setting(None, kind="pool name")
    """Name of the pool: nodes that are told one refuse targets of others (docs/transports.md)."""
    collector: Optional[str] = setting(None, kind="daemon")
    """Collector; null: COLLECTOR_HOST of this machine."""
    schedds: tuple[str, ...] = setting((), kind="daemon")
    """Schedds that must answer, beside all that the collector knows."""
    demand: str = setting("placeable", choices=("placeable", "pending"))
    """`placeable` ignores pending jobs that no node could run, were it empty; `pending` counts
    all, and takes all nodes for open (docs/plans.md)."""
    collector_deadline_seconds: float = setting(20.0, above=0, most=3600)
    """Time for the collector."""
    schedd_deadline_seconds: float = setting(60.0, above=0, most=3600)
    """Time for each schedd; they are asked together."""
    default_node_hs06: float = setting(DEFAULT_NODE_HS06, above=0, most=1e6)
    """Power of a node without `t1_wn_hs06`."""


@dataclass(frozen=True)
class Way:
    """Way of targets to the nodes: one of the keys."""

    file: Optional[Path] = setting(None, writes=True)
    """File that nodes share, or that is copied to them; replaced by rename. A link is replaced, a
    device or folder refused."""
    https: Optional[HttpsWay] = setting(None)
    """File on a web server."""
    collector: Optional[CollectorWay] = setting(None)
    """Ads in the pool's collectors; `{}` for the defaults."""


@dataclass(frozen=True)
class Target:
    """Order of one node: a line of ``sharectl.txt``."""

    node: str
    held_back: str
    """Group that may hold no more than the cap (g_r)."""
    cap_cores: int
    helped: str
    """Group that is let in (g_p)."""
    request_cores: int
    """Cores that a job of the helped group must request; single-core jobs share."""

    @property
    def kind(self) -> Kind:
        """Helped group, and cores that its jobs request."""
        return self.helped, self.request_cores


@dataclass(frozen=True)
class Standing:
    """A target that was published, and since when it is as it is."""

    target: Target
    since: int
    jobs: Optional[int] = None
    """Jobs that it is for, or larger ones of their group, on the node when it began; None if they
    were not counted."""


@dataclass(frozen=True)
class LimitNote:
    """A limit that acted."""

    code: str
    """One of `sharectl.plan.limits.LIMITS`."""
    nodes: int
    """Nodes that it kept from what the errors call for, >= 1."""


@dataclass(frozen=True)
class Disabled:
    """Order of an operator that switches sharectl off."""

    reason: str
    who: str
    since: int
    until: Optional[int] = None
    """Time from which it is on again by itself; None: until somebody enables it."""

    def in_force_at(self, now: int) -> bool:
        """True if it still holds."""
        return self.until is None or now < self.until


@dataclass(frozen=True)
class Plan:
    """Data that a cycle publishes, the same for ``--dry-run`` and for a real run."""

    sequence: int
    generated_at: int
    valid_until: int
    """From then on every node acts as if there were no plan."""
    groups: tuple[str, ...]
    """The configured groups."""
    targets: tuple[Target, ...]
    reason: str
    """One of `sharectl.plan.plan.REASONS`: why these targets, or why none."""
    held_back: Optional[str] = None
    helped: Optional[str] = None
    limits: tuple[LimitNote, ...] = ()
    multicore_pending: Optional[bool] = None
    """True if multicore jobs wait that some node could run, of a group not far over its share:
    grace needs them. None if unknown."""
