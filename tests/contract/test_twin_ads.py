"""START of a site and Requirements of jobs in the twin: by HTCondor, kept, and told where bad."""

from __future__ import annotations

from collections.abc import Mapping

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharectl.errors import InputError
from sharectl_lab.twin.ads import Condition, SiteExpressions, slot_attributes
from sharectl_lab.twin.engine import Setup, Twin
from sharectl_lab.twin.pool import ShapedKind, SimNode
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.settings import Access, Negotiator
from sharectl_lab.workload.draw import Arrival, JobKind
from tests.steered import Listed

GPUS = {"gpus": 2}
NODES = (
    NodeSpec("wn-1", (SlotSpec(8, 8000), SlotSpec(4, 4000)), 10.0),
    NodeSpec("gpu-1", (SlotSpec(16, 64_000, custom=GPUS),), 12.0, multicore_only=True),
)
PLAIN = JobKind("alice", "ann", 1, 100)
ON_GPUS = JobKind("cms.prod", "carl", 2, 100, custom=(("gpus", 1),), requirements="TARGET.GPUs > 0")
ON_WN = JobKind("", "dora", 1, 100, requirements='regexp("^wn", TARGET.Machine) && Memory > 4000')


def at_once(kinds: tuple[JobKind, ...], times: int, run_seconds: float = 1e6) -> Listed:
    """Jobs that all come at once, so many of each kind."""
    jobs = (Arrival(0.0, kind, run_seconds) for kind in range(len(kinds)) for _ in range(times))
    return Listed(kinds, tuple(jobs))


def nodes_of_jobs(expressions: SiteExpressions, *kinds: JobKind) -> dict[str, set[str]]:
    """Submitter -> slots on which its jobs run."""
    setup = Setup(
        NODES,
        {"alice": 100.0, "cms": 100.0},
        negotiator=Negotiator(base_seconds=0.0, match_seconds=0.0),
        meets=expressions.meets,
        site_start=expressions.site_start,
    )
    twin = Twin(setup, at_once(kinds, 40))
    twin.run(100.0)
    slots: dict[str, set[str]] = {}
    for slot in twin.slots:
        for claim in slot.claims:
            name = slot_attributes(slot, ["name"])["name"]
            slots.setdefault(claim.job.submitter, set()).add(name)
    return slots


def test_requirements_of_jobs_choose_their_nodes() -> None:
    kinds = (ON_GPUS, ON_WN)
    assert nodes_of_jobs(SiteExpressions(kinds), *kinds) == {
        "cms.prod.carl": {"slot1@gpu-1"},
        "dora": {"slot1@wn-1"},
    }


def test_start_of_a_site_keeps_jobs_out() -> None:
    start = 'MY.SlotID == 1 && MY.TotalCpus > 8 && TARGET.AcctGroup == "Alice"'
    expressions = SiteExpressions([PLAIN], start)
    other = PLAIN._replace(account="lhcb")
    assert nodes_of_jobs(expressions, PLAIN, other) == {"alice.ann": {"slot1@wn-1"}}
    assert not expressions.reads_time


START_OF_CLAIMS = {
    # START of a node of 4 cores -> if a job of one core starts there, on HTCondor 23.9.6.
    "MY.TotalCpus >= 4": True,
    'MY.SlotType =?= "Partitionable" || TARGET.RequestCpus == 1': True,
    'MY.Activity == "Idle"': True,
    "MY.Cpus >= 4": False,
    "MY.TotalSlotCpus >= 4": False,
    "MY.TotalSlotMemory > 2000": False,
    "MY.Memory > 500": False,
    "MY.NumDynamicSlots =!= undefined || MY.SlotTypeID < 0": False,
    'MY.State == "Unclaimed"': False,
    'MY.DynamicSlot =!= True || MY.State == "Claimed"': False,
    "isUndefined(MY.RemoteUser)": False,
}


@pytest.mark.parametrize("start", START_OF_CLAIMS)
def test_start_is_asked_of_the_dynamic_slot_too(start: str) -> None:
    starts = SiteExpressions([PLAIN], start).site_start
    (slot,) = SimNode(0, NodeSpec("wn-1", (SlotSpec(4, 4000),), 10.0)).slots
    assert starts is not None
    assert starts(slot, ShapedKind(0, PLAIN, "alice"), 0.0, None) is START_OF_CLAIMS[start]


