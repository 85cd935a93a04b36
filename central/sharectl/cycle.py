"""One cycle: look, decide, publish, remember. All I/O is behind ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from sharectl.core.completeness import with_restart
from sharectl.core.model import GroupError, Plan, Snapshot
from sharectl.core.plan import PlanConfig, State, plan, withdrawal
from sharectl.core.shares import group_errors
from sharectl.core.usage import usage_by_group
from sharectl.errors import StateError
from sharectl.ports import History, Pool, Publisher, StateStore


@dataclass(frozen=True)
class Ports:
    """The world of one cycle."""

    pool: Pool
    publishers: Sequence[Publisher]
    history: History
    state: StateStore


@dataclass(frozen=True)
class CycleResult:
    """What a cycle did."""

    snapshot: Snapshot
    errors: tuple[GroupError, ...]
    """Empty if the snapshot is incomplete: missing data is never zero."""
    plan: Optional[Plan]
    """None if nothing may change since the snapshot is incomplete."""
    published: tuple[str, ...]
    """Where the plan went; empty on a dry run."""
    problems: tuple[str, ...]
    """What went wrong on the way, one line each; a cycle with problems is not a success."""


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
        Write nothing: neither the plan nor history nor state.
    """
    problems: list[str] = []
    state = _load(ports.state, problems)
    snapshot = with_restart(ports.pool.snapshot(now), state)
    problems += [f"{source.name}: {source.problem}" for source in snapshot.problems]
    errors: tuple[GroupError, ...] = ()
    decided: Optional[Plan] = None
    if snapshot.complete:
        errors = group_errors(usage_by_group(snapshot, config.pledge_hs06), config.pledge_hs06)
        decided, state = plan(config, state, snapshot, now)
    elif withdraw_incomplete:
        decided, state = withdrawal(config, state, now)
    published: tuple[str, ...] = ()
    if decided is not None and not dry_run:
        # Targets first: a full disk of the history must not keep them from the nodes.
        published = publish_plan(decided, state, ports.publishers, ports.state, problems)
        if snapshot.complete:
            _record(ports.history, snapshot, errors, problems)
    return CycleResult(snapshot, errors, decided, published, tuple(problems))


def publish_plan(
    decided: Plan, state: State, publishers: Sequence[Publisher], store: StateStore, problems: list[str]
) -> tuple[str, ...]:
    """Where ``decided`` was published. What fails is added to ``problems``; the others are still tried."""
    published: list[str] = []
    for publisher in publishers:
        try:
            published.append(publisher.publish(decided))
        except StateError as error:
            problems.append(str(error))
    try:
        store.save(state)
    except StateError as error:
        problems.append(str(error))
    return tuple(published)


def _load(store: StateStore, problems: list[str]) -> State:
    """Saved state, or a fresh one: a broken state file must not end the control of a pool at night."""
    try:
        return store.load()
    except StateError as error:
        problems.append(str(error))
        return State()


def _record(history: History, snapshot: Snapshot, errors: Sequence[GroupError], problems: list[str]) -> None:
    try:
        history.record(snapshot, errors)
    except StateError as error:
        problems.append(str(error))
