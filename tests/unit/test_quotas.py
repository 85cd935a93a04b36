from __future__ import annotations

import pytest

from sharectl.core.quotas import central_manager_configuration, quota_shares
from sharectl.errors import ConfigError


def test_shares_of_the_seeds_pledges() -> None:
    assert quota_shares({"cms": 87100, "atlas": 105300, "alice": 71400}) == {
        "alice": "0.270660",
        "atlas": "0.399166",
        "cms": "0.330174",
    }


def test_a_group_without_a_pledge_has_a_quota_of_nothing() -> None:
    assert quota_shares({"cms": 1, "guests": 0}) == {"cms": "1.000000", "guests": "0.000000"}


def test_nothing_to_share_by() -> None:
    with pytest.raises(ValueError, match="all pledges are 0"):
        quota_shares({"cms": 0})


def test_names_that_would_stop_a_daemon_are_refused_all_at_once() -> None:
    with pytest.raises(ConfigError) as refusal:
        central_manager_configuration({"belle-2": 1, "cms": 1, "t-2-k": 1})
    assert len(refusal.value.problems) == 2
    assert "groups.belle-2" in refusal.value.problems[0]
