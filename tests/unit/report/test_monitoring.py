"""docs/monitoring/: the alert rules, and the dashboard on four days of a simulated pool."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from poolbox.box import free_port
from poolbox.waiting import HANG_SECONDS
from sharectl.report.metrics import METRICS, PREFIX, CycleFacts, metrics_text
from tests.simulated import cycles

FOLDER = Path(__file__).parents[3] / "docs" / "monitoring"
RULES, DASHBOARD = FOLDER / "alerts.yaml", FOLDER / "dashboard.json"
RULES_TEST = Path(__file__).with_name("alerts.test.yaml")
NAME = re.compile(rf"{PREFIX}\w+")
DAYS, PERIOD_SECONDS = 4, 3600
"""A cycle an hour, not every 5 minutes: the days are there sooner."""
Asked = Callable[..., Any]
"""Data that Prometheus answers at a path with parameters; times are those of the days."""


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


# ---- dashboard


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Prometheus with the days; its own scrapes would come every minute or so."""
    folder = tmp_path_factory.mktemp("days")
    end = write_days(folder)
    (folder / "prometheus.yml").write_text("", encoding="utf-8")
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--query.lookback-delta={PERIOD_SECONDS}s",
    ]
    url, span = f"http://127.0.0.1:{port}", {"start": end - DAYS * 86_400, "end": end, "time": end}

    def ask(path: str, **parameters: object) -> Any:
        given = {**span, **parameters}
        answer = requests.get(f"{url}/api/v1/{path}", params=given, timeout=30).json()  # type: ignore[arg-type]
        assert answer["status"] == "success", (parameters, answer)
        return answer["data"]

    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            until = time.monotonic() + HANG_SECONDS
            while not is_ready(url):
                assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")
                assert time.monotonic() < until, (folder / "log").read_text(encoding="utf-8")
                time.sleep(0.1)
            yield ask
        finally:
            process.terminate()


def write_days(folder: Path) -> int:
    """Blocks of Prometheus with the metrics of the days; returns Unix seconds of their end."""
    rows: defaultdict[str, list[str]] = defaultdict(list)
    end = succeeded_at = 0
    for record, seen in cycles(DAYS, PERIOD_SECONDS):
        end, good = record.taken_at, record.complete
        succeeded_at = end if good else succeeded_at
        facts = CycleFacts(
            record,
            seen,
            record.seconds,
            version="9.8.7",
            pool="t1",
            places=int(good),
            valid_until=succeeded_at + 3 * PERIOD_SECONDS,
            succeeded_at=succeeded_at,
        )
        for line in metrics_text(facts).splitlines():
            if not line.startswith("#"):
                rows[line.partition("{")[0]].append(f"{line} {end}\n")
    text = "".join(f"# TYPE {name} gauge\n{''.join(lines)}" for name, lines in rows.items())
    (folder / "days.txt").write_text(f"{text}# EOF\n", encoding="utf-8")
    blocks = "--max-block-duration=744h", folder / "days.txt", folder / "data"
    promtool("tsdb", "create-blocks-from", "openmetrics", *blocks)
    return end


def is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/-/ready", timeout=5).ok
    except requests.ConnectionError:
        return False


def filled_in(query: str, **values: str) -> str:
    """Query with the dashboard's variables as Grafana writes them into it."""
    return re.sub(r"\$(\w+)", lambda name: values[name[1]], query)


def test_every_panel_has_data_and_variables_choose_what_is_shown(asked: Asked) -> None:
    content = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    queries = {
        (panel["title"], target["expr"]): set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        for panel in content["panels"]
        for target in panel.get("targets", ())
    }
    assert len(queries) >= 25
    for (title, expression), labels in queries.items():
        query = filled_in(expression, pool=".*", group=".*")
        result = asked("query_range", query=query, step=3600)["result"]
        points = max(len(series["values"]) for series in result)
        assert points > DAYS * 24 * 0.8, (title, query, points)
        assert all(labels <= series["metric"].keys() for series in result), title
        keys = {tuple(series["metric"].get(label) for label in labels) for series in result}
        assert len(keys) == len(result), f"{title}: two lines have one name"
    values = {}
    for variable in content["templating"]["list"]:
        if variable["type"] == "query":
            query = filled_in(variable["query"]["query"], pool=".*")
            match = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
            assert match
            values[variable["name"]] = asked(f"label/{match[2]}/values", **{"match[]": match[1]})
    assert values == {"pool": ["t1"], "group": ["alice", "atlas", "cms", "lhcb", "theory"]}
    power = 'sharectl_group_power_hs06{pool=~"$pool",group=~"$group"}'
    assert ("Power against pledge", power) in queries
    for pool, chosen, groups in (("t1", "(atlas|cms)", {"atlas", "cms"}), ("t2", ".*", set())):
        data = asked("query", query=filled_in(power, pool=pool, group=chosen))
        assert {series["metric"]["group"] for series in data["result"]} == groups
