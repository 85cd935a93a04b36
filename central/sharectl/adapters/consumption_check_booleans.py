"""Check of knobs that are to be True or False: most texts that mean that elsewhere are no booleans to HTCondor.

What daemons do was read in param_boolean (src/condor_utils/condor_config.cpp), SlotType::type_param_boolean and countTypes
(src/condor_startd.V6), and is the same in 23.9.6 and 25.14.1, but for SLOT_TYPE_0_PARTITIONABLE. It was seen on both of startd
and schedd, but not with HIDDEN, with type 0, and with the negotiator's knobs.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from sharectl.adapters.consumption_check_settings import READERS, written_booleans
from sharectl.adapters.consumption_check_subject import POLICY, Node, Subject, typed
from sharectl.adapters.snippet_subject import Finding

_MEANT = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "enabled"), "True"),
    **dict.fromkeys(("false", "f", "no", "n", "off", "disabled", "none"), "False"),
}
_ALIKE = 0.6
_MOST_CHARACTERS = 60
_AGAIN = "ends as soon as it reads that, again and again"


def no_boolean(subject: Subject) -> Iterator[Finding]:
    """Texts of boolean knobs that are none: a daemon ends on some of them, and others it takes for False without a word."""
    for node in subject.nodes:
        for name, text in written_booleans(node.configuration).items():
            if node.booleans.get(text) is not None:
                continue
            readers = _readers(name)
            there = _that_may_run(node, readers)
            shown = " ".join(text.split())[:_MOST_CHARACTERS]
            yield Finding(
                "knobs",
                node.configuration.place(name),
                f"{name} = {shown} is no boolean: {_happens(node, name, there or readers)}"
                + ("" if there else f" (by DAEMON_LIST there is no {' or '.join(readers)} here)"),
                f"write {name} = {meant}" if (meant := _meant(shown)) else f"write {name} = True, or False",
                advice=not there,
            )


def _readers(name: str) -> tuple[str, ...]:
    daemon, _, knob = name.upper().rpartition(".")
    if typed(name):
        return ("STARTD",)
    return (daemon,) if daemon in READERS[knob] else READERS[knob]


def _that_may_run(node: Node, daemons: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the daemons that run with that configuration; all if that is not known."""
    is_known = node.input.is_whole or node.configuration.assignments("DAEMON_LIST")
    return tuple(filter(node.runs, daemons)) if is_known else daemons


def _happens(node: Node, name: str, readers: tuple[str, ...]) -> str:
    number, knob = typed(name) or (None, "")
    if number is None:
        return f"the {' or '.join(daemon.lower() for daemon in readers)} {_AGAIN}"
    if knob.upper() == "BACKFILL":
        return f"the startd {_AGAIN}"
    if knob.upper() == POLICY:
        general = "True" if node.is_on(POLICY) else "False"
        return f"the startd passes over it without a word, as if it were {POLICY} = {general}"
    if knob.upper() == "PARTITIONABLE":
        ends = "" if number else f"; since HTCondor 25 it {_AGAIN}"
        return f"the startd takes it for False without a word, and the slots are static{ends}"
    return "the startd takes it for False without a word"


def _meant(text: str) -> str:
    """What a text is probably to say; empty if that cannot be told."""
    close = difflib.get_close_matches(text.lower(), _MEANT, 1, _ALIKE)
    return _MEANT[close[0]] if close else ""
