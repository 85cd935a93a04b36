"""Names, texts and file trees of the packages, which deb and RPM share."""

from __future__ import annotations

import dataclasses
import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

PROJECT = Path(__file__).parents[1]
SCRIPTS = Path(__file__).with_name("scripts")
LICENSE = PROJECT / "LICENSE"
SUMMARY = "measures and steers group shares of an HTCondor pool"
PURPOSE = """\
sharectl keeps the groups of an HTCondor pool at the shares that they were
promised."""
HOMEPAGE = "https://github.com/sharectl/sharectl"
MAINTAINER = "sharectl maintainers <sharectl@example.org>"
VENV = Path("usr/lib/sharectl")
COMMAND = f"""\
#!/{VENV}/bin/python -I
from sharectl.__main__ import command

command()
"""
WHEELS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
"""Kinds of wheels that run with the C library of Debian 12 and of EL 8, or a later one."""
NOT_NEEDED = ("bin", "libexec", "share", "certifi/tests")
"""Below site-packages; node jobs and snippets are for `sharectl-node`, units are elsewhere."""
FOR_COMPILERS = (".c", ".pyi")
"""Files of libraries that nothing reads when they run."""
COMPLETIONS = {
    "sharectl.bash": "usr/share/bash-completion/completions/sharectl",
    "_sharectl": "usr/share/zsh/vendor-completions/_sharectl",
    "sharectl.fish": "usr/share/fish/vendor_completions.d/sharectl.fish",
}


@dataclasses.dataclass(frozen=True)
class Package:
    """Package with its texts, its dependencies, and its files in ``tree``."""

    name: str
    version: str
    release: str
    summary: str
    description: str
    tree: Path
    python: Optional[str] = None
    """Python whose libraries are in it, such as 3.13; None for a package of any machine."""
    deb_depends: str = ""
    deb_recommends: str = ""
    rpm_requires: tuple[str, ...] = ()
    rpm_recommends: tuple[str, ...] = ()

    def script(self, moment: str) -> str:
        """Lines of shell that run when the package is ``installed``, ``removing``, …; or none."""
        path = SCRIPTS / f"{self.name}.{moment}"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return text.replace("@python@", f"python{self.python}")


def node_package(version: str, work: Path, epoch: int) -> Package:
    """``sharectl-node``: node jobs and snippets, nothing of it switched on."""
    tree = work / "sharectl-node"
    copy(PROJECT / "startd_cron", tree / "usr/libexec/sharectl", "*.py")
    copy(PROJECT / "config.d", tree / "usr/share/sharectl/config.d")
    _common(tree, "sharectl-node", epoch)
    return Package(
        name="sharectl-node",
        version=version,
        release="1",
        summary=f"{SUMMARY} (nodes)",
        description=f"""{PURPOSE}
This package is for execute points and access points. It has the node jobs
in /usr/libexec/sharectl and the HTCondor configuration in
/usr/share/sharectl/config.d, and switches none of it on.""",
        tree=tree,
        deb_depends="python3, condor",
        rpm_requires=("python3 >= 3.6", "condor"),
    )


def central_package(version: str, wheel: Path, python: str, work: Path, epoch: int) -> Package:
    """``sharectl``: the command with its own virtual environment for that Python, and its units."""
    tree = work / f"sharectl-python{python}"
    environment = tree / VENV
    site = environment / f"lib/python{python}/site-packages"
    install(wheel, python, site)
    for name in NOT_NEEDED:
        shutil.rmtree(site / name)
    for path in site.rglob("*"):
        if path.suffix in FOR_COMPILERS:
            path.unlink()
        elif path.suffix == ".py" and (text := path.read_bytes()).startswith(b"#!"):
            path.write_bytes(text.partition(b"\n")[2])  # they are modules, not commands
    for info in site.glob("*.dist-info"):
        for name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):  # paths of the build
            (info / name).unlink(missing_ok=True)
    programs = environment / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(f"../../../bin/python{python}")
    (programs / "sharectl").write_text(COMMAND, encoding="utf-8")
    (environment / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {python}\n",
        encoding="utf-8",
    )
    (tree / "usr/bin").mkdir()
    (tree / "usr/bin/sharectl").symlink_to("../lib/sharectl/bin/sharectl")
    for pattern in ("*.service", "*.timer"):
        copy(PROJECT / "systemd", tree / "usr/lib/systemd/system", pattern)
    copy(PROJECT / "systemd", tree / "usr/share/sharectl/systemd", "*.negotiator.conf")
    for kind in ("sysusers", "tmpfiles"):
        folder = tree / f"usr/lib/{kind}.d"
        folder.mkdir()
        shutil.copyfile(PROJECT / f"systemd/sharectl.{kind}.conf", folder / "sharectl.conf")
    copy(PROJECT / "docs/monitoring", tree / "usr/share/sharectl/monitoring")
    documentation = tree / "usr/share/doc/sharectl"
    documentation.mkdir(parents=True)
    shutil.copyfile(PROJECT / "README.md", documentation / "README.md")
    _common(tree, "sharectl", epoch)
    return Package(
        name="sharectl",
        version=version,
        release=f"1.py{python}",
        summary=SUMMARY,
        description=f"""{PURPOSE}
It measures each group's error and steers nodes by START expressions; it
kills nothing. This package is for the central manager, or for any machine
that may query the pool. It has its own libraries, for Python {python}. Its
timer is not enabled.""",
        tree=tree,
        python=python,
        deb_depends=f"python{python}, libc6 (>= 2.28), libgcc-s1, libstdc++6, zlib1g, "
        "systemd | systemd-standalone-sysusers | passwd",
        deb_recommends="condor",
        rpm_requires=(
            f"/usr/bin/python{python}",
            "glibc >= 2.28",
            "libgcc",
            "libstdc++",
            "zlib",
            "(systemd or shadow-utils)",
        ),
        rpm_recommends=("condor",),
    )


