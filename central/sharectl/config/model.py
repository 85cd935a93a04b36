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
from sharectl.control.laws import Control
from sharectl.control.setpoints import CarryOver, Entitlement
from sharectl.files.yaml import ValuePath
from sharectl.ledger.retention import Keep
from sharectl.model import PlanLimits, PoolConfig, Way
from sharectl.plan.nodes import NodesConfig
from sharectl.plan.settings import OBEY_SECONDS, STRATEGIES, GiveUp
from sharectl.settings import inline, setting
from sharectl.shares.groups import GroupTree
from sharectl.shares.pledges import SOURCES
from sharectl.times import PERIOD_SECONDS, validity_of

STATE_DIRECTORY = Path("/var/lib/sharectl")
TARGETS_FILE = STATE_DIRECTORY / "sharectl.txt"
"""Default place of targets; with another ``state_directory``, there."""
STEER, OBSERVE = "steer", "observe"
CRIC_COPY = "pledges-cric.json"
KNOBS_COPY = "pledges-negotiator.json"
OWN_FILES = ("lock", "state.json", "places.json", "disabled", CRIC_COPY, KNOBS_COPY)
"""Files in ``state_directory``, besides the folder ``ledger``."""


@dataclass(frozen=True)
class NegotiatorPledgesConfig:
    """Group quotas of the negotiator as pledges, nested ones too."""

    file: Optional[Path] = setting(None)
    """Output of `condor_config_val -dump -expand GROUP_ NEGOTIATOR_`; null asks the negotiator."""
    name: Optional[str] = setting(None, kind="daemon")
    """Name of the negotiator, where there are several."""
    deadline_seconds: float = setting(20.0, above=0, most=600)
    """Time for the negotiator, and then for the collector."""
    max_age_seconds: float = setting(86400.0, least=0, most=2_592_000)
    """Age to which its last answer is used while it is silent: it is busy while it negotiates."""
    pool_cores: Optional[float] = setting(None, above=0, most=1e9)
    """Weighted slots that dynamic quotas are shares of; null: the cores in the collector."""
    weight_hs06: Optional[float] = setting(None, above=0, most=1e6)
    """Power of a weighted slot; null: the pool's mean per core."""


@dataclass(frozen=True)
class CricPledgesConfig:
    """Pledges from WLCG CRIC over HTTPS; a copy serves while it is silent."""

    federations: tuple[str, ...] = setting(kind="cric name", least=1)
    """Federations, by name or accounting name in CRIC; their pledges are added up."""
    federation_ratio: float = setting(1.0, above=0, most=1)
    """Part of these pledges that this pool delivers."""
    url: str = setting(
        "https://wlcg-cric.cern.ch/api/core/federation/query/?json&start_year={previous_year}",
        kind="cric url",
    )
    """Address. `{year}` is the year of the pledges, which begins in April; `{previous_year}` the
    one before."""
    ca_file: Optional[Path] = setting(None)
    """Trusted certificates, PEM; null: `ca_directory`, or those of this machine."""
    ca_directory: Optional[Path] = setting(None)
    """Trusted certificates, a hashed folder."""
    proxy: Optional[str] = setting(None, kind="proxy")
    """Proxy, `http://HOST:PORT`; that of the environment is ignored."""
    deadline_seconds: float = setting(30.0, above=0, most=600)
    """Time for the whole answer."""
    refresh_seconds: int = setting(21600, least=60, most=2_592_000)
    """Age of the copy from which CRIC is asked again."""
    max_age_days: float = setting(30.0, above=0, most=366)
    """Age from which the copy is not used: cycles then change nothing."""
    max_change_factor: float = setting(2.0, above=1, most=1000)
    """A pledge that changes by more stays as it was until `sharectl pledges --confirm`."""
    copy_file: Optional[Path] = setting(None, writes=True)
    """The copy; null: `pledges-cric.json` in `state_directory`."""


@dataclass(frozen=True)
class PledgesConfig:
    """Pledges written in `groups` go before those of the source."""

    source: str = setting("yaml", key="from", choices=tuple(SOURCES))
    """`yaml`: `groups` has them. `negotiator`: its group quotas. `cric`: WLCG CRIC. Only groups
    under `groups` are steered."""
    negotiator: NegotiatorPledgesConfig = setting(NegotiatorPledgesConfig())
    """Access to the negotiator."""
    cric: Optional[CricPledgesConfig] = setting(None)
    """Access to CRIC; required with `from: cric`."""


@dataclass(frozen=True)
class ControlConfig:
    """Strength of steering."""

    strategy: str = setting("many", choices=tuple(STRATEGIES))
    """`many`: all groups over their share give to all under it, in their request sizes. `pair`: the
    furthest over gives to the furthest under; requests above 8 cores (or `multicore_cores`) count
    as 8."""
    obey_seconds: int = setting(OBEY_SECONDS, least=10, most=604_800)
    """`many`: a node that ignores its target for longer loses it for four times as long. Three
    13-minute periods of cron mode; live nodes need 330 s, `job_ctl`'s 30 and UPDATE_INTERVAL."""
    give_up: GiveUp = inline(GiveUp())
    limits: PlanLimits = inline(PlanLimits())
    acting: Control = inline(Control())
    entitlement: Entitlement = inline(Entitlement())
    incomplete: str = setting("keep", choices=("keep", "withdraw"))
    """If a schedd or the collector is silent: `keep` lets targets expire, `withdraw` removes them
    at once."""


