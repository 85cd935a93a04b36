"""START in Python (`sharectl_lab.twin.start`) is the deployed snippet's in HTCondor's ClassAds.

Slots, jobs and moments are random, with a seed: 10^5 evaluations, in both ways of actuation. A
changed snippet has to be noticed: `MUTATIONS`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import classad2
import pytest

from sharectl.check.snippet_rules import CRON, LIVE
from sharectl.condor.configuration import ConfigSource, expand
from sharectl.condor.library import CondorProcess
from sharectl.shares.groups import is_within
from sharectl_lab.twin.ads import CLOCK
from sharectl_lab.twin.start import claim_worklife_seconds
from tests.start_slots import Slot, claimed, clocked, job, parent

CONFIG = Path(__file__).parents[2] / "config.d"
JOB_IS_HELD_BACK = "t1_job_is_held_back = "
ANY_BEGINNING = (
    f'{JOB_IS_HELD_BACK}regexp(strcat("^", MY.t1_TargetGroups[0]), $(t1_job_group), "i")'
)
MUTATIONS = (
    # Way, kind of slot, text of the snippet, text in its place.
    (LIVE, "parent", "time() - MY.t1_McRoomTime < $(", "time() - MY.t1_McRoomTime <= $("),
    (LIVE, "parent", " && MY.t1_McRoomTime > MY.t1_WatchedTime", ""),
    (LIVE, "parent", " || $(t1_room_not_yet_latched))", ")"),
    (LIVE, "parent", "MY.t1_McRoomValue =?= 0 &&", "MY.t1_McRoomValue =?= 1 &&"),
    (LIVE, "parent", "MC_GRACE = (MY.PartitionableSlot =?= True && MY.Cpus >=", "MC_GRACE = (0 <="),
    (LIVE, "parent", "|| $(t1_job_cores) > 1 || (", "|| $(t1_job_cores) > 2 || ("),
    (LIVE, "parent", " || ($(t1_single_core_target))", ""),
    (LIVE, "parent", "MY.t1_Targetcores[1] == 1 &&", "MY.t1_Targetcores[1] == 2 &&"),
    (LIVE, "parent", "< MY.t1_MulticorePendingUntil", "<= MY.t1_MulticorePendingUntil"),
    (LIVE, "parent", "MulticorePending =?= False", "MulticorePending =!= True"),
    (LIVE, "parent", "time() < MY.t1_TargetUntil", "time() <= MY.t1_TargetUntil"),
    (LIVE, "parent", "MY.MyCurrentTime - MY.t1_JobCtlTime <", "0 <"),
    (LIVE, "parent", "MY.MyCurrentTime - MY.t1_JobCtlTime <", "time() - MY.t1_JobCtlTime <"),
    (LIVE, "parent", "$(t1_job_cores) == MY.t1_Targetcores[1]", "True"),
    (LIVE, "parent", "$(t1_job_cores) <= MY", "$(t1_job_cores) < MY"),
    (LIVE, "parent", "ifThenElse($(t1_job_is_held_back), \\", "ifThenElse(True, \\"),
    (LIVE, "parent", "Cores) + $(t1_matched_since)", "Cores)"),
    (LIVE, "parent", '== strcat(MY.t1_TargetGroups[1], ".")', '!= strcat("x", ".")'),
    (LIVE, "parent", f"{JOB_IS_HELD_BACK}substr(", f"{ANY_BEGINNING}\nt1_unused = substr("),
    (LIVE, "claimed", "MY.t1_Disabled =!= True \\", "True \\"),
    (LIVE, "parent", "t1_off = $(SHARECTL_ENABLED) == False ||", "t1_off = False &&"),
    (LIVE, "claimed", "!($(t1_multicore_slot))) \\", "True) \\"),
    (LIVE, "claimed", '"Dynamic" && MY.Cpus >= $(', '"Dynamic" && MY.Cpus > $('),
    (LIVE, "claimed", "MY.t1_HeldBackSlot =?= True || MY.Dynamic", "MY.Dynamic"),
    (LIVE, "claimed", ", !($(t1_job_is_held_back)))", ", True)"),
    (LIVE, "claimed", '"", $(t1_job_account) == "",', '"", False,'),
    (LIVE, "claimed", "MY.t1_TargetActive =?= True && MY.t1_HeldBackSlot", "MY.t1_HeldBackSlot"),
    (LIVE, "claimed", "t1_HeldBackSlot || $(t1_new_slot)", "t1_HeldBackSlot || True"),
    (CRON, "parent", "(MY.MC_GRACE && (MY.My", "(True && (MY.My"),
    (CRON, "parent", "MY.MyCurrentTime - MY.t1_McGraceTime", "time() - MY.t1_McGraceTime"),
    (CRON, "parent", "|| MY.t1_McGraceTime - time()", "|| True || MY.t1_McGraceTime - time()"),
    (CRON, "parent", ", 0) + $(t1_taken_since)", ", 0)"),
    (CRON, "parent", "TotalSlotCpus - MY.Cpus - $(t1_cores_then)", "TotalSlotCpus - MY.Cpus"),
    (CRON, "parent", 't1_CurrentJobs, "\\2", "i")), 0)', 't1_CurrentJobs, "\\2", "i")), 1)'),
    (CRON, "parent", 'strcat("^([^:]+:[0-9]+:)*\\Q"', 'strcat("^\\Q"'),
)
EXECUTE = "60-sharectl-execute-point.conf"
WORKLIFE_SECONDS = 1200
SLOTS, JOBS = 500, 50


# ---- HTCondor's answers


class Snippet:
    """Expressions of a slot with a snippet, with a clock that can be set."""

    def __init__(self, source: ConfigSource, way: str, htcondor: CondorProcess) -> None:
        own = {"SHARECTL_ACTUATION": way}
        lists = expand(source, ["STARTD_ATTRS"], htcondor, own)["STARTD_ATTRS"].split()
        self.start = ("SLOT_TYPE_1_START", "START", "DEFAULT_DRAINING_START_EXPR")
        texts = expand(source, [*lists, *self.start, "CLAIM_WORKLIFE"], htcondor, own)
        self.attributes = {name: clocked(text) for name, text in texts.items()}

    def ad(self, slot: Slot) -> Any:
        """Ad of a slot, whose START is the one that is in force there."""
        multicore_only, start, draining = self.start
        name = draining if slot.draining else multicore_only if slot.multicore_only else start
        return classad2.ClassAd({**self.attributes, "START": self.attributes[name], **slot.ad})


def differences(
    snippet: Snippet, slots: Iterable[Slot], rng: random.Random, jobs: int
) -> Iterator[str]:
    """Answers of HTCondor that are not those of `sharectl_lab.twin.start`."""
    start = classad2.ExprTree("MY.START =?= True")
    for slot in slots:
        ad = snippet.ad(slot)
        for cores, account, own in (job(rng) for _ in range(jobs)):
            admits = start.eval(ad, classad2.ClassAd({**own, CLOCK: slot.now}))
            if admits is not (slot.cause(cores, account) is None):
                yield f"{slot}: {cores} of {account!r}: START is {admits}"
        if slot.claim_cores:
            life = claim_worklife_seconds(
                slot, slot.claim_account, slot.now, slot.knobs, WORKLIFE_SECONDS
            )
            if ad.eval("CLAIM_WORKLIFE") != life:
                yield f"{slot}: CLAIM_WORKLIFE is {ad.eval('CLAIM_WORKLIFE')}"
            is_held = slot.target is not None and is_within(
                slot.claim_account, slot.target.held_back
            )
            if slot.target and ad.eval("t1_HeldBackCores") != is_held * slot.claim_cores:
                yield f"{slot}: t1_HeldBackCores is {ad.eval('t1_HeldBackCores')}"


@pytest.fixture(scope="module")
def htcondor() -> Iterator[CondorProcess]:
    with CondorProcess(deadline_seconds=60) as process:
        yield process


def source_of(folder: Path) -> ConfigSource:
    """Snippet of a folder, with START of a node for multicore jobs as that of its slot type."""
    example = CONFIG / "examples" / "70-multicore-only.conf"
    return ConfigSource(text=f"include : {folder / EXECUTE}\ninclude : {example}")


@pytest.mark.parametrize("way", [LIVE, CRON])
@pytest.mark.parametrize("kind", [parent, claimed])
def test_start_is_that_of_the_snippet(kind: Any, way: str, htcondor: CondorProcess) -> None:
    rng = random.Random(f"{kind.__name__} {way}")
    slots = [kind(rng, way) for _ in range(SLOTS)]
    snippet = Snippet(source_of(CONFIG), way, htcondor)
    assert list(differences(snippet, slots, rng, JOBS)) == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation[2].strip())
def test_a_changed_snippet_is_noticed(
    mutation: tuple[str, str, str, str], htcondor: CondorProcess, tmp_path: Path
) -> None:
    way, kind, text, instead = mutation
    written = (CONFIG / EXECUTE).read_text(encoding="utf-8")
    assert written.count(text) == 1
    (tmp_path / EXECUTE).write_text(written.replace(text, instead), encoding="utf-8")
    rng = random.Random("mutation")
    slots = ({"parent": parent, "claimed": claimed}[kind](rng, way) for _ in range(2 * SLOTS))
    snippet = Snippet(source_of(tmp_path), way, htcondor)
    assert next(differences(snippet, slots, rng, 20), None) is not None


@pytest.mark.parametrize("way", [LIVE, CRON])
def test_random_slots_refuse_for_every_cause(way: str) -> None:
    rng = random.Random(way)
    for make in (parent, claimed):
        slots = [make(rng, way) for _ in range(SLOTS)]
        causes = Counter(slot.cause(*job(rng)[:2]) for slot in slots for _ in range(JOBS))
        assert min(causes[cause] for cause in (None, "drain", "grace", "target", "start")) > 50
