"""`sharectl check snippets`: our snippets pass, and each check finds the faults it is for."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Optional

import pytest

import job_ctl
import mc_grace
import target
from sharectl.check.findings import Finding, Level
from sharectl.check.snippet_rules import BESIDE, JOB_CTL_OPTIONS, MAX_SOURCES
from sharectl.check.snippets import CHECKS, check, report_of
from sharectl.check.subject import PUBLISHED
from sharectl.cli.main import main
from sharectl.condor.configuration import ConfigSource, expand
from sharectl.condor.library import CondorProcess
from sharectl.shares.groups import GroupTree
from sharectl.shares.quotas import central_manager_configuration

SNIPPETS = Path(__file__).parents[2] / "config.d"
PROGRAMS = Path(job_ctl.__file__).parent
EXECUTE, ACCESS = "60-sharectl-execute-point.conf", "60-sharectl-access-point.conf"
DEFRAG = "60-sharectl-defrag.conf"
LATER = "99-local.conf"
CRON = "SHARECTL_ACTUATION = cron\n"
BOTH_WAYS = pytest.mark.parametrize("way", ["", CRON], ids=["live", "cron"])
Change = Callable[[Path], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Our snippets, to be broken."""
    return shutil.copytree(SNIPPETS, tmp_path / "config.d")


def replaced(name: str, old: str, new: str) -> Change:
    """Change one text in a snippet, which must be there."""

    def change(folder: Path) -> None:
        path = folder / name
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {name}"
        path.write_text(text.replace(old, new))

    return change


def added(text: str, name: str = LATER) -> Change:
    """Add a file."""

    def add(folder: Path) -> None:
        (folder / name).write_text(text)

    return add


def renamed(name: str, to: str, mode: int = 0o644) -> Change:
    """Rename a snippet, and change its mode."""

    def rename(folder: Path) -> None:
        (folder / name).rename(folder / to)
        (folder / to).chmod(mode)

    return rename


def in_cron(change: Change) -> Change:
    """Do that, where the STARTD_CRON jobs count and look."""

    def both(folder: Path) -> None:
        change(folder)
        added(CRON, "98-cron.conf")(folder)

    return both


def found(folder: Path, site_attributes: Mapping[str, str] | None = None) -> list[Finding]:
    return list(check(ConfigSource(folder), site_attributes or {}).findings)


def expanded(folder: Path, macros: list[str]) -> dict[str, str]:
    with CondorProcess() as process:
        return expand(ConfigSource(folder), macros, process)


@BOTH_WAYS
@pytest.mark.parametrize(
    "text",
    [
        "",
        f"include : {SNIPPETS / EXECUTE}\n",
        "SHARECTL_GRACE_SECONDS = 0\n",
        "SHARECTL_GRACE_SECONDS = 1\n",
        "SHARECTL_GRACE_SECONDS = 7200\n",
        (
            "SHARECTL_SOURCE = file:/a/b.txt,collector:\n"
            "SHARECTL_SOURCE_OPTIONS = --identity sharectl@example.org\n"
        ),
        (
            "SHARECTL_SOURCE = https://cm.example.org:8443/t.txt\n"
            "SHARECTL_SOURCE_OPTIONS = --key-file /etc/sharectl/keys\n"
        ),
        (
            "SHARECTL_SOURCE = collector:cm.example.org:9618\n"
            "SHARECTL_SOURCE_OPTIONS = --pool T1 --identity sharectl@example.org\n"
        ),
        "SHARECTL_JOB_CTL_PERIOD_SECONDS = 60\nSHARECTL_DISABLED_FILE = /run/off\n",
    ],
)
def test_our_snippets_have_no_fault(folder: Path, way: str, text: str) -> None:
    added(way + text)(folder)
    assert found(folder) == []


@pytest.mark.parametrize("name", [EXECUTE, ACCESS, DEFRAG])
def test_each_snippet_alone_has_no_fault(folder: Path, name: str) -> None:
    """They are for different machines."""
    for path in folder.glob("*.conf"):
        if path.name != name:
            path.unlink()
    assert found(folder) == []


def test_quotas_of_groups_within_groups_have_no_fault(folder: Path) -> None:
    tree = GroupTree({"alice": 3, "alice.prod": 1, "alice.user": 2, "cms": 1})
    (folder / "60-sharectl-central-manager.conf").write_text(central_manager_configuration(tree))
    assert found(folder) == []


