"""Scenarios of other sites: their logs, what is left out of them, what they lack; whole nodes.

Notes say what a scenario lacks, and what of its log is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest

from sharectl.cadence.file import JOBS_COMMAND
from sharectl.cli.main import main
from sharectl.errors import ConfigError, InputError
from sharectl_lab.scenarios import file
from sharectl_lab.scenarios.omissions import notes_of
from sharectl_lab.scenarios.strategies import read_strategies
from sharectl_lab.study.run import Run
from sharectl_lab.study.run import simulate as run_strategy
from sharectl_lab.twin.answers import NOTHING
from sharectl_lab.twin.look import Looks

POOL = """\
nodes: [{name: wn, count: 2, cores: 16}]
groups: {cms: {pledge_hs06: 320}}
days: 1
"""
SWF = f'{POOL}swf: {{file: log.swf, groups: {{"*": cms}}}}\n'
HISTORY = f"{POOL}history: {{file: jobs.json}}\nwarmup_hours: 0\n"
STREAM = 'jobs: [{group: cms, run_time: "exponential:3600", keep_pending: 20}]\n'
WITH_START = f"{POOL}{STREAM}start: {{site: 'MY.HEALTHY =?= True'}}\nwarmup_hours: 0\n"


class Simulated(NamedTuple):
    """Documents of a run of the strategy `nothing`, and what a person sees."""

    code: int
    document: dict[str, Any]
    screen: str
    page: str

    @property
    def notes(self) -> list[str]:
        return list(self.document["notes"])

    @property
    def strategy(self) -> dict[str, Any]:
        (strategy,) = self.document["strategies"]
        return dict(strategy)


Simulate = Callable[[str], Simulated]


def notes(text: str, folder: Path = Path()) -> list[str]:
    """Notes on a scenario, which is not run."""
    return notes_of(file.parse(text, "mine.yaml", folder))


@pytest.fixture
def simulate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Simulate:
    """Run of a scenario's text, whose files are in ``tmp_path``."""

    def run(text: str) -> Simulated:
        path, out = tmp_path / "mine.yaml", tmp_path / "out"
        path.write_text(text)
        words = ["simulate", str(path), "--strategies", "nothing", "--jobs", "1", "-o", str(out)]
        code = main(words)
        screen = capsys.readouterr().out
        document = json.loads((out / "outcome.json").read_text())
        return Simulated(code, document, screen, (out / "index.html").read_text())

    return run


def is_shown(simulated: Simulated, note: str) -> bool:
    """Tell if a note is on the screen, on the page and in JSON."""
    on_page = note.replace("'", "&#39;").replace('"', "&#34;")
    on_screen = " ".join(simulated.screen.split())
    return note in simulated.notes and note in on_screen and on_page in simulated.page


def row(at: int, seconds: int, cores: int = 8, memory_kib: int = -1) -> str:
    """Job of a log in SWF."""
    return f"1 {at} 0 {seconds} {cores} -1 -1 {cores} -1 {memory_kib} 1 1 1 1 1 -1 -1 -1\n"


def write(folder: Path, *rows: str) -> None:
    (folder / "log.swf").write_text("".join(rows))


# ---- jobs of a history that are left out

NO_CORES = "jobs left out: 1 (neither CpusProvisioned nor RequestCpus)"
NO_SLOT = "jobs left out: 1 (its universe needs no slot)"
NO_TIME = "jobs left out: 1 (RemoteWallClockTime 0 or not there: it never ran)"
NO_DATE = "jobs left out: 1 (no QDate: when it was submitted is not known)"
LATE = "jobs left out: 1 (submitted after the days that are simulated)"
OTHER = (
    "1 of 2 jobs of the log count as other, because groups does not have: {}; write it there, or a "
    "group of the scenario in history.groups"
)
AT = 1_700_000_000


def job(**attributes: Any) -> dict[str, Any]:
    usual = {"AccountingGroup": "cms.a", "JobUniverse": 5, "QDate": AT, "RequestCpus": 1}
    return {**usual, "RemoteWallClockTime": 50_000.0, **attributes}


def test_jobs_that_are_left_out_are_told(simulate: Simulate, tmp_path: Path) -> None:
    expression = job(RequestCpus="\\/Expr(TARGET.TotalCpus)\\/")
    jobs = [job(), expression, job(JobUniverse=7)]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs, indent=1))
    simulated = simulate(HISTORY)
    assert (simulated.code, simulated.notes) == (0, [NO_CORES, NO_SLOT])
    assert [is_shown(simulated, note) for note in (NO_CORES, NO_SLOT)] == [True, True]


