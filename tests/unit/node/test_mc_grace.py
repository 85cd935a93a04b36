"""mc_grace: its ad, evaluated by HTCondor's own parser, and its memory. See its laws too."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest

import mc_grace
from tests.node_fakes import NOW, free, shell_tool, tool_that_prints, words_of

GRACE = 480
TITLE = mc_grace.STATE_TITLE % 8
NO_GRACE = "MC_GRACE = False\n"


class Node:
    """A node in a folder, with the memory of the job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"

    def run(self, tool: str, now: int = NOW, **options: str) -> tuple[str, str]:
        """Code and ad of a run with that condor_status; ``cpus="4"`` stands for --cpus 4."""
        argv = words_of({"condor_status": tool, "state": str(self.state), **options})
        values, problems = mc_grace.parse_arguments(argv)
        assert not problems
        return mc_grace.run(values, now)

    def look(self, answer: str, now: int = NOW, **options: str) -> tuple[str, str]:
        """Code and ad of a look at slots that condor_status prints as ``answer``."""
        return self.run(tool_that_prints(self.folder / "bin", answer), now, **options)

    def since(self, answer: str, now: int = NOW) -> tuple[str, int]:
        """Code, and the end of grace in slot 1, less the grace time; 0 if it has ended."""
        code, ad = self.look(answer, now)
        seconds = range(now, now + 2 * GRACE)
        end = next(second for second in seconds if granted(ad, second, pslot(8)) is False)
        return code, end - GRACE if end > now else 0


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def granted(ad: str, at: int, slot: str = "") -> Any:
    """MC_GRACE of ``ad``, merged into the ad of a slot if there is one, at that second."""
    return classad2.parseOne(slot + ad.replace("time()", str(at))).eval("MC_GRACE")


def pslot(cores: int, number: int = 1) -> str:
    """A partitionable slot with so many free cores."""
    return f"SlotID = {number}\nCpus = {cores}\nPartitionableSlot = True\n"


class TestExpression:
    """MC_GRACE over time, in the slots of a node."""

    def test_each_partitionable_slot_has_its_own_value(self, node: Node) -> None:
        node.look(free(1, 8) + free(2, 3) + free(3, 3) + free(4, 8, total=4))
        _, ad = node.look(free(1, 8) + free(2, 8, changed=NOW + 200) + free(3, 3), NOW + 200)
        late = NOW + GRACE + 10  # over for slot 1, not for slot 2, and slot 3 was taken 200 s later
        values = [granted(ad, late, pslot(8, number)) for number in (1, 2, 3, 4)]
        assert values == [False, True, True, False]
        assert [granted(ad, late, pslot(3, number)) for number in (1, 2, 3, 4)] == [False] * 4

    @pytest.mark.parametrize(
        ("answer", "grace_seconds", "code"),
        [
            (free(1, 8) + free(2, 1), "0", "ok"),
            # There is nothing to guard on a small or static node.
            (free(1, 8, total=0), "480", "nothing-to-guard"),
            (free(1, 4, total=7), "480", "nothing-to-guard"),
            (free(0, 0, total=0), "480", "nothing-to-guard"),
        ],
    )
    def test_no_grace(self, node: Node, answer: str, grace_seconds: str, code: str) -> None:
        assert node.look(answer, grace_seconds=grace_seconds) == (code, NO_GRACE)

    def test_more_slots_than_fit_let_jobs_in(
        self, node: Node, capfd: pytest.CaptureFixture[str]
    ) -> None:
        code, ad = node.look("".join(free(number, 8) for number in range(1, 65)))
        assert (code, granted(ad, NOW, pslot(8, 64))) == ("ok", True)
        answer = "".join(free(number, 8) for number in range(1, 200))
        assert node.look(answer) == ("internal-error", NO_GRACE)
        assert "bytes" in capfd.readouterr().err


