"""Laws of the two node jobs, job_ctl and mc_grace."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from random import Random
from types import ModuleType

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import job_ctl
import mc_grace
from poolbox.waiting import HANG_SECONDS
from sharectl.shares.groups import group_of
from tests.node_fakes import NOW, ad_line, free, job_of, key_file, tool_that_prints

GRACE, PERIOD, CPUS = 480, 60, 8
GROUP = re.compile(r"(?!(none|other)$)(?=.{1,64}$)[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)*")

groups = st.from_regex(
    r"[a-z0-9][a-z0-9_-]{0,11}(\.[a-z0-9][a-z0-9_-]{0,5}){0,3}", fullmatch=True
).filter(job_ctl.is_group)
users = st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=20)
statuses = st.integers(-1, 2**16 - 1)
once = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
"""For laws of whole runs, each a process."""

# ---- Both jobs


@given(st.text())
def test_text_stays_one_line_or_is_refused(text: str) -> None:
    """An ad of one attribute is one line, whatever the text."""
    try:
        ad = mc_grace.render_ad({"X": text})
    except ValueError:
        return
    assert ad.count("\n") == 1
    assert ad.isprintable() is False
    assert ad[:-1].isprintable()


def ran(job: ModuleType, folder: Path, answer: bytes, *argv: str) -> classad2.ClassAd:
    """Ad of a run with that answer of condor_status: a line for each attribute, no traceback."""
    tool = tool_that_prints(folder, "")
    (folder / "answer").write_bytes(answer)
    state = str(folder / "state")
    options = ["--state", state, "--condor-status", tool, *argv]
    command = [sys.executable, "-I", "-S", str(job.__file__), *options]
    done = subprocess.run(command, capture_output=True, check=False, timeout=HANG_SECONDS)
    text = done.stdout.decode("ascii").removesuffix("- update:true\n")
    ad = classad2.parseOne(text)
    assert len(text.splitlines()) == len(ad)
    assert b"Traceback" not in done.stderr
    return ad


# ---- job_ctl

words = st.sampled_from(
    [
        "source", "reason", "sequence", "until", "order", "groups", " ", "\n", "ok", "no-line", "x",
        "5", "-1", "none", "none 0 none 0 undefined", "alice 56 cms 8 False", "alice,cms", '"',
        "\\", "}", "t1_Targetcores = {1,1}", "0", "é",
    ]
)  # fmt: skip
right = "source x\nreason ok\nsequence 5\nuntil 7\norder alice 56 cms 8 True\ngroups alice,cms\n"
texts = st.binary(max_size=300) | st.lists(words).map("".join).map(str.encode)
altered = st.builds(
    lambda at, word: (right[:at] + word + right[at:]).encode(), st.integers(0, len(right)), words
)


@given(texts | altered, statuses)
@settings(max_examples=300)
def test_whatever_target_py_prints_the_ad_is_whole(output: bytes, status: int) -> None:
    """Any output in its place gives the ad with its attributes and types, or a fault."""
    answer = job_ctl.choose([job_ctl.parse_target(status, output)], 0)
    code, held_back, helped = answer.code, answer.held_back, answer.helped
    ad_text = job_ctl.ad_of("none:0", answer, NOW)
    ad = classad2.parseOne(ad_text)
    assert len(ad_text.splitlines()) == len(ad) == 10
    assert [ad["t1_JobCtlReason"], *ad["t1_TargetGroups"]] == [code, held_back, helped]
    assert (code == "ok") == (list(ad["t1_TargetGroups"]) != ["none", "none"])


def answer_of(
    status: int, code: str, sequence: int, until: int, order: tuple[str, ...], groups: str
) -> job_ctl.Answer:
    """Answer of a source."""
    answer = job_ctl.Answer(status, code, order)
    answer.sequence, answer.until, answer.groups = sequence, until, groups
    return answer


answers = st.builds(
    answer_of,
    st.just(0), st.sampled_from(["ok", "no-line"]), st.integers(0, 3), st.integers(1, 9),
    st.sampled_from([("alice", "1", "cms", "8", "True"), ("alice", "2", "cms", "8", "undefined")]),
    st.sampled_from(["", "alice"]),
) | st.builds(
    answer_of,
    st.sampled_from([0, 75, 77]), st.sampled_from(["no-file", "forged"]), st.just(0), st.just(0),
    st.just(job_ctl.NO_TARGET), st.just(""),
)  # fmt: skip


@given(
    st.lists(answers, min_size=1, max_size=4), st.integers(0, 3), st.randoms(use_true_random=False)
)
def test_the_order_of_sources_does_not_matter(
    rows: list[job_ctl.Answer], accepted: int, random: Random
) -> None:
    """Sources in any order give one target, never one older than was accepted."""
    chosen = job_ctl.choose(rows, accepted)
    other = job_ctl.choose(random.sample(rows, len(rows)), accepted)
    one, two = ((a.sequence, a.until, a.order) for a in (chosen, other))
    assert one == two or chosen.code == other.code
    assert chosen.code != "ok" or chosen.sequence == 0 or chosen.sequence >= accepted
    assert chosen.sequence in (0, max(row.sequence for row in rows))


def counted(lines: list[str], known: set[str]) -> dict[str, int]:
    """Cores by group of slots."""
    cores: dict[str, int] = {}
    job_ctl.count_cores(0, "".join(lines).encode(), known, cores)
    return cores


some_groups = groups | st.sampled_from(("a", "a.b", "A.B.c", "a.bc", "b.c"))


@given(
    st.lists(st.tuples(users | some_groups, st.integers(1, 64)), min_size=1, max_size=60),
    st.sets(some_groups.map(str.lower)),
)
def test_every_core_is_counted_once_and_as_the_cycle_counts_it(
    jobs: list[tuple[str, int]], known: set[str]
) -> None:
    """Cores of groups, or of other, add up to those of slots; with the plan's groups as there."""
    quoted = [(user.replace("\\", "\\\\").replace('"', '\\"'), cores) for user, cores in jobs]
    cores = counted([job_of(*job) for job in quoted], known)
    assert sum(cores.values()) == sum(number for _user, number in jobs)
    assert [name for name in cores if name != "other" and not GROUP.fullmatch(name)] == []
    wanted: dict[str, int] = {}
    for user, number in jobs if known else ():
        name = group_of(f"{user}@example.org", known)
        wanted[name] = wanted.get(name, 0) + number
    assert not known or cores == wanted


