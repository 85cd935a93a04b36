"""Every shipped example passes `sharectl consumption check`, and each check fires on a policy that is broken for it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import SimpleNamespace

import pytest

from sharectl.check.consumption import CHECKS, check
from sharectl.check.snippets import CHECKS as SNIPPET_CHECKS
from sharectl.check.subject import Finding
from sharectl.cli.main import main
from sharectl.consumption.file import parse
from sharectl.consumption.render import snippet

CORRECT = sorted((Path(__file__).parent / "consumption_correct").glob("*.conf"))
GOLDEN = sorted((Path(__file__).parent.parent / "golden" / "consumption").glob("*.conf"))
GOOD = """CONSUMPTION_POLICY = True
CONSUMPTION_CPUS = ifThenElse((TARGET.RequestCpus ?: 0) >= 0, quantize(TARGET.RequestCpus, {1}), -1)
CONSUMPTION_MEMORY = ifThenElse((TARGET.RequestMemory ?: 0) >= 0, quantize(TARGET.RequestMemory, {128}), -1)
CONSUMPTION_DISK = ifThenElse((TARGET.RequestDisk ?: 0) >= 0, quantize(TARGET.RequestDisk, {1024}), -1)
CLAIM_PARTITIONABLE_LEFTOVERS = False
SLOT_WEIGHT = Cpus
"""
LINE = GOOD.count("\n") + 1
TYPE_1 = "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = True\n"
EXAMPLES = sorted(
    Path(str(entry))
    for entry in resources.files("sharectl.consumption.examples").iterdir()
    if entry.name.endswith(".yaml")
)
# Configuration added to the good one → check that finds it, a piece of the problem, a piece of the
# remedy.
BROKEN: dict[str, tuple[str, str, str]] = {
    "CLAIM_PARTITIONABLE_LEFTOVERS = True": ("leftovers", "leftovers", "= False"),
    "CONSUMPTION_MEMORY = TARGET.RequestMemory * 1.1": ("claims", "asks for 1.1", "ceiling("),
    "CONSUMPTION_CPUS = (1": ("expressions", "the startd ends", "bracket"),
    "SLOT_TYPE_1_CONSUMPTION_CPUS =": ("expressions", "is empty", "take the line out"),
    "SLOT_WEIGHT = (1": ("expressions", "the startd ends", "bracket"),
    "CONSUMPTION_CPUS = TARGET.Cpus": ("scope", "what the slot has", "TARGET.RequestCpus"),
    "CONSUMPTION_CPUS = MY.RequestCpus": ("scope", "undefined", "TARGET.RequestCpus"),
    "MACHINE_RESOURCE_t = 2\nCONSUMPTION_t = TARGET.Requestt": (
        "claims",
        "the negotiator matches no such job",
        "write TARGET.Requestt ?: 0",
    ),
    "SLOT_TYPE_1_SLOTWEIGHT = 2 * Cpus": ("knobs", "no knob", "write SLOT_TYPE_1_SLOT_WEIGHT"),
    "SlotWeight = 2 * Cpus": ("knobs", "no knob", "write SLOT_WEIGHT"),
    "STARTD_EXPRS = ConsumptionCpus\nConsumptionCpus = TARGET.RequestCpus": (
        "policy",
        "puts HTCondor's own policies in their place",
        "CONSUMPTION_CPUS = TARGET.RequestCpus, and take the attributes out",
    ),
    "CONSUMPTION_CPUS = TARGET.RequestCpu": ("scope", "no asset", "TARGET.RequestCpus"),
    "CONSUMPTION_CPUS = quantize(TARGET.Foo, {1})": (
        "numbers",
        "no number",
        "a number for every job",
    ),
    "CONSUMPTION_CPUS = TARGET.RequestCpus - 2": ("numbers", "negative", "max({0"),
    "CONSUMPTION_CPUS = 1000000": ("room", "no room", "take less"),
    "CONSUMPTION_CPUS = 0": ("cores", "one core at least", "be 1 at least"),
    "SLOT_WEIGHT = 8 / Cpus": (
        "weight",
        "error where Cpus = 0: the negotiator ends",
        "nothing is divided",
    ),
    "CONSUMPTION_POLCY = True": ("knobs", "no knob", "write CONSUMPTION_POLICY"),
    "SLOT_TYPE_1_CONSUMTION_CPUS = 1": ("knobs", "no knob", "write SLOT_TYPE_1_CONSUMPTION_CPUS"),
    "MACHINE_RESOURCE_GPUs = 2\nCONSUMPTION_GPU = 1": (
        "knobs",
        "no knob",
        "write CONSUMPTION_GPUS",
    ),
    "CONSUMPTION_GPU = 1": ("knobs", "no knob", "write CONSUMPTION_GPUS"),
    "SLOT_TYPE_1_CONSUMPTION_MEM = 1": ("knobs", "no knob", "write SLOT_TYPE_1_CONSUMPTION_MEMORY"),
    "MACHINE_RESOURCE_NAMES = tokens\nCONSUMPTION_TOKEN = 1": (
        "knobs",
        "no knob",
        "write CONSUMPTION_TOKENS",
    ),
    "CONSUMPTION_TOKENS = 1": ("knobs", "no asset of that name", "MACHINE_RESOURCE_TOKENS"),
    "CONSUMPTION_WAFFLES = 1": ("knobs", "no asset of that name", "MACHINE_RESOURCE_WAFFLES"),
    "SLOT_TYPE_1_NUM_CLAIM = 3": ("knobs", "no knob", "write SLOT_TYPE_1_NUM_CLAIMS"),
    "MACHINE_RESOURCE_NAMES = a\nMACHINE_RESOURCE_b = 1": (
        "knobs",
        "has no effect",
        "MACHINE_RESOURCE_NAMES) b",
    ),
    "START = TARGET.RequestCpus >= 2\nCONSUMPTION_CPUS = quantize(TARGET.RequestCpus, {2})": (
        "start",
        "in vain",
        "quantizing does not change",
    ),
    "NEGOTIATOR_DEPTH_FIRST = True": (
        "combinations",
        "passes over",
        "NEGOTIATOR_MATCHLIST_CACHING = False",
    ),
    "CLAIM_PARTITIONABLE_LEFTOVERS = True\nCLAIM_RECYCLING_CONSIDER_LIMITS = False": (
        "combinations",
        "whatever their concurrency limits say",
        "CLAIM_RECYCLING_CONSIDER_LIMITS = True",
    ),
    "NEGOTIATOR_NUM_THREADS = 2\nCONSUMPTION_MEMORY = 128": (
        "combinations",
        "asked of what a job requests",
        "NEGOTIATOR_NUM_THREADS = 1",
    ),
    "NEGOTIATOR_USE_SLOT_WEIGHTS = False": ("combinations", "two units", "= True"),
    "ALLOW_PSLOT_PREEMPTION = True": ("combinations", "below zero", "= False"),
    "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = True": ("combinations", "refuses", "= False"),
    "FORCE_NEGOTIATOR_SLOT_WEIGHT = True\nSLOT_TYPE_1_SLOT_WEIGHT = 2 * Cpus": (
        "combinations",
        "replaces the weight",
        "same SLOT_WEIGHT",
    ),
    TYPE_1 + "SLOT_TYPE_2_CONSUMPTION_CPUS = 1\nNUM_SLOTS_TYPE_2 = 0": (
        "slot types",
        "no slot of type 2",
        "NUM_SLOTS_TYPE_2 = 1",
    ),
    "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_CONSUMPTION_POLICY = True": (
        "slot types",
        "not partitionable",
        "PARTITIONABLE = True",
    ),
    TYPE_1 + "SLOT_TYPE_12_CONSUMPTION_CPUS = 1": ("slot types", "from 10 on", "below 10"),
    "CONSUMPTION_POLICY = Yes": (
        "knobs",
        "no boolean: the startd ends",
        "write CONSUMPTION_POLICY = True",
    ),
    "CLAIM_PARTITIONABLE_LEFTOVERS = Flase": (
        "knobs",
        "no boolean: the schedd or startd ends",
        "write CLAIM_PARTITIONABLE_LEFTOVERS = False",
    ),
    "SCHEDD.CLAIM_PARTITIONABLE_LEFTOVERS = n": (
        "knobs",
        "no boolean: the schedd ends",
        "LEFTOVERS = False",
    ),
    "NEGOTIATOR_USE_SLOT_WEIGHTS = 2 apples": (
        "knobs",
        "ends as soon as it reads that",
        "= True, or False",
    ),
    "SLOT_TYPE_3_BACKFILL = t": (
        "knobs",
        "no boolean: the startd ends",
        "write SLOT_TYPE_3_BACKFILL = True",
    ),
    "CONSUMPTION_POLICY = False": ("slot types", "have no effect", "CONSUMPTION_POLICY = True"),
    TYPE_1 + "SLOT_TYPE_1 = cpus=4, foo=3": (
        "slot types",
        "the machine has no foo",
        "MACHINE_RESOURCE_foo",
    ),
    TYPE_1 + "SLOT_TYPE_1 = cpus=4, ram=1000, cpu=50%, gpu=3": (
        "slot types",
        "the machine has no gpu",
        "write gpus",
    ),
    "DAEMON_LIST = MASTER, SCHEDD, STARTD\nSLOT_WEIGHT = floor(Memory / 1024)": (
        "access points",
        "weighs 0 there",
        "STARTD.SLOT_WEIGHT",
    ),
    "DAEMON_LIST = MASTER, SCHEDD\nSLOT_WEIGHT = Cpus / 8.0": (
        "access points",
        "and any other, weighs 0.125 there",
        "SCHEDD_SLOT_WEIGHT = RequestCpus",
    ),
    "SCHEDD_SLOT_WEIGHT = RequestMemory / 8192": (
        "access points",
        "weighs 0 there",
        "1 at least",
    ),
    "A = $(B)\nB = $(A)\nSLOT_WEIGHT = $(A)": ("syntax", "circle", "mend"),
}
ADVICE: dict[str, tuple[str, str, str]] = {
    "NUM_CLAIMS = 2": ("claims", "has no claim id", "or more"),
    'NUM_CLAIMS = "many"': ("claims", "is no number", "whole number"),
    "SLOT_WEIGHT = 1": ("weight", "costs nothing", "sharectl consumption render"),
    "SLOT_WEIGHT = floor(Cpus / 2)": ("weight", "costs nothing", "sharectl consumption render"),
    "SLOT_WEIGHT = Cpus + 3": (
        "weight",
        "no further job fits (W = 0), but the weight is 3",
        "render",
    ),
    "SLOT_WEIGHT = 1000 - Cpus": ("cost", "costs -1", "falls as Cpus"),
    "SLOT_WEIGHT = Cpus - 4": ("weight", "is -4 where Cpus = 0", "max({0"),
    'SLOT_WEIGHT = strcat("a", Cpus)': (
        "weight",
        "its own SLOT_WEIGHT instead",
        "Cpus, Memory, Disk",
    ),
    "SLOT_WEIGHT = TARGET.RequestCpus": ("scope", "without a job", "Cpus, Memory, Disk"),
    "SLOT_WEIGHT = Cpus + 0 * time()": ("weight", "depends on time", "assets only"),
    "SLOT_WEIGHT = Cpus + LoadAvg": ("weight", "asks for LoadAvg", "Cpus, Memory, Disk"),
    "SLOT_WEIGHT = 100.0 * Cpus / TotalSlotCpus": ("weight", "from the next cycle on", "render"),
    "CONSUMPTION_CPUS = ifThenElse(Foo =?= 1, 1, TARGET.RequestCpus)": (
        "scope",
        "Foo is not scoped",
        "write MY.Foo",
    ),
    "MODIFY_REQUEST_EXPR_REQUESTMEMORY = quantize(RequestMemory, {512})": (
        "modified",
        "coarser",
        "MODIFY_REQUEST_EXPR_REQUESTMEMORY = RequestMemory",
    ),
    "MACHINE_RESOURCE_t = 2\nCONSUMPTION_t = 1\nCONSUMPTION_CPUS = 0\nSLOT_WEIGHT = t": (
        "cores",
        "the policy takes 0, and the startd gives it one core",
        "1 at least",
    ),
    "MACHINE_RESOURCE_t = 2\nCONSUMPTION_t = 1\nCONSUMPTION_CPUS = 0.5\nSLOT_WEIGHT = t": (
        "cores",
        "the policy takes 0.5, and the startd gives it one core",
        "1 at least",
    ),
    "SLOT_WEIGHT = min({Cpus, floor(Memory / 128.0)})\nSCHEDD.SLOT_WEIGHT = Cpus - 1": (
        "access points",
        "SCHEDD.SLOT_WEIGHT on access points, if this is for them too",
        "STARTD.SLOT_WEIGHT",
    ),
    "CONSUMPTION_MEMORY = 0": ("cores", "the startd gives it 1 MiB", "what a job may use"),
    "NEGOTIATOR_PRE_JOB_RANK = 1000 * MY.Cpus": (
        "combinations",
        "opposite order",
        "NEGOTIATOR_MATCHLIST_CACHING = False",
    ),
}
ADVICE_ON_EXAMPLES = {
    # Its claims take tokens, and nothing of what the startd gives them beside.
    "custom-tokens": ["CONSUMPTION_CPUS", "CONSUMPTION_MEMORY"],
    # It counts on GPUs that are detected.
    "slot-types": ["SLOT_TYPE_1"],
}
"""Example → knobs of which something is recommended."""


def found(tmp_path: Path, *texts: str, size: Mapping[str, float] | None = None) -> list[Finding]:
    paths = [tmp_path / f"node-{number}.conf" for number in range(len(texts))]
    for path, text in zip(paths, texts):
        path.write_text(text)
    return list(check(paths, size or {}).findings)


def advised(findings: Sequence[Finding]) -> list[str]:
    """Knobs of which something is recommended, where nothing is wrong."""
    assert [str(finding) for finding in findings if not finding.advice] == []
    return [finding.problem.partition(":")[0] for finding in findings]


ADVICE_ON_CORRECT = {
    # As HTCondor's authors published it: 1 before the match and 1 after it.
    "seed-static-slot": ["weight"],
    # Its claims take tokens, and nothing of what the startd gives them beside.
    "seed-tokens": ["cores", "cores"],
}
"""Correct file → checks that recommend something."""


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.stem)
def test_what_was_written_by_hand_and_works_has_no_fault(path: Path) -> None:
    """The examples that HTCondor's authors published, and what admins write: no failure, and nothing to read."""
    report = check([path], {})
    assert report.slots
    assert [str(finding) for finding in report.findings if not finding.advice] == []
    assert [finding.check for finding in report.findings] == ADVICE_ON_CORRECT.get(path.stem, [])


