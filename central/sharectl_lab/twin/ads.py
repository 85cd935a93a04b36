"""Ads of the twin's slots and jobs, and the expressions of sites and jobs that look at them.

HTCondor's own library evaluates the expressions. Answers are kept by the values of the attributes
that an expression reads, so that the library is asked once for each combination. The twin's clock
stands for time().
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import partial
from marshal import dumps
from typing import Any, Callable, Optional

from sharectl.condor.ads import ad_of, expression, is_true, value_of
from sharectl.condor.clock import is_momentary
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.expressions import (
    MAX_CHARACTERS,
    MY,
    TARGET,
    UNSCOPED,
    is_balanced,
    references,
    with_clock,
)
from sharectl.errors import InputError
from sharectl.words import quoted
from sharectl_lab.twin.look import unix
from sharectl_lab.twin.matching import SiteStarts
from sharectl_lab.twin.pool import ShapedKind, SimSlot
from sharectl_lab.twin.records import NodeSpec
from sharectl_lab.workload.draw import JobKind

CLOCK = "t1_Clock"
"""Attribute of both ads: the twin's time, whole seconds."""
TRIAL_BYTES = 2**28

_UNREPEATABLE = re.compile(
    r"\b(random|usermap|userhome|currenttime|daytime)\(|\b(abstime|formattime)\(\s*\)",
    re.IGNORECASE,
)
"""Functions whose value is not of the simulation: chance, files and clock of this machine."""
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_READS_ALL = re.compile(
    r"\beval\(|\b(?:MY|TARGET)\b(?!\s*\.)|(?:^|[(,=&|<>!{+*/:?-])\s*\.\s*[a-z]", re.IGNORECASE
)
"""Signs of names that only an evaluation tells."""
_MOMENT = "currenttime"
_LONE_BACKSLASH = re.compile(r'\\(?!")')


# ---- ads


def _user(kind: ShapedKind) -> str:
    return kind.submitter[len(kind.account) + 1 :] if kind.account else kind.submitter


_SLOT: Mapping[str, Callable[[SimSlot], Any]] = {
    "activity": lambda _: "Idle",
    "arch": lambda _: "X86_64",
    "cpus": lambda slot: slot.free_cores,
    "detectedcpus": lambda slot: slot.node.spec.cores,
    "disk": lambda slot: slot.free_disk_kib,
    "machine": lambda slot: slot.node.spec.name,
    "memory": lambda slot: slot.free_memory_mib,
    "mytype": lambda _: "Machine",
    "name": lambda slot: f"slot{slot.node.slots.index(slot) + 1}@{slot.node.spec.name}",
    "numdynamicslots": lambda slot: len(slot.claims),
    "opsys": lambda _: "LINUX",
    "partitionableslot": lambda _: True,
    "slotid": lambda slot: slot.node.slots.index(slot) + 1,
    "slottype": lambda _: "Partitionable",
    "slottypeid": lambda _: 1,
    "state": lambda _: "Unclaimed",
    "t1_multicoreonly": lambda slot: slot.multicore_only or None,
    "t1_targetcores": lambda slot: slot.target and slot.target[1:4:2],
    "t1_wn_hs06": lambda slot: slot.node.spec.hs06_per_core * slot.node.spec.cores,
    "totalcpus": lambda slot: slot.node.spec.cores,
    "totaldisk": lambda slot: sum(spec.disk_kib for spec in slot.node.spec.slots),
    "totalmemory": lambda slot: sum(spec.memory_mib for spec in slot.node.spec.slots),
    "totalslotcpus": lambda slot: slot.total_cores,
    "totalslotdisk": lambda slot: slot.spec.disk_kib,
    "totalslotmemory": lambda slot: slot.spec.memory_mib,
}
"""Attribute of a slot's ad -> its value."""
_JOB: Mapping[str, Callable[[ShapedKind], Any]] = {
    "accountinggroup": lambda kind: kind.submitter if kind.account else None,
    "acctgroup": lambda kind: kind.account or None,
    "acctgroupuser": lambda kind: _user(kind) if kind.account else None,
    "jobstatus": lambda _: 1,
    "jobuniverse": lambda _: 5,
    "mytype": lambda _: "Job",
    "owner": _user,
    "requestcpus": lambda kind: kind.cores,
    "requestdisk": lambda kind: kind.disk_kib,
    "requestmemory": lambda kind: kind.memory_mib,
    "user": _user,
}
"""Attribute of a job's ad -> its value."""


