"""Choice of targets: greedily, or the best by HiGHS, through scipy (the extra ``optimise``).

Each option is one target that one node could have. Of the options at most one a node is chosen,
within what each group is to give and to get, the jobs that wait, and the nodes that may have
targets; the sum of values is to be large.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, inf
from typing import Any, Callable, NamedTuple, Optional

from sharectl.model import Kind, Target
from sharectl.plan.waits import NO_MEMORY_LIMIT, Wait

ROUNDING_HS06 = 1e-6
"""An error of exactly n blocks pays for n blocks, whatever the last bits of the sums are."""

GAP_RATIO = 0.005
"""How far from the best a choice by HiGHS may be."""

FEW = 200
"""Options up to which the best choice is looked for."""

TIME_LIMIT = 1
"""Status of scipy for a solver that was too slow."""

POWERS = 16
"""Powers of blocks that are told apart; where there are more they are rounded up."""


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
    wait: Wait = Wait(0.0, 0.0)
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

    @property
    def place(self) -> tuple[str, int, str]:
        """Helped group, cores that its jobs request, and node."""
        return self.helped, self.option.request_cores, self.option.node


Jobs = Mapping[int, int]
"""Memory that each job requests, MiB, 0 if unknown -> jobs that wait; least memory first."""


@dataclass(frozen=True)
class Budgets:
    """Bounds of all choices together."""

    excess_hs06: Mapping[str, float]
    """Group -> power that may be taken from it."""
    deficit_hs06: Mapping[str, float]
    """Group -> power that may be given to it."""
    waiting: Mapping[Kind, Jobs]
    room: Optional[int] = None
    """Most options that may be chosen; None for any number."""
    left_alone: Collection[tuple[str, int, str]] = ()
    """Helped group, cores and node that are not brought together."""

    def after(self, chosen: Iterable[Choice]) -> Budgets:
        """Budgets that the choices leave."""
        rest = _Rest(self)
        for choice in chosen:
            rest.use(choice)
        waiting = {
            kind: {memory: count for memory, count in jobs.items() if count > 0}
            for kind, jobs in rest.waiting.items()
        }
        return replace(
            self,
            excess_hs06=rest.excess,
            deficit_hs06=rest.deficit,
            waiting={kind: jobs for kind, jobs in waiting.items() if jobs},
            room=None if self.room is None else int(rest.room),
        )


Order = Callable[[Option], tuple[Any, ...]]


def by_value(option: Option) -> tuple[float, str, str, int]:
    """The most valuable first."""
    return (-option.worth, *option.place)


def by_density(option: Option) -> tuple[float, str, str, int]:
    """Order by worth for each HS06, most first."""
    return (-option.worth / option.gives_hs06, *option.place)


ORDERS: tuple[Order, ...] = (by_value, by_density)


def total_worth(choices: Iterable[Choice]) -> float:
    """Sum of values and bonuses."""
    return fsum(choice.option.worth for choice in choices)


def greedy(options: Sequence[Option], budgets: Budgets) -> list[Choice]:
    """Choices in an order that does not look back: of two orders, the one that comes to more.

    Both take option after option as long as it fits. One goes by value, the other by value for each
    HS06 given, because more often than not the errors run out before the nodes do. Which of the two
    it is hangs on values without bonuses: a plan in force, asked again, is the same plan.

    Tests hold the sum of values to a part of the best there is.
    """
    plain = [option._replace(bonus=0.0) if option.bonus else option for option in options]
    plans = {order: filled(plain, budgets, (), order) for order in ORDERS}
    order = max(ORDERS, key=lambda order: total_worth(plans[order]))
    return plans[order] if plain == options else filled(options, budgets, (), order)


def filled(
    options: Iterable[Option],
    budgets: Budgets,
    chosen: Iterable[Choice] = (),
    order: Order = by_density,
    *,
    first: Iterable[Option] = (),
) -> list[Choice]:
    """``chosen``, then options of ``first`` and all others that still fit, in the order.

    Last come parts of options of single-core jobs, with as many jobs as still fit.
    """
    rest = _Rest(budgets)
    choices = list(chosen)
    for choice in choices:
        rest.use(choice)
    options = sorted(options, key=order)
    for option in (*sorted(first, key=order), *options):
        choices += rest.chosen(option, rest.fitting)
    for option in options:
        if option.jobs > 1 and option.helped is None:
            choices += rest.chosen(option, rest.fitting_part)
    return choices


def fitting_memory(jobs: Jobs, option: Option) -> Optional[int]:
    """Most memory of enough jobs that fit the option; None if there are too few."""
    return max(
        (
            memory
            for memory, count in jobs.items()
            if memory <= option.memory_mib and count >= option.jobs
        ),
        default=None,
    )


def most_alike(jobs: Jobs, option: Option) -> int:
    """Most jobs of one memory that fit the option."""
    return max((count for memory, count in jobs.items() if memory <= option.memory_mib), default=0)


class _Rest:
    """Budgets while options are chosen."""

    def __init__(self, budgets: Budgets) -> None:
        self.nodes: set[str] = set()
        self.room = inf if budgets.room is None else budgets.room
        self.left_alone = budgets.left_alone
        self.excess = defaultdict(float, budgets.excess_hs06)
        self.deficit = defaultdict(float, budgets.deficit_hs06)
        self.waiting = {kind: dict(jobs) for kind, jobs in budgets.waiting.items()}
        self.by_size: defaultdict[int, list[str]] = defaultdict(list)
        for group, cores in budgets.waiting:
            if group in budgets.deficit_hs06:
                self.by_size[cores].append(group)

    def use(self, choice: Choice) -> None:
        option, kind = choice.option, (choice.helped, choice.option.request_cores)
        self.nodes.add(option.node)
        self.room -= 1
        self.excess[option.held_back] -= option.takes_hs06
        self.deficit[choice.helped] -= option.gives_hs06
        if choice.memory_mib in self.waiting.get(kind, ()):
            self.waiting[kind][choice.memory_mib] -= option.jobs

    def chosen(self, option: Option, fit: Callable[[Option], Optional[Choice]]) -> list[Choice]:
        """Use the option if its node is free and it fits."""
        choice = fit(option) if option.node not in self.nodes else None
        if choice is None:
            return []
        self.use(choice)
        return [choice]

    def fitting(self, option: Option) -> Optional[Choice]:
        """Choice of an option for the group that lacks most, if it fits."""
        if self.room < 1 or self.excess[option.held_back] < option.takes_hs06 - ROUNDING_HS06:
            return None
        for group in self._most_lacking(option):
            if self.deficit[group] < option.gives_hs06 - ROUNDING_HS06:
                return None
            if (group, option.request_cores, option.node) not in self.left_alone:
                memory = fitting_memory(self._jobs(group, option), option)
                if memory is not None:
                    return Choice(option, group, memory)
        return None

    def fitting_part(self, option: Option) -> Optional[Choice]:
        """As `fitting`, for as many of the option's jobs as the errors pay for and as wait."""
        takes, gives = option.takes_hs06 / option.jobs, option.gives_hs06 / option.jobs
        for group in self._most_lacking(option):
            payable = min(
                (self.excess[option.held_back] + ROUNDING_HS06) // takes,
                (self.deficit[group] + ROUNDING_HS06) // gives,
            )
            waiting = most_alike(self._jobs(group, option), option)
            jobs = int(min(payable, waiting, option.jobs))
            part = self.fitting(option.for_jobs(jobs)) if jobs >= 1 else None
            if part is not None:
                return part
        return None

    def _most_lacking(self, option: Option) -> list[str]:
        groups = self.by_size[option.request_cores] if option.helped is None else [option.helped]
        return sorted(groups, key=lambda group: (-self.deficit[group], group))

    def _jobs(self, group: str, option: Option) -> Jobs:
        return self.waiting.get((group, option.request_cores), {})


