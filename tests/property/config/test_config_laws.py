"""Laws of the configuration file."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from sharectl.config.fields import keys_of, sections_of
from sharectl.config.load import load, parse
from sharectl.config.model import Config
from sharectl.config.text import flow, render
from sharectl.errors import ConfigError
from sharectl.shares.groups import GROUP_NAME

PROBLEM = re.compile(r"FILE:(\d+):(?:(\d+):)? \S.*", re.DOTALL)


def numbers(least: float, most: float, *, above: bool = False) -> st.SearchStrategy[Any]:
    """Numbers within limits, whole ones and others."""
    return st.floats(least, most, exclude_min=above) | st.integers(int(least) + above, int(most))


def mappings(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings with any of the keys."""
    return st.fixed_dictionaries({}, optional=optional)


group_names = st.from_regex(GROUP_NAME, fullmatch=True) | st.sampled_from(
    ("no", "null", "1e3", "0x1f", "51", "2026-01-01", "CMS")
)
patterns = st.from_regex(r"[a-z0-9*?][a-z0-9.*?-]{0,20}[a-z*?]", fullmatch=True)
controlled = (
    st.sampled_from(
        ("*", "50%", "0%", "33.3 %", "t1_room == 3", 'regexp("wn-[0-9]+", Machine)\n  && Cpus > 8')
    )
    | st.lists(patterns, min_size=1, max_size=3)
    | st.decimals(0, 100, places=6).map(lambda percent: f"{percent}%")
    | st.just({"constraint": "GPU"})
    | st.just({"hosts": ["GPU"]})
)
paths = st.lists(
    st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=9), min_size=1
).map(lambda parts: "/" + "/".join(part.replace("/", "_") for part in parts))
daemons = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=20)
laws = {
    "law": st.sampled_from(("latest", "ewma", "pid")),
    "ewma": mappings(half_life_seconds=numbers(0, 31_536_000, above=True)),
    "pid": mappings(
        gain=numbers(0, 100, above=True),
        integral_seconds=numbers(0, 31_536_000),
        max_output_hs06=st.none() | numbers(0, 1e12, above=True),
    ),
}
own = {
    "control": mappings(**laws),
    "max_lent_hs06": numbers(0, 1e12),
    "max_borrowed_hs06": numbers(0, 1e12),
}
pledges = st.sampled_from(("pledge_hs06", "pledge_hepscore23")).flatmap(
    lambda key: st.fixed_dictionaries({key: numbers(0, 1e12, above=True)}, optional=own)
)
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
data = st.fixed_dictionaries(
    {
        "groups": st.dictionaries(group_names, pledges, min_size=1, max_size=5)
        | st.builds(
            lambda pledge, inner: {"nested": {"pledge_hs06": pledge, "groups": inner}},
            st.integers(1, 1000),
            subgroups,
        )
    },
    optional={
        "nodes": mappings(controlled=controlled),
        "control": mappings(
            multicore_cores=st.integers(2, 1024),
            deadband_hs06=numbers(0, 1e12),
            max_nodes=st.none() | st.integers(1, 1_000_000),
            setpoint=st.sampled_from(("in_use", "present", "pledge")),
            carry_over=mappings(pledge_hours=st.none() | numbers(0, 8784)),
            **laws,
            incomplete=st.sampled_from(("keep", "withdraw")),
        ),
        "pool": mappings(
            collector=st.none() | daemons,
            mode=st.sampled_from(("counted", "jobs")),
            schedds=st.lists(daemons, max_size=3),
            collector_deadline_seconds=numbers(0, 3600, above=True),
            default_node_hs06=numbers(0, 1e6, above=True),
        ),
        "publish": st.lists(
            st.one_of(
                paths.map(lambda path: {"file": f"{path}.out"}),
                paths.map(
                    lambda path: {"https": {"file": f"{path}.out", "url": "https://cm/x.txt"}}
                ),
                st.sampled_from(
                    [{"collector": {}}, {"collector": {"identity": "sharectl@example.org"}}]
                ),
            ),
            min_size=1,
            max_size=1,
        ),
        "signing_key_file": st.none() | paths,
        "validity_seconds": st.integers(60, 86400),
        "history": mappings(
            jobs_file=paths.map(lambda path: f"{path}.jobs"), errors_log_keep=st.integers(1, 1000)
        ),
        "lock_wait_seconds": numbers(0, 3600),
    },
).filter(lambda content: not {"other", "none"} & set(content["groups"]))