@dataclass(frozen=True)
class HistoryConfig:
    """Logs of every cycle."""

    jobs_file: Path = setting(STATE_DIRECTORY / "AcctGroup_hs06.txt", writes=True)
    """Jobs of the last cycle; by default in `state_directory`."""
    errors_log: Path = setting(STATE_DIRECTORY / "shares_Error.log", writes=True)
    """Errors of groups, appended; by default in `state_directory`."""
    errors_log_max_bytes: int = setting(10 * 2**20, least=4096, most=2**40)
    """Size at which `errors_log` is rotated."""
    errors_log_keep: int = setting(10, least=1, most=1000)
    """Rotated files to keep."""
    changes_max_bytes: int = setting(10 * 2**20, least=4096, most=2**40)
    """Size at which `ledger/changes.jsonl`, the audit of targets, is rotated."""
    changes_keep: int = setting(10, least=1, most=1000)
    """Rotated files to keep."""


@dataclass(frozen=True)
class MetricsConfig:
    """Metrics of every cycle for Prometheus (docs/monitoring.md)."""

    textfile: Optional[Path] = setting(None, kind="metrics file", writes=True)
    """File that node_exporter reads, replaced by rename; null: none."""


@dataclass(frozen=True)
class ReportConfig:
    """Page of `sharectl report` that cycles write (docs/monitoring.md)."""

    file: Optional[Path] = setting(None, writes=True)
    """Page for a web server, such as `/var/lib/sharectl/report/index.html`, replaced by rename;
    null: none."""
    period_days: float = setting(7.0, above=0, most=400)
    """Time up to now that it shows."""
    interval_seconds: int = setting(3600, least=0, most=2_592_000)
    """Age of the page from which a cycle writes it again; 0: every cycle."""


@dataclass(frozen=True)
class CheckConfig:
    """Checks of `sharectl check pool`."""

    ignore: tuple[str, ...] = setting((), kind="pool check")
    """Checks that are left out."""


@dataclass(frozen=True)
class Config:
    """Decisions of the operator. Only ``groups`` is required."""

    groups: Mapping[str, GroupConfig] = setting()
    """Promises, by the first part of AccountingGroup, case ignored, without `other` and `none`. At
    least one pledge is above 0."""
    pledges: PledgesConfig = setting(PledgesConfig())
    """Source of pledges."""
    nodes: NodesConfig = setting(NodesConfig())
    """Execute points to steer."""
    control: ControlConfig = setting(ControlConfig())
    """Strength of steering."""
    pool: PoolConfig = setting(PoolConfig())
    """Questions to daemons."""
    mode: str = setting(STEER, choices=(STEER, OBSERVE))
    """`steer` publishes targets. `observe` decides, records and remembers, and publishes no target:
    the first cycle withdraws those that it published before."""
    publish: tuple[Way, ...] = setting((Way(file=TARGETS_FILE),), least=1)
    """Ways of targets to the nodes."""
    signing_key_file: Optional[Path] = setting(None)
    """Keys that sign `file` and `https` (docs/transports.md); null signs nothing."""
    validity_seconds: int = setting(validity_of(PERIOD_SECONDS), least=60, most=86400)
    """Time that nodes act on targets that are not renewed: three periods of sharectl.timer (300 s),
    and UPDATE_INTERVAL (300 s), because the negotiator may learn so late that one was renewed."""
    history: HistoryConfig = setting(HistoryConfig())
    """Logs of every cycle."""
    ledger: Keep = setting(Keep())
    """Ledger of every cycle."""
    metrics: MetricsConfig = setting(MetricsConfig())
    """Metrics of every cycle for Prometheus."""
    report: ReportConfig = setting(ReportConfig())
    """Page of `sharectl report` that cycles write."""
    check: CheckConfig = setting(CheckConfig())
    """Checks of `sharectl check pool`."""
    state_directory: Path = setting(STATE_DIRECTORY)
    """Folder of the lock and the state."""
    lock_wait_seconds: float = setting(60.0, least=0, most=3600)
    """Time to wait for another cycle."""
    written: frozenset[ValuePath] = field(default=frozenset(), compare=False, repr=False)
    """Paths of the values that the file has."""

    @property
    def tree(self) -> GroupTree:
        """Groups of every level, with their pledges."""
        return tree_of(self.groups)


_PLEDGES = ("pledge_hs06", "pledge_hepscore23")
ONE_OF: Mapping[type, tuple[int, tuple[str, ...]]] = {
    GroupConfig: (1, _PLEDGES),
    SubgroupConfig: (1, ("share", *_PLEDGES)),
    Way: (1, ("file", "https", "collector")),
    CricPledgesConfig: (0, ("ca_file", "ca_directory")),
    CarryOver: (0, ("pledge_hours", "hs06_hours")),
}
"""Section → least number of some keys of which it has at most one."""
_WITHOUT_PLEDGE: Mapping[Optional[str], tuple[type, ...]] = {"yaml": (), "cric": (GroupConfig,)}
"""Source of pledges → groups that need none in the file; any group with other sources."""


def faults_between(section: type, keys: AbstractSet[str], source: Optional[str]) -> Iterator[str]:
    """Faults between the keys of a section that have values; ``source`` None if it is faulty."""
    least, names = ONE_OF.get(section, (0, ()))
    least = 0 if section in _WITHOUT_PLEDGE.get(source, (GroupConfig, SubgroupConfig)) else least
    count = len(keys & set(names))
    if not least <= count <= 1:
        yield f"it has {count or 'none'} of {', '.join(names)}; write one of them"
    loans = sorted(keys & {"max_borrowed_hs06", "max_lent_hs06"})
    if "groups" in keys and loans:
        yield f"a group with subgroups is steered through them; write {' and '.join(loans)} there"
    if section is PledgesConfig and source == "cric" and "cric" not in keys:
        yield "from: cric needs federations; write cric: {federations: [IT-INFN-CNAF]} beside it"
