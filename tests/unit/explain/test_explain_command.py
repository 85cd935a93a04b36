"""``sharectl explain``: the decision that it explains, and its messages where there is none."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.cli.cycle import digest_of
from sharectl.config.load import load
from sharectl.control.laws import Control, Shadow
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.record import record_of
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import Source, Target
from sharectl.plan.plan import decide
from sharectl.plan.records import CycleRecord, HeldJobs, NodeRecord
from tests.fakes import NOW
from tests.ledgers import BEGUN, PERIOD_SECONDS, busy, law, write
from tests.policies import HALF
from tests.unit.explain.conftest import Run, configured


def incomplete(folder: Path, number: int) -> None:
    silent = Source("schedd ap-2", 60.0, "no answer \x1b[31mwithin 60 s")
    record = CycleRecord(
        NOW + number * PERIOD_SECONDS, 61.0, complete=False, sources=(silent,), problems=("x\ny",)
    )
    Ledger(folder / PLACE).record(record, replace(busy(number), sources=(silent,)))


def jobs_file(folder: Path, rows: list[str], at: int) -> Path:
    path = folder / "jobs"
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    os.utime(path, (at, at))
    return path


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (("group", "alice"), 3),
        (("node", "cn-00", "--cycle", NOW + PERIOD_SECONDS + 5), 2),
        (("group", "alice", "--cycle", "2023-11-14T22:30:20Z"), 2),
        (("cycle", "2023-11-14 22:31"), 2),
    ],
)
@pytest.mark.usefixtures("kept")
def test_the_latest_cycle_is_explained_unless_another_is_named(
    run: Run, words: tuple[object, ...], number: int
) -> None:
    assert run("explain", *words, "--json").json["cycle"] == number


JOBS = [
    *["2 cn-00 alice 600 1 10.0"] * 40,
    *["2 cn-02 alice 600 1 10.0"] * 31,
    *["2 cn-40 alice 600 1 12.5"] * 60,
    *["1 PEND cms 0 8 10.0"] * 9,
]
DIFF = ("plan", "--jobs", "jobs", "--diff")
SCREENS: dict[str, tuple[object, ...]] = {
    "group-over.txt": ("explain", "group", "alice", "--cycle", "3"),
    "group-under.txt": ("explain", "group", "CMS", "--cycle", NOW + PERIOD_SECONDS),
    "group-idle.json": ("explain", "group", "atlas", "--cycle", "1", "--json"),
    "node-target.txt": ("explain", "node", "cn-01.example.org", "--cycle", "3"),
    "node-none.txt": ("explain", "node", "cn-05", "--cycle", "3"),
    "node-limit.txt": ("explain", "node", "cn-07", "--cycle", "3"),
    "node.json": ("explain", "node", "cn-01", "--cycle", "3", "--json"),
    "cycle.txt": ("explain", "cycle"),
    "cycle.json": ("explain", "cycle", NOW, "--json"),
    "plan-diff.txt": DIFF,
    "plan-diff.json": (*DIFF, "--json"),
}


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.usefixtures("kept")
def test_screens(
    run: Run,
    name: str,
    golden: Callable[[str, str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs_file(tmp_path, JOBS, NOW + 2500)
    out = run(*SCREENS[name]).out
    golden(f"explain/{name}", out)
    if name.endswith(".txt"):
        assert len(out.splitlines()) <= 24
        assert max(map(len, out.splitlines())) <= 80


def test_a_group_is_told_of_nodes_that_are_not_under_control(
    run: Run, tmp_path: Path, config: Path
) -> None:
    look = busy(0)
    nodes = tuple(replace(node, controlled=False) for node in look.nodes)
    write(tmp_path, law(max_nodes=4), [replace(look, nodes=nodes)], digest_of(load(config)))
    changes = run("explain", "group", "cms", "--json").json["would_change"]
    assert "controlled" in [change["code"] for change in changes]


@pytest.mark.usefixtures("kept")
def test_where_another_configuration_decides_otherwise_a_note_says_so(
    run: Run, tmp_path: Path
) -> None:
    configured(tmp_path, max_nodes=2)
    for words in (("group", "cms"), ("cycle",)):
        content = run("explain", *words, "--json").json
        assert (content["agrees"], bool(content["would_change"])) == (False, True)
        assert "deciding again now comes to something else" in run("explain", *words).words


def test_a_group_whose_law_was_given_nothing_says_so(
    run: Run, config: Path, tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    config.write_text(config.read_text().replace("strategy:", "law: ewma, strategy:"))
    ewma = replace(law(max_nodes=4), steering=SteeringConfig(Control("ewma")))
    taken = busy(0)
    waiting = tuple(jobs for jobs in taken.pending if jobs.group != "cms")
    write(tmp_path, ewma, [replace(taken, pending=waiting)])
    groups = {g["group"]: g for g in run("explain", "cycle", "--json").json["groups"]}
    cms = groups["cms"]
    assert (round(cms["control_error_hs06"]), cms["given_hs06"], cms["output_hs06"]) == (-992, 0, 0)
    screens = [run("explain", "cycle").out, run("explain", "group", "cms").out]
    golden("explain/no-demand.txt", "\n".join(screens))


@pytest.mark.usefixtures("kept")
def test_an_incomplete_cycle_explains_itself_and_a_group_is_of_the_one_before(
    run: Run, tmp_path: Path
) -> None:
    incomplete(tmp_path, 5)
    ended = run("explain", "group", "alice")
    assert (ended.code, "cycle 3" in ended.out, "cycle 4" in ended.err) == (0, True, True)
    content = run("explain", "cycle", "--json").json
    assert (content["complete"], content["reason"], content["changes"]) == (False, None, None)
    # Nothing was decided again.
    again = (content[key] for key in ("agrees", "decided_again", "would_change"))
    assert [*again] == [None] * 3


MISTAKES: tuple[tuple[int, tuple[str, ...]], ...] = (
    (1, ("group", "alcie")),
    (1, ("group", "Other")),
    (1, ("group", "\x1b[2J")),
    (1, ("group", "alice", "--cycle", "77")),
    (1, ("group", "alice", "--cycle", "2001-01-01")),
    (1, ("node", "cn-1")),
    (1, ("node", "x" * 5000)),
    (1, ("node", "cn-01", "--cycle", "4")),
    (2, ("group", "alice", "--cycle", "1", "--live")),
    (2, ("node", "cn-1", "--cycle", "soon")),
)


def test_messages(
    run: Run, tmp_path: Path, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    without = [run("explain", "cycle"), run("explain", "group", "alcie")]
    assert [ended.code for ended in without] == [1, 1]
    lines = [ended.err for ended in without]
    write(tmp_path, law(max_nodes=4), [busy(number) for number in range(3)])
    incomplete(tmp_path, 5)
    for code, words in MISTAKES:
        ended = run("explain", *words)
        assert (ended.code, ended.out) == (code, ""), words
        assert all(c.isprintable() or c == "\n" for c in ended.err)
        lines.append(f"{' '.join(words)[:60]!r}: {ended.err.splitlines()[-1]}\n")
    lines.append(run("explain", "group", "alice").err)
    golden("explain/messages.txt", "".join(lines).replace(str(tmp_path), "FOLDER"))


def test_a_cycle_that_was_kept_from_publishing_shows_its_changes(run: Run, tmp_path: Path) -> None:
    (record,) = write(tmp_path, law(max_nodes=4), [busy(0)])
    nodes = tuple(replace(node, target=None) for node in record.nodes)
    off = replace(record, taken_at=NOW + 60, number=0, reason="disabled", sequence=None)
    Ledger(tmp_path / PLACE).record(replace(off, nodes=nodes, published=()), busy(0))
    for *subject, again in (("group", "alice", "gives on 4 nodes"), ("node", "cn-01", "a target")):
        assert "as if sharectl had not been kept" in run("explain", *subject).words
        assert run("explain", *subject, "--json").json["decided_again"] == again
    content = run("explain", "cycle", "--json").json
    assert content["changes"]["counts"]["dropped"] == 4
    assert "nodes 18, would be: not-needed 12, target 4," in run("explain", "cycle").words
    assert content["decided_again"] == "4 targets"


def test_a_cycle_that_observed_tells_what_would_have_been(run: Run, tmp_path: Path) -> None:
    observing = replace(law(max_nodes=4), observes=True)
    decision = decide(observing, BEGUN, busy(0), NOW)
    record = record_of(observing, busy(0), decision, None, ())
    Ledger(tmp_path / PLACE).record(record, busy(0))
    assert set(record.target_nodes.values()) == {(0, 0)}
    target = decision.plan.targets[0]
    for subject in (("group", target.helped), ("node", target.node), ("cycle",)):
        assert "the targets were planned, and not published" in run("explain", *subject).words
        content = run("explain", *subject, "--json").json
        assert (content["observed"], content["sequence"], content["agrees"]) == (True, None, True)
    assert "would be: " in run("explain", "node", target.node).words


def test_names_of_outside_origin_steer_no_terminal(run: Run, tmp_path: Path) -> None:
    (record,) = write(tmp_path, law(), [busy(0)])
    name = "evil\x1b]0;x\x07"
    evil = NodeRecord(
        *(name, 64, 10.0, True, (HeldJobs("a\nb", 1, 3, 60),)),
        target=Target(name, "ali\x1bce", 1, "cms", 8),
        reason="beca\x1buse",
    )
    nodes = (*record.nodes, evil)
    later = replace(record, taken_at=NOW + 60, nodes=nodes, reason="\x1b[31m", number=0)
    Ledger(tmp_path / PLACE).record(later, busy(0))
    incomplete(tmp_path, 5)
    subjects = (("cycle", "2"), ("node", name), ("cycle", "2", "--json"), ("cycle",))
    for words in (*subjects, ("group", "alice")):
        ended = run("explain", *words)
        assert ended.code == 0, ended.err
        assert all(c.isprintable() or c == "\n" for c in ended.out + ended.err)


def test_a_shadow_is_shown(run: Run, tmp_path: Path) -> None:
    control = Control(shadow=Shadow("learned", loaded=HALF))
    write(tmp_path, replace(law(), steering=SteeringConfig(control)), [busy(0)])
    shown = run("explain", "group", "cms", "--json").json
    assert shown["shadow"]["law"] == "learned"
    assert " shadow " in run("explain", "group", "cms").words
