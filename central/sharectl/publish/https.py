"""Targets that a web server of the site serves: written to its folder, then fetched as the nodes fetch them."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException, HTTPMessage, HTTPResponse, IncompleteRead
from pathlib import Path
from typing import IO, Optional
from urllib.parse import urlsplit

from sharectl.condor.deadline import Question, ask_all
from sharectl.errors import PublishError
from sharectl.model import Plan
from sharectl.publish.text import TEXT_MAX_BYTES, UNSEALED, FilePublisher, Seal, render

_AGENT = {"User-Agent": "sharectl", "Cache-Control": "no-cache"}


@dataclass(frozen=True)
class ServedAt:
    """A place from which nodes fetch targets."""

    url: str
    ca_file: Optional[Path] = None
    """Certificates by which the server is known; None for those that this machine trusts."""
    deadline_seconds: float = 20.0


@dataclass(frozen=True)
class Fetched:
    """What a server answered."""

    content: bytes = b""
    """At most one byte more than a node reads."""
    problem: Optional[str] = None
    """Why there is no content."""


class HttpsPublisher:
    """Publishes plans as a file, and makes sure that the server serves it."""

    def __init__(self, path: Path, served_at: ServedAt, seal: Seal = UNSEALED) -> None:
        self.file = FilePublisher(path, seal)
        self.served_at = served_at

    def publish(self, plan: Plan) -> str:
        """Replace the file by ``plan``, and fetch it; returns its URL. Raises as `sharectl.cycle.ports.Publisher`.

        What is not served stays written: it may be the way to the server that is broken, not that
        to the nodes.
        """
        self.file.write(plan)
        written = self.file.path
        fetched = fetch(self.served_at)
        if fetched.problem is not None:
            raise PublishError(f"{self.served_at.url}: {fetched.problem}; {written} stands")
        if fetched.content != render(plan, self.file.seal).encode():
            raise PublishError(
                f"{self.served_at.url}: is not what {written} holds; let the server serve that "
                "file, uncached and "
                "unchanged"
            )
        return self.file.arrived_at(self.served_at.url)


def fetch(served_at: ServedAt) -> Fetched:
    """What the server serves, at most `MAX_BYTES` and one."""
    question = Question(partial(_fetch, served_at), served_at.deadline_seconds)
    answer = ask_all({"server": question})["server"]
    if answer.source.problem is not None:
        return Fetched(problem=f"cannot be fetched: {answer.source.problem}")
    fetched: Fetched = answer.value
    return fetched


class _OneHost(urllib.request.HTTPRedirectHandler):
    """Follows no redirect to another host, or to a place that is not encrypted."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> Optional[urllib.request.Request]:
        """Return the request to make instead; raises HTTPError where there is to be none."""
        here, there = urlsplit(req.full_url), urlsplit(newurl)
        if (there.scheme, there.netloc) != ("https", here.netloc):
            raise urllib.error.HTTPError(
                req.full_url, code, f"redirects to {newurl[:200]}, another host", headers, fp
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetch(served_at: ServedAt) -> Fetched:
    """The same, in a process that is ended at the deadline: a server may send a byte a second for ever."""
    try:
        context = ssl.create_default_context(
            cafile=str(served_at.ca_file) if served_at.ca_file else None
        )
    except OSError as error:
        return Fetched(problem=f"the certificates in {served_at.ca_file} cannot be read: {error}")
    try:
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=context),
            _OneHost(),
        )
        request = urllib.request.Request(served_at.url, headers=_AGENT)  # noqa: S310 - the model admits https only
        with opener.open(request, timeout=served_at.deadline_seconds) as response:
            content = _received(response)
    except urllib.error.HTTPError as error:
        return Fetched(problem=f"the server answers {error.code} {error.reason}")
    except (OSError, HTTPException, ValueError) as error:
        return Fetched(problem=f"cannot be fetched: {getattr(error, 'reason', None) or error}")
    if len(content) > TEXT_MAX_BYTES:
        return Fetched(problem=f"has more than {TEXT_MAX_BYTES} bytes; no node reads it")
    return Fetched(content)


def _received(response: HTTPResponse) -> bytes:
    """The body, or its beginning if that is more than `MAX_BYTES`."""
    content, part = bytearray(), b"x"
    while part and len(content) <= TEXT_MAX_BYTES:
        # Not read(), to which a chunk of -1 bytes is all that ever comes.
        part = response.read1(TEXT_MAX_BYTES + 1 - len(content))
        content += part
    if response.length and len(content) <= TEXT_MAX_BYTES:
        raise IncompleteRead(bytes(content), response.length)
    return bytes(content)
