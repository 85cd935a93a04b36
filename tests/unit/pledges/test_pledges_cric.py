from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from sharectl.config.model import CricPledgesConfig
from sharectl.pledges.cric import MAX_BYTES, CricPledges
from sharectl.pledges.join import DAY_SECONDS, AllPledges, SteeredGroup
from sharectl.shares.pledges import Pledged
from tests.web_server import Answer, WebServer, serving, web_server

RECORDED = (Path(__file__).parents[2] / "golden" / "pledges" / "federations.json").read_bytes()
NOW = 1795000000
"""In November 2026: 2026 Q3."""
CMS, ATLAS = (
    SteeredGroup("cms", None, "groups.cms", "cms"),
    SteeredGroup("atlas", None, "groups.atlas", "atlas"),
)
HOUR_SECONDS = 3600


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with web_server(tmp_path_factory.mktemp("server"), serving(RECORDED)) as running:
        yield running


class Source:
    """CRIC's pledges from one server, with their copy in one folder."""

    def __init__(self, server: WebServer, folder: Path) -> None:
        self.server = server
        self.copy_file = folder / "copy.json"
        self.access = CricPledgesConfig(
            federations=("IT-INFN-CNAF",),
            url=server.url("/api/?json&start_year={previous_year}"),
            ca_file=server.certificate,
            deadline_seconds=20,
        )

    def look(
        self,
        now: int = NOW,
        answer: Answer | None = None,
        wanted: tuple[SteeredGroup, ...] = (CMS, ATLAS),
        **manner: bool,
    ) -> Pledged:
        if answer is not None:
            self.server.answer = answer
        self.server.asked.clear()
        source = CricPledges(self.access, self.copy_file, wanted, **manner)
        return AllPledges(source.ask, lambda hs06: hs06).resolve(now)

    def changed(self, **values: Any) -> None:
        self.access = replace(self.access, **values)


@pytest.fixture
def source(server: WebServer, tmp_path: Path) -> Source:
    server.answer = serving(RECORDED, ETag='"one"')
    return Source(server, tmp_path)


def problem_of(pledged: Pledged) -> str:
    assert pledged.pledges == ()
    return pledged.source.problem or ""


def saying(cms: object = 87100, atlas: object = 105300, federation: str = "IT-INFN-CNAF") -> Answer:
    quarters = {f"Q{n}": {"cms": {"CPU": cms}, "atlas": {"CPU": atlas}} for n in range(1, 5)}
    return serving(json.dumps({federation: {"pledges": {"2026": quarters}}}).encode())


def failing(request: BaseHTTPRequestHandler) -> None:
    serving(b"broken", 500)(request)


def test_pledges_of_the_quarter_with_their_places(source: Source) -> None:
    pledged = source.look()
    assert pledged.source.problem is None
    assert pledged.hs06 == {"cms": 87100, "atlas": 105300}
    assert pledged.pledges[0].place == "CRIC.IT-INFN-CNAF.pledges.2026.Q3.cms.CPU"
    assert (pledged.pledges[0].source, pledged.pledges[0].said_at, pledged.warnings) == (
        "cric",
        None,
        (),
    )
    assert source.server.asked == ["/api/?json&start_year=2025"]


def test_a_part_of_them_where_other_sites_deliver_the_rest(source: Source) -> None:
    source.changed(federation_ratio=0.25)
    assert source.look().hs06 == {"cms": 21775, "atlas": 26325}


def test_a_young_copy_is_used_without_asking(source: Source) -> None:
    source.look()
    later = source.look(NOW + HOUR_SECONDS)
    assert source.server.asked == []
    assert later.hs06["cms"] == 87100
    assert (later.pledges[0].said_at, later.warnings) == (NOW, ())
    assert source.look(NOW + HOUR_SECONDS, refresh=True).pledges[0].said_at is None
    assert len(source.server.asked) == 1


def test_an_answer_that_still_holds_is_not_sent_again(source: Source) -> None:
    seen: list[str | None] = []

    def unchanged(request: BaseHTTPRequestHandler) -> None:
        seen.append(request.headers["If-None-Match"])
        request.send_response(304)
        request.end_headers()

    source.look()
    pledged = source.look(NOW + DAY_SECONDS, unchanged)
    assert seen == ['"one"']
    assert (pledged.hs06["cms"], pledged.pledges[0].said_at, pledged.warnings) == (87100, None, ())
    assert source.look(NOW + DAY_SECONDS + HOUR_SECONDS).pledges[0].said_at == NOW + DAY_SECONDS
    source.look(NOW + DAY_SECONDS, refresh=True)
    assert seen[1] is None, "a refresh wants the whole answer"


