"""Way of a plan to the nodes: switch, state, former places, publishers, audit, state again.

The state is saved before anything is published, with the targets that stood until then, and again
afterwards. A cycle that is killed between the two leaves a state that says so: the next one knows
which targets may stand, which nodes may have changed, and which changes the audit lacks.

A writer is an installation, ``HOST:STATE_DIRECTORY``. Two with the same state directory on
different hosts are a pair of central managers: the one that runs takes over from the one that is
down, and leaves the place to one that goes on. Any other writer is a stranger, whose valid plan
stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Optional
from urllib.parse import quote

from sharectl.cycle.ports import Outlets, PlacedTargets, Publisher, StateStore
from sharectl.errors import ForeignPlanError, PartlyPublishedError, StateError, WithdrawnError
from sharectl.model import Disabled, Plan, Standing
from sharectl.plan.diff import EXPIRED, ChangeRecord, changes
from sharectl.plan.plan import OBSERVED, PlanConfig, State, withdrawal
from sharectl.times import shown
from sharectl.words import printable

MOST_VALID_SECONDS = 86_700
"""Nodes refuse plans that are valid for longer: a day, and 300 s for clocks."""
_MOST_SHOWN = 200


def writer_of(host: str, state_directory: Path) -> str:
    """Name of an installation, ASCII on one line."""
    return f"{quote(host)}:{quote(str(state_directory))}"


def are_partners(writer: str, other: str) -> bool:
    """True if two writers may be a pair of central managers."""
    return writer.partition(":")[2] == other.partition(":")[2]


def foreign_writer(held: PlacedTargets, own: str, state: State, now: int) -> Optional[str]:
    """Writer of a plan that nodes accept at Unix time ``now``, if it is another installation.

    A partner's plan up to the last sequence of ``state`` is that of a shared state directory.
    """
    writer, sequence = held.writer, held.sequence or 0
    is_refused = held.targets is None or (held.way != "collector" and held.problem is not None)
    is_valid = 0 < (held.valid_until or 0) - now <= MOST_VALID_SECONDS
    if writer in (None, own) or is_refused or not is_valid:
        return None
    return None if are_partners(writer, own) and sequence <= state.sequence else writer


def both_publish(state: State, now: int) -> bool:
    """True if a partner's newer plan is not of the central manager before this one."""
    return bool(state.foreign_sequence) or (now < state.standing_until and not state.observed)


def foreign_plan_words(held: PlacedTargets, writer: str, outcome: str) -> str:
    """Problem with another installation's plan, its ``outcome``, and the remedy."""
    name, host = printable(writer, _MOST_SHOWN), printable(writer.partition(":")[0], _MOST_SHOWN)
    until = shown(held.valid_until or 0)
    return (
        f"{held.place}: plan {held.sequence} of another sharectl, {name}, valid until {until}, "
        f"{outcome}; run `sharectl disable` for it on {host}, or let publish: name another place, "
        "here or there"
    )


MAX_AHEAD_SECONDS = 300
"""Most seconds that a sequence may be ahead of now: nodes refuse later ones (`future`)."""


class Failures:
    """Failures that stop nothing else: a StateError of ``with failures:`` is kept."""

    def __init__(self, errors: Iterable[StateError] = ()) -> None:
        self.errors = list(errors)

    def __enter__(self) -> None:
        """Begin a body whose StateError is kept."""

    def __exit__(self, _kind: object, error: Optional[BaseException], _trace: object) -> bool:
        """Keep a StateError of the body; the program goes on after the body."""
        if isinstance(error, StateError):
            self.errors.append(error)
        return isinstance(error, StateError)

    @property
    def messages(self) -> tuple[str, ...]:
        """Lines without repetition."""
        return tuple(dict.fromkeys(chain.from_iterable(error.problems for error in self.errors)))

    @property
    def kind(self) -> type[StateError]:
        """Kind of an error that stands for all of them."""
        are_foreign = all(isinstance(error, ForeignPlanError) for error in self.errors)
        return ForeignPlanError if are_foreign else StateError


@dataclass(frozen=True)
class Proposal:
    """A plan to publish."""

    plan: Plan
    after: State
    """State once it is published."""
    text: str = ""
    """An operator's reason."""


@dataclass(frozen=True)
class Publication:
    """Outcome of a publication."""

    plan: Optional[Plan] = None
    """Last plan that was published; None if none was."""
    places: tuple[str, ...] = ()
    """Places that took it; empty if every publisher failed."""
    emptied: tuple[str, ...] = ()
    """Places that the configuration names no more, from which targets were taken away."""
    everywhere: bool = False
    """True if every place took it, and no former place may have targets."""
    is_left: bool = False
    """True if nothing was published because another installation's plan stands."""
    disabled: Optional[Disabled] = None
    """Reason why no plan is published; None if sharectl is on."""
    errors: tuple[StateError, ...] = ()


