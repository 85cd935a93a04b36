"""Pledges from WLCG CRIC: asked now and then, kept, and not changed by much without confirmation.

    {"IT-INFN-CNAF": {"name": "…", "accounting_name": "…", "pledges": {"2026": {"Q1": {"cms":
    {"CPU": 87100, …}}}}}}

The year begins in April: its Q4 is January to March of the next. Only what is asked for is looked
at, because the answer is from outside.
"""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Union

from sharectl.condor.deadline import Question, ask_all, limit_memory
from sharectl.config.model import CricPledgesConfig
from sharectl.errors import InputError, StateError
from sharectl.files.documents import Document, DocumentError, record
from sharectl.model import MAX_HS06, Source
from sharectl.pledges.sources import DAY_SECONDS, Told, Wanted, ago, joined, refused, some
from sharectl.shares.pledges import SOURCE_NAME, Period, Pledged, jumps, period_at
from sharectl.words import quoted, shown

if TYPE_CHECKING:
    import requests

MAX_BYTES = 2**24
"""Size of an answer that is still read."""
_CHUNK_BYTES = 2**16
_MOST_MEMORY_BYTES = 8 * MAX_BYTES
"""Memory of the process that asks: to a chunk of -1 bytes urllib3 takes all that ever comes."""
_MOST_HEADER = 256
_NOT_MODIFIED, _OK, _REDIRECTS = 304, 200, range(300, 400)
_HEADERS = {"User-Agent": "sharectl", "Accept": "application/json"}
_UNITS = frozenset(("hs06", "hepspec06", "hepscore23", "hs23", "hepscore"))
"""Units on one scale, lower case, letters and digits."""
_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_PLACE = "CRIC"


@dataclass(frozen=True)
class Promised:
    """Pledge to a VO."""

    hs06: float
    place: str


def read(content: bytes, place: str) -> dict[str, Any]:
    """Federations of an answer, by CRIC's key; InputError if it is no JSON object."""
    try:
        answer = json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else shown(str(error))
        raise InputError([f"{place}: is no JSON: {why}"]) from error
    return _object(answer, place)


def promised(
    federations: Mapping[str, Any],
    place: str,
    names: Sequence[str],
    vos: Iterable[str],
    period: Period,
) -> dict[str, Promised]:
    """VO → sum of its pledges by the federations ``names``; a VO without one is absent.

    Raises
    ------
    InputError
        With all problems of what was asked for.
    """
    problems: list[str] = []
    parts: dict[str, list[Promised]] = {vo: [] for vo in vos}
    for name in names:
        try:
            quarter, at = _quarter(federations, place, name, period)
        except InputError as error:
            problems += error.problems
            continue
        for vo, powers in parts.items():
            try:
                powers.extend(_power(quarter, at, vo))
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(problems)
    return {
        vo: Promised(fsum(one.hs06 for one in powers), " + ".join(one.place for one in powers))
        for vo, powers in parts.items()
        if powers
    }


def _quarter(
    federations: Mapping[str, Any], place: str, name: str, period: Period
) -> tuple[dict[str, Any], str]:
    """Pledges of a federation in a period, by VO, and their place."""
    key = _federation(federations, place, name)
    at = f"{place}.{shown(key)}"
    where = _object(federations[key], at)
    for part in ("pledges", str(period.year), f"Q{period.quarter}"):
        inner = _like(where, part)
        if inner is None:
            there = some(sorted(where)) or "nothing"
            raise InputError([f"{at}: has no {part}, which {period} needs; there is {there}"])
        at = f"{at}.{inner}"
        where = _object(where[inner], at)
    return where, at


def _federation(federations: Mapping[str, Any], place: str, name: str) -> str:
    """Key of a federation, by its key, name or accounting name."""
    key, lower = _like(federations, name), name.lower()
    if key is not None:
        return key
    objects = {key: one for key, one in federations.items() if isinstance(one, dict)}
    keys = [
        key
        for key, one in objects.items()
        if lower in (str(one.get("name")).lower(), str(one.get("accounting_name")).lower())
    ]
    if len(keys) == 1:
        return keys[0]
    if keys:
        raise InputError([f"{place}: {quoted(name)} could be {some(keys)}; write one of them"])
    advice = "see pledges.cric.federations"
    of_site = [key for key, one in objects.items() if lower in map(str.lower, _sites(one))]
    if of_site:
        advice = (
            f"it is a site of {some(of_site)}: write that, and pledges.cric.federation_ratio if it "
            "has others too"
        )
    raise InputError([f"{place}: there is no federation {quoted(name)}; {advice}"])


