"""Web server with TLS on the loopback; clients need the file of its certificate."""

from __future__ import annotations

import contextlib
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable

Answer = Callable[[BaseHTTPRequestHandler], None]
"""Writes the whole response to a request."""


@dataclass
class WebServer:
    """What it serves may be changed while it runs."""

    port: int
    certificate: Path
    answer: Answer
    asked: list[str] = field(default_factory=list)
    """Paths of the requests so far."""

    def url(self, path: str = "/sharectl.txt") -> str:
        """URL of a path."""
        return f"https://localhost:{self.port}{path}"


def serving(content: bytes, status: int = 200, **headers: str) -> Answer:
    """An ordinary response."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"Content_Length": str(len(content)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(content)

    return answer


@contextlib.contextmanager
def web_server(
    folder: Path, answer: Answer, name: str = "localhost", port: int = 0
) -> Iterator[WebServer]:
    """Serve ``answer`` for the body; ``folder`` has the files of the certificate for ``name``.

    Port 0 is any that is free. A certificate that is there already is used.
    """
    certificate, key = _certificate(folder, name)
    seen: list[WebServer] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen[0].asked.append(self.path)
            with contextlib.suppress(OSError):  # the client has had enough
                seen[0].answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that refuse are the point
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    seen.append(WebServer(server.server_address[1], certificate, answer))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield seen[0]
    finally:
        server.shutdown()
        thread.join()
        server.socket.close()


def _certificate(folder: Path, name: str) -> tuple[Path, Path]:
    certificate, key = folder / "server.pem", folder / "server.key"
    if certificate.exists():
        return certificate, key
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key
