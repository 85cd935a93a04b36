"""Pledges from CRIC: asked now and then, held between, and not changed by much without an operator's word.

What CRIC answers about federations: JSON from outside, of which only what is needed is believed.

    {"IT-INFN-CNAF": {"name": "…", "accounting_name": "…", "pledges": {"2026": {"Q1": {"cms":
    {"CPU": 87100, …}}}}}}

The year begins in April, so that its Q4 is January to March of the next.

Asking CRIC's server: HTTPS with a verified certificate, one deadline for all of it, nothing
followed elsewhere.

The copy of CRIC's last good answer, and the pledges that were taken from it: what holds while
nobody answers.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import fsum, isfinite
from pathlib import Path
from typing import Any, NoReturn, Optional, Union

from sharectl.condor.deadline import Question, ask_all, limit_memory
from sharectl.errors import InputError, StateError
from sharectl.files.documents import Content, Document, DocumentError, record
from sharectl.model import MAX_HS06, Source
from sharectl.pledges.sources import DAY_SECONDS, Told, Wanted, ago, joined, refused
from sharectl.shares.pledges import SOURCE_NAME, Period, Pledged, jumps, period_at
from sharectl.words import quoted, shown

MAX_BYTES = 2**24
"""Size of an answer that is still read."""

_NAMES = ("name", "accounting_name")
_SITES = "rcsites"
_POWER = "CPU"
_UNITS = frozenset(("hs06", "hepspec06", "hepscore23", "hs23", "hepscore"))
"""All on one scale, as they are compared: lower case, letters and digits."""
_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_NEITHER = re.compile(r"[^a-z0-9]")
_MOST_SHOWN = 10


class _Object(dict[str, Any]):
    """A JSON object that knows which of its keys were there twice."""

    def __init__(self, pairs: Iterable[tuple[str, Any]]) -> None:
        super().__init__()
        self.twice: set[str] = set()
        for key, value in pairs:
            if key in self:
                self.twice.add(key)
            self[key] = value


@dataclass(frozen=True)
class Promised:
    """A VO's pledge."""

    hs06: float
    place: str


@dataclass(frozen=True)
class _Value:
    """Something in the answer, and where."""

    place: str
    value: Any

    def below(self, key: str) -> _Value:
        """What an object has under a key that is there."""
        place = f"{self.place}.{shown(key)}"
        if key in getattr(self.value, "twice", ()):
            raise InputError([f"{place}: is there twice; nobody can tell which holds"])
        return _Value(place, self.value[key])

    def as_object(self) -> Mapping[str, Any]:
        if not isinstance(self.value, _Object):
            raise InputError([f"{self.place}: is {_kind(self.value)}, not an object"])
        return self.value

    def key_like(self, name: str) -> Optional[str]:
        """Key of an object that is ``name`` but for case; None if there is none."""
        found = [key for key in self.as_object() if key.lower() == name.lower()]
        exact = [key for key in found if key == name]
        if len(found) > 1 and not exact:
            raise InputError(
                [f"{self.place}: has {_some(found)}; nobody can tell which is {shown(name)}"]
            )
        return next(iter((*exact, *found)), None)


