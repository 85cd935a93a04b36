"""Many slots and many jobs, each kind of them evaluated once, and none of them able to stop the others.

Slots are of a kind if all that policies, weights and Requirements can see of them is the same: what the schedd calls an
autocluster. Disk may differ by 1 %: a kind has that of its poorest member.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import floor, isfinite, log
from typing import Callable, Generic, Optional, TypeVar

from sharectl.adapters.condor_process import CondorProcess, UnreadableConfigurationError
from sharectl.adapters.consumption_policy import Ad
from sharectl.adapters.slot_ads import number_of
from sharectl.errors import InputError

MOST_CULPRITS = 5
"""Ads that may make HTCondor's library end or hang before all the others are given up too."""
SLOTS_AT_ONCE = 100
ANSWER_SECONDS = 20.0
"""Wait for an answer, which takes some 0.1 s."""
SEARCH_SECONDS = 4.0
"""The same while what hangs is searched for: that takes a dozen questions that hang."""
BLANK = -1

_WORD = re.compile(r"[A-Za-z_]\w*")
_SEEN_OF_SLOTS = ("partitionableslot", "machineresources", "slotweight", "requirements", "numclaims")
_SEEN_OF_JOBS = ("requirements",)
_POLICY = ("consumption",)
_REQUESTS = ("request", "_condor_request")
EVERYTHING = "eval"
"""The function that can see attributes whose names are not written down."""

_UNSTEADY, _STEP = "disk", 1.01
"""The asset that differs from node to node and from minute to minute: steps of 1 % make no kinds of their own."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Kind:
    """Ads that cannot be told apart."""

    ad: Ad
    """What can be seen of them."""
    members: tuple[int, ...]
    """Their numbers in the list that was sorted, ascending."""


def kinds(
    slots: Sequence[Ad], jobs: Sequence[Ad], apart: Sequence[str] = ()
) -> tuple[list[Kind], list[Kind]]:
    """Kinds of slots and of jobs, in the order of their first members.

    Parameters
    ----------
    apart
        Attributes, in lower case, that set slots or jobs apart though nothing refers to them.
    """
    of_slots = _Seen(slots, (*_SEEN_OF_SLOTS, *apart), _POLICY)
    of_jobs = _Seen(jobs, (*_SEEN_OF_JOBS, *apart), _REQUESTS)
    words: set[str] = set()
    while True:
        grown = words | of_slots.words(words) | of_jobs.words(words)
        grown |= {word[len("request") :] for word in grown if word.startswith("request")}
        if grown == words:
            break
        words = grown
    return of_slots.kinds(words), of_jobs.kinds(words)


def words_of_slots(slots: Sequence[Ad]) -> set[str]:
    """Names, in lower case, by which slots may look at jobs; `EVERYTHING` among them if they may look at any."""
    of_slots = _Seen(slots, _SEEN_OF_SLOTS, _POLICY)
    words: set[str] = set()
    while not (grown := of_slots.words(words)) <= words:
        words |= grown
    resources = {
        word.lower() for text in of_slots.texts.get("machineresources", ()) for word in words_of_text(text)
    }
    return words | {f"request{resource}" for resource in resources}


class _Seen:
    """Ads of one sort, and which of their attributes can be seen."""

    def __init__(self, ads: Sequence[Ad], names: Iterable[str], prefixes: tuple[str, ...]) -> None:
        self.ads = ads
        self.texts: dict[str, set[str]] = {}
        for ad in ads:
            for name, text in ad.items():
                self.texts.setdefault(name.lower(), set()).add(text)
        self.first = {name for name in self.texts if name in names or name.startswith(prefixes)}

    def seen(self, words: set[str]) -> set[str]:
        return set(self.texts) if EVERYTHING in words else self.first | (words & set(self.texts))

    def words(self, words: set[str]) -> set[str]:
        return {
            word for name in self.seen(words) for text in self.texts[name] for word in words_of_text(text)
        }

    def kinds(self, words: set[str]) -> list[Kind]:
        seen = self.seen(words)
        found: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for number, ad in enumerate(self.ads):
            key = tuple(
                sorted(
                    (name, _step(text) if name.lower() == _UNSTEADY else text)
                    for name, text in ad.items()
                    if name.lower() in seen
                )
            )
            found.setdefault(key, []).append(number)
        return [self._kind([name for name, _ in key], members) for key, members in found.items()]

    def _kind(self, names: Iterable[str], members: Sequence[int]) -> Kind:
        """What is seen of the member that has the least Disk."""
        least = self.ads[min(members, key=lambda member: number_of(self.ads[member], _UNSTEADY))]
        return Kind({name: least[name] for name in names}, tuple(members))


def _step(text: str) -> str:
    """``text`` if it is no number above 0, else which step that is in."""
    value = number_of({_UNSTEADY: text}, _UNSTEADY)
    return f"step {floor(log(value, _STEP))}" if isfinite(value) and value > 0 else text


@lru_cache(maxsize=10_000)
def words_of_text(text: str) -> frozenset[str]:
    """Names in an expression, in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(text))


