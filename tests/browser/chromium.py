"""A headless Chromium, steered through a pipe by the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from typing_extensions import Self

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
"""Of Debian's packages of these names (the last: of whoever has it)."""

_DEADLINE_SECONDS = 60.0
_END_SECONDS = 20.0
_HEADLESS = "--headless"
_OPTIONS = (
    _HEADLESS,
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
for given, wanted in ((come, 3), (go, 4)):
    os.dup2(given, wanted)
    os.set_inheritable(wanted, True)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the pipes on descriptors 3 and 4, and becomes the browser."""


class BrowserError(Exception):
    """The browser ended, did not answer, or did not like what it was told."""


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
        What pages wrote to the console, and what the browser reported of them.
    """

    def __init__(self, executable: str, profile: Path) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._number = 0
        self._unread = b""
        self._session: Optional[str] = None
        self._events: list[dict[str, Any]] = []
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        with (profile / "stderr").open("wb") as said:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-Ic",
                    _PIPES,
                    str(to_browser),
                    str(from_browser),
                    executable,
                    *_OPTIONS,
                    f"--user-data-dir={profile}",
                    "about:blank",
                ],
                pass_fds=(to_browser, from_browser),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
                env={
                    "PATH": os.environ.get("PATH", ""),
                    "HOME": str(profile),
                    "TZ": "UTC",
                    "LANG": "C.UTF-8",
                },
            )
        os.close(to_browser)
        os.close(from_browser)

    def __enter__(self) -> Self:
        """Wait for the page to be there."""
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _attach(self) -> None:
        pages = [
            found
            for found in self.tell("Target.getTargets")["targetInfos"]
            if found["type"] == "page"
        ]
        target = (
            pages[0]["targetId"]
            if pages
            else self.tell("Target.createTarget", url="about:blank")["targetId"]
        )
        self._session = self.tell("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.tell(f"{domain}.enable")

    def __exit__(self, *_: object) -> None:
        """End the browser: ask, and after a while kill what it started."""
        try:
            self._session = None
            self.tell("Browser.close")
        except BrowserError:
            pass
        finally:
            os.close(self._out)
            self._end()
            os.close(self._in)

    def _end(self) -> None:
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for _ in range(100):
            if not self.processes():
                return
            time.sleep(0.1)
        for left in self.processes():
            os.kill(left, signal.SIGKILL)

    def processes(self) -> list[int]:
        """Ids of the processes of the browser's session that live."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _parent, _group, session = entry.read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(session) == self._process.pid and state != "Z":
                found.append(int(entry.parent.name))
        return found

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
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while True:
            answer = self._next(deadline, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def open(self, path: Path) -> None:
        """Load a file, and wait until it is drawn."""
        self.requests.clear()
        self.complaints.clear()
        self._events.clear()
        self._url = path.as_uri()
        self.tell("Page.navigate", url=self._url)
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._note(self._next(deadline, f"load of {path}"))
        self.evaluate(
            "document.fonts.ready.then(() => new Promise(requestAnimationFrame)).then(() => 1)"
        )

    def look(
        self, *, width: int = 1200, height: int = 900, dark: bool = False, paper: bool = False
    ) -> None:
        """Choose viewport, colour scheme and medium."""
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.tell(
            "Emulation.setEmulatedMedia",
            media="print" if paper else "screen",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def evaluate(self, script: str, arguments: Optional[Mapping[str, object]] = None) -> Any:
        """Value of an expression of JavaScript; ``arguments`` are names in it.

        The page's own policy does not bind the protocol.
        """
        given = arguments or {}
        names = ",".join(given)
        values = ",".join(json.dumps(value) for value in given.values())
        told = self.tell(
            "Runtime.evaluate",
            expression=f"(({names}) => ({script}))({values})",
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in told:
            raise BrowserError(f"{script}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def screenshot(self, *, whole: bool = True) -> bytes:
        """PNG of the page."""
        return base64.b64decode(
            self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        )

    def pdf(self, **options: object) -> bytes:
        """The page on paper (A4), whatever `look` chose last."""
        self.tell("Emulation.setEmulatedMedia", media="print")
        options = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True, **options}
        return base64.b64decode(self.tell("Page.printToPDF", **options)["data"])

    def _next(self, deadline: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError(f"{what}: no answer within {_DEADLINE_SECONDS:g} s")
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise BrowserError(f"{what}: the browser has ended")
            self._unread += piece
        message, _, self._unread = self._unread.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        if "method" not in event:
            return
        self._events.append(event)
        told = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent" and told["request"]["url"] != self._url:
            self.requests.append(told["request"]["url"])
        elif event["method"] == "Log.entryAdded":
            self.complaints.append(told["entry"]["text"])
        elif event["method"] in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.complaints.append(json.dumps(told))
