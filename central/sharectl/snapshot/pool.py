"""Snapshot of a live pool: nodes from its collector, jobs from all its schedds.

Collector and schedds count the jobs: their answers grow with kinds of jobs, not with jobs.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from typing import Any, NamedTuple, Optional

from sharectl.condor import daemons, node_ads
from sharectl.condor.ads import MAX_TEXT, evaluated, number, sequence, text, whole
from sharectl.condor.daemons import collector, collector_answer, slots
from sharectl.model import (
    DEFAULT_NODE_CORES,
    OTHER,
    SCHEDD_SOURCE,
    Kind,
    Node,
    OtherJobs,
    PendingJobs,
    PoolConfig,
    RunningJobs,
    Snapshot,
    Source,
    Target,
    UnplaceableJobs,
)
from sharectl.plan.nodes import NEVER_RAN, NO_SNIPPET, STALE, NodesConfig, never_steered, version_of
from sharectl.plan.waits import NodeCores
from sharectl.shares.demand import Request, job_waits, pending_rows, unplaceable_jobs
from sharectl.shares.groups import first_part, group_of
from sharectl.snapshot import schedd_jobs
from sharectl.snapshot.job_trials import TRIAL_SECONDS, Trial, ask_both, tried
from sharectl.snapshot.requests import Requests, sizes_on_slots, users_of
from sharectl.snapshot.schedd_jobs import JobKind, JobShape, ScheddJobs, Shapes
from sharectl.words import counted as number_of
from sharectl.words import printable

MOST_PENDING_CORES = 8
"""Larger requests count as this (seed)."""
_KNOWS_NOTHING = (
    "it knows no execute point, or no schedd; see condor_status -any, or wait for their next "
    "updates if it has just started"
)
MOST_OTHERS = 10
"""Parts of `OTHER` that a snapshot names: users can write any number of them."""

_OF_JOBS = ("Cpus", "AccountingGroup", "JobStart", "EnteredCurrentState", "Memory")
"""Attributes of a claimed slot; a partitionable one has them as lists, with Child before them."""
_OF_SLOTS = ("State", "Draining", "TotalSlotMemory", "TotalCpus", "t1_wn_hs06", "t1_TargetSequence")
_OF_CHILDREN = [f"Child{name}" for name in _OF_JOBS]
PROJECTION = sorted({*node_ads.PROJECTION, *_OF_SLOTS, *_OF_JOBS, *_OF_CHILDREN})


class CollectorAnswer(NamedTuple):
    """Answer of a collector to all questions of a cycle."""

    nodes: tuple[Node, ...]
    running: tuple[tuple[Any, ...], ...]
    """Jobs in slots by field of `RunningJobs`; to send them as rows takes twice the memory."""
    held_cores: Counter[Optional[str]]
    """AccountingGroup -> cores that its jobs in slots hold."""
    most_cores: int
    """Larger requests count as this."""
    schedds: tuple[dict[str, str], ...]
    """Location of each schedd."""
    started_at: int
    """Unix seconds at which the collector started; 0 if it does not say."""


def read_collector(collector: Any, access: CondorPool, now: int) -> CollectorAnswer:
    """Answer of a collector of the bindings at Unix time ``now``."""
    ads = slots(collector, projection=["Machine"])
    met = node_ads.met_by(collector, access.nodes)
    itself = daemons.query(collector, "Collector", projection=["MonitorSelfTime", "MonitorSelfAge"])
    names, control = machines_of(map(node_ads.machine_of, ads), access, met)
    nodes: list[Node] = []
    running: list[RunningJobs] = []
    held_cores: Counter[Optional[str]] = Counter()
    most_cores = 1
    for ads in daemons.slots_in_parts(collector, sorted(names), PROJECTION):
        nodes += nodes_of(ads, access, names, control, now)
        for ad in ads:
            for account, job in _jobs_in(ad, access, names, now):
                running.append(job)
                held_cores[account] += job.cores
        most_cores = max(most_cores, *(_amount(ad, "TotalSlotCpus") for ad in ads), 1)
        ads.clear()
    if not (access.true_sizes and nodes):
        most_cores = max(MOST_PENDING_CORES, access.multicore_cores)
    return CollectorAnswer(
        nodes=tuple(nodes),
        running=tuple(zip(*running)),
        held_cores=held_cores,
        most_cores=most_cores,
        schedds=tuple(daemons.locations(collector, "Schedd")),
        started_at=max(map(started_at, itself), default=0),
    )


def started_at(ad: Any) -> int:
    """Unix seconds; 0 if unknown."""
    # It has no DaemonStartTime, but its age and when that was noted.
    noted, age = (whole(evaluated(ad, name), -1) for name in ("MonitorSelfTime", "MonitorSelfAge"))
    return noted - age if noted > 0 <= age else 0  # in its first minutes the age may be 0


def machines_of(
    machines: Iterable[str], access: CondorPool, met: node_ads.Met
) -> tuple[dict[str, str], node_ads.InControl]:
    """Names of nodes by host name, and nodes under control; ``met`` meet each constraint."""
    names = node_names(filter(None, machines))
    return names, node_ads.in_control(access.nodes, names, met, observes=access.observes)


def nodes_of(
    ads: Iterable[Any],
    access: CondorPool,
    names: Mapping[str, str],
    control: node_ads.InControl,
    now: int,
) -> tuple[Node, ...]:
    """Execute points that have these slots, by host name; those of other machines are left out."""
    nodes = []
    for machine, slot_ads in sorted(_by_machine(ads).items()):
        if machine not in names:
            continue
        facts = [node_ads.facts_of(ad, now, access.nodes.job_ctl_stale_seconds) for ad in slot_ads]
        obeyed, refusal = node_ads.obedience_of(facts)
        deaf = node_ads.deaf_code(facts)
        if machine in control.bypassed and deaf in (None, STALE):
            deaf = NO_SNIPPET
        hs06_per_core, published = _hs06_per_core(slot_ads[0], access)
        memory = (_amount(ad, "TotalSlotMemory") or _amount(ad, "Memory") for ad in slot_ads)
        nodes.append(
            Node(
                name=names[machine],
                machine=machine,
                cores=sum(_amount(ad, "TotalSlotCpus") for ad in slot_ads),
                hs06_per_core=hs06_per_core,
                controlled=machine in control.controlled,
                memory_mib=sum(memory),
                reserved=machine in control.reserved,
                draining=any(slot.is_draining for slot in facts),
                obeyed_sequence=obeyed,
                refusal=refusal,
                deaf=None if control.rehearsed and deaf == NO_SNIPPET else deaf,
                power_assumed=not published,
                multicore_only=all(slot.multicore_only for slot in facts),
                hot=any(slot.is_hot for slot in facts),
                several_slots=sum(slot.is_partitionable for slot in facts) > 1,
                grace_cores=sum(slot.free_cores for slot in facts if slot.in_grace),
            )
        )
    return tuple(nodes)


def _by_machine(ads: Iterable[Any]) -> dict[str, list[Any]]:
    by_machine: defaultdict[str, list[Any]] = defaultdict(list)
    for ad in ads:
        by_machine[node_ads.machine_of(ad)].append(ad)
    return by_machine


def _amount(ad: Any, name: str) -> int:
    return whole(evaluated(ad, name), 0)


def _hs06_per_core(ad: Any, access: CondorPool) -> tuple[float, bool]:
    """HS06 of a core of the machine, and False if the machine does not publish its power."""
    hs06 = number(evaluated(ad, "t1_wn_hs06"), 0.0)
    cores = _amount(ad, "TotalCpus") or DEFAULT_NODE_CORES
    return (hs06 or access.pool.default_node_hs06) / cores, bool(hs06)


def _jobs_in(
    ad: Any, access: CondorPool, names: Mapping[str, str], now: int
) -> Iterator[tuple[Optional[str], RunningJobs]]:
    """AccountingGroup and job of each dynamic slot of a slot, or of the slot itself.

    ``names`` is host name -> name of the node, ``now`` Unix time.
    """
    rows: Iterable[Sequence[Any]] = ()
    if node_ads.flag(ad, "PartitionableSlot") or sequence(evaluated(ad, "ChildCpus")):
        rows = zip_longest(*(sequence(evaluated(ad, name)) for name in _OF_CHILDREN))
    elif evaluated(ad, "State") == "Claimed":
        rows = [[evaluated(ad, name) for name in _OF_JOBS]]
    machine, (hs06_per_core, _) = node_ads.machine_of(ad), _hs06_per_core(ad, access)
    for cores, group, start, entered, memory in rows:
        since = whole(start, 0) or whole(entered, 0)
        # One string for the jobs of a group, of which there are a hundred thousand.
        account = sys.intern(group[:MAX_TEXT]) if isinstance(group, str) else None
        job = RunningJobs(
            node=names.get(machine, machine.partition(".")[0]),
            group=group_of(account, access.groups),
            cores=whole(cores, 1, 1),
            hs06_per_core=hs06_per_core,
            seconds=max(0, now - since) if since else 0,
            memory_mib=whole(memory, 0),
        )
        yield account, job


@dataclass(frozen=True)
class CondorPool:
    """A live pool, asked through its collector and all its schedds."""

    groups: Container[str]
    """Configured groups."""
    nodes: NodesConfig
    pool: PoolConfig
    multicore_cores: int = 8
    true_sizes: bool = False
    """True if requests count up to the largest node; else as at most `MOST_PENDING_CORES`."""
    observes: bool = False
    """True if nothing is steered: then a pool without the snippet is planned as if it had it."""

    def snapshot(self, now: int) -> Snapshot:
        """Snapshot of the pool; see `sharectl.cycle.ports.Pool`."""
        pool, read = self.pool, partial(read_collector, access=self, now=now)
        answer = collector_answer(pool.collector, pool.collector_deadline_seconds, read)
        answered: Optional[CollectorAnswer] = answer.value
        if answered is None:
            return Snapshot(now, (), (), (), (answer.source,))
        if not (answered.nodes and answered.schedds):
            # It has just started, or its updates are refused: what it does not know is not zero.
            source = replace(answer.source, problem=_KNOWS_NOTHING)
            return Snapshot(now, (), (), (), (source,))
        jobs, sources, trial, requests = self._ask_schedds(answered)
        elsewhere = requests.closed(kind for schedd in jobs for kind in schedd.counted)
        nodes = tuple(
            replace(node, closed=node.closed + elsewhere.get(node.machine, ()))
            for node in requests.nodes.values()
        )
        pending = self._pending(jobs, trial, requests)
        waits = (
            job._replace(group=group, cores=cores)
            for job in chain.from_iterable(schedd.waits for schedd in jobs)
            for kind in [JobKind(job.group, job.cores, 0, job.request)]
            for group, cores, _ in requests.shares(kind, 1, of_one_size=True)
        )
        unplaceable = (
            UnplaceableJobs(group, cores, shape.jobs, shape.example, later)
            for shapes, later in ((trial.unplaceable, False), (trial.later, True))
            for shape in shapes
            for group, cores, _ in requests.shares(shape.kind, shape.jobs, of_one_size=True)
        )
        return Snapshot(
            now,
            nodes,
            tuple(map(RunningJobs._make, zip(*answered.running))),
            pending,
            (answer.source, *sources),
            answered.started_at,
            others(self.groups, answered.held_cores, jobs),
            waits=job_waits(waits),
            unplaceable=unplaceable_jobs(pending, unplaceable),
            untried=trial.untried,
            over_budget=_over_budget(trial.over),
        )

    def _ask_schedds(
        self, answered: CollectorAnswer
    ) -> tuple[list[ScheddJobs], list[Source], Trial, Requests]:
        """Jobs, answers of schedds, asked at once, trial and requests of the pending jobs."""
        pool, schedds, most_cores = self.pool, answered.schedds, answered.most_cores
        ask = partial(daemons.schedd_questions, schedds, pool.schedd_deadline_seconds)
        plain = ask(partial(schedd_jobs.count_pending, most_cores=most_cores))
        shaped = ask(partial(schedd_jobs.shapes_of, most_cores=most_cores))
        answers, shapes = ask_both(plain, shaped if pool.demand == "placeable" else {})

        def look_again(projection: Sequence[str]) -> Iterable[Any]:
            machines = [node.machine for node in answered.nodes]
            central = collector(pool.collector)
            return chain.from_iterable(daemons.slots_in_parts(central, machines, projection))

        seconds = pool.collector_deadline_seconds + TRIAL_SECONDS
        jobs = [answer.value for answer in answers.values() if answer.value is not None]
        queues: list[Shapes] = [answer.value for answer in shapes if answer.value is not None]
        every = [shape for queue in queues for shape in queue.shapes]
        kinds = {kind for schedd in jobs for kind in schedd.counted}
        kinds.update(shape.kind for shape in every)
        users = users_of({kind.request for kind in kinds} - {""}, every)
        sizes = sizes_on_slots(look_again, users, seconds) if users else {}
        nodes = {node.machine: node for node in answered.nodes}
        requests = Requests(sizes, nodes, most_cores, self._group)
        trial = tried(look_again, shapes, seconds, self._group, requests.cores_of)
        nodes |= {
            name: replace(nodes[name], closed=closed)
            for name, closed in trial.closed.items()
            if name in nodes
        }
        present = {location["Name"].lower() for location in schedds}
        sources = [answer.source for answer in answers.values()]
        sources += [
            Source(
                f"{SCHEDD_SOURCE}{name}",
                0.0,
                "the collector does not know it; start it, or correct pool.schedds",
            )
            for name in pool.schedds
            if name.lower() not in present
        ]
        return jobs, sources, trial, requests

    def _group(self, accounting_group: Optional[str]) -> str:
        return group_of(accounting_group, self.groups)

    def _pending(
        self, answers: Iterable[ScheddJobs], trial: Trial, requests: Requests
    ) -> tuple[PendingJobs, ...]:
        counted, late, unplaceable = (Counter[Request]() for _ in range(3))
        without_demand = (*trial.unplaceable, *trial.later, *trial.over)
        nowhere = {shape.kind.request for shape in without_demand} - {""}
        for answer in answers:
            for jobs_by_kind, total in ((answer.pending, counted), (answer.late, late)):
                for kind, jobs in jobs_by_kind.items():
                    of_one_size = kind.request in nowhere
                    total.update(requests.shares(kind, jobs, of_one_size=of_one_size))
        untried = Counter[Kind]()
        for shape in without_demand:
            for request, jobs in requests.shares(shape.kind, shape.jobs, of_one_size=True).items():
                if shape.over:
                    untried[request[:2]] += jobs
                else:
                    unplaceable[request] += jobs
        # Their memory is not known: they are of the requests of which the most jobs are left.
        for request, jobs in counted.most_common():
            taken = max(0, min(untried[request[:2]], jobs - unplaceable[request]))
            unplaceable[request] += taken
            untried[request[:2]] -= taken
        for request, jobs in late.items():
            # They are tried when they are there: until then they are as those that are.
            if 0 < counted[request] <= unplaceable[request]:
                unplaceable[request] += jobs
        return pending_rows(counted + late, unplaceable)


def _over_budget(shapes: Sequence[JobShape]) -> Optional[str]:
    if not shapes:
        return None
    jobs = number_of(sum(shape.jobs for shape in shapes), "pending job")
    named = next((shape for shape in shapes if shape.example), shapes[0])
    users = number_of(len({shape.user for shape in shapes}), "user")
    users += f" (such as {printable(named.user, 100)})" if named.user else ""
    example = f"; see `sharectl explain job {named.example}`" if named.example else ""
    return f"{jobs} of {users}: it takes too long to try them on the nodes: no demand{example}"


def others(
    groups: Container[str], cores: Counter[Optional[str]], answers: Iterable[ScheddJobs]
) -> tuple[OtherJobs, ...]:
    """Largest parts of `OTHER`, at most `MOST_OTHERS`; ``cores`` are held, by AccountingGroup."""
    in_use, waiting = Counter[str](), Counter[str]()
    for account, held in cores.items():
        if group_of(account, groups) == OTHER:
            in_use[first_part(account)] += held
    for kind, jobs in (pair for answer in answers for pair in answer.pending.items()):
        if group_of(kind.account, groups) == OTHER:
            waiting[first_part(kind.account)] += jobs
    names = sorted({**in_use, **waiting}, key=lambda name: (-in_use[name], -waiting[name], name))
    return tuple(OtherJobs(name, in_use[name], waiting[name]) for name in names[:MOST_OTHERS])


def node_names(machines: Iterable[str]) -> dict[str, str]:
    """Full host name -> name of the node: short, or full where two nodes share the short one."""
    short = {machine: machine.partition(".")[0] for machine in machines}
    shared = Counter(short.values())
    return {machine: machine if shared[name] > 1 else name for machine, name in short.items()}


class NodeRow(NamedTuple):
    """A node of the list."""

    node: str
    """Name as plans have it: the short host name, or the full one where two nodes share that."""
    machine: str
    """Full host name, lower case."""
    controlled: bool
    reserved: bool
    snippet: bool
    """True if the execute point's snippet is configured there, also where START bypasses it."""
    version: Optional[str]
    """Version of job_ctl there; None if it publishes nothing."""
    job_ctl: Optional[str]
    """Code of its last run, of `sharectl.plan.nodes`; None if it publishes nothing."""
    target: Optional[Target]
    """Target that START acts on."""
    reason: Optional[str]
    """Why the node gets no target, of `NODE_REASONS` or `REMEDIES`; None if it can get one."""


