"""A deb of a tree, by dpkg-deb."""

from __future__ import annotations

import email.utils
import gzip
import hashlib
import shutil
import subprocess
import textwrap
from pathlib import Path

from package_trees import HOMEPAGE, LICENSE, MAINTAINER, Package, entries, settle

OVERRIDES = Path(__file__).with_name("lintian")
COPYRIGHT = """\
sharectl: Copyright 2026 the sharectl maintainers. Apache-2.0.
"""
BUNDLED = """
Libraries in /usr/lib/sharectl/lib: Copyright of their authors. Each has its
licence in its folder NAME-VERSION.dist-info.
"""
SCRIPTS = {
    "postinst": {"configure": "installed"},
    "prerm": {"remove": "removing"},
    "postrm": {"remove": "removed", "purge": "purged"},
}
"""Script of dpkg -> its first argument -> moment of `Package.script`."""


def build(package: Package, work: Path, output: Path, epoch: int) -> Path:
    """Build the deb in the folder ``output``."""
    release = package.release.replace(".", "+", 1)
    version = f"{package.version}-{release}"
    architecture = _architecture() if package.python else "all"
    tree = work / f"deb-{package.name}"
    shutil.copytree(package.tree, tree, symlinks=True)
    _document(package, tree, version, epoch)
    control = tree / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(_control(package, tree, version, architecture))
    files = [path for path in entries(tree) if path.is_file() and not path.is_symlink()]
    sums = {
        path.relative_to(tree): hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        for path in files
        if control not in path.parents
    }
    (control / "md5sums").write_text("".join(f"{md5}  {path}\n" for path, md5 in sums.items()))
    for name, text in scripts(package).items():
        (control / name).write_text(text)
    settle(tree, epoch)
    target = output / f"{package.name}_{version}_{architecture}.deb"
    subprocess.run(
        [
            "dpkg-deb",
            "--root-owner-group",
            "-Zxz",
            "-z1",
            "--threads-max=1",
            "--build",
            str(tree),
            str(target),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": str(epoch)},
    )
    return target


def scripts(package: Package) -> dict[str, str]:
    """Maintainer scripts, by name."""
    texts = {}
    for name, moments in SCRIPTS.items():
        cases = [
            f'if [ "$1" = {argument} ]; then\n{textwrap.indent(lines, "    ")}fi\n'
            for argument, moment in moments.items()
            if (lines := package.script(moment))
        ]
        if cases:
            texts[name] = "#!/bin/sh\nset -e\n" + "".join(cases)
    return texts


def _architecture() -> str:
    done = subprocess.run(
        ["dpkg", "--print-architecture"], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _control(package: Package, tree: Path, version: str, architecture: str) -> str:
    kib = sum(path.lstat().st_size for path in entries(tree) if path.is_file()) // 1024
    recommends = f"Recommends: {package.deb_recommends}\n" if package.deb_recommends else ""
    description = textwrap.indent(package.description, " ")
    return (
        f"Package: {package.name}\nVersion: {version}\nArchitecture: {architecture}\n"
        f"Maintainer: {MAINTAINER}\nInstalled-Size: {kib}\nDepends: {package.deb_depends}\n"
        f"{recommends}Section: admin\nPriority: optional\nHomepage: {HOMEPAGE}\n"
        f"Description: {package.summary}\n{description}\n"
    )


def _document(package: Package, tree: Path, version: str, epoch: int) -> None:
    """Add the copyright, Debian's changelog and the overrides of lintian."""
    documentation = tree / "usr/share/doc" / package.name
    licence = f"\nLicense: Apache-2.0\n{_licence_words()}"
    bundled = BUNDLED if package.python else ""
    (documentation / "copyright").write_text(COPYRIGHT + bundled + licence)
    date = email.utils.formatdate(epoch)
    entry = (
        f"{package.name} ({version}) unstable; urgency=medium\n\n"
        f"  * Version {package.version}: see changelog.gz.\n\n -- {MAINTAINER}  {date}\n"
    )
    (documentation / "changelog.Debian.gz").write_bytes(gzip.compress(entry.encode(), 9, mtime=0))
    overrides = OVERRIDES / package.name
    if overrides.exists():
        folder = tree / "usr/share/lintian/overrides"
        folder.mkdir(parents=True)
        shutil.copyfile(overrides, folder / package.name)


def _licence_words() -> str:
    if not LICENSE.read_text(encoding="utf-8").lstrip().startswith("Apache License"):
        raise SystemExit(f"{LICENSE}: not the Apache License: correct debian_package.py")
    return " On Debian systems see /usr/share/common-licenses/Apache-2.0.\n"
