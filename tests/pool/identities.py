"""A pool whose collector knows by token who sends it what, and people with tokens."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.sharectl_command import CHECKOUT, Sharectl

CENTRAL = "cm-1.example.org"
KNOWN, FORGER, STRANGER = "sharectl@example.org", "forger@example.org", "mallory@example.org"
"""sharectl; another who may advertise, as a node may; one with a token who may not."""

SPEC = BoxSpec(
    execute_points=(ExecutePoint("wn-001.example.org", cores=8),),
    access_points=("ap-1.example.org",),
)
SECURITY = """\
TRUST_DOMAIN = example.org
SEC_TOKEN_POOL_SIGNING_KEY_FILE = $(LOCAL_DIR)/signing.key
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS, CLAIMTOBE
COLLECTOR.SEC_DAEMON_AUTHENTICATION = REQUIRED
COLLECTOR.SEC_DAEMON_AUTHENTICATION_METHODS = FS, IDTOKENS
ALLOW_DAEMON = pool@example.org, forger@example.org
COLLECTOR.ALLOW_DAEMON = $(ALLOW_DAEMON), sharectl@example.org
"""
_SEND = """\
import json, sys, classad2, htcondor2
command, *ads = json.load(sys.stdin)
made = []
for ad in ads:
    requirements = ad.pop("Requirements", None)
    made.append(classad2.ClassAd(ad))
    if requirements:
        made[-1]["Requirements"] = classad2.ExprTree(requirements)
htcondor2.Collector(htcondor2.param["COLLECTOR_HOST"]).advertise(made, command, True)
"""


@dataclass(frozen=True)
class Person:
    """Somebody with a token of the pool, outside its machines."""

    box: Box
    environment: dict[str, str]

    def send(self, command: str, *ads: dict[str, Any]) -> bool:
        """True if the collector took the ads: clients learn of refusals, not of ads left out."""
        done = subprocess.run(
            [sys.executable, "-c", _SEND],
            input=json.dumps([command, *ads]),
            env={"PATH": os.environ["PATH"], **self.environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0 or "Failed to advertise" in done.stderr, done.stderr
        return done.returncode == 0

    def sharectl(self, folder: Path) -> Sharectl:
        """The command, run by this person."""
        return Sharectl(self.box, folder, self.environment)


def secure(box: Box, more: str = "") -> None:
    """Let the pool's collector know its clients by token; ``more`` goes to its configuration."""
    key = box.local_directory(CENTRAL) / "signing.key"
    if not key.exists():
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(64))
    mark = secrets.token_hex(8)
    box.write_config(CENTRAL, f"{SECURITY}{more}\nSECURED = {mark}\n")
    box.reconfig(CENTRAL)
    asked = ["condor_config_val", "-collector", "SECURED"]
    box.wait_until(
        lambda: mark in box.run(asked, check=False).stdout, 20, "the collector has read it"
    )


def person(box: Box, identity: Optional[str], folder: Path, *authorizations: str) -> Person:
    """Client with a token of ``identity``, limited to some levels; without one if None."""
    tokens = folder / "tokens.d"
    tokens.mkdir(mode=0o700)
    if identity is not None:
        limits = [word for level in authorizations for word in ("-authz", level)]
        made = box.run(["condor_token_create", "-identity", identity, "-key", "POOL", *limits])
        (tokens / "pool").touch(mode=0o600)
        (tokens / "pool").write_text(made.stdout)
    configured = Path(box.client_environment["CONDOR_CONFIG"]).read_text()
    config = folder / "condor_config"
    config.write_text(
        f"{configured}\nSEC_TOKEN_DIRECTORY = {tokens}\nSEC_CLIENT_AUTHENTICATION = OPTIONAL\n"
        # Schedds know nothing of the collector's key: they take a name's word, as for everybody in
        # a box.
        f"SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS{', CLAIMTOBE' if identity else ''}\n"
    )
    return Person(box, {"CONDOR_CONFIG": str(config), "PYTHONPATH": str(CHECKOUT / "central")})