def test_what_access_points_need_is_no_policy_that_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ap.conf"
    path.write_text("CLAIM_PARTITIONABLE_LEFTOVERS = False\n")
    assert main(["consumption", "check", str(path)]) == 0
    assert "nothing found" in capsys.readouterr().out


def test_the_good_policy_has_no_fault(tmp_path: Path) -> None:
    assert found(tmp_path, GOOD) == []
    assert found(tmp_path, TYPE_1 + GOOD.replace("CONSUMPTION_", "SLOT_TYPE_1_CONSUMPTION_")) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda entry: entry.name)
def test_a_shipped_example_has_no_fault(example: Path, tmp_path: Path) -> None:
    text = snippet(parse(example.read_text(), example.name))
    assert advised(found(tmp_path, text)) == ADVICE_ON_EXAMPLES.get(example.stem, [])


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_what_is_rendered_has_no_fault(golden: Path) -> None:
    assert advised(check([golden], {}).findings) == ADVICE_ON_EXAMPLES.get(golden.stem, [])


def test_threads_of_the_negotiator_do_no_harm_to_what_takes_all_that_is_requested(
    tmp_path: Path,
) -> None:
    assert found(tmp_path, f"{GOOD}NEGOTIATOR_NUM_THREADS = 8\n") == []


def test_gpus_need_no_declaration(tmp_path: Path) -> None:
    """The startd finds them by itself, with or without ``use feature:GPUs``."""
    of_gpus = "CONSUMPTION_GPUS = TARGET.RequestGPUs ?: 0\n"
    weight = "SLOT_WEIGHT = Cpus + 0 * GPUs\n"
    for more in (of_gpus + weight, "use feature:GPUs\n", weight, ""):
        assert found(tmp_path, GOOD + more) == []


