from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from sharectl.cli.main import main
from sharectl.config.model import CricPledgesConfig
from sharectl.errors import InputError
from sharectl.pledges.cric import MAX_BYTES, CricPledges, promised
from sharectl.pledges.join import AllPledges, SteeredGroup
from sharectl.shares.pledges import Period, Pledged
from sharectl.times import DAY_SECONDS
from tests.fakes import Listing
from tests.web_server import Answer, WebServer, serving, web_server

RECORDED = (Path(__file__).parents[2] / "golden" / "pledges" / "federations.json").read_bytes()
NOW = 1795000000
"""In November 2026: 2026 Q3."""
CMS, ATLAS = (
    SteeredGroup("cms", None, "groups.cms", "cms"),
    SteeredGroup("atlas", None, "groups.atlas", "atlas"),
)


# ---- the content of an answer


def outcome(content: str) -> list[str]:
    """Problem of an answer, or its pledges of two VOs."""
    try:
        powers = promised(content, ("IT-INFN-CNAF",), ("cms", "atlas"), Period(2026, 3))
    except InputError as error:
        return list(error.problems)
    lines = [f"{vo}: {power.hs06:g} HS06 of {power.place}" for vo, power in powers.items()]
    return lines or ["no pledge"]


def test_an_answer_has_pledges_or_a_problem(listing: Listing) -> None:
    listing("pledges/cric.txt", outcome, 24)


def test_all_problems_of_an_answer_are_named_at_once_up_to_a_bound() -> None:
    vos = [f"vo{number}" for number in range(30)]
    quarters = {"2026": {"Q3": {vo: {"CPU": -1} for vo in vos}}}
    content = json.dumps({"X": {"pledges": quarters}, "Y": {"pledges": quarters}})

    def problems(*federations: str, most: int) -> list[str]:
        with pytest.raises(InputError) as raised:
            promised(content, federations, vos[:most], Period(2026, 3))
        return [problem.partition(":")[0] for problem in raised.value.problems]

    of_vos = [f"CRIC.{name}.pledges.2026.Q3.{vo}.CPU" for name in "XY" for vo in vos[:3]]
    assert problems("X", "Z", "Y", most=3) == [*of_vos[:3], "CRIC", *of_vos[3:]]
    many = problems("X", most=30)
    assert (len(many), many[-1]) == (11, "… and 20 more problems")


# ---- a server


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
        )

    def look(
        self,
        now: int = NOW,
        answer: Answer | None = None,
        wanted: tuple[SteeredGroup, ...] = (CMS, ATLAS),
        **manner: Any,
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
    server.answer = serving(RECORDED)
    return Source(server, tmp_path)


def problem_of(pledged: Pledged) -> str:
    assert pledged.pledges == ()
    return pledged.source.problem or ""


def saying(cms: object = 87100, atlas: object = 105300, federation: str = "IT-INFN-CNAF") -> Answer:
    quarters = {f"Q{n}": {"cms": {"CPU": cms}, "atlas": {"CPU": atlas}} for n in range(1, 5)}
    return serving(json.dumps({federation: {"pledges": {"2026": quarters}}}).encode())


def failing(request: BaseHTTPRequestHandler) -> None:
    serving(b"broken", 500)(request)


HOUR = 1 / 24
GOOD = serving(RECORDED)
WRITTEN = (replace(CMS, written_hs06=5.0), ATLAS)
UNKNOWN = (replace(CMS, name_in_source="belle2"), ATLAS)
STORIES: dict[str, list[tuple[float, Answer | None, dict[str, Any]]]] = {
    "a young copy": [(0, GOOD, {}), (HOUR, None, {}), (HOUR, None, {"refresh": True})],
    "other sites deliver the rest": [(0, GOOD, {"federation_ratio": 0.25})],
    "federations by other names": [(0, GOOD, {"federations": ("it-infn-cnaf", "T2_IT_ATLAS")})],
    "an old copy": [(0, GOOD, {}), (29, failing, {}), (31, failing, {})],
    "a copy of another place": [(0, GOOD, {}), (HOUR, failing, {"url": "https://localhost:1/"})],
    **{
        f"a jump to {cms}": [
            (0, GOOD, {}),
            (1, saying(cms=cms, atlas=110000), {}),
            (1 + HOUR, None, {}),
            (1 + HOUR, None, {"confirm": True, "refresh": True}),
            (1 + 2 * HOUR, None, {}),
        ]
        for cms in (174201, 43549)
    },
    "a jump that nobody confirms": [(0, GOOD, {}), (20, saying(cms=1), {}), (31, None, {})],
    "a clock set back": [(0, GOOD, {}), (-HOUR, failing, {}), (-31, failing, {})],
    "no power": [(0, GOOD, {}), (1, saying(cms=0), {})],
    "an unknown VO": [(0, GOOD, {"wanted": UNKNOWN})],
    "a written pledge": [(0, GOOD, {"wanted": WRITTEN}), (1, saying(cms=1), {"wanted": WRITTEN})],
    "a dry run": [(0, GOOD, {"keep": False}), (HOUR, failing, {})],
}
"""Looks: days, answer of the server if it is another, and how sharectl looks."""


def test_stories(server: WebServer, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    lines: list[str] = []
    for title, looks in STORIES.items():
        lines.append(f"\n{title}")
        source = Source(server, tmp_path / title)
        source.copy_file.parent.mkdir()
        for days, answer, how in looks:
            access = {key: value for key, value in how.items() if hasattr(source.access, key)}
            source.changed(**access)
            manner = {key: value for key, value in how.items() if key not in access}
            pledged = source.look(NOW + round(days * DAY_SECONDS), answer, **manner)
            lines.append(f"  day {days:.3g}, {', '.join(how)}: {server.asked or 'not asked'}")
            lines += (f"    {pledge}" for pledge in pledged.pledges)
            told = (*pledged.warnings, *pledged.notes, pledged.source.problem or "")
            lines += (f"    {line}" for line in told if line)
    text = "\n".join(lines).strip().replace(str(tmp_path), "FOLDER")
    golden("pledges/cric_stories.txt", f"{text.replace(server.url(''), 'SERVER')}\n")


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
    "redirect": (redirecting, "redirects to http://localhost/api/; write the right place"),
    "hang": (hanging, "no answer within 0.3 s"),
    "truncated": (truncated, "cannot be asked: "),
    "endless": (endless, f"sends more than {MAX_BYTES} bytes"),
    "chunk of -1": (in_a_chunk_of_minus_one, "cannot be asked: "),  # it was not all taken
    "html": (serving(b"<html>login</html>"), "is not JSON"),
}


@pytest.mark.parametrize(("answer", "problem"), FAILURES.values(), ids=FAILURES)
def test_what_a_server_may_do_ends_in_the_copy_or_in_no_pledges_and_is_said(
    source: Source, answer: Answer, problem: str
) -> None:
    patience: dict[str, Any] = {"deadline_seconds": 0.3 if answer is hanging else 20.0}
    without = problem_of(source.look(answer=answer, **patience))
    assert problem in without
    assert TAKEN == [], "the process that asks has too little memory for it"
    assert f"there is no copy of it in {source.copy_file}" in without
    assert not source.copy_file.exists()
    source.look(answer=serving(RECORDED))
    kept = source.copy_file.read_bytes()
    pledged = source.look(NOW + 2 * DAY_SECONDS, answer, **patience)
    assert pledged.hs06 == {"cms": 87100, "atlas": 105300}
    assert {pledge.said_at for pledge in pledged.pledges} == {NOW}
    (warning,) = pledged.warnings
    assert problem in warning
    assert warning.endswith("the copy of 2 d ago is in use")
    assert source.copy_file.read_bytes() == kept


def test_a_server_that_is_gone_or_not_the_one_that_is_trusted(
    source: Source, server: WebServer, tmp_path: Path
) -> None:
    with web_server(tmp_path, serving(RECORDED), "elsewhere.example.org") as running:
        url = running.url("/x")
        for trusted, place, problem in (
            (running.certificate, url, "Hostname mismatch"),
            (running.certificate, server.url("/x"), "CERTIFICATE_VERIFY_FAILED"),
            (None, server.url("/x"), "CERTIFICATE_VERIFY_FAILED"),
            (tmp_path / "none.pem", url, f"{tmp_path}/none.pem"),
        ):
            source.changed(url=place, ca_file=trusted)
            assert problem in problem_of(source.look())
        assert running.asked == [], "nothing is sent to a server that is not trusted"
    source.changed(ca_file=running.certificate)
    assert "refused" in problem_of(source.look())
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "ca.pem").write_bytes(server.certificate.read_bytes())
    subprocess.run(["openssl", "rehash", str(folder)], check=True, capture_output=True)
    source.changed(url=server.url("/x"), ca_file=folder)
    assert source.look().hs06["cms"] == 87100
    source.changed(proxy="http://127.0.0.1:1")
    assert "refused" in source.look(refresh=True).warnings[0]


