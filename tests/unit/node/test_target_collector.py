"""target_collector.py: whose ad counts, and which."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Callable, NamedTuple

import pytest

import target_collector
from tests.node_fakes import NOW, ad_line, shell_tool, tool_that_prints

SENDER = "condor@pool.example.org"
ORDER = ("cn-1", "alice", 56, "cms", 8)
RIGHT = ad_line(SENDER, *ORDER)
LINE = "cn-1 alice 56 cms 8\n"


class Outcome(NamedTuple):
    """Code, document and standard error of a run."""

    code: str
    content: str
    errors: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the program with that condor_status."""

    def run(tool: str, *options: str) -> Outcome:
        argv = ["--condor-status", tool, "--identity", SENDER, "--host", "cn-1.example.org"]
        status = target_collector.main([*argv, *options])
        printed = capfd.readouterr()
        code, _, content = printed.out.partition("\n")
        assert status == target_collector.REASONS[code][0]
        assert (code == "ok") == bool(content)
        return Outcome(code, content, printed.err)

    return run


@pytest.fixture
def answered(run: Run, tmp_path: Path) -> Run:
    """Run it for a collector that has those ads."""
    return lambda *lines: run(tool_that_prints(tmp_path, "".join(lines)))


def test_an_ad_becomes_a_document(answered: Run) -> None:
    code, content, errors = answered(ad_line(SENDER, *ORDER, pool="p-1"))
    assert (code, errors) == ("ok", "")
    assert content.splitlines() == [
        "# sharectl: 1", f"# sequence: {NOW}", f"# generated: {NOW}",
        f"# valid_until: {NOW + 1800}", "# groups: alice,cms", "# targets: 1", "# pool: p-1",
        LINE.strip(),
    ]  # fmt: skip
    nested = ad_line(SENDER, "cn-1", "alice.user", 56, "alice.prod.mc", 8)
    assert answered(nested).content.endswith("\ncn-1 alice.user 56 alice.prod.mc 8\n")


@pytest.mark.parametrize(("pending", "line"), [("true", "1"), ("false", "0"), ("undefined", "")])
def test_a_node_without_a_target_learns_from_the_ad_of_the_plan(
    pending: str, line: str, answered: Run
) -> None:
    content = answered(ad_line(SENDER, pending=pending)).content
    assert "# targets: 0\n" in content
    rows = [row for row in content.splitlines() if "multicore_pending" in row]
    assert rows == ([f"# multicore_pending: {line}"] if line else [])


def test_the_newest_ad_counts_and_within_a_plan_the_target(answered: Run) -> None:
    assert answered().code == "no-ad"
    plan, newer_plan = (ad_line(SENDER, sequence=NOW + n, pending="false") for n in (0, 1))
    newer = ad_line(SENDER, *ORDER, sequence=NOW + 1)
    assert LINE in answered(plan, RIGHT).content
    assert LINE in answered(plan, newer).content
    assert "# targets: 0\n" in answered(RIGHT, newer_plan).content
    caps = [ad_line(SENDER, "cn-1", "alice", n, "cms", 8, sequence=NOW + n) for n in (9, 10, 8)]
    assert "cn-1 alice 10 cms 8\n" in answered(*caps).content


@pytest.mark.parametrize(
    "identity",
    [
        *("unauthenticated@unmapped", "alice@pool.example.org", "", r"\"x"),
        *(SENDER.upper(), f"{SENDER} ", f"x{SENDER}"),
    ],
)
def test_another_identity_is_not_believed(identity: str, answered: Run) -> None:
    target = ad_line(identity, "cn-1", "bob", 0, "cms", 8, sequence=NOW + 1)
    plan = ad_line(identity, sequence=NOW + 9, pending="false")
    for other in (target, plan):
        code, _, errors = answered(other)
        assert (code, identity.strip("\\") in errors) == ("forged", True)
    content = answered(target, plan, RIGHT).content
    assert (LINE in content, "bob" in content) == (True, False)


