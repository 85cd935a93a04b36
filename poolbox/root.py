"""Where HTCondor comes from: this machine's own, or a root built once and kept in a cache."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from poolbox.configuration import Installation
from poolbox.errors import CannotBuildError, PoolboxError

PACKAGES = ("condor", "procps", "python3")
RECIPE = 1  # part of the cache's key: raise it when what `_build` makes of the packages changes
BUILD_SECONDS = 900
# Debian testing is not a release: between two of its updates its index may be past its date.
SUITE_OPTIONS = {"forky": ('--aptopt=Acquire::Check-Valid-Until "false"',)}
PROGRAMS = {"bwrap": "bubblewrap", "mmdebstrap": "mmdebstrap", "newuidmap": "uidmap", "tar": "tar"}
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclasses.dataclass(frozen=True)
class Root:
    """A file system with HTCondor in it: ``path`` is ``/`` for this machine's own."""

    path: Path
    installation: Installation
    interpreter: Path


def find_root(suite: str) -> Root:
    """The root to run a box of that suite in, built first if need be; `CannotBuildError` says what is missing."""
    own = shutil.which("condor_master")
    if own is not None:
        return Root(Path("/"), installation_around(Path("/"), Path(own).resolve()), Path(sys.executable))
    path = cached_root(suite)
    return Root(path, installation_around(path, Path("/usr/sbin/condor_master")), Path("/usr/bin/python3"))


def installation_around(root: Path, master: Path) -> Installation:
    """Where HTCondor lies in ``root``, told from the path of its condor_master: packages or an unpacked tarball."""
    release = master.parent.parent
    libexec, lib = (
        release / name / "condor"
        if (root / (release / name / "condor").relative_to("/")).is_dir()
        else release / name
        for name in ("libexec", "lib")
    )
    return Installation(release=release, libexec=libexec, lib=lib, sbin=master.parent)


def cache_directory() -> Path:
    """``sharectl/poolbox`` in the user's cache folder (XDG_CACHE_HOME, or ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sharectl" / "poolbox"


def cached_root(suite: str) -> Path:
    """The unpacked root of that suite, built once whoever asks: others wait for the one who builds."""
    cache = cache_directory()
    digest = hashlib.sha256(" ".join((str(RECIPE), os.uname().machine, *PACKAGES)).encode()).hexdigest()
    path = cache / f"{suite}-{digest[:12]}"
    if path.is_dir():
        return path
    check_tools()
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / f"{path.name}.lock") as lock:
        if not path.is_dir():
            for abandoned in cache.glob(f".building-{path.name}-*"):
                remove_tree(abandoned)
            print(
                f"poolbox: building the {suite} root with HTCondor, once, in {path}",
                file=sys.stderr,
                flush=True,
            )
            unpacked = Path(tempfile.mkdtemp(prefix=f".building-{path.name}-", dir=cache))
            _build(suite, unpacked, lock)
            unpacked.chmod(0o755)
            unpacked.rename(path)
    return path


def check_tools() -> None:
    """Nothing, or `CannotBuildError` naming every package that is missing to build a root."""
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if not KEYRING.exists():
        missing.append("debian-archive-keyring")
    if missing:
        raise CannotBuildError(
            "no condor_master on PATH, and no root with one can be built here.\n"
            f"Install: apt install {' '.join(missing)}"
        )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Yield the descriptor of a file locked for this process and those it hands the descriptor to."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Delete a folder of our own whatever the modes of the folders below it."""

    def open_up(_function: object, name: str, _error: object) -> None:
        Path(name).parent.chmod(0o700)
        if Path(name).is_dir() and not Path(name).is_symlink():
            Path(name).chmod(0o700)
            remove_tree(Path(name))
        else:
            Path(name).unlink(missing_ok=True)

    shutil.rmtree(path, onerror=open_up)


def _build(suite: str, target: Path, lock: int) -> None:
    """Fill ``target`` with the suite's root, everything owned by this user.

    The lock goes to both programs: while they outlive a killed builder, the next one waits for them to end.
    """
    make = [
        "mmdebstrap",
        "--mode=unshare",
        "--variant=apt",
        f"--include={','.join(PACKAGES)}",
        "--format=tar",
    ]
    unpack = ["tar", "--extract", "--exclude=./dev", "--no-same-owner", "--delay-directory-restore"]
    log = target.with_suffix(".log")
    with log.open("wb") as errors:
        maker = subprocess.Popen(
            [*make, *SUITE_OPTIONS.get(suite, ()), suite, "-"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            pass_fds=(lock,),
        )
        unpacker = subprocess.Popen(
            [*unpack, f"--directory={target}"], stdin=maker.stdout, stderr=errors, pass_fds=(lock,)
        )
    assert maker.stdout is not None
    maker.stdout.close()
    try:
        failed = _ended(maker) + _ended(unpacker)
    finally:
        said = log.read_text(errors="replace")
        log.unlink()
    if failed:
        remove_tree(target)
        raise PoolboxError(f"the {suite} root could not be built:\n{said[-3000:]}")
    for folder in target.rglob("*"):
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(folder.stat().st_mode | 0o700)


def _ended(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(BUILD_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()
        return process.wait()
