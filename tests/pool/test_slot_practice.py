"""Three slot types on one node: START, attributes, names, claims, draining, snapshots."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import configure, hold_back, publish, shown, snippet
from tests.pool.slot_practice import ACCESS, EXAMPLES, at, example, places, slots, started, submit

pytestmark = pytest.mark.semantics

TYPED = "wn-001.example.org"
GENERAL_CORES, SHORT_CORES, OPS_CORES = 17, 6, 1
CAP = 2
SHORT, BRIEF = "allowed_job_duration = 1800", "allowed_job_duration = 600"
SHARECTL = snippet("MAXJOBRETIREMENTTIME = 3600", grace_seconds=1)
DEFRAG = """\
DAEMON_LIST = $(DAEMON_LIST) DEFRAG
DEFRAG_INTERVAL = 2
DEFRAG_DRAINING_MACHINES_PER_HOUR = 3600
DEFRAG_MAX_CONCURRENT_DRAINING = 1
DEFRAG_MAX_WHOLE_MACHINES = 5
"""
TYPES = example("50-draining-execute-point.conf") + SHARECTL + example("70-slot-types.conf")
SPEC = BoxSpec(
    (ExecutePoint(TYPED, GENERAL_CORES + SHORT_CORES + OPS_CORES, config=TYPES),),
    access_points=(ACCESS,),
)
"""A node with three slot types under sharectl."""


@pytest.fixture(autouse=True)
def _undrained(box: Box) -> Iterator[None]:
    yield
    box.run(["condor_drain", "-cancel", TYPED], check=False)  # fails where nothing drains


def held(box: Box, prefix: str, group: str) -> int:
    """Cores that a group holds in the dynamic slots of a partitionable slot."""
    return sum(
        ad["Cpus"]
        for name, ad in slots(box, TYPED).items()
        if name.startswith(f"{prefix}_") and ad.get("AccountingGroup", "").startswith(f"{group}.")
    )


def test_each_slot_type_has_its_own_start_attributes_and_names(box: Box) -> None:
    """A partitionable slot stays Unclaimed: the format of the examples shows its jobs."""
    kept_out = submit(box, 1, at(TYPED, "short"))
    no_ops = submit(box, 1, SHORT, at(TYPED, "ops"), group="cms")
    short = submit(box, 2, SHORT, at(TYPED, "short"), group="cms", cores=2)
    ops = submit(box, 1, at(TYPED, "ops"), group="ops")
    general = submit(box, 3, at(TYPED, "general"), group="atlas")
    started(box, general, 3)
    started(box, short, 2)
    started(box, ops, 1)
    assert not places(box, kept_out), "a job that may take long got into the short slot"
    assert not places(box, no_ops), "a job of cms got into the slot of the site's tests"
    assert places(box, ops) == [f"ops3@{TYPED}"]

    seen = slots(box, TYPED)
    kinds = {name: (ad["SlotKind"], ad["SlotType"]) for name, ad in seen.items()}
    assert kinds == {
        "slot1": ("general", "Partitionable"),
        **{f"slot1_{number}": ("general", "Dynamic") for number in (1, 2, 3)},
        "short2": ("short", "Partitionable"),
        **{f"short2_{number}": ("short", "Dynamic") for number in (1, 2)},
        "ops3": ("ops", "Static"),
    }
    weighed = {name for name, ad in seen.items() if str(ad["SlotWeight"]).endswith("* MY.Cpus)/")}
    assert weighed == {name for name in seen if name.startswith("short2")}, "dynamic slots inherit"

    def printed() -> dict[str, list[str]]:
        """Slot -> cores, used, free, jobs, state, groups."""
        command = ("-pr", str(EXAMPLES / "partitionable-slots.cpf"), TYPED)
        heading, *lines = filter(None, shown(box, *command))
        assert heading[1:6] == ["SLOT", "CORES", "USED", "FREE", "JOBS"]
        return {words[1]: words[2:6] + words[7:] for words in lines}

    expected = {
        f"slot1@{TYPED}": "17 3 14 3 Unclaimed " + ",".join(["atlas.bob@example.org"] * 3),
        f"short2@{TYPED}": "6 4 2 2 Unclaimed " + ",".join(["cms.bob@example.org"] * 2),
    }
    rows = {slot: row.split() for slot, row in expected.items()}
    box.wait_until(lambda: printed() == rows, "the command shows them")


def test_the_clauses_of_sharectl_hold_in_each_slot_type(box: Box) -> None:
    """A cap is one for each partitionable slot."""
    hold_back(box, CAP, TYPED)
    submit(box, 4, SHORT, at(TYPED, "short"), group="alice")
    submit(box, 4, at(TYPED, "general"), group="alice")
    submit(box, 4, at(TYPED, "general"), group="lhcb")
    submit(box, 1, at(TYPED, "general"), group="cms", cores=8)
    box.wait_until(lambda: held(box, "slot1", "cms") == 8, "the helped group gets in")

    def of_alice() -> set[int]:
        return {held(box, name, "alice") for name in ("slot1", "short2")}

    box.wait_until(lambda: of_alice() == {CAP}, "and the cap")
    assert held(box, "slot1", "lhcb") == 0
    publish(box)
    box.wait_until(lambda: of_alice() == {4}, "no cap any more")


def test_claims_end_by_slot_type(box: Box) -> None:
    """With CLAIM_WORKLIFE = 0 each short job makes a dynamic slot; others use slots again."""

    def made(slot_type: int) -> int:
        return box.log_text(TYPED, "STARTD").count(f"New dSlot of type {slot_type} allocated")

    before = made(1), made(2)
    submit(box, 3 * SHORT_CORES, SHORT, at(TYPED, "short"), "arguments = \"-c 'sleep 1'\"")
    submit(box, 3 * GENERAL_CORES, at(TYPED, "general"), "arguments = \"-c 'sleep 1'\"")
    box.wait_until(lambda: not box.jobs(), "all have run")
    assert made(2) - before[1] == 3 * SHORT_CORES
    assert made(1) - before[0] < 3 * GENERAL_CORES


def test_a_drain_is_for_every_slot_and_asks_what_each_type_admits(box: Box) -> None:
    general = submit(box, 2, at(TYPED, "general"))
    short = submit(box, 1, SHORT, at(TYPED, "short"))
    started(box, general, 2)
    started(box, short)
    normally = {name: ad["Start"] for name, ad in slots(box, TYPED).items()}
    box.run(["condor_drain", "-graceful", TYPED])

    def drains() -> bool:
        ads = slots(box, TYPED).values()
        drained = [ad.get("Draining") is True and "Duration <= 600" in ad["Start"] for ad in ads]
        return drained == [True] * 6

    box.wait_until(drains, "every slot drains, by one START for all")
    states = {name: ad["State"] for name, ad in slots(box, TYPED).items()}
    whole = {states.pop(name) for name in ("slot1", "short2", "ops3")}
    assert (whole, [*states.values()]) == ({"Drained"}, ["Claimed"] * 3), "jobs run on"

    not_ops = submit(box, 1, BRIEF, at(TYPED, "ops"))
    too_long = submit(box, 1, SHORT, at(TYPED, "short"))
    brief = [
        submit(box, 1, BRIEF, at(TYPED, kind), group="ops") for kind in ("general", "short", "ops")
    ]
    for cluster in brief:
        started(box, cluster)
    assert not places(box, too_long), "the type's own START would let it in"
    assert not places(box, not_ops), "what the type admits still holds"
    box.run(["condor_drain", "-cancel", TYPED])
    started(box, too_long)
    afterwards = {name: ad["Start"] for name, ad in slots(box, TYPED).items()}
    assert {name: afterwards[name] for name in normally} == normally
    assert not places(box, not_ops)
    assert len(places(box, general) + places(box, short)) == 3, "no job was stopped"


def test_condor_defrag_has_to_be_told_which_slot_type_counts(box: Box) -> None:
    """With the defaults an idle short slot makes a full node whole; the example drains it."""
    central = box.spec.central_point
    filled = submit(box, GENERAL_CORES, at(TYPED, "general"))
    started(box, filled, GENERAL_CORES)
    elsewhere = f'DEFRAG_REQUIREMENTS = PartitionableSlot && Machine == "{TYPED}"\n'
    configure(box, central, DEFRAG + elsewhere)

    def drains() -> bool:
        return slots(box, TYPED)["slot1"].get("Draining") is True

    seen: list[bool] = []

    def looked_thrice() -> bool:
        seen.append(drains())
        return box.log_text(central, "DEFRAG").count("Drained 0 machines") > 2

    box.wait_until(looked_thrice, "condor_defrag has looked thrice")
    configure(box, central, DEFRAG + example("50-draining-defrag.conf"))
    box.wait_until(drains, "it drains the node")
    box.run(["condor_rm", "-constraint", f"ClusterId == {filled} && ProcId < 8"], host=ACCESS)
    box.wait_until(lambda: not drains(), "it ends the drain when a block is free")
    assert len(places(box, filled)) == GENERAL_CORES - 8, "jobs run on"
    assert not any(seen), "with the defaults it left the node alone"