@pytest.mark.parametrize(
    "change",
    [
        ('"cn-1"', "undefined"), ('"cn-1"', '"cn-1\\n# pool: x"'), ('"cn-1"', "error"),
        *((f" {NOW} ", word) for word in (" undefined ", f' "{NOW}" ', f" {NOW}.0 ", " true ")),
        (f" {NOW} ", f" -{NOW} "), ("{ 56,8 }", "undefined"), ("{ 56,8 }", "{ 56 }"),
        ("{ 56,8 }", "{ 56,8,8 }"), ("{ 56,8 }", "{ -1,8 }"), ("{ 56,8 }", '{ "56","8" }'),
        ('{ "alice","cms" }', '"alice,cms"'), ('"alice","cms"', '"alice",1'),
        ('"alice,cms"', "undefined"), ('"alice,cms"', '"alice cms"'), (" undefined ", ' "p q" '),
        (" undefined ", " 1 "), (" undefined\n", "\n"), (" undefined\n", " undefined undefined\n"),
        (" undefined\n", " 1\n"), (" undefined\n", ' "false"\n'), (" undefined\n", " error\n"),
    ],
)  # fmt: skip
def test_a_wrong_type_refuses_all_ads(change: tuple[str, str], answered: Run) -> None:
    assert change[0] in RIGHT
    newer = ad_line(SENDER, *ORDER, sequence=NOW + 1)
    assert answered(newer, RIGHT.replace(*change, 1)).code == "bad-ad"


@pytest.mark.parametrize(
    ("script", "code"),
    [
        *((script, "no-collector") for script in ("exit 1", "kill -9 $$", "yes", "exec /missing")),
        ("head -c 3000000 /dev/zero", "no-collector"), ("printf x", "collector-garbled"),
        ("exec sleep 600", "timeout"), ("echo x; exec sleep 600", "timeout"),
        ("exec >&- sleep 600", "timeout"), ("echo x", "forged"), ("echo", "forged"),
    ],
)  # fmt: skip
def test_trouble_with_condor_status(script: str, code: str, tmp_path: Path, run: Run) -> None:
    begin = time.monotonic()
    seconds = "1" if code == "timeout" else "60"
    assert run(shell_tool(tmp_path, script), "--timeout-seconds", seconds).code == code
    assert time.monotonic() - begin < 30


def test_the_question_to_the_collector(tmp_path: Path, run: Run) -> None:
    tool = shell_tool(tmp_path, f'for word; do echo "$word"; done > {tmp_path}/words')
    constraint = (
        'MyType == "SharectlTarget" && (t1_TargetNode == "cn-1.example.org" || '
        't1_TargetNode == "cn-1" || split(t1_TargetNode, ".")[0] == "cn-1.example.org")'
        ' || MyType == "SharectlPlan" && Name == "sharectl"'
    )
    for address, words in (("", []), ("cm-2:9618", ["-pool", "cm-2:9618"])):
        assert run(tool, "--collector", address).code == "no-ad"
        lines = (tmp_path / "words").read_text().splitlines()
        expected = [*words, "-any", "-constraint", constraint, "-af:V"]
        assert lines[: len(expected)] == expected
    assert run(tool, "--host", "").code == "no-ad"
    assert f'"{os.uname().nodename}"' in (tmp_path / "words").read_text()


@pytest.mark.parametrize(
    "options",
    [
        ("--host", 'x" || True || "'), ("--host", "a b"), ("--host", "n" * 254), ("--identity", ""),
        ("--collector", "-direct"), ("--collector", "a b"), ("--timeout-seconds", "0"),
        ("--nonsense", "1"),
    ],
)  # fmt: skip
def test_wrong_options(options: tuple[str, str], run: Run) -> None:
    assert run("/nonexistent/condor_status", *options).code == "bad-arguments"
