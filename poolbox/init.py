"""First process of a box: starts masters, runs commands, ends with its starter.

Run by path inside the box (``init.py DIRECTORY``), so standard library only and nothing of
poolbox's.

It serves the Unix socket ``DIRECTORY/control``: one request a connection, a JSON object on one
line, answered by another. The server is the child of pid 1, which buries orphans and exits as soon
as the server does; then the kernel kills every process of the box. The server exits when it is told
to, and when its standard input ends: the starter holds the other end of that pipe, so a box never
outlives a starter that was killed, whatever killed it. ``detach`` lets go of that pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

REQUEST_BYTES = 1 << 20
STANDARD_STREAMS = 3


class Init:
    """The masters of one box by host name, and the operations a client may ask for."""

    def __init__(self, directory: Path) -> None:
        plan = json.loads((directory / "init.json").read_text())
        self.directory = directory
        self.master: str = plan["master"]
        self.environment: dict[str, str] = plan["environment"]
        self.hosts: list[str] = plan["hosts"]
        self.masters: dict[str, subprocess.Popen[bytes]] = {}
        self.lock = threading.Lock()
        self.detached = threading.Event()

    def environment_of(self, host: str) -> dict[str, str]:
        """Environment variables with the configuration of that host."""
        return {
            **self.environment,
            "CONDOR_CONFIG": str(self.directory / "hosts" / host / "condor_config"),
        }

    def start(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start the condor_master of ``host`` unless it runs; answers its pid inside."""
        host = request["host"]
        if host not in self.hosts:
            return {"error": f"no host {host!r} in this box; it has {', '.join(self.hosts)}"}
        with self.lock:
            running = self.masters.get(host)
            if running is None or running.poll() is not None:
                local = self.directory / "hosts" / host
                with (local / "log" / "master.stderr").open("ab") as errors:
                    running = self.masters[host] = subprocess.Popen(
                        [self.master, "-f"],
                        env=self.environment_of(host),
                        cwd=local,
                        stdin=subprocess.DEVNULL,
                        stdout=errors,
                        stderr=errors,
                        start_new_session=True,
                    )
        return {"pid": running.pid}

    def stop(self, request: dict[str, Any]) -> dict[str, Any]:
        """End the daemons of ``host`` by SIGQUIT, and at the deadline by SIGKILL."""
        running = self.masters.get(request["host"])
        if running is None or running.poll() is not None:
            return {"stopped": False}
        running.send_signal(signal.SIGQUIT)
        try:
            running.wait(request["deadline_seconds"])
        except subprocess.TimeoutExpired:
            for pid in descendants(running.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            running.wait()
        return {"stopped": True}

    def masters_alive(self, _request: dict[str, Any]) -> dict[str, Any]:
        """Host name → pid of its master as seen inside, None when it does not run."""
        return {
            "masters": {
                host: master.pid
                if (master := self.masters.get(host)) and master.poll() is None
                else None
                for host in self.hosts
            }
        }

    def detach(self, _request: dict[str, Any]) -> dict[str, Any]:
        """Outlive the starter from now on."""
        self.detached.set()
        return {}

    def end(self, _request: dict[str, Any]) -> NoReturn:
        """Exit, and with it every process of the box."""
        os._exit(0)

    def execute(
        self, request: dict[str, Any], streams: list[int], connection: socket.socket
    ) -> dict[str, Any]:
        """Run ``argv`` on the streams of the request; kill it when the client goes."""
        environment = {**self.environment_of(request["host"]), **request["environment"]}
        try:
            process = subprocess.Popen(
                request["argv"],
                env=environment,
                cwd=request["working_directory"],
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                start_new_session=True,
            )
        except OSError as problem:
            return {"error": f"cannot run {request['argv'][0]!r} in the box: {problem}"}
        finally:
            for stream in streams:
                os.close(stream)
        threading.Thread(target=kill_when_closed, args=(connection, process), daemon=True).start()
        return {"returncode": process.wait()}

    def serve(self, connection: socket.socket) -> None:
        """Answer the one request of a connection."""
        with connection, contextlib.suppress(OSError):
            data, streams, _flags, _address = socket.recv_fds(
                connection, REQUEST_BYTES, STANDARD_STREAMS
            )
            while data and not data.endswith(b"\n"):
                data += connection.recv(REQUEST_BYTES)
            if not data:
                return
            request = json.loads(data)
            operation = request["operation"]
            if operation == "execute":
                answer = self.execute(request, streams, connection)
            else:
                answer = OPERATIONS[operation](self, request)
            connection.sendall(json.dumps(answer).encode() + b"\n")
            connection.shutdown(
                socket.SHUT_RDWR
            )  # the thread that still reads holds the socket open


OPERATIONS = {
    "start": Init.start,
    "stop": Init.stop,
    "masters": Init.masters_alive,
    "detach": Init.detach,
    "end": Init.end,
}


def kill_when_closed(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Kill the process's session once the other end of the connection is closed."""
    with contextlib.suppress(OSError):
        while connection.recv(1):
            pass
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def descendants(ancestor: int) -> list[int]:
    """Pids of a process and everything below it, the ancestor first."""
    family = [ancestor]
    for pid in family:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                family.extend(int(child) for child in (task / "children").read_text().split())
    return family


def watch_starter(init: Init) -> None:
    """End the box when standard input does, which is when its starter is gone."""
    while os.read(0, 1):
        pass
    if not init.detached.is_set():
        os._exit(1)


def serve_for_ever(directory: Path) -> NoReturn:
    """Answer requests on the control socket, each in a thread."""
    init = Init(directory)
    os.chdir(directory)  # the address of a Unix socket is short, a path need not be
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("control.new")
    listener.listen(64)
    Path("control.new").rename("control")
    threading.Thread(target=watch_starter, args=(init,), daemon=True).start()
    while True:
        connection, _address = listener.accept()
        threading.Thread(target=init.serve, args=(connection,), daemon=True).start()


def main(argv: list[str]) -> int:
    """Serve in a child, and reap the orphans of pid 1 until the server ends."""
    server = os.fork()
    if server == 0:
        serve_for_ever(Path(argv[1]))
    os.close(0)
    while True:
        pid, status = os.wait()
        if pid == server:
            return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main(sys.argv))
