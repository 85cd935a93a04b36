"""Sound configurations: values, defaults, groups, and their print."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.config.advice import absent, unit_of
from sharectl.config.fields import keys_of, read_controlled, sections_of, write_controlled
from sharectl.config.groups import tree_of
from sharectl.config.load import load, parse, steering_of
from sharectl.config.model import Config, ControlConfig
from sharectl.config.text import as_data, flow, render
from sharectl.control.laws import Control, Ewma, Pid
from sharectl.control.setpoints import CarryOver, Entitlement, Loans
from sharectl.control.steering import SEED, SteeringConfig
from sharectl.model import PlanLimits

GROUPS = "groups: {cms: {pledge_hs06: 1}}\n"
LEAST = "groups:\n  cms:   {pledge_hs06: 87100}\n  atlas: {pledge_hs06: 105300}\n"
CMS = "max_lent_hs06: 20000, control: {law: pid, pid: {gain: 0.5, integral_seconds: 0}}"
STEERED = f"""\
groups:
  cms: {{pledge_hs06: 87100, {CMS}}}
  alice:
    pledge_hs06: 71400
    control: {{law: ewma}}
    groups:
      prod: {{share: 0.7, max_borrowed_hs06: 0}}
      user: {{share: 0.3, control: {{ewma: {{half_life_seconds: 60}}}}}}
  lhcb: {{pledge_hs06: 5}}
control:
  ewma: {{half_life_seconds: 7200}}
  pid: {{max_output_hs06: 300}}
  setpoint: present
  carry_over: {{pledge_hours: 12, repay_seconds: 7200}}
  gap_seconds: 4000
"""
PUBLISHED = """\
groups: {cms: {pledge_hs06: 1}}
pool: {name: "pool-1:x"}
signing_key_file: /etc/sharectl/keys
publish:
  - file: /shared/sharectl.txt
  - https: {file: /srv/www/sharectl.txt, url: "https://cm.example.org:8443/a/sharectl.txt"}
  - collector: {identity: sharectl@example.org, deadline_seconds: 5}
"""
PRINTED = """\
groups:
  CMS: {pledge_hs06: 87100.0}
  "no": {pledge_hepscore23: 0.5}
nodes: {controlled: [wn-0*]}
control: {deadband_hs06: 1.0e-07}
lock_wait_seconds: 60
"""
NESTED = """\
groups:
  alice:
    pledge_hs06: 100
    groups:
      Prod: {share: 0.7}
      user: {pledge_hepscore23: 20, groups: {bob: {share: 0.25}, eve: {pledge_hs06: 15}}}
  cms: {pledge_hs06: 50}