def _sites(federation: Mapping[str, Any]) -> list[str]:
    sites = federation.get("rcsites")
    return list(map(str, sites)) if isinstance(sites, (list, dict)) else []


def _power(quarter: Mapping[str, Any], at: str, vo: str) -> list[Promised]:
    """Pledge of a VO; empty without one."""
    key = _like(quarter, vo)
    pledge = _object(quarter[key], f"{at}.{key}") if key is not None else {}
    power = _like(pledge, "CPU")
    if power is None:
        return []
    for name, unit in pledge.items():
        plain = re.sub(r"[^a-z0-9]", "", str(unit).lower())
        if re.match(r"cpu.*unit", name, re.IGNORECASE) and plain not in _UNITS:
            said = f"{quoted(str(unit))} is neither HEP-SPEC06 nor HEPscore23"
            raise InputError([f"{at}.{key}.{shown(name)}: {said}"])
    place = f"{at}.{shown(str(key))}.{power}"
    return [Promised(_hs06(pledge[power], place), place)]


def _hs06(value: Any, place: str) -> float:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError([f"{place}: {shown(json.dumps(value))} is no number"])
    if not 0 <= value <= MAX_HS06:
        most = f"0 to {MAX_HS06:g} HS06 would be"
        raise InputError([f"{place}: {shown(str(value))} is no pledge; {most}"])
    return float(value)


def _like(where: Mapping[str, Any], name: str) -> Optional[str]:
    """Key that is ``name`` but for case; None without one."""
    if name in where:
        return name
    return next((key for key in where if key.lower() == name.lower()), None)


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError([f"{shown(place)}: {shown(json.dumps(value))} is no object"])
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


@dataclass(frozen=True)
class Answered:
    """Answer of the server."""

    content: Optional[str] = None
    """None if there is a problem, or if the known answer still holds."""
    etag: Optional[str] = None
    problem: Optional[str] = None


def ask(url: str, server: CricPledgesConfig, etag: Optional[str] = None) -> Answered:
    """Answer at ``url``; never raises, and never takes longer than the deadline.

    The process that asks is ended at the deadline: a server may send a byte a second for ever.
    """
    import requests  # noqa: F401 - loaded before the question forks

    question = Question(partial(_ask, url, server, etag), server.deadline_seconds)
    answer = ask_all({"server": question})["server"]
    answered: Optional[Answered] = answer.value
    if answered is None:
        return Answered(problem=f"{url}: {answer.source.problem}")
    problem = answered.problem
    return answered if problem is None else Answered(problem=f"{url}: {problem}")


def _ask(url: str, server: CricPledgesConfig, etag: Optional[str]) -> Answered:
    import requests

    limit_memory(_MOST_MEMORY_BYTES)
    trusted = _trusted(server)
    if isinstance(trusted, Path) and not trusted.exists():
        return Answered(
            problem=f"there are no certificates at {trusted}; see pledges.cric.ca_file and "
            ".ca_directory"
        )
    with requests.Session() as session:
        # Neither the environment's proxies, nor its certificates, nor the user's ~/.netrc.
        session.trust_env = False
        session.proxies = {"https": server.proxy} if server.proxy else {}
        try:
            with session.get(
                url,
                headers={**_HEADERS, **({"If-None-Match": etag} if etag else {})},
                verify=str(trusted) if isinstance(trusted, Path) else trusted,
                timeout=server.deadline_seconds,
                allow_redirects=False,
                stream=True,
            ) as response:
                return _answered(response, etag)
        except (requests.RequestException, OSError, ValueError) as error:
            return Answered(problem=f"cannot be asked: {_innermost(error)[:300]}")
        except MemoryError:
            most = f"its answer needs more than {_MOST_MEMORY_BYTES} bytes"
            return Answered(problem=f"cannot be asked: {most}")


def _answered(response: requests.Response, etag: Optional[str]) -> Answered:
    status, headers = response.status_code, response.headers
    if status == _NOT_MODIFIED and etag:
        return Answered(etag=etag)
    if status in _REDIRECTS:
        where = shown(str(headers.get("Location")))
        return Answered(problem=f"redirects to {where}; write the right place as pledges.cric.url")
    if status != _OK:
        return Answered(problem=f"the server answers {status} {shown(str(response.reason))}")
    content = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        content += chunk
        if len(content) > MAX_BYTES:
            most = f"sends more than {MAX_BYTES} bytes"
            return Answered(problem=f"{most}; it is no list of federations")
    tag = headers.get("ETag", "")
    sound = tag.isascii() and tag.isprintable() and len(tag) <= _MOST_HEADER
    return Answered(content.decode("utf-8", "replace"), tag if sound else None)


