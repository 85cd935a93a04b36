"""Publications read by the node's own program: by collector, signed file, and both."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box
from tests.pool.conftest import OpenBox
from tests.pool.identities import FORGER, KNOWN, SPEC, Person, person, secure
from tests.pool.sharectl_command import CHECKOUT, Sharectl
from tests.pool.test_collector_targets import BY_COLLECTOR, forged, plan, publish
from tests.web_server import serving, web_server

NODE = "wn-001.example.org"
ORDER = "atlas 56 cms 8"


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    with open_box(SPEC) as box:
        secure(box)
        yield box


@pytest.fixture(scope="module")
def everybody(pool: Box, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Person]:
    return {
        identity: person(pool, identity, tmp_path_factory.mktemp("person"), *levels)
        for identity, levels in ((KNOWN, ("READ", "DAEMON")), (FORGER, ()))
    }


@pytest.fixture
def sharectl(everybody: dict[str, Person], tmp_path: Path) -> Sharectl:
    return everybody[KNOWN].sharectl(tmp_path)


def told(box: Box, source: str, *options: str) -> dict[str, str]:
    """What `target.py` prints on the node: source, reason, sequence, until, order, groups."""
    program = str(CHECKOUT / "startd_cron" / "target.py")
    command = ["/usr/bin/python3", "-IS", program, "--source", source, "--host", NODE, *options]
    printed = box.run(command, host=NODE, check=False).stdout
    return dict(line.partition(" ")[::2] for line in printed.splitlines())


def by_collector(box: Box, *options: str) -> dict[str, str]:
    return told(box, "collector:", "--identity", KNOWN, *options)


@pytest.mark.parametrize("name", ["wn-001", NODE])
def test_an_ad_is_a_target_until_it_is_withdrawn(sharectl: Sharectl, name: str) -> None:
    published = plan(int(time.time()), name)
    publish(sharectl, published)
    seen = by_collector(sharectl.box, "--pool", "box")
    assert (seen["reason"], seen["order"]) == ("ok", f"{ORDER} undefined")
    assert set(seen["groups"].split(",")) == set(published.groups)
    assert (int(seen["sequence"]), int(seen["until"])) == (
        published.sequence,
        published.valid_until,
    )
    assert by_collector(sharectl.box, "--pool", "another")["reason"] == "other-pool"
    publish(sharectl, plan(published.sequence + 1))
    assert by_collector(sharectl.box)["order"] == "none 0 none 0 undefined"


def test_a_forged_ad_is_no_target(sharectl: Sharectl, everybody: dict[str, Person]) -> None:
    published = plan(int(time.time()), "wn-001")
    publish(sharectl, published)
    assert everybody[FORGER].send(
        "UPDATE_AD_GENERIC", forged("wn-001", published.sequence + 9, "another")
    )
    assert int(by_collector(sharectl.box)["sequence"]) == published.sequence
    assert everybody[FORGER].send("UPDATE_AD_GENERIC", forged("wn-001", published.sequence + 9))
    # It took the place of the node's own ad; the plan's ad has no line for the node.
    sharectl.box.wait_until(
        lambda: by_collector(sharectl.box)["reason"] == "no-line", 20, "it is ignored"
    )
    assert by_collector(sharectl.box)["order"] == "none 0 none 0 undefined"
    assert told(sharectl.box, "collector:", "--identity", FORGER)["reason"] == "ok", (
        "the identity decides"
    )


def test_a_signed_file_is_a_target_through_a_change_of_keys(sharectl: Sharectl) -> None:
    shared = sharectl.box.shared_directory
    here, there = sharectl.folder / "keys", shared / "keys"
    file = shared / "signed.txt"
    signed: dict[str, Any] = {
        "publish": [{"file": str(file)}, *BY_COLLECTOR["publish"]],
        "signing_key_file": str(here),
    }
    old, new = (f"{name} {secrets.token_hex(32)}\n" for name in ("old", "new"))
    began = int(time.time())
    # On both; added on the node; put first here; removed here and there.
    for round_number, (sign, verify) in enumerate(
        ((old, old), (old, old + new), (new + old, old + new), (new, new))
    ):
        write_keys(here, sign)
        write_keys(there, verify)
        publish(sharectl, plan(began + round_number, "wn-001"), **signed)
        seen = told(sharectl.box, f"file:{file}", "--key-file", str(there))
        assert (seen["reason"], seen["order"]) == ("ok", f"{ORDER} undefined")
        assert int(seen["sequence"]) == began + round_number
    write_keys(there, old)
    assert told(sharectl.box, f"file:{file}", "--key-file", str(there))["reason"] == "bad-signature"
    write_keys(there, new)
    file.write_text(file.read_text().replace("atlas 56", "atlas 0"))
    assert told(sharectl.box, f"file:{file}", "--key-file", str(there))["reason"] == "bad-signature"
    publish(sharectl, plan(began + 9, "wn-001"), publish=[{"file": str(file)}])
    assert told(sharectl.box, f"file:{file}", "--key-file", str(there))["reason"] == "unsigned"
    assert told(sharectl.box, f"file:{file}")["reason"] == "ok"


def test_what_a_web_server_serves_is_a_target(sharectl: Sharectl) -> None:
    shared = sharectl.box.shared_directory
    file, began = shared / "served.txt", int(time.time())

    def answer(request: BaseHTTPRequestHandler) -> None:
        serving(file.read_bytes())(request)

    with web_server(shared, answer) as server:
        trusted = ("--ca-file", str(server.certificate))
        way = {"file": str(file), "url": server.url(), "ca_file": str(server.certificate)}
        publish(sharectl, plan(began, "wn-001"), publish=[{"https": way}])
        seen = told(sharectl.box, server.url(), *trusted)
        assert (seen["reason"], seen["order"], seen["sequence"]) == (
            "ok",
            f"{ORDER} undefined",
            str(began),
        )
        assert told(sharectl.box, server.url())["order"] == "none 0 none 0 undefined", (
            "nobody vouches for it"
        )
        server.answer = serving(b"", 503)
        publish(sharectl, plan(began + 1, "wn-001"), expect=74, publish=[{"https": way}])
        assert told(sharectl.box, server.url(), *trusted)["order"] == "none 0 none 0 undefined"


def write_keys(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    path.write_text(text)
