"""Parts of a cycle, made from the configuration: the one place where objects are put together."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Optional

from sharectl.cli.options import pool_of, say
from sharectl.config.groups import GroupConfig, all_groups, place_of, tree_of
from sharectl.config.laws import plan_config_of
from sharectl.config.model import CRIC_COPY, KNOBS_COPY, OBSERVE, TARGETS_FILE, Config
from sharectl.cycle.ports import Outlets, Ports, Transport
from sharectl.cycle.publication import Failures, in_force, load_state, writer_of
from sharectl.errors import ConfigError, PoolUnavailableError, StateError
from sharectl.explain.what_if import Case
from sharectl.files.files import only_one
from sharectl.ledger import jobs_file
from sharectl.ledger.ledger import PLACE, Histories, Ledger
from sharectl.model import CollectorWay, Snapshot, Source, Way
from sharectl.plan.nodes import ControlledConstraint
from sharectl.plan.plan import PlanConfig, State
from sharectl.plan.records import as_kept
from sharectl.plan.waits import RunTimes
from sharectl.pledges.join import AllPledges, Ask, SteeredGroup, join
from sharectl.publish.audit import AuditFile, who_runs
from sharectl.publish.disabled_file import DisabledFile
from sharectl.publish.former_places import FormerPlacesFile
from sharectl.publish.signing import Keys, read_keys
from sharectl.publish.state import StateFile
from sharectl.publish.text import FilePublisher, Seal
from sharectl.shares.groups import GroupTree
from sharectl.shares.pledges import SOURCE_NAME, Pledged

UNASKED = Pledged(Source(SOURCE_NAME, 0.0, "the source was not asked"))
"""Pledges for plans without targets, which need only the groups' names."""

_FORMER_SECONDS = 10.0
"""Deadline of a collector that is only to be emptied."""


def ports_of(config: Config) -> Ports:
    """World of a cycle: the pool, the outlets of its plan, and the history."""
    logs, outlets = config.history, outlets_of(config, "cycle")
    histories = Histories(logs.jobs_file, logs.errors_log, ledger_of(config))
    return Ports(**vars(outlets), pool=pool_of(config), history=histories)


def outlets_of(config: Config, verb: str, *, withdraws: bool = False) -> Outlets:
    """Outlets of plans, with ``verb`` as the author of changes in the audit.

    A verb that ``withdraws`` publishes plans without targets only, as every verb does while
    sharectl is off or observes. Others raise ConfigError if the file of keys cannot be used.
    """
    switch = switch_of(config)
    off = in_force(switch.disabled(), int(time.time())) is not None or config.mode == OBSERVE
    seal = seal_of(config, withdraws=withdraws or off)
    names = tuple(_place(way, config.pool.collector) for way in config.publish)
    file = config.state_directory / "places.json"
    return Outlets(
        publishers=transports_of(config, seal),
        state=state_of(config),
        switch=switch,
        audit=audit_of(config, verb),
        writer=own_writer(config),
        former=FormerPlacesFile(file, names, partial(_former, seal)),
    )


def lock_of(config: Config) -> AbstractContextManager[None]:
    """Lock of cycles, and of all else that publishes or asks for pledges that are kept."""
    return only_one(config.state_directory / "lock", config.lock_wait_seconds)


def ledger_of(config: Config) -> Ledger:
    """Ledger in the state directory."""
    return Ledger(config.state_directory / PLACE, config.ledger)


def state_of(config: Config) -> StateFile:
    """State that one cycle leaves for the next."""
    return StateFile(config.state_directory / "state.json")


def state_to_read(config: Config, now: int) -> tuple[State, int]:
    """State for verbs that change nothing, and their exit code: its problems are printed."""
    state, errors = load_state(state_of(config), now)
    return state, say_unread(errors)


def say_unread(errors: Sequence[StateError]) -> int:
    """Print problems of own files; returns the exit code of a verb that goes on without them."""
    failures = Failures(errors)
    say(failures.messages)
    return failures.kind.exit_code if errors else 0


