from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from sharectl.consumption.examples import example, examples
from sharectl.consumption.file import ASSETS, FileConfig, SlotConfig, load, parse
from sharectl.consumption.policy import (
    Always,
    Consumption,
    Even,
    LeastCharge,
    Levels,
    ModelName,
    Requested,
    Rule,
    SlotPolicy,
    Whole,
    Written,
)
from sharectl.consumption.render import notes, snippet
from sharectl.errors import ConfigError, InputError

CHARGES = "assets: {cpus: {charge: 1}, memory: {charge: 1}, disk: {charge: 1}}"
# What a slot has none of: a job that asks for it is refused.
NONE: dict[str, Rule] = {name: Requested(1, zero_allowed=True) for name in ("gpus", "licences")}
LEAST = f"startd: {{model: minimum_charge, {CHARGES}}}"


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "F")
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("first", "second", "declare", "said"),
    [
        ("memory=60%", "memory=60%", 10, "want 120% memory"),
        ("cpus=1/2", "cpus=51%", 10, "want 101% cpus"),
        ("licences=4", "licences=7", 10, "want 11 of 10 licences"),
        ("licences=50%", "licences=6", 10, "want 11 of 10 licences"),
        ("cpus=60%, memory=50%, licences=4", "cpus=40%, memory=50%, licences=6", 10, ""),
        ("cpus=10", "cpus=8", 10, ""),
        # As the startd reads them: one share for all, names cut short, blanks in place of commas.
        ("75%", "75%", 10, "want 150% cpus, 150% memory, 150% disk, 150% swap, 15 of 10 licences"),
        (
            "cpus=50%, 60%",
            "cpus=50%, licences=1, 60%",
            10,
            "want 120% memory, 120% disk, 120% swap, and",
        ),
        ("c=60%", "CPUS=60%", 10, "want 120% cpus"),
        ("ram=60%", "memory=60%", 10, "want 120% memory"),
        ("cpus=60% memory=20%", "cpus=60% memory=20%", 10, "want 120% cpus, and"),
        ("cpus=1/2 licences=6", "cpus=1/2 licences=6", 10, "want 12 of 10 licences"),
        ("75%", "auto", 10, ""),
        ("1/2", "50%", 10, ""),
    ],
)
def test_slot_types_want_no_more_than_there_is(
    first: str, second: str, declare: int, said: str
) -> None:
    assets = CHARGES.replace("}}", f"}}, licences: {{charge: 1, declare: {declare}}}}}")
    text = "slot_types:\n" + "".join(
        f"  {number}:\n    model: minimum_charge\n    resources: {resources}\n    {assets}\n"
        for number, resources in enumerate((first, second), 1)
    )
    if not said:
        assert len(parse(text, "F").policies) == 2
        return
    (problem,) = problems_of(text)
    assert problem.startswith("F:8: slot_types.2.resources: ")
    assert said in problem


def test_every_rule_is_read() -> None:
    text = """
slot_types:
  1:
    model: expressions
    resources: cpus=25%
    slots: 2
    num_claims: 7
    weight: cpus
    assets:
      cpus: {request: true}
      memory: {request: true, step: 64}
      disk: {whole: true}
      gpus: {request: true, step: 2, missing: 0}
      Tokens: {always: 1, declare: 3}
      licences: {expression: "TARGET.RequestLicences ?: 0"}
  2:
    model: fixed_claims
    claims: 5
    resources: cpus=25%, gpus=0, licences=0
    assets: {cpus: {}, memory: {even: true}, disk: {always: 9}, tokens: {always: 0}}
  3: {model: none, resources: cpus=25%}
  12:
    model: quanta_any
    resources: cpus=1, gpus=0, Licences=0%
    assets: {tokens: {levels: 2}, cpus: {levels: 4}, memory: {levels: 5, total: 900}, disk: {levels: 6}}
"""
    assert parse(text, "F") == Consumption(
        (
            SlotPolicy(
                1,
                "expressions",
                {
                    "cpus": Requested(1),
                    "memory": Requested(64),
                    "disk": Whole(),
                    "gpus": Requested(2, zero_allowed=True),
                    "tokens": Always(1),
                    "licences": Written("TARGET.RequestLicences ?: 0"),
                },
                "cpus",
                7,
                resources="cpus=25%",
                slots=2,
            ),
            SlotPolicy(
                2,
                "fixed_claims",
                {"cpus": Even(), "memory": Even(), "disk": Always(9), "tokens": Always(0), **NONE},
                claims=5,
                resources="cpus=25%, gpus=0, licences=0",
            ),
            SlotPolicy(3, "none", resources="cpus=25%"),
            SlotPolicy(
                12,
                "quanta_any",
                {
                    "tokens": Levels(2),
                    "cpus": Levels(4),
                    "memory": Levels(5, 900),
                    "disk": Levels(6),
                    **NONE,
                },
                resources="cpus=1, gpus=0, Licences=0%",
            ),
        ),
        {"tokens": 3},
    )