def _trusted(server: CricPledgesConfig) -> Union[Path, bool]:
    """Certificates to verify by: those named, else this machine's, else those of `requests`."""
    ours = ssl.get_default_verify_paths()
    named = (server.ca_file, server.ca_directory, ours.cafile, ours.capath)
    return next((Path(path) for path in named if path), True)


def _innermost(error: BaseException) -> str:
    """Words of what went wrong, without the layers it came through."""
    cause = getattr(error, "reason", None) or error.__cause__ or error.__context__
    if isinstance(cause, BaseException):
        return _innermost(cause)
    return str(error) or type(error).__name__


@dataclass(frozen=True)
class Accepted:
    """Pledge in use."""

    hs06: float
    place: str
    said_at: int
    """Unix seconds at which the source last said so."""


@dataclass(frozen=True)
class Copy:
    """Last good answer, and the pledges that were taken from it."""

    asked: str
    """URL of the configuration, with its placeholders."""
    url: str
    asked_at: int
    """Unix seconds at which the server last sent the answer, or said that it holds."""
    answer: str
    etag: Optional[str] = None
    accepted: Mapping[str, Accepted] = field(default_factory=dict)
    """Group → its pledge in use."""


def document(path: Path) -> Document:
    """Document of the copy."""
    return Document(path, 2 * MAX_BYTES)


def _copy(content: Any) -> Copy:
    copy = record(Copy, content)
    if not all(0 < one.hs06 <= MAX_HS06 for one in copy.accepted.values()):
        raise DocumentError("accepted: a pledge is out of range")
    return copy


@dataclass(frozen=True)
class Manner:
    """Manner of one look."""

    keep: bool = True
    """Write the copy; a dry run does not."""
    refresh: bool = False
    """Ask the server however young the copy is."""
    confirm: bool = False
    """Take pledges however much they differ from those in use."""


