"""Examples of consumption policies in config.d, each alone on a node, with more jobs than fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.consumption.file import examples
from tests.pool import consumption_pools as pools
from tests.pool.conftest import OpenBox
from tests.pool.sharectl_command import CHECKOUT

FIRST = "ap-1.example.org"
CORES, MEMORY_MIB = 8, 8000
Slots = Sequence[tuple[int, int]]
"""Cores and MiB of dynamic slots."""


class Expected(NamedTuple):
    """Promises of an example for a node with 8 cores and 8000 MiB."""

    jobs: Sequence[str]
    """``cores MiB units`` of each that is submitted, units of its resource of `CUSTOM`."""
    dynamic: Slots
    """Each dynamic slot: so many jobs run."""
    weights: Sequence[int]
    """Of the partitionable slots, when no more jobs fit."""
    later: Slots = ()
    """Those of ``dynamic`` in later cycles: a slot without policy is matched once in a cycle."""


CUSTOM = {"optional-actuators": "actuators", "gpus": "gpus"}
"""Example -> the custom resource that its jobs request."""
TWO_GPUS = "use FEATURE : GPUs\nGPU_DISCOVERY_EXTRA = -extra -simulate:1,2\n"
"""Configuration of a node that finds two GPUs."""
EXPECTED = {
    # 1500 MiB in steps of 32
    "cpu-centric": Expected(["2 1500 0"] * 6, [(2, 1504)] * 4, [0]),
    # one core each; 1500 MiB in steps of 1024, and 1856 MiB are left
    "memory-centric": Expected(["2 1500 0"] * 6, [(1, 2048)] * 3, [1]),
    # a token; the startd gives a core and 1 MiB all the same
    "custom-tokens": Expected(["2 1500 0"] * 6, [(1, 1)] * 3, [0]),
    # two of three with 4 of 8 actuators, and all that request none
    "optional-actuators": Expected(
        ["1 50 4"] * 3 + ["1 20 0"] * 2, [(1, 32)] * 2 + [(1, 64)] * 2, [4]
    ),
    # two of three that request a GPU; 2 cores are left
    "gpus": Expected(["1 100 1"] * 3 + ["2 100 0"] * 2, [(1, 128)] * 2 + [(2, 128)] * 2, [2]),
    "static-slot": Expected(["1 100 0"] * 3, [(CORES, MEMORY_MIB)], [0]),
    # three of 2048 MiB: 5 cores are left, and 1856 MiB, 7 times 256
    "multi-centric": Expected(["1 2000 0"] * 6, [(1, 2048)] * 3, [5]),
    # by cores: two of 928 MiB on 2000; by memory: two of one core; without policy: 1024 MiB,
    # HTCondor's rounding, which does not fit a second time, and then 900
    "mixed-pool": Expected(
        ["1 900 0"] * 8, [(1, 900)] + [(1, 928)] * 2 + [(1, 1024)] * 3, [0, 1, 2], [(1, 900)]
    ),
    "fixed-claims": Expected(["1 100 0"] * 6, [(2, 2000)] * 4, [0]),
    # quanta of 2 cores and 400 MiB
    "quanta-all": Expected(["1 900 0"] * 6, [(2, 1200)] * 4, [0]),
    # no quantum of cores is left, but 8 of memory: the weight is the most
    "quanta-any": Expected(["1 900 0"] * 6, [(2, 1200)] * 4, [8]),
    # the request, and at least 1024 MiB; 904 MiB are left
    "minimum-charge": Expected(["1 3000 0"] + ["1 100 0"] * 6, [(1, 1024)] * 4 + [(1, 3000)], [0]),
}
OF_GOLDEN = {
    # quanta of a core, 400 MiB and a GPU; a twelfth of 4000 MiB, and no more claims than cores;
    # 300 MiB as 512
    "slot-types": Expected(
        ["1 300 0"] * 12,
        [(1, 333)] * 4 + [(1, 400)] * 2 + [(1, 512)] * 4,
        [0, 0, 8, 4000 - 4 * 512],
    ),
    # 1 core each; 2 of 16 quanta of 4000 MiB; a quantum of 1000 MiB; the request, without policy.
    # 4 licences and the memory without a core are left; the third type is weighed by its cores.
    "beside-startd": Expected(
        ["1 300 0"] * 16,
        [(1, 300)] * 4 + [(1, 500)] * 8 + [(1, 1000)] * 4,
        [0, 4, 4000],
        [(1, 300)] * 3,
    ),
}
"""Golden file of several slot types -> its promise for a node with 16 cores, 16000 MiB, 2 GPUs."""
EVERY = {**EXPECTED, **OF_GOLDEN}
LEAST = "minimum-charge"
UNROUNDED = "proof-1"
"""Node without MODIFY_REQUEST_EXPR."""


def shipped(name: str) -> str:
    return (CHECKOUT / "config.d/examples" / f"70-consumption-{name}.conf").read_text()


def configurations() -> Iterator[ExecutePoint]:
    """A node for each example, and one with lines left out, to show their purpose."""
    unrounded = re.sub(r"(?m)^MODIFY_REQUEST.*", "", shipped(LEAST))
    texts = {**{name: shipped(name) for name in examples()}, UNROUNDED: unrounded}
    texts["gpus"] += TWO_GPUS
    for name, text in texts.items():
        yield ExecutePoint(f"{name}.example.org", CORES, MEMORY_MIB, power_hs06=None, config=text)
    for name in OF_GOLDEN:
        text = (CHECKOUT / "tests/golden/consumption" / f"{name}.conf").read_text()
        text += "MACHINE_RESOURCE_GPUs = 2\n" if "gpus=" in text else ""
        yield ExecutePoint(f"{name}.example.org", 16, 16000, power_hs06=None, config=text)


def submit(box: Box, name: str, jobs: Sequence[str]) -> None:
    """Submit jobs for one node, of a group for it alone: no node's jobs wait for another's."""
    rows = "".join(f"  {job.replace(' ', ', ')}\n" for job in jobs)
    custom = f"request_{CUSTOM[name]} = $(Units)\n" if name in CUSTOM else ""
    at_node = f'TARGET.Machine == "{name}.example.org"{" && $(Units) >= 0" if custom else ""}'
    box.submit(
        f"executable = /bin/sleep\narguments = 600\nrequirements = {at_node}\n"
        f"accounting_group = {name}\naccounting_group_user = alice\n"
        "request_cpus = $(Cores)\nrequest_memory = $(MiB)\nrequest_disk = 100\n"
        f"{custom}queue Cores,MiB,Units from (\n{rows})\n",
        FIRST,
    )


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    # On a busy machine too, the pool is looked at between its first cycle and the next one.
    knobs = f"{pools.NEGOTIATOR_LOGS_MATCHES}NEGOTIATOR_CYCLE_DELAY = 6\n"
    spec = BoxSpec(execute_points=tuple(configurations()), central_config=knobs)
    with open_box(spec) as box:
        box.write_config(FIRST, shipped("access-point"))
        box.reconfig(FIRST)
        yield box


class First(NamedTuple):
    """The first negotiation cycle with a match since the startds' start, and its slots."""

    cycle: pools.Cycle
    dynamic: Mapping[str, Slots]
    """Example -> dynamic slots of its node."""


