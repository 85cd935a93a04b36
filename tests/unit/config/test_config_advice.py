"""Findings about a sound configuration on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.config.advice import absent, advice, protected, unlimited, unusable
from sharectl.config.load import parse
from sharectl.config.model import Config
from sharectl.publish import signing
from tests.fakes import Listing

GROUPS = "groups: {cms: {pledge_hs06: 1}}\n"
SECRET = "0123456789abcdef" * 4


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder that nobody else can write to, whatever lies above it."""
    folder = tmp_path / "own"
    folder.mkdir(mode=0o755)
    return folder


def config(folder: Path, publish: str, more: str = "") -> Config:
    return parse(f"{GROUPS}state_directory: {folder}\npublish: [{publish}]\n{more}", "F")


def served(folder: Path) -> str:
    return f"{{https: {{file: {folder}/x, url: 'https://cm/x'}}}}"


def mounts(folder: Path, *lines: str) -> Path:
    path = folder / "mounts"
    table = ("dev / ext4 rw 0 0", *lines)
    path.write_text("".join(f"{line}\n" for line in table), encoding="utf-8")
    return path


# ---- signatures


def test_a_file_on_a_network_file_system_is_to_be_signed(own: Path) -> None:
    (own / "shared").mkdir()
    local = f"dev {own}/shared ext4 rw 0 0"
    for kind in ("nfs", "nfs4", "cifs", "ceph", "fuse.sshfs"):
        remote = f"server:/x {own}/shared {kind} rw 0 0"
        table = mounts(own, local, remote, "tmpfs /elsewhere tmpfs rw 0 0")
        (line,) = advice(config(own, f'{{file: "{own}/shared/sharectl.txt"}}'), table)
        assert (line[:17], f"({kind})" in line) == ("publish[0].file: ", True)
        assert advice(config(own, f"{{file: {own}/sharectl.txt}}"), table) == []
        table = mounts(own, remote, local)
        why = signing.why_untrusted(own / "shared" / "sharectl.txt", table, [os.geteuid()])
        assert kind not in (why or ""), "of two mounts on one place the later counts"


def test_so_is_a_file_that_others_can_replace(own: Path) -> None:
    (own / "deep").mkdir()
    file = own / "deep" / "sharectl.txt"
    for mode in (0o775, 0o777, 0o1777):
        own.chmod(mode)
        (line,) = advice(config(own, f"{{file: {own}/sharectl.txt}}"), mounts(own))
        assert f"{own} can be written to by others (mode {mode:04o})" in line
        assert bool(advice(config(own, f"{{file: {file}}}"), mounts(own))) == (mode != 0o1777)
    file.touch()
    stranger = os.geteuid() or 4242
    os.chown(file, stranger, -1)
    assert signing.why_untrusted(file, mounts(own), ()) == f"belongs to uid {stranger}"
    own.chmod(0o755)
    assert signing.why_untrusted(file, own / "no-such-table", [stranger]) is None


def test_files_of_a_web_server_are_to_be_signed_and_ads_are_not(own: Path) -> None:
    (line,) = advice(config(own, f"{served(own)}, {{collector: {{}}}}"), mounts(own))
    assert line.startswith("publish[0].https: ")
    key = f"signing_key_file: {own}/keys\n"
    assert advice(config(own, served(own), key), mounts(own)) == []
    (line,) = advice(config(own, "{collector: {}}", key), mounts(own))
    assert line.startswith("signing_key_file: signs nothing")


def test_a_key_that_cannot_be_used_is_a_finding(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, path = own / "keys", own / "sharectl.yaml"
    path.write_text(f"{GROUPS}state_directory: {own}\nsigning_key_file: {keys}\n", encoding="utf-8")
    assert main(["check", "config", "--config", str(path)]) == 1
    assert f"signing_key_file: {keys}: cannot be read: " in capsys.readouterr().err
    keys.write_text(f"a {SECRET}\n", encoding="utf-8")
    for mode, exit_code in ((0o644, 1), (0o600, 0)):
        keys.chmod(mode)
        assert main(["check", "config", "--config", str(path)]) == exit_code
        out, err = capsys.readouterr()
        assert ("chmod 0640" in err) == bool(exit_code)
        assert f"signing_key_file: {keys}\n" in out
        assert SECRET[:16] not in out + err


# ---- folders


def test_folders_and_files_that_are_absent_or_in_the_way_are_named(
    own: Path, listing: Listing, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "web").mkdir()
    (own / "file").touch()

    def outcome(text: str) -> Iterator[str]:
        chosen = parse(GROUPS + text.replace("OWN", str(own)), "F")
        problems, unknown = unusable(chosen, own / "F")
        lines = [*problems, *unknown, *(f"recommended: {line}" for line in absent(chosen, {}))]
        return (line.replace(str(own), "OWN") for line in lines)

    listing("config/machine.txt", outcome, 6)
    path = own / "sharectl.yaml"
    path.write_text(f"{GROUPS}state_directory: {own}/file\n", encoding="utf-8")
    assert main(["check", "config", "--config", str(path)]) == 1
    assert "state_directory, publish[0].file: " in capsys.readouterr().err


UNIT = {
    "LoadState": "loaded",
    "StateDirectory": "sharectl",
    "ReadWritePaths": "-/srv /shared",
    "ProtectSystem": "strict",
}


def test_a_folder_that_the_unit_protects_is_named(listing: Listing) -> None:
    def outcome(text: str) -> Iterator[str]:
        chosen = parse(GROUPS + text, "F")
        assert list(protected(chosen, {})) == []
        assert "/var/lib/sharectl on" not in "".join(absent(chosen, UNIT)), "systemd makes it"
        yield from protected(chosen, UNIT)

    listing("config/protected.txt", outcome, 6)


# ---- nodes


def test_a_whole_pool_that_is_steered_at_once_is_named() -> None:
    (line,) = unlimited(parse(GROUPS, "F"))
    assert line.startswith("nodes.controlled: all nodes, and no limit: ")
    for more in (
        "mode: observe",
        'nodes: {controlled: "5%"}',
        "control: {max_nodes: 5}",
        'control: {max_target_share: "5%"}',
        "control: {max_changed_nodes: 5}",
    ):
        assert list(unlimited(parse(f"{GROUPS}{more}\n", "F"))) == [], more
