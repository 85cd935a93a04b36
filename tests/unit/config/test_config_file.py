"""Sound configurations, and what arrives of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.config.fields import keys_of, read_controlled, sections_of, write_controlled
from sharectl.config.load import load, parse, steering_of
from sharectl.config.model import Config, ControlConfig
from sharectl.config.text import render
from sharectl.control.laws import Control, Ewma, Pid
from sharectl.control.setpoints import CarryOver, Entitlement, Loans
from sharectl.control.steering import SEED, SteeringConfig
from sharectl.model import PlanLimits
from sharectl.plan.nodes import Controlled, ControlledConstraint, ControlledHosts, ControlledShare

GROUPS = "groups: {cms: {pledge_hs06: 1}}\n"
LEAST = """\
groups:
  cms:   {pledge_hs06: 87100}
  atlas: {pledge_hs06: 105300}
nodes: {controlled: "*"}        # host patterns, a share such as 50%, or a ClassAd constraint
"""
STEERED = """\
groups:
  cms: {pledge_hs06: 87100, max_lent_hs06: 20000, control: {law: pid, pid: {gain: 0.5, integral_seconds: 0}}}
  alice:
    pledge_hs06: 71400
    control: {law: ewma}
    groups:
      prod: {share: 0.7, max_borrowed_hs06: 0}
      user: {share: 0.3, control: {ewma: {half_life_seconds: 60}}}
  lhcb: {pledge_hs06: 5}
control:
  ewma: {half_life_seconds: 7200}
  pid: {max_output_hs06: 300}
  setpoint: present
  carry_over: {pledge_hours: 12, repay_seconds: 7200}
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


def test_groups_alone_are_a_configuration() -> None:
    config = parse(LEAST, "F")
    assert config.tree.pledge_hs06 == {"cms": 87100, "atlas": 105300}
    assert config == Config(groups=config.groups)
    assert config.control.limits == PlanLimits()


def test_names_are_folded_and_either_pledge_counts() -> None:
    config = parse('groups: {CMS: {pledge_hepscore23: 5}, "no": {pledge_hs06: 1}}', "F")
    assert config.tree.pledge_hs06 == {"cms": 5, "no": 1}


def test_files_lie_in_the_state_directory() -> None:
    config = parse(f"{GROUPS}state_directory: /srv/s\nhistory: {{jobs_file: /srv/j}}\n", "F")
    assert config.history.jobs_file == Path("/srv/j")
    assert config.history.errors_log == Path("/srv/s/shares_Error.log")
    assert [way.file for way in config.publish] == [Path("/srv/s/sharectl.txt")]


@pytest.mark.parametrize(
    ("value", "controlled"),
    [
        ('"*"', ControlledHosts(("*",))),
        ("wn-1.example.org", ControlledHosts(("wn-1.example.org",))),
        ("[wn-0*, 'wn-1[0-4]?']", ControlledHosts(("wn-0*", "wn-1[0-4]?"))),
        ("50%", ControlledShare(0.5)),
        ("'29 %'", ControlledShare(0.29)),
        ("0%", ControlledShare(0.0)),
        ("33.3%", ControlledShare(0.333)),
        ("t1_room == 3", ControlledConstraint("t1_room == 3")),
        ("'regexp(\"^wn-\", Machine)'", ControlledConstraint('regexp("^wn-", Machine)')),
        ("Cpus > 8 &&\n    Memory > 5", ControlledConstraint("Cpus > 8 && Memory > 5")),
        ("{constraint: GPU}", ControlledConstraint("GPU")),
        ("{hosts: GPU}", ControlledHosts(("GPU",))),
        ("{hosts: [a, b]}", ControlledHosts(("a", "b"))),
        ("{share: 5%}", ControlledShare(0.05)),
    ],
)
def test_controlled_nodes_are_hosts_a_share_or_a_constraint(
    value: str, controlled: Controlled
) -> None:
    assert parse(f"{GROUPS}nodes:\n  controlled: {value}\n", "F").nodes.controlled == controlled
    assert read_controlled(write_controlled(controlled)) == controlled


@pytest.mark.parametrize("text", ["true", "GPU", "8-4", "8", "t1_room == 3", "a\n  && b"])
def test_a_constraint_is_read_back_as_one(text: str) -> None:
    controlled = ControlledConstraint(text)
    assert read_controlled(write_controlled(controlled)) == controlled


def test_every_way_to_publish_is_read() -> None:
    config = parse(PUBLISHED, "F")
    shared, served, collector = config.publish
    assert shared.file == Path("/shared/sharectl.txt")
    assert served.https is not None
    assert served.https.file == Path("/srv/www/sharectl.txt")
    assert collector.collector is not None
    assert collector.collector.identity == "sharectl@example.org"
    assert (config.signing_key_file, config.pool.name) == (Path("/etc/sharectl/keys"), "pool-1:x")


def test_nothing_written_is_the_seeds_law() -> None:
    assert steering_of(parse(GROUPS, "F")) == SEED


def test_laws_and_loans_arrive() -> None:
    cms = Control("pid", Ewma(7200), Pid(0.5, 0.0, gap_seconds=4000))
    pid = Pid(max_output_hs06=300, gap_seconds=4000)
    expected = SteeringConfig(
        control=Control("latest", Ewma(7200), pid),
        by_group={
            "cms": cms,
            "alice": Control("ewma", Ewma(7200), pid),
            "alice.prod": Control("ewma", Ewma(7200), pid),
            "alice.user": Control("ewma", Ewma(60), pid),
        },
        entitlement=Entitlement(
            "present",
            Loans({"cms": 20000}, {"alice.prod": 0}),
            CarryOver(pledge_hours=12, repay_seconds=7200, gap_seconds=4000),
        ),
    )
    config = parse(STEERED, "F")
    assert steering_of(config) == expected
    assert steering_of(parse(render(config), "F")) == expected


@pytest.mark.parametrize("amount", ["", "pledge_hours: 0", "hs06_hours: 0", "repay_seconds: 60"])
def test_nothing_is_carried_over_without_an_amount(amount: str) -> None:
    config = parse(f"{GROUPS}control: {{carry_over: {{{amount}}}}}", "F")
    assert not steering_of(config).entitlement.carry_over.carries


def test_every_default_is_within_its_bounds() -> None:
    numbers = [
        (key, key.default)
        for section in sections_of(Config).values()
        for key in keys_of(section).values()
        if isinstance(key.default, (int, float)) and not key.setting.kind
    ]
    assert len(numbers) > 30
    assert [key.name for key, default in numbers if not key.admits(default)] == []


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
