"""Requests on slots: sizes, jobs shared out over them, nodes that are closed to other sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import classad2
import pytest

from sharectl.model import ClosedTo, Node
from sharectl.snapshot.requests import Requests, sizes_on_slots, users_of
from sharectl.snapshot.schedd_jobs import JobKind, JobShape, request_of

SLOTS = (("wn-1", 8), ("wn-2", 8), ("wn-3", 16))
NODES = {name: Node(name, name, cores, 10.0, controlled=True) for name, cores in SLOTS}
WHOLE = "isUndefined(TotalCpus) ? 1 : TotalCpus"
DOUBLED = {f"A{n}": f"strcat(A{n - 1}, A{n - 1})" for n in range(1, 40)}


def look(_: Sequence[str]) -> Iterable[Any]:
    for name, cores in SLOTS:  # all cores are held
        totals = {"TotalCpus": float(cores), "TotalSlotCpus": cores, "TotalMemory": 1000 * cores}
        yield classad2.ClassAd({"Machine": name, "Cpus": 0, **totals})


def kind_asking(cpus: str, memory: str = "1000", **attributes: Any) -> JobKind:
    ad = classad2.ClassAd(attributes)
    ad["RequestCpus"], ad["RequestMemory"] = classad2.ExprTree(cpus), classad2.ExprTree(memory)
    return JobKind("cms@", 1, 1024, request_of(ad))


def requests(*kinds: JobKind, most_cores: int = 64, nodes: dict[str, Node] = NODES) -> Requests:
    sizes = sizes_on_slots(look, {kind.request: kind.request for kind in kinds}, 30)
    return Requests(sizes, nodes, most_cores, lambda account: str(account).strip("@"))


@pytest.mark.parametrize(
    ("cpus", "cores"),
    [
        *[(WHOLE, [8, 16]), ("TARGET.TotalCpus ?: Own", [8, 16]), ("min({8, TARGET.Cpus})", [8])],
        *[("TARGET.TotalCpus * 0.45", [4, 8]), ("TARGET.TotalCpus + 1", [1])],
        *[("TARGET.Nope", [1]), ('TARGET.Nope ?: "8"', [1]), ("TARGET.TotalCpus - 8", [1, 8])],
    ],
)
def test_a_request_is_what_empty_slots_make_of_it(cpus: str, cores: list[int]) -> None:
    kind = kind_asking(cpus, Own=3)
    assert requests(kind).cores_of(kind) == cores


@pytest.mark.parametrize("cpus", ["8", "2 * Own", "MY.Own", "ifThenElse(Own > 2, 4, 1)"])
def test_what_hangs_on_the_job_alone_is_not_evaluated_on_slots(cpus: str) -> None:
    default = "ifThenElse(MemoryUsage =!= undefined, MemoryUsage, (ImageSize + 1023) / 1024)"
    assert kind_asking(cpus, default, Own=3, ImageSize=45).request == ""


def test_jobs_are_shared_out_by_what_fits_where_they_may_start() -> None:
    kind = kind_asking(WHOLE, "TARGET.TotalMemory * 95 / 100")
    small, large = ("cms", 8, 7600), ("cms", 16, 15200)
    assert requests(kind).shares(kind, 30) == {small: 20, large: 10}
    assert requests(kind).shares(kind, 1) == {small: 1}
    assert requests(kind).shares(kind, 30, of_one_size=True) == {small: 30}
    shut = (ClosedTo("cms", (8,), "START"),)
    closed = {name: replace(NODES[name], closed=shut) for name in ("wn-1", "wn-2")}
    assert requests(kind, nodes={**NODES, **closed}).shares(kind, 30) == {large: 30}


def test_a_node_is_closed_to_the_sizes_of_other_nodes() -> None:
    kind = kind_asking(WHOLE)
    other, same = (ClosedTo("cms", (cores,), f"RequestCpus == {cores}") for cores in (8, 16))
    expected = {"wn-1": (same,), "wn-2": (same,), "wn-3": (other,)}
    assert requests(kind).closed([kind]) == expected
    # To jobs that request 8 cores wherever they are, the large node is open.
    del expected["wn-3"]
    assert requests(kind).closed([kind, JobKind("cms@", 8, 0)]) == expected


def test_requests_of_a_user_that_take_too_long_hide_none_of_another() -> None:
    doubled = {name: classad2.ExprTree(text) for name, text in DOUBLED.items()}
    cheap = kind_asking(WHOLE, Remark="x" * 2000)
    slow = [
        kind_asking(f"size(A39) + {n}", A0=classad2.ExprTree("TARGET.Machine"), **doubled)
        for n in range(20)
    ]
    shapes = [JobShape(kind, 1, "", None, user="mallory") for kind in slow]
    shapes.append(JobShape(cheap, 1, "", None, user="bob"))
    users = users_of({shape.kind.request for shape in shapes}, shapes)
    assert users[cheap.request] == "bob"
    every = Requests(sizes_on_slots(look, users, 60), NODES, 64, str)
    assert (every.cores_of(cheap), every.cores_of(slow[0])) == ([8, 16], [1])
    unknown = {kind.request: "" for kind in (slow[0], cheap)}
    assert [*sizes_on_slots(look, unknown, 60)] == [cheap.request]
