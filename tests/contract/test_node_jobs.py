"""The node jobs as HTCondor meets them: files, run as programs, in every kind of trouble."""

from __future__ import annotations

import ast
import inspect
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
from poolbox.waiting import HANG_SECONDS
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
WITH_TARGETS = (job_ctl, target, target_https, target_collector)
# The same text in several files.
COMMON = {
    "is_number": PROGRAMS,
    "parse_arguments": PROGRAMS,
    "is_group": (job_ctl, target),
    "complain": WITH_TARGETS,
    "too_late": (target_https, target_collector),
}
REASONS = {**target_https.REASONS, **target_collector.REASONS, **target.REASONS, **job_ctl.REASONS}
ATTRIBUTES = {
    job_ctl: {line.split(" ")[0] for line in job_ctl.AD.splitlines()},
    mc_grace: {"MC_GRACE", "t1_McGraceReason", "t1_McGraceTime"},
}
READ_BY_HTCONDOR_BYTES = 9 * 1024
NODE = "cn-1"
ANSWERS = {job_ctl: held(0) + job_of("alice.prod", 8), mc_grace: free(1, 8)}
DEADLINE_SECONDS = 20
NEWS = "- update:true\n"

by_program = pytest.mark.parametrize("job", PROGRAMS, ids=lambda job: str(job.__name__))
by_job = pytest.mark.parametrize("job", JOBS, ids=lambda job: str(job.__name__))


def path_of(job: ModuleType) -> Path:
    """File that is installed."""
    return SOURCES / f"{job.__name__}.py"


def completed(
    job: ModuleType, *argv: str, command: tuple[str, ...] = (sys.executable, "-I", "-S")
) -> subprocess.CompletedProcess[bytes]:
    """Run of a job as a program."""
    words = [*command, str(path_of(job)), *argv]
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=HANG_SECONDS
    )


class Outcome(NamedTuple):
    """Exit status, ad and standard error of a run."""

    status: int
    ad: classad2.ClassAd
    errors: str

    @property
    def reason(self) -> str:
        """The code."""
        return str(self.ad["t1_McGraceReason" if "MC_GRACE" in self.ad else "t1_JobCtlReason"])

    @property
    def lets_jobs_in(self) -> bool:
        """True if the ad has neither a target nor grace."""
        if "MC_GRACE" in self.ad:
            return self.ad["MC_GRACE"] is False
        names = ("t1_TargetGroups", "t1_Targetcores", "t1_TargetUntil")
        return [self.ad[name] for name in names] == [["none", "none"], [0, 0], 0]


def outcome(
    job: ModuleType, *argv: str, command: tuple[str, ...] = (sys.executable, "-I", "-S")
) -> Outcome:
    """Run the job as the startd does, and hold its output to what every run must print."""
    done = completed(job, *argv, command=command)
    text = done.stdout.decode("ascii")
    ad_text = text.removesuffix(NEWS)
    assert len(text) < READ_BY_HTCONDOR_BYTES
    ad = classad2.parseOne(ad_text)
    assert set(ad) == ATTRIBUTES[job]
    assert (ad_text.count("\n"), ad_text[-1]) == (len(ad), "\n"), "a line each"
    ran = Outcome(done.returncode, ad, done.stderr.decode())
    assert ran.status == (REASONS if job is job_ctl else job.REASONS)[ran.reason][0]
    assert bool(ran.status) <= bool(ran.errors)
    return ran


def arguments(job: ModuleType, folder: Path, tool: str = "") -> list[str]:
    """Options of a run in which all is well but, perhaps, the tool."""
    tool = tool or tool_that_prints(folder / "bin", ANSWERS[job])
    argv = ["--condor-status", tool, "--state", str(folder / f"{job.__name__}.state")]
    if job is mc_grace:
        return argv
    (folder / "sharectl.txt").write_text(f"{NODE} alice 56 cms 8\n")
    return [*argv, "--source", f"file:{folder}/sharectl.txt", "--host", NODE]


