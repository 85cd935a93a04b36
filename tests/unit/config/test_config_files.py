"""Nothing that sharectl reads or keeps is a place to write."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.config.files import kept, refuse_clashes, written
from sharectl.config.load import load
from sharectl.config.text import as_data
from sharectl.errors import ConfigError

KEYS = "a " + "0" * 64 + "\n"
READ = ("sharectl.yaml", "keys", "cas/one.pem", "ca.pem", "condor_config")
STATE = ("lock", "state.json", "places.json", "disabled", "pledges-cric.json")
LEDGER = ("ledger.sqlite", "ledger.sqlite-wal", "changes.jsonl", "changes.jsonl.3")
KEPT = (*STATE, "pledges-negotiator.json", *(f"ledger/{name}" for name in LEDGER))
WAYS = {
    "publish[0].file": "publish: [{{file: {path}}}]",
    "publish[0].https.file": "publish: [{{https: {{file: {path}, url: 'https://cm/x'}}}}]",
    "history.jobs_file": "history: {{jobs_file: {path}}}",
    "history.errors_log": "history: {{errors_log: {path}}}",
}
SOURCES = {
    "ca.pem": "{{from: cric, cric: {{federations: [A], ca_file: {folder}/ca.pem}}}}",
    "cas/one.pem": "{{from: cric, cric: {{federations: [A], ca_file: {folder}/cas}}}}",
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


def configured(folder: Path, line: str, pledges: str = "", key: str = "keys") -> Path:
    path = folder / "sharectl.yaml"
    path.write_text(
        f"groups: {{cms: {{pledge_hs06: 1}}}}\nstate_directory: {folder}\n"
        f"signing_key_file: {folder}/{key}\npool: {{collector: '127.0.0.1:1'}}\n{line}\n{pledges}\n"
    )
    return path


@pytest.mark.parametrize("key", WAYS)
def test_no_file_that_sharectl_reads_or_keeps_is_written(folder: Path, key: str) -> None:
    for name in (*READ, *KEPT):
        pledges = f"pledges: {SOURCES[name].format(folder=folder)}" if name in SOURCES else ""
        path = configured(folder, WAYS[key].format(path=folder / name), pledges)
        with pytest.raises(ConfigError) as caught:
            refuse_clashes(load(path), path)
        (problem,) = caught.value.problems
        use = r".* is (read: |written by ).*; write another path"
        assert re.match(rf"{re.escape(key)}: {use}", problem)
    assert main(["cycle", "--config", str(path)]) == 78


def test_rotated_files_are_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = f"history: {{errors_log: {folder}/log}}"
    path = configured(folder, f"publish: [{{file: {folder}/log.2}}]\n{history}")
    with pytest.raises(ConfigError):
        refuse_clashes(load(path), path)
    path = configured(folder, f"publish: [{{collector: {{}}}}]\n{history}")
    assert main(["ledger", "export", "-o", f"{folder}/log.1", "--config", str(path)]) == 74
    assert f"{folder}/log.1: not written: " in capsys.readouterr().err


def linked(folder: Path, how: str) -> Path:
    """Another path of the key file, or a link where sharectl keeps files."""
    there = folder / "there"
    if how == "link":
        there.symlink_to(folder / "keys")
    elif how == "hard link":
        os.link(folder / "keys", there)
    else:
        (folder / "real" / "deep").mkdir(parents=True)
        there.symlink_to(folder / "real" / "deep")
        (folder / "keys").rename(folder / "real" / "keys")
        (folder / "keys").symlink_to(folder / "real" / "keys")
        return there / ".." / "keys"
    return there


@pytest.mark.parametrize("how", ["link", "hard link", "dots"])
def test_links_are_followed(folder: Path, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, at = configured(folder, f"publish: [{{file: {linked(folder, how)}}}]"), "publish[0].file:"
    for arguments, exit_code in ((["check", "config"], 1), (["cycle"], 78)):
        assert main([*arguments, "--config", str(path)]) == exit_code
        assert at in capsys.readouterr().err
    assert main(["disable", "--reason", "x", "--config", str(path)]) == 74
    err = capsys.readouterr().err
    assert at in err
    assert "sharectl is disabled all the same" in err
    assert (folder / "disabled").exists()
    assert (folder / "keys").read_text() == KEYS


def test_no_export_and_no_page_takes_the_place_of_a_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configured(folder, "publish: [{collector: {}}]")
    path.write_text(path.read_text().replace(f"state_directory: {folder}", "state_directory: /s"))
    os.link(folder / "keys", folder / "beside")
    os.link(path, folder / "index.html")
    for place in (folder / "keys", folder / "beside", path):
        assert main(["ledger", "export", "-o", str(place), "--config", str(path)]) == 74
        assert f"{place}: not written: " in capsys.readouterr().err
    assert main(["report", "-o", str(folder), "--config", str(path)]) == 74
    assert "index.html: not written: sharectl reads " in capsys.readouterr().err


def test_every_path_of_a_configuration_is_in_the_list(folder: Path) -> None:
    """A path that is named under a new key must be written, read or kept."""
    line = "publish: [{https: {file: /w/1, url: 'https://cm/x', ca_file: /r/2}}, {file: /w/3}]"
    cric = "{federations: [A], ca_file: /r/4}"
    pledges = f"pledges: {{from: cric, cric: {cric}}}"
    path = configured(folder, line, f"{pledges}\nhistory: {{jobs_file: /w/8, errors_log: /w/9}}")
    config = load(path)
    files = {str(file.path) for file in (*kept(config, path), *written(config))}
    paths = {text for text in texts(as_data(config)) if text.startswith("/")}
    assert paths - files == {str(config.state_directory)}
    assert {str(file.path) for file in written(config)} == {"/w/1", "/w/3", "/w/8", "/w/9"}


def texts(value: object) -> Iterator[str]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from texts(part)
    if isinstance(value, str):
        yield value
