"""Clauses of expressions, and their references."""

from __future__ import annotations

from typing import Optional

from sharectl.condor.expressions import (
    Clause,
    clauses,
    code_of,
    references,
    resource_of,
    split,
    with_clock,
)
from tests.fakes import Listing

OURS = "MY.t1_GraceAdmits =!= false && MY.t1_TargetAdmits =!= false && MY.t1_CoolAdmits =!= false"


def test_parts_of_expressions(listing: Listing) -> None:
    """Clauses, attributes, the resource of a clause, and the text with another clock."""

    def outcome(text: str) -> list[str]:
        names = (f"{reference.scope}.{reference.name}" for reference in references(text))
        return [
            "clauses " + " | ".join(split(text)),
            " ".join(("attributes", *names)),
            f"resource {resource_of(Clause(text))}",
            f"clocked {with_clock(text, 't1_Clock')}",
        ]

    listing("condor/expressions.txt", outcome, 31)


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
