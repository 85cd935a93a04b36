"""Our snippets pass every check of `sharectl check snippets`, and each check fires on a copy that is broken for it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import job_ctl
import mc_grace
from sharectl.adapters.condor_config import Source, expand
from sharectl.adapters.snippet_checks import CHECKS, check
from sharectl.adapters.snippet_subject import Finding
from sharectl.cli.main import main
from sharectl.core.trials import PUBLISHED

SNIPPETS = Path(__file__).parents[2] / "config.d"
EXECUTE, ACCESS = "60-sharectl-execute-point.conf", "60-sharectl-access-point.conf"
LATER = "99-local.conf"


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


def found(folder: Path, site_attributes: Mapping[str, str] | None = None) -> list[Finding]:
    return list(check(Source(folder), site_attributes or {}).findings)


def line_of(path: Path, text: str) -> int:
    """Number of the line that begins with ``text``."""
    return next(
        number for number, line in enumerate(path.read_text().splitlines(), 1) if line.startswith(text)
    )


def test_our_snippets_have_no_fault(folder: Path) -> None:
    assert found(folder) == []


def test_the_central_managers_example_has_no_fault(folder: Path) -> None:
    shutil.copy(folder / "examples" / "60-sharectl-central-manager.conf", folder)
    assert found(folder) == []


def test_a_snippet_read_twice_has_no_fault(folder: Path) -> None:
    added(f"include : {folder / EXECUTE}\n", "70-again.conf")(folder)
    assert found(folder) == []


def test_a_site_that_has_a_start_of_its_own_has_no_fault(folder: Path) -> None:
    site = "START = (MY.NODE_IS_HEALTHY =?= True) && TARGET.JobUniverse == 5\nCLAIM_WORKLIFE = 600\n"
    site += (
        "STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) HEALTH\nSTARTD_CRON_HEALTH_EXECUTABLE = /opt/health\n"
    )
    site += "STARTD_CRON_HEALTH_PERIOD = 5m\nSTARTD_CRON_HEALTH_KILL = True\n"
    added(site, "20-site.conf")(folder)
    assert found(folder, {"NODE_IS_HEALTHY": "True"}) == []


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
        replaced(EXECUTE, "isString(TARGET.AcctGroup), regexps", "isString(TARGET.AcctGroup, regexps"),
        "t1_job_group",
    ),
    "an empty macro": (
        "expression",
        replaced(EXECUTE, "&& ($(t1_cool)))", "&& ($(t1_coool)))"),
        "t1_clauses",
    ),
    "an unscoped attribute of the node": (
        "scope",
        replaced(EXECUTE, "(MY.MC_GRACE &&", "(MC_GRACE &&"),
        "write MY.MC_GRACE",
    ),
    "an unscoped attribute of the job": (
        "scope",
        replaced(EXECUTE, "max({1, TARGET.RequestCpus})", "max({1, RequestCpus})"),
        "write TARGET.RequestCpus",
    ),
    "an attribute of the node asked of the job": (
        "side",
        replaced(EXECUTE, "(MY.MC_GRACE &&", "(TARGET.MC_GRACE &&"),
        "write MY.MC_GRACE",
    ),
    "a misspelt attribute": (
        "published",
        replaced(EXECUTE, "sum(MY.Childt1_HeldBackCores)", "sum(MY.Childt1_HeldbackCore)"),
        "MY.Childt1_HeldbackCore",
    ),
    "overheating that nobody measures": (
        "published",
        added("SHARECTL_OVERHEAT_ENABLED = True\n"),
        "MY.t1_overheat",
    ),
    "an attribute without a value": (
        "published",
        added("STARTD_ATTRS = $(STARTD_ATTRS) t1_wn_hs06\n"),
        "t1_wn_hs06",
    ),
    "a clause that is undefined without a target": (
        "typical jobs",
        replaced(EXECUTE, "($(t1_sharectl))", "(MY.t1_Targetcores[1] == 0)"),
        "before the first run",
    ),
    "a stale target that counts": (
        "typical jobs",
        replaced(EXECUTE, "time() < MY.t1_TargetUntil", "MY.t1_TargetUntil > 0"),
        "when the target has run out",
    ),
    "a stale grace that counts": (
        "typical jobs",
        replaced(EXECUTE, "time() - MY.t1_McGraceTime >=", "0 * MY.t1_McGraceTime >="),
        "when mc_grace has stopped",
    ),
    "an error that keeps jobs out": (
        "typical jobs",
        replaced(EXECUTE, "$(SHARECTL_MC_GRACE_STALE_SECONDS)) =!= True) =?= True", "1) =!= True)"),
        "when MC_GRACE is an error",
    ),
    "a START that takes nothing": (
        "typical jobs",
        added("START = False\n", "20-site.conf"),
        "every typical job",
    ),
    "whole groups compared": (
        "clauses",
        replaced(EXECUTE, 'regexps("^[^.@]*", TARGET.AcctGroup, "\\0")', "TARGET.AcctGroup"),
        "of cms",
    ),
    "the held-back group sought in one place only": (
        "clauses",
        replaced(EXECUTE, 'strcat("^([^:]+:[0-9]+:)*", ', 'strcat("^(nowhere:)", '),
        "over its cap",
    ),
    "a cap that is not kept": (
        "clauses",
        replaced(EXECUTE, "max({$(t1_held_then), $(t1_held_now)})", "0"),
        "alice",
    ),
    "grace for nobody": ("clauses", replaced(EXECUTE, "!($(t1_grace))", "True"), "in grace"),
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
    "a job that forges": (
        "forging",
        replaced(EXECUTE, "(MY.PartitionableSlot =!= True || !", "(TARGET.PartitionableSlot =?= False || !"),
        "written into it",
    ),
    "claims that outlive targets": ("claims", added("CLAIM_WORKLIFE = 1200\n"), "lives on"),
    "claims that end without a target": (
        "claims",
        replaced(
            EXECUTE, "&& $(t1_target_active) && $(t1_slot_held_back)", "&& MY.PartitionableSlot =!= True"
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
    "no period": ("cron", added("STARTD_CRON_MC_GRACE_PERIOD =\n"), "MC_GRACE: a period of nothing"),
    "a mode that is none": ("cron", added("STARTD_CRON_MC_GRACE_MODE = Often\n"), "no mode often"),
    "a prefix": ("cron", added("STARTD_CRON_MC_GRACE_PREFIX = t1_\n"), "prefix"),
    "a program without a path": (
        "cron",
        added("STARTD_CRON_MC_GRACE_EXECUTABLE = mc_grace.py\n"),
        "whole path",
    ),
    "no program": ("cron", added("STARTD_CRON_MC_GRACE_EXECUTABLE =\n"), "no program"),
    "silent failures": ("cron", added("STARTD_CRON_LOG_NON_ZERO_EXIT = 0\n"), "thrown away"),
    "a job off the list": (
        "cron",
        replaced(EXECUTE, "SHARECTL_CRON_JOBS = JOB_CTL MC_GRACE", "SHARECTL_CRON_JOBS = JOB_CTL"),
        "MC_GRACE never runs",
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
    "a list replaced after our file": ("replaced", added("STARTD_ATTRS = Rack\nRack = 7\n"), f"{EXECUTE}:"),
    "START replaced after our file": ("replaced", added("START = True\n"), f"{EXECUTE}:"),
    "a misspelt knob": ("knobs", added("SHARECTL_GRACE_SECOND = 60\n"), "write SHARECTL_GRACE_SECONDS"),
    "a boolean that is none": ("knobs", added("SHARECTL_ENABLED = no\n"), "write True or False"),
    "a size of one": ("knobs", added("SHARECTL_MULTICORE_CORES = 1\n"), "whole number from 2"),
    "a time that is none": ("knobs", added("SHARECTL_GRACE_SECONDS = 8m\n"), "whole number from 0"),
    "staleness before the next run": (
        "knobs",
        added("SHARECTL_JOB_CTL_STALE_SECONDS = 60\n"),
        "no longer than",
    ),
    "groups to choose from": (
        "groups",
        replaced(ACCESS, "  use FEATURE : AssignAccountingGroup($(SHARECTL_GROUP_MAP))\n", ""),
        "choose their group",
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
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_copy_is_found(fault: str, folder: Path) -> None:
    name, change, said = BROKEN[fault]
    change(folder)
    of_check = [finding for finding in found(folder) if finding.check == name]
    assert any(said in str(finding) for finding in of_check), [str(finding) for finding in found(folder)]


def test_every_check_has_a_broken_copy() -> None:
    assert {name for name, _, _ in BROKEN.values()} == {name for name, _, _ in CHECKS}


def test_a_finding_names_the_line(folder: Path) -> None:
    replaced(EXECUTE, "(MY.MC_GRACE &&", "(MC_GRACE &&")(folder)
    scope = next(finding for finding in found(folder) if finding.check == "scope")
    assert scope.place == f"{folder / EXECUTE}:{line_of(folder / EXECUTE, 't1_grace')}"


def test_the_command_prints_what_it_finds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "snippets", str(folder)]) == 0
    clean = capsys.readouterr().out
    added("START = True\n")(folder)
    assert main(["check", "snippets", "--json", str(folder)]) == 1
    broken = json.loads(capsys.readouterr().out)
    assert "nothing found" in clean
    assert "STARTD_CRON_JOBLIST = JOB_CTL MC_GRACE" in clean
    assert broken["made"]["START"] == "True"
    assert {finding["check"] for finding in broken["findings"]} == {"replaced", "clauses"}


def test_a_machine_with_a_configuration_is_checked_with_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    local = tmp_path / "condor_config"
    local.write_text(
        "USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\nSTART = NODE_OK\nSTARTD_ATTRS = NODE_OK\nNODE_OK = True\n"
    )
    monkeypatch.setenv("CONDOR_CONFIG", str(local))
    assert main(["check", "snippets", "--with-local", str(folder), "--json"]) == 1
    with_local = json.loads(capsys.readouterr().out)
    assert with_local["made"]["START"].startswith("(NODE_OK) && (")
    assert {finding["check"] for finding in with_local["findings"]} == {
        "cron",
        "groups",
    }  # nothing is installed
    assert main(["check", "snippets", "--json"]) == 1
    alone = json.loads(capsys.readouterr().out)
    assert [finding["place"] for finding in alone["findings"]] == [f"{local}:3"]


def test_a_folder_that_is_not_there_is_an_input_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "snippets", str(tmp_path / "nowhere")]) == 65
    assert "nowhere" in capsys.readouterr().err


def test_central_manager_example_is_what_render_prints(capsys: pytest.CaptureFixture[str]) -> None:
    config = Path(__file__).parents[1] / "golden" / "seed-nodes" / "sharectl.yaml"
    assert main(["render", "central-manager", "--config", str(config)]) == 0
    example = SNIPPETS / "examples" / "60-sharectl-central-manager.conf"
    assert capsys.readouterr().out == example.read_text()


JOBS = {"job_ctl.py": job_ctl, "mc_grace.py": mc_grace}


@pytest.mark.parametrize("job", ["JOB_CTL", "MC_GRACE"])
def test_the_jobs_take_the_options_that_the_snippet_gives_them(job: str, folder: Path) -> None:
    names = [f"STARTD_CRON_{job}_{knob}" for knob in ("EXECUTABLE", "ARGS")]
    program, options = expand(Source(folder), names).values()
    values, problems = JOBS[Path(program).name].parse_arguments(options.split())
    assert not problems
    defaults = {option: row[0] for option, row in JOBS[Path(program).name].OPTIONS.items()}
    # What the snippet says and what the program does by itself are the same, but for the place of its state.
    assert {**values, "--state": ""} == {**defaults, "--state": ""}


@pytest.mark.parametrize("program", JOBS)
def test_the_checks_know_what_the_jobs_publish(program: str) -> None:
    module = JOBS[program]
    assert set(PUBLISHED[program]) == {*module.FAIL_SAFE, module.REASON, module.TIME}