# Text that is near enough to a configuration to reach every check.
scraps = st.sampled_from(
    (
        *(
            "groups",
            "cms",
            "no",
            "nodes",
            "controlled",
            "pool",
            "pledge_hs06",
            "validity_minutes",
            "publish",
            "file",
        ),
        *(
            ": ",
            ":",
            "\n",
            "\n  ",
            "\n    ",
            "- ",
            "{",
            "}",
            "[",
            "]",
            ", ",
            "? ",
            "\t",
            "\n---\n",
            "\n...\n",
            " # x",
        ),
        *(
            '"',
            "'",
            "&a ",
            "*a",
            "!!int ",
            "!x ",
            "<<",
            "|\n",
            ">-\n",
            "%YAML 1.1\n",
            "%TAG ! x\n",
            "@",
            "`",
        ),
        *(
            "5",
            "8.5",
            ".nan",
            "-.inf",
            "1e999",
            "1.0e+999",
            "0:51:00",
            "51:00",
            "0x1f",
            "017",
            "17m",
            "87.1 kHS06",
        ),
        *(
            "yes",
            "~",
            "50%",
            "GPU == 1",
            "((",
            '"\\ud800"',
            '"\\UFFFFFFFF"',
            "\x85",
            "\u2028",
            "\r",
            "\xa0",
            "é",
        ),
        *("9" * 400, "2026-13-01", "=", "/a/b", "''", '""'),
    )
)
MODEL = """groups:
  cms: {pledge_hs06: 87100}
  atlas: {pledge_hepscore23: 1.5}
nodes: {controlled: [wn-0*, wn-117.example.org]}
control: {multicore_cores: 8, max_nodes: null, incomplete: keep}
pool:
  collector: cm.example.org:9618
  schedds: [ap-1, ap-2]
  schedd_deadline_seconds: 60
publish:
  - file: /shared/sharectl.txt
validity_seconds: 3060
history: {errors_log: /var/log/shares_Error.log, errors_log_max_bytes: 1048576}
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
    """load(render(config)) == config."""
    config = parse(flow(content), "FILE")
    assert parse(render(config), "FILE") == config


@given(data)
def test_render_says_the_same_of_what_it_printed(content: dict[str, Any]) -> None:
    """Rendering is idempotent, but for the marks of defaults."""
    once = render(parse(flow(content), "FILE")).replace("  # default", "")
    assert render(parse(once, "FILE")) == once


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


@given(st.binary(max_size=200) | texts.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_every_file_is_a_configuration_or_is_refused(content: bytes) -> None:
    """Bytes load, or raise `ConfigError`: nothing else, and always with a message that names the file."""
    problems: tuple[str, ...] = ()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "sharectl.yaml"
        path.write_bytes(content)
        try:
            loaded = isinstance(load(path), Config)
        except ConfigError as error:
            loaded, problems = False, error.problems
        assert loaded != bool(problems)
        assert all(problem.startswith(str(path)) for problem in problems)


@given(data, st.data())
def test_a_second_copy_of_any_line_of_a_section_is_reported(
    content: dict[str, Any], draw: st.DataObject
) -> None:
    """Every key that is there twice is reported, with the line of either."""
    lines = render(parse(flow(content), "FILE")).splitlines()
    number = draw.draw(
        st.sampled_from([n for n, line in enumerate(lines) if line.partition(": ")[2]])
    )
    lines.insert(number + 1, lines[number])
    problems = judge("\n".join(lines))
    assert len(problems) == 1
    assert problems[0].startswith(f"FILE:{number + 2}: ")
    assert f"first at line {number + 1}" in problems[0]
