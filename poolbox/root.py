"""Where HTCondor comes from: this machine's own, or a root built once and kept in a cache."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from poolbox.configuration import Installation
from poolbox.errors import PoolboxError
from poolbox.machine import check_can_build

PACKAGES = ("condor", "procps", "python3")
RECIPE = 2  # part of the cache's key: raise it when what is made of the packages changes
BUILD_SECONDS = 900
ARCHIVE = "root.tar"
# Debian testing is not a release: between two of its updates its index may be past its date.
SUITE_OPTIONS = {"forky": ('--aptopt=Acquire::Check-Valid-Until "false"',)}
PACKAGED_MASTER = Path("/usr/sbin/condor_master")
PACKAGED_LOG = "var/log/condor"
"""Folder that HTCondor's package makes where ``condor_config_val LOG`` says while it is installed.

Its master ends at once without it.
"""
PASSED_ON = re.compile(r"PATH|HOME|USER|LOGNAME|\w+_proxy", re.IGNORECASE)
"""Variables that a build gets: others, such as CONDOR_CONFIG, _CONDOR_LOG, DPKG_ROOT, PYTHONHOME,
TMPDIR or LANG, are meant for this machine's programs and would reach those of the packages."""


@dataclasses.dataclass(frozen=True)
class Root:
    """A file system with HTCondor in it; ``path`` is ``/`` for this machine's own."""

    path: Path
    installation: Installation
    interpreter: Path


def find_root(suite: str) -> Root:
    """Root of a box of that suite, built if absent. Raises CannotBuildError."""
    own = shutil.which("condor_master")
    if own is not None:
        return Root(
            Path("/"), installation_around(Path("/"), Path(own).resolve()), Path(sys.executable)
        )
    path = cached_root(suite)
    return Root(path, installation_around(path, PACKAGED_MASTER), Path("/usr/bin/python3"))


def installation_around(root: Path, master: Path) -> Installation:
    """Paths of HTCondor in ``root``, of packages or of an unpacked tarball, by condor_master."""
    release = master.parent.parent

    def packaged(name: str) -> Path:
        folder = release / name / "condor"
        return folder if (root / folder.relative_to("/")).is_dir() else release / name

    return Installation(
        release=release, libexec=packaged("libexec"), lib=packaged("lib"), sbin=master.parent
    )


def cache_path(suite: str, packages: Sequence[str] = PACKAGES) -> Path:
    """Path of the root of that suite in the cache (XDG_CACHE_HOME, or ~/.cache)."""
    cache = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
        / "sharectl"
        / "poolbox"
    )
    key = " ".join((str(RECIPE), os.uname().machine, *packages))
    return cache / f"{suite}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def cached_root(suite: str, check: Callable[[], None] = check_can_build) -> Path:
    """The unpacked root of that suite. The first who asks builds it, others wait for it.

    It gets its name by one rename when it is whole. What a killed builder left is deleted by the
    next. ``check`` raises when nothing can be built here.
    """
    return _cached(cache_path(suite), suite, _unpack, check)


def cached_archive(suite: str, packages: Sequence[str]) -> Path:
    """Tar of a root of that suite with these packages, in which files have their owners.

    It is built as `cached_root` is.
    """

    def build(suite: str, folder: Path, lock: int) -> None:
        _run_all(suite, [[*_maker(suite, packages), str(folder / ARCHIVE)]], lock)
        listing = ["tar", "--list", "--file", str(folder / ARCHIVE), f"./{PACKAGED_LOG}/"]
        _run_all(suite, [listing], lock)

    return _cached(cache_path(suite, packages), suite, build, check_can_build) / ARCHIVE


def _cached(
    path: Path, suite: str, build: Callable[[str, Path, int], None], check: Callable[[], None]
) -> Path:
    """Folder in the cache, filled by ``build`` if it is absent."""
    if path.is_dir():
        return path
    check()
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f"{path.name}.lock")) as lock:
        for abandoned in path.parent.glob(f".building-{path.name}-*"):
            remove_tree(abandoned)
        if not path.is_dir():
            _say(f"building the {suite} root with HTCondor, once, in {path}")
            fresh = Path(tempfile.mkdtemp(prefix=f".building-{path.name}-", dir=path.parent))
            try:
                build(suite, fresh, lock)
            except BaseException:
                remove_tree(fresh)
                raise
            fresh.chmod(0o755)
            fresh.rename(path)
    return path


