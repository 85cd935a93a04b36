"""A pool that runs: commands, jobs, configuration, daemons and logs of the box in one directory."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, TypeVar

from poolbox import control, logs, processes
from poolbox.errors import BoxFailedError, CommandError, DeadlineError, PoolboxError
from poolbox.spec import BoxSpec
from poolbox.waiting import HANG_SECONDS, wait_for

Seen = TypeVar("Seen")

JOB_ATTRIBUTES = (
    "ClusterId",
    "ProcId",
    "JobStatus",
    "RequestCpus",
    "AccountingGroup",
    "AcctGroup",
    "RemoteHost",
)


UNUSED_CLAIM_SECONDS = 15.0


class Pool:
    """The daemons of a box, whoever started it; `poolbox.Box` adds start and stop."""

    def __init__(self, spec: BoxSpec, directory: Path, port: int) -> None:
        self.spec = spec
        self.directory = directory
        self.port = port
        self.namespace: Optional[processes.Namespace] = None

    # ---- where it is

    @property
    def collector_address(self) -> str:
        """``127.0.0.1:PORT`` of the collector."""
        return f"127.0.0.1:{self.port}"

    @property
    def client_environment(self) -> dict[str, str]:
        """Environment of HTCondor's tools and bindings outside the box for this pool."""
        return {"CONDOR_CONFIG": str(self.directory / "client" / "condor_config")}

    @property
    def shared_directory(self) -> Path:
        """A folder that is seen under the same path here and on every host of the box."""
        return self.directory / "shared"

    def local_directory(self, host: str) -> Path:
        """LOCAL_DIR of a host, with its ``log``, ``spool``, ``execute`` and ``config.d``."""
        if host not in self.spec.hosts:
            raise PoolboxError(f"no host {host!r} in this box; it has {', '.join(self.spec.hosts)}")
        return self.directory / "hosts" / host

    # ---- commands and jobs

    def run(
        self,
        argv: Sequence[str],
        timeout_seconds: float = 60.0,
        host: Optional[str] = None,
        *,
        check: bool = True,
        input: Optional[str] = None,  # noqa: A002  # as subprocess.run names it
        environment: Optional[Mapping[str, str]] = None,
    ) -> subprocess.CompletedProcess[str]:
        """The outcome of a command run inside as the pool's user, with the configuration of a host.

        ``host`` is the central manager unless given; the working directory is the pool user's home.
        Raises `CommandError` when it fails and ``check`` is true, `DeadlineError` (it is killed)
        when it takes longer.
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
                raise DeadlineError(
                    f"{' '.join(argv)} took longer than {timeout_seconds:g} s"
                ) from None
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
        """Exit code of a command run inside on the given three descriptors; negative for a signal.

        Raises `TimeoutError` when it takes longer than ``timeout_seconds``; it is killed then.
        """
        answer = control.ask(
            self.directory,
            "execute",
            streams,
            timeout_seconds,
            argv=list(argv),
            host=self._host(host),
            environment=dict(environment or {}),
            working_directory=str(self.directory / "home"),
        )
        if not answer:
            raise BoxFailedError(f"the box ended while {' '.join(argv)} ran")
        returncode: int = answer["returncode"]
        return returncode

    def submit(self, description: str, access_point: Optional[str] = None) -> int:
        """Cluster id of submitted jobs, on the first access point unless given."""
        host = access_point or self.spec.access_points[0]
        done = self.run(["condor_submit", "-terse", "-"], host=host, input=description)
        return int(done.stdout.split(".", 1)[0])

    def jobs(
        self,
        constraint: str = "True",
        attributes: Sequence[str] = JOB_ATTRIBUTES,
        access_point: Optional[str] = None,
    ) -> list[dict[str, Any]]:
        """Jobs in the queue of one access point or of all, each by attribute."""
        jobs: list[dict[str, Any]] = []
        for name in [access_point] if access_point else self.spec.access_points:
            query = ["condor_q", "-name", name, "-allusers", "-constraint", constraint]
            text = self.run([*query, "-json", "-attributes", ",".join(attributes)]).stdout
            jobs.extend(json.loads(text or "[]"))
        return jobs

    def remove_jobs(self, timeout_seconds: float = 60.0) -> None:
        """Remove every job and wait until all queues are empty and all cores are free."""
        for name in self.spec.access_points:
            self.run(["condor_rm", "-all"], host=name, check=False)  # fails when there is none
        self.wait_until(lambda: not self.jobs(), "the queues are empty", timeout_seconds)
        began = time.monotonic()
        self.wait_until(lambda: self._are_free(began), "no dynamic slot is left", timeout_seconds)

    def _are_free(self, since: float) -> bool:
        """True without dynamic slots; vacates nodes where one stays although no job is left.

        A job that is removed while its claim is made can leave one that nobody uses, for as long as
        a claim may be silent: half an hour.
        """
        # Nodes, because condor_vacate of 23.9.6 knows no dynamic slot by its name.
        query = ["condor_status", "-constraint", 'SlotType == "Dynamic"', "-af", "Machine"]
        busy = sorted({*self.run(query).stdout.split()})
        if busy and time.monotonic() - since > UNUSED_CLAIM_SECONDS:
            self.run(["condor_vacate", "-fast", *busy], check=False)
        return not busy

    # ---- configuration and daemons

    def write_config(self, host: str, text: str, name: str = "90-written.config") -> None:
        """Put or replace a file in a host's ``config.d``; `reconfig` applies it."""
        path = self.local_directory(host) / "config.d" / name
        fresh = path.with_name(f".{name}.new")
        fresh.write_text(text)
        fresh.replace(path)

    def reconfig(self, host: str) -> None:
        """Have every daemon of a host read its configuration again."""
        self.run(["condor_reconfig"], host=host)

    def start_host(self, host: str) -> None:
        """Start the host's condor_master, which starts its daemons; nothing when it runs."""
        control.ask(self.directory, "start", host=self._host(host))

    def stop_host(self, host: str, timeout_seconds: float = 20.0) -> None:
        """End the host's daemons by SIGQUIT, and at the deadline by SIGKILL."""
        waited = timeout_seconds + 30
        control.ask(
            self.directory,
            "stop",
            timeout_seconds=waited,
            host=self._host(host),
            deadline_seconds=timeout_seconds,
        )

    def daemon_pid(self, host: str, daemon: str) -> int:
        """Pid outside the box of a host's daemon such as ``STARTD``. Raises PoolboxError."""
        program = f"condor_{daemon.lower()}"
        for process in self.daemons()[self._host(host)]:
            if process.program == program:
                return process.pid
        raise PoolboxError(f"{host} runs no {program}")

    def daemons(self) -> dict[str, list[processes.BoxProcess]]:
        """Host name → its condor_master and what that has started, none for a host that is down."""
        everything = self.processes()
        masters = control.ask(self.directory, "masters")["masters"]
        families: dict[str, list[processes.BoxProcess]] = {}
        for host, inner_pid in masters.items():
            own = {process.pid for process in everything if process.inner_pid == inner_pid}
            families[host] = [
                process for process in everything if process.pid in own or process.parent_pid in own
            ]
        return families

    def processes(self) -> list[processes.BoxProcess]:
        """Every living process of the box."""
        return self.namespace.processes() if self.namespace else []

    # ---- waiting and looking

    def wait_until(
        self, predicate: Callable[[], Seen], event: str, timeout_seconds: float = HANG_SECONDS
    ) -> Seen:
        """First true value of the predicate. Raises DeadlineError with the daemons' logs.

        A predicate that fails for the pool's sake (`PoolboxError`) counts as not yet.
        """
        try:
            return wait_for(predicate, event, timeout_seconds)
        except (DeadlineError, BoxFailedError) as failure:
            raise type(failure)(f"{failure}\n{self.log_tail()}") from None

    def log_tail(self, lines: int = 15) -> str:
        """The last lines of every daemon's log, under a heading each."""
        return logs.log_tails(self.directory / "hosts", lines)

    def log_text(self, host: str, daemon: str) -> str:
        """Whole log of a host's daemon, such as ``STARTD``; empty without one."""
        path = self.local_directory(host) / "log" / logs.log_name(daemon)
        return path.read_text(errors="replace") if path.exists() else ""

    def complete(self) -> bool:
        """True if the collector knows the negotiator, all access points and all execute points."""
        listing = self.run(["condor_status", "-any", "-af", "MyType", "Machine"], 10.0).stdout
        present = {tuple(line.split()) for line in listing.splitlines()}
        expected = {("Negotiator", self.spec.central_point)}
        expected |= {("Scheduler", host) for host in self.spec.access_points}
        expected |= {("Machine", node.name) for node in self.spec.execute_points}
        return expected <= present

    def _host(self, host: Optional[str]) -> str:
        return self.local_directory(host or self.spec.central_point).name


def _content(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, errors="replace", closefd=False) as stream:
        return stream.read()
