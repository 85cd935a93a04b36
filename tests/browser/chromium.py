"""A headless Chromium, steered through a pipe by the DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from typing_extensions import Self

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
"""Of Debian's packages of these names."""
_DEADLINE_SECONDS = 60.0
_END_SECONDS = 20.0
_OPTIONS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # tests run as root in containers, on pages that they made themselves
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--no-first-run",
    "--no-zygote",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
_PIPES = """
import os, sys
come, go = (os.dup(int(number)) for number in sys.argv[1:3])
for pipe, number in ((come, 3), (go, 4)):
    os.dup2(pipe, number)
    os.set_inheritable(number, True)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the pipes on descriptors 3 and 4, and becomes the browser."""


class BrowserError(Exception):
    """The browser ended, did not answer, or refused a command."""


def program() -> Optional[str]:
    """Path of a Chromium; None if there is none."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Chromium:
    """A browser with one page; a context manager that ends all of its processes.

    Attributes
    ----------
    requests
        URLs that pages asked for, but for the page itself.
    complaints
        Lines that pages wrote to the console, and reports of the browser about them.
    """

    def __init__(self, executable: str, profile: Path) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._number, self._unread, self._url = 0, b"", ""
        self._session: Optional[str] = None
        self._loaded = False
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        command = [sys.executable, "-Ic", _PIPES, str(to_browser), str(from_browser), executable]
        own = {"PATH": os.environ.get("PATH", ""), "HOME": str(profile)}
        with (profile / "stderr").open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"],
                pass_fds=(to_browser, from_browser),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                env={**own, "TZ": "UTC", "LANG": "C.UTF-8"},
            )
        os.close(to_browser)
        os.close(from_browser)

    def __enter__(self) -> Self:
        """Wait for the page to be there."""
        try:
            target = self.tell("Target.createTarget", url="about:blank")["targetId"]
            attached = self.tell("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.tell(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the browser: ask, and after a while kill the processes that it started."""
        deadline = time.monotonic() + _END_SECONDS
        self._session = None
        with contextlib.suppress(BrowserError):
            self.tell("Browser.close")
        os.close(self._out)
        os.close(self._in)
        while self.processes() and time.monotonic() < deadline:
            self._process.poll()
            time.sleep(0.1)
        for process in self.processes():
            os.kill(process, signal.SIGKILL)
        self._process.wait()

    def processes(self) -> list[int]:
        """Ids of the processes of the browser's session that live."""
        alive = []
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _parent, _group, session = entry.read_text().rpartition(")")[2].split()[:4]
                if int(session) == self._process.pid and state != "Z":
                    alive.append(int(entry.parent.name))
        return alive

    def tell(self, method: str, **parameters: object) -> dict[str, Any]:
        """Result of a command of the protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        try:
            data = json.dumps(message).encode() + b"\0"
            while data:
                data = data[os.write(self._out, data) :]
        except OSError as error:
            raise BrowserError(f"{method}: {error}") from error
        answer = self._answer(method, lambda answer: answer.get("id") == self._number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, path: Path) -> None:
        """Load a file, and wait until it is drawn."""
        self.requests.clear()
        self.complaints.clear()
        self._loaded = False
        self._url = path.as_uri()
        self.tell("Page.navigate", url=self._url)
        if not self._loaded:
            self._answer(f"load of {path}", lambda _event: self._loaded)
        self.evaluate(
            "document.fonts.ready.then(() => new Promise(requestAnimationFrame)).then(() => 1)"
        )

    def look(self, *, width: int = 1200, dark: bool = False, paper: bool = False) -> None:
        """Choose viewport, colour scheme and medium."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.tell("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        medium = "print" if paper else "screen"
        self.tell("Emulation.setEmulatedMedia", media=medium, features=[scheme])

    def evaluate(self, script: str, arguments: Optional[Mapping[str, object]] = None) -> Any:
        """Value of an expression of JavaScript; ``arguments`` are names in it.

        The page's policy does not bind the protocol.
        """
        values = arguments or {}
        parameters = ",".join(map(json.dumps, values.values()))
        result = self.tell(
            "Runtime.evaluate",
            expression=f"(({','.join(values)}) => ({script}))({parameters})",
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in result:
            raise BrowserError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def pdf(self) -> bytes:
        """The page on paper (A4), whatever `look` chose last."""
        self.tell("Emulation.setEmulatedMedia", media="print")
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
        return base64.b64decode(self.tell("Page.printToPDF", **paper)["data"])

    def _answer(self, subject: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message that is ``wanted``; events on the way are noted."""
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while True:
            text, end, rest = self._unread.partition(b"\0")
            if not end:
                seconds = max(0.0, deadline - time.monotonic())
                if not select.select([self._in], [], [], seconds)[0]:
                    raise BrowserError(f"{subject}: no answer within {_DEADLINE_SECONDS:g} s")
                piece = os.read(self._in, 1 << 20)
                if not piece:
                    raise BrowserError(f"{subject}: the browser has ended")
                self._unread += piece
                continue
            self._unread = rest
            message: dict[str, Any] = json.loads(text)
            self._note(message.get("method", ""), message.get("params", {}))
            if wanted(message):
                return message

    def _note(self, event: str, content: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Network.requestWillBeSent" and content["request"]["url"] != self._url:
            self.requests.append(content["request"]["url"])
        elif event == "Log.entryAdded":
            self.complaints.append(content["entry"]["text"])
        elif event in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.complaints.append(json.dumps(content))