_EMPTY: Mapping[str, Callable[[SimSlot], Any]] = {
    "cpus": lambda slot: slot.total_cores,
    "disk": lambda slot: slot.spec.disk_kib,
    "memory": lambda slot: slot.spec.memory_mib,
    "numdynamicslots": lambda _: 0,
}
"""Attribute that is another one in the ad of an empty slot -> its value."""
_DYNAMIC: Mapping[str, Callable[[ShapedKind], Any]] = {
    "cpus": lambda kind: kind.cores,
    "disk": lambda kind: kind.disk_kib,
    "dynamicslot": lambda _: True,
    "memory": lambda kind: kind.memory_mib,
    "numdynamicslots": lambda _: None,
    "partitionableslot": lambda _: None,
    "slottype": lambda _: "Dynamic",
    "totalslotcpus": lambda kind: kind.cores,
    "totalslotdisk": lambda kind: kind.disk_kib,
    "totalslotmemory": lambda kind: kind.memory_mib,
}
"""Attribute that is another one in the ad of a dynamic slot -> its value by the first job."""
_CLAIMED: Mapping[str, Callable[[ShapedKind], Any]] = {
    "accountinggroup": lambda kind: kind.submitter if kind.account else None,
    "remoteowner": _user,
    "remoteuser": _user,
    "state": lambda _: "Claimed",
}
"""Attribute that is another one once it is claimed -> its value."""


def slot_attributes(
    slot: SimSlot, names: Optional[Iterable[str]] = None, *, empty: bool = False
) -> dict[str, Any]:
    """Attributes of a slot's ad: those in ``names``, or all; ``empty``: if no job ran there."""
    amounts = slot.spec.custom if empty else slot.free_custom
    custom = {name.lower(): count for name, count in amounts.items()}
    custom.update({f"totalslot{name.lower()}": count for name, count in slot.spec.custom.items()})
    custom.update(slot.node.spec.attributes)
    getters = {**_SLOT, **_EMPTY} if empty else _SLOT
    names = dict.fromkeys((*_SLOT, *custom)) if names is None else names
    return {
        name: getters[name](slot) if name in getters and name not in custom else custom.get(name)
        for name in names
    }


def dynamic_attributes(
    slot: SimSlot, kind: ShapedKind, names: Optional[Iterable[str]] = None, *, claimed: bool
) -> dict[str, Any]:
    """Attributes of the ad of a dynamic slot, made for a job, before or after its claim."""
    own = {**_DYNAMIC, **_CLAIMED} if claimed else _DYNAMIC
    amounts = dict.fromkeys((name.lower() for name in slot.spec.custom), 0)
    amounts.update((name.lower(), count) for name, count in kind.custom)
    for name, count in list(amounts.items()):
        amounts[f"totalslot{name}"] = count
    if names is None:
        names = dict.fromkeys((*_SLOT, *own, *amounts, *slot.node.spec.attributes))
    ad = slot_attributes(slot, [name for name in names if name not in own])
    ad.update((name, amounts[name]) for name in names if name in amounts)
    ad.update((name, own[name](kind)) for name in names if name in own)
    return ad


def job_attributes(kind: ShapedKind, names: Optional[Iterable[str]] = None) -> dict[str, Any]:
    """Attributes of a job's ad: those in ``names``, or all."""
    custom = {f"request{name.lower()}": amount for name, amount in kind.custom}
    custom.update(kind.attributes)
    names = dict.fromkeys((*_JOB, *custom)) if names is None else names
    return {
        name: _JOB[name](kind) if name in _JOB and name not in custom else custom.get(name)
        for name in names
    }


# ---- expressions


