"""Laws of the node jobs and of the programs that find a target."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any, Union

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import job_ctl
import mc_grace
import target
import target_collector
from sharectl.model import Plan, Target
from sharectl.publish.text import render
from sharectl.shares.groups import NESTED_GROUP_NAME, group_of
from tests.node_fakes import KEYS, NOW, ad_line, free, held, job_of, key_file, shell_tool, signature

GRACE = 480
PERIOD = 60
CPUS = 8
GROUP = re.compile(r"(?!(none|other)$)(?=.{1,64}$)[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)*")
NODE = re.compile(r"[A-Za-z0-9._-]{1,253}")

groups = st.from_regex(
    r"[a-z0-9][a-z0-9_-]{0,11}(\.[a-z0-9][a-z0-9_-]{0,5}){0,3}", fullmatch=True
).filter(job_ctl.is_group)
nodes = st.from_regex(r"[a-z]{1,2}-[0-9]{1,2}(\.example\.(org|com))?", fullmatch=True)
plain_text = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0x7E, exclude_characters='"\\')
)
integers = st.integers(-(2**63), 2**63 - 1)
Answer = tuple[int, str, int, int, "tuple[str, ...]", str]
Literal = Union[bool, int, str, "list[Literal]"]
literals = st.recursive(
    st.booleans() | integers | plain_text, lambda inner: st.lists(inner, max_size=4)
)


@st.composite
def targets(draw: st.DrawFn) -> Target:
    """A line that a plan may hold."""
    held_back, helped = draw(st.lists(groups, min_size=2, max_size=2, unique=True))
    cap, request = draw(st.integers(0, 100000)), draw(st.integers(1, 100000))
    return Target(draw(nodes), held_back, cap, helped, request)


def published(*lines: Target) -> bytes:
    """A document as the centre publishes it, of a plan whose groups are all listed."""
    named = sorted({name for line in lines for name in (line.held_back, line.helped)})
    return render(Plan(1, NOW, NOW + 1800, tuple(named), lines, reason="targets")).encode()


def same_short_name(one: str, other: str) -> bool:
    """Whether the nodes could be one, going by the first part of their names."""
    return one.split(".", maxsplit=1)[0] == other.split(".", maxsplit=1)[0]


# ---- Ads


@given(literals)
def test_htcondor_reads_what_was_rendered(value: Literal) -> None:
    """parse(render(value)) is value."""
    assert classad2.parseOne(mc_grace.render_ad({"X": value})).eval("X") == value


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


@given(st.lists(st.text() | st.sampled_from(list(job_ctl.OPTIONS))))
def test_any_arguments_have_values_or_problems(argv: list[str]) -> None:
    """Every option has a value that it may have; problems are what was given beyond that."""
    values, problems = job_ctl.parse_arguments(argv)
    assert set(values) == set(job_ctl.OPTIONS)
    for option, (_default, lowest, highest, _meaning) in job_ctl.OPTIONS.items():
        assert not highest or lowest <= int(values[option]) <= highest
    assert problems or len(argv) % 2 == 0


# ---- documents


def parsed(
    content: bytes, listed: set[str], **options: str
) -> tuple[int, int, str, list[tuple[str, str]]]:
    """What target.py finds in a document that is no file."""
    argv = [word for name, value in options.items() for word in (f"--{name}", value)]
    return target.parse(content, 0, target.parse_arguments(argv)[0], listed, NOW)


@given(
    st.lists(targets(), min_size=1, unique_by=lambda target: target.node.split(".")[0]), st.data()
)
def test_a_node_finds_its_own_line_in_what_the_centre_publishes(
    lines: list[Target], data: st.DataObject
) -> None:
    """Every line of a published plan is the target of its node, and of no other."""
    line = data.draw(st.sampled_from(lines))
    listed: set[str] = set()
    _sequence, end, _pending, found = parsed(published(*lines), listed)
    (order,) = [order for node, order in found if same_short_name(node, line.node)]
    assert order == f"{line.held_back} {line.cap_cores} {line.helped} {line.request_cores}"
    assert end == NOW + 1800
    assert {line.held_back, line.helped} <= listed


@given(st.lists(targets(), min_size=1), st.data())
def test_a_file_cut_anywhere_is_refused(lines: list[Target], data: st.DataObject) -> None:
    """No part of a published file, from its beginning, is taken for a file with targets."""
    text = published(*lines)
    part = text[: data.draw(st.integers(1, len(text) - 1))]
    with pytest.raises(target.JobError):
        target.parse(part, NOW, target.parse_arguments([])[0], set(), NOW)


@given(
    st.lists(targets(), min_size=1, max_size=3),
    st.data(),
    st.sampled_from(["old", "new"]),
    st.integers(1, 255),
)
def test_a_signed_document_with_any_byte_changed_is_refused(
    lines: list[Target], data: st.DataObject, key_id: str, change: int
) -> None:
    """What was signed is accepted, and with one byte of it changed in any way it is not."""
    keys = {name.encode(): bytes.fromhex(key) for name, key in KEYS.items()}
    text = published(*lines).decode()
    content = bytearray((text + signature(text, key_id)).encode())
    target.check_signature(bytes(content), keys)
    content[data.draw(st.integers(0, len(content) - 1))] ^= change
    with pytest.raises(target.JobError) as raised:
        target.check_signature(bytes(content), keys)
    assert raised.value.args[0] in ("unsigned", "bad-signature")


@given(st.binary() | st.lists(targets()).map(lambda lines: published(*lines)))
def test_nothing_unsigned_has_a_signature(content: bytes) -> None:
    """Without its key no document is accepted, whatever it holds."""
    with pytest.raises(target.JobError) as raised:
        target.check_signature(content, {b"old": b"k" * 32})
    assert raised.value.args[0] in ("unsigned", "bad-signature")


odd_words = st.sampled_from(
    ["", "Alice", "none", "other", "_", "a b", "0", "-1", "100001", "٣", "cn-1\n"]
)


def with_word(place: int, word: str) -> bytes:
    """A file with one line that is right but for one word."""
    words = ["cn-1", "alice", "56", "cms", "8"]
    return (" ".join([*words[:place], word, *words[place + 1 :]]) + "\n").encode()


@given(
    st.binary() | st.text().map(str.encode) | st.builds(with_word, st.integers(0, 4), odd_words),
    st.booleans(),
)
@settings(max_examples=300)
def test_any_document_is_parsed_or_refused(content: bytes, is_file: bool) -> None:  # noqa: FBT001
    """Nothing but JobError with a known code, and nothing but targets that may be published."""
    listed: set[str] = set()
    try:
        _sequence, _end, _pending, found = target.parse(
            content, NOW * is_file, target.parse_arguments([])[0], listed, NOW
        )
        code = "ok"
    except target.JobError as error:
        found, code = [], error.args[0]
    assert code in target.REASONS
    assert all(map(GROUP.fullmatch, listed))
    for node, order in found:
        held_back, cap, helped, request = order.split(" ")
        assert NODE.fullmatch(node)
        assert GROUP.fullmatch(held_back)
        assert GROUP.fullmatch(helped)
        assert held_back != helped
        assert 0 <= int(cap) <= 100000
        assert 1 <= int(request) <= 100000


# ---- target_collector

PENDING = {"true": "True", "false": "False", "undefined": "undefined"}
"""What condor_status prints, and what job_ctl publishes."""


@given(
    targets(),
    st.integers(0, 10**10 - 1),
    st.integers(0, 10**10 - 1801),
    st.sampled_from(["", "pool-1"]),
    st.sampled_from(["true", "false", "undefined"]),
)
def test_an_ad_says_what_a_document_says(
    line: Target, sequence: int, generated: int, pool: str, pending: str
) -> None:
    """The document of an ad has its target, times, sequence, pool and pending jobs."""
    order = (line.held_back, line.cap_cores, line.helped, line.request_cores)
    attributes: dict[str, Any] = {
        "sequence": sequence,
        "generated": generated,
        "pool": pool,
        "pending": pending,
    }
    ad = ad_line("condor@pool", line.node, *order, **attributes)
    (own,) = target_collector.own_ads([ad[:-1]], "condor@pool")
    found, targets_found, text = target_collector.document(own)
    assert (found, targets_found) == (sequence, 1)
    try:
        said: object = parsed(text.encode(), set(), pool=pool)
    except target.JobError as error:
        said = error.args[0]
    if max(generated, sequence) > NOW + 300:
        assert said == "future"
    elif generated + 1800 <= NOW:
        assert said == "expired"
    else:
        targets_said = [(line.node, "{} {} {} {}".format(*order))]
        assert said == (sequence, generated + 1800, PENDING[pending], targets_said)


@given(st.lists(st.text(st.characters(exclude_characters="\n")) | st.just('"a@b" x')), st.text())
def test_any_answer_of_the_collector_is_read_or_refused(lines: list[str], identity: str) -> None:
    """Nothing but JobError with a known code, and no ad of another identity."""
    try:
        found = [
            target_collector.document(rest) for rest in target_collector.own_ads(lines, identity)
        ]
        code = "no-ad"
    except target_collector.JobError as error:
        found, code = [], error.args[0]
    assert code in target_collector.REASONS
    assert (code, lines) == ("no-ad", []) or code in ("forged", "bad-ad")
    assert found == []


# ---- job_ctl


words = st.sampled_from(
    [
        "source", "reason", "sequence", "until", "order", "groups", " ", "\n", "ok", "no-line", "x",
        "5", "-1", "none",
        "none 0 none 0 undefined", "alice 56 cms 8 False", "alice,cms", '"', "\\", "}",
        "t1_Targetcores = {1,1}", "0", "é",
    ]
)  # fmt: skip
right = "source x\nreason ok\nsequence 5\nuntil 7\norder alice 56 cms 8 True\ngroups alice,cms\n"


@given(
    st.binary()
    | st.lists(words).map("".join).map(str.encode)
    | st.tuples(st.integers(0, len(right)), words).map(
        lambda cut: (right[: cut[0]] + cut[1] + right[cut[0] :]).encode()
    ),
    st.integers(-1, 2**16 - 1),
)
@settings(max_examples=300)
def test_whatever_target_py_prints_the_ad_is_whole(output: bytes, status: int) -> None:
    """Any output in its place gives the ad with its attributes and types, or a fault."""
    answer = job_ctl.choose([job_ctl.parse_target(status, output)], 0)
    code, sequence, until, (held_back, cap, helped, request, pending) = answer[1:5]
    target_shown = (held_back, helped, int(cap), int(request), until, sequence)
    shown = ("none:0", *target_shown, pending, until, code, NOW)
    ad_text = job_ctl.AD % shown
    ad = classad2.parseOne(ad_text)
    assert len(ad_text.splitlines()) == len(ad) == 9
    assert [ad["t1_JobCtlReason"], *ad["t1_TargetGroups"]] == [code, held_back, helped]
    assert (code == "ok") == (list(ad["t1_TargetGroups"]) != ["none", "none"])


answers = st.tuples(
    st.just(0), st.sampled_from(["ok", "no-line"]), st.integers(0, 3), st.integers(1, 9),
    st.sampled_from([("alice", "1", "cms", "8", "True"), ("alice", "2", "cms", "8", "undefined")]),
    st.sampled_from(["", "alice"]),
) | st.tuples(
    st.sampled_from([0, 75, 77]), st.sampled_from(["no-file", "forged"]), st.just(0), st.just(0),
    st.just(job_ctl.NO_TARGET), st.just(""),
)  # fmt: skip


@given(
    st.lists(answers, min_size=1, max_size=4), st.integers(0, 3), st.randoms(use_true_random=False)
)
def test_the_order_of_sources_does_not_matter(
    found: list[Answer], accepted: int, random: Random
) -> None:
    """Sources in any order give one target, never one older than was accepted."""
    one = job_ctl.choose(found, accepted)
    shuffled = random.sample(found, len(found))
    other = job_ctl.choose(shuffled, accepted)
    assert one[2:5] == other[2:5] or one[1] == other[1]
    assert one[1] != "ok" or one[2] == 0 or one[2] >= accepted
    assert one[2] in (0, max(each[2] for each in found))


@given(st.binary(max_size=300), st.integers(-1, 2**16 - 1))
def test_any_answer_of_the_startd_is_counted_or_refused(output: bytes, status: int) -> None:
    """Nothing but JobError with a known code, and no group but those that may be published."""
    cores: dict[str, int] = {}
    try:
        job_ctl.count_cores(status, output, set(), cores)
        code = "ok"
    except job_ctl.JobError as error:
        code = error.args[0]
    assert code in ("ok", *job_ctl.REASONS)
    assert all(name == "other" or GROUP.fullmatch(name) for name in cores)


@given(
    st.lists(st.tuples(st.text(max_size=20) | groups, st.integers(0, 64)), min_size=1, max_size=60),
    st.sets(groups),
)
def test_every_core_is_counted_once(jobs: list[tuple[str, int]], known: set[str]) -> None:
    """Cores of groups add up to those of slots; names are valid groups, or other."""
    assume(all("\n" not in user for user, _cores in jobs))
    lines = [job_of(user.replace("\\", "\\\\").replace('"', '\\"'), cores) for user, cores in jobs]
    counted: dict[str, int] = {}
    job_ctl.count_cores(0, "".join(lines).encode(), known, counted)
    assert sum(counted.values()) == sum(cores for _user, cores in jobs)
    assert all(name == "other" or GROUP.fullmatch(name) for name in counted)
    assert not known or set(counted) <= known | {"other"}


@given(
    st.lists(
        st.tuples(groups | st.sampled_from(("a", "a.b", "A.B.c", "a.bc", "b")), st.integers(1, 64)),
        max_size=20,
    ),
    st.sets(groups | st.sampled_from(("a", "a.b", "b.c")), min_size=1),
)
def test_nodes_count_as_the_cycle_does(jobs: list[tuple[str, int]], known: set[str]) -> None:
    """With the plan's groups a slot belongs to the group that the cycle counts it for."""
    counted: dict[str, int] = {}
    wanted: dict[str, int] = {}
    for group, cores in jobs:
        job_ctl.count_cores(0, held(cores, f'"{group}.x@y"').encode(), known, counted)
        name = group_of(f"{group}.x@y", known)
        wanted[name] = wanted.get(name, 0) + cores
    assert counted == wanted


