"""``sharectl explain codes``."""

from __future__ import annotations

import argparse

from sharectl.core.explain import CODES, FAMILIES
from sharectl.report import as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject."""
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")
    parser.add_argument("codes", nargs="*", metavar="CODE", help="only these; default: all")


def run(arguments: argparse.Namespace) -> int:
    """Print each code with its sentence, by family; 1 if one that was named is of no family."""
    wanted = set(arguments.codes)
    chosen = {
        family: {code: says for code, says in codes.items() if not wanted or code in wanted}
        for family, codes in CODES.items()
    }
    if arguments.json:
        print(as_json.dumps("codes", {"families": dict(FAMILIES), "codes": chosen}))
    else:
        for family, codes in chosen.items():
            if codes:
                print(f"{family}: {FAMILIES[family]}")
            for code, says in codes.items():
                print(f"  {code:<17} {says}")
    return 0 if wanted <= {code for codes in CODES.values() for code in codes} else 1
