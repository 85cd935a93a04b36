"""START of the snippet, in HTCondor's ClassAds, and the cycle agree on a job's group."""

from __future__ import annotations

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
ADMITS, HELD = "t1_TargetAdmits", "t1_HeldBackSlot"
HELD_BACK, HELPED = "alice.user", "alice.prod"
CONFIGURED = ("alice", HELPED, HELD_BACK, "cms")

NAMES = st.lists(
    st.sampled_from(
        ("alice", "Alice", "user", "USER", "prod", "users", "production", "user_1", "bob", "")
    ),
    max_size=5,
).map(".".join)
HOSTILE = st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF), max_size=20) | st.text(
    alphabet='alice.user@:\\"(*)|$^ \nE', max_size=16
)


@pytest.fixture(scope="module")
def expressions() -> dict[str, str]:
    """Attribute of the slot → its expression, as the snippet has it."""
    source = ConfigSource(CONFIG)
    with CondorProcess() as process:
        return expand(source, [ADMITS, HELD], process)


def slot(expressions: dict[str, str], **own: str) -> classad2.ClassAd:
    """A slot whose target holds back one subgroup of alice, to no cores, and helps another."""
    text = {
        **expressions,
        "t1_TargetActive": "True",
        "t1_TargetGroups": f'{{"{HELD_BACK}","{HELPED}"}}',
        "t1_Targetcores": "{0,8}",
        "Childt1_HeldBackCores": "{0}",
        "ChildCpus": "{0}",
        "TotalSlotCpus": "64",
        "Cpus": "64",
        **own,
    }
    return classad2.parseOne("".join(f"{name} = {value}\n" for name, value in text.items()))


def asked(expressions: dict[str, str], name: str, cores: int = 8) -> object:
    """Whether a job of that AccountingGroup may start."""
    node = slot(expressions, PartitionableSlot="True")
    return classad2.ExprTree(f"MY.{ADMITS}").eval(
        node, classad2.ClassAd({"AccountingGroup": name, "RequestCpus": cores})
    )


def counted(expressions: dict[str, str], name: str) -> object:
    """Whether the slot of a job of that AccountingGroup counts for the held-back group."""
    node = slot(expressions, PartitionableSlot="False")
    node["AccountingGroup"] = name
    return node.eval(HELD)


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
