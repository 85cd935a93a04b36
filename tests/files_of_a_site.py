"""Files that a site has after some cycles, as this sharectl writes them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from sharectl.cli.cycle import _record
from sharectl.config.laws import MAX_BYTES
from sharectl.control.laws import Control
from sharectl.control.learned import Policy
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.cycle import run_cycle
from sharectl.cycle.ports import Ports
from sharectl.files.documents import Document
from sharectl.ledger.ledger import PLACE, Histories, Ledger
from sharectl.model import Plan, PlanLimits
from sharectl.plan.plan import PlanConfig
from sharectl.plan.settings import GiveUp
from sharectl.pledges.cric import Copy
from sharectl.pledges.join import keep_copy
from sharectl.pledges.negotiator import KnobsCopy
from sharectl.publish.audit import AuditFile, Who
from sharectl.publish.disabled_file import DisabledFile
from sharectl.publish.former_places import FormerPlacesFile
from sharectl.publish.state import StateFile
from sharectl.publish.text import Seal, render
from sharectl.shares.pledges import Pledge
from sharectl_lab.study.search import Journal
from sharectl_lab.study.tuning import Score, Task
from tests.fakes import NOW, FakePool, FakePublisher
from tests.ledgers import BEGUN, PLEDGES, busy

CYCLES = 3
KEY = {b"2026": bytes(range(32))}
SUBJECT = {"scenario": "small-site", "strategy": "live"}
"""Simulations that the journal of `sharectl tune` has scores of."""
WRITER = "cm.example.org:/var/lib/sharectl"
VALIDITY_SECONDS = 10**9
"""So long that the targets stand at whatever time a test reads them."""
_CONFIG = """\
groups:
  alice: {pledge_hs06: 71400}
  atlas: {pledge_hs06: 105300}
  cms: {pledge_hs06: 87100}
control: {law: ewma, strategy: many, max_nodes: 40, max_target_share: "10%"}
nodes: {controlled: "50%"}
pool: {name: farm, collector: "127.0.0.1:1"}
publish: [{file: FOLDER/sharectl.txt}]
state_directory: FOLDER
lock_wait_seconds: 0
"""


def make(folder: Path) -> None:
    """Write every kind of file into a folder, the state directory of a pool that never answers."""
    text = _CONFIG.replace("FOLDER", str(folder))
    (folder / "sharectl.yaml").write_text(text, encoding="utf-8")
    plan = _cycles(folder)
    texts = {
        "sharectl.txt": render(plan, Seal("farm", writer=WRITER)),
        "signed.txt": render(plan, Seal("farm", KEY, writer=WRITER)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="ascii")
    _copies_of_pledges(folder)
    training = {"scenarios": ["small-site"], "score": -1.5, "method": "by hand"}
    policy = Policy(("error", "error_idle"), (1.0, -0.5), 7200.0, training)
    Document(folder / "policy.json", MAX_BYTES).replace(asdict(policy))
    _scores(folder)


def _cycles(folder: Path) -> Plan:
    """Run cycles that leave state, places, ledger and audit; returns the last plan."""
    who = Who("sharectl", None, "cm.example.org", "cycle")
    name = "file:/srv/sharectl/sharectl.txt"
    law = PlanConfig(
        PLEDGES,
        PlanLimits(max_nodes=4),
        validity_seconds=VALIDITY_SECONDS,
        strategy="pair",
        steering=SteeringConfig(Control(law="ewma")),
        give_up=GiveUp(seconds=604_800),
    )
    state = StateFile(folder / "state.json")
    state.save(BEGUN)
    logs = folder / "AcctGroup_hs06.txt", folder / "shares_Error.log"
    history = Histories(*logs, Ledger(folder / PLACE))
    for number in range(CYCLES):
        taken = busy(number)
        ports = Ports(
            publishers=[FakePublisher()],
            state=state,
            switch=DisabledFile(folder),
            audit=AuditFile(folder, who),
            former=FormerPlacesFile(folder / "places.json", (name,), lambda _name: FakePublisher()),
            pool=FakePool(taken),
            history=history,
            writer=WRITER,
        )
        result = run_cycle(law, ports, taken.taken_at)
        state.note_cycle(dict(_record("steer", result, 1.25)))
    plan = result.publication.plan
    if plan is None or not plan.targets or result.problems:
        raise RuntimeError(f"no targets, or problems: {result.problems}")
    return plan


def _copies_of_pledges(folder: Path) -> None:
    pledge = Pledge("cms", 87100.0, "cric", "IT-INFN-CNAF 2026 Q1", NOW)
    answer = '{"IT-INFN-CNAF": {"pledges": {"2026": {"Q1": {"cms": {"CPU": 87100}}}}}}'
    server = "https://cric.example.org"
    cric = Copy(f"{server}/{{year}}", f"{server}/2026", NOW, answer, {"cms": pledge})
    knobs = KnobsCopy(None, NOW, {"group_quota_cms": "100"})
    warnings: list[str] = []
    keep_copy(folder / "pledges-cric.json", cric, warnings)
    keep_copy(folder / "pledges-negotiator.json", knobs, warnings)
    if warnings:
        raise RuntimeError(warnings)


def _scores(folder: Path) -> None:
    task = Task((("control.give_up_seconds", 600),), 1)
    Journal(folder, SUBJECT).add(task, Score(5.0, 1.0))
