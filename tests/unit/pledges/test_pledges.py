from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from sharectl.cli import wiring
from sharectl.cli.main import main
from sharectl.condor.negotiator import Knob
from sharectl.config.load import load, parse
from sharectl.config.model import NegotiatorPledgesConfig, PoolConfig
from sharectl.config.text import render
from sharectl.cycle.cycle import Circumstances, run_cycle
from sharectl.errors import PoolUnavailableError
from sharectl.files.documents import Document
from sharectl.model import Source
from sharectl.pledges.negotiator import KnobsCopy, NegotiatorPledges
from sharectl.pledges.sources import AllPledges, SteeredGroup, join
from sharectl.shares.pledges import Pledge, Pledged
from tests.fakes import NOW, FakePublisher
from tests.unit.cycle.test_cycle import CONFIG, UNEVEN, world
from tests.web_server import WebServer, serving, web_server

RECORDED = (Path(__file__).parents[2] / "golden" / "pledges" / "federations.json").read_bytes()
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
NOBODY = PoolConfig(collector="127.0.0.1:1")
FILE = (
    "groups: {GROUPS}\npledges: {from: negotiator, negotiator: {file: FOLDER/knobs, "
    "pool_cores: 100, weight_hs06: 10}}\nstate_directory: FOLDER\n"
)


def negotiator(
    folder: Path, *wanted: SteeredGroup, knobs: str = KNOBS, cores: float = 100.0
) -> Pledged:
    (folder / "knobs").write_text(knobs, encoding="utf-8")
    access = NegotiatorPledgesConfig(folder / "knobs", pool_cores=cores, weight_hs06=10.0)
    return resolved(NegotiatorPledges(access, PoolConfig(), wanted))


def resolved(source: NegotiatorPledges, now: int = NOW) -> Pledged:
    return AllPledges(source.ask, lambda hs06: hs06).resolve(now)


def wanted(group: str, written: float | None = None) -> SteeredGroup:
    return SteeredGroup(group, written, f"groups.{group}")


def test_quotas_of_a_file_as_the_negotiator_shares_them_out(tmp_path: Path) -> None:
    found = negotiator(tmp_path, wanted("cms"), wanted("alice"), wanted("alice.prod"))
    assert found.hs06 == {"cms": 400, "alice": 300, "alice.prod": pytest.approx(210)}
    assert [pledge.surplus for pledge in found.pledges] == ["byquota", "no", "no"]
    assert found.pledges[0].place == f"quota 40 of cms in {tmp_path}/knobs"
    assert found.notes == (
        (
            f"{tmp_path}/knobs has groups that are not listed under groups, and so are not steered: "
            "lhcb"
        ),
    )


def test_groups_within_one_whose_pledge_is_written_keep_their_part(tmp_path: Path) -> None:
    found = negotiator(tmp_path, wanted("cms"), wanted("alice", 60.0), wanted("alice.prod"))
    assert found.hs06 == {"cms": 400, "alice": 60, "alice.prod": pytest.approx(42)}


@pytest.mark.parametrize(
    ("group", "why"),
    [
        ("atlas", "GROUP_NAMES of FILE has no atlas"),
        ("ghost", "GROUP_NAMES of FILE has no ghost"),
        ("alice.user", "FILE has no quota for alice.user"),
        ("lhcb", "quota 0 of lhcb in FILE is 0"),
    ],
)
def test_a_group_without_a_quota_is_named(tmp_path: Path, group: str, why: str) -> None:
    found = negotiator(tmp_path, wanted("cms"), wanted(group))
    said = why.replace("FILE", f"{tmp_path}/knobs")
    assert (
        found.source.problem
        == f"groups.{group}: {said}; write pledge_hs06 there, or remove the group"
    )
    assert found.pledges == ()


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        (
            "GROUP_NAMES = cms\nGROUP_QUOTA_cms = lots\n",
            "knobs:2: GROUP_QUOTA_cms is 'lots'; write a number",
        ),
        ("what is this\n", "knobs:1: 'what is this' is no knob"),
        ("", "knobs: no quota in it"),
    ],
)
def test_a_file_that_is_none_is_a_problem(tmp_path: Path, knobs: str, said: str) -> None:
    assert said in (negotiator(tmp_path, wanted("cms"), knobs=knobs).source.problem or "")