ACCOUNTS = (
    "cms.x\ngarbage@y", 'cms.x\n-100 "alice.y@y', "cms.x\n8 alice.y@y", "\n",
    "cms.\r\x0b\x1c\x85x@y", "cms." + "x" * 3_000_000, "cms." + "x" * 300 + ".y@y",
)  # fmt: skip


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", codec="utf-8")) | st.sampled_from(ACCOUNTS),
        min_size=1,
        max_size=8,
    )
)
@example(list(ACCOUNTS))
def test_no_text_of_a_user_ends_its_line(accounts: list[str]) -> None:
    """The startd's slots as condor_status -af:V prints them: a line each, of the job's group."""
    rows = []
    wanted: dict[str, int] = {}
    for account in accounts:
        slot = classad2.ClassAd({"Cpus": 2, "State": "Claimed", "AccountingGroup": account})
        for name, column in zip("AB", job_ctl.COLUMNS):
            slot[name] = classad2.ExprTree(column)
        text = str(slot.eval("B")).replace('"', '\\"')
        rows.append(f'{slot.eval("A")} "{text}"\n')
        group = group_of(account, {"cms", "alice"})
        wanted[group] = wanted.get(group, 0) + 2
    assert max(map(len, rows)) < 300
    assert counted(rows, {"cms", "alice"}) == wanted


anything = texts | st.sampled_from(
    [
        b"# sharectl: 1\n# sequence: 1\n# generated: 1\n# valid_until: 2\n# targets: 0\n",
        b"cn-1 alice 56 cms 8\n",
        b'8 "alice.x@y"\n',
        ad_line("condor@pool", "cn-1", "alice", 56, "cms", 8).encode(),
    ]
)


@given(anything, anything, st.sampled_from(["", "old"]))
@once
def test_any_source_and_any_startd_give_a_whole_ad(
    tmp_path: Path, source: bytes, answer: bytes, key: str
) -> None:
    """Any source and any condor_status give an ad with its attributes, and no traceback."""
    (tmp_path / "source").write_bytes(source)
    argv = ["--source", f"file:{tmp_path}/source,collector:", "--identity", "condor@pool"]
    argv += ["--host", "cn-1", *(["--key-file", key_file(tmp_path, key)] if key else [])]
    ad = ran(job_ctl, tmp_path, answer, *argv)
    assert set(ad) == {line.split(" ")[0] for line in job_ctl.AD.splitlines()}
    assert not key or list(ad["t1_Targetcores"]) == [0, 0]
    assert (ad["t1_JobCtlReason"] == "ok") == (list(ad["t1_Targetcores"]) != [0, 0])
    assert ad["t1_JobCtlReason"] not in ("internal-error", "target-garbled", "source-garbled")


# ---- mc_grace

ROWS = (free(1, 8), free(1, 64), "1 64\n", "nan 8 8 8\n", "1 inf 1 1\n", "a b c d\n", "-1 8 8 8\n")


