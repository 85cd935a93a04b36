from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.config.advice import absent, unit_of
from sharectl.config.load import parse
from sharectl.config.text import as_data, flow, render

TEXT = """\
groups:
  CMS: {pledge_hs06: 87100.0}
  "no": {pledge_hepscore23: 0.5}
nodes: {controlled: [wn-0*]}
control: {deadband_hs06: 1.0e-07}
lock_wait_seconds: 60
"""


def test_defaults_are_filled_in_and_marked(golden: Callable[[str, str], None]) -> None:
    golden("config/rendered.yaml", render(parse(TEXT, "F")))


def test_the_plain_data_is_a_configuration_too() -> None:
    config = parse(TEXT, "F")
    assert parse(flow(as_data(config)), "F") == config


def test_check_config_prints_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_text(TEXT, encoding="utf-8")
    assert main(["check", "config", str(path)]) == 0
    assert capsys.readouterr().out == f"{render(parse(TEXT, 'F'))}# ok, 1 recommended\n"
    assert main(["check", "config", str(path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {
        "schema_version": 1,
        "kind": "config",
        "valid": True,
        "problems": [],
        "recommendations": absent(parse(TEXT, "F"), unit_of()),
        "config": as_data(parse(TEXT, "F")),
    }


def test_check_config_says_all_that_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_text("groups: {cms: 5}\nvalidity: 51m\n", encoding="utf-8")
    problems = [
        f"{path}:1: groups.cms: this is no mapping; write such as cms: {{pledge_hs06: 5}}",
        f"{path}:2: validity: unknown key; did you mean validity_seconds?",
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
