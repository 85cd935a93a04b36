"""The parts of a cycle, made from the configuration: the one place where objects are put together.

`ports_of` has them all. Verbs that need less take the part: `pool_of`, `pledges_of`, `outlets_of`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from sharectl.cli.options import pool_of, say
from sharectl.config.groups import GroupConfig, all_groups, place_of, tree_of
from sharectl.config.load import steering_of
from sharectl.config.model import (
    CRIC_COPY,
    KNOBS_COPY,
    TARGETS_FILE,
    CollectorPublisherConfig,
    Config,
    HttpsPublisherConfig,
    PublisherConfig,
)
from sharectl.config.text import as_data
from sharectl.cycle.ports import Outlets, Pledges, Ports, Publisher
from sharectl.cycle.publication import Failures, in_force, load_state
from sharectl.errors import ConfigError, PoolUnavailableError, StateError
from sharectl.ledger.history import Histories
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import Source
from sharectl.plan.plan import NOTHING_KNOWN, Known, PlanConfig, State
from sharectl.pledges.sources import AllPledges, Ask, SteeredGroup, join
from sharectl.publish import places
from sharectl.publish.audit import AuditFile, who_runs
from sharectl.publish.places import FormerPlacesFile
from sharectl.publish.signing import read_keys
from sharectl.publish.state import StateFile
from sharectl.publish.switch import DisabledFile
from sharectl.publish.text import FilePublisher, Seal
from sharectl.shares.groups import GroupTree
from sharectl.shares.pledges import SOURCE_NAME, Pledged

if TYPE_CHECKING:  # a way that no plan takes is not loaded
    from sharectl.publish.collector import CollectorAccess
    from sharectl.publish.https import ServedAt

UNASKED = Pledged(Source(SOURCE_NAME, 0.0, "the source was not asked"))
"""Pledges for plans without targets, which need only the groups' names."""

_FORMER_SECONDS = 10.0
"""Deadline of a collector that is only to be emptied."""


def ports_of(config: Config) -> Ports:
    """World of a cycle: the pool, the outlets of its plan, and the history."""
    outlets, history = outlets_of(config, "cycle"), config.history
    histories = Histories(
        history.jobs_file,
        history.errors_log,
        history.errors_log_max_bytes,
        history.errors_log_keep,
        ledger_of(config),
    )
    return Ports(**vars(outlets), pool=pool_of(config), history=histories)


def outlets_of(config: Config, verb: str, *, withdraws: bool = False) -> Outlets:
    """Outlets of plans, with ``verb`` as the author of changes in the audit.

    A verb that ``withdraws`` publishes plans without targets only, as every verb does while
    sharectl is off. Others raise ConfigError if the file of keys cannot be used.
    """
    switch = switch_of(config)
    off = withdraws or in_force(switch.disabled(), int(time.time())) is not None
    seal = seal_of(config, withdraws=off)
    return Outlets(
        publishers=[_publisher(config, way, seal) for way in config.publish],
        state=state_of(config),
        switch=switch,
        audit=audit_of(config, verb),
        former=FormerPlacesFile(
            config.state_directory / "places.json",
            tuple(_place(config, way) for way in config.publish),
            partial(_former_publisher, seal),
        ),
    )


def ledger_of(config: Config) -> Ledger:
    """Ledger in the state directory."""
    return Ledger(config.state_directory / PLACE, config.ledger)


def known_of(config: Config) -> Known:
    """Run times that the ledger knows; none if it cannot be read, with a message."""
    try:
        return ledger_of(config).run_times(config.tree.names)
    except StateError as error:
        say([str(error)])
        return NOTHING_KNOWN


def state_of(config: Config) -> StateFile:
    """State that one cycle leaves for the next."""
    return StateFile(config.state_directory / "state.json")


def state_to_read(config: Config, now: int) -> State:
    """State for verbs that change nothing; its problems are printed."""
    state, errors = load_state(state_of(config), now)
    say(Failures(errors).messages)
    return state


def switch_of(config: Config) -> DisabledFile:
    """Switch of this machine."""
    return DisabledFile(config.state_directory)


def audit_of(config: Config, verb: str) -> AuditFile:
    """Record of changes by the user who runs ``verb``."""
    return AuditFile(
        config.state_directory,
        who_runs(verb, os.environ),
        as_data(config),
        config.history.changes_max_bytes,
        config.history.changes_keep,
    )


# ---- publishers


