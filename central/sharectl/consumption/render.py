"""HTCondor configuration of a node from its consumption policies."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial

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
_MARK = "\x1f"
"""Character between a line of the template's text and its line in the YAML."""


@dataclass(frozen=True)
class Snippet:
    """A file for ``/etc/condor/config.d``."""

    text: str
    yaml_lines: tuple[int, ...]
    """Line of the YAML that each line of the text comes from."""


def snippet(consumption: Consumption) -> Snippet:
    """Configuration of the policies."""
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

    marked = _TEMPLATES.get_template("snippet.conf.j2").render(
        policies=policies,
        units=units,
        num_cpus=consumption.num_cpus,
        every_slot=any(policy.slot_type is None for policy in policies),
        at=partial(_mark, consumption),
        taken=taken,
        resources=partial(_resources, every),
        claims=_claims,
        attribute_of=attribute_of,
        macros=macros,
        weight=weight,
        STANDARD=STANDARD,
    )
    rows = [line.partition(_MARK) for line in marked.splitlines()]
    text = "".join(f"{line}\n" for line, _, _ in rows)
    return Snippet(text, tuple(int(number or 1) for _, _, number in rows))


def _mark(consumption: Consumption, policy: SlotPolicy, *keys: str) -> str:
    return f"{_MARK}{consumption.line_of(policy, *keys)}"


def _resources(counted: dict[str, None], policy: SlotPolicy) -> str:
    """Value of SLOT_TYPE_<N>, with the custom resources that count claims."""
    units = counters(policy)
    # Beside a comma, the startd takes blanks for a part of an item.
    return ", ".join(
        [*items(policy.resources or ""), *(f"{name}={units.get(name, 0)}" for name in counted)]
    )


def _claims(policy: SlotPolicy) -> int:
    most = max if policy.model == "quanta_any" else min
    return most(counters(policy).values(), default=0)
