"""`sharectl consumption check`: correct policies pass, and each check finds its faults."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.check.consumption import check, check_text
from sharectl.check.findings import Level
from sharectl.cli.main import main
from sharectl.errors import InputError

TESTS = Path(__file__).parents[1]
CORRECT = [
    *sorted((TESTS / "contract" / "consumption_correct").glob("*.conf")),
    *sorted((TESTS / "golden" / "consumption").glob("*.conf")),
    *sorted((TESTS.parent / "config.d" / "examples").glob("70-consumption-*.conf")),
]
ADVICE_ON_CORRECT = {
    # As HTCondor's authors published it: 1 before the match and 1 after it.
    "seed-static-slot": ["weight"]
}
GOOD = "CONSUMPTION_POLICY = True\n"
GOOD += "".join(
    f"CONSUMPTION_{asset.upper()} = ifThenElse((TARGET.Request{asset} ?: 0) >= 0, "
    f"quantize(TARGET.Request{asset}, {{{step}}}), -1)\n"
    for asset, step in (("Cpus", 1), ("Memory", 128), ("Disk", 1024))
)
GOOD += "CLAIM_PARTITIONABLE_LEFTOVERS = False\nSLOT_WEIGHT = Cpus\n"
LINE = GOOD.count("\n") + 1
TYPE_1 = "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = True\n"
TWO_TYPES = "".join(f"NUM_SLOTS_TYPE_{n} = 1\nSLOT_TYPE_{n}_PARTITIONABLE = True\n" for n in (1, 2))
DUMP = "# Configuration from machine: wn-1\nNUM_CPUS = 8\n # at: /etc/a, line 1\nMEMORY = 65536\n"
WEIGHED = "SLOT_WEIGHT = min({floor(MY.Cpus / 1.0), floor(MY.Memory / 1024.0)})\n"

LISTED = string.Template(Path(__file__).with_name("broken_policies.txt").read_text())
TYPES = {"ONE_TYPE": TYPE_1.strip(), "TWO_TYPES": TWO_TYPES.strip()}
CASES = [
    (Level(level), name, lines)
    for part in LISTED.safe_substitute(TYPES).split("\n## ")[1:]
    for title, _, lines in [part.rstrip("\n").partition("\n")]
    for level, _, name in [title.partition(": ")]
]
"""Level, check, and lines that break the good configuration for it."""


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.stem)
def test_policies_that_work_have_no_error(path: Path) -> None:
    """Policies of HTCondor's authors, of admins, and those that are rendered."""
    expected = [(name, "advice") for name in ADVICE_ON_CORRECT.get(path.stem, [])]
    assert [(finding.id, finding.level.value) for finding in check(path)[0]] == expected


OF_TYPE = TYPE_1 + GOOD.replace("CONSUMPTION_", "SLOT_TYPE_1_CONSUMPTION_")
ACCESS_POINT = "# Configuration from machine: ap-1\nDAEMON_LIST = MASTER, SCHEDD\n # at: /etc/a\n"
BROKEN, OFF = "CONSUMPTION_CPUS = (1\n", ["slot types: error"]
WITHOUT_LEFTOVERS = f"{ACCESS_POINT}CLAIM_PARTITIONABLE_LEFTOVERS = False\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, []),
        (OF_TYPE, []),
        ("START = True\n", ["policy: error"]),
        ("CLAIM_PARTITIONABLE_LEFTOVERS = False\n", []),
        (ACCESS_POINT, ["leftovers: advice"]),
        (WITHOUT_LEFTOVERS, []),
        (WITHOUT_LEFTOVERS + WEIGHED, ["access points: error"]),
        (f"{WITHOUT_LEFTOVERS}{WEIGHED}SCHEDD_SLOT_WEIGHT = RequestCpus\n", []),
        # Causes come first, and knobs of a type are one finding.
        (
            OF_TYPE.replace("_POLICY", "_POLCY"),
            ["knobs: error", "policy: error", "slot types: error"],
        ),
        (DUMP + TYPE_1 + OF_TYPE[len(TYPE_1) :].replace("TYPE_1", "TYPE_3"), ["slot types: error"]),
        (
            OF_TYPE.replace("CONSUMPTION_POLICY = True", "CONSUMPTION_POLICY = Yes"),
            ["knobs: error", "policy: error", "slot types: error"],
        ),
        (
            OF_TYPE.replace("PARTITIONABLE = True", "PARTITIONABLE = Yes"),
            ["knobs: error", "slot types: error"],
        ),
        # A policy that has no effect is not tried.
        (
            f"{OF_TYPE.replace('PARTITIONABLE = True', 'PARTITIONABLE = 0')}SLOT_TYPE_1_{BROKEN}",
            OFF,
        ),
        # The startd takes the policy of all types for an invalid one.
        (f"{TYPE_1}{GOOD}SLOT_TYPE_1_CONSUMPTION_POLICY = yes\n", ["knobs: error"]),
    ],
)
def test_findings_of_whole_configurations(text: str, expected: list[str]) -> None:
    findings = check_text("a.conf", text)
    assert [f"{finding.id}: {finding.level.value}" for finding in findings] == expected


