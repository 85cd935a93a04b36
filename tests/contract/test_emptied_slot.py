"""Slots as they are when nothing runs there, as text and as the bindings' ads."""

from __future__ import annotations

import classad2

from sharectl.condor.ad_rows import emptied, empty

BUSY = {
    "machineresources": '"Cpus Memory Disk Swap GPUs"',
    "cpus": "0",
    "memory": "100",
    "gpus": "0",
    "totalslotcpus": "8",
    "totalslotmemory": "4096.0",
    "totalslotgpus": "2",
    "assignedgpus": '"GPU-a1,GPU-b2"',
    "availablegpus": "{  }",
    "childseats": "{ 8 }",
    "childcare": "True",
    "state": '"Claimed"',
    "draining": "true",
    "mc_grace": "MY.t1_McRoomValue =?= 0",
    "t1_mcroomvalue": "0",
    "t1_targetactive": "time() < 2",
    "requirements": "Start && WithinResourceLimits",
    "start": "MY.MC_GRACE =!= True && ChildSeats[0] =!= 8",
}
FREE = {
    **BUSY,
    "cpus": "8",
    "memory": "4096.0",
    "gpus": "2",
    "availablegpus": "{ GPUs_GPU_a1, GPUs_GPU_b2 }",
    "childseats": "{ }",
    "state": '"Unclaimed"',
    "draining": "false",
    "mc_grace": "false",
    "t1_targetactive": "false",
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
    drained = {"requirements": "False", "state": '"Drained"'}
    assert emptied(drained) == {
        "requirements": "WithinResourceLimits =!= false",
        "state": '"Unclaimed"',
    }
