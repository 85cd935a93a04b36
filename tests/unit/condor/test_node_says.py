from __future__ import annotations

import classad2

from sharectl.condor.nodes import constraint_of, words_of
from sharectl.plan.nodes import NodeWords

NOW = 1_700_000_000
FRESH = f"MyCurrentTime = {NOW}; t1_JobCtlTime = {NOW - 30}; t1_JobCtlStaleSeconds = 90"


def ad(text: str) -> classad2.ClassAd:
    return classad2.ClassAd(f"[{FRESH}; {text}]")


def test_what_one_node_says() -> None:
    acts = ad('t1_JobCtlReason = "ok"; t1_TargetActive = True; t1_TargetSequence = 77')
    assert words_of([acts], NOW, 90) == NodeWords(77, None)
    idle = ad('t1_JobCtlReason = "no-line"; t1_TargetActive = False')
    assert words_of([idle], NOW, 90) == NodeWords(0, None)
    refuses = ad('t1_JobCtlReason = "unsigned"; t1_TargetActive = False')
    assert words_of([acts, refuses], NOW, 90) == NodeWords(77, "unsigned")
    assert words_of([ad("x = 1")], NOW, 90) == NodeWords(None, None)
    assert words_of([], NOW, 90).problem == "the collector knows no partitionable slot of it"


def test_a_node_that_is_switched_off_says_by_what() -> None:
    stands = 't1_JobCtlReason = "ok"; t1_TargetActive = False'
    by_file = ad(f"{stands}; t1_Disabled = True; t1_Enabled = True")
    assert words_of([by_file], NOW, 90) == NodeWords(0, None, switched_off=("file",))
    by_knob = ad(f"{stands}; t1_Disabled = False; t1_Enabled = False")
    assert words_of([by_knob], NOW, 90).switched_off == ("knob",)
    assert words_of([by_file, by_knob, by_file], NOW, 90).switched_off == ("file", "knob")
    for unsaid in (
        "t1_Disabled = error; t1_Enabled = undefined",
        "t1_Disabled = False; t1_Enabled = True",
    ):
        assert words_of([ad(f"{stands}; {unsaid}")], NOW, 90).switched_off == ()


def test_only_the_slots_of_that_node_are_asked() -> None:
    slot = classad2.ClassAd('[Machine = "CN-01.Example.org"; PartitionableSlot = True]')
    other = classad2.ClassAd('[Machine = "cn-011.example.org"; PartitionableSlot = True]')
    for name in ("cn-01", "cn-01.example.org"):
        asked = classad2.ExprTree(constraint_of(name))
        # An error is a number in the bindings, and equal to 1.
        assert asked.eval(slot) is True
        assert asked.eval(other) is False
