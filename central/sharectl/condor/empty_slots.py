"""Slots when nothing runs there, and as pending jobs see them: a few kinds among thousands.

A target, grace and an overheat end by themselves, so an emptied slot has none of them. Of its
Requirements those clauses count that ask something of the job and that last: not sharectl's own,
not the state of a node (drained, unhealthy, closed), not a time of day or a load.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import floor, isfinite, log
from typing import Any, Callable, NamedTuple, Optional

from sharectl.condor.ads import expression, quoted, value_of
from sharectl.condor.daemons import slots as slots_of
from sharectl.condor.expressions import MY, TARGET, clauses, code_of, references, words_of_text

Row = Mapping[str, str]
"""Attributes of an ad, in lower case -> expression."""

Look = Callable[[Sequence[str], str], Iterable[Any]]
"""Returns the ads of a pool's slots with these attributes, of those that meet a constraint."""

# ---- empty slots

_IDLE = {
    "state": '"Unclaimed"',
    "activity": '"Idle"',
    "numdynamicslots": "0",
    **dict.fromkeys(("draining", "mc_grace", "t1_targetactive", "t1_overheat"), "false"),
    **dict.fromkeys(("loadavg", "condorloadavg", "totalloadavg", "totalcondorloadavg"), "0.0"),
}
_RESOURCES = "Cpus Memory Disk"
_WITHOUT_START = "WithinResourceLimits =!= false"
"""Requirements of a slot that is drained, whose ad does not have START."""
_WORD = re.compile(r"[^\s,]+")


def emptied(slot: Mapping[str, str]) -> dict[str, str]:
    """Ad of the slot, name → expression as text, when nothing runs there; see `_changes`."""
    spelt = {name.lower(): name for name in slot}
    return {**slot, **_changes(slot, lambda name: slot.get(spelt.get(name.lower(), "")))}


def empty(slot: Any) -> None:
    """Make a ClassAd of the bindings that of the slot when nothing runs there; see `_changes`."""
    texts = _changes(slot, lambda name: str(slot.lookup(name)) if name in slot else None)
    slot.update({name: expression(text) for name, text in texts.items()})


def _changes(names: Iterable[str], text_of: Callable[[str], Optional[str]]) -> dict[str, str]:
    """Attributes that differ when nothing runs on a partitionable or static slot.

    Every resource has the amount and the devices that the slot has in all, lists of dynamic slots
    (Child…) are empty. Attributes that the slot has not stay missing, but for resources.
    """
    changed = {}
    spelt = {name.lower(): name for name in names}
    for lower, name in spelt.items():
        if lower in _IDLE:
            changed[name] = _IDLE[lower]
        elif lower.startswith("child") and (text_of(name) or "").lstrip().startswith("{"):
            changed[name] = "{ }"
    for resource in _WORD.findall((text_of("MachineResources") or _RESOURCES).strip('"')):
        total, devices = text_of(f"TotalSlot{resource}"), text_of(f"Assigned{resource}")
        if total is not None and _is_number(total):
            changed[spelt.get(resource.lower(), resource)] = total
        free = spelt.get(f"available{resource.lower()}")
        if devices is not None and free is not None:
            # "GPU-a1,GPU-b2" are attributes { GPUs_GPU_a1, GPUs_GPU_b2 }.
            own = (re.sub(r"\W", "_", word) for word in _WORD.findall(devices.strip('"')))
            changed[free] = f"{{ {', '.join(f'{resource}_{device}' for device in own)} }}"
    if (text_of("Requirements") or "").strip().lower() == "false":
        changed[spelt["requirements"]] = _WITHOUT_START
    return changed


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


# ---- slots as jobs see them

ACCEPTS = "t1_slotaccepts"
"""Attribute that an emptied slot gets: its lasting clauses."""
_JOBS_NAMES = """
    JobStatus JobUniverse AccountingGroup Requirements RequestCpus RequestMemory RequestDisk
    RequestGPUs
"""
ASKED_OF_JOBS = tuple(_JOBS_NAMES.split())
"""Attributes of jobs that are asked for in any pool, beside those of `Sample`."""
MOST_SAMPLES = 20
"""Nodes whose START tells which attributes of jobs count."""
MOST_POLICIES = 4

