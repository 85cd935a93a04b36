"""The best choice by HiGHS, through scipy (the extra ``sharectl[optimise]``)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sharectl.plan.assignment import Choice, Option, Problem, by_value, filled, fitting_memory

GAP_RATIO = 0.005
"""How far from the best a choice may be."""

FEW = 200
"""Options up to which the best choice is looked for."""

TIME_LIMIT = 1
"""What scipy calls it."""

POWERS = 16
"""Powers of blocks that are told apart; where there are more they are rounded up."""

Kind = tuple[int, float, int, int]
"""Cores requested, power given, kinds of memory that fit, jobs: options that serve alike."""


class SolverError(Exception):
    """HiGHS has no answer; ``code`` is one of `sharectl.plan.limits.LIMITS`."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True)
class _Serving:
    """Options of a kind that help a group's jobs."""

    kind: Kind
    group: str
    memory_mib: int
    most: int


def best(problem: Problem, time_limit_seconds: float, *, exactly: bool = False) -> list[Choice]:
    """Choices of a large total worth: the largest but for `GAP_RATIO` of up to `FEW` options.

    Options of one kind serve helped groups alike, so the model has a 0 or 1 for each option, and a
    number of options for each kind and group: far fewer than options times groups. Of more options
    the linear relaxation is solved, in which nearly all come out as 0 or 1, and the options are
    chosen in the order of that answer.

    Raises
    ------
    SolverError
        If scipy is missing, or HiGHS fails or finds nothing in time.
    """
    if not problem.options:
        return []
    kinds = _kinds(problem)
    servings = _servings(problem, kinds)
    solve = _whole if exactly or len(problem.options) <= FEW else _relaxed
    try:
        return solve(problem, kinds, servings, time_limit_seconds)
    except ImportError as error:
        raise SolverError("solver-missing", str(error)) from error
    except (ValueError, MemoryError, RuntimeError) as error:
        raise SolverError("solver-failed", str(error)) from error


def _kinds(problem: Problem) -> list[Kind]:
    """Kind of each option."""
    memories = {
        size: sorted(
            {
                kind.memory_mib
                for (_, cores), kinds in problem.waiting.items()
                if cores == size
                for kind in kinds
            }
        )
        for size in {cores for _, cores in problem.waiting}
    }
    powers: defaultdict[tuple[int, int], set[float]] = defaultdict(set)
    for option in problem.options:
        powers[option.request_cores, option.jobs].add(option.gives_hs06)
    steps = {size: _steps(sorted(values)) for size, values in powers.items()}
    return [
        (
            option.request_cores,
            steps[option.request_cores, option.jobs][option.gives_hs06],
            bisect_right(memories.get(option.request_cores, []), option.memory_mib),
            option.jobs,
        )
        for option in problem.options
    ]