class CricPledges:
    """Pledges of federations, as CRIC has them."""

    def __init__(
        self,
        access: CricPledgesConfig,
        copy_file: Path,
        wanted: Sequence[Wanted],
        manner: Manner = Manner(),
    ) -> None:
        self.access = access
        self.copy_file = copy_file
        self.wanted = tuple(wanted)
        self.manner = manner

    def resolve(self, now: int) -> Pledged:
        """Pledges of the quarter that ``now`` is in; see `sharectl.cycle.ports.Pledges`."""
        began, period = time.monotonic(), period_at(now)
        url = self.access.url.replace("{year}", str(period.year))
        url = url.replace("{previous_year}", str(period.year - 1))
        warnings: list[str] = []
        problems: list[str] = []
        copy = self._kept(warnings)
        young = copy is not None and copy.url == url
        young = (
            young and copy is not None and 0 <= now - copy.asked_at < self.access.refresh_seconds
        )
        good = None
        if self.manner.refresh or not young:
            good = self._usable(self._asked(copy, url, now, problems), period, problems)
        if good is None:
            good = self._usable(self._old(copy, now, problems), period, problems)
        seconds = time.monotonic() - began
        if good is None:
            return refused(seconds, problems, warnings)
        if problems:
            age = ago(now - good[0].asked_at)
            warnings.append(f"{'; '.join(problems)}; the copy of {age} is in use")
        return self._used(*good, now, seconds, warnings)

    def _kept(self, warnings: list[str]) -> Optional[Copy]:
        """Copy in its file; None without one that can be read."""
        try:
            return document(self.copy_file).read(_copy)
        except (OSError, DocumentError) as error:
            remedy = "it is written again, and pledges that jump are not noticed once"
            warnings.append(f"{self.copy_file}: cannot be read: {shown(str(error))}; {remedy}")
            return None

    def _asked(
        self, copy: Optional[Copy], url: str, now: int, problems: list[str]
    ) -> Optional[Copy]:
        """Answer of the server; None with a problem."""
        known = copy if copy is not None and copy.url == url and not self.manner.refresh else None
        answered = ask(url, self.access, known.etag if known is not None else None)
        if answered.problem is not None:
            problems.append(answered.problem)
            return None
        if answered.content is None:
            return replace(known, asked_at=now) if known is not None else None
        accepted = copy.accepted if copy is not None else {}
        return Copy(self.access.url, url, now, answered.content, answered.etag, accepted)

    def _old(self, copy: Optional[Copy], now: int, problems: list[str]) -> Optional[Copy]:
        """``copy`` if it is of this URL and not too old; else None with a problem."""
        if copy is None or copy.asked != self.access.url:
            problems.append(f"there is no copy of it in {self.copy_file}")
            return None
        age = now - copy.asked_at
        if abs(age) > self.access.max_age_days * DAY_SECONDS:
            problems.append(
                f"the copy in {self.copy_file} is of {ago(age)}, older than "
                f"pledges.cric.max_age_days ({self.access.max_age_days:g})"
            )
            return None
        return copy

    def _usable(
        self, copy: Optional[Copy], period: Period, problems: list[str]
    ) -> Optional[tuple[Copy, dict[str, Told]]]:
        """``copy`` with its pledges by group; None with a problem."""
        if copy is None:
            return None
        vos = sorted({one.known_as for one in self.wanted if one.known_as})
        names, ratio = self.access.federations, self.access.federation_ratio
        try:
            powers = promised(read(copy.answer.encode(), _PLACE), _PLACE, names, vos, period)
        except InputError as error:
            problems += error.problems
            return None
        told = {
            one.group: Told(powers[one.known_as].hs06 * ratio, powers[one.known_as].place)
            for one in self.wanted
            if one.known_as in powers
        }
        return copy, told

    def _used(
        self, copy: Copy, told: dict[str, Told], now: int, seconds: float, warnings: list[str]
    ) -> Pledged:
        """Pledges of a good answer, but for those that jump."""
        problems: list[str] = []
        accepted: dict[str, Accepted] = {}
        for one in self.wanted:
            new = told.get(one.group)
            if new is None or new.hs06 <= 0 or one.written_hs06 is not None:
                continue
            was = copy.accepted.get(one.group)
            if was is not None and self._jumps(was, new):
                accepted[one.group] = was
                told[one.group] = Told(was.hs06, was.place, said_at=was.said_at)
                self._note_jump(one, was, new, now, problems, warnings)
            else:
                accepted[one.group] = Accepted(new.hs06, new.place, copy.asked_at)
                if copy.asked_at != now:
                    told[one.group] = replace(new, said_at=copy.asked_at)
        names, period = " + ".join(self.access.federations), period_at(now)
        absent = {
            one.group: f"CRIC has no CPU pledge of {names} for the VO {one.known_as} in {period}"
            for one in self.wanted
            if one.group not in told
        }
        pledges, missing, notes = joined(self.wanted, told, "cric", absent)
        if problems or missing:
            return refused(seconds, [*problems, *missing], warnings)
        self._keep(replace(copy, accepted=accepted), copy, now, warnings)
        return Pledged(Source(SOURCE_NAME, seconds), pledges, tuple(warnings), tuple(notes))

    def _jumps(self, was: Accepted, new: Told) -> bool:
        factor = self.access.max_change_factor
        return not self.manner.confirm and bool(jumps({"": was.hs06}, {"": new.hs06}, factor))

    def _note_jump(
        self,
        one: Wanted,
        was: Accepted,
        new: Told,
        now: int,
        problems: list[str],
        warnings: list[str],
    ) -> None:
        words = (
            f"{one.place}: {new.place} is {new.hs06:g} HS06, after {was.hs06:g}: more than a "
            f"factor of {self.access.max_change_factor:g} (pledges.cric.max_change_factor); "
            "`sharectl pledges --confirm` takes it"
        )
        age = now - was.said_at
        if age > self.access.max_age_days * DAY_SECONDS:
            problems.append(f"{words}; the pledge before is of {ago(age)}, too old to stay")
        else:
            warnings.append(f"{words}; the pledge before stays in use")

    def _keep(self, copy: Copy, before: Copy, now: int, warnings: list[str]) -> None:
        """Write the copy, unless it would say the same."""
        unchanged = copy.asked_at != now and copy.accepted == before.accepted
        if not self.manner.keep or unchanged:
            return
        try:
            document(self.copy_file).replace(asdict(copy))
        except StateError as error:
            warnings.append(f"the copy of CRIC's answer is not kept: {error}")
