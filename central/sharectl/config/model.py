"""Sections of the configuration file: keys, types, bounds, defaults and meaning.

``docs/configuration.md`` is made from them. Records of the law are sections themselves, or are
inline in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from sharectl.config.groups import GroupConfig, SubgroupConfig, tree_of
from sharectl.control.laws import GAP_SECONDS, Control
from sharectl.control.setpoints import CarryOver, Entitlement
from sharectl.files.yaml import ValuePath
from sharectl.ledger.data import Keep
from sharectl.model import DEFAULT_NODE_CORES, DEFAULT_NODE_HS06, PlanLimits
from sharectl.plan.nodes import ALL_NODES, Controlled
from sharectl.plan.settings import STRATEGIES, Assigning, GiveUp
from sharectl.settings import inline, setting
from sharectl.shares.groups import GroupTree
from sharectl.shares.pledges import SOURCES

STATE_DIRECTORY = Path("/var/lib/sharectl")
TARGETS_FILE = STATE_DIRECTORY / "sharectl.txt"
"""Default place of targets; with another ``state_directory``, there."""
CRIC_COPY = "pledges-cric.json"
KNOBS_COPY = "pledges-negotiator.json"
OWN_FILES = ("lock", "state.json", "places.json", "disabled", CRIC_COPY, KNOBS_COPY)
"""Files in ``state_directory``, besides the folder ``ledger``."""


@dataclass(frozen=True)
class NegotiatorPledgesConfig:
    """Pledges from the negotiator's group quotas, nested ones too."""

    file: Optional[Path] = setting(None)
    """File with the negotiator's knobs, such as `condor_config_val -dump -expand GROUP_` prints,
    instead of the negotiator itself; null: it is asked."""
    name: Optional[str] = setting(None, kind="daemon")
    """Name of the negotiator, where the collector knows several; null for the only one."""
    deadline_seconds: float = setting(20.0, above=0, most=600)
    """How long the collector and the negotiator may take together."""
    max_age_seconds: float = setting(86400.0, least=0, most=2_592_000)
    """How long what it said is used while it does not answer: it is busy while it negotiates."""
    pool_cores: Optional[float] = setting(None, above=0, most=1e9)
    """Weighted slots that dynamic quotas are shares of; null for the cores that the collector
    knows."""
    weight_hs06: Optional[float] = setting(None, above=0, most=1e6)
    """Power that a weighted slot stands for; null for the mean power of a core in the pool."""


@dataclass(frozen=True)
class CricPledgesConfig:
    """Pledges from WLCG CRIC, over HTTPS, with a copy for when it does not answer."""

    federations: tuple[str, ...] = setting(kind="cric name", least=1)
    """Federations whose pledges this pool delivers, by name or accounting name as CRIC has them;
    the pledges of several are added up."""
    federation_ratio: float = setting(1.0, above=0, most=1)
    """Part of the federations' pledges that this pool delivers, where other sites deliver the
    rest."""
    url: str = setting(
        "https://wlcg-cric.cern.ch/api/core/federation/query/?json&start_year={previous_year}",
        kind="cric url",
    )
    """Address of the answer. `{year}` stands for the year of the pledges, which begins in April,
    and `{previous_year}` for the one before."""
    ca_file: Optional[Path] = setting(None)
    """Certificates, PEM, by which the server is known; null for `ca_directory`, or for those that
    this machine trusts."""
    ca_directory: Optional[Path] = setting(None)
    """Folder of hashed certificates, such as `/etc/grid-security/certificates`; null for
    `ca_file`."""
    proxy: Optional[str] = setting(None, kind="proxy")
    """Web proxy, `http://HOST:PORT`; the environment is not looked at."""
    deadline_seconds: float = setting(30.0, above=0, most=600)
    """How long the server may take in all."""
    refresh_seconds: int = setting(21600, least=60, most=2_592_000)
    """Age of the copy from which the server is asked again; before that it is not."""
    max_age_days: float = setting(30.0, above=0, most=366)
    """Age from which a copy is not used any more: cycles then change nothing until the server
    answers."""
    max_change_factor: float = setting(2.0, above=1, most=1000)
    """A pledge that rises or falls by more than this is not used until `sharectl pledges
    --confirm`; the one before it stays."""
    copy_file: Optional[Path] = setting(None)
    """File of the copy; null for `pledges-cric.json` in `state_directory`."""