def read(content: bytes, place: str) -> Mapping[str, Any]:
    """Federations of an answer, by CRIC's key; ``place`` is what messages call it.

    Raises
    ------
    InputError
        If it is no JSON object of at most `MAX_BYTES`.
    """
    if len(content) > MAX_BYTES:
        raise InputError(
            [f"{place}: has more than {MAX_BYTES} bytes; it is no list of federations"]
        )
    try:
        found = json.loads(content, object_pairs_hook=_Object, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else shown(str(error))
        raise InputError([f"{place}: is no JSON: {said}"]) from error
    return _Value(place, found).as_object()


def promised(
    federations: Mapping[str, Any],
    place: str,
    names: Sequence[str],
    vos: Iterable[str],
    period: Period,
) -> dict[str, Promised]:
    """VO as asked for → the sum of what the federations pledge to it in a period; without those that get nothing.

    Parameters
    ----------
    federations
        What `read` returned for ``place``.
    names
        Federations, by key, name or accounting name.

    Raises
    ------
    InputError
        With all that is wrong with what was asked for; what else is in the answer is not looked at.
    """
    problems: list[str] = []
    parts: dict[str, list[Promised]] = {}
    vos = tuple(vos)
    for name in names:
        try:
            quarter = _quarter(_federation(_Value(place, federations), name), period)
        except InputError as error:
            problems += error.problems
            continue
        for vo in vos:
            try:
                power = _power(quarter, vo)
            except InputError as error:
                problems += error.problems
            else:
                parts.setdefault(vo, []).extend([power] if power is not None else [])
    if problems:
        raise InputError(problems)
    return {
        vo: Promised(fsum(part.hs06 for part in found), " + ".join(part.place for part in found))
        for vo, found in parts.items()
        if found
    }


def _federation(answer: _Value, name: str) -> _Value:
    by_key = answer.key_like(name)
    if by_key is not None:
        return answer.below(by_key)
    found = [
        key
        for key, content in answer.as_object().items()
        if isinstance(content, _Object)
        and name.lower() in [str(content.get(field)).lower() for field in _NAMES]
    ]
    if len(found) > 1:
        raise InputError(
            [f"{answer.place}: {quoted(name)} could be {_some(found)}; write one of them"]
        )
    if not found:
        raise InputError(
            [
                (
                    f"{answer.place}: there is no federation {quoted(name)}; "
                    f"{_site_advice(answer.as_object(), name)}"
                )
            ]
        )
    return answer.below(found[0])


def _site_advice(federations: Mapping[str, Any], name: str) -> str:
    """What to write instead of a name that may be a site's."""
    of_site = [
        key
        for key, content in federations.items()
        if isinstance(content, _Object)
        and isinstance(content.get(_SITES), (list, dict))
        and name.lower() in [str(site).lower() for site in content[_SITES]]
    ]
    if not of_site:
        return "see pledges.cric.federations"
    return (
        f"it is a site of {_some(of_site)}: write that, and pledges.cric.federation_ratio if it "
        "has others too"
    )


def _quarter(federation: _Value, period: Period) -> _Value:
    """Pledges of a federation by VO in a period."""
    where = federation
    for key in ("pledges", str(period.year), f"Q{period.quarter}"):
        found = where.key_like(key)
        if found is None:
            known = _some(where.as_object()) or "nothing"
            raise InputError(
                [f"{where.place}: has no {key}, which {period} needs; there is {known}"]
            )
        where = where.below(found)
    where.as_object()
    return where


def _power(quarter: _Value, vo: str) -> Optional[Promised]:
    """What a VO gets; None if it gets nothing."""
    key = quarter.key_like(vo)
    if key is None:
        return None
    pledge = quarter.below(key)
    known = pledge.key_like(_POWER)
    if known is None:
        return None
    for other, said in pledge.as_object().items():
        if other.lower().startswith(_POWER.lower()) and "unit" in other.lower():
            _check_unit(said, f"{pledge.place}.{shown(other)}")
    power = pledge.below(known)
    return Promised(_number(power), power.place)


def _check_unit(said: Any, place: str) -> None:
    if not isinstance(said, str) or _NEITHER.sub("", said.lower()) not in _UNITS:
        raise InputError([f"{place}: {quoted(str(said))} is neither HEP-SPEC06 nor HEPscore23"])


def _number(power: _Value) -> float:
    value = power.value
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        said = quoted(value) if isinstance(value, str) else _kind(value)
        raise InputError([f"{power.place}: is {said}, no number"])
    if not 0 <= value <= MAX_HS06 or not isfinite(value):
        raise InputError(
            [f"{power.place}: {shown(str(value))} is no pledge; 0 to {MAX_HS06:g} HS06 would be"]
        )
    return float(value)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _kind(value: Any) -> str:
    kinds: dict[type, str] = {
        dict: "an object",
        list: "a list",
        type(None): "null",
        str: "a text",
        bool: "true or false",
    }
    return next((words for kind, words in kinds.items() if isinstance(value, kind)), "a number")


def _some(names: Iterable[str]) -> str:
    every = sorted(names)
    rest = f" and {len(every) - _MOST_SHOWN} more" if len(every) > _MOST_SHOWN else ""
    return ", ".join(shown(name) for name in every[:_MOST_SHOWN]) + rest


_NOT_MODIFIED = 304
_OK = 200
_REDIRECTS = range(300, 400)
_CHUNK_BYTES = 2**16
_MOST_MEMORY_BYTES = 8 * MAX_BYTES
"""What the process that asks may take: to a chunk of -1 bytes urllib3 takes all that ever comes."""
_AGENT = {"User-Agent": "sharectl", "Accept": "application/json"}


@dataclass(frozen=True)
class ServerAccess:
    """How the server is reached."""

    ca_file: Optional[Path] = None
    """Certificates by which it is known; None for the folder, or else those that this machine trusts."""
    ca_directory: Optional[Path] = None
    proxy: Optional[str] = None
    deadline_seconds: float = 30.0


@dataclass(frozen=True)
class Validators:
    """What tells the server which answer is known already."""

    etag: Optional[str] = None
    last_modified: Optional[str] = None

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a request that wants an answer only if it is another."""
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class Answered:
    """What the server answered."""

    content: Optional[bytes] = None
    """None if there is a problem, or the known answer still holds."""
    validators: Validators = Validators()
    problem: Optional[str] = None
    seconds: float = 0.0

    @property
    def unchanged(self) -> bool:
        """Whether the server says that the known answer still holds."""
        return self.content is None and self.problem is None


def ask(url: str, access: ServerAccess, known: Validators = Validators()) -> Answered:
    """What the server says at ``url``; never raises, and never takes longer than the deadline.

    The process that asks is ended at the deadline: a server may send a byte a second for ever.
    """
    import requests  # noqa: F401 - loaded before the question forks

    question = Question(partial(_ask, url, access, known), access.deadline_seconds)
    answer = ask_all({"server": question})["server"]
    if answer.value is None:
        return Answered(problem=f"{url}: {answer.source.problem}", seconds=answer.source.seconds)
    found: Answered = answer.value
    problem = f"{url}: {found.problem}" if found.problem is not None else None
    return Answered(found.content, found.validators, problem, answer.source.seconds)


def _ask(url: str, access: ServerAccess, known: Validators) -> Answered:
    import requests

    limit_memory(_MOST_MEMORY_BYTES)
    trusted = _trusted(access)
    if isinstance(trusted, Path) and not trusted.exists():
        return Answered(
            problem=f"there are no certificates at {trusted}; see pledges.cric.ca_file and .ca_directory"
        )
    with requests.Session() as session:
        # Neither the environment's proxies, nor its certificates, nor the user's ~/.netrc.
        session.trust_env = False
        session.proxies = {"https": access.proxy} if access.proxy else {}
        try:
            with session.get(
                url,
                headers={**_AGENT, **known.headers},
                verify=str(trusted) if isinstance(trusted, Path) else trusted,
                timeout=access.deadline_seconds,
                allow_redirects=False,
                stream=True,
            ) as response:
                return _answered(response, known)
        except (requests.RequestException, OSError, ValueError) as error:
            return Answered(problem=_words(error))
        except MemoryError:
            return Answered(
                problem=f"cannot be asked: its answer needs more than {_MOST_MEMORY_BYTES} bytes"
            )


def _answered(response: object, known: Validators) -> Answered:
    import requests

    assert isinstance(response, requests.Response)  # noqa: S101 - the type is loaded late
    status, headers = response.status_code, response.headers
    if status == _NOT_MODIFIED and known.headers:
        return Answered(validators=known)
    if status in _REDIRECTS:
        where = shown(str(headers.get("Location")))
        return Answered(problem=f"redirects to {where}; write the right place as pledges.cric.url")
    if status != _OK:
        return Answered(problem=f"the server answers {status} {shown(str(response.reason))}")
    content = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        content += chunk
        if len(content) > MAX_BYTES:
            return Answered(
                problem=f"sends more than {MAX_BYTES} bytes; it is no list of federations"
            )
    return Answered(bytes(content), _validators(headers))


def _validators(headers: Mapping[str, str]) -> Validators:
    def sound(name: str) -> Optional[str]:
        value = headers.get(name)
        usable = value is not None and len(value) <= 256 and value.isascii() and value.isprintable()  # noqa: PLR2004
        return value if usable else None

    return Validators(sound("ETag"), sound("Last-Modified"))


def _trusted(access: ServerAccess) -> Union[Path, bool]:
    """Certificates to verify by: those named, else this machine's, else those that came with `requests`."""
    if access.ca_file or access.ca_directory:
        return access.ca_file or access.ca_directory or True
    ours = ssl.get_default_verify_paths()
    return next((Path(found) for found in (ours.cafile, ours.capath) if found), True)


def _words(error: Exception) -> str:
    """What went wrong, without the layers it came through."""
    innermost: BaseException = error
    while (
        cause := getattr(innermost, "reason", None) or innermost.__cause__ or innermost.__context__
    ) is not None:
        if not isinstance(cause, BaseException):
            break
        innermost = cause
    said = str(innermost) or type(innermost).__name__
    return f"cannot be asked: {shown(said) if len(said) < 60 else said[:300]}"  # noqa: PLR2004


_MOST_BYTES = 2 * MAX_BYTES
_REMOVE = "remove it: the server is asked again, and pledges that jump are not noticed once"


@dataclass(frozen=True)
class Accepted:
    """A pledge that was in use."""

    hs06: float
    place: str
    said_at: int
    """Unix seconds at which the source last said so."""


@dataclass(frozen=True)
class Copy:
    """What is kept."""

    asked: str
    """What the configuration says is asked, with its placeholders."""
    url: str
    """What was asked."""
    asked_at: int
    """Unix seconds at which the server last sent the answer, or said that it holds."""
    answer: str
    validators: Validators = field(default_factory=Validators)
    accepted: Mapping[str, Accepted] = field(default_factory=dict)
    """Group → its pledge in use."""


def load(path: Path) -> Optional[Copy]:
    """The copy at ``path``; None if there is none.

    Raises
    ------
    InputError
        If there is one that cannot be read.
    """
    try:
        return Document(path, _MOST_BYTES).read(_copy)
    except (OSError, DocumentError) as error:
        raise InputError([f"{path}: cannot be read: {shown(str(error))}; {_REMOVE}"]) from error


def save(path: Path, copy: Copy) -> None:
    """Put ``copy`` at ``path``. Raises StateError as `files.replace`."""
    Document(path, _MOST_BYTES).replace(asdict(copy))


def _copy(content: Content) -> Copy:
    copy = record(Copy, content)
    for accepted in copy.accepted.values():
        _pledge(accepted.hs06)
    return copy


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.40} is no {kind.__name__}")
    return value


