"""Daemons behind shared_port that are dead or do not know the user; FS, and a token."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.sharectl_command import Sharectl
from tests.pool.trouble import dead

pytestmark = pytest.mark.semantics
CENTRAL, FIRST = "cm-1.example.org", "ap-1.example.org"
SPEC = BoxSpec(
    (ExecutePoint("wn-001.example.org", 4),),
    access_points=(FIRST,),
    config="""\
USE_SHARED_PORT = True
SHARED_PORT_PORT = 0
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS, CLAIMTOBE
FS_LOCAL_DIR = $(LOCAL_DIR)/../../shared
SEC_TOKEN_POOL_SIGNING_KEY_FILE = $(LOCAL_DIR)/../../shared/signing.key
# The master waits so long before it starts a dead daemon; HTCondor's own are 9 s and more.
MASTER_BACKOFF_CONSTANT = 2
""",
)
DAEMONS = {
    "COLLECTOR": (CENTRAL, r"collector: \S+: "),
    "SCHEDD": (FIRST, f"schedd {FIRST}: "),
    "NEGOTIATOR": (CENTRAL, r".*"),
}
"""Daemon -> its host, and the beginning of its message."""
METHODS = "_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS"
FETCH = ("condor_token_fetch", "-lifetime", "600", "-authz", "READ")


def prepare(box: Box) -> None:
    key = box.shared_directory / "signing.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(64))
    for host in SPEC.hosts:
        box.reconfig(host)


@pytest.fixture
def sharectl(pool: Box, tmp_path: Path) -> Sharectl:
    """The command, on a pool whose daemons all answer."""
    command = Sharectl(pool, tmp_path)

    def answers() -> bool:
        return command.run("snapshot", expect=None).returncode == 0 and bool(
            pool.run(["condor_config_val", "-negotiator", "NEGOTIATOR_INTERVAL"]).stdout
        )

    pool.wait_until(answers, "all daemons answer")
    return command


def message(sharectl: Sharectl, daemon: str, expected: str) -> None:
    """Demand a line of that form, of a command that needs the daemon."""
    deadlines = {"collector_deadline_seconds": 60.0, "schedd_deadline_seconds": 60.0}
    verb = "pledges" if daemon == "NEGOTIATOR" else "snapshot"
    more = {"pledges": {"from": "negotiator"}} if daemon == "NEGOTIATOR" else {}
    done = sharectl.run(verb, expect=75, pool=deadlines, **more)
    line = rf"^sharectl: {DAEMONS[daemon][1]}{expected}"
    assert re.search(line, done.stderr, re.MULTILINE), done.stderr


@pytest.mark.parametrize("daemon", DAEMONS)
def test_a_dead_daemon_is_one_that_may_not_run(sharectl: Sharectl, daemon: str) -> None:
    with dead(sharectl.box, DAEMONS[daemon][0], daemon):
        message(sharectl, daemon, f"it does not know this user .*, or {daemon} does not run there")


def test_a_user_without_a_common_method_is_told_of_tokens(sharectl: Sharectl) -> None:
    stranger = replace(sharectl, environment={METHODS: "PASSWORD"})
    message(stranger, "COLLECTOR", "it does not know this user by any method that both have")


def test_a_user_of_the_same_machine_uses_fs_or_else_fetches_a_token(
    sharectl: Sharectl, tmp_path: Path
) -> None:
    """FS of the bindings fails with 23.9.6; HTCondor's own tools there get a token by FS."""
    user = replace(sharectl, environment={METHODS: "FS"})
    if sharectl.box.spec.suite == "forky":
        user.run("snapshot")
        return
    message(user, "COLLECTOR", "it does not know this user")
    token = tmp_path / "tokens" / "pool"
    token.parent.mkdir()
    token.write_text(sharectl.box.run(FETCH, environment={METHODS: "FS"}).stdout)
    token.chmod(0o600)
    tokens = {METHODS: "FS, IDTOKENS", "_CONDOR_SEC_TOKEN_DIRECTORY": str(token.parent)}
    replace(sharectl, environment=tokens).run("snapshot")


def test_without_shared_port_nobody_listens(sharectl: Sharectl) -> None:
    """The last test: shared_port comes back with another port."""
    with dead(sharectl.box, FIRST, "SHARED_PORT"):
        message(sharectl, "SCHEDD", r"nobody listens at 127\.0\.0\.1:\d+: SCHEDD does not run")