@pytest.mark.parametrize(
    "path", sorted((SNIPPETS / "examples").glob("*.conf")), ids=lambda p: p.name
)
def test_each_example_has_no_fault_beside_our_snippets(path: Path, folder: Path) -> None:
    """Nodes publish SlotAdmits, which another example sets."""
    shutil.copy(path, folder)
    assert found(folder, {"SlotAdmits": "True"}) == []


@BOTH_WAYS
def test_the_example_of_slot_types_needs_the_nodes_own_start(folder: Path, way: str) -> None:
    added(way)(folder)
    for name in ("50-draining-execute-point.conf", "70-slot-types.conf"):
        shutil.copy(folder / "examples" / name, folder)
    assert found(folder) == []
    replaced("70-slot-types.conf", "SLOT_TYPE_2_START = ($(START)) && ", "SLOT_TYPE_2_START = ")(
        folder
    )
    (finding,) = found(folder)
    assert finding.id == "clauses"
    assert "SLOT_TYPE_2_START" in finding.fault


@BOTH_WAYS
def test_a_sites_comments_end_with_their_line(folder: Path, way: str) -> None:
    """Our text is built onto the site's; without the line end HTCondor could not read it."""
    knobs = {
        "START": "TARGET.JobUniverse == 5",
        "CLAIM_WORKLIFE": "600",
        "DEFAULT_DRAINING_START_EXPR": "False",
        "DEFRAG_DRAINING_START_EXPR": "False",
    }
    site = "".join(f"{knob} = {text} // not (more /* than that\n" for knob, text in knobs.items())
    added(site, "20-site.conf")(folder)
    added(way)(folder)
    report = check(ConfigSource(folder), {})
    assert report.findings == ()
    assert report.made["START"].startswith("(TARGET.JobUniverse == 5) && (MY.t1_GraceAdmits")
    assert "//" not in report.made["CLAIM_WORKLIFE"]


@BOTH_WAYS
def test_a_sites_own_start_latches_and_draining_have_no_fault(folder: Path, way: str) -> None:
    site = """
        START = (MY.NODE_IS_HEALTHY =?= True) && TARGET.JobUniverse == 5
        CLAIM_WORKLIFE = 600
        STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) HEALTH
        STARTD_CRON_HEALTH_EXECUTABLE = /opt/health
        STARTD_CRON_HEALTH_PERIOD = 5m
        STARTD_CRON_HEALTH_KILL = True
        STARTD_LATCH_EXPRS = FreeSince
        FreeSince = MY.Cpus
        DEFRAG_DRAINING_START_EXPR = TARGET.IsShort =?= True
        DEFAULT_DRAINING_START_EXPR = True
    """
    added(site, "20-site.conf")(folder)
    added(f"{way}SLOT_TYPE_1_START = $(START) && TARGET.RequestCpus < 9\n")(folder)
    assert found(folder, {"NODE_IS_HEALTHY": "True"}) == []