class TestMemory:
    """The second since when cores are free, from run to run."""

    @pytest.mark.parametrize(
        "looks",
        [
            # Cores, last change as the startd has it, Unix time, since when they count as free.
            [(8, NOW - 30, NOW, NOW - 30)],
            [(8, NOW - 3600, NOW, 0)],
            *([(8, changed, NOW, NOW)] for changed in (0, NOW + 5, -7)),
            # A small job has ended meanwhile, which says nothing about the eight.
            [(8, NOW - 30, NOW, NOW - 30), (9, NOW + 50, NOW + 60, NOW - 30)],
            [(0, NOW, NOW, 0), (8, NOW + 20, NOW + 60, NOW + 20)],
            # A change from before the cores were taken is not believed.
            [(0, NOW, NOW, 0), (8, NOW - GRACE, NOW + 60, NOW + 60)],
            [(8, NOW, NOW, NOW), (0, NOW, NOW + 60, NOW), (8, NOW + 110, NOW + 120, NOW + 110)],
        ],
    )
    def test_since_when_cores_are_free(
        self, node: Node, looks: list[tuple[int, int, int, int]]
    ) -> None:
        for cores, changed, now, since in looks:
            seen = node.since(free(1, cores, changed=changed), now)
            assert cores == 0 or seen == ("ok", since)

    @pytest.mark.parametrize("kind", ["link", "fifo"])
    def test_another_thing_in_the_place_of_the_state_is_replaced(
        self, node: Node, kind: str
    ) -> None:
        other = node.folder / "precious"
        other.write_text("mine")
        (node.folder / "state.new").symlink_to(other)  # of a run that was killed
        with ExitStack() as opened:
            if kind == "link":
                node.state.symlink_to(other)
            else:
                os.mkfifo(node.state)
                opened.callback(os.close, os.open(node.state, os.O_RDWR))
            assert node.since(free(1, 8)) == ("fresh-start", NOW)
        assert (other.read_text(), node.state.is_symlink()) == ("mine", False)

    @pytest.mark.parametrize(
        "text",
        [
            *("", "\0\0\0", "caf\u00e9\n", TITLE, f"{TITLE}\n1 170000000"),
            *(f"{TITLE}\n1{rest}\n" for rest in ("", " 2 3", " many", " -1", f" {NOW + 1}")),
            f"{TITLE}\n1 {'9' * 4000}\n",
            mc_grace.STATE_TITLE % 16 + f"\n1 {NOW - 5}\n",
            f"{TITLE}\n" + f"1 {NOW - 5}\n" * 1000,
        ],
    )
    def test_a_file_of_no_use_is_a_fresh_start(
        self, node: Node, text: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        node.state.write_text(text, encoding="utf-8")
        assert node.since(free(1, 8)) == ("fresh-start", NOW)
        assert "fresh-start" in capfd.readouterr().err
        assert node.since(free(1, 8), NOW + 60) == ("ok", NOW)

    @pytest.mark.parametrize("place", ["missing/state", "bin"])
    def test_without_memory_there_is_no_grace(
        self, node: Node, place: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        seen = node.look(free(1, 8), state=str(node.folder / place))
        assert seen == ("no-state", NO_GRACE)
        assert place in capfd.readouterr().err


def test_it_asks_the_startd_that_runs_it(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = shell_tool(node.folder / "bin", f'echo "$2" >> {node.folder}/asked; echo 1 64 8 0')
    monkeypatch.setenv("CONDOR_INHERIT", "17 <10.0.0.1:9618?sock=startd_1&alias=a> 0 0")
    node.run(tool)
    node.run(tool, startd="slot1@other")
    monkeypatch.delenv("CONDOR_INHERIT")
    node.run(tool)
    asked = (node.folder / "asked").read_text().split("\n")
    own = "<10.0.0.1:9618?sock=startd_1&alias=a>"
    assert asked == [own, "slot1@other", os.uname().nodename, ""]
