"""Our snippets pass every check of `sharectl check snippets`, and each check fires on a copy that is broken for it."""

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
from sharectl.check.findings import Finding
from sharectl.check.snippets import CHECKS, check
from sharectl.check.trials import BESIDE, JOB_CTL_OPTIONS, MAX_SOURCES, PUBLISHED
from sharectl.cli.main import main
from sharectl.condor.configuration import Source, expand
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Our snippets, to be broken."""
    copy = tmp_path / "config.d"
    shutil.copytree(SNIPPETS, copy)
    return copy


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Change one text in a snippet, which must be there."""

    def change(folder: Path) -> None:
        path = folder / name
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {name}"
        path.write_text(text.replace(old, new))

    return change


def added(text: str, name: str = LATER) -> Callable[[Path], None]:
    """Add a file."""

    def add(folder: Path) -> None:
        (folder / name).write_text(text)

    return add


def renamed(name: str, to: str, mode: int = 0o644) -> Callable[[Path], None]:
    """Rename a snippet, and change its mode."""

    def rename(folder: Path) -> None:
        (folder / name).rename(folder / to)
        (folder / to).chmod(mode)

    return rename


def in_cron(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """Do that, where the STARTD_CRON jobs count and look."""

    def both(folder: Path) -> None:
        change(folder)
        added(CRON, "98-cron.conf")(folder)

    return both


def found(folder: Path, site_attributes: Mapping[str, str] | None = None) -> list[Finding]:
    return list(check(Source(folder), site_attributes or {}).findings)


def expanded(folder: Path, macros: list[str]) -> dict[str, str]:
    with CondorProcess() as process:
        return expand(Source(folder), macros, process)


def line_of(path: Path, text: str) -> int:
    """Number of the line that begins with ``text``."""
    return next(
        number
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.startswith(text)
    )


@BOTH_WAYS
def test_our_snippets_have_no_fault(folder: Path, way: str) -> None:
    added(way)(folder)
    assert found(folder) == []


@pytest.mark.parametrize("name", [EXECUTE, ACCESS, DEFRAG])
def test_each_snippet_alone_has_no_fault(folder: Path, name: str) -> None:
    """They are for different machines."""
    for path in folder.glob("*.conf"):
        if path.name != name:
            path.unlink()
    assert found(folder) == []


def test_the_central_managers_example_has_no_fault(folder: Path) -> None:
    shutil.copy(folder / "examples" / "60-sharectl-central-manager.conf", folder)
    assert found(folder) == []


def test_quotas_of_groups_within_groups_have_no_fault(folder: Path) -> None:
    tree = GroupTree({"alice": 3, "alice.prod": 1, "alice.user": 2, "cms": 1})
    (folder / "60-sharectl-central-manager.conf").write_text(central_manager_configuration(tree))
    assert found(folder) == []


SLOT_EXAMPLES = sorted(path.name for path in (SNIPPETS / "examples").glob("[57]0-*.conf"))


@pytest.mark.parametrize("name", SLOT_EXAMPLES)
def test_each_example_of_slots_has_no_fault_beside_our_snippets(name: str, folder: Path) -> None:
    """Nodes publish SlotAdmits, which another example sets."""
    shutil.copy(folder / "examples" / name, folder)
    assert found(folder, {"SlotAdmits": "True"}) == []


@BOTH_WAYS
def test_the_example_of_slot_types_has_no_fault_with_that_of_their_draining(
    folder: Path, way: str
) -> None:
    added(way)(folder)
    for name in ("50-draining-execute-point.conf", "70-slot-types.conf"):
        shutil.copy(folder / "examples" / name, folder)
    assert found(folder) == []


def test_the_example_of_slot_types_needs_the_nodes_own_start(folder: Path) -> None:
    shutil.copy(folder / "examples" / "70-slot-types.conf", folder)
    replaced("70-slot-types.conf", "SLOT_TYPE_2_START = ($(START)) && ", "SLOT_TYPE_2_START = ")(
        folder
    )
    (finding,) = found(folder)
    assert finding.id == "clauses"
    assert "SLOT_TYPE_2_START" in str(finding)


@BOTH_WAYS
def test_a_snippet_read_twice_has_no_fault(folder: Path, way: str) -> None:
    added(f"include : {folder / EXECUTE}\n{way}", "70-again.conf")(folder)
    assert found(folder) == []


@BOTH_WAYS
def test_a_sites_comments_end_with_their_line(folder: Path, way: str) -> None:
    """In whatever is built onto what the site wrote; without the line end HTCondor could not read it."""
    knobs = {
        "START": "TARGET.JobUniverse == 5",
        "CLAIM_WORKLIFE": "600",
        "DEFAULT_DRAINING_START_EXPR": "False",
        "DEFRAG_DRAINING_START_EXPR": "False",
    }
    site = "".join(f"{knob} = {text} // not (more /* than that\n" for knob, text in knobs.items())
    added(site, "20-site.conf")(folder)
    added(way)(folder)
    assert found(folder) == []
    made = check(Source(folder), {}).made
    assert made["START"].startswith("(TARGET.JobUniverse == 5) && (MY.t1_GraceAdmits")
    assert "//" not in made["CLAIM_WORKLIFE"]


@BOTH_WAYS
def test_a_site_that_has_its_own_start_latches_and_draining_has_no_fault(
    folder: Path, way: str
) -> None:
    site = (
        "START = (MY.NODE_IS_HEALTHY =?= True) && TARGET.JobUniverse == 5\nCLAIM_WORKLIFE = 600\n"
    )
    site += (
        "STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) HEALTH\nSTARTD_CRON_HEALTH_EXECUTABLE = "
        "/opt/health\n"
    )
    site += "STARTD_CRON_HEALTH_PERIOD = 5m\nSTARTD_CRON_HEALTH_KILL = True\n"
    site += "STARTD_LATCH_EXPRS = FreeSince\nFreeSince = MY.Cpus\n"
    site += (
        "DEFRAG_DRAINING_START_EXPR = TARGET.IsShort =?= True\nDEFAULT_DRAINING_START_EXPR = True\n"
    )
    added(site, "20-site.conf")(folder)
    added(f"{way}SLOT_TYPE_1_START = $(START) && TARGET.RequestCpus < 9\n")(folder)
    assert found(folder, {"NODE_IS_HEALTHY": "True"}) == []


@pytest.mark.parametrize("seconds", ["0", "1", "7200"])
def test_any_grace_has_no_fault(folder: Path, seconds: str) -> None:
    added(f"SHARECTL_GRACE_SECONDS = {seconds}\n")(folder)
    assert found(folder) == []


@pytest.mark.parametrize(
    "lines",
    [
        (
            "SHARECTL_SOURCE = file:/a/b.txt,collector:\nSHARECTL_SOURCE_OPTIONS = --identity "
            "sharectl@example.org\n"
        ),
        (
            "SHARECTL_SOURCE = https://cm.example.org:8443/t.txt\nSHARECTL_SOURCE_OPTIONS = "
            "--key-file /etc/sharectl/keys\n"
        ),
        (
            "SHARECTL_SOURCE = collector:cm.example.org:9618\n"
            "SHARECTL_SOURCE_OPTIONS = --pool T1 --identity sharectl@example.org\n"
        ),
        "SHARECTL_JOB_CTL_PERIOD_SECONDS = 60\nSHARECTL_DISABLED_FILE = /run/off\n",
    ],
)
def test_knobs_that_can_be_used_have_no_fault(folder: Path, lines: str) -> None:
    added(lines)(folder)
    assert found(folder) == []


BROKEN: Mapping[str, tuple[str, Callable[[Path], None], str]] = {
    # what is wrong: check that fires, the change, what the finding says
    "a line that is none": ("syntax", added("START True\n"), f"{LATER}:1"),
    "a circle": ("syntax", added("A_1 = $(B_1)\nB_1 = $(A_1)\n"), "A_1 → B_1 → A_1"),
    "an unclosed heredoc": ("syntax", added("X @=end\n a\n"), "@end"),
    "a backup that is read": ("file names", added("X = 1\n", f"{EXECUTE}.bak"), f"{EXECUTE}.bak"),
    "a name that is not read": ("file names", renamed(EXECUTE, "60-sharectl.sh"), "does not read"),
    "a secret file": ("file modes", renamed(EXECUTE, EXECUTE, 0o600), "condor_status"),
    "a missing bracket": (
        "expression",
        replaced(EXECUTE, "substr($(t1_job_account), 0, 300)", "substr($(t1_job_account), 0, 300"),
        "t1_job_group",
    ),
    "brackets that match only together": (
        "expression",
        added('START = TARGET.Why == ")" /* ( */ && True) || (False // (\n', "20-site.conf"),
        "20-site.conf:1: the brackets of START",
    ),
    "an empty macro": (
        "expression",
        replaced(EXECUTE, "$(t1_off) || ($(t1_cool))", "$(t1_off) || ($(t1_coool))"),
        "t1_CoolAdmits",
    ),
    "an unscoped attribute of the node": (
        "scope",
        replaced(EXECUTE, "t1_grace_live = MY.MC_GRACE", "t1_grace_live = MC_GRACE"),
        "write MY.MC_GRACE",
    ),
    "an unscoped attribute of the job": (
        "scope",
        replaced(EXECUTE, "max({1, TARGET.RequestCpus})", "max({1, RequestCpus})"),
        "write TARGET.RequestCpus",
    ),
    "an unscoped attribute of a latch": (
        "scope",
        replaced(EXECUTE, "t1_Watched = MY.Cpus", "t1_Watched = Cpus"),
        "write MY.Cpus",
    ),
    "an attribute of the node asked of the job": (
        "side",
        replaced(EXECUTE, "t1_grace_live = MY.MC_GRACE", "t1_grace_live = TARGET.MC_GRACE"),
        "write MY.MC_GRACE",
    ),
    "a misspelt attribute": (
        "published",
        replaced(EXECUTE, "sum(MY.Childt1_HeldBackCores)", "sum(MY.Childt1_HeldbackCore)"),
        "MY.Childt1_HeldbackCore",
    ),
    "a switch that nobody looks at": (
        "published",
        replaced(
            EXECUTE, "SHARECTL_CRON_JOBS = JOB_CTL SHARECTL_OFF", "SHARECTL_CRON_JOBS = JOB_CTL"
        ),
        "MY.t1_Disabled",
    ),
    "an attribute without a value": (
        "published",
        added("STARTD_ATTRS = $(STARTD_ATTRS) t1_wn_hs06\n"),
        "t1_wn_hs06",
    ),
    "a latch without a value": (
        "published",
        added("STARTD_LATCH_EXPRS = $(STARTD_LATCH_EXPRS) Hot\n"),
        "Hot",
    ),
    "a clause that is False without a target": (
        "typical jobs",
        replaced(EXECUTE, "($(t1_sharectl))", "(MY.t1_Targetcores[1] == 0) =?= True"),
        "before the first run",
    ),
    "clauses that have to be True": (
        "typical jobs",
        replaced(EXECUTE, "MY.t1_TargetAdmits =!= False", "MY.t1_TargetAdmits"),
        "t1_TargetAdmits is error",
    ),
    "a target without a count": (
        "typical jobs",
        replaced(EXECUTE, "$(t1_counted_$(SHARECTL_ACTUATION):False)", "True"),
        "when Childt1_HeldBackCores is undefined",
    ),
    "a switch without effect": (
        "typical jobs",
        replaced(EXECUTE, "$(SHARECTL_ENABLED) == False || MY.t1_Disabled =?= True", "False"),
        "when sharectl is disabled here",
    ),
    "grace for cores that were free when the startd started": (
        "typical jobs",
        replaced(EXECUTE, "&& MY.t1_McRoomTime > MY.t1_WatchedTime", "&& True"),
        "when the startd has just started",
    ),
    "grace for ever in an old copy of the ad": (
        "typical jobs",
        replaced(EXECUTE, "time() - MY.MyCurrentTime <", "0 * MY.MyCurrentTime <"),
        "when the ad is an old copy",
    ),
    "grace until the latches are set": (
        "typical jobs",
        replaced(EXECUTE, "MY.t1_McRoomValue =?= 0 &&", "MY.t1_McRoomValue =!= 1 &&"),
        "before the latches are set",
    ),
    "a stale target that counts": (
        "typical jobs",
        replaced(EXECUTE, "time() < MY.t1_TargetUntil", "MY.t1_TargetUntil > 0"),
        "when the target has run out",
    ),
    "grace though no multicore job waits": (
        "typical jobs",
        replaced(
            EXECUTE,
            "t1_nobody_waits = (MY.t1_MulticorePending == False",
            "t1_nobody_waits = (False",
        ),
        "when no multicore job waits",
    ),
    "a target from the future that counts": (
        "typical jobs",
        replaced(EXECUTE, "MY.t1_JobCtlTime - time() <", "0 * MY.t1_JobCtlTime <"),
        "when the clock was set back",
    ),
    "grace from the future that counts": (
        "typical jobs",
        replaced(EXECUTE, "MY.t1_McRoomTime - time() <", "0 * MY.t1_McRoomTime <"),
        "when the clock was set back in grace",
    ),
    "free cores of the future that count": (
        "typical jobs",
        replaced(EXECUTE, "MY.MyCurrentTime - time() <", "0 * MY.MyCurrentTime <"),
        "when the clock was set back before the latch",
    ),
    "grace from the future that counts by cron": (
        "typical jobs",
        in_cron(replaced(EXECUTE, "MY.t1_McGraceTime - time() >=", "0 * MY.t1_McGraceTime >=")),
        "when the clock was set back after mc_grace ran",
    ),
    "a stale grace that counts": (
        "typical jobs",
        in_cron(replaced(EXECUTE, "time() - MY.t1_McGraceTime >=", "0 * MY.t1_McGraceTime >=")),
        "when mc_grace has stopped",
    ),
    "an error that keeps jobs out": (
        "typical jobs",
        in_cron(
            replaced(
                EXECUTE,
                "!($(t1_grace_$(SHARECTL_ACTUATION):False))",
                "(MY.MC_GRACE =?= False)",
            )
        ),
        "when MC_GRACE is an error",
    ),
    "a START that takes nothing": (
        "typical jobs",
        added("START = False\n", "20-site.conf"),
        "every typical job",
    ),
    "whole groups compared": (
        "clauses",
        replaced(
            EXECUTE,
            "substr($(t1_job_group), 0, size(MY.t1_TargetGroups[1]) + 1)",
            "substr($(t1_job_group), 0, 1000)",
        ),
        "of cms",
    ),
    "first parts compared": (
        "clauses",
        replaced(
            EXECUTE,
            r"([^@\x22\x5c]*(?=\.[^.@\x22\x5c]*[@\x22]))?)",
            ")",
        ),
        "under a target of subgroups",
    ),
    "parts not told from one another": (
        "clauses",
        replaced(
            EXECUTE,
            'size(MY.t1_TargetGroups[1]) + 1) == strcat(MY.t1_TargetGroups[1], ".")',
            "size(MY.t1_TargetGroups[1])) == MY.t1_TargetGroups[1]",
        ),
        "of cms.production",
    ),
    "a dot that is any character": (
        "clauses",
        in_cron(
            replaced(
                EXECUTE, '*\\Q", MY.t1_TargetGroups[0], "\\E:', '*", MY.t1_TargetGroups[0], ":'
            )
        ),
        "below its cap",
    ),
    "the held-back group sought in one place only": (
        "clauses",
        in_cron(replaced(EXECUTE, 'strcat("^([^:]+:[0-9]+:)*\\Q", ', 'strcat("^(nowhere:)\\Q", ')),
        "over its cap",
    ),
    "a cap that is not kept": (
        "clauses",
        replaced(EXECUTE, "- ($(t1_held_$(SHARECTL_ACTUATION):0))", "- 0"),
        "alice",
    ),
    "a cap without the cores matched since": (
        "clauses",
        replaced(
            EXECUTE,
            "sum(MY.Childt1_HeldBackCores) + $(t1_matched_since)",
            "sum(MY.Childt1_HeldBackCores)",
        ),
        "matched since",
    ),
    "a cap that needs every slot's count": (
        "clauses",
        replaced(
            EXECUTE,
            "t1_held_live = sum(MY.Childt1_HeldBackCores)",
            "t1_held_live = MY.Childt1_HeldBackCores[0] + MY.Childt1_HeldBackCores[1] + "
            "MY.Childt1_HeldBackCores[2]",
        ),
        "is being made",
    ),
    "grace for nobody": (
        "clauses",
        replaced(EXECUTE, "t1_grace_live = MY.MC_GRACE =?= True", "t1_grace_live = False"),
        "in grace",
    ),
    "no grace by a plan that has ended": (
        "clauses",
        replaced(EXECUTE, "time() < MY.t1_MulticorePendingUntil", "True"),
        "has ended",
    ),
    "no grace by a plan of long ago": (
        "clauses",
        replaced(EXECUTE, "&& $(t1_job_ctl_is_fresh)) =?= True\n\n# live", ") =?= True\n\n# live"),
        "job_ctl has stopped since",
    ),
    "no grace by a plan that does not tell": (
        "clauses",
        replaced(EXECUTE, "(MY.t1_MulticorePending == False", "(MY.t1_MulticorePending =!= True"),
        "nobody knows whether multicore",
    ),
    "grace for nobody by cron": (
        "clauses",
        in_cron(
            replaced(
                EXECUTE,
                "t1_grace_cron = (MY.MC_GRACE &&",
                "t1_grace_cron = (MY.MC_GRACE && False &&",
            )
        ),
        "in grace",
    ),
    "grace for those that a target is for": (
        "clauses",
        replaced(EXECUTE, " || ($(t1_single_core_target))", " "),
        "in grace, under a target for single-core jobs",
    ),
    "a target that ends grace for everybody": (
        "clauses",
        replaced(
            EXECUTE, "&& MY.t1_Targetcores[1] == 1 && $(t1_job_is_helped)) =?= True", ") =?= True"
        ),
        "in grace, under a target for single-core jobs",
    ),
    "grace that waits for the latch": (
        "clauses",
        replaced(EXECUTE, "MY.t1_McRoomValue =?= 0 &&", "False &&"),
        "before the latch",
    ),
    "a target that waits to hear that it is not disabled": (
        "clauses",
        replaced(
            EXECUTE, "=!= False && MY.t1_Disabled =!= True", "=!= False && MY.t1_Disabled =?= False"
        ),
        "nobody knows whether",
    ),
    "a claim for anybody": (
        "clauses",
        replaced(EXECUTE, "!($(t1_multicore_slot))", "True"),
        "slot of a multicore job",
    ),
    "clauses thrown away": ("clauses", added("START = TARGET.JobUniverse == 5\n"), "t1_clauses"),
    "a slot type with a START of its own": (
        "clauses",
        added("SLOT_TYPE_1_START = True\n"),
        "SLOT_TYPE_1_START",
    ),
    "a slot type without one of the clauses": (
        "clauses",
        added("SLOT_TYPE_1_START = MY.t1_GraceAdmits =!= False && MY.t1_TargetAdmits =!= False\n"),
        "where t1_CoolAdmits is False",
    ),
    "draining by hand": (
        "clauses",
        added("DEFAULT_DRAINING_START_EXPR = True\n"),
        "DEFAULT_DRAINING_START_EXPR",
    ),
    "draining by condor_defrag": (
        "clauses",
        added("DEFRAG_DRAINING_START_EXPR = TARGET.RequestCpus == 1\n"),
        "DEFRAG_DRAINING_START_EXPR",
    ),
    "draining for jobs that are not typical": (
        "clauses",
        added("DEFRAG_DRAINING_START_EXPR = TARGET.JobPrio > 1000\n"),
        "none of sharectl's clauses",
    ),
    "a job that forges": (
        "forging",
        replaced(
            EXECUTE,
            "t1_sharectl = (MY.t1_TargetActive",
            "t1_sharectl = (TARGET.PartitionableSlot =?= False || MY.t1_TargetActive",
        ),
        "written into it",
    ),
    "claims that outlive targets": ("claims", added("CLAIM_WORKLIFE = 1200\n"), "lives on"),
    "claims that end without a target": (
        "claims",
        replaced(
            EXECUTE,
            "MY.t1_TargetActive =?= True && MY.t1_HeldBackSlot =?= True",
            "MY.t1_HeldBackSlot =?= True",
        ),
        "instead of 1200",
    ),
    "small jobs in large slots": (
        "claims",
        added("MODIFY_REQUEST_EXPR_REQUESTCPUS = quantize(RequestCpus, {8})\n"),
        "slot of 8",
    ),
    "KILL that HTCondor takes for False": (
        "cron",
        added("STARTD_CRON_JOB_CTL_KILL = yes\n"),
        "JOB_CTL: a run that",
    ),
    "no period": ("cron", added("STARTD_CRON_JOB_CTL_PERIOD =\n"), "JOB_CTL: a period of nothing"),
    "a mode that is none": (
        "cron",
        added("STARTD_CRON_SHARECTL_OFF_MODE = Often\n"),
        "no mode often",
    ),
    "a prefix": ("cron", added("STARTD_CRON_JOB_CTL_PREFIX = t1_\n"), "prefix"),
    "a switch with a prefix": (
        "cron",
        added("STARTD_CRON_SHARECTL_OFF_PREFIX = t1_\n"),
        "SHARECTL_OFF: it publishes",
    ),
    "a program without a path": (
        "cron",
        in_cron(added("STARTD_CRON_MC_GRACE_EXECUTABLE = mc_grace.py\n")),
        "whole path",
    ),
    "no program": ("cron", added("STARTD_CRON_JOB_CTL_EXECUTABLE =\n"), "no program"),
    "silent failures": ("cron", added("STARTD_CRON_LOG_NON_ZERO_EXIT = 0\n"), "thrown away"),
    "a job off the list": (
        "cron",
        in_cron(replaced(EXECUTE, "t1_cron_jobs_cron = MC_GRACE", "t1_cron_jobs_cron =")),
        "MC_GRACE never runs",
    ),
    "two that publish MC_GRACE": (
        "cron",
        added("STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) MC_GRACE\n"),
        "replaces the slot's own MC_GRACE",
    ),
    "a job listed twice": (
        "cron",
        added("STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) JOB_CTL\n"),
        "JOB_CTL is listed more than once",
    ),
    "a list replaced by our file": (
        "replaced",
        replaced(EXECUTE, "$(STARTD_CRON_JOBLIST) $(SHARECTL", "$(SHARECTL"),
        "other files",
    ),
    "a list replaced after our file": (
        "replaced",
        added("STARTD_ATTRS = Rack\nRack = 7\n"),
        f"{EXECUTE}:",
    ),
    "START replaced after our file": ("replaced", added("START = True\n"), f"{EXECUTE}:"),
    "a misspelt knob": (
        "knobs",
        added("SHARECTL_GRACE_SECOND = 60\n"),
        "write SHARECTL_GRACE_SECONDS",
    ),
    "a boolean that is none": ("knobs", added("SHARECTL_ENABLED = no\n"), "write True or False"),
    "a size of one": ("knobs", added("SHARECTL_MULTICORE_CORES = 1\n"), "whole number from 2"),
    "a time that is none": ("knobs", added("SHARECTL_GRACE_SECONDS = 8m\n"), "whole number from 0"),
    "staleness before the next run": (
        "knobs",
        added("SHARECTL_JOB_CTL_STALE_SECONDS = 30\n"),
        "no longer than",
    ),
    "a way that is none": ("knobs", added("SHARECTL_ACTUATION = latch\n"), "write live or cron"),
    "a file name with a blank": (
        "knobs",
        added("SHARECTL_DISABLED_FILE = /etc/share ctl\n"),
        "a line of shell",
    ),
    "no file name": ("knobs", added("SHARECTL_DISABLED_FILE =\n"), "a line of shell"),
    "no time between looks": (
        "knobs",
        added("SHARECTL_DISABLED_PERIOD_SECONDS = 0\n"),
        "whole number from 1",
    ),
    "attributes off the list": (
        "slot",
        added("STARTD_ATTRS = Rack\nRack = 7\n"),
        "STARTD_ATTRS lacks t1_GraceAdmits, t1_TargetAdmits, t1_CoolAdmits",
    ),
    "latches off the list": (
        "slot",
        added("STARTD_LATCH_EXPRS = Rack\nRack = 7\n"),
        "lacks t1_McRoom, t1_Watched",
    ),
    "latches that a reconfig mixes up": (
        "slot",
        replaced(
            EXECUTE, "t1_latches_live = NumDynamicSlots t1_McRoom", "t1_latches_live = t1_McRoom"
        ),
        "mixes up the latches",
    ),
    "latches in an order that a reconfig mixes up": (
        "slot",
        added("STARTD_LATCH_EXPRS = t1_McRoom NumDynamicSlots t1_Watched\n"),
        "mixes up the latches",
    ),
    "a count that is not summed up": (
        "slot",
        added("STARTD_PARTITIONABLE_SLOT_ATTRS = JobStart\n"),
        "STARTD_PARTITIONABLE_SLOT_ATTRS lacks t1_HeldBackCores",
    ),
    "nothing is summed up": (
        "slot",
        added("ADVERTISE_PSLOT_ROLLUP_INFORMATION = False\n"),
        "ROLLUP_INFORMATION = True",
    ),
    "a slot that counts everybody": (
        "slot",
        replaced(
            EXECUTE,
            "ifThenElse(MY.t1_HeldBackSlot || $(t1_new_slot), MY.Cpus ?: 0, 0)",
            "MY.Cpus ?: 0",
        ),
        "in a slot of another group",
    ),
    "a slot that counts for nobody until it is claimed": (
        "slot",
        replaced(EXECUTE, "MY.t1_HeldBackSlot || $(t1_new_slot)", "MY.t1_HeldBackSlot"),
        "0 in a slot that is new and nobody's yet",
    ),
    "a slot that knows first parts only": (
        "slot",
        replaced(
            EXECUTE,
            "regexps($(t1_group_pattern), substr(MY.Acc",
            'regexps("^[^.@]*", substr(MY.Acc',
        ),
        "in a slot of alice.user",
    ),
    "a slot that takes a user for a group": (
        "slot",
        replaced(
            EXECUTE, "regexps($(t1_group_pattern), substr(MY.Acc", 'regexps("^[^@]*", substr(MY.Acc'
        ),
        "in a slot of a user of alice",
    ),
    "a slot that is not always a number": (
        "slot",
        replaced(
            EXECUTE,
            "ifThenElse(MY.t1_HeldBackSlot || $(t1_new_slot), MY.Cpus ?: 0, 0)",
            "ifThenElse(MY.t1_HeldBackSlot || $(t1_new_slot), MY.Cpus, 0)",
        ),
        "undefined in a slot without Cpus",
    ),
    "room that is too small": (
        "slot",
        replaced(
            EXECUTE,
            "t1_McRoom = MY.PartitionableSlot =?= True && MY.Cpus >=",
            "t1_McRoom = MY.Cpus + 1 >=",
        ),
        "with 7 free cores",
    ),
    "a source of another kind": (
        "sources",
        added("SHARECTL_SOURCE = http://cm/sharectl.txt\n"),
        "'http://cm/sharectl.txt'",
    ),
    "a source without a path": (
        "sources",
        added("SHARECTL_SOURCE = file:shared/sharectl.txt\n"),
        "file:/PATH",
    ),
    "sources with a blank": (
        "sources",
        added("SHARECTL_SOURCE = file:/a, collector:\n"),
        "without blanks",
    ),
    "no source": ("sources", added("SHARECTL_SOURCE =\n"), "is no source"),
    "more sources than are asked": (
        "sources",
        added(f"SHARECTL_SOURCE = {','.join(['file:/a'] * 9)}\n"),
        "more than 8",
    ),
    "ads of anybody": (
        "sources",
        added("SHARECTL_SOURCE = collector:\n"),
        "collector: needs --identity",
    ),
    "ads of everybody": (
        "sources",
        added(
            "SHARECTL_SOURCE = collector:\nSHARECTL_SOURCE_OPTIONS = --identity "
            "unauthenticated@unmapped\n"
        ),
        "is what everybody has",
    ),
    "a misspelt option": (
        "sources",
        added("SHARECTL_SOURCE_OPTIONS = --keyfile /etc/sharectl/keys\n"),
        "write --key-file",
    ),
    "an option without a value": (
        "sources",
        added("SHARECTL_SOURCE_OPTIONS = --pool\n"),
        "--pool has no value",
    ),
    "groups to choose from": (
        "groups",
        added("CLASSAD_USER_MAPFILE_AssignAccountingGroup = /etc/condor/groups.map\n"),
        "AcctGroup, AcctGroupUser, AccountingGroup of a job can be changed",
    ),
    "a map that is named too late": (
        "groups",
        added("SHARECTL_GROUP_MAP = /etc/condor/groups.map\n"),
        "is read after the snippet",
    ),
    "a quota without a group": (
        "quotas",
        added("GROUP_NAMES = cms\nGROUP_QUOTA_DYNAMIC_atlas = 0.1\n"),
        "atlas",
    ),
    "a share that is none": (
        "quotas",
        added("GROUP_NAMES = cms\nGROUP_QUOTA_DYNAMIC_cms = 33\n"),
        "33 is no share",
    ),
    "too many shares": (
        "quotas",
        added("GROUP_NAMES = a, b\nGROUP_QUOTA_DYNAMIC_a = 0.6\nGROUP_QUOTA_DYNAMIC_b = 0.6\n"),
        "1.2",
    ),
    "too many shares within a group": (
        "quotas",
        added(
            "GROUP_NAMES = a, a.b, a.c\nGROUP_QUOTA_DYNAMIC_a.b = 0.7\nGROUP_QUOTA_DYNAMIC_A.c "
            "= 0.6\n"
        ),
        "shares of the groups within a sum to 1.3",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_copy_is_found(fault: str, folder: Path) -> None:
    name, change, said = BROKEN[fault]
    change(folder)
    of_check = [finding for finding in found(folder) if finding.id == name]
    assert any(said in str(finding) for finding in of_check), [
        str(finding) for finding in found(folder)
    ]


@pytest.mark.parametrize("line", ["SHARECTL_ENABLED = no", "SHARECTL_ENABLED ="])
def test_a_knob_that_is_no_boolean_is_the_only_finding(line: str, folder: Path) -> None:
    added(f"{line}\n")(folder)
    (finding,) = found(folder)
    assert (
        str(finding)
        == f"{folder / LATER}:1: {line} is neither True nor False; write True or False [knobs]"
    )


def test_every_check_has_a_broken_copy() -> None:
    assert {name for name, _, _ in BROKEN.values()} == {check.id for check in CHECKS}


def test_a_finding_names_the_line(folder: Path) -> None:
    replaced(EXECUTE, "t1_grace_live = MY.MC_GRACE", "t1_grace_live = MC_GRACE")(folder)
    scope = next(finding for finding in found(folder) if finding.id == "scope")
    assert scope.place == f"{folder / EXECUTE}:{line_of(folder / EXECUTE, 't1_grace_live')}"


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
    made = check(Source(folder), {}).made
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
    assert {finding["id"] for finding in with_local["findings"]} == {
        "cron",
        "groups",
    }  # nothing is installed
    assert main(["check", "snippets", "--json"]) == 1
    alone = json.loads(capsys.readouterr().out)
    assert [(finding["id"], finding["place"]) for finding in alone["findings"]] == [
        ("file names", str(local)),
        ("scope", f"{local}:3"),
    ]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("", ("users can choose their group", "[groups, recommended]")),
        ("SHARECTL_GROUP_MAP = {folder}/groups.map\n", None),
        (
            "SHARECTL_GROUP_MAP = {folder}/missing.map\n",
            ("the access point refuses every job", "[groups]"),
        ),
    ],
)
def test_an_access_point_is_told_what_becomes_of_groups(
    named: str, said: Optional[tuple[str, str]], folder: Path, tmp_path: Path
) -> None:
    local = tmp_path / "condor_config"
    local.write_text("USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\n" + named.format(folder=tmp_path))
    (tmp_path / "groups.map").write_text("* alice cms\n")
    findings = [
        str(finding)
        for finding in check(Source(folder, local), {}).findings
        if finding.id == "groups"
    ]
    assert len(findings) == (0 if said is None else 1), findings
    assert all(word in finding for finding in findings for word in said or ())


def htcondor(folder: Path, version: str) -> str:
    """Configuration of a machine whose HTCondor says that it is of that version."""
    folder.mkdir()
    program = folder / "condor_version"
    program.write_text(f"#!/bin/sh\necho '$CondorVersion: {version} 2024-01-01 BuildID: 1 $'\n")
    program.chmod(0o755)
    return f"USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\nBIN = {folder}\n"


@pytest.mark.parametrize(
    ("version", "line", "way", "said"),
    [
        ("23.0.12", "", "cron", ""),
        ("23.0.12", "SHARECTL_ACTUATION = live\n", "live", "here is 23.0"),
        ("23.9.6", "SHARECTL_ACTUATION = live\n", "live", ""),
        ("24.0.1", "", "live", ""),
    ],
)
def test_an_old_htcondor_acts_by_cron(
    version: str, line: str, way: str, said: str, folder: Path, tmp_path: Path
) -> None:
    local = tmp_path / "condor_config"
    local.write_text(htcondor(tmp_path / "bin", version))
    added(line)(folder)
    report = check(Source(folder, local), {})
    knobs = [
        str(finding)
        for finding in report.findings
        if finding.id in ("knobs", "clauses", "typical jobs", "slot")
    ]
    assert report.made["SHARECTL_ACTUATION"] == way
    assert bool(knobs) == bool(said)
    assert all(said in finding for finding in knobs)


@pytest.mark.parametrize("writable", ["file", "folder"])
def test_targets_that_anybody_can_write_had_better_be_signed(
    writable: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shared := tmp_path / "shared").mkdir()
    (shared / "sharectl.txt").touch()
    (shared if writable == "folder" else shared / "sharectl.txt").chmod(0o777)
    added(f"SHARECTL_SOURCE = file:{shared}/sharectl.txt,https://cm.example.org/sharectl.txt\n")(
        folder
    )
    assert main(["check", "snippets", str(folder)]) == 0
    printed = capsys.readouterr().out
    added("SHARECTL_SOURCE_OPTIONS = --key-file /etc/sharectl/keys\n", "98-key.conf")(folder)
    assert "can be written to by others" in printed
    assert "web server" in printed
    assert "checks, nothing found, 2 recommended" in printed
    assert found(folder) == []


def test_a_folder_without_a_file_of_sharectls_is_said_to_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    added("STARTD_ATTRS = $(STARTD_ATTRS) Rack\nRack = 7\n")(tmp_path)
    assert main(["check", "snippets", str(tmp_path)]) == 1
    assert f"{tmp_path}: no file of sharectl's" in capsys.readouterr().out


def test_a_folder_that_is_not_there_is_an_input_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "snippets", str(tmp_path / "nowhere")]) == 65
    assert "nowhere" in capsys.readouterr().err


def test_a_file_in_place_of_a_folder_is_named_with_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "60-bad.conf"
    file.write_text("Rack = 7\n")
    assert main(["check", "snippets", str(file)]) == 65
    assert f"{file}: this is a file; name its folder, {tmp_path}" in capsys.readouterr().err


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
    assert sorted(BESIDE["job_ctl.py"]) == sorted(path.name for path in PROGRAMS.glob("target*.py"))


def test_half_an_installation_is_found(folder: Path, tmp_path: Path) -> None:
    local = tmp_path / "condor_config"
    local.write_text(htcondor(tmp_path / "bin", "25.14.1"))
    (installed := tmp_path / "libexec").mkdir()
    for name in ("job_ctl.py", "target.py"):
        shutil.copy(PROGRAMS / name, installed)
    added(f"STARTD_CRON_JOB_CTL_EXECUTABLE = {installed}/job_ctl.py\n")(folder)
    said = [
        str(finding)
        for finding in check(Source(folder, local), {}).findings
        if finding.id == "cron"
    ]
    assert len(said) == len(BESIDE["job_ctl.py"]) - 1
    assert all("is not beside" in finding for finding in said)


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
