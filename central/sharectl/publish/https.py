"""Targets that a web server of the site serves: written to its folder, then fetched as nodes do."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Optional
from urllib.parse import urljoin, urlsplit

from sharectl.condor.deadline import Question, ask_all
from sharectl.errors import PublishError
from sharectl.model import Plan
from sharectl.publish.text import TEXT_MAX_BYTES, UNSEALED, FilePublisher, Seal, render

if TYPE_CHECKING:  # the libraries are loaded by the child that fetches
    import ssl

_HEADERS = {"User-Agent": "sharectl", "Cache-Control": "no-cache"}
_OK = 200
_REDIRECTIONS = (301, 302, 303, 307, 308)
_MOST_REDIRECTIONS = 5


@dataclass(frozen=True)
class ServedAt:
    """A place from which nodes fetch targets."""

    url: str
    ca_file: Optional[Path] = None
    """Certificates that vouch for the server; None for those that this machine trusts."""
    deadline_seconds: float = 20.0


@dataclass(frozen=True)
class Fetched:
    """Answer of a server."""

    content: bytes = b""
    problem: Optional[str] = None
    """Reason why there is no content."""


class HttpsPublisher:
    """Publishes plans as a file, and makes sure that the server serves it.

    A file that is not served stays: the way to the server may be broken, not that to the nodes.
    """

    def __init__(self, path: Path, served_at: ServedAt, seal: Seal = UNSEALED) -> None:
        self.file = FilePublisher(path, seal)
        self.served_at = served_at

    def publish(self, plan: Plan) -> str:
        """Replace the file by ``plan``, and fetch it; returns its URL."""
        self.file.write(plan)
        content = render(plan, self.file.seal).encode()
        problem = problem_of(self.served_at, self.file.path, content)
        if problem is not None:
            raise PublishError(problem)
        return self.file.arrived_at(self.served_at.url)


def problem_of(served_at: ServedAt, file: Path, content: bytes) -> Optional[str]:
    """Problem with a server that should serve the ``content`` of a file; None if it does."""
    fetched = fetch(served_at)
    if fetched.problem is not None:
        return f"{served_at.url}: {fetched.problem}; {file} stands"
    if fetched.content != content:
        return (
            f"{served_at.url}: is not what {file} holds; let the server serve that file, uncached "
            "and unchanged"
        )
    return None


def fetch(served_at: ServedAt) -> Fetched:
    """Fetch in a child that ends at the deadline: a server may send a byte a second for ever."""
    question = Question(partial(_fetched, served_at), served_at.deadline_seconds)
    answer = ask_all({"server": question})["server"]
    if answer.source.problem is not None:
        return Fetched(problem=f"cannot be fetched: {answer.source.problem}")
    fetched: Fetched = answer.value
    return fetched


def _fetched(served_at: ServedAt) -> Fetched:
    import ssl
    from http.client import HTTPException

    ca_file = served_at.ca_file
    try:
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except OSError as error:
        return Fetched(problem=f"the certificates in {ca_file} cannot be read: {error}")
    try:
        return Fetched(_content(served_at, context))
    except PublishError as error:
        return Fetched(problem=str(error))
    except (OSError, HTTPException, ValueError) as error:
        return Fetched(problem=f"cannot be fetched: {error}")


def _content(served_at: ServedAt, context: ssl.SSLContext) -> bytes:
    """Content after redirections on one host, as nodes follow them. No proxy is asked."""
    from http.client import HTTPSConnection, IncompleteRead

    url = served_at.url
    for _ in range(_MOST_REDIRECTIONS):
        place = urlsplit(url)
        connection = HTTPSConnection(
            place.netloc, timeout=served_at.deadline_seconds, context=context
        )
        with contextlib.closing(connection):
            connection.request("GET", place._replace(scheme="", netloc="").geturl(), None, _HEADERS)
            response = connection.getresponse()
            if response.status == _OK:
                content, part = bytearray(), b"x"
                while part and len(content) <= TEXT_MAX_BYTES:
                    # Not read(), to which a chunk of -1 bytes is all that ever comes.
                    part = response.read1(TEXT_MAX_BYTES + 1 - len(content))
                    content += part
                if len(content) > TEXT_MAX_BYTES:
                    raise PublishError(f"has more than {TEXT_MAX_BYTES} bytes; no node reads it")
                if response.length:
                    raise IncompleteRead(bytes(content), response.length)
                return bytes(content)
            if response.status not in _REDIRECTIONS:
                raise PublishError(f"the server answers {response.status} {response.reason}")
            url = urljoin(url, response.headers.get("Location", ""))
        if urlsplit(url)[:2] != place[:2]:
            raise PublishError(f"redirects to {url[:200]}, another host")
    raise PublishError(f"redirects more than {_MOST_REDIRECTIONS} times, at last to {url[:200]}")