def test_slots_without_a_type_are_called_every_slot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.conf"
    path.write_text(f"{GOOD}CONSUMPTION_CPUS = 1000000\n")
    assert main(["consumption", "check", str(path)]) == 1
    printed = capsys.readouterr().out
    assert f"{path}, every slot: SLOT_WEIGHT = Cpus\n" in printed
    assert "every slot: no room for any job" in printed
    assert "slot type 0" not in printed


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Finding]]:
    """Configuration that was added → what is found; all are checked at once, as the nodes of a pool are."""
    folder = tmp_path_factory.mktemp("nodes")
    files = {folder / f"{number}.conf": added for number, added in enumerate((*BROKEN, *ADVICE))}
    for path, added in files.items():
        path.write_text(f"{GOOD}{added}\n")
    seen = check(tuple(files), {}).findings
    return {
        added: [
            finding
            for finding in seen
            if finding.place.startswith(f"{path}:") and finding.check != "nodes"
        ]
        for path, added in files.items()
    }


@pytest.mark.parametrize("added", BROKEN)
def test_a_broken_policy_is_found(added: str, findings: dict[str, list[Finding]]) -> None:
    check_name, problem, remedy = BROKEN[added]
    assert any(
        finding.check == check_name and problem in finding.problem and remedy in finding.remedy
        for finding in findings[added]
        if not finding.advice
    ), [str(finding) for finding in findings[added]]


