"""The parts that both node jobs hold, each its own copy."""

from __future__ import annotations

import os
import resource
import signal
import time
from pathlib import Path
from types import ModuleType

import classad2
import pytest

import job_ctl
import mc_grace
from tests.node_fakes import shell_tool

by_job = pytest.mark.parametrize("job", [job_ctl, mc_grace], ids=lambda job: str(job.__name__))


@pytest.mark.parametrize(
    "value",
    [
        2**63, -(2**63) - 1, float("nan"), float("inf"), 1.5, None, b"a\nb", "a\nb", "a\tb", 'a"b',
        "a\\b",
        "caf\u00e9", ["ok", "\x7f"], {"a": 1}, object(),
    ],
)  # fmt: skip
def test_what_a_classad_would_misread_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="no ClassAd literal"):
        mc_grace.render_ad({"X": value})


def test_what_a_classad_reads_as_it_is_meant() -> None:
    meant = {
        "Least": -(2**63),
        "Most": 2**63 - 1,
        "Yes": True,
        "Text": "a b",
        "List": ["x", [1, False]],
    }
    ad = classad2.parseOne(mc_grace.render_ad({**meant, "Sum": b"1 + 1", "Pair": (1, "y")}))
    assert {name: ad.eval(name) for name in meant} == meant
    assert (ad.eval("Sum"), ad.eval("Pair")) == (2, [1, "y"])

    with pytest.raises(ValueError, match="bytes"):
        mc_grace.render_ad({"X": "x" * 9000})


@by_job
def test_options_go_in_pairs_and_the_last_wins(job: ModuleType) -> None:
    values, problems = job.parse_arguments(
        ["--startd", "a", "--timeout-seconds", "7", "--startd", "b"]
    )
    assert (values["--startd"], values["--timeout-seconds"], problems) == ("b", "7", [])


@by_job
@pytest.mark.parametrize(
    "number", ["", "0", "301", "-1", "+1", "1.0", "1e1", " 1", "\u0665", "\u00b2", "9" * 5000]
)
def test_a_number_is_a_whole_one_in_its_range(job: ModuleType, number: str) -> None:
    values, problems = job.parse_arguments(["--timeout-seconds", number])
    assert values["--timeout-seconds"] == "10"
    assert len(problems) == 1
    assert "from 1 to 300" in problems[0]


def said(job: ModuleType, output: str) -> tuple[object, bool]:
    """Reason code of an ad, and whether it lets jobs in."""
    ad = classad2.parseOne(output.replace("- update:true\n", ""))
    safe = ad["MC_GRACE"] is False if job is mc_grace else list(ad["t1_Targetcores"]) == [0, 0]
    return ad["t1_McGraceReason" if job is mc_grace else "t1_JobCtlReason"], safe


@by_job
def test_a_tool_that_is_not_there_hangs_or_kills_the_job(
    job: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hangs, kills = (
        shell_tool(tmp_path / name, script)
        for name, script in (("a", "exec sleep 600"), ("b", "kill -KILL $PPID"))
    )
    runs = [("/nonexistent", 75, "no-startd"), (hangs, 75, "timeout")]
    runs += [(kills, 1, "internal-error")] if job is mc_grace else []
    for tool, status, code in runs:
        assert job.main(["--condor-status", tool, "--timeout-seconds", "1"]) == status
        printed = capfd.readouterr()
        assert said(job, printed.out) == (code, True)
        assert code != "no-startd" or tool in printed.err
    os.wait()  # the process that hung was left behind


@by_job
def test_no_more_descriptors(job: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, limits[1]))
    try:
        status = job.main([])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (status, *said(job, capfd.readouterr().out)) == (1, "internal-error", True)


def test_a_child_that_has_not_run_yet_is_killed_too() -> None:
    """On a busy machine the deadline can pass before a child has made its process group."""
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    assert job_ctl.finish(child, time.monotonic()) == job_ctl.TOO_LATE
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
