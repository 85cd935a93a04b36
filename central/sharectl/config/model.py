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
from sharectl.control.setpoints import Entitlement
from sharectl.files.yaml import ValuePath
from sharectl.ledger.retention import Keep
from sharectl.model import PlanLimits, PoolConfig, Way
from sharectl.plan.nodes import NodesConfig
from sharectl.plan.settings import STRATEGIES, GiveUp
from sharectl.settings import setting
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

    name: Optional[str] = setting(None, kind="daemon")
    """Name of the negotiator, where there are several."""
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
    """Trusted certificates, a PEM file or a hashed folder; null: those of this machine."""
    proxy: Optional[str] = setting(None, kind="proxy")
    """Proxy, `http://HOST:PORT`; that of the environment is ignored."""


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
    give_up: GiveUp = setting(GiveUp(), inline=True)
    limits: PlanLimits = setting(PlanLimits(), inline=True)
    acting: Control = setting(Control(), inline=True)
    entitlement: Entitlement = setting(Entitlement(), inline=True)
    incomplete: str = setting("keep", choices=("keep", "withdraw"))
    """If a schedd or the collector is silent: `keep` lets targets expire, `withdraw` removes them
    at once."""


@dataclass(frozen=True)
class HistoryConfig:
    """Logs of every cycle."""

    jobs_file: Path = setting(STATE_DIRECTORY / "AcctGroup_hs06.txt", writes=True)
    """Jobs of the last cycle; by default in `state_directory`."""
    errors_log: Path = setting(STATE_DIRECTORY / "shares_Error.log", writes=True)
    """Errors of groups, appended; by default in `state_directory`. It is rotated at 10 MiB, and ten
    older files stay."""


@dataclass(frozen=True)
class MetricsConfig:
    """Metrics of every cycle for Prometheus (docs/monitoring.md)."""

    textfile: Optional[Path] = setting(None, kind="metrics file", writes=True)
    """File that node_exporter reads, replaced by rename; null: none."""


@dataclass(frozen=True)
class ReportConfig:
    """Page of `sharectl report` that cycles write (docs/monitoring.md)."""

    file: Optional[Path] = setting(None, writes=True)
    """Page for a web server, such as `/var/lib/sharectl/report/index.html`: the last 7 days. It is
    written once an hour, and replaced by rename; null: none."""


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


ONE_OF: Mapping[type, tuple[int, tuple[str, ...]]] = {
    GroupConfig: (1, ("pledge_hs06",)),
    SubgroupConfig: (1, ("share", "pledge_hs06")),
    Way: (1, ("file", "https", "collector")),
}
"""Section → least number of some keys of which it has at most one."""
_WITHOUT_PLEDGE: Mapping[Optional[str], tuple[type, ...]] = {"yaml": (), "cric": (GroupConfig,)}
"""Source of pledges → groups that need none in the file; any group with other sources."""


def faults_between(section: type, keys: AbstractSet[str], source: Optional[str]) -> Iterator[str]:
    """Faults between the keys of a section that have values; ``source`` None if it is faulty."""
    least, names = ONE_OF.get(section, (0, ()))
    least = 0 if section in _WITHOUT_PLEDGE.get(source, (GroupConfig, SubgroupConfig)) else least
    count = len(keys & set(names))
    if count < least and len(names) == 1:
        yield f"it has no {names[0]}; write it"
    elif not least <= count <= 1:
        yield f"it has {count or 'none'} of {', '.join(names)}; write one of them"
    loans = sorted(keys & {"max_borrowed_hs06", "max_lent_hs06"})
    if "groups" in keys and loans:
        yield f"a group with subgroups is steered through them; write {' and '.join(loans)} there"
    if section is PledgesConfig and source == "cric" and "cric" not in keys:
        yield "from: cric needs federations; write cric: {federations: [IT-INFN-CNAF]} beside it"
