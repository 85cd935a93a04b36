from __future__ import annotations

from typing import Optional

import pytest

from sharectl.condor.expressions import Clause, clauses, code_of, resource_of, split

OURS = "MY.t1_GraceAdmits =!= false && MY.t1_TargetAdmits =!= false && MY.t1_CoolAdmits =!= false"


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        ("a && b && c", ("a", "b", "c")),
        ("(a) && ((b && c))", ("a", "b", "c")),
        ("(a && b)", ("a", "b")),
        ("(a) && (b)", ("a", "b")),
        ("a && b || c", ("a && b || c",)),
        ("a && (b || c && d)", ("a", "b || c && d")),
        ("a ? b : c && d", ("a ? b : c && d",)),
        ("a ?: b && c", ("a ?: b && c",)),
        ("a =?= 1 && b =!= 2", ("a =?= 1", "b =!= 2")),
        ('x == "a && b" && y', ('x == "a && b"', "y")),
        (r'x == "a \" && b" && y', (r'x == "a \" && b"', "y")),
        ("'odd && name' && y", ("'odd && name'", "y")),
        (
            "f(a && b) && {a && b}[0] && [c = a && b].c",
            ("f(a && b)", "{a && b}[0]", "[c = a && b].c"),
        ),
        ("a &&", ("a &&",)),
        ("true", ("true",)),
        (")(", (")(",)),
        ('"unclosed && x', ('"unclosed', "x")),
    ],
)
def test_a_conjunction_is_split_where_its_clauses_end(
    expression: str, parts: tuple[str, ...]
) -> None:
    assert split(expression) == parts


def looked_up(**attributes: str) -> tuple[Clause, ...]:
    def attribute(name: str) -> Optional[str]:
        return {key.lower(): text for key, text in attributes.items()}.get(name)

    return clauses(attributes["Requirements"], attribute)


def test_clauses_behind_attributes_are_found() -> None:
    found = looked_up(
        Requirements="START && (WithinResourceLimits)",
        Start=f"(SiteAdmits && MY.Warm) && ({OURS})",
        SiteAdmits='Memory > 5 && TARGET.Owner != "x"',
        Warm="Cpus > 2",
        WithinResourceLimits="MY.Cpus > 0 || True",
        t1_GraceAdmits="False || (a && b)",
        t1_TargetAdmits="False || c",
    )
    start = ("start",)
    assert found == (
        Clause("Memory > 5", ("start", "siteadmits")),
        Clause('TARGET.Owner != "x"', ("start", "siteadmits")),
        Clause("MY.Warm", start),
        Clause("MY.t1_GraceAdmits =!= false", start),
        Clause("MY.t1_TargetAdmits =!= false", start),
        Clause("MY.t1_CoolAdmits =!= false", start),
        Clause("WithinResourceLimits"),
    )
    assert [code_of(clause) for clause in found] == [
        *(
            "site-start",
            "site-start",
            "site-start",
            "grace",
            "target",
            "overheat",
            "slot-requirements",
        )
    ]


def test_an_attribute_of_all_our_clauses_is_looked_through() -> None:
    found = looked_up(Requirements="START", Start="MY.t1_clauses =!= False", t1_clauses=OURS)
    assert [code_of(clause) for clause in found] == ["grace", "target", "overheat"]
    assert found[0].text == "(MY.t1_GraceAdmits =!= false) =!= False"


def test_attributes_that_stand_for_each_other_end() -> None:
    found = looked_up(Requirements="START", Start="A && x", A="B && y", B="A && START && z")
    assert [clause.text for clause in found] == ["A", "START", "z", "y", "x"]


@pytest.mark.parametrize(
    ("text", "resource"),
    [
        ("TARGET.Memory >= RequestMemory", "memory"),
        ("TARGET.GPUs >= MY.RequestGPUs", "gpus"),
        ("RequestCpus <= TARGET.Cpus", "cpus"),
        ("TARGET.Memory >= RequestDisk", None),
        ("TARGET.Memory >= 5", None),
        ("TARGET.Memory >= RequestMemory || x", None),
    ],
)
def test_clauses_on_resources_are_known(text: str, resource: Optional[str]) -> None:
    assert resource_of(Clause(text)) == resource
