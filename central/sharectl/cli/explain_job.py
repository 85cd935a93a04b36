"""``sharectl explain job``."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from typing import Optional

from sharectl.cli import options, wiring
from sharectl.config.model import Config
from sharectl.errors import SharectlError
from sharectl.explain import asks, job
from sharectl.explain.asks import FoundJob, PoolSays
from sharectl.explain.job import Headroom, quotas_of, state_of, verdict, verdict_code
from sharectl.model import OTHER
from sharectl.report import as_json
from sharectl.report.explain import JobExplanation, job_as_data, print_job
from sharectl.shares.errors import group_errors, usage_by_group
from sharectl.shares.groups import group_of

_JUDGED = (None, job.HELD)
"""States of jobs that nodes are asked about: they wait, or would if they were released."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject."""
    parser.add_argument(
        "id", metavar="ID", help="CLUSTER.PROC, SCHEDD#CLUSTER.PROC, or a GlobalJobId"
    )
    parser.add_argument(
        "--schedd", metavar="NAME", help="its access point, where several have such a number"
    )
    parser.add_argument(
        "--all", action="store_true", help="more than one screen: every clause in full"
    )
    options.add_common(parser)
    parser.set_defaults(usage_error=parser.error)
    parser.epilog = (
        "exit codes: 0 it is explained, 1 no access point knows the job or its expressions "
        "cannot be evaluated in "
        "time, 65 several access points have one of this number, 75 a daemon did not answer"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what stands between a job and the nodes; 1 if that cannot be told."""
    config = options.config_of(arguments)
    try:
        wanted = asks.job_id(arguments.id, arguments.schedd)
    except ValueError as error:
        arguments.usage_error(str(error))
    now = int(time.time())
    seconds = config.pool.schedd_deadline_seconds
    places = asks.schedds(
        config.pool.collector, config.pool.collector_deadline_seconds, wanted.schedd
    )
    found = asks.find(places, wanted, seconds)
    explained = (
        JobExplanation(str(wanted), now, job.UNKNOWN)
        if found is None
        else _explained(str(wanted), found, config, now)
    )
    if arguments.json:
        print(as_json.dumps("explain_job", job_as_data(explained)))
    else:
        print_job(explained, sys.stdout, everything=arguments.all)
    return 1 if explained.code in (job.UNKNOWN, job.NOT_EVALUATED) else 0


def _explained(name: str, found: FoundJob, config: Config, now: int) -> JobExplanation:
    state = state_of(found.facts.status, found.facts.universe)
    says: Optional[PoolSays] = None
    problem = None
    if state in _JUDGED:
        # The longer of the two: the expressions are evaluated within it too.
        says, problem = asks.judged(
            config.pool.collector, found, now, config.pool.schedd_deadline_seconds
        )
    judged = verdict(says.findings) if says is not None else None
    return JobExplanation(
        name,
        now,
        verdict_code(state, judged),
        asdict(found.facts),
        judged,
        None if says is None else _headroom(found.facts.accounting_group, config, says, now),
        problem,
    )


def _headroom(
    accounting_group: Optional[str], config: Config, says: PoolSays, now: int
) -> Headroom:
    group = group_of(accounting_group, config.groups)
    quotas = quotas_of(accounting_group, says.groups)
    if group == OTHER:
        return Headroom(group, quotas=quotas)
    try:
        pledges = wiring.plan_config(config).pledge_hs06
        snapshot = wiring.pool_of(config).snapshot(now)
    except SharectlError as error:
        return Headroom(group, quotas=quotas, problem=str(error).splitlines()[0])
    if not snapshot.complete:
        silent = ", ".join(source.name for source in snapshot.problems)
        return Headroom(group, quotas=quotas, problem=f"use is not known: no answer from {silent}")
    rows = group_errors(usage_by_group(snapshot, pledges), pledges)
    return Headroom(group, next((row for row in rows if row.group == group), None), quotas)
