"""One cycle: look, decide, publish, remember. All I/O is behind ports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Callable, Optional

from sharectl.cycle.doubts import doubts, with_restart
from sharectl.cycle.ports import History, Pool
from sharectl.cycle.publication import (
    Outlets,
    Proposal,
    Publication,
    in_force,
    load_state,
    publish_unless_disabled,
    tried,
)
from sharectl.cycle.record import record_of
from sharectl.model import Disabled, GroupError, Plan, Snapshot
from sharectl.plan.plan import NOTHING_KNOWN, Decision, Known, PlanConfig, State, decide, withdrawal
from sharectl.plan.records import CycleRecord
from sharectl.shares.pledges import Pledged


@dataclass(frozen=True)
class Ports(Outlets):
    """The world of one cycle."""

    pool: Pool
    history: History


@dataclass(frozen=True)
class CycleResult:
    """What a cycle did."""

    snapshot: Snapshot
    errors: tuple[GroupError, ...]
    """Empty if the snapshot is incomplete: missing data is never zero."""
    plan: Optional[Plan]
    """What was published, or would be but for a dry run; None if nothing may change or nothing had to."""
    published: tuple[str, ...]
    """Where the plan went; empty on a dry run."""
    left: tuple[str, ...]
    """Places that the configuration names no more, and from which targets were taken away."""
    problems: tuple[str, ...]
    """What went wrong on the way, one line each; a cycle with problems is not a success."""
    disabled: Optional[Disabled] = None
    """What keeps plans from being published."""
    enabled_again: Optional[Disabled] = None
    """What kept them from it until this cycle found its time to be over."""
    warnings: tuple[str, ...] = ()
    """What the configuration probably does not mean so, one line each; no failure of the cycle."""
    record: Optional[CycleRecord] = None
    """What history was given; None on a dry run."""


@dataclass(frozen=True)
class Circumstances:
    """How a cycle is run."""

    withdraw_incomplete: bool = False
    """Publish a plan without targets when the pool does not answer completely. Otherwise nothing is published then,
    and what stands runs out by its own validity."""
    dry_run: bool = False
    """Write nothing: neither the plan nor history nor state.

    The plan is that of a cycle that is not disabled.
    """
    elapsed: Callable[[], float] = lambda: 0.0
    """Seconds since ``now`` of the cycle."""
    configuration: str = ""
    """Digest of what decides, for the record."""
    pledges: Optional[Pledged] = None
    """Where the pledges of the configuration are from, if not from its file: how that answered is part of the cycle."""


def run_cycle(
    config: PlanConfig, ports: Ports, now: int, how: Circumstances = Circumstances()
) -> CycleResult:
    """Result of a whole cycle at Unix time ``now``."""
    problems: list[str] = []
    # A dry run may be of a user who cannot read what sharectl keeps.
    own: list[str] = [] if how.dry_run else problems
    state = load_state(ports.state, now, own)
    snapshot = with_restart(ports.pool.snapshot(now), state)
    if how.pledges is not None:
        # Pledges that cannot be had are like a schedd that does not answer: nothing may be decided.
        snapshot = replace(snapshot, sources=(*snapshot.sources, how.pledges.source))
    problems += [f"{source.name}: {source.problem}" for source in snapshot.problems]
    decision: Optional[Decision] = None
    proposal: Optional[Proposal] = None
    warnings: tuple[str, ...] = ()
    if snapshot.complete:
        decision = decide(config, state, snapshot, now, _known(config, ports, own))
        warnings = doubts(config, state, snapshot, now)
        proposal = Proposal(decision.plan, decision.state, snapshot)
        # Known from now on, published or not.
        state = replace(state, nodes=len(snapshot.nodes), schedds=snapshot.schedds)
    else:
        state = _not_looked(state, ports, how, problems)
        if how.withdraw_incomplete:
            proposal = Proposal(*withdrawal(config, state, now))
    record: Optional[CycleRecord] = None
    if how.dry_run:
        done = Publication(
            proposal.plan if proposal else None, disabled=in_force(ports.switch.disabled(), now)
        )
    else:
        # Targets first: a full disk of the history must not keep them from the nodes.
        at = now + ceil(how.elapsed())
        done = publish_unless_disabled(config, proposal, state, ports, at, problems)
        record = _recorded(config, ports, (snapshot, decision, done), how, problems)
    return CycleResult(
        snapshot,
        tuple(control.error for control in decision.groups) if decision else (),
        done.plan,
        done.places,
        done.left,
        tuple(problems),
        disabled=done.disabled,
        enabled_again=done.enabled_again,
        warnings=(
            *(how.pledges.warnings if how.pledges is not None else ()),
            *(own if how.dry_run else ()),
            *warnings,
        ),
        record=record,
    )


def _not_looked(state: State, ports: Ports, how: Circumstances, problems: list[str]) -> State:
    """State after a look that was not complete: that blocks stood free meanwhile is no fault of those who wait."""
    after = replace(state, blocks=state.blocks.looked_at_anew)
    if after != state and not how.dry_run:
        tried(lambda: ports.state.save(after), problems)
    return after


def _known(config: PlanConfig, ports: Ports, problems: list[str]) -> Known:
    """What earlier cycles have learnt, or nothing: a broken ledger must not end the control of a pool either."""
    learnt = [NOTHING_KNOWN]
    tried(lambda: learnt.append(ports.history.known(tuple(config.pledge_hs06))), problems)
    return learnt[-1]


def _recorded(
    config: PlanConfig,
    ports: Ports,
    what: tuple[Snapshot, Optional[Decision], Publication],
    how: Circumstances,
    problems: list[str],
) -> CycleRecord:
    snapshot, decision, done = what
    made = record_of(
        config, snapshot, decision, done.plan, done.places, disabled=done.disabled is not None
    )
    record = replace(
        made, seconds=how.elapsed(), problems=tuple(problems), configuration=how.configuration
    )
    tried(lambda: ports.history.record(record, snapshot), problems)
    return record
