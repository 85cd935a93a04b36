"""Maps of users to groups: those of a folder are read, as HTCondor's own reader reads them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

import pytest

from poolbox import Box, BoxSpec
from sharectl.check.findings import Finding
from sharectl.check.snippets import check
from sharectl.condor.configuration import ConfigSource
from tests.pool.deployed import CHECKOUT, configure, reads
from tests.pool.test_access_point import GUARDED, submitted

SNIPPET = CHECKOUT / "config.d" / "60-sharectl-access-point.conf"
SPEC = BoxSpec.of_equal_nodes(1, access_points=(GUARDED,))
BOTH = {"alice": "cms", "bob": "atlas"}
MAPS: Mapping[str, tuple[bytes, dict[str, str], tuple[str, ...]]] = {
    # Name: content, users whom HTCondor lets submit and their groups, parts of findings.
    "lf": (b"* alice cms\n* bob atlas,cms\n", BOTH, ()),
    "crlf": (b"# x\r\n\r\n* alice cms\r\n* bob atlas,cms\r\n", BOTH, ()),
    "quotes-crlf": (b'* "alice" "cms"\r\n* bob "atlas, cms"\r\n', BOTH, ()),
    "no-end": (b"* alice cms\n* bob atlas,cms", BOTH, ()),
    "tabs": (b"*\talice\tcms\n\t* bob\tatlas\n", BOTH, ()),
    "remark": (b"* alice cms # his\n  # no rule\n* bob atlas\n", BOTH, ()),
    "pattern": (b"* /^al.*$/ cms\r\n* /^BOB$/i atlas\r\n", BOTH, ()),
    "capitals": (b"* Alice cms\n* bob ATLAS\n", {"bob": "ATLAS"}, ()),
    "mark": (b"\xef\xbb\xbf# bytes before\n* alice cms\n* bob atlas\n", BOTH, ()),
    "mark-rule": (b"\xef\xbb\xbf* alice cms\n* bob atlas\n", {"bob": "atlas"}, (":1: '\\ufeff*",)),
    "two-columns": (b"alice cms\nbob atlas\n", {}, (":1: 'alice cms'", ":2:", "refuses every job")),
    "two-crlf": (b"alice cms\r\nbob atlas\r\n", {}, (":1:", ":2:", "refuses every job")),
    "broken": (b"* /(al/ cms\n* bob atlas\n", {"bob": "atlas"}, ()),
    "late": (
        b"* /^a/ lhcb\n* alice cms\n* bob atlas\n",
        {"alice": "lhcb", "bob": "atlas"},
        (),
    ),
    "remark-glued": (
        b"* alice cms# x\n* bob atlas\n",
        {"alice": "cms#", "bob": "atlas"},
        (":1: 'cms#', 'x'",),
    ),
}  # fmt: skip


def folder(tmp_path: Path, named: Optional[Path]) -> Path:
    """Folder of an access point, with a file that names a map before the snippet."""
    snippets = tmp_path / "config.d"
    snippets.mkdir()
    shutil.copy(SNIPPET, snippets)
    if named is not None:
        (snippets / "40-map.conf").write_text(f"SHARECTL_GROUP_MAP = {named}\n")
    return snippets


def findings(snippets: Path, local: Optional[Path] = None) -> list[Finding]:
    every = check(ConfigSource(snippets, local), {}).findings
    return [finding for finding in every if finding.id in ("groups", "syntax")]


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("on_machine", [False, True], ids=["folder", "with-local"])
def test_a_map_that_a_file_of_the_folder_names_is_read(
    name: str, *, on_machine: bool, tmp_path: Path
) -> None:
    content, _, faults = MAPS[name]
    path = tmp_path / "more.map"
    path.write_text("* alice cms\n")
    path = tmp_path / "groups.map"
    path.write_bytes(content)
    local = tmp_path / "condor_config"
    local.write_text("USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\n")
    seen = [str(row) for row in findings(folder(tmp_path, path), local if on_machine else None)]
    assert len(seen) == len(faults), seen
    assert [fault for fault, row in zip(faults, seen) if fault not in row] == [], seen
    assert [row for row in seen if not row.startswith(str(path))] == []


@pytest.mark.pool
@pytest.mark.semantics
def test_htcondor_takes_of_each_map_what_the_check_says(pool: Box) -> None:
    groups: dict[str, dict[str, str]] = {}
    for name, (content, _, _) in MAPS.items():
        (pool.shared_directory / f"{name}.map").write_bytes(content)
        path = f"$(LOCAL_DIR)/../../shared/{name}.map"
        configure(pool, GUARDED, f"SHARECTL_GROUP_MAP = {path}\ninclude : {SNIPPET}\n")
        reads(pool, GUARDED, "SHARECTL_GROUP_MAP", f"/{name}.map")
        answers = {user: submitted(pool, user) for user in BOTH}
        groups[name] = {
            user: answer["job"]["AcctGroup"] for user, answer in answers.items() if "job" in answer
        }
    assert groups == {name: users for name, (_, users, _) in MAPS.items()}
