"""Laws of the files of consumption policies."""

from __future__ import annotations

import re
from typing import Any, get_args

import yaml
from hypothesis import given
from hypothesis import strategies as st

from sharectl.consumption.file import parse
from sharectl.consumption.policy import Consumption, ModelName
from sharectl.consumption.render import snippet
from sharectl.errors import ConfigError

MODELS = get_args(ModelName)
PROBLEM = re.compile(r"FILE:(\d+):(?:(\d+):)? \S.*")
KEYS = [
    "startd",
    "slot_types",
    "1",
    "2",
    "model",
    "assets",
    "cpus",
    "memory",
    "disk",
    "gpus",
    "tokens",
    "Disk",
    "weight",
    "num_claims",
    "claims",
    "resources",
    "slots",
    "charge",
    "levels",
    "total",
    "even",
    "always",
    "request",
    "step",
    "missing",
    "whole",
    "expression",
    "declare",
]
scalars = st.one_of(
    st.sampled_from(
        [*MODELS, "cpus", "MY.Cpus", "TARGET.X / MY.Cpus", "$(X)", "\n", "((", "model", ""]
    ),
    st.integers(-2, 5),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=6),
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
        model = draw(st.sampled_from([model for model in MODELS if model != "none"]))
        rules: dict[str, dict[str, Any]] = {
            "minimum_charge": {"charge": 2},
            "fixed_claims": {"even": True},
            "expressions": draw(
                st.sampled_from(
                    [
                        {"always": 1},
                        {"whole": True},
                        {"request": True, "step": 3},
                        {"expression": "1 + 1"},
                    ]
                )
            ),
        }
        names = [
            "cpus",
            "memory",
            "disk",
            *draw(st.lists(st.sampled_from(["gpus", "Tokens"]), unique=True)),
        ]
        more: dict[str, Any] = {"claims": 3} if model == "fixed_claims" else {}
        more |= {"weight": "cpus"} if model == "expressions" or draw(st.booleans()) else {}
        return {
            "model": model,
            "assets": {name: some(dict(rules.get(model, {"levels": 4}))) for name in names},
            **more,
        }

    if draw(st.booleans()):
        return {"startd": some(policy())}
    types = draw(st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True))
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
    if isinstance(seen, ConfigError):
        last = text.count("\n") + 1
        for problem in seen.problems:
            place = PROBLEM.fullmatch(problem)
            assert place, problem
            assert 1 <= int(place[1]) <= last


@given(near_files().map(yaml.safe_dump))
def test_what_is_rendered_is_one_assignment_a_line(text: str) -> None:
    """Each line of a snippet is a comment or sets one macro, each macro once."""
    seen = outcome(text)
    if isinstance(seen, Consumption):
        lines = [line for line in snippet(seen).splitlines() if line and not line.startswith("#")]
        names = [
            re.fullmatch(r"((?:STARTD\.)?[A-Za-z_][A-Za-z0-9_]*) = \S.*", line) for line in lines
        ]
        assert all(names)
        assert len({name[1].lower() for name in names if name}) == len(lines)
        assert not any(line.endswith("\\") for line in lines)
