"""START of the snippet, by HTCondor's own ClassAds: who waits, and slots between two states.

tests/pool/test_start_clauses.py has the cases of the method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from sharectl.check.slot_ad import saved_ads
from sharectl.check.snippet_rules import CRON, LIVE
from sharectl.condor.configuration import ConfigSource, expand
from sharectl.condor.library import CondorProcess
from tests.pool.start_cases import (
    CORES,
    DYNAMIC,
    GRACES,
    JOBS,
    OVER,
    Job,
    copy,
)

CONFIG = Path(__file__).parents[2] / "config.d"
LONG_AGO, SOON, LATER = "time() - 100000", "time() + 600", "time() + 3600"
GRACE = {
    LIVE: GRACES[LIVE]["grace"].attributes,
    CRON: GRACES[CRON]["grace"].attributes,
}
NOBODY_WAITS = {
    "t1_MulticorePending": "False",
    "t1_MulticorePendingUntil": SOON,
    "t1_JobCtlTime": "time() - 5",
}
IN_GRACE: Mapping[str, tuple[Mapping[str, str], bool]] = {
    # Attributes beside those of grace → whether grace keeps a job of one core out.
    "nobody knows": ({}, True),
    "no multicore job waits": (NOBODY_WAITS, False),
    "a multicore job waits": ({**NOBODY_WAITS, "t1_MulticorePending": "True"}, True),
    "the plan does not tell": ({**NOBODY_WAITS, "t1_MulticorePending": "error"}, True),
    "the plan has ended": ({**NOBODY_WAITS, "t1_MulticorePendingUntil": "time() - 1"}, True),
    "its end is unknown": ({**NOBODY_WAITS, "t1_MulticorePendingUntil": "undefined"}, True),
    "job_ctl has stopped": ({**NOBODY_WAITS, "t1_JobCtlTime": LONG_AGO}, True),
    "an old copy of the ad": ({**NOBODY_WAITS, **copy(3000, 60)}, False),
    "the clock was set back since job_ctl ran": ({**NOBODY_WAITS, "t1_JobCtlTime": LATER}, True),
}
JOB = '"lhcb" asking for 1'


@pytest.fixture(scope="module")
def htcondor() -> Iterator[CondorProcess]:
    with CondorProcess(deadline_seconds=60) as process:
        yield process


@pytest.fixture(scope="module", params=[LIVE, CRON])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def node(htcondor: CondorProcess, way: str) -> dict[str, str]:
    """Ad of a partitionable slot with the snippet."""
    source, own = ConfigSource(CONFIG), {"SHARECTL_ACTUATION": way}
    lists = expand(source, ["STARTD_ATTRS", "STARTD_LATCH_EXPRS"], htcondor, own)
    names = " ".join(lists.values()).split()
    expressions = expand(source, ["START", *names], htcondor, own)
    saved = {name: text for name, text in saved_ads()[0].items() if not name.startswith("Child")}
    cores = dict.fromkeys(("Cpus", "TotalSlotCpus"), str(CORES))
    return {**saved, **cores, **expressions, "MyCurrentTime": "time()"}


def started(
    htcondor: CondorProcess,
    node: Mapping[str, str],
    slots: Sequence[Mapping[str, str]],
    jobs: Sequence[Mapping[str, str]],
) -> list[list[object]]:
    """START of each slot for each job."""
    ads = [{"MyType": '"Job"', "JobUniverse": "5", **job} for job in jobs]
    (values,) = htcondor.evaluate(["MY.START"], [{**node, **slot} for slot in slots], ads)
    assert values is not None
    return values


def job_ad(job: Job) -> dict[str, str]:
    own = {"RequestCpus": job.request, "AccountingGroup": job.accounting_group}
    return {name: text for name, text in own.items() if text is not None}


def test_grace_depends_on_who_waits(
    htcondor: CondorProcess, node: dict[str, str], way: str
) -> None:
    slots = [{**GRACE[way], **own} for own, _ in IN_GRACE.values()]
    seen = started(htcondor, node, slots, [job_ad(JOBS[JOB])])
    kept_out = {name: row == [False] for name, row in zip(IN_GRACE, seen)}
    assert kept_out == {name: keeps_out for name, (_, keeps_out) in IN_GRACE.items()}


def test_a_dot_in_a_group_is_only_a_dot(htcondor: CondorProcess, node: dict[str, str]) -> None:
    """Cores of alice_user are not those of alice.user."""
    slot = {
        **OVER,
        "t1_TargetGroups": '{"alice.user","cms"}',
        "t1_CurrentJobs": '"alice_user:64:lhcb:8"',
        "Childt1_HeldBackCores": "{0,0,0}",
    }
    job = {"RequestCpus": "1", "AccountingGroup": '"alice.user.bob"'}
    assert started(htcondor, node, [slot], [job]) == [[True]]


def test_a_slot_is_nobodys_until_its_user_is_known(
    htcondor: CondorProcess, node: dict[str, str]
) -> None:
    """HTCondor before 23.7.2 calls it claimed first; a START that is False then ends the startd."""
    claimed = {**OVER, **DYNAMIC, "Cpus": "1", "State": '"Claimed"'}
    slots = [claimed, {**claimed, "RemoteUser": '"x@"', "AccountingGroup": '"lhcb.x@"'}]
    job = {"RequestCpus": "1", "AccountingGroup": '"alice.x"'}
    assert started(htcondor, node, slots, [job]) == [[True], [False]]
