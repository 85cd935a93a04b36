from __future__ import annotations

import pytest

from sharectl.plan.nodes import (
    HOST_NAME,
    Controlled,
    ControlledConstraint,
    ControlledHosts,
    ControlledShare,
    controlled_machines,
)


@pytest.mark.parametrize(
    ("pattern", "machine", "selected"),
    [
        ("*", "wn-1.example.org", True),
        ("wn-1", "WN-1.Example.org", True),
        ("WN-1.example.org", "wn-1.example.org", True),
        ("wn-1", "wn-11.example.org", False),
        ("wn-[0-3]?", "wn-41.example.org", False),
        ("*.example.org", "wn-1", False),
    ],
)
def test_hosts_match_without_case_by_short_or_full_name(
    pattern: str, machine: str, *, selected: bool
) -> None:
    assert bool(controlled_machines(ControlledHosts((pattern,)), [machine])) is selected


@pytest.mark.parametrize(
    ("controlled", "chosen"),
    [
        # First hex digits of sha256sum: c 2e7d…, b 3e23…, a ca97….
        (ControlledShare(0.34), {"C"}),
        (ControlledShare(0.67), {"C", "b"}),
        (ControlledHosts(("A", "b*")), {"a", "b"}),
        (ControlledHosts(()), set()),
        (ControlledConstraint("x"), {"b"}),
    ],
)
def test_each_way_to_choose(controlled: Controlled, chosen: set[str]) -> None:
    assert controlled_machines(controlled, iter(["a", "b", "C"]), ["b", "gone"]) == chosen


@pytest.mark.parametrize("name", ["wn-1", "wn_1.example.org", "", "-a", "a b", "a\n"])
def test_host_names(name: str) -> None:
    assert (HOST_NAME.fullmatch(name) is not None) is name.startswith("wn")
