"""target_https.py: the document of a web server, and why there is none."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import NamedTuple, Optional

import pytest

import target_https
from poolbox.waiting import HANG_SECONDS
from tests.node_fakes import document
from tests.web_server import Answer, WebServer, serving, web_server

PROGRAM = Path(target_https.__file__)
TARGET = PROGRAM.with_name("target.py")
ISOLATED = (sys.executable, "-I", "-S")
TEXT = document("cn-1 alice 56 cms 8").encode()
MIB = 1024 * 1024
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MOST_MEMORY_BYTES = 200 * MIB


class Outcome(NamedTuple):
    """Code, document, standard error and duration of a run."""

    code: str
    content: bytes
    errors: str
    seconds: float


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with web_server(tmp_path_factory.mktemp("web"), serving(TEXT)) as running:
        yield running


def limited() -> None:
    """Have the program fail that takes more memory than any document needs."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))


def fetch(
    url: str, ca_file: object, *options: str, environment: Optional[dict[str, str]] = None
) -> Outcome:
    """Run the program, and hold it to what every run must do."""
    argv = [*ISOLATED, str(PROGRAM), "--url", url, "--ca-file", str(ca_file), *options]
    begin = time.monotonic()
    done = subprocess.run(
        argv,
        capture_output=True,
        check=False,
        timeout=HANG_SECONDS,
        env=environment,
        preexec_fn=limited,
    )
    seconds = time.monotonic() - begin
    code, _, content = done.stdout.partition(b"\n")
    assert done.returncode == target_https.REASONS[code.decode()][0]
    errors = done.stderr.decode()
    assert "Traceback" not in errors
    assert (code == b"ok") or (content == b"" and f"target_https.py: {code.decode()}: " in errors)
    return Outcome(code.decode(), content, errors, seconds)


def asked(server: WebServer, answer: Answer, *options: str, path: str = "/sharectl.txt") -> Outcome:
    """Run it for a server that answers so."""
    server.answer = answer
    return fetch(server.url(path), server.certificate, *options)


def raw(content: bytes) -> Answer:
    """Bytes of a server, and its end."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(content)
        request.close_connection = True

    return answer


def test_a_document_comes_as_it_is_and_nothing_but_the_request_goes(server: WebServer) -> None:
    headers: list[set[str]] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        headers.append({name.lower() for name in request.headers})
        serving(TEXT)(request)

    server.asked.clear()
    assert asked(server, answer, path="/a/b?c=d&e")[:3] == ("ok", TEXT, "")
    asked(server, answer, path="")
    assert server.asked == ["/a/b?c=d&e", "/"]
    assert headers == [{"host", "user-agent", "connection", "accept-encoding"}] * 2


class TestCache:
    """A server without news need not send the document again."""

    conditions: list[Optional[str]]

    @pytest.fixture(autouse=True)
    def _empty(self, tmp_path: Path) -> None:
        self.conditions = []
        self.cache = tmp_path / "cache"

    def asked(self, server: WebServer, content: bytes, etag: str, path: str = "/a") -> Outcome:
        """Run it with the cache for a server that knows conditions, and notes them."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            condition = request.headers.get("If-None-Match")
            self.conditions.append(condition)
            status, body = (304, b"") if condition == etag else (200, content)
            serving(body, status, ETag=etag)(request)

        return asked(server, answer, "--cache", str(self.cache), path=path)

    def test_a_document_without_changes_is_taken_from_there(self, server: WebServer) -> None:
        for content, etag in ((TEXT, '"1"'),) * 3 + ((b"new", 'W/"2"'),) * 2:
            assert self.asked(server, content, etag)[:2] == ("ok", content)
        assert self.conditions == [None, '"1"', '"1"', '"1"', 'W/"2"']
        self.asked(server, b"new", 'W/"2"', path="/other")
        assert self.conditions[-1] is None, "another address has another document"

    @pytest.mark.parametrize(
        "damage",
        [b"", b"x", b"\0" * 4 * MIB, b"target_https 1 https://localhost/x\n\n"],
        ids=["empty", "short", "zeros", "no-document"],
    )
    def test_a_cache_of_no_use(self, server: WebServer, damage: bytes) -> None:
        self.cache.write_bytes(damage)
        assert self.asked(server, TEXT, '"1"').code == "ok"
        assert self.conditions == [None]

    @pytest.mark.parametrize("name", ["cache", "cache.new"])
    def test_a_fifo_in_its_place_is_replaced(self, server: WebServer, name: str) -> None:
        os.mkfifo(self.cache.with_name(name))
        writer = os.open(self.cache.with_name(name), os.O_RDWR)
        try:
            assert self.asked(server, TEXT, '"1"').code == "ok"
        finally:
            os.close(writer)
        assert self.asked(server, TEXT, '"1"').code == "ok"
        assert self.conditions == [None, '"1"']

    def test_another_users_cache_is_not_believed(self, server: WebServer) -> None:
        if os.geteuid():
            pytest.skip("only root can give a file away")
        self.asked(server, TEXT, '"1"')
        os.chown(self.cache, 12345, 12345)
        self.asked(server, TEXT, '"1"')
        assert self.conditions == [None, None]


