"""Every example of consumption policies in config.d on a node with more jobs than fit."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.consumption.file import example, examples, parse
from sharectl.consumption.policy import attribute_of
from tests.claim_models import model_of
from tests.pool import consumption_pools as pools
from tests.pool.conftest import OpenBox
from tests.pool.sharectl_command import CHECKOUT

FIRST, SECOND = "ap-1.example.org", "ap-2.example.org"
CORES, MEMORY_MIB = 8, 8000
ATTRIBUTES = [
    "Name",
    "Machine",
    "Cpus",
    "Memory",
    "Disk",
    "Tokens",
    "Actuators",
    "Claims",
    "PartitionableSlot",
    "SlotTypeID",
    "SlotWeight",
]


class Expected(NamedTuple):
    """What an example promises of a node with 8 cores and 8000 MiB."""

    jobs: Sequence[str]
    """``cores MiB units`` of each that is submitted, units of its resource of `CUSTOM`."""
    dynamic: Sequence[tuple[int, int]]
    """Cores and MiB of each dynamic slot, so also how many jobs run."""
    weights: Sequence[int]
    """Of the partitionable slots, when no more jobs fit."""
    later: Sequence[tuple[int, int]] = ()
    """Those of ``dynamic`` that come in later cycles: without policy, one match a cycle."""


CUSTOM = {"optional-actuators": "actuators", "gpus": "gpus"}
"""Example -> the custom resource that its jobs ask for."""
TWO_GPUS = "use FEATURE : GPUs\nGPU_DISCOVERY_EXTRA = -extra -simulate:1,2\n"
"""Configuration of a node that finds two GPUs."""


EXPECTED = {
    # 1500 MiB in steps of 32
    "cpu-centric": Expected(["2 1500 0"] * 6, [(2, 1504)] * 4, [0]),
    # one core whatever is asked for; 1500 MiB in steps of 1024, and 1856 MiB are left
    "memory-centric": Expected(["2 1500 0"] * 6, [(1, 2048)] * 3, [1]),
    # nothing but a token; the startd gives a core and 1 MiB all the same
    "custom-tokens": Expected(["2 1500 0"] * 6, [(1, 1)] * 3, [0]),
    # two of three with 4 of 8 actuators, and all that ask for none
    "optional-actuators": Expected(
        ["1 50 4"] * 3 + ["1 20 0"] * 2, [(1, 32)] * 2 + [(1, 64)] * 2, [4]
    ),
    # two of three that ask for a GPU; 2 cores are left
    "gpus": Expected(["1 100 1"] * 3 + ["2 100 0"] * 2, [(1, 128)] * 2 + [(2, 128)] * 2, [2]),
    "static-slot": Expected(["1 100 0"] * 3, [(CORES, MEMORY_MIB)], [0]),
    # three of 2048 MiB: 5 cores are left, and 1856 MiB, 7 times 256
    "multi-centric": Expected(["1 2000 0"] * 6, [(1, 2048)] * 3, [5]),
    # by cores: two of 928 MiB on 2000; by memory: two of one core; without policy: 1024 MiB,
    # HTCondor's rounding, and as
    # that does not fit a second time, 900
    "mixed-pool": Expected(
        ["1 900 0"] * 8, [(1, 900)] + [(1, 928)] * 2 + [(1, 1024)] * 3, [0, 1, 2], [(1, 900)]
    ),
    "fixed-claims": Expected(["1 100 0"] * 6, [(2, 2000)] * 4, [0]),
    # quanta of 2 cores and 400 MiB
    "quanta-all": Expected(["1 900 0"] * 6, [(2, 1200)] * 4, [0]),
    # no quantum of cores is left, but 8 of memory: the weight is the most
    "quanta-any": Expected(["1 900 0"] * 6, [(2, 1200)] * 4, [8]),
    # what is asked for, and at least 1024 MiB; 904 MiB are left
    "minimum-charge": Expected(["1 3000 0"] + ["1 100 0"] * 6, [(1, 1024)] * 4 + [(1, 3000)], [0]),
}
SLOT_TYPES, DEFAULTS = "slot-types", "defaults"
# quanta of a core, 400 MiB and a GPU; a twelfth of 4000 MiB, and no more claims than cores; 300 MiB
# as 512
EXPECTED_OF_SLOT_TYPES = Expected(
    ["1 300 0"] * 12, [(1, 333)] * 4 + [(1, 400)] * 2 + [(1, 512)] * 4, [0, 0, 8, 4000 - 4 * 512]
)
OF_GOLDEN = {
    SLOT_TYPES: EXPECTED_OF_SLOT_TYPES,
    # 1 core each; 2 of 16 quanta of 4000 MiB; a quantum of 1000 MiB; what is asked for, without
    # policy. 4 licences and all of
    # the memory that no core is left for; the third type is weighed by its cores.
    DEFAULTS: Expected(
        ["1 300 0"] * 16,
        [(1, 300)] * 4 + [(1, 500)] * 8 + [(1, 1000)] * 4,
        [0, 4, 4000],
        [(1, 300)] * 3,
    ),
}
"""Golden file of several slot types → slots of a node of 16 cores, 16000 MiB, 2 GPUs."""
LEAST = "minimum-charge"
UNROUNDED = "without the lines about MODIFY_REQUEST_EXPR"
GUARDED, PLAIN = "rendered", "as in HTCondor's manual"
KEPT, SPLIT = "leftovers off at the access point too", "leftovers off at the node only"
PROOFS = {
    UNROUNDED: "proof-1",
    GUARDED: "proof-2",
    PLAIN: "proof-3",
    KEPT: "proof-4",
    SPLIT: "proof-5",
}


def host(name: str) -> str:
    return f"{PROOFS.get(name, name)}.example.org"


def shipped(name: str) -> str:
    return (CHECKOUT / "config.d/examples" / f"70-consumption-{name}.conf").read_text()


def of_golden(name: str) -> ExecutePoint:
    """A node with the slot types of a golden file."""
    text = (CHECKOUT / "tests/golden/consumption" / f"{name}.conf").read_text()
    gpus = "MACHINE_RESOURCE_GPUs = 2\n" if "gpus=" in text else ""
    return ExecutePoint(host(name), 16, 16000, power_hs06=None, config=text + gpus)


def proofs() -> dict[str, str]:
    least = shipped(LEAST)
    single = least.replace("NUM_CLAIMS = $(NUM_CPUS)", "NUM_CLAIMS = 1")
    plain = re.sub(
        r"(?m)^CONSUMPTION_MEMORY = .*", "CONSUMPTION_MEMORY = TARGET.RequestMemory", least
    )
    assert len({least, single, plain}) == 3
    return {
        UNROUNDED: re.sub(r"(?m)^MODIFY_REQUEST.*", "", least),
        GUARDED: least,
        PLAIN: plain,
        KEPT: single,
        SPLIT: single,
    }


def submit(box: Box, name: str, jobs: Sequence[str], access_point: str = FIRST) -> None:
    """Submit jobs for one node, in another group for each node."""
    rows = "".join(f"  {job.replace(' ', ', ')}\n" for job in jobs)
    custom = f"request_{CUSTOM[name]} = $(Units)\n" if name in CUSTOM else ""
    box.submit(
        "executable = /bin/sleep\narguments = 600\n"
        f'requirements = TARGET.Machine == "{host(name)}"{" && $(Units) >= 0" if custom else ""}\n'
        f"accounting_group = {host(name).split('.')[0]}\naccounting_group_user = alice\n"
        "request_cpus = $(Cores)\nrequest_memory = $(MiB)\nrequest_disk = 100\n"
        f"{custom}queue Cores,MiB,Units from (\n{rows})\n",
        access_point,
    )


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    """A node for each example, and some with a line changed, to show what it is there for."""
    texts = {name: shipped(name) for name in examples()} | proofs()
    texts["gpus"] += TWO_GPUS
    spec = BoxSpec(
        execute_points=(
            *(
                ExecutePoint(host(name), CORES, MEMORY_MIB, power_hs06=None, config=text)
                for name, text in texts.items()
            ),
            *map(of_golden, OF_GOLDEN),
        ),
        central_config=pools.NEGOTIATOR_LOGS_COSTS,
    )
    with open_box(spec) as box:
        box.write_config(FIRST, shipped("access-point"))
        box.reconfig(FIRST)
        yield box


class First(NamedTuple):
    """First negotiation cycle that matches anything, and the jobs that run by it."""

    cycle: pools.Cycle
    dynamic: Mapping[str, list[tuple[int, int]]]
    """Example -> cores and MiB of each dynamic slot of its node."""


@pytest.fixture(scope="module")
def first(pool: Box) -> First:
    everything = {**EXPECTED, **OF_GOLDEN}
    with pools.paused(pool):
        since = pools.log_length(pool)
        for name, expected in everything.items():
            submit(pool, name, expected.jobs)
        jobs = sum(len(expected.jobs) for expected in everything.values())
        pool.wait_until(
            lambda: pools.waiting(pool).total() == jobs,
            60,
            f"the collector knows of the {jobs} jobs",
        )
    cycle = pools.first_cycle(pool, since)
    with pools.paused(pool):
        assert len(pools.cycles(pool, since)) == 1, (
            "this machine was too slow to look between two cycles"
        )
        # A match ends in a job that starts or in a refusal within the second, and nothing is
        # matched again before the next cycle.
        pool.wait_until(
            lambda: started(pool) + refusals(pool) >= cycle.matches.total(),
            60,
            "every match is answered",
        )
        pool.wait_until(
            lambda: sum(len(dynamic(pool, host(name))) for name in everything) == started(pool),
            60,
            "the collector knows of every dynamic slot",
        )
        return First(cycle, {name: dynamic(pool, host(name)) for name in everything})


def started(box: Box) -> int:
    """Jobs that the first access point started."""
    return box.log_text(FIRST, "SCHEDD").count("Started shadow for job")


@pytest.fixture(scope="module")
def filled(first: First, pool: Box) -> Box:
    """The pool when as many jobs run as should."""
    assert first.cycle.matches
    everything = {**EXPECTED, **OF_GOLDEN}
    submit(pool, UNROUNDED, EXPECTED[LEAST].jobs)
    wanted = {host(name): sorted(expected.dynamic) for name, expected in everything.items()}
    pool.wait_until(
        lambda: all(len(dynamic(pool, name)) >= len(slots) for name, slots in wanted.items()),
        180,
        "all the jobs run that fit",
    )
    return pool


def slots_of(box: Box, machine: str) -> list[dict[str, Any]]:
    query = [
        "condor_status",
        "-constraint",
        f'Machine == "{machine}"',
        "-attributes",
        ",".join(ATTRIBUTES),
    ]
    found: list[dict[str, Any]] = json.loads(box.run([*query, "-json"]).stdout or "[]")
    return found


def dynamic(box: Box, machine: str) -> list[tuple[int, int]]:
    """Cores and MiB of the dynamic slots of a machine."""
    slots = slots_of(box, machine)
    return sorted(
        (slot["Cpus"], slot["Memory"]) for slot in slots if not slot.get("PartitionableSlot")
    )


def weights(box: Box, machine: str) -> list[int]:
    """Values of SlotWeight of the partitionable slots of a machine."""
    text = box.run(
        [
            "condor_status",
            "-constraint",
            f'Machine == "{machine}" && PartitionableSlot',
            "-af",
            "SlotWeight",
        ]
    ).stdout
    return sorted(int(float(word)) for word in text.split())


def running(box: Box, name: str, count: int) -> bool:
    """Whether so many jobs run on a node."""
    return len(dynamic(box, host(name))) == count


def matches(box: Box, name: str) -> int:
    """Matches that the negotiator made on a node."""
    log = box.log_text(box.spec.central_point, "NEGOTIATOR")
    return len(re.findall(rf"Successfully matched with slot\d+@{re.escape(host(name))}", log))


def refusals(box: Box, name: str = "") -> int:
    """Matches that the node refused, or any node."""
    log = box.log_text(FIRST, "SCHEDD") + box.log_text(SECOND, "SCHEDD")
    node = re.escape(host(name)) if name else ""
    return len(re.findall(rf"Request was NOT accepted for claim slot\d+@{node}", log))


def test_every_example_is_here() -> None:
    assert set(EXPECTED) == set(examples())


@pytest.mark.parametrize("name", [*EXPECTED, *OF_GOLDEN])
def test_the_first_cycle_matches_what_fits_and_all_of_it_runs(first: First, name: str) -> None:
    """Since the startd's start no claim was made, and no update of its ad came after one."""
    expected = {**EXPECTED, **OF_GOLDEN}[name]
    wanted = sorted((Counter(expected.dynamic) - Counter(expected.later)).elements())
    node = host(name).partition(".")[0]
    matched = sum(count for slot, count in first.cycle.matches.items() if slot.endswith(f"@{node}"))
    assert (matched, first.dynamic[name]) == (len(wanted), wanted)


