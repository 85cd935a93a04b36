"""`sharectl check snippets`: our snippets pass, and each check finds the faults it is for."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Optional

import pytest

import job_ctl
import mc_grace
import target
from sharectl.check.findings import Finding, Level
from sharectl.check.snippet_rules import PUBLISHED
from sharectl.check.snippets import check
from sharectl.cli.main import main
from sharectl.condor.configuration import ConfigSource, expand
from sharectl.condor.library import CondorProcess

SNIPPETS = Path(__file__).parents[2] / "config.d"
EXECUTE, ACCESS = "60-sharectl-execute-point.conf", "60-sharectl-access-point.conf"
DEFRAG = "60-sharectl-defrag.conf"
MAP, LATER = "50-map.conf", "99-local.conf"
CRON = "SHARECTL_ACTUATION = cron\n"
BOTH_WAYS = pytest.mark.parametrize("way", ["", CRON], ids=["live", "cron"])
FAULTS = dict(
    part.partition("\n")[::2]
    for part in (Path(__file__).with_name("broken_snippets.txt").read_text().split("\n## ")[1:])
)
"""Check and fault → lines that make it."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Our snippets, to be broken."""
    return copied(tmp_path)


def copied(root: Path) -> Path:
    """Copy of our snippets, with a map of groups."""
    folder = shutil.copytree(SNIPPETS, root / "config.d")
    path = SNIPPETS / "examples" / "accounting-groups.map"
    add(folder, f"SHARECTL_GROUP_MAP = {path}\n", MAP)
    return folder


def add(folder: Path, text: str, name: str = LATER) -> None:
    (folder / name).write_text(text)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path.name}"
    path.write_text(text.replace(old, new))


def break_copy(folder: Path, lines: str) -> None:
    """Make a fault of broken_snippets.txt in a copy of our snippets."""
    first, *files = re.split(r"^> ", lines, flags=re.MULTILINE)
    old, new = (
        "\n".join(line[2:] for line in first.splitlines() if line.startswith(sign)) for sign in "-+"
    )
    if old:
        replace(folder / EXECUTE, old, new)
    for file in files:
        name, _, text = file.partition("\n")
        add(folder, f"{text}\n", name)


def machine(folder: Path, text: str = "") -> ConfigSource:
    """Source of a machine with that configuration, and our snippets on top of it."""
    local = folder.parent / "condor_config"
    local.write_text(f"USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\n{text}")
    return ConfigSource(folder, local)


def found(folder: Path, site_attributes: Mapping[str, str] | None = None) -> list[Finding]:
    return list(check(ConfigSource(folder), site_attributes or {}).findings)


def expanded(folder: Path, macros: list[str]) -> dict[str, str]:
    with CondorProcess() as process:
        return expand(ConfigSource(folder), macros, process)


SITE = """
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


@BOTH_WAYS
@pytest.mark.parametrize(
    ("site", "local"),
    [
        ("", ""),
        ("", f"include : {SNIPPETS / EXECUTE}\nSHARECTL_GRACE_SECONDS = 0\n"),
        (
            "SHARECTL_SOURCE_OPTIONS = --pool T1 --identity sharectl@example.org\n",
            "SHARECTL_SOURCE = file:/a/b.txt,collector:cm.example.org:9618\n",
        ),
        (
            "SHARECTL_SOURCE_OPTIONS = --key-file /keys\nSHARECTL_DISABLED_FILE = /run/off\n",
            "SHARECTL_SOURCE = https://cm.example.org:8443/t.txt\n",
        ),
        (SITE, "SLOT_TYPE_1_START = $(START) && TARGET.RequestCpus < 9\n"),
    ],
)
def test_our_snippets_beside_a_sites_own_have_no_fault(
    folder: Path, way: str, site: str, local: str
) -> None:
    add(folder, site, "20-site.conf" if site == SITE else "98-site.conf")
    add(folder, way + local)
    assert found(folder, {"NODE_IS_HEALTHY": "True"}) == []


@pytest.mark.parametrize(
    "path", sorted((SNIPPETS / "examples").glob("*.conf")), ids=lambda p: p.name
)
def test_each_example_has_no_fault_beside_our_snippets(path: Path, folder: Path) -> None:
    """Nodes publish SlotAdmits, which another example sets."""
    shutil.copy(path, folder)
    assert found(folder, {"SlotAdmits": "True"}) == []


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
    add(folder, site, "20-site.conf")
    add(folder, way)
    report = check(ConfigSource(folder), {})
    assert report.findings == ()
    assert report.made["START"].startswith("(TARGET.JobUniverse == 5) && (MY.t1_GraceAdmits")
    assert "//" not in report.made["CLAIM_WORKLIFE"]


def test_each_fault_is_found_and_worded_as_listed(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    """All findings are listed: the situation among them in which a trial fails."""
    missed, lines = [], []
    for number, (title, fault) in enumerate(FAULTS.items()):
        root = tmp_path / str(number)
        copy = copied(root)
        check_id, _, name = title.partition(": ")
        if check_id == "groups":
            (copy / MAP).unlink()
        break_copy(copy, fault)
        seen = found(copy)
        missed += [] if check_id in {finding.id for finding in seen} else [title]
        lines += [f"> {name}", *(str(finding).replace(f"{root}/", "") for finding in seen)]
    assert missed == []
    golden("check/snippets.txt", "\n".join((*lines, "")))


def test_the_command_prints_what_it_finds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "snippets", str(folder)]) == 0
    clean = capsys.readouterr().out
    add(folder, "START = True\n")
    assert main(["check", "snippets", "--json", str(folder)]) == 1
    broken = json.loads(capsys.readouterr().out)
    assert "nothing found" in clean
    assert "STARTD_CRON_JOBLIST = JOB_CTL SHARECTL_OFF\n" in clean
    assert "SHARECTL_ACTUATION = live\n" in clean
    assert broken["made"]["START"] == "True"
    assert {finding["id"] for finding in broken["findings"]} == {"replaced", "clauses"}


def test_a_machine_with_a_configuration_is_checked_with_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / MAP).unlink()
    local = machine(folder, "START = NODE_OK\nSTARTD_ATTRS = NODE_OK\nNODE_OK = True\n").main_file
    monkeypatch.setenv("CONDOR_CONFIG", str(local))
    assert local is not None
    assert main(["check", "snippets", "--json"]) == 1
    alone = json.loads(capsys.readouterr().out)
    assert [(finding["id"], finding["place"]) for finding in alone["findings"]] == [
        ("file names", str(local)),
        ("scope", f"{local}:3"),
    ]
    local.write_text(f"{local.read_text()}LOCAL_CONFIG_DIR = {folder}\n")
    assert main(["check", "snippets", "--json"]) == 1
    together = json.loads(capsys.readouterr().out)
    assert together["made"]["START"].startswith("(NODE_OK) && (")
    # Nothing is installed.
    assert {finding["id"] for finding in together["findings"]} == {"cron", "groups", "scope"}


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
    (folder / MAP).unlink()
    (tmp_path / "groups.map").write_text("* alice cms\n")
    findings = check(machine(folder, named.format(folder=tmp_path)), {}).findings
    levels = [finding.level for finding in findings if finding.id == "groups"]
    assert levels == ([] if level is None else [level])


SOUND_MAP = """\
# * is always the first field
  # blanks before a remark