class TestTrouble:
    """Each kind has its own code, and ends in time."""

    @pytest.mark.parametrize(
        ("answer", "code"),
        [
            *((serving(b"", n), "http-status") for n in (204, 206, 304, 403, 404, 500, 503)),
            *(
                (serving(b"", Content_Length=length), "too-big")
                for length in (str(MIB + 1), str(1024 * MIB), "9" * 30)
            ),
            (serving(b"#" * MIB), "ok"),
            (serving(b"#" * (MIB + 1)), "too-big"),
            *(
                (raw(content), "http-garbled")
                for content in (
                    OK + b"Content-Length: 100\r\n\r\nshort",
                    CHUNKED + b"ff\r\nshort",
                    CHUNKED + b"nonsense\r\n",
                    OK + b"X: y\r\n" * 1000 + b"\r\n",
                    OK + b"X: " + b"y" * 100000 + b"\r\n\r\n",
                    b"HTTP/1.1 nonsense\r\n\r\n",
                    b"SSH-2.0-OpenSSH_9.2\r\n",
                    b"\0" * 1000 + b"\r\n",
                )
            ),
            (lambda _request: None, "no-connection"),
        ],
    )
    def test_an_answer(self, server: WebServer, answer: Answer, code: str) -> None:
        ran = asked(server, answer)
        assert (ran.code, len(ran.content)) == (code, MIB if code == "ok" else 0)

    def test_no_server(self, server: WebServer) -> None:
        """The port refuses; the name is nobody's; somebody listens, and says nothing."""
        with socket.socket() as bound, socket.create_server(("127.0.0.1", 0)) as listener:
            bound.bind(("127.0.0.1", 0))
            for host, code in (
                (f"localhost:{bound.getsockname()[1]}", "no-connection"),
                ("nobody.invalid", "no-host"),
                (f"localhost:{listener.getsockname()[1]}", "timeout"),
            ):
                ran = fetch(f"https://{host}/x", server.certificate, "--connect-seconds", "1")
                assert (ran.code, ran.seconds < 4) == (code, True), host

    def test_a_server_without_tls(self, server: WebServer) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"https://localhost:{listener.getsockname()[1]}/x"
            argv = [*ISOLATED, str(PROGRAM), "--url", url, "--ca-file", str(server.certificate)]
            with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
                    assert run.stdout
                    assert run.stdout.read() == b"tls-failed\n"
                assert run.wait(10) == 77

    @pytest.mark.parametrize(
        ("begin", "drop_seconds"),
        [(b"", 5), (OK + b"Content-Length: 1048576\r\n\r\n", 0.1), (OK + b"X: ", 0.1)],
        ids=["silent", "content", "headers"],
    )
    def test_drop_by_drop(self, server: WebServer, begin: bytes, drop_seconds: float) -> None:
        def answer(request: BaseHTTPRequestHandler) -> None:
            request.wfile.write(begin)
            for _ in range(int(10 / drop_seconds)):
                time.sleep(drop_seconds)
                request.wfile.write(b"#")

        ran = asked(server, answer, "--read-seconds", "1", "--timeout-seconds", "2")
        assert (ran.code, ran.seconds < 4) == ("timeout", True)