@pytest.mark.parametrize("added", ADVICE)
def test_what_works_but_is_not_meant_is_advice(
    added: str, findings: dict[str, list[Finding]]
) -> None:
    check_name, problem, remedy = ADVICE[added]
    assert [str(finding) for finding in findings[added] if not finding.advice] == []
    assert any(
        finding.check == check_name and problem in finding.problem and remedy in finding.remedy
        for finding in findings[added]
    ), [str(finding) for finding in findings[added]]


def test_every_check_is_shown_to_fire() -> None:
    shown = {expected for expected, _, _ in BROKEN.values()} | {
        expected for expected, _, _ in ADVICE.values()
    }
    # Shown by tests of their own, below.
    assert {name for name, _, _ in CHECKS} == (shown) | {"policy", "zero", "nodes"}


def test_a_finding_is_where_the_last_assignment_is(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, f"{GOOD}SLOT_WEIGHT = 8 / Cpus\n")
    assert finding.place == f"{tmp_path / 'node-0.conf'}:{LINE}"


def test_no_policy_at_all_is_a_finding(tmp_path: Path) -> None:
    assert [finding.check for finding in found(tmp_path, "START = True\n")] == ["policy"]


def test_nodes_that_charge_the_same_job_differently_are_found(tmp_path: Path) -> None:
    in_power = GOOD.replace("= Cpus", "= 10 * Cpus")
    (advice,) = found(tmp_path, GOOD, in_power)
    assert (advice.check, advice.advice) == ("nodes", True)
    assert "costs 10 on" in advice.problem
    (finding,) = found(tmp_path, f"{GOOD}GROUP_NAMES = cms\n", in_power)
    assert (finding.check, finding.advice) == ("nodes", False)
    assert found(tmp_path, GOOD, GOOD.replace("= Cpus", "= 1.0 * Cpus + 0")) == []


def test_an_access_point_that_wants_leftovers_is_found_beside_a_node_with_a_policy(
    tmp_path: Path,
) -> None:
    access_point = "DAEMON_LIST = MASTER, SCHEDD\nCLAIM_PARTITIONABLE_LEFTOVERS = True\n"
    (finding,) = found(tmp_path, GOOD, access_point)
    assert finding.place == f"{tmp_path / 'node-1.conf'}:2"


def test_nodes_are_compared_like_with_like(tmp_path: Path) -> None:
    def of(*weights: str) -> str:
        return "".join(
            f"NUM_SLOTS_TYPE_{n} = 1\nSLOT_TYPE_{n}_PARTITIONABLE = "
            f"True\nSLOT_TYPE_{n}_SLOT_WEIGHT = {weight}\n"
            for n, weight in enumerate(weights, 1)
        )

    def compared(*texts: str) -> list[Finding]:
        return [
            one for one in found(tmp_path, *(GOOD + text for text in texts)) if one.check == "nodes"
        ]

    two = of("Cpus", "2 * Cpus")
    assert compared(two, two) == []
    assert compared(two, "") == []
    assert compared("", two) == []
    (finding,) = compared(two, of("Cpus", "3 * Cpus"))
    assert "costs 3 on" in finding.problem
    assert "slot type 2, and 2 on" in finding.problem
    (finding,) = compared(two, "SLOT_WEIGHT = 5 * Cpus\n")
    assert "costs 5 on" in finding.problem


