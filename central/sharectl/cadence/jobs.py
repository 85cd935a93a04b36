"""Jobs that ran, as logs and histories tell of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

CountedJob = tuple[str, int, int]
"""Group, cores, whole seconds."""


@dataclass
class JobsRun:
    """Jobs that ran, by group and size."""

    counted: Counter[CountedJob] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason -> jobs."""


class LoggedJob(NamedTuple):
    """A job that ran."""

    submitted_at: float
    """Seconds since any moment."""
    run_seconds: float
    cores: int
    memory_mib: int
    """Of the whole job; 0 if unknown."""
    user: str
    group: str
    queue: str
