"""job_ctl: cores by group, the source that decides, and the memory from run to run."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import classad2
import pytest

import job_ctl
from sharectl import __version__
from tests.node_fakes import MACHINE, document, held, job_of, shell_tool, tool_that_prints, words_of

SHORT = MACHINE.split(".", maxsplit=1)[0]
LINE = f"{SHORT} alice 56 cms 8"
ELSEWHERE = "cn-1 alice 8 cms 8"
BUSY = held(0) + job_of("alice.prod", 64) + job_of("atlas.jo", 5) + job_of("lhcb", 3)
BUSY_JOBS = "alice:64:atlas:5:lhcb:3"
NEWS = "- update:true\n"
UNDEFINED = classad2.Value.Undefined


class Node:
    """A node in a folder: its files, the answer of its startd, and runs of the job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answer = BUSY
        self.now = int(time.time())
        self.status = -1
        self.news = False

    def publish(self, text: str, name: str = "sharectl.txt") -> None:
        """Write a file that may be a source."""
        (self.folder / name).write_text(text)

    def document(self, *lines: str, sequence: int = 0, age: int = 60, **header: str) -> str:
        """A published file made ``age`` seconds ago; ``sequence`` counts from now."""
        given: Any = {"groups": "alice,cms,atlas,lhcb", **header}
        return document(*lines, now=self.now - age, sequence=self.now + sequence, **given)

    def look(self, *names: str, **options: str) -> tuple[str, dict[str, object]]:
        """Code and attributes of a run with those files as sources.

        ``startd="x"`` stands for --startd x.
        """
        argv = words_of(
            {
                "condor_status": tool_that_prints(self.folder / "bin", self.answer),
                "source": ",".join(f"file:{self.folder}/{n}" for n in names or ("sharectl.txt",)),
                "host": MACHINE,
                "state": f"{self.folder}/state",
                **options,
            }
        )
        self.status, text = job_ctl.run(*job_ctl.parse_arguments(argv), self.now)
        self.news = text.endswith(NEWS)
        ad = classad2.parseOne(text.removesuffix(NEWS))
        code = str(ad["t1_JobCtlReason"])
        assert (code == "ok") == (ad["t1_Targetcores"] != [0, 0])
        if code != "ok":
            shown = (ad["t1_TargetGroups"], ad["t1_TargetUntil"], ad["t1_TargetSequence"])
            assert shown == (["none", "none"], 0, 0)
        return code, {name: ad[name] for name in ad}

    def code(self, *names: str, **options: str) -> str:
        """Code of a run."""
        return self.look(*names, **options)[0]

    def jobs(self, answer: str, **options: str) -> object:
        """t1_CurrentJobs for that answer of the startd."""
        self.answer = answer
        return self.look(**options)[1]["t1_CurrentJobs"]

    def pending(self, *names: str, **options: str) -> tuple[str, object, object]:
        """Code, t1_MulticorePending and its end."""
        code, ad = self.look(*names, **options)
        return code, ad["t1_MulticorePending"], ad["t1_MulticorePendingUntil"]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node with 72 busy cores and no file."""
    return Node(tmp_path)


USERS = {
    "alice.user.bob": 2, "alice.prod.eve": 8, "ALICE.Prod.mc.eve": 4, "alice.production.eve": 16,
    "alice.prod_x.eve": 32, "alice.prod": 1, "cms.a": 3,
}  # fmt: skip
SUBGROUPS = "".join(job_of(user, cores) for user, cores in USERS.items())
NESTED = "alice,alice.prod,alice.user,cms"
CMS_8 = job_of("cms.a", 8)


class TestGroups:
    """Cores by group: see the property laws too."""

    def test_cores_count_by_group(self, node: Node) -> None:
        """Most cores first, then by name; no group without cores."""
        users = {"lhcb.a": 3, "atlas.b": 5, "babar": 3, "x.c": 0}
        for answer, expected in (
            (held(0), "none:0"),
            ("".join(job_of(*user) for user in users.items()), "atlas:5:babar:3:lhcb:3"),
            (held(8) + held(2, "error") + job_of("cms.a", 1), "other:10:cms:1"),
            (held("1.5", '"cms.a@x"') + held("0.5", '"atlas.a@x"'), "cms:1"),
        ):
            assert node.jobs(answer) == expected

    def test_the_held_back_group_comes_first_and_the_plan_names_groups(self, node: Node) -> None:
        prod, user = f"{SHORT} alice.prod 0 cms 8", f"{SHORT} alice.user 0 alice.prod 8"
        nested = "alice.user:2:alice:49:alice.prod:12:cms:3"
        for line, groups, answer, expected in (
            (LINE, "alice,cms", CMS_8 + job_of("alice.b", 2), "alice:2:cms:8"),
            (LINE, "", CMS_8 + job_of("atlas.b", 9), "alice:0:atlas:9:cms:8"),
            (LINE, "alice,cms", job_of("bob.c", 4), "alice:0:other:4"),
            (ELSEWHERE, "alice,cms", CMS_8, "cms:8"),
            (LINE, "alice,cms", SUBGROUPS, "alice:63:cms:3"),
            (prod, "", SUBGROUPS, "alice.prod:12:alice:51:cms:3"),
            (user, NESTED, SUBGROUPS, nested),
        ):
            node.publish(node.document(line, groups=groups))
            assert node.jobs(answer) == expected

    def test_users_cannot_make_the_list_long(self, node: Node) -> None:
        many = "".join(job_of(f"group{number}.x", 1) for number in range(100))
        node.publish(f"{SHORT} zeta 8 cms 8\n")
        jobs = str(node.jobs(many + job_of("zeta.y", 5)))
        assert jobs.startswith("zeta:5:other:")
        assert jobs.count(":") == 2 * (job_ctl.MAX_NAMED_GROUPS + 1) - 1
        assert sum(map(int, jobs.split(":")[1::2])) == 105
        names = [f"g{'x' * 60}{number}" for number in range(200)]
        many = "".join(job_of(name, 1) for name in names)
        assert node.jobs(many, groups=",".join(names)) == "none:0", "the ad would be too long"
        assert (node.status, node.news) == (1, True)

    def test_a_wrong_list_is_a_wrong_argument(
        self, node: Node, capfd: pytest.CaptureFixture[str]
    ) -> None:
        for groups in ("CMS", "cms atlas", "cms,other", "c..d", ".c", "c.-d"):
            node.publish("")
            assert node.code(groups=groups) == "bad-arguments"
            assert groups in capfd.readouterr().err
            node.publish(node.document(f"{SHORT} {groups} 56 cms 8", groups=f"alice,{groups}"))
            assert node.code() == "malformed", "with the whole file"


ANSWER = "source x\nreason ok\nsequence 5\nuntil 7\norder alice 56 cms 8 True\ngroups alice,cms\n"
REFUSAL = (
    "source x\nreason some-thing\nsequence 0\nuntil 0\norder none 0 none 0 undefined\ngroups \n"
)


class TestSources:
    """The highest sequence of those that are wholly right decides."""

    def test_all_of_it_is_published(self, node: Node) -> None:
        node.publish(node.document(ELSEWHERE, LINE, "cn-2 atlas 0 cms 8"))
        code, ad = node.look()
        assert (code, node.status) == ("ok", 0)
        assert ad == {
            "t1_CurrentJobs": BUSY_JOBS,
            "t1_TargetGroups": ["alice", "cms"],
            "t1_Targetcores": [56, 8],
            "t1_TargetUntil": node.now - 60 + 1800,
            "t1_TargetSequence": node.now,
            "t1_MulticorePending": UNDEFINED,
            "t1_MulticorePendingUntil": node.now - 60 + 1800,
            "t1_JobCtlReason": "ok",
            "t1_JobCtlTime": node.now,
            "t1_SharectlVersion": __version__,
        }

    def test_which_of_several_decides(self, node: Node) -> None:
        texts = {
            "new": node.document(f"{SHORT} alice 1 cms 8", sequence=1),
            "old": node.document(f"{SHORT} alice 2 cms 8"),
            "other": node.document(f"{SHORT} alice 3 cms 8"),
            "nothing": node.document(ELSEWHERE, sequence=1),
            "nothing-old": node.document(ELSEWHERE),
            "hand": f"{LINE}\n",
            "expired": node.document(LINE, age=3600),
            "wrong": "x\n",
        }
        for name, text in texts.items():
            node.publish(text, name)
        # A refused one hides no other; of refusals the most serious is published.
        runs = {
            "ok": ("new old", "old new", "hand new", "new new", "none wrong new"),
            "no-line": ("old nothing",),
            "disagree": ("old other", "old nothing-old"),
            "no-file": ("none expired",),
            "malformed": ("expired wrong none",),
        }
        for code, sources in runs.items():
            for names in sources:
                seen, ad = node.look(*names.split(), state=f"{node.folder}/{names}")
                assert seen == code, names
                assert code != "ok" or ad["t1_Targetcores"] == [1, 8], names

    def test_one_that_hangs_hides_no_other(self, node: Node) -> None:
        node.publish(node.document(LINE))
        script = f"""case "$*" in *"--source file:/hang") exec sleep 600;; esac
