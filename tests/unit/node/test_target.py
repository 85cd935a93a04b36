"""target.py: the node's order in a document, and why a document is refused."""

from __future__ import annotations

import hmac
import os
from pathlib import Path

import pytest

import target
import target_collector
from tests.node_fakes import (
    KEYS,
    MACHINE,
    NOW,
    ad_line,
    document,
    key_file,
    signature,
    tool_that_prints,
    words_of,
)

SHORT = MACHINE.split(".", maxsplit=1)[0]
LINE = f"{SHORT} alice 56 cms 8"
HEADER = f"# sharectl: 1\n# sequence: {NOW}\n# generated: {NOW - 60}\n# valid_until: {NOW + 1800}\n"
Answer = dict[str, object]


def text_of(
    *lines: str, groups: str = "alice,cms,atlas,lhcb", count: int = -1, header: str = HEADER
) -> str:
    """A published file with these data lines."""
    total = len(lines) if count < 0 else count
    return "".join(
        f"{line}\n" for line in (f"{header}# groups: {groups}", f"# targets: {total}", *lines)
    )


class Node:
    """A node in a folder, with a file that can be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "sharectl.txt"

    def publish(self, text: str, age_seconds: int = 0) -> None:
        """Write the file as it would have been written then."""
        self.file.write_text(text, encoding="utf-8")
        os.utime(self.file, (NOW - age_seconds, NOW - age_seconds))

    def look(self, **others: str) -> tuple[str, Answer]:
        """Code and the rest of the answer; see `words_of` for options."""
        given = {"host": MACHINE, "source": f"file:{others.pop('file', str(self.file))}", **others}
        source = given.pop("source")
        options, problems = target.parse_arguments(words_of(given))
        assert not problems
        options["--host"] = options["--host"].lower()
        status, code, sequence, until, order, groups = target.look(source, options, NOW)
        assert status == {**target_collector.REASONS, **target.REASONS}[code][0]
        order, _, pending = order.rpartition(" ")
        assert (order == target.NO_TARGET) == (code != "ok")
        assert pending == "undefined"
        assert code in ("ok", "no-line") or (sequence, until) == (0, 0)
        return code, {"sequence": sequence, "until": until, "order": order, "groups": groups}

    def reason(self, text: str, **others: str) -> str:
        """Code of a look after ``text`` was published."""
        self.publish(text)
        return self.look(**others)[0]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node with no file."""
    return Node(tmp_path)


class TestTarget:
    """The line of this node."""

    def test_all_of_it_is_published(self, node: Node) -> None:
        node.publish(text_of("cn-1 alice 8 cms 8", LINE, "cn-2 atlas 0 cms 8"))
        code, told = node.look()
        assert set(str(told.pop("groups")).split(",")) == {"alice", "cms", "atlas", "lhcb"}
        assert (code, told) == (
            "ok",
            {"sequence": NOW, "until": NOW + 1800, "order": "alice 56 cms 8"},
        )

    @pytest.mark.parametrize("name", [SHORT, MACHINE, SHORT.upper(), MACHINE.title()])
    @pytest.mark.parametrize("host", [SHORT, MACHINE, MACHINE.upper()])
    def test_the_node_is_found_by_short_or_full_name(
        self, node: Node, name: str, host: str
    ) -> None:
        assert node.reason(text_of(f"{name} alice 56 cms 8"), host=host) == "ok"

    @pytest.mark.parametrize(
        "name",
        ["cn-609-05-0", "cn-609-05-061", "n-609-05-06", f"{SHORT}.example.com", "example.org"],
    )
    def test_no_other_node_is_taken_for_it(self, node: Node, name: str) -> None:
        assert node.reason(text_of(f"{name} alice 56 cms 8")) == "no-line"

    def test_nodes_that_share_a_short_name_are_told_apart(self, node: Node) -> None:
        lines = f"{SHORT}.example.com atlas 0 cms 8", f"{MACHINE} alice 56 cms 8"
        assert node.reason(text_of(*lines)) == "ok"
        assert node.look()[1]["order"] == "alice 56 cms 8"
        assert node.reason(text_of(*lines), host=SHORT) == "duplicate-node"
        assert node.reason(text_of(LINE, f"{MACHINE} atlas 0 cms 8")) == "duplicate-node"

    def test_the_seeds_own_file_is_valid(self, node: Node) -> None:
        node.publish(
            f"{LINE}\ncn-610-02-03 alice 56 cms 8\n\n# by hand\ncn-608-06-06 alice 42 cms 8\n", 600
        )
        code, told = node.look()
        assert (code, told["sequence"], told["until"]) == ("ok", 0, NOW - 600 + 3600)


