"""Choice of targets.

Each option is one target that one node could have. Of the options at most one a node is chosen,
within what each group is to give and to get, the jobs that wait, and the nodes that may have
targets; the sum of values is to be large.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum, inf
from typing import NamedTuple, Optional

from sharectl.model import Kind, Target
from sharectl.plan.waits import NO_MEMORY_LIMIT, NO_WAIT, Wait

HORIZON_SECONDS = 86_400.0
"""Time for which moved power counts. Nodes that free a block later get no target.

A third of it and four times as much lower the shortfall by 0.09 points at most, within its spread
(docs/measurements.md).
"""

ROUNDING_HS06 = 1e-6
"""An error of exactly n blocks pays for n blocks, whatever the last bits of the sums are."""

TRIED_OPTIONS = 10_000
"""Options that are looked at again to better a choice: few choices of a large pool are tried."""


def least_hs06(moved_hs06: float, size: int) -> float:
    """Power that a group must have over, or lack, for a target that moves so much.

    Half of it for a block, which cannot be split: the error is smaller with it than without.
    """
    return moved_hs06 * (0.5 if size > 1 else 1.0) - ROUNDING_HS06


OptionPlace = tuple[str, str, int]
"""Node, held-back group and cores that jobs request: two options of one place are one target."""


class Option(NamedTuple):
    """A target that a node could have."""

    node: str
    held_back: str
    cap_cores: int
    request_cores: int
    takes_hs06: float
    """Power that the held-back group gives up."""
    gives_hs06: float
    """Power that the helped group gets, > 0."""
    value: float
    """HS06-seconds moved within the horizon, less those that stand idle for it or lose their
    memory; > 0."""
    wait: Wait = NO_WAIT
    memory_mib: int = NO_MEMORY_LIMIT
    """Most memory that a job may request to fit."""
    helped: Optional[str] = None
    """The group that is helped, of a target that stands; of others any may be."""
    bonus: float = 0.0
    """HS06-seconds by which the value of another choice must exceed that of a standing target."""
    jobs: int = 1
    """Jobs that it is for, >= 1: one of more than one core, or some of one core."""

    @property
    def place(self) -> OptionPlace:
        """Node, held-back group and size."""
        return self.node, self.held_back, self.request_cores

    @property
    def worth(self) -> float:
        """Value and bonus."""
        return self.value + self.bonus

    def pays_off(self, lacking_hs06: float) -> bool:
        """True if a block that takes a group above its due wins more power than idles for it.

        What the group gets above its due others lack, and the more that is the sooner fair share
        gives the cores back to them. Blocks that stand pay off.
        """
        block_hs06 = self.gives_hs06
        won_hs06 = min(block_hs06, 2 * lacking_hs06 - block_hs06)
        won_hs06_seconds = won_hs06 * HORIZON_SECONDS * won_hs06 / block_hs06
        idle_hs06_seconds = self.wait.idle_core_seconds * block_hs06 / self.request_cores
        stands = self.helped is not None
        return stands or won_hs06 == block_hs06 or won_hs06_seconds >= idle_hs06_seconds

    def rank(self, exponent: float) -> tuple[float, str, str, int]:
        """Order by worth, most first: `VALUE` as it is, `DENSITY` for each HS06 given."""
        return (-self.worth / self.gives_hs06**exponent, *self.place)

    def for_jobs(self, jobs: int) -> Option:
        """Part of a target of single-core jobs that is for fewer of them."""
        ratio = jobs / self.jobs
        return self._replace(
            cap_cores=self.cap_cores + self.jobs - jobs,
            takes_hs06=self.takes_hs06 * ratio,
            gives_hs06=self.gives_hs06 * ratio,
            value=self.value * ratio,
            jobs=jobs,
        )


class Choice(NamedTuple):
    """An option and the group that it helps."""

    option: Option
    helped: str
    memory_mib: int
    """Memory of the jobs that it is for: a key of `Budgets.waiting`."""

    @property
    def target(self) -> Target:
        """The target that it would be."""
        node, held_back, cap_cores, request_cores, *_ = self.option
        return Target(node, held_back, cap_cores, self.helped, request_cores)


Queue = dict[int, int]
"""Memory that each job requests, MiB, 0 if unknown -> jobs that wait; least memory first."""


@dataclass
class Budgets:
    """Bounds of all choices together, or what choices leave of them."""

    excess_hs06: dict[str, float]
    """Group -> power that may be taken from it."""
    deficit_hs06: dict[str, float]
    """Group -> power that may be given to it."""
    waiting: dict[Kind, Queue]
    room: float = inf
    """Most options that may be chosen."""
    left_alone: Collection[tuple[str, int, str]] = ()
    """Helped group, cores and node that are not brought together."""
    nodes: set[str] = field(default_factory=set, init=False)
    """Nodes of the choices."""
    _lacking: dict[int, list[str]] = field(default_factory=dict, init=False)
    """Cores that jobs request -> as of `most_lacking`; kept until a choice is used."""

    def after(self, chosen: Iterable[Choice]) -> Budgets:
        """Budgets that the choices leave."""
        waiting = {kind: dict(jobs) for kind, jobs in self.waiting.items() if jobs}
        excess, deficit = dict(self.excess_hs06), dict(self.deficit_hs06)
        rest = Budgets(excess, deficit, waiting, self.room, self.left_alone)
        for choice in chosen:
            rest.use(choice)
        return rest

    def use(self, choice: Choice) -> None:
        """Lower the bounds by a choice."""
        option, helped, memory_mib = choice
        self.nodes.add(option.node)
        self._lacking.clear()
        self.room -= 1
        excess, deficit = self.excess_hs06, self.deficit_hs06
        excess[option.held_back] = excess.get(option.held_back, 0.0) - option.takes_hs06
        deficit[helped] = deficit.get(helped, 0.0) - option.gives_hs06
        kind = (helped, option.request_cores)
        jobs = self.waiting.get(kind, {})
        if memory_mib in jobs:
            jobs[memory_mib] -= option.jobs
            if jobs[memory_mib] <= 0:
                del jobs[memory_mib]
            if not jobs:
                del self.waiting[kind]

    def pays_for(self, demand: _Demand) -> bool:
        """True if the groups still have and lack so much power, and jobs wait."""
        held_back, takes_hs06, cores, gives_hs06 = demand
        if self.room < 1 or self.excess_hs06.get(held_back, 0.0) < takes_hs06:
            return False
        lacking = self.most_lacking(cores)
        return bool(lacking) and self.deficit_hs06[lacking[0]] >= gives_hs06

    def fitting(self, option: Option) -> Optional[Choice]:
        """Choice of an option for the group that lacks most, if it fits."""
        if (
            option.node in self.nodes
            or self.room < 1
            or self.excess_hs06.get(option.held_back, 0.0)
            < least_hs06(option.takes_hs06, option.request_cores)
        ):
            return None
        size = option.request_cores
        gives_hs06 = least_hs06(option.gives_hs06, size)
        for group in self.most_lacking(size) if option.helped is None else [option.helped]:
            lacking_hs06 = self.deficit_hs06.get(group, 0.0)
            if lacking_hs06 < gives_hs06 or not option.pays_off(lacking_hs06):
                return None
            jobs = self.waiting.get((group, size))
            if jobs and (group, size, option.node) not in self.left_alone:
                memory = fitting_memory(jobs, option)
                if memory is not None:
                    return Choice(option, group, memory)
        return None

    def fitting_part(self, option: Option) -> Optional[Choice]:
        """As `fitting`, for as many of the option's jobs as the errors pay for and as wait."""
        takes, gives = option.takes_hs06 / option.jobs, option.gives_hs06 / option.jobs
        excess_hs06 = self.excess_hs06.get(option.held_back, 0.0) + ROUNDING_HS06
        if option.node in self.nodes or excess_hs06 < takes:
            return None
        for group in self.most_lacking(option.request_cores):
            deficit_hs06 = self.deficit_hs06[group] + ROUNDING_HS06
            if deficit_hs06 < gives:
                return None
            waiting = self.waiting[group, option.request_cores]
            payable = min(excess_hs06 // takes, deficit_hs06 // gives)
            jobs = int(min(payable, most_alike(waiting, option), option.jobs))
            part = self.fitting(option.for_jobs(jobs)) if jobs >= 1 else None
            if part is not None:
                return part
        return None

    def most_lacking(self, size: int) -> list[str]:
        """Groups of which jobs of so many cores wait, the neediest first."""
        if size not in self._lacking:
            deficit = self.deficit_hs06
            groups = [name for name, cores in self.waiting if cores == size and name in deficit]
            self._lacking[size] = sorted(groups, key=lambda name: (-deficit[name], name))
        return self._lacking[size]


VALUE, BETWEEN, DENSITY = 0.0, 0.5, 1.0
"""Orders of options, for `Option.rank`."""

_Demand = tuple[str, float, int, float]
"""Held-back group, power that it must have to give, cores that jobs request, power that their group
must lack."""


class OptionSet:
    """Options to choose from, by demand. Many have the same: few kinds of nodes make a pool.

    Of ``parts`` each may be chosen for fewer jobs: its demand is that of one.
    """

    def __init__(self, options: Iterable[Option], *, parts: bool = False) -> None:
        numbers: dict[_Demand, int] = {}
        # By place, so that options of the same worth stay in this order. A plain loop: a plan for
        # a large pool has thousands of options.
        self.rows: list[tuple[int, Option]] = []
        for option in sorted(options, key=lambda option: option.place):
            size, jobs = option.request_cores, option.jobs if parts else 1
            demand = (
                option.held_back,
                least_hs06(option.takes_hs06 / jobs, size),
                size,
                least_hs06(option.gives_hs06 / jobs, size),
            )
            self.rows.append((numbers.setdefault(demand, len(numbers)), option))
        self._demands = tuple(numbers)
        self._in_order: dict[float, list[tuple[int, Option]]] = {}

    @cached_property
    def parts(self) -> OptionSet:
        """Options of which a part may be chosen."""
        jobs = (option for _, option in self.rows if option.jobs > 1 and option.helped is None)
        return OptionSet(jobs, parts=True)

    def payable(
        self, exponent: float, rest: Budgets, without: Optional[OptionPlace]
    ) -> Iterator[Option]:
        """Options on free nodes that ``rest`` pays for when it is their turn, by `Option.rank`.

        Budgets only fall: a demand that they do not pay for is not looked at again.
        """
        pays = [rest.pays_for(demand) for demand in self._demands]
        if not any(pays):
            return
        for number, option in [row for row in self._ordered(exponent) if pays[row[0]]]:
            if pays[number] and option.node not in rest.nodes and option.place != without:
                pays[number] = rest.pays_for(self._demands[number])
                if pays[number]:
                    yield option
                elif not any(pays):
                    return

    def _ordered(self, exponent: float) -> list[tuple[int, Option]]:
        if exponent not in self._in_order:
            worth = [-(row.value + row.bonus) / row.gives_hs06**exponent for _, row in self.rows]
            places = sorted(range(len(worth)), key=worth.__getitem__)
            self._in_order[exponent] = [self.rows[place] for place in places]
        return self._in_order[exponent]


def total_worth(choices: Iterable[Choice]) -> float:
    """Sum of values and bonuses."""
    return fsum(choice.option.worth for choice in choices)


def best(offer: OptionSet, budgets: Budgets, standing: Collection[Option] = ()) -> list[Choice]:
    """Choices of a large total worth; those of ``standing`` unless others come to more.

    Options are taken as long as they fit, in three orders: by value, by value for each HS06 given,
    because the errors often run out before the nodes do, and between both. Of the best order, the
    choices that are worth least for their power are then left out in turn, until no other set comes
    to more.
    """
    first = OptionSet(standing)
    starts = (filled(offer, budgets, order=order) for order in (VALUE, BETWEEN))
    choices = max((filled(offer, budgets, first=first), *starts), key=total_worth)
    tries, before = TRIED_OPTIONS // max(1, len(offer.rows)), -inf
    while tries > 0 and total_worth(choices) > before:
        before = total_worth(choices)
        worst = sorted(choices, key=lambda row: row.option.rank(DENSITY), reverse=True)[:tries]
        tries -= len(worst)
        for choice in worst:
            if choice in choices:  # unless an exchange before has left it out
                others = [other for other in choices if other is not choice]
                place = choice.option.place
                exchanged = (
                    filled(offer, budgets, others, order=order, without=place)
                    for order in (VALUE, DENSITY)
                )
                choices = max((choices, *exchanged), key=total_worth)
    return choices


def filled(
    offer: OptionSet,
    budgets: Budgets,
    chosen: Iterable[Choice] = (),
    *,
    order: float = DENSITY,
    first: Optional[OptionSet] = None,
    without: Optional[OptionPlace] = None,
) -> list[Choice]:
    """``chosen``, then options of ``first`` and all others that still fit, by ``order``.

    Those of ``first`` come by `DENSITY`, those of the place ``without`` are left out. Last come
    parts of options of single-core jobs, with as many jobs as still fit.
    """
    choices = list(chosen)
    rest = budgets.after(choices)
    turns = [(offer, order, rest.fitting), (offer.parts, order, rest.fitting_part)]
    if first is not None:
        turns.insert(0, (first, DENSITY, rest.fitting))
    for rows, exponent, fitting in turns:
        for option in rows.payable(exponent, rest, without):
            choice = fitting(option)
            if choice is not None:
                rest.use(choice)
                choices.append(choice)
    return choices


def fitting_memory(jobs: Queue, option: Option) -> Optional[int]:
    """Most memory of enough jobs that fit the option; None if there are too few."""
    most, enough = option.memory_mib, option.jobs
    fitting = [memory for memory, count in jobs.items() if enough <= count and memory <= most]
    return max(fitting, default=None)


def most_alike(jobs: Queue, option: Option) -> int:
    """Most jobs of one memory that fit the option."""
    return max([n for memory, n in jobs.items() if memory <= option.memory_mib], default=0)
