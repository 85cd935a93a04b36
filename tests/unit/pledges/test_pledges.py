"""Pledges of the negotiator's quotas, in cycles and in the command."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from sharectl.cli import wiring
from sharectl.cli.main import main
from sharectl.config.load import load
from sharectl.config.model import KNOBS_COPY, NegotiatorPledgesConfig
from sharectl.errors import PoolUnavailableError
from sharectl.files.documents import Document
from sharectl.model import PoolConfig, Source
from sharectl.pledges.join import AllPledges, SteeredGroup
from sharectl.pledges.negotiator import KnobsCopy, NegotiatorPledges
from sharectl.shares.pledges import Pledged
from sharectl.times import DAY_SECONDS
from tests.fakes import NOW, FakePublisher, Listing
from tests.quota_knobs import knobs_of
from tests.unit.cycle.test_cycle import cycle, world

KNOBS = """\
GROUP_NAMES = cms, alice, alice.prod, alice.user, lhcb
GROUP_QUOTA_cms = 40
GROUP_QUOTA_DYNAMIC_alice = 0.5
GROUP_QUOTA_DYNAMIC_alice.prod = 0.7
GROUP_ACCEPT_SURPLUS_cms = True
GROUP_QUOTA_lhcb = 0
GROUP_QUOTA_ghost = 3
BASE_CGROUP = htcondor
"""
NOBODY = PoolConfig(collector="127.0.0.1:1")


def wanted(name: str, written: float | None = None) -> SteeredGroup:
    return SteeredGroup(name, written, f"groups.{name}")


def resolved(source: NegotiatorPledges, now: int = NOW) -> Pledged:
    return AllPledges(source.ask, lambda hs06: hs06).resolve(now)


def problem_of(pledged: Pledged) -> str:
    assert pledged.pledges == ()
    return pledged.source.problem or ""


def write_copy(path: Path, text: str, asked_at: int = NOW, name: str | None = None) -> None:
    """Keep knobs as those that the negotiator had last."""
    copy = KnobsCopy(name, asked_at, knobs_of(text))
    Document(path, 2**22).replace(asdict(copy))


# ---- quotas


def test_pledges_of_quotas(tmp_path: Path, listing: Listing) -> None:
    """The first line has the groups, with the pledges that are written; a slot has 10 HS06."""

    def outcome(text: str) -> list[str]:
        groups, _, knobs = text.partition("\n")
        write_copy(tmp_path / "copy", knobs)
        named = (name.partition("=") for name in groups.split())
        pledged = of_silent(
            tmp_path, NOW, [wanted(name, float(hs06) if hs06 else None) for name, _, hs06 in named]
        )
        lines = [
            f"{pledge.group}: {pledge.hs06:g} HS06, {pledge.surplus}, {pledge.place}"
            for pledge in pledged.pledges
        ]
        return [
            *lines,
            *pledged.warnings[1:],
            *pledged.notes,
            *filter(None, [pledged.source.problem]),
        ]

    listing("pledges/knobs.txt", outcome, 11)


# ---- a negotiator that does not answer


def of_silent(folder: Path, now: int, groups: Sequence[SteeredGroup] = ()) -> Pledged:
    """Pledges of a negotiator whose collector does not answer."""
    access = NegotiatorPledgesConfig(pool_cores=100.0, weight_hs06=10.0)
    source = NegotiatorPledges(access, NOBODY, groups or [wanted("cms")], folder / "copy")
    return resolved(source, now)


CMS = "GROUP_NAMES = cms\nGROUP_QUOTA_cms = 40\n"


def test_the_copy_of_its_knobs_stands_in(tmp_path: Path) -> None:
    write_copy(tmp_path / "copy", CMS)
    pledged = of_silent(tmp_path, NOW + 1800)
    assert (pledged.hs06, pledged.pledges[0].said_at) == ({"cms": 400}, NOW)
    assert pledged.warnings[0].startswith("negotiator: nobody listens at 127.0.0.1:1")
    assert pledged.warnings[0].endswith("; what it said 30 min ago is in use")
    for age_seconds in (DAY_SECONDS, -DAY_SECONDS):
        assert of_silent(tmp_path, NOW + age_seconds).hs06 == {"cms": 400}
        beyond = NOW + age_seconds + (1 if age_seconds > 0 else -1)
        assert "ago, too old" in problem_of(of_silent(tmp_path, beyond))


def test_the_copy_of_another_negotiator_does_not_stand_in(tmp_path: Path) -> None:
    write_copy(tmp_path / "copy", CMS, name="another")
    assert "no copy of an earlier answer, and negotiator: nobody" in problem_of(
        of_silent(tmp_path, NOW)
    )


# ---- cycles


def test_a_cycle_without_pledges_changes_no_target() -> None:
    publisher = FakePublisher()
    lost = Pledged(Source("pledges", 3.0, "CRIC is gone"), (), ("look",))

    for withdraws, targets in ((False, None), (True, ())):
        around = world(publishers=[publisher])
        done = cycle(around, pledges=lost, withdraw_incomplete=withdraws)
        plan = done.publication.plan
        assert (plan and plan.targets, len(publisher.plans)) == (targets, int(withdraws))
        assert (done.problems, done.warnings) == (("pledges: CRIC is gone",), ("look",))


# ---- the command


def configured(folder: Path, groups: str) -> str:
    """Configuration whose negotiator is silent, beside the copy of its knobs."""
    write_copy(folder / KNOBS_COPY, KNOBS, int(time.time()))
    path = folder / "sharectl.yaml"
    path.write_text(
        f"groups: {groups}\nstate_directory: {folder}\npool: {{collector: '127.0.0.1:1'}}\n"
        "pledges: {from: negotiator, negotiator: {pool_cores: 100, weight_hs06: 10}}\n",
        encoding="utf-8",
    )
    return str(path)


def test_the_command_prints_the_pledges_of_a_cycle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configured(tmp_path, "{cms: {}, alice: {groups: {prod: {}, user: {share: 0.1}}}}")
    assert main(["pledges", "--config", path, "--json"]) == 0
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert (report["kind"], report["schema_version"]) == ("pledges", 1)
    assert (report["from"], report["problem"]) == ("negotiator", None)
    assert {row["group"]: row["hs06"] for row in report["pledges"]} == pytest.approx(
        {"cms": 400, "alice": 300, "alice.prod": 210, "alice.user": 30}
    )
    assert "not steered: lhcb" in printed.err
    assert main(["pledges", "--config", path]) == 0
    assert "the negotiator's group quotas" in capsys.readouterr().out


def test_without_pledges_nothing_is_decided_and_targets_can_be_withdrawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for groups, problem in (
        ("{cms: {}, atlas: {}}", "groups.atlas: GROUP_NAMES of "),
        ("{alice: {groups: {prod: {}, user: {share: 0.5}}}}", "the groups of alice are promised"),
    ):
        path = configured(tmp_path, groups)
        assert main(["pledges", "--config", path]) == 75
        assert f"sharectl: pledges: {problem}" in capsys.readouterr().err
        with pytest.raises(PoolUnavailableError, match=r"; nothing is decided"):
            wiring.plan_config(load(Path(path)))
    assert main(["disable", "--reason", "no pledges", "--config", path]) == 0
    assert "# sharectl" in (tmp_path / "sharectl.txt").read_text(encoding="ascii")
