"""Options that several verbs share, and what they are turned into."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from sharectl.adapters import jobs_file
from sharectl.adapters.collector_targets import CollectorAccess, CollectorPublisher
from sharectl.adapters.config_file import load
from sharectl.adapters.config_groups import tree_of
from sharectl.adapters.config_model import Config
from sharectl.adapters.config_publish import (
    TARGETS_FILE,
    CollectorPublisherConfig,
    HttpsPublisherConfig,
    PublisherConfig,
)
from sharectl.adapters.config_steering import steering_of
from sharectl.adapters.pool import CondorPool, PoolAccess
from sharectl.adapters.sharectl_file import FilePublisher, Seal
from sharectl.adapters.signing import read_keys
from sharectl.cli.main import DEFAULT_CONFIG
from sharectl.core.group_tree import GroupTree
from sharectl.core.model import Snapshot
from sharectl.core.nodes import ControlledConstraint, controlled_machines
from sharectl.core.plan import PlanConfig
from sharectl.core.pledges import Pledged
from sharectl.errors import ConfigError, PoolUnavailableError
from sharectl.ports import Pledges, Publisher

if TYPE_CHECKING:
    from sharectl.adapters.https_targets import ServedAt


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add ``--config`` and ``--json``."""
    parser.add_argument(
        "--config", type=Path, default=Path(DEFAULT_CONFIG), metavar="FILE", help="default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")


def add_look(parser: argparse.ArgumentParser) -> None:
    """Add ``--jobs`` and ``--taken-at``: decide from a file instead of from the live pool."""
    parser.add_argument(
        "--jobs",
        type=Path,
        metavar="FILE",
        help="work offline on a file like AcctGroup_hs06.txt (a row a job: JobStatus, node or PEND, group, seconds "
        "running, cores, HS06 per core; docs/method.md has the condor_q command) instead of asking the pool; a pipe may be silent for 60 s",
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
    """Where the pledges are from, as the configuration says it; see `sharectl.cli.pledge_sources`."""
    from sharectl.cli.pledge_sources import source_of

    return source_of(config, keep=keep, refresh=refresh, confirm=confirm)


def tree_with_pledges(config: Config, pledged: Optional[Pledged] = None) -> GroupTree:
    """Groups of every level with their pledges. Parameters and errors as of `plan_config`."""
    if pledged is None:
        pledged = pledges_of(config).resolve(int(time.time()))
        if pledged.source.problem is not None:
            raise PoolUnavailableError(f"{pledged.source.name}: {pledged.source.problem}; nothing is decided")
    return tree_of(config.groups, pledged.hs06)


def plan_config(config: Config, pledged: Optional[Pledged] = None, *, offline: bool = False) -> PlanConfig:
    """What the law needs of the configuration.

    Parameters
    ----------
    pledged
        What the pledges' source said; None to ask it. If it has a problem, only the groups' names are of use: for
        plans without targets.
    offline
        Whether plans are made from a list of jobs, which does not tell what blocks of cores jobs took.

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
    from sharectl.adapters.https_targets import ServedAt

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
        from sharectl.adapters.https_targets import HttpsPublisher

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
    """The same, for a decision. Raises ConfigError too, if that needs what a file of jobs does not tell."""
    if arguments.jobs is not None and config.control.setpoint == "present":
        raise ConfigError(
            [
                (
                    "control.setpoint: `present` needs the cores of all nodes of a live pool, and --jobs has only jobs; "
                    "write `in_use` or `pledge` in a copy of the configuration to decide on this file"
                )
            ]
        )
    return look(arguments, config)


def _unix_seconds(text: str) -> int:
    """Option value ``text`` as Unix seconds, >= 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: write whole seconds since 1970, such as 1627101243")
    return int(text)


def _say_what_was_assumed(path: Path, rows: jobs_file.JobRows) -> None:
    notes = (
        (
            not rows.running and not rows.pending,
            "no job is in it: if the pool was not empty, it is no list of jobs",
        ),
        (rows.ignored_rows, f"{rows.ignored_rows} rows left out: the jobs neither run in a slot nor wait"),
        (
            rows.defaulted_rows,
            f"{rows.defaulted_rows} running jobs count by default: cores or power is undefined",
        ),
    )
    for applies, note in notes:
        if applies:
            print(f"sharectl: {path}: {note}", file=sys.stderr)


def _replayed(path: Path, taken_at: Optional[int], config: Config) -> Snapshot:
    rows = jobs_file.read(path, frozenset(config.tree.names))
    _say_what_was_assumed(path, rows)
    machines = sorted({job.node for job in rows.running} - {jobs_file.PENDING_NODE})
    chosen = {"controlled": config.nodes.controlled, "reserved": config.nodes.reserved}
    asked = [name for name, by in chosen.items() if isinstance(by, ControlledConstraint)]
    if asked:
        raise ConfigError(
            [
                f"nodes.{name}: a ClassAd constraint needs the machine ads of a live pool, and --jobs has none; name "
                "hosts or a share in a copy of the configuration to replay this file"
                for name in asked
            ]
        )
    under = controlled_machines(config.nodes.controlled, machines, frozenset())
    kept = config.nodes.reserved
    return jobs_file.as_snapshot(
        rows,
        taken_at if taken_at is not None else int(path.stat().st_mtime),
        {machine: machine in under for machine in machines},
        frozenset() if kept is None else controlled_machines(kept, machines, frozenset()),
    )