@pytest.mark.parametrize("name", [*EXPECTED, *OF_GOLDEN])
def test_an_example_runs_as_it_promises(filled: Box, name: str) -> None:
    expected = {**EXPECTED, **OF_GOLDEN}[name]
    filled.wait_until(
        lambda: weights(filled, host(name)) == sorted(expected.weights),
        60,
        "the weight is what is left",
    )
    assert dynamic(filled, host(name)) == sorted(expected.dynamic)


@pytest.mark.parametrize("name", ["fixed-claims", "quanta-all", "quanta-any", "minimum-charge"])
def test_the_weight_in_the_pool_is_that_of_the_model(filled: Box, name: str) -> None:
    (policy,) = parse(example(name), name).policies
    slots = slots_of(filled, host(name))
    (left,) = (slot for slot in slots if slot.get("PartitionableSlot"))
    assets = [*policy.assets, *(["claims"] if policy.claims else [])]
    own = {asset: Fraction(left[attribute_of(asset)]) for asset in assets}
    total = {
        asset: sum((Fraction(slot.get(attribute_of(asset), 0)) for slot in slots), Fraction(0))
        for asset in assets
    }
    model = model_of(policy, total)
    assert weights(filled, host(name)) == [model.claims(own)]


def test_requests_are_not_rounded_by_the_startd_alone(filled: Box) -> None:
    """With HTCondor's default the startd takes 3072 MiB where the negotiator took 3000."""
    filled.wait_until(partial(running, filled, UNROUNDED, 5), 90, "five jobs run")
    assert dynamic(filled, host(UNROUNDED)) == [*[(1, 1024)] * 4, (1, 3072)]
    assert dynamic(filled, host(LEAST)) == [*[(1, 1024)] * 4, (1, 3000)]


