"""One cycle: look, decide, publish, remember. All I/O is behind ports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Callable, Optional

from sharectl.cycle.doubts import doubts, with_restart
from sharectl.cycle.ports import Ports
from sharectl.cycle.publication import (
    Failures,
    Proposal,
    Publication,
    Publishing,
    in_force,
    load_state,
)
from sharectl.cycle.record import record_of
from sharectl.errors import NewerFileError
from sharectl.model import GroupError, Plan, Snapshot
from sharectl.plan.plan import FOREIGN, Decision, PlanConfig, decide, withdrawal
from sharectl.plan.records import CycleRecord, as_kept
from sharectl.plan.waits import RunTimes
from sharectl.shares.pledges import Pledged


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
    planned: Optional[Plan] = None
    """Plan of the decision, published or not; None if the snapshot is incomplete."""


@dataclass(frozen=True)
class Circumstances:
    """Manner in which a cycle is run."""

    withdraw_incomplete: bool = False
    """Publish a plan without targets when the pool does not answer completely; else targets stay
    until they run out."""
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
    """Run a whole cycle at Unix time ``now``. Raises NewerFileError for a state of that kind."""
    loaded, errors = load_state(ports.state, now)
    for error in errors:
        if isinstance(error, NewerFileError) and not how.dry_run:
            raise error  # without the limits of that state no targets may follow
    before = loaded
    failures = Failures(errors)
    snapshot = with_restart(ports.pool.snapshot(now), before)
    warnings: tuple[str, ...] = ()
    if how.pledges is not None:  # if their source is silent, that is as if a schedd were
        snapshot = replace(snapshot, sources=(*snapshot.sources, how.pledges.source))
        warnings = how.pledges.warnings
    decision: Optional[Decision] = None
    proposal: Optional[Proposal] = None
    if snapshot.complete:
        run_times: RunTimes = {}
        with failures:
            run_times = ports.history.run_times(tuple(config.pledge_hs06))
        # A withdrawal instead of the plan remembers them too.
        before = replace(before, nodes=len(snapshot.nodes), schedds=snapshot.schedds)
        decision = decide(config, before, as_kept(snapshot, before.standing), now, run_times)
        proposal = Proposal(decision.plan, decision.state)
        warnings += doubts(config, snapshot)
    else:
        # No block of cores counts as free meanwhile.
        blocks = tuple(replace(block, free_since=None) for block in before.blocks.open)
        before = replace(before, blocks=replace(before.blocks, open=blocks))
        if how.withdraw_incomplete:
            proposal = Proposal(*withdrawal(config, before, now))
    silent = tuple(f"{source.name}: {source.problem}" for source in snapshot.problems)
    group_errors = tuple(control.error for control in decision.groups) if decision else ()
    if how.dry_run:
        plan = proposal.plan if proposal else None
        done = Publication(plan, disabled=in_force(ports.switch.disabled(), now))
        warnings += failures.messages  # of sharectl's own files: the user may lack the right
        return CycleResult(snapshot, group_errors, done, silent, warnings, planned=plan)
    if not snapshot.complete and before != loaded:
        with failures:
            ports.state.save(before)
    # Targets before history: a full disk must not keep them from the nodes.
    publishing = Publishing(config, ports, now + ceil(how.elapsed()))
    done = publishing.publish_unless_disabled(proposal, before)
    failures.errors += done.errors
    off = "disabled" if done.disabled is not None else FOREIGN if done.is_left else None
    record = replace(
        record_of(config, snapshot, decision, done.plan, done.places, off=off),
        seconds=how.elapsed(),
        problems=(*silent, *failures.messages),
        configuration=how.configuration,
    )
    planned = decision.plan if decision else None
    decision = None  # a third of the memory, which the history needs
    with failures:
        ports.history.record(record, snapshot)
    problems = (*silent, *failures.messages)
    return CycleResult(snapshot, group_errors, done, problems, warnings, record, planned)
