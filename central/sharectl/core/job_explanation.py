"""Why a job is where it is: what its access point says, what the nodes make of it, and what its group has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Optional

from sharectl.core import job_reasons
from sharectl.core.claim_capacity import Group
from sharectl.core.job_verdict import Verdict
from sharectl.core.model import GroupError

_OF_STATUS: Mapping[int, str] = {
    2: job_reasons.RUNNING,
    3: job_reasons.REMOVED,
    4: job_reasons.COMPLETED,
    5: job_reasons.HELD,
    6: job_reasons.RUNNING,  # it transfers output
    7: job_reasons.RUNNING,  # it is suspended
}
"""JobStatus -> code."""

_WITHOUT_SLOT = (7, 9, 12)
"""Universes whose jobs hold no slot of the pool: scheduler, grid, local."""


@dataclass(frozen=True)
class Headroom:
    """What a job's group may use, and uses."""

    group: str
    """Configured group, or ``other``."""
    error: Optional[GroupError] = None
    """None of ``other``, and where the pool did not answer in full."""
    quotas: tuple[Group, ...] = ()
    """HTCondor's accounting groups that the job counts for, the outermost first."""
    problem: Optional[str] = None
    """Why the error is not known."""


def state_of(status: int, universe: int) -> Optional[str]:
    """Code of `job_reasons.VERDICTS` by what the schedd says; None of a job that waits for a slot."""
    code = _OF_STATUS.get(status)
    return job_reasons.NO_SLOT if code is None and universe in _WITHOUT_SLOT else code


def verdict_code(state: Optional[str], verdict: Optional[Verdict]) -> str:
    """Code of the whole: the job's state, if it does not wait, or what the slots make of it."""
    if state is not None:
        return state
    return job_reasons.NOT_EVALUATED if verdict is None else verdict.code


def quotas_of(accounting_group: Optional[str], groups: Iterable[Group]) -> tuple[Group, ...]:
    """Those of HTCondor's accounting groups that a job of ``accounting_group`` counts for, the outermost first."""
    name = (accounting_group or "").lower()
    above = [
        group for group in groups if name == group.name.lower() or name.startswith(f"{group.name.lower()}.")
    ]
    return tuple(sorted(above, key=lambda group: len(group.name)))
