"""Pledges from WLCG CRIC: asked now and then, kept, and not changed by much without confirmation.

    {"IT-INFN-CNAF": {"name": "…", "accounting_name": "…", "pledges": {"2026": {"Q1": {"cms":
    {"CPU": 87100, …}}}}}}

The year begins in April: its Q4 is January to March of the next.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from sharectl.condor.deadline import Question, ask_all
from sharectl.config.model import CricPledgesConfig
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.model import MAX_HS06
from sharectl.pledges.join import Joined, SteeredGroup, copy_in, join, keep_copy, some
from sharectl.shares.pledges import Period, Pledge, jumps, period_at
from sharectl.times import DAY_SECONDS, span
from sharectl.words import quoted, shown

if TYPE_CHECKING:
    import requests

MAX_BYTES = 2**24
"""Size of an answer that is still read."""
_REFRESH_SECONDS = 6 * 3600
"""Age of the copy from which CRIC is asked again: pledges change a few times a year."""
_MOST_AGE_SECONDS = 30 * DAY_SECONDS
"""Age from which the copy is not used, and cycles change nothing: a month to mend the access."""
_MOST_FACTOR = 2
"""A pledge that changes by more stays as it was until an operator confirms it."""
_CHUNK_BYTES = 2**16
_MORE_BYTES = 8 * MAX_BYTES
"""Memory of the process that asks: to a chunk of -1 bytes urllib3 takes all that ever comes."""
_OK = 200
_MOST_PROBLEMS = 10


# ---- the content of an answer


def promised(
    content: str, federations: Iterable[str], vos: Iterable[str], period: Period
) -> dict[str, Pledge]:
    """VO → sum of its pledges by ``federations``; a VO without one is absent. Raises InputError."""
    try:
        answer = _mapping(json.loads(content), "CRIC")
    except (ValueError, RecursionError) as error:
        raise InputError([f"CRIC: is not JSON: {shown(str(error))}"]) from error
    powers: dict[str, list[tuple[float, str]]] = {vo: [] for vo in vos}
    problems: list[str] = []
    for name in federations:
        with _collected(problems):
            quarter, place = _quarter(answer, name, period)
            for vo in powers:
                with _collected(problems):
                    powers[vo] += _powers(quarter, place, vo)
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [f"… and {len(problems) - _MOST_PROBLEMS} more problems"]
    if problems:
        raise InputError(problems)
    return {
        vo: Pledge(vo, fsum(hs06 for hs06, _ in parts), "cric", " + ".join(at for _, at in parts))
        for vo, parts in powers.items()
        if parts
    }


@contextmanager
def _collected(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        problems += error.problems


def _quarter(answer: Mapping[str, Any], name: str, period: Period) -> tuple[dict[str, Any], str]:
    """Pledges of a federation in a period, by VO, and their place."""
    keys = [name] if name in answer else []
    for key, federation in answer.items() if not keys else ():
        of_it = federation if isinstance(federation, dict) else {}
        names = (key, of_it.get("name"), of_it.get("accounting_name"))
        keys += [key] if name.lower() in (str(other).lower() for other in names) else []
    if len(keys) != 1:
        fact = f"{quoted(name)} could be {some(keys)}; write one of them"
        absent = f"there is no federation {quoted(name)}; see pledges.cric.federations"
        raise InputError([f"CRIC: {fact if keys else absent}"])
    place = f"CRIC.{shown(keys[0])}"
    where = _mapping(answer[keys[0]], place)
    for part in ("pledges", str(period.year), f"Q{period.quarter}"):
        if part not in where:
            there = some(sorted(where)) or "nothing"
            raise InputError([f"{place}: has no {part}, which {period} needs; there is {there}"])
        place = f"{place}.{part}"
        where = _mapping(where[part], place)
    return where, place


def _powers(quarter: Mapping[str, Any], place: str, vo: str) -> Iterator[tuple[float, str]]:
    """Pledge of a VO, HS06, and its place; nothing without one."""
    keys = [key for key in quarter if key.lower() == vo.lower()]
    if len(keys) > 1:
        raise InputError([f"{place}: has {some(keys)} for {shown(vo)}: ambiguous"])
    for key in keys:
        at = f"{place}.{shown(key)}.CPU"
        pledge = _mapping(quarter[key], at[: -len(".CPU")])
        if "CPU" in pledge:
            yield _hs06(pledge["CPU"], at), at


def _hs06(value: Any, place: str) -> float:
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, bool) and 0 <= float(value) <= MAX_HS06:
            return float(value)
    fact = f"{shown(json.dumps(value))} is not a pledge; 0 to {MAX_HS06:g} HS06 would be"
    raise InputError([f"{place}: {fact}"])


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError([f"{shown(place)}: {shown(json.dumps(value))} is not an object"])
    return value


# ---- the server


def _get(url: str, server: CricPledgesConfig, deadline_seconds: float) -> str:
    import requests

    ours = ssl.get_default_verify_paths()
    trusted = server.ca_file or ours.cafile or ours.capath
    with requests.Session() as session:
        # Neither the environment's proxies, nor its certificates, nor the user's ~/.netrc.
        session.trust_env = False
        session.proxies = {"https": server.proxy} if server.proxy else {}
        with session.get(
            url,
            headers={"User-Agent": "sharectl", "Accept": "application/json"},
            verify=str(trusted) if trusted else True,
            timeout=deadline_seconds,
            allow_redirects=False,
            stream=True,
        ) as response:
            return _content(response)


def _content(response: requests.Response) -> str:
    if response.is_redirect:
        where = shown(response.headers["Location"])
        raise InputError([f"redirects to {where}; write the right place as pledges.cric.url"])
    if response.status_code != _OK:
        reason = shown(str(response.reason))
        raise InputError([f"the server answers {response.status_code} {reason}"])
    content = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        content += chunk
        if len(content) > MAX_BYTES:
            most = f"sends more than {MAX_BYTES} bytes; it is not a list of federations"
            raise InputError([most])
    return content.decode("utf-8", "replace")


def _why(error: BaseException) -> str:
    """Words of an error, without the layers it came through."""
    if isinstance(error, InputError):
        return str(error)
    cause = getattr(error, "reason", None) or error.__cause__ or error.__context__
    if isinstance(cause, BaseException):
        return _why(cause)
    return f"cannot be asked: {str(error)[:300] or type(error).__name__}"


# ---- the source of pledges


@dataclass(frozen=True)
class Copy:
    """Last good answer, and the pledges in use."""

    template: str
    """URL of the configuration, with its placeholders."""
    url: str
    asked_at: int
    """Unix seconds at which the server sent the answer."""
    answer: str
    accepted: Mapping[str, Pledge] = field(default_factory=dict)
    """Group → its pledge in use, with the time of the answer that it is from."""


@dataclass(frozen=True)
class CricPledges:
    """Pledges of federations, as CRIC has them."""

    access: CricPledgesConfig
    copy_file: Path
    wanted: Sequence[SteeredGroup]
    keep: bool = True
    """Write the copy; a dry run does not."""
    refresh: bool = False
    """Ask the server however young the copy is."""
    confirm: bool = False
    """Take pledges however much they differ from those in use."""
    deadline_seconds: float = 30.0
    """Time for the whole answer, which has some MiB."""

    def ask(self, now: int, warnings: list[str]) -> Joined:
        """Pledges of the quarter that ``now`` is in, for `AllPledges`."""
        period = period_at(now)
        url = self.access.url.replace("{year}", str(period.year))
        url = url.replace("{previous_year}", str(period.year - 1))
        before = copy_in(self.copy_file, Copy, warnings)
        age_seconds = now - before.asked_at if before is not None and before.url == url else -1
        is_young = 0 <= age_seconds < _REFRESH_SECONDS
        problems: list[str] = []
        for get in (self._old,) if is_young and not self.refresh else (self._fresh, self._old):
            try:
                copy = get(before, url, now)
                offers = self._offers(copy, period)
                break
            except (InputError, PoolUnavailableError) as error:
                problems += error.problems
        else:
            raise InputError(list(dict.fromkeys(problems)))
        if problems:
            age = span(now - copy.asked_at)
            warnings.append(f"{'; '.join(problems)}; the copy of {age} ago is in use")
        return self._used(copy, offers, now, warnings)

    def _fresh(self, before: Optional[Copy], url: str, now: int) -> Copy:
        # In a child: a server may send a byte a second for ever.
        get = partial(_get, url, self.access, self.deadline_seconds)
        question = Question(get, self.deadline_seconds, _why, _MORE_BYTES)
        answer = ask_all({"server": question})["server"]
        if answer.value is None:
            raise PoolUnavailableError(f"{url}: {answer.source.problem}")
        accepted = before.accepted if before is not None else {}
        return Copy(self.access.url, url, now, answer.value, accepted)

    def _old(self, before: Optional[Copy], _url: str, now: int) -> Copy:
        """Copy of this configuration that is not too old."""
        if before is None or before.template != self.access.url:
            raise InputError([f"there is no copy of it in {self.copy_file}"])
        age = now - before.asked_at
        if abs(age) > _MOST_AGE_SECONDS:
            raise InputError([f"the copy in {self.copy_file} is of {span(age)} ago, too old"])
        return before

    def _offers(self, copy: Copy, period: Period) -> dict[str, Pledge]:
        """Group → its pledge in an answer."""
        vos = sorted({group.name_in_source for group in self.wanted} - {""})
        powers = promised(copy.answer, self.access.federations, vos, period)
        ratio = self.access.federation_ratio
        return {
            group.group: replace(power, group=group.group, hs06=power.hs06 * ratio)
            for group in self.wanted
            if (power := powers.get(group.name_in_source)) is not None
        }

    def _used(self, copy: Copy, offers: dict[str, Pledge], now: int, warnings: list[str]) -> Joined:
        """Pledges of a good answer, but for those that jump."""
        names, period = " + ".join(self.access.federations), period_at(now)
        absent: dict[str, str] = {}
        accepted: dict[str, Pledge] = {}
        for group in self.wanted:
            name, new, was = group.group, offers.get(group.group), copy.accepted.get(group.group)
            if new is None:
                vo = f"the VO {group.name_in_source}"
                absent[name] = f"CRIC has no CPU pledge of {names} for {vo} in {period}"
            elif new.hs06 > 0 and group.written_hs06 is None:
                accepted[name] = replace(new, said_at=copy.asked_at)
                if was is None or self.confirm or not jumps(was.hs06, new.hs06, _MOST_FACTOR):
                    if copy.asked_at != now:
                        offers[name] = accepted[name]
                    continue
                accepted[name] = offers[name] = was
                fact = f"{new.place} is {new.hs06:g} HS06, after {was.hs06:g}: more than a factor "
                jump = f"{fact}of {_MOST_FACTOR}; `sharectl pledges --confirm` takes it; the pledge"
                age = now - (was.said_at or 0)
                if age > _MOST_AGE_SECONDS:
                    del offers[name]
                    absent[name] = f"{jump} before is of {span(age)} ago, too old to stay"
                else:
                    warnings.append(f"{group.place}: {jump} before stays in use")
        joined = join(self.wanted, offers, absent)
        if self.keep and (copy.asked_at == now or accepted != copy.accepted):
            keep_copy(self.copy_file, replace(copy, accepted=accepted), warnings)
        return joined
