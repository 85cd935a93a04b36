"""HTCondor's own library on a configuration and its expressions: a program of `sharectl.condor.library`.

A broken configuration makes the library end the process that loads it, and another one cannot be
loaded later. Each line of standard input is a JSON object, ``{"macros": [names], "environment":
{…}}``, for which the configuration is read again, or ``{"expressions": […], "slots": […],
"jobs": […]}``; each answer is a line too. It imports nothing of sharectl, so that it runs by its
path.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import classad2
import htcondor2

SUBSYSTEM = "STARTD"

UNREADABLE = getattr(classad2, "ClassAdException", SyntaxError)
"""What the parser raises; HTCondor 23.9 has no exception of its own."""

_LONE_BACKSLASH = re.compile(r'\\(?!")')


@lru_cache(maxsize=4096)
def expression(text: str) -> Any:
    """The expression ``text`` as a daemon reads it from its configuration; `UNREADABLE` if it cannot.

    Old ClassAd syntax, in which a backslash escapes nothing but a quote: the parser here reads the
    new one.
    """
    return classad2.ExprTree(_LONE_BACKSLASH.sub(r"\\\\", text))


def values(macros: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Macro → its expanded text; without those that are not set, or empty.

    ``environment`` is for this once.
    """
    os.environ.update(environment)
    htcondor2.set_subsystem(SUBSYSTEM)
    htcondor2.reload_config()
    for name in environment:
        del os.environ[name]
    return {macro: str(htcondor2.param[macro]) for macro in macros if macro in htcondor2.param}


def canonical(text: str) -> dict[str, str]:
    """``text`` as HTCondor prints it again (key ``text``), or why it cannot be read (key ``problem``)."""
    try:
        return {"text": str(expression(text))}
    except UNREADABLE as error:
        return {"problem": str(error)}


def ad_of(attributes: Mapping[str, str]) -> Any:
    """ClassAd with these expressions; the unreadable ones are left out, as the daemons do."""
    ad = classad2.ClassAd()
    for name, text in attributes.items():
        try:
            ad[name] = expression(text)
        except UNREADABLE:
            continue
    return ad


def outcome(value: Any) -> Any:
    """``value`` as JSON can tell it: ``undefined`` and ``error`` as those words."""
    if value is classad2.Value.Undefined:
        return "undefined"
    if value is classad2.Value.Error:
        return "error"
    return value if isinstance(value, (bool, int, float)) else str(value)


def evaluated(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Each expression read (``read``), and its value in each slot for each job (``values``, null if unreadable)."""
    read = [canonical(text) for text in asked["expressions"]]
    slots = [ad_of(slot) for slot in asked["slots"]]
    jobs = [ad_of(job) for job in asked["jobs"]]
    return {
        "read": read,
        "values": [
            None
            if tree is None
            else [[outcome(tree.eval(slot, job)) for job in jobs] for slot in slots]
            for text, seen in zip(asked["expressions"], read)
            for tree in [None if "problem" in seen else expression(text)]
        ],
    }


def main() -> int:
    """Answer the questions on standard input until it ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "macros" in asked:
            answer: dict[str, Any] = {"values": values(asked["macros"], asked["environment"])}
        else:
            answer = evaluated(asked)
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
