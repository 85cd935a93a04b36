"""What the configuration says of steering: which nodes, how strongly, and what bounds each change.

What the configuration says of control laws: which one acts, and its parameters. docs/control.md
tells what they do.

The value of ``nodes.controlled``, read and written: host patterns, a share, or a ClassAd
constraint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Callable, Literal, Optional, Union

from pydantic import Field, PlainSerializer, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from sharectl.config.fields import Section, wrong
from sharectl.control.laws import Ewma, Pid
from sharectl.control.setpoints import CarryOver
from sharectl.model import MAX_HS06, PlanLimits
from sharectl.plan.free_blocks import GiveUp
from sharectl.plan.many import Assigning
from sharectl.plan.nodes import Controlled, ControlledConstraint, ControlledHosts, ControlledShare
from sharectl.plan.options import Prices
from sharectl.words import quoted

YEAR_SECONDS = 31_536_000

Law = Literal["latest", "ewma", "pid"]
LAW_DESCRIPTION = (
    "What is acted on: `latest`, the error of this cycle alone; `ewma`, the average of the "
    "errors; `pid`, the error, its sum "
    "over time and how fast the power changes (docs/control.md)."
)


class EwmaConfig(Section):
    """Parameters of the law ``ewma``."""

    half_life_seconds: float = Field(
        3600.0,
        gt=0,
        le=YEAR_SECONDS,
        description="Age at which an error counts half in the average.",
    )

    @property
    def params(self) -> Ewma:
        """As the law takes them."""
        return Ewma(self.half_life_seconds)


class PidConfig(Section):
    """Parameters of the law ``pid``."""

    gain: float = Field(1.0, gt=0, le=100, description="HS06 to move for each HS06 of error.")
    integral_seconds: float = Field(
        28800.0,
        ge=0,
        le=YEAR_SECONDS,
        description="Time in which an error that lasts doubles the output, and in which the integral forgets what a bound "
        "kept from being done; 0 for no integral.",
    )
    derivative_seconds: float = Field(
        0.0,
        ge=0,
        le=86400,
        description="How far ahead the change of the group's power is extrapolated; 0 for no derivative.",
    )
    filter_seconds: float = Field(
        2040.0, gt=0, le=86400, description="Time constant of the low-pass filter of that change."
    )
    max_output_hs06: Optional[float] = Field(
        None,
        gt=0,
        le=MAX_HS06,
        description="Most power to move either way; null for no limit but all power that is shared out.",
    )

    def params(self, gap_seconds: float) -> Pid:
        """As the law takes them."""
        return Pid(
            gain=self.gain,
            integral_seconds=self.integral_seconds or None,
            derivative_seconds=self.derivative_seconds,
            filter_seconds=self.filter_seconds,
            max_output_hs06=self.max_output_hs06,
            gap_seconds=gap_seconds,
        )


class CarryOverConfig(Section):
    """What a group may collect later of the time when it had no work, or has to pay back of the time when others had none. By default nothing."""

    pledge_hours: Optional[float] = Field(
        None,
        ge=0,
        le=8784,
        description="Most that is carried over either way, in hours of the group's pledge; null if `hs06_hours` says it, "
        "or nothing is.",
    )
    hs06_hours: Optional[float] = Field(
        None, ge=0, le=MAX_HS06, description="The same in HS06-hours, for every group alike."
    )
    half_life_seconds: float = Field(
        86400.0, gt=0, le=YEAR_SECONDS, description="Time after which half of it is forgotten."
    )
    repay_seconds: float = Field(
        21600.0,
        ge=60,
        le=YEAR_SECONDS,
        description="Time in which it is settled: the setpoint moves by what is carried over, divided by this.",
    )

    @model_validator(mode="after")
    def _one_amount(self) -> CarryOverConfig:
        if self.pledge_hours is not None and self.hs06_hours is not None:
            raise wrong(
                "both pledge_hours and hs06_hours say how much is carried over; write one of them"
            )
        return self

    def params(self, gap_seconds: float) -> Optional[CarryOver]:
        """As `sharectl.control.setpoints` takes it; None if nothing is carried over."""
        if not (self.pledge_hours or self.hs06_hours):
            return None
        return CarryOver(
            self.pledge_hours,
            self.hs06_hours,
            self.half_life_seconds,
            self.repay_seconds,
            gap_seconds,
        )


class GroupControlConfig(Section):
    """A law of the group's own.

    What is written replaces the key of ``control``, each mapping as a whole; what is not stays.
    """

    law: Optional[Law] = Field(None, description=f"{LAW_DESCRIPTION} null for that of `control`.")
    ewma: Optional[EwmaConfig] = Field(
        None,
        description="As `control.ewma`; null for that. Keys that are not written have their defaults.",
    )
    pid: Optional[PidConfig] = Field(
        None,
        description="As `control.pid`; null for that. Keys that are not written have their defaults.",
    )


MAX_CONSTRAINT = 4096
"""Characters: HTCondor's parser goes one level down the stack for each parenthesis."""

