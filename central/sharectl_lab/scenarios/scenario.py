"""Scenario: a pool, its groups, its jobs and the time to simulate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from sharectl.cadence import laws
from sharectl.cadence.laws import LoggedJob
from sharectl.config.fields import NOTATIONS, Notation, WrongError, one_line, text_like
from sharectl.config.groups import GroupConfig
from sharectl.config.laws import plan_config_of
from sharectl.config.load import overridden
from sharectl.config.model import Config, ControlConfig
from sharectl.plan.plan import PlanConfig
from sharectl.settings import setting
from sharectl.words import quoted
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.settings import Access, Loop, Negotiator
from sharectl_lab.workload.draw import (
    HOUR_SECONDS,
    DrawnWorkload,
    JobStream,
    Workload,
    ad_attributes,
)
from sharectl_lab.workload.logged import LoggedWorkload, LogSource

MAX_ATTRIBUTE = 2**63
"""Numbers of ClassAds are below it."""
LEAST_WEIGHT, MOST_WEIGHT = 1e-9, 1e9


def _account(value: Any) -> str:
    """AccountingGroup without its user; numbers too, as names in job logs are."""
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else "?"
    if not text or _is_account(text):
        return text
    raise WrongError(f"{quoted(text)} is not an accounting group; write such as alice.prod")


_is_account = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*").fullmatch
_node_name = text_like(
    r"[A-Za-z0-9]([A-Za-z0-9.-]{0,98}[A-Za-z0-9])?",
    "is not a host name; write letters, digits, - and ., a letter or digit first",
)


def _file(text: Any) -> Path:
    if not isinstance(text, str) or not Path(text).name or not text.isprintable():
        raise WrongError("write the path of a file")
    return Path(text)


def _run_time(value: Any) -> Any:
    """Law of run times: seconds, a named law, or a mapping of seconds to weights."""
    try:
        if isinstance(value, dict):
            weights = {float(seconds): float(weight) for seconds, weight in value.items()}
            parts = [part for pair in weights.items() for part in pair]
            if parts and all(LEAST_WEIGHT <= part <= MOST_WEIGHT for part in parts):
                return laws.weighted(weights)
            raise WrongError("write run times and weights above 0, such as {600: 3, 3600: 1}")
        return laws.parse(value if ":" in str(value) else f"constant:{value}")
    except (TypeError, ValueError) as error:
        raise WrongError(str(error)) from None


def _write_run_time(law: Any) -> Any:
    if law.name == "weighted":
        return {laws.plain(seconds): weight for seconds, weight in law.seen.items()}
    return law.parameters[0] if law.name == "constant" else law.text


def _attribute(value: Any) -> Any:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, (bool, int, float)) and abs(value) < MAX_ATTRIBUTE:
        return value
    raise WrongError("write true, false, text, or a number within 64 bits")


NOTATIONS.update(
    {
        "node name": Notation("text", _node_name),
        "accounting group": Notation("text", _account),
        "attribute": Notation("boolean, number or text", _attribute),
        "file": Notation("path", _file, str),
        "run time": Notation("seconds, law, mapping of weights", _run_time, _write_run_time),
    }
)

DAY_HOURS = 24
MOST_NODES = 1_000_000


@dataclass(frozen=True)
class NodeGroup:
    """Execute points that are alike."""

    name: str = setting(kind="node name")
    """Name; several nodes have it with a number behind, `NAME-0001`."""
    cores: int = setting(least=1, most=65_536)
    """Cores of each."""
    count: int = setting(1, least=1, most=100_000)
    """Nodes."""
    hs06_per_core: float = setting(10.0, above=0, most=1e6)
    """Power of a core, HS06."""
    memory_mib: Optional[int] = setting(None, least=1, most=2**40)
    """Memory of each; null: 4096 MiB for each core."""
    disk_mib: Optional[int] = setting(None, least=1, most=2**40)
    """Disk of each; null: 20480 MiB for each core."""
    custom: Optional[Mapping[str, int]] = setting(None, least=0, most=1_000_000)
    """Custom resources of each, such as `{gpus: 2}`."""
    slots: int = setting(1, least=1, most=1000)
    """Partitionable slots that share all this evenly."""
    controlled: bool = setting(default=True)
    """Whether sharectl may give it targets."""
    multicore_only: bool = setting(default=False)
    """Whether START takes multicore jobs alone."""
    attributes: Optional[Mapping[str, Any]] = setting(None, kind="attribute")
    """Further attributes of their ads, which START may read, such as `{HEALTHY: true}`."""

    def specs(self) -> list[NodeSpec]:
        """Nodes."""
        digits = max(4, len(str(self.count)))
        names = [f"{self.name}-{number:0{digits}}" for number in range(1, self.count + 1)]
        slots, attributes = self._slots(), dict(ad_attributes(self.attributes))
        return [
            NodeSpec(
                name=name,
                slots=slots,
                hs06_per_core=self.hs06_per_core,
                controlled=self.controlled,
                multicore_only=self.multicore_only,
                attributes=attributes,
            )
            for name in (names if self.count > 1 else [self.name])
        ]

    def _slots(self) -> tuple[SlotSpec, ...]:
        memory_mib = self.memory_mib or 4096 * self.cores
        disk_mib = self.disk_mib or 20_480 * self.cores
        custom = self.custom or {}

        def share(number: int, of: int) -> int:
            return of // self.slots + (number < of % self.slots)

        return tuple(
            SlotSpec(
                cores=share(number, self.cores),
                memory_mib=share(number, memory_mib),
                disk_kib=share(number, disk_mib) * 1024,
                custom={name: share(number, amount) for name, amount in sorted(custom.items())},
            )
            for number in range(self.slots)
        )


@dataclass(frozen=True)
class StartConfig:
    """START of the nodes."""

    grace_seconds: float = setting(480.0, least=0, most=1e6)
    """Time for which free cores are kept for multicore jobs (t1_GraceSeconds)."""
    multicore_cores: int = setting(8, least=2, most=1024)
    """Cores that grace keeps (t1_MulticoreCores)."""
    mc_grace_period_seconds: float = setting(60.0, least=1, most=86_400)
    """Cron mode: time between two runs of mc_grace.py, which sees whether cores were taken."""
    site: Optional[str] = setting(None, kind="expression")
    """START of the site, a ClassAd expression, which counts too."""


@dataclass(frozen=True)
class Scenario:
    """Scenario. It needs nodes, groups, and one of jobs, swf and history."""

    nodes: tuple[NodeGroup, ...] = setting(least=1)
    """Execute points."""
    groups: Mapping[str, GroupConfig] = setting()
    """Groups and their promises, as in the configuration of sharectl."""
    summary: str = setting("", kind="text")
    """One line about it."""
    control: ControlConfig = setting(ControlConfig())
    """Strength of steering, as in the configuration of sharectl; strategies begin from it."""
    validity_seconds: Optional[int] = setting(None, least=60, most=86_400)
    """Time that nodes act on targets that are not renewed; null: three periods of the loop and
    300 s."""
    negotiator: Negotiator = setting(Negotiator())
    """Negotiator and accountant."""
    access: Access = setting(Access())
    """Access points and their claims."""
    start: StartConfig = setting(StartConfig())
    """START of the nodes."""
    loop: Loop = setting(Loop())
    """The sharectl loop."""
    jobs: tuple[JobStream, ...] = setting(())
    """Streams of jobs."""
    swf: Optional[LogSource] = setting(None)
    """Jobs of a log in Standard Workload Format."""
    history: Optional[LogSource] = setting(None)
    """Jobs of the pool's history: a file that `condor_history -json` wrote."""
    warmup_hours: float = setting(24.0, least=0, most=1e5)
    """Time before anything counts."""
    days: float = setting(30.0, least=1e-4, most=1e4)
    """Time that counts."""
    seed: int = setting(1, least=0, most=2**53)
    """Seed of everything random."""
    sample_seconds: float = setting(300.0, least=1, most=1e6)
    """Interval of the figures over time."""
    name: str = ""
    """Name of the shipped scenario, or of its file."""
    logged: Sequence[LoggedJob] = field(default=(), compare=False, repr=False)
    """Jobs of `swf` or `history`, which were read with the scenario."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Jobs of it that were left out, with reasons."""

    @property
    def warmup_seconds(self) -> float:
        """Time before anything counts."""
        return self.warmup_hours * HOUR_SECONDS

    @property
    def end_seconds(self) -> float:
        """End, since the begin of the simulation."""
        return self.warmup_seconds + self.days * DAY_HOURS * HOUR_SECONDS

    @property
    def config(self) -> Config:
        """Configuration of sharectl."""
        return Config(groups=self.groups, control=self.control)

    def plan_config(self, settings: Sequence[str] = ()) -> PlanConfig:
        """Configuration of plans with settings such as ``control.law=pid``; raises SettingError."""
        config = overridden(self.config, settings)
        return plan_config_of(config, config.tree)

    def nodes_of(self) -> tuple[NodeSpec, ...]:
        """Execute points."""
        return tuple(spec for group in self.nodes for spec in group.specs())

    def workload(self, seed: Optional[int] = None) -> Workload:
        """Jobs of a seed, or of the scenario's, for one run."""
        seed = self.seed if seed is None else seed
        source = self.swf or self.history
        if source is not None:
            return LoggedWorkload(self.logged, source, seed, self.end_seconds)
        return DrawnWorkload(self.jobs, seed, self.end_seconds)
