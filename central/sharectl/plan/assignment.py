"""Choice of targets: the problem, the worth of a choice, and a greedy choice.

Each option is one target that one node could have. Of the options at most one a node is chosen,
within what each group is to give and to get, the jobs that wait, and the nodes that may have
targets; the sum of values is to be large.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, inf
from typing import Any, Callable, NamedTuple, Optional

from sharectl.plan.records import ROUNDING_HS06

NO_MEMORY_LIMIT = 2**62


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
    """HS06-seconds moved within the horizon, less those that stand idle for it; > 0."""
    wait_seconds: float = 0.0
    idle_core_seconds: float = 0.0
    memory_mib: int = NO_MEMORY_LIMIT
    """Most memory that a job may request to fit."""
    helped: Optional[str] = None
    """The group that is helped, of a target that stands; of others any may be."""
    bonus: float = 0.0
    """HS06-seconds by which the value of another choice must exceed that of a standing target."""
    jobs: int = 1
    """Jobs that it is for, >= 1: one of more than one core, or some of one core."""

    @property
    def place(self) -> tuple[str, str, int]:
        """Node, held-back group and size: two options of one place are one target."""
        return self.node, self.held_back, self.request_cores

    @property
    def worth(self) -> float:
        """Value and bonus."""
        return self.value + self.bonus

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


class Waiting(NamedTuple):
    """Jobs that wait, alike in memory."""

    memory_mib: int
    """What each requests; 0 if unknown."""
    jobs: int


@dataclass(frozen=True)
class Problem:
    """All that a choice is made from."""

    options: Sequence[Option]
    excess_hs06: Mapping[str, float]
    """Group -> power that may be taken from it."""
    deficit_hs06: Mapping[str, float]
    """Group -> power that may be given to it."""
    waiting: Mapping[tuple[str, int], Sequence[Waiting]]
    """Group and cores -> its jobs that wait, least memory first."""
    room: Optional[int] = None
    """Most options that may be chosen; None for any number."""
    left_alone: Collection[tuple[str, int, str]] = ()
    """Helped group, cores and node that are not brought together."""


class Choice(NamedTuple):
    """An option and whom it helps."""

    option: Option
    helped: str
    memory_mib: int
    """Which of the `Waiting` it is for."""


Order = Callable[[Option], tuple[Any, ...]]


def total_worth(choices: Iterable[Choice]) -> float:
    """Sum of values and bonuses."""
    return fsum(choice.option.worth for choice in choices)


def greedy(problem: Problem) -> list[Choice]:
    """Choices in an order that does not look back: of two orders, the one that comes to more.

    Both take option after option as long as it fits. One goes by value, the other by value for each
    HS06 given, since more often than not the errors run out before the nodes do. Which of the two
    it is hangs on values without bonuses, so that a plan in force, asked again, is the same plan.

    Tests hold the sum of values to a part of the best there is.
    """
    if not any(option.bonus for option in problem.options):
        return max((filled(problem, (), order) for order in ORDERS), key=total_worth)
    plain = replace(
        problem,
        options=[
            option._replace(bonus=0.0) if option.bonus else option for option in problem.options
        ],
    )
    totals = [total_worth(filled(plain, (), order)) for order in ORDERS]
    return filled(problem, (), ORDERS[totals.index(max(totals))])


def by_value(option: Option) -> tuple[float, str, str, int]:
    """The most valuable first."""
    return (-(option.value + option.bonus), *option.place)


def by_density(option: Option) -> tuple[float, str, str, int]:
    """Order by worth for each HS06, most first."""
    return (-option.worth / option.gives_hs06, *option.place)


ORDERS: tuple[Order, ...] = (by_value, by_density)


def filled(
    problem: Problem,
    chosen: Iterable[Choice],
    order: Order = by_density,
    *,
    first: Iterable[Option] = (),
) -> list[Choice]:
    """``chosen``, then options of ``first`` and all others that still fit, in the order.

    Last come parts of options of single-core jobs, with as many jobs as still fit.
    """
    budgets = _Left(problem)
    result = list(chosen)
    for choice in result:
        budgets.use(choice)
    leading, others = sorted(first, key=order), sorted(problem.options, key=order)
    for option in (*leading, *others):
        fitting = None if option.node in budgets.nodes else budgets.fitting(option)
        if fitting is not None:
            budgets.use(fitting)
            result.append(fitting)
    for option in others:
        divisible = option.jobs > 1 and option.helped is None and option.node not in budgets.nodes
        fitting = budgets.fitting_part(option) if divisible else None
        if fitting is not None:
            budgets.use(fitting)
            result.append(fitting)
    return result


def fitting_memory(problem: Problem, group: str, option: Option) -> int:
    """Most memory of the group's jobs that wait and fit the option; -1 if there are too few."""
    waiting = problem.waiting.get((group, option.request_cores), ())
    fits = (
        row for row in waiting if row.memory_mib <= option.memory_mib and row.jobs >= option.jobs
    )
    return max((row.memory_mib for row in fits), default=-1)


