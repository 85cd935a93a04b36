"""How many claims a slot can still support, by its model of consumption: W(R), and what a claim takes of R.

An *asset* is a resource of a slot: cpus, memory, disk, gpus, a custom one. Amounts are exact
fractions, in HTCondor's units (cores, MiB, KiB), so that a third of a core three times is a core.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, Union

from sharectl.errors import InputError

Amount = Union[int, float, Fraction]
Amounts = Mapping[str, Fraction]
"""Asset -> amount."""

MAX_AMOUNT = 10**15
"""Disk of an exabyte in KiB: beyond it, a unit was mistaken."""
MAX_CLAIMS = 10**6
"""Claims, or quanta of an asset, of one slot."""
FINEST = 10**6
"""Floats are taken as the nearest fraction with no larger denominator: 0.1 is a tenth, 0.1 + 0.2 three tenths."""
CLAIMS = "claims"
"""Asset that `FixedClaims` counts in."""


class Model(Protocol):
    """A rule by which claims consume a slot.

    For all remaining amounts R and requests: ``claims`` is finite and >= 0, the cost of a claim
    that fits is >= 0, and ``claims`` is 0 exactly when the smallest claim that the model knows does
    not fit.
    """

    def claims(self, remaining: Amounts) -> int:
        """W(R): claims that what remains can support."""
        ...

    def charge(self, request: Amounts) -> dict[str, Fraction]:
        """What a claim takes for this request, each asset; assets that are not requested count as 0."""
        ...


def exact(amount: Amount, name: str = "amount") -> Fraction:
    """``amount`` as a fraction, >= 0.

    Raises
    ------
    InputError
        If it is not a finite number from 0 to `MAX_AMOUNT`.
    """
    if isinstance(amount, bool) or not isinstance(amount, (int, float, Fraction)):
        raise InputError(
            [f"{name}: {_brief(amount)} is no number; write one from 0 to {MAX_AMOUNT:.0e}"]
        )
    if not 0 <= amount <= MAX_AMOUNT:
        raise InputError(
            [f"{name}: {_brief(amount)} is out of range; write a number from 0 to {MAX_AMOUNT:.0e}"]
        )
    return (
        Fraction(amount).limit_denominator(FINEST)
        if isinstance(amount, float)
        else Fraction(amount)
    )


def exact_amounts(amounts: Mapping[str, Amount]) -> dict[str, Fraction]:
    """Each amount as `exact` makes it; `InputError` names all that are wrong."""
    problems: list[str] = []
    made: dict[str, Fraction] = {}
    for name, amount in amounts.items():
        try:
            made[name] = exact(amount, name)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return made


def fits(model: Model, remaining: Amounts, request: Amounts) -> bool:
    """Whether a claim for ``request`` fits into what remains, by the model's own charge."""
    return all(remaining.get(name, 0) >= amount for name, amount in model.charge(request).items())


def after_claim(model: Model, remaining: Amounts, request: Amounts) -> dict[str, Fraction]:
    """R': what remains after a claim for ``request``.

    Raises
    ------
    InputError
        If it does not fit.
    """
    if not fits(model, remaining, request):
        raise InputError(["the claim does not fit into what remains of the slot"])
    return {
        **remaining,
        **{name: remaining[name] - taken for name, taken in model.charge(request).items()},
    }


def match_cost(model: Model, remaining: Amounts, request: Amounts) -> int:
    """W(R) - W(R') of a claim that fits: >= 0, in claims."""
    return model.claims(remaining) - model.claims(after_claim(model, remaining, request))


@dataclass(frozen=True)
class FixedClaims:
    """(a) ``limit`` claims, whatever they ask for: each costs 1.

    What remains is the amount of `CLAIMS`.
    """

    limit: int

    def __post_init__(self) -> None:
        _check_counts({CLAIMS: self.limit})

    def claims(self, remaining: Amounts) -> int:
        """Claims left."""
        return min(self.limit, _whole(remaining.get(CLAIMS, Fraction(0))))

    def charge(self, _request: Amounts) -> dict[str, Fraction]:
        """One claim."""
        return {CLAIMS: Fraction(1)}


