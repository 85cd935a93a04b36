"""Faults of an access point's map of users to groups that `sharectl check snippets` finds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.check.findings import Finding, Level
from sharectl.check.snippet_rules import MOST_SHOWN
from sharectl.check.snippets import check
from sharectl.condor.configuration import ConfigSource

SNIPPETS = Path(__file__).parents[2] / "config.d"


def checked(tmp_path: Path, text: str = "") -> list[Finding]:
    """Findings of ``groups`` on an access point with that map."""
    snippets = tmp_path / "config.d"
    snippets.mkdir()
    shutil.copy(SNIPPETS / "60-sharectl-access-point.conf", snippets)
    path = tmp_path / "groups.map"
    if not path.exists():
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    local = tmp_path / "condor_config"
    local.write_text(f"USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\nSHARECTL_GROUP_MAP = {path}\n")
    found = check(ConfigSource(snippets, local), {}).findings
    assert not [finding for finding in found if finding.id == "syntax"]
    return [finding for finding in found if finding.id == "groups"]


SOUND = """\
# * is always the first field
  # blanks before a remark

* alice cms
*\tbob   "atlas, cms.analysis"   # his default first
"*" "carol" CMS
* /^cms\\/(plt|x)[0-9]+$/iU "cms.pilot"
* /^(atlas|alice)\\d+$/ \\1
* "d\\"e" cms
"""


EXAMPLE = (SNIPPETS / "examples" / "accounting-groups.map").read_text()


@pytest.mark.parametrize("text", [SOUND, EXAMPLE])
def test_what_htcondor_can_use_has_no_fault(text: str, tmp_path: Path) -> None:
    assert checked(tmp_path, text) == []


LINES = (
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


def test_lines_without_use_are_found_and_worded_as_listed(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    listed = []
    for number, line in enumerate(LINES):
        (folder := tmp_path / str(number)).mkdir()
        (finding,) = checked(folder, f"* zoe cms\n{line}\n")
        assert (finding.place, finding.level) == (f"{folder / 'groups.map'}:2", Level.ERROR)
        listed.append(str(finding).replace(f"{folder}/", ""))
    golden("check/group_map.txt", "\n".join((*listed, "")))


def test_a_map_of_faults_only_is_told_in_short(tmp_path: Path) -> None:
    *_, more, _ = findings = checked(tmp_path, "x\n" * 30_000)
    assert len(findings) == MOST_SHOWN + 2
    assert "faults that are not shown: 29990" in more.fault


def test_a_folder_is_no_map(tmp_path: Path) -> None:
    (tmp_path / "groups.map").mkdir()
    assert "no regular file" in checked(tmp_path)[0].fault
