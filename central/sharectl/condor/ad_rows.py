"""Ads as rows of text: what their expressions look at, and slots when nothing runs there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, Callable, Optional

from sharectl.condor.ads import expression
from sharectl.condor.expressions import MY, TARGET, Clause, clauses, references, words_of_text

AdRow = Mapping[str, str]
"""Attributes of an ad, in lower case -> expression."""

LITERAL = re.compile(r'-?\d[\d.eE+-]*|"[^"\\]*"|true|false|undefined', re.IGNORECASE)
FUNCTIONS = frozenset(("random", "eval", "usermap", "userhome"))
"""Functions of the moment; the last two read files of the machine that they are evaluated on."""
_IDLE = {
    "state": '"Unclaimed"',
    "activity": '"Idle"',
    "numdynamicslots": "0",
    **dict.fromkeys(("draining", "mc_grace", "t1_targetactive", "t1_overheat"), "false"),
    **dict.fromkeys(("loadavg", "condorloadavg", "totalloadavg", "totalcondorloadavg"), "0.0"),
}
_RESOURCES = "Cpus Memory Disk"
"""Resources of a slot that names none."""
_WITHOUT_START = "WithinResourceLimits =!= false"
"""Requirements of a slot that is drained, whose ad does not have START."""
_WORD = re.compile(r"[^\s,]+")
_NUMBER = re.compile(r"[\d.]+(?:[eE][+-]?\d{1,2})?")


def row_of(ad: Any) -> dict[str, str]:
    """Attributes of an ad of the bindings, or of its text."""
    text = ad if isinstance(ad, str) else ad.printOld()
    lines = (line.partition(" = ") for line in text.split("\n"))
    return {name.lower(): value for name, sign, value in lines if sign}


def long_of(row: AdRow) -> str:
    """Ad of a row as ``-long`` prints it."""
    return "\n".join(f"{name} = {text}" for name, text in row.items())


def resources_of(row: AdRow) -> list[str]:
    """Resources of a slot, in lower case."""
    return re.findall(r"\w+", row.get("machineresources", _RESOURCES).lower())


def seen_by(
    written: str, texts: AdRow, most_characters: float = inf
) -> tuple[set[str], set[str], set[str]]:
    """Attributes of the ad ``texts``, and of the other ad, that an expression looks at; all words.

    Names without scope that ``texts`` lacks count for the other ad. It ends before it reads more
    than ``most_characters``.
    """
    own: set[str] = set()
    others: set[str] = set()
    words: set[str] = set()
    waiting = [written]
    while waiting:
        text = waiting.pop()
        most_characters -= len(text)
        if most_characters < 0:
            break
        words |= words_of_text(text)
        for reference in references(text):
            name = reference.name.lower()
            absent = reference.scope != MY and name not in texts
            if reference.scope == TARGET or absent:
                others.add(name)
            elif name not in own:
                own.add(name)
                waiting.append(texts.get(name, ""))
    return own, others, words


def names_reached(words: Iterable[str], texts: AdRow) -> set[str]:
    """The words, and those of the attributes in ``texts`` that they name, in turn."""
    reached: set[str] = set()
    waiting = list(words)
    while waiting:
        word = waiting.pop()
        if word not in reached:
            reached.add(word)
            waiting += words_of_text(texts.get(word, ""))
    return reached


def clauses_of(texts: AdRow) -> tuple[Clause, ...]:
    """Clauses of the Requirements of an ad."""
    return clauses(
        texts.get("requirements") or "true", lambda name: texts.get(name.lower()) or None
    )


# ---- slots when nothing runs there


def emptied(slot: Mapping[str, str]) -> dict[str, str]:
    """Ad of the slot when nothing runs there; see `_changes`."""
    spelt = {name.lower(): name for name in slot}
    return {**slot, **_changes(slot, lambda name: slot.get(spelt.get(name.lower(), "")))}


def empty(slot: Any) -> None:
    """Make a ClassAd of the bindings that of the slot when nothing runs there; see `_changes`."""
    texts = _changes(slot, lambda name: str(slot.lookup(name)) if name in slot else None)
    slot.update({name: expression(text) for name, text in texts.items()})


def _changes(names: Iterable[str], text_of: Callable[[str], Optional[str]]) -> dict[str, str]:
    """Attributes that differ when nothing runs on a slot and all its resources are free."""
    changed = {}
    spelt = {name.lower(): name for name in names}
    for lower, name in spelt.items():
        if lower in _IDLE:
            changed[name] = _IDLE[lower]
        elif lower.startswith("child") and (text_of(name) or "").lstrip().startswith("{"):
            changed[name] = "{ }"
    for resource in _WORD.findall((text_of("MachineResources") or _RESOURCES).strip('"')):
        total, devices = text_of(f"TotalSlot{resource}"), text_of(f"Assigned{resource}")
        if total is not None and _NUMBER.fullmatch(total):
            changed[spelt.get(resource.lower(), resource)] = total
        free = spelt.get(f"available{resource.lower()}")
        if devices is not None and free is not None:
            # "GPU-a1,GPU-b2" are attributes { GPUs_GPU_a1, GPUs_GPU_b2 }.
            own = (re.sub(r"\W", "_", word) for word in _WORD.findall(devices.strip('"')))
            changed[free] = f"{{ {', '.join(f'{resource}_{device}' for device in own)} }}"
    if (text_of("Requirements") or "").strip().lower() == "false":
        changed[spelt["requirements"]] = _WITHOUT_START
    return changed
