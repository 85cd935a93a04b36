"""What sharectl takes for a boolean is what HTCondor's own library makes of such a knob."""

from __future__ import annotations

import pytest

from sharectl.condor.configuration import ConfigSource, booleans
from sharectl.condor.library import CondorProcess

TEXTS = {
    **dict.fromkeys(
        ("True", "tRUE", "1", "true\t", "10", "-1", "1.5", "!false", "1 == 1", "true || x"), True
    ),
    **dict.fromkeys(("False", "fAlSe", "0", "0.0", "true && false", "2 - 2"), False),
    **dict.fromkeys(
        ("Yes", "y", "t", "on", "No", "f", "Flase", "trueish", "Tru e", '"true"', "{1}", ""), None
    ),
    **dict.fromkeys(("undefined", "error", "1/0", "not true"), None),
}


def test_a_text_is_a_boolean_or_not(htcondor: CondorProcess) -> None:
    assert booleans(TEXTS, htcondor) == TEXTS


@pytest.mark.parametrize("text", [text for text in TEXTS if text])
def test_htcondor_takes_it_for_the_same_or_for_neither(text: str, htcondor: CondorProcess) -> None:
    """The library goes on where a daemon ends: by the beginning of the text, or the default."""
    neither = ["True", "True"] if text in ("trueish", "1/0") else ["True", "False"]
    expected = neither if TEXTS[text] is None else [str(TEXTS[text])] * 2
    assert asked(htcondor, text) == expected


def asked(htcondor: CondorProcess, text: str) -> list[str]:
    """What HTCondor makes of it, for a knob that is True by default and for one that is False."""
    knobs = ("NEGOTIATOR_USE_SLOT_WEIGHTS", "CONSUMPTION_POLICY")
    written = ConfigSource().root_file() + "".join(f"{knob} = {text}\n" for knob in knobs)
    found = htcondor.values(knobs, written, {})
    return [found[knob] for knob in knobs]