exec {sys.executable} -IS {Path(job_ctl.__file__).parent}/target.py "$@" """
        program = shell_tool(node.folder / "program", script)
        sources = f"file:/hang,file:{node.folder}/sharectl.txt"
        begin = time.monotonic()
        code = node.code(source=sources, target_program=program, timeout_seconds="1")
        assert (code, time.monotonic() - begin < 60) == ("ok", True)

    @pytest.mark.parametrize(
        ("script", "code"),
        [
            (f"printf '{ANSWER}'".replace("\n", "\\n"), "ok"),
            # Reasons that only target.py knows are passed on.
            (f"printf '{REFUSAL}'; exit 77".replace("\n", "\\n"), "some-thing"),
            ("kill -9 $$", "target-garbled"),
            ("yes", "target-garbled"),
            ("exec sleep 600", "timeout"),
        ],
    )
    def test_another_program_in_its_place(self, node: Node, script: str, code: str) -> None:
        program = shell_tool(node.folder / "program", script)
        seconds = "1" if code == "timeout" else "60"
        seen, ad = node.look(target_program=program, timeout_seconds=seconds)
        jobs = "alice:64:other:8" if code == "ok" else BUSY_JOBS
        assert (seen, ad["t1_CurrentJobs"]) == (code, jobs)

    def test_a_child_that_has_not_run_yet_is_killed_too(self) -> None:
        """On a busy machine the deadline can pass before a child has made its process group."""
        child = os.fork()
        if not child:
            time.sleep(60)
            os._exit(0)
        assert job_ctl.finish(child, time.monotonic()) == job_ctl.TOO_LATE
        assert os.waitpid(child, 0)[1] == signal.SIGKILL


class TestMemory:
    """The state file, from run to run."""

    def test_a_sequence_does_not_go_back(self, node: Node) -> None:
        steps = [
            (node.document(LINE), "ok"),
            (node.document(LINE), "ok"),
            (node.document(LINE, sequence=5), "ok"),
            (node.document(LINE, sequence=4), "backwards"),
            (node.document(ELSEWHERE, sequence=4), "backwards"),
            (node.document(LINE, sequence=5), "ok"),
            (node.document(LINE, sequence=90000), "future"),
            (node.document(LINE, sequence=9, age=3600), "expired"),
            (node.document(LINE, sequence=7), "ok"),
            (f"{LINE}\n", "ok"),
            (node.document(LINE, sequence=6), "backwards"),
            (node.document(LINE, groups="alice,cms", pool="p2"), "backwards"),
        ]
        for step, (text, code) in enumerate(steps):
            node.publish(text)
            assert node.code() == code, step
        assert node.code(pool="p2") == "ok", "another pool has its own sequence"

    @pytest.mark.parametrize(
        "state", ["", "x", "\0" * 9999, "\u00e9\n", "TITLE\n9\n", "TITLE\nx\ny\n", "FUTURE"]
    )
    def test_a_garbled_state_is_reported_and_written_again(
        self, node: Node, state: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        node.publish(node.document(LINE))
        node.look()
        right = (node.folder / "state").read_text()
        assert capfd.readouterr().err == ""
        later = right.replace(str(node.now), str(node.now + 90000))
        text = later if state == "FUTURE" else state.replace("TITLE", right.split("\n")[0])
        (node.folder / "state").write_text(text, encoding="utf-8")
        assert node.code() == "ok"
        assert "fresh-start" in capfd.readouterr().err
        assert (node.folder / "state").read_text() == right

    def test_without_a_place_to_remember_there_is_no_target_but_by_hand(self, node: Node) -> None:
        nowhere = f"{node.folder}/none/state"
        node.publish(node.document(LINE, pending="0"))
        code, ad = node.look(state=nowhere)
        assert (code, node.status, node.news) == ("no-state", 78, False)
        assert (ad["t1_CurrentJobs"], ad["t1_MulticorePending"]) == (BUSY_JOBS, UNDEFINED)
        node.publish(f"{LINE}\n")
        assert (node.code(state=nowhere), node.news) == ("ok", False)

    @pytest.mark.parametrize("kind", ["half", "link", "fifo"])
    @pytest.mark.parametrize("name", ["state", "state.new"])
    def test_another_thing_in_the_place_of_the_state_is_replaced(
        self, node: Node, name: str, kind: str
    ) -> None:
        node.publish(node.document(LINE))
        place, other, state = (node.folder / file for file in (name, "other", "state"))
        other.write_text("precious")
        with ExitStack() as opened:
            if kind == "half":
                place.write_text("half")
            elif kind == "link":
                place.symlink_to(other)
            else:
                os.mkfifo(place)
                # With a writer a FIFO without data gives no bytes, not an end.
                opened.callback(os.close, os.open(place, os.O_RDWR))
            assert node.code() == "ok"
        assert (state.is_file(), state.is_symlink()) == (True, False)
        assert not (node.folder / "state.new").exists()
        assert other.read_text() == "precious"
        node.publish(node.document(LINE, sequence=-1))
        assert node.code() == "backwards", "it is remembered"
        place.unlink(missing_ok=True)
        place.mkdir()
        node.publish(node.document(LINE, sequence=1))
        assert node.code() == "no-state"

    def test_a_sequence_from_the_future_locks_nobody_out(self, node: Node) -> None:
        """It was accepted while this node's clock was ahead as well."""
        node.publish(node.document(LINE))
        node.look()
        state = (node.folder / "state").read_text()
        for ahead, code in ((300, "backwards"), (301, "ok"), (3 * 86400, "ok")):
            later = state.replace(str(node.now), str(node.now + ahead))
            (node.folder / "state").write_text(later)
            assert node.code() == code, ahead


