"""docs/monitoring/: the alert rules, and the dashboard."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from poolbox.waiting import HANG_SECONDS
from sharectl.report.metrics import METRICS, PREFIX

FOLDER = Path(__file__).parents[3] / "docs" / "monitoring"
RULES, DASHBOARD = FOLDER / "alerts.yaml", FOLDER / "dashboard.json"
RULES_TEST = Path(__file__).with_name("alerts.test.yaml")
NAME = re.compile(rf"{PREFIX}\w+")


def promtool(*words: object) -> None:
    command = ["promtool", *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def rules() -> Sequence[Mapping[str, Any]]:
    content = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return [rule for group in content["groups"] for rule in group["rules"]]


def test_every_alert_fires_in_its_time_and_no_other(rules: Sequence[Mapping[str, Any]]) -> None:
    promtool("check", "rules", RULES)
    promtool("test", "rules", RULES_TEST)
    expected = set(re.findall(r'alertname="(\w+)"', RULES_TEST.read_text(encoding="utf-8")))
    assert expected == {rule["alert"] for rule in rules}
    for rule in rules:
        assert {"summary", "description"} == rule["annotations"].keys()
        assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_rules_and_dashboard_name_metrics_that_exist() -> None:
    names = {PREFIX + metric.name for metric in METRICS}
    assert set(NAME.findall(DASHBOARD.read_text(encoding="utf-8"))) == names
    assert set(NAME.findall(RULES.read_text(encoding="utf-8"))) <= names


def test_queries_of_the_dashboard_are_sound_and_choose_pool_and_group(tmp_path: Path) -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert len(queries) >= 25
    assert [query for query in queries if 'pool=~"$pool"' not in query] == []
    of_groups = [query for query in queries if f"{PREFIX}group_" in query]
    assert [query for query in of_groups if 'group=~"$group' not in query] == []
    rules = [{"record": f"panel:{n}", "expr": query} for n, query in enumerate(queries)]
    (tmp_path / "rules.yaml").write_text(
        yaml.safe_dump({"groups": [{"name": "a", "rules": rules}]})
    )
    promtool("check", "rules", tmp_path / "rules.yaml")
