"""job_ctl: cores by group, the node's target, and why there is none."""

from __future__ import annotations

import os
import time
from pathlib import Path

import classad2
import pytest

import job_ctl
from tests.node_fakes import MACHINE, NOW, held, job_of, shell_tool, tool_that_prints

SHORT = MACHINE.split(".", maxsplit=1)[0]
LINE = f"{SHORT} alice 56 cms 8"
BUSY = held(0) + job_of("alice.prod", 64) + job_of("atlas.jo", 5) + job_of("lhcb", 3)
HEADER = f"# sharectl: 1\n# generated: {NOW - 60}\n# valid_until: {NOW + 1800}\n"


def text_of(*lines: str, groups: str = "alice,cms,atlas,lhcb", count: int = -1, header: str = HEADER) -> str:
    """A published file with these data lines."""
    total = len(lines) if count < 0 else count
    return "".join(f"{line}\n" for line in (f"{header}# groups: {groups}", f"# targets: {total}", *lines))


class Node:
    """A node in a folder: a file that can be written, an answer of its startd, and a job that looks at both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "sharectl.txt"
        self.answer = BUSY

    def publish(self, text: str, age_seconds: int = 0) -> None:
        """Write the file as it would have been written then."""
        self.file.write_text(text, encoding="utf-8")
        os.utime(self.file, (NOW - age_seconds, NOW - age_seconds))

    def options(self, **others: str) -> dict[str, str]:
        """Options of a run; ``max_age_seconds="60"`` stands for --max-age-seconds 60."""
        tool = tool_that_prints(self.folder / "bin", self.answer)
        given = {"condor_status": tool, "file": str(self.file), **others}
        argv = [word for name, value in given.items() for word in ("--" + name.replace("_", "-"), value)]
        values, problems = job_ctl.parse_arguments(argv)
        assert not problems
        return values

    def look(self, **others: str) -> tuple[str, dict[str, object]]:
        """Code and attributes of a run."""
        code, text = job_ctl.run(self.options(**others), NOW)
        ad = classad2.parseOne(text)
        return code, {name: ad[name] for name in ad}

    def reason(self, text: str, **others: str) -> str:
        """Code of a run after ``text`` was published; a code other than ok comes without a target."""
        self.publish(text)
        code, found = self.look(**others)
        assert (code == "ok") == (found["t1_Targetcores"] != [0, 0])
        if code != "ok":
            assert found["t1_TargetGroups"] == ["none", "none"]
            assert found["t1_TargetUntil"] == 0
        return code


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node with 72 busy cores and no file."""
    return Node(tmp_path)


class TestTarget:
    """The line of this node."""

    def test_all_of_it_is_published(self, node: Node) -> None:
        node.publish(text_of("cn-1 alice 8 cms 8", LINE, "cn-2 atlas 0 cms 8"))
        assert node.look() == (
            "ok",
            {
                "t1_CurrentJobs": "alice:64:atlas:5:lhcb:3",
                "t1_TargetGroups": ["alice", "cms"],
                "t1_Targetcores": [56, 8],
                "t1_TargetUntil": NOW + 1800,
            },
        )

    @pytest.mark.parametrize("name", [SHORT, MACHINE, SHORT.upper(), MACHINE.title()])
    @pytest.mark.parametrize("host", ["", SHORT, MACHINE, MACHINE.upper()])
    def test_the_node_is_found_by_short_or_full_name(self, node: Node, name: str, host: str) -> None:
        assert node.reason(text_of(f"{name} alice 56 cms 8"), host=host) == "ok"

    @pytest.mark.parametrize(
        "name", ["cn-609-05-0", "cn-609-05-061", "n-609-05-06", f"{SHORT}.example.com", "example.org"]
    )
    def test_no_other_node_is_taken_for_it(self, node: Node, name: str) -> None:
        assert node.reason(text_of(f"{name} alice 56 cms 8")) == "no-line"

    def test_nodes_that_share_a_short_name_are_told_apart(self, node: Node) -> None:
        lines = f"{SHORT}.example.com atlas 0 cms 8", f"{MACHINE} alice 56 cms 8"
        assert node.reason(text_of(*lines)) == "ok"
        assert node.look()[1]["t1_Targetcores"] == [56, 8]
        assert node.reason(text_of(*lines), host=SHORT) == "duplicate-node"

    def test_two_lines_for_one_node_contradict_each_other(self, node: Node) -> None:
        assert node.reason(text_of(LINE, f"{MACHINE} atlas 0 cms 8")) == "duplicate-node"

    def test_a_cap_of_no_cores_is_a_target(self, node: Node) -> None:
        assert node.reason(text_of(f"{SHORT} alice 0 cms 8")) == "ok"

    def test_the_seeds_own_file_is_valid(self, node: Node) -> None:
        node.publish(f"{LINE}\ncn-610-02-03 alice 56 cms 8\n\n# by hand\ncn-608-06-06 alice 42 cms 8\n", 600)
        code, found = node.look()
        assert (code, found["t1_TargetUntil"]) == ("ok", NOW - 600 + 3600)


