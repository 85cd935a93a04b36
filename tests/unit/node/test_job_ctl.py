"""job_ctl: cores by group, which source's target is published, and what is remembered."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import classad2
import pytest

import job_ctl
from tests.node_fakes import MACHINE, document, held, job_of, shell_tool, tool_that_prints

SHORT = MACHINE.split(".", maxsplit=1)[0]
LINE = f"{SHORT} alice 56 cms 8"
BUSY = held(0) + job_of("alice.prod", 64) + job_of("atlas.jo", 5) + job_of("lhcb", 3)
NEWS = "- update:true\n"


class Node:
    """A node in a folder: files that can be written, an answer of its startd, and a job that looks at all of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answer = BUSY
        self.now = int(time.time())
        self.status = -1
        self.news = False

    def publish(self, text: str, name: str = "sharectl.txt") -> None:
        """Write a file that may be a source."""
        (self.folder / name).write_text(text)

    def document(
        self, *lines: str, sequence: int = 0, groups: str = "alice,cms,atlas,lhcb", age: int = 60
    ) -> str:
        """A published file made ``age`` seconds ago; ``sequence`` counts from now."""
        return document(*lines, now=self.now - age, sequence=self.now + sequence, groups=groups)

    def look(self, *names: str, **others: str) -> tuple[str, dict[str, object]]:
        """Code and attributes of a run with those files as sources; ``startd="x"`` stands for --startd x."""
        tool = tool_that_prints(self.folder / "bin", self.answer)
        sources = ",".join(f"file:{self.folder}/{name}" for name in names or ("sharectl.txt",))
        given = {
            "condor_status": tool,
            "source": sources,
            "host": MACHINE,
            "state": f"{self.folder}/state",
        }
        argv = [
            word
            for name, value in {**given, **others}.items()
            for word in ("--" + name.replace("_", "-"), value)
        ]
        self.status, text = job_ctl.run(*job_ctl.parse_arguments(argv), self.now)
        self.news = text.endswith(NEWS)
        ad = classad2.parseOne(text[: -len(NEWS)] if self.news else text)
        assert (ad["t1_JobCtlReason"] == "ok") == (ad["t1_Targetcores"] != [0, 0])
        if ad["t1_JobCtlReason"] != "ok":
            assert (ad["t1_TargetGroups"], ad["t1_TargetUntil"], ad["t1_TargetSequence"]) == (
                ["none", "none"],
                0,
                0,
            )
        return str(ad["t1_JobCtlReason"]), {name: ad[name] for name in ad}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node with 72 busy cores and no file."""
    return Node(tmp_path)


class TestGroups:
    """Cores by group."""

    def jobs(self, node: Node, answer: str, **others: str) -> object:
        """t1_CurrentJobs for that answer of the startd."""
        node.answer = answer
        return node.look(**others)[1]["t1_CurrentJobs"]

    def test_most_cores_first_then_by_name(self, node: Node) -> None:
        answer = (
            job_of("lhcb.a", 3) + job_of("atlas.b", 5) + job_of("babar", 3) + job_of("lhcb.c", 0)
        )
        assert self.jobs(node, answer) == "atlas:5:babar:3:lhcb:3"

    def test_cores_of_a_group_add_up_whatever_its_case(self, node: Node) -> None:
        assert (
            self.jobs(node, job_of("cms.a", 8) + job_of("CMS.prod.b", 1) + job_of("cms", 1))
            == "cms:10"
        )

    def test_an_empty_node(self, node: Node) -> None:
        assert self.jobs(node, held(0)) == "none:0"

    def test_the_held_back_group_comes_first_even_without_cores(self, node: Node) -> None:
        node.publish(node.document(LINE))
        assert self.jobs(node, job_of("cms.a", 8) + job_of("atlas.b", 9)) == "alice:0:atlas:9:cms:8"
        assert self.jobs(node, job_of("cms.a", 8) + job_of("alice.b", 2)) == "alice:2:cms:8"

    def test_without_a_target_it_has_no_place_of_its_own(self, node: Node) -> None:
        node.publish(node.document("cn-1 alice 8 cms 8"))
        assert self.jobs(node, job_of("cms.a", 8)) == "cms:8"

    def test_jobs_without_a_group_are_other(self, node: Node) -> None:
        assert self.jobs(node, held(8) + held(2, "error") + job_of("cms.a", 1)) == "other:10:cms:1"

    @pytest.mark.parametrize(
        "user",
        [
            r"a\"b}, \"cms", r"new\nline", "caf\\303\\251.x", "", ".x", "none.x", "other.x", "-a.b", "a" * 65,
            "a b", "a:64", "a,b", "t1_CurrentJobs = 1",
        ],
    )  # fmt: skip
    def test_hostile_names_are_other(self, node: Node, user: str) -> None:
        assert self.jobs(node, job_of(user, 4) + job_of("cms.a", 2)) == "other:4:cms:2"

    def test_only_listed_groups_count_by_name(self, node: Node) -> None:
        answer = job_of("cms.a", 1) + job_of("atlas.b", 2) + job_of("bob.c", 4)
        assert self.jobs(node, answer, groups="cms") == "other:6:cms:1"
        node.publish(node.document(LINE, groups="alice,cms,atlas"))
        assert self.jobs(node, answer) == "alice:0:other:4:atlas:2:cms:1"
        assert self.jobs(node, answer, groups="bob") == "alice:0:bob:4:atlas:2:cms:1"

    def test_a_refused_file_lists_nothing(self, node: Node) -> None:
        node.publish(node.document(LINE, groups="alice,cms").replace("targets: 1", "targets: 7"))
        assert self.jobs(node, job_of("bob.c", 4)) == "bob:4"

    def test_an_expired_file_still_lists_its_groups(self, node: Node) -> None:
        node.publish(node.document(LINE, groups="alice,cms", age=3600))
        assert self.jobs(node, job_of("bob.c", 4)) == "other:4"

    def test_users_cannot_make_the_list_long(self, node: Node) -> None:
        node.publish(f"{SHORT} zeta 8 cms 8\n")
        answer = "".join(job_of(f"group{number}.x", 1) for number in range(100)) + job_of(
            "zeta.y", 5
        )
        jobs = str(self.jobs(node, answer))
        assert jobs.startswith("zeta:5:other:")
        assert jobs.count(":") == 2 * (job_ctl.MAX_NAMED_GROUPS + 1) - 1
        assert sum(map(int, jobs.split(":")[1::2])) == 105

    def test_fractions_of_cores_do_not_count(self, node: Node) -> None:
        assert self.jobs(node, held("1.5", '"cms.a@x"') + held("0.5", '"atlas.a@x"')) == "cms:1"

    @pytest.mark.parametrize("groups", ["CMS", "cms atlas", "cms,other", "c..d", ".c", "c.-d"])
    def test_a_wrong_list_is_a_wrong_argument(
        self, node: Node, groups: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert node.look(groups=groups)[0] == "bad-arguments"
        assert groups in capfd.readouterr().err


class TestNestedGroups:
    """Cores by group, where groups are within others."""

    BUSY = (
        job_of("alice.user.bob", 2)
        + job_of("alice.prod.eve", 8)
        + job_of("ALICE.Prod.mc.eve", 4)
        + job_of("alice.production.eve", 16)
        + job_of("alice.prod_x.eve", 32)
        + job_of("alice.prod", 1)
        + job_of("cms.a", 3)
    )

    def jobs(self, node: Node, line: str, groups: str) -> object:
        node.answer = self.BUSY
        node.publish(node.document(line, groups=groups))
        return node.look()[1]["t1_CurrentJobs"]

    def test_the_longest_name_counts_part_by_part(self, node: Node) -> None:
        line = "cn-609-05-06 alice.user 0 alice.prod 8"
        known = "alice,alice.prod,alice.user,cms"
        assert self.jobs(node, line, known) == "alice.user:2:alice:49:alice.prod:12:cms:3"

    def test_without_a_list_the_target_and_first_parts_count(self, node: Node) -> None:
        line = "cn-609-05-06 alice.prod 0 cms 8"
        assert self.jobs(node, line, "") == "alice.prod:12:alice:51:cms:3"

    def test_a_first_level_without_subgroups_has_all_that_is_within_it(self, node: Node) -> None:
        assert self.jobs(node, LINE, "alice,cms") == "alice:63:cms:3"

    def test_a_target_is_published_as_it_is(self, node: Node) -> None:
        self.jobs(
            node, "cn-609-05-06 alice.user 56 cms.prod.mc 8", "alice,alice.user,cms,cms.prod.mc"
        )
        _, found = node.look()
        assert found["t1_TargetGroups"] == ["alice.user", "cms.prod.mc"]

    @pytest.mark.parametrize(
        "name",
        ["alice.", ".alice", "alice..user", "alice.-user", "alice.Us", "a" * 60 + ".user", "a.b:c"],
    )
    def test_a_wrong_name_is_refused_with_the_whole_file(self, node: Node, name: str) -> None:
        node.publish(node.document(f"cn-609-05-06 {name} 56 cms 8", groups=f"alice,{name},cms"))
        assert node.look()[0] == "malformed"


class TestStartd:
    """Without the node's cores the cap could not be kept: no target."""

    @pytest.mark.parametrize(
        "script", ["true", "exit 1", "kill -9 $$", "printf '1 \"cms\"'", "yes", "exec /nonexistent"]
    )
    def test_no_answer(self, node: Node, script: str) -> None:
        node.publish(node.document(LINE))
        code, found = node.look(condor_status=shell_tool(node.folder / "other", script))
        assert code == "no-startd"
        assert found["t1_Targetcores"] == [0, 0]
        assert found["t1_CurrentJobs"] == "none:0"

    @pytest.mark.parametrize(
        "answer", ["\n", "x\n", 'x "a"\n', 'inf "a"\n', 'undefined "a"\n', 'nan "a"\n']
    )
    def test_an_answer_that_makes_no_sense(self, node: Node, answer: str) -> None:
        node.publish(node.document(LINE))
        node.answer = answer
        code, found = node.look()
        assert code == "startd-garbled"
        assert found["t1_Targetcores"] == [0, 0]

    def test_a_fault_of_the_program_itself_lets_jobs_in(
        self, node: Node, capfd: pytest.CaptureFixture[str]
    ) -> None:
        node.answer = "".join(job_of(f"g{'x' * 60}{number}", 1) for number in range(200))
        listed = ",".join(f"g{'x' * 60}{number}" for number in range(200))
        code, found = node.look(groups=listed)
        assert code == "internal-error"
        assert found["t1_CurrentJobs"] == "none:0"
        assert "bytes" in capfd.readouterr().err