def seal_of(config: Config, *, withdraws: bool = False) -> Seal:
    """Pool's name and signing key.

    If the file of keys cannot be used, a withdrawal goes out unsigned; else that is a ConfigError.
    """
    try:
        keys = read_keys(config.signing_key_file) if config.signing_key_file is not None else ()
    except ConfigError as error:
        if not withdraws:
            raise
        return Seal(config.pool.name, key_problem="; ".join(error.problems))
    return Seal(config.pool.name, keys[0] if keys else None)


def _publisher(config: Config, way: PublisherConfig, seal: Seal) -> Publisher:
    if way.collector is not None:
        from sharectl.publish.collector import CollectorPublisher

        return CollectorPublisher(collector_of(config, way.collector), seal.pool)
    if way.https is not None:
        from sharectl.publish.https import HttpsPublisher

        return HttpsPublisher(way.https.file, served_at(way.https), seal)
    return FilePublisher(way.file or TARGETS_FILE, seal)


def collector_of(config: Config, way: CollectorPublisherConfig) -> CollectorAccess:
    """Collectors that get targets."""
    from sharectl.publish.collector import CollectorAccess

    return CollectorAccess(config.pool.collector, way.identity, way.deadline_seconds)


def served_at(way: HttpsPublisherConfig) -> ServedAt:
    """Place where a web server serves targets."""
    from sharectl.publish.https import ServedAt

    return ServedAt(way.url, way.ca_file, way.deadline_seconds)


def _place(config: Config, way: PublisherConfig) -> str:
    """Name of the place for `FormerPlacesFile`."""
    if way.collector is not None:
        return f"{places.COLLECTOR}{config.pool.collector or ''}"
    file = way.https.file if way.https is not None else way.file
    return f"{places.FILE}{file or TARGETS_FILE}"


def _former_publisher(seal: Seal, name: str) -> Publisher:
    """Publisher for the name of a place that the configuration names no more."""
    if name.startswith(places.FILE):
        return FilePublisher(Path(name[len(places.FILE) :]), seal)
    from sharectl.publish.collector import CollectorAccess, CollectorPublisher

    address = name[len(places.COLLECTOR) :] or None
    return CollectorPublisher(CollectorAccess(address, None, _FORMER_SECONDS), seal.pool)


# ---- pledges and plans


def plan_config(
    config: Config, pledged: Optional[Pledged] = None, *, offline: bool = False
) -> PlanConfig:
    """Configuration of the law.

    Parameters
    ----------
    pledged
        Answer of the pledges' source; None to ask it, which raises PoolUnavailableError if the
        pledges cannot be had. One with a problem is good for plans without targets only.
    offline
        Make plans from a list of jobs, which does not tell what blocks of cores jobs took.
    """
    tree = tree_with_pledges(config, pledged)
    return PlanConfig(
        pledge_hs06=tree.steered_hs06,
        own_hs06=tree.own_hs06,
        limits=config.control.limits,
        validity_seconds=config.validity_seconds,
        controlled=config.nodes.controlled,
        steering=steering_of(config),
        strategy=config.control.strategy,
        assigning=config.control.assigning,
        give_up=None if offline else config.control.give_up,
    )


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
) -> Pledges:
    """Source of the pledges of groups of all levels.

    With ``keep`` it keeps a server's answer, with ``refresh`` it asks even if the last one is
    young, with ``confirm`` it takes pledges however much they differ from those in use.
    """
    pledges, folder, wanted = config.pledges, config.state_directory, list(_wanted(config))
    ask: Ask = lambda *_: join(wanted, {}, "yaml", {})  # noqa: E731 - as methods of the others
    if pledges.source == "negotiator":
        from sharectl.pledges.negotiator import NegotiatorPledges

        copy_file = folder / KNOBS_COPY
        ask = NegotiatorPledges(pledges.negotiator, config.pool, wanted, copy_file, keep=keep).ask
    elif pledges.cric is not None and pledges.source == "cric":
        from sharectl.pledges.cric import CricPledges

        copy_file = pledges.cric.copy_file or folder / CRIC_COPY
        how = {"keep": keep, "refresh": refresh, "confirm": confirm}
        ask = CricPledges(pledges.cric, copy_file, wanted, **how).ask
    return AllPledges(ask, lambda hs06: tree_of(config.groups, hs06).pledge_hs06)


def _wanted(config: Config) -> Iterator[SteeredGroup]:
    """Groups of the first level, and those within them that have no promise in the file."""
    for name, (*above, group) in all_groups(config.groups):
        place = place_of(name)
        if isinstance(group, GroupConfig):
            yield SteeredGroup(name, group.written_hs06, place, (group.cric_vo or name).lower())
        elif above and group.share is None and group.written_hs06 is None:
            yield SteeredGroup(name, None, place)
