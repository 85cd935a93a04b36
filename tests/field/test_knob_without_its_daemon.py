"""A knob on a machine that does not run the daemon which reads it: it has no effect."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.check.consumption import check_text
from sharectl.check.findings import Level
from sharectl.check.snippets import check as check_snippets
from sharectl.condor.configuration import ConfigSource, readers_of

CONFIG = Path(__file__).parents[2] / "config.d"
LEFTOVERS = "CLAIM_PARTITIONABLE_LEFTOVERS"
ON = "CONSUMPTION_POLICY = True\n"
POLICY = f"{ON}{LEFTOVERS} = False\n"
OF_TYPE = (
    "SLOT_TYPE_1_CONSUMPTION_POLICY = True\n"
    "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1_PARTITIONABLE = True\n"
)
CENTRAL = "DAEMON_LIST = MASTER, COLLECTOR, NEGOTIATOR\n"
SECOND = "EP = $(SBIN)/condor_startd\nEP_ARGS = -local-name EP\nDAEMON_LIST = MASTER EP\n"
NEGOTIATORS = "NEGOTIATOR_DEPTH_FIRST = True\n"


def seen(text: str) -> list[str]:
    """Level and first word of each finding about daemons, and the other checks."""
    return [
        f"{finding.level.value} {finding.fault.split(',')[0].split(':')[0]}"
        if finding.id == "daemons"
        else finding.id
        for finding in check_text("a.conf", text)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{CENTRAL}CONSUMPTION_POLICY = True\n", ["error CONSUMPTION_POLICY"]),
        (f"{CENTRAL}{OF_TYPE}", ["error SLOT_TYPE_1_CONSUMPTION_POLICY"]),
        (f"ALL = MASTER SCHEDD\nDAEMON_LIST = $(ALL)\n{POLICY}", ["error CONSUMPTION_POLICY"]),
        (f"use ROLE : CentralManager\nNUM_CLAIMS = 4\n{ON}", ["error NUM_CLAIMS"]),
        (f"use role:Execute\n{POLICY}", []),
        (f"DAEMON_LIST = master startd\n{POLICY}", []),
        (f"{SECOND}{POLICY}", []),
        # Another file may have the daemon.
        (f"DAEMON_LIST = $(DAEMON_LIST) DEFRAG\n{POLICY}", []),
        (POLICY, []),
        # The negotiator's knobs count where it runs.
        (f"{POLICY}{NEGOTIATORS}", ["combinations"]),
        (f"DAEMON_LIST = MASTER STARTD\n{POLICY}{NEGOTIATORS}", ["advice NEGOTIATOR_DEPTH_FIRST"]),
        (f"{POLICY}NEGOTIATOR.{NEGOTIATORS}", ["combinations"]),
        (f"{POLICY}SCHEDD.{NEGOTIATORS}", ["error SCHEDD.NEGOTIATOR_DEPTH_FIRST"]),
        (f"{POLICY}MASTER.CONSUMPTION_POLICY = False\n", ["error MASTER.CONSUMPTION_POLICY"]),
        (f"{POLICY}STARTD.CONSUMPTION_POLICY = True\n", []),
        # The access point's decides about leftovers.
        (f"{POLICY}use role : Personal\nSCHEDD.{LEFTOVERS} = True\n", ["leftovers"]),
        (f"{ON}use role : Personal\nSCHEDD.{LEFTOVERS} = False\n", []),
        (f"{POLICY}NUM_CLAIMS = 0\n", ["knobs"]),
        (f"{POLICY}NUM_CLAIMS = many\n", ["knobs"]),
        (f"{POLICY}NUM_CLAIMS = 2 * 4\n", []),
    ],
)
def test_policies_and_their_daemons(text: str, expected: list[str]) -> None:
    assert seen(text) == expected


@pytest.mark.parametrize(
    ("names", "daemons", "level"),
    [
        (["execute-point"], CENTRAL, Level.ERROR),
        (["execute-point"], "DAEMON_LIST = MASTER STARTD\n", None),
        (["access-point"], "DAEMON_LIST = MASTER STARTD\n", Level.ERROR),
        (["execute-point", "defrag"], "use ROLE : Execute\n", Level.ADVICE),
        (["execute-point"], "DAEMON_LIST = $(DAEMON_LIST) DEFRAG\n", None),
        (["execute-point"], "SCHEDD.START = False\n", Level.ERROR),
        (["execute-point"], f"use ROLE : Execute\n{NEGOTIATORS}", Level.ADVICE),
    ],
)
def test_snippets_and_their_daemons(
    names: list[str], daemons: str, level: Level | None, tmp_path: Path
) -> None:
    for name in names:
        shutil.copy(CONFIG / f"60-sharectl-{name}.conf", tmp_path)
    (tmp_path / "99-local.conf").write_text(daemons)
    findings = check_snippets(ConfigSource(tmp_path), {}).findings
    assert {f.level for f in findings if f.id == "daemons"} == ({level} if level else set())


SPEC = BoxSpec((ExecutePoint("wn-001.example.org", 8),), access_points=("ap-1.example.org",))
LITERALS = (
    *("CONSUMPTION_POLICY", "NUM_CLAIMS", "STARTD_LATCH_EXPRS", "SCHEDD_USE_SLOT_WEIGHT"),
    *("IMMUTABLE_JOB_ATTRS", "SUBMIT_REQUIREMENT_NAMES", "GROUP_ACCEPT_SURPLUS", "GROUP_NAMES"),
    *("NEGOTIATOR_DEPTH_FIRST", "NEGOTIATOR_NUM_THREADS", "NEGOTIATOR_SLOT_CONSTRAINT"),
    *("NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION", "NEGOTIATOR_CYCLE_DELAY", "DEFRAG_REQUIREMENTS"),
    *("STARTD_PARTITIONABLE_SLOT_ATTRS", "ADVERTISE_PSLOT_ROLLUP_INFORMATION"),
)


@pytest.mark.pool
@pytest.mark.semantics
@pytest.mark.parametrize("knob", LITERALS)
def test_the_program_of_the_daemon_has_the_name_of_the_knob_and_no_other(
    knob: str, pool: Box
) -> None:
    host, kinds = pool.spec.central_point, ("STARTD", "SCHEDD", "NEGOTIATOR", "DEFRAG")
    folder = pool.run(["condor_config_val", "SBIN"], host=host).stdout.strip()
    names = [f"{folder}/condor_{kind.lower()}" for kind in kinds]
    names[-1] = pool.run(["condor_config_val", "DEFRAG"], host=host).stdout.strip()
    out = pool.run(["grep", "-laF", knob, *names], host=host, check=False).stdout
    readers = {line.rpartition("condor_")[2].upper() for line in out.split()}
    assert readers == set(readers_of(knob))
