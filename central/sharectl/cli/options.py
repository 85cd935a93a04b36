"""Options that several verbs share, and the looks at a pool that they choose."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from sharectl import times
from sharectl.errors import EXIT_CODES, ConfigError, PoolUnavailableError

if TYPE_CHECKING:  # verbs without a configuration start without its models
    from sharectl.condor.pool import CondorPool
    from sharectl.config.model import Config
    from sharectl.model import Plan, Snapshot

DEFAULT_CONFIG = "/etc/sharectl/sharectl.yaml"


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add ``--config`` and ``--json``."""
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add ``--config``."""
    parser.add_argument(
        "--config",
        type=Path,
        default=Path(DEFAULT_CONFIG),
        metavar="FILE",
        help="default: %(default)s",
    )


def add_look(parser: argparse.ArgumentParser) -> None:
    """Add ``--jobs`` and ``--taken-at``: decide from a file instead of from the live pool."""
    parser.add_argument(
        "--jobs",
        type=Path,
        metavar="FILE",
        help="work offline on a file like AcctGroup_hs06.txt (a row a job: JobStatus, node or "
        "PEND, group, seconds running, cores, HS06 per core; docs/method.md has the condor_q "
        "command) instead of asking the pool; a pipe may be silent for 60 s",
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


def exit_codes(codes: Iterable[int] = EXIT_CODES, meanings: Mapping[int, str] = {}) -> str:
    """List of exit codes with their meanings, those of `EXIT_CODES` unless the verb has others."""
    listed = "; ".join(f"{code} {meanings.get(code, EXIT_CODES[code])}" for code in codes)
    return f"exit codes: {listed}"


def config_of(arguments: argparse.Namespace) -> Config:
    """Configuration that ``--config`` names."""
    from sharectl.config.load import load

    return load(arguments.config)


def pool_of(config: Config) -> CondorPool:
    """Live pool."""
    from sharectl.condor.pool import CondorPool, PoolAccess

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
            multicore_cores=config.control.limits.multicore_cores,
            reserved=config.nodes.reserved,
            true_sizes=config.control.strategy == "many",
            job_ctl_stale_seconds=config.nodes.job_ctl_stale_seconds,
        )
    )


def look(arguments: argparse.Namespace, config: Config, *, decides: bool = False) -> Snapshot:
    """Complete snapshot, of the file that ``--jobs`` names or of the live pool.

    Raises
    ------
    PoolUnavailableError
        If a daemon did not answer: errors and plans need them all.
    ConfigError
        If the configuration needs more than the file has, for errors or, if it ``decides``, plans.
    """
    if arguments.jobs is not None:
        return _of_file(arguments.jobs, arguments.taken_at, config, decides=decides)
    snapshot = pool_of(config).snapshot(int(time.time()))
    if not snapshot.complete:
        raise PoolUnavailableError(
            "\n".join(f"{source.name}: {source.problem}" for source in snapshot.problems)
            + "\nthe snapshot is incomplete, and missing jobs are not zero jobs: nothing is decided"
        )
    return snapshot


def _of_file(path: Path, taken_at: Optional[int], config: Config, *, decides: bool) -> Snapshot:
    from sharectl.ledger import jobs_file
    from sharectl.plan.nodes import ControlledConstraint, controlled_machines

    chosen = {"controlled": config.nodes.controlled, "reserved": config.nodes.reserved}
    problems = [
        f"nodes.{name}: a ClassAd constraint needs the machine ads of a live pool, and --jobs has "
        "none; name hosts or a share in a copy of the configuration to replay this file"
        for name, nodes in chosen.items()
        if isinstance(nodes, ControlledConstraint)
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
    if rows.ignored_rows:
        count = f"{rows.ignored_rows} rows left out"
        say([f"{path}: {count}: the jobs neither run in a slot nor wait"])
    if rows.defaulted_rows:
        count = f"{rows.defaulted_rows} running jobs count by default"
        say([f"{path}: {count}: cores or power is undefined"])
    machines = sorted({job.node for job in rows.running} - {jobs_file.PENDING_NODE})
    controlled, reserved = (
        frozenset() if nodes is None else controlled_machines(nodes, machines, frozenset())
        for nodes in chosen.values()
    )
    return jobs_file.as_snapshot(
        rows,
        taken_at if taken_at is not None else int(path.stat().st_mtime),
        {machine: machine in controlled for machine in machines},
        reserved,
    )


def say(lines: Iterable[str]) -> None:
    """Print lines to standard error, each after the name of the command."""
    for line in lines:
        print(f"sharectl: {line}", file=sys.stderr)


def say_warnings(warnings: Iterable[str]) -> None:
    """Print to standard error oddities of the configuration."""
    say(f"warning: {warning}" for warning in warnings)


def say_limits(plan: Plan) -> None:
    """Print to standard error which limits acted on a plan, and on how many nodes."""
    from sharectl.plan.limits import LIMITS

    say(f"{LIMITS[note.code]}: {note.nodes}" for note in plan.limits)


def _unix_seconds(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"{text!r}: write whole seconds since 1970, such as 1627101243"
        )
    return int(text)


def moment(now: int) -> Callable[[str], int]:
    """Type of an argument that is a time: its Unix seconds, at Unix time ``now``."""

    def read(text: str) -> int:
        try:
            return times.parse(text, now)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def refuse_no_period(arguments: argparse.Namespace) -> None:
    """Usage error of an action whose ``--from`` is not before its ``--to``."""
    if arguments.since >= arguments.until:
        arguments.usage_error("--from is not before --to: write the earlier time first")


def no_cycle(span: Optional[tuple[int, int]]) -> str:
    """Message for a period without cycles; ``span`` is that of the ledger, None if it is empty."""
    if span is None:
        return "no cycle is in the ledger yet: `sharectl cycle`"
    first, last = map(times.shown, span)
    return f"no cycle in that time: the ledger has cycles from {first} to {last}"
