"""Cost of prices of 50 shapes of jobs on 2,000 slots: by kind, and slot by slot.

Ads are those of a startd of HTCondor 25.14.1 and of condor_submit, cut to what anybody refers to
and filled up with attributes that nobody does. Four pools: slots that differ in nothing that is
referred to, of 20 kinds, of one kind whose disks differ by up to 10 %, and of 60 kinds. Slot by
slot is measured on a few slots. Each figure is the median of its runs in turn;
a ratio compares runs of the same minutes on the same machine.

Exit code 1 if a pool of 20 kinds takes longer than 10 s, or kinds and slot by slot do not come to
the same.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "central"))

from sharectl.condor.ad_files import AdOfFile, parse  # noqa: E402
from sharectl.consumption.asks import (  # noqa: E402
    MOST_CLAIMS,
    Jobs,
    price,
)
from sharectl.consumption.cost import Priced  # noqa: E402

SLOTS, SHAPES, FEW = 2000, 50, 12
"""Slots, shapes of jobs, and slots that are priced one by one for the ratio."""
RUNS = 3
LIMIT_SECONDS = 10.0
_WITHIN = " && ".join(
    f"ifThenElse(TARGET._cp_orig_Request{asset} isnt undefined, TARGET.Request{asset} <= "
    f"MY.{asset}, "
    f"MY.Consumption{asset} <= MY.{asset})"
    for asset in ("Cpus", "Disk", "Memory")
)


def slot(number: int, cores: int, disk_kib: int) -> AdOfFile:
    """A partitionable slot with a policy."""
    attributes = {
        "Name": f'"slot1@wn-{number:04}.example.org"',
        "Machine": f'"wn-{number:04}.example.org"',
        "SlotType": '"Partitionable"',
        "SlotTypeID": "1",
        "PartitionableSlot": "true",
        "MachineResources": '"Cpus Memory Disk Swap"',
        "State": '"Unclaimed"',
        "Cpus": str(cores),
        "Memory": str(cores * 2048),
        "Disk": str(disk_kib),
        "Arch": '"X86_64"',
        "OpSys": '"LINUX"',
        "HasFileTransfer": "true",
        "FileSystemDomain": '"example.org"',
        "SlotWeight": "Cpus",
        "ConsumptionCpus": "quantize(target.RequestCpus, {1})",
        "ConsumptionMemory": "quantize(target.RequestMemory, {128})",
        "ConsumptionDisk": "quantize(target.RequestDisk, {1024})",
        "Requirements": "START && (WithinResourceLimits)",
        "START": 'TARGET.RequestCpus >= 8 || Cpus < 8 || TARGET.AccountingGroup =!= "atlas.bob"',
        "WithinResourceLimits": _WITHIN,
        **{f"Attribute{filler}": f'"{number} {filler}"' for filler in range(150)},
    }
    return AdOfFile(f"slot {number}", attributes)


def jobs() -> list[Jobs]:
    """Shapes of jobs: 1, 2, 4 and 8 cores, memory and group."""
    requirements = (
        '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk) && '
        "(TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && "
        "(TARGET.HasFileTransfer)"
    )
    return [
        Jobs(
            AdOfFile(
                f"job {number}",
                {
                    "ClusterId": str(number),
                    "AccountingGroup": f'"{("cms", "atlas", "lhcb")[number % 3]}.bob"',
                    "RequestCpus": str((1, 2, 4, 8)[number % 4]),
                    "RequestMemory": str(500 + 100 * number),
                    "RequestDisk": "100000",
                    "Requirements": requirements,
                },
            ),
            count=100,
        )
        for number in range(SHAPES)
    ]


POOLS = {
    "alike": [slot(number, 32, 10**8) for number in range(SLOTS)],
    "20 kinds": [slot(number, 8 + 4 * (number % 20), 10**8) for number in range(SLOTS)],
    "disks differ": [slot(number, 32, 10**8 + 5000 * number) for number in range(SLOTS)],
    "60 kinds": [slot(number, 8 + number % 60, 10**8) for number in range(SLOTS)],
}


def seconds(run: Callable[[], object]) -> float:
    """Wall time of a run."""
    began = time.monotonic()
    run()
    return time.monotonic() - began


def costs(priced: Priced) -> list[tuple[str, int, float]]:
    """Slot, job and cost of each pair that matches."""
    return sorted(
        (name, job, match.cost or 0.0)
        for slots, row in zip(priced.slots, priced.matches)
        for name in slots.names
        for job, match in enumerate(row)
        if not match.refused
    )


def one_by_one(slots: Sequence[AdOfFile], shapes: Sequence[Jobs]) -> list[tuple[str, int, float]]:
    """Costs without kinds."""
    return sorted(found for each in slots for found in costs(price([each], shapes, MOST_CLAIMS)))


def main() -> int:
    """Print the table."""
    shapes = jobs()
    print(f"{SLOTS} slots, {SHAPES} shapes of jobs; seconds, median of {RUNS} runs")
    print(f"{'pool':<16}{'cost':>8}{'one by one':>12}{'ratio':>8}")
    slowest = {}
    for name, slots in POOLS.items():
        runs = [
            (
                seconds(lambda slots=slots: price(slots, shapes, MOST_CLAIMS)),  # type: ignore[misc]
                seconds(lambda slots=slots: one_by_one(slots[:FEW], shapes)) * SLOTS / FEW,  # type: ignore[misc]
            )
            for _ in range(RUNS)
        ]
        cost, apart = (statistics.median(each) for each in zip(*runs))
        slowest[name] = cost
        print(f"{name:<16}{cost:>8.2f}{apart:>12.0f}{apart / cost:>8.0f}")
    text = "\n\n".join(
        "\n".join(f"{key} = {value}" for key, value in each.attributes.items())
        for each in POOLS["alike"]
    )
    print(
        f"reading {len(text) / 1e6:.1f} MB that condor_status -long printed: "
        f"{seconds(lambda: parse(text, 'bench')):.2f}"
    )
    few = POOLS["20 kinds"][:FEW]
    same = costs(price(few, shapes, MOST_CLAIMS)) == one_by_one(few, shapes)
    print(f"kinds and slot by slot come to the same: {same}")
    return 0 if same and slowest["20 kinds"] <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