@pytest.mark.parametrize(
    ("added", "place", "problem"),
    [
        ("", "", "is True, as by default, on an access point: if any node has"),
        (
            "CLAIM_PARTITIONABLE_LEFTOVERS = True\n # at: /etc/condor/a.conf, line 3\n",
            "/etc/condor/a.conf:3",
            "is True on an",
        ),
    ],
)
def test_leftovers_of_an_access_point_alone_are_advice(
    added: str, place: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ap.dump"
    head = "# Configuration from machine: ap-1\nDAEMON_LIST = MASTER, SCHEDD\n"
    path.write_text(head + added)
    (advice,) = check([path], {}).findings
    assert (advice.check, advice.advice, advice.place) == ("leftovers", True, place or str(path))
    assert problem in advice.problem
    assert main(["consumption", "check", str(path)]) == 0
    assert "no slot with a consumption policy was there to check\n" in capsys.readouterr().out
    path.write_text(f"{head}CLAIM_PARTITIONABLE_LEFTOVERS = False\n")
    assert check([path], {}).findings == ()


WEIGHED = "SLOT_WEIGHT = min({floor(MY.Cpus / 1.0), floor(MY.Memory / 1024.0)})\n"


@pytest.mark.parametrize(
    "added",
    [
        f"STARTD.{WEIGHED}",
        f"STARTD.{WEIGHED}SLOT_WEIGHT = Cpus\n",
        f"{TYPE_1}SLOT_TYPE_1_{WEIGHED}",
        f"{WEIGHED}SCHEDD_SLOT_WEIGHT = RequestCpus\n",
        f"{WEIGHED}SCHEDD_USE_SLOT_WEIGHT = False\n",
        f"{WEIGHED}DAEMON_LIST = MASTER, STARTD\n",
        "SLOT_WEIGHT = Memory\n",
        "MACHINE_RESOURCE_t = 8\nCONSUMPTION_t = 1\nSLOT_WEIGHT = MY.t\n",
    ],
)
def test_a_weight_that_no_schedd_takes_or_that_counts_a_job_is_not_one_for_access_points(
    added: str, tmp_path: Path
) -> None:
    assert [one for one in found(tmp_path, GOOD + added) if one.check == "access points"] == []


def test_the_dump_of_an_access_point_is_judged_by_what_its_schedd_weighs(tmp_path: Path) -> None:
    head = (
        "# Configuration from machine: ap-1\nDAEMON_LIST = MASTER, "
        "SCHEDD\nCLAIM_PARTITIONABLE_LEFTOVERS = False\n"
    )
    (finding,) = found(tmp_path, head + WEIGHED)
    assert (finding.check, finding.advice) == ("access points", False)
    assert (
        "on an access point: an idle job with RequestCpus = 1, RequestMemory = 128"
        in finding.problem
    )
    assert found(tmp_path, f"{head}{WEIGHED}SCHEDD_SLOT_WEIGHT = RequestCpus\n") == []
    # A snippet of slots is for execute points.
    assert [one for one in found(tmp_path, GOOD + WEIGHED) if one.check == "access points"] == []


def test_claim_ids_are_counted_for_jobs_without_custom_resources_too(tmp_path: Path) -> None:
    of_resource = "".join(
        f"MACHINE_RESOURCE_{name} = {units}\n"
        f"CONSUMPTION_{name} = ifThenElse((TARGET.Request{name} ?: 0) >= 0, "
        f"TARGET.Request{name} ?: 0, -1)\n"
        for name, units in (("GPUs", 2), ("Licence", 10))
    )
    (finding,) = found(tmp_path, f"{GOOD}{of_resource}NUM_CLAIMS = 2\n")
    assert "8 jobs with RequestCpus = 1, RequestMemory = 1, RequestDisk = 1 fit" in finding.problem
    assert found(tmp_path, f"{GOOD}{of_resource}NUM_CLAIMS = 8\n") == []
    (finding,) = found(tmp_path, f"{GOOD}{of_resource}NUM_CLAIMS = 8\n", size={"cpus": 64})
    assert "write 64 or more" in finding.remedy


TWO_TYPES = "".join(f"NUM_SLOTS_TYPE_{n} = 1\nSLOT_TYPE_{n}_PARTITIONABLE = True\n" for n in (1, 2))
LICENCES = "MACHINE_RESOURCE_Licence = 10\nCONSUMPTION_LICENCE = 5\n"


@pytest.mark.parametrize(
    "shares",
    [
        "= cpus=12, memory=64000, licence=4",
        "= c=12 r=50% Licence=40%",
        "@=end\ncpus=12\nmemory=64G\nlicence=4\n@end",
    ],
)
def test_each_slot_type_has_its_own_amounts(shares: str, tmp_path: Path) -> None:
    text = f"{GOOD}{TWO_TYPES}{LICENCES}SLOT_TYPE_1 {shares}\nSLOT_TYPE_2 = cpus=4, memory=6400\n"
    findings = found(tmp_path, text)
    (room,) = [one for one in findings if one.check == "room"]
    assert "slot type 1: no room" in room.problem
    assert "Cpus = 12," in room.problem
    assert room.problem.endswith("Licence = 4")
    # The other one has what is left.
    (weight,) = [one for one in findings if one.check == "weight"]
    assert "after 1 jobs" in weight.problem
    assert "Cpus = 3, Memory = 6272" in weight.problem
    assert "Licence = 1," in weight.problem


def test_a_type_without_gpus_has_no_room_for_a_policy_that_takes_one(tmp_path: Path) -> None:
    text = (
        f"{GOOD}{TWO_TYPES}CONSUMPTION_GPUS = 1\nSLOT_TYPE_1 = 50%, gpus=0\nSLOT_TYPE_2 = 50%, "
        "gpus=2\n"
    )
    (room,) = [one for one in found(tmp_path, text) if one.check == "room"]
    assert "slot type 1: no room" in room.problem


def test_amounts_that_types_say_are_of_the_machine_that_is_named(tmp_path: Path) -> None:
    text = f"{GOOD}{TWO_TYPES}SLOT_TYPE_1 = cpus=10\nSLOT_TYPE_2 = cpus=8\n"
    (finding,) = found(tmp_path, text, size={"cpus": 16})
    assert "more than the machine has, Cpus = 10 + 8 of 16:" in finding.problem
    assert found(tmp_path, text, size={"cpus": 18}) == []
    text = f"{text}NUM_CLAIMS = 10\n"
    assert found(tmp_path, text, size={"cpus": 18}) == []
    halves = f"{GOOD}{TWO_TYPES}SLOT_TYPE_1 = 50%\nSLOT_TYPE_2 = 50%\n"
    assert found(tmp_path, halves, size={"cpus": 16}) == []


def test_a_type_with_gpus_where_none_are_detected_is_found(tmp_path: Path) -> None:
    def of(text: str, size: Mapping[str, float] | None = None) -> list[Finding]:
        return [one for one in found(tmp_path, text, size=size) if one.check == "slot types"]

    text = f"{TYPE_1}{GOOD}SLOT_TYPE_1 = cpus=4, gpus=2\n"
    dump = f"# Configuration from machine: wn-1\nNUM_CPUS = 8\nMEMORY = 65536\n{text}"
    (finding,) = of(f"{dump}STARTD_DETECT_GPUS =\n")
    assert not finding.advice
    assert "gpus = 2, and the machine has no gpus" in finding.problem
    assert of(f"{dump}STARTD_DETECT_GPUS = -properties\n") == []
    assert of(f"{dump}STARTD_DETECT_GPUS =\nMACHINE_RESOURCE_GPUS = 2\n") == []
    (advice,) = of(text)
    assert advice.advice
    assert "condor_config_val STARTD_DETECT_GPUS" in advice.remedy
    for declared in ("use feature:GPUs\n", "MACHINE_RESOURCE_GPUS = 2\n"):
        assert of(text + declared) == []
    assert of(text, {"gpus": 2}) == []


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ("cpus=12, memory=4096", "cpus=8, memory=4096", "Cpus = 12 + 8 of 16"),
        ("cpus=8, Licence=4", "cpus=8, Licence=7", "Licence = 4 + 7 of 10"),
        ("75%", "cpus=4, memory=1/2", "Memory = 75% + 50%"),
        ("75%, cpus=8", "25%", ""),
        ("cpus=8, Licence=4", "cpus=8", ""),
    ],
)
def test_slot_types_that_want_more_than_there_is_are_found(
    first: str, second: str, problem: str, tmp_path: Path
) -> None:
    text = (
        f"{GOOD}{TWO_TYPES}NUM_CPUS = 16\nMACHINE_RESOURCE_Licence = 10\nSLOT_TYPE_1 = "
        f"{first}\nSLOT_TYPE_2 = {second}\n"
    )
    findings = [one.problem for one in found(tmp_path, text) if one.check == "slot types"]
    assert len(findings) == bool(problem)
    assert all(f"more than the machine has, {problem}:" in one for one in findings)
    backfill = f"{text}SLOT_TYPE_2_BACKFILL = True\n"
    assert [one for one in found(tmp_path, backfill) if one.check == "slot types"] == []


