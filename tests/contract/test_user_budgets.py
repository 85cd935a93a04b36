"""Budgets of users: jobs of one that cost too much change no verdict on jobs of another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import classad2
import pytest

from sharectl.condor.accounts import MOST_EXPRESSIONS, MOST_WORDS_OF_USER, charged
from sharectl.condor.deadline import Question
from sharectl.snapshot.job_trials import ask_both, tried
from sharectl.snapshot.schedd_jobs import (
    MOST_SHAPE_ROWS,
    MOST_SHAPES,
    JobKind,
    JobShape,
    Shapes,
    shapes_of,
)
from tests.contract.test_job_trials import (
    DOUBLED,
    JOB,
    OTHER,
    OWN,
    TOLD,
    FakeSchedd,
    answer,
    slots,
    text_of,
    wants,
)

LONG = {f"A{n}": f"strcat(A{n - 1}, A{n - 1})" for n in range(1, 13)}
SUMS = {name: f"A{int(name[1:]) - 1} + A{int(name[1:]) - 1}" for name in DOUBLED}
WORDS = " + ".join(f"TARGET.Word{{0}}x{n}" for n in range(MOST_WORDS_OF_USER // 4))


def shape(user: str, number: int, ad: Mapping[str, str]) -> JobShape:
    text = text_of({**JOB, "Requirements": OWN, **ad})
    return JobShape(JobKind("cms", 8, number), 1, f"{user}#{number}.0", text, user=user)


@pytest.mark.parametrize(
    "hostile",
    [
        wants('size(regexps("(a*)*b", A12, "x")) != {0}', A0='"aaaaaaaaaaaaaaaa"', **LONG),
        wants("size(A39) > TARGET.Cpus + {0}", A0='strcat(TARGET.Arch, "x")', **DOUBLED),
        wants("A39 > TARGET.Cpus + {0}", A0="1 + TARGET.Cpus", **SUMS),
        wants("(" * 3000 + "TARGET.Cpus > {0}" + ")" * 3000),
        wants(f"{WORDS} > 3"),
    ],
    ids=["regexps", "strings", "sums", "parentheses", "attributes"],
)
def test_jobs_that_cost_too_much_change_no_verdict_on_another_users(
    hostile: Mapping[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    long = f'"{"y" * 3000}"'  # longer than the hostile ones
    own = [shape("bob", 0, wants("TARGET.HasFoo", Remark=long)), shape("bob", 1, {"Remark": long})]
    costly = [
        shape("mallory", number, {name: text.format(number) for name, text in hostile.items()})
        for number in range(2, 62)
    ]
    queue = Shapes((*costly, *own), complete=True, attributes=TOLD)
    done = tried(slots({}, {}), [answer(queue)], 60)
    assert [shape.example for shape in done.unplaceable if shape.user == "bob"] == ["bob#0.0"]
    assert done.untried is None
    assert {shape.user for shape in done.over} == {"mallory"}
    assert capfd.readouterr() == ("", "")  # of HTCondor's library either


def job(user: str, number: int, **more: str) -> dict[str, str]:
    return {**OTHER, "AutoClusterId": str(number), "User": f'"{user}"', "JobCount": "1", **more}


def test_a_user_who_fills_an_answer_hides_no_jobs_of_another() -> None:
    many = [
        job("mallory", number, RequestDisk=str(number)) for number in range(MOST_SHAPE_ROWS + 90)
    ]
    large = job("mallory", MOST_SHAPE_ROWS + 91, RequestCpus="16")
    own = [
        job("bob", MOST_SHAPE_ROWS + 100 + number, RequestDisk=str(number)) for number in range(3)
    ]
    seen = shapes_of(FakeSchedd(large, *many, *own), "ap", 64)
    assert seen.complete
    assert sum(shape.user == "bob" and shape.ad is not None for shape in seen.shapes) == 3
    hostile = [shape for shape in seen.shapes if shape.user == "mallory"]
    tried_ones = [shape for shape in hostile if shape.ad is not None]
    assert len(tried_ones) == MOST_SHAPES
    assert {shape.kind.cores for shape in tried_ones} == {8, 16}
    assert all(shape.over for shape in hostile if shape.ad is None)
    assert sum(shape.jobs for shape in hostile) == len(many) + 1


def test_ads_of_a_user_are_tried_up_to_so_many_characters() -> None:
    long = f'"{"x" * 15_000}"'
    jobs = [job("mallory", n, Tag=long, RequestDisk=str(n)) for n in range(100)]
    seen = shapes_of(FakeSchedd(*jobs, job("bob", 200)), "ap", 64).shapes
    tried_ones = [shape.user for shape in seen if shape.ad is not None]
    assert 50 < tried_ones.count("mallory") < 70
    assert tried_ones.count("bob") == 1
    assert sum(shape.over for shape in seen) == 100 - tried_ones.count("mallory")


def test_requests_of_a_megabyte_hide_no_job_of_another() -> None:
    long = ",".join("1" * 500_000)
    large = [
        job("mallory", n, RequestCpus=f"size({{{n},{long}}}) > TARGET.Nope ? 1 : 1")
        for n in range(3)
    ]
    schedd = FakeSchedd(*large, job("bob", 9))
    question = Question(partial(shapes_of, schedd, "ap", 64), 180)
    counted, (seen,) = ask_both({"ap": question}, {"ap": question})
    assert seen.source.problem is None
    assert sum(counted["ap"].value.pending.values()) == 4
    assert {shape.user: shape.over for shape in seen.value.shapes} == {
        "mallory": True,
        "bob": False,
    }


def test_expressions_of_one_user_take_no_place_of_those_of_many() -> None:
    def ad(user: str, expression: str) -> Any:
        made = classad2.ClassAd({"User": user, "G": "cms"})
        made["AccountingGroup"] = classad2.ExprTree(expression)
        return made

    mapped = [ad(f"user{number}", 'strcat(G, ".prod")') for number in range(3)]
    own = [ad("mallory", f'strcat(G, "{n % MOST_EXPRESSIONS}")') for n in range(80)]
    assert [ad["AccountingGroup"] for ad in charged([*own, *mapped])[80:]] == ["cms.prod"] * 3


def test_attributes_of_one_user_cost_no_other_the_group() -> None:
    def ad(user: str, group: str, **more: str) -> Any:
        made = classad2.ClassAd({"User": user, "A0": "a" * 16})
        made["AccountingGroup"] = classad2.ExprTree('strcat(G, ".prod")')
        for name, text in {"G": group, **more}.items():
            made[name] = classad2.ExprTree(text)
        return made

    slow = [ad("mallory", f'regexps("(a*)*b", A12, "{n}")', **LONG) for n in range(40)]
    seen = charged([*slow, *(ad(f"user{number}", '"cms"') for number in range(3))])
    assert [ad["AccountingGroup"] for ad in seen[40:]] == ["cms.prod"] * 3