@dataclass(frozen=True)
class Publishing:
    """Publication at one time. The caller holds the lock, unless a method needs none."""

    config: PlanConfig
    outlets: Outlets
    now: int
    """Unix seconds."""
    _failures: Failures = field(default_factory=Failures)

    def publish_unless_disabled(self, proposal: Optional[Proposal], before: State) -> Publication:
        """Publish the proposal; if sharectl is off or observes, withdraw targets that may stand."""
        off = self._switched()
        done = Publication()
        if self.config.observes:
            done = self._rehearse(proposal, before)
        elif off is None and proposal is not None:
            yielded = self._yielded(before)
            if yielded is not None:
                done = Publication(is_left=True)
                with self._failures:
                    self.outlets.state.save(yielded)
            else:
                done, before = self._publish(proposal, before)
                # `sharectl disable` that could not get the lock relies on this look.
                off = in_force(self.outlets.switch.disabled(), self.now)
        if off is not None and not self.config.observes and not before.withdrawn:
            done = self.withdraw(off, before)
        return replace(done, disabled=off, errors=tuple(self._failures.errors))

    def withdraw(self, off: Disabled, before: State) -> Publication:
        """Publish a plan without targets, and remember that."""
        plan, after = withdrawal(self.config, before, self.now, "disabled")
        done, _ = self._publish(Proposal(plan, after, text=off.reason), before)
        return replace(done, disabled=off, errors=tuple(self._failures.errors))

    def withdraw_unlocked(self, off: Disabled) -> Publication:
        """Publish a plan without targets beside a cycle that has the lock, and withdraws again."""
        with self.outlets.switch.alone():
            before, errors = load_state(self.outlets.state, self.now)
            plan, _ = withdrawal(self.config, before, self.now, "disabled")
            done = self._everywhere(plan, before)
        return replace(done, disabled=off, errors=(*errors, *self._failures.errors))

    def _yielded(self, before: State) -> Optional[State]:
        """State that remembers another installation's plan, which is left; None without one.

        A partner's plan without targets is replaced, and one that was not renewed after the last
        cycle: that partner has ended.
        """
        held = chain.from_iterable(publisher.held() for publisher in self.outlets.publishers)
        foreign = [*self._foreign(held, before)]
        partners_go_on, seen = both_publish(before, self.now), before.foreign_sequence
        sequences = [
            place.sequence or 0
            for place, writer in foreign
            if not are_partners(writer, self.outlets.writer)
            or (place.targets and partners_go_on and (place.sequence or 0) > seen)
        ]
        if not sequences:
            return None
        for place, writer in foreign:
            problem = foreign_plan_words(place, writer, "stays: nothing is published meanwhile")
            self._failures.errors.append(ForeignPlanError(problem))
        return replace(before, foreign_sequence=max(sequences))

    def _foreign(
        self, held: Iterable[PlacedTargets], before: State
    ) -> Iterator[tuple[PlacedTargets, str]]:
        """Places of ``held`` with another installation's valid plan, and its writer."""
        for place in held:
            if writer := foreign_writer(place, self.outlets.writer, before, self.now):
                yield place, writer

    def _rehearse(self, proposal: Optional[Proposal], before: State) -> Publication:
        """Withdraw targets of earlier plans, and remember the proposal as if it was published."""
        done, real = Publication(), before
        stands = before.sequence and not before.withdrawn
        yielded = self._yielded(before) if stands else None
        if yielded is not None:
            done = Publication(is_left=True)
        elif stands:
            done, real = self._publish(
                Proposal(*withdrawal(self.config, before, self.now, OBSERVED)), before
            )
        after = replace(
            before if proposal is None else proposal.after,
            observed=True,
            sequence=real.sequence,
            withdrawn=real.withdrawn,
            uncertain_nodes=real.uncertain_nodes,
            unaudited=real.unaudited,
            foreign_sequence=yielded.foreign_sequence if yielded is not None else 0,
        )
        with self._failures:
            self.outlets.state.save(after)
        return done

    def _switched(self) -> Optional[Disabled]:
        """Reason why sharectl is off; one that has run out is removed here."""
        off = self.outlets.switch.disabled()
        if off is None or off.in_force_at(self.now):
            return off
        with self._failures:
            if not self.outlets.switch.enable_after(self.now):
                return in_force(self.outlets.switch.disabled(), self.now)
            self.outlets.audit.switched(off, self.now, on=True)
        return None

    def _publish(self, proposal: Proposal, before: State) -> tuple[Publication, State]:
        """Publish a plan everywhere while the switch is held; also returned is the saved state."""
        with self.outlets.switch.alone():
            changed = changes(before.standing_at(self.now), proposal.after.standing)
            after = replace(
                proposal.after,
                unaudited=_audited(before),
                uncertain_nodes=before.uncertain_nodes + len(changed),
            )
            with self._failures:
                self.outlets.state.save(after)
            with self._failures:
                self.outlets.former.remember(proposal.plan)
            done = self._everywhere(proposal.plan, before)
            # Where every publisher failed some targets may be out all the same: the state stays
            # that of a cycle that was killed here.
            if done.places:
                withdrawn = not proposal.plan.targets and done.everywhere
                after = replace(after, uncertain_nodes=0, withdrawn=withdrawn)
                with self._failures:
                    self._audit(proposal, before)
                    after = replace(after, unaudited=None)
            with self._failures:
                self.outlets.state.save(after)
        return done, after

    def _everywhere(self, plan: Plan, before: State) -> Publication:
        if plan.targets:
            # Former places first: one may be a place of the configuration under another name.
            emptied, all_emptied = self._emptied(plan, before)
            places, partly = self._taken(plan, self._while_on(), before)
        else:
            places, partly = self._taken(plan, self.outlets.publishers, before)
            emptied, all_emptied = self._emptied(plan, before)
        everywhere = all_emptied and not partly and len(places) == len(self.outlets.publishers)
        return Publication(plan, places, emptied, everywhere)

    def _while_on(self) -> Iterator[Publisher]:
        """Publishers, until sharectl is switched off: no targets may follow the withdrawal."""
        for publisher in self.outlets.publishers:
            if in_force(self.outlets.switch.disabled(), self.now) is None:
                yield publisher

    def _emptied(self, plan: Plan, before: State) -> tuple[tuple[str, ...], bool]:
        """Former places that were emptied, and true if these are all of them."""
        with self._failures:
            former = [
                publisher
                for publisher in self.outlets.former.publishers()
                if not any(self._foreign(publisher.held(), before))
            ]
            emptied, partly = self._taken(replace(plan, targets=()), former, before)
            return emptied, len(emptied) == len(former) and not partly
        return (), False

    def _taken(
        self, plan: Plan, publishers: Iterable[Publisher], before: State
    ) -> tuple[tuple[str, ...], bool]:
        """Places of the publishers that took the plan; true if one has it in part."""
        places: list[str] = []
        partly = False
        for publisher in publishers:
            held, taken = publisher.held(), len(places)
            with self._failures:
                try:
                    places.append(publisher.publish(plan))
                except (WithdrawnError, PartlyPublishedError) as error:
                    places.append(error.place)
                    partly = partly or isinstance(error, PartlyPublishedError)
                    raise
            if len(places) > taken:
                self._failures.errors += self._replaced(held, plan, before)
        return tuple(places), partly

    def _replaced(
        self, held: Iterable[PlacedTargets], plan: Plan, before: State
    ) -> Iterator[ForeignPlanError]:
        for place, writer in self._foreign(held, before):
            if place.targets or plan.targets:
                outcome = "taken over" if plan.targets else "replaced by one without targets"
                outcome += ": if its cycles go on, it publishes again"
                yield ForeignPlanError(foreign_plan_words(place, writer, outcome))

    def _audit(self, proposal: Proposal, before: State) -> None:
        """Record the end of targets that ran out, then the changes that the plan made."""
        plan, stood = proposal.plan, _audited(before)
        recovered = before.unaudited is not None
        ended = changes(stood, ()) if self.now >= before.standing_until else ()
        made = changes(() if ended else stood, proposal.after.standing)
        for record in (
            ChangeRecord(ended, plan, EXPIRED, recovered=recovered),
            ChangeRecord(made, plan, plan.reason, proposal.text, recovered),
        ):
            if record.changes:
                self.outlets.audit.changed(record, self.now)