def after(problem: Problem, chosen: Iterable[Choice]) -> Problem:
    """``problem`` without options, and with what the choices leave of all else."""
    budgets = _Left(problem)
    for choice in chosen:
        budgets.use(choice)
    waiting = {
        key: [
            kind._replace(jobs=jobs)
            for kind in kinds
            if (jobs := budgets.jobs[key, kind.memory_mib]) > 0
        ]
        for key, kinds in problem.waiting.items()
    }
    room = None if problem.room is None else int(budgets.room)
    open_kinds = {key: kinds for key, kinds in waiting.items() if kinds}
    return Problem((), budgets.excess, budgets.deficit, open_kinds, room, problem.left_alone)


class _Left:
    """Budgets that are left while options are chosen."""

    def __init__(self, problem: Problem) -> None:
        self.nodes: set[str] = set()
        self.room = inf if problem.room is None else problem.room
        self.left_alone = problem.left_alone
        self.excess = dict(problem.excess_hs06)
        self.deficit = dict(problem.deficit_hs06)
        self.jobs = {
            (key, kind.memory_mib): kind.jobs
            for key, kinds in problem.waiting.items()
            for kind in kinds
        }
        self.memories = {
            key: [kind.memory_mib for kind in kinds] for key, kinds in problem.waiting.items()
        }
        by_size: defaultdict[int, list[str]] = defaultdict(list)
        for group, cores in sorted(problem.waiting):
            if group in self.deficit:
                by_size[cores].append(group)
        self.by_size: Mapping[int, list[str]] = by_size

    def use(self, choice: Choice) -> None:
        option = choice.option
        self.nodes.add(option.node)
        self.room -= 1
        self.excess[option.held_back] = self.excess.get(option.held_back, 0.0) - option.takes_hs06
        self.deficit[choice.helped] = self.deficit.get(choice.helped, 0.0) - option.gives_hs06
        key = ((choice.helped, option.request_cores), choice.memory_mib)
        self.jobs[key] = self.jobs.get(key, 0) - option.jobs

    def fitting(self, option: Option) -> Optional[Choice]:
        """Choice of an option for the group that lacks most, if it fits."""
        if self.room < 1:
            return None
        if self.excess.get(option.held_back, 0.0) < option.takes_hs06 - ROUNDING_HS06:
            return None
        groups = (
            self.by_size.get(option.request_cores, []) if option.helped is None else [option.helped]
        )
        for lacking, group in sorted((-self.deficit.get(group, 0.0), group) for group in groups):
            if -lacking < option.gives_hs06 - ROUNDING_HS06:
                return None
            if (group, option.request_cores, option.node) in self.left_alone:
                continue
            memory = self._memory(group, option)
            if memory is not None:
                return Choice(option, group, memory)
        return None

    def fitting_part(self, option: Option) -> Optional[Choice]:
        """As `fitting`, for as many of the option's jobs as the errors pay for and as wait."""
        taken, gives = option.takes_hs06 / option.jobs, option.gives_hs06 / option.jobs
        excess = self.excess.get(option.held_back, 0.0)
        groups = self.by_size.get(option.request_cores, [])
        for group in sorted(groups, key=lambda group: (-self.deficit.get(group, 0.0), group)):
            deficit = self.deficit.get(group, 0.0)
            payable = min((excess + ROUNDING_HS06) // taken, (deficit + ROUNDING_HS06) // gives)
            key = (group, option.request_cores)
            waiting = [
                self.jobs[key, memory]
                for memory in self.memories.get(key, [])
                if memory <= option.memory_mib
            ]
            jobs = int(min(payable, max(waiting, default=0), option.jobs))
            part = self.fitting(option.for_jobs(jobs)) if jobs >= 1 else None
            if part is not None:
                return part
        return None

    def _memory(self, group: str, option: Option) -> Optional[int]:
        """Of the jobs that wait and fit, the most memory."""
        key = (group, option.request_cores)
        for memory in reversed(self.memories.get(key, [])):
            if memory <= option.memory_mib and self.jobs[key, memory] >= option.jobs:
                return memory
        return None
