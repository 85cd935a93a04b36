"""How a plan reaches the nodes: the switch is looked at before and after, state and audit tell what was published.

The state is saved before anything is published, with what stood until then, and again afterwards. A
cycle that is killed between leaves a state that says so: the next one knows what may stand, what
may have changed, and what the audit has not been told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Callable, Optional

from sharectl.cycle.clock import of_now
from sharectl.cycle.ports import Audit, LeftPlaces, Publisher, StateStore, Switch
from sharectl.errors import BrokenStateError, StateError, UnsignedError
from sharectl.model import Disabled, Plan, Snapshot
from sharectl.plan.diff import EXPIRED, ChangeRecord, changes
from sharectl.plan.plan import PlanConfig, State, withdrawal


@dataclass(frozen=True)
class Outlets:
    """All that a publication goes through."""

    publishers: Sequence[Publisher]
    state: StateStore
    switch: Switch
    audit: Audit
    left: LeftPlaces


@dataclass(frozen=True)
class Proposal:
    """A plan to publish."""

    plan: Plan
    after: State
    """State once it is published."""
    snapshot: Optional[Snapshot] = None
    """What it was decided on."""
    text: str = ""
    """An operator's reason."""


@dataclass(frozen=True)
class Publication:
    """What became of a plan."""

    plan: Optional[Plan] = None
    """What was published last; None if nothing was."""
    places: tuple[str, ...] = ()
    """Where; empty if every publisher failed."""
    left: tuple[str, ...] = ()
    """Places that the configuration names no more, and from which targets were taken away."""
    disabled: Optional[Disabled] = None
    """What keeps plans from being published."""
    enabled_again: Optional[Disabled] = None
    """What kept them from it until now, and has run out."""


def publish_unless_disabled(
    config: PlanConfig,
    proposal: Optional[Proposal],
    before: State,
    outlets: Outlets,
    now: int,
    problems: list[str],
) -> Publication:
    """What was published: the plan proposed, or a withdrawal if sharectl is off and targets may still stand.

    To be called under the lock. What fails is added to ``problems``.
    """
    off, enabled_again = _switched(outlets, now, problems)
    if off is None and proposal is not None:
        done, before = publish(proposal, before, outlets, now, problems)
        # Whoever switched it off meanwhile, without the lock, relies on this look.
        off = in_force(outlets.switch.disabled(), now)
        if off is None or before.withdrawn:
            return replace(done, disabled=off, enabled_again=enabled_again)
    if off is not None and not before.withdrawn:
        return replace(
            withdraw(config, off, before, outlets, now, problems), enabled_again=enabled_again
        )
    return Publication(disabled=off, enabled_again=enabled_again)


def withdraw(
    config: PlanConfig,
    off: Disabled,
    before: State,
    outlets: Outlets,
    now: int,
    problems: list[str],
) -> Publication:
    """What was published to take all targets away. What fails is added to ``problems``."""
    decided, after = withdrawal(config, before, now, reason="disabled")
    done, _ = publish(Proposal(decided, after, text=off.reason), before, outlets, now, problems)
    return replace(done, disabled=off)


def withdraw_unlocked(
    config: PlanConfig, off: Disabled, outlets: Outlets, now: int, problems: list[str]
) -> Publication:
    """What was published beside a cycle that has the lock: nothing is remembered, that cycle does it once more."""
    with outlets.switch.alone():
        before = load_state(outlets.state, now, problems)
        decided, _ = withdrawal(config, before, now, reason="disabled")
        places, left, _ = _everywhere(decided, outlets, now, problems)
    return Publication(decided, places, left, disabled=off)


def load_state(store: StateStore, now: int, problems: list[str]) -> State:
    """Saved state as it can be used at Unix time ``now``, or a fresh one if the file is broken: cycles go on."""
    loaded = [State()]

    def load() -> None:
        try:
            loaded.append(store.load())
        except BrokenStateError as error:
            loaded.append(State(error.sequence))
            raise

    tried(load, problems)
    state, problem = of_now(loaded[-1], now)
    if problem is not None and problem not in problems:
        problems.append(problem)
    return state


def publish(
    proposal: Proposal, before: State, outlets: Outlets, now: int, problems: list[str]
) -> tuple[Publication, State]:
    """What was published, and the state it leaves. A publisher that fails does not stop the others."""
    with outlets.switch.alone():
        return _publish(proposal, before, outlets, now, problems)


