"""Way of a plan to the nodes: switch, state, left places, publishers, audit, state again.

The state is saved before anything is published, with the targets that stood until then, and again
afterwards. A cycle that is killed between the two leaves a state that says so: the next one knows
which targets may stand, which nodes may have changed, and which changes the audit lacks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Optional

from sharectl.cycle.ports import Audit, LeftPlaces, Publisher, StateStore, Switch
from sharectl.errors import BrokenStateError, StateError, UnsignedError
from sharectl.model import Disabled, Plan, Snapshot, Standing
from sharectl.plan.diff import EXPIRED, ChangeRecord, changes
from sharectl.plan.plan import PlanConfig, State, withdrawal
from sharectl.times import shown

MAX_AHEAD_SECONDS = 300
"""Most seconds that a sequence may be ahead of now: nodes refuse later ones (`future`)."""


@dataclass(frozen=True)
class Outlets:
    """Ports of a publication."""

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
    """Snapshot that it was decided on."""
    text: str = ""
    """An operator's reason."""


@dataclass(frozen=True)
class Publication:
    """Outcome of a publication."""

    plan: Optional[Plan] = None
    """Last plan that was published; None if none was."""
    places: tuple[str, ...] = ()
    """Places that took it; empty if every publisher failed."""
    left: tuple[str, ...] = ()
    """Places that the configuration names no more, from which targets were taken away."""
    disabled: Optional[Disabled] = None
    """Reason why no plan is published; None if sharectl is on."""
    enabled_again: Optional[Disabled] = None
    """Reason that ran out, so that this publication switched sharectl on."""


