"""Cost of a run of ``job_ctl`` and of ``mc_grace``, ``condor_status`` included: 40 ms, 20 MB.

``job_ctl`` runs with ``target.py`` for one file of 2,000 targets, unsigned, which is the default;
and, not judged, for a signed one.

A real execute point with jobs of one and of eight cores. The node jobs are started as the startd
starts them, by their first line, in its environment, on the Python of the box. They are run in turn
with ``python3 -I -S -c pass`` and with their ``condor_status`` alone, so that a ratio compares runs
of the same minutes on the same machine.

Terms: wall time begins at fork and ends when the process has been waited for; the figure judged is
the best of its runs, since everything else on the machine only adds to it, and the median stands
beside it. Memory is the largest RSS of any one process of the run, as the kernel noted it, and,
read every millisecond in runs of their own, the PSS of all of them together: a page that several
processes share, the daemons' among them, counts in parts. MB are 10^6 bytes.

``job_ctl`` may take 1.2 times as long as the interpreter and ``condor_status`` one after the other.

Exit code 1 if a limit is passed.
"""

from __future__ import annotations

import hmac
import json
import os
import statistics
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
NODE = "wn-001.example.org"
CORES = 24
# accounting group, cores, jobs
MIX = (("cms.prod", 8, 1), ("alice.jo", 1, 6), ("atlas.mc", 2, 2))
JOBS = """\
executable = /bin/sleep
arguments = 3600
should_transfer_files = YES
transfer_executable = False
accounting_group = {group}
accounting_group_user = user
request_cpus = {cores}
request_memory = 10
request_disk = 100
queue {count}
"""
OTHER_NODES = 2000
KEY = bytes(32)
RUNS = 60
MEMORY_RUNS = 20
MOST_SECONDS = 0.040
MOST_BYTES = 20e6
MOST_RATIO, RATIO_BEFORE = 1.2, "1.30 on 2026-11-20"
"""Of job_ctl to python3 and condor_status one after the other."""
PYTHON, STATUS = "python3 -I -S -c pass", "condor_status alone"
BYTES_PER_KIB = 1024
POLL_SECONDS = 0.001


# ---- inside the box: the standard library only


def spawn(argv: list[str]) -> int:
    """Process id of the command, its output thrown away."""
    pid = os.fork()
    if pid:
        return pid
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.execvp(argv[0], argv)  # noqa: S606  # no shell between us and what is measured
    finally:
        os._exit(127)


def timed(argv: list[str]) -> dict[str, float]:
    """Wall seconds, CPU seconds and bytes of the largest process of one run."""
    begin = time.perf_counter()
    _, status, usage = os.wait4(spawn(argv), 0)
    seconds = time.perf_counter() - begin
    if status:
        sys.exit(f"{' '.join(argv)} ended with wait status {status:#x}")
    cpu = usage.ru_utime + usage.ru_stime
    return {
        "wall_seconds": seconds,
        "cpu_seconds": cpu,
        "largest_bytes": usage.ru_maxrss * BYTES_PER_KIB,
    }


def together(argv: list[str]) -> float:
    """PSS in bytes of all processes of one run, at its worst moment seen."""
    first, worst = spawn(argv), 0
    while os.waitpid(first, os.WNOHANG)[0] == 0:
        worst = max(worst, sum(map(pss_kib, family(first))))
        time.sleep(POLL_SECONDS)
    return float(worst * BYTES_PER_KIB)


def family(pid: int) -> list[int]:
    """The process and its descendants."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *(each for child in children for each in family(int(child)))]


def pss_kib(pid: int) -> int:
    """Its share of the memory, KiB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def measure(commands: dict[str, list[str]]) -> dict[str, dict[str, list[float]]]:
    """For each command the figures of all its runs."""
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in commands}
    for _ in range(RUNS):
        for name, argv in commands.items():
            for figure, value in timed(argv).items():
                figures[name].setdefault(figure, []).append(value)
    for name, argv in commands.items():
        figures[name]["together_bytes"] = [together(argv) for _ in range(MEMORY_RUNS)]
    return figures


# ---- outside