def _steps(powers: Sequence[float]) -> dict[float, float]:
    """Power -> what it counts as: itself, or the largest of its part of them."""
    parts = min(POWERS, len(powers))
    ends = [-(-len(powers) * part // parts) for part in range(parts + 1)]
    return {
        power: powers[end - 1] for begin, end in zip(ends, ends[1:]) for power in powers[begin:end]
    }


def _servings(problem: Problem, kinds: Sequence[Kind]) -> list[_Serving]:
    """Purposes of the options whose helped group is open."""
    offered: defaultdict[Kind, int] = defaultdict(int)
    for option, kind in zip(problem.options, kinds):
        if option.helped is None:
            offered[kind] += 1
    memories: defaultdict[int, set[int]] = defaultdict(set)
    for (_, cores), waiting in problem.waiting.items():
        memories[cores].update(row.memory_mib for row in waiting)
    servings = []
    for kind in sorted(offered):
        fitting = set(sorted(memories[kind[0]])[: kind[2]])
        for (group, cores), waiting in sorted(problem.waiting.items()):
            lacking = problem.deficit_hs06.get(group, 0.0)
            if cores != kind[0] or lacking < kind[1] * (1 - 1e-9):
                continue
            servings += [
                _Serving(kind, group, row.memory_mib, min(row.jobs // kind[3], offered[kind]))
                for row in waiting
                if row.memory_mib in fitting and row.jobs >= kind[3]
            ]
    return servings


def _whole(
    problem: Problem, kinds: Sequence[Kind], servings: Sequence[_Serving], time_limit_seconds: float
) -> list[Choice]:
    from scipy.optimize import Bounds, LinearConstraint, milp

    model = _Model(problem, kinds, servings)
    answer = milp(
        model.cost,
        integrality=[1] * len(model.cost),
        bounds=Bounds(0, model.most),
        constraints=LinearConstraint(model.matrix, model.lower, model.upper),
        options={"time_limit": time_limit_seconds, "mip_rel_gap": GAP_RATIO},
    )
    _check(answer)
    return _choices(problem, kinds, servings, [round(number) for number in answer.x])


def _relaxed(
    problem: Problem, kinds: Sequence[Kind], servings: Sequence[_Serving], time_limit_seconds: float
) -> list[Choice]:
    import numpy as np
    from scipy.optimize import linprog

    model = _Model(problem, kinds, servings)
    equal = np.isfinite(model.lower)
    answer = linprog(
        model.cost,
        A_ub=model.matrix[~equal],
        b_ub=model.upper[~equal],
        A_eq=model.matrix[equal],
        b_eq=model.upper[equal],
        bounds=np.column_stack([np.zeros(len(model.cost)), model.most]),
        method="highs-ds",
        options={"time_limit": time_limit_seconds},
    )
    _check(answer)
    prices = np.zeros(len(model.upper))
    prices[~equal], prices[equal] = answer.ineqlin.marginals, answer.eqlin.marginals
    reduced = model.cost - model.matrix.T @ prices
    place = {
        option: (-round(float(part), 6), round(float(cost), 9))
        for option, part, cost in zip(problem.options, answer.x, reduced)
    }

    def order(option: Option) -> tuple[Any, ...]:
        return (*place[option], *by_value(option))

    return filled(problem, (), order)


def _check(answer: Any) -> None:
    if answer.status == TIME_LIMIT:
        raise SolverError("solver-slow", answer.message)
    if answer.x is None:
        raise SolverError("solver-failed", answer.message)


class _Model:
    """Matrices for HiGHS."""

    def __init__(
        self, problem: Problem, kinds: Sequence[Kind], servings: Sequence[_Serving]
    ) -> None:
        import numpy as np
        from scipy.sparse import csr_array

        rows = _Rows(problem, kinds, servings)
        columns = len(problem.options) + len(servings)
        # About 1, for the tolerances of the solver.
        unit = max(option.worth for option in problem.options)
        self.cost = np.zeros(columns)
        self.cost[: len(problem.options)] = [-option.worth / unit for option in problem.options]
        self.most = np.array([1] * len(problem.options) + [serving.most for serving in servings])
        # 32 bits: milp of older releases of scipy refuses the wider indices that lists of numbers
        # become.
        places = (np.array(rows.rows, dtype=np.int32), np.array(rows.columns, dtype=np.int32))
        self.matrix = csr_array((rows.values, places), shape=(len(rows.upper), columns))
        self.lower, self.upper = np.array(rows.lower), np.array(rows.upper)


class _Rows:
    """The constraints, entry by entry."""

    def __init__(
        self, problem: Problem, kinds: Sequence[Kind], servings: Sequence[_Serving]
    ) -> None:
        self.values: list[float] = []
        self.rows: list[int] = []
        self.columns: list[int] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self._numbers: dict[Any, int] = {}
        jobs = {
            (key, row.memory_mib): row.jobs for key, rows in problem.waiting.items() for row in rows
        }
        for column, (option, kind) in enumerate(zip(problem.options, kinds)):
            self._add(("node", option.node), column, 1, 1)
            if option.takes_hs06 > 0:
                most = problem.excess_hs06.get(option.held_back, 0.0)
                self._add(
                    ("excess", option.held_back), column, option.takes_hs06 / most if most else 2, 1
                )
            if problem.room is not None:
                self._add(("room",), column, 1, problem.room)
            if option.helped is None:
                self._add(("kind", kind), column, 1, 0, lower=0)
            else:
                self._serve(problem, jobs, column, option.helped, option, option.gives_hs06)
        for number, serving in enumerate(servings):
            column = len(problem.options) + number
            self._add(("kind", serving.kind), column, -1, 0, lower=0)
            lacking = problem.deficit_hs06[serving.group]
            self._add(("deficit", serving.group), column, serving.kind[1] / lacking, 1)
            key = ((serving.group, serving.kind[0]), serving.memory_mib)
            self._add(("jobs", key), column, serving.kind[3], jobs[key])

    def _serve(
        self,
        problem: Problem,
        jobs: dict[Any, int],
        column: int,
        group: str,
        option: Option,
        gives_hs06: float,
    ) -> None:
        lacking = problem.deficit_hs06.get(group, 0.0)
        self._add(("deficit", group), column, gives_hs06 / lacking if lacking else 2, 1)
        key = ((group, option.request_cores), fitting_memory(problem, group, option))
        self._add(("jobs", key), column, option.jobs, jobs.get(key, 0))

    def _add(
        self, name: Any, column: int, value: float, upper: float, lower: float = float("-inf")
    ) -> None:
        if name not in self._numbers:
            self._numbers[name] = len(self._numbers)
            self.lower.append(lower)
            # A block that is exactly what is left fits.
            self.upper.append(upper + (1e-9 if name[0] in ("excess", "deficit") else 0))
        self.rows.append(self._numbers[name])
        self.columns.append(column)
        self.values.append(value)


def _choices(
    problem: Problem, kinds: Sequence[Kind], servings: Sequence[_Serving], answer: Sequence[int]
) -> list[Choice]:
    """The options that were chosen, each with one of the groups that its kind is for."""
    groups: defaultdict[Kind, list[tuple[str, int]]] = defaultdict(list)
    for serving, number in zip(servings, answer[len(problem.options) :]):
        groups[serving.kind] += [(serving.group, serving.memory_mib)] * number
    choices = []
    for option, kind, number in sorted(
        zip(problem.options, kinds, answer), key=lambda row: row[0][:4]
    ):
        if number and option.helped is not None:
            choices.append(
                Choice(option, option.helped, fitting_memory(problem, option.helped, option))
            )
        elif number:
            group, memory_mib = groups[kind].pop(0)
            choices.append(Choice(option, group, memory_mib))
    return choices
