"""Checks of the text of expressions: HTCondor can read them, names are scoped, and somebody publishes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

from sharectl.adapters.condor_files import Definition
from sharectl.adapters.snippet_subject import EVALUATED_LISTS, EXPRESSIONS, Finding, Subject
from sharectl.core.machine_attributes import JOB_ATTRIBUTES, is_htcondors
from sharectl.core.references import MY, TARGET, UNSCOPED, Reference, references
from sharectl.core.start_clauses import is_balanced
from sharectl.core.trials import ACTUATIONS, LATCHES, SLOT_ATTRIBUTES, SUMMED

_EFFECTS = (
    ("START", "every node that gets it refuses every job"),
    ("START_EXPR", "a draining node refuses every job"),
    ("CLAIM_WORKLIFE", "claims never end by their age"),
)

_SLOTS_OWN = {
    SUMMED,
    *(name for way in ACTUATIONS for name in SLOT_ATTRIBUTES[way]),
    *(f"{latch}{end}" for way in ACTUATIONS for latch in LATCHES[way] for end in ("Value", "Time")),
}
_SENSORS = {"t1_overheat"}
"""Attributes that a site may measure; undefined where it does not."""


def unreadable(subject: Subject) -> Iterator[Finding]:
    """Expressions that HTCondor's parser refuses."""
    for macro in subject.expressions:
        if macro not in subject.readable:
            culprit = _unreadable_part(subject, macro)
            text = subject.configuration.text(culprit)
            yield Finding(
                "expression",
                subject.configuration.place(culprit),
                f"HTCondor cannot read {culprit} = {_shortened(text)}, and so {_effect(macro)}",
                "look for a missing bracket, quote or operator, or for a $(MACRO) that is empty",
            )


def unbalanced(subject: Subject) -> Iterator[Finding]:
    """Brackets that one file leaves open, or closes for another: together they may be an expression, and a wrong one."""
    parts = dict.fromkeys(
        part
        for macro in subject.readable
        if EXPRESSIONS.fullmatch(macro.upper())
        for part in subject.configuration.made_of(macro)
        if EXPRESSIONS.fullmatch(part.name.upper())
    )
    for part in parts:
        if subject.configuration.is_judged(part) and not is_balanced(part.text):
            yield Finding(
                "expression",
                part.place,
                f"the brackets of {part.name} = {_shortened(part.text)} do not match: it is no expression by itself, "
                "and together with sharectl's clauses it may let every job in",
                "close each bracket that it opens, and no other",
            )


def unscoped(subject: Subject) -> Iterator[Finding]:
    """Names without ``MY.`` or ``TARGET.``."""
    for reference, definition in _asked_for(subject):
        if reference.scope == UNSCOPED:
            yield Finding(
                "scope",
                definition.place,
                f"{reference.name} is not scoped: where the node does not publish it, HTCondor takes it from the job, "
                "and there its user can write what he likes",
                f"write {_scoped(subject, reference.name)}",
            )


def wrong_side(subject: Subject) -> Iterator[Finding]:
    """Attributes of the node that are asked of the job."""
    for reference, definition in _asked_for(subject):
        if reference.scope == TARGET and reference.name.lower() in subject.published:
            yield Finding(
                "side",
                definition.place,
                f"TARGET.{reference.name} asks the job for an attribute of the node: a user can write it into his job",
                f"write MY.{reference.name}",
            )


def unpublished(subject: Subject) -> Iterator[Finding]:
    """Attributes of the node that nobody publishes, but for those that `snippet_slot` looks after."""
    for reference, definition in _asked_for(subject):
        name = reference.name
        known = is_htcondors(name) or name.lower() in subject.published or name in _SLOTS_OWN | _SENSORS
        if reference.scope == MY and not known:
            yield Finding(
                "published",
                definition.place,
                f"nobody is known to publish MY.{name}, so it is undefined on every node",
                f"mend the name, add it to STARTD_ATTRS, or say --published {name}=VALUE if a STARTD_CRON job of "
                "the site publishes it",
            )


def not_set(subject: Subject) -> Iterator[Finding]:
    """Attributes that are to be published, but have no value."""
    configuration = subject.configuration
    set_somewhere = [definition.name.lower() for definition in configuration.definitions]
    for macro in EVALUATED_LISTS:
        for name in configuration.words(macro):
            if any(known == name.lower() or known.endswith("_" + name.lower()) for known in set_somewhere):
                continue
            if configuration.assignments(macro) and not is_htcondors(name):
                yield Finding(
                    "published",
                    configuration.place(macro),
                    f"{macro} lists {name}, and no file sets it: nodes publish nothing of that name",
                    f"write {name} = VALUE, or take it off the list",
                )


def _asked_for(subject: Subject) -> Iterator[tuple[Reference, Definition]]:
    """Each attribute asked for, with the assignment that asks for it, each pair once; only judged ones."""
    seen: set[tuple[str, str, str]] = set()
    for macro, text in subject.readable.items():
        parts = subject.configuration.made_of(macro)
        for reference in references(text):
            definition = _written_in(parts, reference)
            if definition is None or not subject.configuration.is_judged(definition):
                continue
            key = (reference.scope, reference.name.lower(), definition.place)
            if key not in seen:
                seen.add(key)
                yield reference, definition


def _written_in(parts: tuple[Definition, ...], reference: Reference) -> Optional[Definition]:
    """The part in whose text the reference is written, with its scope or without."""
    scope = rf"{reference.scope}\s*\.\s*" if reference.scope else r"(?<![\w.])(?<!\$\()"
    written = re.compile(rf"{scope}'?{re.escape(reference.name)}\b(?!\s*\()", re.IGNORECASE)
    return next((part for part in parts if written.search(_without_strings(part.text))), None)


def _without_strings(text: str) -> str:
    return re.sub(r'"(?:\\"|[^"])*"', '""', text)


def _scoped(subject: Subject, name: str) -> str:
    if name.lower() in subject.published or is_htcondors(name):
        return f"MY.{name}"
    if name.lower() in JOB_ATTRIBUTES:
        return f"TARGET.{name}"
    return f"MY.{name} for the node's, TARGET.{name} for the job's"


def _unreadable_part(subject: Subject, macro: str) -> str:
    """The macro itself, or the innermost one within it that HTCondor cannot read."""
    parts = [part for part in subject.configuration.made_of(macro) if subject.configuration.text(part.name)]
    texts = subject.htcondor.canonical([subject.configuration.text(part.name) for part in parts])
    broken = {part.name.lower(): part for part, text in zip(parts, texts) if text is None}
    for name, part in broken.items():
        if not (part.references - {name}) & broken.keys():
            return part.name
    return macro


def _effect(macro: str) -> str:
    return next((effect for end, effect in _EFFECTS if macro.upper().endswith(end)), "it is not published")


def _shortened(text: str, most: int = 120) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 2] + " …"
