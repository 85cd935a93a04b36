from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from sharectl.cli.main import main
from sharectl.config.fields import keys_of, sections_of
from sharectl.consumption.file import FileConfig, example, examples, load, parse
from sharectl.consumption.policy import STANDARD, AssetPolicy, ModelName, consumed
from sharectl.consumption.render import notes, snippet
from sharectl.errors import ConfigError, InputError

CHARGES = "assets: {cpus: {charge: 1}, memory: {charge: 1}, disk: {charge: 1}}"
LEAST = f"startd: {{model: minimum_charge, {CHARGES}}}"


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "F")
    return list(caught.value.problems)


def test_claims_take_of_custom_resources_what_jobs_request() -> None:
    """A slot type has the custom resources of all others; names are without case."""
    text = """
slot_types:
  1:
    model: expressions
    resources: cpus=25%
    weight: cpus
    assets: {cpus: {request: true}, memory: {request: true}, disk: {whole: true},
      gpus: {request: true, step: 2, missing: 0}, Tokens: {always: 1, declare: 3}}
  2:
    model: fixed_claims
    claims: 5
    resources: cpus=25%, gpus=0, licences=0
    assets: {cpus: {}, memory: {even: true}, disk: {always: 9}}
  3: {model: none, resources: cpus=25%}
"""
    first, second, third = parse(text, "F").policies
    assert list(first.assets) == list(second.assets) == [*STANDARD, "gpus", "tokens"]
    taken = "quantize((TARGET.RequestTokens ?: 0), 1)"
    assert (
        consumed(second)["tokens"] == f"ifThenElse((TARGET.RequestTokens ?: 0) >= 0, {taken}, -1)"
    )
    assert (third.assets, third.slot_type) == ({}, 3)
    assert parse(text, "F").declared == {"tokens": 3}


def of_expressions(weight: str = "cpus", **assets: str) -> str:
    rules = {**dict.fromkeys(("cpus", "memory", "disk"), "request: true"), **assets}
    lines = "".join(f"    {name}: {{{rule}}}\n" for name, rule in rules.items())
    return f"startd:\n  model: expressions\n  weight: {weight}\n  assets:\n{lines}"


def more(keys: str) -> str:
    return f"{LEAST[:-1]}, {keys}}}"


WRONG = {
    "": "",
    "[1]": "",
    "A = 1\nB = 2": "",
    "a: [": "1:5: not YAML",
    "{}": "",
    "startd:": "",
    "nodes: {model: none}": "nodes",
    "slot_types: {}": "",
    "slot_types: {a: {model: none}}": "slot_types.a",
    "slot_types: {0: {model: none}}": "slot_types.0",
    "slot_types: {1: 5}": "slot_types.1",
    "startd: {model: minimum_charge}": "startd.assets",
    LEAST.replace("minimum_charge", "minimum"): "startd.model",
    LEAST.replace("model", "modell"): "startd.modell",
    LEAST.replace("charge: 1", "chrge: 1", 1): "startd.assets.cpus.chrge",
    LEAST.replace("charge: 1", "charge: 0.5", 1): "startd.assets.cpus.charge",
    LEAST.replace("charge: 1", "charge: 0", 1): "startd.assets.cpus.charge",
    LEAST.replace("charge: 1", "charge: 4, levels: 2", 1): "startd.assets.cpus.levels",
    LEAST.replace("cpus: ", "cpu: "): "startd.assets",
    LEAST.replace("cpus: ", "swap: "): "startd.assets.swap",
    LEAST.replace("cpus: ", '"a b": '): "startd.assets.a b",
    LEAST.replace("disk: ", "disk: {charge: 1}, Disk: "): "startd.assets.Disk",
    LEAST.replace("disk: {", "disk: {declare: 2, "): "startd.assets.disk.declare",
    more("claims: 3"): "startd.claims",
    more("slots: 3"): "startd.slots",
    more("resources: cpus=1"): "startd.resources",
    more("weight: $(CPUS)"): "startd.weight",
    more('weight: "MY.A\\nX = 1"'): "startd.weight",
    more('weight: "MY.A \\\\"'): "startd.weight",
    "startd: {model: none, weight: cpus}": "startd.weight",
    LEAST.replace("minimum_charge", "fixed_claims").replace("charge: 1", ""): "startd",
    of_expressions("model"): "startd",
    of_expressions(cpus="request: true, always: 2"): "startd.assets.cpus",
    of_expressions(cpus="declare: 2"): "startd.assets.cpus",
    of_expressions(cpus="always: 1, step: 2"): "startd.assets.cpus.step",
    of_expressions(gpus="request: true, missing: 5"): "startd.assets.gpus.missing",
}
"""Text of a file -> path of its fault."""


def test_each_fault_has_its_place(golden: Callable[[str, str], None]) -> None:
    told = {text: problems_of(text) for text in WRONG}
    golden(
        "consumption/messages.txt",
        "\n".join("\n".join((text, *lines, "")) for text, lines in told.items()),
    )
    for text, path in WRONG.items():
        places = [problem.partition("F:")[2] for problem in told[text]]
        assert any(f"{path}: " in f"{place}: " for place in places), (text, places)


def test_all_faults_come_at_once_in_the_order_of_the_lines() -> None:
    problems = problems_of("""
slot_types:
  1:
    model: expressions
    asets: {}
    weight: cpus
    assets:
      cpus: {request: true, always: 2}
      memory: {step: 3}
      disk: {expression: $(DISK)}
  2:
    model: fixed_claims
    claims: 0
    assets:
      memory: {always: -1}
  3:
    model: none
    weight: cpus
""")
    assert [line.split(": ", 2)[:2] for line in problems] == [
        ["F:5", "slot_types.1.asets"],
        ["F:8", "slot_types.1.assets.cpus"],
        ["F:9", "slot_types.1.assets.memory"],
        ["F:9", "slot_types.1.assets.memory.step"],
        ["F:10", "slot_types.1.assets.disk.expression"],
        ["F:13", "slot_types.2.claims"],
        ["F:15", "slot_types.2.assets.memory.always"],
        ["F:18", "slot_types.3.weight"],
    ]


