"""Slots as they are when nothing runs there, as text and as the bindings' ads."""

from __future__ import annotations

import classad2

from sharectl.condor.ad_rows import emptied, empty

BUSY = {
    "MachineResources": '"Cpus Memory Disk Swap GPUs"',
    "cpus": "0",
    "Memory": "100",
    "GPUs": "0",
    "TotalSlotCpus": "8",
    "TotalSlotMemory": "4096.0",
    "TotalSlotGPUs": "2",
    "AssignedGPUs": '"GPU-a1,GPU-b2"',
    "AvailableGPUs": "{  }",
    "ChildSeats": "{ 8 }",
    "ChildCare": "True",
    "State": '"Claimed"',
    "Draining": "true",
    "MC_GRACE": "MY.t1_McRoomValue =?= 0",
    "t1_McRoomValue": "0",
    "t1_TargetActive": "time() < 2",
    "Requirements": "Start && WithinResourceLimits",
    "Start": "MY.MC_GRACE =!= True && ChildSeats[0] =!= 8",
}
FREE = {
    **BUSY,
    "cpus": "8",
    "Memory": "4096.0",
    "GPUs": "2",
    "AvailableGPUs": "{ GPUs_GPU_a1, GPUs_GPU_b2 }",
    "ChildSeats": "{ }",
    "State": '"Unclaimed"',
    "Draining": "false",
    "MC_GRACE": "false",
    "t1_TargetActive": "false",
}


def test_assets_devices_and_lists_are_those_of_the_empty_slot() -> None:
    """As text, and as an ad of the bindings."""
    assert emptied(BUSY) == emptied(FREE) == FREE
    slot, expected = (
        classad2.ClassAd({name: classad2.ExprTree(text) for name, text in ad.items()})
        for ad in (BUSY, FREE)
    )
    empty(slot)
    assert str(slot) == str(expected)


def test_requirements_of_a_drained_slot_are_only_its_assets() -> None:
    drained = {"Requirements": "False", "State": '"Drained"'}
    assert emptied(drained) == {
        "Requirements": "WithinResourceLimits =!= false",
        "State": '"Unclaimed"',
    }