@given(st.text(max_size=80) | groups)
def test_names_of_groups_are_the_same_on_nodes_and_in_the_centre(text: str) -> None:
    """Both take the same names for groups, and neither `none` nor `other`."""
    centre = NESTED_GROUP_NAME.fullmatch(text) is not None and text not in ("none", "other")
    assert job_ctl.is_group(text) == target.is_group(text) == centre


@given(
    st.lists(st.tuples(groups, st.integers(1, 64)), min_size=1, max_size=20),
    st.permutations(range(20)),
)
def test_the_order_of_slots_does_not_matter(jobs: list[tuple[str, int]], order: list[int]) -> None:
    """The same slots in any order give the same cores by group."""
    one: dict[str, int] = {}
    other: dict[str, int] = {}
    lines = [held(cores, f'"{group}.x@y"') for group, cores in jobs]
    job_ctl.count_cores(0, "".join(lines).encode(), set(), one)
    shuffled = "".join(lines[index] for index in order if index < len(lines))
    job_ctl.count_cores(0, shuffled.encode(), set(), other)
    assert one == other


anything = st.binary(max_size=200) | st.lists(words).map("".join).map(str.encode) | st.sampled_from(
    [
        (b"# sharectl: 1\n# sequence: 1\n# generated: 1\n# valid_until: 2\n# targets: 0\n# "
        b"groups: \n"),
        b"cn-1 alice 56 cms 8\n",
        b'8 "alice.x@y"\n',
        ad_line("condor@pool", "cn-1", "alice", 56, "cms", 8).encode(),
    ]
)  # fmt: skip