def commands(startd: str, folder: Path) -> dict[str, list[str]]:
    """Commands to measure, by name."""
    jobs = CHECKOUT / "startd_cron"
    job_ctl = [str(jobs / "job_ctl.py"), "--source", f"file:{folder}/sharectl.txt", "--host", NODE]
    return {
        PYTHON: ["/usr/bin/python3", "-I", "-S", "-c", "pass"],
        STATUS: [
            "condor_status",
            "-direct",
            startd,
            "-af:V",
            "Machine",
            "Cpus",
            "AccountingGroup",
        ],
        "job_ctl": [*job_ctl, "--state", str(folder / "job_ctl.state")],
        "job_ctl --key-file": [
            *job_ctl,
            "--state",
            str(folder / "signed.state"),
            "--key-file",
            str(folder / "keys"),
        ],
        "mc_grace": [str(jobs / "mc_grace.py"), "--state", str(folder / "mc_grace.state")],
    }


def inside_a_box() -> dict[str, dict[str, list[float]]]:
    """The figures, measured on an execute point that is full of jobs."""
    sys.path.insert(0, str(CHECKOUT))
    from poolbox import Box, BoxSpec, ExecutePoint  # noqa: PLC0415  # the box has no need of it

    lines = "".join(f"cn-{number:04} alice 8 cms 8\n" for number in range(OTHER_NODES))
    with Box(BoxSpec((ExecutePoint(NODE, CORES),))) as box:
        text = f"{lines}{NODE} alice 2 cms 8\n"
        digest = hmac.new(KEY, text.encode(), "sha256").hexdigest()
        (box.shared_directory / "sharectl.txt").write_text(
            f"{text}# signature: hmac-sha256 key {digest}\n"
        )
        (box.shared_directory / "keys").write_text(f"key {KEY.hex()}\n")
        (box.shared_directory / "keys").chmod(0o600)
        for group, cores, count in MIX:
            box.submit(JOBS.format(group=group, cores=cores, count=count))
        wanted = sum(count for _group, _cores, count in MIX)
        box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == wanted, f"{wanted} jobs run")
        startd = box.run(["condor_status", "-af", "MyAddress", "-limit", "1"]).stdout.strip()
        inner = [
            "/usr/bin/python3",
            str(Path(__file__).resolve()),
            json.dumps(commands(startd, box.shared_directory)),
        ]
        done = box.run(inner, 600, host=NODE, environment={"CONDOR_INHERIT": f"1 {startd} 0 0"})
    figures: dict[str, dict[str, list[float]]] = json.loads(done.stdout)
    return figures


def report(figures: dict[str, dict[str, list[float]]]) -> bool:
    """Print the table; whether the node jobs keep their limits."""
    base = min(figures[PYTHON]["wall_seconds"])
    print(
        f"{'':24}{'best ms':>9}{'median':>9}{'x python':>10}{'CPU ms':>9}"
        f"{'largest MB':>12}{'together MB':>13}"
    )
    kept = True
    for name, runs in figures.items():
        wall, cpu = runs["wall_seconds"], statistics.median(runs["cpu_seconds"])
        largest, all_of_it = max(runs["largest_bytes"]), max(runs["together_bytes"])
        print(
            f"{name:24}{min(wall) * 1e3:9.1f}{statistics.median(wall) * 1e3:9.1f}"
            f"{min(wall) / base:10.2f}{cpu * 1e3:9.1f}{largest / 1e6:12.1f}{all_of_it / 1e6:13.1f}"
        )
        if name in ("job_ctl", "mc_grace"):
            kept &= min(wall) <= MOST_SECONDS and max(largest, all_of_it) <= MOST_BYTES
    for name in ("job_ctl", "mc_grace"):
        memory = max(*figures[name]["largest_bytes"], *figures[name]["together_bytes"]) / MOST_BYTES
        time_ratio = min(figures[name]["wall_seconds"]) / MOST_SECONDS
        print(
            f"{name}: {time_ratio:.2f} of the {MOST_SECONDS * 1e3:.0f} ms, {memory:.2f} of the "
            f"{MOST_BYTES / 1e6:.0f} MB"
        )
    best = {name: min(runs["wall_seconds"]) for name, runs in figures.items()}
    ratio = best["job_ctl"] / (best[PYTHON] + best[STATUS])
    print(f"job_ctl: {ratio:.2f} of {PYTHON} and {STATUS}, at most {MOST_RATIO}; {RATIO_BEFORE}")
    return kept and ratio <= MOST_RATIO


def main(argv: list[str]) -> int:
    """Exit code: 0, or 1 if a limit is passed."""
    if argv:
        print(json.dumps(measure(json.loads(argv[0]))))
        return 0
    return 0 if report(inside_a_box()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
