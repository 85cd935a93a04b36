"""HTCondor configuration of a node from its consumption policies."""

from __future__ import annotations

import re

from jinja2 import Environment, PackageLoader, StrictUndefined

from sharectl.consumption.policy import (
    CLAIMS,
    STANDARD,
    UNITS,
    Consumption,
    SlotPolicy,
    attribute_of,
    consumed,
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
_DEFAULT_STEPS = {"memory": ", in steps of 128", "disk": ", in steps of 1024"}
"""Asset -> steps of more than a unit in which HTCondor's own policy rounds requests up."""


def snippet(consumption: Consumption) -> str:
    """Text of a file for ``/etc/condor/config.d``."""
    policies = consumption.policies
    claims_counted = any(policy.claims for policy in policies)
    # Beside slot types, a policy of every slot is for slot types that the file leaves out.
    counted = [policy for policy in policies if policy.slot_type is not None] or policies
    claims = sum((policy.claims or 0) * (policy.slots or 1) for policy in counted)

    def taken(policy: SlotPolicy) -> dict[str, str]:
        by_claims = {CLAIMS: "1" if policy.claims else "0"} if claims_counted else {}
        return {**consumed(policy), **by_claims}

    def resources(policy: SlotPolicy) -> str:
        written = policy.resources or ""
        if not claims_counted:
            return written
        # Beside a comma, the startd takes blanks for a part of an item.
        return ", ".join([*items(written), f"{CLAIMS}={policy.claims or 0}"])

    return _TEMPLATES.get_template("snippet.conf.j2").render(
        policies=policies,
        units={**consumption.declared, **({CLAIMS: claims} if claims else {})},
        every_slot=any(policy.slot_type is None for policy in policies),
        taken=taken,
        resources=resources,
        attribute_of=attribute_of,
        macros=macros,
        weight=weight,
        steps=_DEFAULT_STEPS,
        UNITS=UNITS,
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