def htcondor_version(suite: str) -> str:
    """Version of HTCondor in the root of that suite, such as ``23.9.6``; empty without one."""
    own = shutil.which("condor_version")
    if own is not None:
        printed = subprocess.run(
            [own], capture_output=True, text=True, check=False, timeout=BUILD_SECONDS
        ).stdout
        return printed.partition("CondorVersion: ")[2].partition(" ")[0]
    status = cache_path(suite) / "var" / "lib" / "dpkg" / "status"
    packages = status.read_text(errors="replace").split("\n\n") if status.is_file() else []
    condor = next((text for text in packages if text.startswith("Package: condor\n")), "")
    return condor.partition("\nVersion: ")[2].partition("\n")[0].partition("+")[0]


def remove_tree(path: Path) -> None:
    """Delete a folder of our own, whatever the modes of the folders below it."""
    for folder, names, _files in os.walk(path):
        for name in names:
            below = Path(folder, name)
            if not below.is_symlink():
                below.chmod(0o700)
    shutil.rmtree(path)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Descriptor of a file that this process locks, and those that inherit it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _maker(suite: str, packages: Sequence[str]) -> list[str]:
    """Command that writes the tar of a root; its next word is the file."""
    return [
        "mmdebstrap",
        "--mode=unshare",
        "--variant=apt",
        f"--include={','.join(packages)}",
        "--format=tar",
        *SUITE_OPTIONS.get(suite, ()),
        suite,
    ]


def _unpack(suite: str, target: Path, lock: int) -> None:
    """Fill ``target`` with the suite's root, everything in it owned by this user."""
    unpack = [
        "tar",
        "--extract",
        "--exclude=./dev",
        "--no-same-owner",
        "--no-same-permissions",
        "--delay-directory-restore",
    ]
    commands = [[*_maker(suite, PACKAGES), "-"], [*unpack, "--directory", str(target)]]
    _run_all(suite, commands, lock)
    if not (target / PACKAGED_LOG).is_dir():
        raise PoolboxError(f"the {suite} root has no /{PACKAGED_LOG}: its HTCondor could not start")


def _run_all(suite: str, pipeline: Sequence[Sequence[str]], lock: int) -> None:
    """Run commands in a clean environment, each with the output of the one before.

    The lock goes to all of them: while they outlive a killed builder, the next one waits for them
    to end.
    """
    environment = {name: os.environ[name] for name in os.environ if PASSED_ON.fullmatch(name)}
    with tempfile.TemporaryFile() as errors, contextlib.ExitStack() as stack:
        programs: list[subprocess.Popen[bytes]] = []
        for command in pipeline:
            source = programs[-1].stdout if programs else subprocess.DEVNULL
            target = subprocess.DEVNULL if command is pipeline[-1] else subprocess.PIPE
            program = subprocess.Popen(
                command,
                stdin=source,
                stdout=target,
                stderr=errors,
                pass_fds=(lock,),
                env={**environment, "LC_ALL": "C.UTF-8"},
            )
            programs.append(stack.enter_context(program))
            if programs[:-1] and programs[-2].stdout is not None:
                programs[-2].stdout.close()  # its reader alone has it: it must notice its end
        failed = _failed(tuple(programs))
        if failed:
            errors.seek(0)
            text = errors.read().decode(errors="replace").strip()
            raise PoolboxError(f"the {suite} root could not be built: {failed}\n{text[-3000:]}")


def _failed(pipeline: tuple[subprocess.Popen[bytes], ...]) -> str:
    """Wait for the programs; why they failed, or an empty text.

    Whatever happens, none is left running.
    """
    deadline = time.monotonic() + BUILD_SECONDS
    try:
        codes = [program.wait(max(0.0, deadline - time.monotonic())) for program in pipeline]
    except BaseException as interruption:
        for program in pipeline:
            program.terminate()  # and not kill: mmdebstrap then cleans up after itself
        if isinstance(interruption, subprocess.TimeoutExpired):
            return f"it took longer than {BUILD_SECONDS} s"
        raise
    return "" if not any(codes) else f"its programs exited with {codes}"


def _say(text: str) -> None:
    print(f"poolbox: {text}", file=sys.stderr, flush=True)
