"""Laws of readers of outside input: a result or a documented error, in bounded memory."""

from __future__ import annotations

import json
import os
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sharectl.condor import configuration
from sharectl.condor.node_ads import machine_of
from sharectl.config import load
from sharectl.errors import SharectlError
from sharectl.ledger import jobs_file
from sharectl.model import PoolConfig
from sharectl.plan import nodes
from sharectl.plan.nodes import HOST_NAME
from sharectl.plan.plan import State
from sharectl.publish import signing, text
from sharectl.publish.disabled_file import DisabledFile
from sharectl.publish.state import StateFile
from sharectl.shares.groups import group_of
from sharectl.snapshot import pool, schedd_jobs

GROUPS = frozenset(("alice", "cms"))
MIB = 2**20
DEEP = b"[" * 100_000
SPARSE_BYTES = 2**30
MOST_WORDS = 20_000
"""Characters of an error."""


@contextmanager
def file_with(content: bytes, name: str = "file") -> Iterator[Path]:
    """Yield the path of a file with that content, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        yield path


def outcome(read: Callable[[], Any]) -> tuple[Any, str]:
    """Result, or the words of the documented error."""
    try:
        return read(), ""
    except SharectlError as error:
        words = str(error)
    assert 0 < len(words) < MOST_WORDS
    return None, words


SCRAPS = rb'null true -1 1e999 NaN "\ud800"'
scraps = st.binary(max_size=8) | st.sampled_from(
    [*SCRAPS.split(), b"[" * 3000, b'{"a":' * 3000, b"9" * 5000, b"\x00", b"\n"]
)


def spoiled(text: str) -> st.SearchStrategy[bytes]:
    """Any bytes, or those of ``text``: some are cut out, and something comes in."""
    content = text.encode()
    near = st.builds(
        lambda at, cut, scrap: content[:at] + scrap + content[at + cut :],
        st.integers(0, len(content)),
        st.integers(0, 30),
        scraps,
    )
    return st.binary(max_size=200) | near


TARGET = {"node": "wn-1", "held_back": "alice", "cap_cores": 8, "helped": "cms", "request_cores": 8}
LAST_PLAN = {"sequence": 5, "targets": [TARGET], "generated_at": 1, "valid_until": 9}
STATE = {
    "schema_version": 1,
    "sequence": 5,
    "nodes": 1,
    "standing": [{"target": TARGET, "since": 3}],
    "standing_until": 9,
    "unaudited": None,
    "last_cycle": {"plan": LAST_PLAN},
}
JOBS = "2 wn-1 alice 60 1 10.0\n1 PEND cms.prod 0 8 10\n2 wn-1  5 undefined undefined\n"
MARKER = {"reason": "cooling", "who": "root", "since": 1, "until": None}


@given(spoiled(json.dumps(STATE)))
@example(b'{"schema_version": 1, "last_cycle": ' + DEEP)
@settings(max_examples=200)
def test_a_state_file_is_a_state_or_a_state_error(content: bytes) -> None:
    """load() and last_cycle() of any bytes return their type, or a SharectlError with the path."""
    with file_with(content) as path:
        for read, kind in ((StateFile(path).load, State), (StateFile(path).last_cycle, dict)):
            result, error = outcome(read)
            assert isinstance(result, kind) or str(path) in error


@given(spoiled(JOBS))
@settings(max_examples=300)
def test_a_jobs_file_is_read_or_refused(content: bytes) -> None:
    """read(any bytes) has names of groups and hosts, and numbers within limits, or an error."""
    with file_with(content) as path:
        rows, _ = outcome(lambda: jobs_file.read_jobs(path, GROUPS))
    for job in rows.running if rows is not None else ():
        assert HOST_NAME.fullmatch(job.node)
        assert job.hs06_per_core > 0
    for job in (*rows.running, *rows.pending) if rows is not None else ():
        assert job.group in (*GROUPS, "other")
        assert 0 < job.cores <= jobs_file.MAX_CORES


@given(spoiled(json.dumps(MARKER)))
@example(b'{"reason": ' + DEEP)
@settings(max_examples=200)
def test_any_content_of_the_marker_is_off(content: bytes) -> None:
    """disabled() of any bytes is off, with words on one line that can be printed."""
    with file_with(content, "disabled") as path:
        off = DisabledFile(path.parent).disabled()
    assert off is not None
    assert (off.reason + off.who).isprintable()


CONDOR = """A = $(B) \\
B = 1
B = $(A)
C = $(A) $$(B)
include : file
include : other
include : loop
include : .
include command : /bin/false |
include ifexist : file
use ROLE : Execute
if version >= 23
if defined A
endif
D = 1 \\
# comment \\
C @=end
@end
= x
$(
\\
include : \x00"""
pieces = st.sampled_from(
    [
        *CONDOR.splitlines(),
        f"include : {'a' * 300}/{'b' * 5000}",
        "a" * 3000 + " = $(a)",
        f"include : {' ' * 300}|",
    ]
)
lines = st.lists(pieces | st.text(max_size=12), max_size=12).map("\n".join)


@given(lines.map(lambda text: text.encode("utf-8", "surrogatepass")) | spoiled(CONDOR))
@settings(max_examples=300)
def test_any_condor_configuration_has_definitions(content: bytes) -> None:
    """definitions_in(any bytes) ends, each on a line of the file; a circle is closed."""
    with file_with(content) as path:
        path.with_name("loop").symlink_to("loop")
        definitions = configuration.definitions_in([path])
    last = len(content.decode("utf-8", "replace").splitlines())
    assert [one.line for one in definitions if not 1 <= one.line <= last] == []
    circle = configuration.circle(definitions)
    assert not circle or circle[0] == circle[-1]
    for before, after in zip(circle, circle[1:]):
        assert after.name.lower() in before.references


# ---- ads


EXPRESSIONS = """undefined error True -1 0 1 8 2147483648 9223372036854775807 1e300 real("INF") ""
"alice.x" "wn-1.example.org" "slot1@wn-1.example.org" "x\\"y" {} {1,2} {"a",undefined,error,-3}
MY.Cpus Machine [a=1] {{{1}}} 1/0 strcat(Machine,1) "\u0663" time() 0.0/0.0"""
expressions = st.sampled_from([*EXPRESSIONS.split(), f'"{"w" * 3000}"']) | st.text(
    "abc.@{}\"', 019-\\", max_size=12
)


def ads_of(names: list[str]) -> st.SearchStrategy[Any]:
    """Ads with any of those attributes, whatever they are worth."""
    return st.dictionaries(st.sampled_from(names), expressions).map(_ad)


def _ad(attributes: dict[str, str]) -> Any:
    made = classad2.ClassAd()
    for name, expression in attributes.items():
        with suppress(Exception):  # what is no expression is in no ad
            made[name] = classad2.ExprTree(expression)
    return made


@given(ads_of(pool.PROJECTION))
@settings(max_examples=400)
def test_any_slot_is_counted_or_left_out(ad: Any) -> None:
    """A slot's ad is none, or has a host's name, and numbers that are not negative."""
    access = pool.CondorPool(
        tuple(GROUPS), nodes.NodesConfig(job_ctl_stale_seconds=120), PoolConfig()
    )
    machine = machine_of(ad)
    assert not machine or HOST_NAME.fullmatch(machine)
    named = pool.machines_of([machine], access, {})
    nodes_there = pool.nodes_of([ad], access, *named, 1_700_000_000)
    assert len(nodes_there) == bool(machine)
    for node in nodes_there:
        assert 0 < node.hs06_per_core < float("inf")
        assert min(node.cores, node.memory_mib, node.obeyed_sequence or 0, node.grace_cores) >= 0
        assert node.refusal is None or node.refusal in nodes.REMEDIES
        assert node.deaf is None or node.deaf in nodes.DEAF
    for _, job in pool._jobs_in(ad, access, {}, 1_700_000_000):  # noqa: SLF001
        assert job.memory_mib >= 0
        assert job.cores >= 1
        assert job.seconds >= 0
        assert job.group in (*GROUPS, "other")


@given(ads_of([*schedd_jobs.COUNTED_KEYS, "JobCount"]), st.integers(1, 64))
@settings(max_examples=400)
def test_any_job_is_counted(ad: Any, most_cores: int) -> None:
    """Numbers of a job's ad are within their limits, and its group is a group."""
    account, cores, memory_mib, _ = schedd_jobs.kind_of(ad, most_cores)
    assert 1 <= cores <= most_cores
    assert memory_mib >= 0
    assert group_of(account, GROUPS) in (*GROUPS, "other")


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
    "targets": (lambda path: text.FilePublisher(path).look(), 8 * MIB),
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
    peak_of(lambda: read(path))  # what it imports first is not of the file
    os.truncate(path, SPARSE_BYTES)
    assert peak_of(lambda: read(path)) < most
    path.unlink()
    if reader != "configuration":  # which may come through a pipe
        os.mkfifo(path, 0o600)
        assert peak_of(lambda: read(path)) < MIB


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
