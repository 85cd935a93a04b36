"""Faults on the way of targets to the nodes, while jobs flow: docs/faults.md has the table.

The faults of a node's own way happen all at once, each on a node of its own: what was seen of them
is looked at afterwards, row by row.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

import target
from poolbox import Box, event_log
from poolbox.box import free_port
from poolbox.event_log import EXECUTE
from tests.logs import changes_in
from tests.pool import clocks, cycles_that_die
from tests.pool.conftest import OpenBox
from tests.pool.deployed import list_idle_jobs_again, run, shown
from tests.pool.flowing import LOOK_SECONDS, SLACK_SECONDS, Jobs, Watch, repeating
from tests.pool.own_files import execute_point, host, pool_of
from tests.pool.sharectl_command import Sharectl, plan_for
from tests.web_server import WebServer, serving, web_server

HELD_BACK, HELPED = "atlas", "cms"
CORES, MULTICORE = 9, 8
PERIOD_SECONDS = 4
KNOBS = f"NUM_CPUS = {CORES}\nSHARECTL_JOB_CTL_PERIOD_SECONDS = {PERIOD_SECONDS}\n"
VALIDITY_SECONDS = 45
MOST_STEPS, LEAST_DEATHS = 1000, 15
"""Steps of a cycle, of which every second one is a death."""

# ---- the rows: node, fault, what the node then says


def replaced_by(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def fault(file: Path) -> None:
        file.unlink()
        make(file)

    return fault


def becomes_a_link(file: Path) -> None:
    file.rename(file.with_suffix(".real"))
    file.symlink_to(file.with_suffix(".real").name)


FILES: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "wn-001": (Path.unlink, "no-file"),
    "wn-002": (lambda file: os.truncate(file, file.stat().st_size - 5), "truncated"),
    "wn-003": (replaced_by(Path.mkdir), "unreadable"),
    "wn-004": (becomes_a_link, "ok"),
    "wn-005": (replaced_by(lambda file: file.symlink_to("nothing")), "no-file"),
    "wn-006": (replaced_by(os.mkfifo), "unsafe"),
}
DIRECTORY, LINK = "wn-003", "wn-004"
# Seconds by which a clock is ahead, and the reason.
CLOCKS = {"wn-007": (3600, "expired"), "wn-008": (-3600, "future")}
SLOW, GONE, FAILING, ENDLESS = "wn-009", "wn-010", "wn-011", "wn-012"
SERVED = {SLOW: "timeout", GONE: "no-connection", FAILING: "http-status", ENDLESS: "too-big"}
ROTATED, WRONG_ORDER = "wn-013", "wn-014"
STEADY = "wn-015"
"""Its jobs of the group held back do not end, so that each cycle has a target for it."""
REASONS = {
    **{node: reason for node, (_fault, reason) in FILES.items()},
    **{node: reason for node, (_seconds, reason) in CLOCKS.items()},
    **SERVED,
    ROTATED: "ok",
    WRONG_ORDER: "bad-signature",
}
"""Node -> reason that it publishes meanwhile."""
NODES = tuple(REASONS)
MENDED = (*(node for node in FILES if node != DIRECTORY), ROTATED)
"""Nodes whose fault ends with the next publication."""
AT_ONCE = tuple(node for node in (*FILES, *SERVED, WRONG_ORDER) if node != LINK)
"""Those whose target ends with the fault, not when it runs out."""


def slow(request: BaseHTTPRequestHandler) -> None:
    """A byte a second."""
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    for _ in range(60):
        request.wfile.write(b"#")
        time.sleep(1)


@dataclass
class Servers:
    """A server for most, and one that can be gone."""

    folder: Path
    box: Box
    most: WebServer
    port: int
    wrong: bool = False
    elsewhere: Path = Path("/nonexistent")
    """What the steady node is served."""
    sent_mib: int = 0
    """Most that any client has taken in of an answer without end."""
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Serve the file of the node that is named in the path, or the fault."""
        node = Path(request.path).stem
        faults = {SLOW: slow, FAILING: serving(b"", 500), ENDLESS: self.endless}
        if self.wrong and node in faults:
            faults[node](request)
        else:
            file = self.elsewhere if node == STEADY else self.box.shared_directory / f"{node}.txt"
            serving(file.read_bytes())(request)

    def endless(self, request: BaseHTTPRequestHandler) -> None:
        """1 GiB that is not announced."""
        request.send_response(200)
        request.end_headers()
        for sent in range(1024):
            request.wfile.write(b"#" * 2**20)
            self.sent_mib = max(self.sent_mib, sent + 1)

    def come(self) -> None:
        """All servers are right."""
        self.wrong = False
        self.stack.enter_context(web_server(self.folder, self.answer, port=self.port))

    def go(self) -> None:
        """Nobody listens at the one, and the other is wrong."""
        self.stack.close()
        self.wrong = True

    def url(self, node: str) -> str:
        port = self.port if node == GONE else self.most.port
        return f"https://localhost:{port}/{node}.txt"


