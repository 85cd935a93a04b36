"""Nothing that sharectl reads or keeps is a place to write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.config.files import kept, refuse_clashes, written
from sharectl.config.load import load
from sharectl.config.text import as_data
from sharectl.errors import ConfigError

KEYS = "a " + "0" * 64 + "\n"

READ = ("sharectl.yaml", "keys", "cas/one.pem", "knobs", "ca.pem", "condor_config")
KEPT = (
    "lock",
    "state.json",
    "places.json",
    "disabled",
    "pledges-cric.json",
    "pledges-negotiator.json",
    "ledger/ledger.sqlite",
    "ledger/ledger.sqlite-wal",
    "ledger/changes.jsonl",
    "ledger/changes.jsonl.3",
)
WAYS = {
    "publish[0].file": "publish: [{{file: {path}}}]",
    "publish[0].https.file": "publish: [{{https: {{file: {path}, url: 'https://cm/x'}}}}]",
    "history.jobs_file": "history: {{jobs_file: {path}}}",
    "history.errors_log": "history: {{errors_log: {path}}}",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every file that a configuration can name, in one folder that is ``state_directory`` too."""
    (tmp_path / "cas").mkdir()
    (tmp_path / "ledger").mkdir()
    for name in READ:
        (tmp_path / name).write_text(KEYS if name == "keys" else "of the site\n")
    (tmp_path / "keys").chmod(0o600)
    monkeypatch.setenv("CONDOR_CONFIG", str(tmp_path / "condor_config"))
    return tmp_path


def configured(folder: Path, line: str, pledges: str = "") -> Path:
    path = folder / "sharectl.yaml"
    path.write_text(
        f"groups: {{cms: {{pledge_hs06: 1}}}}\nstate_directory: {folder}\nsigning_key_file: "
        f"{folder}/keys\n"
        f"pool: {{collector: '127.0.0.1:1'}}\n{line}\n{pledges}\n"
    )
    return path


@pytest.mark.parametrize("named", WAYS)
@pytest.mark.parametrize(
    "name", [name for name in (*READ, *KEPT) if name not in ("knobs", "ca.pem", "cas/one.pem")]
)
def test_no_file_that_sharectl_reads_or_keeps_is_written(
    folder: Path, name: str, named: str
) -> None:
    path = configured(folder, WAYS[named].format(path=folder / name))
    before = (folder / name).read_bytes() if (folder / name).exists() else None
    with pytest.raises(ConfigError) as caught:
        refuse_clashes(load(path), path)
    (problem,) = caught.value.problems
    assert re.match(
        rf"{re.escape(named)}: .* is (read: |written by ).*; write a path of its own", problem
    )
    assert main(["cycle", "--config", str(path)]) == 78
    if name != "sharectl.yaml":
        assert ((folder / name).read_bytes() if before is not None else None) == before


@pytest.mark.parametrize(
    ("name", "pledges"),
    [
        ("knobs", "pledges: {{from: negotiator, negotiator: {{file: {folder}/knobs}}}}"),
        ("ca.pem", "pledges: {{from: cric, cric: {{federations: [A], ca_file: {folder}/ca.pem}}}}"),
        (
            "cas/one.pem",
            "pledges: {{from: cric, cric: {{federations: [A], ca_directory: {folder}/cas}}}}",
        ),
    ],
)
def test_no_file_that_a_source_of_pledges_reads_is_written(
    folder: Path, name: str, pledges: str
) -> None:
    path = configured(
        folder, f"publish: [{{file: {folder / name}}}]", pledges.format(folder=folder)
    )
    with pytest.raises(ConfigError, match=r"publish\[0\].file: .* is read: pledges\."):
        refuse_clashes(load(path), path)


def test_a_rotated_log_does_not_replace_what_lies_beside_it(folder: Path) -> None:
    (folder / "keys").rename(folder / "log.2")
    path = configured(folder, f"history: {{errors_log: {folder}/log}}")
    path.write_text(path.read_text().replace(f"{folder}/keys", f"{folder}/log.2"))
    with pytest.raises(ConfigError, match=r"history\.errors_log: .* is read: signing_key_file"):
        refuse_clashes(load(path), path)


def linked(folder: Path, how: str) -> Path:
    """Another path of the key file."""
    there = folder / "there"
    if how == "link":
        there.symlink_to(folder / "keys")
    elif how == "hard link":
        there.hardlink_to(folder / "keys")
    elif how == "folder":
        there.symlink_to(folder)
        return there / "keys"
    else:
        (folder / "real" / "deep").mkdir(parents=True)
        there.symlink_to(folder / "real" / "deep")
        (folder / "keys").rename(folder / "real" / "keys")
        (folder / "keys").symlink_to(folder / "real" / "keys")
        return there / ".." / "keys"
    return there


@pytest.mark.parametrize("how", ["link", "hard link", "folder", "dots"])
def test_links_lead_nowhere_else(
    folder: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configured(folder, f"publish: [{{file: {linked(folder, how)}}}]")
    said = "publish[0].file: "
    assert main(["check", "config", str(path)]) == 1
    assert said in capsys.readouterr().err
    assert main(["cycle", "--config", str(path)]) == 78
    assert said in capsys.readouterr().err
    assert main(["disable", "--reason", "x", "--config", str(path)]) == 74
    captured = capsys.readouterr()
    assert said in captured.err
    assert "sharectl is disabled all the same" in captured.err
    assert (folder / "disabled").exists()
    assert (folder / "keys").read_text() == KEYS


@pytest.mark.parametrize("name", ["sharectl.yaml", "keys", "targets"])
def test_no_export_and_no_page_takes_the_place_of_one(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = folder / "own"
    own.mkdir()
    path = configured(folder, f"publish: [{{file: {own}/targets}}]")
    path.write_text(
        path.read_text().replace(f"state_directory: {folder}", f"state_directory: {own}/state")
    )
    place = own / name if name == "targets" else folder / name
    beside = folder / "beside"
    if place.exists():
        beside.hardlink_to(place)
    else:
        beside.symlink_to(place)
    for output in (place, beside):
        arguments = ["ledger", "export", "-o", str(output), "--config", str(path)]
        assert main(arguments) == 74
        assert f"{output}: not written: " in capsys.readouterr().err
    page = folder / "index.html"
    page.hardlink_to(path)
    assert main(["report", "-o", str(folder), "--config", str(path)]) == 74
    assert (
        f"{page}: not written: sharectl reads it (the configuration itself)"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("certificates", ["ca_file", "ca_directory"])
def test_every_path_of_a_configuration_is_in_the_list(folder: Path, certificates: str) -> None:
    """A path that is named under a new key must be written, read or kept."""
    line = "publish: [{https: {file: /w/1, url: 'https://cm/x', ca_file: /r/2}}, {file: /w/3}]"
    more = (
        f"pledges: {{from: cric, cric: {{federations: [A], {certificates}: /r/4, copy_file: "
        f"/w/6}}, negotiator: {{file: /r/7}}}}\n"
        "history: {jobs_file: /w/8, errors_log: /w/9}"
    )
    path = configured(folder, line, more)
    config = load(path)
    named = {str(file.path) for file in (*kept(config, path), *written(config))}
    values = {value for value in _texts(as_data(config)) if value.startswith("/")}
    assert values - named == {str(config.state_directory)}
    assert {f"/w/{number}" for number in (1, 3, 6, 8, 9)} == {
        str(file.path) for file in written(config)
    }


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in _texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in _texts(part)]
    return [value] if isinstance(value, str) else []
