"""docs/operations.md tells every knob of the execute point's snippet, and its default."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
SNIPPET = (CHECKOUT / "config.d" / "60-sharectl-execute-point.conf").read_text(encoding="utf-8")
TABLE = dict(
    re.findall(
        r"^\| `(SHARECTL_\w+)` \| (.*?) \|",
        (CHECKOUT / "docs" / "operations.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
KNOBS = re.search(r"^# -+ Knobs -+$(.*?)^# -+ ", SNIPPET, re.MULTILINE | re.DOTALL)


def test_every_knob_is_told_with_its_default() -> None:
    assert KNOBS is not None
    first: dict[str, str] = {}
    for name, value in re.findall(r"^ *(SHARECTL_[A-Z_]+) *=[ ]*(.*)$", KNOBS[1], re.MULTILINE):
        first.setdefault(name, value)
    assert TABLE.keys() == first.keys()
    told = {name: default.strip("`") for name, default in TABLE.items() if default.startswith("`")}
    assert told == {name: first[name] for name in told}
    assert {name for name, value in first.items() if "$" in value} == TABLE.keys() - told.keys() - {
        "SHARECTL_SOURCE_OPTIONS"
    }