@pytest.fixture(scope="module")
def first(pool: Box) -> First:
    jobs = sum(len(expected.jobs) for expected in EVERY.values())
    with pools.paused(pool):
        since = pools.log_length(pool)
        for name, expected in EVERY.items():
            submit(pool, name, expected.jobs)
        pool.wait_until(
            lambda: pools.waiting(pool).total() == jobs, f"the collector knows of {jobs} jobs"
        )
    cycle = pools.first_cycle(pool, since)
    with pools.paused(pool):
        assert len(pools.cycles(pool, since)) == 1, "this machine was too slow to look in between"
        # A match ends in a job that starts or in a refusal within the second, and nothing is
        # matched again before the next cycle.
        pool.wait_until(
            lambda: started(pool) + refusals(pool) >= cycle.matches.total(),
            "every match is answered",
        )
        pool.wait_until(
            lambda: sum(len(dynamic(pool, name)) for name in EVERY) == started(pool),
            "the collector knows of every dynamic slot",
        )
        return First(cycle, {name: dynamic(pool, name) for name in EVERY})


def rows_of(box: Box, name: str, kind: str, *attributes: str) -> list[list[str]]:
    """Attributes of the slots of a kind on the node of an example."""
    constraint = f'Machine == "{name}.example.org" && {kind}Slot =?= True'
    return pools.rows_of(box, constraint, *attributes)


def dynamic(box: Box, name: str) -> Slots:
    """Cores and MiB of the dynamic slots of a node."""
    rows = rows_of(box, name, "Dynamic", "Cpus", "Memory")
    return sorted((int(float(cores)), int(mib)) for cores, mib in rows)


def weights(box: Box, name: str) -> list[int]:
    """Values of SlotWeight of the partitionable slots of a node."""
    return sorted(int(float(row[0])) for row in rows_of(box, name, "Partitionable", "SlotWeight"))


def started(box: Box) -> int:
    """Jobs that the first access point started."""
    return box.log_text(FIRST, "SCHEDD").count("Started shadow for job")


def refusals(box: Box) -> int:
    """Matches that nodes refused."""
    return box.log_text(FIRST, "SCHEDD").count("Request was NOT accepted for claim slot")


def test_every_example_is_here() -> None:
    assert set(EXPECTED) == set(examples())


@pytest.mark.parametrize("name", EVERY)
def test_the_first_cycle_matches_what_fits_and_all_of_it_runs(
    first: First, pool: Box, name: str
) -> None:
    """Since the startd's start no claim was made, and no update of its ad came after one.

    A slot without policy is matched again in later cycles.
    """
    expected = EVERY[name]
    wanted = sorted((Counter(expected.dynamic) - Counter(expected.later)).elements())
    matched = sum(n for slot, n in first.cycle.matches.items() if slot.endswith(f"@{name}"))
    assert (matched, first.dynamic[name]) == (len(wanted), wanted)
    every, rest = sorted(expected.dynamic), sorted(expected.weights)
    pool.wait_until(
        lambda: (dynamic(pool, name), weights(pool, name)) == (every, rest), "all of it runs"
    )


def test_requests_are_not_rounded_by_the_startd_alone(first: First, pool: Box) -> None:
    """With HTCondor's default the startd takes 3072 MiB where the negotiator took 3000."""
    assert (1, 3000) in first.dynamic[LEAST]
    submit(pool, UNROUNDED, EXPECTED[LEAST].jobs)
    pool.wait_until(lambda: len(dynamic(pool, UNROUNDED)) == 5, "five jobs run")
    assert dynamic(pool, UNROUNDED) == [*[(1, 1024)] * 4, (1, 3072)]
