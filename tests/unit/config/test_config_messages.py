"""Each fault of a configuration: its line, its place and its remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.config.load import load, parse
from sharectl.errors import ConfigError
from sharectl.files.yaml import MAX_BYTES, MAX_PROBLEMS

MESSAGES = Path(__file__).parents[2] / "golden" / "config" / "messages.txt"
TEXTS = tuple(
    json.loads(line)
    for line in MESSAGES.read_text(encoding="utf-8").splitlines()
    if line.startswith('"')
)
"""Faulty configurations: a new one is a line of the golden file, as a JSON string."""
GROUPS = "groups: {cms: {pledge_hs06: 1}}\n"
NESTED = "groups: {cms: {pledge_hs06: 100, groups: {prod: {share: 0.9}, user: {share: 0.2}}}"
CRIC = "federations: [IT-INFN-CNAF]"
TWO_SETS = "ca_file: /a, ca_directory: /b"
LATER = "nodes.controlled publish[1].collector pool.mode state_directory"
PUBLISHED = f"{GROUPS}publish: [{{fiel: /x}}, {{collector: {{}}}}, 5, {{collector: {{}}}}]"
BELOW = "a: {share: 1, max_lent_hs06: 1, groups: {b: {share: 2}}}"
ALL = """\
validity_seconds: 17m
groups:
  no: {pledge: 5}
  cms: {pledge_hs06: x}
nodes: {controlled: 5}
publish: [{collector: {}}, {collector: {}}]
pool: {mode: jobs, mode: jobs}
state_directory: x
"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "F")
    return list(caught.value.problems)


def test_every_message_has_its_line_its_place_and_its_remedy(
    listing: Callable[[str, Callable[[str], list[str]]], None],
) -> None:
    listing("config/messages.txt", problems_of)


@pytest.mark.parametrize("text", [text for text in TEXTS if "\t" not in text])
def test_a_fault_is_one_problem_with_a_remedy(text: str) -> None:
    problems = problems_of(text)
    assert len({problem.split(": ")[0] for problem in problems}) == 1
    assert [problem for problem in problems if "; " in problem or "?" in problem]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (
            ALL,
            f"validity_seconds groups.no.pledge groups.cms.pledge_hs06 {LATER}",
        ),
        (f"{GROUPS}pledges: {{from: cric, cric: 5}}", "pledges.cric"),
        (
            f"{GROUPS}pledges: {{from: cric, cric: {{{CRIC}, url: x, {TWO_SETS}}}}}",
            "pledges.cric pledges.cric.url",
        ),
        (f"{NESTED}}}\nvalidity_seconds: 1", "groups.cms.groups validity_seconds"),
        (f"{NESTED}, b: {{pledge: 5}}}}", "groups.cms.groups groups.b.pledge"),
        (f"{NESTED}, b: {{pledge_hs06: -5}}}}", "groups.cms.groups groups.b.pledge_hs06"),
        (
            f"groups: {{cms: {{pledge_hs06: 1, groups: {{{BELOW}}}}}}}",
            "groups.cms.groups.a groups.cms.groups.a.groups.b.share",
        ),
        (
            "groups: {cms: {pledge_hs06: 1, x: 5}, b: {share: 1}, c: {pledge_hs06: 0}}",
            "groups.cms.x groups.b.share",
        ),
        (
            f"{GROUPS}publish: [{{file: /tmp/x, https: {{}}}}]",
            "publish[0] publish[0].https.file publish[0].https.url",
        ),
        (PUBLISHED, "publish[0].fiel publish[2] publish[3].collector"),
        (
            f"{GROUPS}publish: [{{collector: {{}}}}, {{collector: {{identity: x}}}}]",
            "publish[1].collector publish[1].collector.identity",
        ),
        (
            f"{GROUPS}control: {{deadband_hs06: 1_000}}\npublish: [{{file: /x, collector: {{}}}}]",
            "control.deadband_hs06 publish[0]",
        ),
        (
            f"{GROUPS}control: {{law: p, setpoint: q, ewma: {{a: 1}}, pid: {{gain: x}}}}",
            "control.law control.setpoint control.ewma.a control.pid.gain",
        ),
    ],
)
def test_all_faults_come_at_once_and_nothing_that_follows_from_one(text: str, places: str) -> None:
    assert sorted(problem.split(": ")[1] for problem in problems_of(text)) == sorted(places.split())


def test_problems_are_in_the_order_of_the_lines() -> None:
    lines = [problem.split(": ")[0] for problem in problems_of(ALL)]
    assert lines == [f"F:{number}" for number in (1, 3, 4, 5, 6, 7, 8)]


def test_a_flood_of_problems_is_counted() -> None:
    keys = "".join(f"x{number}: 1\n" for number in range(MAX_PROBLEMS + 5))
    problems = problems_of(GROUPS + keys)
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].startswith(f"F:{MAX_PROBLEMS + 2}: 5 more problems")


def test_text_of_a_file_cannot_steer_a_terminal() -> None:
    long = "x" * 900
    text = (
        f'"\\e[31m{long}": "\\a"\n{long}: 1\npool: "\\e{long}"\nstate_directory: "{long}"\n{GROUPS}'
    )
    problems = problems_of(text)
    assert [problem[:4] for problem in problems] == ["F:1:", "F:2:", "F:3:", "F:4:"]
    assert [one for one in problems if not one.isprintable() or len(one) > 250] == []


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"groups: {cms: {pledge_hs06: 1}}\n# caf\xe9\n", ":2: byte 0xE9"),
        ("groups: {}\n".encode("utf-16"), ":1: byte 0xFF"),
        (b"#" * (MAX_BYTES + 1), ": has more than"),
        (b"a: 1\x00\n", ":1:5: holds the character U+0000"),
    ],
)
def test_bytes_that_are_no_text(tmp_path: Path, content: bytes, place: str) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(path)
    (problem,) = caught.value.problems
    assert problem.startswith(f"{path}{place}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path, fact in (
        (tmp_path / "none.yaml", "there is no such file"),
        (Path("/dev/null/sharectl.yaml"), "Not a directory"),
        (tmp_path, "is a directory"),
        (Path(f"{tmp_path}/a\0b"), "cannot be read"),
        (Path("/dev/zero"), "it is neither a regular file nor a pipe"),
    ):
        with pytest.raises(ConfigError, match=fact) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: ")
