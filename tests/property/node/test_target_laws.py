"""Laws of the programs that find a node's target: documents, ads, answers of web servers."""

from __future__ import annotations

import http.client
import io
import re
import socket

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import job_ctl
import target
import target_collector
import target_https
from sharectl.model import Plan, Target
from sharectl.publish.text import render
from sharectl.shares.groups import NESTED_GROUP_NAME
from tests.node_fakes import KEYS, NOW, ad_line, signature

GROUP = re.compile(r"(?!(none|other)$)(?=.{1,64}$)[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)*")
NODE = re.compile(r"[A-Za-z0-9._-]{1,253}")

groups = st.from_regex(
    r"[a-z0-9][a-z0-9_-]{0,11}(\.[a-z0-9][a-z0-9_-]{0,5}){0,3}", fullmatch=True
).filter(job_ctl.is_group)
nodes = st.from_regex(r"[a-z]{1,2}-[0-9]{1,2}(\.example\.(org|com))?", fullmatch=True)
pairs = st.lists(groups, min_size=2, max_size=2, unique=True)
targets = st.builds(
    lambda node, pair, cap, request: Target(node, pair[0], cap, pair[1], request),
    nodes, pairs, st.integers(0, 100000), st.integers(1, 100000),
)  # fmt: skip


def published(lines: list[Target]) -> bytes:
    """A document as the centre publishes it, of a plan whose groups are all listed."""
    named = sorted({name for line in lines for name in (line.held_back, line.helped)})
    plan = Plan(1, NOW, NOW + 1800, tuple(named), tuple(lines), reason="targets")
    return render(plan).encode()


def order_of(line: Target) -> str:
    """The words after the node."""
    return f"{line.held_back} {line.cap_cores} {line.helped} {line.request_cores}"


def parsed(
    content: bytes, listed: set[str], pool: str = "", changed: int = 0
) -> tuple[int, int, str, list[tuple[str, str]]]:
    """Sequence, end, pending and orders of a document; a file has a time of its last change."""
    options = target.parse_arguments(["--pool", pool])[0]
    return target.parse(content, changed, options, listed, NOW)


@given(st.lists(targets, min_size=1, unique_by=lambda line: line.node.split(".")[0]), st.data())
def test_a_node_finds_its_own_line_in_a_plan_of_the_centre(
    lines: list[Target], data: st.DataObject
) -> None:
    """Every line of a published plan is the target of its node, and of no other."""
    line = data.draw(st.sampled_from(lines))
    listed: set[str] = set()
    _sequence, end, _pending, orders = parsed(published(lines), listed)
    short = line.node.split(".")[0]
    assert [order for node, order in orders if node.split(".")[0] == short] == [order_of(line)]
    assert end == NOW + 1800
    assert {line.held_back, line.helped} <= listed


@given(st.lists(targets, min_size=1), st.data())
def test_a_file_cut_anywhere_is_refused(lines: list[Target], data: st.DataObject) -> None:
    """No part of a published file, from its beginning, is taken for a file with targets."""
    text = published(lines)
    part = text[: data.draw(st.integers(1, len(text) - 1))]
    with pytest.raises(target.JobError):
        parsed(part, set(), changed=NOW)


@given(
    st.lists(targets, min_size=1, max_size=3),
    st.data(),
    st.sampled_from(["old", "new"]),
    st.integers(1, 255),
)
def test_a_signed_document_with_any_byte_changed_is_refused(
    lines: list[Target], data: st.DataObject, key_id: str, change: int
) -> None:
    """A signed document is accepted, and with one byte of it changed in any way it is not."""
    keys = {name.encode(): bytes.fromhex(key) for name, key in KEYS.items()}
    text = published(lines).decode()
    content = bytearray((text + signature(text, key_id)).encode())
    target.check_signature(bytes(content), keys)
    content[data.draw(st.integers(0, len(content) - 1))] ^= change
    with pytest.raises(target.JobError) as raised:
        target.check_signature(bytes(content), keys)
    assert raised.value.args[0] in ("unsigned", "bad-signature")


@given(st.binary() | st.lists(targets).map(published))
def test_without_its_key_no_document_is_accepted(content: bytes) -> None:
    with pytest.raises(target.JobError) as raised:
        target.check_signature(content, {b"old": b"k" * 32})
    assert raised.value.args[0] in ("unsigned", "bad-signature")


def with_word(place: int, word: str) -> bytes:
    """A file with one line that is right but for one word."""
    words = ["cn-1", "alice", "56", "cms", "8"]
    return (" ".join([*words[:place], word, *words[place + 1 :]]) + "\n").encode()