BROKEN: Mapping[str, Mapping[str, Change]] = {
    # Check: fault, and the change of our snippets that makes it.
    "syntax": {
        "a line that is none": added("START True\n"),
        "a circle": added("A_1 = $(B_1)\nB_1 = $(A_1)\n"),
        "an unclosed heredoc": added("X @=end\n a\n"),
    },
    "file names": {
        "a backup that is read": added("X = 1\n", f"{EXECUTE}.bak"),
        "a name that is not read": renamed(EXECUTE, "60-sharectl.sh"),
    },
    "file modes": {
        "a secret file": renamed(EXECUTE, EXECUTE, 0o600),
    },
    "expression": {
        "a missing bracket": replaced(
            EXECUTE, "substr($(t1_job_account), 0, 300)", "substr($(t1_job_account), 0, 300"
        ),
        "brackets that match only together": added(
            'START = TARGET.Why == ")" /* ( */ && True) || (False // (\n', "20-site.conf"
        ),
        "an empty macro": replaced(
            EXECUTE, "$(t1_off) || ($(t1_cool))", "$(t1_off) || ($(t1_coool))"
        ),
    },
    "scope": {
        "an unscoped attribute of the node": replaced(
            EXECUTE, "t1_grace_live = MY.MC_GRACE", "t1_grace_live = MC_GRACE"
        ),
        "an unscoped attribute of the job": replaced(
            EXECUTE, "max({1, TARGET.RequestCpus})", "max({1, RequestCpus})"
        ),
        "an unscoped attribute of a latch": replaced(
            EXECUTE, "t1_Watched = MY.Cpus", "t1_Watched = Cpus"
        ),
    },
    "side": {
        "an attribute of the node asked of the job": replaced(
            EXECUTE, "t1_grace_live = MY.MC_GRACE", "t1_grace_live = TARGET.MC_GRACE"
        ),
    },
    "published": {
        "a count that is not summed up": added("STARTD_PARTITIONABLE_SLOT_ATTRS = JobStart\n"),
        "a misspelt attribute": replaced(
            EXECUTE, "sum(MY.Childt1_HeldBackCores)", "sum(MY.Childt1_HeldbackCore)"
        ),
        "a switch that nobody looks at": replaced(
            EXECUTE, "SHARECTL_CRON_JOBS = JOB_CTL SHARECTL_OFF", "SHARECTL_CRON_JOBS = JOB_CTL"
        ),
        "latches off the list": added("STARTD_LATCH_EXPRS = Rack\nRack = 7\n"),
        "an attribute without a value": added("STARTD_ATTRS = $(STARTD_ATTRS) t1_wn_hs06\n"),
        "a latch without a value": added("STARTD_LATCH_EXPRS = $(STARTD_LATCH_EXPRS) Hot\n"),
    },
    "typical jobs": {
        "a clause that is False without a target": replaced(
            EXECUTE, "($(t1_sharectl))", "(MY.t1_Targetcores[1] == 0) =?= True"
        ),
        "clauses that have to be True": replaced(
            EXECUTE, "MY.t1_TargetAdmits =!= False", "MY.t1_TargetAdmits"
        ),
        "a target without a count": replaced(
            EXECUTE, "$(t1_counted_$(SHARECTL_ACTUATION):False)", "True"
        ),
        "a switch without effect": replaced(
            EXECUTE, "$(SHARECTL_ENABLED) == False || MY.t1_Disabled =?= True", "False"
        ),
        "grace for cores that were free when the startd started": replaced(
            EXECUTE, "&& MY.t1_McRoomTime > MY.t1_WatchedTime", "&& True"
        ),
        "grace for ever in an old copy of the ad": replaced(
            EXECUTE, "time() - MY.MyCurrentTime <", "0 * MY.MyCurrentTime <"
        ),
        "grace until the latches are set": replaced(
            EXECUTE, "MY.t1_McRoomValue =?= 0 &&", "MY.t1_McRoomValue =!= 1 &&"
        ),
        "a stale target that counts": replaced(
            EXECUTE, "time() < MY.t1_TargetUntil", "MY.t1_TargetUntil > 0"
        ),
        "grace though no multicore job waits": replaced(
            EXECUTE,
            "t1_nobody_waits = (MY.t1_MulticorePending == False",
            "t1_nobody_waits = (False",
        ),
        "a target from the future that counts": replaced(
            EXECUTE, "MY.t1_JobCtlTime - time() <", "0 * MY.t1_JobCtlTime <"
        ),
        "grace from the future that counts": replaced(
            EXECUTE, "MY.t1_McRoomTime - time() <", "0 * MY.t1_McRoomTime <"
        ),
        "free cores of the future that count": replaced(
            EXECUTE, "MY.MyCurrentTime - time() <", "0 * MY.MyCurrentTime <"
        ),
        "grace from the future that counts by cron": in_cron(
            replaced(EXECUTE, "MY.t1_McGraceTime - time() >=", "0 * MY.t1_McGraceTime >=")
        ),
        "a stale grace that counts": in_cron(
            replaced(EXECUTE, "time() - MY.t1_McGraceTime >=", "0 * MY.t1_McGraceTime >=")
        ),
        "an error that keeps jobs out": in_cron(
            replaced(
                EXECUTE,
                "!($(t1_grace_$(SHARECTL_ACTUATION):False))",
                "(MY.MC_GRACE =?= False)",
            )
        ),
        "a START that takes nothing": added("START = False\n", "20-site.conf"),
    },
    "clauses": {
        "whole groups compared": replaced(
            EXECUTE,
            "substr($(t1_job_group), 0, size(MY.t1_TargetGroups[1]) + 1)",
            "substr($(t1_job_group), 0, 1000)",
        ),
        "first parts compared": replaced(
            EXECUTE,
            r"([^@\x22\x5c]*(?=\.[^.@\x22\x5c]*[@\x22]))?)",
            ")",
        ),
        "parts not told from one another": replaced(
            EXECUTE,
            'size(MY.t1_TargetGroups[1]) + 1) == strcat(MY.t1_TargetGroups[1], ".")',
            "size(MY.t1_TargetGroups[1])) == MY.t1_TargetGroups[1]",
        ),
        "a dot that is any character": in_cron(
            replaced(
                EXECUTE, '*\\Q", MY.t1_TargetGroups[0], "\\E:', '*", MY.t1_TargetGroups[0], ":'
            )
        ),
        "the held-back group sought in one place only": in_cron(
            replaced(EXECUTE, 'strcat("^([^:]+:[0-9]+:)*\\Q", ', 'strcat("^(nowhere:)\\Q", ')
        ),
        "a cap that is not kept": replaced(
            EXECUTE, "- ($(t1_held_$(SHARECTL_ACTUATION):0))", "- 0"
        ),
        "a cap without the cores matched since": replaced(
            EXECUTE,
            "sum(MY.Childt1_HeldBackCores) + $(t1_matched_since)",
            "sum(MY.Childt1_HeldBackCores)",
        ),
        "a cap that needs every slot's count": replaced(
            EXECUTE,
            "t1_held_live = sum(MY.Childt1_HeldBackCores)",
            "t1_held_live = MY.Childt1_HeldBackCores[0] + MY.Childt1_HeldBackCores[1] + "
            "MY.Childt1_HeldBackCores[2]",
        ),
        "grace for nobody": replaced(
            EXECUTE, "t1_grace_live = MY.MC_GRACE =?= True", "t1_grace_live = False"
        ),
        "no grace by a plan that has ended": replaced(
            EXECUTE, "time() < MY.t1_MulticorePendingUntil", "True"
        ),
        "no grace by a plan of long ago": replaced(
            EXECUTE, "&& $(t1_job_ctl_is_fresh)) =?= True\n\n# live", ") =?= True\n\n# live"
        ),
        "no grace by a plan that does not tell": replaced(
            EXECUTE, "(MY.t1_MulticorePending == False", "(MY.t1_MulticorePending =!= True"
        ),
        "grace for nobody by cron": in_cron(
            replaced(
                EXECUTE,
                "t1_grace_cron = (MY.MC_GRACE &&",
                "t1_grace_cron = (MY.MC_GRACE && False &&",
            )
        ),
        "grace for those that a target is for": replaced(
            EXECUTE, " || ($(t1_single_core_target))", " "
        ),
        "a target that ends grace for everybody": replaced(
            EXECUTE, "&& MY.t1_Targetcores[1] == 1 && $(t1_job_is_helped)) =?= True", ") =?= True"
        ),
        "grace that waits for the latch": replaced(
            EXECUTE, "MY.t1_McRoomValue =?= 0 &&", "False &&"
        ),
        "a target that waits to hear that it is not disabled": replaced(
            EXECUTE, "=!= False && MY.t1_Disabled =!= True", "=!= False && MY.t1_Disabled =?= False"
        ),
        "a claim for anybody": replaced(EXECUTE, "!($(t1_multicore_slot))", "True"),
        "clauses thrown away": added("START = TARGET.JobUniverse == 5\n"),
        "a slot type with a START of its own": added("SLOT_TYPE_1_START = True\n"),
        "a slot type without one of the clauses": added(
            "SLOT_TYPE_1_START = MY.t1_GraceAdmits =!= False && MY.t1_TargetAdmits =!= False\n"
        ),
        "draining by hand": added("DEFAULT_DRAINING_START_EXPR = True\n"),
        "draining by condor_defrag": added(
            "DEFRAG_DRAINING_START_EXPR = TARGET.RequestCpus == 1\n"
        ),
        "draining for jobs that are not typical": added(
            "DEFRAG_DRAINING_START_EXPR = TARGET.JobPrio > 1000\n"
        ),
    },
    "forging": {
        "a job that forges": replaced(
            EXECUTE,
            "t1_sharectl = (MY.t1_TargetActive",
            "t1_sharectl = (TARGET.PartitionableSlot =?= False || MY.t1_TargetActive",
        ),
    },
    "claims": {
        "claims that outlive targets": added("CLAIM_WORKLIFE = 1200\n"),
        "claims that end without a target": replaced(
            EXECUTE,
            "MY.t1_TargetActive =?= True && MY.t1_HeldBackSlot =?= True",
            "MY.t1_HeldBackSlot =?= True",
        ),
        "small jobs in large slots": added(
            "MODIFY_REQUEST_EXPR_REQUESTCPUS = quantize(RequestCpus, {8})\n"
        ),
    },
    "cron": {
        "KILL that HTCondor takes for False": added("STARTD_CRON_JOB_CTL_KILL = yes\n"),
        "no period": added("STARTD_CRON_JOB_CTL_PERIOD =\n"),
        "a mode that is none": added("STARTD_CRON_SHARECTL_OFF_MODE = Often\n"),
        "a prefix": added("STARTD_CRON_JOB_CTL_PREFIX = t1_\n"),
        "a switch with a prefix": added("STARTD_CRON_SHARECTL_OFF_PREFIX = t1_\n"),
        "a program without a path": in_cron(
            added("STARTD_CRON_MC_GRACE_EXECUTABLE = mc_grace.py\n")
        ),
        "no program": added("STARTD_CRON_JOB_CTL_EXECUTABLE =\n"),
        "silent failures": added("STARTD_CRON_LOG_NON_ZERO_EXIT = 0\n"),
        "a job off the list": in_cron(
            replaced(EXECUTE, "t1_cron_jobs_cron = MC_GRACE", "t1_cron_jobs_cron =")
        ),
        "two that publish MC_GRACE": added(
            "STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) MC_GRACE\n"
        ),
        "a job listed twice": added("STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) JOB_CTL\n"),
    },
    "replaced": {
        "a list replaced by our file": replaced(
            EXECUTE, "$(STARTD_CRON_JOBLIST) $(SHARECTL", "$(SHARECTL"
        ),
        "a list replaced after our file": added("STARTD_ATTRS = Rack\nRack = 7\n"),
        "START replaced after our file": added("START = True\n"),
    },
    "knobs": {
        "a misspelt knob": added("SHARECTL_GRACE_SECOND = 60\n"),
        "a boolean that is none": added("SHARECTL_ENABLED = no\n"),
        "a size of one": added("SHARECTL_MULTICORE_CORES = 1\n"),
        "a time that is none": added("SHARECTL_GRACE_SECONDS = 8m\n"),
        "staleness before the next run": added("SHARECTL_JOB_CTL_STALE_SECONDS = 30\n"),
        "a way that is none": added("SHARECTL_ACTUATION = latch\n"),
        "a file name with a blank": added("SHARECTL_DISABLED_FILE = /etc/share ctl\n"),
        "no file name": added("SHARECTL_DISABLED_FILE =\n"),
        "no time between looks": added("SHARECTL_DISABLED_PERIOD_SECONDS = 0\n"),
    },
    "slot": {
        "latches that a reconfig mixes up": replaced(
            EXECUTE, "t1_latches_live = NumDynamicSlots t1_McRoom", "t1_latches_live = t1_McRoom"
        ),
        "latches in an order that a reconfig mixes up": added(
            "STARTD_LATCH_EXPRS = t1_McRoom NumDynamicSlots t1_Watched\n"
        ),
        "nothing is summed up": added("ADVERTISE_PSLOT_ROLLUP_INFORMATION = False\n"),
    },
    "sources": {
        "a source of another kind": added("SHARECTL_SOURCE = http://cm/sharectl.txt\n"),
        "a source without a path": added("SHARECTL_SOURCE = file:shared/sharectl.txt\n"),
        "sources with a blank": added("SHARECTL_SOURCE = file:/a, collector:\n"),
        "no source": added("SHARECTL_SOURCE =\n"),
        "more sources than are asked": added(f"SHARECTL_SOURCE = {','.join(['file:/a'] * 9)}\n"),
        "ads of anybody": added("SHARECTL_SOURCE = collector:\n"),
        "ads of everybody": added(
            "SHARECTL_SOURCE = collector:\nSHARECTL_SOURCE_OPTIONS = --identity "
            "unauthenticated@unmapped\n"
        ),
        "a misspelt option": added("SHARECTL_SOURCE_OPTIONS = --keyfile /etc/sharectl/keys\n"),
        "an option without a value": added("SHARECTL_SOURCE_OPTIONS = --pool\n"),
    },
    "groups": {
        "groups to choose from": added(
            "CLASSAD_USER_MAPFILE_AssignAccountingGroup = /etc/condor/groups.map\n"
        ),
        "a map that is named too late": added("SHARECTL_GROUP_MAP = /etc/condor/groups.map\n"),
    },
    "quotas": {
        "a quota without a group": added("GROUP_NAMES = cms\nGROUP_QUOTA_DYNAMIC_atlas = 0.1\n"),
        "a share that is none": added("GROUP_NAMES = cms\nGROUP_QUOTA_DYNAMIC_cms = 33\n"),
        "too many shares": added(
            "GROUP_NAMES = a, b\nGROUP_QUOTA_DYNAMIC_a = 0.6\nGROUP_QUOTA_DYNAMIC_b = 0.6\n"
        ),
        "too many shares within a group": added(
            "GROUP_NAMES = a, a.b, a.c\nGROUP_QUOTA_DYNAMIC_a.b = 0.7\nGROUP_QUOTA_DYNAMIC_A.c "
            "= 0.6\n"
        ),
    },
}


