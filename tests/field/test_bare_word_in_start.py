"""A text that lost its quotes in START: HTCondor takes it for an attribute, which nothing has."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

import pytest

from sharectl.check.findings import Finding, Level
from sharectl.check.snippets import check
from sharectl.cli.check import attribute
from sharectl.condor.configuration import ConfigSource

SNIPPET = Path(__file__).parents[2] / "config.d/60-sharectl-execute-point.conf"
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
