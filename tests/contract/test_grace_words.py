"""Grace as `sharectl status` and the cycle see it, against the START of config.d.

By HTCondor's own ClassAds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest

from sharectl.condor.configuration import ConfigSource, expand
from sharectl.condor.library import CondorProcess
from tests.slot_status import status_of

CONFIG = Path(__file__).parents[2] / "config.d"
NOW = int(time.time())
SLOT = {
    "PartitionableSlot": True,
    "Cpus": 8,
    "MC_GRACE": True,
    "t1_McGraceTime": NOW - 30,
    "t1_JobCtlReason": "no-line",
    "t1_JobCtlTime": NOW - 30,
    "MyCurrentTime": NOW,
}
WAITING = {"t1_MulticorePending": True, "t1_MulticorePendingUntil": NOW + 600}
NOBODY = {**WAITING, "t1_MulticorePending": False}
JOB = classad2.ClassAd({"RequestCpus": 1, "AccountingGroup": "cms.bob"})


@pytest.fixture(scope="module")
def expressions() -> dict[str, str]:
    """Attributes of a slot in cron mode."""
    source, cron = ConfigSource(CONFIG), {"SHARECTL_ACTUATION": "cron"}
    with CondorProcess() as process:
        listed = expand(source, ["STARTD_ATTRS"], process, cron)["STARTD_ATTRS"].split()
        return expand(source, listed, process, cron)


def slot(expressions: Mapping[str, str], attributes: Mapping[str, object]) -> classad2.ClassAd:
    at_once = {name: text.replace("time()", str(NOW)) for name, text in expressions.items()}
    ad = classad2.parseOne("".join(f"{name} = {text}\n" for name, text in at_once.items()))
    ad.update({**SLOT, **attributes})
    return ad


@pytest.mark.parametrize(
    ("attributes", "cores"),
    [
        ({}, 8),
        (WAITING, 8),
        (NOBODY, 0),
        ({**NOBODY, "t1_MulticorePendingUntil": NOW - 1}, 8),
        ({**NOBODY, "t1_MulticorePendingUntil": classad2.Value.Undefined}, 8),
        ({**NOBODY, "t1_MulticorePending": classad2.Value.Error}, 8),
        ({**NOBODY, "t1_JobCtlTime": NOW - 10**6}, 8),
        ({**NOBODY, "t1_JobCtlTime": NOW + 3600}, 8),
        ({"t1_McGraceTime": NOW - 10**6}, 0),
        ({"t1_McGraceTime": NOW + 10**6}, 0),
        ({"MC_GRACE": False}, 0),
        ({"t1_Disabled": True}, 0),
    ],
)
def test_grace_of_cron_mode_ends_where_start_ends_it(
    expressions: dict[str, str], attributes: dict[str, object], cores: int
) -> None:
    ad = slot(expressions, attributes)
    assert classad2.ExprTree("MY.t1_GraceAdmits").eval(ad, JOB) is (cores == 0)
    seen = status_of([ad], NOW, 90)
    assert (seen["in_grace"], seen["idle_grace_cores"]) == (cores // 8, cores)


def test_an_ad_that_was_sent_long_ago_is_no_stale_run(expressions: dict[str, str]) -> None:
    sent = {"MyCurrentTime": NOW - 900, "t1_McGraceTime": NOW - 930, "t1_JobCtlTime": NOW - 930}
    assert status_of([slot(expressions, sent)], NOW, 90)["idle_grace_cores"] == 8
    assert status_of([slot(expressions, {**sent, **NOBODY})], NOW, 90)["idle_grace_cores"] == 0
