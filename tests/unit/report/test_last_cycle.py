"""The last complete cycle on the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sharectl.model import LimitNote
from sharectl.plan.limits import LIMITS
from sharectl.report.page import last_cycle as as_content
from tests.made_cycles import made

RECORD, _ = made()


def test_decisions_have_limits_and_may_lack_reasons() -> None:
    record = replace(RECORD, limits=(LimitNote("dwell", 3),), group_reasons={})
    content = as_content(record)
    assert content["limits"] == [{"code": "dwell", "says": LIMITS["dwell"], "nodes": 3}]
    assert [(row["reason"], row["says"]) for row in content["groups"]] == [(None, "")] * 2
    kinds = Counter(node.target.kind for node in record.nodes if node.target is not None)
    targets = {(row["helped"], row["request_cores"]): row["nodes"] for row in content["targets"]}
    assert targets == kinds != {}