CASES = [(name, fault) for name, faults in BROKEN.items() for fault in faults]


@pytest.fixture(scope="module")
def all_findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Fault → what is found in a copy of our snippets with it."""
    findings = {}
    with CondorProcess() as process:
        for name, fault in CASES:
            root = tmp_path_factory.mktemp("broken")
            copy = shutil.copytree(SNIPPETS, root / "config.d")
            BROKEN[name][fault](copy)
            seen = report_of(ConfigSource(copy), process, {}).findings
            findings[fault] = [str(finding).replace(f"{root}/", "") for finding in seen]
    return findings


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_broken_copy_is_found(name: str, fault: str, all_findings: dict[str, list[str]]) -> None:
    assert [line for line in all_findings[fault] if line.endswith(f" [{name}]")]


def test_the_findings_are_worded_as_listed(
    all_findings: dict[str, list[str]], golden: Callable[[str, str], None]
) -> None:
    """Each fault, and all that is found: the situation among it in which a trial fails."""
    lines = (line for fault, seen in all_findings.items() for line in (f"> {fault}", *seen))
    golden("check/snippets.txt", "\n".join((*lines, "")))


def test_every_check_has_a_broken_copy() -> None:
    assert set(BROKEN) == {check.id for check in CHECKS}


@pytest.mark.parametrize("line", ["SHARECTL_ENABLED = no", "SHARECTL_ENABLED ="])
def test_an_invalid_switch_is_the_only_finding(line: str, folder: Path) -> None:
    added(f"{line}\n")(folder)
    (finding,) = found(folder)
    assert (finding.id, finding.place) == ("knobs", f"{folder / LATER}:1")


def test_a_finding_names_the_line(folder: Path) -> None:
    replaced(EXECUTE, "t1_grace_live = MY.MC_GRACE", "t1_grace_live = MC_GRACE")(folder)
    lines = (folder / EXECUTE).read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if line.startswith("t1_grace_live"))
    scope = next(finding for finding in found(folder) if finding.id == "scope")
    assert scope.place == f"{folder / EXECUTE}:{number}"


def test_the_command_prints_what_it_finds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "snippets", str(folder)]) == 0
    clean = capsys.readouterr().out
    added("START = True\n")(folder)
    assert main(["check", "snippets", "--json", str(folder)]) == 1
    broken = json.loads(capsys.readouterr().out)
    assert "nothing found" in clean
    assert "STARTD_CRON_JOBLIST = JOB_CTL SHARECTL_OFF\n" in clean
    assert "SHARECTL_ACTUATION = live\n" in clean
    assert broken["made"]["START"] == "True"
    assert {finding["id"] for finding in broken["findings"]} == {"replaced", "clauses"}


@pytest.mark.parametrize(
    ("name", "node", "access_point"),
    [(EXECUTE, True, False), (ACCESS, False, True), ("", True, True)],
)
def test_what_is_shown_is_what_the_machine_goes_by(
    name: str, node: object, access_point: object, folder: Path
) -> None:
    for path in folder.glob("*.conf"):
        if name and path.name != name:
            path.unlink()
    made = check(ConfigSource(folder), {}).made
    assert ("START" in made, "JOB_TRANSFORM_NAMES" in made) == (node, access_point)


def test_a_machine_with_a_configuration_is_checked_with_it(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    local = tmp_path / "condor_config"
    local.write_text(
        "USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\nSTART = NODE_OK\nSTARTD_ATTRS = "
        "NODE_OK\nNODE_OK = True\n"
    )
    monkeypatch.setenv("CONDOR_CONFIG", str(local))
    assert main(["check", "snippets", "--with-local", str(folder), "--json"]) == 1
    with_local = json.loads(capsys.readouterr().out)
    assert with_local["made"]["START"].startswith("(NODE_OK) && (")
    # Nothing is installed.
    assert {finding["id"] for finding in with_local["findings"]} == {"cron", "groups"}
    assert main(["check", "snippets", "--json"]) == 1
    alone = json.loads(capsys.readouterr().out)
    assert [(finding["id"], finding["place"]) for finding in alone["findings"]] == [
        ("file names", str(local)),
        ("scope", f"{local}:3"),
    ]


@pytest.mark.parametrize(
    ("named", "level"),
    [
        ("", Level.ADVICE),
        ("SHARECTL_GROUP_MAP = {folder}/groups.map\n", None),
        ("SHARECTL_GROUP_MAP = {folder}/missing.map\n", Level.ERROR),
    ],
)
def test_a_map_of_groups_is_advised_and_has_to_be_there(
    named: str, level: Optional[Level], folder: Path, tmp_path: Path
) -> None:
    local = tmp_path / "condor_config"
    local.write_text("USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\n" + named.format(folder=tmp_path))
    (tmp_path / "groups.map").write_text("* alice cms\n")
    findings = check(ConfigSource(folder, local), {}).findings
    levels = [finding.level for finding in findings if finding.id == "groups"]
    assert levels == ([] if level is None else [level])


def htcondor(folder: Path, version: str) -> str:
    """Configuration of a machine whose HTCondor says that it is of that version."""
    folder.mkdir()
    program = folder / "condor_version"
    program.write_text(f"#!/bin/sh\necho '$CondorVersion: {version} 2024-01-01 BuildID: 1 $'\n")
    program.chmod(0o755)
    return f"USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\nBIN = {folder}\n"


@pytest.mark.parametrize(
    ("version", "line", "way", "ids"),
    [
        ("23.0.12", "", "cron", []),
        ("23.0.12", "SHARECTL_ACTUATION = live\n", "live", ["knobs"]),
        ("23.9.6", "SHARECTL_ACTUATION = live\n", "live", []),
        ("24.0.1", "", "live", []),
    ],
)
def test_an_old_htcondor_acts_by_cron(
    version: str, line: str, way: str, ids: list[str], folder: Path, tmp_path: Path
) -> None:
    local = tmp_path / "condor_config"
    local.write_text(htcondor(tmp_path / "bin", version))
    added(line)(folder)
    report = check(ConfigSource(folder, local), {})
    assert report.made["SHARECTL_ACTUATION"] == way
    # Nothing is installed, and there is no map.
    assert [f.id for f in report.findings if f.id not in ("cron", "groups")] == ids


@pytest.mark.parametrize("writable", ["file", "folder"])
def test_targets_that_anybody_can_write_had_better_be_signed(
    writable: str, folder: Path, tmp_path: Path
) -> None:
    (shared := tmp_path / "shared").mkdir()
    (shared / "sharectl.txt").touch()
    (shared if writable == "folder" else shared / "sharectl.txt").chmod(0o777)
    added(f"SHARECTL_SOURCE = file:{shared}/sharectl.txt,https://cm.example.org/sharectl.txt\n")(
        folder
    )
    assert [(f.id, f.level) for f in found(folder)] == [("sources", Level.ADVICE)] * 2
    added("SHARECTL_SOURCE_OPTIONS = --key-file /etc/sharectl/keys\n", "98-key.conf")(folder)
    assert found(folder) == []


def test_a_folder_without_our_files_is_found(tmp_path: Path) -> None:
    added("STARTD_ATTRS = $(STARTD_ATTRS) Rack\nRack = 7\n")(tmp_path)
    assert [(f.id, f.place) for f in found(tmp_path)] == [("file names", str(tmp_path))]


def test_what_is_no_folder_is_an_input_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "60-bad.conf").write_text("Rack = 7\n")
    for name in ("nowhere", "60-bad.conf"):
        assert main(["check", "snippets", str(tmp_path / name)]) == 65
        assert f"{tmp_path / name}: " in capsys.readouterr().err


def test_central_manager_example_is_what_render_prints(capsys: pytest.CaptureFixture[str]) -> None:
    config = Path(__file__).parents[1] / "golden" / "seed-nodes" / "sharectl.yaml"
    assert main(["render", "central-manager", "--config", str(config)]) == 0
    example = SNIPPETS / "examples" / "60-sharectl-central-manager.conf"
    assert capsys.readouterr().out == example.read_text()


JOBS = {"job_ctl.py": job_ctl, "mc_grace.py": mc_grace}


@pytest.mark.parametrize("job", ["JOB_CTL", "MC_GRACE"])
def test_the_jobs_take_the_options_that_the_snippet_gives_them(job: str, folder: Path) -> None:
    names = [f"STARTD_CRON_{job}_{knob}" for knob in ("EXECUTABLE", "ARGS")]
    program, options = expanded(folder, names).values()
    values, problems = JOBS[Path(program).name].parse_arguments(options.split())
    assert not problems
    own = JOBS[Path(program).name].OPTIONS
    # What job_ctl.py has no default for, it leaves to target.py.
    defaults = {option: row[0] or target.OPTIONS.get(option, row)[0] for option, row in own.items()}
    values = {option: value or defaults[option] for option, value in values.items()}
    # What the snippet says and what the program does by itself are the same, but for this node's
    # name and places.
    local = dict.fromkeys(("--state", "--host", "--source"), "")
    assert {**values, **local} == {**defaults, **local}


@pytest.mark.parametrize("program", JOBS)
def test_the_checks_know_what_the_jobs_publish(program: str) -> None:
    published = {
        "job_ctl.py": [line.split(" ")[0] for line in job_ctl.AD.splitlines()],
        "mc_grace.py": [*mc_grace.FAIL_SAFE, mc_grace.REASON, mc_grace.TIME],
    }
    assert set(PUBLISHED[program]) == set(published[program])


def test_the_checks_know_job_ctl() -> None:
    """Its options, how many sources it takes, and what lies beside it."""
    assert set(JOB_CTL_OPTIONS) == set(job_ctl.OPTIONS)
    assert MAX_SOURCES == job_ctl.MAX_SOURCES
    assert sorted(BESIDE) == sorted(path.name for path in PROGRAMS.glob("target*.py"))


def test_half_an_installation_is_found(folder: Path, tmp_path: Path) -> None:
    local = tmp_path / "condor_config"
    local.write_text(htcondor(tmp_path / "bin", "25.14.1"))
    (installed := tmp_path / "libexec").mkdir()
    for name in ("job_ctl.py", "target.py"):
        shutil.copy(PROGRAMS / name, installed)
    added(f"STARTD_CRON_JOB_CTL_EXECUTABLE = {installed}/job_ctl.py\n")(folder)
    findings = check(ConfigSource(folder, local), {}).findings
    places = [finding.place for finding in findings if finding.id == "cron"]
    assert places == [f"{folder / LATER}:1"] * (len(BESIDE) - 1)


@pytest.mark.parametrize(("name", "there"), [("there", "True"), ("not-there", "False")])
def test_the_line_of_shell_says_whether_the_file_is_there(
    name: str, there: str, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "there").touch()
    added(f"SHARECTL_DISABLED_FILE = {tmp_path}/{name}\n")(folder)
    names = [f"STARTD_CRON_SHARECTL_OFF_{knob}" for knob in ("EXECUTABLE", "ARGS")]
    program, options = expanded(folder, names).values()
    # Arguments in quotes: blanks part them, but not within apostrophes; shlex agrees with HTCondor
    # on that.
    done = subprocess.run(
        [program, *shlex.split(options.strip().strip('"'))],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    assert done.stdout == f"{PUBLISHED['SHARECTL_OFF'][0]} = {there}\n"
