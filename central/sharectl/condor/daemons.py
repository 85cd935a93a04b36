"""Ways to HTCondor's daemons: their objects, questions with a deadline, why one is silent.

Every question runs in a child (`sharectl.condor.deadline`). Functions that take or return objects
of the bindings are for the child.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Callable, Optional, TypeVar

from sharectl.condor.ads import ad_of, expression, quoted, text
from sharectl.condor.deadline import Answer, Question, ask_all, words
from sharectl.condor.loading import library
from sharectl.condor.service import token_remedy
from sharectl.errors import PoolUnavailableError
from sharectl.model import SCHEDD_SOURCE
from sharectl.words import printable

T = TypeVar("T")
Location = Mapping[str, str]
"""Address of a daemon: the attributes `LOCATION`, as the bindings want them."""

LOCATION = ("Name", "MyAddress", "CondorVersion", "MyType")
CLUSTER = "AutoClusterId"
"""Attribute of the jobs that a negotiator has seen, and of their autocluster."""
RUNS = "Offline =!= True && BackfillSlot =!= True"
"""Constraint of slots that have cores: an offline machine sleeps or is gone, and a backfill slot
(SLOT_TYPE_<N>_BACKFILL) has the cores of the other slots a second time, until these want them."""
PARTITIONABLE = f"PartitionableSlot =?= True && {RUNS}"
"""Constraint of partitionable slots."""
_NOT_DYNAMIC = f'SlotType =!= "Dynamic" && {RUNS}'
"""Constraint of partitionable and static slots."""
NO_SLOT = (7, 9, 12)
"""Universes whose jobs hold no slot of the pool: scheduler, grid (elsewhere), local."""
PARALLEL = 11
"""Universe of jobs that a dedicated scheduler places."""
IS_DEDICATED = "TARGET.DedicatedScheduler == "
UNKNOWN_USER = "unauthenticated@unmapped"
"""Identity of a user who did not authenticate."""
STRANGER = "it does not know this user by any method that both have"
_MOST_NAME_CHARACTERS = 255
"""Part of a daemon's name that names it in messages and metrics."""
UNSET = ("", "none", "not defined")
"""Answers of a running daemon, lower case, for a macro that is not set."""
_MOST_CHARACTERS = 65_536
"""Text of a knob that is read."""
_OWN_PREFIX = re.compile(r"NEGOTIATOR\w*\.", re.IGNORECASE)
"""Prefix of knobs for negotiators, and for those with a local name too."""
_PART_MACHINES = 1000
_MOST_FACTORIES = 2000
"""Clusters of a schedd of which jobs that are not materialised are counted."""
_COLLECTOR_PORT = 9618
_CONNECT_SECONDS = 3.0
_ADDRESS = re.compile(
    r"<?(?:\[(?P<v6>[^]]+)\]|(?P<host>[^:?<>\s,]+))(?::(?P<port>\d{1,5}))?"
    r"(?P<more>\?[^>]*)?>?(?=[,\s]|$)"
)


def collector_question(
    address: Optional[str], deadline_seconds: float, ask: Callable[[Any], Any]
) -> Question:
    """Question to a collector, None for that of this machine; ``ask`` gets its object."""
    bindings()
    why = partial(why_silent, address or param("COLLECTOR_HOST"), "COLLECTOR")
    return Question(lambda: ask(collector(address)), deadline_seconds, why)


def schedd_questions(
    locations: Iterable[Location], deadline_seconds: float, ask: Callable[[Any, str], Any]
) -> dict[str, Question]:
    """Name of a `Source` -> question to that schedd; ``ask`` gets its object and its name."""
    bindings()

    def question(location: Location) -> Question:
        why = partial(why_silent, location.get("MyAddress", ""), "SCHEDD")
        return Question(lambda: ask(schedd(location), location["Name"]), deadline_seconds, why)

    # An ad's name may be a megabyte, or forge lines of a log.
    return {
        f"{SCHEDD_SOURCE}{printable(location['Name'], _MOST_NAME_CHARACTERS)}": question(location)
        for location in locations
    }


def collector_answer(
    address: Optional[str], deadline_seconds: float, ask: Callable[[Any], Any]
) -> Answer:
    """Answer of a collector, as for `collector_question`; a problem names address and remedy."""
    question = collector_question(address, deadline_seconds, ask)
    answer = ask_all({"collector": question})["collector"]
    problem = answer.source.problem
    if problem is None:
        return answer
    at = address or param("COLLECTOR_HOST")
    # A stranger has its remedy: something answered at this address.
    place = "; see pool.collector of the configuration, `init --collector`, or CONDOR_CONFIG"
    problem = f"{f'{at}: ' if at else ''}{problem}{'' if STRANGER in problem else place}"
    return answer._replace(source=replace(answer.source, problem=problem))