@dataclass(frozen=True)
class Culprit:
    """An ad that HTCondor's library cannot bear."""

    is_slot: bool
    number: int
    problem: str


class Guard(Generic[Result]):
    """Asks for all slots and jobs; those that make the library end or hang are found and left out.

    Parameters
    ----------
    open_process
        A fresh process with a deadline, in seconds, for each of its answers.
    ask
        A row for each slot, with a result for each job; the job `BLANK` has no attributes.
    """

    def __init__(
        self,
        open_process: Callable[[float], CondorProcess],
        ask: Callable[[CondorProcess, Sequence[int], Sequence[int]], list[list[Result]]],
    ) -> None:
        self._open = open_process
        self._ask = ask
        self._process: Optional[CondorProcess] = None
        self._deadline_seconds = ANSWER_SECONDS
        self.culprits: list[Culprit] = []

    def results(self, slots: int, jobs: int) -> Mapping[tuple[int, int], Result]:
        """Result by numbers of slot and job; without those of `culprits`.

        Raises
        ------
        InputError
            If there are more than `MOST_CULPRITS` of those.
        """
        found: dict[tuple[int, int], Result] = {}
        try:
            for start in range(0, slots, SLOTS_AT_ONCE):
                self._of(range(start, min(start + SLOTS_AT_ONCE, slots)), range(jobs), found)
        finally:
            self._end()
        return found

    def _of(self, slots: Sequence[int], jobs: Sequence[int], found: dict[tuple[int, int], Result]) -> None:
        slots, jobs = self._left(slots, is_slot=True), self._left(jobs, is_slot=False)
        if not slots or not jobs:
            return
        rows = self._tried(slots, jobs)
        if not isinstance(rows, str):
            found.update(
                ((slot, job), result) for slot, row in zip(slots, rows) for job, result in zip(jobs, row)
            )
        elif len(slots) > 1:
            for half in (slots[: len(slots) // 2], slots[len(slots) // 2 :]):
                self._of(half, jobs, found)
        elif len(jobs) > 1:
            for half in (jobs[: len(jobs) // 2], jobs[len(jobs) // 2 :]):
                self._of(slots, half, found)
        else:
            self._accuse(slots[0], jobs[0], rows)

    def _left(self, numbers: Sequence[int], *, is_slot: bool) -> list[int]:
        out = {culprit.number for culprit in self.culprits if culprit.is_slot is is_slot}
        return [number for number in numbers if number not in out]

    def _tried(self, slots: Sequence[int], jobs: Sequence[int]) -> list[list[Result]] | str:
        """Rows, or why there are none."""
        if self._process is None:
            self._process = self._open(self._deadline_seconds)
        try:
            return self._ask(self._process, slots, jobs)
        except UnreadableConfigurationError as error:
            self._end()
            self._deadline_seconds = SEARCH_SECONDS
            return str(error) or "HTCondor's library ended"

    def _accuse(self, slot: int, job: int, problem: str) -> None:
        alone = self._tried([slot], [BLANK])
        is_slot = isinstance(alone, str)
        self.culprits.append(Culprit(is_slot, slot if is_slot else job, problem))
        if len(self.culprits) > MOST_CULPRITS:
            advice = "leave them out with --constraint or --job-constraint"
            raise InputError([f"more than {MOST_CULPRITS} ads make HTCondor's library end or hang; {advice}"])

    def _end(self) -> None:
        if self._process is not None:
            self._process.__exit__(None, None, None)
            self._process = None
