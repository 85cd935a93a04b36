from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.config.advice import absent, protected
from sharectl.config.control import read_controlled, write_controlled
from sharectl.config.load import parse
from sharectl.config.model import Config
from sharectl.config.service_unit import unit_of
from sharectl.config.text import as_data, render
from sharectl.plan.nodes import Controlled, ControlledConstraint, ControlledHosts, ControlledShare

TEXT = """\
groups:
  CMS: {pledge_hs06: 87100.0}
  "no": {pledge_hepscore23: 0.5}
nodes: {controlled: [wn-0*]}
control: {deadband_hs06: 1.0e-07}
lock_wait_seconds: 60
"""

RENDERED = """\
groups:
  cms: {pledge_hs06: 87100}
  "no": {pledge_hepscore23: 0.5}
pledges:
  from: yaml  # default
  negotiator:
    file: null  # default
    name: null  # default
    deadline_seconds: 20  # default
    max_age_seconds: 86400  # default
    pool_cores: null  # default
    weight_hs06: null  # default
  cric: null  # default
nodes:
  controlled: ["wn-0*"]
  reserved: null  # default
  job_ctl_stale_seconds: 2340  # default
control:
  strategy: many  # default
  solver: auto  # default
  solver_seconds: 5  # default
  horizon_seconds: 86400  # default
  idle_price: 1  # default
  keep_gain_ratio: 0.25  # default
  obey_seconds: 2340  # default
  give_up_seconds: null  # default
  probe_blocks: null  # default
  multicore_cores: 8  # default
  deadband_hs06: 1.0e-07
  law: latest  # default
  ewma:
    half_life_seconds: 3600  # default
  pid:
    gain: 1  # default
    integral_seconds: 28800  # default
    derivative_seconds: 0  # default
    filter_seconds: 2040  # default
    max_output_hs06: null  # default
  setpoint: in_use  # default
  carry_over:
    pledge_hours: null  # default
    hs06_hours: null  # default
    half_life_seconds: 86400  # default
    repay_seconds: 21600  # default
  gap_seconds: 3060  # default
  max_nodes: null  # default
  max_target_share: null  # default
  max_changed_nodes: null  # default
  dwell_seconds: 0  # default
  incomplete: keep  # default
pool:
  name: null  # default
  collector: null  # default
  mode: counted  # default
  schedds: []  # default
  demand: placeable  # default
  collector_deadline_seconds: 20  # default
  schedd_deadline_seconds: 60  # default
  default_node_hs06: 400  # default
  default_node_cores: 40  # default
publish: [{file: /var/lib/sharectl/sharectl.txt}]  # default
signing_key_file: null  # default
validity_seconds: 3060  # default
history:
  jobs_file: /var/lib/sharectl/AcctGroup_hs06.txt  # default
  errors_log: /var/lib/sharectl/shares_Error.log  # default
  errors_log_max_bytes: 10485760  # default
  errors_log_keep: 10  # default
  changes_max_bytes: 10485760  # default
  changes_keep: 10  # default
ledger:
  keep_days: 730  # default
  keep_nodes_days: 60  # default
  max_bytes: 2147483648  # default
state_directory: /var/lib/sharectl  # default
lock_wait_seconds: 60
"""


def test_defaults_are_filled_in_and_marked() -> None:
    assert render(parse(TEXT, "F")) == RENDERED


def test_the_plain_data_is_a_configuration_too() -> None:
    config = parse(TEXT, "F")
    assert Config.model_validate(json.loads(json.dumps(as_data(config)))) == config


@pytest.mark.parametrize(
    ("controlled", "written"),
    [
        (ControlledHosts(("*",)), "*"),
        (ControlledHosts(("50%",)), ["50%"]),
        (ControlledHosts(("a", "b*")), ["a", "b*"]),
        (ControlledShare(0.29), "29%"),
        (ControlledShare(1.0), "100%"),
        (ControlledShare(0.0), "0%"),
        (ControlledConstraint("Cpus > 8"), "Cpus > 8"),
        (ControlledConstraint("GPU"), {"constraint": "GPU"}),
        (ControlledConstraint("true"), {"constraint": "true"}),
        (ControlledConstraint("8-4"), {"constraint": "8-4"}),
    ],
)
def test_controlled_nodes_are_written_in_the_shortest_form(
    controlled: Controlled, written: object
) -> None:
    assert write_controlled(controlled) == written


@pytest.mark.parametrize("text", ["true", "GPU", "8-4", "8", "t1_room == 3", "a\n  && b"])
def test_a_constraint_is_read_back_as_one(text: str) -> None:
    controlled = ControlledConstraint(text)
    assert read_controlled(write_controlled(controlled)) == controlled


def test_check_config_prints_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_text(TEXT, encoding="utf-8")
    assert main(["check", "config", str(path)]) == 0
    assert capsys.readouterr().out == f"{RENDERED}# ok, 1 recommended\n"
    assert main(["check", "config", str(path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {
        "schema_version": 1,
        "kind": "config",
        "valid": True,
        "problems": [],
        "recommendations": [*absent(parse(TEXT, "F")), *protected(parse(TEXT, "F"), unit_of())],
        "config": as_data(parse(TEXT, "F")),
    }


def test_check_config_says_all_that_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_text("groups: {cms: 5}\nvalidity: 51m\n", encoding="utf-8")
    problems = [
        f"{path}:1: groups.cms: a group is a mapping; write cms: {{pledge_hs06: 5}}",
        f"{path}:2: validity: unknown key; write validity_seconds: 3060",
    ]
    assert main(["check", "config", str(path)]) == 78
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (
        "",
        "".join(f"sharectl: {problem}\n" for problem in problems),
    )
    assert main(["check", "config", str(path), "--json"]) == 78
    printed = json.loads(capsys.readouterr().out)
    assert (printed["valid"], printed["problems"], printed["config"]) == (False, problems, None)


def test_files_without_a_path_of_their_own_lie_in_the_state_directory() -> None:
    config = parse(
        "groups: {cms: {pledge_hs06: 1}}\nstate_directory: /srv/s\nhistory: {jobs_file: /srv/j}\n",
        "it",
    )
    assert (str(config.history.jobs_file), str(config.history.errors_log)) == (
        "/srv/j",
        "/srv/s/shares_Error.log",
    )
    assert [str(publisher.file) for publisher in config.publish] == ["/srv/s/sharectl.txt"]