def test_the_short_form() -> None:
    charges = {asset: LeastCharge(1) for asset in ("cpus", "memory", "disk")}
    assert parse(LEAST, "F") == Consumption((SlotPolicy(None, "minimum_charge", charges),))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "F:1: the file is empty; write such as what"),
        ("[1]", "F:1: the file is no mapping"),
        ("a: [", "F:1:5: not YAML"),
        ("{}", "F:1: write startd, for every slot of the node, or slot_types"),
        ("startd:", "F:1: startd: there is nothing in it"),
        ("slot_types: {}", "F:1: slot_types: there is no slot type; write such as 1:"),
        (
            "slot_types: {a: {model: none}}",
            'F:1: slot_types.a: "a" is no slot type; write the number N',
        ),
        (
            "slot_types: {0: {model: none}}",
            "F:1: slot_types.0: slot types begin at 1: what HTCondor calls type 0",
        ),
        ("slot_types: {01: {model: none}}", 'F:1: slot_types.01: "01" is no slot type'),
        (
            "slot_types: {1: 5}",
            "F:1: slot_types.1: this is 5, not a mapping; write one with keys such as model",
        ),
        (
            LEAST.replace("minimum_charge", "minimum"),
            '"minimum" will not do; did you mean minimum_charge?',
        ),
        (LEAST.replace("model", "modell"), "F:1: startd.modell: unknown key; did you mean model?"),
        (
            LEAST.replace("charge: 1", "chrge: 1"),
            "startd.assets.cpus.chrge: unknown key; did you mean charge?",
        ),
        (
            LEAST.replace("charge: 1", "charge: 0.5"),
            "0.5 is no whole number, and HTCondor gives a claim whole",
        ),
        (
            LEAST.replace("charge: 1", "charge: 0"),
            "startd.assets.cpus.charge: 0 is out of range; write a whole",
        ),
        (
            LEAST.replace("charge: 1", "charge: .inf"),
            "startd.assets.cpus.charge: inf is no whole number",
        ),
        (
            LEAST.replace("charge: 1", "charge: .nan"),
            "startd.assets.cpus.charge: nan is no whole number",
        ),
        (LEAST.replace("charge: 1", "charge: 10000000000000000"), "is out of range"),
        (
            LEAST.replace("cpus: ", "cpu: "),
            "F:1: startd.assets: cpus is missing; every slot has it",
        ),
        (
            LEAST.replace("memory: ", "memori: "),
            (
                'F:1: startd.assets.memori: "memori" is no asset of every slot, did you mean '
                "memory? Of a custom resource write declare"
            ),
        ),
        (LEAST.replace("cpus: ", "swap: "), "startd.assets.swap: HTCondor leaves swap out"),
        (LEAST.replace("cpus: ", '"a b": '), 'startd.assets.a b: "a b" is no asset; write letters'),
        (LEAST.replace("cpus: ", "Memory: "), "startd.assets.memory: is the same asset as Memory"),
        (LEAST[:-1] + ", claims: 3}", "startd.claims: only fixed_claims counts claims"),
        (LEAST[:-1] + ", slots: 3}", "startd.slots: needs resources beside it"),
        (LEAST[:-1] + ", resources: cpus=1}", "startd.resources: belongs to a slot type"),
        (LEAST[:-1] + ", weight: gpus}", 'startd.weight: "gpus" is no asset of this slot'),
        (
            LEAST[:-1] + ", weight: 8 / MY.Cpus}",
            "startd.weight: divides by MY.Cpus, which is 0 when it is used",
        ),
        (
            LEAST[:-1] + ", weight: floor(Cpus)}",
            "startd.weight: Cpus has no scope, so that a job could put",
        ),
        (LEAST[:-1] + ", weight: TARGET.A + 1}", "startd.weight: a weight is the slot's alone"),
        (LEAST[:-1] + ", weight: MY.Cpus +}", 'startd.weight: HTCondor cannot read "MY.Cpus +"'),
        (LEAST[:-1] + ", weight: $(CPUS)}", 'startd.weight: "$(CPUS)" holds a macro'),
        (LEAST[:-1] + ', weight: "MY.A\\nX = 1"}', "startd.weight: an expression is one line"),
        (LEAST[:-1] + ', weight: "MY.A + \\""}', "has a quote that is not closed"),
        (LEAST[:-1] + ', weight: "MY.A \\\\"}', "holds a macro of HTCondor's configuration"),
        (
            LEAST.replace("disk: {", "disk: {declare: 2, "),
            "disk is an asset of every slot, not a custom resource",
        ),
    ],
)
def test_what_is_wrong_is_said(text: str, problem: str) -> None:
    assert any(problem in line for line in problems_of(text)), problems_of(text)


