"""First configuration of a pool, with the origin of each number as a comment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, fsum
from statistics import median
from textwrap import wrap
from typing import Optional

from sharectl.config.fields import UNMAPPED, keys_of, write_share
from sharectl.config.groups import GroupConfig, name_fault
from sharectl.config.text import flow
from sharectl.errors import AbsentError
from sharectl.model import DEFAULT_NODE_HS06, OTHER, GroupUsage, PlanLimits, Snapshot
from sharectl.plan.nodes import NO_SNIPPET, nodes_in_share
from sharectl.shares.errors import usage_by_group
from sharectl.times import PERIOD_SECONDS, shown, span, validity_of
from sharectl.words import counted, printable

MOST_GROUPS = 64
"""Groups that are written: users can name any number of them."""
_FIRST_SHARE = 0.05
_LINE_CHARACTERS = 98
_BRIEF_SECONDS, _BRIEF_PERIOD_SECONDS = 2 * PERIOD_SECONDS, 120
"""Median age of jobs below which a shorter period of the timer pays, and that period."""


class AnyGroup(Container[str]):
    """Names that a group of the first level can have."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name_fault(name, GroupConfig) is None


@dataclass(frozen=True)
class FirstLook:
    """Answers of a pool of which nothing is configured."""

    snapshot: Snapshot
    """Groups of it are those of `AnyGroup`."""
    quotas: Mapping[str, float] = field(default_factory=dict)
    """Group of the negotiator → its quota, weighted slots."""
    without_quotas: str = "GROUP_NAMES of the negotiator is empty"
    """Why there are no quotas, where there are none."""
    publisher: Optional[tuple[str, str]] = None
    """Identity of this user in the collector, and the method, if it may advertise there."""
    collector: Optional[str] = None
    """Address; None for the collector of this machine."""

    @cached_property
    def usage(self) -> dict[str, GroupUsage]:
        """Group → its usage: those with jobs by cores held, then those with a quota alone."""
        names = {*self.valid_quotas, *(jobs.group for jobs in self.snapshot.running)}
        names |= {jobs.group for jobs in self.snapshot.pending}
        rows = usage_by_group(self.snapshot, sorted(names - {OTHER})).items()
        by_waiting = sorted(rows, key=lambda row: -sum(row[1].pending_by_cores.values()))
        return dict(sorted(by_waiting, key=lambda row: -row[1].cores))

    @property
    def valid_quotas(self) -> dict[str, float]:
        """Groups of the first level that have a quota above 0."""
        names = AnyGroup()
        return {name: quota for name, quota in self.quotas.items() if quota > 0 and name in names}

    @property
    def cores(self) -> int:
        """Cores of all nodes."""
        return sum(node.cores for node in self.snapshot.nodes)

    @property
    def hs06(self) -> float:
        """Power of all nodes."""
        return fsum(node.cores * node.hs06_per_core for node in self.snapshot.nodes)


def render(look: FirstLook) -> str:
    """YAML with comments; raises AbsentError if no group is known."""
    if not look.usage:
        raise AbsentError(
            f"no job has an AccountingGroup that can be a group; {look.without_quotas}; run "
            "`sharectl init` again when there are jobs, or write groups: by docs/configuration.md"
        )
    sections = (_head, _groups, _pledges, _nodes, _control, _cycles, _pool, _publish)
    return "\n\n".join(filter(None, ("\n".join(section(look)) for section in sections))) + "\n"


def _comment(text: str) -> Iterator[str]:
    """Comment of lines; text of strangers in it stays within."""
    for line in wrap(printable(text), _LINE_CHARACTERS, break_on_hyphens=False):
        yield f"# {line}"


# ---- sections


def _head(look: FirstLook) -> Iterator[str]:
    snapshot = look.snapshot
    answered = sum(source.problem is None for source in snapshot.sources) - 1
    yield from _comment(
        f"Written by `sharectl init` at {shown(snapshot.taken_at)} from the answers of the pool."
    )
    yield from _comment(
        f"The collector knows {counted(len(snapshot.nodes), 'node')} with {look.cores} cores, "
        f"{look.hs06:.6g} HS06. {answered} of {counted(snapshot.schedds, 'schedd')} answered."
    )
    for source in snapshot.problems:
        fact = "so its jobs are in none of these numbers; run `sharectl init` again"
        yield from _comment(f"{source.name} did not answer ({source.problem}), {fact}.")
    yield from _comment("sharectl.yaml(5) and docs/configuration.md have all keys.")
    yield ""
    yield from _comment(
        "Cycles measure, decide and record, and publish no target. Write `steer` to publish them."
    )
    yield "mode: observe"