class TestFile:
    """What makes a file unfit, one code each."""

    @pytest.mark.parametrize(
        "line",
        [
            *(f" {LINE}", f"{LINE} ", f"{LINE}\r", LINE.replace(" ", "\t"), f"{LINE}\x0b{LINE}"),
            f"{SHORT}$ alice 56 cms 8",
            f"{'n' * 254} alice 56 cms 8",
            *(
                f"{SHORT} {order}"
                for order in (
                    *("alice 56 cms", "alice 56 cms 8 more", " alice 56 cms 8", "alice -1 cms 8"),
                    *("alice 5.5 cms 8", "alice 0x8 cms 8", "alice 100001 cms 8"),
                    *(f"alice {'9' * 5000} cms 8", "alice 56 cms 0", "alice 56 cms 100001"),
                    *("alice 56 alice 8", "ALICE 56 cms 8", "none 56 cms 8", "alice 56 other 8"),
                    *('alice 56 c"ms 8', "_alice 56 cms 8", f"{'a' * 65} 56 cms 8"),
                )
            ),
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
        for words in ("line 7: 'x' ''", "line 9: 'y' ''", "# groups: 'CMS'"):
            assert words in message
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
            *(
                (text_of(LINE, header=f"# sharectl: {header}\n"), "malformed")
                for header in (
                    "2",
                    "",
                    "1\n# generated: 1",
                    "1\n# valid_until: 1",
                    "1\n# generated: now\n# valid_until: 1e9",
                )
            ),
            (text_of(LINE, header=f"{HEADER}# generated: {NOW + 999}\n# new: thing\n"), "ok"),
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
        header = (
            f"# sharectl: 1\n# sequence: 1\n# generated: {NOW + generated}\n# valid_until: "
            f"{NOW + valid_until}\n"
        )
        assert node.reason(text_of(LINE, header=header)) == code

    @pytest.mark.parametrize(
        ("age_seconds", "code"),
        [(0, "ok"), (599, "ok"), (600, "expired"), (-300, "ok"), (-301, "future")],
    )
    def test_a_file_without_validity_lives_by_its_age(
        self, node: Node, age_seconds: int, code: str
    ) -> None:
        node.publish(f"{LINE}\n", age_seconds)
        assert node.look(max_age_seconds="600")[0] == code
        node.publish(text_of(LINE), 86400)
        assert node.look(max_age_seconds="1")[0] == "ok", "it says itself how long it is valid"

    @pytest.mark.parametrize(
        ("path", "code"),
        [
            ("none", "no-file"),
            ("none/none", "no-file"),
            (".", "unreadable"),
            ("sharectl.txt/x", "unreadable"),
            ("pipe", "unsafe"),
            ("/dev/zero", "unsafe"),
            ("open", "unsafe"),
        ],
    )
    def test_what_is_no_file_of_its_own(self, node: Node, path: str, code: str) -> None:
        node.publish(text_of(LINE))
        os.mkfifo(node.folder / "pipe")
        (node.folder / "open").write_text(text_of(LINE))
        (node.folder / "open").chmod(0o666)
        assert node.look(file=str(node.folder / path))[0] == code

    def test_a_link_to_a_good_file_is_followed(self, node: Node) -> None:
        (node.folder / "shared").mkdir()
        real = Node(node.folder / "shared")
        real.publish(text_of(LINE))
        node.file.symlink_to(real.file)
        assert node.look()[0] == "ok"


class TestSequence:
    """Every published document has one."""

    @pytest.mark.parametrize(
        ("ahead", "code"), [(0, "ok"), (300, "ok"), (301, "future"), (-(10**9), "ok")]
    )
    def test_one_ahead_of_the_clock_would_shut_out_those_of_the_right_time(
        self, node: Node, ahead: int, code: str
    ) -> None:
        assert node.reason(document(LINE, sequence=NOW + ahead)) == code

    @pytest.mark.parametrize("sequence", ["", "-1", "1e9", "9" * 11])
    def test_it_is_a_whole_number(self, node: Node, sequence: str) -> None:
        assert node.reason(document(LINE, sequence=sequence)) == "malformed"
        assert node.reason(document(LINE).replace(f"# sequence: {NOW}\n", "")) == "malformed"


class TestPool:
    """With --pool only that pool's documents count."""

    @pytest.mark.parametrize(
        ("pool", "asked", "code"),
        [
            ("p1", "p1", "ok"), ("p1", "", "ok"), ("", "", "ok"),
            ("p1", "p2", "other-pool"), ("", "p1", "other-pool"), ("P1", "p1", "other-pool"),
        ],
    )  # fmt: skip
    def test_pool(self, node: Node, pool: str, asked: str, code: str) -> None:
        assert node.reason(document(LINE, pool=pool), pool=asked) == code

    def test_a_file_by_hand_names_none(self, node: Node) -> None:
        assert node.reason(f"{LINE}\n", pool="p1") == "other-pool"


class TestCollector:
    """Documents of target_collector.py are judged as any other, but for the signature."""

    @pytest.mark.parametrize(
        ("sender", "pool", "expected"),
        [
            # With one --key-file for all sources of the node.
            ("condor@pool", "pool-1", ("ok", "alice 56 cms 8")),
            ("mallory@pool", "pool-1", ("forged", target.NO_TARGET)),
            ("condor@pool", "pool-2", ("other-pool", target.NO_TARGET)),
        ],
    )
    def test_an_ad_is_known_by_its_sender_and_needs_no_signature(
        self, node: Node, sender: str, pool: str, expected: tuple[str, str]
    ) -> None:
        ad = ad_line(sender, SHORT, "alice", 56, "cms", 8, pool="pool-1")
        code, answer = node.look(
            source="collector:",
            identity="condor@pool",
            condor_status=tool_that_prints(node.folder / "bin", ad),
            key_file=key_file(node.folder, "old"),
            pool=pool,
        )
        assert (code, answer["order"]) == expected


class TestSignature:
    """With --key-file only what one of its keys has signed counts."""

    @pytest.mark.parametrize(
        ("signed_with", "keys", "code"),
        [
            ("old", ["old"], "ok"), ("old", ["old", "new"], "ok"), ("new", ["old", "new"], "ok"),
            ("new", ["new", "old"], "ok"), ("old", ["new"], "bad-signature"),
            ("new", ["old"], "bad-signature"),
            ("", ["old"], "unsigned"), ("old", [], "ok"),
        ],
    )  # fmt: skip
    def test_rotation(self, node: Node, signed_with: str, keys: list[str], code: str) -> None:
        given = {"key_file": key_file(node.folder, *keys)} if keys else {}
        assert node.reason(document(LINE, key_id=signed_with), **given) == code

    def test_a_key_that_is_not_known_is_told_from_a_wrong_signature(
        self, node: Node, capfd: pytest.CaptureFixture[str]
    ) -> None:
        keys = key_file(node.folder, "old")
        node.reason(document(LINE, key_id="new"), key_file=keys)
        assert capfd.readouterr().err.endswith("bad-signature: 'key id new: not in --key-file'\n")
        node.reason(document(LINE, key_id="old").replace("alice 56", "alice 57"), key_file=keys)
        assert capfd.readouterr().err.endswith(
            "'key id old: in --key-file, but the signature is not its'\n"
        )

    def test_groups_are_told_in_order(self, node: Node) -> None:
        node.publish(text_of(LINE))
        told = str(node.look(groups="zeus,atlas,lhcb")[1]["groups"]).split(",")
        assert told == sorted({*told, "zeus", "atlas", "lhcb", "cms"})

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("", "unsigned"),
            (f"{LINE}\n", "unsigned"),
            (document(LINE, key_id="old")[:-1], "unsigned"),
            (document(LINE, key_id="old") + "# comment\n", "unsigned"),
            (document(LINE, key_id="old") + f"{SHORT} alice 0 cms 8\n", "unsigned"),
            (document(LINE, key_id="old") + signature(document(LINE), "new"), "bad-signature"),
            (document(LINE) + "# signature: \n", "bad-signature"),
            (document(LINE) + f"# signature: hmac-sha256 old {'0' * 64}\n", "bad-signature"),
            (signature("", "old"), "unsigned"),
        ],
    )
    def test_what_is_not_signed_by_a_key(self, node: Node, text: str, code: str) -> None:
        assert node.reason(text, key_file=key_file(node.folder, "old")) == code

    @pytest.mark.parametrize("key_id", ["new", "", "old,new"])
    def test_an_id_without_a_key_stands_for_no_key_not_for_an_empty_one(
        self, node: Node, key_id: str
    ) -> None:
        text = document(LINE)
        forged = (
            f"{text}# signature: hmac-sha256 {key_id} "
            f"{hmac.new(b'', text.encode(), 'sha256').hexdigest()}\n"
        )
        assert node.reason(forged, key_file=key_file(node.folder, "old")) == "bad-signature"

    def test_a_file_by_hand_can_be_signed_too(self, node: Node) -> None:
        text = f"{LINE}\n" + signature(f"{LINE}\n", "old")
        assert node.reason(text, key_file=key_file(node.folder, "old")) == "ok"

    @pytest.mark.parametrize(
        ("content", "code"),
        [
            ("", "bad-key"), ("# none\n", "bad-key"), ("old\n", "bad-key"),
            (f"old {'0' * 63}\n", "bad-key"),
            (f"old {'0' * 65}\n", "bad-key"), (f"old {'0' * 130}\n", "bad-key"),
            (f"old {'g' * 64}\n", "bad-key"),
            (f"OLD {'0' * 64}\n", "bad-key"), (f"{'o' * 33} {'0' * 64}\n", "bad-key"),
            (f" {'0' * 64}\n", "bad-key"),
            (f"a {'0' * 64}\nb {'1' * 64}\nc {'2' * 64}\n", "bad-key"),
            (f"a {'0' * 64}\na {'1' * 64}\n", "bad-key"),
            (f"old {'0' * 32} {'0' * 32}\n", "bad-key"), (f" old\t {KEYS['old']}\n", "ok"),
            (f"old {KEYS['old']}\r\n", "ok"), (f"old {KEYS['old']}", "ok"),
            (f"old {KEYS['old'].upper()}\n", "ok"),
            ("\u00e9 0\n", "bad-key"),
        ],
    )  # fmt: skip
    def test_what_a_key_file_may_hold(self, node: Node, content: str, code: str) -> None:
        path = node.folder / "keys"
        path.write_text(content, encoding="utf-8")
        path.chmod(0o600)
        assert node.reason(document(LINE, key_id="old"), key_file=str(path)) == code

    @pytest.mark.parametrize(
        ("mode", "code"),
        [(0o640, "ok"), (0o600, "ok"), (0o400, "ok"), (0o750, "ok"), (0o660, "unsafe-key"),
        (0o644, "unsafe-key"),
         (0o641, "unsafe-key"), (0o602, "unsafe-key")],
    )  # fmt: skip
    def test_who_may_read_it(self, node: Node, mode: int, code: str) -> None:
        path = key_file(node.folder, "old")
        Path(path).chmod(mode)
        assert node.reason(document(LINE, key_id="old"), key_file=path) == code

    def test_another_users_key_file(self, node: Node) -> None:
        path = key_file(node.folder, "old")
        if os.geteuid():
            pytest.skip("only root can give a file away")
        os.chown(path, 12345, 0)
        assert node.reason(document(LINE, key_id="old"), key_file=path) == "unsafe-key"

    @pytest.mark.parametrize(
        ("path", "code"), [("none", "no-key"), (".", "no-key"), ("pipe", "unsafe-key")]
    )
    def test_what_is_no_key_file(self, node: Node, path: str, code: str) -> None:
        os.mkfifo(node.folder / "pipe", 0o600)
        text = document(LINE, key_id="old")
        assert node.reason(text, key_file=str(node.folder / path)) == code

    def test_no_part_of_a_key_is_printed(
        self, node: Node, capfd: pytest.CaptureFixture[str]
    ) -> None:
        path = Path(key_file(node.folder, "old"))
        path.write_text(f"old {KEYS['old']}x\n")
        assert node.reason(document(LINE, key_id="old"), key_file=str(path)) == "bad-key"
        assert KEYS["old"][:8] not in capfd.readouterr().err