@given(anything, anything, st.booleans())
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_the_node_is_told_the_ad_is_whole(
    tmp_path: Path,
    source: bytes,
    answer: bytes,
    signed: bool,  # noqa: FBT001
) -> None:
    """Any source and any condor_status give an ad with its attributes, and no traceback."""
    (tmp_path / "source").write_bytes(source)
    (tmp_path / "answer").write_bytes(answer)
    tool = shell_tool(tmp_path, f"exec cat {tmp_path}/answer")
    argv = ["--source", f"file:{tmp_path}/source,collector:", "--identity", "condor@pool"]
    argv += ["--host", "cn-1", "--state", str(tmp_path / "state"), "--condor-status", tool]
    argv += ["--key-file", key_file(tmp_path, "old")] if signed else []
    command = [sys.executable, "-I", "-S", job_ctl.__file__, *argv]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    ad_text, _news, rest = done.stdout.decode("ascii").partition("- update:true\n")
    ad = classad2.parseOne(ad_text)
    assert set(ad) == {line.split(" ")[0] for line in job_ctl.AD.splitlines()}
    assert len(ad_text.splitlines()) == len(ad)
    assert not rest
    assert b"Traceback" not in done.stderr
    assert not signed or list(ad["t1_Targetcores"]) == [0, 0]
    assert (ad["t1_JobCtlReason"] == "ok") == (list(ad["t1_Targetcores"]) != [0, 0])
    assert ad["t1_JobCtlReason"] not in ("internal-error", "target-garbled", "source-garbled")


