from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

import pytest

from sharectl.errors import InputError
from sharectl.model import Plan, Target
from sharectl.publish import text as sharectl_file
from sharectl.publish.text import Seal

SECRET = "0123456789abcdef" * 4
KEY = {b"2026-a": bytes.fromhex(SECRET)}
TARGETS = (Target("cn-609-05-06", "alice", 56, "cms", 8),)
PLAN = Plan(7, 100, 3160, ("alice", "cms"), TARGETS, "targets")
SIGNED = sharectl_file.render(PLAN, Seal("pool-1", KEY)).encode()


def test_the_signed_text_is_that_of_the_contract() -> None:
    body = (
        b"# sharectl: 1\n# sequence: 7\n# pool: pool-1\n# generated: 100\n# valid_until: 3160\n"
        b"# groups: alice,cms\n# targets: 1\ncn-609-05-06 alice 56 cms 8\n"
    )
    digest = hmac.new(bytes.fromhex(SECRET), body, hashlib.sha256).hexdigest()
    assert body + f"# signature: hmac-sha256 2026-a {digest}\n".encode() == SIGNED
    assert b"# pool" not in sharectl_file.render(PLAN).encode()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda _: None])
def test_a_published_text_of_another_kind_is_not_waited_for(tmp_path: Path, make: object) -> None:
    make(tmp_path / "text")  # type: ignore[operator]
    with pytest.raises(InputError, match="cannot be read"):
        sharectl_file.content_of(tmp_path / "text")
