"""The cached root, built by stand-ins for mmdebstrap and bwrap that are found on PATH."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

from poolbox.errors import CannotBuildError, PoolboxError
from poolbox.machine import check_can_build, check_can_run, check_has_subordinate_ids
from poolbox.root import cached_root, find_root, htcondor_version, remove_tree
from poolbox.waiting import wait_for

CHECKOUT = Path(__file__).parents[3]
# Notes its call, writes the first half of a root, waits for a file to go, writes the rest.
MMDEBSTRAP = """\
#!{python} -IS
import io, os, sys, tarfile, time
home = {home!r}
with open(home + "/calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
if os.path.exists(home + "/fail"):
    print("E: no such suite", file=sys.stderr)
    sys.exit(1)
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.GNU_FORMAT) as tar:
    def folder(name, mode):
        entry = tarfile.TarInfo("./" + name)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        tar.addfile(entry)
    def text(name, content, mode=0o644):
        entry = tarfile.TarInfo("./" + name)
        entry.size, entry.mode, entry.uid = len(content), mode, 0
        tar.addfile(entry, io.BytesIO(content))
    folder("usr", 0o755)
    folder("usr/sbin", 0o755)
    text("usr/sbin/condor_master", b"x" * 200000, 0o4755)
    text("dev/null", b"")
    sys.stdout.buffer.flush()
    open(home + "/half", "w").close()
    while os.path.exists(home + "/wait"):
        time.sleep(0.01)
    folder("var/lib/dpkg", 0o555)
    packages = b"Package: a\\nVersion: 1\\n\\nPackage: condor\\nVersion: 23.9.6+dfsg-2\\n\\n"
    text("var/lib/dpkg/status", packages)
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


@pytest.fixture
def builder(home: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start another process that asks for the root; none is left afterwards."""
    started: list[subprocess.Popen[str]] = []
    program = "from poolbox.root import cached_root; print(cached_root('trixie', lambda: None))"

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        started.append(process)
        return process

    yield start
    (home / "wait").unlink(missing_ok=True)
    for process in started:
        process.kill()
        process.communicate()


def anything_goes() -> None:
    """A machine that can build."""


def appears(path: Path) -> None:
    wait_for(path.exists, 20, f"{path} is there")


def calls(home: Path) -> list[str]:
    return (home / "calls").read_text().splitlines()


def cached(home: Path) -> list[str]:
    return sorted(entry.name for entry in (home / "cache" / "sharectl" / "poolbox").iterdir())


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


def test_a_builder_killed_half_way_leaves_nothing_that_is_taken_for_whole(
    home: Path, builder: Callable[[], subprocess.Popen[str]]
) -> None:
    (home / "wait").touch()
    first = builder()
    appears(home / "half")
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert [name for name in cached(home) if name[0] != "." and not name.endswith(".lock")] == []
    (home / "wait").unlink()
    path = cached_root("trixie", anything_goes)
    assert (path / "var/lib/dpkg/status").exists()
    assert len(calls(home)) == 2
    assert cached(home) == [path.name, f"{path.name}.lock"]


def test_two_who_ask_at_once_get_one_root_built_by_one(
    home: Path, builder: Callable[[], subprocess.Popen[str]]
) -> None:
    (home / "wait").touch()
    both = [builder(), builder()]
    appears(home / "half")
    (home / "wait").unlink()
    roots = {process.communicate(timeout=60)[0] for process in both}
    assert (len(roots), len(calls(home))) == (1, 1)


def test_a_failed_build_gives_the_reason_and_leaves_nothing(home: Path) -> None:
    (home / "fail").touch()
    with pytest.raises(PoolboxError, match=r"(?s)the trixie root could not be built.*E: no such"):
        cached_root("trixie", anything_goes)
    assert [Path(name).suffix for name in cached(home)] == [".lock"]


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


def test_a_kernel_that_forbids_sandboxes_is_told_how_to_allow_them(home: Path) -> None:
    (home / "bin/bwrap").write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"
    )
    settings = home / "proc/sys/kernel"
    settings.mkdir(parents=True)
    (settings / "unprivileged_userns_clone").write_text("1\n")
    (settings / "apparmor_restrict_unprivileged_userns").write_text("1\n")
    with pytest.raises(CannotBuildError) as raised:
        check_can_run(home)
    assert "bwrap: No permissions to create new namespace\n" in str(raised.value)
    assert ": as root, sysctl kernel.apparmor_restrict_unprivileged_userns=0; in a" in str(
        raised.value
    )


def test_a_user_without_ids_to_unpack_with_is_told_how_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/subuid").write_text("anna:100000:65536\n")
    with pytest.raises(
        CannotBuildError, match=r"(?s)subgid: no range for anna.*usermod --add-subuids \S+ .* anna"
    ):
        check_has_subordinate_ids("anna", tmp_path)
    (tmp_path / "etc/subgid").write_text("anna:100000:65536\n")
    check_has_subordinate_ids("anna", tmp_path)
    with pytest.raises(CannotBuildError, match="subuid: no range for ann,"):
        check_has_subordinate_ids("ann", tmp_path)


def test_a_tree_goes_whatever_its_modes(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "closed" / "below").mkdir(parents=True)
    (tree / "closed" / "below" / "file").touch(mode=0o400)
    (tree / "link").symlink_to(tmp_path)
    for name in ("closed/below", "closed"):
        (tree / name).chmod(0o000)
    remove_tree(tree)
    assert not tree.exists()
    assert tmp_path.exists()
