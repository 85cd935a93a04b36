"""Laws of the configuration file."""

from __future__ import annotations

import json
import re
from dataclasses import MISSING
from pathlib import Path
from typing import Any, get_origin

from hypothesis import example, given
from hypothesis import strategies as st

from sharectl.config.fields import POOL_CHECKS, Key, keys_of, sections_of
from sharectl.config.groups import GroupConfig
from sharectl.config.load import parse
from sharectl.config.model import ONE_OF, Config, CricPledgesConfig
from sharectl.config.text import flow, render
from sharectl.errors import ConfigError
from sharectl.model import CollectorWay
from sharectl.shares.groups import GROUP_NAME

PROBLEM = re.compile(r"FILE:(\d+):(?:(\d+):)? \S.*", re.DOTALL)


group_names = st.from_regex(GROUP_NAME, fullmatch=True) | st.sampled_from(
    ("no", "null", "1e3", "0x1f", "51", "2026-01-01", "CMS")
)
shares = st.decimals(0, 100, places=6).map(lambda percent: f"{percent}%")
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,20}", fullmatch=True)
paths = st.lists(
    st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=9), min_size=1
).map(lambda parts: "/" + "/".join(part.replace("/", "_") for part in parts))
NOTED: dict[str, st.SearchStrategy[Any]] = {
    "share": shares,
    "nodes": shares
    | st.sampled_from(("*", "33.3 %", "t1_room == 3", 'regexp("wn-[0-9]+", Machine)\n  && Cpus'))
    | st.sampled_from((["GPU"], "(GPU)"))
    | st.lists(
        st.from_regex(r"[a-z0-9*?][a-z0-9.*?-]{0,20}[a-z*?]", fullmatch=True),
        min_size=1,
        max_size=3,
    ),
    "daemon": st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1),
    "cric url": st.just("https://cric/{year}?json"),
    "proxy": st.just("http://proxy:3128"),
    "url": st.just("https://cm/x.txt"),
    "identity": st.just("sharectl@example.org"),
    "law": st.sampled_from(("latest", "ewma", "pid")),
    "pool check": st.sampled_from(POOL_CHECKS),
    "metrics file": paths.map(lambda path: f"{path}.prom"),
}
"""Notation → values; names for others."""


def value_of(key: Key) -> st.SearchStrategy[Any]:
    """Values that a key takes."""
    setting, section = key.setting, key.section
    if section is not None:
        values: st.SearchStrategy[Any] = mapping_of(section)
    elif setting.choices:
        values = st.sampled_from(setting.choices)
    elif setting.kind:
        values = NOTED.get(setting.kind, names)
    elif key.hint is Path:
        values = paths
    else:
        above, least, most = setting.above, setting.above or setting.least or 0, setting.most or 0
        values = st.integers(int(least) + (above is not None), int(most))
        if key.hint is float:
            values |= st.floats(least, most, exclude_min=above is not None)
    if get_origin(key.hint) is tuple:
        values = st.lists(values, min_size=int(setting.least or 0), max_size=3)
    return values | st.none() if key.optional else values


def mapping_of(section: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Sound mappings of a section, with any of its keys."""
    keys = {name: key for name, key in keys_of(section).items() if name not in BELOW}
    least, some = ONE_OF.get(section, (0, ()))
    parts = {name: value_of(key) for name, key in keys.items() if name not in some}
    needed = {name: parts.pop(name) for name, key in keys.items() if key.default is MISSING}
    whole = st.fixed_dictionaries(needed, optional=parts)
    ways = [st.fixed_dictionaries({name: value_of(keys[name])}) for name in some]
    ways += [] if least else [st.just({})]
    full = st.one_of(ways).filter(lambda way: None not in way.values())
    return st.builds(lambda one, other: {**one, **other}, full, whole) if some else whole


BELOW = ("groups", "publish", "pledges")
"""Keys that have strategies beside these: what is below them depends on others."""
subgroups = st.dictionaries(
    st.from_regex(r"[A-Za-z0-9][a-z0-9_-]{0,4}", fullmatch=True),
    st.fixed_dictionaries(
        {"share": st.floats(0, 0.25)},
        optional={
            "groups": st.dictionaries(st.sampled_from(("prod", "user")), st.just({"share": 0.5}))
        },
    ),
    max_size=4,
).filter(lambda groups: len({name.lower() for name in groups}) == len(groups))
publish = st.one_of(
    paths.map(lambda path: {"file": path}),
    paths.map(lambda path: {"https": {"file": path, "url": "https://cm/x.txt"}}),
    mapping_of(CollectorWay).map(lambda way: {"collector": way}),
)
sources = mapping_of(CricPledgesConfig).map(lambda cric: {"from": "cric", "cric": cric})
data = st.builds(
    lambda groups, more, beside: {"groups": groups, **more, **beside},
    st.dictionaries(
        group_names,
        mapping_of(GroupConfig).filter(lambda group: 0 not in group.values()),
        min_size=1,
        max_size=5,
    ).filter(lambda groups: not {"other", "none"} & set(groups))
    | st.builds(
        lambda pledge, inner: {"nested": {"pledge_hs06": pledge, "groups": inner}},
        st.integers(1, 1000),
        subgroups,
    ),
    mapping_of(Config),
    st.fixed_dictionaries({}, optional={"publish": st.tuples(publish), "pledges": sources}),
)

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


@given(data)
def test_what_render_prints_loads_as_the_same_configuration(content: dict[str, Any]) -> None:
    """load(render(config)) == config, and rendering is idempotent but for marks of defaults."""
    config = parse(flow(content), "FILE")
    once = render(config)
    assert parse(once, "FILE") == config
    assert render(parse(once, "FILE")) == once.replace("  # default", "")


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
