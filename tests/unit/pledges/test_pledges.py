"""Pledges of the negotiator's quotas, in cycles and in the command."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from sharectl.cli import wiring
from sharectl.cli.main import main
from sharectl.condor.negotiator import QuotaKnob
from sharectl.config.load import load
from sharectl.config.model import NegotiatorPledgesConfig
from sharectl.errors import PoolUnavailableError
from sharectl.files.documents import Document
from sharectl.model import PoolConfig, Source
from sharectl.pledges.join import AllPledges, SteeredGroup
from sharectl.pledges.negotiator import KnobsCopy, NegotiatorPledges
from sharectl.shares.pledges import Pledged
from sharectl.times import DAY_SECONDS
from tests.fakes import NOW, FakePublisher
from tests.unit.cycle.test_cycle import cycle, world

KNOBS = """\
# Configuration from machine: cm-1.example.org
GROUP_NAMES = cms, alice, alice.prod, alice.user, lhcb
GROUP_QUOTA_cms = 40
GROUP_QUOTA_DYNAMIC_alice = 0.5
GROUP_QUOTA_DYNAMIC_alice.prod = 0.7
GROUP_ACCEPT_SURPLUS_cms = True
GROUP_QUOTA_lhcb = 0
GROUP_QUOTA_ghost = 3
BASE_CGROUP = htcondor
"""
NOBODY = PoolConfig(collector="127.0.0.1:1", collector_deadline_seconds=5.0)


def wanted(name: str, written: float | None = None) -> SteeredGroup:
    return SteeredGroup(name, written, f"groups.{name}")


def resolved(source: NegotiatorPledges, now: int = NOW) -> Pledged:
    return AllPledges(source.ask, lambda hs06: hs06).resolve(now)


def problem_of(pledged: Pledged) -> str:
    assert pledged.pledges == ()
    return pledged.source.problem or ""


# ---- a file of knobs


def test_pledges_of_a_file_of_knobs(
    tmp_path: Path, listing: Callable[[str, Callable[[str], list[str]], int], None]
) -> None:
    """The first line has the groups, with the pledges that are written; a slot has 10 HS06."""

    def outcome(text: str) -> list[str]:
        groups, _, knobs = text.partition("\n")
        (tmp_path / "knobs").write_text(knobs, encoding="utf-8")
        named = (name.partition("=") for name in groups.split())
        steered = [wanted(name, float(hs06) if hs06 else None) for name, _, hs06 in named]
        access = NegotiatorPledgesConfig(tmp_path / "knobs", pool_cores=100.0, weight_hs06=10.0)
        source = NegotiatorPledges(access, PoolConfig(), steered, tmp_path / "copy")
        pledged = resolved(source)
        lines = [
            f"{pledge.group}: {pledge.hs06:g} HS06, {pledge.surplus}, {pledge.place}"
            for pledge in pledged.pledges
        ]
        lines += [*pledged.warnings, *pledged.notes, *filter(None, [pledged.source.problem])]
        return [line.replace(str(tmp_path), "FOLDER") for line in lines]

    listing("pledges/knobs.txt", outcome, 15)


def test_no_cycle_waits_for_a_writer_into_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "knobs"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("GROUP_NAMES = cms",), daemon=True)
    writer.start()
    access = NegotiatorPledgesConfig(pipe, pool_cores=100.0, weight_hs06=10.0)
    source = NegotiatorPledges(access, NOBODY, [wanted("cms")], tmp_path / "copy")
    assert f"{pipe}: is a pipe" in problem_of(resolved(source))
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer.join(10)
    os.close(reading)
    assert not writer.is_alive()


# ---- a negotiator that does not answer


def silent(folder: Path, now: int = NOW + 1800) -> Pledged:
    """Pledges of a negotiator whose collector does not answer."""
    access = NegotiatorPledgesConfig(pool_cores=100.0, weight_hs06=10.0)
    source = NegotiatorPledges(access, NOBODY, [wanted("cms")], folder / "copy")
    return resolved(source, now)


def test_the_copy_of_its_knobs_stands_in(tmp_path: Path) -> None:
    names = {"GROUP_NAMES": "cms", "GROUP_QUOTA_cms": "40"}
    knobs = tuple(QuotaKnob("negotiator cm", name, value) for name, value in names.items())
    document = Document(tmp_path / "copy", 2**22)
    document.replace(asdict(KnobsCopy(None, NOW, knobs)))
    pledged = silent(tmp_path)
    assert (pledged.hs06, pledged.pledges[0].said_at) == ({"cms": 400}, NOW)
    assert pledged.warnings[0].startswith("negotiator: ")
    assert pledged.warnings[0].endswith("; what it said 30 min ago is in use")
    for age_seconds in (DAY_SECONDS, -DAY_SECONDS):
        assert silent(tmp_path, NOW + age_seconds).hs06 == {"cms": 400}
        beyond = NOW + age_seconds + (1 if age_seconds > 0 else -1)
        assert "ago, too old" in problem_of(silent(tmp_path, beyond))
    document.replace(asdict(KnobsCopy("another", NOW, knobs)))
    assert "there is no copy of what it said before" in problem_of(silent(tmp_path))


def test_a_silent_collector_is_named_with_the_key_of_its_address(tmp_path: Path) -> None:
    nobody = "nobody listens at 127.0.0.1:1: COLLECTOR does not run there"
    assert problem_of(silent(tmp_path)).startswith(f"negotiator: {nobody}")
    (tmp_path / "knobs").write_text(KNOBS)
    access = NegotiatorPledgesConfig(tmp_path / "knobs")
    problem = problem_of(
        resolved(NegotiatorPledges(access, NOBODY, [wanted("cms")], tmp_path / "copy"))
    )
    assert problem.startswith(f"collector: 127.0.0.1:1: {nobody}")
    assert problem.endswith("; see pool.collector in the configuration, or CONDOR_CONFIG")


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

FROM_KNOBS = (
    "{from: negotiator, negotiator: {file: FOLDER/knobs, pool_cores: 100, weight_hs06: 10}}"
)


def configured(folder: Path, groups: str, pledges: str = FROM_KNOBS) -> str:
    (folder / "knobs").write_text(KNOBS, encoding="utf-8")
    path = folder / "sharectl.yaml"
    text = f"groups: {groups}\npledges: {pledges}\nstate_directory: FOLDER\n"
    path.write_text(text.replace("FOLDER", str(folder)), encoding="utf-8")
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


def test_quotas_are_not_rendered_from_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", "central-manager", "--config", configured(tmp_path, "{cms: {}}")]) == 78
    assert "pledges.from: negotiator: " in capsys.readouterr().err
