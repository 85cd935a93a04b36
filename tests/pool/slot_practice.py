"""Nodes whose slots are made by the examples of ``config.d/examples``, and looks at them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from poolbox import Box
from tests.pool import deployed
from tests.pool.deployed import CHECKOUT, jobs, on

EXAMPLES = CHECKOUT / "config.d" / "examples"
ACCESS = "ap-1.example.org"


def example(name: str, *lines: str) -> str:
    """An example as configuration of a host, and lines that are read after it."""
    return "".join(f"{line}\n" for line in (f"include : {EXAMPLES / name}", *lines))


def submit(
    box: Box, count: int, *lines: str, cores: object = 1, group: str = "", access: str = ACCESS
) -> int:
    """Cluster id of so many jobs that sleep for ten minutes, unless lines say otherwise."""
    return box.submit(jobs(group, cores, count, 600, *lines), access)


def at(node: str, kind: str = "") -> str:
    """Line of a job that goes to that node alone, and there to slots of that kind alone."""
    kinds = f' && TARGET.SlotKind == "{kind}"' if kind else ""
    return on(node) + kinds


def places(box: Box, cluster: int) -> list[str]:
    """Slots that the jobs of a cluster run in, as their shadows have written it into the queue."""
    running = box.jobs(f"ClusterId == {cluster} && JobStatus == 2")
    return sorted(str(job.get("RemoteHost")) for job in running)


def nodes(box: Box, cluster: int) -> Counter[str]:
    """Node → jobs of a cluster that run there."""
    return Counter(place.rpartition("@")[2] for place in places(box, cluster))


def slots(box: Box, node: str) -> dict[str, dict[str, Any]]:
    """Name of each slot without its node → its ad, as the startd itself has it."""
    return {ad["Name"].partition("@")[0]: ad for ad in deployed.slots(box, node)}


def advertised_free_cores(box: Box) -> int:
    """Free cores of all partitionable slots in the collector, as the negotiator sees them."""
    rows = deployed.shown(box, "-constraint", "PartitionableSlot", "-af", "Cpus")
    return sum(int(cores) for (cores,) in rows)


def restart(box: Box, node: str) -> None:
    """Have the startd make its slots again."""
    box.stop_host(node)
    box.start_host(node)
    box.wait_until(lambda: slots(box, node), f"the startd of {node} is back")


def configure(box: Box, node: str, text: str, attribute: str, word: str) -> None:
    """Configure a node, and wait until a word stands in an attribute of its first slot."""
    deployed.configure(box, node, text)
    box.wait_until(
        lambda: word in str(slots(box, node)["slot1"].get(attribute)), f"{node}: {attribute}"
    )


def started(box: Box, cluster: int, count: int = 1) -> None:
    """Wait until so many jobs of a cluster run."""
    box.wait_until(lambda: len(places(box, cluster)) == count, f"{count} of {cluster} run")


def rejected(box: Box, cluster: int, times: int = 2) -> None:
    """Wait until the negotiator has looked so often again at a job that it rejects."""

    def looks() -> int:
        log = box.log_text(box.spec.central_point, "NEGOTIATOR")
        return log.count(f"Rejected {cluster}.0")

    before = looks()
    box.wait_until(lambda: looks() >= before + times, f"{cluster} was looked at again")
    assert not places(box, cluster)