def test_all_problems_come_at_once_in_the_order_of_the_lines() -> None:
    problems = problems_of("""
slot_types:
  1:
    model: expressions
    asets: {}
    assets:
      cpus: {request: true, always: 2}
      memory: {step: 3}
      disk: {expression: RequestDisk + 5}
      gpus: {request: true, missing: 5}
      tokens: {always: 1, declare: 3}
    resources: gpu=2
  2:
    model: fixed_claims
    assets:
      cpus: {even: true, always: 1}
      memory: {always: -1}
      disk: {}
      tokens: {declare: 4}
      claims: {}
  3:
    model: none
    weight: cpus
""")
    assert any("write a whole number, 0 to 1000000000000000" in line for line in problems)
    assert [line.split(": ", 2)[:2] for line in problems] == [
        ["F:3", "slot_types.1"],  # no weight
        ["F:5", "slot_types.1.asets"],
        ["F:7", "slot_types.1.assets.cpus"],
        ["F:8", "slot_types.1.assets.memory"],
        ["F:8", "slot_types.1.assets.memory.step"],
        ["F:9", "slot_types.1.assets.disk.expression"],
        ["F:10", "slot_types.1.assets.gpus.missing"],
        ["F:12", "slot_types.1.resources"],
        ["F:13", "slot_types.2"],  # no resources
        ["F:13", "slot_types.2"],  # no claims
        ["F:15", "slot_types.2.assets"],  # no gpus
        ["F:16", "slot_types.2.assets.cpus"],
        ["F:17", "slot_types.2.assets.memory.always"],
        ["F:19", "slot_types.2.assets.tokens.declare"],
        ["F:20", "slot_types.2.assets.claims"],
        ["F:21", "slot_types.3"],
        ["F:23", "slot_types.3.weight"],
    ]


def test_what_another_slot_type_declares_is_an_asset_of_this_one_too() -> None:
    text = "slot_types:\n" + "".join(
        f"  {number}: {{model: minimum_charge, assets: {{cpus: {{charge: 1}}, memory: {{charge: "
        f"1}}, "
        f"disk: {{charge: 1}}{more}}}}}\n"
        for number, more in ((1, ", tokens: {charge: 1, declare: 2}"), (2, ""))
    )
    assert problems_of(text) == [
        (
            "F:3: slot_types.2.assets: tokens is missing; it is named elsewhere in the file, "
            "and HTCondor has it on slots of every "
            "type; write how claims take of it (where jobs may do without: model: expressions, "
            "tokens: {request: true, missing: 0}, "
            "or model: quanta_any), or tokens=0 in resources of a type that has none"
        )
    ]