def switch_of(config: Config) -> DisabledFile:
    """Switch of this machine."""
    return DisabledFile(config.state_directory)


def audit_of(config: Config, verb: str) -> AuditFile:
    """Record of changes by the user who runs ``verb``."""
    return AuditFile(config.state_directory, who_runs(verb, os.environ))


# ---- looks at the pool


def case_of(config: Config, jobs: Optional[Path] = None) -> Case:
    """Everything that a plan is made from now; a file of ``jobs`` has no state and run times."""
    snapshot, offline = look(config, jobs, decides=True), jobs is not None
    now, state, failures = snapshot.taken_at, State(), Failures()
    run_times: RunTimes = {}
    if not offline:
        state, failures.errors = load_state(state_of(config), now)
        with failures:
            run_times = ledger_of(config).run_times(config.tree.names)
    code, kept = say_unread(failures.errors), as_kept(snapshot, state.standing)
    return Case(plan_config(config, offline=offline), state, kept, now, run_times, code)


def look(config: Config, jobs: Optional[Path] = None, *, decides: bool = False) -> Snapshot:
    """Complete snapshot, of a file of ``jobs`` or of the live pool.

    Raises PoolUnavailableError if a daemon did not answer, and ConfigError if the configuration
    needs more than the file has, for errors or, if it ``decides``, plans.
    """
    if jobs is not None:
        return _of_file(jobs, config, decides=decides)
    snapshot = pool_of(config).snapshot(int(time.time()))
    if not snapshot.complete:
        raise PoolUnavailableError(
            *(f"{source.name}: {source.problem}" for source in snapshot.problems),
            "the snapshot is incomplete, and missing jobs are not zero jobs: nothing is decided",
        )
    return snapshot


def _of_file(path: Path, config: Config, *, decides: bool) -> Snapshot:
    nodes = config.nodes
    problems = [
        f"nodes.{name}: a ClassAd constraint needs the machine ads of a live pool, and --jobs has "
        "none; name hosts or a share in a copy of the configuration to decide on this file"
        for name in ("controlled", "reserved")
        if isinstance(getattr(nodes, name), ControlledConstraint)
    ]
    if decides and config.control.entitlement.setpoint == "present":
        problems.append(
            "control.setpoint: `present` needs the cores of all nodes of a live pool, and --jobs "
            "has only jobs; write `in_use` or `pledge` in a copy of the configuration to decide on "
            "this file"
        )
    if problems:
        raise ConfigError(problems)
    rows = jobs_file.read_jobs(path, frozenset(config.tree.names))
    if not rows.running and not rows.pending:
        say([f"{path}: no job is in it: if the pool was not empty, it is no list of jobs"])
    for count, words in (
        (rows.ignored_rows, "rows left out: the jobs neither run in a slot nor wait"),
        (rows.defaulted_rows, "running jobs count by default: cores or power is undefined"),
    ):
        if count:
            say([f"{path}: {count} {words}"])
    taken_at = int(path.stat().st_mtime)
    return jobs_file.as_snapshot(rows, taken_at, nodes.controlled, nodes.reserved)


# ---- publishers


def seal_of(config: Config, *, withdraws: bool = False) -> Seal:
    """Pool's name and keys. Raises ConfigError for unusable keys, unless it only ``withdraws``."""
    keys: Keys = {}
    problem = None
    try:
        keys = read_keys(config.signing_key_file) if config.signing_key_file is not None else {}
    except ConfigError as error:
        if not withdraws:
            raise
        problem = "; ".join(error.problems)
    return Seal(config.pool.name, keys, problem, own_writer(config))


def own_writer(config: Config) -> str:
    """Name of this installation in what it publishes."""
    return writer_of(os.uname().nodename, config.state_directory)


def transports_of(config: Config, seal: Seal) -> list[Transport]:
    """Publisher for each way, collectors last: HTCondor's library may end this process."""
    ways = sorted(config.publish, key=lambda way: way.collector is not None)
    return [_transport(way, config.pool.collector, seal) for way in ways]


