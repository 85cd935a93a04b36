"""`sharectl check snippets` on a node says of its file of keys what target.py says of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import target
from sharectl.check.snippets import check
from sharectl.condor.configuration import ConfigSource
from sharectl.errors import ConfigError
from sharectl.plan.nodes import REMEDIES
from sharectl.publish.signing import JobsUser, problem, read_keys, reader

SNIPPETS = Path(__file__).parents[2] / "config.d"
KEY = "2026a " + "0f" * 32 + "\n"
OTHERS_UID = 12345


def written(text: str, mode: int = 0o640) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text, encoding="latin-1")
        path.chmod(mode)

    return write


FILES = {
    "sound": (written("# ours\n\n" + KEY), ""),
    "two keys": (written(KEY + "b " + "0F" * 64), ""),
    "missing": (lambda _: None, "no-key"),
    **{f"mode {mode:o}": (written(KEY, mode), "") for mode in (0o400, 0o440, 0o600)},
    **{
        f"mode {mode:o}": (written(KEY, mode), "unsafe-key")
        for mode in (0o601, 0o602, 0o604, 0o620, 0o644, 0o660, 0o642)
    },
    "a folder": (Path.mkdir, "no-key"),
    "a FIFO": (os.mkfifo, "unsafe-key"),
    "empty": (written(""), "bad-key"),
    "no hexadecimal digits": (written("2026a " + "xy" * 32), "bad-key"),
    "short": (written("2026a 0f0f"), "bad-key"),
    "three keys": (written(KEY + KEY.replace("a", "b") + KEY.replace("a", "c")), "bad-key"),
    "no text": (written("\xff\x00" * 99), "bad-key"),
    "huge": (written("#" * 2**20 + "\n" + KEY), "no-key"),
}


def outcome(read: Callable[[], object]) -> str:
    """Code of an error, or its kind; empty without one."""
    try:
        read()
    except target.JobError as error:
        return str(error.args[0])
    except ConfigError:
        return "refused"
    return ""


@pytest.mark.parametrize("kind", FILES)
def test_node_check_and_central_manager_take_the_same_files(kind: str, tmp_path: Path) -> None:
    make, code = FILES[kind]
    make(path := tmp_path / "keys")
    assert outcome(lambda: target.read_keys(str(path))) == code
    wrong = problem(path, None, os.geteuid())
    assert (wrong[0] if wrong else "") == code
    assert outcome(lambda: read_keys(path)) == ("refused" if code else "")


def test_the_file_has_to_be_for_the_user_of_the_jobs(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(KEY)
    path.chmod(0o640)
    facts = path.stat()
    owner, other = JobsUser(facts.st_uid, ()), JobsUser(OTHERS_UID, ())
    in_group = JobsUser(OTHERS_UID, (facts.st_gid,))
    assert problem(path, owner, 0) is None
    assert (problem(path, in_group, 0) is None) == (facts.st_uid == 0)
    path.chmod(0o600)
    code, why = problem(path, other, 0) or ("", "")
    assert code == ("no-key" if facts.st_uid == 0 else "unsafe-key")
    assert str(path) in why


def test_the_knob_says_whose_jobs_they_are() -> None:
    assert reader("64.65") == JobsUser(64, (65,))


@pytest.mark.parametrize(
    ("source", "mode", "code"),
    [
        ("file:/x/sharectl.txt", 0o644, "unsafe-key"),
        ("file:/x/sharectl.txt", 0o640, ""),
        ("collector: --identity a@b", 0o644, ""),
    ],
)
def test_a_machine_is_checked_with_its_file_of_keys(
    source: str, mode: int, code: str, tmp_path: Path
) -> None:
    snippets = tmp_path / "config.d"
    snippets.mkdir()
    shutil.copy(SNIPPETS / "60-sharectl-execute-point.conf", snippets)
    written(KEY, mode)(path := tmp_path / "keys")
    source, _, more = source.partition(" ")
    options = f"SHARECTL_SOURCE = {source}\nSHARECTL_SOURCE_OPTIONS = --key-file {path} {more}\n"
    (snippets / "99-local.conf").write_text(options)
    local = tmp_path / "condor_config"
    local.write_text("USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\n")
    on_machine, elsewhere = (
        [text for finding in check(source, {}).findings if str(path) in (text := str(finding))]
        for source in (ConfigSource(snippets, local), ConfigSource(snippets))
    )
    assert (len(on_machine), elsewhere) == (bool(code), [])
    assert not [text for text in on_machine if f"({code}); {REMEDIES[code]}" not in text]
