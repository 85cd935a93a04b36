from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sharectl.cli import status
from sharectl.cli.wiring import own_writer
from sharectl.config.load import load
from sharectl.errors import ConfigError, StateError
from sharectl.model import Plan, Target
from sharectl.publish import signing, text
from sharectl.publish.text import Seal
from sharectl.report.status import place_words
from tests.publish_plan import publish
from tests.unit.cli.conftest import configured
from tests.web_server import WebServer, serving, web_server

SECRET = "0123456789abcdef" * 4
KEY = {b"a": bytes.fromhex(SECRET)}
NOW = int(time.time())
TARGETS = (Target("cn-1", "alice", 56, "cms", 8),)
PLAN = Plan(NOW, NOW, NOW + 3060, ("alice", "cms"), TARGETS, "targets", "alice", "cms")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.touch(mode=0o600)
    path.write_text(f"a {SECRET}\n", encoding="utf-8")
    return path


@pytest.fixture
def signed(tmp_path: Path, keys: Path) -> Path:
    """A configuration that signs what it publishes."""
    return configured(tmp_path, f"signing_key_file: {keys}\npool: {{name: pool-1}}\n")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    with web_server(tmp_path, serving(b"")) as running:
        yield running


def test_a_plan_is_published_signed_or_not_at_all(signed: Path, keys: Path) -> None:
    published = signed.parent / "sharectl.txt"
    keys.write_text(f"a {SECRET[:-1]}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        publish(PLAN, signed)
    assert (SECRET[:32] in str(refused.value), published.exists()) == (False, False)
    keys.write_text(f"a {SECRET}\n", encoding="utf-8")
    publish(PLAN, signed)
    content = published.read_bytes()
    assert signing.problem_of(content, KEY) is None
    assert f"\n# pool: pool-1\n# writer: {own_writer(load(signed))}\n".encode() in content


def test_the_content_of_a_file_is_shown(signed: Path, keys: Path) -> None:
    publish(PLAN, signed)
    config = load(signed)
    (place,) = status.places(config, NOW + 60)
    assert place == {
        "place": f"{signed.parent}/sharectl.txt",
        "sequence": NOW,
        "targets": 1,
        "valid_for_seconds": 3000,
        "signed_by": "a",
        "verified": True,
        "problem": None,
        "way": "file",
        "older": False,
        "foreign": False,
        "writer": own_writer(config),
    }
    assert place_words(place) == f"1 target, sequence {NOW}, valid for 50 min, signed by a"
    (late,) = status.places(config, NOW + 3060)
    assert "expired 0 s ago: no node has a target" in late["problem"]
    keys.write_text(f"b {SECRET}\n", encoding="utf-8")
    (other,) = status.places(config, NOW)
    assert "(bad-signature: " in other["problem"]
    assert "not verified" in place_words(other)
    keys.unlink()
    assert "cannot be read" in status.places(config, NOW)[-1]["problem"]


@pytest.mark.parametrize(
    ("seal", "problem"),
    [
        (Seal("pool-1"), "(unsigned: "),
        (Seal("pool-1", {b"a": b"x" * 32}), "(bad-signature: "),
    ],
)
def test_a_file_that_nodes_refuse_is_a_problem(signed: Path, seal: Seal, problem: str) -> None:
    (signed.parent / "sharectl.txt").write_text(text.render(PLAN, seal), encoding="ascii")
    (place,) = status.places(load(signed), NOW)
    assert problem in place["problem"]


def test_the_content_of_a_server_is_shown(tmp_path: Path, server: WebServer) -> None:
    file = tmp_path / "sharectl.txt"
    https = f"{{file: {file}, url: '{server.url()}', ca_file: {server.certificate}}}"
    config = configured(tmp_path, f"publish: [{{https: {https}}}]\n")
    with pytest.raises(StateError, match=f"{server.url()}: is not what {file} holds"):
        publish(PLAN, config)
    (place,) = status.places(load(config), NOW)
    assert (place["served"], place["targets"], place["place"]) == (False, 1, server.url())
    assert "NOT served" in place_words(place)
    server.answer = serving(file.read_bytes())
    (place,) = status.places(load(config), NOW)
    assert (place["served"], place["problem"]) == (True, None)
    server.answer = serving(b"", 503)
    assert "http-status" in status.places(load(config), NOW)[0]["problem"]