@pytest.mark.parametrize(
    ("other", "note"),
    [
        (job(RemoteWallClockTime=-5.0), NO_TIME),
        (job(RemoteWallClockTime=None, JobStatus=2), NO_TIME),
        (job(QDate=None), NO_DATE),
        (job(QDate=-1), NO_DATE),
        (job(QDate=AT + 86_400), LATE),
        (job(AccountingGroup="lhcb.b"), OTHER.format("lhcb")),
        (job(AccountingGroup=None), OTHER.format("no group")),
        (job(AccountingGroup="CMS.b", QDate=AT - 600), None),
    ],
)
def test_each_reason_has_its_note(
    tmp_path: Path, other: dict[str, Any], note: Optional[str]
) -> None:
    (tmp_path / "jobs.json").write_text(json.dumps([job(), other]))
    assert notes(HISTORY, tmp_path) == ([note] if note else [])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "no job with a known run time is in it (no job)"),
        (json.dumps([job(JobUniverse=7)]), "(1 left out: its universe needs no slot)"),
        # By condor_history -l.
        ('AccountingGroup = "cms"\nQDate = 17\n\n', f"; make the file with {JOBS_COMMAND}"),
    ],
)
def test_a_log_without_a_job_is_an_error(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "jobs.json").write_text(content)
    with pytest.raises(InputError) as refused:
        file.parse(HISTORY, "mine.yaml", tmp_path)
    assert words in str(refused.value)


# ---- jobs that fit nowhere


def test_a_job_that_fits_on_no_node_is_told_and_wants_no_core(
    simulate: Simulate, tmp_path: Path
) -> None:
    write(tmp_path, row(0, 86_000, 100), row(0, 86_000, 4))
    simulated = simulate(f"{SWF}warmup_hours: 0\n")
    (note,) = simulated.notes
    assert note.startswith("no node fits 1 of 2 jobs of the log: they never start (cores: 100, ")
    assert (simulated.code, is_shown(simulated, note)) == (0, True)
    by_cause = simulated.strategy["idle_core_hours_by_cause"]
    assert simulated.strategy["idle_core_hours"]["mean"] < 1
    assert by_cause["unmatchable"]["mean"] == pytest.approx(28 * 24, rel=0.01)
    write(tmp_path, row(0, 86_000, 17), row(0, 86_000, 100))
    assert simulate(f"{SWF}warmup_hours: 0\n").code == 65


THIN = "}, {name: thin, cores: 32, memory_mib: 400"


@pytest.mark.parametrize(
    ("stream", "node", "words"),
    [
        ("cores: 17", "", "no node fits jobs of cms: they never start (cores: 17, and the"),
        ("memory_mib: 70000", "", "memory MiB: 70000, and the largest slot has 65536"),
        ("disk_mib: 3", ", disk_mib: 2", "disk KiB: 3072, and the largest slot has 2048"),
        ("custom: {gpus: 2}", ", custom: {gpus: 1}", "gpus: 2, and the largest slot has 1"),
        ("cores: 9", ", slots: 2", "cores: 9, and the largest slot has 8"),
        ("cores: 16, memory_mib: 500", THIN, None),
        ("cores: 32, memory_mib: 500", THIN, "no slot has enough of all resources together"),
    ],
)
def test_each_resource_of_streams(stream: str, node: str, words: Optional[str]) -> None:
    pool = POOL.replace("16}", f"16{node}}}")
    seen = notes(f"{pool}jobs: [{{group: cms, keep_pending: 3, {stream}}}]\n")
    assert len(seen) == (words is not None)
    assert [note for note in seen if str(words) not in note] == []


# ---- logs that end too early