# ---- mc_grace
# --------------------------------------------------------------------------------------------------


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

    def published(self, second: int, phase: int) -> str:
        """MC_GRACE of the last run of mc_grace, which runs every PERIOD from ``phase`` on."""
        memory: dict[int, int] = {}
        value = "False"
        for run in range(NOW + phase, second + 1, PERIOD):
            cores, changed = self.at(run)
            slots = mc_grace.parse_slots([free(1, cores, 64, changed)[:-1]], CPUS)
            memory = mc_grace.remember(memory, slots, CPUS, GRACE, run)
            value = mc_grace.literal(mc_grace.grace(memory, CPUS, GRACE, run))
        return value


def evaluated(value: str, cores: int, second: int) -> object:
    """MC_GRACE in the slot at that second."""
    ad = f"SlotID = 1\nPartitionableSlot = True\nCpus = {cores}\nMC_GRACE = {value}\n"
    return classad2.parseOne(ad.replace("time()", str(second))).eval("MC_GRACE")


# What is taken stays taken for longer than a period: what comes and goes between two runs cannot be
# seen.
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
    cores, _changed = story.at(second)
    value = evaluated(story.published(second, phase), cores, second)
    age = second - story.since(second)
    if cores < CPUS or age >= GRACE + PERIOD:
        assert value is False
    elif age < GRACE:
        assert value is True