"""


def test_groups_alone_are_a_configuration() -> None:
    config = parse(LEAST, "F")
    assert config.tree.pledge_hs06 == {"cms": 87100, "atlas": 105300}
    assert config == Config(groups=config.groups)
    assert config.control.limits == PlanLimits()
    assert steering_of(config) == SEED


def test_names_are_as_they_are_written() -> None:
    text = "groups: {no: {pledge_hs06: 5}, 12: {pledge_hs06: 1}}\npool: {name: 51:00}"
    config = parse(text, "F")
    assert (list(config.groups), config.pool.name) == (["no", "12"], "51:00")
    assert parse(render(config), "F") == config


def test_files_lie_in_the_state_directory() -> None:
    config = parse(f"{GROUPS}state_directory: /srv/s\nhistory: {{jobs_file: /srv/j}}\n", "F")
    assert config.history.jobs_file == Path("/srv/j")
    assert config.history.errors_log == Path("/srv/s/shares_Error.log")
    assert [way.file for way in config.publish] == [Path("/srv/s/sharectl.txt")]


def test_controlled_nodes_are_hosts_a_share_or_a_constraint(
    listing: Callable[[str, Callable[[str], list[str]]], None],
) -> None:
    def read(value: str) -> list[str]:
        controlled = parse(f"{GROUPS}nodes:\n  controlled: {value}\n", "F").nodes.controlled
        assert read_controlled(write_controlled(controlled)) == controlled
        return [str(controlled)]

    listing("config/controlled.txt", read)


def test_laws_and_loans_arrive() -> None:
    pid = Pid(max_output_hs06=300, gap_seconds=4000)
    carry_over = CarryOver(pledge_hours=12, repay_seconds=7200, gap_seconds=4000)
    expected = SteeringConfig(
        control=Control("latest", Ewma(7200), pid),
        by_group={
            "cms": Control("pid", Ewma(7200), Pid(0.5, 0.0, gap_seconds=4000)),
            "alice": Control("ewma", Ewma(7200), pid),
            "alice.prod": Control("ewma", Ewma(7200), pid),
            "alice.user": Control("ewma", Ewma(60), pid),
        },
        entitlement=Entitlement("present", Loans({"cms": 20000}, {"alice.prod": 0}), carry_over),
    )
    config = parse(STEERED, "F")
    assert steering_of(config) == expected
    assert steering_of(parse(render(config), "F")) == expected


def test_every_default_is_within_its_bounds() -> None:
    keys = [key for section in sections_of(Config).values() for key in keys_of(section).values()]
    numbers = [
        key for key in keys if isinstance(key.default, (int, float)) and not key.setting.kind
    ]
    assert len(numbers) > 30
    assert [key.name for key in numbers if not key.admits(key.default)] == []


def test_keys_of_the_law_are_keys_of_control() -> None:
    assert keys_of(ControlConfig).keys() >= keys_of(PlanLimits).keys() | keys_of(Control).keys()


def test_the_example_of_the_page_is_a_configuration() -> None:
    page = (Path(__file__).parents[3] / "docs" / "control.md").read_text(encoding="utf-8")
    steering = steering_of(parse(page.split("```yaml\n")[1].split("```")[0], "F"))
    assert (steering.control.law, steering.by_group["atlas"].law) == ("pid", "latest")
    assert steering.control.pid == Pid()


def test_a_byte_order_mark_and_dos_lines_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + LEAST.replace("\n", "\r\n").encode())
    assert load(path) == parse(LEAST, "F")


# ---- groups within groups


def test_a_level_has_its_pledges() -> None:
    tree = parse(NESTED, "F").tree
    inner = {"alice.prod": 70, "alice.user.bob": 5, "alice.user.eve": 15, "cms": 50}
    assert tree.pledge_hs06 == {"alice": 100, "alice.user": 20, **inner}
    assert tree.steered_hs06 == inner
    assert tree.own_hs06 == {"alice": 10, "alice.user": 0}


def test_shares_are_of_a_pledge_from_elsewhere_too() -> None:
    groups = parse("groups: {alice: {pledge_hs06: 1, groups: {prod: {share: 0.7}}}}", "F").groups
    assert tree_of(groups, {"alice": 200}).pledge_hs06 == {"alice": 200, "alice.prod": 140}


def test_shares_are_the_decimal_numbers_that_were_written() -> None:
    parts = ", ".join(f"p{number}: {{share: 0.1}}" for number in range(10))
    tree = parse(f"groups: {{alice: {{pledge_hs06: 3, groups: {{{parts}}}}}}}", "F").tree
    assert tree.own_hs06["alice"] == 0


def test_parts_may_have_names_that_first_levels_may_not() -> None:
    inner = "{other: {share: 0.5}, none: {share: 0.5}}"
    tree = parse(f"groups: {{a: {{pledge_hs06: 1, groups: {inner}}}}}", "F").tree
    assert list(tree.steered_hs06) == ["a.other", "a.none"]


# ---- print


def test_defaults_are_filled_in_and_marked(golden: Callable[[str, str], None]) -> None:
    golden("config/rendered.yaml", render(parse(PRINTED, "F")))


@pytest.mark.parametrize("text", [PRINTED, NESTED, PUBLISHED, STEERED])
def test_the_plain_data_is_a_configuration_too(text: str) -> None:
    config = parse(text, "F")
    assert parse(flow(as_data(config)), "F") == config
    assert parse(render(config), "F") == config


def test_check_config_prints_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, config = tmp_path / "sharectl.yaml", parse(PRINTED, "F")
    path.write_text(PRINTED, encoding="utf-8")
    assert main(["check", "config", str(path)]) == 0
    assert capsys.readouterr().out == f"{render(config)}# ok, 1 recommended\n"
    assert main(["check", "config", "--config", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema_version": 1,
        "kind": "config",
        "valid": True,
        "problems": [],
        "recommendations": absent(config, unit_of()),
        "config": as_data(config),
    }
    with pytest.raises(SystemExit) as caught:
        main(["check", "config", str(path), "--config", str(path)])
    assert caught.value.code == 2


def test_check_config_lists_all_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_text("groups: {cms: 5}\nvalidity: 51m\n", encoding="utf-8")
    assert main(["check", "config", str(path)]) == 78
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    places = [f"sharectl: {path}:1: groups.cms", f"sharectl: {path}:2: validity"]
    assert (captured.out, [line.rsplit(": ", 1)[0] for line in lines][1:]) == ("", places[1:])
    assert lines[0].startswith(places[0])
    assert main(["check", "config", str(path), "--json"]) == 78
    report = json.loads(capsys.readouterr().out)
    assert (report["valid"], report["config"]) == (False, None)
    assert [f"sharectl: {problem}" for problem in report["problems"]] == lines