def ask_collector(address: Optional[str], deadline_seconds: float, ask: Callable[[Any], T]) -> T:
    """Value that ``ask`` returns for a collector; raises PoolUnavailableError without one."""
    answer = collector_answer(address, deadline_seconds, ask)
    if answer.source.problem is not None:
        raise PoolUnavailableError(f"collector: {answer.source.problem}")
    value: T = answer.value
    return value


def param(name: str) -> str:
    """Macro of this machine's HTCondor configuration; empty if it is not set."""
    return str(bindings().param.get(name, ""))


def bindings() -> Any:
    """Module htcondor2; loaded before questions fork, or every child would load it."""
    return library()


# ---- for the child


def collector(address: Optional[str]) -> Any:
    """Collector of the bindings; None for the pool of this machine's configuration."""
    return bindings().Collector(*([address] if address else []))


def daemon(location: Location) -> Any:
    """Collector of the bindings whose `query` asks the daemon itself for its ads."""
    return bindings().Collector(ad_of(location))


def schedd(location: Location) -> Any:
    """Schedd of the bindings."""
    return bindings().Schedd(ad_of(location))


def macros(location: Location) -> Mapping[str, str]:
    """Configuration of a running daemon; each look-up is a question to it (level READ)."""
    configuration: Mapping[str, str] = bindings().RemoteParam(ad_of(location))
    return configuration


def knobs_of_daemon(location: Location, is_wanted: Callable[[str], Any]) -> dict[str, str]:
    """Knobs of a running daemon that are wanted and set: name, lower case → text."""
    configuration = macros(location)
    written = set(configuration)
    # A negotiator resolves its prefixes itself.
    names = {_OWN_PREFIX.sub("", name): name for name in configuration}
    values = {
        short.lower(): str(configuration[short if short in written else name])
        for short, name in names.items()
        if is_wanted(short.lower())
    }
    texts = {name: value.strip()[:_MOST_CHARACTERS] for name, value in values.items()}
    return {name: value for name, value in texts.items() if value.lower() not in UNSET}


def query(
    collector: Any, kind: str, constraint: Optional[str] = None, projection: Sequence[str] = ()
) -> list[Any]:
    """Ads that a collector has of a ``kind`` of htcondor2.AdType; all attributes by default."""
    ad_type = getattr(bindings().AdType, kind)
    return list(collector.query(ad_type, constraint=constraint, projection=list(projection)))


def slots(
    collector: Any, constraint: Optional[str] = None, projection: Sequence[str] = ()
) -> list[Any]:
    """Ads of partitionable and static slots that a collector has; parameters as for `query`."""
    both = f"({_NOT_DYNAMIC}) && ({constraint})" if constraint else _NOT_DYNAMIC
    return query(collector, "Slot", both, projection)


def slots_in_parts(
    collector: Any, machines: Sequence[str], projection: Sequence[str]
) -> Iterator[list[Any]]:
    """Ads of `slots` of these machines, lower case and sorted, in parts: an ad takes 25 KiB."""
    for first in range(0, len(machines), _PART_MACHINES):
        part = machines[first : first + _PART_MACHINES]
        within = None
        if len(part) < len(machines):
            within = f"Machine >= {quoted(part[0])} && Machine <= {quoted(part[-1])}"
        yield slots(collector, within, projection)


def locations(collector: Any, kind: str) -> list[dict[str, str]]:
    """Locations of the daemons of a kind (``Schedd``, ``Negotiator``) that a collector knows."""
    ads = query(collector, kind, projection=LOCATION)
    return [location for location in map(location_of, ads) if location.get("Name")]


def location_of(ad: Any) -> dict[str, str]:
    """Location in a daemon's ad."""
    return {name: value for name in LOCATION if (value := text(ad.get(name))) is not None}


def grouped(schedd: Any, constraint: str, keys: Sequence[str], limit: int = -1) -> list[Any]:
    """Jobs counted by the schedd by ``keys``, which are all that the constraint may name."""
    by = {"opts": bindings().QueryOpt.GroupBy, "limit": limit}
    return list(schedd.query(constraint=constraint, projection=list(dict.fromkeys(keys)), **by))


def factories(schedd: Any) -> list[Any]:
    """Ads of the clusters of which some jobs are not materialised (max_idle, max_materialize)."""
    constraint = "ProcId =?= undefined && JobMaterializeNextProcId =!= undefined"
    clusters = {"opts": bindings().QueryOpt.IncludeClusterAd, "limit": _MOST_FACTORIES}
    return list(schedd.query(constraint, **clusters))


