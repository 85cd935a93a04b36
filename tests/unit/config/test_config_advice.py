from __future__ import annotations

import os
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.config.advice import absent, advice, protected, unit_of, unusable
from sharectl.config.load import parse
from sharectl.config.model import Config
from sharectl.publish import signing

SECRET = "0123456789abcdef" * 4


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder that nobody else can write to, whatever lies above it."""
    folder = tmp_path / "own"
    folder.mkdir(mode=0o755)
    return folder


def config(folder: Path, publish: str, more: str = "") -> Config:
    return parse(
        f"groups: {{cms: {{pledge_hs06: 1}}}}\nstate_directory: {folder}\npublish: "
        f"[{publish}]\n{more}",
        "F",
    )


def mounts(folder: Path, *lines: str) -> Path:
    path = folder / "mounts"
    path.write_text(
        "".join(f"{line}\n" for line in ("dev / ext4 rw 0 0", *lines)), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "ceph", "fuse.sshfs"])
def test_a_file_that_others_machines_write_to_is_to_be_signed(own: Path, kind: str) -> None:
    table = mounts(
        own, f"server:/x {own}/sh\\040ared {kind} rw 0 0", "tmpfs /elsewhere tmpfs rw 0 0"
    )
    (own / "sh ared").mkdir()
    (line,) = advice(config(own, f'{{file: "{own}/sh ared/sharectl.txt"}}'), table)
    assert line.startswith("publish[0].file: ")
    assert f"network file system ({kind})" in line
    assert "write signing_key_file: /etc/sharectl/keys" in line
    assert advice(config(own, f"{{file: {own}/sharectl.txt}}"), table) == []


def test_of_two_mounts_on_one_place_the_later_counts(own: Path) -> None:
    local, remote = f"dev {own} ext4 rw 0 0", f"server:/x {own} nfs4 rw 0 0"
    file = own / "sharectl.txt"
    trusted = [os.geteuid()]
    assert "nfs4" in (signing.why_untrusted(file, mounts(own, local, remote), trusted) or "")
    assert "nfs4" not in (signing.why_untrusted(file, mounts(own, remote, local), trusted) or "")


@pytest.mark.parametrize("mode", [0o775, 0o777, 0o1777])
def test_so_is_one_in_a_folder_that_others_write_to(own: Path, mode: int) -> None:
    (own / "deep").mkdir()
    own.chmod(mode)
    (line,) = advice(config(own, f"{{file: {own}/sharectl.txt}}"), mounts(own))
    assert f"{own} can be written to by others (mode {mode:04o})" in line
    deep = advice(config(own, f"{{file: {own}/deep/sharectl.txt}}"), mounts(own))
    assert bool(deep) == (mode != 0o1777)


def test_so_is_one_that_belongs_to_somebody_else(own: Path) -> None:
    file = own / "sharectl.txt"
    file.touch()
    stranger = os.geteuid() or 4242
    os.chown(file, stranger, -1)
    assert signing.why_untrusted(file, mounts(own), ()) == f"belongs to uid {stranger}"
    assert signing.why_untrusted(file, own / "no-such-table", [stranger]) is None


def test_what_goes_over_the_network_is_to_be_signed_and_ads_are_not(own: Path) -> None:
    served = f"{{https: {{file: {own}/x, url: 'https://cm/x'}}}}"
    (line,) = advice(config(own, f"{served}, {{collector: {{}}}}"), mounts(own))
    assert line.startswith("publish[0].https: crosses the network")
    key = f"signing_key_file: {own}/keys\n"
    assert advice(config(own, served, key), mounts(own)) == []
    (line,) = advice(config(own, "{collector: {}}", key), mounts(own))
    assert "signs nothing" in line


def test_a_key_that_cannot_be_used_is_a_finding(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = own / "keys"
    path = own / "sharectl.yaml"
    path.write_text(
        f"groups: {{cms: {{pledge_hs06: 1}}}}\nstate_directory: {own}\nsigning_key_file: {keys}\n",
        encoding="utf-8",
    )
    assert main(["check", "config", str(path)]) == 1
    assert f"signing_key_file: {keys}: cannot be read: No such file" in capsys.readouterr().err
    keys.write_text(f"a {SECRET}\n", encoding="utf-8")
    keys.chmod(0o644)
    assert main(["check", "config", str(path)]) == 1
    assert "has mode 0644" in capsys.readouterr().err
    keys.chmod(0o600)
    assert main(["check", "config", str(path)]) == 0
    out, err = capsys.readouterr()
    assert f"signing_key_file: {keys}\n" in out
    assert SECRET[:16] not in out + err
    assert unusable(parse(path.read_text(encoding="utf-8"), "F"), path) == ([], [])


def test_a_folder_that_is_not_there_is_named(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert absent(config(own, f"{{file: {own}/sharectl.txt}}"), {}) == []
    served = f"{{https: {{file: {own}/www/x, url: 'https://cm/x'}}}}"
    found = absent(
        config(own / "state", f"{{file: {own}/shared/x}}, {served}, {{collector: {{}}}}"), {}
    )
    assert [line.split("; ")[0] for line in found] == [
        f"state_directory: there is no folder {own}/state on this machine",
        f"publish[0].file: there is no folder {own}/shared on this machine",
        f"publish[1].https.file: there is no folder {own}/www on this machine",
    ]
    path = own / "sharectl.yaml"
    path.write_text(
        f"groups: {{cms: {{pledge_hs06: 1}}}}\nstate_directory: {own}/state\n", encoding="utf-8"
    )
    assert main(["check", "config", str(path)]) == 0
    assert (
        f"recommended: state_directory, publish[0].file: there is no folder {own}/state "
        in capsys.readouterr().err
    )


def test_the_state_directory_that_the_first_cycle_makes_is_not_to_be_made(own: Path) -> None:
    (line,) = absent(config(own / "state", "{collector: {}}"), {})
    assert "; the first cycle makes it" in line
    assert "make it before" not in line
    (line,) = absent(config(own / "deep" / "state", "{collector: {}}"), {})
    assert line.endswith("make it before cycles run here")


def test_what_is_in_the_way_is_a_finding(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "web").mkdir()
    (own / "state").touch()
    found = config(own / "state", f"{{file: {own}/web}}, {{file: {own}/state/x}}")
    assert absent(found, {}) == []
    first, second = unusable(found, own / "F")[0]
    assert (
        first
        == f"state_directory, publish[1].file: {own}/state is no folder; name another path, or move what is there"
    )
    assert second.startswith(f"publish[0].file: {own}/web is a folder; name the file in it")
    path = own / "sharectl.yaml"
    path.write_text(
        f"groups: {{cms: {{pledge_hs06: 1}}}}\nstate_directory: {own}\npublish: [{{file: "
        f"{own}/web}}]\n",
        encoding="utf-8",
    )
    assert main(["check", "config", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "web is a folder" in err
    assert out.splitlines()[-1].startswith("# not ok: 1 problem on this machine")


UNIT = {
    "LoadState": "loaded",
    "StateDirectory": "sharectl",
    "ReadWritePaths": "-/srv /shared",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
}


@pytest.mark.parametrize(
    ("path", "setting", "remedy"),
    [
        ("/var/lib/sharectl/t", "", ""),
        ("/shared/deep/t", "", ""),
        ("/srv/t", "", ""),
        ("/home/x/t", "ProtectHome=yes", "name a folder elsewhere"),
        ("/var/tmp/x/t", "PrivateTmp=yes", "name a folder elsewhere"),  # noqa: S108 - a name
        ("/var/lib/other/t", "ProtectSystem=strict", "ReadWritePaths=/var/lib/other"),
    ],
)
def test_a_folder_that_the_unit_protects_is_named(path: str, setting: str, remedy: str) -> None:
    chosen = parse(f"groups: {{cms: {{pledge_hs06: 1}}}}\nhistory: {{jobs_file: {path}}}", "F")
    lines = protected(chosen, UNIT)
    assert [line.split(": ")[0] for line in lines] == (["history.jobs_file"] if setting else [])
    assert setting in "".join(lines)
    assert "".join(lines).endswith(remedy)
    assert protected(chosen, {}) == []
    assert protected(chosen, {**UNIT, "ProtectSystem": "full"}) == lines * (
        "ProtectSystem" not in setting
    )
    assert "/var/lib/sharectl on" not in "".join(absent(chosen, UNIT)), "systemd makes it"


def test_systemd_is_asked_for_the_unit(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(own), prepend=":")
    command, shown = own / "systemctl", "\n".join(f"{name}={text}" for name, text in UNIT.items())
    for body, unit in (
        (f"echo '{shown}'", UNIT),
        ("echo LoadState=not-found", {}),
        (f"echo '{shown}'; exit 1", {}),
    ):
        command.write_text(f'#!/bin/sh\n[ "$1 $2" = "show sharectl.service" ] || exit 2\n{body}\n')
        command.chmod(0o755)
        assert unit_of() == unit


def test_check_config_takes_the_option_that_other_verbs_have(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = own / "sharectl.yaml"
    path.write_text("groups: {cms: {pledge_hs06: 12}}\n", encoding="utf-8")
    assert main(["check", "config", "--config", str(path)]) == 0
    assert "pledge_hs06: 12" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["check", "config", str(path), "--config", str(path)])
    assert caught.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err