def test_start_is_asked_when_a_claim_runs_its_next_job() -> None:
    """START refuses new claims and old ones at night; claims do not age."""
    start = "MY.PartitionableSlot =?= True || time() % 86400 < 43200"
    expressions = SiteExpressions([PLAIN], start)
    setup = Setup(
        (NodeSpec("wn-1", (SlotSpec(4, 4000),), 10.0),),
        {"alice": 100.0},
        access=Access(claim_worklife_seconds=-1.0),
        site_start=expressions.site_start,
        reads_time=expressions.reads_time,
    )
    twin = Twin(setup, at_once((PLAIN,), 500, 3600.0))
    used = []
    for hour in range(48):
        twin.run(3600.0 * hour + 1800)
        used.append(twin.measures["alice"].cores)
    day = [(1_700_000_000 + 3600 * hour + 1800) % 86400 < 43200 for hour in range(48)]
    assert used == [4 * is_day for is_day in day]


def test_faults_of_all_expressions_are_told_at_once() -> None:
    kinds = [PLAIN._replace(requirements=text) for text in ("", "1 +", "time() < 1")]
    with pytest.raises(InputError) as caught:
        SiteExpressions(kinds, "Cpus >")
    assert [problem.partition(": ")[0] for problem in caught.value.problems] == [
        "start.site",
        "requirements of jobs of alice.ann",
        "requirements of jobs of alice.ann",
    ]


Values = Mapping[str, object]

# ---- answers

CONDITIONS = [
    "MY.a =?= 1",
    "a == TARGET.b",
    "b || B > 2",
    "isUndefined(MY.A) && member(1, {TARGET.b, c})",
    'strcat("MY.a", TARGET.b) == "MY.a1"',
    'eval(strcat("MY.", "a")) =?= 1',
    'evalInEachContext(b, {TARGET})[0] =?= 1 || MY["a"] =?= 2',
    "time() > 100 + MY.a",
    "CurrentTime - TARGET.b == 100",
]
VALUES = st.dictionaries(
    st.sampled_from("abc"),
    st.none() | st.booleans() | st.sampled_from([0, 1, 2, 1.0, 0.0, 2.5, "1", "x", (1, 1.0), ()]),
)


def fresh(text: str, my: Values, target: Values, now: int) -> bool:
    """Answer of HTCondor with ads that are made for it."""
    ads = [
        classad2.ClassAd(
            {
                **{
                    name: list(v) if isinstance(v, tuple) else v
                    for name, v in values.items()
                    if v is not None
                },
                "moment": now,
            }
        )
        for values in (my, target)
    ]
    tree = classad2.ExprTree(text.replace("time()", "moment").replace("CurrentTime", "moment"))
    value = tree.eval(*ads)
    return type(value) in (bool, int, float) and bool(value)


@pytest.fixture(scope="module")
def conditions() -> dict[str, Condition]:
    return {text: Condition(text, "here") for text in CONDITIONS}


@given(
    st.lists(
        st.tuples(VALUES, VALUES, st.sampled_from([99, 100, 101, 102])), min_size=1, max_size=8
    )
)
def test_an_answer_is_that_of_htcondor(
    conditions: dict[str, Condition], ads: list[tuple[Values, Values, int]]
) -> None:
    """Whatever was asked before, 1, 1.0, true and "1" are not taken for each other."""
    for my, target, now in ads:
        for text, condition in conditions.items():
            assert condition.is_true(my, target, now + 0.5) is fresh(text, my, target, now), text


# ---- bad expressions

TENFOLD = {f"s{number}": " + ".join(10 * [f"eval(MY.s{number - 1})"]) for number in range(1, 12)}
FAULTS = {
    "Cpus >=": 'HTCondor cannot read "Cpus >="; write a ClassAd expression',
    "True) || (False": "HTCondor cannot read",
    f"{'(' * 30_000}1{')' * 30_000}": "HTCondor cannot",
    "x" * 70_000: "is longer than 65536 characters; write less",
    "MY.Ready && Random(5) < 3": "Random() is not of the simulation; write time(), or leave it out",
}


@pytest.mark.parametrize("text", FAULTS, ids=lambda text: text[:30])
def test_an_expression_that_cannot_be_used_is_told_with_its_place(text: str) -> None:
    with pytest.raises(InputError) as caught:
        Condition(text, "pool.yaml:3")
    assert str(caught.value).startswith(f"pool.yaml:3: {FAULTS[text]}")


def test_functions_of_a_moment_that_is_named_are_of_the_simulation() -> None:
    text = 'formatTime(time(), "%H") == "01" && regexp("random()", "random()") || true'
    assert Condition(text, "here").is_true({}, {}, 0)


def test_an_expression_that_does_not_end_is_told() -> None:
    start = Condition("eval(MY.s11) > 1", "pool.yaml:3")
    start.trial_seconds = 0.1
    with pytest.raises(InputError) as caught:
        start.is_true({**TENFOLD, "s0": "1"}, {}, 0)
    problem = "HTCondor cannot evaluate it: no answer within 0.1 s; write it simpler"
    assert str(caught.value) == f"pool.yaml:3: {problem}"
