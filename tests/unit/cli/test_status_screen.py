"""`sharectl status` on one screen."""

from __future__ import annotations

import io
import re
from dataclasses import asdict
from typing import Any

import pytest

from sharectl.report import as_json
from sharectl.report.status import status_tables
from sharectl.report.tables import LINES, WIDTH
from tests.simulated import cycles
from tests.verbs import Terminal

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def status_of_a_pool() -> dict[str, Any]:
    """Content of `status --json` of a simulated pool of five groups, without its collector."""
    records = [record for record, _ in cycles(0.3)]
    record = records[-1]
    cycle = {
        "taken_at": record.taken_at,
        "seconds": record.seconds,
        "complete": True,
        "reason": record.reason,
        "plan": {"limits": ({"code": "dwell", "nodes": 3},)},
        "errors": as_json.errors(0, tuple(row.error for row in record.groups))["groups"],
        "controllers": [
            {
                "group": row.group,
                "due_hs06": row.due_hs06,
                "shortfall_hs06": row.shortfall_hs06,
            }
            for row in record.groups
        ],
        "present_hs06": record.present_hs06,
        "shortfall_hs06": record.shortfall_hs06,
        "groups": as_json.group_reasons(record),
        "waits": [asdict(waits) for waits in record.waits],
        "idle_cores": {
            "all": record.idle_cores,
            "target": record.idle_target_cores,
            "grace": record.idle_grace_cores,
        },
        "nodes": {"controlled": 8, "target": 5, "not_obeying": 1, "refused": 0},
    }
    place = {
        "place": "/var/lib/sharectl/sharectl.txt",
        "targets": 5,
        "sequence": record.sequence,
        "valid_for_seconds": 2954,
        "signed_by": "k2026",
        "verified": True,
    }
    nodes = {
        "problem": None,
        "slots": 8,
        "controlled": 8,
        "with_target": 5,
        "in_grace": 1,
        "idle_grace_cores": 8,
        "disabled": 0,
        "disabled_by_knob": 0,
        "multicore_only": 0,
        "hot": 0,
        "reasons": {"ok": 7, "no-target": 1},
        "versions": {"0.1.0": 8},
    }
    return {
        "now": record.taken_at + 106,
        "mode": "steer",
        "last_cycle": cycle,
        "published": [place],
        "nodes": nodes,
        "blocks": {"free": [], "left_alone": []},
    }


@pytest.mark.parametrize(("columns", "lines"), [(WIDTH, LINES), (100, 39)])
def test_five_groups_fit_on_a_screen(
    monkeypatch: pytest.MonkeyPatch, columns: int, lines: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    status, terminal, pipe = status_of_a_pool(), Terminal(), io.StringIO()
    status_tables(status, None, terminal)
    status_tables(status, None, pipe)
    shown = ANSI.sub("", terminal.getvalue()).splitlines()
    assert len(shown) <= lines, terminal.getvalue()
    assert max(map(len, shown)) <= columns
    assert "\x1b" not in pipe.getvalue()
    headings = [line.split() for line in pipe.getvalue().splitlines() if "pledge" in line]
    assert headings in ([line.split()] for line in shown if "pledge" in line)


def test_a_disabled_cycle_has_a_reason_and_a_text_of_hand_no_end() -> None:
    status, out = status_of_a_pool(), io.StringIO()
    status["last_cycle"].update(plan=None, reason="disabled")
    status["published"][0].update(sequence=None, valid_for_seconds=None)
    status_tables(status, None, out)
    assert re.search(r"^reason +withdrawn: sharectl is disabled$", out.getvalue(), re.MULTILINE)
    assert "sharectl.txt: 5 targets, by hand: without sequence and end" in out.getvalue()
