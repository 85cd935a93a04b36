"""The life of a box: its files, its sandbox, its start and its end."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
import socket
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Optional

from poolbox import control
from poolbox.configuration import (
    DOMAIN,
    POOL_USER,
    SIGNING_KEY,
    client_configuration,
    host_configurations,
)
from poolbox.errors import BoxFailedError, PoolboxError
from poolbox.machine import check_can_run
from poolbox.pool import Pool
from poolbox.processes import Namespace
from poolbox.root import Root, find_root, remove_tree
from poolbox.sandbox import command, system_files
from poolbox.spec import BoxSpec, ExecutePoint
from poolbox.waiting import wait_for

# A daemon whose first update is lost sends the next one after UPDATE_INTERVAL, 300 s as shipped.
START_SECONDS = 360.0
END_SECONDS = 120.0
# Below the range from which the kernel hands out ports by itself, so that no daemon's own port
# takes it.
COLLECTOR_PORTS = range(20000, 32000)
HOST_FOLDERS = ("config.d", "log", "spool", "execute", "lock", "run")
BOX_FOLDERS = ("home", "shared", "client", "etc")


class Box(Pool):
    """One pool, all its daemons in one sandbox that ends with this process.

    A context manager; `start` and `stop` do the same. Everything it writes lies in ``directory``, a
    temporary folder that `stop` deletes unless ``keep`` is true.
    """

    def __init__(self, spec: BoxSpec, *, keep: bool = False) -> None:
        spec.check()
        super().__init__(spec, directory=Path("/nonexistent"), port=0)
        self.keep = keep
        self._sandbox: Optional[subprocess.Popen[bytes]] = None

    @classmethod
    def attach(cls, directory: Path) -> Box:
        """The box that runs in that directory. Raises BoxFailedError if none does."""
        namespace = Namespace(control.init_pid(directory))
        saved = json.loads((directory / "box.json").read_text())
        fields = saved["spec"]
        fields["execute_points"] = tuple(ExecutePoint(**node) for node in fields["execute_points"])
        fields["access_points"] = tuple(fields["access_points"])
        box = cls(BoxSpec(**fields))
        box.directory, box.port, box.namespace = directory, saved["port"], namespace
        return box

    def __enter__(self) -> Box:  # noqa: PYI034  # Self came with Python 3.11, and nobody inherits from a box
        self.start()
        return self

    def __exit__(
        self,
        _kind: Optional[type[BaseException]],
        _error: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> None:
        self.stop()

    def start(self, timeout_seconds: float = START_SECONDS) -> None:
        """Start every daemon and wait until the collector knows them all.

        Raises `DeadlineError` or `BoxFailedError` with the daemons' logs, `CannotBuildError` when
        this machine can have no pool; nothing is left running then.
        """
        if self._sandbox is not None:
            raise PoolboxError(f"this box runs already, in {self.directory}")
        root = find_root(self.spec.suite)
        self.directory = Path(tempfile.mkdtemp(prefix="poolbox-")).resolve()
        try:
            self.port = free_port()
            self._write_files(root)
            self._start_sandbox(root)
            if self.spec.as_shipped:
                self._write_token()
            self.start_host(self.spec.central_point)
            self.wait_until(self._collector_answers, "the collector answers", timeout_seconds)
            for host in self.spec.hosts[1:]:
                self.start_host(host)
            self.wait_until(
                self.complete, "every daemon is known to the collector", timeout_seconds
            )
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process of the box and delete its directory, if it runs."""
        if not self.directory.is_dir():
            return
        with contextlib.suppress(PoolboxError, TimeoutError):
            control.ask(self.directory, "end", timeout_seconds=END_SECONDS)
        if self._sandbox is not None:
            self._sandbox.communicate(
                timeout=END_SECONDS
            )  # closes the pipe whose end is the box's end, too
            self._sandbox = None
        elif self.namespace:
            wait_for(lambda: not self.processes(), "the box's processes end", END_SECONDS)
        if not self.keep:
            remove_tree(self.directory)

    def detach(self) -> None:
        """Let the pool run on when this process ends; `attach` finds it again by its directory."""
        control.ask(self.directory, "detach")

    def _collector_answers(self) -> bool:
        return self.run(["condor_status", "-collector", "-af", "Name"], 10.0).stdout.strip() != ""

    def _start_sandbox(self, root: Root) -> None:
        log = self.directory / "sandbox.log"
        with log.open("wb") as output:
            sandbox = self._sandbox = subprocess.Popen(
                command(root, self.directory),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a Ctrl-C in the terminal is for the caller to handle
            )
        listening = self.directory / "control"
        wait_for(
            lambda: listening.exists() or sandbox.poll() is not None,
            "the sandbox starts",
            START_SECONDS,
        )
        if sandbox.poll() is not None:
            check_can_run()
            raise BoxFailedError(f"the sandbox did not start: {log.read_text().strip()}")
        self.namespace = Namespace(control.init_pid(self.directory))

    def _write_files(self, root: Root) -> None:
        host_folders = (f"hosts/{host}/{name}" for host in self.spec.hosts for name in HOST_FOLDERS)
        for name in (*BOX_FOLDERS, *host_folders):
            (self.directory / name).mkdir(parents=True)
        key = self.directory / SIGNING_KEY
        key.touch(mode=0o600)
        key.write_text(secrets.token_hex(32))
        home, client = self.directory / "home", self.directory / "client"
        texts = {
            self.directory / "etc" / name: text
            for name, text in system_files(self.spec, home).items()
        }
        for host in self.spec.hosts:
            local = self.local_directory(host)
            files = host_configurations(self.spec, host, local, self.port, root.installation)
            texts.update({local / name: text for name, text in files.items()})
        texts[client / "condor_config"] = client_configuration(self.spec, client, self.port)
        texts[self.directory / "init.json"] = json.dumps(self._init_plan(root, home))
        texts[self.directory / "box.json"] = json.dumps(
            {"spec": dataclasses.asdict(self.spec), "port": self.port}
        )
        for path, text in texts.items():
            path.write_text(text)

    def _write_token(self) -> None:
        """Put a token of the pool's user where tools outside the box look for one."""
        folder = self.directory / "client" / "tokens.d"
        folder.mkdir(mode=0o700)
        made = self.run(["condor_token_create", "-identity", f"{POOL_USER}@{DOMAIN}"])
        (folder / "pool").touch(mode=0o600)
        (folder / "pool").write_text(made.stdout)

    def _init_plan(self, root: Root, home: Path) -> dict[str, object]:
        """Input of `poolbox.init`: host names, path of condor_master, environment."""
        release, sbin = root.installation.release, root.installation.sbin
        environment = {
            "PATH": f"{release}/bin:{sbin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(home),
            "USER": POOL_USER,
            "LOGNAME": POOL_USER,
            "LANG": "C.UTF-8",
        }
        return {
            "master": str(sbin / "condor_master"),
            "hosts": self.spec.hosts,
            "environment": environment,
        }


def free_port() -> int:
    """A TCP port of the loopback that nothing listens on."""
    while True:
        port = secrets.choice(COLLECTOR_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