class Condition:
    """START or Requirements; raises InputError, which names ``place``, if it cannot be used."""

    most_kept = 200_000
    """Answers that are kept, some 50 MB."""
    trial_seconds = 20.0
    """Deadline of the first look at an expression, which takes some 10 ms in a child."""

    def __init__(self, text: str, place: str) -> None:
        self.place = place
        if len(text) > MAX_CHARACTERS:
            raise self._error(f"is longer than {MAX_CHARACTERS} characters; write less")
        printed = self._tried(partial(_printed, text))
        if printed is None:
            raise self._error(f"HTCondor cannot read {quoted(text)}; write a ClassAd expression")
        words = _STRING.sub('""', printed)
        if match := _UNREPEATABLE.search(words):
            function = f"{match[1] or match[2]}()"
            problem = f"{function} is not of the simulation; write time(), or leave it out"
            raise self._error(problem)
        clocked = with_clock(printed, CLOCK)
        self.reads_time = clocked != printed
        self.reads_all = bool(_READS_ALL.search(words))
        """True if it may read other attributes than those below."""
        other = {MY: (MY,), TARGET: (TARGET,), UNSCOPED: (MY, TARGET)}
        self._reads: dict[tuple[tuple[str, ...], str], str] = {}
        for scope, name in references(printed):
            self._reads.setdefault((other[scope], name.lower()), name)
        self.my_names, self.target_names = (
            tuple(dict.fromkeys(name for scopes, name in self._reads if side in scopes))
            for side in (MY, TARGET)
        )
        """Attributes of its own ad and of the other ad that it reads, in lower case."""
        self._tree = expression(clocked)
        self.kept: dict[bytes, bool] = {}
        """Values of the attributes that it reads -> answer."""
        self._second = -1
        self._is_tried = False

    @property
    def names(self) -> tuple[Optional[tuple[str, ...]], Optional[tuple[str, ...]]]:
        """Attributes of the first ad and of the second that it may read; None for all."""
        return (None, None) if self.reads_all else (self.my_names, self.target_names)

    def without_owner(self, my: Container[str], target: Container[str]) -> list[tuple[str, str]]:
        """Scope and name of attributes that neither ad has; names there are in lower case."""
        has = {MY: my, TARGET: target}
        return [
            (scopes[0], written)
            for (scopes, name), written in self._reads.items()
            # A job need not request what it does not use.
            if name != _MOMENT and not name.startswith("request")
            if not any(name in has[scope] for scope in scopes)
        ]

    def is_true(self, my: Mapping[str, Any], target: Mapping[str, Any], now: float) -> bool:
        """True if it is true for two ads; InputError if its first evaluation does not end."""
        if self.reads_time and int(now) != self._second:
            self.kept.clear()
            self._second = int(now)
        if self.reads_all:
            my, target = dict(sorted(my.items())), dict(sorted(target.items()))
            key = dumps((tuple(my.items()), tuple(target.items())), 2)
        else:
            mine = tuple(map(my.get, self.my_names))
            key = dumps((mine, tuple(map(target.get, self.target_names))), 2)
        answer = self.kept.get(key)
        if answer is None:
            if len(self.kept) >= self.most_kept:
                self.kept.clear()
            answer = self.kept[key] = self._evaluated(my, target, now)
        return answer

    def _evaluated(self, my: Mapping[str, Any], target: Mapping[str, Any], now: float) -> bool:
        mine, others = self.names
        ads = (
            _ad(my, my if mine is None else mine, now),
            _ad(target, target if others is None else others, now),
        )
        if not self._is_tried:
            self._tried(partial(_truth, self._tree, *ads))
            self._is_tried = True
        return _truth(self._tree, *ads)

    def _tried(self, ask: Any) -> Any:
        """Answer of a child: it may end or hang with the expressions of a stranger."""
        answer = ask_all({"": Question(ask, self.trial_seconds, more_bytes=TRIAL_BYTES)})[""]
        if answer.source.problem is not None:
            problem = f"HTCondor cannot evaluate it: {answer.source.problem}; write it simpler"
            raise self._error(problem)
        return answer.value

    def _error(self, problem: str) -> InputError:
        return InputError([f"{self.place}: {problem}"])


def _ad(values: Mapping[str, Any], names: Iterable[str], now: float) -> Any:
    has = {name: values[name] for name in names if values.get(name) is not None}
    lists = {name: list(value) for name, value in has.items() if isinstance(value, tuple)}
    return ad_of({**has, **lists, CLOCK: int(now)})


