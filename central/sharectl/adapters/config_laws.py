"""What the configuration says of control laws: which one acts, and its parameters. docs/control.md tells what they do."""

from __future__ import annotations

from typing import Literal, Optional

from pydantic import Field, model_validator

from sharectl.adapters.config_types import MAX_HS06, Section, wrong
from sharectl.core.carry_over import CarryOver
from sharectl.core.control_ewma import Ewma
from sharectl.core.control_pid import Pid

YEAR_SECONDS = 31_536_000

Law = Literal["latest", "ewma", "pid"]
LAW_DESCRIPTION = (
    "What is acted on: `latest`, the error of this cycle alone; `ewma`, the average of the errors; `pid`, the error, its sum "
    "over time and how fast the power changes (docs/control.md)."
)


class EwmaConfig(Section):
    """Parameters of the law ``ewma``."""

    half_life_seconds: float = Field(
        3600.0, gt=0, le=YEAR_SECONDS, description="Age at which an error counts half in the average."
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
            raise wrong("both pledge_hours and hs06_hours say how much is carried over; write one of them")
        return self

    def params(self, gap_seconds: float) -> Optional[CarryOver]:
        """As `sharectl.core.carry_over` takes it; None if nothing is carried over."""
        if not (self.pledge_hours or self.hs06_hours):
            return None
        return CarryOver(
            self.pledge_hours, self.hs06_hours, self.half_life_seconds, self.repay_seconds, gap_seconds
        )


class GroupControlConfig(Section):
    """A law of the group's own. What is written replaces the key of ``control``, each mapping as a whole; what is not stays."""

    law: Optional[Law] = Field(None, description=f"{LAW_DESCRIPTION} null for that of `control`.")
    ewma: Optional[EwmaConfig] = Field(
        None, description="As `control.ewma`; null for that. Keys that are not written have their defaults."
    )
    pid: Optional[PidConfig] = Field(
        None, description="As `control.pid`; null for that. Keys that are not written have their defaults."
    )