@given(
    st.integers(PERIOD, 3 * GRACE),
    st.integers(0, CPUS - 1),
    st.integers(CPUS, 64),
    phases,
    st.data(),
)
def test_grace_ends_to_the_second_if_nothing_else_changes(
    wait: int, taken: int, cores: int, phase: int, data: st.DataObject
) -> None:
    """Cores freed once are in grace from that second until 480 s later, whenever the job ran."""
    story = Story([(wait, cores)], taken)
    first = NOW + wait
    seconds = (first, first + GRACE - 1, first + GRACE, first + GRACE + PERIOD)
    second = data.draw(st.sampled_from(seconds))
    value = evaluated(story.published(second, phase), cores, second)
    assert value is (second < first + GRACE)


@given(
    st.dictionaries(
        st.integers(0, 9), st.tuples(st.integers(7, 9), st.integers(NOW - 999, NOW + 999))
    ),
    st.dictionaries(st.integers(0, 9), st.integers(0, NOW)),
)
def test_grace_never_lasts_longer_than_its_time_from_now(
    slots: dict[int, tuple[int, int]], before: dict[int, int]
) -> None:
    """With any memory and any startd, all grace is over 480 s after the run."""
    since = mc_grace.remember(before, slots, CPUS, GRACE, NOW)
    value = mc_grace.literal(mc_grace.grace(since, CPUS, GRACE, NOW))
    for slot in slots:
        ad = f"SlotID = {slot}\nCpus = 16\nMC_GRACE = {value}\n".replace("time()", str(NOW + GRACE))
        assert classad2.parseOne(ad).eval("MC_GRACE") is False
