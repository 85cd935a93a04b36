"""Laws of the files of consumption policies."""

from __future__ import annotations

import re
from typing import Any, get_args

import yaml
from hypothesis import given
from hypothesis import strategies as st

from sharectl.consumption.file import parse
from sharectl.consumption.policy import AssetPolicy, Consumption, ModelName, snippet
from sharectl.errors import ConfigError

MODELS = get_args(ModelName)
PROBLEM = re.compile(r"FILE:(\d+):(?:(\d+):)? \S.*")
ASSIGNMENT = re.compile(r"((?:STARTD\.)?[A-Za-z_][A-Za-z0-9_]*) = \S.*(?<!\\)")
KEYS = [
    *("startd", "slot_types", "1", "2", "model", "assets", "weight", "num_claims", "claims"),
    *("resources", "slots", "cpus", "memory", "disk", "gpus", "tokens", "Disk"),
    *AssetPolicy.__dataclass_fields__,
]
TEXTS = ["cpus", "MY.Cpus", "TARGET.X / MY.Cpus", "$(X)", "\n", "((", "model", ""]
RULES: dict[str, list[dict[str, Any]]] = {
    "minimum_charge": [{"charge": 2}],
    "fixed_claims": [{"even": True}],
    "quanta_all": [{"levels": 4}],
    "quanta_any": [{"levels": 4}],
    "expressions": [
        {"always": 1},
        {"whole": True},
        {"request": True, "step": 3},
        {"expression": "1 + 1"},
    ],
}
scalars = st.one_of(
    st.sampled_from([*MODELS, *TEXTS]),
    *(st.integers(-2, 5), st.floats(), st.booleans(), st.none(), st.text(max_size=6)),
)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=25,
)


@st.composite
def near_files(draw: st.DrawFn) -> dict[str, Any]:
    """Files that are sound, or have a few values that are not."""
    broken = draw(st.booleans())

    def some(sound: Any) -> Any:
        return draw(trees) if broken and draw(st.integers(0, 4)) == 1 else sound

    def policy() -> dict[str, Any]:
        model = draw(st.sampled_from(list(RULES)))
        rule = draw(st.sampled_from(RULES[model]))
        names = ["cpus", "memory", "disk", *draw(st.sets(st.sampled_from(["gpus", "Tokens"])))]
        more: dict[str, Any] = {"claims": 3} if model == "fixed_claims" else {}
        more |= {"weight": "cpus"} if model == "expressions" or draw(st.booleans()) else {}
        return {"model": model, "assets": {name: some(dict(rule)) for name in names}, **more}

    if draw(st.booleans()):
        return {"startd": some(policy())}
    types = draw(st.sets(st.integers(1, 12), min_size=1, max_size=3))
    return {"slot_types": {number: some({**policy(), "resources": "cpus=10%"}) for number in types}}


def outcome(text: str) -> Consumption | ConfigError:
    try:
        return parse(text, "FILE")
    except ConfigError as error:
        return error


@given(st.one_of(st.text(), trees.map(yaml.safe_dump), near_files().map(yaml.safe_dump)))
def test_every_text_is_policies_or_problems_with_places(text: str) -> None:
    """Any text is read, or refused with a line of the file for each problem."""
    seen = outcome(text)
    problems = seen.problems if isinstance(seen, ConfigError) else ()
    assert problems or isinstance(seen, Consumption)
    for problem in problems:
        place = PROBLEM.fullmatch(problem)
        assert place, problem
        assert 1 <= int(place[1]) <= text.count("\n") + 1


@given(near_files().map(yaml.safe_dump))
def test_rendered_lines_are_one_assignment_each(text: str) -> None:
    """Each line of a snippet is a comment or sets one macro, each macro once."""
    seen = outcome(text)
    if isinstance(seen, Consumption):
        rows = snippet(seen).text.splitlines()
        lines = [line for line in rows if line and not line.startswith("#")]
        names = [match[1].lower() for line in lines if (match := ASSIGNMENT.fullmatch(line))]
        assert len(set(names)) == len(lines) > 0
