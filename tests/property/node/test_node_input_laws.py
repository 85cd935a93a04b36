"""Laws of other input of node jobs: answers of web servers and startds, their own files."""

from __future__ import annotations

import http.client
import io
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, TypeVar

import classad2
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import job_ctl
import mc_grace
import target_https
from tests.node_fakes import NOW, free, shell_tool

CPUS = 8
Found = TypeVar("Found")
lines = st.sampled_from(
    [b"HTTP/1.1 200 OK", b"HTTP/1.0 200", b"Content-Length: 5", b"Content-Length: -5",
    b"Content-Length: 1_0", b"",
     b"Transfer-Encoding: chunked", b"5", b"-1", b"-5", b"0", b"fffffffff", b"0x5", b"hello",
     b"ETag: \xff"]
)  # fmt: skip
replies = st.binary(max_size=300) | st.lists(lines | st.binary(max_size=20), max_size=12).map(
    b"\r\n".join
)


class Connection(socket.socket):
    """One over which these bytes came, and then its end."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.content = content

    def makefile(self, *_: object, **__: object) -> io.BufferedReader:  # type: ignore[override]
        return io.BufferedReader(io.BytesIO(self.content))


def kept(content: bytes, read: Callable[[str], Found]) -> Found:
    """What ``read`` makes of a file that holds ``content``."""
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        return read(path)
    finally:
        Path(path).unlink()


@given(replies, st.sampled_from([0, 2**21]))
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 2**21)
@example(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 2**21)
@settings(max_examples=300, deadline=None)
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


WORDS = st.sampled_from(["job_ctl 1", "7", "x", "\u00e9", "9" * 5000])


@given(st.binary(max_size=300) | st.lists(WORDS).map(lambda words: "\n".join(words).encode()))
def test_any_state_of_job_ctl_is_one_or_a_fresh_start(content: bytes) -> None:
    """A state file of others counts as absent; the own one is read back."""

    def read(path: str) -> tuple[int, str]:
        return job_ctl.read_state({"--pool": "p", "--state": path}, NOW)

    written = (job_ctl.STATE % ("p", NOW, "told")).encode()
    assert kept(content, read) == (0, "")
    assert kept(written, read) == (NOW, "told")
    assert kept(written + content, read) in ((0, ""), (NOW, "told"))


@given(st.binary(max_size=300), st.booleans())
def test_any_state_of_mc_grace_is_one_or_refused(content: bytes, titled: bool) -> None:  # noqa: FBT001
    """Any file gives seconds of the past, or OSError or ValueError: a fresh start."""
    title = (mc_grace.STATE_TITLE % CPUS + "\n").encode() * titled
    try:
        since = kept(title + content, lambda path: mc_grace.read_state(path, CPUS, NOW))
    except (OSError, ValueError):
        since = {}
    assert all(0 <= second <= NOW for second in since.values())


ROWS = (free(1, 8), free(1, 64), "1 64\n", "nan 8 8 8\n", "1 inf 1 1\n", "a b c d\n", "-1 8 8 8\n")
answers = st.binary(max_size=200) | st.lists(st.sampled_from(ROWS)).map("".join).map(str.encode)


@given(answers)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_the_startd_says_the_ad_of_mc_grace_is_whole(
    tmp_path: Path, answer: bytes
) -> None:
    """Any output of condor_status gives an ad with three attributes, and no traceback."""
    (tmp_path / "answer").write_bytes(answer)
    tool = shell_tool(tmp_path, f"exec cat {tmp_path}/answer")
    argv = ["--cpus", str(CPUS), "--state", str(tmp_path / "state"), "--condor-status", tool]
    command = [sys.executable, "-I", "-S", mc_grace.__file__, *argv]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    ad = classad2.parseOne(done.stdout.decode("ascii"))
    assert set(ad) == {"MC_GRACE", mc_grace.REASON, mc_grace.TIME}
    assert len(done.stdout.splitlines()) == len(ad)
    assert b"Traceback" not in done.stderr
    assert ad[mc_grace.REASON] in {*mc_grace.REASONS} - {"internal-error"}