_FIRST = ("Requirements", "WithinResourceLimits", "MachineResources")
_LITERAL = re.compile(r'-?\d[\d.eE+-]*|"[^"\\]*"|true|false|undefined', re.IGNORECASE)
_NUMBER = re.compile(r"\d{4,}(?:\.\d*)?")
_STEP = 1.03
"""Numbers from 1000 on within about this ratio make no kinds of their own."""
_FUNCTION_NAMES = "time random eval currenttime daytime formattime abstime usermap userhome"
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
"""Functions of the moment; the last two read files of the machine that they are evaluated on."""
_MOMENTARY_NAMES = """
    clockmin clockday mycurrenttime lastheardfrom updatesequencenumber state activity
    enteredcurrentstate enteredcurrentactivity draining drainreason offline numdynamicslots jobstart
    currentrank remoteuser remoteowner numclaims loadavg condorloadavg totalloadavg
    totalcondorloadavg keyboardidle consoleidle cpubusy cpubusytime cpuisbusy virtualmemory
    totalvirtualmemory isowner mc_grace availablegpus
"""
_MOMENTARY = _FUNCTIONS.union(_MOMENTARY_NAMES.split())
_PREFIXES = """
    child t1_ recent monitorself remote preempting totaltime totaljob totalclaim retirementtime
"""
_MOMENTARY_PREFIXES = tuple(_PREFIXES.split())
_POWER = "t1_wn_hs06"
_OF_JOBS = re.compile(
    r"_condor_\w+|_cp_\w+|request\w+|job\w+|want\w+|x509\w+|acctgroup\w*|accountinggroup|owner|user"
    r"|niceuser"
)
"""Attributes that START may mean of the job without TARGET.

Any other that the slot lacks it may lack for a moment.
"""


def is_momentary(word: str) -> bool:
    """Tells if an attribute or a function, in lower case, may have another value in a minute."""
    return word in _MOMENTARY or (word.startswith(_MOMENTARY_PREFIXES) and word != _POWER)


class Policy(NamedTuple):
    """Expressions that many slots have alike, so that the collector need not send them for each."""

    constraint: str
    """True of the slots that have them."""
    expressions: tuple[tuple[str, str], ...]
    """Name in lower case -> text, without momentary ones."""
    sees: tuple[str, ...]
    """Attributes that their lasting clauses look at, and booleans: others have clauses there."""


class Sample(NamedTuple):
    """Attributes that matter in a pool, by some of its nodes."""

    words: tuple[str, ...] = ()
    """Attributes of jobs, in lower case, that START looks at; others tell no jobs apart."""
    resources: tuple[str, ...] = ()
    """MachineResources."""
    policies: tuple[Policy, ...] = ()
    """Different ones, at most `MOST_POLICIES`."""