class SolverError(Exception):
    """HiGHS has no answer; ``code`` is one of `sharectl.plan.limits.LIMITS`."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


def best(
    options: Sequence[Option], budgets: Budgets, time_limit_seconds: float, *, exactly: bool = False
) -> list[Choice]:
    """Choices of a large total worth: the largest but for `GAP_RATIO` of up to `FEW` options.

    Options of one sort serve helped groups alike, so the model has a 0 or 1 for each option, and a
    number of options for each sort and group: far fewer than options times groups. Of more options
    the linear relaxation is solved, in which nearly all come out as 0 or 1, and the options are
    chosen in the order of that answer.

    Raises
    ------
    SolverError
        If scipy is missing, or HiGHS fails or finds nothing in time.
    """
    if not options:
        return []
    whole = exactly or len(options) <= FEW
    sorts = _sorts(options, budgets)
    servings = _servings(sorts, budgets)
    try:
        answer = _solved(options, sorts, servings, budgets, time_limit_seconds, whole=whole)
    except ImportError as error:
        raise SolverError("solver-missing", str(error)) from error
    except (ValueError, MemoryError, RuntimeError) as error:
        raise SolverError("solver-failed", str(error)) from error
    if answer.status == TIME_LIMIT or answer.x is None:
        slow = answer.status == TIME_LIMIT
        raise SolverError("solver-slow" if slow else "solver-failed", answer.message)
    if not whole:
        parts = {option: round(float(part), 6) for option, part in zip(options, answer.x)}
        return filled(options, budgets, (), lambda option: (-parts[option], *by_value(option)))
    numbers = [round(number) for number in answer.x]
    groups: defaultdict[_Sort, list[tuple[str, int]]] = defaultdict(list)
    for serving, number in zip(servings, numbers[len(options) :]):
        groups[serving.sort] += [(serving.group, serving.memory_mib)] * number
    chosen = sorted(zip(options, sorts, numbers), key=lambda row: row[0].place)
    return [Choice(option, *groups[sort].pop(0)) for option, sort, number in chosen if number]


class _Sort(NamedTuple):
    """Options that serve alike."""

    request_cores: int
    gives_hs06: float
    fitting_mib: tuple[int, ...]
    """Memories of jobs that fit."""
    jobs: int
    helped: str
    """Group that alone is helped; empty for any."""


class _Serving(NamedTuple):
    """Options of a sort that help a group's jobs."""

    sort: _Sort
    group: str
    memory_mib: int
    most: int