*\tbob   "atlas, cms.analysis"   # his default first
"*" "carol" CMS
* /^cms\\/(plt|x)[0-9]+$/iU "cms.pilot"
* /^(atlas|alice)\\d+$/ \\1
* "d\\"e" cms
"""
LINES_WITHOUT_USE = (
    "alice cms",
    "* alice",
    "CLAIMTOBE alice cms",
    "* /^cms cms",
    "\ufeff* alice cms",
    "* pool cms, atlas",
    "* dave cms;atlas",
    "* dave ,",
    "* dave c\udcffms",
)


def of_map(folder: Path, text: str) -> list[Finding]:
    """Findings on our snippets with that map of groups."""
    path = folder.parent / "groups.map"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    add(folder, f"SHARECTL_GROUP_MAP = {path}\n", MAP)
    return found(folder)


def test_lines_of_a_map_without_use_are_found_and_worded_as_listed(
    folder: Path, golden: Callable[[str, str], None]
) -> None:
    listed = []
    for line in LINES_WITHOUT_USE:
        (finding,) = of_map(folder, f"* zoe cms\n{line}\n{SOUND_MAP}")
        assert (finding.id, finding.level) == ("groups", Level.ERROR)
        listed.append(str(finding).replace(f"{folder.parent}/", ""))
    golden("check/group_map.txt", "\n".join((*listed, "")))


@pytest.mark.parametrize("writable", ["file", "folder"])
def test_targets_that_anybody_can_write_had_better_be_signed(
    writable: str, folder: Path, tmp_path: Path
) -> None:
    (shared := tmp_path / "shared").mkdir()
    (shared / "sharectl.txt").touch()
    (shared if writable == "folder" else shared / "sharectl.txt").chmod(0o777)
    add(
        folder,
        f"SHARECTL_SOURCE = file:{shared}/sharectl.txt,https://cm.example.org/sharectl.txt\n",
    )
    assert [(f.id, f.level) for f in found(folder)] == [("sources", Level.ADVICE)] * 2
    add(folder, "SHARECTL_SOURCE_OPTIONS = --key-file /etc/sharectl/keys\n", "98-key.conf")
    assert found(folder) == []


def test_a_folder_without_our_files_is_found(tmp_path: Path) -> None:
    add(tmp_path, "STARTD_ATTRS = $(STARTD_ATTRS) Rack\nRack = 7\n")
    assert [(f.id, f.place) for f in found(tmp_path)] == [("file names", str(tmp_path))]


def test_quotas_of_the_example_for_central_managers_are_shares_of_all() -> None:
    text = (SNIPPETS / "examples" / "60-sharectl-central-manager.conf").read_text()
    quotas = re.findall(r"^GROUP_QUOTA_DYNAMIC_\w+ = ([0-9.]+)$", text, re.MULTILINE)
    assert sum(map(Decimal, quotas)) == 1


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
