from __future__ import annotations

import pytest

from sharectl.errors import ConfigError
from sharectl.shares.groups import GroupTree
from sharectl.shares.quotas import central_manager_configuration


def test_names_that_would_stop_a_daemon_are_refused_all_at_once() -> None:
    with pytest.raises(ConfigError) as refusal:
        central_manager_configuration(GroupTree({"belle-2": 1, "cms": 1, "cms.t-2-k": 1}))
    assert len(refusal.value.problems) == 2
    assert "groups.belle-2" in refusal.value.problems[0]
    assert "groups.cms.groups.t-2-k:" in refusal.value.problems[1]


NESTED = GroupTree(
    {
        "alice": 100,
        "alice.user": 20,
        "alice.user.bob": 20,
        "alice.prod": 70,
        "atlas": 300,
        "none_yet": 0,
        "none_yet.prod": 0,
    }
)


def test_groups_of_all_levels_are_named_and_have_quotas() -> None:
    lines = central_manager_configuration(NESTED).splitlines()
    assert (
        "GROUP_NAMES = alice, alice.prod, alice.user, alice.user.bob, atlas, none_yet, "
        "none_yet.prod" in lines
    )
    quotas = [line for line in lines if line.startswith("GROUP_QUOTA_DYNAMIC_")]
    assert quotas == [
        "GROUP_QUOTA_DYNAMIC_alice = 0.250000",
        "GROUP_QUOTA_DYNAMIC_atlas = 0.750000",
        "GROUP_QUOTA_DYNAMIC_none_yet = 0.000000",
        "GROUP_QUOTA_DYNAMIC_alice.prod = 0.700000",
        "GROUP_QUOTA_DYNAMIC_alice.user = 0.200000",
        "GROUP_QUOTA_DYNAMIC_alice.user.bob = 1.000000",
        "GROUP_QUOTA_DYNAMIC_none_yet.prod = 0.000000",
    ]
