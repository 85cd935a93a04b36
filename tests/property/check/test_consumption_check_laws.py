"""Laws of `sharectl consumption check`: what passes keeps its promise for any job, and what comes from outside stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sharectl.check.consumption import Report, check
from sharectl.check.consumption_rules import unknown
from sharectl.check.consumption_subject import Input, Subject, node_of, printed
from sharectl.check.consumption_trials import numbers, paid_for, slot_ad, zero
from sharectl.condor.configuration import Configuration, Definition, Source, evaluator
from sharectl.condor.library import CondorProcess
from sharectl.consumption.asks import matches
from sharectl.consumption.cost import Refusal
from sharectl.consumption.policy import amount_of

ASSETS = {"Cpus": 64, "Memory": 262144, "Disk": 2**30}
POLICIES = {
    "quantized": "quantize(TARGET.Request{0}, {{{1}}})",
    "at least": "max({{{1}, TARGET.Request{0}}})",
    "as requested": "TARGET.Request{0}",
    "defended": "ifThenElse(TARGET.Request{0} >= 0, quantize(TARGET.Request{0}, {{{1}}}), -1)",
    "always": "{1}",
    "halved": "TARGET.Request{0} / 2",
    "all but some": "TARGET.Request{0} - {1}",
}
WEIGHTS = (
    "Cpus",
    "floor(Memory / 128)",
    "Cpus / 2",
    "min({Cpus, floor(Memory / 256)})",
    "2 * Cpus",
    "100 - Cpus",
)
KNOBS = (
    "CONSUMPTION_POLICY",
    "CONSUMPTION_CPUS",
    "CONSUMPTION_MEMORY",
    "SLOT_WEIGHT",
    "CLAIM_PARTITIONABLE_LEFTOVERS",
)


@pytest.fixture(scope="module")
def htcondor() -> Iterator[CondorProcess]:
    with evaluator() as process:
        yield process


policies = st.tuples(
    *(st.sampled_from(sorted(POLICIES)) for _ in ASSETS),
    *(st.integers(1, most) for most in (4, 2048, 4096)),
    st.sampled_from(WEIGHTS),
)
requests = st.integers(1, 2**20)


def configuration(drawn: tuple[object, ...]) -> tuple[str, dict[str, str], str]:
    """Text of a configuration, its policies by asset, and its weight."""
    kinds, amounts, weight = drawn[:3], drawn[3:6], str(drawn[6])
    chosen = {
        asset: POLICIES[str(kind)].format(asset, amount)
        for asset, kind, amount in zip(ASSETS, kinds, amounts)
    }
    lines = [f"CONSUMPTION_{asset} = {text}" for asset, text in chosen.items()]
    head = [
        "CONSUMPTION_POLICY = True",
        "CLAIM_PARTITIONABLE_LEFTOVERS = False",
        f"SLOT_WEIGHT = {weight}",
    ]
    return "\n".join((*head, *lines, "")), chosen, weight


def verdict(folder: Path, text: str) -> Report:
    path = folder / "cp.conf"
    path.write_text(text)
    return check([path], {})


def read(knobs: dict[str, str]) -> Input:
    """What HTCondor would make of a file that sets these knobs, in which nothing is to be expanded."""
    file = Path("a.conf")
    return Input(
        "a.conf",
        Configuration(
            source=Source(),
            folders=(),
            excluded=re.compile(r"(?!)"),
            definitions=tuple(
                Definition(name, text, file, line)
                for line, (name, text) in enumerate(knobs.items(), 1)
            ),
            values={name.lower(): text for name, text in knobs.items()},
            judged=frozenset({file}),
        ),
        is_whole=False,
    )


@settings(max_examples=30)
@given(
    drawn=policies, jobs=st.lists(st.tuples(requests, requests, requests), min_size=50, max_size=50)
)
def test_what_passes_takes_and_costs_something_of_any_job(
    drawn: tuple[object, ...], jobs: list[tuple[int, ...]], htcondor: CondorProcess
) -> None:
    """A policy that passes is a number, not negative, and not zero on all assets for any job that condor_submit makes; no match pays its user."""
    _, chosen, weight = configuration(drawn)
    knobs = {"CONSUMPTION_POLICY": "True", "SLOT_WEIGHT": weight}
    knobs.update({f"CONSUMPTION_{asset}": text for asset, text in chosen.items()})
    node = node_of(read(knobs), htcondor)
    subject = Subject((node,), htcondor)
    assume(not [finding for look in (numbers, zero, paid_for) for finding in look(subject)])
    ads = [
        {f"Request{asset}": str(amount) for asset, amount in zip(ASSETS, amounts)}
        for amounts in jobs
    ]
    (found,) = matches(htcondor, [slot_ad(node, node.slot_types[0], ASSETS)], ads, most=1)
    for job, match in zip(ads, found):
        why = {refused.why for refused in match.refused}
        assert not why & {
            Refusal.NOT_A_NUMBER,
            Refusal.NEGATIVE,
            Refusal.ALL_ZERO,
            Refusal.WEIGHT,
        }, job
        assert match.refused or (match.cost is not None and match.cost >= 0), job


@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=policies)
def test_the_verdict_is_the_same_each_time(drawn: tuple[object, ...], tmp_path: Path) -> None:
    """The same configuration always has the same findings: nothing is left to chance."""
    text, _, _ = configuration(drawn)
    assert verdict(tmp_path, text) == verdict(tmp_path, text)


@given(
    content=st.lists(
        st.one_of(
            st.text(), st.from_regex(r"@?(include|use|if|A|B\d) ?[:=@] ?[^\n]*", fullmatch=True)
        )
    )
)
def test_only_plain_assignments_of_a_dump_reach_the_parser(content: list[str]) -> None:
    """Whatever a dump says, each line that HTCondor's parser gets of it is ``NAME = text``, of no statement's name."""
    for line in printed("\n".join(content), Path("dump")).assignments.splitlines():
        name = re.match(r"([A-Za-z_][\w.]*) = ", line)
        assert name is not None
        assert name[1].lower() not in {
            "include",
            "use",
            "if",
            "elif",
            "else",
            "endif",
            "error",
            "warning",
        }
        assert not line.endswith("\\")


@given(
    knob=st.sampled_from(KNOBS), at=st.integers(0, 40), twice=st.booleans(), slot_type=st.booleans()
)
def test_a_knob_that_lacks_a_letter_or_has_one_twice_is_named(
    knob: str, at: int, *, twice: bool, slot_type: bool, htcondor: CondorProcess
) -> None:
    """Every knob of the family with a letter too few or twice is found, and the knob that was meant is named."""
    at %= len(knob)
    prefix = "SLOT_TYPE_1_" if slot_type and knob != "CLAIM_PARTITIONABLE_LEFTOVERS" else ""
    written = f"{prefix}{knob[:at]}{knob[at] * 2 if twice else ''}{knob[at + 1 :]}"
    subject = Subject((node_of(read({written: "True"}), htcondor),), htcondor)
    (finding,) = unknown(subject)
    assert finding.remedy == f"write {prefix}{knob}"


@given(part=st.integers(1, 100), total=st.integers(1, 10**6))
def test_a_share_in_percent_is_that_part(part: int, total: int) -> None:
    """A slot type's share of an asset is that part of the machine's, said for all assets or for the one."""
    for shares in (f"{part}%", f"cpus=1, memory={part}%"):
        assert amount_of(shares, "Memory", total) == pytest.approx(total * part / 100)
    assert amount_of(f"memory={total}", "Memory", 1) == total
