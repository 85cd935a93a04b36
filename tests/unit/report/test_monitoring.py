"""docs/monitoring/: the alert rules, and the dashboard on four days of a simulated pool."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

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
DAYS, PERIOD_SECONDS, COLUMNS = 4, 3600, 24
"""A cycle an hour, not every 5 minutes: the days are there sooner."""


def promtool(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )


# ---- alerts


@pytest.fixture(scope="module")
def rules() -> Sequence[Mapping[str, Any]]:
    content = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return [rule for group in content["groups"] for rule in group["rules"]]


def test_every_alert_fires_in_its_time_and_no_other(rules: Sequence[Mapping[str, Any]]) -> None:
    assert promtool("check", "rules", RULES).returncode == 0
    done = promtool("test", "rules", RULES_TEST)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = set(re.findall(r'alertname="(\w+)"', RULES_TEST.read_text(encoding="utf-8")))
    assert expected == {rule["alert"] for rule in rules}
    for rule in rules:
        assert {"summary", "description"} == rule["annotations"].keys()
        assert rule["labels"]["severity"] in ("critical", "warning", "info")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("> 720", "> 7200"),
        ("for: 6h", "for: 5h"),
        ("unless on (instance, pool)", "unless on (instance)"),
        ("0.01 * sharectl_present_hs06", "0 * sharectl_present_hs06"),
    ],
)
def test_a_wrong_rule_is_noticed(tmp_path: Path, right: str, wrong: str) -> None:
    text = RULES.read_text(encoding="utf-8")
    assert right in text
    (tmp_path / "alerts.yaml").write_text(text.replace(right, wrong), encoding="utf-8")
    test = yaml.safe_load(RULES_TEST.read_text(encoding="utf-8"))
    test["rule_files"] = [str(tmp_path / "alerts.yaml")]
    # The first world is the long one.
    test["tests"] = test["tests"][1:]
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test), encoding="utf-8")
    assert "FAILED" in promtool("test", "rules", tmp_path / "test.yaml").stderr


def test_rules_and_dashboard_name_metrics_that_exist() -> None:
    names = {PREFIX + metric.name for metric in METRICS}
    shown = set(NAME.findall(DASHBOARD.read_text(encoding="utf-8")))
    assert shown == names
    assert set(NAME.findall(RULES.read_text(encoding="utf-8"))) <= names


# ---- dashboard


@dataclass(frozen=True)
class Prometheus:
    """A server that has the days, and the time at which they end."""

    url: str
    end: int

    def asked(self, path: str, **parameters: Union[str, int]) -> Any:
        answer = requests.get(f"{self.url}{path}", params=parameters, timeout=30).json()
        assert answer["status"] == "success", (parameters, answer)
        return answer["data"]


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("days")
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
    with (folder / "days.txt").open("w", encoding="utf-8") as file:
        for name, lines in rows.items():
            file.write(f"# TYPE {name} gauge\n")
            file.writelines(lines)
        file.write("# EOF\n")
    blocks = "--max-block-duration=744h", folder / "days.txt", folder / "data"
    made = promtool("tsdb", "create-blocks-from", "openmetrics", *blocks)
    assert made.returncode == 0, made.stderr
    yield from serving(folder, end)


def serving(folder: Path, end: int) -> Iterator[Prometheus]:
    """Prometheus on the blocks of a folder; its own scrapes would come every minute or so."""
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
    server = Prometheus(f"http://127.0.0.1:{port}", end)
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            until = time.monotonic() + HANG_SECONDS
            while not is_ready(server.url):
                assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")
                assert time.monotonic() < until, (folder / "log").read_text(encoding="utf-8")
                time.sleep(0.1)
            yield server
        finally:
            process.terminate()


def is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/-/ready", timeout=5).ok
    except requests.ConnectionError:
        return False


@pytest.fixture(scope="module")
def dashboard() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return content


def panels_of(dashboard: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def filled_in(query: str, **values: str) -> str:
    """Query with the dashboard's variables as Grafana writes them into it."""
    return re.sub(r"\$(\w+)", lambda name: values[name[1]], query)


def test_every_panel_has_data(days: Prometheus, dashboard: Mapping[str, Any]) -> None:
    queries = 0
    for panel in panels_of(dashboard):
        for target in panel["targets"]:
            query = filled_in(target["expr"], pool=".*", group=".*")
            span = {"start": days.end - DAYS * 86_400, "end": days.end, "step": 3600}
            result = days.asked("/api/v1/query_range", query=query, **span)["result"]
            assert result, (panel["title"], query)
            points = max(len(series["values"]) for series in result)
            assert points > DAYS * 24 * 0.8, (panel["title"], query, points)
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert all(labels <= series["metric"].keys() for series in result), panel["title"]
            keys = {tuple(series["metric"].get(label) for label in labels) for series in result}
            assert len(keys) == len(result), f"{panel['title']}: two lines have one name"
            queries += 1
    assert queries >= 25


def test_variables_offer_what_is_there_and_choose_what_is_shown(
    days: Prometheus, dashboard: Mapping[str, Any]
) -> None:
    values = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            query = filled_in(variable["query"]["query"], pool=".*")
            match = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
            assert match
            metric, label = match.groups()
            span = {"start": days.end - DAYS * 86_400, "end": days.end}
            path = f"/api/v1/label/{label}/values"
            values[variable["name"]] = days.asked(path, **{"match[]": metric}, **span)
    assert values == {"pool": ["t1"], "group": ["alice", "atlas", "cms", "lhcb", "theory"]}
    (panel,) = [panel for panel in dashboard["panels"] if panel["title"] == "Power against pledge"]
    for pool, chosen, groups in (("t1", "(atlas|cms)", {"atlas", "cms"}), ("t2", ".*", set())):
        query = filled_in(panel["targets"][0]["expr"], pool=pool, group=chosen)
        data = days.asked("/api/v1/query", query=query, time=days.end)
        assert {series["metric"]["group"] for series in data["result"]} == groups


def test_rules_are_silent_where_nothing_is_wrong(
    days: Prometheus, rules: Sequence[Mapping[str, Any]]
) -> None:
    wrong = {
        rule["alert"]
        for rule in rules
        if days.asked("/api/v1/query", query=rule["expr"], time=days.end + 60)["result"]
    }
    assert wrong <= {"SharectlGroupShort"}, "a group may lack power for a moment"


def test_panels_stand_beside_each_other(dashboard: Mapping[str, Any]) -> None:
    places = set[tuple[int, int]]()
    for panel in dashboard["panels"]:
        x, y, width, height = (panel["gridPos"][key] for key in "xywh")
        assert x + width <= COLUMNS
        own = {(x + i, y + j) for i in range(width) for j in range(height)}
        assert not own & places, panel["title"]
        places |= own
    idents = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(idents)) == len(idents)
    sources = [
        part["datasource"]["uid"] for panel in panels_of(dashboard) for part in panel["targets"]
    ]
    assert set(sources) == {"${datasource}"}