def test_leftovers_are_switched_off_at_the_access_point(filled: Box) -> None:
    """One match a cycle; a schedd that asks for leftovers splits them without a match."""
    for name, access_point in ((KEPT, FIRST), (SPLIT, SECOND)):
        submit(filled, name, ["1 1000 0"] * 4, access_point)
    for name in (KEPT, SPLIT):
        filled.wait_until(partial(running, filled, name, 4), 90, "four jobs run")
    assert matches(filled, KEPT) >= 4
    assert matches(filled, SPLIT) < 4


def test_no_request_starves_a_slot(filled: Box) -> None:
    """A request of NaN takes the whole slot in the negotiator if the policy lets it."""
    for name in (GUARDED, PLAIN):
        submit(filled, name, ['1 real("NaN") 0'])
    filled.wait_until(
        lambda: refusals(filled, PLAIN) >= 1, 60, "the plain policy matches it, the node refuses it"
    )
    assert matches(filled, GUARDED) == 0
    for name in (GUARDED, PLAIN):
        submit(filled, name, ["1 1024 0"])
    filled.wait_until(
        lambda: dynamic(filled, host(GUARDED)) == [(1, 1024)], 60, "the honest job runs"
    )
    before = refusals(filled, PLAIN)
    filled.wait_until(lambda: refusals(filled, PLAIN) > before, 60, "the next cycle is lost too")
    assert dynamic(filled, host(PLAIN)) == []


def test_the_text_in_the_configuration_of_every_daemon_stops_no_job(open_box: OpenBox) -> None:
    """With the node's weight in a schedd, a group with small jobs would want nothing."""
    group, quota = "small", 3
    spec = BoxSpec(
        execute_points=(ExecutePoint(host(group), CORES, MEMORY_MIB, power_hs06=None),),
        access_points=(FIRST,),
        config=f"{shipped(LEAST)}GROUP_ACCEPT_SURPLUS = False\n",
        groups={group: quota},
    )
    with open_box(spec) as box:
        submit(box, group, ["1 100 0"] * (quota + 1))
        box.wait_until(
            partial(running, box, group, quota), 60, "as many jobs run as the group's quota allows"
        )
