"""Findings about knobs that no daemon of the checked machine reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sharectl.check.findings import Finding, Level, some
from sharectl.condor.configuration import Configuration
from sharectl.condor.knob_readers import DAEMONS, Unread, unread


def unread_knobs(
    finding: Callable[..., Finding], configuration: Configuration, is_meant: Callable[[str], Any]
) -> Iterator[Finding]:
    """A finding for each kind of daemons that is missing.

    Configurations that all machines share have knobs of other daemons: only for those that
    ``is_meant`` names, and those that no machine reads, it is more than advice.
    """
    rows: dict[tuple[Level, tuple[str, ...], bool], list[Unread]] = {}
    for knob in unread(configuration):
        is_fault = not knob.is_elsewhere or is_meant(knob.part.name)
        level = Level.ERROR if is_fault else Level.ADVICE
        rows.setdefault((level, knob.readers, knob.is_elsewhere), []).append(knob)
    for (level, readers, is_elsewhere), knobs in rows.items():
        names = some([knob.part.name for knob in knobs], 6, ", ")
        kind, daemons = "unread" if is_elsewhere else "wrong daemon", " or ".join(readers)
        place = knobs[0].part.place
        plain_name = knobs[0].part.name.rpartition(".")[2]
        words = {"names": names, "daemons": daemons, "list": DAEMONS}
        yield finding(kind, place, level=level, knob=plain_name, one=readers[0], **words)
