"""Checks of knobs: those that do not exist but look like one of the family, and combinations that HTCondor warns of.

Each combination names where it is said or what does it in HTCondor's source, version 25.14; both were the same in 23.9.6.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Callable, Optional

from sharectl.adapters.condor_config import Configuration, Source, expand
from sharectl.adapters.condor_files import Definition
from sharectl.adapters.consumption_check_claims import takes_less_than_requested
from sharectl.adapters.consumption_check_settings import GPUS
from sharectl.adapters.consumption_check_subject import (
    ATTRIBUTE_LISTS,
    LEFTOVERS,
    MACROS,
    NEGOTIATORS,
    NUM_CLAIMS,
    POLICY,
    STANDARD_ASSETS,
    WEIGHT,
    Node,
    Subject,
    typed,
)
from sharectl.adapters.snippet_subject import Finding

_FAMILY = re.compile(
    r"con?su?mp?|slots?_?types?_|slot_?wei|num_?claim|machine_?res|claim_?part", re.IGNORECASE
)
"""What a knob of consumption policies begins with, however it is misspelt; after SLOT_TYPE_<N>_ too."""
_NUMBERED = re.compile(r"MACHINE_RESOURCE_|NUM_SLOTS_TYPE_\d|SLOT_TYPE_\d", re.IGNORECASE)
_CONSUMPTION = "CONSUMPTION_"
_ALIKE, _VERY_ALIKE = 0.75, 0.88
"""Of 1: how alike a misspelt knob is to the one that was meant; more is asked of names that begin otherwise."""
_ASSET_ALIKE = 0.66
"""Of the asset alone, where the rest of the knob is right."""

_OF_TYPES = (
    POLICY,
    WEIGHT,
    NUM_CLAIMS,
    "PARTITIONABLE",
    "NAME_PREFIX",
    "BACKFILL",
    "HIDDEN",
    "START",
    "RANK",
    "CLAIM_WORKLIFE",
)
"""Knobs that a slot type may have of its own; any attribute and policy expression may be one, so others pass."""

_THREADS = "NEGOTIATOR_NUM_THREADS"
_CACHING = "NEGOTIATOR_MATCHLIST_CACHING"
_RECYCLING = "CLAIM_RECYCLING_CONSIDER_LIMITS"
_RANKS = ("NEGOTIATOR_PRE_JOB_RANK", "NEGOTIATOR_POST_JOB_RANK")

Applies = Callable[[Subject, Node], bool]


@dataclass(frozen=True)
class _Combination:
    """A knob that does not go with consumption policies."""

    knob: str
    applies: Applies
    problem: str
    remedy: str
    advice: bool = False
    set_by: tuple[str, ...] = ()
    """Knobs that make it matter: the place of a default is theirs."""

    def place(self, configuration: Configuration) -> str:
        """Where it comes from."""
        places = [
            configuration.place(knob) for knob in (self.knob, *self.set_by) if configuration.assignments(knob)
        ]
        return places[0] if places else self.knob


def _on(knob: str) -> Applies:
    return lambda _, node: node.is_on(knob)


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\s*\d{1,9}\s*", text) else 0


def _off(knob: str) -> Applies:
    return lambda _, node: node.boolean(knob) is False


_COMBINATIONS = (
    # Accountant::GetSlotWeight is 1 for each slot then, but cp_deduct_assets asks for SlotWeight all the same.
    _Combination(
        "NEGOTIATOR_USE_SLOT_WEIGHTS",
        _off("NEGOTIATOR_USE_SLOT_WEIGHTS"),
        "quotas and shares count each partitionable slot as 1, but a match on one with a consumption policy still costs "
        "the change of its SLOT_WEIGHT: quotas in two units",
        "write NEGOTIATOR_USE_SLOT_WEIGHTS = True",
    ),
    # negotiate() in matchmaker.cpp: jobsInSlot() jobs are passed over, since the schedd is expected to split the slot.
    _Combination(
        "NEGOTIATOR_DEPTH_FIRST",
        _on("NEGOTIATOR_DEPTH_FIRST"),
        "after a match the negotiator passes over as many jobs as the rest of the slot could take, since it expects the "
        "access point to start them from leftovers: with a consumption policy nobody starts them in this cycle",
        "write NEGOTIATOR_DEPTH_FIRST = False; what fills slots one after the other with a consumption policy is "
        "NEGOTIATOR_MATCHLIST_CACHING = False",
    ),
    # negotiate() keeps the ranks of a list of equal jobs' matches; cp_deduct_assets() does not bring them up to date.
    _Combination(
        _CACHING,
        lambda _, node: node.is_on(_CACHING) and any(map(node.configuration.assignments, _RANKS)),
        "slots are ranked once for a list of equal jobs, and not again after its matches: with a consumption policy a rank by "
        "free cores fills slots in the opposite order",
        f"write {_CACHING} = False if the order matters; negotiation takes longer then",
        advice=True,
        set_by=_RANKS,
    ),
    # The schedd asks it of leftovers too, before it starts a job there.
    _Combination(
        _RECYCLING,
        lambda _, node: node.is_on(LEFTOVERS) and node.boolean(_RECYCLING) is False,
        "beside leftovers, access points start jobs whatever their concurrency limits say: 6 ran where 3 were allowed and matched",
        f"write {_RECYCLING} = True, and {LEFTOVERS} = False on the access points",
    ),
    # matchmakingAlgorithm(): pslotMultiMatch() may overrule cp_sufficient_assets(), and all is deducted below zero.
    _Combination(
        "ALLOW_PSLOT_PREEMPTION",
        lambda _, node: node.is_on("ALLOW_PSLOT_PREEMPTION") and node.is_on("NEGOTIATOR_CONSIDER_PREEMPTION"),
        "a job with WantPslotPreemption is matched though the policy says that assets do not suffice, and the negotiator "
        "deducts them below zero",
        "write ALLOW_PSLOT_PREEMPTION = False",
    ),
    # scheduler_handleMatch() asks for the whole slot, request_claim(): "Refusing claim of pslot with consumption policy".
    _Combination(
        "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS",
        _on("ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS"),
        "access points that have it too claim partitionable slots as a whole, which the startd refuses where there is a "
        "consumption policy: jobs are matched in every cycle, and none starts",
        "write ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = False, on the nodes or on the access points",
    ),
    # matchmakingAlgorithm(): ParallelIsAMatch() comes before cp_override_requested(), IsAMatch() after it.
    _Combination(
        _THREADS,
        lambda subject, node: (
            _number(node.configuration.text(_THREADS)) > 1
            and any(
                its is node and takes_less_than_requested(subject, node, slot) for its, slot in subject.sound
            )
        ),
        "Requirements are then asked of what a job requests, not of what the policy takes of it, which is less: jobs that fit by "
        "the policy stay idle (2 of 4 ran), unless the slot still has all that they request",
        f"write {_THREADS} = 1, or let the policy take what is requested at least",
    ),
    # obtainAdsFromCollector(): the slot's own weight is replaced.
    _Combination(
        "FORCE_NEGOTIATOR_SLOT_WEIGHT",
        lambda subject, node: (
            node.is_on("FORCE_NEGOTIATOR_SLOT_WEIGHT")
            and any(
                slot.weight.text.strip().lower()
                != (node.configuration.text(WEIGHT).strip() or "Cpus").lower()
                for _, slot in subject.slots
            )
        ),
        "the negotiator replaces the weight of every slot by its own SLOT_WEIGHT: matches cost something else than the "
        "slot's says",
        "write FORCE_NEGOTIATOR_SLOT_WEIGHT = False, or the same SLOT_WEIGHT everywhere",
    ),
)
"""The manual warns of all at once: "experimental … may not work well in combination with other HTCondor features"
(EP policy configuration, section condor_negotiator-Side Resource Consumption Policies). Nothing there or in the source speaks
against condor_defrag, draining, or prefetched requests, so nothing is said of them. What NEGOTIATOR_NUM_THREADS does with START,
`consumption_check_claims.asked_twice` tells."""


def unknown(subject: Subject) -> Iterator[Finding]:
    """Knobs that nothing reads, and that look like one of consumption policies."""
    for node in subject.nodes:
        configuration = node.configuration
        judged = [found for found in configuration.definitions if configuration.is_judged(found)]
        if not judged:
            continue
        used = _used(configuration)
        odd = [(found, said) for found in judged if (said := _unknown(node, found.name, used)) is not None]
        real = expand(Source(), [found.name for found, _ in odd], subject.htcondor) if odd else {}
        for definition, said in odd:
            if definition.name not in real:
                yield Finding("knobs", definition.place, *said)


def combinations(subject: Subject) -> Iterator[Finding]:
    """Knobs that do not go with consumption policies."""
    if not subject.slots:
        return
    for node in subject.nodes:
        for found in _COMBINATIONS:
            if found.applies(subject, node):
                text = node.configuration.text(found.knob).strip()
                yield Finding(
                    "combinations",
                    found.place(node.configuration),
                    f"{found.knob} = {text}: {found.problem}",
                    found.remedy,
                    advice=found.advice,
                )


def resource_limits(subject: Subject) -> Iterator[Finding]:
    """Custom resources that MACHINE_RESOURCE_NAMES leaves out ("will have no effect", says the startd)."""
    for node in subject.nodes:
        allowed = {word.lower() for word in node.configuration.words("MACHINE_RESOURCE_NAMES")}
        for definition in node.configuration.definitions if allowed else ():
            name = definition.name[len("MACHINE_RESOURCE_") :]
            name = name[len("INVENTORY_") :] if name.upper().startswith("INVENTORY_") else name
            if definition.name.upper().startswith("MACHINE_RESOURCE_") and name.lower() not in {
                *allowed,
                "names",
            }:
                yield Finding(
                    "knobs",
                    definition.place,
                    f"{definition.name} has no effect: MACHINE_RESOURCE_NAMES does not have {name}",
                    f"write MACHINE_RESOURCE_NAMES = $(MACHINE_RESOURCE_NAMES) {name}, or take that knob out",
                )


def _unknown(node: Node, name: str, used: frozenset[str]) -> Optional[tuple[str, str]]:
    """What is wrong with a name, and what to write; None if it is a knob, or nothing of ours."""
    # A name may have a daemon's before it.
    number, rest = typed(name) or (None, name.rpartition(".")[2])
    known = _known(node, is_typed=number is not None)
    is_known = rest.lower() in {knob.lower() for knob in (*known, *MACROS)}
    if (
        is_known
        or not rest
        or {name.lower(), rest.lower()} & used
        or (number is None and _NUMBERED.match(name))
    ):
        return None
    if meant := _meant(rest.upper(), [knob.upper() for knob in known]):
        prefix = name[: len(name) - len(rest)]
        return f"HTCondor has no knob {name}, so nothing reads it", f"write {prefix}{meant}"
    if not rest.upper().startswith(_CONSUMPTION):
        return None
    assets = sorted({asset for slot in node.slot_types for asset in slot.policies})
    return (
        f"{name}: the node has no asset of that name (it has {', '.join(assets)}), so nothing reads it",
        f"declare it, MACHINE_RESOURCE_{rest[len(_CONSUMPTION) :]} = AMOUNT, or take the line out",
    )


def _meant(written: str, known: Sequence[str]) -> Optional[str]:
    """The knob that is most like ``written``, the first of those that are equally so; None if none is like it."""
    start, least = "", _ALIKE if _FAMILY.match(written) else _VERY_ALIKE
    if written.startswith(_CONSUMPTION):
        # What all of them begin with would make any two assets alike.
        start, least = _CONSUMPTION, _ASSET_ALIKE
    alike = [(_likeness(written, knob, len(start)), knob) for knob in known if knob.startswith(start)]
    close = [found for found in alike if found[0] >= least]
    return max(close, key=lambda found: found[0])[1] if close else None


def _likeness(written: str, knob: str, after: int) -> float:
    return difflib.SequenceMatcher(None, knob[after:], written[after:]).ratio()


def _known(node: Node, *, is_typed: bool) -> tuple[str, ...]:
    named = node.configuration.words("MACHINE_RESOURCE_NAMES")
    assets = dict.fromkeys((*STANDARD_ASSETS, GPUS, *node.resources, *named))
    policies = [f"{_CONSUMPTION}{asset}" for asset in assets]
    if is_typed:
        return (*_OF_TYPES, *policies)
    return (POLICY, WEIGHT, NUM_CLAIMS, LEFTOVERS, *NEGOTIATORS, *policies)


def _used(configuration: Configuration) -> frozenset[str]:
    """Names that another macro refers to, or that become attributes, lower case: they mean something to the site."""
    used = {reference for definition in configuration.definitions for reference in definition.references}
    used |= {word.lower() for macro in ATTRIBUTE_LISTS for word in configuration.words(macro)}
    used |= {
        definition.name.lower()
        for definition in configuration.definitions
        if any(_fits(pattern, definition) for pattern in used if pattern.endswith("*"))
    }
    return frozenset(used)


def _fits(pattern: str, definition: Definition) -> bool:
    return definition.name.lower().startswith(pattern[:-1])