def test_an_asset_that_is_known_or_declared_is_not_taken_for_another() -> None:
    for name, more in (("gpus", ""), ("cpu", ", declare: 2")):
        text = LEAST.replace("cpus: {charge: 1", f"{name}: {{charge: 1{more}")
        assert problems_of(text) == [
            "F:1: startd.assets: cpus is missing; every slot has it, write how claims take of it"
        ]


def typed(policy: str) -> str:
    return "slot_types: {1: " + LEAST[len("startd: ") : -1] + f", {policy}}}}}"


def test_a_model_that_is_misspelt_hides_nothing() -> None:
    for model in ("minimum_chrge", "least", "5"):
        text = LEAST.replace("minimum_charge", model).replace(
            "memory: {charge: 1", "memory: {charge: 2GB"
        )
        problems = problems_of(text.replace("cpus: {charge: 1", "cpu: {charge: 0"))
        assert [line.split(": ")[1] for line in problems] == [
            "startd.model",
            "startd.assets",
            "startd.assets.cpu",
            "startd.assets.cpu.charge",
            "startd.assets.memory.charge",
        ], problems


@pytest.mark.parametrize(
    "first",
    [
        "A = 1",
        "STARTD.SLOT_WEIGHT=Cpus",
        "A @=end",
        "use feature : GPUs",
        "\tA = b: c",
        "a.b = $(c)",
    ],
)
def test_configuration_of_htcondor_is_named_as_such(first: str) -> None:
    assert problems_of(f"# Policies: of nodes\n \n{first}\nB = 2\n@end\n") == [
        (
            "F:3: is configuration of HTCondor, and what it is rendered from is YAML; write "
            "such as what `sharectl consumption examples "
            "minimum-charge` prints, or check this: sharectl consumption check F"
        )
    ]


def test_yaml_that_holds_an_assignment_is_no_configuration_of_htcondor() -> None:
    policies = parse(f"# A = 1\n{LEAST[:-1]}, weight: 'MY.A == 1'}}", "F").policies
    assert policies[0].weight == "MY.A == 1"
    for text in ("nodes: a = 1", '"A" = 1', "- A = 1"):
        assert "configuration of HTCondor" not in "".join(problems_of(text))


def test_a_top_key_that_is_misspelt_is_one_problem() -> None:
    for key in ("slot_type", "slots_types", "Slot_Types", "slottypes"):
        text = f"{key}:\n  1: {{model: none}}\n  2: {{model: none}}\n"
        assert problems_of(text) == [f"F:1: {key}: unknown key; did you mean slot_types?"]
    assert problems_of(LEAST.replace("startd", "strtd")) == [
        "F:1: strtd: unknown key; did you mean startd?"
    ]
    unlike, neither = problems_of("nodes: {model: none}")
    assert "unknown key; write one of startd, slot_types" in unlike + neither
    assert "write startd, for every slot of the node, or slot_types" in unlike + neither


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
  4: {model: fixed_claims, claims: 2, resources: 20%, assets: {cpus: {}, memory: {request: true}, disk: {}}}