def _audited(state: State) -> tuple[Standing, ...]:
    return state.placed if state.unaudited is None else state.unaudited


def in_force(off: Optional[Disabled], now: int) -> Optional[Disabled]:
    """``off`` unless its time is over at Unix time ``now``."""
    return off if off is not None and off.in_force_at(now) else None


def load_state(store: StateStore, now: int) -> tuple[State, list[StateError]]:
    """Saved state, usable at Unix time ``now``; a fresh one if the file is broken: cycles go on."""
    failures, state = Failures(), State()
    with failures:
        state = store.load()
    for error in failures.errors:
        state = State(max(1, error.sequence))  # a plan may have been published
    state, problem = of_now(state, now)
    return state, failures.errors if problem is None else [*failures.errors, StateError(problem)]


def of_now(state: State, now: int) -> tuple[State, Optional[str]]:
    """State that is usable at Unix time ``now``, and a problem if a clock was ahead.

    After a cycle whose clock was ahead no target counts as standing: its nodes count as changed,
    and the audit will record that the targets are gone.
    """
    ahead_seconds = state.sequence - now
    if ahead_seconds <= MAX_AHEAD_SECONDS:
        return state, None
    usable = State(
        nodes=state.nodes,
        schedds=state.schedds,
        withdrawn=state.withdrawn,
        uncertain_nodes=state.uncertain_nodes + len(state.placed),
        unaudited=_audited(state),
        controllers=state.controllers,
    )
    return usable, (
        f"the last plan was made at {shown(state.sequence)}, {ahead_seconds} s from now: the "
        "clock of this machine was ahead then, or is behind now; nodes refuse such a plan "
        "(future). Sequence and targets begin again from now; see `timedatectl`, and whether "
        "chronyd or ntpd runs"
    )
