"""Options that several verbs share, and what they are turned into.

What a publication goes through, as the configuration says it.

The source of pledges that a configuration names, with all that it needs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Callable, Optional

from sharectl.cli.main import DEFAULT_CONFIG
from sharectl.condor.pool import CondorPool, PoolAccess
from sharectl.config.groups import SubgroupConfig, tree_of
from sharectl.config.load import load, steering_of
from sharectl.config.model import Config
from sharectl.config.places import (
    KNOBS_COPY,
    TARGETS_FILE,
    CollectorPublisherConfig,
    HttpsPublisherConfig,
    PublisherConfig,
)
from sharectl.config.text import as_data
from sharectl.cycle.ports import Pledges, Publisher
from sharectl.cycle.publication import Outlets, in_force, load_state
from sharectl.errors import ConfigError, PoolUnavailableError
from sharectl.ledger import logs
from sharectl.model import Snapshot, Source
from sharectl.plan.nodes import ControlledConstraint, controlled_machines
from sharectl.plan.plan import PlanConfig, State
from sharectl.pledges.sources import DAY_SECONDS, NestedPledges, Wanted, WrittenPledges
from sharectl.publish import places
from sharectl.publish.audit import AuditFile, who_runs
from sharectl.publish.collector import CollectorAccess, CollectorPublisher
from sharectl.publish.https import ServedAt
from sharectl.publish.places import LeftPlacesFile
from sharectl.publish.signing import read_keys
from sharectl.publish.state import StateFile
from sharectl.publish.switch import DisabledFile
from sharectl.publish.text import FilePublisher, Seal
from sharectl.shares.groups import GroupTree
from sharectl.shares.pledges import SOURCE_NAME, Pledged


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add ``--config`` and ``--json``."""
    parser.add_argument(
        "--config",
        type=Path,
        default=Path(DEFAULT_CONFIG),
        metavar="FILE",
        help="default: %(default)s",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")


def add_look(parser: argparse.ArgumentParser) -> None:
    """Add ``--jobs`` and ``--taken-at``: decide from a file instead of from the live pool."""
    parser.add_argument(
        "--jobs",
        type=Path,
        metavar="FILE",
        help="work offline on a file like AcctGroup_hs06.txt (a row a job: JobStatus, node or PEND, group, seconds "
        "running, cores, HS06 per core; docs/method.md has the condor_q command) instead of "
        "asking the pool; a pipe may be silent for 60 s",
    )
    parser.add_argument(
        "--taken-at",
        type=_unix_seconds,
        metavar="UNIX_SECONDS",
        help="with --jobs: when the file was made (default: its time of modification)",
    )


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add ``--dry-run``."""
    parser.add_argument(
        "--dry-run", action="store_true", help="write nothing; print what a real run would publish"
    )


def config_of(arguments: argparse.Namespace) -> Config:
    """Configuration that ``--config`` names."""
    return load(arguments.config)


def pledges_of(
    config: Config, *, keep: bool = False, refresh: bool = False, confirm: bool = False
) -> Pledges:
    """Where the pledges are from, as the configuration says it; see `sharectl.cli.wiring`."""
    return source_of(config, keep=keep, refresh=refresh, confirm=confirm)


def tree_with_pledges(config: Config, pledged: Optional[Pledged] = None) -> GroupTree:
    """Groups of every level with their pledges. Parameters and errors as of `plan_config`."""
    if pledged is None:
        pledged = pledges_of(config).resolve(int(time.time()))
        if pledged.source.problem is not None:
            raise PoolUnavailableError(
                f"{pledged.source.name}: {pledged.source.problem}; nothing is decided"
            )
    return tree_of(config.groups, pledged.hs06)


def plan_config(
    config: Config, pledged: Optional[Pledged] = None, *, offline: bool = False
) -> PlanConfig:
    """What the law needs of the configuration.

    Parameters
    ----------
    pledged
        What the pledges' source said; None to ask it. If it has a problem, only the groups' names
        are of use: for plans without targets.
    offline
        Whether plans are made from a list of jobs, which does not tell what blocks of cores jobs
        took.

    Raises
    ------
    PoolUnavailableError
        If it was to be asked, and the pledges cannot be had.
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


def pool_of(config: Config) -> CondorPool:
    """The live pool."""
    return CondorPool(
        PoolAccess(
            groups=config.tree.names,
            controlled=config.nodes.controlled,
            collector=config.pool.collector,
            mode=config.pool.mode,
            demand=config.pool.demand,
            schedds=config.pool.schedds,
            collector_deadline_seconds=config.pool.collector_deadline_seconds,
            schedd_deadline_seconds=config.pool.schedd_deadline_seconds,
            default_node_hs06=config.pool.default_node_hs06,
            default_node_cores=config.pool.default_node_cores,
            multicore_cores=config.control.multicore_cores,
            reserved=config.nodes.reserved,
            true_sizes=config.control.strategy == "many",
            job_ctl_stale_seconds=config.nodes.job_ctl_stale_seconds,
        )
    )


def seal_of(config: Config) -> Seal:
    """The pool's name and the key that signs, for what is published as text.

    Raises
    ------
    ConfigError
        If the file of keys cannot be used.
    """
    keys = read_keys(config.signing_key_file) if config.signing_key_file is not None else ()
    return Seal(config.pool.name, keys[0] if keys else None)


def collector_of(config: Config, publisher: CollectorPublisherConfig) -> CollectorAccess:
    """The collectors that get targets."""
    return CollectorAccess(config.pool.collector, publisher.identity, publisher.deadline_seconds)


def served_at(publisher: HttpsPublisherConfig) -> ServedAt:
    """The place where targets are served."""
    from sharectl.publish.https import ServedAt

    return ServedAt(publisher.url, publisher.ca_file, publisher.deadline_seconds)


def seal_of_withdrawals(config: Config) -> Seal:
    """The same for plans without targets, which need no key: ``key_problem`` says why it cannot be used."""
    try:
        return seal_of(config)
    except ConfigError as error:
        return Seal(config.pool.name, key_problem="; ".join(error.problems))


def publishers_of(config: Config, seal: Seal) -> list[Publisher]:
    """Every way that targets are published, in the order of the configuration."""
    return [_publisher(config, way, seal) for way in config.publish]


def _publisher(config: Config, way: PublisherConfig, seal: Seal) -> Publisher:
    if way.collector is not None:
        return CollectorPublisher(collector_of(config, way.collector), seal.pool)
    if way.https is not None:
        from sharectl.publish.https import HttpsPublisher

        return HttpsPublisher(way.https.file, served_at(way.https), seal)
    return FilePublisher(way.file or TARGETS_FILE, seal)


def look(arguments: argparse.Namespace, config: Config) -> Snapshot:
    """Complete snapshot, of the file that ``--jobs`` names or of the live pool.

    Raises
    ------
    PoolUnavailableError
        If a daemon did not answer: errors and plans need them all.
    """
    if arguments.jobs is not None:
        return _replayed(arguments.jobs, arguments.taken_at, config)
    snapshot = pool_of(config).snapshot(int(time.time()))
    if not snapshot.complete:
        raise PoolUnavailableError(
            "\n".join(f"{source.name}: {source.problem}" for source in snapshot.problems)
            + "\nthe snapshot is incomplete, and missing jobs are not zero jobs: nothing is decided"
        )
    return snapshot


def look_to_decide(arguments: argparse.Namespace, config: Config) -> Snapshot:
    """The same, for a decision.

    Raises ConfigError too, if that needs what a file of jobs does not tell.
    """
    if arguments.jobs is not None and config.control.setpoint == "present":
        raise ConfigError(
            [
                (
                    "control.setpoint: `present` needs the cores of all nodes of a live pool, "
                    "and --jobs has only jobs; "
                    "write `in_use` or `pledge` in a copy of the configuration to decide on "
                    "this file"
                )
            ]
        )
    return look(arguments, config)


def _unix_seconds(text: str) -> int:
    """Option value ``text`` as Unix seconds, >= 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"{text!r}: write whole seconds since 1970, such as 1627101243"
        )
    return int(text)


def _say_what_was_assumed(path: Path, rows: logs.JobRows) -> None:
    notes = (
        (
            not rows.running and not rows.pending,
            "no job is in it: if the pool was not empty, it is no list of jobs",
        ),
        (
            rows.ignored_rows,
            f"{rows.ignored_rows} rows left out: the jobs neither run in a slot nor wait",
        ),
        (
            rows.defaulted_rows,
            f"{rows.defaulted_rows} running jobs count by default: cores or power is undefined",
        ),
    )
    for applies, note in notes:
        if applies:
            print(f"sharectl: {path}: {note}", file=sys.stderr)


def _replayed(path: Path, taken_at: Optional[int], config: Config) -> Snapshot:
    rows = logs.read_jobs(path, frozenset(config.tree.names))
    _say_what_was_assumed(path, rows)
    machines = sorted({job.node for job in rows.running} - {logs.PENDING_NODE})
    chosen = {"controlled": config.nodes.controlled, "reserved": config.nodes.reserved}
    asked = [name for name, by in chosen.items() if isinstance(by, ControlledConstraint)]
    if asked:
        raise ConfigError(
            [
                f"nodes.{name}: a ClassAd constraint needs the machine ads of a live pool, and "
                "--jobs has none; name "
                "hosts or a share in a copy of the configuration to replay this file"
                for name in asked
            ]
        )
    under = controlled_machines(config.nodes.controlled, machines, frozenset())
    kept = config.nodes.reserved
    return logs.as_snapshot(
        rows,
        taken_at if taken_at is not None else int(path.stat().st_mtime),
        {machine: machine in under for machine in machines},
        frozenset() if kept is None else controlled_machines(kept, machines, frozenset()),
    )


_LEFT_SECONDS = 10.0
"""How long a collector may take that is only to be emptied."""


def outlets_of(config: Config, verb: str, *, withdraws: bool = False) -> Outlets:
    """Everything that the verb publishes through; it is what the audit names.

    Parameters
    ----------
    withdraws
        Whether plans without targets are all that it publishes, as for every verb while sharectl is
        off.

    Raises
    ------
    ConfigError
        If the file of keys cannot be used, and targets may be published.
    """
    switch = switch_of(config)
    off = withdraws or in_force(switch.disabled(), int(time.time())) is not None
    seal = seal_of_withdrawals(config) if off else seal_of(config)
    return Outlets(
        publishers_of(config, seal),
        state_of(config),
        switch,
        audit_of(config, verb),
        _left_places_of(config, seal),
    )


def state_of(config: Config) -> StateFile:
    """What one cycle hands to the next."""
    return StateFile(config.state_directory / "state.json")


def state_to_read(config: Config, now: int) -> State:
    """State for verbs that change nothing.

    A problem with it is printed; without a state they begin afresh.
    """
    problems: list[str] = []
    state = load_state(state_of(config), now, problems)
    for problem in problems:
        print(f"sharectl: {problem}", file=sys.stderr)
    return state


def switch_of(config: Config) -> DisabledFile:
    """The switch of this machine."""
    return DisabledFile(config.state_directory)


def audit_of(config: Config, verb: str) -> AuditFile:
    """The record of changes, made by whoever runs ``verb``."""
    return AuditFile(
        config.state_directory,
        who_runs(verb, os.environ),
        as_data(config),
        config.history.changes_max_bytes,
        config.history.changes_keep,
    )


def _left_places_of(config: Config, seal: Seal) -> LeftPlacesFile:
    """Where targets may stand that ``publish:`` names no more."""

    def publisher_of(name: str) -> Publisher:
        if name.startswith(places.FILE):
            return FilePublisher(Path(name[len(places.FILE) :]), seal)
        address = name[len(places.COLLECTOR) :] or None
        return CollectorPublisher(CollectorAccess(address, None, _LEFT_SECONDS), seal.pool)

    path = config.state_directory / "places.json"
    return LeftPlacesFile(path, tuple(_name(config, way) for way in config.publish), publisher_of)


def _name(config: Config, way: PublisherConfig) -> str:
    if way.collector is not None:
        return f"{places.COLLECTOR}{config.pool.collector or ''}"
    file = way.https.file if way.https is not None else way.file
    return f"{places.FILE}{file or TARGETS_FILE}"


UNASKED = Pledged(Source(SOURCE_NAME, 0.0, "the source was not asked"))
"""For plans without targets, which need only the groups' names."""


def source_of(
    config: Config, *, keep: bool, refresh: bool = False, confirm: bool = False
) -> Pledges:
    """Pledges of groups of all levels.

    Parameters
    ----------
    keep
        Keep what a server said for later.
    refresh
        Ask a server even if what it said last is young.
    confirm
        Take pledges however much they differ from those in use.
    """
    wanted = list(_wanted(config))
    makers: Mapping[str, Callable[[], Pledges]] = {
        "yaml": lambda: WrittenPledges(wanted),
        "negotiator": lambda: _negotiator(config, wanted, keep=keep),
        "cric": lambda: _cric(config, wanted, keep=keep, refresh=refresh, confirm=confirm),
    }
    source = makers[config.pledges.source]()
    return NestedPledges(source, lambda told: tree_of(config.groups, told).pledge_hs06)


def _wanted(config: Config) -> Iterator[Wanted]:
    """Groups of the first level, and those within them that have no promise in the file."""
    for name, group in config.groups.items():
        place = f"groups.{name}"
        yield Wanted(name, group.written_hs06, place, (group.cric_vo or name).lower())
        yield from _within(name, place, group.groups)


def _within(
    above: str, place: str, groups: Optional[Mapping[str, SubgroupConfig]]
) -> Iterator[Wanted]:
    for part, group in (groups or {}).items():
        name, at = f"{above}.{part}", f"{place}.groups.{part}"
        if group.share is None and group.written_hs06 is None:
            yield Wanted(name, None, at)
        yield from _within(name, at, group.groups)


def _negotiator(config: Config, wanted: list[Wanted], *, keep: bool) -> Pledges:
    from sharectl.pledges.negotiator import NegotiatorAccess, NegotiatorPledges

    said = config.pledges.negotiator
    return NegotiatorPledges(
        NegotiatorAccess(
            collector=config.pool.collector,
            name=said.name,
            file=said.file,
            deadline_seconds=said.deadline_seconds,
            pool_cores=said.pool_cores,
            weight_hs06=said.weight_hs06,
            copy_file=config.state_directory / KNOBS_COPY,
            max_age_seconds=said.max_age_seconds,
            default_node_hs06=config.pool.default_node_hs06,
            default_node_cores=config.pool.default_node_cores,
        ),
        wanted,
        keep=keep,
    )


def _cric(
    config: Config, wanted: list[Wanted], *, keep: bool, refresh: bool, confirm: bool
) -> Pledges:
    from sharectl.pledges.cric import CricAccess, CricPledges, Manner, ServerAccess

    said = config.pledges.cric
    if said is None:
        raise ValueError("the configuration was not validated: there is no pledges.cric")
    access = CricAccess(
        url=said.url,
        federations=said.federations,
        copy_file=said.copy_in(config.state_directory),
        server=ServerAccess(said.ca_file, said.ca_directory, said.proxy, said.deadline_seconds),
        federation_ratio=said.federation_ratio,
        refresh_seconds=said.refresh_seconds,
        max_age_seconds=said.max_age_days * DAY_SECONDS,
        max_change_factor=said.max_change_factor,
    )
    return CricPledges(access, wanted, Manner(keep=keep, refresh=refresh, confirm=confirm))
