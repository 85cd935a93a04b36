"""What would change a decision: found by deciding again with one thing changed, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Optional

from sharectl.core.model import Snapshot
from sharectl.core.plan import NOTHING_KNOWN, Decision, Known, PlanConfig, State, decide

PRECISION = 0.005
"""Part of a change up to which the smallest one is looked for, where it is no whole number."""


@dataclass(frozen=True)
class Case:
    """All that a decision is made from."""

    config: PlanConfig
    state: State
    snapshot: Snapshot
    now: int
    known: Known = NOTHING_KNOWN

    def decided(self) -> Decision:
        """What is decided."""
        return decide(self.config, self.state, self.snapshot, self.now, self.known)


@dataclass(frozen=True)
class Knob:
    """One thing that could be otherwise."""

    code: str
    """One of `sharectl.core.explain.CHANGES`."""
    what: str
    """What it is, such as ``8-core jobs of cms pending``."""
    value: Optional[float]
    """What it is now; None for what is no number."""
    extreme: Optional[float]
    """As far as it is changed; None for nothing at all, as a limit that is lifted."""
    apply: Callable[[Case, Optional[float]], Case]
    whole: bool = True
    """Whether only whole numbers make sense."""
    seen: Optional[Callable[[Decision], float]] = None
    """What to show instead of the value that was set: what it makes of a decision."""


@dataclass(frozen=True)
class Flip:
    """A change that would change the outcome."""

    code: str
    what: str
    value: Optional[float]
    becomes: Optional[float]
    """What it would have to be; the smallest change that was found to do."""
    outcome: str
    """What would come of it."""


@dataclass
class Budget:
    """How many more decisions may be made: each takes long on a large pool."""

    decisions: int

    @property
    def enough(self) -> bool:
        """Whether all could be tried."""
        return self.decisions >= 0

    def spent(self) -> bool:
        """Whether it is used up; counts one more."""
        self.decisions -= 1
        return self.decisions < 0


Outcome = Callable[[Decision], str]


def budget_for(nodes: int) -> int:
    """Decisions that a pool of so many nodes allows in some seconds."""
    return max(12, min(90, 40_000 // max(1, nodes)))


def flips(
    case: Case, knobs: Iterable[Knob], outcome: Outcome, budget: Budget, decided: Optional[Decision] = None
) -> tuple[Flip, ...]:
    """For each of ``knobs`` that can change the outcome, the smallest change that does; as far as the budget goes.

    Parameters
    ----------
    decided
        What ``case`` comes to, where that is known already.
    """
    decided = decided or case.decided()
    found = []
    for knob in knobs:
        flip = _smallest(case, knob, outcome, outcome(decided), budget)
        if flip is not None:
            found.append(_as_seen(flip, case, knob, decided))
    return tuple(found)


def needed_together(
    case: Case, conditions: Iterable[Knob], outcome: Outcome, budget: Budget
) -> tuple[Flip, ...]:
    """For where none of ``conditions`` is enough alone: those that change the outcome together, without any that need not be."""

    def at(chosen: Iterable[Knob]) -> str:
        changed = case
        for knob in chosen:
            changed = knob.apply(changed, knob.extreme)
        return present if budget.spent() else outcome(changed.decided())

    present, needed = outcome(case.decided()), list(conditions)
    said = at(needed)
    if said == present:
        return ()
    for knob in tuple(needed):
        rest = [each for each in needed if each is not knob]
        if at(rest) == said:
            needed = rest
    what = " and ".join(knob.what if knob.value is None else f"{knob.what} is lifted" for knob in needed)
    return (Flip(needed[0].code, what, None, None, said),)


def _as_seen(flip: Flip, case: Case, knob: Knob, decided: Decision) -> Flip:
    if knob.seen is None:
        return flip
    there = knob.apply(case, flip.becomes).decided()
    return replace(flip, value=knob.seen(decided), becomes=knob.seen(there))


def _smallest(case: Case, knob: Knob, outcome: Outcome, present: str, budget: Budget) -> Optional[Flip]:
    def at(value: Optional[float]) -> str:
        return present if budget.spent() else outcome(knob.apply(case, value).decided())

    far = at(knob.extreme)
    if far == present:
        return None
    if knob.value is None or knob.extreme is None:
        return Flip(knob.code, knob.what, knob.value, knob.extreme, far)
    same, other, said = knob.value, knob.extreme, far
    step = (1.0 if knob.extreme > knob.value else -1.0) * (
        1.0 if knob.whole else abs(knob.extreme - knob.value) * PRECISION
    )
    # The next step often does: look there before halving all of the way.
    near = knob.value + step
    if abs(near - knob.value) < abs(knob.extreme - knob.value):
        seen = at(near)
        if seen != present:
            return Flip(knob.code, knob.what, knob.value, near, seen)
        same = near
    while abs(other - same) > abs(step) and budget.decisions > 0:
        middle = (same + other) / 2
        middle = float(round(middle)) if knob.whole else middle
        seen = at(middle)
        same, other, said = (middle, other, said) if seen == present else (same, middle, seen)
    return Flip(knob.code, knob.what, knob.value, other, said)