def _optional_text(value: Any) -> Optional[str]:
    return None if value is None else str(_typed(value, str))


def _pledge(value: Any) -> float:
    if type(value) not in (int, float) or not 0 < value <= MAX_HS06:
        raise ValueError(f"{value!r:.40} is no pledge")
    return float(value)


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

    def __init__(
        self, access: CricAccess, wanted: Sequence[Wanted], manner: Manner = Manner()
    ) -> None:
        self.access = access
        self.wanted = tuple(wanted)
        self.manner = manner

    def resolve(self, now: int) -> Pledged:
        """Pledges of the quarter that ``now`` is in; see `sharectl.cycle.ports.Pledges`."""
        warnings: list[str] = []
        period = period_at(now)
        known = self._known(warnings)
        answered: Optional[Answered] = None
        if self.manner.refresh or not self._is_young(known, now, period):
            answered = ask(self._url(period), self.access.server, self._validators(known, period))
        seconds = answered.seconds if answered is not None else 0.0
        problems: list[str] = []
        good = self._fresh(answered, known, now, period, problems) if answered is not None else None
        if good is None:
            good = self._old(known, now, period, problems)
        if good is None:
            return refused(seconds, problems or ["CRIC has not been asked yet"], warnings)
        if problems:
            warnings.append(
                f"{'; '.join(problems)}; the copy of {ago(now - good.copy.asked_at)} is in use"
            )
        return self._used(good, now, seconds, period, warnings)

    def _known(self, warnings: list[str]) -> Optional[Copy]:
        try:
            copy = load(self.access.copy_file)
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
        self,
        answered: Answered,
        known: Optional[Copy],
        now: int,
        period: Period,
        problems: list[str],
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

    def _old(
        self, known: Optional[Copy], now: int, period: Period, problems: list[str]
    ) -> Optional[_Good]:
        """What the copy says, if it can be used; else ``problems`` get why not."""
        if known is None or known.asked != self.access.url:
            problems.append(f"there is no copy of it in {self.access.copy_file}")
            return None
        if abs(now - known.asked_at) > self.access.max_age_seconds:
            problems.append(
                f"the copy in {self.access.copy_file} is of {ago(now - known.asked_at)}, older "
                "than "
                f"pledges.cric.max_age_days ({self.access.max_age_seconds / DAY_SECONDS:g})"
            )
            return None
        return self._read(known, period, problems, fresh=False)

    def _read(
        self, copy: Copy, period: Period, problems: list[str], *, fresh: bool
    ) -> Optional[_Good]:
        vos = {one.known_as for one in self.wanted if one.known_as}
        try:
            federations = read(copy.answer.encode("utf-8", "surrogateescape"), _PLACE)
            found = promised(federations, _PLACE, self.access.federations, sorted(vos), period)
        except InputError as error:
            problems += error.problems
            return None
        return _Good(copy, found, fresh)

    def _used(
        self, good: _Good, now: int, seconds: float, period: Period, warnings: list[str]
    ) -> Pledged:
        """Pledges of a good answer, but for those that jump."""
        told = {
            one.group: Told(promised.hs06 * self.access.federation_ratio, promised.place)
            for one in self.wanted
            if (promised := good.promised.get(one.known_as)) is not None
        }
        unwritten = {one.group: one for one in self.wanted if one.written_hs06 is None}
        before = {
            group: was.hs06 for group, was in good.copy.accepted.items() if group in unwritten
        }
        said = {
            group: what.hs06 for group, what in told.items() if what.hs06 > 0 and group in unwritten
        }
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
            f"{one.place}: {now_told.place} is {now_told.hs06:g} HS06, after {was.hs06:g}: more "
            "than a factor of "
            f"{self.access.max_change_factor:g} (pledges.cric.max_change_factor); `sharectl "
            "pledges --confirm` takes it"
        )
        if now - was.said_at > self.access.max_age_seconds:
            problems.append(
                f"{words}; the pledge before is of {ago(now - was.said_at)}, too old to stay"
            )
            return
        warnings.append(f"{words}; the pledge before stays in use")
        told[one.group] = Told(was.hs06, was.place)

    def _keep(self, copy: Copy, good: _Good, warnings: list[str]) -> None:
        unchanged = not good.fresh and copy.accepted == good.copy.accepted
        if not self.manner.keep or unchanged:
            return
        try:
            save(self.access.copy_file, copy)
        except StateError as error:
            warnings.append(f"the copy of CRIC's answer is not kept: {error}")
