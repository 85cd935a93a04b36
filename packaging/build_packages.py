"""Builds wheel, sdist, debs and RPMs of sharectl: the same bytes for the same commit.

    make packages

SOURCE_DATE_EPOCH (Unix seconds) is the time of all files; without it that of the last commit.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Optional

import debian_package
import rpm_package
from package_trees import (
    PROJECT,
    add_pages,
    central_package,
    lab_package,
    node_package,
    settle,
)

VERSION = re.compile(r'^__version__ = "([0-9.]+)"$', re.MULTILINE)
SHELLS = {"bash": "sharectl.bash", "zsh": "_sharectl", "fish": "sharectl.fish"}
NOT_NEEDED_PAGES = ("sitemap.xml*", "css/fonts/*.[ets][otv][tfg]", "css/fonts/*.woff")
"""For web servers, and for browsers of the past: fonts are there as woff2 too."""
TOOLS = {"dpkg-deb": "dpkg", "rpmbuild": "rpm"}
BUILT = ("sharectl*.deb", "sharectl*.rpm", "sharectl-*.whl", "sharectl-*.tar.gz")
"""Files of an earlier build."""


def main() -> int:
    """Build everything into the folder of ``--output``, and print the paths."""
    parser = argparse.ArgumentParser(description=__doc__, prog="build_packages.py")
    parser.add_argument("--output", type=Path, default=PROJECT / "dist", help="folder to fill")
    parser.add_argument("--deb-python", default="3.13", help="Python of the deb (Debian 13: 3.13)")
    parser.add_argument("--rpm-python", default="3.12", help="Python of the RPM (EL 8 to 10: 3.12)")
    arguments = parser.parse_args()
    wrong = [
        f"{version}: write a version of Python such as 3.13"
        for version in (arguments.deb_python, arguments.rpm_python)
        if not re.fullmatch(r"3\.[0-9]+", version)
    ]
    wrong += [
        f"no {tool}: apt install {package}"
        for tool, package in TOOLS.items()
        if not shutil.which(tool)
    ]
    if wrong:
        raise SystemExit("build_packages.py: " + "; ".join(wrong))
    epoch = source_date()
    output = arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sharectl-packages-") as folder:
        work = Path(folder)
        wheel, sdist = python_distributions(work, epoch)
        version = version_of_source()
        written = pages(work / "pages", epoch)
        node = node_package(version, work, epoch)
        central, lab = {}, {}
        for python in {arguments.deb_python, arguments.rpm_python}:
            central[python] = central_package(version, wheel, python, work, epoch)
            lab[python] = lab_package(central[python], work, epoch)
            add_pages(central[python].tree, written)
            settle(central[python].tree, epoch)
        debs = (node, central[arguments.deb_python], lab[arguments.deb_python])
        rpms = (node, central[arguments.rpm_python], lab[arguments.rpm_python])
        made = [wheel, sdist]
        made += [debian_package.build(package, work, work, epoch) for package in debs]
        made += [rpm_package.build(package, work, work, epoch) for package in rpms]
        # `apt install ./sharectl_*.deb` must find one.
        for pattern in BUILT:
            for earlier in output.glob(pattern):
                earlier.unlink()
        for path in made:
            shutil.copyfile(path, output / path.name)
            print(output / path.name)
    return 0


def version_of_source() -> str:
    """Version that `central/sharectl/__init__.py` states."""
    path = PROJECT / "central/sharectl/__init__.py"
    stated = VERSION.search(path.read_text(encoding="utf-8"))
    if stated is None:
        raise SystemExit(f'{path}: write a line __version__ = "1.2.3"')
    return stated[1]


def source_date() -> int:
    """Unix seconds of SOURCE_DATE_EPOCH, or of the last commit."""
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    if stated is None:
        done = subprocess.run(
            ["git", "-C", str(PROJECT), "log", "-1", "--format=%ct"],
            capture_output=True,
            text=True,
            check=False,
        )
        stated = done.stdout.strip()
    if not stated.isdigit():
        raise SystemExit("build_packages.py: no commit here: set SOURCE_DATE_EPOCH, Unix seconds")
    return int(stated)


def python_distributions(work: Path, epoch: int) -> tuple[Path, Path]:
    """Wheel and sdist, made by hatchling."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", str(work)],
        cwd=PROJECT,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
    )
    (wheel,), (sdist,) = work.glob("*.whl"), work.glob("*.tar.gz")
    return wheel, sdist


def pages(folder: Path, epoch: int) -> Path:
    """Folder with ``man``, ``completions`` and ``html``, made from the sources."""
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": str(epoch),
        "PYTHONPATH": str(PROJECT / "central"),
    }

    def run(*words: object, output: Optional[Path] = None) -> None:
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            cwd=PROJECT,
            check=True,
            stdout=subprocess.PIPE,
            env=environment,
        )
        if output:
            output.write_bytes(done.stdout)

    run("-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder / "html")
    for pattern in NOT_NEEDED_PAGES:
        for path in (folder / "html").glob(pattern):
            path.unlink()
    run("packaging/man.py", folder / "man")
    (folder / "completions").mkdir()
    for shell, name in SHELLS.items():
        run("-m", "sharectl", "completion", shell, output=folder / "completions" / name)
    return folder


if __name__ == "__main__":
    sys.exit(main())
