"""Pledges from CRIC: asked now and then, held between, and not changed by much without an operator's word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Optional

from sharectl.adapters import cric_answer, cric_copy, cric_server
from sharectl.adapters.cric_answer import Promised
from sharectl.adapters.cric_copy import Accepted, Copy
from sharectl.adapters.cric_server import Answered, ServerAccess, Validators
from sharectl.adapters.pledges import DAY_SECONDS, Told, Wanted, ago, joined, refused
from sharectl.core.model import Source
from sharectl.core.pledges import SOURCE_NAME, Period, Pledged, jumps, period_at
from sharectl.errors import InputError, StateError

_PLACE = "CRIC"


@dataclass(frozen=True)
class CricAccess:
    """What is asked for, and what becomes of it."""

    url: str
    """With ``{year}`` and ``{previous_year}`` where they belong."""
    federations: tuple[str, ...]
    copy_file: Path
    server: ServerAccess = field(default_factory=ServerAccess)
    federation_ratio: float = 1.0
    refresh_seconds: int = 21600
    max_age_seconds: float = 30.0 * DAY_SECONDS
    max_change_factor: float = 2.0


@dataclass(frozen=True)
class Manner:
    """How one look differs from another."""

    keep: bool = True
    """Write the copy; a dry run does not."""
    refresh: bool = False
    """Ask the server however young the copy is."""
    confirm: bool = False
    """Take pledges however much they differ from those in use."""


@dataclass(frozen=True)
class _Good:
    """An answer that can be used."""

    copy: Copy
    promised: Mapping[str, Promised]
    """By VO."""
    fresh: bool
    """Whether the server said so in this very look."""


class CricPledges:
    """Pledges of federations, as CRIC has them."""

    def __init__(self, access: CricAccess, wanted: Sequence[Wanted], manner: Manner = Manner()) -> None:
        self.access = access
        self.wanted = tuple(wanted)
        self.manner = manner

    def resolve(self, now: int) -> Pledged:
        """Pledges of the quarter that ``now`` is in; see `sharectl.ports.Pledges`."""
        warnings: list[str] = []
        period = period_at(now)
        known = self._known(warnings)
        answered: Optional[Answered] = None
        if self.manner.refresh or not self._is_young(known, now, period):
            answered = cric_server.ask(self._url(period), self.access.server, self._validators(known, period))
        seconds = answered.seconds if answered is not None else 0.0
        problems: list[str] = []
        good = self._fresh(answered, known, now, period, problems) if answered is not None else None
        if good is None:
            good = self._old(known, now, period, problems)
        if good is None:
            return refused(seconds, problems or ["CRIC has not been asked yet"], warnings)
        if problems:
            warnings.append(f"{'; '.join(problems)}; the copy of {ago(now - good.copy.asked_at)} is in use")
        return self._used(good, now, seconds, period, warnings)

    def _known(self, warnings: list[str]) -> Optional[Copy]:
        try:
            copy = cric_copy.load(self.access.copy_file)
        except InputError as error:
            warnings += error.problems
            return None
        return copy

    def _is_young(self, known: Optional[Copy], now: int, period: Period) -> bool:
        return (
            known is not None
            and known.url == self._url(period)
            and 0 <= now - known.asked_at < self.access.refresh_seconds
        )

    def _url(self, period: Period) -> str:
        named = {"{year}": period.year, "{previous_year}": period.year - 1}
        url = self.access.url
        for name, year in named.items():
            url = url.replace(name, str(year))
        return url

    def _validators(self, known: Optional[Copy], period: Period) -> Validators:
        same = known is not None and known.url == self._url(period) and not self.manner.refresh
        return known.validators if known is not None and same else Validators()

    def _fresh(
        self, answered: Answered, known: Optional[Copy], now: int, period: Period, problems: list[str]
    ) -> Optional[_Good]:
        """What the server says, if it can be used; else ``problems`` get why not."""
        if answered.problem is not None:
            problems.append(answered.problem)
            return None
        url = self._url(period)
        accepted = known.accepted if known is not None else {}
        if answered.content is None:
            copy = replace(known, asked_at=now) if known is not None else None
        else:
            text = answered.content.decode("utf-8", "surrogateescape")
            copy = Copy(self.access.url, url, now, text, answered.validators, accepted)
        return self._read(copy, period, problems, fresh=True) if copy is not None else None

    def _old(self, known: Optional[Copy], now: int, period: Period, problems: list[str]) -> Optional[_Good]:
        """What the copy says, if it can be used; else ``problems`` get why not."""
        if known is None or known.asked != self.access.url:
            problems.append(f"there is no copy of it in {self.access.copy_file}")
            return None
        if abs(now - known.asked_at) > self.access.max_age_seconds:
            problems.append(
                f"the copy in {self.access.copy_file} is of {ago(now - known.asked_at)}, older than "
                f"pledges.cric.max_age_days ({self.access.max_age_seconds / DAY_SECONDS:g})"
            )
            return None
        return self._read(known, period, problems, fresh=False)

    def _read(self, copy: Copy, period: Period, problems: list[str], *, fresh: bool) -> Optional[_Good]:
        vos = {one.known_as for one in self.wanted if one.known_as}
        try:
            federations = cric_answer.read(copy.answer.encode("utf-8", "surrogateescape"), _PLACE)
            found = cric_answer.promised(federations, _PLACE, self.access.federations, sorted(vos), period)
        except InputError as error:
            problems += error.problems
            return None
        return _Good(copy, found, fresh)

    def _used(self, good: _Good, now: int, seconds: float, period: Period, warnings: list[str]) -> Pledged:
        """Pledges of a good answer, but for those that jump."""
        told = {
            one.group: Told(promised.hs06 * self.access.federation_ratio, promised.place)
            for one in self.wanted
            if (promised := good.promised.get(one.known_as)) is not None
        }
        unwritten = {one.group: one for one in self.wanted if one.written_hs06 is None}
        before = {group: was.hs06 for group, was in good.copy.accepted.items() if group in unwritten}
        said = {group: what.hs06 for group, what in told.items() if what.hs06 > 0 and group in unwritten}
        jumped = [] if self.manner.confirm else jumps(before, said, self.access.max_change_factor)
        problems: list[str] = []
        for group in jumped:
            self._hold(unwritten[group], told, good.copy.accepted[group], now, problems, warnings)
        said_at = None if good.fresh else good.copy.asked_at
        where = " + ".join(self.access.federations)
        absent = {
            one.group: f"CRIC has no CPU pledge of {where} for the VO {one.known_as} in {period}"
            for one in self.wanted
            if one.group not in told
        }
        pledges, missing, notes = joined(self.wanted, told, "cric", said_at=said_at, absent=absent)
        if problems or missing:
            return refused(seconds, [*problems, *missing], warnings)
        held = set(jumped)
        accepted = {
            group: good.copy.accepted[group]
            if group in held
            else Accepted(what.hs06, what.place, good.copy.asked_at)
            for group, what in told.items()
            if group in said
        }
        self._keep(replace(good.copy, accepted=accepted), good, warnings)
        old = {group: good.copy.accepted[group].said_at for group in held}
        dated = tuple(
            replace(pledge, said_at=old[pledge.group]) if pledge.group in old else pledge
            for pledge in pledges
        )
        return Pledged(Source(SOURCE_NAME, seconds), dated, tuple(warnings), tuple(notes))

    def _hold(
        self,
        one: Wanted,
        told: dict[str, Told],
        was: Accepted,
        now: int,
        problems: list[str],
        warnings: list[str],
    ) -> None:
        """Put the pledge before in the place of one that jumped, while it is not too old."""
        now_told = told[one.group]
        words = (
            f"{one.place}: {now_told.place} is {now_told.hs06:g} HS06, after {was.hs06:g}: more than a factor of "
            f"{self.access.max_change_factor:g} (pledges.cric.max_change_factor); `sharectl pledges --confirm` takes it"
        )
        if now - was.said_at > self.access.max_age_seconds:
            problems.append(f"{words}; the pledge before is of {ago(now - was.said_at)}, too old to stay")
            return
        warnings.append(f"{words}; the pledge before stays in use")
        told[one.group] = Told(was.hs06, was.place)

    def _keep(self, copy: Copy, good: _Good, warnings: list[str]) -> None:
        unchanged = not good.fresh and copy.accepted == good.copy.accepted
        if not self.manner.keep or unchanged:
            return
        try:
            cric_copy.save(self.access.copy_file, copy)
        except StateError as error:
            warnings.append(f"the copy of CRIC's answer is not kept: {error}")