class TestFile:
    """What makes a file unfit, one code each."""

    @pytest.mark.parametrize(
        "line",
        [
            f"{SHORT} alice 56 cms",
            f"{SHORT} alice 56 cms 8 more",
            f"{SHORT}  alice 56 cms 8",
            f"{SHORT} alice 56 cms 8 ",
            f" {LINE}",
            f"{LINE}\r",
            LINE.replace(" ", "\t"),
            f"{SHORT} alice -1 cms 8",
            f"{SHORT} alice 5.5 cms 8",
            f"{SHORT} alice 0x8 cms 8",
            f"{SHORT} alice 100001 cms 8",
            f"{SHORT} alice {'9' * 5000} cms 8",
            f"{SHORT} alice 56 cms 0",
            f"{SHORT} alice 56 cms 100001",
            f"{SHORT} alice 56 alice 8",
            f"{SHORT} ALICE 56 cms 8",
            f"{SHORT} none 56 cms 8",
            f"{SHORT} alice 56 other 8",
            f'{SHORT} alice 56 c"ms 8',
            f"{SHORT} _alice 56 cms 8",
            f"{SHORT} {'a' * 65} 56 cms 8",
            f"{SHORT}$ alice 56 cms 8",
            f"{'n' * 254} alice 56 cms 8",
            f"{LINE}\x0b{LINE}",
        ],
    )
    @pytest.mark.parametrize("place", [0, 1])
    def test_one_wrong_line_refuses_the_whole_file(
        self, node: Node, line: str, place: int, capfd: pytest.CaptureFixture[str]
    ) -> None:
        lines = ["cn-1 alice 8 cms 8", "cn-2 alice 8 cms 8"]
        lines.insert(place, line)
        assert node.reason("".join(f"{each}\n" for each in lines)) == "malformed"
        assert f"line {place + 1}: " in capfd.readouterr().err

    def test_all_wrong_lines_are_named(self, node: Node, capfd: pytest.CaptureFixture[str]) -> None:
        assert node.reason(text_of("x", LINE, "y", groups="cms,CMS")) == "malformed"
        message = capfd.readouterr().err
        for words in (
            "line 6: 'x' ''",
            "line 8: 'y' ''",
            "# groups: 'CMS'",
            "write node held_back cap_cores",
        ):
            assert words in message

    def test_a_hostile_file_does_not_flood_the_log(
        self, node: Node, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert node.reason("\x1b[2Jx\n" * 100000) == "malformed"
        message = capfd.readouterr().err
        assert len(message) < 2000
        assert "\x1b" not in message

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("", "no-line"),
            (LINE, "truncated"),
            (f"{LINE}\ncn-1 alice 8 cms 8", "truncated"),
            (f"{LINE}\ncn-1 ali", "truncated"),
            (text_of(LINE)[:-1], "truncated"),
            (text_of(LINE, count=2), "truncated"),
            (text_of(LINE, count=0), "truncated"),
            (text_of(LINE, groups=""), "ok"),
            (text_of(LINE, groups="alice"), "unknown-group"),
            (text_of("cn-1 cms 8 alice 8", LINE, "cn-2 bob 8 cms 8"), "unknown-group"),
            (text_of(LINE, header=HEADER.replace(": 1\n", ": 2\n")), "malformed"),
            (text_of(LINE, header=HEADER.replace(": 1\n", ": \n")), "malformed"),
            (text_of(LINE, header="# sharectl: 1\n# generated: 1\n"), "malformed"),
            (text_of(LINE, header="# sharectl: 1\n# valid_until: 1\n"), "malformed"),
            (text_of(LINE, header="# sharectl: 1\n# generated: now\n# valid_until: 1e9\n"), "malformed"),
            (text_of(LINE, header=HEADER + f"# generated: {NOW + 999}\n# new: thing\n# comment\n"), "ok"),
            (f"{LINE} \u00e9\n", "malformed"),
            (f"# caf\u00e9\n{LINE}\n", "malformed"),
            ("\0" * 100, "truncated"),
            ("\x7fELF\2\1\1\0\n", "malformed"),
            ("# comment\n" * 105000, "too-big"),
        ],
    )
    def test_text(self, node: Node, text: str, code: str) -> None:
        assert node.reason(text) == code

    @pytest.mark.parametrize(
        ("generated", "valid_until", "code"),
        [
            (0, 1, "ok"),
            (0, 0, "expired"),
            (-86399, 1, "ok"),
            (-86400, 1, "future"),
            (-86400, 0, "expired"),
            (300, 301, "ok"),
            (301, 302, "future"),
            (-1800, -1, "expired"),
        ],
    )
    def test_validity(self, node: Node, generated: int, valid_until: int, code: str) -> None:
        header = f"# sharectl: 1\n# generated: {NOW + generated}\n# valid_until: {NOW + valid_until}\n"
        assert node.reason(text_of(LINE, header=header)) == code

    @pytest.mark.parametrize(
        ("age_seconds", "code"), [(0, "ok"), (599, "ok"), (600, "expired"), (-300, "ok"), (-301, "future")]
    )
    def test_a_file_without_validity_lives_by_its_age(self, node: Node, age_seconds: int, code: str) -> None:
        node.publish(f"{LINE}\n", age_seconds)
        assert node.look(max_age_seconds="600")[0] == code

    def test_age_does_not_matter_to_a_file_that_says_how_long(self, node: Node) -> None:
        node.publish(text_of(LINE), 86400)
        assert node.look(max_age_seconds="1")[0] == "ok"

    def test_no_file(self, node: Node) -> None:
        assert node.look()[0] == "no-file"
        assert node.look(file=str(node.folder / "folder" / "file"))[0] == "no-file"

    def test_a_folder_in_its_place(self, node: Node) -> None:
        assert node.look(file=str(node.folder))[0] == "unreadable"

    def test_a_path_through_a_file(self, node: Node) -> None:
        node.publish(text_of(LINE))
        assert node.look(file=f"{node.file}/x")[0] == "unreadable"

    def test_a_pipe_is_not_waited_for(self, node: Node) -> None:
        os.mkfifo(node.file)
        assert node.look()[0] == "unsafe"

    def test_a_device(self, node: Node) -> None:
        assert node.look(file="/dev/zero")[0] == "unsafe"

    def test_a_file_that_everybody_may_write(self, node: Node) -> None:
        node.publish(text_of(LINE))
        node.file.chmod(0o666)
        assert node.look()[0] == "unsafe"

    def test_a_link_to_a_good_file_is_followed(self, node: Node) -> None:
        (node.folder / "shared").mkdir()
        real = Node(node.folder / "shared")
        real.publish(text_of(LINE))
        node.file.symlink_to(real.file)
        assert node.look()[0] == "ok"


