"""The service's token: whose, for which configuration, and the command that makes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Optional

import pytest

from sharectl.check.pool import divided
from sharectl.condor.service import NO_TOKEN, TOKENS, become_service, pool_of, token_remedy


@pytest.mark.parametrize(
    ("file", "pool"),
    [
        ("/etc/sharectl/sharectl.yaml", None),
        ("/etc/sharectl/siteA.yaml", "siteA"),
        ("/root/siteA.yaml", None),
    ],
)
def test_the_pool_of_a_service_is_the_name_of_its_configuration(
    file: str, pool: Optional[str]
) -> None:
    assert pool_of(Path(file)) == pool


def test_the_service_gets_the_command_that_makes_its_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "siteA.token").write_bytes(NO_TOKEN)
    monkeypatch.setenv(TOKENS, str(tmp_path))
    remedy = token_remedy("COLLECTOR", "example.org")
    assert divided(f"a fault; {remedy}", "")["remedy"] == remedy
    assert remedy == (
        "as root on the central manager run `(umask 077 && condor_token_create -identity "
        "sharectl@example.org -authz READ > /etc/sharectl/siteA.token)`"
    )


def test_a_folder_of_tokens_makes_nobody_else_of_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.getresuid(), os.getgroups()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv(TOKENS, str(tmp_path / "missing"))
    become_service()
    assert (os.getresuid(), os.getgroups()) == before
