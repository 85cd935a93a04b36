"""Packages of `make packages`, for the Python of a suite; one build for all workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from poolbox.root import cached_root, locked
from tests.pool.sharectl_command import CHECKOUT

SECONDS = 3600


@dataclass(frozen=True)
class Packages:
    """Files of a build, which are alone in their folder."""

    folder: Path
    python: str
    """Python of the central half, such as 3.13."""

    @property
    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    @property
    def debs(self) -> list[Path]:
        """Packages of the central manager, of nodes, and of the laboratory."""
        return [self._one(rf"sharectl{name}_.*\.deb") for name in ("", "-node", "-lab")]

    @property
    def rpms(self) -> list[Path]:
        return [self._one(rf"sharectl{name}-\d.*\.rpm") for name in ("", "-node", "-lab")]

    def _one(self, pattern: str) -> Path:
        (path,) = (path for path in self.folder.iterdir() if re.fullmatch(pattern, path.name))
        return path


def build(project: Path, folder: Path, python: str) -> Packages:
    """Run the build of a project, with a time of its own that is not the clock's."""
    subprocess.run(
        [
            *(sys.executable, str(project / "packaging/build_packages.py")),
            *("--output", str(folder), "--deb-python", python, "--rpm-python", python),
        ],
        check=True,
        timeout=SECONDS,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1790000000"},
    )
    return Packages(folder, python)


def packages_of(suite: str, folder: Path) -> Packages:
    """The build for that suite in ``folder``; who comes first makes it, others wait."""
    link = cached_root(suite) / "usr/bin/python3"
    python = str(link.readlink()).removeprefix("python")
    made = folder / f"packages-{suite}"
    with locked(folder / f"packages-{suite}.lock"):
        if not made.is_dir():
            build(CHECKOUT, folder / f"packages-{suite}.new", python).folder.rename(made)
    return Packages(made, python)