@pytest.mark.parametrize(
    ("text", "line", "check"),
    [
        (of_expressions("8 / MY.Cpus"), 3, "weight"),
        (of_expressions("floor(Extra)"), 3, "scope"),
        (of_expressions("MY.Cpus +"), 3, "expressions"),
        (of_expressions("'MY.A + \"'"), 3, "expressions"),
        (of_expressions(disk="expression: TARGET.RequestDisk +"), 7, "expressions"),
        (of_expressions(memory="expression: MY.RequestMemory"), 6, "scope"),
        (
            of_expressions(memory="always: -1").replace("always: -1", 'expression: "-1"'),
            6,
            "numbers",
        ),
        (of_expressions(**dict.fromkeys(("cpus", "memory", "disk"), "always: 0")), 5, "zero"),
        (
            "slot_types:\n"
            + "".join(
                f"  {number}: {{model: minimum_charge, resources: cpus=60%, {CHARGES}}}\n"
                for number in (1, 2)
            ),
            3,
            "slot types",
        ),
    ],
)
def test_faults_of_meaning_are_found_by_the_check_and_told_at_the_line_of_the_yaml(
    text: str, line: int, check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    assert main(["consumption", "render", str(path)]) == 78
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{path}:{line}: " in printed.err
    assert f"[{check}" in printed.err
    assert "70-consumption" not in printed.err


DEFAULTS = """\
startd:
  model: expressions
  assets:
    cpus: {request: true}
    memory: {request: true, step: 256}
    disk: {request: true}
  weight: cpus
  num_claims: 7
slot_types:
  1: {resources: 40%}
  2:
    resources: 20%
    assets:
      Memory: {request: true, step: 1024}
    weight: memory
  3: {model: none, resources: 20%}
  4: {model: fixed_claims, claims: 2, resources: 20%, assets: {cpus: {}, memory: {}, disk: {}}}
"""


def test_slot_types_have_what_they_leave_out_from_every_slot() -> None:
    every, first, second, third, fourth = parse(DEFAULTS, "F").policies
    assert (every.slot_type, first.slot_type) == (None, 1)
    assert (first.assets, first.weight, first.num_claims) == (every.assets, "cpus", 7)
    assert list(second.assets) == ["cpus", "memory", "disk"]
    assert second.assets["cpus"] == AssetPolicy(request=True)
    assert second.assets["memory"] == AssetPolicy(request=True, step=1024)
    assert (second.weight, second.num_claims) == ("memory", 7)
    # Another model has nothing from there.
    assert (third.assets, third.weight, third.num_claims) == ({}, None, None)
    assert (fourth.weight, fourth.num_claims, fourth.claims) == (None, None, 2)
    assert fourth.assets == dict.fromkeys(STANDARD, AssetPolicy())


def test_a_fault_of_every_slot_is_told_once() -> None:
    wrong = DEFAULTS.replace("step: 256", "step: 0")
    assert [problem.split(": ")[:2] for problem in problems_of(wrong)] == [
        ["F:5", "startd.assets.memory.step"]
    ]


def test_a_slot_that_has_none_of_an_asset_is_not_charged_for_it() -> None:
    text = f"slot_types: {{1: {{model: minimum_charge, resources: 'CPU=50%, gpus=0', {CHARGES}}}}}"
    (policy,) = parse(text, "F").policies
    assert policy.assets["gpus"].is_zero_allowed("gpus")
    assert list(notes(policy)) == []


def test_claims_are_added_to_resources_as_the_startd_parts_them() -> None:
    """Once there is a comma, it takes blanks for part of an item."""
    assets = "assets: {cpus: {}, memory: {}, disk: {}}"
    fixed = f"{{model: fixed_claims, claims: 3, resources: cpus=50% ram=1/4, {assets}}}"
    text = snippet(parse(f"slot_types: {{1: {fixed}}}", "F"))
    assert "\nSLOT_TYPE_1 = cpus=50%, ram=1/4, claims=3\n" in text


@pytest.mark.parametrize(("asset", "remark"), [("gpus", "feature:GPUs"), ("seats", "_Seats")])
def test_resources_that_are_not_declared_are_noted(asset: str, remark: str) -> None:
    text = LEAST.replace("cpus: {", f"{asset}: {{charge: 1}}, cpus: {{")
    declared = text.replace("{charge: 1}", "{charge: 1, declare: 2}", 1)
    for written, is_noted in ((text, True), (declared, False)):
        consumption = parse(written, "F")
        told = " ".join(notes(consumption.policies[0], consumption.declared))
        assert (remark in told) is is_noted


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load("/nowhere/policy.yaml")


@pytest.mark.parametrize("name", examples())
def test_examples_say_what_they_are_for(name: str) -> None:
    assert examples()[name].endswith(".")


def test_an_example_that_is_not_there() -> None:
    with pytest.raises(InputError, match="memory-centric"):
        example("memory-centrik")
    with pytest.raises(InputError, match="cpu-centric, "):
        example("../../x")


def test_the_documentation_has_every_key() -> None:
    text = (Path(__file__).parents[3] / "docs" / "consumption.md").read_text(encoding="utf-8")
    sections = sections_of(FileConfig).values()
    words = {*get_args(ModelName), *(key for section in sections for key in keys_of(section))}
    assert "charge" in words
    missing = [word for word in sorted(words) if f"`{word}" not in text and f"{word}:" not in text]
    assert missing == []
