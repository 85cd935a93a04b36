"""Clauses of expressions, and their references."""

from __future__ import annotations

from typing import Optional

import pytest

from sharectl.condor.expressions import (
    MY,
    TARGET,
    UNSCOPED,
    Clause,
    Reference,
    clauses,
    code_of,
    references,
    resource_of,
    split,
    with_clock,
)

OURS = "MY.t1_GraceAdmits =!= false && MY.t1_TargetAdmits =!= false && MY.t1_CoolAdmits =!= false"


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        ("a && b && c", ("a", "b", "c")),
        ("(a) && (b)", ("a", "b")),
        ("a && b || c", ("a && b || c",)),
        ("a && (b || c && d)", ("a", "b || c && d")),
        ("a ? b : c && d", ("a ? b : c && d",)),
        (r'x == "a \" && b" && y', (r'x == "a \" && b"', "y")),
        ("'odd && name' && y", ("'odd && name'", "y")),
        (
            "f(a && b) && {a && b}[0] && [c = a && b].c",
            ("f(a && b)", "{a && b}[0]", "[c = a && b].c"),
        ),
        ("a &&", ("a &&",)),
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


def test_clauses_behind_attributes_are_opened() -> None:
    opened = looked_up(
        Requirements="START && (WithinResourceLimits)",
        Start=f"(SiteAdmits && MY.Warm) && ({OURS})",
        SiteAdmits='Memory > 5 && TARGET.Owner != "x"',
        Warm="Cpus > 2",
        WithinResourceLimits="MY.Cpus > 0 || True",
        t1_GraceAdmits="False || (a && b)",
        t1_TargetAdmits="False || c",
    )
    start = ("start",)
    assert opened == (
        Clause("Memory > 5", ("start", "siteadmits")),
        Clause('TARGET.Owner != "x"', ("start", "siteadmits")),
        Clause("MY.Warm", start),
        Clause("MY.t1_GraceAdmits =!= false", start),
        Clause("MY.t1_TargetAdmits =!= false", start),
        Clause("MY.t1_CoolAdmits =!= false", start),
        Clause("WithinResourceLimits"),
    )
    codes = ["grace", "target", "overheat", "slot-requirements"]
    assert [code_of(clause) for clause in opened] == ["site-start"] * 3 + codes


def test_an_attribute_of_all_our_clauses_is_looked_through() -> None:
    opened = looked_up(Requirements="START", Start="MY.t1_clauses =!= False", t1_clauses=OURS)
    assert [code_of(clause) for clause in opened] == ["grace", "target", "overheat"]
    assert opened[0].text == "(MY.t1_GraceAdmits =!= false) =!= False"


def test_attributes_that_stand_for_each_other_end() -> None:
    opened = looked_up(Requirements="START", Start="A && x", A="B && y", B="A && START && z")
    assert [clause.text for clause in opened] == ["A", "START", "z", "y", "x"]


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


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("TARGET.RequestCpus == RequestCpus", [(TARGET, "RequestCpus"), (UNSCOPED, "RequestCpus")]),
        ("my.a && Target.b", [(MY, "a"), (TARGET, "b")]),
        ("MY.a isnt true || error", [(MY, "a")]),
        ('strcat("MY.x \\" y", MY.z)', [(MY, "z")]),
        ("ifThenElse(isString(TARGET.AcctGroup),1,2)", [(TARGET, "AcctGroup")]),
        ("MY.list[0] + 5.000000000000000E-01", [(MY, "list")]),
        ("MY.'odd name' + 'other one'", [(MY, "odd name"), (UNSCOPED, "other one")]),
        ("a.b.c", [(UNSCOPED, "a")]),
    ],
)
def test_references(expression: str, expected: list[tuple[str, str]]) -> None:
    assert references(expression) == tuple(Reference(scope, name) for scope, name in expected)


@pytest.mark.parametrize(
    ("expression", "clocked"),
    [
        ("time() - MY.Begin < 480", "t1_Clock - MY.Begin < 480"),
        ("(TIME( ) > 1) && time() < 2", "(t1_Clock > 1) && t1_Clock < 2"),
        ("MY.CurrentTime > CurrentTime", "MY.t1_Clock > t1_Clock"),
        ("'CurrentTime' > 1", "t1_Clock > 1"),
        ('"time()" == strcat("CurrentTime")', '"time()" == strcat("CurrentTime")'),
        ("MY.time + daytime() + formattime(1) + time(1)",) * 2,
    ],
)
def test_a_clock_stands_for_the_time_of_day(expression: str, clocked: str) -> None:
    assert with_clock(expression, "t1_Clock") == clocked
