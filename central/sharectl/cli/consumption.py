"""``sharectl consumption …``: policies of a node's assets, price and number of claims."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Callable

from sharectl.cli import consumption_check, consumption_cost

if TYPE_CHECKING:
    from sharectl.consumption.policy import Consumption

_RENDERED = "the rendered text"
_RENDER_EPILOG = """\
the file, in YAML (`sharectl consumption examples` lists some; docs/consumption.md has all keys):

  slot_types:                   or `startd:`, with one policy for every slot of the node
    1:                          N of SLOT_TYPE_<N>
      model: minimum_charge     or fixed_claims, quanta_all, quanta_any, expressions, none
      assets:                   every asset that the slot has
        cpus: {charge: 1}       cores
        memory: {charge: 1024}  MiB
        disk: {charge: 1048576} KiB

  sharectl consumption examples memory-centric > policy.yaml
  sharectl consumption render policy.yaml > /etc/condor/config.d/70-consumption.conf
  condor_restart -startd

The file is for execute points; access points need CLAIM_PARTITIONABLE_LEFTOVERS = False besides.
Effects of HTCondor that the policy does not show are in the text as NOTE, and on standard error.
The text is checked as by `sharectl consumption check`. Faults are reported by the line of the YAML,
and nothing is printed then.
"""


def _examples_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "to try one: sharectl consumption examples minimum-charge | sharectl consumption render -"
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="print this one, as YAML for `render`"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")


def _examples(arguments: argparse.Namespace) -> int:
    from sharectl.consumption.examples import example, examples
    from sharectl.report import as_json

    if arguments.name is not None:
        text = example(arguments.name)
        content = {"name": arguments.name, "yaml": text}
        json = as_json.dumps("consumption_example", content) if arguments.json else ""
        print(json or text, end="\n" if json else "")
    elif arguments.json:
        print(as_json.dumps("consumption_examples", {"examples": examples()}))
    else:
        width = max(map(len, examples()))
        print("\n".join(f"{name:{width}}  {purpose}" for name, purpose in examples().items()))
    return 0


def _render_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _RENDER_EPILOG
    parser.add_argument("file", metavar="FILE", help="policies in YAML; - for standard input")
    parser.add_argument(
        "--json", action="store_true", help="print JSON, with a schema version: the text, its notes"
    )


def _render(arguments: argparse.Namespace) -> int:
    from sharectl.consumption.file import load
    from sharectl.consumption.render import notes, snippet
    from sharectl.errors import ConfigError
    from sharectl.report import as_json

    consumption = load(arguments.file)
    text = snippet(consumption)
    if faults := _faults(text, consumption, arguments.file):
        raise ConfigError(faults)
    every_note = [
        {"slot_type": policy.slot_type, "note": note}
        for policy in consumption.policies
        for note in notes(policy, consumption.declared)
    ]
    if arguments.json:
        print(as_json.dumps("consumption_snippet", {"snippet": text, "notes": every_note}))
        return 0
    print(text, end="")
    for note in every_note:
        number = note["slot_type"]
        where = "startd" if number is None else f"slot type {number}"
        print(f"sharectl: {where}: {note['note']}", file=sys.stderr)
    return 0


def _faults(text: str, consumption: Consumption, name: str) -> list[str]:
    """Findings of the check in a rendered text, at the lines of the YAML that they come from."""
    from sharectl.check.consumption import check_text
    from sharectl.check.findings import Level
    from sharectl.consumption.render import line_of

    knobs = [line.partition(" = ")[0] for line in text.splitlines()]

    def in_yaml(match: re.Match[str]) -> str:
        return f"{name}:{line_of(consumption, knobs[int(match[1]) - 1])}"

    return [
        re.sub(rf"{_RENDERED}:(\d+)", in_yaml, str(finding)).replace(_RENDERED, name)
        for finding in check_text(_RENDERED, text)
        # An unscoped name works until a job has it: a policy that is written now need not have one.
        if finding.level is Level.ERROR or finding.id == "scope"
    ]


_Verb = tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int], str]
_VERBS: dict[str, _Verb] = {
    "examples": (
        _examples_arguments,
        _examples,
        "list the ready examples of policies, or print one",
    ),
    "render": (
        _render_arguments,
        _render,
        "print the HTCondor configuration of a file of policies",
    ),
    "check": (
        consumption_check.add_arguments,
        consumption_check.run,
        "find what is wrong with consumption policies, before or after they are used",
    ),
    "cost": (
        consumption_cost.add_cost_arguments,
        consumption_cost.cost,
        "what jobs would take of slots, what that costs their groups, and how many more fit",
    ),
    "capacity": (
        consumption_cost.add_capacity_arguments,
        consumption_cost.capacity,
        "how many claims slots, slot types and groups can have now",
    ),
}
"""Name -> arguments, what runs, summary."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    verbs = parser.add_subparsers(title="verbs", dest="consumption", metavar="VERB", required=True)
    for name, (add, _, summary) in _VERBS.items():
        described = verbs.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        add(described)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb that was named."""
    _, verb, _ = _VERBS[arguments.consumption]
    return verb(arguments)