@by_program
class TestFile:
    """The file on the node."""

    def test_it_is_an_executable_for_the_systems_python_and_short_enough_to_be_read(
        self, job: ModuleType
    ) -> None:
        path = path_of(job)
        lines = path.read_text().splitlines()
        assert (path.stat().st_mode & 0o777, lines[0]) == (0o755, "#!/usr/bin/python3 -IS")
        assert len(lines) <= 400
        ast.parse(path.read_text(), feature_version=OLDEST_PYTHON)

    def test_help_is_the_manual(self, job: ModuleType) -> None:
        done = completed(job, "--help")
        text = done.stdout.decode()
        assert (done.returncode, done.stderr, text.startswith(str(job.__doc__))) == (0, b"", True)
        manuals = WITH_TARGETS if job is job_ctl else (job,)
        rows = [f"\n  {word} " for word in (*job.OPTIONS, *job.REASONS)]
        parts = [*rows, *ATTRIBUTES.get(job, ()), *(str(program.__doc__) for program in manuals)]
        assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize("name", COMMON)
def test_a_function_of_several_files_is_the_same_text(name: str) -> None:
    assert len({inspect.getsource(getattr(program, name)) for program in COMMON[name]}) == 1


def test_a_code_means_one_exit_status_in_all_programs() -> None:
    rows = [item for program in WITH_TARGETS for item in program.REASONS.items()]
    assert [code for code, row in rows if row[0] != REASONS[code][0]] == []


def test_target_py_takes_all_options_that_job_ctl_hands_on() -> None:
    own = {"--startd", "--target-program", "--update-program"}
    assert {*job_ctl.OPTIONS} - own == {*target.OPTIONS}


INSTALLED = sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python"))
PYTHONS = [
    str(path)
    for path in (Path(sys.executable), Path("/usr/bin/python3"), *INSTALLED)
    if path.exists()
]
"""Interpreters for which the jobs promise to work, among those of this machine."""


@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_of_this_machine_runs_the_jobs(python: str, tmp_path: Path) -> None:
    now, command = int(time.time()), (python, "-I")
    for job in JOBS:
        ran = outcome(job, *arguments(job, tmp_path), command=command)
        assert (ran.status, ran.reason, ran.errors, ran.lets_jobs_in) == (0, "ok", "", False)

    argv = [*arguments(job_ctl, tmp_path), "--key-file", key_file(tmp_path, "old")]
    text = document(f"{NODE} alice 56 cms 8", now=now, sequence=now, key_id="old")
    for signed, status in ((text, 0), (text.replace("56", "57"), 77)):
        (tmp_path / "sharectl.txt").write_text(signed)
        ran = outcome(job_ctl, *argv, command=command)
        assert (ran.status, ran.lets_jobs_in) == (status, bool(status))

    ad = ad_line("condor@pool", NODE, "alice", 56, "cms", 8, sequence=now, generated=now)
    argv = ["--source", "collector:", "--identity", "condor@pool", "--host", NODE]
    tool = tool_that_prints(tmp_path / "ads", ad)
    done = completed(target, *argv, "--condor-status", tool, command=command)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"order alice 56 cms 8 undefined\n" in done.stdout


TOOLS = {
    "fails": ("exit 1", "no-startd"),
    "is killed": ("kill -9 $$", "no-startd"),
    "prints nothing": ("exit 0", "no-startd"),
    "prints nothing but errors": ("yes error | head -c 100000 >&2; exit 1", "no-startd"),
    "prints a header": ("echo Name OpSys Arch State", "startd-garbled"),
    "prints numbers that are none": ("echo nan 64 8 0; echo inf 8", "startd-garbled"),
    "prints garbage": ("head -c 4000 /dev/urandom; echo", "no-startd or startd-garbled"),
    "prints half an answer": ("printf '1 64 8 0\\n\"x\" 1'", "no-startd"),
    "prints 10 MB": ("head -c 10000000 /dev/zero", "no-startd"),
    "prints for ever": ("yes", "no-startd"),
    "hangs": ("exec sleep 600", "timeout"),
    "hangs after a while": ("echo '1 64 8 0'; exec sleep 600", "timeout"),
    "closes its output and hangs": ("exec >&- 2>&- sleep 600", "timeout"),
    "stops mc_grace's child": ("kill -STOP $PPID; exec sleep 600", "timeout"),
    "kills mc_grace's child": ("kill -KILL $PPID; exec sleep 1", "internal-error"),
    "is not executable": ("", "no-startd"),
    "is not there": ("", "no-startd"),
}


