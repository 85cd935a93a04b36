"""``sharectl consumption render``."""

from __future__ import annotations

import argparse
import sys

_EPILOG = """\
the file, in YAML (`sharectl consumption examples` lists ready ones, docs/consumption.md has every key):

  slot_types:                   or `startd:`, with one policy for every slot of the node
    1:                          N of SLOT_TYPE_<N>
      model: minimum_charge     or fixed_claims, quanta_all, quanta_any, expressions, none
      assets:                   every asset that the slot has
        cpus: {charge: 1}       cores
        memory: {charge: 1024}  MiB
        disk: {charge: 1048576} KiB

  sharectl consumption examples memory-centric > policy.yaml
  sharectl consumption render policy.yaml > /etc/condor/config.d/70-consumption.conf     on execute points
  sharectl consumption check /etc/condor/config.d/70-consumption.conf && condor_restart -startd

access points need CLAIM_PARTITIONABLE_LEFTOVERS = False besides. What HTCondor does otherwise than the policy says is in the
text as NOTE, and on standard error. Everything that is wrong in the file is named at once, by line; nothing is printed then.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("file", metavar="FILE", help="policies in YAML; - for standard input")
    parser.add_argument(
        "--json", action="store_true", help="print JSON, with a schema version: the text, its notes"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the configuration: the same text for the same policies."""
    from sharectl.consumption.file import load
    from sharectl.consumption.render import notes, snippet
    from sharectl.report import as_json

    consumption = load(arguments.file)
    said = [
        {"slot_type": policy.slot_type, "note": note}
        for policy in consumption.policies
        for note in notes(policy, consumption.declared)
    ]
    if arguments.json:
        print(
            as_json.dumps("consumption_snippet", {"snippet": snippet(consumption), "notes": said})
        )
        return 0
    print(snippet(consumption), end="")
    for line in said:
        where = "startd" if line["slot_type"] is None else f"slot type {line['slot_type']}"
        print(f"sharectl: {where}: {line['note']}", file=sys.stderr)
    return 0
