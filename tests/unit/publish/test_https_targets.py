from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from sharectl.errors import PublishError, WithdrawnError
from sharectl.model import HttpsWay, Plan, Target
from sharectl.publish.https import HttpsPublisher, fetch
from sharectl.publish.text import Seal, render
from tests.web_server import Answer, WebServer, serving, web_server

PLAN = Plan(7, 1000, 4060, ("alice", "cms"), (Target("cn-1", "alice", 56, "cms", 8),), "targets")
SEAL = Seal("pool-1", {b"k": b"s" * 32})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with web_server(tmp_path_factory.mktemp("server"), serving(b"")) as running:
        yield running


def at(server: WebServer, path: str = "/sharectl.txt", **more: Any) -> HttpsWay:
    return HttpsWay(Path("x"), server.url(path), server.certificate, **more)


def test_a_plan_that_the_server_serves_is_published(server: WebServer, tmp_path: Path) -> None:
    path = tmp_path / "sharectl.txt"
    server.answer = serving(render(PLAN, SEAL).encode())
    way = replace(at(server), file=path)
    assert HttpsPublisher(way, SEAL).publish(PLAN) == server.url()
    assert path.read_text(encoding="ascii") == render(PLAN, SEAL)


def test_without_its_key_a_withdrawal_is_served_unsigned_and_said_to_be(
    server: WebServer, tmp_path: Path
) -> None:
    withdrawal = Plan(8, 1000, 4060, ("alice", "cms"), (), "disabled")
    server.answer = serving(render(withdrawal, Seal("pool-1")).encode())
    way = replace(at(server), file=tmp_path / "x")
    keyless = HttpsPublisher(way, Seal("pool-1", key_problem="no key"))
    with pytest.raises(WithdrawnError) as caught:
        keyless.publish(withdrawal)
    assert caught.value.place == server.url()
    server.answer = serving(b"", 404)
    for plan in (PLAN, withdrawal):
        with pytest.raises(PublishError) as refused:
            keyless.publish(plan)
        assert not isinstance(refused.value, WithdrawnError), "it has not arrived"


def drip(request: BaseHTTPRequestHandler) -> None:
    serving(b"", Content_Length="1000")(request)
    for _ in range(50):
        request.wfile.write(b"x")
        request.wfile.flush()
        time.sleep(0.1)


# tests/unit/node/test_target_https.py has all other answers that the program refuses.
REFUSED: dict[str, tuple[Answer, str]] = {
    "another text": (serving(render(PLAN).encode()), "is not what .* holds"),
    "500": (serving(render(PLAN, SEAL).encode(), 500), "http-status: .*500"),
    "slow": (drip, "timeout"),
    "nowhere": (
        serving(b"", 302, Location="https://[\x1b[31m\x9b"),
        r"redirected: .*https://\[.*x1b\[31m",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_another_answer_is_an_error_and_the_file_stays_written(
    server: WebServer, tmp_path: Path, kind: str
) -> None:
    server.answer, problem = REFUSED[kind]
    seconds, file = 0.5 if kind == "slow" else 20.0, tmp_path / "sharectl.txt"
    way = replace(at(server, deadline_seconds=seconds), file=file)
    with pytest.raises(PublishError, match=problem):
        HttpsPublisher(way, SEAL).publish(PLAN)
    assert file.read_text(encoding="ascii") == render(PLAN, SEAL)


def test_a_server_that_nobody_vouches_for_is_not_believed(server: WebServer) -> None:
    server.answer = serving(render(PLAN, SEAL).encode())
    with pytest.raises(PublishError, match="bad-certificate"):
        fetch(replace(at(server), ca_file=None))


@pytest.mark.parametrize(
    "head", [b"\r\n", *(b"Transfer-Encoding: chunked\r\n\r\n%d\r\n" % n for n in (-1, -2))]
)
def test_a_server_without_end_is_read_to_the_limit(server: WebServer, head: bytes) -> None:
    """Also where it announces a chunk of less than nothing."""
    sent = 0

    def answer(request: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        request.wfile.write(b"HTTP/1.1 200 OK\r\n" + head)
        for _ in range(2**10):
            request.wfile.write(bytes(2**20))
            sent += 2**20

    server.answer = answer
    with pytest.raises(PublishError, match="too-big"):
        fetch(at(server))
    assert sent < 100 * 2**20