class TestSources:
    """The highest sequence of those that are wholly right decides."""

    def test_all_of_it_is_published(self, node: Node) -> None:
        node.publish(node.document("cn-1 alice 8 cms 8", LINE, "cn-2 atlas 0 cms 8"))
        code, found = node.look()
        assert (code, node.status) == ("ok", 0)
        assert found == {
            "t1_CurrentJobs": "alice:64:atlas:5:lhcb:3",
            "t1_TargetGroups": ["alice", "cms"],
            "t1_Targetcores": [56, 8],
            "t1_TargetUntil": node.now - 60 + 1800,
            "t1_TargetSequence": node.now,
            "t1_MulticorePending": classad2.Value.Undefined,
            "t1_MulticorePendingUntil": node.now - 60 + 1800,
            "t1_JobCtlReason": "ok",
            "t1_JobCtlTime": node.now,
        }

    def test_the_newest_decides_wherever_it_stands(self, node: Node) -> None:
        node.publish(node.document(f"{SHORT} alice 1 cms 8", sequence=1), "new")
        node.publish(node.document(f"{SHORT} alice 2 cms 8", sequence=0), "old")
        assert node.look("new", "old")[1]["t1_Targetcores"] == [1, 8]
        assert node.look("old", "new")[1]["t1_Targetcores"] == [1, 8]

    def test_the_newest_decides_that_there_is_no_target(self, node: Node) -> None:
        node.publish(node.document("cn-1 alice 1 cms 8", sequence=1), "new")
        node.publish(node.document(LINE, sequence=0), "old")
        assert node.look("old", "new")[0] == "no-line"

    def test_a_published_document_goes_before_a_file_by_hand(self, node: Node) -> None:
        node.publish(node.document(f"{SHORT} alice 1 cms 8"), "published")
        node.publish(f"{LINE}\n", "by-hand")
        assert node.look("by-hand", "published")[1]["t1_Targetcores"] == [1, 8]

    def test_one_that_is_refused_hides_no_other(
        self, node: Node, capfd: pytest.CaptureFixture[str]
    ) -> None:
        node.publish(node.document(LINE))
        node.publish("x\n", "wrong")
        assert node.look("none", "wrong", "sharectl.txt")[0] == "ok"
        assert "malformed" in capfd.readouterr().err

    def test_of_sources_that_agree_the_one_that_ends_first_counts(self, node: Node) -> None:
        node.publish(node.document(LINE, age=60), "newer")
        node.publish(node.document(LINE, age=600), "older")
        ends = [
            node.look(*names)[1]["t1_TargetUntil"]
            for names in (("newer", "older"), ("older",), ("newer",))
        ]
        assert ends == [node.now + 1200, node.now + 1200, node.now + 1740]

    def test_sources_that_disagree(self, node: Node) -> None:
        node.publish(node.document(LINE), "one")
        node.publish(node.document(f"{SHORT} alice 57 cms 8"), "two")
        node.publish(node.document("cn-1 alice 57 cms 8"), "three")
        assert node.look("one", "two")[0] == "disagree"
        assert node.status == 77
        assert node.look("one", "three")[0] == "disagree"
        assert node.look("one", "one")[0] == "ok"

    def test_the_most_serious_reason_is_published(self, node: Node) -> None:
        node.publish("x\n", "wrong")
        node.publish(node.document(LINE, age=3600), "expired")
        assert node.look("none", "expired")[0] == "no-file"
        assert node.look("expired", "wrong", "none")[0] == "malformed"

    @pytest.mark.parametrize(
        "source", ["", ",", ",".join(f"file:/{number}" for number in range(9))]
    )
    def test_none_or_too_many(self, node: Node, source: str) -> None:
        assert node.look(source=source)[0] == "bad-arguments"

    @pytest.mark.parametrize("option", ["source", "host", "max_age_seconds"])
    def test_a_wrong_option_of_target_py(self, node: Node, option: str) -> None:
        assert node.look(**{option: "a b"})[0] == "bad-arguments"
        assert node.status == 2

    def test_one_that_hangs_hides_no_other(self, node: Node) -> None:
        node.publish(node.document(LINE))
        script = f"""case "$*" in *"--source file:/hang") exec sleep 600;; esac
exec {sys.executable} -IS {Path(job_ctl.__file__).parent}/target.py "$@" """
        program = shell_tool(node.folder / "program", script)
        sources = f"file:/hang,file:{node.folder}/sharectl.txt"
        begin = time.monotonic()
        code, _ = node.look(source=sources, target_program=program, timeout_seconds="1")
        assert (code, time.monotonic() - begin < 5) == ("ok", True)

    ANSWER = (
        "source x\nreason ok\nsequence 5\nuntil 7\norder alice 56 cms 8 True\ngroups alice,cms\n"
    )

    @pytest.mark.parametrize(
        "change",
        [
            ("source x\n", ""), ("reason", "Reason"), ("ok", ""), ("ok", "a b"), ("ok", 'ok"'), ("ok", "no-line"),
            ("sequence 5", "sequence x"), ("until 7", "until -7"), ("8 T", "8 8 T"), ("8 T", "8.0 T"), ("True", "1"), (" True", ""), ("alice 56", "ALICE 56"),
            ("alice 56", "other 56"), ("56", ""), ("cms\n", "cms"), ("cms\n", "cms\nmore\n"), ("sequence", "sequence 5\nsequence"),
            ("56", '56"}'), (ANSWER, ""), ("x", "\0" * 3000000),
        ],
    )  # fmt: skip
    def test_an_answer_that_target_py_does_not_give(
        self, node: Node, change: tuple[str, str]
    ) -> None:
        program = tool_that_prints(node.folder / "program", self.ANSWER.replace(*change, 1))
        code, found = node.look(target_program=program)
        assert (code, node.status, found["t1_CurrentJobs"]) == (
            "target-garbled",
            78,
            "alice:64:atlas:5:lhcb:3",
        )

    def test_the_answer_that_it_gives(self, node: Node) -> None:
        assert (
            node.look(target_program=tool_that_prints(node.folder / "program", self.ANSWER))[0]
            == "ok"
        )

    def test_reasons_that_only_target_py_knows_are_passed_on(self, node: Node) -> None:
        answer = (
            "source x\nreason some-thing\nsequence 0\nuntil 0\norder none 0 none 0 undefined\ngroups "
            "\n"
        )
        program = shell_tool(
            node.folder / "program", f"printf '{answer}'; exit 77".replace("\n", "\\n")
        )
        assert node.look(target_program=program)[0] == "some-thing"
        assert node.status == 77

    @pytest.mark.parametrize("script", ["exit 1", "kill -9 $$", "exec /nonexistent", "yes"])
    def test_no_answer(self, node: Node, script: str) -> None:
        assert (
            node.look(target_program=shell_tool(node.folder / "program", script))[0]
            == "target-garbled"
        )

    def test_a_source_in_which_all_is_slow(self, node: Node) -> None:
        program = shell_tool(node.folder / "program", "exec sleep 600")
        code, found = node.look(target_program=program, timeout_seconds="1")
        assert (code, found["t1_CurrentJobs"]) == ("timeout", "alice:64:atlas:5:lhcb:3")


