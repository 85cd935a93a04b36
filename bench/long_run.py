"""Many cycles as fast as they go on a pool whose jobs, daemons, disks and clocks come and go.

State and ledger are on a small disk, with a ledger that is at its bound from the start; targets go
to a file and to ads, and nodes take the newer one.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable

from bench import ledger_pool
from poolbox import Box, BoxSpec, PoolboxError
from poolbox.spec import equal_nodes
from sharectl.files.files import LOG_BYTES
from sharectl.ledger.ledger import Ledger
from sharectl.ledger.retention import Keep
from tests.pool import clocks, deployed
from tests.pool.cycles_that_die import fill, leftovers, small_disk, within
from tests.pool.sharectl_command import Sharectl
from tests.pool.trouble import dead, hung

CENTRAL, FIRST, SECOND = "cm-1.example.org", "ap-1.example.org", "ap-2.example.org"
STEADY, SHAKEN = "wn-001.example.org", "wn-002.example.org"
CORES = 24
"""Of both nodes."""
GROUPS = {"alice": 20, "cms": 980}
SUPPLY = {"alice": (1, 40), "cms": (8, 4)}
"""Group -> cores of a job, jobs that come to each access point where fewer wait."""
RESTART_SECONDS = 90
"""Time in which daemons must be back, which their masters start again."""
MOST_FILE_BYTES = 16_384
"""Of the state of two nodes."""
LAST_JOBS_SECONDS = 300
MOST_AFTER = {
    "negotiator dead": 1,
    "disk full": 1,
    "no place for targets": 1,
    "clock ahead": 2,
    "clock behind": 1,
    "cycle killed": 1,
}
"""Fault that is over at once -> cycles until all is as before."""
PAST_CYCLES = 90
LEDGER_BYTES = 2**20
DISK_KIB = 16 * 1024
FREE_PAGES = 2
OTHER_CLOCK_SECONDS = (2 * 86400, -3600)
LOOK_SECONDS = 0.01
CYCLE_SECONDS = 60
KILL_SECONDS = 0.25
"""Less than any cycle takes."""
DAEMONS = frozenset(("condor_master", "condor_collector", "condor_schedd", "condor_startd"))
SPEC = BoxSpec(
    execute_points=equal_nodes(
        2,
        cores=12,
        power_hs06=120.0,
        config=deployed.snippet(
            source="file:$(LOCAL_DIR)/../../shared/way/sharectl.txt,collector:",
            source_options="--identity pool@example.org",
        ),
    ),
    access_points=(FIRST, SECOND),
    # cms stays under its share, so that there is always a target.
    central_config="CMS_LIMIT = 1\n",
    config="MASTER_BACKOFF_CONSTANT = 2\nCLAIM_WORKLIFE = 20\n",
)
CONFIGURATION: dict[str, Any] = {
    "groups": {name: {"pledge_hs06": pledge} for name, pledge in GROUPS.items()},
    "control": {"strategy": "pair", "dwell_seconds": 3600},
    "validity_seconds": 600,
    "ledger": {"max_bytes": LEDGER_BYTES, "keep_days": 10},
    "pool": {"collector_deadline_seconds": 4.0, "schedd_deadline_seconds": 4.0},
}


@dataclass(frozen=True)
class Cycle:
    """One run of ``sharectl cycle``."""

    number: int
    fault: str
    """Empty if there is none."""
    exit_code: int
    seconds: float
    resident_kib: int
    """Most of the process or of one of its children."""
    descriptors: int
    """Most that were seen open."""
    state_bytes: int
    """Of all files of state, ledger and logs."""
    targets: int
    """Of the plan that it published; 0 if it published none."""
    stderr: str


@dataclass
class LongRun:
    """A pool and the cycles on it."""

    box: Box
    sharectl: Sharectl
    disk: Path
    cycles: list[Cycle] = field(default_factory=list)
    descriptors: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Daemon, by its place and pid -> its open descriptors after each cycle."""
    resident_kib: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    after: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Fault -> cycles until one was complete, each time."""
    job_ctl_times: set[str] = field(default_factory=set)
    """Node and time of each run of job_ctl that was seen."""

    def go(self, cycles: int) -> None:
        """Run so many complete cycles or more: whole rounds of faults, one after the other."""
        self.box.wait_until(self.acts, "a node acts on a target")
        while True:
            for name, fault in self.faults().items():
                self._jobs_come()
                self.cycle()
                with fault():
                    self.cycle(name)
                self._jobs_come()
                self._recover(name)
            if sum(cycle.exit_code == 0 for cycle in self.cycles) >= cycles:
                return

    def steers(self) -> bool:
        """Run a cycle while jobs come; tell if it published a target."""
        self._jobs_come()
        return self.cycle().targets > 0

    def acts(self) -> bool:
        """Run a cycle while jobs come; tell if START of a node acts on a target."""
        query = ["condor_status", "-constraint", "t1_TargetActive", "-af", "Machine"]
        return self.steers() and bool(self.box.run(query, 10).stdout.split())

    def _recover(self, fault: str) -> None:
        """Run cycles until one is complete and has written everything."""
        most, began = MOST_AFTER.get(fault), time.monotonic()
        for count in itertools.count(1):
            if self.cycle().exit_code == 0:
                self.after[fault].append(count)
                return
            over = time.monotonic() - began > RESTART_SECONDS if most is None else count >= most
            if over:
                raise PoolboxError(f"{fault}: {self.cycles[-1].stderr}")

    def end(self) -> float:
        """Switch sharectl off; seconds until jobs hold all cores of the pool."""
        began = time.monotonic()
        self.sharectl.run("disable", "--reason", "the end", **self.configuration)
        for place in (FIRST, SECOND):
            self.box.submit(deployed.jobs("alice", 1, CORES, LAST_JOBS_SECONDS), place)

        def full() -> bool:
            deployed.list_idle_jobs_again(self.box, FIRST, SECOND)
            return self.held_cores() == CORES

        self.box.wait_until(full, "jobs hold all cores")
        return time.monotonic() - began

    def held_cores(self) -> int:
        """Cores of dynamic slots."""
        query = ["condor_status", "-constraint", 'SlotType == "Dynamic"', "-af", "Cpus"]
        return sum(map(int, self.box.run(query, 10).stdout.split()))

    def faults(self) -> Mapping[str, Callable[[], AbstractContextManager[None]]]:
        """Fault by name; it lasts as long as its body."""
        return {
            "schedd hangs": lambda: self._trouble(hung, SECOND, "SCHEDD"),
            "schedd dead": lambda: self._trouble(dead, SECOND, "SCHEDD"),
            "collector dead": lambda: self._trouble(dead, CENTRAL, "COLLECTOR"),
            "negotiator dead": lambda: self._trouble(dead, CENTRAL, "NEGOTIATOR"),
            "startd dead": lambda: self._trouble(dead, SHAKEN, "STARTD"),
            "execute point down": self._node_down,
            "disk full": self._disk_full,
            "no place for targets": self._no_place,
            "clock ahead": lambda: self._clock(OTHER_CLOCK_SECONDS[0]),
            "clock behind": lambda: self._clock(OTHER_CLOCK_SECONDS[1]),
            "cycle killed": contextlib.nullcontext,
        }

    def cycle(self, fault: str = "") -> Cycle:
        """Run one cycle and note its figures, and those of the daemons afterwards."""
        began, descriptors = time.monotonic(), 0
        started = self.sharectl.start("cycle", "--json", **self.configuration)
        kill_at = began + KILL_SECONDS if fault == "cycle killed" else began + CYCLE_SECONDS
        while os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            descriptors = max(descriptors, _open_descriptors(started.pid))
            if time.monotonic() > kill_at:
                started.kill()
            time.sleep(LOOK_SECONDS)
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        stdout, stderr = started.communicate()
        printed = json.loads(stdout) if stdout else {}
        cycle = Cycle(
            number=len(self.cycles),
            fault=fault,
            exit_code=started.returncode,
            seconds=time.monotonic() - began,
            resident_kib=usage.ru_maxrss,
            descriptors=descriptors,
            state_bytes=sum(self.sizes().values()),
            targets=len((printed.get("plan") or {}).get("targets", ())),
            stderr=stderr,
        )
        self.cycles.append(cycle)
        self._look_at_daemons()
        return cycle

    @property
    def configuration(self) -> dict[str, Any]:
        """Configuration of all cycles."""
        # The path of the disk within its namespace.
        state = Path("/", *self.disk.parts[4:], "state")
        file = self.box.shared_directory / "way" / "sharectl.txt"
        files = {"jobs_file": str(state / "jobs.txt"), "errors_log": str(state / "errors.log")}
        return {
            **CONFIGURATION,
            "publish": [{"file": str(file)}, {"collector": {}}],
            "state_directory": str(state),
            "history": files,
        }

    def sizes(self) -> dict[str, int]:
        """File of state, ledger or logs -> bytes."""
        state = self.disk / "state"
        return {
            str(path.relative_to(state)): path.stat().st_size
            for path in state.rglob("*")
            if path.is_file()
        }

    def leftovers(self) -> list[str]:
        """Temporary files, and processes of cycles that are still there."""
        files = [*leftovers(self.disk), *leftovers(self.box.shared_directory)]
        ours = str(self.sharectl.folder).encode()
        processes = [
            entry.name
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and ours in _command_of(entry)
        ]
        return [*map(str, files), *processes]

    def _jobs_come(self) -> None:
        """Submit some jobs where few wait; all end by themselves soon."""
        for place in (FIRST, SECOND):
            with contextlib.suppress(PoolboxError):  # it comes back from a fault
                queued = self.box.jobs("JobStatus == 1", ("RequestCpus",), place)
                waiting = Counter(job["RequestCpus"] for job in queued)
                for group, (cores, count) in SUPPLY.items():
                    if waiting[cores] < count:
                        seconds = "$RANDOM_INTEGER(20,40)"
                        limit = f"concurrency_limits = {group}"
                        self.box.submit(deployed.jobs(group, cores, count, seconds, limit), place)

    def _look_at_daemons(self) -> None:
        for host, family in self.box.daemons().items():
            for process in family:
                if process.program in DAEMONS:
                    name = f"{host} {process.program} {process.pid}"
                    self.descriptors[name].append(_open_descriptors(process.pid))
                    self.resident_kib[name].append(process.resident_kib)
        query = ["condor_status", "-constraint", "PartitionableSlot", "-af", "Machine"]
        with contextlib.suppress(PoolboxError):
            listing = self.box.run([*query, "t1_JobCtlTime"], 10).stdout
            self.job_ctl_times.update(listing.splitlines())

    def _trouble(
        self, trouble: Callable[[Box, str, str], AbstractContextManager[None]], *daemon: str
    ) -> AbstractContextManager[None]:
        """Trouble of a daemon, once it runs after an earlier one."""
        host, name = daemon
        self.box.wait_until(lambda: self.box.daemon_pid(host, name), f"{name} runs")
        return trouble(self.box, host, name)

    @contextlib.contextmanager
    def _node_down(self) -> Iterator[None]:
        self.box.stop_host(SHAKEN)
        yield
        self.box.start_host(SHAKEN)

    @contextlib.contextmanager
    def _disk_full(self) -> Iterator[None]:
        fill(self.disk, FREE_PAGES)
        yield
        (self.disk / "filler").unlink()

    @contextlib.contextmanager
    def _no_place(self) -> Iterator[None]:
        """A file where the folder of the targets should be."""
        way = self.box.shared_directory / "way"
        way.rename(way.with_name("aside"))
        way.touch()
        yield
        way.unlink()
        way.with_name("aside").rename(way)

    @contextlib.contextmanager
    def _clock(self, seconds: int) -> Iterator[None]:
        right = self.sharectl
        shift = clocks.shifted(right.folder / "clock", seconds)
        self.sharectl = replace(right, environment={**right.environment, **shift})
        yield
        self.sharectl = right


def _open_descriptors(pid: int) -> int:
    """Descriptors that a process has open; 0 if it has ended."""
    with contextlib.suppress(OSError):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0


def _command_of(entry: Path) -> bytes:
    """Command line of a process; empty if it has ended."""
    with contextlib.suppress(OSError):
        return (entry / "cmdline").read_bytes()
    return b""


@contextlib.contextmanager
def long_run(box: Box, folder: Path) -> Iterator[LongRun]:
    """Run on a pool, with its files in a folder and on a small disk."""
    (box.shared_directory / "way").mkdir()
    with small_disk(folder, DISK_KIB) as disk:
        (disk / "state" / "ledger").mkdir(parents=True)
        shutil.copy(_full_ledger(folder), disk / "state" / "ledger" / "ledger.sqlite")
        yield LongRun(box, Sharectl(box, folder, within=within(disk)), disk)


def _full_ledger(folder: Path) -> Path:
    """Ledger of the last days of a larger pool, at its bound."""
    path = folder / "before" / "ledger.sqlite"
    ledger, now = Ledger(path, Keep(max_bytes=LEDGER_BYTES)), int(time.time())
    ((record, snapshot),) = ledger_pool.SyntheticPool(300, len(GROUPS), seed=1).cycles(now, 1)
    for number in range(PAST_CYCLES, 0, -1):
        taken_at = now - number * ledger_pool.PERIOD_SECONDS
        ledger.record(
            replace(record, taken_at=taken_at, sequence=taken_at),
            replace(snapshot, taken_at=taken_at),
        )
    return path


# ---- figures


@dataclass(frozen=True)
class Trend:
    """Medians of the first and of the last third of a row of figures, and the largest."""

    first: float
    last: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Trend:
        """Trend of figures in the order in which they were taken."""
        size = max(1, len(values) // 3)
        middle = statistics.median
        return cls(middle(values[:size]), middle(values[-size:]), max(values))

    @property
    def growth(self) -> float:
        """Last third to first third."""
        return self.last / self.first


def of_cycles(run: LongRun) -> dict[str, Trend]:
    """Trends of the cycles that were complete, from the second one on."""
    sound = [cycle for cycle in run.cycles[1:] if cycle.exit_code == 0 and not cycle.fault]
    return {
        "memory of a cycle, KiB": Trend.of([cycle.resident_kib for cycle in sound]),
        "descriptors of a cycle": Trend.of([cycle.descriptors for cycle in sound]),
        "state, ledger and logs, bytes": Trend.of([cycle.state_bytes for cycle in sound]),
    }


def of_daemons(rows: Mapping[str, list[int]]) -> dict[str, Trend]:
    """Trend of each daemon that lived all the time; others come to know each other again."""
    longest = max(map(len, rows.values()))
    return {name: Trend.of(row) for name, row in rows.items() if len(row) == longest}


def too_large(run: LongRun) -> list[str]:
    """Files of state, ledger and logs that are beyond their bounds."""
    bounds = {"ledger/ledger.sqlite": LEDGER_BYTES}
    bounds |= dict.fromkeys(("errors.log", "ledger/changes.jsonl"), LOG_BYTES)
    return [name for name, size in run.sizes().items() if size > bounds.get(name, MOST_FILE_BYTES)]


def exit_codes(run: LongRun) -> dict[str, Counter[int]]:
    """Fault -> exit codes of the cycles meanwhile."""
    codes: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for cycle in run.cycles:
        codes[cycle.fault][cycle.exit_code] += 1
    return dict(codes)
