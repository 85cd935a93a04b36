"""Targets as ads in a real collector: published, replaced, withdrawn; forged ones refused."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.model import Plan
from tests.pool.deployed import configure
from tests.pool.sharectl_command import CHECKOUT, Sharectl, plan_for, with_bindings

CENTRAL, NODE = "cm-1.example.org", "wn-001.example.org"
KNOWN, FORGER, STRANGER = "sharectl@example.org", "forger@example.org", "mallory@example.org"
"""sharectl; another who may advertise, as a node may; one with a token who may not."""

SPEC = BoxSpec((ExecutePoint(NODE, cores=8),), access_points=("ap-1.example.org",))
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
command, *ads = json.loads(sys.argv[1])
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
        done = with_bindings(_SEND, [command, *ads], self.environment)
        assert done.returncode == 0 or "Failed to advertise" in done.stderr, done.stderr
        return done.returncode == 0

    def sharectl(self, folder: Path) -> Sharectl:
        return Sharectl(self.box, folder, self.environment)


def secure(box: Box, more: str = "") -> None:
    """Let the pool's collector know its clients by token; ``more`` goes to its configuration."""
    key = box.local_directory(CENTRAL) / "signing.key"
    if not key.exists():
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(64))
    mark = secrets.token_hex(8)
    configure(box, CENTRAL, f"{SECURITY}{more}\nSECURED = {mark}\n")
    asked = ["condor_config_val", "-collector", "SECURED"]
    box.wait_until(lambda: mark in box.run(asked, check=False).stdout, "the collector has read it")


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


BY_COLLECTOR: dict[str, Any] = {
    "publish": [{"collector": {"identity": KNOWN}}],
    "pool": {"name": "box"},
}
KINDS = ("SharectlTarget", "SHARECTLTARGET", "SharectlPlan")
VALIDITY_SECONDS = 3000
ONLY_SHARECTL = f"""\
COLLECTOR_REQUIREMENTS = !stringListIMember(MyType, "SharectlTarget,SharectlPlan") \
    || AuthenticatedIdentity =?= "{KNOWN}"
"""


def prepare(box: Box) -> None:
    secure(box)


@pytest.fixture(scope="module")
def everybody(pool: Box, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Person]:
    return {
        identity: person(pool, identity, tmp_path_factory.mktemp("person"), *levels)
        for identity, levels in ((KNOWN, ("READ", "DAEMON")), (FORGER, ()), (STRANGER, ()))
    }


@pytest.fixture
def sharectl(everybody: dict[str, Person], tmp_path: Path) -> Iterator[Sharectl]:
    command = everybody[KNOWN].sharectl(tmp_path)
    yield command
    for kind in KINDS:
        query = {"MyType": "Query", "TargetType": kind, "Requirements": "True"}
        assert everybody[FORGER].send("INVALIDATE_ADS_GENERIC", query)
    command.box.wait_until(lambda: not ads(command.box, "True"), "no ad is left")


def plan(sequence: int, *nodes: str) -> Plan:
    return plan_for(nodes, VALIDITY_SECONDS, 56, sequence)


def publish(command: Sharectl, published: Plan, expect: int = 0, **configuration: Any) -> str:
    done = command.publish(published, expect, **(configuration or BY_COLLECTOR))
    return done.stdout + done.stderr


def ads(box: Box, constraint: str = 'MyType == "SharectlTarget"') -> list[dict[str, Any]]:
    ours = 'stringListIMember(MyType, "SharectlTarget,SharectlPlan")'
    query = ["condor_status", "-any", "-json", "-constraint", f"{ours} && ({constraint})"]
    listed = box.run(query).stdout
    return json.loads(listed) if listed.strip() else []


def believed(box: Box, node: str) -> list[int]:
    """Sequence of the target that the node's own program takes, if there is one."""
    program = [str(CHECKOUT / "startd_cron" / "target.py"), "--source", "collector:"]
    command = ["/usr/bin/python3", "-IS", *program, "--identity", KNOWN, "--host", node]
    printed = box.run(command, host=NODE, check=False).stdout
    answer = dict(line.partition(" ")[::2] for line in printed.splitlines())
    return [int(answer["sequence"])] if not answer["order"].startswith("none 0") else []


