"""The node jobs as HTCondor meets them: files, run as programs, in every kind of trouble."""

from __future__ import annotations

import ast
import inspect
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import classad2
import pytest

import job_ctl
import mc_grace
import target
import target_collector
import target_https
from tests.node_fakes import (
    ad_line,
    document,
    free,
    held,
    job_of,
    key_file,
    shell_tool,
    tool_that_prints,
)

SOURCES = Path(__file__).parents[2] / "startd_cron"
OLDEST_PYTHON = (3, 6)
JOBS = (job_ctl, mc_grace)
PROGRAMS = (*JOBS, target, target_https, target_collector)
# cheap ones only for what runs every minute: json, re, signal, subprocess and typing each cost more
# than a run's Python
IMPORTS = {
    job_ctl: {"os", "select", "sys", "time"},
    mc_grace: {"os", "select", "sys", "time"},
    target: {"os", "sys", "time", "hmac"},
    target_https: {"http.client", "os", "signal", "socket", "ssl", "sys", "urllib.parse"},
    target_collector: {"os", "re", "select", "sys", "time"},
}
# What several files hold is the same text in each.
COMMON = {
    "is_number": PROGRAMS,
    "parse_arguments": PROGRAMS,
    "is_group": (job_ctl, target),
    "complain": (job_ctl, target, target_https, target_collector),
    "start": (job_ctl, target_collector),
    "gather": (job_ctl, target_collector),
    "finish": (job_ctl, target_collector),
}
REASONS = {**target_https.REASONS, **target_collector.REASONS, **target.REASONS, **job_ctl.REASONS}
ATTRIBUTES = {
    job_ctl: {
        "t1_CurrentJobs", "t1_TargetGroups", "t1_Targetcores", "t1_TargetUntil",
        "t1_TargetSequence", "t1_MulticorePending", "t1_MulticorePendingUntil",
        "t1_JobCtlReason", "t1_JobCtlTime",
    },
    mc_grace: {"MC_GRACE", "t1_McGraceReason", "t1_McGraceTime"},
}  # fmt: skip
READ_BY_HTCONDOR_BYTES = 9 * 1024
NODE = "cn-1"
ANSWERS = {
    job_ctl: held(0) + job_of("alice.prod", 8),
    mc_grace: free(1, 8),
}
DEADLINE_SECONDS = 20
NEWS = "- update:true\n"

by_program = pytest.mark.parametrize("job", PROGRAMS, ids=lambda job: str(job.__name__))
by_job = pytest.mark.parametrize("job", JOBS, ids=lambda job: str(job.__name__))


def path_of(job: ModuleType) -> Path:
    """File that is installed."""
    return SOURCES / f"{job.__name__}.py"