def test_a_log_that_ends_in_the_warm_up_is_nothing_to_compare(
    simulate: Simulate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, row(0, 600), row(3600, 600))
    simulated = simulate(SWF)
    short, nothing = simulated.notes
    assert short.startswith("the log has jobs for 1.17 hours, of which the first 24 do not count")
    assert nothing.startswith(NOTHING)
    assert (simulated.code, is_shown(simulated, short)) == (65, True)
    assert "shortfall" not in simulated.screen
    write(tmp_path, row(0, 90_000), row(3600, 600))  # one runs on after the warm-up
    simulated = simulate(SWF)
    assert (simulated.code, len(simulated.notes)) == (0, 1)
    write(tmp_path, row(0, 600))
    scenario, policy = tmp_path / "mine.yaml", tmp_path / "policy.json"
    few = ["--hours", "1", "--generations", "1", "--jobs", "1"]
    for words in (
        ["tune", str(scenario), "--over", "control.law=latest|pid", "--trials", "1"],
        ["learn", str(scenario), *few, "-o", str(policy)],
    ):
        assert main(words) == 65
        assert capsys.readouterr().out == ""
    assert not policy.exists()


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([row(0, 1)], 1),
        ([row(46_000, 600), row(0, 600)], 0),  # half of the time, unsorted
        ([row(0, 50_000), row(100_000, 600)], 1),
    ],
)
def test_a_log_shorter_or_longer_than_the_days(tmp_path: Path, rows: list[str], count: int) -> None:
    write(tmp_path, *rows)
    assert len(notes(f"{SWF}warmup_hours: 0\n", tmp_path)) == count


# ---- START that reads an attribute of a STARTD_CRON job, which the twin does not run


def of_nodes(name: str, reader: str = "START") -> str:
    return f"no node of the scenario has {name}, and this is undefined in {reader}: "


def of_jobs(name: str) -> str:
    return f"no job of the scenario has {name}, and this is undefined in "


def starts(seen: list[str], *expected: str) -> bool:
    """True if the notes begin so, and there is no other."""
    return len(seen) == len(expected) and all(map(str.startswith, seen, expected))


def test_it_says_so_and_how_to_give_it(simulate: Simulate) -> None:
    simulated = simulate(WITH_START)
    assert simulated.code == 65
    assert starts(simulated.notes, of_nodes("HEALTHY"), NOTHING)
    assert [is_shown(simulated, note) for note in simulated.notes] == [True, True]
    remedied = simulate(WITH_START.replace("16}", "16, attributes: {Healthy: true}}"))
    assert (remedied.code, remedied.notes) == (0, [])


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("MY.Tenant == TARGET.Tenant", [of_nodes("Tenant"), of_jobs("Tenant")]),
        ("NODE_IS_HEALTHY && (Cpus > 0)", [of_nodes("NODE_IS_HEALTHY")]),
        ("RequestCpus > 0 && MY.Cpus > 0 && Memory > 0 && time() > 0 && CurrentTime > 0", []),
        ("(TARGET.RequestGPUs ?: 0) == 0", []),
        ('Owner != "root" && TARGET.JobUniverse == 5 && MY.SlotType != "Static"', []),
    ],
)
def test_each_scope(start: str, expected: list[str]) -> None:
    text = WITH_START.replace("MY.HEALTHY =?= True", start)
    assert starts(notes(text), *expected)


def test_requirements_of_jobs() -> None:
    requirements = 'requirements: "TARGET.HasCvmfs && MY.Wish =!= 3 && TARGET.Cpus > 0"'
    pool = f"{POOL}{STREAM.replace('group:', f'{requirements}, group:')}"
    assert starts(
        notes(pool), of_nodes("HasCvmfs", "the requirements of cms.user"), of_jobs("Wish")
    )
    nodes = pool.replace("16}", "16, attributes: {HasCvmfs: true}}")
    assert notes(nodes.replace("group: cms", "group: cms, attributes: {Wish: 1}")) == []


# ---- a job that is submitted in the first second of a log counts, as all later ones do


@pytest.mark.parametrize(
    ("submitted", "warmup_hours", "starts"),
    [((0, 600), 0, 2), ((0, 0, 1), 0, 3), ((0, 3600, 7200), 1, 2), ((0,), 0, 1)],
)
def test_the_start_and_the_wait_of_a_job_of_the_first_second_count(
    tmp_path: Path, submitted: tuple[int, ...], warmup_hours: int, starts: int
) -> None:
    """Also a job that is submitted, and starts, as the warm-up ends."""
    write(tmp_path, *(row(at, 3600) for at in submitted))
    scenario = file.parse(f"{SWF}warmup_hours: {warmup_hours}\n", "mine", tmp_path)
    outcome = run_strategy(scenario, read_strategies("nothing")[0], 1)
    cms = outcome.groups["cms"]
    assert cms.starts_by_cores == {8: starts}
    assert cms.waits_by_cores[8].jobs == starts
    assert cms.waits_by_cores[8].longest_seconds < 90


# ---- rows that are no jobs: errors with their lines, or skipped and counted by a key

