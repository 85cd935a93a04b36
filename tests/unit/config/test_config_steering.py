from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.config.load import parse, steering_of
from sharectl.config.problems import SECTIONS, choices_of, keys_of
from sharectl.config.text import render
from sharectl.control.laws import LAWS, Control, Ewma, Pid
from sharectl.control.setpoints import SETPOINTS, CarryOver, Entitlement, Loans
from sharectl.control.steering import SEED, SteeringConfig
from sharectl.errors import ConfigError

GROUPS = "groups: {cms: {pledge_hs06: 1}}\n"
ALL = """\
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


def test_nothing_written_is_the_seeds_law() -> None:
    assert steering_of(parse(GROUPS, "F")) == SEED


def test_what_is_written_arrives() -> None:
    cms = Control("pid", Ewma(7200), Pid(0.5, None, gap_seconds=4000))
    pid = Pid(max_output_hs06=300, gap_seconds=4000)
    assert steering_of(parse(ALL, "F")) == SteeringConfig(
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


def test_the_file_with_its_defaults_filled_in_means_the_same() -> None:
    config = parse(ALL, "F")
    assert steering_of(parse(render(config), "F")) == steering_of(config)


@pytest.mark.parametrize(
    "carry_over", ["{}", "{pledge_hours: 0}", "{hs06_hours: 0}", "{half_life_seconds: 5}"]
)
def test_carrying_nothing_over_is_no_carry_over(carry_over: str) -> None:
    config = parse(f"{GROUPS}control: {{carry_over: {carry_over}}}", "F")
    assert steering_of(config).entitlement.carry_over is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("control: {law: pdi}", 'control.law: "pdi" will not do; did you mean pid?'),
        ("control: {ewma: {halflife_seconds: 5}}", "control.ewma.halflife_seconds: unknown key; did you mean half_life_seconds?"),
        ("control: {ewma: {half_life_hours: 2}}", "control.ewma.half_life_hours: unknown key; write half_life_seconds: 7200"),
        ("control: {pid: {gain: 0}}", "control.pid.gain: 0 is out of range; write a number, above 0 to 100"),
        ("control: {pid: {half_life_seconds: 5}}", "unknown key; write it under control.ewma"),
        ("control: {setpoint: used}", "did you mean in_use?"),
        ("control: {carry_over: {pledge_hours: 1, hs06_hours: 1}}", "control.carry_over: both pledge_hours and hs06_hours"),
        ("control: {carry_over: {repay_seconds: 1h}}", "write 3600, without quotes or a unit"),
        ("control: {gap_seconds: 51m}", "write 3060, without quotes or a unit"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_write(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(GROUPS + text, "F")
    assert any(problem in found for found in raised.value.problems), raised.value.problems


@pytest.mark.parametrize(
    ("group", "problem"),
    [
        ("control: {law: pdi}", 'groups.cms.control.law: "pdi" will not do; did you mean pid?'),
        ("control: {pid: {gian: 1}}", "groups.cms.control.pid.gian: unknown key; did you mean gain?"),
        ("max_lend_hs06: 5", "groups.cms.max_lend_hs06: unknown key; did you mean max_lent_hs06?"),
        ("max_lent_hs06: -1", "write a number, 0 to 1000000000000 HS06"),
        ("max_lent_hs06: 1, groups: {a: {share: 1}}", "a group with subgroups is steered through them; write max_lent_hs06 there"),
        ("groups: {a: {share: 1, control: {pid: {gian: 1}}}}", "did you mean gain?"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_group_is_named_too(group: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(f"groups: {{cms: {{pledge_hs06: 1, {group}}}}}", "F")
    assert any(problem in found for found in raised.value.problems), raised.value.problems


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        parse(f"{GROUPS}control: {{law: p, setpoint: q, ewma: {{a: 1}}, pid: {{gain: x}}}}", "F")
    assert len(raised.value.problems) == 4


def test_the_choices_are_the_tables_of_the_law() -> None:
    control = SECTIONS["control",]
    assert choices_of(keys_of(control)["law"]) == tuple(LAWS)
    assert choices_of(keys_of(control)["setpoint"]) == tuple(SETPOINTS)
    assert choices_of(keys_of(SECTIONS["groups", "*", "control"])["law"]) == tuple(LAWS)


def test_the_example_of_the_page_is_a_configuration() -> None:
    page = (Path(__file__).parents[3] / "docs" / "control.md").read_text(encoding="utf-8")
    steering = steering_of(parse(page.split("```yaml\n")[1].split("```")[0], "F"))
    assert (steering.control.law, steering.by_group["atlas"].law) == ("pid", "latest")
    assert steering.control.pid == Pid()