_PATTERN = re.compile(r"[A-Za-z0-9.*?_\-\[\]!]{1,253}")
_LIKE_PATTERNS = re.compile(r"[A-Za-z0-9.*?_\-\[\]!{},; ]+")
_WORDS = frozenset(("true", "false", "undefined", "error", "none", "all"))
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?|\.[0-9]+")
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
_FORMS = (
    'write "*", host patterns such as [wn-0*, wn-117.example.org], a share such as "50%", or '
    "a ClassAd constraint"
)


def read_controlled(value: Any) -> Controlled:
    """What a value of the configuration file selects.

    Parameters
    ----------
    value
        A string (pattern, share or constraint), a list of patterns, or a mapping with one of the
        keys ``hosts``, ``share`` and ``constraint``, for names that could be read both ways.

    Raises
    ------
    PydanticCustomError
        If it is none of these; ``at`` in its context is the path of the fault within the value.
    """
    if isinstance(value, (ControlledHosts, ControlledShare, ControlledConstraint)):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (list, tuple)):
        return _hosts(list(value))
    if isinstance(value, Mapping):
        return _explicit(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise _wrong(f"a bare number could mean anything; {_as_share(value)}")
    raise _wrong(f"it selects no nodes; {_FORMS}")


def write_controlled(controlled: Controlled) -> Union[str, list[str], dict[str, Any]]:
    """The value that `read_controlled` reads as ``controlled``, in its shortest form."""
    if isinstance(controlled, ControlledShare):
        return _percent(Decimal(repr(float(controlled.ratio))) * 100)
    if isinstance(controlled, ControlledConstraint):
        plain = _PATTERN.fullmatch(controlled.expression) or _SHARE.fullmatch(controlled.expression)
        return {"constraint": controlled.expression} if plain else controlled.expression
    if controlled.patterns == ("*",):
        return "*"
    return list(controlled.patterns)


def _text(value: str) -> Controlled:
    text = value.strip()
    if _SHARE.fullmatch(text):
        return _share(text)
    if _NUMBER.fullmatch(text):
        raise _wrong(f"a bare number could mean anything; {_as_share(float(text))}")
    if text.lower() in _WORDS:
        raise _wrong(f"{text} could be a host or an expression; {_FORMS}")
    if _PATTERN.fullmatch(text):
        return ControlledHosts((text,))
    if _LIKE_PATTERNS.fullmatch(text) and ("," in text or "{" in text):
        raise _wrong(
            "several hosts are a list, and braces are no pattern; write such as [wn-0*, "
            "wn-117.example.org]"
        )
    return _constraint(text)


def _hosts(value: Any) -> ControlledHosts:
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list) or not patterns:
        raise _wrong('it names no host; write a list of host patterns, or "0%" to control no node')
    for number, pattern in enumerate(patterns):
        if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern):
            raise _wrong(
                f"{quoted(str(pattern))} is no host pattern; write host names, with * ? [0-9] "
                "where they vary",
                number,
            )
    return ControlledHosts(tuple(patterns))