class TestTrust:
    """Who the server is, and where it may send the node."""

    def test_a_server_of_another_name_or_authority(self, server: WebServer, tmp_path: Path) -> None:
        server.answer = serving(TEXT)
        by_number = server.url().replace("localhost", "127.0.0.1")
        for url, ca_file in ((server.url(), ""), (by_number, server.certificate)):
            assert fetch(url, ca_file).code == "bad-certificate", url
        with web_server(tmp_path, serving(TEXT), name="cm.example.org") as other:
            assert fetch(other.url(), other.certificate).code == "bad-certificate"

    def test_a_file_without_certificates(self, server: WebServer, tmp_path: Path) -> None:
        (tmp_path / "empty").touch()
        (tmp_path / "nonsense").write_text("nonsense")
        os.mkfifo(tmp_path / "fifo")
        codes = {
            name: fetch(server.url(), tmp_path / name, "--timeout-seconds", "1").code
            for name in ("missing", "empty", "nonsense", "fifo")
        }
        assert codes.pop("fifo") in ("timeout", "bad-ca-file")
        assert set(codes.values()) == {"bad-ca-file"}

    def moved(self, place: str, status: int = 302) -> Answer:
        """A server that sends elsewhere from all paths but ``/new``."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            there = request.path == "/new"
            (serving(TEXT) if there else serving(b"", status, Location=place))(request)

        return answer

    def test_a_redirection_on_the_same_host(self, server: WebServer) -> None:
        for status in (301, 302, 303, 307, 308):
            assert asked(server, self.moved("/new", status)).content == TEXT
        upper = server.url("/new").replace("localhost", "LOCALHOST")
        for place in (server.url("/new"), upper, f"//localhost:{server.port}/new", "./a/../new#x"):
            assert asked(server, self.moved(place)).content == TEXT, place

    def test_a_redirection_elsewhere_or_in_a_circle(self, server: WebServer) -> None:
        at, port = f"localhost:{server.port}", server.port
        for place in (
            *("https://other.example.org/new", "//127.0.0.1/new", f"http://{at}/new"),
            *(f"https://{at}@127.0.0.1/new", f"https://me@{at}/new", f"https://localhost.:{port}/"),
            *(f"https://{at}.example.org/new", "https://localhost/new", "https://localhost:0/new"),
            *("https://localhost:99999/new", "https://localhost:x/new", f"https://[::1]:{port}/"),
            *("file:///etc/passwd", f"ftp://{at}/new", "https://[", "https://", "https:///new", ""),
            *("https:/new", "new place", "/n\x0bew\x1b[31m\x9b", "/" + "x" * 3000),
        ):
            run = asked(server, self.moved(place))
            assert run.code == "redirected", place
            assert f"redirected: 'to {ascii(place[:200])[1:-1]} from https://" in run.errors
        server.asked.clear()
        assert asked(server, self.moved("/old")).code == "redirected"
        assert len(server.asked) == 1 + target_https.MAX_REDIRECTIONS

    def test_a_redirection_to_another_port_is_not_followed(self, server: WebServer) -> None:
        # Its certificate is trusted too.
        with web_server(server.certificate.parent, serving(b"forged")) as other:
            assert asked(server, self.moved(other.url("/new"))).code == "redirected"
            assert not other.asked

    def test_proxies_of_the_environment_are_not_asked(self, server: WebServer) -> None:
        server.answer = serving(TEXT)
        names = ("https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY")
        environment = dict.fromkeys(names, "http://127.0.0.1:9")
        assert fetch(server.url(), server.certificate, environment=environment).code == "ok"


class TestTarget:
    """Answers of target.py with a source of this kind."""

    def answer(self, server: WebServer, folder: Path, answer: Answer) -> dict[str, str]:
        """Answer of target.py for a server that answers so."""
        server.answer = answer
        options = ["--source", server.url(), "--host", "cn-1", "--state", f"{folder}/state"]
        command = [*ISOLATED, str(TARGET), *options, "--ca-file", str(server.certificate)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
        )
        return dict(line.partition(" ")[::2] for line in done.stdout.splitlines())

    def test_a_target_that_is_kept_is_verified_again(
        self, server: WebServer, tmp_path: Path
    ) -> None:
        now = int(time.time())
        text = document("cn-1 alice 56 cms 8", now=now, sequence=now)
        seen = self.answer(server, tmp_path, serving(text.encode(), ETag='"1"'))
        assert (seen["reason"], seen["order"]) == ("ok", "alice 56 cms 8 undefined")
        (cache,) = tmp_path.iterdir()
        assert cache.name == f"state.https:__localhost:{server.port}_sharectl.txt"
        cache.write_bytes(cache.read_bytes().replace(b"alice 56", b"none 56"))
        assert self.answer(server, tmp_path, serving(b"", 304))["reason"] == "malformed"
