"""Configurations: values, defaults and print of sound ones, line and remedy of each fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.config.advice import absent, unit_of
from sharectl.config.fields import read_controlled, write_controlled
from sharectl.config.groups import tree_of
from sharectl.config.load import load, parse, steering_of
from sharectl.config.model import Config
from sharectl.config.text import as_data, flow, render
from sharectl.control.laws import Pid
from sharectl.control.steering import SEED
from sharectl.errors import ConfigError
from sharectl.files.yaml import MAX_BYTES, MAX_PROBLEMS, MAX_VALUES
from sharectl.model import PlanLimits
from sharectl.words import printable
from tests.fakes import Listing

GROUPS = "groups: {cms: {pledge_hs06: 1}}\n"
LEAST = "groups:\n  cms:   {pledge_hs06: 87100}\n  atlas: {pledge_hs06: 105300}\n"
PRINTED = """\
groups:
  CMS: {pledge_hs06: 87100.0}
  "no": {pledge_hs06: 0.5}
nodes: {controlled: [wn-0*]}
control: {deadband_hs06: 0.0000001}
lock_wait_seconds: 60
"""


def test_groups_alone_are_a_configuration() -> None:
    config = parse(LEAST, "F")
    assert config.tree.pledge_hs06 == {"cms": 87100, "atlas": 105300}
    assert config == Config(groups=config.groups)
    assert config.control.limits == PlanLimits()
    assert steering_of(config) == SEED


def test_values_are_read_printed_and_read_again(listing: Listing) -> None:
    def read(text: str) -> list[str]:
        config = parse(text, "F")
        assert parse(flow(as_data(config)), "F") == config
        assert parse(render(config), "F") == config
        lines = [
            line for line in render(config).splitlines() if not line.endswith(("# default", ":"))
        ]
        tree, steering = config.tree, steering_of(config)
        lines += [f"pledges {tree.pledge_hs06}", f"steered {list(tree.steered_hs06)}"]
        lines.append(f"own {tree.own_hs06}")
        if steering != SEED:
            lines += map(str, (steering.control, steering.entitlement, *steering.by_group.items()))
        files = (config.history.jobs_file, config.history.errors_log, config.publish[0].file)
        return [*lines, " ".join(map(str, files))]

    listing("config/sound.txt", read, 8)


def test_controlled_nodes_are_hosts_a_share_or_a_constraint(listing: Listing) -> None:
    def read(value: str) -> list[str]:
        controlled = parse(f"{GROUPS}nodes:\n  controlled: {value}\n", "F").nodes.controlled
        assert read_controlled(write_controlled(controlled)) == controlled
        return [str(controlled)]

    listing("config/controlled.txt", read, 11)


def test_the_example_of_the_page_is_a_configuration() -> None:
    page = (Path(__file__).parents[3] / "docs" / "control.md").read_text(encoding="utf-8")
    steering = steering_of(parse(page.split("```yaml\n")[1].split("```")[0], "F"))
    assert (steering.control.law, steering.by_group["atlas"].law) == ("pid", "latest")
    assert steering.control.pid == Pid()


def test_a_byte_order_mark_and_dos_lines_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + LEAST.replace("\n", "\r\n").encode())
    assert load(path) == parse(LEAST, "F")


def test_shares_are_of_a_pledge_from_elsewhere_too() -> None:
    groups = parse("groups: {alice: {pledge_hs06: 1, groups: {prod: {share: 0.7}}}}", "F").groups
    assert tree_of(groups, {"alice": 200}).pledge_hs06 == {"alice": 200, "alice.prod": 140}


def test_defaults_are_filled_in_and_marked(golden: Callable[[str, str], None]) -> None:
    golden("config/rendered.yaml", render(parse(PRINTED, "F")))


def test_check_config_prints_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, config = tmp_path / "sharectl.yaml", parse(PRINTED, "F")
    path.write_text(PRINTED, encoding="utf-8")
    assert main(["check", "config", "--config", str(path)]) == 0
    assert capsys.readouterr().out == f"{render(config)}# ok\n"
    assert main(["check", "config", "--config", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema_version": 1,
        "kind": "config",
        "problems": [],
        "recommendations": absent(config, unit_of()),
        "config": as_data(config),
    }


def test_check_config_lists_all_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_text("groups: {cms: 5}\nvalidity: 51m\n", encoding="utf-8")
    assert main(["check", "config", "--config", str(path)]) == 78
    captured = capsys.readouterr()
    places = [line.split(": ")[1:3] for line in captured.err.splitlines()]
    assert (captured.out, places) == ("", [[f"{path}:1", "groups.cms"], [f"{path}:2", "validity"]])


# ---- faults


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "F")
    return list(caught.value.problems)


def test_every_fault_is_one_problem_with_its_line_and_its_remedy(listing: Listing) -> None:
    """A new faulty configuration is a line of the golden file, as a JSON string."""

    def one_problem(text: str) -> list[str]:
        problems = problems_of(text)
        assert "\t" in text or len({problem.split(": ")[0] for problem in problems}) == 1
        assert [problem for problem in problems if "; " in problem or "?" in problem]
        return problems

    listing("config/messages.txt", one_problem, 176)


def test_so_many_values_that_reading_takes_seconds_are_refused() -> None:
    (problem,) = problems_of(f"a: [{'1,' * MAX_VALUES}]\n")
    assert "more than 20000 values" in problem


def test_all_faults_come_at_once_and_nothing_that_follows_from_one(listing: Listing) -> None:
    listing("config/several.txt", problems_of, 13)


def test_a_flood_of_problems_is_counted() -> None:
    keys = "".join(f"x{number}: 1\n" for number in range(MAX_PROBLEMS + 5))
    problems = problems_of(GROUPS + keys)
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].startswith("F: 5 more problems")


def test_text_of_a_file_cannot_steer_a_terminal() -> None:
    long = "x" * 900
    text = (
        f'"\\e[31m{long}": "\\a"\n{long}: 1\npool: "\\e{long}"\nstate_directory: "{long}"\n{GROUPS}'
    )
    problems = problems_of(text)
    assert [problem[:4] for problem in problems] == ["F:1:", "F:2:", "F:3:", "F:4:"]
    assert [one for one in problems if not one.isprintable() or len(one) > 260] == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "sharectl.yaml"
    for content, place in (
        (b"groups: {cms: {pledge_hs06: 1}}\n# caf\xe9\n", ":2: byte 0xE9"),
        ("groups: {}\n".encode("utf-16"), ":1: byte 0xFF"),
        (b"#" * (MAX_BYTES + 1), ": has more than"),
        (b"a: 1\x00\n", ":1:5: not YAML: a character"),
    ):
        path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}{place}")
    for path, fact in (
        (tmp_path / "none.yaml", f"there is no such file; `sharectl init -o {tmp_path}/none.yaml`"),
        (Path("/dev/null/sharectl.yaml"), "Not a directory"),
        (tmp_path, "Is a directory"),
        (Path(f"{tmp_path}/a\0b"), "cannot be read"),
        (Path("/dev/zero"), "it is neither a regular file nor a pipe"),
    ):
        with pytest.raises(ConfigError, match=fact) as caught:
            load(path)
        assert str(caught.value).startswith(f"{printable(path)}: ")