@pytest.mark.parametrize(
    ("job", "trouble"),
    # job_ctl starts the tool itself.
    [(job, name) for job in JOBS for name in TOOLS if job is mc_grace or "mc_grace" not in name],
)
def test_trouble_with_condor_status_lets_jobs_in(
    job: ModuleType, trouble: str, tmp_path: Path
) -> None:
    script, reason = TOOLS[trouble]
    tool = shell_tool(tmp_path / "bin", f"echo $$ > {tmp_path}/pid\n{script}")
    if trouble == "is not executable":
        Path(tool).chmod(0o644)
    if trouble == "is not there":
        Path(tool).unlink()
    begin = time.monotonic()
    seconds = "1" if reason == "timeout" else "10"
    ran = outcome(job, *arguments(job, tmp_path, tool), "--timeout-seconds", seconds)
    assert ran.reason in reason.split(" or ")
    assert ran.lets_jobs_in
    assert time.monotonic() - begin < DEADLINE_SECONDS
    if (tmp_path / "pid").exists():
        assert ends(int((tmp_path / "pid").read_text()))


def ends(process: int) -> bool:
    """True if that process has ended, or does so before the deadline."""
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


@by_job
@pytest.mark.parametrize(
    "argv", [["--nonsense", "1"], ["JOB_CTL"], ["--timeout-seconds", "never"], ["\udcff", "\n"]]
)
def test_wrong_arguments_let_jobs_in(job: ModuleType, argv: list[str]) -> None:
    ran = outcome(job, *argv)
    assert (ran.status, ran.reason, ran.lets_jobs_in) == (2, "bad-arguments", True)


@by_job
def test_a_limit_that_allows_no_process_lets_jobs_in(job: ModuleType) -> None:
    limited = ("sh", "-c", 'ulimit -n 4; exec "$@"', "sh", sys.executable, "-I", "-S")
    ran = outcome(job, command=limited)
    assert (ran.status, ran.reason, ran.lets_jobs_in) == (1, "internal-error", True)


@pytest.mark.parametrize("script", ["", "exit 1", "rm -f $0; exec sleep 600"])
@pytest.mark.parametrize("descriptors", ["", "<&-"])
def test_the_startd_is_asked_to_send_its_ads_once_the_target_has_changed(
    script: str, descriptors: str, tmp_path: Path
) -> None:
    """HTCondor 23.9.6 starts STARTD_CRON jobs without descriptor 0."""
    program = shell_tool(tmp_path / "update", f'echo "$@" >>{tmp_path}/asked; cat >&2; {script}')
    argv = [*arguments(job_ctl, tmp_path), "--update-program", program, "--timeout-seconds", "2"]
    argv += ["--startd", "<127.0.0.1:9>"]
    command = ("sh", "-c", f'exec "$@" {descriptors}', "sh", sys.executable, "-I", "-S")
    runs = [completed(job_ctl, *argv, command=command) for _ in range(2)]
    assert (tmp_path / "asked").read_text() == "-name <127.0.0.1:9>\n", "by the first run alone"
    assert [run.stdout.endswith(NEWS.encode()) for run in runs] == [True, False]
    assert [run.returncode for run in runs] == [75 if script else 0, 0]
    ad, _, complaint = runs[0].stderr.decode().partition("\n\n")
    assert abs(int(classad2.parseOne(ad)["t1_UpdateTime"]) - time.time()) < DEADLINE_SECONDS
    assert complaint.startswith("job_ctl.py: not-sent: " if script else "")
    assert bool(complaint) == bool(script)