@dataclass(frozen=True)
class PledgesConfig:
    """Source of the pledges. A pledge that is written in `groups` goes before any other."""

    source: str = setting("yaml", key="from", choices=tuple(SOURCES))
    """`yaml`: each group has its pledge under `groups`. `negotiator`: its group quotas. `cric`:
    WLCG CRIC. Only groups that are listed under `groups` are steered, whatever the source knows."""
    negotiator: NegotiatorPledgesConfig = setting(NegotiatorPledgesConfig())
    """How the negotiator is asked."""
    cric: Optional[CricPledgesConfig] = setting(None)
    """How CRIC is asked; needed with `from: cric`."""


@dataclass(frozen=True)
class NodesConfig:
    """Execute points that sharectl may steer."""

    controlled: Controlled = setting(ALL_NODES, kind="nodes")
    """Nodes that may get targets. Host patterns (one, or a list; `*`, `?`, `[0-9]`; matched without
    case on the short or the full host name), a share such as `"50%"` (the nodes whose names have
    the lowest SHA-256, so that the choice is stable; `"0%"` only measures), or a ClassAd constraint
    on the machine ad. Where a name could be both, say which: `{hosts: [GPU]}`, `{constraint: GPU}`,
    `{share: "50%"}`."""
    reserved: Optional[Controlled] = setting(None, kind="reserved nodes")
    """Nodes that never get targets, whatever `controlled` says, such as those that tests or an
    experiment need as they are; in the same forms. null reserves none."""
    job_ctl_stale_seconds: int = setting(2340, least=30, most=86400)
    """Age of a node's last run of `job_ctl`, by the node's own clock, from which `status` calls it
    stale where the node does not publish `t1_JobCtlStaleSeconds`, from when START does; three
    periods of 13 minutes."""


@dataclass(frozen=True)
class ControlConfig:
    """Strength of steering."""

    strategy: str = setting("many", choices=tuple(STRATEGIES))
    """How groups are brought together: `many` lets every group that is over its share give to every
    one that is under it, each in its own request sizes, up to the largest node; `pair` takes from
    the one group and gives to the other that are furthest off, and counts larger requests as 8
    cores (or `multicore_cores`)."""
    assigning: Assigning = inline(Assigning())
    give_up: GiveUp = inline(GiveUp())
    limits: PlanLimits = inline(PlanLimits())
    acting: Control = inline(Control())
    entitlement: Entitlement = inline(Entitlement())
    gap_seconds: float = setting(GAP_SECONDS, above=0, most=86400)
    """Longest interval between two complete cycles that integrals and `carry_over` count: of a
    longer one nobody knows what the errors were; three periods of 17 minutes."""
    incomplete: str = setting("keep", choices=("keep", "withdraw"))
    """When a schedd or the collector did not answer: `keep` leaves the published targets to run out
    by their own validity, `withdraw` publishes a plan without targets at once."""