odd_words = st.sampled_from(
    ["", "Alice", "none", "other", "_", "a b", "0", "-1", "100001", "٣", "cn-1\n"]
)
odd_files = st.builds(with_word, st.integers(0, 4), odd_words)


@given(st.binary() | st.text().map(str.encode) | odd_files, st.sampled_from([0, NOW]))
@settings(max_examples=300)
def test_any_document_is_parsed_or_refused(content: bytes, changed: int) -> None:
    """Nothing but JobError with a known code, and nothing but targets that may be published."""
    listed: set[str] = set()
    try:
        orders = parsed(content, listed, changed=changed)[3]
        code = "ok"
    except target.JobError as error:
        orders, code = [], error.args[0]
    assert code in target.REASONS
    assert [name for name in listed if not GROUP.fullmatch(name)] == []
    for node, order in orders:
        held_back, cap, helped, request = order.split(" ")
        assert NODE.fullmatch(node)
        assert GROUP.fullmatch(held_back)
        assert GROUP.fullmatch(helped)
        assert held_back != helped
        assert 0 <= int(cap) <= 100000
        assert 1 <= int(request) <= 100000


@given(st.text(max_size=80) | groups)
def test_names_of_groups_are_the_same_on_nodes_and_in_the_centre(text: str) -> None:
    """Both take the same names for groups, and neither `none` nor `other`."""
    centre = NESTED_GROUP_NAME.fullmatch(text) is not None and text not in ("none", "other")
    assert job_ctl.is_group(text) == target.is_group(text) == centre


PENDING = {"true": "True", "false": "False", "undefined": "undefined"}
"""What condor_status prints -> what job_ctl publishes."""


@given(
    targets,
    st.integers(0, 10**10 - 1),
    st.integers(0, 10**10 - 1801),
    st.sampled_from(["", "pool-1"]),
    st.sampled_from([*PENDING]),
)
def test_an_ad_has_the_meaning_of_a_document(
    line: Target, sequence: int, generated: int, pool: str, pending: str
) -> None:
    """The document of an ad has its target, times, sequence, pool and pending jobs."""
    order = (line.node, line.held_back, line.cap_cores, line.helped, line.request_cores)
    times = {"sequence": sequence, "generated": generated}
    ad = ad_line("condor@pool", *order, pool=pool, pending=pending, **times)
    (own,) = target_collector.own_ads([ad[:-1]], "condor@pool")
    *about, text = target_collector.document(own)
    assert about == [sequence, 1]
    try:
        answer: object = parsed(text.encode(), set(), pool)
    except target.JobError as error:
        answer = error.args[0]
    if max(generated, sequence) > NOW + 300:
        assert answer == "future"
    elif generated + 1800 <= NOW:
        assert answer == "expired"
    else:
        orders = [(line.node, order_of(line))]
        assert answer == (sequence, generated + 1800, PENDING[pending], orders)


heads = st.sampled_from(
    [
        b"HTTP/1.1 200 OK", b"HTTP/1.0 200", b"Content-Length: 5", b"Content-Length: -5",
        b"Content-Length: 1_0", b"", b"Transfer-Encoding: chunked", b"5", b"-1", b"-5", b"0",
        b"fffffffff", b"0x5", b"hello", b"ETag: \xff",
    ]
)  # fmt: skip
replies = st.binary(max_size=300) | st.lists(heads | st.binary(max_size=20), max_size=12).map(
    b"\r\n".join
)


class Connection(socket.socket):
    """A connection over which these bytes came, and then its end."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.content = content

    def makefile(self, *_: object, **__: object) -> io.BufferedReader:  # type: ignore[override]
        return io.BufferedReader(io.BytesIO(self.content))


@given(replies, st.sampled_from([0, 2**21]))
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 2**21)
@example(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 2**21)
@settings(max_examples=300, deadline=None)
# From Python 3.13 on a response tells that its file was closed before it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_any_answer_of_a_web_server_is_taken_or_refused(reply: bytes, more: int) -> None:
    """Any bytes make a document of at most 1 MiB, or a fault with a code."""
    with Connection(reply + b"#" * more) as connection:
        answer = http.client.HTTPResponse(connection, method="GET")
        source = answer.fp
        code, size = "ok", 0
        try:
            answer.begin()
            size = len(target_https.receive(answer))
        except target_https.JobError as error:
            code = error.args[0]
        except tuple(fault for fault, _ in target_https.FAULTS):
            pass
        assert code in target_https.REASONS
        assert size <= target_https.MAX_BYTES
        if not source.closed:
            assert source.tell() <= len(reply) + target_https.MAX_BYTES + 2 * io.DEFAULT_BUFFER_SIZE
            source.close()
