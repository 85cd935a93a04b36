"""What is wrong with consumption policies: a table of checks over HTCondor configurations."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from sharectl.check import consumption_rules, consumption_trials
from sharectl.check.consumption_subject import (
    GPUS,
    MACROS,
    STANDARD_ASSETS,
    Input,
    Node,
    Subject,
    inputs,
    node_of,
)
from sharectl.check.subject import Finding
from sharectl.condor.configuration import evaluator
from sharectl.condor.library import UnreadableConfigurationError
from sharectl.errors import InputError

_ALIKE = 0.6

Check = Callable[[Subject], Iterator[Finding]]

CHECKS: tuple[tuple[str, str, tuple[Check, ...]], ...] = (
    # name, what holds if nothing is found, functions
    ("syntax", "HTCondor reads every file", ()),
    # Before all that follows from a knob that nothing reads.
    (
        "knobs",
        "HTCondor has the knobs, and can read those that are True or False",
        (
            consumption_rules.unknown,
            consumption_rules.resource_limits,
            consumption_rules.no_boolean,
        ),
    ),
    (
        "policy",
        "there is a consumption policy",
        (consumption_rules.none, consumption_rules.by_hand),
    ),
    (
        "slot types",
        (
            "policies are for slots that exist and can have one, and the machine has what slots are "
            "to have"
        ),
        (
            consumption_rules.slot_types,
            consumption_trials.of_type_0,
            consumption_trials.allotted,
            consumption_rules.counted_on,
        ),
    ),
    ("expressions", "HTCondor can read policies and weights", (consumption_rules.unreadable,)),
    (
        "scope",
        "names are asked of the slot or of the job, as is meant",
        (consumption_rules.scoped,),
    ),
    (
        "leftovers",
        "access points get no leftovers of slots with a policy",
        (consumption_rules.leftovers,),
    ),
    (
        "combinations",
        "no other knob works against consumption policies",
        (consumption_rules.knobs_that_clash,),
    ),
    (
        "numbers",
        "policies are numbers, and not negative, for every job",
        (consumption_trials.numbers,),
    ),
    ("zero", "every job takes something", (consumption_trials.zero,)),
    ("room", "an empty slot has room for a job", (consumption_trials.accepted,)),
    (
        "claims",
        "what is matched is claimed: claim ids suffice, and dynamic slots satisfy the policy",
        (consumption_rules.activated, consumption_rules.claim_ids),
    ),
    (
        "cores",
        "there is a core for every claim, and the policy knows what the startd gives",
        (consumption_rules.cores, consumption_rules.given_more),
    ),
    (
        "start",
        "START is the same for what is requested and what the policy makes of it",
        (consumption_rules.asked_twice,),
    ),
    ("modified", "the node takes what the negotiator deducts", (consumption_rules.modified,)),
    ("cost", "no match costs less than nothing", (consumption_trials.paid_for,)),
    (
        "weight",
        "the negotiator can evaluate SLOT_WEIGHT in every state, and it follows from the policy",
        (
            consumption_rules.evaluable,
            consumption_rules.steady,
            consumption_rules.follows,
        ),
    ),
    ("access points", "an idle job counts on access points", (consumption_rules.weighed,)),
    ("nodes", "a match costs the same on all nodes that are given", (consumption_rules.units,)),
)


@dataclass(frozen=True)
class Slot:
    """What a configuration makes of slots of one type, for people."""

    configuration: str
    slot_type: int
    """0 where knobs are for every slot."""
    name: str
    """For people."""
    policies: Mapping[str, str]
    """Asset → expression."""
    weight: str


@dataclass(frozen=True)
class Report:
    """What the checks saw and found."""

    configurations: tuple[str, ...]
    slots: tuple[Slot, ...]
    """Those with a consumption policy."""
    findings: tuple[Finding, ...]
    """By check, in the order of `CHECKS`."""


def check(paths: Sequence[Path], size: Mapping[str, float], *, with_local: bool = False) -> Report:
    """Everything that is wrong with the consumption policies of some configurations.

    Parameters
    ----------
    paths
        Folders, files, dumps, ``-``; none for this machine's.
    size
        Asset, lower case → amount in one slot, where the configuration does not say it.
    with_local
        Put a folder on top of the configuration of this machine.

    Raises
    ------
    InputError
        If a path cannot be read, or no slot has an asset of ``size``.
    """
    given = inputs(paths, MACROS, with_local=with_local)
    findings = [_refusal(one, error) for one, error in given if error is not None]
    with evaluator() as htcondor:
        has_gpus = bool(size.get(GPUS.lower()))
        nodes: list[Node] = []
        for one, error in given:
            try:
                nodes += [node_of(one, htcondor, has_gpus=has_gpus)] if error is None else []
            except UnreadableConfigurationError as hung:
                return Report(
                    tuple(one.name for one, _ in given), (), (*findings, _refusal(one, hung))
                )
        _refuse_unknown(nodes, size)
        findings += _found(Subject(tuple(nodes), htcondor, size))
    return Report(tuple(one.name for one, _ in given), tuple(_slots(nodes)), tuple(findings))


def _refuse_unknown(nodes: Sequence[Node], size: Mapping[str, float]) -> None:
    """InputError for amounts of assets that none of the configurations has."""
    assets = {name.lower(): name for node in nodes for name in (*STANDARD_ASSETS, *node.resources)}
    problems = []
    for name in size if nodes else ():
        # No GPU is what a slot may have anyway.
        if name in assets or (name == GPUS.lower() and not size[name]):
            continue
        close = difflib.get_close_matches(name, [*assets, GPUS.lower()], 1, _ALIKE)
        problems.append(
            f"--slot: slots have no asset {name} (they have "
            f"{', '.join(asset.lower() for asset in assets)}); "
            + (
                f"write {close[0]}"
                if close
                else f"declare it in the configuration, MACHINE_RESOURCE_{name} = AMOUNT"
            )
            + ", or leave it out"
        )
    if problems:
        raise InputError(problems)


def _found(subject: Subject) -> list[Finding]:
    """Findings, each once: slot types share the knobs of every slot."""
    return list(dict.fromkeys(_each(subject)))


def _each(subject: Subject) -> Iterator[Finding]:
    for _, _, functions in CHECKS:
        for function in functions:
            try:
                yield from function(subject)
            except UnreadableConfigurationError as error:
                yield _hung(subject, error)
                return


def _slots(nodes: Sequence[Node]) -> Iterator[Slot]:
    for node in nodes:
        for slot in node.with_policy:
            policies = {asset: policy.text for asset, policy in slot.policies.items()}
            yield Slot(node.input.name, slot.number, slot.name, policies, slot.weight.text)


def _refusal(given: Input, error: UnreadableConfigurationError) -> Finding:
    return Finding(
        "syntax",
        error.place or given.name,
        f"HTCondor cannot use the configuration, no daemon starts with it: {error}",
        "mend it first: nothing else can be checked before",
    )


def _hung(subject: Subject, error: UnreadableConfigurationError) -> Finding:
    places = sorted(
        {policy.place for _, slot in subject.slots for policy in slot.policies.values()}
    )
    return Finding(
        "expressions",
        ", ".join(places[:3]),
        f"HTCondor's library gives no answer for a policy or a weight: {error}",
        "look for a function whose result grows without end",
    )
