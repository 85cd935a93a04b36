"""A machine with systemd as PID 1: Debian with HTCondor, in a container of nspawn."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Optional

import pytest

from poolbox.errors import BoxFailedError, CommandError
from poolbox.root import cached_archive
from poolbox.waiting import HANG_SECONDS, wait_for

CHECKOUT = Path(__file__).parents[2]
PACKAGES = (
    "condor",
    "procps",
    "python3",
    "systemd-sysv",
    # Programs that docs/monitoring.md calls.
    "curl",
    "prometheus-node-exporter",
    # The dependencies of sharectl but for HTCondor's bindings, which come from this environment.
    "python3-yaml",
    "python3-pydantic",
    "python3-requests",
    "python3-jinja2",
    "python3-rich",
    "python3-prometheus-client",
)
BINDINGS = ("htcondor2", "classad2", "htcondor.libs")
SOURCE, LIBRARY = "/usr/src/sharectl", "/opt/sharectl"
HOST = "cm.example.org"
AS_ROOT = () if os.geteuid() == 0 else ("sudo", "--non-interactive")

COMMAND = f"""\
#!/usr/bin/python3 -I
import sys
sys.path[:0] = ["{SOURCE}/central", "{LIBRARY}"]
from sharectl.__main__ import command
command()
"""

# A pool on one host that shows itself to nobody without a token or a local account.
POOL = """\
use role:CentralManager
use role:Submit
use role:Execute
CONDOR_HOST = 127.0.0.1
UID_DOMAIN = example.org
TRUST_DOMAIN = example.org
COLLECTOR_NAME = box
NUM_CPUS = 8
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
RunBenchmarks = False
STARTD_DETECT_GPUS =
UPDATE_INTERVAL = 5
SEC_READ_AUTHENTICATION = REQUIRED
ALLOW_READ = reader@example.org condor@* root@*
"""

# Names come from files alone: without a network a question to DNS lasts seconds.
NAMES = {
    "/etc/hostname": f"{HOST}\n",
    "/etc/hosts": f"127.0.0.1 localhost\n127.0.0.1 {HOST}\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
FILES = {
    **NAMES,
    "/etc/condor/config.d/10-pool.conf": POOL,
    "/usr/bin/sharectl": COMMAND,
}

# In a mount namespace, so that all of it is gone with the machine. systemd 258 and later know only
# cgroups of version 2, which some machines mount elsewhere, or beside those of version 1. Machines
# of one cgroup would share the cgroups of their units, and remove them from each other.
BOOT = """
umount --recursive /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
cgroup="/sys/fs/cgroup/sharectl-$$"
mkdir "$cgroup"
echo $$ > "$cgroup/cgroup.procs"
mount -t tmpfs -o mode=0755 none "$1"
tar --extract --numeric-owner --exclude=./dev --directory "$1" --file "$2"
cp --recursive --no-preserve=ownership "$3/." "$1"
shift 3
status=0
systemd-nspawn "$@" || status=$?
echo $$ > /sys/fs/cgroup/cgroup.procs
find "$cgroup" -depth -type d -exec rmdir {} +
exit $status
"""


class Machine:
    """Context manager of a booted machine, which leaves nothing behind."""

    def __init__(self, suite: str, files: Mapping[str, str], folders: Mapping[Path, str]) -> None:
        self.suite, self.files, self.folders = suite, files, folders
        self._folder = Path()
        self._init = 0
        self._nspawn: Optional[subprocess.Popen[bytes]] = None

    def __enter__(self) -> Machine:  # noqa: PYI034  # Self is of Python 3.11
        archive = cached_archive(self.suite, PACKAGES)
        self._folder = Path(tempfile.mkdtemp(prefix="machine-"))
        try:
            root, files = self._folder / "root", self._folder / "files"
            root.mkdir()
            for path, text in self.files.items():
                file = files / path[1:]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
                file.chmod(0o755)
            given = (str(root), str(archive), str(files), *options(root, self.folders))
            with (self._folder / "console").open("wb") as console:
                self._nspawn = subprocess.Popen(
                    [*AS_ROOT, "unshare", "--mount", "sh", "-ec", BOOT, "sh", *given],
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=console,
                )
            self._init = wait_for(self._first_process, "the machine has a PID 1")
            wait_for(self._is_up, "systemd has started all units")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        _type: Optional[type[BaseException]],
        _error: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> None:
        if self._init:  # with its PID 1 the kernel ends all processes of the machine
            subprocess.run([*AS_ROOT, "kill", "-KILL", str(self._init)], check=True)
        if self._nspawn is not None:
            self._nspawn.wait(HANG_SECONDS)
        shutil.rmtree(self._folder)

    def run(
        self, *argv: str, check: bool = True, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Outcome of a command run as root inside, with ``text`` as its input.

        Raises CommandError when it fails and ``check`` is true.
        """
        enter = ("nsenter", f"--target={self._init}", "--all", "env", "-i")
        path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
        done = subprocess.run(
            [*AS_ROOT, *enter, path, *argv],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_SECONDS,
        )
        if check and done.returncode:
            raise CommandError(list(argv), done.returncode, done.stdout, done.stderr)
        return done

    def write(self, path: str, text: str, mode: str = "0644") -> None:
        """Write a file of root."""
        self.run("install", "-D", "-m", mode, "/dev/stdin", path, text=text)

    def journal(self, unit: str) -> str:
        """Messages of a unit, and those of systemd about it."""
        return self.run("journalctl", "--unit", unit, "--output=cat", "--no-pager").stdout

    def shown(self, unit: str, setting: str) -> str:
        """Setting of a unit as systemd has it."""
        return self.run(
            "systemctl", "show", unit, f"--property={setting}", "--value"
        ).stdout.strip()

    def _is_up(self) -> bool:
        # Degraded: units of Debian such as dev-hugepages.mount do not work in a container.
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state in ("running", "degraded")

    def _first_process(self) -> int:
        """Pid here of PID 1 inside; 0 before there is one."""
        assert self._nspawn is not None
        if self._nspawn.poll() is not None:
            console = (self._folder / "console").read_text(errors="replace")
            raise BoxFailedError(f"the machine ended: {console}")
        below = {self._nspawn.pid}
        # A child may have a lower pid than its parent: look until nobody new comes.
        while True:
            found = {pid: inner for pid, parent, inner in _processes() if parent in below}
            first = [pid for pid, inner in found.items() if inner == 1]
            if first or found.keys() <= below:
                return first[0] if first else 0
            below |= found.keys()