def _groups(look: FirstLook) -> Iterator[str]:
    quotas, names = look.valid_quotas, list(look.usage)
    written = [name for name in names if name in quotas] if quotas else names[:MOST_GROUPS]
    yield from _comment("First parts of AccountingGroup, by the cores that their jobs hold now.")
    if not quotas:
        yield from _comment(
            "Pledges are not known: each is an equal part of the power of all nodes. "
            "Write what each group was promised."
        )
    yield "groups:"
    part = {"pledge_hs06": float(f"{look.hs06 / len(written):.6g}")}
    for name in written:
        yield f"  # {_use_of(look, name)}"
        yield f"  {flow(name)}: {flow({} if quotas else part)}"
    if more := len(names) - len(written):
        yield from _comment(f"{counted(more, 'group')} more with jobs: see `sharectl snapshot`.")


def _use_of(look: FirstLook, name: str) -> str:
    """Cores that a group holds, its jobs that wait, and its quota."""
    used, quota = look.usage[name], look.valid_quotas.get(name)
    waiting = counted(sum(used.pending_by_cores.values()), "job")
    of_pool = "" if quota is None else f"; quota {quota:.6g} of {look.cores} cores"
    return f"{used.cores} cores in use, {waiting} waiting{of_pool}"


def _pledges(look: FirstLook) -> Iterator[str]:
    if not look.valid_quotas:
        yield from _comment(f"No quotas, because {look.without_quotas}.")
        return
    yield from _comment(
        "Each group's pledge is its quota at the negotiator (GROUP_QUOTA), times the mean power of "
        f"a core, {look.hs06 / look.cores:.4g} HS06 now."
    )
    yield "pledges: {from: negotiator}"


def _nodes(look: FirstLook) -> Iterator[str]:
    nodes = look.snapshot.nodes
    installed = sum(node.deaf != NO_SNIPPET for node in nodes)
    have = f"{installed or 'none'} of {counted(len(nodes), 'node')} now"
    share = write_share(_FIRST_SHARE) if nodes_in_share(_FIRST_SHARE, len(nodes)) else "*"
    yield from _comment(
        "Nodes that plans may give targets at first, of those with the execute point's snippet "
        f"({have})."
    )
    yield f"nodes: {flow({'controlled': share})}"


def _control(look: FirstLook) -> Iterator[str]:
    """Size of most multicore jobs; nothing without one."""
    running: Counter[int] = Counter()
    waiting: Counter[int] = Counter()
    for count, all_jobs in ((running, look.snapshot.running), (waiting, look.snapshot.pending)):
        for jobs in all_jobs:
            count[jobs.cores] += jobs.jobs if jobs.group in look.usage else 0
    key = keys_of(PlanLimits)["multicore_cores"]
    jobs_of = {size: jobs for size, jobs in (running + waiting).items() if key.admits(size)}
    if not jobs_of:
        return
    size = max(jobs_of, key=lambda size: (size * jobs_of[size], -size))
    jobs_now = f"{running[size]} run, {waiting[size]} wait"
    yield from _comment(f"Size of most multicore work: of the {size}-core jobs {jobs_now}.")
    if size != 8:  # noqa: PLR2004 - as config.d has it
        yield from _comment(f"On nodes write SHARECTL_MULTICORE_CORES = {size} too.")
    yield f"control: {flow({'multicore_cores': size})}"


def _cycles(look: FirstLook) -> Iterator[str]:
    """Advice for jobs of minutes; nothing for longer ones."""
    ages: list[int] = []
    for jobs in look.snapshot.running:
        ages += [jobs.seconds] * jobs.jobs
    if ages and median(ages) < _BRIEF_SECONDS:
        yield from _comment(
            f"Half of the jobs began in the last {span(ceil(median(ages)))}. If that is usual, a "
            "cycle each 2 minutes serves groups sooner than each 5, the default. Change "
            "sharectl.timer as its file says, then write three periods and UPDATE_INTERVAL, 300 s:"
        )
        yield f"# validity_seconds: {validity_of(_BRIEF_PERIOD_SECONDS)}"


def _pool(look: FirstLook) -> Iterator[str]:
    silent = sum(node.power_assumed for node in look.snapshot.nodes)
    if silent:
        yield from _comment(
            f"{silent} of {counted(len(look.snapshot.nodes), 'node')} publish no t1_wn_hs06, "
            f"and count as {DEFAULT_NODE_HS06:g} HS06. Let nodes publish it "
            "(docs/getting-started.md), or write the power of a typical one:"
        )
        yield "# pool: {default_node_hs06: }"
    if look.collector is not None:
        yield f"pool: {flow({'collector': look.collector})}"


def _publish(look: FirstLook) -> Iterator[str]:
    """Ways of targets that would work from here."""
    default = "Targets go by a file that nodes mount (docs/transports.md). Ads in the collector"
    identity, method = look.publisher or ("", "")
    if look.publisher is None or identity.endswith(f"@{UNMAPPED}"):
        yield from _comment(
            f"{default} do not work from here yet: the collector does not authenticate the user "
            "who ran `sharectl init`, or does not let this user advertise."
        )
        return
    yield from _comment(
        f"{default} work from here too: it accepts the user who ran `sharectl init`, by {method}. "
        "If cycles have the same identity, write:"
    )
    yield f"# publish: {flow([{'collector': {'identity': printable(identity)}}])}"
