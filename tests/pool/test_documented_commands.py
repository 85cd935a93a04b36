"""Every command line of the README and of docs/, as written, on a pool with their nodes."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.waiting import HANG_SECONDS
from sharectl.ledger.ledger import PLACE, Ledger
from tests.made_cycles import made
from tests.pool.deployed import jobs, list_idle_jobs_again, snippet
from tests.pool.sharectl_command import CHECKOUT, Sharectl

NODE, ACCESS = "cn-609-05-06", "ap-1.example.org"
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
PROGRAMS = ("sharectl", "condor_status", "condor_q", "condor_userprio", "condor_history", "jq")
OFFLINE = {"--run-time", "--history", "--slots", "examples", "render", "70-consumption.conf"}
"""Words of commands that need no configuration."""
SHORT = {
    "simulate": ["--set", "warmup_hours=1", "--days", "0.1", "--seeds", "1", "--jobs", "1"],
    "tune": ["--trials", "2", "--batch", "2", "--seeds", "1", "--days", "0.1"],
    "learn": [],
    "init": [],
}
"""Verb that needs no configuration -> options that end it sooner."""
WRAPPER = f"""\
#!{sys.executable}
# The command as its page has it; its configuration is the site's.
import os, sys
words = sys.argv[1:]
offline = {OFFLINE!r} & set(words) or words[:2] == ["consumption", "check"]
words += {SHORT!r}.get(words[0], [] if offline else ["--config", "CONFIG"])
# A first configuration stands where there is none yet.
site = "first.yaml" if words[0] == "init" else "CONFIG"
words = [site if word == "/etc/sharectl/sharectl.yaml" else word for word in words]
os.execv(sys.executable, [sys.executable, "-m", "sharectl", *words])
"""
FAILURES = {"status": {1}, "check": {1}, "consumption": {1}, "pledges": {2}}
"""Exit codes, beside 0, that a verb may have on this pool: findings, or no pledges of CRIC."""


def lines_of_blocks(page: Path) -> Iterator[str]:
    """Lines of fenced and indented blocks, continued lines joined."""
    fenced, before = False, ""
    for line in page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if line.startswith("```"):
            fenced = not fenced and line[3:] in ("sh", "console")
        elif fenced or (line.startswith("    ") and (not before or before.startswith("    "))):
            yield line
        before = line


def commands() -> dict[str, str]:
    """Command line of any page, without comment -> the first page that has it."""
    pages: dict[str, str] = {}
    for page in PAGES:
        for line in lines_of_blocks(page):
            text = re.sub(r"\s+#.*$", "", line.strip()).removeprefix("$ ")
            if text.split(" ", 1)[0] in PROGRAMS:
                pages.setdefault(text, page.name)
    return pages


SPEC = BoxSpec(
    execute_points=(
        ExecutePoint(f"{NODE}.example.org", cores=16, power_hs06=160.0, config=snippet()),
    ),
    access_points=(ACCESS,),
    groups={"cms": 0.5, "alice": 0.5},
)


@pytest.fixture(scope="module")
def shell(pool: Box, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment with the pool, a configuration and a ledger with two of its cycles."""
    folder, state = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("state")
    pool.submit(jobs("cms", 1, 3, 1), ACCESS)
    pool.wait_until(lambda: pool.complete() and not pool.jobs(), "jobs have ended")
    pool.submit(jobs("alice", 1, 12, 600), ACCESS)
    waiting = pool.submit(jobs("cms", 8, 4, 600), ACCESS)

    def run() -> bool:
        list_idle_jobs_again(pool, ACCESS)
        return len(pool.jobs("JobStatus == 2")) >= 12

    pool.wait_until(run, "jobs run")
    month_ago = int(time.time()) - 40 * 86400
    for number in range(9):
        record, seen = made(number)
        then = month_ago + 1020 * number
        seen = replace(seen, taken_at=then, running=())
        Ledger(state / PLACE).record(replace(record, taken_at=then), seen)
    sharectl = Sharectl(pool, state)
    site: dict[str, Any] = {"groups": {"cms": {"pledge_hs06": 800}, "alice": {"pledge_hs06": 200}}}
    for _ in range(2):
        sharectl.run("cycle", **site)
    (config,) = state.glob("sharectl-*.yaml")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "sharectl").write_text(WRAPPER.replace("CONFIG", str(config)))
    (programs / "sharectl").chmod(0o755)
    (folder / "other.yaml").write_bytes(config.read_bytes())
    (folder / "config.d").symlink_to(CHECKOUT / "config.d")
    environment = {"PYTHONPATH": str(CHECKOUT / "central"), **pool.client_environment}
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    job = '"JobStatus": 4, "RequestCpus": 1, "AccountingGroup": "cms.bob", "JobStartDate": 1, '
    job += '"CompletionDate": 901, "RemoteWallClockTime": 900.0'
    listed = ", ".join(f'{{{job}, "ProcId": {number}}}' for number in range(40))
    (folder / "jobs.json").write_text(f"[{listed}]")
    (folder / "jobs.json.gz").write_bytes(gzip.compress(f"[{listed}]".encode()))
    return {
        **environment,
        "PATH": path,
        "FOLDER": str(folder),
        "STATE": str(state),
        "JOB": f"{waiting}.0",
    }


COMMANDS = commands()
assert len(COMMANDS) > 30


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=f"{page}: {text}") for text, page in COMMANDS.items()]
)
def test_a_command_of_the_pages_runs(text: str, pool: Box, shell: dict[str, str]) -> None:
    text = text.replace("4711.0", shell["JOB"]).replace("/var/lib/sharectl", shell["STATE"])
    text = text.replace("/var/www", shell["FOLDER"]).replace("/etc/condor", shell["FOLDER"])
    program, verb = (*text.split(), "")[:2]
    if program.startswith("condor_"):
        text, _, output = text.partition(" > ")
        printed = pool.run(["sh", "-c", f"cd {CHECKOUT} && {text}"]).stdout
        if output:
            (Path(shell["FOLDER"]) / output).write_text(printed)
        return
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", text],
        cwd=shell["FOLDER"],
        env=shell,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    allowed = {0} | FAILURES.get(verb, set())
    assert done.returncode in allowed, f"{text}\n{done.stdout}\n{done.stderr}"
