"""Laws of what reads outside input in the centre: whatever comes, a result or a documented error, in bounded memory."""

from __future__ import annotations

import json
import os
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sharectl.condor import configuration, pool, schedds
from sharectl.config import load
from sharectl.errors import SharectlError
from sharectl.ledger import jobs_file
from sharectl.plan import nodes
from sharectl.plan.nodes import HOST_NAME
from sharectl.plan.plan import State
from sharectl.publish import signing
from sharectl.publish import text as plan_json
from sharectl.publish.state import StateFile
from sharectl.publish.switch import DisabledFile
from sharectl.shares.groups import GROUP_NAME, group_of
from tests.logs import errors_in

GROUPS = frozenset(("alice", "cms"))
MIB = 2**20
DEEP = b"[" * 100_000
SPARSE_BYTES = 2**30
LONG_NUMBER = "9" * 400


@contextmanager
def file_with(content: bytes, name: str = "file") -> Iterator[Path]:
    """Yield the path of a file with that content, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        yield path


Read = TypeVar("Read")


def outcome(read: Callable[[], Read]) -> tuple[Optional[Read], str]:
    """What was read, or what the documented error says."""
    try:
        return read(), ""
    except SharectlError as error:
        return None, str(error)


def spoiled(text: str) -> st.SearchStrategy[bytes]:
    """Bytes near to ``text``: some are cut out, and something comes in."""
    content = text.encode()
    scraps = st.binary(max_size=8) | st.sampled_from(
        [b"[" * 3000, b'{"a":' * 3000, b"9" * 5000, b"-1", b"1e999", b"NaN", b'"\\ud800"', b"null", b"\x00", b"\n", b"true"]
    )  # fmt: skip
    return st.tuples(st.integers(0, len(content)), st.integers(0, 30), scraps).map(
        lambda cut: content[: cut[0]] + cut[2] + content[cut[0] + cut[1] :]
    )


TARGET = {"node": "wn-1", "held_back": "alice", "cap_cores": 8, "helped": "cms", "request_cores": 8}
STATE = json.dumps(
    {
        "schema_version": 1,
        "sequence": 5,
        "nodes": 1,
        "standing": [{"target": TARGET, "since": 3}],
        "standing_until": 9,
        "unaudited": None,
        "last_cycle": {
            "plan": {"sequence": 5, "targets": [TARGET], "generated_at": 1, "valid_until": 9}
        },
    }
)
PLAN = json.dumps(
    {
        "kind": "plan",
        "schema_version": 1,
        "sequence": 1,
        "generated_at": 1,
        "valid_until": 2,
        "groups": ["alice", "cms"],
        "targets": [TARGET],
        "reason": "targets",
        "held_back": "alice",
        "helped": "cms",
        "limits": [],
    }
)
ROWS = "# T0 VO PLEDGE DC SC MC DHS DPHS PSC PMC\n1700000000 alice 560 3 8 0 12 -5 0 0\n"
JOBS = "2 wn-1 alice 60 1 10.0\n1 PEND cms.prod 0 8 10\n2 wn-1  5 undefined undefined\n"
SAID = json.dumps({"reason": "cooling", "who": "root", "since": 1, "until": None})
CONDOR = """\
A = $(B) \\
  and more
B = 1
include : other
include command : /bin/false |
if defined A
  C @=end
