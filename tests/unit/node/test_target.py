"""target.py: the node's order in a document, and why a document is refused."""

from __future__ import annotations

import hmac
import os
from pathlib import Path

import pytest

import target
import target_collector
from tests.node_fakes import (
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
ORDER = "alice 56 cms 8"
LINE = f"{SHORT} {ORDER}"
Answer = dict[str, object]


class Node:
    """A node in a folder, with a file that can be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "sharectl.txt"

    def publish(self, text: str, age_seconds: int = 0) -> None:
        """Write the file as it would have been written then."""
        self.file.write_text(text, encoding="utf-8")
        os.utime(self.file, (NOW - age_seconds, NOW - age_seconds))

    def look(self, **options: str) -> tuple[str, Answer]:
        """Code and the rest of the answer; see `words_of` for options."""
        given = {"host": MACHINE, "source": f"file:{options.pop('file', self.file)}", **options}
        source = given.pop("source")
        values, problems = target.parse_arguments(words_of(given))
        assert not problems
        values["--host"] = values["--host"].lower()
        answer = target.look(source, values, NOW)
        code, sequence, until = answer.code, answer.sequence, answer.until
        assert answer.status == {**target_collector.REASONS, **target.REASONS}[code][0]
        order, _, pending = answer.order.rpartition(" ")
        assert (order == target.NO_TARGET) == (code != "ok")
        assert pending == "undefined"
        assert code in ("ok", "no-line") or (sequence, until) == (0, 0)
        return code, {"sequence": sequence, "until": until, "order": order, "groups": answer.groups}

    def reason(self, text: str, **options: str) -> str:
        """Code of a look after ``text`` was published."""
        self.publish(text)
        return self.look(**options)[0]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node with no file."""
    return Node(tmp_path)


class TestTarget:
    """The line of this node."""

    def test_all_of_it_is_published(self, node: Node) -> None:
        lines = ("cn-1 alice 8 cms 8", LINE, "cn-2 atlas 0 cms 8")
        node.publish(document(*lines, groups="cms,atlas,alice"))
        code, answer = node.look(groups="zeus")
        groups = "alice,atlas,cms,zeus"
        until = NOW + 1800
        expected = {"sequence": NOW, "until": until, "order": ORDER, "groups": groups}
        assert (code, answer) == ("ok", expected)

    def test_names_of_nodes_are_short_or_full(self, node: Node) -> None:
        others = (SHORT[:-1], f"{SHORT}1", SHORT[1:], f"{SHORT}.example.com", "example.org")
        for name, host, code in (
            *((name, SHORT, "ok") for name in (SHORT, MACHINE, SHORT.upper(), MACHINE.title())),
            *((name, MACHINE.upper(), "ok") for name in (SHORT, MACHINE.upper())),
            *((name, MACHINE, "no-line") for name in others),
        ):
            assert node.reason(document(f"{name} {ORDER}"), host=host) == code, name

    def test_nodes_that_share_a_short_name(self, node: Node) -> None:
        text = document(f"{SHORT}.example.com cms 0 alice 8", f"{MACHINE} {ORDER}")
        assert node.reason(text) == "ok"
        assert node.look()[1]["order"] == ORDER
        assert node.reason(text, host=SHORT) == "duplicate-node"
        assert node.reason(document(LINE, f"{MACHINE} cms 0 alice 8")) == "duplicate-node"

    def test_the_seeds_own_file_is_valid(self, node: Node) -> None:
        node.publish(f"{LINE}\ncn-610-02-03 {ORDER}\n\n# by hand\ncn-1 alice 42 cms 8\n", 600)
        code, answer = node.look()
        assert (code, answer["sequence"], answer["until"]) == ("ok", 0, NOW - 600 + 3600)


def valid(generated: int, valid_until: int, ahead: int = 0) -> str:
    """A document of those seconds from now; its sequence is ``ahead`` of the clock."""
    begin, seconds = NOW + generated, valid_until - generated
    return document(LINE, sequence=NOW + ahead, now=begin, validity_seconds=seconds)


HEADERS = ("generated", "valid_until", "sequence")
TEXTS = {
    "ok": (
        document(LINE, groups=""),
        document(LINE, groups=f"alice,cms\n# generated: {NOW + 999}\n# new: thing"),
        *(valid(*row) for row in ((0, 1), (-86399, 1), (300, 301), (0, 1, 300), (0, 1, -(10**9)))),
    ),
    "no-line": ("",),
    "truncated": (
        *(LINE, f"{LINE}\ncn-1 {ORDER}", document(LINE)[:-1], "\0" * 100),
        *(document(LINE)[:size] for size in (14, 30, 60, 100)),
        document(LINE).partition("# targets")[0],
        *(document(LINE).replace("targets: 1", f"targets: {number}") for number in (0, 2)),
    ),
    "unknown-group": (
        document(LINE, groups="alice"),
        document("cn-1 cms 8 alice 8", LINE, "cn-2 bob 8 cms 8"),
    ),
    "malformed": (
        *(document(LINE).replace("sharectl: 1", f"sharectl: {number}") for number in ("2", "")),
        document(LINE).replace("# generated: ", "# generated: now"),
        *(document(LINE).replace(f"# {name}: ", "# x: ") for name in HEADERS),
        *(document(LINE, sequence=number) for number in ("", "-1", "1e9", "9" * 11)),
        *(f"{LINE} \u00e9\n", f"# caf\u00e9\n{LINE}\n", "\x7fELF\2\1\1\0\n"),
    ),
    "too-big": ("# comment\n" * 105000,),
    "expired": (valid(0, 0), valid(-86400, 0), valid(-1800, -1)),
    # A sequence ahead of the clock would shut out those of the right time.
    "future": (valid(-86400, 1), valid(301, 302), valid(0, 1, 301)),
}


class TestFile:
    """Faults of a file, one code each."""

    @pytest.mark.parametrize(
        "line",
        [
            *(f" {LINE}", f"{LINE} ", f"{LINE}\r", LINE.replace(" ", "\t"), f"{LINE}\x0b{LINE}"),
            f"{SHORT}$ {ORDER}",
            f"{'n' * 254} {ORDER}",
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
    def test_one_wrong_line_refuses_the_whole_file(
        self, node: Node, line: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert node.reason(f"{LINE}\n{line}\ncn-2 {ORDER}\n") == "malformed"
        assert "line 2: " in capfd.readouterr().err

    def test_all_wrong_lines_are_named(self, node: Node, capfd: pytest.CaptureFixture[str]) -> None:
        assert node.reason(document("x", LINE, "y", groups="cms,CMS")) == "malformed"
        message = capfd.readouterr().err
        for words in ("line 7: 'x' ''", "line 9: 'y' ''", "# groups: 'CMS'"):
            assert words in message
        assert node.reason("\x1b[2Jx\n" * 100000) == "malformed"
        message = capfd.readouterr().err
        assert len(message) < 2000
        assert "\x1b" not in message

    @pytest.mark.parametrize(
        ("code", "text"), [(code, text) for code, texts in TEXTS.items() for text in texts]
    )
    def test_text(self, node: Node, text: str, code: str) -> None:
        assert node.reason(text) == code

    def test_a_file_without_validity_lives_by_its_age(self, node: Node) -> None:
        ages = {0: "ok", 599: "ok", 600: "expired", -300: "ok", -301: "future"}
        for age_seconds, code in ages.items():
            node.publish(f"{LINE}\n", age_seconds)
            assert node.look(max_age_seconds="600")[0] == code
        node.publish(document(LINE), 86400)
        assert node.look(max_age_seconds="1")[0] == "ok", "it has a validity"

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
            ("link", "ok"),
        ],
    )
    def test_kinds_of_files(self, node: Node, path: str, code: str) -> None:
        node.publish(document(LINE))
        os.mkfifo(node.folder / "pipe")
        (node.folder / "link").symlink_to(node.file)
        (node.folder / "open").write_text(document(LINE))
        (node.folder / "open").chmod(0o666)
        assert node.look(file=str(node.folder / path))[0] == code

    def test_with_pool_only_its_documents_count(self, node: Node) -> None:
        for pool, asked in (("p1", "p1"), ("p1", ""), ("", "")):
            assert node.reason(document(LINE, pool=pool), pool=asked) == "ok"
        for pool, asked in (("p1", "p2"), ("", "p1"), ("P1", "p1")):
            assert node.reason(document(LINE, pool=pool), pool=asked) == "other-pool"
        assert node.reason(f"{LINE}\n", pool="p1") == "other-pool", "by hand there is no name"


def test_an_ad_is_known_by_its_sender_and_needs_no_signature(node: Node) -> None:
    """With one --key-file for all sources of the node."""
    for sender, pool, code in (
        ("condor@pool", "pool-1", "ok"),
        ("mallory@pool", "pool-1", "forged"),
        ("condor@pool", "pool-2", "other-pool"),
    ):
        ad = ad_line(sender, SHORT, "alice", 56, "cms", 8, pool="pool-1")
        seen, answer = node.look(
            source="collector:",
            identity="condor@pool",
            condor_status=tool_that_prints(node.folder / "bin", ad),
            key_file=key_file(node.folder, "old"),
            pool=pool,
        )
        assert (seen, answer["order"] == ORDER) == (code, code == "ok")


SIGNED = document(LINE, key_id="old")


def with_empty_key(key_id: str) -> str:
    """A document signed with the empty key, under that id."""
    text = document(LINE)
    digest = hmac.new(b"", text.encode(), "sha256").hexdigest()
    return f"{text}# signature: hmac-sha256 {key_id} {digest}\n"


class TestSignature:
    """With --key-file only documents count that one of its keys has signed."""

    def test_who_has_signed(self, node: Node) -> None:
        new, plain = document(LINE, key_id="new"), document(LINE)
        by_hand = f"{LINE}\n"
        for code, keys, texts in (
            ("ok", "", (SIGNED,)),
            ("ok", "old", (SIGNED, by_hand + signature(by_hand, "old"))),
            ("ok", "old new", (SIGNED, new)),
            ("ok", "new old", (new,)),
            ("bad-signature", "new", (SIGNED,)),
            (
                "bad-signature",
                "old",
                (
                    *(new, SIGNED + signature(plain, "new"), plain + "# signature: \n"),
                    plain + f"# signature: hmac-sha256 old {'0' * 64}\n",
                    # An id without a key stands for no key, not for an empty one.
                    *(with_empty_key(key_id) for key_id in ("new", "", "old,new")),
                ),
            ),
            (
                "unsigned",
                "old",
                (
                    *(plain, "", by_hand, SIGNED[:-1], SIGNED + "# comment\n"),
                    *(SIGNED + f"{SHORT} alice 0 cms 8\n", signature("", "old")),
                ),
            ),
        ):
            options = {"key_file": key_file(node.folder, *keys.split())} if keys else {}
            for text in texts:
                assert node.reason(text, **options) == code, text

    def test_another_users_key_file(self, node: Node) -> None:
        path = key_file(node.folder, "old")
        if os.geteuid():
            pytest.skip("only root can give a file away")
        os.chown(path, 12345, 0)
        assert node.reason(SIGNED, key_file=path) == "unsafe-key"


def run(
    argv: list[str], capfd: pytest.CaptureFixture[str]
) -> tuple[int, list[dict[str, str]], str]:
    """Exit status, answer for each source, and standard error of the program."""
    status, printed = target.main(argv), capfd.readouterr()
    lines = [line.partition(" ")[::2] for line in printed.out.splitlines()]
    blocks = [dict(lines[number : number + 6]) for number in range(0, len(lines), 6)]
    return status, blocks, printed.err


def test_by_hand_it_answers_for_every_source(node: Node, capfd: pytest.CaptureFixture[str]) -> None:
    node.file.write_text(f"{LINE}\n")
    sources = f"file:{node.folder}/none,file:{node.file},file:{node.folder}"
    status, blocks, errors = run(["--source", sources, "--host", SHORT], capfd)
    assert [block["reason"] for block in blocks] == ["no-file", "ok", "unreadable"]
    assert blocks[1]["source"] == f"file:{node.file}"
    assert blocks[1]["order"] == f"{ORDER} undefined"
    assert (status, "no-file: " in errors) == (76, True)


def test_wrong_options(capfd: pytest.CaptureFixture[str]) -> None:
    wrong = {
        "--source": ("http://cm/x", "/a.txt", "file:a", "file:/a,,file:/b", "x\nreason ok\n\udcff"),
        "--host": ("a b", 'cn-1" || True || "'),
        "--max-age-seconds": ("0",),
    }
    rows = [(option, text) for option, texts in wrong.items() for text in texts]
    for option, text in (*rows, ("--source", "collector:")):
        status, (first, *_), errors = run([option, text], capfd)
        seen = (status, first["reason"], first["order"])
        assert seen == (2, "bad-arguments", f"{target.NO_TARGET} undefined")
        assert option in errors
