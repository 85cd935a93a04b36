from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from sharectl.errors import PublishError, UnsignedError
from sharectl.model import Plan, Target
from sharectl.publish import https
from sharectl.publish.https import HttpsPublisher, ServedAt, fetch
from sharectl.publish.signing import SigningKey
from sharectl.publish.text import TEXT_MAX_BYTES, Seal, render
from tests.web_server import WebServer, serving, web_server

PLAN = Plan(7, 1000, 4060, ("alice", "cms"), (Target("cn-1", "alice", 56, "cms", 8),), "targets")
SEAL = Seal("pool-1", SigningKey("k", b"s" * 32))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with web_server(tmp_path_factory.mktemp("server"), serving(b"")) as running:
        yield running


def at(server: WebServer, path: str = "/sharectl.txt", deadline_seconds: float = 20.0) -> ServedAt:
    return ServedAt(server.url(path), server.certificate, deadline_seconds)


def publisher(server: WebServer, folder: Path) -> HttpsPublisher:
    return HttpsPublisher(folder / "sharectl.txt", at(server), SEAL)


def test_what_the_server_serves_is_published(server: WebServer, tmp_path: Path) -> None:
    def written(request: BaseHTTPRequestHandler) -> None:
        serving((tmp_path / "sharectl.txt").read_bytes())(request)

    server.answer = written
    assert publisher(server, tmp_path).publish(PLAN) == server.url()
    assert (tmp_path / "sharectl.txt").read_text(encoding="ascii") == render(PLAN, SEAL)


def test_no_proxy_is_asked_whatever_the_environment_says(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server.answer = serving(b"x")
    assert fetch(at(server)).content == b"x"


def test_without_its_key_a_withdrawal_is_served_unsigned_and_said_to_be(
    server: WebServer, tmp_path: Path
) -> None:
    withdrawal = Plan(8, 1000, 4060, ("alice", "cms"), (), "disabled")
    server.answer = serving(render(withdrawal, Seal("pool-1")).encode())
    keyless = HttpsPublisher(tmp_path / "x", at(server), Seal("pool-1", key_problem="no key"))
    with pytest.raises(UnsignedError, match="unsigned: no key") as caught:
        keyless.publish(withdrawal)
    assert caught.value.place == server.url()
    with pytest.raises(PublishError, match="not published, because it cannot be signed: no key"):
        keyless.publish(PLAN)
    server.answer = serving(b"", 404)
    with pytest.raises(PublishError, match="the server answers 404") as refused:
        keyless.publish(withdrawal)
    assert not isinstance(refused.value, UnsignedError), "it has not arrived"


@pytest.mark.parametrize(
    ("status", "content", "problem"),
    [
        (200, b"# sharectl: 1\n", "is not what .* holds"),
        (200, render(PLAN).encode(), "is not what .* holds"),
        (404, b"", "the server answers 404"),
        (500, render(PLAN, SEAL).encode(), "the server answers 500"),
        (200, b"x" * (TEXT_MAX_BYTES + 1), "has more than 1048576 bytes"),
    ],
)
def test_what_it_does_not_serve_is_an_error_and_stays_written(
    server: WebServer, tmp_path: Path, status: int, content: bytes, problem: str
) -> None:
    server.answer = serving(content, status)
    with pytest.raises(PublishError, match=problem):
        publisher(server, tmp_path).publish(PLAN)
    assert (tmp_path / "sharectl.txt").read_text(encoding="ascii") == render(PLAN, SEAL)


def test_a_server_that_nobody_vouches_for_is_not_believed(
    server: WebServer, tmp_path: Path
) -> None:
    server.answer = serving(render(PLAN, SEAL).encode())
    assert "CERTIFICATE_VERIFY_FAILED" in (fetch(ServedAt(server.url())).problem or "")
    elsewhere = ServedAt(server.url().replace("localhost", "127.0.0.1"), server.certificate)
    assert "CERTIFICATE_VERIFY_FAILED" in (fetch(elsewhere).problem or "")
    missing = ServedAt(server.url(), tmp_path / "no.pem")
    assert "no.pem cannot be read" in (fetch(missing).problem or "")


def test_a_redirect_is_followed_on_the_same_host_only(server: WebServer) -> None:
    def moved(request: BaseHTTPRequestHandler) -> None:
        place = {
            "/here": "/there",
            "/away": "https://127.0.0.1:1/x",
            "/plain": server.url().replace("https", "http"),
        }
        if request.path in place:
            serving(b"", 302, Location=place[request.path])(request)
        else:
            serving(b"content")(request)

    server.answer = moved
    assert fetch(at(server, "/here")).content == b"content"
    assert server.asked[-2:] == ["/here", "/there"]
    for path in ("/away", "/plain"):
        assert "another host" in (fetch(at(server, path)).problem or "")


def test_a_server_that_drips_is_not_waited_for(server: WebServer) -> None:
    def drip(request: BaseHTTPRequestHandler) -> None:
        serving(b"", Content_Length="1000")(request)
        for _ in range(50):
            request.wfile.write(b"x")
            request.wfile.flush()
            time.sleep(0.1)

    server.answer = drip
    began = time.monotonic()
    assert (
        fetch(at(server, deadline_seconds=0.5)).problem
        == "cannot be fetched: no answer within 0.5 s"
    )
    assert time.monotonic() - began < 4


def test_a_server_without_end_is_read_to_the_limit(server: WebServer) -> None:
    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        for _ in range(2**10):
            request.wfile.write(bytes(2**20))

    server.answer = endless
    assert fetch(at(server)) == https.Fetched(
        problem="has more than 1048576 bytes; no node reads it"
    )


def test_what_is_too_large_by_its_own_account_is_said_to_be(server: WebServer) -> None:
    server.answer = serving(bytes(3 * TEXT_MAX_BYTES))
    assert "has more than" in (fetch(at(server)).problem or "")


@pytest.mark.parametrize("size", [b"-1", b"-2"])
def test_a_chunk_of_less_than_nothing_is_not_all_that_ever_comes(
    server: WebServer, size: bytes
) -> None:
    sent = 0

    def answer(request: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        request.wfile.write(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\n"
        )
        for _ in range(2**10):
            request.wfile.write(bytes(2**20))
            sent += 2**20

    server.answer = answer
    assert fetch(at(server)) == https.Fetched(
        problem="has more than 1048576 bytes; no node reads it"
    )
    assert sent < 100 * 2**20


def test_what_is_cut_off_is_no_document(server: WebServer) -> None:
    server.answer = serving(b"# sharectl: 1\n", Content_Length="1000")
    assert "cannot be fetched" in (fetch(at(server)).problem or "")


def test_a_server_that_is_gone_or_talks_nonsense_is_named(server: WebServer) -> None:
    def nonsense(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"nonsense\r\n\r\n")

    server.answer = nonsense
    assert "cannot be fetched" in (fetch(at(server)).problem or "")
    assert "refused" in (fetch(ServedAt("https://127.0.0.1:1/x")).problem or "")
