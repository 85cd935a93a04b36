"""Metrics of a cycle: their text, and the table of docs/monitoring.md."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from sharectl.model import RunningJobs, Source
from sharectl.report.metrics import METRICS, PREFIX, CycleFacts, metrics_text
from tests.made_cycles import incomplete, made

DOCS = Path(__file__).parents[3] / "docs" / "monitoring.md"
ROW = re.compile(r"^\| `(sharectl_\w+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)


def facts_of_a_cycle() -> CycleFacts:
    record, snapshot = made()
    return CycleFacts(
        record=record,
        snapshot=snapshot,
        seconds=3.25,
        version="9.8.7",
        places=1,
        failed_places=1,
        valid_until=record.taken_at + 3060,
        succeeded_at=record.taken_at - 1020,
    )


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Name and values of the labels → number."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def checked(text: str) -> str:
    """Complaints of promtool about metrics."""
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_metrics_of_a_cycle(golden: Callable[[str, str], None]) -> None:
    text = metrics_text(facts_of_a_cycle())
    golden("report/metrics.prom", text)
    assert checked(text) == ""


def test_an_incomplete_cycle_has_nothing_of_groups_and_nodes() -> None:
    record, snapshot = incomplete()
    numbers = samples(metrics_text(CycleFacts(record, snapshot, 60.0, "1")))
    assert numbers["sharectl_last_cycle_complete",] == 0
    assert numbers["sharectl_last_cycle_success",] == 0
    assert numbers["sharectl_source_success", "schedd ce-2"] == 0
    assert numbers["sharectl_source_duration_seconds", "schedd ce-2"] == 60
    names = {row[0] for row in numbers}
    assert not {name for name in names if "group" in name or "nodes" in name or "cores" in name}
    assert "sharectl_last_success_timestamp_seconds" not in names
    assert "sharectl_plan_valid_until_timestamp_seconds" not in names


def test_every_metric_is_labelled_with_the_name_of_the_pool() -> None:
    text = metrics_text(replace(facts_of_a_cycle(), pool="tier-1"))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) > len(METRICS)
    assert all('pool="tier-1"' in line for line in lines)


def test_names_of_daemons_are_escaped_and_rows_are_unique() -> None:
    facts = facts_of_a_cycle()
    hostile = Source('schedd "}\n# x\udc80 1\\', 1.0)
    late = Source("collector", 0.5, "it started 5 s ago")
    snapshot = replace(facts.snapshot, sources=(*facts.snapshot.sources, hostile, late))
    text = metrics_text(replace(facts, snapshot=snapshot))
    numbers = samples(text)
    assert checked(text) == ""
    assert numbers["sharectl_source_success", 'schedd "}\\n# x\\udc80 1\\'] == 1
    assert numbers["sharectl_source_success", "collector"] == 0
    assert numbers["sharectl_source_duration_seconds", "collector"] == 0.75
    rows = [line.rpartition(" ")[0] for line in text.splitlines()]
    assert len(rows) == len(set(rows))


def test_users_choose_no_label() -> None:
    facts = facts_of_a_cycle()
    strange = RunningJobs("wn-1", "other", 13, 10.0, 60)
    snapshot = replace(facts.snapshot, running=(*facts.snapshot.running, strange))
    numbers = samples(metrics_text(replace(facts, snapshot=snapshot)))
    assert numbers["sharectl_group_running_cores", "other", "multicore"] == 13
    labels = {value for row in numbers for value in row[1:]}
    assert "13" not in labels
    assert labels <= {
        *("9.8.7", "published", "failed", "collector", "schedd ce-1"),
        *("alice", "cms", "other", "single", "multicore", "helped", "held-back"),
        *("not-obeying", "refused", "target", "grace"),
    }


def test_every_metric_is_in_the_docs() -> None:
    rows = ROW.findall(DOCS.read_text(encoding="utf-8"))
    assert rows == [
        (
            PREFIX + metric.name,
            " ".join(f"`{label}`" for label in metric.labels),
            metric.meaning,
        )
        for metric in METRICS
    ]
