"""What the configuration says of steering: which nodes, how strongly, and what bounds each change."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

from pydantic import Field, PlainSerializer, PlainValidator

from sharectl.adapters.config_laws import LAW_DESCRIPTION, CarryOverConfig, EwmaConfig, Law, PidConfig
from sharectl.adapters.config_types import MAX_HS06, Section, wrong
from sharectl.adapters.controlled import read_controlled, read_share, write_controlled
from sharectl.core.assignment_options import Prices
from sharectl.core.free_blocks import GiveUp
from sharectl.core.model import PlanLimits
from sharectl.core.nodes import Controlled, ControlledHosts, ControlledShare
from sharectl.core.plan_many import Assigning


def _read_share(value: Any) -> Optional[float]:
    return None if value is None else read_share(value).ratio


def _write_share(ratio: Optional[float]) -> Any:
    return None if ratio is None else write_controlled(ControlledShare(ratio))


def _read_reserved(value: Any) -> Optional[Controlled]:
    if value == []:
        raise wrong("it names no host; write a list of host patterns, or null to reserve no node")
    return None if value is None else read_controlled(value)


def _write_reserved(reserved: Optional[Controlled]) -> Any:
    return None if reserved is None else write_controlled(reserved)


class NodesConfig(Section):
    """Which execute points sharectl may steer."""

    controlled: Annotated[Controlled, PlainValidator(read_controlled), PlainSerializer(write_controlled)] = (
        Field(
            ControlledHosts(("*",)),
            description="Nodes that may get targets. Host patterns (one, or a list; `*`, `?`, `[0-9]`; matched "
            'without case on the short or the full host name), a share such as `"50%"` (the nodes whose names have '
            'the lowest SHA-256, so that the choice is stable; `"0%"` only measures), or a ClassAd constraint on the '
            "machine ad. Where a name could be both, say which: `{hosts: [GPU]}`, `{constraint: GPU}`, "
            '`{share: "50%"}`.',
        )
    )
    reserved: Annotated[
        Optional[Controlled], PlainValidator(_read_reserved), PlainSerializer(_write_reserved)
    ] = Field(
        None,
        description="Nodes that never get targets, whatever `controlled` says, such as those that tests or an "
        "experiment need as they are; in the same forms. null reserves none.",
    )
    job_ctl_stale_seconds: int = Field(
        2340,
        ge=30,
        le=86400,
        description="Age of a node's last run of `job_ctl`, by the node's own clock, from which `status` calls it "
        "stale where the node does not publish `t1_JobCtlStaleSeconds`, from when START does; three periods of "
        "13 minutes.",
    )


class ControlConfig(Section):
    """How strongly sharectl steers."""

    strategy: Literal["many", "pair"] = Field(
        "many",
        description="How groups are brought together: `many` lets every group that is over its share give to every one "
        "that is under it, each in its own request sizes, up to the largest node; `pair` takes from the one group and "
        "gives to the other that are furthest off, and counts larger requests as 8 cores (or `multicore_cores`).",
    )
    solver: Literal["auto", "highs", "greedy"] = Field(
        "auto",
        description="How `many` chooses among all targets that nodes could have: `auto` by HiGHS where it is installed "
        "(the extra `optimise`), and greedily, with a note in the plan, if it fails or takes too long; `highs` likewise, with "
        "a note where it is not installed, and looks for the very best in a large pool too; `greedy` always greedily.",
    )
    solver_seconds: float = Field(5.0, gt=0, le=600, description="How long HiGHS may take.")
    horizon_seconds: float = Field(
        86_400.0,
        ge=60,
        le=2_592_000,
        description="For `many`: how long power that is moved counts. A node whose cores take longer to come free gets no "
        "target.",
    )
    idle_price: float = Field(
        1.0,
        ge=0,
        le=1000,
        description="For `many`: how much moved power, for as long, one of idle cores must be worth. Above 1 nodes that "
        "free cores faster go before stronger ones.",
    )
    keep_gain_ratio: float = Field(
        0.25,
        ge=0,
        le=100,
        description="For `many`: a target stays unless another for its node or its groups is worth more by this part.",
    )
    obey_seconds: int = Field(
        2340,
        ge=10,
        le=604_800,
        description="For `many`: a node that has had its target for longer, and does not act on it, loses it, and gets "
        "none for four times as long. Three periods of 13 minutes.",
    )
    give_up_seconds: Optional[float] = Field(
        None,
        gt=0,
        le=604_800,
        description="How long the cores of a block may stand free under a target before a job takes them: from the first "
        "cycle that sees them free to the one that sees them free still. Then the target goes, and that group, size and "
        "node are left alone for a time that doubles at each failure, up to 6 hours. null: two negotiation cycles of 60 s "
        "longer than blocks stood free that jobs took.",
    )
    probe_blocks: Optional[int] = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Most blocks of one group and size that new targets of a cycle are for, beside as many as were taken since "
        "the last one, less those that stand free; of single-core jobs a block is a core. null: 1 % of the pool's cores, "
        "at least 32 cores. One block at a time where no job took several in a row.",
    )
    multicore_cores: int = Field(
        8,
        ge=2,
        le=1024,
        description="Cores that the held-back group gives up on each node: with `pair` always, with `many` at most, "
        "for single-core jobs. `pair` helps jobs of up to this size.",
    )
    deadband_hs06: float = Field(
        0.0,
        ge=0,
        le=MAX_HS06,
        description="Errors of at most this size, over or under, are left alone, and so are controllers' outputs.",
    )
    law: Law = Field("latest", description=f"{LAW_DESCRIPTION} `groups.NAME.control` overrides it.")
    ewma: EwmaConfig = Field(EwmaConfig(), description="Parameters of `ewma`.")
    pid: PidConfig = Field(PidConfig(), description="Parameters of `pid`.")
    setpoint: Literal["in_use", "present", "pledge"] = Field(
        "in_use",
        description="What a group is entitled to: its pledge's share of the power that the groups use, of the power "
        "present in the pool's nodes, or its pledge itself.",
    )
    carry_over: CarryOverConfig = Field(
        CarryOverConfig(), description="What of the time without work is collected or paid back later."
    )
    gap_seconds: float = Field(
        3060.0,
        gt=0,
        le=86400,
        description="Longest interval between two complete cycles that integrals and `carry_over` count: of a longer one "
        "nobody knows what the errors were; three periods of 17 minutes.",
    )
    max_nodes: Optional[int] = Field(
        None, ge=1, le=1_000_000, description="Most nodes under a target at once; null for no limit."
    )
    max_target_share: Annotated[
        Optional[float], PlainValidator(_read_share), PlainSerializer(_write_share)
    ] = Field(
        None,
        description='Largest share of the pool\'s nodes under a target at once, such as `"25%"`, rounded down; null '
        "for no limit.",
    )
    max_changed_nodes: Optional[int] = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Most nodes whose target a cycle adds, alters or removes; null for no limit. What must go goes "
        "at once and counts: targets of nodes that are gone or no longer controlled, of groups no longer configured.",
    )
    dwell_seconds: int = Field(
        0,
        ge=0,
        le=604_800,
        description="Least time that a target stays as it is once it is published, unless it must go.",
    )
    incomplete: Literal["keep", "withdraw"] = Field(
        "keep",
        description="When a schedd or the collector did not answer: `keep` leaves the published targets to run out "
        "by their own validity, `withdraw` publishes a plan without targets at once.",
    )

    @property
    def assigning(self) -> Assigning:
        """What decides plans for many pairs."""
        prices = Prices(self.horizon_seconds, self.idle_price, self.keep_gain_ratio)
        return Assigning(prices, self.solver, self.solver_seconds, self.obey_seconds)

    @property
    def give_up(self) -> GiveUp:
        """When blocks of cores that no job takes are given back."""
        return GiveUp(self.give_up_seconds, self.probe_blocks)

    @property
    def limits(self) -> PlanLimits:
        """What bounds a plan."""
        return PlanLimits(
            multicore_cores=self.multicore_cores,
            deadband_hs06=self.deadband_hs06,
            max_nodes=self.max_nodes,
            max_target_ratio=self.max_target_share,
            max_changed_nodes=self.max_changed_nodes,
            dwell_seconds=self.dwell_seconds,
        )
