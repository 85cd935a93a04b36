"""Requests that have one value alone and another on a slot, by HTCondor's own library.

`isUndefined(TotalCpus) ? 1 : TotalCpus` is 1 in the queue and 8 on a node of 8 cores. Each such
request is evaluated as a match would, with the slots of the pool as TARGET when nothing runs there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Callable, NamedTuple, Optional

from sharectl.condor import accounts
from sharectl.condor.ad_rows import emptied, row_of
from sharectl.condor.ads import ad_of_long, expression, value_of, whole
from sharectl.condor.expressions import words_of_text
from sharectl.model import OTHER, ClosedTo, Kind, Node
from sharectl.shares.demand import Request, shared_out
from sharectl.snapshot.closed_nodes import by_machine
from sharectl.snapshot.schedd_jobs import JobKind, JobShape, whole_cores
from sharectl.snapshot.slot_groups import SlotGroup, SlotGroups, SlotQuery

MOST_REQUESTS = 4000
"""Requests that are evaluated; those beyond count as without a slot."""
_OF_ANY_SLOT = ("Machine", "MachineResources", "TotalSlotCpus", "TotalSlotMemory", "TotalSlotDisk")


class SizeOnSlots(NamedTuple):
    """Cores that a request comes to on some machines."""

    cores: int
    memory_mib: int
    """Least that it comes to there; 0 if unknown."""
    machines: frozenset[str]
    """Host names, lower case."""


Sizes = Mapping[str, Sequence[SizeOnSlots]]
"""Request, as of `JobKind` -> its sizes on the slots of a pool."""


def users_of(requests: Iterable[str], shapes: Iterable[JobShape]) -> dict[str, str]:
    """User of each request: of several the one who has the fewest; empty where no shape has it."""
    users = dict.fromkeys(requests, "")
    pairs = {(shape.kind.request, shape.user) for shape in shapes}
    of_user = Counter(user for _, user in pairs)
    for request, user in sorted(pairs, key=lambda pair: (-of_user[pair[1]], pair)):
        if request in users:
            users[request] = user
    return users


def sizes_on_slots(look: SlotQuery, requests: Mapping[str, str], deadline_seconds: float) -> Sizes:
    """Sizes of requests that have a value on some slot; ``requests`` has each with its user."""
    of_user = Counter(requests.values())
    ordered = sorted(
        requests, key=lambda request: (of_user[requests[request]], len(request), request)
    )[:MOST_REQUESTS]
    # Of unknown users each request has a budget.
    users = [requests[request] or request for request in ordered]
    evaluate = partial(_evaluate_all, look, ordered, users)
    none = dict[str, Sequence[SizeOnSlots]]()
    return accounts.answer_within(accounts.UserBudgets(users), evaluate, deadline_seconds, none)[0]


def _evaluate_all(
    look: SlotQuery, requests: Sequence[str], users: Sequence[str], budgets: accounts.UserBudgets
) -> dict[str, Sequence[SizeOnSlots]]:
    """Sizes of all requests; one that costs too much ends this process."""
    words = [frozenset().union(*map(words_of_text, row_of(text).values())) for text in requests]
    names, _ = accounts.affordable_words(words, users)
    ads = look([*_OF_ANY_SLOT, *names, *(f"TotalSlot{name}" for name in names)])
    slots = SlotGroups((emptied(row_of(ad)), {}, ()) for ad in ads)
    sizes: dict[str, Sequence[SizeOnSlots]] = {}
    for number, request in enumerate(requests):
        if budgets.results[number] != accounts.OVER and budgets.remaining_seconds(number) > 0:
            with budgets.trying(number):
                kinds = slots.of(slots.reached(words[number]) | {"totalslotcpus"})
                sizes[request] = _sizes(ad_of_long(request), kinds)
            budgets.results[number] = accounts.UNTRIED
    return {request: several for request, several in sizes.items() if several}


def _sizes(job: Any, slots: Iterable[SlotGroup]) -> Sequence[SizeOnSlots]:
    """Sizes of a request, the least first, on slots that are that large."""
    sizes: dict[int, tuple[list[int], set[str]]] = {}
    for slot in slots:
        total = whole(slot.ad.get("TotalSlotCpus"), 0) or 2**53
        cores = whole_cores(value_of(expression("MY.RequestCpus"), job, slot.ad), total + 1)
        if cores is not None and cores <= total:
            amounts, on = sizes.setdefault(cores, ([], set()))
            amounts.append(whole(value_of(expression("MY.RequestMemory"), job, slot.ad), 0))
            on |= slot.machines
    return [
        SizeOnSlots(cores, min(mib), frozenset(on)) for cores, (mib, on) in sorted(sizes.items())
    ]


class Requests(NamedTuple):
    """Requests of the pending jobs of a pool as a plan counts them."""

    sizes: Sizes
    nodes: Mapping[str, Node]
    """Host name -> node, with the jobs to which it is closed."""
    most_cores: int
    """Larger requests count as this."""
    group_of: Callable[[Optional[str]], str]

    def cores_of(self, kind: JobKind) -> list[int]:
        """Cores that jobs of a kind come to on the nodes."""
        sizes = self.sizes.get(kind.request, ())
        return [min(size.cores, self.most_cores) for size in sizes] or [kind.cores]

    def shares(self, kind: JobKind, jobs: int, *, of_one_size: bool = False) -> dict[Request, int]:
        """Jobs of a kind by group and size, in proportion to how many of a size fit on the nodes.

        Nodes that are closed to them do not count, unless all are. ``of_one_size`` takes the size
        of which the most fit.
        """
        group = self.group_of(kind.account)
        if kind.request not in self.sizes:
            return {(group, kind.cores, kind.memory_mib): jobs}
        fits = []
        for size, cores in zip(self.sizes[kind.request], self.cores_of(kind)):
            on = [self.nodes[name] for name in size.machines if name in self.nodes]
            admit = sum(node.cores // cores for node in on if node.admits((group, cores)))
            every = sum(node.cores // cores for node in on)
            fits.append((admit, every, (group, cores, size.memory_mib)))
        fits.sort()
        # The last one gets the job that is left over.
        if of_one_size or not fits[-1][1]:
            return {fits[-1][2]: jobs}
        nowhere = not fits[-1][0]
        weights = {place: row[1] if nowhere else row[0] for place, row in enumerate(fits)}
        return {fits[place][2]: share for place, share in shared_out(jobs, weights).items()}

    def closed(self, kinds: Iterable[JobKind]) -> dict[str, tuple[ClosedTo, ...]]:
        """Host name -> jobs of ``kinds`` that come to another size there; see `Node.closed`."""
        elsewhere: defaultdict[Kind, set[str]] = defaultdict(lambda: {*self.nodes})
        anywhere: set[Kind] = set()
        for kind in kinds:
            group = self.group_of(kind.account)
            for size, cores in zip(self.sizes.get(kind.request, ()), self.cores_of(kind)):
                elsewhere[group, cores] -= size.machines
            if kind.request not in self.sizes:
                anywhere.add((group, kind.cores))
        return by_machine(
            {
                kind: {
                    name: f"RequestCpus == {kind[1]}"
                    for name in machines
                    if self.nodes[name].admits(kind)
                }
                for kind, machines in elsewhere.items()
                if kind not in anywhere and kind[0] != OTHER
            }
        )