@dataclass(frozen=True)
class Quanta:
    """(b) Each asset is cut into ``levels`` quanta of equal size, and claims take whole quanta.

    With ``zero_allowed`` False a claim takes at least a quantum of every asset, and W is the least
    number of quanta left of any. With True it may take none of some assets, and W is the greatest
    number left. A request of nothing at all then takes one quantum of the first asset of
    ``levels``: a claim for nothing would never use the slot up.

    ``whole`` is for assets that HTCondor divides into whole units only: a claim of n quanta takes
    floor(V n / Q) units, at least one, which is V for n = Q, and never less than it asks for. Where
    an asset has few units, V < Q², W may count more of the smallest claims than levels, because so
    many fit.
    """

    total: Amounts
    """V(a): amount of a slot without claims."""
    levels: Mapping[str, int]
    """Q(a)."""
    zero_allowed: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        _check_counts(self.levels)
        exact_amounts(self.total)
        problems = [
            f"{name}: levels, but no total" for name in self.levels if name not in self.total
        ]
        if self.whole:
            problems += [
                f"{name}: total is not whole"
                for name, v in self.total.items()
                if v.denominator != 1
            ]
        problems += [
            f"{name}: total is 0, it has no quanta"
            for name in self.levels
            if self.total.get(name) == 0
        ]
        if problems:
            raise InputError(problems)

    def size(self, asset: str) -> Fraction:
        """Size of the smallest claim of a quantum, > 0."""
        exactly = self.total[asset] / self.levels[asset]
        return Fraction(max(1, _whole(exactly))) if self.whole else exactly

    def quanta(self, asset: str, remaining: Amounts) -> int:
        """q(a): quanta left."""
        return _whole(remaining.get(asset, Fraction(0)) / self.size(asset))

    def claims(self, remaining: Amounts) -> int:
        """W(R) from the quanta left."""
        chosen = max if self.zero_allowed else min
        return chosen(self.quanta(asset, remaining) for asset in self.levels)

    def charge(self, request: Amounts) -> dict[str, Fraction]:
        """V(a) n(a) / Q(a) of each asset, with n(a) = ceil(r(a) Q(a) / V(a))."""
        taken = {
            asset: self._taken(asset, request.get(asset, Fraction(0))) for asset in self.levels
        }
        if not any(taken.values()):
            first = next(iter(self.levels))
            taken[first] = self.size(first)
        return taken

    def _taken(self, asset: str, requested: Fraction) -> Fraction:
        asked = Fraction(math.ceil(requested)) if self.whole else requested
        if not self.zero_allowed:
            asked = max(asked, self.size(asset))
        if requested > self.total[asset]:
            return requested
        exactly = (
            self.total[asset]
            * math.ceil(asked * self.levels[asset] / self.total[asset])
            / self.levels[asset]
        )
        return Fraction(_whole(exactly)) if self.whole else exactly


@dataclass(frozen=True)
class MinimumCharge:
    """(c) A claim gets what it asks for, and at least ``least`` of every asset: W is the least floor(v / C)."""

    least: Amounts
    """C(a) > 0."""
    whole: frozenset[str] = field(default_factory=frozenset)
    """Assets of which claims get whole units: requests are rounded up."""

    def __post_init__(self) -> None:
        exact_amounts(self.least)
        problems = [
            f"{name}: the minimum charge is 0" for name, least in self.least.items() if least == 0
        ]
        if problems or not self.least:
            raise InputError(problems or ["a minimum charge of at least one asset is needed"])

    def claims(self, remaining: Amounts) -> int:
        """Least floor(v / C)."""
        return min(
            _whole(remaining.get(asset, Fraction(0)) / least) for asset, least in self.least.items()
        )

    def charge(self, request: Amounts) -> dict[str, Fraction]:
        """max(r, C) of each asset."""
        asked = {asset: request.get(asset, Fraction(0)) for asset in self.least}
        return {
            asset: max(
                least, Fraction(math.ceil(asked[asset])) if asset in self.whole else asked[asset]
            )
            for asset, least in self.least.items()
        }


def _whole(amount: Fraction) -> int:
    return math.floor(amount)


def _check_counts(counts: Mapping[str, int]) -> None:
    problems = [
        f"{name}: {_brief(count)} is out of range; write a whole number, 1 to {MAX_CLAIMS}"
        for name, count in counts.items()
        if type(count) is not int or not 1 <= count <= MAX_CLAIMS
    ]
    if problems or not counts:
        raise InputError(problems or ["a count of at least one asset is needed"])


def _brief(content: object) -> str:
    return (
        repr(content)[:60]
        if not isinstance(content, int) or abs(content) < MAX_AMOUNT
        else "so large a number"
    )
