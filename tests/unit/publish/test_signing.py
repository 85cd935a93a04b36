from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

import pytest

from sharectl.errors import ConfigError, InputError
from sharectl.model import Plan, Target
from sharectl.publish import signing
from sharectl.publish import text as sharectl_file
from sharectl.publish.signing import SigningKey
from sharectl.publish.text import Seal

SECRET = "0123456789abcdef" * 4
KEY = SigningKey("2026-a", bytes.fromhex(SECRET))
TARGETS = (Target("cn-609-05-06", "alice", 56, "cms", 8),)
PLAN = Plan(7, 100, 3160, ("alice", "cms"), TARGETS, "targets")
SIGNED = sharectl_file.render(PLAN, Seal("pool-1", KEY)).encode()


def key_file(tmp_path: Path, text: str, mode: int = 0o600) -> Path:
    path = tmp_path / "keys"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_the_signed_text_is_that_of_the_contract() -> None:
    body = (
        b"# sharectl: 1\n# sequence: 7\n# pool: pool-1\n# generated: 100\n# valid_until: 3160\n"
        b"# groups: alice,cms\n# targets: 1\ncn-609-05-06 alice 56 cms 8\n"
    )
    digest = hmac.new(bytes.fromhex(SECRET), body, hashlib.sha256).hexdigest()
    assert body + f"# signature: hmac-sha256 2026-a {digest}\n".encode() == SIGNED
    assert b"# pool" not in sharectl_file.render(PLAN).encode()


@pytest.mark.parametrize(
    "content",
    [
        SIGNED + b"cn-1 alice 1 cms 8\n",
        SIGNED.replace(b"hmac-sha256", b"hmac-md5"),
        b"# signature: none\n",
    ],
)
def test_a_signature_that_is_not_the_last_line_or_of_another_kind_is_none(content: bytes) -> None:
    assert signing.problem_of(SIGNED, [KEY]) is None
    assert signing.problem_of(content, [KEY]) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_keys_may_not_belong_to_another_user(tmp_path: Path) -> None:
    path = key_file(tmp_path, f"2026-a {SECRET}\n")
    os.chown(path, 12345, -1)
    with pytest.raises(ConfigError, match="owner 12345"):
        signing.read_keys(path)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda _: None])
def test_a_published_text_of_another_kind_is_not_waited_for(tmp_path: Path, make: object) -> None:
    make(tmp_path / "text")  # type: ignore[operator]
    with pytest.raises(InputError, match="cannot be read"):
        sharectl_file.read(tmp_path / "text")