"""


def test_slot_types_have_what_they_leave_out_from_every_slot() -> None:
    every, first, second, third, fourth = parse(DEFAULTS, "F").policies
    assert (every.slot_type, first.slot_type) == (None, 1)
    assert (first.assets, first.weight, first.num_claims) == (every.assets, "cpus", 7)
    assert list(second.assets) == ["cpus", "memory", "disk"]
    assert second.assets["memory"] == Requested(1024)
    assert (second.assets["cpus"], second.weight, second.num_claims) == (
        every.assets["cpus"],
        "memory",
        7,
    )
    # Another model has nothing from there.
    assert (third.assets, third.weight, third.num_claims) == ({}, "model", None)
    assert (fourth.weight, fourth.num_claims, fourth.claims) == ("model", None, 2)
    assert fourth.assets == {"cpus": Even(), "memory": Requested(), "disk": Even()}


def test_what_is_wrong_for_every_slot_is_said_once() -> None:
    wrong = DEFAULTS.replace("step: 256", "step: 0").replace("weight: cpus", "weight: 1 / MY.Cpus")
    assert [problem.split(":")[2].strip() for problem in problems_of(wrong)] == [
        "startd.assets.memory.step",
        "startd.weight",
    ]


def test_a_key_of_another_model_is_said_to_be_one() -> None:
    (problem,) = problems_of(LEAST.replace("memory: {charge: 1", "memory: {charge: 4, levels: 20"))
    assert problem == (
        "F:1: startd.assets.memory.levels: belongs to model: quanta_all or quanta_any; remove "
        "it, or choose that model"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            typed("resources: 'cpus=1, gpu=2'"),
            '.resources: "gpu=2": assets have no "gpu"; did you mean gpus?',
        ),
        (
            typed("resources: 'seats=2'"),
            '.resources: "seats=2": assets have no "seats"; write how claims',
        ),
        (typed("resources: 'gpus=1'"), ".assets: gpus is missing; it is named elsewhere"),
        (
            typed("resources: 'gpus=0'").replace("cpus: {", "gpus: {charge: 1}, cpus: {"),
            (
                ".assets.gpus: every claim takes 1 at least, and resources give a slot 0: nothing "
                "could ever run; remove this line"
            ),
        ),
        (
            typed("resources: 'gpus=2'").replace("cpus: {", "gpus: {charge: 3}, cpus: {"),
            (
                "every claim takes 3 at least, and resources give a slot 2: nothing could ever run; "
                "give it more in resources"
            ),
        ),
        (
            typed("resources: 'gpus=2 cpus=50%'").replace("cpus: {", "gpus: {charge: 3}, cpus: {"),
            (
                ".assets.gpus: every claim takes 3 at least, and resources give a slot 2: nothing "
                "could ever run"
            ),
        ),
        (
            typed("resources: 'cpus=100%, ram=1/2, disk=50%, 0%'").replace(
                "cpus: {", "gpus: {charge: 1}, cpus: {"
            ),
            (
                ".assets.gpus: every claim takes 1 at least, and resources give a slot 0: nothing "
                "could ever run; remove this line"
            ),
        ),
        (typed("resources: 'cpus=50% seats=2'"), '.resources: "seats=2": assets have no "seats"'),
    ],
)
def test_assets_are_compared_with_resources(text: str, problem: str) -> None:
    assert len(problems_of(text)) == 1
    assert problem in problems_of(text)[0]


def of_expressions(**assets: str) -> str:
    lines = "".join(f"    {name}: {{{rule}}}\n" for name, rule in assets.items())
    return f"startd:\n  model: expressions\n  weight: cpus\n  assets:\n{lines}"


NOTHING = dict.fromkeys(("cpus", "memory", "disk"), "always: 0")


def test_a_policy_by_which_no_job_takes_anything_is_refused() -> None:
    for licence in ("always: 0, declare: 3", 'expression: "(0.0)"', 'expression: "0"'):
        assert problems_of(of_expressions(**NOTHING, licence=licence)) == [
            (
                "F:4: startd.assets: a claim takes 0 of cpus, memory, disk, licence, whatever "
                "the job asks for: the negotiator refuses "
                "every job (Consumption for all assets … was zero); let every claim take some "
                "of one asset, such as cpus: {request: true}"
            )
        ]
    none = typed("resources: 'gpus=0', weight: cpus").replace("minimum_charge", "expressions")
    none = none.replace("charge: 1", "always: 0").replace(
        "cpus: {", "gpus: {request: true, missing: 0}, cpus: {"
    )
    (problem,) = problems_of(none)
    assert "startd" not in problem
    assert ".assets: a claim takes 0 of gpus, cpus, memory, disk" in problem


@pytest.mark.parametrize(
    "licence",
    [
        "always: 1",
        "request: true, missing: 0",
        "request: true, step: 1",
        "whole: true",
        'expression: "0.1"',
    ],
)
def test_a_policy_by_which_some_job_takes_something_is_none_of_those(licence: str) -> None:
    (policy,) = parse(of_expressions(**NOTHING, licence=licence), "F").policies
    said = [note for note in notes(policy) if "takes nothing at all" in note]
    if "missing: 0" in licence:
        (note,) = said
        assert note.startswith("a job that asks for none of Licence takes nothing at all")
    else:
        assert said == []


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (
            LEAST,
            "disk counts in KiB, and the charge is 1 of them: 23.9.6 gives each claim 1 MiB more",
        ),
        (
            LEAST.replace("disk: {charge: 1}", "disk: {charge: 10239}"),
            "the charge is 10239 of them",
        ),
        (LEAST.replace("disk: {charge: 1}", "disk: {charge: 10240}"), ""),
        (
            LEAST.replace("memory: {charge: 1}", "memory: {charge: 1572864}").replace(
                "1}}", "1048576}}"
            ),
            (
                "memory counts in MiB, and every claim takes 1572864 of them at least, 1.5 TiB: "
                "no node of usual size has room for one. "
                "Where KiB were meant, write 1536."
            ),
        ),
        (of_expressions(**{**NOTHING, "memory": "always: 1048576"}), "write 1024."),
        (of_expressions(**{**NOTHING, "memory": "request: true, step: 1048576"}), "write 1024."),
        (of_expressions(**{**NOTHING, "memory": "request: true, step: 1048575"}), ""),
        (of_expressions(**{**NOTHING, "memory": "request: true, step: 1048576, missing: 0"}), ""),
        (of_expressions(**{**NOTHING, "disk": "request: true, step: 128"}), ""),
    ],
)
def test_amounts_in_another_unit_are_noted(policy: str, said: str) -> None:
    (parsed,) = parse(policy, "F").policies
    about_units = [note for note in notes(parsed) if " counts in " in note]
    assert len(about_units) == bool(said)
    assert all(said in note for note in about_units)


def test_a_slot_that_has_none_of_an_asset_is_not_charged_for_it() -> None:
    text = snippet(parse(typed("resources: 'CPU=50%, mem=1/2, gpus=0'"), "F"))
    assert (
        "SLOT_TYPE_1_CONSUMPTION_GPUS = ifThenElse((TARGET.RequestGPUs ?: 0) >= 0, "
        "quantize((TARGET.RequestGPUs ?: 0), 1), -1)\n" in text
    )
    assert "floor(MY.Cpus), floor(MY.Memory), floor(MY.Disk)})" in text


def test_claims_are_added_to_resources_as_the_startd_parts_them() -> None:
    """Once there is a comma, it takes blanks for part of an item."""
    assets = "assets: {cpus: {}, memory: {}, disk: {}}"
    text = (
        f"slot_types: {{1: {{model: fixed_claims, claims: 3, resources: cpus=50% ram=1/4, "
        f"{assets}}}}}"
    )
    assert "\nSLOT_TYPE_1 = cpus=50%, ram=1/4, claims=3\n" in snippet(parse(text, "F"))


def test_resources_that_are_not_declared_are_noted() -> None:
    for name, remark in (
        ("gpus", "`use feature:GPUs` finds them"),
        ("licences", "MACHINE_RESOURCE_Licences"),
    ):
        text = LEAST.replace("cpus: {", f"{name}: {{charge: 1}}, cpus: {{")
        assert remark in snippet(parse(text, "F"))
        assert (
            remark
            not in snippet(
                parse(text.replace("{charge: 1}", "{charge: 1, declare: 2}", 1), "F")
            ).split("Every slot")[1]
        )


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="there is no such file; write such as what"):
        load("/nowhere/policy.yaml")


@pytest.mark.parametrize("name", examples())
def test_examples_are_sound_and_say_what_they_are_for(name: str) -> None:
    assert parse(example(name), name).policies
    assert examples()[name].endswith(".")


def test_an_example_that_is_not_there() -> None:
    with pytest.raises(InputError, match="did you mean memory-centric"):
        example("memory-centrik")
    with pytest.raises(InputError, match="write one of cpu-centric, "):
        example("../../x")


def test_the_documentation_has_every_key() -> None:
    text = (Path(__file__).parents[3] / "docs" / "consumption.md").read_text(encoding="utf-8")
    models = {*ASSETS, "none"}
    sections: list[type[BaseModel]] = [SlotConfig, FileConfig, *ASSETS.values()]
    keys = {key for section in sections for key in section.model_fields}
    assert [
        word for word in sorted(models | keys) if f"`{word}" not in text and f"{word}:" not in text
    ] == []
    assert models == set(get_args(ModelName))