def test_no_file_is_a_problem_too(tmp_path: Path) -> None:
    access = NegotiatorPledgesConfig(tmp_path / "none", pool_cores=1.0, weight_hs06=1.0)
    source = resolved(NegotiatorPledges(access, PoolConfig(), [wanted("cms")])).source
    assert str(tmp_path / "none") in (source.problem or "")


def save(path: Path, name: str | None, knobs: list[Knob]) -> None:
    Document(path, 2**22).replace(asdict(KnobsCopy(name, NOW, tuple(knobs))))


def silent(folder: Path, *, max_age_seconds: float = 3600.0) -> Pledged:
    """What is known of a negotiator whose collector does not answer."""
    access = NegotiatorPledgesConfig(
        deadline_seconds=5.0, pool_cores=100.0, weight_hs06=10.0, max_age_seconds=max_age_seconds
    )
    source = NegotiatorPledges(access, NOBODY, [wanted("cms")], folder / "copy")
    return resolved(source, NOW + 1800)


def test_a_negotiator_that_does_not_answer_is_believed_what_it_said(tmp_path: Path) -> None:
    knobs = [
        Knob("negotiator cm", "GROUP_NAMES", "cms"),
        Knob("negotiator cm", "GROUP_QUOTA_cms", "40"),
    ]
    save(tmp_path / "copy", None, knobs)
    found = silent(tmp_path)
    assert found.hs06 == {"cms": 400}
    assert found.pledges[0].said_at == NOW
    assert found.warnings[0].startswith("negotiator: ")
    assert found.warnings[0].endswith("; what it said 0.5 hours ago is in use")
    old = silent(tmp_path, max_age_seconds=1799.0).source.problem or ""
    assert (
        "the copy is of 0.5 hours ago, older than pledges.negotiator.max_age_seconds (1799)" in old
    )
    save(tmp_path / "copy", "another", knobs)
    assert "there is no copy of what it said before" in (silent(tmp_path).source.problem or "")


def from_quotas(knobs: str, folder: Path, **written: float) -> Pledged:
    (folder / "knobs").write_text(knobs, encoding="utf-8")
    access = NegotiatorPledgesConfig(folder / "knobs", pool_cores=10_000.0, weight_hs06=10.0)
    groups = {"atlas": None, "cms": None, **written}
    listed = [wanted(name, hs06) for name, hs06 in groups.items()]
    return resolved(NegotiatorPledges(access, PoolConfig(), listed))


def test_a_written_pledge_on_another_scale_than_the_quotas_is_warned_of(tmp_path: Path) -> None:
    others = "GROUP_NAMES = atlas, cms, alice\nGROUP_QUOTA_atlas = 10530\nGROUP_QUOTA_cms = 6600\n"
    (warning,) = from_quotas(others, tmp_path, alice=66.0).warnings
    assert warning.startswith(
        "groups.alice: 66 HS06 is written, and the quotas of others come to 66000 to 105300:"
    )
    assert len(from_quotas(others, tmp_path, alice=10_530_000.0).warnings) == 1
    assert from_quotas(others, tmp_path, alice=700.0).warnings == ()
    # What its own quota comes to says more than those of others.
    own = others + "GROUP_QUOTA_alice = 7\n"
    assert from_quotas(own, tmp_path, alice=66.0).warnings == ()
    assert "its own quota comes to 70:" in from_quotas(own, tmp_path, alice=7000.0).warnings[0]


def test_a_collector_that_does_not_answer_says_where_its_address_is_from(tmp_path: Path) -> None:
    hint = "; see pool.collector in the configuration, or CONDOR_CONFIG"
    assert hint in (silent(tmp_path).source.problem or "")
    access = NegotiatorPledgesConfig(deadline_seconds=5.0)
    problem = resolved(NegotiatorPledges(access, NOBODY, [wanted("cms")])).source.problem or ""
    assert problem.startswith(
        "collector: 127.0.0.1:1: nobody listens at 127.0.0.1:1: COLLECTOR does not"
    )
    assert problem.endswith(hint)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"schema_version": 1, "asked_at": 1, "name": null, "knobs": [["a", "b", 3]]}',
        b"[" * 99999,
    ],
)
def test_a_broken_copy_of_its_knobs_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "copy").write_bytes(content)
    pledged = silent(tmp_path)
    assert pledged.warnings[0].startswith(f"{tmp_path}/copy: cannot be read: ")
    assert "there is no copy of what it said before" in (pledged.source.problem or "")


