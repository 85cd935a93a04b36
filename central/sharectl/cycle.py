"""One cycle: look, decide, publish, remember. All I/O is behind ports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional

from sharectl.core.completeness import with_restart
from sharectl.core.doubts import doubts
from sharectl.core.model import Disabled, GroupError, Plan, Snapshot
from sharectl.core.plan import PlanConfig, decide, withdrawal
from sharectl.ports import History, Pool
from sharectl.publication import (
    Outlets,
    Proposal,
    Publication,
    in_force,
    load_state,
    publish_unless_disabled,
    tried,
)


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
    problems: tuple[str, ...]
    """What went wrong on the way, one line each; a cycle with problems is not a success."""
    disabled: Optional[Disabled] = None
    """What keeps plans from being published."""
    enabled_again: Optional[Disabled] = None
    """What kept them from it until this cycle found its time to be over."""
    warnings: tuple[str, ...] = ()
    """What the configuration probably does not mean so, one line each; no failure of the cycle."""


def run_cycle(
    config: PlanConfig, ports: Ports, now: int, *, withdraw_incomplete: bool = False, dry_run: bool = False
) -> CycleResult:
    """Result of a whole cycle at Unix time ``now``.

    Parameters
    ----------
    withdraw_incomplete
        Publish a plan without targets when the pool does not answer completely. Otherwise nothing is
        published then, and what stands runs out by its own validity.
    dry_run
        Write nothing: neither the plan nor history nor state. The plan is that of a cycle that is not disabled.
    """
    problems: list[str] = []
    state = load_state(ports.state, problems)
    snapshot = with_restart(ports.pool.snapshot(now), state)
    problems += [f"{source.name}: {source.problem}" for source in snapshot.problems]
    errors: tuple[GroupError, ...] = ()
    proposal: Optional[Proposal] = None
    warnings: tuple[str, ...] = ()
    if snapshot.complete:
        decision = decide(config, state, snapshot, now)
        errors = tuple(control.error for control in decision.groups)
        warnings = doubts(config, state, snapshot, now)
        proposal = Proposal(decision.plan, decision.state, snapshot)
        # Known from now on, published or not.
        state = replace(state, nodes=len(snapshot.nodes), schedds=snapshot.schedds)
    elif withdraw_incomplete:
        proposal = Proposal(*withdrawal(config, state, now))
    if dry_run:
        done = Publication(
            proposal.plan if proposal else None, disabled=in_force(ports.switch.disabled(), now)
        )
    else:
        # Targets first: a full disk of the history must not keep them from the nodes.
        done = publish_unless_disabled(config, proposal, state, ports, now, problems)
        if snapshot.complete:
            tried(lambda: ports.history.record(snapshot, errors), problems)
    return CycleResult(
        snapshot,
        errors,
        done.plan,
        done.places,
        tuple(problems),
        disabled=done.disabled,
        enabled_again=done.enabled_again,
        warnings=warnings,
    )
