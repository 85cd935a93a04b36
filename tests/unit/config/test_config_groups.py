"""Groups within groups, as the configuration has them."""

from __future__ import annotations

import pytest

from sharectl.config.groups import tree_of
from sharectl.config.load import parse
from sharectl.config.text import render
from sharectl.errors import ConfigError

NESTED = """\
groups:
  alice:
    pledge_hs06: 100
    groups:
      Prod: {share: 0.7}
      user: {pledge_hepscore23: 20, groups: {bob: {share: 0.25}, eve: {pledge_hs06: 15}}}
  cms: {pledge_hs06: 50}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as refusal:
        parse(text, "F")
    return list(refusal.value.problems)


def test_each_level_has_its_pledges() -> None:
    tree = parse(NESTED, "F").tree
    assert tree.pledge_hs06 == {
        "alice": 100,
        "alice.prod": 70,
        "alice.user": 20,
        "alice.user.bob": 5,
        "alice.user.eve": 15,
        "cms": 50,
    }
    assert tree.steered_hs06 == {
        "alice.prod": 70,
        "alice.user.bob": 5,
        "alice.user.eve": 15,
        "cms": 50,
    }
    assert tree.own_hs06 == {"alice": 10, "alice.user": 0}


def test_shares_are_of_a_pledge_from_elsewhere_too() -> None:
    groups = parse("groups: {alice: {pledge_hs06: 1, groups: {prod: {share: 0.7}}}}", "F").groups
    assert tree_of(groups, {"alice": 200}).pledge_hs06 == {"alice": 200, "alice.prod": 140}


def test_shares_are_the_decimal_numbers_that_were_written() -> None:
    parts = ", ".join(f"p{number}: {{share: 0.1}}" for number in range(10))
    tree = parse(f"groups: {{alice: {{pledge_hs06: 3, groups: {{{parts}}}}}}}", "F").tree
    assert tree.own_hs06["alice"] == 0


def test_what_is_printed_is_read_as_the_same_groups() -> None:
    config = parse(NESTED, "F")
    assert parse(render(config), "F").tree == config.tree


def test_every_level_that_promises_too_much_is_named_with_its_line() -> None:
    text = NESTED.replace("0.7", "0.81").replace("15", "16")
    outer, inner = problems(text)
    assert outer.startswith(
        "F:4: groups.alice.groups: the groups of alice are promised 101 HS06 of its 100; lower"
    )
    assert inner.startswith(
        "F:6: groups.alice.groups.user.groups: the groups of alice.user are promised 21 HS06 of"
    )


def test_levels_have_an_end() -> None:
    text = "{share: 1}"
    for _ in range(5):
        text = f"{{share: 1, groups: {{p: {text}}}}}"
    (found,) = problems(f"groups: {{a: {{pledge_hs06: 1, groups: {{p: {text}}}}}}}")
    assert "has more than 6 parts" in found


def test_parts_may_be_called_what_first_levels_may_not() -> None:
    tree = parse(
        "groups: {a: {pledge_hs06: 1, groups: {other: {share: 0.5}, none: {share: 0.5}}}}", "F"
    ).tree
    assert list(tree.steered_hs06) == ["a.other", "a.none"]
