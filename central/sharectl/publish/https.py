"""Targets that a web server of the site serves: written to its folder, then fetched as nodes do."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from functools import partial
from typing import Optional
from urllib.parse import urlsplit

from sharectl.condor.deadline import Question, ask_all
from sharectl.cycle.ports import PlacedTargets
from sharectl.errors import PublishError
from sharectl.model import HttpsWay, Plan
from sharectl.publish.text import TEXT_MAX_BYTES, FilePublisher, Seal, render

_HEADERS = {"User-Agent": "sharectl", "Cache-Control": "no-cache"}
_OK = 200


@dataclass(frozen=True)
class HttpsPublisher:
    """Publishes plans as a file, and makes sure that the server serves it; see `Transport`.

    A file that is not served stays: the way to the server may be broken, not that to the nodes.
    """

    way: HttpsWay
    seal: Seal

    @property
    def file(self) -> FilePublisher:
        """Publisher of the file."""
        return FilePublisher(self.way.file, self.seal)

    @property
    def name(self) -> str:
        """Name of the place."""
        return self.file.name

    def publish(self, plan: Plan) -> str:
        """Replace the file by ``plan``, and fetch it; returns its URL."""
        self.file.write(plan)
        problem = self._unserved(render(plan, self.seal).encode())
        if problem is not None:
            raise PublishError(problem)
        return self.file.arrived_at(self.way.url)

    def held(self) -> list[PlacedTargets]:
        """Look at the file, which the server need not serve."""
        return self.file.look()

    def look(self) -> list[PlacedTargets]:
        """Look at the file, and at the server that should serve it."""
        content, placed = self.file.content()
        if placed.targets is None:
            return [replace(placed, way="https")]
        unserved = self._unserved(content)
        more = {**placed.more, "served": unserved is None}
        problem = unserved or placed.problem
        return [replace(placed, way="https", place=self.way.url, problem=problem, more=more)]

    def _unserved(self, content: bytes) -> Optional[str]:
        """Problem with a server that should serve the ``content`` of the file; None if it does."""
        url, file = self.way.url, self.way.file
        try:
            if fetch(self.way) == content:
                return None
        except PublishError as error:
            return f"{url}: {error}; {file} stands"
        remedy = "let the server serve that file, uncached and unchanged"
        return f"{url}: is not what {file} holds; {remedy}"


def fetch(way: HttpsWay) -> bytes:
    """Content, fetched in a child that ends at the deadline: a server may send a byte a second.

    Raises PublishError.
    """
    question = Question(partial(_content, way), way.deadline_seconds, str)
    answer = ask_all({"server": question})["server"]
    if answer.source.problem is not None:
        raise PublishError(f"cannot be fetched: {answer.source.problem}")
    return bytes(answer.value)


def _content(way: HttpsWay) -> bytes:
    """Content that the server itself sends. No proxy is asked."""
    import ssl
    from http.client import HTTPSConnection, IncompleteRead

    try:
        ca_file = str(way.ca_file) if way.ca_file else None
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise PublishError(f"the certificates in {ca_file} cannot be read: {error}") from error
    place = urlsplit(way.url)
    connection = HTTPSConnection(place.netloc, timeout=way.deadline_seconds, context=context)
    with contextlib.closing(connection):
        connection.request("GET", place._replace(scheme="", netloc="").geturl(), None, _HEADERS)
        response = connection.getresponse()
        where = response.headers.get("Location")
        if where and response.status != _OK:
            raise PublishError(f"redirects to {where[:200]}; write the URL of the file itself")
        if response.status != _OK:
            raise PublishError(f"the server answers {response.status} {response.reason}")
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