class TestMemory:
    """What is remembered from run to run."""

    def test_a_sequence_does_not_go_back(self, node: Node) -> None:
        for sequence, code in (
            (0, "ok"),
            (0, "ok"),
            (5, "ok"),
            (4, "backwards"),
            (5, "ok"),
            (6, "ok"),
        ):
            node.publish(node.document(LINE, sequence=sequence))
            assert node.look()[0] == code, sequence

    def test_an_older_document_without_a_line_is_no_news_either(self, node: Node) -> None:
        node.publish(node.document(LINE, sequence=5))
        node.look()
        node.publish(node.document("cn-1 alice 1 cms 8", sequence=4))
        assert node.look()[0] == "backwards"

    def test_the_older_of_two_sources_does_not_matter(self, node: Node) -> None:
        node.publish(node.document(LINE, sequence=5), "new")
        node.publish(node.document(LINE, sequence=4), "old")
        assert node.look("new", "old")[0] == "ok"
        assert node.look("old")[0] == "backwards"

    def test_a_refused_document_is_not_remembered(self, node: Node) -> None:
        node.publish(node.document(LINE, sequence=7, age=3600))
        assert node.look()[0] == "expired"
        node.publish(node.document(LINE, sequence=90000))
        assert node.look()[0] == "future"
        node.publish(node.document(LINE, sequence=6))
        assert node.look()[0] == "ok"

    def test_a_file_by_hand_has_no_sequence_to_go_back(self, node: Node) -> None:
        node.publish(node.document(LINE))
        node.look()
        node.publish(f"{LINE}\n")
        code, found = node.look()
        assert (code, found["t1_TargetSequence"]) == ("ok", 0)
        node.publish(node.document(LINE, sequence=-1))
        assert node.look()[0] == "backwards"

    @pytest.mark.parametrize(
        "state", ["", "x", "\0" * 9999, "\u00e9\n", "TITLE\n9\n", "TITLE\nx\ny\n", "FUTURE"]
    )
    def test_a_garbled_state_is_said_and_written_anew(
        self, node: Node, state: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        node.publish(node.document(LINE))
        node.look()
        right = (node.folder / "state").read_text()
        assert capfd.readouterr().err == ""
        later = right.replace(str(node.now), str(node.now + 90000))
        text = later if state == "FUTURE" else state.replace("TITLE", right.split("\n")[0])
        (node.folder / "state").write_text(text, encoding="utf-8")
        assert node.look()[0] == "ok"
        assert "fresh-start" in capfd.readouterr().err
        assert (node.folder / "state").read_text() == right

    def test_another_pool_has_its_own_sequence(self, node: Node) -> None:
        node.publish(node.document(LINE, sequence=5))
        node.look()
        text = document(LINE, now=node.now, sequence=node.now, pool="p2")
        node.publish(text)
        assert node.look(pool="p2")[0] == "ok"

    def test_without_a_place_to_remember_there_is_no_target(self, node: Node) -> None:
        node.publish(node.document(LINE))
        code, found = node.look(state=f"{node.folder}/none/state")
        assert (code, node.status, node.news) == ("no-state", 78, False)
        assert found["t1_CurrentJobs"] == "alice:64:atlas:5:lhcb:3"

    def test_trouble_with_the_startd_forgets_nothing(self, node: Node) -> None:
        node.publish(node.document(LINE, sequence=5))
        node.look()
        node.publish(node.document(LINE, sequence=6))
        node.answer = "x\n"
        assert node.look()[0] == "startd-garbled"
        node.answer = BUSY
        node.publish(node.document(LINE, sequence=4))
        assert node.look()[0] == "backwards"

    def test_a_file_by_hand_needs_no_memory(self, node: Node) -> None:
        node.publish(f"{LINE}\n")
        assert node.look(state=f"{node.folder}/none/state")[0] == "ok"
        assert not node.news

    def test_what_was_left_by_a_run_that_was_killed(self, node: Node) -> None:
        node.publish(node.document(LINE))
        (node.folder / "state.new").write_text("half")
        assert node.look()[0] == "ok"
        assert not (node.folder / "state.new").exists()

    @pytest.mark.parametrize("name", ["state", "state.new"])
    def test_a_link_in_the_place_of_the_state_is_replaced_and_not_followed(
        self, node: Node, name: str
    ) -> None:
        node.publish(node.document(LINE))
        (node.folder / "other").write_text("precious")
        (node.folder / name).symlink_to(node.folder / "other")
        assert node.look()[0] == "ok"
        assert (node.folder / "other").read_text() == "precious"
        assert not (node.folder / name).is_symlink()

    @pytest.mark.parametrize("name", ["state", "state.new"])
    def test_a_fifo_in_the_place_of_the_state_is_replaced(self, node: Node, name: str) -> None:
        node.publish(node.document(LINE))
        os.mkfifo(node.folder / name)
        writer = os.open(
            node.folder / name, os.O_RDWR
        )  # with one a FIFO without data gives no bytes, not an end
        try:
            assert node.look()[0] == "ok"
        finally:
            os.close(writer)
        assert (node.folder / "state").is_file()
        node.publish(node.document(LINE, sequence=-1))
        assert node.look()[0] == "backwards", "it is remembered"

    @pytest.mark.parametrize("name", ["state", "state.new"])
    def test_a_folder_in_the_place_of_the_state_leaves_no_target(
        self, node: Node, name: str
    ) -> None:
        node.publish(node.document(LINE))
        (node.folder / name).mkdir()
        assert node.look()[0] == "no-state"

    @pytest.mark.parametrize(
        ("ahead", "code"), [(300, "backwards"), (301, "ok"), (3 * 86400, "ok")]
    )
    def test_a_sequence_from_the_future_locks_nobody_out(
        self, node: Node, ahead: int, code: str
    ) -> None:
        """It was accepted while this node's clock was ahead as well."""
        node.publish(node.document(LINE))
        node.look()
        state = node.folder / "state"
        state.write_text(state.read_text().replace(str(node.now), str(node.now + ahead)))
        assert node.look()[0] == code


class TestPending:
    """Whether multicore jobs wait, as the plan has it: for every node that reads it, with a target or without."""

    def told(self, node: Node, **others: str) -> tuple[str, object, object]:
        """Reason, value and end."""
        code, found = node.look(**others)
        return code, found["t1_MulticorePending"], found["t1_MulticorePendingUntil"]

    @pytest.mark.parametrize("line", [LINE, "cn-1 alice 1 cms 8"])
    @pytest.mark.parametrize(
        ("pending", "value"), [("1", True), ("0", False), ("", classad2.Value.Undefined)]
    )
    def test_it_is_handed_on(self, node: Node, line: str, pending: str, value: object) -> None:
        node.publish(document(line, now=node.now, sequence=node.now, pending=pending))
        assert self.told(node) == ("ok" if line == LINE else "no-line", value, node.now + 1800)

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (("pending: 0", "pending: 2"), "malformed"), (("# targets: 1", "# targets: 2"), "truncated"),
            (("# valid_until: ", "# valid_until: 1\n# x: "), "expired"), (("# generated: 1", "# generated: 2"), "future"),
        ],
    )  # fmt: skip
    def test_of_what_is_not_right_it_is_not_known(
        self, node: Node, change: tuple[str, str], code: str
    ) -> None:
        node.publish(
            document(LINE, now=node.now, sequence=node.now, pending="0").replace(*change, 1)
        )
        assert self.told(node) == (code, classad2.Value.Undefined, 0)

    def test_nor_without_a_document_without_a_place_to_remember_or_by_hand(
        self, node: Node
    ) -> None:
        assert self.told(node) == ("no-file", classad2.Value.Undefined, 0)
        node.publish(document(LINE, now=node.now, sequence=node.now, pending="0"))
        nowhere = f"{node.folder}/none/state"
        assert self.told(node, state=nowhere) == ("no-state", classad2.Value.Undefined, 0)
        node.publish(f"# multicore_pending: 0\n{LINE}\n")
        assert self.told(node)[:2] == ("ok", classad2.Value.Undefined)

    def test_an_older_document_or_another_of_one_sequence_does_not_tell(self, node: Node) -> None:
        node.publish(document(now=node.now, sequence=node.now, pending="0"), "one")
        node.publish(document(now=node.now, sequence=node.now, pending="1"), "two")
        node.publish(document(now=node.now, sequence=node.now + 1, pending="1"), "three")
        assert (
            self.told(node, source=f"file:{node.folder}/one,file:{node.folder}/two")[0]
            == "disagree"
        )
        assert self.told(node, source=f"file:{node.folder}/one,file:{node.folder}/three")[1] is True
        assert self.told(node, source=f"file:{node.folder}/one") == (
            "backwards",
            classad2.Value.Undefined,
            0,
        )

    def test_its_change_is_news(self, node: Node) -> None:
        seen = []
        for second, pending in enumerate(("1", "1", "0", "0", "")):
            node.publish(document(now=node.now, sequence=node.now + second, pending=pending))
            node.look()
            seen.append(node.news)
        assert seen == [True, False, True, False, True]


