"""Laws of the configuration file."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from sharectl.config.fields import keys_of, sections_of
from sharectl.config.load import parse
from sharectl.config.model import Config
from sharectl.errors import ConfigError

PROBLEM = re.compile(r"FILE:(\d+):(?:(\d+):)? \S.*", re.DOTALL)


# Text that is near enough to a configuration to reach every check.
WORDS = "groups cms no pool pledge_hs06 file ' *a !x << @ ` 5 8.5 .nan 1.0e+999 51:00 0x1f"
scraps = st.sampled_from(
    [
        *WORDS.split(),
        *(": ", "\n", "\n  ", "- ", "{", "}", "[", "]", ", ", "? ", "\t", " # x", "&a ", "|\n"),
        *("\n---\n", "\n...\n", "%YAML 1.1\n", "%TAG ! x\n", "yes", "~", "50%", '"', "''", "/a/b"),
        *('"\\ud800"', '"\\UFFFFFFFF"', "\x85", "\u2028", "\r", "\xa0", "9" * 400, "2026-13-01"),
    ]
)
MODEL = """groups:
  cms: {pledge_hs06: 87100}
  atlas: {pledge_hs06: 1.5}
nodes: {controlled: [wn-0*, wn-117.example.org]}
control: {multicore_cores: 8, max_nodes: null, incomplete: keep}
pool:
  collector: cm.example.org:9618
  schedds: [ap-1, ap-2]
  schedd_deadline_seconds: 60
publish:
  - file: /shared/sharectl.txt
validity_seconds: 3060
history: {errors_log: /var/log/shares_Error.log}
"""


def edited(edits: list[tuple[int, int, str]]) -> str:
    """`MODEL` after some edits: at which character, how many go, what comes."""
    text = MODEL
    for index, length, new in edits:
        text = text[:index] + new + text[index + length :]
    return text


texts = st.lists(scraps | st.text(max_size=5), max_size=40).map("".join) | st.lists(
    st.tuples(st.integers(0, len(MODEL)), st.integers(0, 12), scraps | st.text(max_size=3)),
    max_size=6,
).map(edited)

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | scraps,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | scraps, inner, max_size=3)
    ),
    max_leaves=4,
)
keys = st.sampled_from(
    [(path, key) for path, section in sections_of(Config).items() for key in keys_of(section)]
)


def judge(text: str) -> list[str]:
    """Problems of a text; none if it is a configuration."""
    try:
        parse(text, "FILE")
    except ConfigError as error:
        return list(error.problems)
    return []


@given(texts)
@example('a: "\\UFFFFFFFF"')
@example("%YAML 1." + "9" * 5000)
def test_every_text_is_a_configuration_or_has_problems_on_its_lines(text: str) -> None:
    """A text loads, or every problem names a line that it has, in order."""
    places = [PROBLEM.fullmatch(problem) for problem in judge(text)]
    lines = [int(place[1]) if place else 0 for place in places]
    assert all(1 <= line <= text.rstrip("\n").count("\n") + 1 for line in lines)
    assert lines == sorted(lines)


@given(keys, junk)
def test_whatever_stands_at_a_key_it_loads_or_is_reported(
    key: tuple[tuple[str | int, ...], str], value: Any
) -> None:
    """Any value at any key loads, or has problems, all of them on its line."""
    path, name = key
    content: Any = {name: value}
    for part in reversed(path):
        wrapped = {"cms": content} if path[0] == "groups" else [content]
        content = wrapped if part == "*" else {part: content}
    text = json.dumps(content)
    if "groups" not in (*path, name):
        text = f"{{groups: {{alice: {{pledge_hs06: 1}}}},\n{text[1:]}"
    assert {problem.split(":")[1] for problem in judge(text)} <= {str(text.count("\n") + 1)}
