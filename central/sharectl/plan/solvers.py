"""Choice of targets: greedily, or the best by HiGHS, through scipy (the extra ``optimise``).

Each option is one target that one node could have. Of the options at most one a node is chosen,
within what each group is to give and to get, the jobs that wait, and the nodes that may have
targets; the sum of values is to be large.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum, inf
from typing import Any, Callable, NamedTuple, Optional

from sharectl.model import Kind, Target
from sharectl.plan.waits import NO_MEMORY_LIMIT, NO_WAIT, Wait

ROUNDING_HS06 = 1e-6
"""An error of exactly n blocks pays for n blocks, whatever the last bits of the sums are."""

GAP_RATIO = 0.005
"""How far from the best a choice by HiGHS may be."""

FEW = 200
"""Options up to which the best choice is looked for."""

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


Jobs = dict[int, int]
"""Memory that each job requests, MiB, 0 if unknown -> jobs that wait; least memory first."""


@dataclass
class Budgets:
    """Bounds of all choices together, or what choices leave of them."""

    excess_hs06: dict[str, float]
    """Group -> power that may be taken from it."""
    deficit_hs06: dict[str, float]
    """Group -> power that may be given to it."""
    waiting: dict[Kind, Jobs]
    room: float = inf
    """Most options that may be chosen."""
    left_alone: Collection[tuple[str, int, str]] = ()
    """Helped group, cores and node that are not brought together."""
    _nodes: set[str] = field(default_factory=set, init=False)
    """Nodes of the choices."""
    _by_size: defaultdict[int, list[str]] = field(init=False)
    """Cores that jobs request -> groups of such jobs."""
    _lacking: dict[int, list[str]] = field(default_factory=dict, init=False)
    """Cores that jobs request -> such groups, the neediest first; kept until a choice is used."""

    def __post_init__(self) -> None:
        """Find the groups of each size."""
        self._by_size = defaultdict(list)
        for group, cores in self.waiting:
            if group in self.deficit_hs06:
                self._by_size[cores].append(group)

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
        self._nodes.add(option.node)
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

    def fitting(self, option: Option) -> Optional[Choice]:
        """Choice of an option for the group that lacks most, if it fits."""
        if (
            option.node in self._nodes
            or self.room < 1
            or self.excess_hs06.get(option.held_back, 0.0) < option.takes_hs06 - ROUNDING_HS06
        ):
            return None
        for group in self._most_lacking(option):
            if self.deficit_hs06.get(group, 0.0) < option.gives_hs06 - ROUNDING_HS06:
                return None
            if (group, option.request_cores, option.node) not in self.left_alone:
                memory = fitting_memory(self._jobs(group, option), option)
                if memory is not None:
                    return Choice(option, group, memory)
        return None

    def fitting_part(self, option: Option) -> Optional[Choice]:
        """As `fitting`, for as many of the option's jobs as the errors pay for and as wait."""
        takes, gives = option.takes_hs06 / option.jobs, option.gives_hs06 / option.jobs
        excess_hs06 = self.excess_hs06.get(option.held_back, 0.0) + ROUNDING_HS06
        for group in self._most_lacking(option) if option.node not in self._nodes else ():
            payable = min(
                excess_hs06 // takes, (self.deficit_hs06.get(group, 0.0) + ROUNDING_HS06) // gives
            )
            waiting = most_alike(self._jobs(group, option), option)
            jobs = int(min(payable, waiting, option.jobs))
            part = self.fitting(option.for_jobs(jobs)) if jobs >= 1 else None
            if part is not None:
                return part
        return None

    def _most_lacking(self, option: Option) -> list[str]:
        if option.helped is not None:
            return [option.helped]
        size = option.request_cores
        if size not in self._lacking:
            self._lacking[size] = sorted(
                self._by_size[size], key=lambda group: (-self.deficit_hs06[group], group)
            )
        return self._lacking[size]

    def _jobs(self, group: str, option: Option) -> Jobs:
        return self.waiting.get((group, option.request_cores), {})


Order = Callable[[Option], tuple[Any, ...]]


def by_value(option: Option) -> tuple[float, str, str, int]:
    """The most valuable first."""
    return (-option.worth, *option.place)