def read_share(value: Any) -> ControlledShare:
    """Share of the nodes that a value of the configuration file means, such as ``"50%"``.

    Raises as `read_controlled`.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise _wrong(f"a bare number could mean anything; {_as_share(value)}")
    return _share(value)


def _share(value: Any) -> ControlledShare:
    match = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise _wrong('a share is a percentage in quotes; write such as "50%"')
    percent = Decimal(match[1])
    if percent > 100:  # noqa: PLR2004 - all of them
        raise _wrong(f'{value} is more nodes than there are; write at most "100%"')
    return ControlledShare(float(percent / 100))


def _constraint(value: Any) -> ControlledConstraint:
    if not isinstance(value, str) or not value.strip():
        raise _wrong("a constraint is a ClassAd expression; write such as t1_room == 3")
    text = value.strip()
    if len(text) > MAX_CONSTRAINT:
        raise _wrong(f"a constraint has at most {MAX_CONSTRAINT} characters; shorten it")
    if not text.replace("\n", " ").replace("\t", " ").isprintable():
        raise _wrong(f"{quoted(text)} holds a character that cannot be seen; remove it")
    fault = _fault(text)
    if fault:
        raise _wrong(f"{fault}; {_FORMS}")
    return ControlledConstraint(text)


def _fault(expression: str) -> str:
    """Why HTCondor cannot use ``expression`` as a constraint; empty if it can."""
    # htcondor2 first: classad2 resolves names as the daemons do only once it is there.
    import htcondor2  # noqa: F401, I001
    import classad2

    try:
        constant = classad2.ExprTree(expression).eval(classad2.ClassAd())
    except Exception as error:  # noqa: BLE001 - the bindings raise several kinds, some of them bare
        return (
            f"{quoted(expression)} is neither host patterns nor a share, and no ClassAd expression "
            f"({_first_line(error)})"
        )
    return (
        f"{quoted(expression)} is true on no node"
        if isinstance(constant, (str, list, Mapping))
        else ""
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


_KEYS: Mapping[str, Callable[[Any], Controlled]] = {
    "hosts": _hosts,
    "share": _share,
    "constraint": _constraint,
}


def _explicit(value: Mapping[Any, Any]) -> Controlled:
    unknown = [key for key in value if key not in _KEYS]
    if unknown:
        raise _wrong(
            f"unknown key {quoted(str(unknown[0]))}; write one of hosts, share, constraint",
            unknown[0],
        )
    if len(value) != 1:
        raise _wrong("a mapping has exactly one key here; write one of hosts, share, constraint")
    key, content = next(iter(value.items()))
    try:
        return _KEYS[key](content)
    except PydanticCustomError as error:
        context = error.context or {}
        raise _wrong(context["message"], key, *context["at"]) from error


def _as_share(number: float) -> str:
    decimal = Decimal(repr(float(number)))
    if 0 <= decimal <= 1:
        decimal *= 100
    return f'for a share of the nodes write "{_percent(decimal)}"'


def _percent(percent: Decimal) -> str:
    return f"{percent.normalize():f}%"


def _wrong(message: str, *at: Union[str, int]) -> PydanticCustomError:
    return PydanticCustomError("controlled", "{message}", {"message": message, "at": at})


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

    controlled: Annotated[
        Controlled, PlainValidator(read_controlled), PlainSerializer(write_controlled)
    ] = Field(
        ControlledHosts(("*",)),
        description="Nodes that may get targets. Host patterns (one, or a list; `*`, `?`, `[0-9]`; matched "
        'without case on the short or the full host name), a share such as `"50%"` (the nodes '
        "whose names have "
        'the lowest SHA-256, so that the choice is stable; `"0%"` only measures), or a ClassAd '
        "constraint on the "
        "machine ad. Where a name could be both, say which: `{hosts: [GPU]}`, `{constraint: GPU}`, "
        '`{share: "50%"}`.',
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
        "stale where the node does not publish `t1_JobCtlStaleSeconds`, from when START does; "
        "three periods of "
        "13 minutes.",
    )


class ControlConfig(Section):
    """How strongly sharectl steers."""

    strategy: Literal["many", "pair"] = Field(
        "many",
        description="How groups are brought together: `many` lets every group that is over its share give to every one "
        "that is under it, each in its own request sizes, up to the largest node; `pair` takes "
        "from the one group and "
        "gives to the other that are furthest off, and counts larger requests as 8 cores (or "
        "`multicore_cores`).",
    )
    solver: Literal["auto", "highs", "greedy"] = Field(
        "auto",
        description="How `many` chooses among all targets that nodes could have: `auto` by HiGHS where it is installed "
        "(the extra `optimise`), and greedily, with a note in the plan, if it fails or takes "
        "too long; `highs` likewise, with "
        "a note where it is not installed, and looks for the very best in a large pool too; "
        "`greedy` always greedily.",
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
        "cycle that sees them free to the one that sees them free still. Then the target goes, "
        "and that group, size and "
        "node are left alone for a time that doubles at each failure, up to 6 hours. null: two "
        "negotiation cycles of 60 s "
        "longer than blocks stood free that jobs took.",
    )
    probe_blocks: Optional[int] = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Most blocks of one group and size that new targets of a cycle are for, beside as many as were taken since "
        "the last one, less those that stand free; of single-core jobs a block is a core. null: "
        "1 % of the pool's cores, "
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
        CarryOverConfig(),
        description="What of the time without work is collected or paid back later.",
    )
    gap_seconds: float = Field(
        3060.0,
        gt=0,
        le=86400,
        description="Longest interval between two complete cycles that integrals and `carry_over` count: of a longer one "
        "nobody knows what the errors were; three periods of 17 minutes.",
    )
    max_nodes: Optional[int] = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Most nodes under a target at once; null for no limit.",
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
        "at once and counts: targets of nodes that are gone or no longer controlled, of groups "
        "no longer configured.",
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