def test_the_cause_comes_first_and_what_follows_from_it_is_one_finding(tmp_path: Path) -> None:
    typed = GOOD.replace("CONSUMPTION_", "SLOT_TYPE_1_CONSUMPTION_")
    cause, effect = found(tmp_path, TYPE_1 + typed.replace("_POLICY", "_POLCY"))
    assert cause.remedy == "write SLOT_TYPE_1_CONSUMPTION_POLICY"
    names = ", ".join(f"SLOT_TYPE_1_CONSUMPTION_{asset}" for asset in ("CPUS", "MEMORY", "DISK"))
    assert effect.problem.startswith(f"{names} have no effect: CONSUMPTION_POLICY is not True")
    dump = "# Configuration from machine: wn-1\nNUM_CPUS = 8\nMEMORY = 65536\n"
    (wrong,) = found(tmp_path, dump + TYPE_1 + typed.replace("TYPE_1", "TYPE_3"))
    assert wrong.problem.endswith("SLOT_TYPE_3_CONSUMPTION_DISK: the node has no slot of type 3")
    # Another file may have it.
    (advice,) = found(tmp_path, TYPE_1 + typed.replace("TYPE_1", "TYPE_3"))
    assert advice.advice
    assert (
        "SLOT_TYPE_3_CONSUMPTION_DISK: this configuration has slots of type 1, and none of type 3"
        in advice.problem
    )


def test_knobs_of_slot_type_0_are_found(tmp_path: Path) -> None:
    of_0 = GOOD.replace("CONSUMPTION_", "SLOT_TYPE_0_CONSUMPTION_")
    dump = "# Configuration from machine: wn-1\nNUM_CPUS = 8\nMEMORY = 65536\n"
    (wrong,) = found(tmp_path, dump + TYPE_1 + of_0)
    assert (wrong.check, wrong.advice, wrong.place) == (
        "slot types",
        False,
        f"{tmp_path / 'node-0.conf'}:7",
    )
    assert wrong.problem.startswith(
        "SLOT_TYPE_0_CONSUMPTION_POLICY, SLOT_TYPE_0_CONSUMPTION_CPUS, "
    )
    assert wrong.problem.endswith("this configuration has slots of type 1: nothing reads that")
    # A node without slot types reads them; whether a snippet is for one is not known.
    assert found(tmp_path, dump + of_0) == []
    (advice,) = found(tmp_path, of_0)
    assert (advice.check, advice.advice) == ("slot types", True)
    assert "only a node without slot types reads that" in advice.problem
    for named in ("NUM_SLOTS_TYPE_0 = 1", "SLOT_TYPE_0 = cpus=4"):
        (wrong,) = found(tmp_path, f"{GOOD}{named}\n")
        assert (wrong.check, wrong.advice) == ("slot types", False)
        assert f"(Can't define {named.split()[0]} in the config file)" in wrong.problem


@pytest.mark.parametrize(
    ("knob", "written", "happens"),
    [
        (
            "CONSUMPTION_POLICY",
            "yes",
            "passes over it without a word, as if it were CONSUMPTION_POLICY = False",
        ),
        ("PARTITIONABLE", "Yes", "takes it for False without a word, and the slots are static"),
    ],
)
def test_a_boolean_of_a_type_that_the_startd_does_not_read_is_one_finding_and_no_policy(
    knob: str, written: str, happens: str, tmp_path: Path
) -> None:
    typed = TYPE_1 + GOOD.replace("CONSUMPTION_", "SLOT_TYPE_1_CONSUMPTION_")
    path = tmp_path / "a.conf"
    path.write_text(typed.replace(f"{knob} = True", f"{knob} = {written}"))
    report = check([path], {})
    (finding,) = report.findings
    assert (finding.check, finding.advice, happens in finding.problem) == ("knobs", False, True)
    assert finding.remedy == f"write SLOT_TYPE_1_{knob} = True"
    assert report.slots == ()
    # With a policy for all types, the startd goes by that.
    path.write_text(
        f"{typed}CONSUMPTION_POLICY = True\n".replace(
            "1_CONSUMPTION_POLICY = True", "1_CONSUMPTION_POLICY = yes"
        )
    )
    report = check([path], {})
    assert [
        finding.problem.endswith("as if it were CONSUMPTION_POLICY = True")
        for finding in report.findings
    ] == [True]
    assert len(report.slots) == 1


def test_an_expression_or_a_number_is_a_boolean(tmp_path: Path) -> None:
    for text in ("1", "2", "1 == 1", "tRUE"):
        assert found(tmp_path, GOOD.replace("POLICY = True", f"POLICY = {text}")) == []


