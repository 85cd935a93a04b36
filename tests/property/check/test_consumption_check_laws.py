"""Laws of `sharectl consumption check`: policies that pass keep their promise for any job."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sharectl.check.consumption import CHECKS
from sharectl.check.consumption_subject import CheckedNode
from sharectl.condor.configuration import ConfigSource, Configuration, Definition, dumped
from sharectl.condor.library import CondorProcess

ASSETS = ("Cpus", "Memory", "Disk")
POLICIES = (
    "quantize(TARGET.Request{0}, {{{1}}})",
    "max({{{1}, TARGET.Request{0}}})",
    "TARGET.Request{0}",
    "ifThenElse(TARGET.Request{0} >= 0, quantize(TARGET.Request{0}, {{{1}}}), -1)",
    "{1}",
    "TARGET.Request{0} / 2",
    "TARGET.Request{0} - {1}",
)
WEIGHTS = (
    "Cpus",
    "floor(Memory / 128)",
    "Cpus / 2",
    "min({Cpus, floor(Memory / 256)})",
    "2 * Cpus",
    "100 - Cpus",
)
STATEMENTS = {"include", "use", "if", "elif", "else", "endif", "error", "warning"}
policies = st.fixed_dictionaries(
    {
        f"CONSUMPTION_{asset.upper()}": st.builds(
            str.format, st.sampled_from(POLICIES), st.just(asset), st.integers(1, most)
        )
        for asset, most in (("Cpus", 4), ("Memory", 2048), ("Disk", 4096))
    }
)
requests = st.integers(1, 2**20)


def subject(knobs: dict[str, str], htcondor: CondorProcess) -> CheckedNode:
    """A file that sets these knobs, in which nothing is to be expanded."""
    definitions = tuple(
        Definition(name, text, Path("a.conf"), line)
        for line, (name, text) in enumerate(knobs.items(), 1)
    )
    values = {name.lower(): text for name, text in knobs.items()}
    configuration = Configuration("a.conf", ConfigSource(), definitions, values)
    return CheckedNode(configuration, htcondor)


# The check finds something in two policies out of three, and the law is about the third.
@settings(max_examples=30, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    knobs=policies,
    weight=st.sampled_from(WEIGHTS),
    jobs=st.lists(st.tuples(requests, requests, requests), min_size=50, max_size=50),
)
def test_what_passes_takes_and_costs_something_of_any_job(
    knobs: dict[str, str],
    weight: str,
    jobs: list[tuple[int, ...]],
    htcondor: CondorProcess,
) -> None:
    """It is a number, not negative, not zero on all assets, and no match pays its user."""
    knobs = {"CONSUMPTION_POLICY": "True", "SLOT_WEIGHT": weight, **knobs}
    checked = subject(knobs, htcondor)
    seen = {finding.id for finding in CHECKS.findings(checked)}
    assume(not seen & {"numbers", "zero", "weight"})
    (slot,) = checked.tried
    ads = [{f"Request{asset}": str(amount) for asset, amount in zip(ASSETS, job)} for job in jobs]
    for job, taken in zip(ads, slot.matched(ads)):
        amounts = [amount for amount in taken.values() if amount is not None]
        assert len(amounts) == len(ASSETS), job
        assert min(amounts) >= 0, job
        assert max(amounts) > 0, job
    for ad in ads[:3]:
        (taken,) = slot.matched([ad])
        fits = all((taken[asset] or 0) <= most for asset, most in checked.whole.items())
        assert not fits or (slot.cost(taken) or 0) >= 0, ad


@given(
    content=st.lists(
        st.one_of(
            st.text(), st.from_regex(r"@?(include|use|if|A|B\d) ?[:=@] ?[^\n]*", fullmatch=True)
        )
    )
)
def test_only_plain_assignments_of_a_dump_reach_the_parser(content: list[str]) -> None:
    """A dump becomes lines ``NAME = text``, no name is a statement's, and none is continued."""
    for definition in dumped("\n".join(content), Path("dump")):
        assert definition.name.replace("_", "a").replace(".", "a").isalnum()
        assert definition.name.lower() not in STATEMENTS
        assert not definition.text.endswith("\\")
        assert len(definition.text.splitlines()) <= 1