@dataclass
class Story:
    """What happened, and when, in Unix seconds."""

    jobs: Jobs
    watch: Watch
    broken_at: float = 0.0
    until: int = 0
    """End of the targets of all nodes."""
    ended_at: float = 0.0
    mended_at: float = 0.0
    output: str = ""
    """What was printed while targets were published to faulty places."""
    lost: list[str] = field(default_factory=list)

    def first(self, node: str, group: str = HELD_BACK) -> float:
        """Start of the group's first job there since the faults began; infinite if none did."""
        return first(self.jobs, node, group, self.broken_at)

    def reasons(self, node: str, since: float, until: float = float("inf")) -> set[str]:
        looks = self.watch.looks
        return {x.reason for x in looks if x.node == host(node) and since <= x.at <= until}


def first(jobs: Jobs, node: str, group: str, since: float) -> float:
    return min(jobs.starts(since, group, host=host(node)), default=float("inf"))


def in_force_everywhere(told: Story, *but: str) -> bool:
    return {*map(host, NODES)} - {*map(host, but)} <= {*told.watch.acting()}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("web")
    with web_server(folder, serving(b"")) as most:
        # A port that the kernel gives to nobody else while the server is gone.
        yield Servers(folder, None, most, free_port())  # type: ignore[arg-type]  # the box comes later


@pytest.fixture(scope="module")
def box(open_box: OpenBox, servers: Servers) -> Iterator[Box]:
    folder = "$(LOCAL_DIR)/../../shared"
    trusted = f"SHARECTL_SOURCE_OPTIONS = --ca-file {folder}/ca.pem\n"
    more = dict.fromkeys((*NODES, STEADY), "")
    for node in (*SERVED, STEADY):
        more[node] = f"SHARECTL_SOURCE = {servers.url(node)}\n{trusted}"
    # A run that waits for a slow server is longer than the others' period, and the next run would
    # kill it.
    more[SLOW] += f"SHARECTL_JOB_CTL_PERIOD_SECONDS = {3 * PERIOD_SECONDS}\n"
    more[STEADY] += f"NUM_CPUS = {CORES + 1}\n"
    for node in (ROTATED, WRONG_ORDER):
        more[node] = f"SHARECTL_SOURCE_OPTIONS = --key-file {folder}/{node}.keys\n"
    points = tuple(execute_point(node, "live", KNOBS + text, 1) for node, text in more.items())
    with open_box(pool_of(points)) as running:
        shutil.copy(servers.most.certificate, running.shared_directory / "ca.pem")
        servers.box, servers.most.answer = running, servers.answer
        yield running


