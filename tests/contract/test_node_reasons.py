"""Codes and knobs of a node, and what `sharectl status` and docs/operations.md know of them."""

from __future__ import annotations

import re
from pathlib import Path

import job_ctl
import target
import target_collector
import target_https
from sharectl.condor.node_ads import PROJECTION
from sharectl.plan.nodes import (
    MOST_CORES,
    NEVER_RAN,
    NOT_PUBLISHED,
    QUIET,
    REMEDIES,
    STALE,
    UNKNOWN_CODE,
)

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
EXPRESSIONS = (
    "t1_TargetActive",
    "MC_GRACE",
    "t1_GraceActive",
    "t1_counted_live",
    "t1_counted_cron",
)


def test_every_code_has_a_remedy_and_no_other_has() -> None:
    programs = (job_ctl, target, target_https, target_collector)
    codes = {code for program in programs for code in program.REASONS}
    own = {NOT_PUBLISHED, NEVER_RAN, STALE, UNKNOWN_CODE}
    assert set(REMEDIES) - own == codes - set(QUIET)


def test_status_asks_for_all_that_the_expressions_name() -> None:
    macros = dict(re.findall(r"^(\w+) = ((?:.*\\\n)*.*)$", SNIPPET, re.MULTILINE))

    def named(macro: str) -> set[str]:
        text = macros.get(macro, "")
        deeper = (named(name) for name in re.findall(r"\$\((\w+)", text) if name in macros)
        return set(re.findall(r"\bMY\.(\w+)", text)).union(*deeper)

    needed = set[str]().union(*map(named, EXPRESSIONS))
    assert {"t1_JobCtlTime", "t1_McRoomValue", "Childt1_HeldBackCores"} <= needed, (
        "the test reads nothing"
    )
    assert needed <= set(PROJECTION)


def test_every_knob_is_told_with_its_default() -> None:
    assert KNOBS is not None
    first: dict[str, str] = {}
    for name, value in re.findall(r"^ *(SHARECTL_[A-Z_]+) *=[ ]*(.*)$", KNOBS[1], re.MULTILINE):
        first.setdefault(name, value)
    assert TABLE.keys() == first.keys()
    stated = {
        name: default.strip("`") for name, default in TABLE.items() if default.startswith("`")
    }
    assert stated == {name: first[name] for name in stated}
    assert {
        name for name, value in first.items() if "$" in value
    } == TABLE.keys() - stated.keys() - {"SHARECTL_SOURCE_OPTIONS"}


def test_the_centre_publishes_no_more_cores_than_nodes_accept() -> None:
    assert MOST_CORES == target.MAX_CORES