def _publish(
    proposal: Proposal, before: State, outlets: Outlets, now: int, problems: list[str]
) -> tuple[Publication, State]:
    after = proposal.after
    known = before.standing if before.unaudited is None else before.unaudited
    touched = len(changes(before.standing_at(now), after.standing))
    begun = replace(after, unaudited=known, uncertain_nodes=before.uncertain_nodes + touched)
    tried(lambda: outlets.state.save(begun), problems)
    tried(partial(outlets.left.remember, proposal.plan), problems)
    places, left, all_left = _everywhere(proposal.plan, outlets, now, problems)
    if places:
        told = tried(lambda: _tell(outlets.audit, proposal, before, now), problems)
        withdrawn = (
            not proposal.plan.targets and all_left and len(places) == len(outlets.publishers)
        )
        after = replace(
            after, unaudited=None if told else known, uncertain_nodes=0, withdrawn=withdrawn
        )
    else:
        # Some of it may be out all the same: as if the cycle had been killed here.
        after = begun
    tried(lambda: outlets.state.save(after), problems)
    return Publication(proposal.plan, places, left), after


def _everywhere(
    decided: Plan, outlets: Outlets, now: int, problems: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Where the plan was published, which places were emptied, and whether these are all that were left."""
    if not decided.targets:
        places = _published(decided, outlets.publishers, problems)
        return (places, *_emptied(decided, outlets, problems))
    # A collector that was left may be one that is only named otherwise now: it must not be emptied
    # afterwards.
    left, all_left = _emptied(decided, outlets, problems)
    # Whoever disables does not wait for long: targets must not follow the withdrawal.
    on = (to for to in outlets.publishers if in_force(outlets.switch.disabled(), now) is None)
    return _published(decided, on, problems), left, all_left


def _emptied(decided: Plan, outlets: Outlets, problems: list[str]) -> tuple[tuple[str, ...], bool]:
    """Places that were left and hold no targets now, and whether these are all of them."""
    found: list[Publisher] = []
    known = tried(lambda: found.extend(outlets.left.publishers()), problems)
    emptied = _published(replace(decided, targets=()), found, problems)
    return emptied, known and len(emptied) == len(found)


def _published(
    decided: Plan, publishers: Iterable[Publisher], problems: list[str]
) -> tuple[str, ...]:
    places: list[str] = []
    for publisher in publishers:
        tried(partial(_publish_by, publisher, decided, places), problems)
    return tuple(places)


def _publish_by(publisher: Publisher, decided: Plan, places: list[str]) -> None:
    try:
        places.append(publisher.publish(decided))
    except UnsignedError as error:
        places.append(error.place)
        raise


def _tell(audit: Audit, proposal: Proposal, before: State, now: int) -> None:
    known = before.standing if before.unaudited is None else before.unaudited
    said = ChangeRecord(
        (),
        proposal.plan,
        proposal.plan.reason,
        proposal.text,
        proposal.snapshot,
        before.unaudited is not None,
    )
    if now >= before.standing_until:
        lapsed = changes(known, ())
        if lapsed:
            audit.changed(
                replace(said, changes=lapsed, reason=EXPIRED, text="", snapshot=None), now
            )
        known = ()
    made = changes(known, proposal.after.standing)
    if made:
        audit.changed(replace(said, changes=made), now)


def _switched(
    outlets: Outlets, now: int, problems: list[str]
) -> tuple[Optional[Disabled], Optional[Disabled]]:
    """What keeps plans from being published, and what did so until its time was over; it is removed then."""
    off = outlets.switch.disabled()
    if off is None or off.in_force_at(now):
        return off, None
    removed: list[bool] = []
    if not tried(lambda: removed.append(outlets.switch.enable_after(now)), problems):
        return None, None
    if not all(removed):
        return in_force(outlets.switch.disabled(), now), None
    tried(lambda: outlets.audit.switched(True, off, now), problems)  # noqa: FBT003 - the port's only flag
    return None, off


def in_force(off: Optional[Disabled], now: int) -> Optional[Disabled]:
    """``off`` unless its time is over at Unix time ``now``."""
    return off if off is not None and off.in_force_at(now) else None


def tried(action: Callable[[], object], problems: list[str]) -> bool:
    """Whether ``action`` went well; what it says otherwise is added to ``problems``, once."""
    try:
        action()
    except StateError as error:
        if error.supersedes in problems:
            problems.remove(error.supersedes)
        if str(error) not in problems:
            problems.append(str(error))
        return False
    return True
