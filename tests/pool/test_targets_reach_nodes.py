"""Publications read by the node's own program: by collector and by signed file."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from poolbox import Box
from tests.pool.conftest import OpenBox
from tests.pool.identities import FORGER, KNOWN, SPEC, Person, person, secure
from tests.pool.sharectl_command import CHECKOUT, Sharectl
from tests.pool.test_collector_targets import forged, plan, publish

NODE = "wn-001.example.org"
ORDER, NO_ORDER = "atlas 56 cms 8", "none 0 none 0 undefined"


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
    assert by_collector(sharectl.box)["order"] == NO_ORDER


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
    assert by_collector(sharectl.box)["order"] == NO_ORDER
    assert told(sharectl.box, "collector:", "--identity", FORGER)["reason"] == "ok", (
        "the identity decides"
    )


def test_a_signed_file_is_a_target_until_a_byte_is_changed(sharectl: Sharectl) -> None:
    """The change of keys, and web servers, are in test_faults_of_delivery.py."""
    file, keys = (sharectl.box.shared_directory / name for name in ("signed.txt", "keys"))
    keys.touch(0o600)
    keys.write_text(f"old {secrets.token_hex(32)}\n")
    here = [{"file": str(file)}]

    def seen() -> tuple[str, str]:
        answer = told(sharectl.box, f"file:{file}", "--key-file", str(keys))
        return answer["reason"], answer["order"]

    publish(sharectl, plan(int(time.time()), "wn-001"), publish=here, signing_key_file=str(keys))
    assert seen() == ("ok", f"{ORDER} undefined")
    file.write_text(file.read_text().replace("atlas 56", "atlas 0"))
    assert seen() == ("bad-signature", NO_ORDER)
    publish(sharectl, plan(int(time.time()) + 1, "wn-001"), publish=here)
    assert seen() == ("unsigned", NO_ORDER)