def test_a_boolean_that_no_daemon_reads_there_is_advice(tmp_path: Path) -> None:
    dump = "# Configuration from machine: wn-1\nDAEMON_LIST = MASTER, STARTD\n"
    (finding,) = found(tmp_path, f"{dump}{GOOD}NEGOTIATOR_DEPTH_FIRST = Flase\n")
    assert (finding.check, finding.advice) == ("knobs", True)
    assert finding.problem.endswith("(by DAEMON_LIST there is no NEGOTIATOR here)")


def test_what_is_recommended_where_nothing_is_taken_passes(tmp_path: Path) -> None:
    (finding,) = [
        one
        for one in found(tmp_path, re.sub(r"(CONSUMPTION_[CMD].*) = .*", r"\1 = 0", GOOD))
        if one.check == "zero"
    ]
    better = finding.remedy.partition("such as ")[2]
    assert found(tmp_path, f"{GOOD}{better}\n") == []


def test_it_is_said_that_what_cannot_be_read_hides_other_faults(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, f"{GOOD}CONSUMPTION_DISK = (1\nSLOT_WEIGHT = 64 / Cpus\n")
    assert finding.remedy.endswith(
        "; nothing else of these slots' policies and weight is tried before"
    )


def test_knobs_of_the_startd_alone_go_before_those_of_all_daemons(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, f"{GOOD}STARTD.SLOT_WEIGHT = 8 / Cpus\n")
    assert finding.problem.startswith("STARTD.SLOT_WEIGHT is error where Cpus = 0")
    (finding,) = found(tmp_path, f"{TYPE_1}{GOOD}STARTD.SLOT_TYPE_1_CONSUMPTION_CPUS = 1000000\n")
    assert finding.check == "room"
    (finding,) = found(tmp_path, f"{GOOD}STARTD.SLOT_TYPE_1_CONSUMPTION_CPU = 1\n")
    assert finding.remedy == "write STARTD.SLOT_TYPE_1_CONSUMPTION_CPUS"