def sample_of(collector: Any, machines: Collection[str]) -> Sample:
    """Sample of ``machines``, from a collector of the bindings."""
    if not machines:
        return Sample()
    chosen = sorted(machines)[:: max(1, len(machines) // MOST_SAMPLES)][:MOST_SAMPLES]
    of_these = " || ".join(f'Machine == "{machine}"' for machine in chosen)
    words: set[str] = set()
    resources: dict[str, None] = {}
    policies: dict[str, Policy] = {}
    for ad in slots_of(collector, of_these, _FIRST):
        row = row_of(ad)
        resources.update(dict.fromkeys(re.findall(r"\w+", row.get("machineresources", ""))))
        expressions, names = _apart(row)
        lasting = _lasting(expressions, names)
        words |= lasting.of_jobs
        own = tuple(pair for pair in expressions if not is_momentary(pair[0]))
        constraint = " && ".join(
            f"unparse({name}) =?= {quoted(value_of(expression(f'unparse({name})'), ad))}"
            for name, _ in own
        )
        if len(policies) < MOST_POLICIES:
            booleans = {name for name, text in row.items() if text.lower() in ("true", "false")}
            sees = tuple(sorted(lasting.of_slot | booleans))
            policies.setdefault(constraint, Policy(constraint, own, sees))
    return Sample(tuple(sorted(words)), tuple(resources), tuple(policies.values()))


def rows_of(look: Look, sample: Sample, words: Iterable[str]) -> Iterator[dict[str, str]]:
    """Each slot with all that its Requirements look at, and ``words``; little is sent twice."""
    common = [*(f"TotalSlot{resource}" for resource in sample.resources), *words]
    others = ["true"]
    for policy in sample.policies:
        expressions = dict(policy.expressions)
        seen = [name for name in policy.sees if name not in expressions]
        for ad in look(["MachineResources", *common, *seen], policy.constraint):
            yield {**expressions, **row_of(ad)}
        others.append(f"({policy.constraint}) =!= true")
    for ad in look([*_FIRST, *common], " && ".join(others)):
        yield row_of(ad)


def row_of(ad: Any) -> dict[str, str]:
    """Attributes of an ad of the bindings, or of its text."""
    text = ad if isinstance(ad, str) else ad.printOld()
    lines = (line.partition(" = ") for line in text.split("\n"))
    return {name.lower(): value for name, sign, value in lines if sign}


def kinds(rows: Iterable[Row]) -> list[dict[str, str]]:
    """Kinds of rows, each with the largest numbers that any of the kind has."""
    largest: dict[frozenset[tuple[str, str]], dict[str, str]] = {}
    for row in rows:
        key = frozenset((name, stepped(name, text)) for name, text in row.items())
        most = largest.setdefault(key, dict(row))
        for name, text in row.items():
            if text != most[name] and float(text) > float(most[name]):
                most[name] = text
    return list(largest.values())


@lru_cache(maxsize=100_000)
def stepped(name: str, text: str) -> str:
    """``text``, or the step of a large number; disks differ from minute to minute, so are one."""
    if not _NUMBER.fullmatch(text):
        return text
    return "~" if "disk" in name else f"~{floor(log(float(text), _STEP))}"


def asking(row: Row, of_jobs: frozenset[str]) -> dict[str, str]:
    """`ACCEPTS` of a slot, and what its lasting clauses see of it when nothing runs there.

    ``of_jobs`` are the attributes that jobs are asked for, in lower case.
    """
    empty_row = {name.lower(): text for name, text in emptied(row).items()}
    lasting = _lasting(*_apart(empty_row), unsure(row), of_jobs)
    names = (*lasting.of_slot, *_resources(row))
    return {
        **{name: empty_row[name] for name in names if name in empty_row},
        ACCEPTS: lasting.text,
    }


def unsure(row: Row) -> frozenset[str]:
    """Resources, in lower case, of which a slot does not tell how much it has in all."""
    return frozenset(name for name in _resources(row) if f"totalslot{name}" not in row)


def _resources(row: Row) -> list[str]:
    return re.findall(r"\w+", row.get("machineresources", _RESOURCES).lower())


def _apart(row: Row) -> tuple[tuple[tuple[str, str], ...], frozenset[str]]:
    """Attributes that are no literals, and the names of all."""
    expressions = ((name, text) for name, text in row.items() if not _LITERAL.fullmatch(text))
    return tuple(sorted(expressions)), frozenset(row)


class _Lasting(NamedTuple):
    text: str
    """Conjunction of the clauses."""
    of_slot: frozenset[str]
    """Attributes of the slot that they look at."""
    of_jobs: frozenset[str]


@lru_cache(maxsize=1000)
def _lasting(
    expressions: tuple[tuple[str, str], ...],
    names: frozenset[str],
    unsure: frozenset[str] = frozenset(),
    keys: Optional[frozenset[str]] = None,
) -> _Lasting:
    """Clauses of a slot's Requirements that ask something of jobs, and last.

    A clause that looks at an attribute that the slot lacks is left out: the slot may lack it for a
    moment, or it is an attribute of jobs. So is a clause on an attribute of jobs that these were
    not asked for, by ``keys`` (None: any are).
    """
    texts = {**dict.fromkeys(names, ""), **dict(expressions)}
    kept, of_slot, of_jobs = [], set(), set()
    for clause in clauses(
        texts.get("requirements") or "true", lambda name: texts.get(name.lower()) or None
    ):
        own, others, words = _seen(clause.text, texts)
        momentary = any(is_momentary(name) or name in unsure for name in own)
        sites = code_of(clause) in ("site-start", "slot-requirements")
        if sites and others and not momentary and _FUNCTIONS.isdisjoint(words):
            of_slot |= own
            of_jobs |= others
            if names.issuperset(own) and (keys is None or keys.issuperset(others)):
                kept.append(clause.text)
    text = " && ".join(f"({clause})" for clause in kept)
    return _Lasting(text or "true", frozenset(of_slot), frozenset(of_jobs))


def _seen(written: str, texts: Row) -> tuple[set[str], set[str], set[str]]:
    """Attributes that an expression looks at, directly or not: own, others'; and all its words."""
    own: set[str] = set()
    others: set[str] = set()
    words: set[str] = set()
    waiting = [written]
    while waiting:
        text = waiting.pop()
        words |= words_of_text(text)
        for reference in references(text):
            name = reference.name.lower()
            of_slot = reference.scope == MY or name in texts or not _OF_JOBS.fullmatch(name)
            if reference.scope == TARGET or not of_slot:
                others.add(name)
            elif name not in own:
                own.add(name)
                waiting.append(texts.get(name, ""))
    return own, others, words
