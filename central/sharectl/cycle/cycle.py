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
    Publishing,
    in_force,
    load_state,
    note,
    noted,
)
from sharectl.cycle.record import record_of
from sharectl.errors import StateError
from sharectl.model import GroupError, Snapshot
from sharectl.plan.plan import NOTHING_KNOWN, Decision, Known, PlanConfig, State, decide, withdrawal
from sharectl.plan.records import CycleRecord
from sharectl.shares.pledges import Pledged


@dataclass(frozen=True)
class Ports(Outlets):
    """World of one cycle."""

    pool: Pool
    history: History


@dataclass(frozen=True)
class CycleResult:
    """Outcome of a cycle."""

    snapshot: Snapshot
    errors: tuple[GroupError, ...]
    """Empty if the snapshot is incomplete: missing data is never zero."""
    publication: Publication
    """On a dry run its plan is the one that would be published, and no place took it."""
    problems: tuple[str, ...]
    """Failures, one line each; a cycle with problems is not a success."""
    warnings: tuple[str, ...] = ()
    """Oddities of the configuration, one line each; no failure of the cycle."""
    record: Optional[CycleRecord] = None
    """Record that the history got; None on a dry run."""


@dataclass(frozen=True)
class Circumstances:
    """Manner in which a cycle is run."""

    withdraw_incomplete: bool = False
    """Publish a plan without targets when the pool does not answer completely.

    Otherwise nothing is published then, and targets that stand run out by their own validity.
    """
    dry_run: bool = False
    """Write nothing: neither plan nor history nor state. The plan is that of a cycle that is on."""
    elapsed: Callable[[], float] = lambda: 0.0
    """Seconds since ``now`` of the cycle."""
    configuration: str = ""
    """Digest of the deciding part of the configuration, for the record."""
    pledges: Optional[Pledged] = None
    """Answer of the pledges' source, if they are not in the configuration."""


def run_cycle(
    config: PlanConfig, ports: Ports, now: int, how: Circumstances = Circumstances()
) -> CycleResult:
    """Run a whole cycle at Unix time ``now``."""
    problems: list[str] = []
    warnings: tuple[str, ...] = how.pledges.warnings if how.pledges is not None else ()
    # On a dry run problems with sharectl's own files are warnings: the user may lack the right.
    own_problems: list[str] = [] if how.dry_run else problems
    state = load_state(ports.state, now, own_problems)
    snapshot = with_restart(ports.pool.snapshot(now), state)
    if how.pledges is not None:
        # Pledges that cannot be had are like a schedd that does not answer.
        snapshot = replace(snapshot, sources=(*snapshot.sources, how.pledges.source))
    problems += [f"{source.name}: {source.problem}" for source in snapshot.problems]
    decision: Optional[Decision] = None
    proposal: Optional[Proposal] = None
    odd: tuple[str, ...] = ()
    if snapshot.complete:
        decision = decide(config, state, snapshot, now, _known(config, ports, own_problems))
        odd = doubts(config, state, snapshot, now)
        proposal = Proposal(decision.plan, decision.state, snapshot)
        # Remembered by the next cycle, published or not.
        state = replace(state, nodes=len(snapshot.nodes), schedds=snapshot.schedds)
    else:
        state = _without_look(state, ports, how, problems)
        if how.withdraw_incomplete:
            proposal = Proposal(*withdrawal(config, state, now))
    errors = tuple(control.error for control in decision.groups) if decision else ()
    if how.dry_run:
        plan = proposal.plan if proposal else None
        done = Publication(plan, disabled=in_force(ports.switch.disabled(), now))
        warnings = (*warnings, *own_problems, *odd)
        return CycleResult(snapshot, errors, done, tuple(problems), warnings)
    # Targets before history: a full disk must not keep them from the nodes.
    publishing = Publishing(config, ports, now + ceil(how.elapsed()), problems)
    done = publishing.publish_unless_disabled(proposal, state)
    record = replace(
        record_of(
            config,
            snapshot,
            decision,
            done.plan,
            done.places,
            disabled=done.disabled is not None,
        ),
        seconds=how.elapsed(),
        problems=tuple(problems),
        configuration=how.configuration,
    )
    with noted(problems):
        ports.history.record(record, snapshot)
    return CycleResult(snapshot, errors, done, tuple(problems), (*warnings, *odd), record)


def _without_look(state: State, ports: Ports, how: Circumstances, problems: list[str]) -> State:
    """Save and return the state after an incomplete look: no block counts as free meanwhile."""
    after = replace(state, blocks=state.blocks.looked_at_anew)
    if after != state and not how.dry_run:
        with noted(problems):
            ports.state.save(after)
    return after


def _known(config: PlanConfig, ports: Ports, problems: list[str]) -> Known:
    """Lessons of earlier cycles; none if the ledger is broken, which must not end the control."""
    try:
        return ports.history.known(tuple(config.pledge_hs06))
    except StateError as error:
        note(error, problems)
        return NOTHING_KNOWN