ROW = row(0, 3600)
BROKEN = f"; a log\n{ROW}1 2 3\n{row(0, -40)}{ROW}{ROW.replace(' 8 ', ' x ')}"
JOB = json.dumps(job())
HISTORIES = {
    "JSON lines": f"{JOB}\n{JOB[:30]}\n{JOB}\nnothing\n{JOB}\n{JOB[:-1]}",
    "pretty": f"[\n{JOB},\n{JOB[:9]}!!,\n{JOB},\n<>,\n{JOB}\n,\n{{",
    "large": f"{JOB}\n{JOB[:-1]}\n{' ' * 2**20}\n{JOB}\n<<\n{' ' * 2**20}{JOB[:-1]}\n{JOB}\n{{",
}


def with_log(kind: str, *, skip: bool) -> str:
    more = ", skip_broken: true" if skip else ""
    return f'{POOL}warmup_hours: 0\n{kind}: {{file: log, groups: {{"*": cms}}{more}}}\n'


@pytest.mark.parametrize(
    ("kind", "text", "lines"),
    [
        ("swf", BROKEN, [3, 4, 6]),
        ("history", HISTORIES["JSON lines"], [2, 4, 6]),
        ("history", HISTORIES["pretty"], [3, 5, 8]),
        ("history", HISTORIES["large"], [2, 5, 6, 8]),
        ("history", HISTORIES["large"].replace("\n", "\r\n"), [2, 5, 6, 8]),
    ],
)
def test_broken_rows_are_errors_all_at_once_or_counted(
    tmp_path: Path, kind: str, text: str, lines: list[int]
) -> None:
    log = tmp_path / "log"
    log.write_bytes(text.encode())
    with pytest.raises(InputError) as refused:
        file.parse(with_log(kind, skip=False), "mine.yaml", tmp_path)
    *problems, remedy = refused.value.problems
    words = " ".join(problems)
    assert [
        line for line in lines if f"{log}:{line}:" not in words and f" {line}" not in words
    ] == []
    assert remedy == f"{log}: skip_broken: true beside file: passes over such rows, and counts them"

    read = file.parse(with_log(kind, skip=True), "mine.yaml", tmp_path)
    count = len(lines)
    assert read.notes == (f"jobs left out: {count} (broken row, passed over by skip_broken)",)
    assert len(read.logged) == (2 if kind == "swf" else 3)


# ---- whole nodes: `RequestCpus = TARGET.TotalCpus` has no value for all nodes, of two sizes here

WHOLE_NODES = """\
nodes: [{name: small, count: 2, cores: 8}, {name: large, count: 1, cores: 16}]
groups: {cms: {pledge_hs06: 320}}
warmup_hours: 0
days: 0.5
jobs: [{group: cms, whole_node: true, run_time: "3600", keep_pending: 6}]
"""


def test_a_job_takes_all_cores_of_its_node(simulate: Simulate) -> None:
    simulated = simulate(WHOLE_NODES)
    assert simulated.code == 0
    assert not simulated.notes
    assert simulated.strategy["groups"]["cms"]["waits_by_cores"].keys() == {"8", "16"}
    assert simulated.strategy["used_ratio"]["mean"] > 0.9


def test_no_node_is_whole_while_another_job_runs_there(simulate: Simulate) -> None:
    single = '{group: cms, run_time: "864000", at_start: 3}'
    simulated = simulate(WHOLE_NODES.replace("jobs: [", f"jobs: [{single}, "))
    starts = simulated.strategy["groups"]["cms"]["waits_by_cores"]
    assert {"1", "16"} <= starts.keys()


def test_waiting_jobs_count_by_the_sizes_of_nodes() -> None:
    """As a snapshot of a pool shares them out."""
    (nothing,) = read_strategies("nothing")
    run = Run(file.parse(WHOLE_NODES, "mine.yaml"), nothing, 1, 3600.0)
    run.until(600.0)
    looks = Looks(run.twin, run.meets)
    pending = looks.take([None] * 3, {}).snapshot.pending
    assert {jobs.cores: jobs.jobs for jobs in pending if jobs.placeable} == {8: 4, 16: 2}


def test_cores_beside_a_whole_node_are_refused() -> None:
    with pytest.raises(ConfigError, match="whole_node takes all cores of a node; leave cores out"):
        notes(WHOLE_NODES.replace("whole_node: true", "whole_node: true, cores: 4"))