def autoclusters(schedd: Any, numbers: Iterable[int]) -> list[Any]:
    """Autoclusters of a schedd with these AutoClusterId: their significant attributes."""
    ranges: list[tuple[int, int]] = []
    for number in sorted({*numbers}):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    if not ranges:
        return []
    by_number = bindings().QueryOpt.AutoCluster
    return list(schedd.query(constraint=within(CLUSTER, ranges), opts=by_number))


def dedicated(schedd: str, requirements: str) -> str:
    """Requirements of a parallel job: its dedicated scheduler asks for slots that name it."""
    name = quoted(f"DedicatedScheduler@{schedd}")
    return f"{IS_DEDICATED}{name} && ({requirements})"


def within(name: str, ranges: Sequence[tuple[int, int]]) -> str:
    """Expression that is true within one of these ranges, sorted; a look at few of them tells."""
    if len(ranges) == 1:
        return f"({name} >= {ranges[0][0]} && {name} <= {ranges[0][1]})"
    middle = len(ranges) // 2
    halves = (within(name, half) for half in (ranges[:middle], ranges[middle:]))
    return f"({name} < {ranges[middle][0]} ? {' : '.join(halves)})"


def identity(location: Any, command: str) -> Optional[tuple[str, str]]:
    """Identity and method by which a daemon lets this process use a command; None if not."""
    try:
        answer = bindings().ping(ad_of(location), command)
    except (bindings().HTCondorException, ValueError):
        return None
    if not answer.get("AuthorizationSucceeded", True):
        return None
    return answer.get("MyRemoteUserName", UNKNOWN_USER), answer.get("AuthMethods", "no method")


def collector_identity(collector: Any, command: str) -> Optional[tuple[str, str]]:
    """User and method, as of `identity`, for a collector of the bindings."""
    try:
        return identity(collector.locate(bindings().DaemonType.Collector), command)
    except bindings().HTCondorException:
        return None


def authenticate(*, always: bool) -> None:
    """Authenticate in every connection of this process, or in none."""
    bindings().param["SEC_CLIENT_AUTHENTICATION"] = "REQUIRED" if always else "NEVER"


def advertise(collector: Any, command: str, ads: Iterable[Mapping[str, Any]]) -> bool:
    """Send ads to a collector, over TCP; returns whether it took them."""
    try:
        collector.advertise([ad_of(ad) for ad in ads], command, True)  # noqa: FBT003
    except bindings().HTCondorException:
        return False
    return True


def withdraw(collector: Any, kind: str, constraint: str) -> None:
    """Withdraw the generic ads of a MyType that meet a constraint."""
    ad = ad_of({"MyType": "Query", "TargetType": kind})
    ad["Requirements"] = expression(constraint)
    collector.advertise([ad], "INVALIDATE_ADS_GENERIC", True)  # noqa: FBT003


def why_silent(written: str, daemon: str, error: Exception) -> str:
    """Reason why a daemon (``SCHEDD``) did not answer at the first of the addresses ``written``."""
    match = _ADDRESS.match(written.strip())
    if type(error).__name__ != "HTCondorException" or match is None:
        return words(error)
    host, port = match["v6"] or match["host"], int(match["port"] or _COLLECTOR_PORT)
    place, more = f"{host}:{port}", match["more"] or ""
    try:
        with socket.create_connection((host, port), _CONNECT_SECONDS) as connection:
            ip = connection.getpeername()[0]
    except (socket.gaierror, UnicodeError, OverflowError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        return f"no such host: {host} ({reason}); correct the name, or DNS or /etc/hosts here"
    except ConnectionRefusedError:
        fact = f"nobody listens at {place}: {daemon} does not run there, or has another port"
        return f"{fact}; see its log there"
    except OSError as problem:
        fact = f"no connection to {place}: {problem.strerror or problem}"
        return f"{fact}; see whether that machine is up, and for a firewall between"
    location = {"MyAddress": f"<{f'[{ip}]' if ':' in ip else ip}:{port}{more}>"}
    return _refused(location, daemon) or words(error)


def _refused(location: Location, daemon: str) -> Optional[str]:
    """Reason why READ is denied to this process, or not answered; None if it is allowed."""
    if identity(location, "READ") is not None:
        return None
    # Everybody who can authenticate, or need not, may do nothing.
    name, method = identity(location, "DC_NOP") or (UNKNOWN_USER, "")
    if name == UNKNOWN_USER:
        fact = f"{STRANGER}, or {daemon} does not run there, or hangs"
        return f"{fact}; {token_remedy(daemon, param('UID_DOMAIN'))}, or see its log there"
    return (
        f"READ is denied to {name} (by {method}): write {daemon}.ALLOW_READ = "
        f"$({daemon}.ALLOW_READ) {name} there, see "
        "that no DENY_READ names it, and condor_reconfig"
    )