def test_written_pledges_are_as_they_are_written() -> None:
    pledges, notes = join([wanted("cms", 5.0)], {}, "yaml", {})
    assert (pledges, notes) == ((Pledge("cms", 5.0, "yaml", "groups.cms"),), [])


def test_pledges_that_cannot_be_had_change_no_target_and_are_said() -> None:
    publisher = FakePublisher()
    lost = Pledged(Source("pledges", 3.0, "CRIC is gone"), (), ("look",))
    done = run_cycle(CONFIG, world(publishers=[publisher]), NOW, Circumstances(pledges=lost))
    assert (publisher.plans, done.publication.plan) == ([], None)
    assert done.problems == ("pledges: CRIC is gone",)
    assert done.warnings == ("look",)
    withdrawn = run_cycle(
        CONFIG,
        world(publishers=[publisher]),
        NOW,
        Circumstances(pledges=lost, withdraw_incomplete=True),
    )
    assert withdrawn.publication.plan is not None
    assert withdrawn.publication.plan.targets == ()


def test_how_pledges_were_had_is_part_of_a_cycle() -> None:
    had = Pledged(Source("pledges", 3.0), (), ("a copy is in use",))
    done = run_cycle(CONFIG, world(UNEVEN), NOW, Circumstances(pledges=had))
    assert Source("pledges", 3.0) in done.snapshot.sources
    assert done.warnings[0] == "a copy is in use"
    assert done.publication.plan is not None


def configured(folder: Path, groups: str, content: str = FILE) -> Path:
    (folder / "knobs").write_text(KNOBS, encoding="utf-8")
    path = folder / "sharectl.yaml"
    path.write_text(
        content.replace("{GROUPS}", groups).replace("FOLDER", str(folder)), encoding="utf-8"
    )
    return path


NESTED = "{cms: {}, alice: {groups: {prod: {}, user: {share: 0.1}}}}"


def test_the_command_prints_what_a_cycle_would_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configured(tmp_path, NESTED)
    assert main(["pledges", "--config", str(path), "--json"]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert (told["kind"], told["schema_version"], told["from"], told["problem"]) == (
        "pledges",
        1,
        "negotiator",
        None,
    )
    assert {row["group"]: row["hs06"] for row in told["pledges"]} == pytest.approx(
        {"cms": 400, "alice": 300, "alice.prod": 210, "alice.user": 30}
    )
    assert "not steered: lhcb" in printed.err
    assert main(["pledges", "--config", str(path)]) == 0
    assert "the negotiator's group quotas" in capsys.readouterr().out


def test_the_command_says_why_there_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configured(tmp_path, "{cms: {}, atlas: {}}")
    assert main(["pledges", "--config", str(path)]) == 75
    assert "sharectl: pledges: groups.atlas: GROUP_NAMES of " in capsys.readouterr().err
    with pytest.raises(PoolUnavailableError, match=r"has no atlas.*; nothing is decided"):
        wiring.plan_config(load(path))


def test_groups_together_promise_no_more_than_they_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configured(tmp_path, "{alice: {groups: {prod: {}, user: {share: 0.5}}}}")
    assert main(["pledges", "--config", str(path)]) == 75
    assert (
        "the groups of alice are promised 360 HS06 of its 300; write shares"
        in capsys.readouterr().err
    )


def test_a_pool_can_be_left_alone_while_its_pledges_cannot_be_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configured(tmp_path, "{cms: {}, atlas: {}}")
    assert main(["disable", "--reason", "no pledges", "--config", str(path)]) == 0
    assert "# sharectl" in (tmp_path / "sharectl.txt").read_text(encoding="ascii")
    capsys.readouterr()


def test_quotas_are_not_rendered_from_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["render", "central-manager", "--config", str(configured(tmp_path, "{cms: {}}"))])
        == 78
    )
    assert "its quotas would be made from themselves" in capsys.readouterr().err


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with web_server(tmp_path_factory.mktemp("cric"), serving(RECORDED)) as running:
        yield running