def lab_package(central: Package, work: Path, epoch: int) -> Package:
    """``sharectl-lab``: the laboratory, which it takes out of the tree of ``central``."""
    tree = work / f"sharectl-lab-python{central.python}"
    place = VENV / f"lib/python{central.python}/site-packages/sharectl_lab"
    (tree / place.parent).mkdir(parents=True)
    shutil.move(central.tree / place, tree / place)
    _common(tree, "sharectl-lab", epoch)
    return Package(
        name="sharectl-lab",
        version=central.version,
        release=central.release,
        summary=f"{SUMMARY} (laboratory)",
        description=f"""{PURPOSE}
This package has the digital twin of a pool, with the verbs simulate, learn
and tune. The service needs none of it.""",
        tree=tree,
        python=central.python,
        deb_depends=f"sharectl (= {central.version}-{central.release.replace('.', '+', 1)})",
        rpm_requires=(f"sharectl = {central.version}-{central.release}",),
    )


def install(wheel: Path, python: str, site: Path) -> None:
    """Fill ``site`` for a Python that need not be on this machine."""
    platforms = [f"--platform={kind}_{os.uname().machine}" for kind in WHEELS]
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"),
            *("--implementation=cp", f"--python-version={python}", *platforms),
            *("--only-binary=:all:", "--constraint", str(PROJECT / "constraints.txt")),
            *("--target", str(site), str(wheel)),
        ],
        check=True,
    )


def add_pages(tree: Path, pages: Path) -> None:
    """Take in the folders of ``pages``: ``man``, ``completions`` and ``html``."""
    for page in sorted((pages / "man").glob("*.[1-8]")):
        folder = tree / f"usr/share/man/man{page.suffix[1:]}"
        folder.mkdir(parents=True, exist_ok=True)
        compress(page, folder / f"{page.name}.gz")
    for name, place in COMPLETIONS.items():
        (tree / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pages / "completions" / name, tree / place)
    shutil.copytree(pages / "html", tree / "usr/share/doc/sharectl/html")


def copy(source: Path, target: Path, pattern: str = "*") -> None:
    """Copy a folder's files of that name, and those below it."""
    for path in sorted(source.rglob(pattern)):
        if path.is_file() and "__pycache__" not in path.parts:
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def compress(source: Path, target: Path) -> None:
    """Write a file as gzip, without its name and time."""
    target.write_bytes(gzip.compress(source.read_bytes(), 9, mtime=0))


def settle(tree: Path, epoch: int) -> None:
    """Give every file the mode of its kind, whatever the umask of the build, and one time."""
    for path in entries(tree):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or _is_program(path) else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def entries(tree: Path) -> Iterator[Path]:
    """Everything below a tree, in one order."""
    return iter(sorted(tree.rglob("*")))


def _is_program(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == b"#!" and "site-packages" not in path.parts


def _common(tree: Path, name: str, epoch: int) -> None:
    """Add the folder of the site's configuration, the changelog and the modes."""
    (tree / "etc/sharectl").mkdir(parents=True)
    documentation = tree / "usr/share/doc" / name
    documentation.mkdir(parents=True, exist_ok=True)
    compress(PROJECT / "CHANGELOG.md", documentation / "changelog.gz")
    settle(tree, epoch)
