"""Groups of jobs in START, by HTCondor's own ClassAds.

What a user writes into a job gets it past no cap, and costs START no time. START and the cycle
agree on a job's group.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sharectl.condor.configuration import ConfigSource, expand
from sharectl.condor.library import CondorProcess
from sharectl.shares.groups import group_of

CONFIG = Path(__file__).parents[2] / "config.d"
ADMITS, GRACE, HELD_CORES = "t1_TargetAdmits", "t1_GraceAdmits", "t1_HeldBackCores"
HELD_SLOT = "t1_HeldBackSlot"
CRON = {"SHARECTL_ACTUATION": "cron"}
LONG = {
    "A0": '"{}"'.format("a." * 300),
    **{f"A{level}": f"strcat({','.join([f'A{level - 1}'] * 10)})" for level in range(1, 5)},
}
"""Six million characters, which PCRE gives up on."""
ENDLESS = {
    **LONG,
    **{f"A{level}": f"strcat({','.join([f'A{level - 1}'] * 10)})" for level in range(5, 30)},
}
"""Nobody who evaluates A29 comes to an end: a test that does fails by its memory."""
TARGETED = {
    "PartitionableSlot": "True",
    "t1_TargetActive": "True",
    "t1_TargetGroups": '{"alice","cms"}',
    "t1_Targetcores": "{4,8}",
    "Childt1_HeldBackCores": "{}",
    "ChildCpus": "{}",
    "TotalSlotCpus": "16",
    "Cpus": "16",
    "t1_CurrentJobs": '"alice:0"',
}
CLAIMED = {
    **TARGETED,
    "PartitionableSlot": "undefined",
    "DynamicSlot": "True",
    "State": '"Claimed"',
    "RemoteUser": '"bob@x"',
    "Cpus": "1",
}


def deployed(overrides: Mapping[str, str]) -> dict[str, str]:
    source = ConfigSource(CONFIG)
    with CondorProcess() as process:
        names = [ADMITS, GRACE, HELD_SLOT, HELD_CORES, "t1_McRoom"]
        return expand(source, names, process, overrides)


@pytest.fixture(scope="module")
def expressions() -> dict[str, str]:
    return deployed({})


def ad(attributes: Mapping[str, str]) -> classad2.ClassAd:
    return classad2.parseOne("".join(f"{name} = {value}\n" for name, value in attributes.items()))


def admits(
    expressions: Mapping[str, str], slot: Mapping[str, str], account: str, cores: str = "1"
) -> object:
    """Clause of targets for a job with this AccountingGroup; empty for none."""
    job = {"RequestCpus": cores, **({"AccountingGroup": account} if account else {}), **ENDLESS}
    return classad2.ExprTree(f"MY.{ADMITS}").eval(ad({**expressions, **slot}), ad(job))


@pytest.mark.parametrize(
    "account",
    [
        "A29",
        'strcat("cms.", A29)',
        'ifThenElse(TARGET.Cpus > 0, "cms.bob", "alice.bob")',
        '"cms" ?: A29',
        '"cms\\"."',
        '"{}"'.format("cms." * 100),
    ],
)
def test_a_group_that_is_no_plain_string_is_a_strangers(
    expressions: dict[str, str], account: str
) -> None:
    assert admits(expressions, TARGETED, account, "8") is False


def test_plain_strings_are_groups(expressions: dict[str, str]) -> None:
    """The test above can fail."""
    assert admits(expressions, TARGETED, '"cms.bob"', "8") is True
    assert admits(expressions, TARGETED, '"alice.bob"', "4") is True
    assert admits(expressions, TARGETED, '"alice.bob"', "5") is False


def test_millions_of_characters_are_an_error_of_regexps() -> None:
    """Which START took for a reason to let the job in, while it evaluated AcctGroup."""
    pattern = r"^[^.@]*([^@]*(?=\\.[^.@]*@)|[^@]*$)?"
    value = classad2.ExprTree(f'regexps("{pattern}", A4, "\\\\0")').eval(ad(LONG))
    assert value is classad2.Value.Error


def test_acct_group_changes_nothing(expressions: dict[str, str]) -> None:
    """The slot counts AccountingGroup, which may be another where users write both."""
    job = ad({"RequestCpus": "8", "AcctGroup": '"cms"', "AccountingGroup": '"alice.bob"'})
    node = ad({**expressions, **TARGETED})
    assert classad2.ExprTree(f"MY.{ADMITS}").eval(node, job) is False


@pytest.mark.parametrize(
    ("slot_account", "job_account", "starts"),
    [
        ('"lhcb.bob@x"', '"alice.bob"', False),
        ('"lhcb.bob@x"', "A29", False),
        ('"lhcb.bob@x"', '"lhcb.bob"', True),
        ('"lhcb.bob@x"', "", True),
        ("undefined", '"alice.bob"', False),
        ('"alice.bob@x"', '"alice.bob"', True),
    ],
)
def test_a_claim_of_another_group_takes_no_job_of_the_held_back_one(
    expressions: dict[str, str], slot_account: str, job_account: str, starts: object
) -> None:
    slot = {**CLAIMED, "AccountingGroup": slot_account}
    assert admits(expressions, slot, job_account) is starts
    # HTCondor before 23.7.2 calls it claimed first; a START that is False then ends the startd.
    assert admits(expressions, {**slot, "RemoteUser": "undefined"}, job_account) is True
    assert admits(expressions, {**slot, "State": '"Unclaimed"'}, job_account) is True
    assert admits(expressions, {**slot, "t1_TargetActive": "False"}, job_account) is True


HELD = {**CLAIMED, "Cpus": "8", "AccountingGroup": '"alice.bob@x"'}


@pytest.mark.parametrize(
    ("slot", "cores"),
    [
        ({}, 8),
        ({"AccountingGroup": '"ALICE.bob@x"'}, 8),
        ({"AccountingGroup": '"alice2.bob@x"'}, 0),
        ({"AccountingGroup": '"alice.user.bob@x"', "t1_TargetGroups": '{"alice.user","cms"}'}, 8),
        ({"AccountingGroup": '"alice.user@x"', "t1_TargetGroups": '{"alice.user","cms"}'}, 0),
        ({"AccountingGroup": '"alice_user.bob@x"', "t1_TargetGroups": '{"alice.user","cms"}'}, 0),
        ({"AccountingGroup": "undefined", "State": '"Unclaimed"'}, 8),
        ({"AccountingGroup": "undefined"}, 0),
        ({"Cpus": "undefined"}, 0),
        ({"t1_TargetGroups": "undefined"}, 0),
        ({"t1_TargetGroups": "error"}, 0),
        ({"PartitionableSlot": "True", "DynamicSlot": "undefined"}, 0),
    ],
)
def test_a_slot_counts_the_cores_of_the_held_back_group(
    expressions: dict[str, str], slot: dict[str, str], cores: int
) -> None:
    """A new slot counts until somebody has claimed it; the count is always a number."""
    value = classad2.ExprTree(f"MY.{HELD_CORES}").eval(ad({**expressions, **HELD, **slot}))
    assert value == cores


@pytest.mark.parametrize(("cores", "has_room"), [("8", True), ("7", False)])
def test_a_partitionable_slot_has_room_for_a_multicore_job(
    expressions: dict[str, str], cores: str, *, has_room: bool
) -> None:
    room = classad2.ExprTree("MY.t1_McRoom")
    assert room.eval(ad({**expressions, **TARGETED, "Cpus": cores})) is has_room
    assert room.eval(ad({**expressions, **CLAIMED, "Cpus": "8"})) is False


@pytest.mark.parametrize("free", [16, 13, 12])
def test_cron_counts_cores_taken_since_the_last_look(free: int) -> None:
    """A negotiation cycle takes them from a copy of the slot, with a consumption policy."""
    slot = {**TARGETED, "Cpus": str(free)}
    assert admits(deployed(CRON), slot, '"alice.bob"') is (16 - free < 4)
    before = {**slot, "t1_CurrentJobs": f'"alice:0:lhcb:{16 - free}"'}
    assert admits(deployed(CRON), before, '"alice.bob"') is True


def test_without_grace_and_target_no_attribute_of_the_job_is_evaluated(
    expressions: dict[str, str],
) -> None:
    slot = ad({**expressions, **TARGETED, "t1_TargetActive": "False", "MC_GRACE": "False"})
    job = ad({**ENDLESS, "RequestCpus": "A29", "AccountingGroup": "A29"})
    for clause in (ADMITS, GRACE):
        assert classad2.ExprTree(f"MY.{clause}").eval(slot, job) is True


# ---- groups within groups

HELD_BACK, HELPED = "alice.user", "alice.prod"
CONFIGURED = ("alice", HELPED, HELD_BACK, "cms")
NESTED = {**TARGETED, "t1_TargetGroups": f'{{"{HELD_BACK}","{HELPED}"}}', "t1_Targetcores": "{0,8}"}
"""A slot whose target holds back one subgroup of alice, to no cores, and helps another."""
NAMES = st.lists(
    st.sampled_from(
        ("alice", "Alice", "user", "USER", "prod", "users", "production", "user_1", "bob", "")
    ),
    max_size=5,
).map(".".join)
HOSTILE = st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF), max_size=20) | st.text(
    alphabet='alice.user@:\\"(*)|$^ \nE', max_size=16
)


def asked(expressions: dict[str, str], name: str, cores: int = 8) -> object:
    """Clause of targets for a job of that AccountingGroup."""
    job = classad2.ClassAd({"AccountingGroup": name, "RequestCpus": cores})
    return classad2.ExprTree(f"MY.{ADMITS}").eval(ad({**expressions, **NESTED}), job)


def counted(expressions: dict[str, str], name: str) -> object:
    """True if the slot of a job of that AccountingGroup counts for the held-back group."""
    node = ad({**expressions, **NESTED, "PartitionableSlot": "False"})
    node["AccountingGroup"] = name
    return node.eval(HELD_SLOT)


@given(NAMES | HOSTILE)
@example("alice.user")
@example("ALICE.PROD.mc")
@example("alice.production")
@example("alice.prod@x")
@example("alice..prod")
@example("alice.prod\n")
def test_only_jobs_of_the_helped_group_start(expressions: dict[str, str], name: str) -> None:
    """START and the cycle count a job for one group; START is never undefined or an error.

    Text that HTCondor prints with a backslash is a stranger's.
    """
    plain = name.isascii() and name.isprintable() and not set(name) & set('"\\')
    expected = plain and group_of(f"{name}@", CONFIGURED) == HELPED
    assert asked(expressions, name) is expected
    assert asked(expressions, name, cores=1) is False


@given(NAMES | HOSTILE, st.sampled_from(("bob", "user", "prod", "a b")))
@example("alice.user", "bob")
@example("alice", "user")
@example("alice.users", "bob")
def test_the_slots_of_the_held_back_group_count(
    expressions: dict[str, str], name: str, user: str
) -> None:
    """A slot counts as held back if and only if the cycle counts its job for that group."""
    for account in (f"{name}.{user}@example.org", name):
        assert counted(expressions, account) is (group_of(account, CONFIGURED) == HELD_BACK)
