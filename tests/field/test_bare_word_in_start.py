"""Names in START: texts that lost their quotes, and attributes that need a scope or none.

HTCondor takes a text without quotes for an attribute, which nothing has. No job can give a value to
a name that every startd publishes.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.check.findings import Finding, Level
from sharectl.check.slot_ad import every_slot_has, jobs_have, saved_ads
from sharectl.check.snippets import check
from sharectl.cli.check import attribute
from sharectl.condor.configuration import ConfigSource
from sharectl.condor.library import CondorProcess
from tests.pool.deployed import CHECKOUT, jobs, on, run

SNIPPET = CHECKOUT / "config.d/60-sharectl-execute-point.conf"
START = "START = ($(START)) && {}\n"
EITHER = "MY.{0} for the node's, TARGET.{0} for the job's"
LISTED = "STARTD_ATTRS = $(STARTD_ATTRS) Rack Site\n"


def seen(
    folder: Path, lines: str, carried: Optional[Mapping[str, str]] = None, check_id: str = "scope"
) -> list[Finding]:
    shutil.copy(SNIPPET, folder)
    (folder / "99-local.conf").write_text(lines)
    found = check(ConfigSource(folder), {"HEALTHY": "True"}, carried).findings
    return [finding for finding in found if finding.id == check_id]


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        (START.format("TARGET.Tenant == physics"), "physics"),
        (START.format("ada =!= TARGET.Owner"), "ada"),
        (f"WHO = ada\n{START.format('TARGET.Owner =!= $(WHO)')}", "ada"),
        ("STARTD." + START.format("TARGET.G =?= cms"), "cms"),
        ("SLOT_TYPE_1_" + START.format("TARGET.G =?= cms"), "cms"),
        (f'{LISTED}Rack = "a"\nSite = cern\n', "cern"),
        ("SLOT_TYPE_1_STARTD_ATTRS = Rack\nRack = r12\n", "r12"),
    ],
)
def test_a_text_without_quotes(lines: str, word: str, tmp_path: Path) -> None:
    (finding,) = seen(tmp_path, lines)
    assert finding.level is Level.ERROR
    assert finding.fault.startswith(f"{word} is not scoped")
    assert finding.remedy.endswith(f', "{word}" for a text')


@pytest.mark.parametrize(
    "clause",
    [
        'TARGET.Tenant =?= "nobody_has_this"',
        "TARGET.IsShort =!= undefined || MY.HEALTHY =?= true",
        "time() - MY.EnteredCurrentState < 1 && Activity =!= Cpus",
        'MY.Machine =!= "a =?= physics"',
        # Every startd publishes these.
        'KeyboardIdle > 900 && (Cpus - LoadAvg) > 1 && State =!= "Owner"',
        "Memory > 1",
        "CurrentTime > 0",
    ],
)
def test_texts_and_attributes_that_exist(clause: str, tmp_path: Path) -> None:
    assert seen(tmp_path, START.format(clause)) == []


@pytest.mark.parametrize(
    ("clause", "carried", "scoped"),
    [
        ('Tenant =!= "cms"', {}, f'{EITHER.format("Tenant")}, "Tenant" for a text'),
        ('Tenant =!= "cms"', {"Tenant": '"cms"'}, "TARGET.Tenant"),
        ("TARGET.Owner =!= Tenant", {"tenant": '"cms"'}, "TARGET.Tenant"),
        ("IsDesktop", {}, f'{EITHER.format("IsDesktop")}, "IsDesktop" for a text'),
        ("Owner =!= AcctGroupUser", {}, "TARGET.AcctGroupUser"),
        ("JobUniverse == 5", {}, EITHER.format("JobUniverse")),
    ],
)
def test_an_attribute_needs_its_scope(
    clause: str, carried: Mapping[str, str], scoped: str, tmp_path: Path
) -> None:
    *_, finding = sorted(seen(tmp_path, START.format(clause), carried), key=str, reverse=True)
    assert finding.remedy == f"write {scoped}"


@pytest.mark.parametrize(
    ("option", "level"),
    [('Tenant="cms"', None), ('Tenant="lhcb"', Level.ERROR), ("Tenant", Level.ADVICE)],
)
def test_typical_jobs_carry_what_the_site_says(
    option: str, level: Optional[Level], tmp_path: Path
) -> None:
    carried, start = dict([attribute(option)]), START.format('TARGET.Tenant =?= "cms"')
    trial = [finding.level for finding in seen(tmp_path, start, carried, "typical jobs")]
    assert trial == ([] if level is None else [level])
    assert seen(tmp_path, start, carried, "published") == []
    (unsaid,) = seen(tmp_path, start, {}, "typical jobs")
    assert "--carried NAME=VALUE" in unsaid.remedy


@pytest.mark.parametrize(
    ("name", "text"),
    [("Model", "Intel Xeon"), ("Path", "/cvmfs/cms"), ("Url", "http://x.org/"), ("Ip", "10.1.2.3")],
)
def test_a_published_text_that_is_no_expression(name: str, text: str, tmp_path: Path) -> None:
    lines = f"STARTD_ATTRS = $(STARTD_ATTRS) {name}\n{name} = {text}\n"
    (finding,) = seen(tmp_path, lines, check_id="expression")
    assert f"so {name} has no value" in finding.fault
    assert finding.remedy.endswith("a text needs quotes")


@pytest.mark.parametrize("option", ["JobFlavour=prod", "Site= cern.ch "])
def test_a_carried_text_without_quotes(option: str) -> None:
    name, _, value = option.partition("=")
    with pytest.raises(ValueError, match=f"write {name}='\"{value.strip()}\"'"):
        attribute(option)


@pytest.mark.parametrize(
    "lines",
    [
        "use POLICY : DESKTOP\n",
        "START = (LoadAvg - CondorLoadAvg) <= 0.3 && ConsoleIdle > 3600\n",
        "START = MY.ClockMin < 200 || MY.ClockMin > 1300\n",
        "START = MY.ClockDay == 0 && MY.ClockMin >= 120 && MY.ClockMin < 180\n",
    ],
)
def test_an_idle_machine_at_an_hour_of_its_window(lines: str, tmp_path: Path) -> None:
    (tmp_path / "10-site.conf").write_text(lines)
    assert seen(tmp_path, "", check_id="typical jobs") == []
    (closed,) = seen(tmp_path, START.format("MY.ClockMin > 1440"), check_id="typical jobs")
    assert closed.fault.startswith("START keeps out every typical job")


# ---- names that every startd publishes

ACCESS = "ap-1.example.org"
SPEC = BoxSpec(
    (
        ExecutePoint("wn-001.example.org", 8, config="START = Cpus > 100\n"),
        ExecutePoint("wn-002.example.org", 8, config="START = HasDocker =?= 7\n"),
    ),
    access_points=(ACCESS,),
)


@pytest.mark.parametrize(
    "name", ["ConsoleIdle", "HasDocker", "PartitionableSlot", "TotalGPUs", "RemoteUser"]
)
def test_those_that_some_slots_have_need_one(name: str, tmp_path: Path) -> None:
    (finding,) = seen(tmp_path, START.format(f"{name} =!= 7"))
    assert f"MY.{name}" in finding.remedy


def test_a_job_cannot_set_the_current_time() -> None:
    with CondorProcess() as process:
        values = process.evaluate(["CurrentTime > 0"], [{}], [{"CurrentTime": "-5"}])
    assert values == [[[True]]]


@pytest.mark.pool
@pytest.mark.semantics
def test_the_list_is_that_of_the_startd_and_a_job_cannot_forge_them(pool: Box) -> None:
    forged = jobs("cms", 1, 1, 600, "+Cpus = 1000", "+HasDocker = 7")
    running = pool.submit(forged, ACCESS)
    other = jobs("cms", 1, 1, 600, "+Cpus = 1000", on("wn-001.example.org"))
    waiting = pool.submit(other, ACCESS)
    run(pool, 1)

    def names(*command: str, host: str | None = None) -> list[set[str]]:
        text = pool.run([*command], host=host).stdout
        ads = [part for part in re.split(r"\n\s*\n", text) if " = " in part]
        return [set(re.findall(r"^(\w+) = ", ad, re.MULTILINE)) for ad in ads]

    status = ("condor_status", "-long")
    pool.wait_until(lambda: len(names(*status)) == 3, "the collector has the dynamic slot")
    every = [name for name in saved_ads()[0] if every_slot_has(name)]
    assert len(every) > 50
    for ad in [*names(*status), *names(*status, "-direct", "wn-001.example.org")]:
        assert [name for name in every if name not in ad] == []
    both = names("condor_q", "-allusers", "-long", str(running), str(waiting), host=ACCESS)
    own = {"HasDocker", "Cpus"}
    assert len(both) == 2
    assert sorted(name for ad in both for name in ad - own if not jobs_have(name)) == []
    assert [job["ClusterId"] for job in pool.jobs("JobStatus == 2")] == [running]