def by_density(option: Option) -> tuple[float, str, str, int]:
    """Order by worth for each HS06, most first."""
    return (-option.worth / option.gives_hs06, *option.place)


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
    plans = {order: filled(plain, budgets, (), order) for order in (by_value, by_density)}
    order = max(plans, key=lambda order: total_worth(plans[order]))
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
    choices = list(chosen)
    rest = budgets.after(choices)
    options = sorted(options, key=order)
    parts = [option for option in options if option.jobs > 1 and option.helped is None]
    trials = ((rest.fitting, (*sorted(first, key=order), *options)), (rest.fitting_part, parts))
    for fit, candidates in trials:
        for choice in filter(None, map(fit, candidates)):
            rest.use(choice)
            choices.append(choice)
    return choices


def fitting_memory(jobs: Jobs, option: Option) -> Optional[int]:
    """Most memory of enough jobs that fit the option; None if there are too few."""
    enough = (memory for memory, count in jobs.items() if count >= option.jobs)
    return max((memory for memory in enough if memory <= option.memory_mib), default=None)


def most_alike(jobs: Jobs, option: Option) -> int:
    """Most jobs of one memory that fit the option."""
    return max((count for memory, count in jobs.items() if memory <= option.memory_mib), default=0)


class SolverError(Exception):
    """HiGHS has no answer: one of `sharectl.plan.limits.LIMITS`."""


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
        raise SolverError("solver-missing") from error
    except (ValueError, MemoryError, RuntimeError) as error:
        raise SolverError("solver-failed") from error
    too_slow = answer.status == 1
    if too_slow or answer.x is None:
        raise SolverError("solver-slow" if too_slow else "solver-failed")
    if not whole:
        parts = {option: round(float(part), 6) for option, part in zip(options, answer.x)}
        return filled(options, budgets, (), lambda option: (-parts[option], *by_value(option)))
    numbers = [round(number) for number in answer.x]
    groups: defaultdict[_Sort, list[tuple[str, int]]] = defaultdict(list)
    for (sort, group, memory_mib, _), number in zip(servings, numbers[len(options) :]):
        groups[sort] += [(group, memory_mib)] * number
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


_Serving = tuple[_Sort, str, int, int]
"""Options of a sort that help a group's jobs of one memory: sort, group, MiB, most options."""


def _sorts(options: Sequence[Option], budgets: Budgets) -> list[_Sort]:
    """Sort of each option; more than `POWERS` powers of alike options are rounded up."""
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
        (sort, group, memory, min(count // sort.jobs, offered))
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

    bounds: dict[tuple[str, Any], tuple[float, float]] = {}
    entries: list[tuple[tuple[str, Any], int, float]] = []

    def add(row: str, of: Any, column: int, value: float, most: float, least: float = -inf) -> None:
        bounds.setdefault((row, of), (least, most))
        entries.append(((row, of), column, value))

    for column, (option, sort) in enumerate(zip(options, sorts)):
        add("node", option.node, column, 1, 1)
        add("sort", sort, column, 1, 0, least=0)
        add("room", None, column, 1, budgets.room)
        if option.takes_hs06 > 0:
            # About 1, for the tolerances of the solver; a block that is exactly what is left fits.
            most = budgets.excess_hs06.get(option.held_back, 0.0)
            part = option.takes_hs06 / most if most else 2
            add("excess", option.held_back, column, part, 1 + 1e-9)
    for column, (sort, group, memory, _) in enumerate(servings, len(options)):
        kind = (group, sort.request_cores)
        part = sort.gives_hs06 / budgets.deficit_hs06[group]
        add("sort", sort, column, -1, 0, least=0)
        add("deficit", group, column, part, 1 + 1e-9)
        add("jobs", (kind, memory), column, sort.jobs, budgets.waiting[kind][memory])
    most_worth = max(option.worth for option in options)
    cost = np.zeros(len(options) + len(servings))
    cost[: len(options)] = [-option.worth / most_worth for option in options]
    rows, columns, values = zip(*entries)
    numbers = {row: number for number, row in enumerate(bounds)}
    # 32 bits: milp of older releases of scipy refuses the wider indices that lists of numbers
    # become.
    places = np.array([[numbers[row] for row in rows], columns], dtype=np.int32)
    matrix = csr_array((values, tuple(places)), shape=(len(bounds), len(cost)))
    return milp(
        cost,
        integrality=[int(whole)] * len(cost),
        bounds=Bounds(0, [1] * len(options) + [most for *_, most in servings]),
        constraints=LinearConstraint(matrix, *np.array(list(bounds.values())).T),
        options={"time_limit": time_limit_seconds, "mip_rel_gap": GAP_RATIO},
    )