class TestGroups:
    """Cores by group."""

    def jobs(self, node: Node, answer: str, **others: str) -> object:
        """t1_CurrentJobs for that answer of the startd."""
        node.answer = answer
        return node.look(**others)[1]["t1_CurrentJobs"]

    def test_most_cores_first_then_by_name(self, node: Node) -> None:
        answer = job_of("lhcb.a", 3) + job_of("atlas.b", 5) + job_of("babar", 3) + job_of("lhcb.c", 0)
        assert self.jobs(node, answer) == "atlas:5:babar:3:lhcb:3"

    def test_cores_of_a_group_add_up_whatever_its_case(self, node: Node) -> None:
        assert self.jobs(node, job_of("cms.a", 8) + job_of("CMS.prod.b", 1) + job_of("cms", 1)) == "cms:10"

    def test_an_empty_node(self, node: Node) -> None:
        assert self.jobs(node, held(0)) == "none:0"

    def test_the_held_back_group_comes_first_even_without_cores(self, node: Node) -> None:
        node.publish(text_of(LINE))
        assert self.jobs(node, job_of("cms.a", 8) + job_of("atlas.b", 9)) == "alice:0:atlas:9:cms:8"
        assert self.jobs(node, job_of("cms.a", 8) + job_of("alice.b", 2)) == "alice:2:cms:8"

    def test_without_a_target_it_has_no_place_of_its_own(self, node: Node) -> None:
        node.publish(text_of("cn-1 alice 8 cms 8"))
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
        node.publish(text_of(LINE, groups="alice,cms,atlas"))
        assert self.jobs(node, answer) == "alice:0:other:4:atlas:2:cms:1"
        assert self.jobs(node, answer, groups="bob") == "alice:0:bob:4:atlas:2:cms:1"

    def test_a_refused_file_lists_nothing(self, node: Node) -> None:
        node.publish(text_of(LINE, groups="alice,cms", count=7))
        assert self.jobs(node, job_of("bob.c", 4)) == "bob:4"

    def test_an_expired_file_still_lists_its_groups(self, node: Node) -> None:
        header = f"# sharectl: 1\n# generated: {NOW - 9}\n# valid_until: {NOW - 1}\n"
        node.publish(text_of(LINE, groups="alice,cms", header=header))
        assert self.jobs(node, job_of("bob.c", 4)) == "other:4"

    def test_users_cannot_make_the_list_long(self, node: Node) -> None:
        node.publish(f"{SHORT} zeta 8 cms 8\n")
        answer = "".join(job_of(f"group{number}.x", 1) for number in range(100)) + job_of("zeta.y", 5)
        jobs = str(self.jobs(node, answer))
        assert jobs.startswith("zeta:5:other:")
        assert jobs.count(":") == 2 * (job_ctl.MAX_NAMED_GROUPS + 1) - 1
        assert sum(map(int, jobs.split(":")[1::2])) == 105

    def test_fractions_of_cores_do_not_count(self, node: Node) -> None:
        assert self.jobs(node, held("1.5", '"cms.a@x"') + held("0.5", '"atlas.a@x"')) == "cms:1"

    @pytest.mark.parametrize("groups", ["CMS", "cms atlas", "cms,other", "c.d"])
    def test_a_wrong_list_is_a_wrong_argument(
        self, node: Node, groups: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert node.look(groups=groups)[0] == "bad-arguments"
        assert groups in capfd.readouterr().err


class TestStartd:
    """Without the node's cores the cap could not be kept: no target."""

    @pytest.mark.parametrize(
        "script", ["true", "exit 1", "kill -9 $$", 'printf \'"m" 1 "cms"\'', "yes", "exec /nonexistent"]
    )
    def test_no_answer(self, node: Node, script: str) -> None:
        node.publish(text_of(LINE))
        code, found = node.look(condor_status=shell_tool(node.folder / "other", script))
        assert code == "no-startd"
        assert found["t1_Targetcores"] == [0, 0]
        assert found["t1_CurrentJobs"] == "none:0"

    @pytest.mark.parametrize("answer", ["\n", "x\n", '"m" x "a"\n', '"m" inf "a"\n', '"m" undefined "a"\n'])
    def test_an_answer_that_makes_no_sense(self, node: Node, answer: str) -> None:
        node.publish(text_of(LINE))
        node.answer = answer
        code, found = node.look(host=SHORT)
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


class TestMain:
    """The program as a whole, in this process."""

    def test_a_run(self, node: Node, capfd: pytest.CaptureFixture[str]) -> None:
        before = int(time.time())
        node.file.write_text(f"{LINE}\n")
        options = node.options()
        status = job_ctl.main([word for item in options.items() for word in item])
        ad = classad2.parseOne(capfd.readouterr().out)
        assert (status, ad["t1_JobCtlReason"], list(ad["t1_Targetcores"])) == (0, "ok", [56, 8])
        assert before <= ad["t1_JobCtlTime"] <= time.time()
        assert before + 3600 <= ad["t1_TargetUntil"] <= time.time() + 3600

    def test_every_wrong_option_is_named_at_once(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert job_ctl.main(["JOB_CTL", "--file", "--max-age-seconds", "1e3", "--groups"]) == 2
        printed = capfd.readouterr()
        for word in ("'JOB_CTL'", "--max-age-seconds '1e3'", "'--groups' has no value"):
            assert word in printed.err
        ad = classad2.parseOne(printed.out)
        assert ad["t1_JobCtlReason"] == "bad-arguments"
        assert len(ad) == 6

    def test_help_is_the_manual_with_every_option_and_code(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert job_ctl.main(["--help"]) == 0
        text = capfd.readouterr().out
        assert str(job_ctl.__doc__) in text
        for word in (*job_ctl.OPTIONS, *job_ctl.REASONS):
            assert f"  {word} " in text
