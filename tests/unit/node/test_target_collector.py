"""target_collector.py: whose ad counts, and which."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import target_collector
from tests.node_fakes import NOW, ad_line, shell_tool, tool_that_prints

PROGRAM = Path(target_collector.__file__)
SENDER = "condor@pool.example.org"
ORDER = ("cn-1", "alice", 56, "cms", 8)


class Outcome:
    """What a run left behind."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, _, self.content = done.stdout.partition("\n")
        self.errors = done.stderr
        assert done.returncode == target_collector.REASONS[self.code][0]
        assert "Traceback" not in self.errors
        assert (self.code == "ok") == bool(self.content)


def asked(tool: str, *options: str) -> Outcome:
    """Run the program as target.py does."""
    argv = ["--condor-status", tool, "--identity", SENDER, "--host", "cn-1.example.org", *options]
    command = [sys.executable, "-I", "-S", str(PROGRAM), *argv]
    return Outcome(subprocess.run(command, capture_output=True, text=True, check=False, timeout=60))


def answered(folder: Path, *lines: str) -> Outcome:
    """The same of a collector that has those ads."""
    return asked(tool_that_prints(folder, "".join(lines)))


def test_an_ad_becomes_a_document(tmp_path: Path) -> None:
    ran = answered(tmp_path, ad_line(SENDER, *ORDER, pool="p-1"))
    assert (ran.code, ran.errors) == ("ok", "")
    assert ran.content.splitlines() == [
        "# sharectl: 1", f"# sequence: {NOW}", f"# generated: {NOW}",
        f"# valid_until: {NOW + 1800}",
        "# groups: alice,cms", "# targets: 1", "# pool: p-1", "cn-1 alice 56 cms 8",
    ]  # fmt: skip


@pytest.mark.parametrize(("pending", "line"), [("true", "1"), ("false", "0"), ("undefined", "")])
def test_a_node_without_a_target_learns_from_the_ad_of_the_plan(
    pending: str, line: str, tmp_path: Path
) -> None:
    ran = answered(tmp_path, ad_line(SENDER, pending=pending))
    assert (ran.code, "# targets: 0\n" in ran.content) == ("ok", True)
    told = [row for row in ran.content.splitlines() if "multicore_pending" in row]
    assert told == ([f"# multicore_pending: {line}"] if line else [])


def test_of_a_target_and_the_plan_the_newest_counts_and_of_one_plan_the_target(
    tmp_path: Path,
) -> None:
    of_the_plan, target = ad_line(SENDER, pending="false"), ad_line(SENDER, *ORDER, pending="false")
    assert "cn-1 alice 56 cms 8\n" in answered(tmp_path, of_the_plan, target).content
    newer = ad_line(SENDER, sequence=NOW + 1)
    assert "# targets: 0\n" in answered(tmp_path, target, newer).content
    newer = ad_line(SENDER, *ORDER, sequence=NOW + 1)
    assert "cn-1 alice 56 cms 8\n" in answered(tmp_path, of_the_plan, newer).content


def test_a_plan_of_another_identity_is_not_believed(tmp_path: Path) -> None:
    other = ad_line("x@y", sequence=NOW + 9, pending="false")
    assert answered(tmp_path, other).code == "forged"
    assert "cn-1 alice 56 cms 8\n" in answered(tmp_path, other, ad_line(SENDER, *ORDER)).content


def test_the_newest_of_several(tmp_path: Path) -> None:
    lines = [
        ad_line(SENDER, "cn-1", "alice", cap, "cms", 8, sequence=NOW + cap) for cap in (9, 10, 8)
    ]
    assert "cn-1 alice 10 cms 8\n" in answered(tmp_path, *lines).content
    nested = ad_line(SENDER, "cn-1", "alice.user", 56, "alice.prod.mc", 8)
    assert answered(tmp_path, nested).content.endswith("\ncn-1 alice.user 56 alice.prod.mc 8\n")
    assert answered(tmp_path).code == "no-ad"


@pytest.mark.parametrize(
    "identity",
    [
        *("unauthenticated@unmapped", "alice@pool.example.org", "", r"\"x"),
        *(SENDER.upper(), f"{SENDER} ", f"x{SENDER}"),
    ],
)
def test_another_identity_is_not_believed(identity: str, tmp_path: Path) -> None:
    ran = answered(tmp_path, ad_line(identity, *ORDER, sequence=NOW + 1))
    assert (ran.code, identity.strip("\\") in ran.errors) == ("forged", True)
    ran = answered(
        tmp_path,
        ad_line(identity, "cn-1", "bob", 0, "cms", 8, sequence=NOW + 1),
        ad_line(SENDER, *ORDER),
    )
    assert "cn-1 alice 56 cms 8\n" in ran.content
    assert "bob" not in ran.content


