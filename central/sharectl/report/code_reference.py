"""The table of all codes in ``docs/why.md``."""

from __future__ import annotations

from collections.abc import Iterator

from sharectl.core.explain import CODES, FAMILIES

HEADING = "## Codes\n"


def reference() -> str:
    """Markdown of the section, from its heading on."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield HEADING
    yield "The set is closed: every code of every module is here, and a later version does not use one for something else."
    yield "`sharectl explain codes [CODE …] [--json]` prints the same."
    for family, codes in CODES.items():
        yield f"\n### {family}: {FAMILIES[family]}\n"
        yield "| code | meaning |"
        yield "|---|---|"
        yield from (f"| `{code}` | {says.replace('|', chr(92) + '|')} |" for code, says in codes.items())