def _sorts(options: Sequence[Option], budgets: Budgets) -> list[_Sort]:
    """Sort of each option."""
    memories: defaultdict[int, set[int]] = defaultdict(set)
    for (_, cores), jobs in budgets.waiting.items():
        memories[cores].update(jobs)
    powers: defaultdict[tuple[int, int], set[float]] = defaultdict(set)
    for option in options:
        powers[option.request_cores, option.jobs].add(option.gives_hs06)
    steps = {size: _steps(sorted(values)) for size, values in powers.items()}
    return [
        _Sort(
            option.request_cores,
            steps[option.request_cores, option.jobs][option.gives_hs06],
            tuple(m for m in sorted(memories[option.request_cores]) if m <= option.memory_mib),
            option.jobs,
            option.helped or "",
        )
        for option in options
    ]


def _steps(powers: Sequence[float]) -> dict[float, float]:
    """Power -> the largest of its part of them, or itself where they are few."""
    parts = min(POWERS, len(powers))
    ends = [-(-len(powers) * part // parts) for part in range(parts + 1)]
    return {
        power: powers[end - 1] for begin, end in zip(ends, ends[1:]) for power in powers[begin:end]
    }


def _servings(sorts: Iterable[_Sort], budgets: Budgets) -> list[_Serving]:
    return [
        _Serving(sort, group, memory, min(count // sort.jobs, offered))
        for sort, offered in sorted(Counter(sorts).items())
        for (group, cores), jobs in budgets.waiting.items()
        if cores == sort.request_cores
        and sort.helped in ("", group)
        and budgets.deficit_hs06.get(group, 0.0) >= sort.gives_hs06 * (1 - 1e-9)
        for memory, count in jobs.items()
        if memory in sort.fitting_mib and count >= sort.jobs
    ]


def _solved(
    options: Sequence[Option],
    sorts: Sequence[_Sort],
    servings: Sequence[_Serving],
    budgets: Budgets,
    time_limit_seconds: float,
    *,
    whole: bool,
) -> Any:
    """Answer of HiGHS: a number for each option, then one for each serving."""
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    rows = _Rows()
    for column, (option, sort) in enumerate(zip(options, sorts)):
        rows.add("node", option.node, column, 1, 1)
        rows.add("sort", sort, column, 1, 0, least=0)
        rows.add("room", None, column, 1, inf if budgets.room is None else budgets.room)
        if option.takes_hs06 > 0:
            # About 1, for the tolerances of the solver; a block that is exactly what is left fits.
            most = budgets.excess_hs06.get(option.held_back, 0.0)
            part = option.takes_hs06 / most if most else 2
            rows.add("excess", option.held_back, column, part, 1 + 1e-9)
    for column, (sort, group, memory, _) in enumerate(servings, len(options)):
        kind = (group, sort.request_cores)
        part = sort.gives_hs06 / budgets.deficit_hs06[group]
        rows.add("sort", sort, column, -1, 0, least=0)
        rows.add("deficit", group, column, part, 1 + 1e-9)
        rows.add("jobs", (kind, memory), column, sort.jobs, budgets.waiting[kind][memory])
    most_worth = max(option.worth for option in options)
    cost = np.zeros(len(options) + len(servings))
    cost[: len(options)] = [-option.worth / most_worth for option in options]
    numbers, columns, values = zip(*rows.entries)
    # 32 bits: milp of older releases of scipy refuses the wider indices that lists of numbers
    # become.
    places = (np.array(numbers, dtype=np.int32), np.array(columns, dtype=np.int32))
    matrix = csr_array((values, places), shape=(len(rows.numbers), len(cost)))
    return milp(
        cost,
        integrality=[int(whole)] * len(cost),
        bounds=Bounds(0, [1] * len(options) + [serving.most for serving in servings]),
        constraints=LinearConstraint(matrix, *np.array(rows.bounds).T),
        options={"time_limit": time_limit_seconds, "mip_rel_gap": GAP_RATIO},
    )


class _Rows:
    """Constraints of a sparse matrix, entry by entry."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, Any], int] = {}
        self.bounds: list[tuple[float, float]] = []
        self.entries: list[tuple[int, int, float]] = []

    def add(
        self, kind: str, name: Any, column: int, value: float, most: float, least: float = -inf
    ) -> None:
        number = self.numbers.setdefault((kind, name), len(self.numbers))
        if number == len(self.bounds):
            self.bounds.append((least, most))
        self.entries.append((number, column, value))