def completed(
    job: ModuleType, *argv: str, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run of a job as a program."""
    command = [python, "-I", str(path_of(job)), *argv]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


class Outcome(NamedTuple):
    """What a run left behind."""

    status: int
    ad: classad2.ClassAd
    text: str
    errors: str

    @property
    def reason(self) -> str:
        """The code."""
        return str(
            self.ad["t1_JobCtlReason" if "t1_JobCtlReason" in self.ad else "t1_McGraceReason"]
        )


def outcome(job: ModuleType, *argv: str) -> Outcome:
    """Run the job as the startd does, and hold its output to what every run must print."""
    command = [sys.executable, "-I", "-S", str(path_of(job)), *argv]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60
    )
    text = done.stdout.decode("ascii")
    ad_text = text.removesuffix(NEWS)
    lines = ad_text.split("\n")
    assert lines[-1] == ""
    assert all(" = " in line for line in lines[:-1])
    assert len(text) < READ_BY_HTCONDOR_BYTES
    ad = classad2.parseOne(ad_text)
    assert set(ad) == ATTRIBUTES[job]
    ran = Outcome(done.returncode, ad, text, done.stderr.decode())
    reasons = REASONS if job is job_ctl else job.REASONS
    assert ran.status == reasons[ran.reason][0]
    assert bool(ran.status) <= bool(ran.errors)
    return ran


def lets_jobs_in(ad: classad2.ClassAd) -> bool:
    """Whether the ad has neither a target nor grace."""
    if "MC_GRACE" in ad:
        return ad["MC_GRACE"] is False
    groups, cores = list(ad["t1_TargetGroups"]), list(ad["t1_Targetcores"])
    return (groups, cores, ad["t1_TargetUntil"]) == (["none", "none"], [0, 0], 0)


def arguments(job: ModuleType, folder: Path, tool: str) -> list[str]:
    """Options of a run in which all is well but, perhaps, the tool."""
    if job is mc_grace:
        return ["--condor-status", tool, "--state", str(folder / "state")]
    (folder / "sharectl.txt").write_text(f"{NODE} alice 56 cms 8\n")
    return ["--condor-status", tool, *sources(folder, str(folder / "sharectl.txt"))]


def sources(folder: Path, *paths: str) -> list[str]:
    """Options for files as sources, and a memory of their own."""
    source = ",".join(f"file:{path}" for path in paths)
    return ["--source", source, "--host", NODE, "--state", str(folder / "state")]


@by_program
class TestFile:
    """What lies on the node."""

    def test_it_is_an_executable_for_the_systems_python_and_short_enough_to_be_read(
        self, job: ModuleType
    ) -> None:
        path = path_of(job)
        lines = path.read_text().splitlines()
        assert (path.stat().st_mode & 0o777, lines[0]) == (0o755, "#!/usr/bin/python3 -IS")
        assert len(lines) <= 400
        ast.parse(path.read_text(), feature_version=OLDEST_PYTHON)

    def test_it_needs_nothing_but_the_standard_library(self, job: ModuleType) -> None:
        tree = ast.parse(path_of(job).read_text())
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert imported == IMPORTS[job]

    def test_help_is_the_manual(self, job: ModuleType) -> None:
        done = completed(job, "--help")
        assert done.stdout.startswith(str(job.__doc__))
        for attribute in ATTRIBUTES.get(job, ()):
            assert attribute in done.stdout
        for word in (*job.OPTIONS, *job.REASONS):
            assert f"\n  {word} " in done.stdout


@pytest.mark.parametrize("name", COMMON)
def test_what_several_files_hold_is_the_same_text(name: str) -> None:
    assert len({inspect.getsource(getattr(program, name)) for program in COMMON[name]}) == 1


def test_the_manual_of_job_ctl_has_the_whole_story() -> None:
    done = completed(job_ctl, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    for program in (job_ctl, target, target_https, target_collector):
        assert str(program.__doc__) in done.stdout


def test_a_code_means_one_exit_status_in_all_programs() -> None:
    for program in (job_ctl, target, target_https, target_collector):
        for code, row in program.REASONS.items():
            assert row[0] == REASONS[code][0], (program, code)


def test_what_job_ctl_hands_on_target_py_takes() -> None:
    handed_on = {name for name in job_ctl.OPTIONS if name not in ("--startd", "--target-program")}
    assert handed_on == set(target.OPTIONS)


INSTALLED = sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python"))
PYTHONS = [
    str(path)
    for path in (Path(sys.executable), Path("/usr/bin/python3"), *INSTALLED)
    if path.exists()
]
"""Interpreters for which the jobs promise to work, among those of this machine."""


@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_of_this_machine_runs_the_jobs(python: str, tmp_path: Path) -> None:
    for job in JOBS:
        argv = arguments(job, tmp_path, tool_that_prints(tmp_path / "bin", ANSWERS[job]))
        done = completed(job, *argv, python=python)
        assert (done.returncode, done.stderr) == (0, "")
        assert not lets_jobs_in(classad2.parseOne(done.stdout.replace(NEWS, "")))
        (tmp_path / "state").unlink(missing_ok=True)


@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_of_this_machine_checks_a_signature(python: str, tmp_path: Path) -> None:
    now = int(time.time())
    text = document(f"{NODE} alice 56 cms 8", now=now, sequence=now, key_id="old")
    file = tmp_path / "sharectl.txt"
    tool = tool_that_prints(tmp_path / "bin", ANSWERS[job_ctl])
    argv = [*sources(tmp_path, str(file)), "--key-file", key_file(tmp_path, "old")]
    for altered, status in ((text, 0), (text.replace("56", "57"), 77)):
        file.write_text(altered)
        done = completed(job_ctl, *argv, "--condor-status", tool, python=python)
        ad = classad2.parseOne(done.stdout.replace(NEWS, ""))
        assert (done.returncode, lets_jobs_in(ad)) == (status, bool(status))


@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_of_this_machine_reads_an_ad(python: str, tmp_path: Path) -> None:
    now = int(time.time())
    ad = ad_line("condor@pool", NODE, "alice", 56, "cms", 8, sequence=now, generated=now)
    argv = ["--source", "collector:", "--identity", "condor@pool", "--host", NODE]
    tool = tool_that_prints(tmp_path / "bin", ad)
    done = completed(target, *argv, "--condor-status", tool, python=python)
    assert (done.returncode, done.stderr) == (0, "")
    assert "order alice 56 cms 8 undefined\n" in done.stdout


@by_job
def test_all_is_well(job: ModuleType, tmp_path: Path) -> None:
    ran = outcome(job, *arguments(job, tmp_path, tool_that_prints(tmp_path / "bin", ANSWERS[job])))
    assert (ran.status, ran.reason, ran.errors) == (0, "ok", "")
    assert not lets_jobs_in(ran.ad)


TOOLS = {
    "fails": ("exit 1", "no-startd"),
    "is killed": ("kill -9 $$", "no-startd"),
    "says nothing": ("exit 0", "no-startd"),
    "says nothing but errors": ("yes error | head -c 100000 >&2; exit 1", "no-startd"),
    "prints a header": ("echo Name OpSys Arch State", "startd-garbled"),
    "prints garbage": ("head -c 4000 /dev/urandom", "no-startd or startd-garbled"),
    "prints garbage with an end": (
        "head -c 4000 /dev/urandom; echo",
        "no-startd or startd-garbled",
    ),
    "prints half an answer": ("printf '1 64 8 0\\n\"x\" 1'", "no-startd"),
    "prints 10 MB": ("head -c 10000000 /dev/zero", "no-startd"),
    "prints for ever": ("yes", "no-startd"),
    "hangs": ("exec sleep 600", "timeout"),
    "hangs after a while": ("echo '1 64 8 0'; exec sleep 600", "timeout"),
    "closes its output and hangs": ("exec >&- 2>&- sleep 600", "timeout"),
    "stops the process that has started it": ("kill -STOP $PPID; exec sleep 600", "timeout"),
    "kills the process that has started it": ("kill -KILL $PPID; exec sleep 1", "internal-error"),
    "is not executable": ("", "no-startd"),
    "is not there": ("", "no-startd"),
}


@by_job
@pytest.mark.parametrize("trouble", TOOLS)
def test_trouble_with_condor_status_lets_jobs_in(
    job: ModuleType, trouble: str, tmp_path: Path
) -> None:
    script, reason = TOOLS[trouble]
    tool = shell_tool(tmp_path / "bin", f"echo $$ > {tmp_path}/pid\n{script}")
    if "the process that has started it" in trouble and job is job_ctl:
        pytest.skip("that process is the job itself")
    if trouble == "is not executable":
        Path(tool).chmod(0o644)
    if trouble == "is not there":
        Path(tool).unlink()
    begin = time.monotonic()
    seconds = "1" if reason == "timeout" else "10"
    ran = outcome(job, *arguments(job, tmp_path, tool), "--timeout-seconds", seconds)
    assert ran.reason in reason.split(" or ")
    assert lets_jobs_in(ran.ad)
    assert time.monotonic() - begin < DEADLINE_SECONDS
    if (tmp_path / "pid").exists():
        assert ends(int((tmp_path / "pid").read_text()))


def ends(process: int) -> bool:
    """Whether that process has ended, or does so before long."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        select.select([], [], [], 0.05)
    return False


LINE = f"{NODE} alice 56 cms 8\n"
FILES = {
    "missing": (None, "no-file"),
    "empty": (b"", "no-line"),
    "half-written": (b"# sharectl: 1\n# targets: 2\n" + LINE.encode(), "malformed"),
    "cut": (LINE.encode()[:-4], "truncated"),
    "binary": (bytes(range(256)) * 10, "malformed"),
    "oversized": (LINE.encode() * 100000, "too-big"),
    "full of zeros": (b"\0" * 5000, "truncated"),
    "hostile": (b'cn-1 alice"}\nSTART=False 56 cms 8\n', "malformed"),
    "hostile node": (b'cn-1"||True||"x alice 56 cms 8\n' + LINE.encode(), "malformed"),
    "in UTF-16": (LINE.encode("utf-16"), "malformed"),
    "for two": (LINE.encode() * 2, "duplicate-node"),
}


KINDS = {"folder": "unreadable", "pipe": "unsafe", "loop": "unreadable", "device": "unsafe"}


@pytest.mark.parametrize("trouble", [*FILES, *KINDS])
def test_trouble_with_the_file_lets_jobs_in(trouble: str, tmp_path: Path) -> None:
    argv = arguments(job_ctl, tmp_path, tool_that_prints(tmp_path / "bin", ANSWERS[job_ctl]))
    path = tmp_path / "sharectl.txt"
    path.unlink()
    content, reason = FILES.get(trouble) or (None, KINDS[trouble])
    if content is not None:
        path.write_bytes(content)
    elif trouble == "folder":
        path.mkdir()
    elif trouble == "pipe":
        os.mkfifo(path)
    elif trouble != "missing":
        path.symlink_to(path if trouble == "loop" else "/dev/zero")
    ran = outcome(job_ctl, *argv)
    assert (ran.reason, lets_jobs_in(ran.ad)) == (reason, True)
    assert ran.ad["t1_CurrentJobs"] == "alice:8"


@by_job
@pytest.mark.parametrize(
    "argv", [["--nonsense", "1"], ["JOB_CTL"], ["--timeout-seconds", "never"], ["\udcff", "\n"]]
)
def test_wrong_arguments_let_jobs_in(job: ModuleType, argv: list[str]) -> None:
    ran = outcome(job, *argv)
    assert (ran.status, ran.reason, lets_jobs_in(ran.ad)) == (2, "bad-arguments", True)


@by_job
def test_a_limit_that_allows_no_process_lets_jobs_in(job: ModuleType) -> None:
    program = [sys.executable, "-I", "-S", str(path_of(job))]
    limited = ["sh", "-c", 'ulimit -n 4; exec "$@"', "sh", *program]
    done = subprocess.run(limited, capture_output=True, text=True, check=False, timeout=60)
    ad = classad2.parseOne(done.stdout.replace(NEWS, ""))
    code = ad["t1_JobCtlReason" if job is job_ctl else mc_grace.REASON]
    assert (done.returncode, lets_jobs_in(ad), code) == (1, True, "internal-error")
