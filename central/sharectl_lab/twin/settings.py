"""Settings of a simulated pool: sections of a scenario's file, and of a strategy's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

from sharectl.settings import setting
from sharectl.times import JOB_CTL_SECONDS, PERIOD_SECONDS

HALF_LIFE_SECONDS = 86_400.0
"""HTCondor's default of PRIORITY_HALFLIFE."""


@dataclass(frozen=True)
class Negotiator:
    """Negotiator and accountant."""

    interval_seconds: float = setting(60.0, least=1, most=86_400)
    """NEGOTIATOR_INTERVAL: time between the begins of two cycles."""
    cycle_delay_seconds: float = setting(20.0, least=0, most=86_400)
    """NEGOTIATOR_CYCLE_DELAY: least time from the end of a cycle to the next."""
    base_seconds: float = setting(1.0, least=0, most=3600)
    """Duration of a cycle without a match."""
    match_seconds: float = setting(0.002, least=0, most=60)
    """Time that each match adds."""
    half_life_seconds: float = setting(HALF_LIFE_SECONDS, least=1, most=1e9)
    """PRIORITY_HALFLIFE."""
    priority_factors: Optional[Mapping[str, float]] = setting(None, least=1, most=1e9)
    """Accounting group -> GROUP_PRIO_FACTOR of its submitters; 1000 for all others."""
    quotas: str = setting("none", choices=("none", "static"))
    """`static`: GROUP_QUOTA of each group is in `group_quotas`, or its part of the pool's cores by
    its pledge."""
    group_quotas: Optional[Mapping[str, float]] = setting(None, least=0, most=1e9)
    """Accounting group -> GROUP_QUOTA, for `quotas: static`."""
    accept_surplus: bool = setting(default=True)
    """GROUP_ACCEPT_SURPLUS of all groups."""
    autoregroup: bool = setting(default=False)
    """GROUP_AUTOREGROUP of all groups."""
    consider_preemption: bool = setting(default=True)
    """NEGOTIATOR_CONSIDER_PREEMPTION: the first spin of a group does not stop at its quota, and
    submitters that only run jobs have a share in it. Jobs are not preempted."""
    slot_weight: str = setting("cores", choices=("cores", "hs06"))
    """SLOT_WEIGHT: what the accountant charges for a slot."""


@dataclass(frozen=True)
class Access:
    """Access points and the claims that they hold."""

    claim_worklife_seconds: float = setting(1200.0, least=-1, most=1e9)
    """CLAIM_WORKLIFE: a claim takes no further job once it is older; -1: claims do not age."""
    leftovers: bool = setting(default=True)
    """CLAIM_PARTITIONABLE_LEFTOVERS: an access point fills what is left of a slot that it was
    given. Without them, and with a consumption policy, a cycle gives several matches of a slot."""
    consumption_policy: bool = setting(default=False)
    """CONSUMPTION_POLICY, HTCondor's default one, on all nodes."""


@dataclass(frozen=True)
class Defrag:
    """condor_defrag and the draining that it asks for."""

    interval_seconds: float = setting(600.0, least=1, most=86_400)
    """DEFRAG_INTERVAL."""
    machines_per_hour: float = setting(0.0, least=0, most=1e6)
    """DEFRAG_DRAINING_MACHINES_PER_HOUR."""
    max_concurrent: int = setting(-1, least=-1, most=1_000_000)
    """DEFRAG_MAX_CONCURRENT_DRAINING; -1 for no limit."""
    max_whole: int = setting(-1, least=-1, most=1_000_000)
    """DEFRAG_MAX_WHOLE_MACHINES; -1 for no limit."""
    whole_cores: Optional[int] = setting(None, least=1, most=65_536)
    """DEFRAG_WHOLE_MACHINE_EXPR is Cpus >= this; null: Cpus == TotalSlotCpus."""
    rank: str = setting("badput", choices=("badput", "cores-to-free"))
    """DEFRAG_RANK: `badput` is HTCondor's default, -ExpectedMachineGracefulDrainingBadput;
    `cores-to-free` ifThenElse(Cpus >= 8, -10, (TotalCpus - Cpus)/(8.0 - Cpus)) of two sites."""
    retirement_seconds: float = setting(0.0, least=0, most=1e9)
    """MAXJOBRETIREMENTTIME of the nodes: a drain evicts jobs that run longer."""


@dataclass(frozen=True)
class Loop:
    """The sharectl loop: its cycles, the way of targets, and what goes wrong."""

    period_seconds: float = setting(float(PERIOD_SECONDS), least=1, most=86_400)
    """Time between two cycles; in cron mode 1020 s by default."""
    job_ctl_seconds: float = setting(float(JOB_CTL_SECONDS), least=1, most=86_400)
    """Period of job_ctl; in cron mode 780 s by default."""
    transport_seconds: float = setting(0.0, least=0, most=86_400)
    """Time from publication until nodes can read the plan."""
    failing_ratio: float = setting(0.0, least=0, most=1)
    """Part of the cycles that fail: nothing is published."""
    deaf_ratio: float = setting(0.0, least=0, most=1)
    """Part of the nodes that never act on a target."""