def _transport(way: Way, collector: Optional[str], seal: Seal) -> Transport:
    if way.collector is not None:
        from sharectl.publish.collector import CollectorPublisher

        return CollectorPublisher(way.collector, collector, seal.pool, seal.writer)
    if way.https is not None:
        from sharectl.publish.https import HttpsPublisher

        return HttpsPublisher(way.https, seal)
    return FilePublisher(way.file or TARGETS_FILE, seal)


def _place(way: Way, collector: Optional[str]) -> str:
    """Name of a place: ``file:PATH``, ``collector:ADDRESS``, ``collector:`` for this pool."""
    if way.collector is not None:
        return f"collector:{collector or ''}"
    return f"file:{way.https.file if way.https is not None else way.file or TARGETS_FILE}"


def _former(seal: Seal, name: str) -> Transport:
    """Publisher for the name of a place that the configuration names no more."""
    kind, _, place = name.partition(":")
    file = Path(place) if kind == "file" else None
    way = Way(file, collector=None if file else CollectorWay(deadline_seconds=_FORMER_SECONDS))
    return _transport(way, place or None, seal)


# ---- pledges and plans


def plan_config(
    config: Config,
    pledged: Optional[Pledged] = None,
    *,
    offline: bool = False,
    withdraws: bool = False,
) -> PlanConfig:
    """Configuration of the law, ``offline`` for a list of jobs, which has no blocks of cores.

    ``pledged`` is the answer of the pledges' source, which is asked if it is None. Raises
    PoolUnavailableError if the pledges cannot be had, and ConfigError if a law cannot be loaded,
    unless the plan ``withdraws`` targets.
    """
    tree = tree_with_pledges(config, pledged)
    return plan_config_of(config, tree, offline=offline, withdraws=withdraws)


def tree_with_pledges(config: Config, pledged: Optional[Pledged] = None) -> GroupTree:
    """Groups of every level with their pledges. Parameters and errors as of `plan_config`."""
    if pledged is None:
        pledged = pledges_of(config).resolve(int(time.time()))
        if pledged.source.problem is not None:
            raise PoolUnavailableError(
                f"{pledged.source.name}: {pledged.source.problem}; nothing is decided"
            )
    return tree_of(config.groups, pledged.hs06)


def pledges_of(
    config: Config, *, keep: bool = False, refresh: bool = False, confirm: bool = False
) -> AllPledges:
    """Source of the pledges of groups of all levels.

    With ``keep`` it keeps a server's answer, with ``refresh`` it asks even if the last one is
    young, with ``confirm`` it takes pledges however much they differ from those in use.
    """
    pledges, folder, wanted = config.pledges, config.state_directory, []
    # Groups of the first level, and those within them that have no promise in the file.
    for name, (*above, group) in all_groups(config.groups):
        place = place_of(name)
        if isinstance(group, GroupConfig):
            vo = (group.cric_vo or name).lower()
            wanted.append(SteeredGroup(name, group.pledge_hs06, place, vo))
        elif above and group.share is None and group.pledge_hs06 is None:
            wanted.append(SteeredGroup(name, None, place))
    ask: Ask = lambda _now, _warnings: join(wanted, {}, {})  # noqa: E731 - the file has them
    if pledges.source == "negotiator":
        from sharectl.pledges.negotiator import NegotiatorPledges

        copy_file = folder / KNOBS_COPY
        ask = NegotiatorPledges(pledges.negotiator, config.pool, wanted, copy_file, keep=keep).ask
    elif pledges.cric is not None and pledges.source == "cric":
        from sharectl.pledges.cric import CricPledges

        copy_file = folder / CRIC_COPY
        how = {"keep": keep, "refresh": refresh, "confirm": confirm}
        ask = CricPledges(pledges.cric, copy_file, wanted, **how).ask
    return AllPledges(ask, lambda hs06: tree_of(config.groups, hs06).pledge_hs06)
