from __future__ import annotations

import pytest

from sharectl.plan.nodes import (
    HOST_NAME,
    ControlledConstraint,
    ControlledHosts,
    ControlledShare,
    controlled_machines,
)

MACHINES = [f"wn-{number:03}.example.org" for number in range(100)]


@pytest.mark.parametrize(
    ("patterns", "machine", "selected"),
    [
        (("*",), "wn-1.example.org", True),
        (("wn-1",), "wn-1.example.org", True),
        (("WN-1",), "wn-1.example.org", True),
        (("wn-1",), "WN-1.Example.org", True),
        (("wn-1.example.org",), "wn-1.example.org", True),
        (("wn-1.example.org",), "wn-1.example.net", False),
        (("wn-1",), "wn-11.example.org", False),
        (("wn-[0-3]?",), "wn-11.example.org", True),
        (("wn-[0-3]?",), "wn-41.example.org", False),
        (("*.example.org",), "wn-1.example.org", True),
        (("*.example.org",), "wn-1", False),
        (("vm-*", "wn-*"), "wn-1.example.org", True),
        ((), "wn-1.example.org", False),
    ],
)
def test_hosts_match_without_case_by_short_or_full_name(
    patterns: tuple[str, ...], machine: str, *, selected: bool
) -> None:
    assert controlled_machines(ControlledHosts(patterns), [machine]) == (
        {machine} if selected else set()
    )


@pytest.mark.parametrize(
    ("ratio", "count"), [(0.0, 0), (0.29, 29), (0.57, 57), (0.999, 99), (1.0, 100), (1e-7, 0)]
)
def test_a_share_is_the_floor_of_the_decimal_number_that_was_written(
    ratio: float, count: int
) -> None:
    assert len(controlled_machines(ControlledShare(ratio), MACHINES)) == count


def test_a_share_is_chosen_by_the_sha256_of_the_lower_case_name() -> None:
    # First hex digits of sha256sum: c 2e7d…, b 3e23…, a ca97….
    assert controlled_machines(ControlledShare(0.34), ["a", "b", "C"]) == {"C"}
    assert controlled_machines(ControlledShare(0.67), ["a", "b", "C"]) == {"C", "b"}


def test_each_way_to_choose() -> None:
    machines = ["wn-1.example.org", "wn-2.example.org", "vm-1.example.org"]
    meeting = ["vm-1.example.org", "gone.example.org"]
    assert controlled_machines(ControlledHosts(("wn-*",)), machines, meeting) == set(machines[:2])
    assert controlled_machines(ControlledConstraint("x"), machines, meeting) == {"vm-1.example.org"}
    assert len(controlled_machines(ControlledShare(0.5), iter(machines), meeting)) == 1


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("wn-1", True),
        ("wn_1.example.org", True),
        ("", False),
        ("-a", False),
        ("a b", False),
        ("a\n", False),
    ],
)
def test_host_names(name: str, *, good: bool) -> None:
    assert (HOST_NAME.fullmatch(name) is not None) is good
