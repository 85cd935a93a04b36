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
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from poolbox.errors import BoxFailedError, CommandError
from poolbox.root import cached_archive
from poolbox.waiting import HANG_SECONDS, wait_for
from tests.pool.conftest import unavailable
from tests.pool.sharectl_command import CHECKOUT

PACKAGES = (
    *("condor", "procps", "python3", "systemd-sysv"),
    # Programs that docs/monitoring.md calls.
    *("curl", "prometheus-node-exporter"),
    # The dependencies of sharectl but for HTCondor's bindings, which come from this environment.
    *("python3-yaml", "python3-pydantic", "python3-requests", "python3-jinja2"),
    *("python3-rich", "python3-prometheus-client"),
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
FILES = {**NAMES, "/etc/condor/config.d/10-pool.conf": POOL, "/usr/bin/sharectl": COMMAND}

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


@dataclass(frozen=True)
class Machine:
    """A booted machine."""

    init: int
    """Its PID 1, as a pid here."""

    def run(
        self, *argv: str, check: bool = True, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Outcome of a command run as root inside, with ``text`` as its input.

        Raises CommandError when it fails and ``check`` is true.
        """
        enter = ("nsenter", f"--target={self.init}", "--all", "env", "-i")
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
        self.run("install", "-D", "-m", mode, "/dev/stdin", path, text=text)

    def journal(self, unit: str) -> str:
        """Messages of a unit, and those of systemd about it."""
        return self.run("journalctl", "--unit", unit, "--output=cat", "--no-pager").stdout

    def shown(self, unit: str, setting: str) -> str:
        """Setting of a unit as systemd has it."""
        argv = ("systemctl", "show", unit, f"--property={setting}", "--value")
        return self.run(*argv).stdout.strip()

    def is_up(self) -> bool:
        """True once systemd has started all units."""
        # Degraded: units of Debian such as dev-hugepages.mount do not work in a container.
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state in ("running", "degraded")


@contextlib.contextmanager
def booted(suite: str, files: Mapping[str, str], folders: Mapping[Path, str]) -> Iterator[Machine]:
    """Machine of that suite with these files, and folders of this machine; it leaves nothing.

    Skips the test where none can be had, unless none may be skipped.
    """
    for program in ("systemd-nspawn", "nsenter"):
        if shutil.which(program) is None:
            unavailable(f"no {program}: apt install systemd-container")
    if AS_ROOT:
        done = subprocess.run([*AS_ROOT, "true"], capture_output=True, text=True, check=False)
        if done.returncode:
            unavailable(f"a machine is booted by root: {done.stderr.strip()}")
    archive = cached_archive(suite, PACKAGES)
    folder, init = Path(tempfile.mkdtemp(prefix="machine-")), 0
    root, console = folder / "root", folder / "console"
    root.mkdir()
    for path, text in files.items():
        file = folder / "files" / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    options = (
        *(f"--directory={root}", f"--machine=sharectl-{os.getpid()}", f"--hostname={HOST}"),
        # No network but loopback.
        *("--boot", "--quiet", "--private-network", "--register=no", "--keep-unit"),
        "--console=read-only",
        *(f"--bind-ro={shown}:{place}" for shown, place in folders.items()),
    )
    given = (str(root), str(archive), str(folder / "files"), *options)
    with console.open("wb") as output:
        nspawn = subprocess.Popen(
            [*AS_ROOT, "unshare", "--mount", "sh", "-ec", BOOT, "sh", *given],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def first_process() -> int:
        if nspawn.poll() is not None:
            raise BoxFailedError(f"the machine ended: {console.read_text(errors='replace')}")
        return _first_process(nspawn.pid)

    try:
        init = wait_for(first_process, "the machine has a PID 1")
        machine = Machine(init)
        wait_for(machine.is_up, "systemd has started all units")
        yield machine
    finally:
        if init:  # with its PID 1 the kernel ends all processes of the machine
            subprocess.run([*AS_ROOT, "kill", "-KILL", str(init)], check=True)
        nspawn.wait(HANG_SECONDS)
        shutil.rmtree(folder)


def _first_process(outer: int) -> int:
    """Pid here of PID 1 below a process; 0 before there is one."""
    below = {outer}
    # A child may have a lower pid than its parent: look until nobody new comes.
    while True:
        inner_of = {pid: inner for pid, parent, inner in _processes() if parent in below}
        first = [pid for pid, inner in inner_of.items() if inner == 1]
        if first or inner_of.keys() <= below:
            return first[0] if first else 0
        below |= inner_of.keys()


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


def with_checkout(suite: str) -> AbstractContextManager[Machine]:
    """Machine with the pool `POOL`, on which the command is that of this checkout."""
    module = importlib.util.find_spec("htcondor2")
    assert module is not None
    assert module.origin is not None
    installed = Path(module.origin).parents[1]
    binds = {installed / name: f"{LIBRARY}/{name}" for name in BINDINGS}
    return booted(suite, FILES, {CHECKOUT: SOURCE, **binds})