@dataclass(frozen=True)
class PoolConfig:
    """Questions to the pool's daemons."""

    name: Optional[str] = setting(None, kind="pool name")
    """Name of the pool, where nodes are told one (docs/transports.md): they refuse the targets of
    another pool."""
    collector: Optional[str] = setting(None, kind="daemon")
    """Address of the collector; null for COLLECTOR_HOST of this machine's HTCondor."""
    mode: str = setting("counted", choices=("counted", "jobs"))
    """`counted` takes running cores from the collector and lets each schedd count its pending jobs;
    `jobs` fetches every job. Both give the same table."""
    schedds: tuple[str, ...] = setting((), kind="daemon")
    """Schedds that must answer even if the collector does not know them. All that the collector
    knows are asked in any case."""
    demand: str = setting("placeable", choices=("placeable", "pending"))
    """`placeable` tries the pending jobs on the ads of the nodes, as if these were empty: jobs that
    no node could run are no demand. `pending` counts every pending job as demand."""
    collector_deadline_seconds: float = setting(20.0, above=0, most=3600)
    """How long the collector may take."""
    schedd_deadline_seconds: float = setting(60.0, above=0, most=3600)
    """How long a schedd may take; all are asked at the same time."""
    default_node_hs06: float = setting(DEFAULT_NODE_HS06, above=0, most=1e6)
    """Power of a node that does not publish `t1_wn_hs06`."""
    default_node_cores: int = setting(DEFAULT_NODE_CORES, least=1, most=65536)
    """Cores of a node that does not publish TotalSlotCpus."""


@dataclass(frozen=True)
class HttpsPublisherConfig:
    """Targets as a file that a web server of the site serves.

    After writing, and in ``status``, it is fetched.
    """

    file: Path = setting()
    """Where the file appears, by rename: below the server's document root."""
    url: str = setting(kind="url")
    """Where the server serves it, `https://HOST[:PORT]/PATH`: what the nodes fetch."""
    ca_file: Optional[Path] = setting(None)
    """Certificates, PEM, by which the server is known; null for those that this machine trusts."""
    deadline_seconds: float = setting(20.0, above=0, most=600)
    """How long the server may take."""


@dataclass(frozen=True)
class CollectorPublisherConfig:
    """Targets as ads in the collectors of the pool, replaced at every cycle."""

    identity: Optional[str] = setting(None, kind="identity")
    """The identity under which the collectors know sharectl, and the only one that nodes believe
    (docs/transports.md); any other is an error. null: whatever it is, it is only reported."""
    deadline_seconds: float = setting(20.0, above=0, most=600)
    """How long a collector may take; all are asked at the same time."""


@dataclass(frozen=True)
class PublisherConfig:
    """A way for targets to reach the nodes: exactly one of the keys."""

    file: Optional[Path] = setting(None)
    """Where the file of targets appears, by rename: on a file system that the nodes share, or that
    is copied to them. A symbolic link there is replaced, not followed; a device or a folder is an
    error."""
    https: Optional[HttpsPublisherConfig] = setting(None)
    """A file that a web server serves."""
    collector: Optional[CollectorPublisherConfig] = setting(None)
    """An ad a target in the pool's collectors; `{}` for the defaults."""

    def written_files(self, number: int) -> list[tuple[ValuePath, Optional[Path]]]:
        """Files that entry ``number`` writes, each after its place in the configuration."""
        return [
            (("publish", number, "file"), self.file),
            (("publish", number, "https", "file"), self.https.file if self.https else None),
        ]


@dataclass(frozen=True)
class HistoryConfig:
    """Logs of every cycle."""

    jobs_file: Path = setting(STATE_DIRECTORY / "AcctGroup_hs06.txt")
    """The jobs of the last cycle, replaced each time. By default in `state_directory`."""
    errors_log: Path = setting(STATE_DIRECTORY / "shares_Error.log")
    """The groups' errors, rows appended each time. By default in `state_directory`."""
    errors_log_max_bytes: int = setting(10 * 2**20, least=4096, most=2**40)
    """Size from which `errors_log` is rotated."""
    errors_log_keep: int = setting(10, least=1, most=1000)
    """Rotated files that are kept."""
    changes_max_bytes: int = setting(10 * 2**20, least=4096, most=2**40)
    """Size from which `ledger/changes.jsonl` in `state_directory` is rotated: who changed which
    node's target, and why."""
    changes_keep: int = setting(10, least=1, most=1000)
    """Rotated files of it that are kept."""