text
@end
endif
"""


@given(st.binary(max_size=200) | spoiled(STATE))
@example(b'{"schema_version": 1, "last_cycle": ' + DEEP)
@settings(max_examples=200)
def test_a_state_file_is_a_state_or_a_state_error(content: bytes) -> None:
    """load() and last_cycle() of any bytes return what they promise, or raise a SharectlError."""
    with file_with(content) as path:
        state, said = outcome(StateFile(path).load)
        record, why = outcome(StateFile(path).last_cycle)
        assert isinstance(state, State) or str(path) in said
        assert isinstance(record, dict) or str(path) in why


@given(
    st.text(max_size=200) | spoiled(PLAN).map(lambda content: content.decode("utf-8", "replace"))
)
@example(DEEP.decode())
@settings(max_examples=200)
def test_a_plan_is_fit_to_be_published_or_refused(text: str) -> None:
    """parse(any text) has only names that may reach a node, or raises a SharectlError that names its place."""
    found, said = outcome(lambda: plan_json.parse_plan(text, "PLAN"))
    if found is None:
        assert said.startswith("PLAN: ")
        return
    assert all(HOST_NAME.fullmatch(target.node) for target in found.targets)
    assert all(GROUP_NAME.fullmatch(group) for group in found.groups)
    assert {name for t in found.targets for name in (t.held_back, t.helped)} <= set(found.groups)


@given(st.binary(max_size=200) | spoiled(ROWS))
@example(f"1 alice {LONG_NUMBER} 1 1 1 1 {LONG_NUMBER} 1 1\n".encode())
@settings(max_examples=200)
def test_an_errors_log_is_read_or_refused(content: bytes) -> None:
    """read(any bytes) returns rows, or raises a SharectlError of bounded length."""
    with file_with(content) as path:
        found, said = outcome(lambda: errors_in(path))
    assert (found is None) == bool(said)
    assert len(said) < 20_000


@given(st.binary(max_size=300) | spoiled(JOBS))
@settings(max_examples=300)
def test_a_jobs_file_is_read_or_refused(content: bytes) -> None:
    """read(any bytes) has groups and hosts that are such, and numbers within limits, or raises a SharectlError."""
    with file_with(content) as path:
        rows, said = outcome(lambda: jobs_file.read_jobs(path, GROUPS))
    if rows is None:
        assert 0 < len(said) < 20_000
        return
    assert all(HOST_NAME.fullmatch(job.node) and job.hs06_per_core > 0 for job in rows.running)
    for jobs in (rows.running, rows.pending):
        assert {job.group for job in jobs} <= {*GROUPS, "other"}
        assert all(0 < job.cores <= jobs_file.MAX_CORES for job in jobs)


@given(st.binary(max_size=200) | spoiled(SAID))
@example(b'{"reason": ' + DEEP)
@settings(max_examples=200)
def test_whatever_the_marker_holds_it_is_off(content: bytes) -> None:
    """disabled() of any bytes says that sharectl is off, on one line that can be printed."""
    with file_with(content, "disabled") as path:
        said = DisabledFile(path.parent).disabled()
    assert said is not None
    assert (said.reason + said.who).isprintable()


pieces = st.sampled_from(
    [
        "A = $(B)", "B = $(A)", "C = $(A) $$(B)", "include : file", "include : \x00", f"include : {'a' * 300}/{'b' * 5000}",
        "include : loop", "include : .", "include ifexist : file", "use ROLE : Execute", "if version >= 23", "endif", "\\",
        "D = 1 \\", "# comment \\", "E @=end", "@end", "=", "= x", "$(", "a" * 3000 + " = $(a)", "include : " + " " * 300 + "|",
    ]
)  # fmt: skip


@given(
    (st.lists(pieces | st.text(max_size=12), max_size=12).map("\n".join)).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    )
    | st.binary(max_size=200)
    | spoiled(CONDOR)
)
@settings(max_examples=300)
def test_any_condor_configuration_has_definitions(content: bytes) -> None:
    """definitions_in(any bytes) ends, each on a line that there is, and circles among them are found or not."""
    with file_with(content) as path:
        path.with_name("loop").symlink_to("loop")
        found = configuration.definitions_in([path])
    lines = content.decode("utf-8", "replace").splitlines()
    assert all(1 <= definition.line <= len(lines) for definition in found)
    circle = configuration.circle(found)
    assert not circle or circle[0] == circle[-1]
    assert all(after.name.lower() in before.references for before, after in zip(circle, circle[1:]))


# ---- ads


expressions = st.sampled_from(
    [
        "undefined", "error", "True", "-1", "0", "1", "8", "2147483648", "9223372036854775807", "1e300", 'real("INF")', '""',
        '"alice.x"', '"wn-1.example.org"', '"slot1@wn-1.example.org"', '"x\\"y"', "{}", "{1,2}", '{"a",undefined,error,-3}',
        "MY.Cpus", "Machine", "[a=1]", "{{{1}}}", "1/0", "strcat(Machine, 1)", f'"{"w" * 3000}"', '"٣"', "time()", "0.0/0.0",
    ]
) | st.text("abc.@{}\"', 019-\\", max_size=12)  # fmt: skip


def ads_of(names: list[str]) -> st.SearchStrategy[Any]:
    """Ads with any of those attributes, whatever they are worth."""
    return st.dictionaries(st.sampled_from(names), expressions).map(_ad)


def _ad(attributes: dict[str, str]) -> Any:
    made = classad2.ClassAd()
    for name, expression in attributes.items():
        with suppress(Exception):  # what is no expression is in no ad
            made[name] = classad2.ExprTree(expression)
    return made


@given(ads_of(pool._PROJECTION))  # noqa: SLF001 - the parser is private, its input is not
@settings(max_examples=400)
def test_any_slot_is_counted_or_left_out(ad: Any) -> None:
    """A slot's ad is none, or has a host's name, and numbers that are not negative."""
    access = pool.PoolAccess(tuple(GROUPS), nodes.ALL_NODES, job_ctl_stale_seconds=120)
    machine = pool._machine(ad)  # noqa: SLF001
    assert not machine or HOST_NAME.fullmatch(machine)
    (node,) = pool.nodes_of([ad], access, {}, 1_700_000_000)
    assert 0 < node.hs06_per_core < float("inf")
    assert min(node.cores, node.memory_mib, node.obeyed_sequence or 0, node.grace_cores) >= 0
    assert node.refusal is None or node.refusal in nodes.REMEDIES
    for job in pool._jobs_in(ad):  # noqa: SLF001
        assert job.held.memory_mib >= 0
        assert job.held.cores >= 1
        assert job.held.since >= 0
        assert group_of(job.held.accounting_group, GROUPS) in (*GROUPS, "other")


@given(ads_of([*schedds._JOB_PROJECTION, "JobCount", "JobUniverse"]), st.integers(1, 64))  # noqa: SLF001
@settings(max_examples=400)
def test_any_job_is_counted_or_left_out(ad: Any, most_cores: int) -> None:
    """A job's ad is none, or has a host's name, and numbers within their limits."""
    whole_node = schedds.Sizes(most_cores, {"TotalSlotCpus": most_cores, "Memory": 1000})
    for sizes in (schedds.Sizes(most_cores), whole_node):
        account, cores, memory_mib = schedds.kind_of(ad, sizes)
        assert 1 <= cores <= most_cores
        assert memory_mib >= 0
        assert group_of(account, GROUPS) in (*GROUPS, "other")
    job = schedds._running(ad, whole_node)  # noqa: SLF001
    if job is not None:
        assert job.held.memory_mib >= 0
        assert HOST_NAME.fullmatch(job.machine)
        assert job.held.cores >= 1
        assert job.held.since >= 0
        assert job.node_hs06 is None or 0 < job.node_hs06 < float("inf")


# ---- memory


def peak_of(read: Callable[[], object]) -> int:
    """Most bytes that Python held at a time while it read; a SharectlError is an answer."""
    tracemalloc.start()
    try:
        read()
    except SharectlError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


READERS: dict[str, tuple[Callable[[Path], object], int]] = {
    "configuration": (load.load, 8 * MIB),
    "targets": (plan_json.read, 8 * MIB),
    "keys": (signing.read_keys, MIB),
    "state": (lambda path: StateFile(path).load(), 200 * MIB),
    "marker": (lambda path: DisabledFile(path.parent).disabled(), MIB),
    "condor configuration": (lambda path: configuration.definitions_in([path]), 100 * MIB),
}
"""Readers of whole files, and the bytes that each may hold meanwhile."""


@pytest.mark.parametrize("reader", READERS)
def test_of_a_file_without_end_only_a_part_is_read_and_no_fifo_is_waited_for(
    reader: str, tmp_path: Path
) -> None:
    read, most = READERS[reader]
    path = tmp_path / "disabled"
    path.touch(0o600)
    os.truncate(path, SPARSE_BYTES)
    assert peak_of(lambda: read(path)) < most
    path.unlink()
    if reader != "configuration":  # which may come through a pipe
        os.mkfifo(path, 0o600)
        assert peak_of(lambda: read(path)) < MIB


@pytest.mark.parametrize("read", [lambda path: jobs_file.read_jobs(path, GROUPS), errors_in])
@pytest.mark.parametrize("content", [b"1 a\n" * 200_000, b"1 " * (16 * MIB)])
def test_invalid_rows_are_not_kept(
    read: Callable[[Path], object], content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "rows"
    path.write_bytes(content)
    assert peak_of(lambda: read(path)) < 16 * MIB


@pytest.mark.parametrize(
    "bomb",
    [
        b"a: &a [x, x]\n" + b"".join(b"b%d: &b%d [*a, *a]\n" % (n, n) for n in range(5000)),
        b"[" * 500_000,
        b"groups: " + b"1_" * 100_000,
    ],
    ids=["aliases", "levels", "digits"],
)
def test_a_bomb_in_yaml_is_refused(bomb: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_bytes(bomb)
    assert peak_of(lambda: load.load(path)) < 100 * MIB
