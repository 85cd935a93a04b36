"""What the node programs can say, and what `sharectl status` knows of it."""

from __future__ import annotations

import re
from pathlib import Path

import job_ctl
import target
import target_collector
import target_https
from sharectl.condor.node_ads import PROJECTION
from sharectl.plan.nodes import NEVER_RAN, NOT_PUBLISHED, QUIET, REMEDIES, STALE, UNKNOWN_CODE

SNIPPET = Path(__file__).parents[2] / "config.d" / "60-sharectl-execute-point.conf"
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
    macros = dict(
        re.findall(r"^(\w+) = ((?:.*\\\n)*.*)$", SNIPPET.read_text(encoding="utf-8"), re.MULTILINE)
    )

    def named(macro: str) -> set[str]:
        text = macros.get(macro, "")
        deeper = (named(name) for name in re.findall(r"\$\((\w+)", text) if name in macros)
        return set(re.findall(r"\bMY\.(\w+)", text)).union(*deeper)

    needed = set[str]().union(*map(named, EXPRESSIONS))
    assert {"t1_JobCtlTime", "t1_McRoomValue", "Childt1_HeldBackCores"} <= needed, (
        "the test reads nothing"
    )
    assert needed <= set(PROJECTION)