class TestMain:
    """The program as a whole, in this process."""

    def told(
        self, *argv: str, capfd: pytest.CaptureFixture[str]
    ) -> tuple[int, list[dict[str, str]], str]:
        """Exit status, what is told of each source, and what is said about it."""
        status = target.main(list(argv))
        printed = capfd.readouterr()
        lines = [line.partition(" ") for line in printed.out.splitlines()]
        assert len(lines) % 6 == 0
        blocks = [lines[number : number + 6] for number in range(0, len(lines), 6)]
        return status, [{name: text for name, _, text in block} for block in blocks], printed.err

    def test_by_hand_it_tells_of_every_source(
        self, node: Node, capfd: pytest.CaptureFixture[str]
    ) -> None:
        node.file.write_text(f"{LINE}\n")
        sources = f"file:{node.folder}/none,file:{node.file},file:{node.folder}"
        status, blocks, errors = self.told("--source", sources, "--host", SHORT, capfd=capfd)
        assert [block["reason"] for block in blocks] == ["no-file", "ok", "unreadable"]
        assert blocks[1]["source"] == f"file:{node.file}"
        assert blocks[1]["order"] == "alice 56 cms 8 undefined"
        assert (status, "no-file: " in errors) == (76, True)

    @pytest.mark.parametrize(
        ("argv", "words"),
        [
            (["--source", "http://cm/x"], "https://host/path"),
            (["--source", "/shared/sharectl.txt"], "file:/path"),
            (["--source", "file:sharectl.txt"], "file:/path"),
            (["--source", "file:/a,,file:/b"], "file:/path"),
            (["--source", "collector:"], "needs --identity"),
            (["--host", "a b"], "--host"),
            (["--host", 'cn-1" || True || "'], "--host"),
            (["--max-age-seconds", "0"], "from 1 to 86400"),
            (["--explain"], "has no value"),
        ],
    )
    def test_wrong_options(
        self, argv: list[str], words: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        status, (first, *_), errors = self.told(*argv, capfd=capfd)
        assert (status, first["reason"]) == (2, "bad-arguments")
        assert first["order"] == "none 0 none 0 undefined"
        assert words in errors

    def test_a_strange_source_stays_one_line(self, capfd: pytest.CaptureFixture[str]) -> None:
        status, (first,), _ = self.told("--source", "x\nreason ok\n\udcff", capfd=capfd)
        assert (status, first["reason"]) == (2, "bad-arguments")
