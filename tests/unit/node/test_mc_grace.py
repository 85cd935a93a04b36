"""mc_grace: what it publishes, evaluated by HTCondor's own parser, and what it remembers."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Optional

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest

import mc_grace
from tests.node_fakes import NOW, free, shell_tool, tool_that_prints, words_of

GRACE = 480
TITLE = mc_grace.STATE_TITLE % 8
PSLOT = 'PartitionableSlot = True\nSlotType = "Partitionable"\n'


def options(tmp_path: Path, tool: str, **others: str) -> dict[str, str]:
    """The options of a run with that tool; ``grace_seconds="0"`` stands for --grace-seconds 0."""
    given = {"condor_status": tool, "state": str(tmp_path / "state"), **others}
    values, problems = mc_grace.parse_arguments(words_of(given))
    assert not problems
    return values


def look(tmp_path: Path, answer: str, now: int = NOW, **others: str) -> tuple[str, str]:
    """Code and ad of one look at slots that condor_status prints as ``answer``."""
    return mc_grace.run(
        options(tmp_path, tool_that_prints(tmp_path / "bin", answer), **others), now
    )


def granted(ad: str, at: int, slot: Optional[str] = "") -> Any:
    """MC_GRACE of ``ad``, merged into the ad of a slot if there is one, at that second."""
    return classad2.parseOne((slot or "") + ad.replace("time()", str(at))).eval("MC_GRACE")


def pslot(cores: int, number: int = 1) -> str:
    """A partitionable slot with so many free cores."""
    return f"SlotID = {number}\nCpus = {cores}\n{PSLOT}"


class TestExpression:
    """MC_GRACE over time, in the slots of a node."""

    @pytest.mark.parametrize(
        "slot",
        [
            pslot(0),
            pslot(7),
            'SlotID = 1\nCpus = 8\nDynamicSlot = True\nSlotType = "Dynamic"\n',
            'SlotID = 2\nCpus = 8\nSlotType = "Static"\n',
        ],
    )
    def test_no_other_slot_is_in_grace(self, tmp_path: Path, slot: str) -> None:
        _, ad = look(tmp_path, free(1, 8) + free(2, 8, total=0))
        assert granted(ad, NOW + 1, slot) is False

    def test_it_begins_by_itself_when_cores_become_free_between_two_runs(
        self, tmp_path: Path
    ) -> None:
        _, ad = look(tmp_path, free(1, 7))
        assert granted(ad, NOW + 10, pslot(7)) is False
        assert granted(ad, NOW + 10, pslot(8)) is True
        assert granted(ad, NOW + GRACE - 1, pslot(8)) is True
        assert granted(ad, NOW + GRACE, pslot(8)) is False

    def test_each_partitionable_slot_has_its_own_value(self, tmp_path: Path) -> None:
        look(tmp_path, free(1, 8) + free(2, 3) + free(3, 3) + free(4, 8, total=4))
        _, ad = look(tmp_path, free(1, 8) + free(2, 8, changed=NOW + 200) + free(3, 3), NOW + 200)
        late = NOW + GRACE + 10  # over for slot 1, not for slot 2, and slot 3 was taken 200 s later
        assert [granted(ad, late, pslot(8, number)) for number in (1, 2, 3, 4)] == [
            False,
            True,
            True,
            False,
        ]
        assert [granted(ad, late, pslot(3, number)) for number in (1, 2, 3, 4)] == [False] * 4

    @pytest.mark.parametrize(("cores", "value"), [(8, "True"), (7, "False"), (7.9, "False")])
    def test_without_a_slot_it_says_what_the_last_look_found(
        self, tmp_path: Path, cores: float, value: str
    ) -> None:
        _, ad = look(tmp_path, f"1 64 {cores} {NOW}\n")
        assert str(granted(ad, NOW)) == value
        assert granted(ad, NOW + GRACE) is False

    def test_the_clock_is_the_evaluators(self, tmp_path: Path) -> None:
        now = int(time.time())
        _, young = look(tmp_path / "young", free(1, 8, changed=now - GRACE + 60), now)
        _, old = look(tmp_path / "old", free(1, 8, changed=now - GRACE - 1), now)
        assert classad2.parseOne(pslot(8) + young).eval("MC_GRACE") is True
        assert classad2.parseOne(pslot(8) + old).eval("MC_GRACE") is False

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
    def test_no_grace(self, tmp_path: Path, answer: str, grace_seconds: str, code: str) -> None:
        found = look(tmp_path, answer, grace_seconds=grace_seconds)
        assert found == (code, "MC_GRACE = False\n")

    def test_more_slots_than_fit_let_jobs_in(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        code, ad = look(tmp_path, "".join(free(number, 8) for number in range(1, 65)))
        assert (code, granted(ad, NOW, pslot(8, 64))) == ("ok", True)
        answer = "".join(free(number, 8) for number in range(1, 200))
        assert look(tmp_path, answer) == ("internal-error", "MC_GRACE = False\n")
        assert "bytes" in capfd.readouterr().err


class TestMemory:
    """Since when cores are free."""

    def since(self, tmp_path: Path, answer: str, now: int = NOW, **others: str) -> tuple[str, int]:
        """Code, and the end of grace in slot 1, less the grace time; 0 if it has ended."""
        code, ad = look(tmp_path, answer, now, **others)
        ends = [end for end in range(now, now + 2 * GRACE) if granted(ad, end, pslot(8)) is True]
        return code, ends[-1] + 1 - GRACE if ends else 0

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
        self, tmp_path: Path, looks: list[tuple[int, int, int, int]]
    ) -> None:
        for cores, changed, now, since in looks:
            found = self.since(tmp_path, free(1, cores, changed=changed), now)
            assert cores == 0 or found == ("ok", since)

    @pytest.mark.parametrize("kind", ["link", "fifo"])
    def test_another_thing_in_the_place_of_the_state_is_replaced(
        self, tmp_path: Path, kind: str
    ) -> None:
        state, other = tmp_path / "state", tmp_path / "precious"
        other.write_text("mine")
        writer = None
        if kind == "link":
            state.symlink_to(other)
        else:
            os.mkfifo(state)
            writer = os.open(state, os.O_RDWR)
        try:
            assert self.since(tmp_path, free(1, 8)) == ("fresh-start", NOW)
        finally:
            if writer is not None:
                os.close(writer)
        assert other.read_text() == "mine"
        assert not state.is_symlink()

    def test_the_file_is_written_only_when_something_changes(self, tmp_path: Path) -> None:
        look(tmp_path, free(1, 8))
        first = (tmp_path / "state").stat()
        look(tmp_path, free(1, 9), NOW + 60)
        assert (tmp_path / "state").stat().st_ino == first.st_ino
        look(tmp_path, free(1, 1), NOW + 120)
        assert (tmp_path / "state").stat().st_ino != first.st_ino
        assert {path.name for path in tmp_path.iterdir()} == {"bin", "state"}

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
        self, tmp_path: Path, text: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "state").write_text(text, encoding="utf-8")
        assert self.since(tmp_path, free(1, 8)) == ("fresh-start", NOW)
        assert "fresh-start" in capfd.readouterr().err
        assert self.since(tmp_path, free(1, 8), NOW + 60) == ("ok", NOW)

    def test_what_a_killed_run_has_left_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "state.new").symlink_to(tmp_path / "precious")
        assert self.since(tmp_path, free(1, 8)) == ("ok", NOW)
        assert not (tmp_path / "precious").exists()

    @pytest.mark.parametrize("place", ["missing/state", "folder"])
    def test_without_memory_there_is_no_grace(
        self, tmp_path: Path, place: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "folder").mkdir()
        found = look(tmp_path, free(1, 8), state=str(tmp_path / place))
        assert found == ("no-state", "MC_GRACE = False\n")
        assert place in capfd.readouterr().err

    def test_clock_jumps_never_add_more_than_one_grace_time(self, tmp_path: Path) -> None:
        self.since(tmp_path, free(1, 8, changed=NOW), NOW)
        back = NOW - 86400
        assert self.since(tmp_path, free(1, 8, changed=NOW), back) == ("fresh-start", back)
        assert self.since(tmp_path, free(1, 8, changed=NOW), back + GRACE) == ("ok", 0)


class TestAnswers:
    """What condor_status prints, or does not."""

    @pytest.mark.parametrize(
        "answer",
        [
            "1 64 8\n",
            "1 64 8 0 0\n",
            "one 64 8 0\n",
            "1 64 undefined 0\n",
            "1 64 inf 0\n",
            "x\n",
        ],
    )
    def test_an_answer_that_makes_no_sense(self, tmp_path: Path, answer: str) -> None:
        assert look(tmp_path, answer) == ("startd-garbled", "MC_GRACE = False\n")

    def test_it_asks_the_startd_that_runs_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tool = shell_tool(tmp_path / "bin", f'echo "$2" >> {tmp_path}/asked; echo 1 64 8 0')
        monkeypatch.setenv("CONDOR_INHERIT", "17 <10.0.0.1:9618?sock=startd_1&alias=a> 0 0")
        mc_grace.run(options(tmp_path, tool), NOW)
        mc_grace.run(options(tmp_path, tool, startd="slot1@other"), NOW)
        monkeypatch.delenv("CONDOR_INHERIT")
        mc_grace.run(options(tmp_path, tool), NOW)
        asked = (tmp_path / "asked").read_text().split("\n")
        name = os.uname().nodename
        assert asked == ["<10.0.0.1:9618?sock=startd_1&alias=a>", "slot1@other", name, ""]


class TestMain:
    """The program as a whole, in this process."""

    def test_a_run(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        tool = tool_that_prints(tmp_path / "bin", free(1, 8))
        before = int(time.time())
        status = mc_grace.main(["--condor-status", tool, "--state", str(tmp_path / "state")])
        ad = classad2.parseOne(capfd.readouterr().out)
        assert status == 0
        assert ad.eval("MC_GRACE") is True
        assert ad["t1_McGraceReason"] == "ok"
        assert before <= ad["t1_McGraceTime"] <= time.time()

    def test_every_wrong_option_is_named_at_once(self, capfd: pytest.CaptureFixture[str]) -> None:
        argv = ["--cpu", "8", "--grace-seconds", "-1", "--timeout-seconds", "0", "--state"]
        assert mc_grace.main(argv) == 2
        printed = capfd.readouterr()
        for words in (
            "--cpu'",
            "--grace-seconds '-1'",
            "--timeout-seconds '0'",
            "'--state' has no",
        ):
            assert words in printed.err
        ad = classad2.parseOne(printed.out)
        assert (ad["MC_GRACE"], ad["t1_McGraceReason"]) == (False, "bad-arguments")