@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from(ROWS)).map(lambda rows: "".join(rows).encode())
)
@once
def test_any_startd_gives_a_whole_ad_of_mc_grace(tmp_path: Path, answer: bytes) -> None:
    """Any output of condor_status gives an ad with three attributes, and no traceback."""
    ad = ran(mc_grace, tmp_path, answer, "--cpus", str(CPUS))
    assert set(ad) == {"MC_GRACE", mc_grace.REASON, mc_grace.TIME}
    assert ad[mc_grace.REASON] in {*mc_grace.REASONS} - {"internal-error"}
    assert mc_grace.REASONS[ad[mc_grace.REASON]][0] == 0 or ad["MC_GRACE"] is False


class Story:
    """A partitionable slot over time: free cores change with dynamic slots."""

    def __init__(self, changes: list[tuple[int, int]], first: int) -> None:
        self.changes = [(NOW, first)]
        for wait, cores in changes:
            if cores != self.changes[-1][1]:
                self.changes.append((self.changes[-1][0] + wait, cores))
        self.end = self.changes[-1][0] + 2 * GRACE

    def at(self, second: int) -> tuple[int, int]:
        """Free cores, and the second of the last change."""
        changed, cores = [change for change in self.changes if change[0] <= second][-1]
        return cores, changed

    def since(self, second: int) -> int:
        """Second since when CPUS cores are free; ``second`` itself if they are not."""
        begin = second
        for changed, cores in reversed([change for change in self.changes if change[0] <= second]):
            if cores < CPUS:
                break
            begin = changed
        return begin

    def grace(self, second: int, phase: int) -> object:
        """MC_GRACE in the slot, of the last run of mc_grace, every PERIOD from ``phase`` on."""
        memory: dict[int, int] = {}
        value: object = False
        for run in range(NOW + phase, second + 1, PERIOD):
            cores, changed = self.at(run)
            slots = mc_grace.parse_slots([free(1, cores, 64, changed)[:-1]], CPUS)
            memory = mc_grace.remember(memory, slots, CPUS, GRACE, run)
            value = mc_grace.grace(memory, CPUS, GRACE, run)
        return evaluated(value, 1, self.at(second)[0], second)


def evaluated(value: object, slot: int, cores: int, second: int) -> object:
    """MC_GRACE in a slot at that second."""
    ad = f"SlotID = {slot}\nPartitionableSlot = True\nCpus = {cores}\n"
    ad += mc_grace.render_ad({"MC_GRACE": value}).replace("time()", str(second))
    return classad2.parseOne(ad).eval("MC_GRACE")


# Taken cores stay taken for longer than a period: changes between two runs cannot be seen.
stories = st.builds(
    Story,
    st.lists(st.tuples(st.integers(PERIOD, 3 * GRACE), st.integers(0, 16)), max_size=6),
    st.integers(0, 16),
)
phases = st.integers(0, PERIOD - 1)


@given(stories, phases, st.data())
def test_grace_covers_its_time_and_no_more_than_a_period_beyond(
    story: Story, phase: int, data: st.DataObject
) -> None:
    """True while 8 cores are free for less than 480 s; False 480 s and a period later."""
    second = data.draw(st.integers(NOW + phase, story.end))
    age = second - story.since(second)
    value = story.grace(second, phase)
    if story.at(second)[0] < CPUS or age >= GRACE + PERIOD:
        assert value is False
    elif age < GRACE:
        assert value is True


@pytest.mark.parametrize("after", [0, GRACE - 1, GRACE, GRACE + PERIOD])
@given(st.integers(PERIOD, 3 * GRACE), st.integers(0, CPUS - 1), st.integers(CPUS, 64), phases)
def test_grace_ends_to_the_second_if_nothing_else_changes(
    after: int, wait: int, taken: int, cores: int, phase: int
) -> None:
    """Cores freed once are in grace from that second until 480 s later, whenever the job ran."""
    value = Story([(wait, cores)], taken).grace(NOW + wait + after, phase)
    assert value is (after < GRACE)


@given(
    st.dictionaries(
        st.integers(0, 9),
        st.tuples(st.integers(7, 9), st.integers(NOW - 999, NOW + 999)),
        min_size=1,
    ),
    st.dictionaries(st.integers(0, 9), st.integers(0, NOW)),
)
def test_grace_never_lasts_longer_than_its_time_from_now(
    slots: dict[int, tuple[int, int]], before: dict[int, int]
) -> None:
    """With any memory and any startd, all grace is over 480 s after the run."""
    since = mc_grace.remember(before, slots, CPUS, GRACE, NOW)
    value = mc_grace.grace(since, CPUS, GRACE, NOW)
    assert {evaluated(value, slot, 16, NOW + GRACE) for slot in slots} == {False}