@dataclass(frozen=True)
class Config:
    """Everything an operator decides. Only ``groups`` has to be written."""

    groups: Mapping[str, GroupConfig] = setting()
    """Group to pledge. The name is the first part of AccountingGroup; case does not count. At least
    one pledge is above 0. `other` and `none` are reserved."""
    pledges: PledgesConfig = setting(PledgesConfig())
    """Source of the groups' pledges."""
    nodes: NodesConfig = setting(NodesConfig())
    """Execute points that may be steered."""
    control: ControlConfig = setting(ControlConfig())
    """Strength of steering."""
    pool: PoolConfig = setting(PoolConfig())
    """Questions to the pool's daemons."""
    publish: tuple[PublisherConfig, ...] = setting((PublisherConfig(file=TARGETS_FILE),), least=1)
    """Ways for targets to reach the nodes: a list of mappings with one key each."""
    signing_key_file: Optional[Path] = setting(None)
    """Keys by which `file:` and `https:` are signed (docs/transports.md); null: they are not
    signed."""
    validity_seconds: int = setting(3060, least=60, most=86400)
    """How long nodes act on targets that are not renewed; three periods of 17 minutes."""
    history: HistoryConfig = setting(HistoryConfig())
    """Logs of every cycle."""
    ledger: Keep = setting(Keep())
    """The ledger of every cycle."""
    state_directory: Path = setting(STATE_DIRECTORY)
    """Folder of the lock, and of what one cycle hands to the next."""
    lock_wait_seconds: float = setting(60.0, least=0, most=3600)
    """How long a cycle waits for one that still runs, before it leaves."""
    written: frozenset[ValuePath] = field(default=frozenset(), compare=False, repr=False)
    """Paths of the values that the file has."""

    @property
    def tree(self) -> GroupTree:
        """Groups of every level, with their pledges."""
        return tree_of(self.groups)


Keys = AbstractSet[str]
"""Keys of a section that have a value in the file."""

_PLEDGES = frozenset(("pledge_hs06", "pledge_hepscore23"))
_GROUP = "a group has exactly one pledge; write either pledge_hs06 or pledge_hepscore23"
_SUBGROUP = (
    "a subgroup has exactly one of share, pledge_hs06 and pledge_hepscore23; write one, such as "
    "share: 0.5"
)
_WAY = (
    "an entry has exactly one way; write - file: /PATH, - https: {file: /PATH, url: https://…}, or "
    "- collector: {}"
)
_TRUST = "there are two sets of certificates; write either ca_file or ca_directory"
_AMOUNT = "both pledge_hours and hs06_hours say how much is carried over; write one of them"
ONE_OF: Mapping[type, tuple[int, Keys, str]] = {
    GroupConfig: (1, _PLEDGES, _GROUP),
    SubgroupConfig: (1, {"share", *_PLEDGES}, _SUBGROUP),
    PublisherConfig: (1, {"file", "https", "collector"}, _WAY),
    CricPledgesConfig: (0, {"ca_file", "ca_directory"}, _TRUST),
    CarryOver: (0, {"pledge_hours", "hs06_hours"}, _AMOUNT),
}
"""Section → least number of some keys of which it has at most one, and the message."""
_MAY_LEAVE_OUT: Mapping[Optional[str], tuple[type, ...]] = {
    "yaml": (),
    "cric": (GroupConfig,),
    "negotiator": (GroupConfig, SubgroupConfig),
    None: (GroupConfig, SubgroupConfig),
}
"""Source of pledges → groups that need none in the file."""


def faults_between(section: type, keys: Keys, source: Optional[str]) -> Iterator[str]:
    """Faults between the keys of a section; ``source`` of pledges is None if it is not known."""
    least, some, message = ONE_OF.get(section, (0, frozenset(), ""))
    least = 0 if section in _MAY_LEAVE_OUT[source] else least
    if not least <= len(keys & some) <= 1:
        yield message
    loans = sorted(keys & {"max_borrowed_hs06", "max_lent_hs06"})
    if "groups" in keys and loans:
        yield f"a group with subgroups is steered through them; write {' and '.join(loans)} there"
    if section is PledgesConfig and source == "cric" and "cric" not in keys:
        yield (
            "from: cric needs the federations; write cric: {federations: [IT-INFN-CNAF]} beside "
            "it, with yours"
        )
