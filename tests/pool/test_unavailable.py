"""Publications stand while daemons hang or die, and while cycles meet."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.waiting import HANG_SECONDS, wait_for
from sharectl.publish import text
from tests.pool import clocks
from tests.pool.deployed import configure, jobs, run, snippet
from tests.pool.sharectl_command import Sharectl

CENTRAL, FIRST, SECOND = "cm-1.example.org", "ap-1.example.org", "ap-2.example.org"
SPEC = BoxSpec(
    execute_points=(
        ExecutePoint("wn-001.example.org", cores=24, power_hs06=240.0, config=snippet()),
    ),
    access_points=(FIRST, SECOND),
    # The master waits so long before it starts a dead daemon; HTCondor's own are 9 s and more.
    config="MASTER_BACKOFF_CONSTANT = 2\n",
)
DEADLINES = dict.fromkeys(("collector_deadline_seconds", "schedd_deadline_seconds"), 3.0)


def prepare(box: Box) -> None:
    """Call for a target: atlas holds the node, multicore jobs of cms wait."""
    box.submit(jobs("atlas", 4, 6, 600), FIRST)
    run(box, 6)
    box.submit(jobs("cms", 8, 2, 600), SECOND)


@pytest.fixture
def sharectl(pool: Box, tmp_path: Path) -> Sharectl:
    """The command, which has published a target."""
    command = Sharectl(pool, tmp_path)

    def published() -> bool:
        command.run("cycle", pool=DEADLINES)
        return text.FilePublisher(command.targets).look()[0].targets == 1

    wait_for(published, "the collector knows that the jobs run, and a target is published")
    return command


DENIED = "\n".join(
    f"{{daemon}}.ALLOW_{level} = nobody@nowhere.invalid"
    for level in ("READ", "WRITE", "DAEMON", "NEGOTIATOR", "ADMINISTRATOR", "CONFIG")
)
"""READ comes with each of the others."""
WHO = r"READ is denied to pool@example.org \(by CLAIMTOBE\): write {daemon}.ALLOW_READ = "
MESSAGES: dict[str, dict[str, Any]] = {
    "collector: 127.0.0.1:1: nobody listens at 127.0.0.1:1: COLLECTOR does not run there": {
        "collector": "127.0.0.1:1"
    },
    "collector: nowhere.invalid:9618: no such host: nowhere.invalid (": {
        "collector": "nowhere.invalid:9618"
    },
    "schedd ap-9.example.org: the collector does not know it; start it, or correct pool.schedds": {
        "schedds": ["ap-9.example.org", FIRST]
    },
}


def test_nobody_listening_no_such_host_and_no_such_schedd_are_three_messages(
    sharectl: Sharectl,
) -> None:
    before = contents(sharectl)
    for message, section in MESSAGES.items():
        cycle = sharectl.run("cycle", expect=75, pool={**DEADLINES, **section})
        assert f"sharectl: {message}" in cycle.stderr
        # Verbs that decide refuse too, and print nothing that could be taken for an answer.
        for verb in ("errors", "plan"):
            refused = sharectl.run(verb, expect=75, pool={**DEADLINES, **section})
            assert (refused.stdout, f"sharectl: {message}" in refused.stderr) == ("", True)
    assert contents(sharectl) == before


@pytest.mark.parametrize(
    ("host", "daemon", "named"),
    [(SECOND, "SCHEDD", f"schedd {SECOND}"), (CENTRAL, "COLLECTOR", "collector")],
)
def test_a_daemon_that_denies_read_is_named_with_who_it_knows(
    sharectl: Sharectl, host: str, daemon: str, named: str
) -> None:
    box = sharectl.box
    denied = re.compile(rf"^sharectl: {named}: (\S+: )?{WHO.format(daemon=daemon)}", re.MULTILINE)

    def is_denied() -> bool:
        cycle = sharectl.run("cycle", expect=None, pool=DEADLINES)
        return cycle.returncode == 75 and denied.search(cycle.stderr) is not None

    try:
        configure(box, host, DENIED.format(daemon=daemon))
        wait_for(is_denied, "a cycle says that READ is denied, to whom, and what to write")
    finally:
        configure(box, host)
    recovered(sharectl)


AHEAD_SECONDS = 2 * 86400


def test_after_a_cycle_with_a_clock_two_days_ahead_the_next_one_begins_again_from_now(
    sharectl: Sharectl, tmp_path: Path
) -> None:
    shift = clocks.shifted(tmp_path / "shift", AHEAD_SECONDS)
    replace(sharectl, environment=shift).run("cycle", pool=DEADLINES)
    assert sequence_of(sharectl.targets) > time.time() + AHEAD_SECONDS - 600
    assert "nodes refuse such a plan (future)" in sharectl.run("status", expect=1).stderr
    first = sharectl.run("cycle", expect=74, pool=DEADLINES)
    assert "the clock of this machine was ahead then" in first.stderr
    assert abs(sequence_of(sharectl.targets) - time.time()) < 300
    assert text.FilePublisher(sharectl.targets).look()[0].targets == 1
    second = sharectl.run("cycle", pool=DEADLINES)
    assert second.stderr == ""


def test_many_cycles_at_once_publish_one_after_the_other_and_nothing_half_written(
    sharectl: Sharectl,
) -> None:
    started = [sharectl.start("cycle", "--json") for _ in range(5)]
    seen = []
    while any(cycle.poll() is None for cycle in started):
        # Raises if it is not whole.
        seen.append(text.FilePublisher(sharectl.targets).look()[0])
    for cycle in started:
        out, err = cycle.communicate(timeout=HANG_SECONDS)
        assert cycle.returncode == 0, f"{out}\n{err}"
    sequences = [file.sequence for file in seen if file.sequence is not None]
    assert sequences == sorted(sequences)
    assert {file.targets for file in seen} == {1}
    rows = sharectl.errors_log.read_text().splitlines()
    assert {len(row.split()) for row in rows if not row.startswith("#")} == {10}
    left = {path.name for path in sharectl.folder.iterdir() if path.suffix != ".yaml"}
    kept = {"state.json", "places.json", "lock", "ledger"}
    assert left == {"sharectl.txt", "AcctGroup_hs06.txt", "shares_Error.log"} | kept


def contents(sharectl: Sharectl) -> dict[str, Any]:
    """All that a reader of sharectl's files could see, and when the targets were written."""
    published = sharectl.targets, sharectl.jobs_file, sharectl.errors_log
    return {
        "written": sharectl.targets.stat().st_mtime_ns,
        **{path.name: path.read_bytes() for path in published},
    }


def sequence_of(path: Path) -> int:
    sequence = text.FilePublisher(path).look()[0].sequence
    assert sequence is not None
    return sequence


def recovered(sharectl: Sharectl) -> None:
    """Wait until a cycle is complete, and publishes the target again, by itself."""
    before = sequence_of(sharectl.targets)
    wait_for(
        lambda: sharectl.run("cycle", expect=None, pool=DEADLINES).returncode == 0,
        "a cycle is complete again",
    )
    assert sequence_of(sharectl.targets) > before