@pytest.fixture(scope="module")
def story(box: Box, servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Story:
    told = Story(Jobs(box), Watch(box))
    command = Sharectl(box, tmp_path_factory.mktemp("sharectl"))
    with repeating(told.watch.look, LOOK_SECONDS), servers.stack:
        play(box, servers, command, told)
    told.lost = told.jobs.lost()
    box.remove_jobs()
    return told


def play(box: Box, servers: Servers, command: Sharectl, told: Story) -> None:
    old, new = (f"{name} {secrets.token_hex(32)}\n" for name in ("old", "new"))
    keys = {node: box.shared_directory / f"{node}.keys" for node in (ROTATED, WRONG_ORDER)}
    files = {node: box.shared_directory / f"{node}.txt" for node in NODES}
    central_keys = command.folder / "keys"
    how = {"ca_file": str(servers.most.certificate)}
    ways: dict[str, Any] = {
        "signing_key_file": str(central_keys),
        "publish": [
            {"https": {"file": str(file), **how, "url": servers.url(node)}}
            if node in SERVED
            else {"file": str(file)}
            for node, file in files.items()
        ],
    }

    def publish(validity_seconds: int, expect: int = 0) -> tuple[int, str]:
        plan = plan_for(NODES, validity_seconds, 0)
        done = command.publish(plan, expect, **ways)
        return plan.valid_until, done.stdout + done.stderr

    for path in (central_keys, *keys.values()):
        write_keys(path, old)
    servers.come()
    wrong = {host(node): seconds for node, (seconds, _reason) in CLOCKS.items()}
    clocks.restart_shifted(box, wrong)
    supply(told.jobs, 250, 450, f'TARGET.Machine != "{host(STEADY)}"', len(NODES))
    publish(90)
    box.wait_until(lambda: in_force_everywhere(told, *CLOCKS), "every node has its target")

    # The new key: in the right order on the one node, and not yet on the other.
    write_keys(keys[ROTATED], old + new)
    write_keys(central_keys, new + old)
    told.broken_at = time.time()
    told.until, _ = publish(VALIDITY_SECONDS)
    box.wait_until(lambda: told.watch.reason(host(WRONG_ORDER)) == "bad-signature", "it is refused")
    for node, (fault, _reason) in FILES.items():
        fault(files[node])
    servers.go()
    while time.time() < told.until + SLACK_SECONDS and not (
        time.time() > told.until and max(map(told.first, NODES)) < float("inf")
    ):
        time.sleep(LOOK_SECONDS)
        if time.time() > told.until + SLACK_SECONDS / 3:
            list_idle_jobs_again(box, "ap-1.example.org")
    told.ended_at = time.time()

    # What is published meanwhile: whatever can be mended is.
    _, told.output = publish(90, expect=74)
    box.wait_until(
        lambda: {told.watch.reason(host(n)) for n in MENDED} == {"ok"}, "they are mended"
    )
    files[DIRECTORY].rmdir()
    write_keys(keys[WRONG_ORDER], old + new)
    servers.come()
    for name in wrong:
        clocks.restart(box, name)
    told.mended_at = time.time()
    publish(120)
    box.wait_until(lambda: in_force_everywhere(told), "every node has its target again")
    for path in (*keys.values(), central_keys):
        write_keys(path, new)
    publish(120)
    time.sleep(3 * PERIOD_SECONDS)  # the last key is in use


def supply(jobs: Jobs, large: int, small: int, requirements: str, nodes: int = 0) -> None:
    """Put jobs into the queue; the small ones once a large one has started on so many nodes.

    So beside the large ones a node has room for one small one at a time, whatever happens.
    """
    where = f"requirements = {requirements}"
    log = jobs.submit(HELPED, MULTICORE, large, 12, where)

    def hosts() -> set[str]:
        return {event.host for event in event_log.events(log, EXECUTE)}

    jobs.box.wait_until(lambda: len(hosts()) >= nodes, "a large job runs on every node")
    jobs.submit(HELD_BACK, 1, small, 6, where)


def write_keys(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.touch(0o600)
    fresh.write_text(text)
    fresh.replace(path)


# ---- the rows, as they were seen


@pytest.mark.parametrize("node", NODES)
def test_jobs_flow_and_no_target_outlives_its_validity(story: Story, node: str) -> None:
    """The node says why, and recovers by itself once it is right again."""
    begin = story.first(node)
    assert begin <= story.until + SLACK_SECONDS, "jobs held back start within one validity"
    assert story.first(node, HELPED) < float("inf"), "jobs of eight cores start too"
    assert not [look for look in story.watch.outlived() if look.node == host(node)]
    if node in AT_ONCE:
        assert begin < story.until, "what is refused is no target at once"
    elif node not in CLOCKS:
        assert begin >= story.until - 1, "what is right holds until it ends"
    assert REASONS[node] in story.reasons(node, story.broken_at, story.until)
    if node == ROTATED:
        missed = story.reasons(node, 0) - {"ok", "expired", "no-file", "undefined"}
        assert not missed, "no key was missed"
    looks = [x for x in story.watch.looks if x.node == host(node) and x.at > story.mended_at]
    assert True in {look.active for look in looks}
    assert looks[-1].reason == "ok"


def test_publishing_mends_what_it_can_and_names_the_rest(story: Story) -> None:
    for node in (DIRECTORY, *SERVED):
        assert f"/{node}.txt" in story.output
    for node in MENDED:
        assert "ok" in story.reasons(node, story.ended_at, story.mended_at), node


def test_a_gibibyte_is_not_taken_in_and_no_job_is_lost(story: Story, servers: Servers) -> None:
    """By the node or by the centre, which looks at what is served."""
    assert 0 < servers.sent_mib < 100
    assert not story.lost


# ---- cycles that die


@pytest.fixture(scope="module")
def steady(box: Box) -> Jobs:
    """A node that the group held back holds but for one core, for which it has more jobs."""
    jobs, only_here = Jobs(box), f'TARGET.Machine == "{host(STEADY)}"'
    jobs.submit(HELD_BACK, 1, CORES, 3600, f"requirements = {only_here}")
    run(box, CORES, f'regexp("{STEADY}", RemoteHost)')
    supply(jobs, 2, 60, only_here)
    return jobs


def cycles_of(servers: Servers, folder: Path, seen_at: Optional[Path] = None) -> dict[str, Any]:
    """Cycles that steer the steady node, with all files in ``folder``, here ``seen_at``."""
    servers.elsewhere = (seen_at or folder) / "sharectl.txt"
    way = {"file": str(folder / "sharectl.txt"), "url": servers.url(STEADY)}
    return {
        "groups": {HELPED: {"pledge_hs06": 1e6}, HELD_BACK: {"pledge_hs06": 1}},
        "nodes": {"controlled": [f"{STEADY}*"]},
        "control": {"strategy": "pair", "deadband_hs06": 1},
        "publish": [{"https": {**way, "ca_file": str(servers.most.certificate)}}],
        "history": {"errors_log": str(folder / "errors.log")},
        "state_directory": str(folder),
        "validity_seconds": 120,
        "lock_wait_seconds": 2,
    }


def has_target(box: Box, command: Sharectl, ways: dict[str, Any]) -> None:
    box.wait_until(
        lambda: "targets=1" in command.run("cycle", expect=None, **ways).stdout,
        "a cycle has a target",
    )


def sequence_of(file: Path) -> int:
    """Sequence of a document that a node takes as a whole; 0 if there is none yet."""
    if not file.exists():
        return 0
    options, _ = target.parse_arguments([])
    sequence, _until, _pending, lines = target.parse(
        file.read_bytes(), 0, options, set(), int(time.time())
    )
    assert [node.partition(".")[0] for node, _order in lines] == [STEADY]
    return sequence


def test_without_room_what_stands_stands_or_runs_out(
    box: Box, servers: Servers, steady: Jobs, tmp_path: Path
) -> None:
    watch = Watch(box)
    with cycles_that_die.small_disk(tmp_path, 4096) as disk:
        command = Sharectl(box, tmp_path, within=cycles_that_die.within(disk))
        ways = cycles_of(servers, tmp_path / "disk", seen_at=disk)
        has_target(box, command, ways)
        # Several cycles within a second are ahead of the clock, by which the next plan is numbered.
        sequence = sequence_of(servers.elsewhere)
        box.wait_until(lambda: time.time() > sequence + 1, "the next plan is a newer one")
        plan = plan_for([STEADY], 30, 0)
        command.publish(plan, **ways)
        box.wait_until(lambda: acts(watch), "the node has its target")
        stood, lines = servers.elsewhere.read_bytes(), kept_lines(disk)
        codes, flows = [], 0.0
        # The ledger's log takes hundreds of pages where all that was there before it takes tens.
        for pages in (0, 1, 4, 16, 64, 256, 1024):
            cycles_that_die.fill(disk, pages)
            done = command.run("cycle", expect=None, **ways)
            codes.append(done.returncode)
            assert sequence_of(servers.elsewhere)
            now = kept_lines(disk)
            kept = {name: now[name][: len(was)] for name, was in lines.items()}
            assert kept == lines, "history is lost"
            if pages == 0:
                assert servers.elsewhere.read_bytes() == stood
                assert "make room" in done.stderr
                flows = begins_after(steady, watch, plan.valid_until)
            if done.returncode == 0:
                break
        print(f"exit codes by free pages: {codes}")
        assert len(codes) > 1
        assert codes == [74] * (len(codes) - 1) + [0]
        assert plan.valid_until - 1 <= flows <= plan.valid_until + SLACK_SECONDS
        box.wait_until(lambda: acts(watch), "the node has a target again")
        assert not cycles_that_die.leftovers(disk)
    assert not watch.outlived()
    assert not steady.lost()


def acts(watch: Watch) -> bool:
    watch.look()
    return host(STEADY) in watch.acting()


def kept_lines(folder: Path) -> dict[str, list[str]]:
    """Lines of the files that grow, all of them whole."""
    texts = {name: (folder / name).read_text() for name in ("errors.log", "ledger/changes.jsonl")}
    assert {text[-1] for text in texts.values()} == {"\n"}
    return {name: text.splitlines() for name, text in texts.items()}


def begins_after(jobs: Jobs, watch: Watch, until: int) -> float:
    """Unix seconds of the first start, seen from now on, of a job of the group held back."""
    begin = time.time()
    while first(jobs, STEADY, HELD_BACK, begin) > time.time() < until + SLACK_SECONDS:
        watch.look()
        time.sleep(LOOK_SECONDS)
    return first(jobs, STEADY, HELD_BACK, begin)


def test_a_cycle_killed_anywhere_leaves_whole_documents_and_the_next_one_goes_on(
    box: Box, servers: Servers, steady: Jobs, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    ways = cycles_of(servers, folder)
    ways["publish"] += [{"file": str(tmp_path / "second.txt")}, {"collector": {}}]
    has_target(box, Sharectl(box, tmp_path), ways)
    (config,) = tmp_path.glob("sharectl-*.yaml")
    documents = (servers.elsewhere, tmp_path / "second.txt")
    # Every second step: tests/unit/cycle/test_publication.py kills at each step of publishing.
    deaths = [("advertise", number) for number in range(3)]
    deaths += [("step", number) for number in range(0, MOST_STEPS, 2)]
    killed, watch = 0, Watch(box)
    box.wait_until(lambda: acts(watch), "the node has its target")
    watch.looks.clear()
    with repeating(watch.look, LOOK_SECONDS), cycles_that_die.driver(box) as cycle:
        for kind, number in deaths:
            before = [*map(sequence_of, documents)]
            ended = cycle(config, kind, number)
            assert ended in (-signal.SIGKILL, 0), (kind, number)
            if ended == 0 and kind == "step":
                break
            killed += ended != 0
            after = [*map(sequence_of, documents)]
            assert [new for new, was in zip(after, before) if new < was] == []
            assert ads_are_whole(box)
            assert cycle(config, "none", 0) == 0, f"the cycle after a death at {kind} {number}"
            assert min(map(sequence_of, documents)) > max(after)
            standing = json.loads((folder / "state.json").read_text())["standing"]
            assert audited(folder) == {stood["target"]["node"] for stood in standing}
        left = cycles_that_die.leftovers(tmp_path)
        print(f"{killed} deaths, {len(left)} files left by them")
        assert LEAST_DEATHS < killed < len(deaths), "deaths at all steps"
        assert left, "no cycle was killed while it wrote"
        for path in left:
            os.utime(path, (1, 1))
        assert cycle(config, "none", 0) == 0
    assert not cycles_that_die.leftovers(tmp_path), "what was left piles up"
    reasons = Counter(look.reason for look in watch.looks if look.node == host(STEADY))
    # The test's web server may drop the next client when one is killed while it shakes hands.
    assert reasons.keys() <= {"ok", "no-connection"}
    assert reasons["ok"] > 0.5 * sum(reasons.values()), "the server drops up to three clients"
    assert not watch.outlived()
    assert not steady.lost()


def audited(folder: Path) -> set[str]:
    """Nodes that have a target as the audit's last line about them says."""
    rows = [row for row in changes_in(folder) if row["event"] == "target"]
    last = {row["node"]: row["after"] for row in rows}
    return {node for node, target in last.items() if target is not None}


def ads_are_whole(box: Box) -> bool:
    """True if each ad of a target in the collector has all that a node asks for."""
    sizes = ("size(t1_TargetGroups)", "size(t1_Targetcores)", "t1_TargetValidUntil > time()")
    query = ("-any", "-constraint", 'MyType == "SharectlTarget"', "-af", "t1_TargetNode")
    return all(row == [STEADY, "2", "2", "true"] for row in shown(box, *query, *sizes))