def options(root: Path, folders: Mapping[Path, str]) -> list[str]:
    """Options of systemd-nspawn: no network but loopback; folders of this machine -> place."""
    return [
        f"--directory={root}",
        f"--machine=sharectl-{os.getpid()}",
        f"--hostname={HOST}",
        "--boot",
        "--quiet",
        "--private-network",
        "--register=no",
        "--keep-unit",
        "--console=read-only",
        *(f"--bind-ro={folder}:{place}" for folder, place in folders.items()),
    ]


def _installed(name: str) -> Path:
    """Folder of the bindings beside the module htcondor2 of this environment."""
    module = importlib.util.find_spec("htcondor2")
    assert module is not None
    assert module.origin is not None
    return Path(module.origin).parents[1] / name


def _processes() -> Iterator[tuple[int, int, int]]:
    """Pid, parent's pid and pid in its own namespace of every process."""
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            text = status.read_text()
            parent, inner = (
                int(match[1].split()[-1])
                for name in ("PPid", "NSpid")
                if (match := re.search(rf"^{name}:(.*)$", text, re.MULTILINE))
            )
            yield int(status.parent.name), parent, inner


def with_checkout(suite: str) -> Machine:
    """Machine with the pool `POOL`, on which the command is that of this checkout."""
    binds = {_installed(name): f"{LIBRARY}/{name}" for name in BINDINGS}
    return booted(suite, FILES, {CHECKOUT: SOURCE, **binds})


def booted(suite: str, files: Mapping[str, str], folders: Mapping[Path, str]) -> Machine:
    """Machine of that suite with these files, and folders of this machine.

    Skips the test where none can be had, unless none may be skipped.
    """
    missing = [name for name in ("systemd-nspawn", "nsenter") if shutil.which(name) is None]
    problem = f"no {missing[0]}: apt install systemd-container" if missing else ""
    if not problem and AS_ROOT:
        done = subprocess.run([*AS_ROOT, "true"], capture_output=True, text=True, check=False)
        problem = f"a machine is booted by root: {done.stderr.strip()}" if done.returncode else ""
    if problem:
        (pytest.fail if os.environ.get("POOL_REQUIRED") == "1" else pytest.skip)(problem)
    return Machine(suite, files, folders)