@dataclass(frozen=True)
class Publishing:
    """Publication at one time. Failures are added to ``problems`` and stop nothing else."""

    config: PlanConfig
    outlets: Outlets
    now: int
    """Unix seconds."""
    problems: list[str]

    def publish_unless_disabled(self, proposal: Optional[Proposal], before: State) -> Publication:
        """Publish the proposal, or withdraw all targets that may stand if sharectl is off.

        The caller holds the lock.
        """
        off, enabled_again = self._switched()
        done = Publication()
        if off is None and proposal is not None:
            done, before = self.publish(proposal, before)
            # `sharectl disable` that could not get the lock relies on this look.
            off = in_force(self.outlets.switch.disabled(), self.now)
        if off is not None and not before.withdrawn:
            done = self.withdraw(off, before)
        return replace(done, disabled=off, enabled_again=enabled_again)

    def withdraw(self, off: Disabled, before: State) -> Publication:
        """Publish a plan without targets, and remember that. The caller holds the lock."""
        plan, after = withdrawal(self.config, before, self.now, reason="disabled")
        done, _ = self.publish(Proposal(plan, after, text=off.reason), before)
        return replace(done, disabled=off)

    def withdraw_unlocked(self, off: Disabled) -> Publication:
        """Publish a plan without targets beside a cycle that has the lock.

        Nothing is remembered: that cycle withdraws again.
        """
        with self.outlets.switch.alone():
            before = load_state(self.outlets.state, self.now, self.problems)
            plan, _ = withdrawal(self.config, before, self.now, reason="disabled")
            places, left, _ = self._everywhere(plan)
        return Publication(plan, places, left, disabled=off)

    def publish(self, proposal: Proposal, before: State) -> tuple[Publication, State]:
        """Publish a plan everywhere, tell the audit, and save the state, which is returned too.

        The switch is held meanwhile.
        """
        with self.outlets.switch.alone():
            plan, state = proposal.plan, self.outlets.state
            changed = changes(before.standing_at(self.now), proposal.after.standing)
            after = replace(
                proposal.after,
                unaudited=_audited(before),
                uncertain_nodes=before.uncertain_nodes + len(changed),
            )
            with noted(self.problems):
                state.save(after)
            with noted(self.problems):
                self.outlets.left.remember(plan)
            places, left, all_left = self._everywhere(plan)
            # Where every publisher failed some targets may be out all the same: the state stays
            # that of a cycle that was killed here.
            if places:
                all_taken = all_left and len(places) == len(self.outlets.publishers)
                after = replace(after, uncertain_nodes=0, withdrawn=not plan.targets and all_taken)
                with noted(self.problems):
                    self._tell_audit(proposal, before)
                    after = replace(after, unaudited=None)
            with noted(self.problems):
                state.save(after)
        return Publication(plan, places, left), after

    def _everywhere(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        """Publish to places of the configuration and empty left ones.

        Returns the places of either kind that took it, and whether no left place may have targets.
        """
        if not plan.targets:
            places = self._published(plan, self.outlets.publishers)
            return (places, *self._emptied(plan))
        # Left places first: one may be a place of the configuration under another name.
        left, all_left = self._emptied(plan)
        return self._published(plan, self._while_on()), left, all_left

    def _while_on(self) -> Iterator[Publisher]:
        """Publishers, until sharectl is switched off: no targets may follow the withdrawal."""
        for publisher in self.outlets.publishers:
            if in_force(self.outlets.switch.disabled(), self.now) is None:
                yield publisher

    def _emptied(self, plan: Plan) -> tuple[tuple[str, ...], bool]:
        """Left places that were emptied, and whether these are all of them."""
        try:
            leaving = self.outlets.left.publishers()
        except StateError as error:
            note(error, self.problems)
            return (), False
        emptied = self._published(replace(plan, targets=()), leaving)
        return emptied, len(emptied) == len(leaving)

    def _published(self, plan: Plan, publishers: Iterable[Publisher]) -> tuple[str, ...]:
        """Places of the publishers that took the plan."""
        places = []
        for publisher in publishers:
            try:
                places.append(publisher.publish(plan))
            except StateError as error:
                note(error, self.problems)
                if isinstance(error, UnsignedError):
                    places.append(error.place)
        return tuple(places)

    def _tell_audit(self, proposal: Proposal, before: State) -> None:
        stood, plan, audit = _audited(before), proposal.plan, self.outlets.audit
        record = ChangeRecord(
            (),
            plan,
            plan.reason,
            proposal.text,
            proposal.snapshot,
            recovered=before.unaudited is not None,
        )
        if self.now >= before.standing_until:
            lapsed = replace(
                record, changes=changes(stood, ()), reason=EXPIRED, text="", snapshot=None
            )
            if lapsed.changes:
                audit.changed(lapsed, self.now)
            stood = ()
        made = changes(stood, proposal.after.standing)
        if made:
            audit.changed(replace(record, changes=made), self.now)

    def _switched(self) -> tuple[Optional[Disabled], Optional[Disabled]]:
        """Reason why sharectl is off; else the reason that has run out, which is removed here."""
        off = self.outlets.switch.disabled()
        if off is None or off.in_force_at(self.now):
            return off, None
        try:
            removed = self.outlets.switch.enable_after(self.now)
        except StateError as error:
            note(error, self.problems)
            return None, None
        if not removed:
            return in_force(self.outlets.switch.disabled(), self.now), None
        with noted(self.problems):
            self.outlets.audit.switched(off, self.now, on=True)
        return None, off


def _audited(state: State) -> tuple[Standing, ...]:
    """Targets that the audit knows of."""
    return state.standing if state.unaudited is None else state.unaudited


def in_force(off: Optional[Disabled], now: int) -> Optional[Disabled]:
    """``off`` unless its time is over at Unix time ``now``."""
    return off if off is not None and off.in_force_at(now) else None


def load_state(store: StateStore, now: int, problems: list[str]) -> State:
    """Saved state, usable at Unix time ``now``; a fresh one if the file is broken: cycles go on."""
    try:
        state = store.load()
    except StateError as error:
        note(error, problems)
        state = State(error.sequence if isinstance(error, BrokenStateError) else 0)
    state, problem = of_now(state, now)
    if problem is not None and problem not in problems:
        problems.append(problem)
    return state


def of_now(state: State, now: int) -> tuple[State, Optional[str]]:
    """State that is usable at Unix time ``now``, and a problem if a clock was ahead.

    A sequence is at least the second in which its plan was made. After a cycle whose clock was
    ahead no target counts as standing: its nodes count as changed, and the audit will be told that
    the targets are gone. Controllers keep their sums.
    """
    ahead_seconds = state.sequence - now
    if ahead_seconds <= MAX_AHEAD_SECONDS:
        return state, None
    usable = State(
        nodes=state.nodes,
        schedds=state.schedds,
        withdrawn=state.withdrawn,
        uncertain_nodes=state.uncertain_nodes + len(state.standing),
        unaudited=_audited(state),
        controllers=state.controllers,
    )
    return usable, (
        f"the last plan was made at {shown(state.sequence)}, {ahead_seconds} s from now: the "
        "clock of this machine was ahead then, or is behind now; nodes refuse such a plan "
        "(future). Sequence and targets begin again from now; see `timedatectl`, and whether "
        "chronyd or ntpd runs"
    )


@contextlib.contextmanager
def noted(problems: list[str]) -> Iterator[None]:
    """Add a StateError of the body to ``problems``, and go on after the body."""
    try:
        yield
    except StateError as error:
        note(error, problems)


def note(error: StateError, problems: list[str]) -> None:
    """Add a message to ``problems``, once, in the place of the one that it supersedes."""
    if error.supersedes in problems:
        problems.remove(error.supersedes)
    if str(error) not in problems:
        problems.append(str(error))
