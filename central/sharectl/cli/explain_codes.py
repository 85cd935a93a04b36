"""``sharectl explain codes``."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from textwrap import wrap

from sharectl.explain.codes import CODES, FAMILIES
from sharectl.report import as_json
from sharectl.words import shown

_LABEL = 19
"""Characters before a sentence."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject."""
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")
    parser.add_argument(
        "codes", nargs="*", metavar="CODE", help="only these, case does not count; default: all"
    )
    parser.epilog = "exit codes: 0 ok, 1 a code that was named is none"


def run(arguments: argparse.Namespace) -> int:
    """Print each code with its sentence, by family; 1 if one that was named is of no family."""
    wanted = [code.lower() for code in arguments.codes]
    chosen = {
        family: {code: says for code, says in codes.items() if not wanted or code in wanted}
        for family, codes in CODES.items()
    }
    if arguments.json:
        print(as_json.dumps("codes", {"families": dict(FAMILIES), "codes": chosen}))
    else:
        width = shutil.get_terminal_size().columns
        for family, codes in chosen.items():
            if codes:
                print(f"{family}: {FAMILIES[family]}")
            for code, says in codes.items():
                print("\n".join(_lines(f"  {code:<{_LABEL - 2}}", says, width)))
    return _complain(wanted)


def _lines(label: str, says: str, width: int) -> list[str]:
    """A code and its sentence, no wider than the terminal where its words allow."""
    return wrap(
        says,
        max(width, 2 * _LABEL),
        initial_indent=f"{label} ",
        subsequent_indent=" " * (_LABEL + 1),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _complain(wanted: Sequence[str]) -> int:
    """Name what is no code, and the codes that are like it; 1 if there is any."""
    known = {code for codes in CODES.values() for code in codes}
    unknown = [code for code in dict.fromkeys(wanted) if code not in known]
    for code in unknown:
        near = get_close_matches(code[: _LABEL * 2], sorted(known))
        advice = (
            f"did you mean {' or '.join(near)}?"
            if near
            else "`sharectl explain codes` prints all of them"
        )
        print(f"sharectl: no code {shown(code)!r}; {advice}", file=sys.stderr)
    return 1 if unknown else 0