RIGHT = ad_line(SENDER, *ORDER)


@pytest.mark.parametrize(
    "change",
    [
        ('"cn-1"', "undefined"), ('"cn-1"', '"cn-1\\n# pool: x"'), ('"cn-1"', "error"),
        (f" {NOW} ", " undefined "),
        (f" {NOW} ", f' "{NOW}" '), (f" {NOW} ", f" {NOW}.0 "), (f" {NOW} ", f" -{NOW} "),
        (f" {NOW} ", " true "),
        ("{ 56,8 }", "undefined"), ("{ 56,8 }", "{ 56 }"), ("{ 56,8 }", "{ 56,8,8 }"),
        ("{ 56,8 }", "{ -1,8 }"),
        ("{ 56,8 }", '{ "56","8" }'), ('{ "alice","cms" }', '"alice,cms"'),
        ('"alice","cms"', '"alice",1'),
        ('"alice,cms"', "undefined"), ('"alice,cms"', '"alice cms"'), (" undefined ", ' "p q" '),
        (" undefined ", " 1 "), (" undefined\n", "\n"), (" undefined\n", " undefined undefined\n"),
        (" undefined\n", " 1\n"), (" undefined\n", ' "false"\n'), (" undefined\n", " error\n"),
    ],
)  # fmt: skip
def test_what_is_not_of_its_type_is_refused(change: tuple[str, str], tmp_path: Path) -> None:
    assert change[0] in RIGHT
    assert answered(tmp_path, RIGHT.replace(*change, 1)).code == "bad-ad"
    newer = ad_line(SENDER, *ORDER, sequence=NOW + 1)
    assert answered(tmp_path, newer, RIGHT.replace(*change, 1)).code == "bad-ad"


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 1", "no-collector"), ("kill -9 $$", "no-collector"), ("yes", "no-collector"),
        ("printf x", "collector-garbled"),
        ("head -c 3000000 /dev/zero", "no-collector"), ("exec sleep 600", "timeout"),
        ("echo x; exec sleep 600", "timeout"),
        ("exec >&- sleep 600", "timeout"), ("echo x", "forged"), ("echo", "forged"),
        ("exec /nonexistent", "no-collector"),
    ],
)  # fmt: skip
def test_trouble_with_condor_status(script: str, code: str, tmp_path: Path) -> None:
    begin = time.monotonic()
    assert asked(shell_tool(tmp_path, script), "--timeout-seconds", "1").code == code
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(("address", "words"), [("", []), ("cm-2:9618", ["-pool", "cm-2:9618"])])
def test_what_is_asked(address: str, words: list[str], tmp_path: Path) -> None:
    tool = shell_tool(tmp_path, f'for word; do echo "$word"; done > {tmp_path}/words')
    assert asked(tool, "--collector", address).code == "no-ad"
    lines = (tmp_path / "words").read_text().splitlines()
    at = lines.index("-any")
    assert lines[:at] == words
    constraint = (
        'MyType == "SharectlTarget" && (t1_TargetNode == "cn-1.example.org" || '
        't1_TargetNode == "cn-1" || split(t1_TargetNode, ".")[0] == "cn-1.example.org")'
        ' || MyType == "SharectlPlan" && Name == "sharectl"'
    )
    assert lines[at + 1 : at + 4] == ["-constraint", constraint, "-af:V"]


@pytest.mark.parametrize(
    "options",
    [
        ("--host", 'x" || True || "'), ("--host", "a b"), ("--host", "n" * 254), ("--identity", ""),
        ("--collector", "-direct"), ("--collector", "a b"), ("--timeout-seconds", "0"),
        ("--nonsense", "1"),
    ],
)  # fmt: skip
def test_wrong_options(options: tuple[str, str]) -> None:
    assert asked("/nonexistent/condor_status", *options).code == "bad-arguments"


def test_the_host_name_is_this_machines_if_it_is_not_said(tmp_path: Path) -> None:
    tool = shell_tool(tmp_path, f'for word; do echo "$word"; done > {tmp_path}/words')
    assert asked(tool, "--host", "").code == "no-ad"
    assert f'"{os.uname().nodename}"' in (tmp_path / "words").read_text()
