"""Ads as rows of text: what their expressions look at, and slots when nothing runs there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

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


def emptied(slot: AdRow) -> dict[str, str]:
    """Row of the slot when nothing runs there; see `_changes`."""
    return {**slot, **_changes(slot)}


def empty(slot: Any) -> None:
    """Make a ClassAd of the bindings that of the slot when nothing runs there; see `_changes`."""
    slot.update({name: expression(text) for name, text in _changes(row_of(slot)).items()})


def _changes(slot: AdRow) -> dict[str, str]:
    """Attributes that differ when nothing runs on a slot and all its resources are free."""
    changed = {name: text for name, text in _IDLE.items() if name in slot}
    lists = (name for name, text in slot.items() if text.startswith("{"))
    changed.update({name: "{ }" for name in lists if name.startswith("child")})
    for resource in _WORD.findall((slot.get("machineresources") or _RESOURCES).strip('"')):
        name = resource.lower()
        total, devices = slot.get(f"totalslot{name}", ""), slot.get(f"assigned{name}")
        if _NUMBER.fullmatch(total):
            changed[name] = total
        if devices is not None and f"available{name}" in slot:
            # "GPU-a1,GPU-b2" are attributes { GPUs_GPU_a1, GPUs_GPU_b2 }.
            own = (re.sub(r"\W", "_", word) for word in _WORD.findall(devices.strip('"')))
            listed = ", ".join(f"{resource}_{device}" for device in own)
            changed[f"available{name}"] = f"{{ {listed} }}"
    if slot.get("requirements", "").lower() == "false":
        changed["requirements"] = _WITHOUT_START
    return changed
