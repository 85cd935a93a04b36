"""An RPM of a tree, by rpmbuild."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from package_trees import HOMEPAGE, LICENSE, MAINTAINER, Package, entries, settle

SECTIONS = {
    "post": ("installed", 'if [ "$1" -ge 1 ]; then'),
    "preun": ("removing", 'if [ "$1" -eq 0 ]; then'),
    "postun": ("removed", 'if [ "$1" -eq 0 ]; then'),
}
"""Scriptlet -> moment of `Package.script`, and when it is meant: not at an upgrade."""
DEFINES = {
    "_buildhost": "localhost",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "source_date_epoch_from_changelog": "0",
    "debug_package": "%{nil}",
    "__os_install_post": "%{nil}",
    "_build_id_links": "none",
    "_binary_payload": "w3.zstdio",
}
"""Macros that keep the machine and the time of the build out, and the files as they are."""


def build(package: Package, work: Path, output: Path, epoch: int) -> Path:
    """Build the RPM in the folder ``output``."""
    top = work / f"rpm-{package.name}"
    tree = top / "tree"
    shutil.copytree(package.tree, tree, symlinks=True)
    licences = tree / "usr/share/licenses" / package.name
    licences.mkdir(parents=True)
    shutil.copyfile(LICENSE, licences / "LICENSE")
    settle(tree, epoch)
    architecture = subprocess.run(
        ["uname", "-m"], check=True, capture_output=True, text=True
    ).stdout.strip()
    architecture = architecture if package.python else "noarch"
    spec = top / f"{package.name}.spec"
    spec.write_text(_spec(package, tree, architecture, epoch))
    defines = {**DEFINES, "_topdir": str(top), "_rpmdir": str(top / "out")}
    subprocess.run(
        [
            *("rpmbuild", "-bb", "--quiet", "--target", architecture),
            *(word for item in defines.items() for word in ("--define", " ".join(item))),
            str(spec),
        ],
        check=True,
        env={"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": str(epoch), "HOME": str(top)},
    )
    (made,) = (top / "out" / architecture).glob("*.rpm")
    target = output / made.name
    shutil.move(made, target)
    return target


def _spec(package: Package, tree: Path, architecture: str, epoch: int) -> str:
    requires = "".join(f"Requires: {words}\n" for words in package.rpm_requires)
    recommends = "".join(f"Recommends: {words}\n" for words in package.rpm_recommends)
    scriptlets = "".join(
        f"%{section}\n{condition}\n{lines}fi\n\n"
        for section, (moment, condition) in SECTIONS.items()
        if (lines := package.script(moment))
    )
    # Its libraries are its own: they are offered to nobody, and what they need is listed.
    return (
        f"Name: {package.name}\nVersion: {package.version}\nRelease: {package.release}\n"
        f"Summary: {package.summary[0].upper()}{package.summary[1:]}\n"
        f"License: Apache-2.0\nURL: {HOMEPAGE}\n"
        f"Packager: {MAINTAINER}\nGroup: System Environment/Daemons\n"
        f"BuildArch: {architecture}\nAutoReqProv: no\n{requires}{recommends}\n"
        f"%description\n{package.description}\n\n"
        f"%prep\n%build\n\n%install\nmkdir -p %{{buildroot}}\ncp -a {tree}/. %{{buildroot}}\n\n"
        f"{scriptlets}%files\n%defattr(-,root,root,-)\n{_files(tree)}\n"
        f"%changelog\n* {time.strftime('%a %b %d %Y', time.gmtime(epoch))} {MAINTAINER} - "
        f"{package.version}-{package.release}\n- See changelog.gz.\n"
    )


def _files(tree: Path) -> str:
    """Every file, and the folders that belong to this package alone or to both."""
    lines = []
    for path in entries(tree):
        name = f"/{path.relative_to(tree)}"
        kind = "%license " if "licenses" in path.parts else ""
        kind = "%doc " if "/usr/share/doc/" in name or "/usr/share/man/" in name else kind
        if path.is_symlink() or path.is_file():
            lines.append(f'{kind}"{name}"\n')
        elif "/sharectl" in name:
            lines.append(f'%dir "{name}"\n')
    return "".join(lines)