@pytest.mark.parametrize(
    ("size", "problem"),
    [
        ("cpu=4", "no asset cpu (they have cpus, memory, disk); write cpus,"),
        ("cpus=4,foo=3", "no asset foo (they have cpus, memory, disk); declare it"),
        ("gpu=2", "write gpus,"),
    ],
)
def test_an_amount_of_what_slots_do_not_have_is_refused(
    size: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.conf"
    path.write_text(GOOD)
    assert main(["consumption", "check", "--slot", size, str(path)]) == 65
    assert problem in capsys.readouterr().err


def test_gpus_of_the_slot_that_is_named_are_some_that_the_startd_finds(tmp_path: Path) -> None:
    text = f"{GOOD}CONSUMPTION_GPUS = 3\n"
    (room,) = found(tmp_path, text, size={"cpus": 4, "gpus": 2})
    assert room.check == "room"
    assert found(tmp_path, GOOD, size={"cpus": 4, "gpus": 0}) == []
    levels = {"cpus": 8, "memory": 8, "disk": 8, "gpus": 2}
    assets = "".join(f"    {name}: {{levels: {many}}}\n" for name, many in levels.items())
    text = snippet(parse(f"startd:\n  model: quanta_any\n  assets:\n{assets}", "-"))
    for size in ({}, {"cpus": 16, "memory": 64000, "gpus": 2}):
        assert advised(found(tmp_path, text, size=size)) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            EXAMPLES[0].read_bytes(),
            "is YAML for `sharectl consumption render`, and no configuration; render it first",
        ),
        (bytes(range(256)), "is no text, so it is no configuration"),
        (b"\xff\xfe\x9c\x81\xaa\xbb", "is no text, so it is no configuration"),
    ],
)
def test_a_file_that_is_no_configuration_is_named(
    content: bytes, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "good.yaml"
    path.write_bytes(content)
    assert main(["consumption", "check", str(path)]) == 65
    printed = capsys.readouterr().err
    assert f"{path}:" in printed
    assert problem in printed


def test_a_file_that_htcondor_refuses_is_told_of_by_its_own_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{GOOD}FOO BAR\n"
    (finding,) = found(tmp_path, text)
    assert finding.place == f"{tmp_path / 'node-0.conf'}:{LINE}"
    assert finding.problem.endswith('no daemon starts with it: it cannot read "FOO BAR"')
    (finding,) = check([tmp_path], {}).findings
    assert (finding.place, finding.problem[-9:]) == (
        f"{tmp_path / 'node-0.conf'}:{LINE}",
        '"FOO BAR"',
    )
    # The process's own standard input, as a shell's pipe would set it.
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    assert main(["consumption", "check", "-"]) == 1
    assert f"\n-:{LINE}: HTCondor cannot use" in capsys.readouterr().out
    assert main(["consumption", "check", "/dev/null"]) == 65
    assert "/dev/null: is no regular file; name a file" in capsys.readouterr().err


def test_a_comment_in_another_encoding_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_bytes(b"# f\xfcr gro\xdfe Knoten\n" + GOOD.encode())
    assert list(check([path], {}).findings) == []


def test_the_seeds_static_slot_is_free_of_charge(tmp_path: Path) -> None:
    """As published: SLOT_WEIGHT = 1 before and after the match."""
    text = GOOD + "CONSUMPTION_CPUS = TotalSlotCpus\nCONSUMPTION_MEMORY = TotalSlotMemory\n"
    text += "CONSUMPTION_DISK = floor(0.9 * TotalSlotDisk)\nSLOT_WEIGHT = 1\n"
    (finding,) = found(tmp_path, text)
    assert "from 1 to 1: the match costs nothing" in finding.problem


def test_a_weight_is_judged_for_the_slot_that_is_named(tmp_path: Path) -> None:
    text = (
        f"{GOOD}CONSUMPTION_CPUS = 1\nCONSUMPTION_MEMORY = quantize(TARGET.RequestMemory, "
        f"{{1024}})\n"
    )
    text += "STARTD.SLOT_WEIGHT = floor(Memory / 1024)\n"
    assert found(tmp_path, text) == []
    assert found(tmp_path, text, size={"cpus": 8, "memory": 8192}) == []
    (finding,) = found(tmp_path, text, size={"cpus": 8, "memory": 65536})
    assert "after 8 jobs" in finding.problem
    assert "the weight is 56" in finding.problem


def test_a_dump_is_judged_with_its_own_size_and_places(tmp_path: Path) -> None:
    dump = "# Configuration from machine: wn-1\nNUM_CPUS = 8\nMEMORY = 65536\n"
    dump += (
        "SLOT_WEIGHT = floor(Memory / 1024)\n # at: /etc/condor/config.d/50-cp.conf, line 9\n # "
        "expanded: 1\n"
    )
    dump += GOOD.replace("SLOT_WEIGHT = Cpus\n", "").replace("{128}", "{1024}")
    (finding,) = found(tmp_path, dump)
    assert finding.place == "/etc/condor/config.d/50-cp.conf:9"
    assert "Cpus = 0" in finding.problem


def test_a_dump_neither_reads_files_nor_runs_commands(tmp_path: Path) -> None:
    mark, other = tmp_path / "ran", tmp_path / "other.conf"
    other.write_text("SLOT_WEIGHT = 8 / Cpus\n")
    dump = f"# Configuration from machine: wn-1\n{GOOD}include : touch {mark} |\n"
    dump += (
        f"include command : touch {mark}\nLOCAL_CONFIG_FILE = touch {mark} |\nLOCAL_CONFIG_DIR = "
        f"{tmp_path}\n"
    )
    dump += f"include : {other}\nuse FEATURE : GPUs\n"
    assert found(tmp_path, dump) == []
    assert not mark.exists()


@pytest.mark.parametrize(
    "line", ["include : touch {} |", "include command : touch {}", "@include : touch {} |"]
)
def test_a_file_that_runs_a_command_is_refused(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, mark = tmp_path / "a.conf", tmp_path / "ran"
    path.write_text(f"{GOOD}{line.format(mark)}\n")
    assert main(["consumption", "check", str(path)]) == 65
    assert f"{path}:{LINE}: runs a command" in capsys.readouterr().err
    assert not mark.exists()


def test_the_command_prints_findings_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "10-cp.conf").write_text(GOOD)
    assert main(["consumption", "check", str(tmp_path)]) == 0
    assert "nothing found" in capsys.readouterr().out
    (tmp_path / "20-more.conf").write_text("SLOT_WEIGHT = 1\nCONSUMPTION_POLCY = True\n")
    assert main(["consumption", "check", "--json", str(tmp_path)]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert {(finding["check"], finding["advice"]) for finding in printed["findings"]} == {
        ("weight", True),
        ("knobs", False),
    }
    (tmp_path / "20-more.conf").write_text("SLOT_WEIGHT = 1\n")
    assert main(["consumption", "check", str(tmp_path)]) == 0
    assert "1 recommended" in capsys.readouterr().out


@pytest.mark.parametrize("command", [("consumption", "check"), ("check", "snippets")])
def test_the_help_lists_each_check_on_a_line_of_its_own(
    command: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    checks = (
        capsys.readouterr()
        .out.partition("checks, and what holds if nothing is found:\n")[2]
        .splitlines()
    )
    known = CHECKS if command[0] == "consumption" else SNIPPET_CHECKS
    assert [line.split("  ")[1] for line in checks] == [name for name, *_ in known]


def test_standard_input_is_a_snippet_or_a_dump(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for head in ("", "# Configuration from machine: wn-1\n"):
        text = f"{head}{GOOD}SLOT_WEIGHT = 8 / Cpus\n"
        # The process's own standard input, as a shell's pipe would set it.
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        assert main(["consumption", "check", "-"]) == 1
        assert f"-:{LINE + bool(head)}: SLOT_WEIGHT is error" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["cpus", "cpus=-1", "cpus=1e400", "cpus=1,,memory=2", "=3"])
def test_an_amount_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_code:
        main(["consumption", "check", "--slot", text])
    assert exit_code.value.code == 2
    assert "cpus=64,memory=256000" in capsys.readouterr().err


def test_amounts_of_a_slot_are_taken_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.conf"
    path.write_text(GOOD)
    for more in (
        ["cpus=64,memory=1"],
        ["memory=1", "--slot", "cpus=64"],
        ["cpus=64", "--slot", "memory=1"],
    ):
        assert main(["consumption", "check", str(path), "--slot", *more]) == 1
        assert "no room for any job" in capsys.readouterr().out
    for twice in (["cpus=1,CPUs=2"], ["cpus=1", "--slot", "memory=9,Cpus=1"]):
        with pytest.raises(SystemExit) as exit_code:
            main(["consumption", "check", str(path), "--slot", *twice])
        assert exit_code.value.code == 2
        assert "says cpus more than once; write each once" in capsys.readouterr().err


def test_a_path_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["consumption", "check", str(tmp_path / "a"), str(tmp_path / "b")]) == 65
    assert capsys.readouterr().err.count("no such file or folder") == 2


def test_only_folders_are_put_on_top_of_this_machines_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my.conf"
    path.write_text(GOOD)
    assert main(["consumption", "check", "--with-local", str(path), "-", str(tmp_path / "a")]) == 65
    (missing, file, pipe) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path / 'a'}: no such file or folder" in missing
    assert f"{path}: --with-local puts folders on top of" in file
    assert f"name its folder, {tmp_path}, or leave --with-local out" in file
    assert "write it into a folder of its own" in pipe


def test_control_characters_of_a_dump_do_not_reach_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "dump"
    path.write_text(f"# Configuration from machine: wn-1\n{GOOD}SLOT_WEIGHT = \x1b[31m(\n")
    assert main(["consumption", "check", str(path)]) == 1
    assert "\x1b" not in capsys.readouterr().out