def cric(folder: Path, server: WebServer) -> Path:
    return configured(
        folder,
        "{cms: {}, tape: {cric_vo: ATLAS}}",
        "groups: {GROUPS}\npledges:\n  from: cric\n  cric:\n    federations: [IT-INFN-CNAF]\n"
        f"    url: '{server.url('/x')}'\n    ca_file: {server.certificate}\nstate_directory: "
        "FOLDER\n",
    )


def of_all_years(cms: int) -> bytes:
    quarters = {f"Q{n}": {"cms": {"CPU": cms}, "atlas": {"CPU": 1000}} for n in range(1, 5)}
    return json.dumps(
        {"IT-INFN-CNAF": {"pledges": {str(year): quarters for year in range(2020, 2100)}}}
    ).encode()


def test_cric_is_asked_kept_and_its_jumps_confirmed(
    server: WebServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, copy_file = cric(tmp_path, server), tmp_path / "pledges-cric.json"

    def printed(*options: str) -> dict[str, float]:
        assert main(["pledges", "--config", str(path), "--json", *options]) == 0
        return {row["group"]: row["hs06"] for row in json.loads(capsys.readouterr().out)["pledges"]}

    server.answer = serving(of_all_years(500))
    assert printed() == {"cms": 500, "tape": 1000}
    assert not copy_file.exists(), "looking changes nothing"
    assert printed("--refresh") == {"cms": 500, "tape": 1000}
    assert copy_file.exists()
    server.answer = serving(of_all_years(5000))
    assert printed("--refresh") == {"cms": 500, "tape": 1000}
    assert printed("--confirm") == {"cms": 5000, "tape": 1000}
    assert printed() == {"cms": 5000, "tape": 1000}
    assert main(["render", "central-manager", "--config", str(path)]) == 0
    assert "GROUP_QUOTA_DYNAMIC_cms = 0.833333" in capsys.readouterr().out


def test_options_for_cric_say_that_they_do_nothing_with_another_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        f"groups: {{cms: {{pledge_hs06: 500}}}}\nstate_directory: {tmp_path}\n", encoding="utf-8"
    )
    said = "--confirm: without effect with `from: yaml`"
    assert main(["pledges", "--config", str(path), "--confirm"]) == 0
    assert said in capsys.readouterr().err
    assert main(["pledges", "--config", str(path), "--confirm", "--refresh", "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note.startswith("--refresh and --confirm: without effect with `from: yaml`")
    assert main(["pledges", "--config", str(path)]) == 0
    assert capsys.readouterr().err == ""


def test_the_environment_changes_nothing_of_what_is_trusted_or_told(
    server: WebServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    heard: list[str | None] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        heard.append(request.headers["Authorization"])
        serving(of_all_years(1))(request)

    server.answer = answer
    (tmp_path / ".netrc").write_text(
        "machine localhost login me password secret\n", encoding="ascii"
    )
    (tmp_path / ".netrc").chmod(0o600)
    for name, value in {
        "HOME": str(tmp_path),
        "NETRC": str(tmp_path / ".netrc"),
        "HTTPS_PROXY": "http://127.0.0.1:1",
        "REQUESTS_CA_BUNDLE": "/nowhere",
    }.items():
        monkeypatch.setenv(name, value)
    assert main(["pledges", "--config", str(cric(tmp_path, server))]) == 0
    assert heard == [None]
    capsys.readouterr()


def test_the_section_is_rendered_as_it_was_read() -> None:
    config = parse("groups: {cms: {}}\npledges: {from: cric, cric: {federations: [A, B]}}\n", "F")
    assert parse(render(config), "G") == config


def test_check_config_says_what_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configured(tmp_path, "{cms: {}}")
    (tmp_path / "knobs").unlink()
    assert main(["check", "config", str(path)]) == 1
    assert (
        f"pledges.negotiator.file: there is no {tmp_path}/knobs on this machine"
        in capsys.readouterr().err
    )
