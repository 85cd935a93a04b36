"""A real HTCondor pool on this machine, from start to stop."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Optional, TypeVar

from poolbox import control, logs, processes
from poolbox.configuration import POOL_USER, client_configuration, host_configurations
from poolbox.errors import BoxFailedError, CommandError, DeadlineError, PoolboxError
from poolbox.root import Root, find_root, remove_tree
from poolbox.sandbox import command, system_files
from poolbox.spec import BoxSpec, ExecutePoint

Seen = TypeVar("Seen")

START_SECONDS = 60.0
POLL_SECONDS = 0.2
# Below the range from which the kernel hands out ports by itself, so that no daemon's own port takes it.
COLLECTOR_PORTS = range(20000, 32000)
HOST_FOLDERS = ("config.d", "log", "spool", "execute", "lock", "run")
JOB_ATTRIBUTES = (
    "ClusterId",
    "ProcId",
    "JobStatus",
    "RequestCpus",
    "AccountingGroup",
    "AcctGroup",
    "RemoteHost",
)


class Box:
    """One pool, all its daemons in one sandbox that ends with this process.

    Use it as a context manager, or call `start` and `stop`. It begins in the constructor's ``spec``; everything
    it writes lies in ``directory``, a temporary folder that `stop` deletes unless ``keep`` is true.
    """

    def __init__(self, spec: BoxSpec, *, keep: bool = False) -> None:
        spec.check()
        self.spec = spec
        self.keep = keep
        self.directory = Path()
        self.port = 0
        self.namespace = ""
        self._sandbox: Optional[subprocess.Popen[bytes]] = None

    @classmethod
    def attach(cls, directory: Path) -> Box:
        """The box that runs in that directory, started by another process."""
        saved = json.loads((directory / "box.json").read_text())
        nodes = tuple(ExecutePoint(**node) for node in saved["spec"].pop("execute_points"))
        access_points = tuple(saved["spec"].pop("access_points"))
        box = cls(BoxSpec(execute_points=nodes, access_points=access_points, **saved["spec"]))
        box.directory = directory
        box.port = saved["port"]
        box.namespace = processes.namespace_of(control.init_pid(directory))
        return box

    def __enter__(self) -> Box:
        self.start()
        return self

    def __exit__(
        self,
        _kind: Optional[type[BaseException]],
        _error: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> None:
        self.stop()

    # ---- life

    def start(self, timeout_seconds: float = START_SECONDS) -> None:
        """Start every daemon and wait until the collector knows them all; `BoxFailedError` with their logs."""
        root = find_root(self.spec.suite)
        self.directory = Path(tempfile.mkdtemp(prefix="poolbox-")).resolve()
        try:
            self.port = free_port()
            self._write_files(root)
            self._start_sandbox(root)
            self.start_host(self.spec.central_point)
            self.wait_until(self._collector_listens, timeout_seconds, "the collector answers")
            for host in self.spec.hosts[1:]:
                self.start_host(host)
            self.wait_until(self.complete, timeout_seconds, "every daemon is known to the collector")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process of the box at once and delete its directory; nothing when it does not run."""
        with contextlib.suppress(PoolboxError, TimeoutError):
            control.ask(self.directory, "end")
        if self._sandbox is not None:
            assert self._sandbox.stdin is not None
            self._sandbox.stdin.close()
            self._sandbox.wait(30)
            self._sandbox = None
        elif self.namespace:
            wait_for(lambda: not self.processes(), 30, "the box's processes end")
        if self.directory != Path() and not self.keep and self.directory.exists():
            remove_tree(self.directory)

    def detach(self) -> None:
        """Let the pool run on when this process ends; `Box.attach` finds it again."""
        control.ask(self.directory, "detach")

    # ---- what others need to find it

    @property
    def collector_address(self) -> str:
        """``127.0.0.1:PORT`` of the collector."""
        return f"127.0.0.1:{self.port}"

    @property
    def client_environment(self) -> dict[str, str]:
        """Environment variables with which HTCondor tools and bindings outside the box talk to this pool."""
        return {"CONDOR_CONFIG": str(self.directory / "client" / "condor_config")}

    @property
    def shared_directory(self) -> Path:
        """A folder that is seen under the same path here and on every host of the box."""
        return self.directory / "shared"

    def local_directory(self, host: str) -> Path:
        """LOCAL_DIR of a host: ``log``, ``spool``, ``execute``, ``config.d`` lie there."""
        if host not in self.spec.hosts:
            raise PoolboxError(f"no host {host!r} in this box; it has {', '.join(self.spec.hosts)}")
        return self.directory / "hosts" / host

    # ---- doing things in it

    def run(
        self,
        argv: Sequence[str],
        timeout_seconds: float = 60.0,
        host: Optional[str] = None,
        *,
        check: bool = True,
        input: Optional[str] = None,  # noqa: A002, as subprocess.run has it
        environment: Optional[Mapping[str, str]] = None,
    ) -> subprocess.CompletedProcess[str]:
        """The outcome of a command run inside as the pool's user, with the configuration of a host.

        ``host`` is the central manager unless given; the working directory is the pool user's home. Raises
        `CommandError` when it fails and ``check`` is true, `DeadlineError` (it is killed) when it takes longer.
        """
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            stdin.write((input or "").encode())
            stdin.seek(0)
            streams = [stdin.fileno(), out.fileno(), err.fileno()]
            try:
                returncode = self.run_on_streams(argv, streams, timeout_seconds, host, environment)
            except TimeoutError:
                raise DeadlineError(f"{' '.join(argv)} took longer than {timeout_seconds} s") from None
            stdout, stderr = (_content(stream.fileno()) for stream in (out, err))
        if check and returncode:
            raise CommandError(list(argv), returncode, stdout, stderr)
        return subprocess.CompletedProcess(list(argv), returncode, stdout, stderr)

    def run_on_streams(
        self,
        argv: Sequence[str],
        streams: Sequence[int],
        timeout_seconds: Optional[float] = None,
        host: Optional[str] = None,
        environment: Optional[Mapping[str, str]] = None,
    ) -> int:
        """Exit code of a command run inside on the given three descriptors; negative is a signal."""
        answer = control.ask(
            self.directory,
            "execute",
            streams,
            timeout_seconds,
            argv=list(argv),
            host=self._known(host),
            environment=dict(environment or {}),
            working_directory=str(self.directory / "home"),
        )
        if not answer:
            raise BoxFailedError(f"the box ended while {' '.join(argv)} ran")
        returncode: int = answer["returncode"]
        return returncode

    def submit(self, description: str, access_point: Optional[str] = None) -> int:
        """Cluster id of the jobs that a submit description makes on an access point, the first unless given."""
        host = access_point or self.spec.access_points[0]
        done = self.run(["condor_submit", "-terse", "-"], host=host, input=description)
        return int(done.stdout.split(".", 1)[0])

    def jobs(
        self,
        constraint: str = "True",
        attributes: Sequence[str] = JOB_ATTRIBUTES,
        access_point: Optional[str] = None,
    ) -> list[dict[str, Any]]:
        """The jobs in the queues, as mappings of the attributes each has, of one access point or of all."""
        found: list[dict[str, Any]] = []
        for name in [access_point] if access_point else self.spec.access_points:
            query = ["condor_q", "-name", name, "-allusers", "-constraint", constraint]
            text = self.run([*query, "-json", "-attributes", ",".join(attributes)]).stdout
            found.extend(json.loads(text or "[]"))
        return found

    # ---- configuration and daemons

    def write_config(self, host: str, text: str, name: str = "90-written.config") -> None:
        """Put configuration into a host's ``config.d``, in place of the file of that name; `reconfig` applies it."""
        path = self.local_directory(host) / "config.d" / name
        fresh = path.with_name(f".{name}.new")
        fresh.write_text(text)
        fresh.replace(path)

    def reconfig(self, host: str) -> None:
        """Have every daemon of a host read its configuration again."""
        self.run(["condor_reconfig"], host=host)

    def start_host(self, host: str) -> None:
        """Start the host's condor_master, which starts its daemons; nothing when it runs."""
        control.ask(self.directory, "start", host=self._known(host))

    def stop_host(self, host: str, timeout_seconds: float = 20.0) -> None:
        """End the host's daemons, by SIGQUIT first, and wait until they are gone."""
        control.ask(self.directory, "stop", host=self._known(host), timeout_seconds=timeout_seconds)

    def daemon_pid(self, host: str, daemon: str) -> int:
        """Pid, as this machine sees it, of a host's daemon such as ``STARTD``; `PoolboxError` when it is not there."""
        inner = self.masters()[self._known(host)]
        everything = self.processes()
        masters = [process for process in everything if process.inner_pid == inner]
        program = f"condor_{daemon.lower()}"
        for process in everything:
            of_host = any(master.pid in (process.pid, process.parent_pid) for master in masters)
            if of_host and process.program == program:
                return process.pid
        raise PoolboxError(f"{host} runs no {program}")

    def masters(self) -> dict[str, Optional[int]]:
        """Host name → pid of its condor_master as seen inside, None when it does not run."""
        answer: dict[str, Optional[int]] = control.ask(self.directory, "masters").get("masters", {})
        return answer

    def processes(self) -> list[processes.BoxProcess]:
        """Every living process of the box."""
        return processes.processes_in(self.namespace)

    # ---- waiting and looking

    def wait_until(self, predicate: Callable[[], Seen], timeout_seconds: float, what: str) -> Seen:
        """The first true value of the predicate; `DeadlineError` with the daemons' logs when there is none in time.

        A predicate that fails for the pool's sake (`PoolboxError`) counts as not yet.
        """
        try:
            return wait_for(predicate, timeout_seconds, what)
        except DeadlineError as late:
            raise DeadlineError(f"{late}\n{self.log_tail()}") from None

    def log_tail(self, lines: int = 15) -> str:
        """The last lines of every daemon's log, under a heading each."""
        return logs.log_tails(self.directory / "hosts", lines)

    def log_text(self, host: str, daemon: str) -> str:
        """The whole log of a host's daemon, such as ``STARTD``; empty when it has not written one."""
        path = next((self.local_directory(host) / "log").glob(f"{log_name(daemon)}"), None)
        return path.read_text(errors="replace") if path else ""

    def complete(self) -> bool:
        """Whether the collector knows the negotiator, every access point and every execute point."""
        listing = self.run(["condor_status", "-any", "-af", "MyType", "Machine"], 10.0).stdout
        known = {tuple(line.split()) for line in listing.splitlines()}
        expected = {("Negotiator", self.spec.central_point)}
        expected |= {("Scheduler", host) for host in self.spec.access_points}
        expected |= {("Machine", node.name) for node in self.spec.execute_points}
        return expected <= known

    def _collector_listens(self) -> bool:
        return self.run(["condor_status", "-collector", "-af", "Name"], 10.0).stdout.strip() != ""

    def _known(self, host: Optional[str]) -> str:
        return self.local_directory(host or self.spec.central_point).name

    def _start_sandbox(self, root: Root) -> None:
        with (self.directory / "sandbox.log").open("wb") as log:
            self._sandbox = subprocess.Popen(
                command(root, self.directory),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
                start_new_session=True,  # a Ctrl-C in the terminal is for the caller to handle
            )
        control_socket = self.directory / "control"
        sandbox = self._sandbox
        wait_for(lambda: control_socket.exists() or sandbox.poll() is not None, 20, "the sandbox starts")
        if sandbox.poll() is not None:
            raise BoxFailedError(f"bubblewrap failed: {(self.directory / 'sandbox.log').read_text().strip()}")
        self.namespace = processes.namespace_of(control.init_pid(self.directory))

    def _write_files(self, root: Root) -> None:
        for name in (
            "home",
            "shared",
            "client",
            "etc",
            *(f"hosts/{host}/{part}" for host in self.spec.hosts for part in HOST_FOLDERS),
        ):
            (self.directory / name).mkdir(parents=True)
        for name, text in system_files(self.spec, self.directory / "home").items():
            (self.directory / "etc" / name).write_text(text)
        for host in self.spec.hosts:
            local = self.local_directory(host)
            for name, text in host_configurations(
                self.spec, host, local, self.port, root.installation
            ).items():
                (local / name).write_text(text)
        (self.directory / "client" / "condor_config").write_text(
            client_configuration(self.directory, self.port)
        )
        sbin, release = root.installation.sbin, root.installation.release
        environment = {
            "PATH": f"{release}/bin:{sbin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self.directory / "home"),
            "USER": POOL_USER,
            "LOGNAME": POOL_USER,
            "LANG": "C.UTF-8",
        }
        plan = {"master": str(sbin / "condor_master"), "hosts": self.spec.hosts, "environment": environment}
        (self.directory / "init.json").write_text(json.dumps(plan))
        saved = {"spec": dataclasses.asdict(self.spec), "port": self.port}
        (self.directory / "box.json").write_text(json.dumps(saved))


def wait_for(predicate: Callable[[], Seen], timeout_seconds: float, what: str) -> Seen:
    """The first true value of the predicate; `DeadlineError` when there is none in time."""
    deadline = time.monotonic() + timeout_seconds
    problem: object = ""
    while True:
        try:
            if seen := predicate():
                return seen
        except PoolboxError as not_yet:
            problem = f"\n{not_yet}"
        if time.monotonic() > deadline:
            raise DeadlineError(f"waited {timeout_seconds:.0f} s in vain: {what}{problem}")
        time.sleep(POLL_SECONDS)


def free_port() -> int:
    """A TCP port of the loopback that nothing listens on."""
    while True:
        port = secrets.choice(COLLECTOR_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def log_name(daemon: str) -> str:
    """Name of a daemon's log file: ``SCHEDD`` writes ``SchedLog``, ``STARTD`` ``StartLog``."""
    irregular = {"SCHEDD": "SchedLog", "STARTD": "StartLog", "NEGOTIATOR": "NegotiatorLog"}
    return irregular.get(daemon.upper(), f"{daemon.capitalize()}Log")


def _content(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, errors="replace", closefd=False) as stream:
        return stream.read()
