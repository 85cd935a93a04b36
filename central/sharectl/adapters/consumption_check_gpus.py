"""Check of slot types that want GPUs, where none may be found."""

from __future__ import annotations

from collections.abc import Iterator

from sharectl.adapters.consumption_check_settings import DETECT_GPUS, GPUS
from sharectl.adapters.consumption_check_subject import Node, Subject
from sharectl.adapters.snippet_subject import Finding
from sharectl.core.slot_shares import amount_of

_ENDS = "the startd of 23.9.6 ends as it starts (Unknown attribute), again and again"


def counted_on(subject: Subject) -> Iterator[Finding]:
    """Slot types with GPUs on machines where nothing declares them, and the startd does not look for them or may not.

    Seen on 23.9.6. Whether a startd that looks for GPUs finds some is not known from its configuration.
    """
    for node in subject.nodes:
        is_told = node.input.is_whole or bool(node.configuration.assignments(DETECT_GPUS))
        looks_for = bool(node.configuration.text(DETECT_GPUS).strip())
        is_said = bool(subject.size.get(GPUS.lower())) and not is_told
        if _declared(node) or is_said or (is_told and looks_for):
            continue
        for slot in node.slot_types:
            # A part of the GPUs of a machine may be a part of none.
            wanted = amount_of(slot.shares, GPUS, 0.0)
            if not wanted:
                continue
            knob = f"SLOT_TYPE_{slot.number}"
            yield Finding(
                "slot types",
                node.configuration.place(knob),
                f"{knob}: gpus = {wanted:g}, and "
                + (
                    f"the machine has no gpus: nothing declares them and {DETECT_GPUS} is empty: {_ENDS}, and that of 25.14.1 "
                    "makes no slot of the type"
                    if is_told
                    else f"nothing here declares GPUs: on a machine where they are not detected either, {_ENDS}"
                ),
                "write use feature:GPUs, or take it out"
                if is_told
                else f"write use feature:GPUs, and see condor_config_val {DETECT_GPUS} on the machine",
                advice=not is_told,
            )


def _declared(node: Node) -> bool:
    """Whether a file declares GPUs, or has the startd run a script that finds them."""
    return any(name.lower() == GPUS.lower() and chosen.text for name, chosen in node.resources.items())
