"""HTCondor configuration of a node from its consumption policies."""

from __future__ import annotations

import re
from collections import Counter

from jinja2 import Environment, PackageLoader, StrictUndefined

from sharectl.consumption.policy import (
    STANDARD,
    Consumption,
    SlotPolicy,
    attribute_of,
    consumed,
    counters,
    items,
    macros,
    weight,
)

_TEMPLATES = Environment(  # noqa: S701 - configuration is no HTML
    loader=PackageLoader("sharectl", "consumption"),
    undefined=StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)


def snippet(consumption: Consumption) -> str:
    """Text of a file for ``/etc/condor/config.d``."""
    policies = consumption.policies
    # Beside slot types, a policy of every slot is for slot types that the file leaves out.
    of_types = [policy for policy in policies if policy.slot_type is not None] or policies
    units = Counter[str](consumption.declared)
    for policy in of_types:
        units.update({n: count * (policy.slots or 1) for n, count in counters(policy).items()})
    every = dict.fromkeys(name for policy in policies for name in counters(policy))

    def taken(policy: SlotPolicy) -> dict[str, str]:
        by_policy = consumed(policy)
        return {**by_policy, **{name: "0" for name in every if name not in by_policy}}

    def resources(policy: SlotPolicy) -> str:
        own = counters(policy)
        counts = [f"{name}={own.get(name, 0)}" for name in every]
        # Beside a comma, the startd takes blanks for a part of an item.
        return ", ".join([*items(policy.resources or ""), *counts])

    def claims(policy: SlotPolicy) -> int:
        most = max if policy.model == "quanta_any" else min
        return most(counters(policy).values(), default=0)

    return _TEMPLATES.get_template("snippet.conf.j2").render(
        policies=policies,
        units=units,
        num_cpus=consumption.num_cpus,
        every_slot=any(policy.slot_type is None for policy in policies),
        taken=taken,
        resources=resources,
        claims=claims,
        attribute_of=attribute_of,
        macros=macros,
        weight=weight,
        STANDARD=STANDARD,
    )


def line_of(consumption: Consumption, knob: str) -> int:
    """Line of the YAML that a knob of `snippet` comes from, or of the policy around it."""
    number = re.search(r"_(\d+)(_|$)", knob)
    base = ("slot_types", number[1]) if number else ("startd",)
    name = "resources" if number and not number[2] else knob.lower()
    ranked = {(0, 0): consumption.lines.get(base, 1)}
    for path, line in consumption.lines.items():
        key = str(path[-1])
        if name.endswith(key) and (path[0] in (base[0], "startd") or "assets" in path):
            place = 3 if path[: len(base)] == base else 2 if path[0] == "startd" else 1
            ranked[place, len(key)] = line
    return ranked[max(ranked)]