class TestNews:
    """The collector is told at once of what is new."""

    def test_news_is_what_differs_from_the_last_run(self, node: Node) -> None:
        def looked(text: str) -> bool:
            node.publish(text)
            node.look()
            return node.news

        assert looked("")  # the first run
        assert not looked("")
        assert looked(node.document(LINE))
        assert not looked(node.document(LINE))
        assert not looked(node.document(LINE, sequence=1, age=30)), "a longer life is no news"
        assert looked(node.document(f"{SHORT} alice 55 cms 8", sequence=2))
        assert looked(node.document(f"{SHORT} alice 55 atlas 8", sequence=3))
        assert looked(node.document(sequence=4))
        assert looked("x\n")
        assert not looked("x y\n")

    def test_cores_in_use_are_no_news(self, node: Node) -> None:
        node.look()
        node.answer = held(0)
        node.look()
        assert not node.news

    def test_trouble_is_news_once(self, node: Node) -> None:
        node.look()
        node.answer = "x\n"
        assert (node.look()[0], node.news) == ("startd-garbled", True)
        assert (node.look()[0], node.news) == ("startd-garbled", False)


class TestMain:
    """The program as a whole, in this process."""

    def test_a_run(self, node: Node, capfd: pytest.CaptureFixture[str]) -> None:
        before = int(time.time())
        node.publish(f"{LINE}\n")
        tool = tool_that_prints(node.folder / "bin", BUSY)
        source, state = f"file:{node.folder}/sharectl.txt", str(node.folder / "state")
        argv = ["--source", source, "--host", SHORT, "--condor-status", tool, "--state", state]
        status = job_ctl.main(argv)
        ad = classad2.parseOne(capfd.readouterr().out.replace(NEWS, ""))
        assert (status, ad["t1_JobCtlReason"], list(ad["t1_Targetcores"])) == (0, "ok", [56, 8])
        assert before <= ad["t1_JobCtlTime"] <= time.time()
        assert before + 3600 <= ad["t1_TargetUntil"] <= time.time() + 3600

    def test_every_wrong_option_is_named_at_once(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert job_ctl.main(["JOB_CTL", "--file", "--timeout-seconds", "1e3", "--groups"]) == 2
        printed = capfd.readouterr()
        for word in ("'JOB_CTL'", "--timeout-seconds '1e3'", "'--groups' has no value"):
            assert word in printed.err.replace('"', "'").replace("\\'", "'")
        ad = classad2.parseOne(printed.out.replace(NEWS, ""))
        assert ad["t1_JobCtlReason"] == "bad-arguments"
        assert len(ad) == 9