class TestPending:
    """Multicore jobs that wait: news of the plan for every node that reads it."""

    def test_it_is_handed_on(self, node: Node) -> None:
        for sequence, (pending, value) in enumerate((("1", True), ("0", False), ("", UNDEFINED))):
            for line, code in ((LINE, "ok"), (ELSEWHERE, "no-line")):
                node.publish(node.document(line, pending=pending, sequence=sequence))
                assert node.pending() == (code, value, node.now + 1740)

    def test_an_older_document_or_another_of_one_sequence_does_not_count(self, node: Node) -> None:
        for name, more, pending in (("one", 0, "0"), ("two", 0, "1"), ("three", 1, "1")):
            node.publish(node.document(sequence=more, pending=pending), name)
        assert node.pending("one", "two")[0] == "disagree"
        assert node.pending("one", "three")[1] is True
        assert node.pending("one") == ("backwards", UNDEFINED, 0)


class TestNews:
    """The collector gets a new ad at once when something is new."""

    def test_news_is_a_difference_from_the_last_run(self, node: Node) -> None:
        steps = [
            ("", True),  # the first run
            ("", False),
            (node.document(LINE), True),
            (node.document(LINE), False),
            (node.document(LINE, sequence=1, age=30), False),  # a longer life
            (node.document(f"{SHORT} alice 55 cms 8", sequence=2), True),
            (node.document(f"{SHORT} alice 55 atlas 8", sequence=3), True),
            (node.document(sequence=4), True),
            ("x\n", True),
            ("x y\n", False),
            (node.document(sequence=9, pending="1"), True),
            (node.document(sequence=9, pending="1"), False),
            (node.document(sequence=9, pending="0"), True),
            (node.document(sequence=9), True),
        ]
        for step, (text, news) in enumerate(steps):
            node.publish(text)
            node.look()
            assert node.news is news, step

    def test_cores_in_use_are_no_news_and_trouble_is_news_once(self, node: Node) -> None:
        node.look()
        for answer, news in ((held(0), False), ("x\n", True), ("x\n", False)):
            node.answer = answer
            node.look()
            assert node.news is news