def forged(node: str, sequence: int, name: Optional[str] = None) -> dict[str, Any]:
    return {
        "MyType": "SharectlTarget",
        "Name": name or f"sharectl-{node}",
        "t1_TargetNode": node,
        "t1_TargetGroups": ["cms", "atlas"],
        "t1_Targetcores": [0, 1],
        "t1_TargetKnownGroups": "cms,atlas",
        "t1_TargetSequence": sequence,
        "t1_TargetGenerated": int(time.time()),
        "t1_TargetValidUntil": int(time.time()) + VALIDITY_SECONDS,
        "AuthenticatedIdentity": KNOWN,
    }


@pytest.mark.parametrize("name", [None, "sharectl-another"])
def test_a_forged_ad_is_kept_by_the_collector_and_believed_by_no_node(
    sharectl: Sharectl, everybody: dict[str, Person], name: Optional[str]
) -> None:
    began = int(time.time())
    publish(sharectl, plan(began, "wn-001"))
    assert believed(sharectl.box, "wn-001") == [began]
    assert everybody[FORGER].send("UPDATE_AD_GENERIC", forged("wn-001", began + 900, name))
    where = f"t1_TargetSequence == {began + 900}"
    (kept,) = sharectl.box.wait_until(lambda: ads(sharectl.box, where), "it is there")
    assert kept["AuthenticatedIdentity"] == FORGER, "what the sender writes there is replaced"
    # The same name takes the place of the target: the node has none, and jobs start. Another name
    # does nothing.
    assert believed(sharectl.box, "wn-001") == ([] if name is None else [began])
    status = sharectl.run("status", expect=1, **BY_COLLECTOR)
    assert f"holds ads of targets that are not sharectl's: 1 of {FORGER}" in status.stderr
    publish(sharectl, plan(began + 1, "wn-001"))
    assert believed(sharectl.box, "wn-001") == [began + 1]


def test_the_collector_can_be_told_to_take_targets_from_sharectl_alone(
    sharectl: Sharectl, everybody: dict[str, Person], tmp_path: Path
) -> None:
    began = int(time.time())
    secure(sharectl.box, ONLY_SHARECTL)
    try:
        publish(sharectl, plan(began, "wn-001"))
        assert believed(sharectl.box, "wn-001") == [began]
        for kind in KINDS:
            ad = {**forged("wn-001", began + 900), "MyType": kind}
            everybody[FORGER].send("UPDATE_AD_GENERIC", ad)
        assert everybody[FORGER].send("UPDATE_AD_GENERIC", {"MyType": "Other", "Name": "last"})
        arrived = ["condor_status", "-any", "-af", "Name", "-constraint", 'MyType == "Other"']
        sharectl.box.wait_until(lambda: sharectl.box.run(arrived).stdout, "his other ads are taken")
        assert ads(sharectl.box, f'AuthenticatedIdentity == "{FORGER}"') == []
        assert believed(sharectl.box, "wn-001") == [began]
        publish(sharectl, plan(began + 1))
        assert ads(sharectl.box) == []
        forger = everybody[FORGER].sharectl(tmp_path)
        said = publish(forger, plan(began + 2, "wn-001"), expect=74)
        assert f"it knows sharectl as {FORGER} (by IDTOKENS), not as {KNOWN}; see" in said
    finally:
        secure(sharectl.box)


@pytest.mark.parametrize(
    ("sender", "problem"),
    [
        (None, "does not take the ads; it does not know sharectl; see"),
        (FORGER, f"knows sharectl as {FORGER}, not as {KNOWN}: nodes do not believe it"),
        (STRANGER, f"does not take the ads; it knows sharectl as {STRANGER} (by IDTOKENS)"),
    ],
)
def test_a_sender_that_no_node_believes_is_told_what_to_write(
    sharectl: Sharectl,
    everybody: dict[str, Person],
    tmp_path: Path,
    sender: Optional[str],
    problem: str,
) -> None:
    folder = tmp_path / "sender"
    folder.mkdir()
    other = everybody[sender] if sender else person(sharectl.box, None, folder)
    said = publish(other.sharectl(tmp_path), plan(int(time.time()), "wn-001"), expect=74)
    assert problem in said
    assert believed(sharectl.box, "wn-001") == []