def _truth(tree: Any, my: Any, target: Any) -> bool:
    return is_true(value_of(tree, my, target))


def _printed(text: str) -> Optional[str]:
    """Expression of a configuration as HTCondor prints it; None for an unreadable one."""
    if not is_balanced(text):
        return None
    # A comment ends with its line, and a backslash escapes nothing but a quote.
    tree = expression(_LONE_BACKSLASH.sub(r"\\\\", f"({text}\n)"))
    return None if tree is None else str(tree)


class SiteExpressions:
    """START of a site and Requirements of jobs; raises InputError with the faults of all."""

    def __init__(self, kinds: Iterable[JobKind], site: Optional[str] = None) -> None:
        problems: list[str] = []
        self._start: Optional[Condition] = None
        try:
            self._start = Condition(site, "start.site") if site else None
        except InputError as error:
            problems += error.problems
        self._requirements: dict[str, Condition] = {}
        self._met: dict[tuple[int, int], bool] = {}
        self._submitters = {k.requirements: k.submitter for k in kinds if k.requirements}
        for text, submitter in self._submitters.items():
            place = f"requirements of jobs of {submitter}"
            try:
                self._requirements[text] = Condition(text, place)
            except InputError as error:
                problems += error.problems
                continue
            if self._requirements[text].reads_time:
                problem = "a node is tried once, at no time of the day; leave time() out"
                problems.append(f"{place}: {problem}")
        if problems:
            raise InputError(problems)
        start = self._start
        self.site_start: Optional[SiteStarts] = partial(_admits, start) if start else None
        """START of the site; None if it is true."""
        self.reads_time = start is not None and start.reads_time
        """True if START may change by the clock alone."""

    def meets(self, slot: SimSlot, kind: ShapedKind) -> bool:
        """True if a slot, were it empty, meets the requirements of a job."""
        if not kind.requirements:
            return True
        key = id(slot), kind.shape
        met = self._met.get(key)
        if met is None:
            expression = self._requirements[kind.requirements]
            of_job, of_slot = expression.names
            empty = slot_attributes(slot, of_slot, empty=True)
            job = job_attributes(kind.on(slot), of_job)
            met = self._met[key] = expression.is_true(job, empty, 0.0)
        return met

    def may_meet(self, slot: SimSlot, kind: ShapedKind) -> bool:
        """True if a job is placeable on a slot: also if Requirements read such as LoadAvg."""
        if not kind.requirements:
            return True
        names = self._requirements[kind.requirements].names[1] or ()
        return any(map(is_momentary, names)) or self.meets(slot, kind)

    def without_owner(
        self, nodes: Iterable[NodeSpec], kinds: Iterable[JobKind]
    ) -> Iterator[tuple[str, str, str]]:
        """Attributes that no `node`, or no `job`, has: name of the expression, owner, name."""
        of_nodes = {*_SLOT, *_DYNAMIC, *_CLAIMED}
        for node in nodes:
            of_nodes.update(node.attributes)
            for name in (name.lower() for slot in node.slots for name in slot.custom):
                of_nodes.update((name, f"totalslot{name}"))
        of_jobs = {*_JOB, *(name for kind in kinds for name, _ in kind.attributes)}
        if self._start is not None:
            for scope, name in self._start.without_owner(of_nodes, of_jobs):
                yield "START", "node" if scope == MY else "job", name
        for text, condition in self._requirements.items():
            reader = f"the requirements of {self._submitters[text]}"
            for scope, name in condition.without_owner(of_jobs, of_nodes):
                yield reader, "job" if scope == MY else "node", name


def _admits(
    start: Condition,
    slot: SimSlot,
    kind: ShapedKind,
    now: float,
    claimed_for: Optional[ShapedKind],
) -> bool:
    names, of_job = start.names
    job, clock = job_attributes(kind, of_job), unix(now)
    if claimed_for is None:
        ad = slot_attributes(slot, names)
        unclaimed = dynamic_attributes(slot, kind, names, claimed=False)
        if not (start.is_true(ad, job, clock) and start.is_true(unclaimed, job, clock)):
            return False
    # The startd asks again at each activation.
    claimed = dynamic_attributes(slot, claimed_for or kind, names, claimed=True)
    return start.is_true(claimed, job, clock)