def hanging(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    for _ in range(600):
        request.wfile.write(b" ")
        request.wfile.flush()
        time.sleep(0.1)


def truncated(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(len(RECORDED)))
    request.end_headers()
    request.wfile.write(RECORDED[:1000])


def endless(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    for _ in range(MAX_BYTES // 2**16 + 1):
        request.wfile.write(b" " * 2**16)


CHUNK_BYTES = 16 * MAX_BYTES


def in_a_chunk_of_minus_one(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    request.wfile.write(b"-1\r\n")
    for _ in range(CHUNK_BYTES // 2**16):
        request.wfile.write(b" " * 2**16)
    TAKEN.append(request)


TAKEN: list[BaseHTTPRequestHandler] = []
"""Requests whose client took the whole of such a chunk."""


def redirecting(request: BaseHTTPRequestHandler) -> None:
    serving(b"", 302, Location="http://localhost/api/")(request)


FAILURES = {
    "500": (failing, "the server answers 500"),
    "403": (serving(b"", 403), "the server answers 403"),
    "304": (serving(b"", 304), "redirects to None"),
    "redirect": (redirecting, "redirects to http://localhost/api/; write the right place"),
    "hang": (hanging, "no answer within 0.3 s"),
    "truncated": (truncated, "cannot be asked: "),
    "endless": (endless, f"sends more than {MAX_BYTES} bytes"),
    "chunk of -1": (in_a_chunk_of_minus_one, "cannot be asked: "),  # it was not all taken
    "html": (serving(b"<html>login</html>"), "is not JSON"),
    "empty": (serving(b"{}"), "there is no federation"),
    "negative": (saying(cms=-1), "Q3.cms.CPU: -1 is not a pledge"),
}


@pytest.mark.parametrize(("answer", "problem"), FAILURES.values(), ids=FAILURES)
def test_what_a_server_may_do_ends_in_the_copy_or_in_no_pledges_and_is_said(
    source: Source, answer: Answer, problem: str
) -> None:
    patient = {"deadline_seconds": 0.3 if answer is hanging else 20}
    source.changed(**patient)
    without = problem_of(source.look(answer=answer))
    assert problem in without
    assert TAKEN == [], "the process that asks has too little memory for it"
    assert f"there is no copy of it in {source.copy_file}" in without
    assert not source.copy_file.exists()
    source.changed(deadline_seconds=20)
    source.look(answer=serving(RECORDED))
    kept = source.copy_file.read_bytes()
    source.changed(**patient)
    pledged = source.look(NOW + 2 * DAY_SECONDS, answer)
    assert pledged.hs06 == {"cms": 87100, "atlas": 105300}
    assert {pledge.said_at for pledge in pledged.pledges} == {NOW}
    (warning,) = pledged.warnings
    assert problem in warning
    assert warning.endswith("the copy of 2.0 days ago is in use")
    assert source.copy_file.read_bytes() == kept


def test_a_server_that_is_gone_or_not_the_one_that_is_trusted(
    source: Source, server: WebServer, tmp_path: Path
) -> None:
    with web_server(tmp_path, serving(RECORDED), "elsewhere.example.org") as running:
        url = running.url("/x")
        source.changed(url=url, ca_file=running.certificate)
        assert "Hostname mismatch" in problem_of(source.look())
        assert running.asked == [], "nothing is sent to a server that is not trusted"
        for trusted in (running.certificate, None):
            source.changed(url=server.url("/x"), ca_file=trusted)
            assert "CERTIFICATE_VERIFY_FAILED" in problem_of(source.look())
    source.changed(ca_file=tmp_path / "none.pem")
    assert f"{tmp_path}/none.pem" in problem_of(source.look())
    source.changed(url=url, ca_file=running.certificate)
    assert "refused" in problem_of(source.look())


def test_a_folder_of_hashed_certificates(source: Source, tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "ca.pem").write_bytes(source.server.certificate.read_bytes())
    subprocess.run(["openssl", "rehash", str(folder)], check=True, capture_output=True)
    source.changed(ca_file=None, ca_directory=folder)
    assert source.look().hs06["cms"] == 87100


def test_a_copy_is_used_until_it_is_too_old(source: Source) -> None:
    source.look()
    assert source.look(NOW + 29 * DAY_SECONDS, failing).hs06["cms"] == 87100
    old = problem_of(source.look(NOW + 31 * DAY_SECONDS, failing))
    assert "is of 31.0 days ago, older than pledges.cric.max_age_days (30)" in old


def test_a_copy_of_another_place_is_not_used(source: Source, server: WebServer) -> None:
    source.look()
    source.changed(url=server.url("/elsewhere"))
    assert source.look(NOW + 1, failing).pledges == ()


def test_the_next_year_is_asked_for_and_its_pledges_used(source: Source) -> None:
    source.look()
    in_april = NOW + 150 * DAY_SECONDS
    source.changed(max_age_days=300)
    problem = problem_of(source.look(in_april, serving(RECORDED)))
    assert source.server.asked == ["/api/?json&start_year=2026"]
    assert "has no 2027, which 2027 Q1 needs; there is 2025, 2026" in problem


@pytest.mark.parametrize("cms", [174201, 43549])
def test_a_pledge_that_jumps_waits_for_a_word(source: Source, cms: int) -> None:
    source.look()
    later = NOW + DAY_SECONDS
    pledged = source.look(later, saying(cms=cms, atlas=110000))
    assert pledged.hs06 == {"cms": 87100, "atlas": 110000}
    (warning,) = pledged.warnings
    assert f"CPU is {cms} HS06, after 87100: more than a factor of 2" in warning
    assert "`sharectl pledges --confirm` takes it; the pledge before stays in use" in warning
    assert {pledge.group: pledge.said_at for pledge in pledged.pledges} == {
        "cms": NOW,
        "atlas": None,
    }
    assert source.look(later + HOUR_SECONDS).hs06["cms"] == 87100
    assert source.look(later + HOUR_SECONDS, confirm=True, refresh=True).hs06["cms"] == cms
    after = source.look(later + 2 * HOUR_SECONDS)
    assert (after.hs06["cms"], after.warnings) == (cms, ())


def test_a_pledge_that_jumped_and_is_not_confirmed_does_not_last_for_ever(source: Source) -> None:
    source.look()
    source.look(NOW + 20 * DAY_SECONDS, saying(cms=1))
    problem = problem_of(source.look(NOW + 31 * DAY_SECONDS))
    assert "the pledge before is of 31.0 days ago, too old to stay" in problem


@pytest.mark.parametrize(
    ("cms", "vo", "why"),
    [
        *((cms, "cms", "CRIC.IT-INFN-CNAF.pledges.2026.Q3.cms.CPU is 0") for cms in (0, "0")),
        (1, "belle2", "CRIC has no CPU pledge of IT-INFN-CNAF for the VO belle2 in 2026 Q3"),
    ],
)
def test_no_power_is_never_a_pledge(source: Source, cms: object, vo: str, why: str) -> None:
    source.look()
    wanted = (replace(CMS, name_in_source=vo), ATLAS)
    problem = problem_of(source.look(NOW + DAY_SECONDS, saying(cms=cms), wanted=wanted))
    assert problem.startswith(f"groups.cms: {why}; write pledge_hs06 there")


def test_a_written_pledge_goes_before_and_is_said(source: Source) -> None:
    written = replace(CMS, written_hs06=5.0)
    pledged = source.look(wanted=(written, ATLAS))
    assert pledged.hs06 == {"cms": 5, "atlas": 105300}
    assert (pledged.pledges[0].source, pledged.pledges[0].instead_of_hs06) == ("yaml", 87100)
    assert pledged.notes[0].startswith(
        "groups.cms: 5 HS06 is written, and goes before the 87100 of "
    )
    assert (
        source.look(NOW + DAY_SECONDS, saying(cms=1), wanted=(written, ATLAS)).source.problem
        is None
    )


def test_a_dry_run_keeps_nothing(source: Source) -> None:
    assert source.look(keep=False).hs06["cms"] == 87100
    assert not source.copy_file.exists()


def test_a_copy_that_cannot_be_kept_is_said(source: Source) -> None:
    source.copy_file = source.copy_file / "none" / "x"
    pledged = source.look()
    assert pledged.hs06["cms"] == 87100
    assert "the copy of the pledges is not kept" in pledged.warnings[0]


@pytest.mark.parametrize(
    "damage",
    [
        *(b"", b"[]", b"{}", b'{"schema_version": 2}', b"\xff" * 9),
        *({"asked_at": "x"}, {"answer": 5}, {"url": None}, {"accepted": {"cms": {"hs06": "1"}}}),
    ],
)
def test_a_broken_copy_is_reported_and_replaced(source: Source, damage: Any) -> None:
    source.look()
    content = json.loads(source.copy_file.read_bytes())
    if isinstance(damage, dict):
        damage = json.dumps({**content, **damage}).encode()
    source.copy_file.write_bytes(damage)
    pledged = source.look(NOW + 1)
    assert pledged.hs06["cms"] == 87100
    assert pledged.warnings[0].startswith(f"{source.copy_file}: cannot be read: ")
    assert source.look(NOW + 2).warnings == ()