def list_nodes(collector: Any, access: CondorPool, now: int) -> list[NodeRow]:
    """Row of each node that a collector of the bindings knows, by name."""
    met = node_ads.met_by(collector, access.nodes)
    ads = slots(collector, projection=["Machine"])
    names, control = machines_of(map(node_ads.machine_of, ads), access, met)
    rows: list[NodeRow] = []
    for ads in daemons.slots_in_parts(collector, sorted(names), PROJECTION):
        nodes = nodes_of(ads, access, names, control, now)
        never = never_steered({n.name: NodeCores(n) for n in nodes}, access.nodes.controlled)
        by_machine = _by_machine(ads)
        for node in nodes:
            slot_ads = by_machine[node.machine]
            stale_seconds = access.nodes.job_ctl_stale_seconds
            facts = [node_ads.facts_of(ad, now, stale_seconds) for ad in slot_ads]
            code = next((slot.code for slot in facts if slot.code), None)
            version = next((slot.version for slot in facts if slot.version), None)
            rows.append(
                NodeRow(
                    node=node.name,
                    machine=node.machine,
                    controlled=node.controlled,
                    reserved=node.reserved,
                    snippet=bool(code) or any(slot.has_snippet for slot in facts),
                    version=version_of(version) if code else None,
                    job_ctl=code,
                    target=_target(node.name, slot_ads, now),
                    reason=_reason(node, never.get(node.name), code),
                )
            )
    return sorted(rows, key=lambda row: row.node)


def _reason(node: Node, never: Optional[str], code: Optional[str]) -> Optional[str]:
    """Why the node gets no target, in the order in which a plan asks."""
    if never == STALE and code is None:
        return NEVER_RAN
    return never or ("draining" if node.draining else node.refusal)


def _target(node: str, ads: Sequence[Any], now: int) -> Optional[Target]:
    """Target of the first slot that acts on one; what the ad lacks is ``?`` or 0."""
    for ad in ads:
        if node_ads.has_target(ad, now):
            groups = [text(group) or "?" for group in sequence(evaluated(ad, "t1_TargetGroups"))]
            cores = [whole(number, 0) for number in sequence(evaluated(ad, "t1_Targetcores"))]
            held_back, helped = (*groups, "?", "?")[:2]
            cap, request = (*cores, 0, 0)[:2]
            return Target(node, held_back, cap, helped, request)
    return None