def test_each_fault_is_found_and_worded_as_listed(golden: Callable[[str, str], None]) -> None:
    missed, lines = [], []
    for level, name, added in CASES:
        seen = check_text("a.conf", f"{GOOD}{added}\n")
        is_error = Level.ERROR in {finding.level for finding in seen}
        is_found = (name, level) in {(finding.id, finding.level) for finding in seen}
        missed += [] if is_found and is_error == (level is Level.ERROR) else [added]
        lines += ["> " + added.replace("\n", "\n> "), *map(str, seen)]
    assert missed == []
    golden("check/consumption.txt", "\n".join((*lines, "")))


@pytest.mark.parametrize(
    "added",
    [
        "CONSUMPTION_GPUS = TARGET.RequestGPUs ?: 0\nSLOT_WEIGHT = Cpus + 0 * GPUs\n",
        "use feature:GPUs\n",
        "CONSUMPTION_POLICY = 1 == 1\n",
        "CONSUMPTION_POLICY = 2\n",
        # The remedy for a policy that takes nothing.
        "CONSUMPTION_MEMORY = 0\nCONSUMPTION_DISK = 0\n",
        # A comment in another encoding.
        "# f\udcfcr gro\udcdfe Knoten\n",
        # Weights that no schedd takes.
        f"STARTD.{WEIGHED}",
        f"STARTD.{WEIGHED}SLOT_WEIGHT = Cpus\n",
        f"{TYPE_1}SLOT_TYPE_1_{WEIGHED}",
        f"{WEIGHED}SCHEDD_SLOT_WEIGHT = RequestCpus\n",
        f"{WEIGHED}SCHEDD_USE_SLOT_WEIGHT = False\n",
        f"{WEIGHED}DAEMON_LIST = MASTER, STARTD\n",
        f"STARTD.{WEIGHED}DAEMON_LIST = MASTER, STARTD, SCHEDD\n",
        WEIGHED,
    ],
)
def test_what_does_no_harm_is_no_error(added: str, tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_bytes(f"{GOOD}{added}".encode("utf-8", "surrogateescape"))
    assert {finding.id for finding in check(path)[0]} <= ({"weight"} if WEIGHED in added else set())


def test_a_dump_neither_reads_files_nor_runs_commands(tmp_path: Path) -> None:
    mark, other = tmp_path / "ran", tmp_path / "other.conf"
    other.write_text("SLOT_WEIGHT = 8 / Cpus\n")
    dump = f"{DUMP}{GOOD}include : touch {mark} |\n"
    dump += f"include command : touch {mark}\nLOCAL_CONFIG_FILE = touch {mark} |\n"
    dump += f"LOCAL_CONFIG_DIR = {tmp_path}\ninclude : {other}\nuse FEATURE : GPUs\n"
    assert check_text("dump", dump) == []
    assert not mark.exists()
    with pytest.raises(InputError, match="-verbose"):
        check_text("dump", DUMP.replace("# at", "#"))


@pytest.mark.parametrize(
    "line", ["include : touch {} |", "include command : touch {}", "@include : touch {} |"]
)
def test_a_file_that_runs_a_command_is_refused(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, mark = tmp_path / "a.conf", tmp_path / "ran"
    path.write_text(f"{GOOD}{line.format(mark)}\n")
    assert main(["consumption", "check", str(path)]) == 65
    assert f"{path}:{LINE}: " in capsys.readouterr().err
    assert not mark.exists()


def test_the_command_prints_findings_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(more: str, code: int, *options: str) -> str:
        (tmp_path / "20-more.conf").write_text(more)
        assert main(["consumption", "check", *options, str(tmp_path)]) == code
        return capsys.readouterr().out

    (tmp_path / "10-cp.conf").write_text(GOOD)
    assert "checks, nothing found, 1 recommended\n" in printed("SLOT_WEIGHT = 1\n", 0)
    assert "\x1b" not in printed("SLOT_WEIGHT = \x1b[31m(\n", 1), "which steers a terminal"
    content = json.loads(printed("SLOT_WEIGHT = 1\nCONSUMPTION_POLCY = True\n", 1, "--json"))
    levels = {finding["id"]: finding["level"] for finding in content["findings"]}
    assert (levels, content["slots"]) == ({"knobs": "error", "weight": "advice"}, ["every slot"])
