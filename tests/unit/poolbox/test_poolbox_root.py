"""The cached root, built by stand-ins for mmdebstrap and bwrap that are found on PATH."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from poolbox.errors import CannotBuildError, PoolboxError
from poolbox.machine import check_can_build
from poolbox.root import cached_archive, cached_root, find_root, htcondor_version

# Notes its call, writes the first half of a root, fails if it is to, writes the rest.
MMDEBSTRAP = """\
#!{python} -IS
import io, os, sys, tarfile
home = {home!r}
with open(home + "/calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
with open(home + "/environment", "w") as environment:
    print(*sorted(os.environ), file=environment)
to = sys.stdout.buffer if sys.argv[-1] == "-" else open(sys.argv[-1], "wb")
with tarfile.open(fileobj=to, mode="w|", format=tarfile.GNU_FORMAT) as tar:
    def text(name, content, mode=0o644):
        entry = tarfile.TarInfo("./" + name)
        entry.size, entry.mode = len(content), mode
        tar.addfile(entry, io.BytesIO(content))
    text("usr/sbin/condor_master", b"x" * 200000, 0o4755)
    text("dev/null", b"")
    if not os.path.exists(home + "/elsewhere"):
        entry = tarfile.TarInfo("./var/log/condor")
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
    if os.path.exists(home + "/fail"):
        sys.exit("E: no such suite")
    text("var/lib/dpkg/status", b"Package: condor\\nVersion: 23.9.6+dfsg-2\\n\\n")
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the stand-ins on PATH, and the cache below it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    texts = {
        "mmdebstrap": MMDEBSTRAP.format(python=sys.executable, home=str(tmp_path)),
        "bwrap": "#!/bin/sh\nexit 0\n",
        "newuidmap": "#!/bin/sh\n",
    }
    for name, text in texts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def anything_goes() -> None:
    """A machine that can build."""


def calls(home: Path) -> list[str]:
    return (home / "calls").read_text().splitlines()


def test_a_root_is_built_once_and_found_again(home: Path) -> None:
    assert htcondor_version("trixie") == ""
    path = cached_root("trixie", anything_goes)
    assert path == cached_root("trixie", anything_goes)
    assert (path / "usr/sbin/condor_master").stat().st_size == 200000
    assert not (path / "dev").exists()
    assert htcondor_version("trixie") == "23.9.6"
    (call,) = calls(home)
    assert call.endswith("trixie -")
    assert path != cached_root("forky", anything_goes)
    past_its_date = ['Check-Valid-Until "false"' in call for call in calls(home)]
    assert past_its_date == [False, True], "testing is taken past the date of its index"


def test_an_htcondor_on_path_is_used_and_no_root_is_built(home: Path) -> None:
    (home / "bin" / "condor_master").touch(0o755)
    assert find_root("trixie").path == Path("/")
    assert not (home / "cache").exists()


def test_a_build_that_fails_half_way_leaves_nothing_that_is_taken_for_whole(home: Path) -> None:
    (home / "fail").touch()
    with pytest.raises(PoolboxError, match=r"(?s)the trixie root could not be built.*E: no such"):
        cached_root("trixie", anything_goes)
    cache = home / "cache" / "sharectl" / "poolbox"
    assert [entry.suffix for entry in cache.iterdir()] == [".lock"]
    (home / "fail").unlink()
    assert (cached_root("trixie", anything_goes) / "var/lib/dpkg/status").exists()


def test_a_build_gets_nothing_that_this_machines_htcondor_python_or_dpkg_go_by(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = ["CONDOR_CONFIG", "_CONDOR_LOG", "PYTHONHOME", "DPKG_ROOT", "TMPDIR", "LANG"]
    for name in (*foreign, "https_proxy"):
        monkeypatch.setenv(name, str(home))
    cached_root("trixie", anything_goes)
    passed_on = (home / "environment").read_text().split()
    assert {"PATH", "https_proxy"} < {*passed_on}
    assert not {*foreign} & {*passed_on}


def test_a_root_whose_htcondor_cannot_start_is_not_kept(home: Path) -> None:
    (home / "elsewhere").touch()
    for build in (cached_root, lambda suite, _: cached_archive(suite, ["condor"])):
        with pytest.raises(PoolboxError, match="var/log/condor"):
            build("trixie", anything_goes)
    (home / "elsewhere").unlink()
    assert (cached_root("trixie", anything_goes) / "var/log/condor").is_dir()


def test_missing_programs_are_named_as_packages_all_at_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "bin/mmdebstrap").unlink()
    (home / "bin/bwrap").unlink()
    monkeypatch.setenv("PATH", str(home / "bin"))
    packages = "bubblewrap mmdebstrap tar debian-archive-keyring"
    with pytest.raises(CannotBuildError, match=f"Install: apt install {packages}$") as raised:
        check_can_build(home)
    assert raised.value.exit_code == 1
