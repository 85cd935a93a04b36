"""``sharectl`` in a forked process that has imported it: imports take most of a run.

Run as a script this is the server: it imports what its arguments name, nothing that reads
HTCondor's configuration. For every run it forks a keeper, which forks the process that becomes the
command: the same ``__main__`` with arguments, environment, folder and streams of its own. The
server ends when the process that started it does, however that ends.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

CHECKOUT = Path(__file__).parents[2]
IMPORTS = (
    "sharectl.cli.cycle",
    "sharectl.cli.explain",
    "sharectl.cli.publish",
    "sharectl.cli.status",
)
PLANNING, OF_PLANS = ("cycle", "plan"), ("scipy.optimize", "scipy.sparse")
"""Verbs that make plans, and their further imports."""
REQUEST_BYTES, READ_BYTES = 1 << 16, 1 << 16
END_SECONDS = 10
_ASKING = threading.Lock()


# ---- for tests


def run(
    arguments: Sequence[str], environment: Mapping[str, str], timeout_seconds: float
) -> subprocess.CompletedProcess[str]:
    """Result of the command. Kills it and raises `subprocess.TimeoutExpired` at the deadline."""
    request = {
        "arguments": list(arguments),
        "environment": dict(environment),
        "folder": str(Path.cwd()),
    }
    with contextlib.ExitStack() as stack:
        ends = [os.pipe() for _ in range(2)]
        ours, theirs = socket.socketpair()
        reads = [stack.enter_context(os.fdopen(end, "rb", buffering=0)) for end, _ in ends]
        stack.enter_context(ours)
        try:
            with _ASKING:
                streams = [*(end for _, end in ends), theirs.fileno()]
                server = _server((*IMPORTS, *OF_PLANS) if arguments[0] in PLANNING else IMPORTS)
                socket.send_fds(server, [json.dumps(request).encode()], streams)
        finally:
            theirs.close()
            for _, end in ends:
                os.close(end)
        out, err, answer = _read_all((*reads, ours), timeout_seconds, list(arguments))
    _pid, code = answer.split()
    return subprocess.CompletedProcess(list(arguments), int(code), out.decode(), err.decode())


def _read_all(sources: Sequence[Any], timeout_seconds: float, command: list[str]) -> list[bytes]:
    """Content of each source; kills the pid that the last one names at the deadline."""
    deadline = time.monotonic() + timeout_seconds
    read = [b"" for _ in sources]
    try:
        with selectors.DefaultSelector() as waiting:
            for number, source in enumerate(sources):
                waiting.register(source, selectors.EVENT_READ, number)
            while waiting.get_map():
                if time.monotonic() > deadline:
                    raise subprocess.TimeoutExpired(  # noqa: TRY301  # the pid is killed for any reason
                        command, timeout_seconds, read[0], read[1]
                    )
                for key, _ in waiting.select(max(0.0, deadline - time.monotonic())):
                    some = os.read(key.fd, READ_BYTES)
                    read[key.data] += some
                    if not some:
                        waiting.unregister(key.fileobj)
    except BaseException:
        pid, _, code = read[-1].partition(b"\n")
        if pid and not code:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        raise
    return read


@functools.lru_cache
def _server(imports: tuple[str, ...]) -> socket.socket:
    """The end at which the server is asked that has imported these."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server = subprocess.Popen(
        [sys.executable, __file__, *imports],
        stdin=theirs.fileno(),
        # A process with threads, such as those of scipy's algebra, cannot be forked in safety.
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(CHECKOUT / "central"),
            "OPENBLAS_NUM_THREADS": "1",
        },
    )
    theirs.close()

    def end() -> None:
        ours.close()
        server.wait(END_SECONDS)

    atexit.register(end)
    return ours


# ---- the server


def serve() -> None:
    """Back in every process that is to become the command; the server itself never comes back."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for keepers
    with socket.socket(fileno=0) as requests:
        while True:
            data, streams, _flags, _address = socket.recv_fds(requests, REQUEST_BYTES, 3)
            if not data:
                os._exit(0)
            if os.fork() == 0:
                break
            for stream in streams:
                os.close(stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    out, err, answer = streams
    command = os.fork()
    if command:
        os.close(out)
        os.close(err)
        _keep(command, answer)
    os.close(answer)
    _become(json.loads(data), out, err)


def _keep(command: int, answer: int) -> NoReturn:
    """Tell the pid of the command, and then its exit code as `subprocess` has it."""
    try:
        os.write(answer, b"%d\n" % command)
    except OSError:  # nobody waits for it any more
        os.kill(command, signal.SIGKILL)
    _, status = os.waitpid(command, 0)
    with contextlib.suppress(OSError):
        os.write(answer, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(request: Mapping[str, Any], out: int, err: int) -> None:
    """Take over what is the command's own."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, stream in enumerate((nothing, out, err)):
        if stream != number:
            os.dup2(stream, number)
            os.close(stream)
    # Those that there were know where in another file they stood.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for the life of the process
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[0] = request["folder"]
    sys.argv[1:] = request["arguments"]


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())
    for name in sys.argv[1:]:
        with contextlib.suppress(
            ImportError
        ):  # some are extras; what is amiss is for the command to say
            __import__(name)
    gc.freeze()  # no child looks through what they all have, nor copies it
    serve()
    runpy.run_module("sharectl", run_name="__main__", alter_sys=True)
