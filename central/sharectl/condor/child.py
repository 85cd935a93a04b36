"""HTCondor's own library on a configuration, and on ads: a program, run by `condor.library`.

A broken configuration makes the library end the process that loads it, and another one cannot be
loaded later. Each line of standard input is a JSON object:

- ``{"macros": [names], "environment": {…}}``: read the configuration again and expand macros;
- ``{"expressions": […], "slots": […], "jobs": […]}``: evaluate each expression in each slot for
  each job.

Each answer is a line too. It imports nothing of sharectl, so that it runs by its path.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import classad2
import htcondor2

UNREADABLE = getattr(classad2, "ClassAdException", SyntaxError)
"""Exception of the parser; HTCondor 23.9 has no exception of its own."""
_LONE_BACKSLASH = re.compile(r'\\(?!")')


@lru_cache(maxsize=4096)
def expression(text: str) -> Any:
    """Expression as a daemon reads it from its configuration; raises `UNREADABLE`.

    Old ClassAd syntax, in which a backslash escapes nothing but a quote, for a parser of the new.
    """
    return classad2.ExprTree(_LONE_BACKSLASH.sub(r"\\\\", text))


def values(macros: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Macro → its expanded text; without those that are not set, or empty."""
    os.environ.update(environment)
    htcondor2.set_subsystem("STARTD")
    htcondor2.reload_config()
    for name in environment:
        del os.environ[name]
    return {macro: str(htcondor2.param[macro]) for macro in macros if macro in htcondor2.param}


def ad_of(attributes: Mapping[str, str]) -> Any:
    """ClassAd with these expressions; the unreadable ones are left out, as the daemons do."""
    ad = classad2.ClassAd()
    for name, text in attributes.items():
        with suppress(UNREADABLE):
            ad[name] = expression(text)
    return ad


def outcome(value: Any) -> Any:
    """Value for JSON: ``undefined`` and ``error`` as those words."""
    if value is classad2.Value.Undefined:
        return "undefined"
    if value is classad2.Value.Error:
        return "error"
    return value if isinstance(value, (bool, int, float)) else str(value)


def evaluated(question: Mapping[str, Any]) -> dict[str, Any]:
    """Each expression as HTCondor prints it, and its values; null for an unreadable one."""
    slots, jobs = (list(map(ad_of, question[name])) for name in ("slots", "jobs"))
    texts: list[Any] = []
    rows: list[Any] = []
    for text in question["expressions"]:
        texts.append(None)
        rows.append(None)
        with suppress(UNREADABLE):
            tree = expression(text)
            texts[-1] = str(tree)
            rows[-1] = [[outcome(tree.eval(slot, job)) for job in jobs] for slot in slots]
    return {"read": texts, "values": rows}


if __name__ == "__main__":
    for line in sys.stdin:
        question = json.loads(line)
        if "macros" in question:
            answer = {"values": values(question["macros"], question["environment"])}
        else:
            answer = evaluated(question)
        print(json.dumps(answer), flush=True)