def test_a_copy_that_cannot_be_kept_is_said(source: Source) -> None:
    source.copy_file = source.copy_file / "none" / "x"
    pledged = source.look()
    assert pledged.hs06["cms"] == 87100
    assert "the copy of the pledges is not kept" in pledged.warnings[0]


@pytest.mark.parametrize("damage", [b"", b'{"schema_version": 0}', {"asked_at": "x"}])
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


def test_the_environment_changes_nothing_about_trust(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorizations: list[str | None] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        authorizations.append(request.headers["Authorization"])
        GOOD(request)

    netrc = tmp_path / ".netrc"
    netrc.write_text("machine localhost login me password secret\n", encoding="ascii")
    netrc.chmod(0o600)
    environment = {"HTTPS_PROXY": "http://127.0.0.1:1", "REQUESTS_CA_BUNDLE": "/nowhere"}
    for name, value in {"HOME": str(tmp_path), "NETRC": str(netrc), **environment}.items():
        monkeypatch.setenv(name, value)
    assert source.look(answer=answer).hs06["cms"] == 87100
    assert authorizations == [None]


def test_the_command_asks_keeps_and_confirms(
    server: WebServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, copy_file = tmp_path / "sharectl.yaml", tmp_path / "pledges-cric.json"
    access = f"federations: [X], url: '{server.url('/x')}', ca_file: {server.certificate}"
    path.write_text(
        f"groups: {{cms: {{}}, tape: {{cric_vo: ATLAS}}}}\nstate_directory: {tmp_path}\n"
        f"pledges: {{from: cric, cric: {{{access}}}}}\n"
    )

    def printed(cms: int, *options: str) -> dict[str, float]:
        quarters = {f"Q{n}": {"cms": {"CPU": cms}, "atlas": {"CPU": 1000}} for n in range(1, 5)}
        years = {str(year): quarters for year in range(2020, 2100)}
        server.answer = serving(json.dumps({"X": {"pledges": years}}).encode())
        assert main(["pledges", "--config", str(path), "--json", *options]) == 0
        rows = json.loads(capsys.readouterr().out)["pledges"]
        return {row["group"]: row["hs06"] for row in rows}

    assert printed(500) == {"cms": 500, "tape": 1000}
    assert not copy_file.exists(), "looking changes nothing"
    assert printed(500, "--refresh")["cms"] == 500
    assert copy_file.exists()
    looks = [printed(5000, *options)["cms"] for options in (["--refresh"], ["--confirm"], [])]
    assert looks == [500, 5000, 5000]
