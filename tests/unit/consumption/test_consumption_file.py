from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from sharectl.check.consumption import CHECKS
from sharectl.cli.main import main
from sharectl.config.fields import keys_of, sections_of
from sharectl.consumption.file import FileConfig, load, parse
from sharectl.consumption.policy import STANDARD, ModelName, consumed, snippet
from sharectl.errors import ConfigError

CHARGES = "assets: {cpus: {charge: 1}, memory: {charge: 1}, disk: {charge: 1}}"
LEAST = f"startd: {{model: minimum_charge, {CHARGES}}}"


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "F")
    return list(caught.value.problems)


def of_expressions(weight: str = "cpus", **assets: str) -> str:
    rules = {**dict.fromkeys(STANDARD, "request: true"), **assets}
    lines = "".join(f"    {name}: {{{rule}}}\n" for name, rule in rules.items())
    return f"startd:\n  model: expressions\n  weight: {weight}\n  assets:\n{lines}"


def more(keys: str) -> str:
    return f"{LEAST[:-1]}, {keys}}}"


SEVERAL = """
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
"""
WRONG = {
    SEVERAL: "slot_types.1.asets",
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
    f"{LEAST}\nslot_types: {{1: {{weight: cpus}}}}": "slot_types.1.model",
    "startd: {model: minimum_charge}": "startd.assets",
    LEAST.replace("minimum_charge", "minimum"): "startd.model",
    LEAST.replace("model", "modell"): "startd.modell",
    LEAST.replace("charge: 1", "chrge: 1", 1): "startd.assets.cpus.chrge",
    LEAST.replace("charge: 1", "charge: 0.5", 1): "startd.assets.cpus.charge",
    LEAST.replace("charge: 1", "charge: 0", 1): "startd.assets.cpus.charge",
    LEAST.replace("charge: 1", "charge: 4, levels: 2", 1): "startd.assets.cpus",
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
    of_expressions(cpus="always: 1, step: 2"): "startd.assets.cpus",
    of_expressions(gpus="request: true, missing: 5"): "startd.assets.gpus.missing",
}
"""Text of a file -> path of its fault."""


def test_each_fault_has_its_place(golden: Callable[[str, str], None]) -> None:
    problems = {text: problems_of(text) for text in WRONG}
    listing = ("\n".join((text, *lines, "")) for text, lines in problems.items())
    golden("consumption/messages.txt", "\n".join(listing))
    for text, path in WRONG.items():
        assert f"{path}: " in " ".join(problems[text]), text


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        (of_expressions("8 / MY.Cpus"), 3, "weight"),
        (of_expressions("floor(Extra)"), 3, "scope"),
        (of_expressions("'MY.A + \"'"), 3, "expressions"),
        (of_expressions(disk="expression: TARGET.RequestDisk +"), 7, "expressions"),
        (of_expressions(memory="expression: MY.RequestMemory"), 6, "numbers"),
        (of_expressions(**dict.fromkeys(STANDARD, "always: 0")), 5, "zero"),
        (of_expressions(fpga_2="always: 1"), 8, "knobs"),
    ],
)
def test_findings_of_the_check_are_at_the_line_of_the_yaml(
    text: str, line: int, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    assert main(["consumption", "render", str(path)]) == 78
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{path}:{line}: " in printed.err
    assert f"[{code}" in printed.err


def test_a_type_without_a_rule_for_a_custom_resource_takes_what_jobs_request() -> None:
    """Of those of the machine, which slots of every type have."""
    text = f"""{of_expressions(Tokens="always: 1, declare: 3")}
slot_types:
  3: {{model: none, resources: 20%}}
  4:
    model: fixed_claims
    claims: 2
    resources: 20% gpus=0
    assets: {{cpus: {{}}, memory: {{even: true}}, disk: {{}}}}
"""
    consumption = parse(text, "F")
    every, without, fixed = consumption.policies
    assert [policy.slot_type for policy in (every, without, fixed)] == [None, 3, 4]
    assert list(every.assets) == [*STANDARD, "tokens", "gpus"]
    assert without.assets == {}
    assert consumption.declared == {"tokens": 3}
    request = "(TARGET.RequestTokens ?: 0)"
    taken = f"ifThenElse({request} >= 0, quantize({request}, 1), -1)"
    assert consumed(fixed)["tokens"] == taken
    # Once there is a comma, a startd takes blanks for part of an item.
    assert "\nSLOT_TYPE_4 = 20%, gpus=0, claims=2\n" in snippet(consumption).text


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load("/nowhere/policy.yaml")


def test_the_page_has_every_key_model_and_code() -> None:
    page = Path(__file__).parents[3] / "docs" / "consumption.md"
    text = page.read_text(encoding="utf-8")
    sections = sections_of(FileConfig).values()
    words = {*get_args(ModelName), *(key for section in sections for key in keys_of(section))}
    assert "charge" in words
    assert [word for word in words if f"`{word}" not in text and f"{word}:" not in text] == []
    assert "weight" in {check.id for check in CHECKS}
    assert [check.id for check in CHECKS if f"\n| `{check.id}` |" not in text] == []
