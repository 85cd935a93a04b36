"""Debs in a fresh Debian, installed and removed as docs/packages.md has it; the RPMs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from poolbox.root_copy import root_copy, run_as_root
from poolbox.waiting import HANG_SECONDS
from tests.pool.built_packages import Packages, build
from tests.pool.documents import blocks, commands
from tests.pool.sharectl_command import CHECKOUT

APT = 'APT::Get::Assume-Yes "true";\nAPT::Sandbox::User "root";\n'
TIMER_LINK = "etc/systemd/system/timers.target.wants/sharectl.timer"
OF_EVERY_INSTALLATION = re.compile(
    r"var/(cache|log|lib/(apt|dpkg|systemd))/|etc/(\.pwd\.lock|.*-)$|etc/apt/apt\.conf\.d/99box$"
)
"""Files that any package leaves, and the one of this test."""
OF_ONE_KIND = re.compile(
    r"usr/share/(doc/[a-z-]+/(copyright|changelog\.Debian\.gz)|lintian/.*|licenses/.*)"
)
"""Files of debs alone or of RPMs alone."""


def documented(heading: str) -> list[str]:
    return [line for block in blocks("packages.md", heading) for line in commands(block)]


def output_of(*argv: object) -> str:
    done = subprocess.run(
        [str(word) for word in argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert not done.returncode, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def test_a_build_elsewhere_and_later_has_the_same_bytes(packages: Packages, tmp_path: Path) -> None:
    names = output_of(
        "git", "-C", CHECKOUT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"
    )
    project = tmp_path / "elsewhere" / "project"
    for name in filter(None, names.split("\0")):
        if not name.startswith(("tests/", "dist/", ".venv/")) and (CHECKOUT / name).is_file():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, project / name, follow_symlinks=False)  # at another time
    again = build(project, tmp_path / "dist", packages.python)
    assert again.names == packages.names
    assert len(again.names) == 8
    bytes_of = [
        {name: (made.folder / name).read_bytes() for name in made.names}
        for made in (packages, again)
    ]
    assert [name for name in again.names if bytes_of[0][name] != bytes_of[1][name]] == []


def files_of_deb(deb: Path) -> dict[str, str]:
    """Path -> mode, link; folders that others may have too are left out."""
    rows = (line.split(None, 5) for line in output_of("dpkg-deb", "--contents", deb).splitlines())
    return {
        name.partition(" -> ")[0].removeprefix("./").rstrip("/"): mode + name.partition(" -> ")[2]
        for mode, owner, _size, _day, _time, name in rows
        if owner == "root/root" and not (mode[0] == "d" and "sharectl" not in name)
    }


def files_of_rpm(rpm: Path) -> dict[str, str]:
    layout = "[%{FILEMODES:perms} %{FILEUSERNAME}/%{FILEGROUPNAME} %{FILENAMES} %{FILELINKTOS}\n]"
    rows = (line.split(" ") for line in output_of("rpm", "-qp", "--qf", layout, rpm).splitlines())
    return {
        name.removeprefix("/"): mode + link
        for mode, owner, name, link in rows
        if owner == "root/root"
    }


def shared(files: dict[str, str]) -> dict[str, str]:
    return {path: kind for path, kind in files.items() if not OF_ONE_KIND.match(path)}


@pytest.mark.parametrize("number", [0, 1, 2], ids=["sharectl", "sharectl-node", "sharectl-lab"])
def test_the_rpm_has_the_files_and_scripts_of_the_deb(
    packages: Packages, number: int, tmp_path: Path
) -> None:
    deb, rpm = packages.debs[number], packages.rpms[number]
    assert len(files_of_deb(deb)) > 20
    assert shared(files_of_rpm(rpm)) == shared(files_of_deb(deb))
    output_of("dpkg-deb", "--control", deb, tmp_path)
    scripts = output_of("rpm", "-qp", "--scripts", rpm)
    moments = {"postinst": "postinstall", "prerm": "preuninstall", "postrm": "postuninstall"}
    compared = 0
    for script, scriptlet in moments.items():
        path = tmp_path / script
        text = path.read_text() if path.exists() else ""
        _, _, of_rpm = scripts.partition(f"{scriptlet} scriptlet (using /bin/sh):\n")
        body = [line.strip() for line in of_rpm.partition(" scriptlet ")[0].splitlines()][1:]
        case = re.search(
            r'"\$1" = (?:configure|remove) \]; then\n(.*?)\nfi$', text, re.DOTALL | re.MULTILINE
        )
        lines = [line.strip() for line in case[1].splitlines()] if case else []
        assert body[: len(lines)] == lines, script
        assert bool(lines) == bool(of_rpm), script
        compared += len(lines)
    assert compared


def test_each_half_has_its_files_and_none_in_etc_or_where_htcondor_looks(
    packages: Packages,
) -> None:
    expected = {
        *("usr/share/man/man1/sharectl.1.gz", "usr/share/man/man5/sharectl.yaml.5.gz"),
        *("usr/share/bash-completion/completions/sharectl", "usr/lib/sysusers.d/sharectl.conf"),
        *("usr/share/doc/sharectl/html/index.html", "usr/lib/tmpfiles.d/sharectl.conf"),
        *("usr/share/zsh/vendor-completions/_sharectl", "usr/lib/systemd/system/sharectl@.timer"),
    }
    assert expected - set(files_of_deb(packages.debs[0])) == set()
    needed = output_of("dpkg-deb", "--field", packages.debs[0], "Depends").split(", ")
    assert needed[0] == f"python{packages.python}", "a machine with another Python refuses it"
    for deb in packages.debs:
        names = [name for name, kind in files_of_deb(deb).items() if kind[0] != "d"]
        assert [name for name in names if name.startswith(("etc/", "usr/share/condor"))] == []
        assert "etc/sharectl" in files_of_deb(deb)


def test_lintian_and_rpmlint_find_nothing_that_is_not_explained(packages: Packages) -> None:
    output_of("lintian", "--fail-on", "error,warning", "--allow-root", *packages.debs)
    config = CHECKOUT / "packaging/rpmlint.toml"
    output_of("rpmlint", "--strict", "--config", config, *packages.rpms)


def listing(root: Path) -> set[str]:
    """Paths of a root, but for those that any package leaves."""
    paths = {
        str(Path(folder, name).relative_to(root))
        for folder, folders, files in os.walk(root)
        for name in (*folders, *files)
    }
    return {path for path in paths if not OF_EVERY_INSTALLATION.search(path)}


def test_installed_upgraded_removed_and_purged(packages: Packages, pool_suite: str) -> None:
    """Packages at work are in test_documents.py."""
    with root_copy(pool_suite) as root:
        before = listing(root)

        def left() -> set[str]:
            paths = listing(root) - before
            return {path for path in paths if not path.startswith("etc/systemd")}

        def follow(*commands: str) -> None:
            """Run those of apt and dpkg, in the folder of the packages."""
            for command in commands:
                if command.startswith(("apt ", "dpkg ")):
                    run_as_root(root, f"cd {packages.folder} && {command}", (packages.folder,))

        (root / "etc/apt/apt.conf.d/99box").write_text(APT)
        follow(*documented("Central manager"), *documented("Execute point"))
        assert "sharectl:" in (root / "etc/passwd").read_text()
        link = root / TIMER_LINK
        assert not link.exists()
        site, state = root / "etc/sharectl/sharectl.yaml", root / "var/lib/sharectl/sharectl.txt"
        for path in (site, state):
            path.write_text("of the site\n")
        link.parent.mkdir(parents=True, exist_ok=True)  # as systemctl enable does
        link.symlink_to("/usr/lib/systemd/system/sharectl.timer")
        follow(f"dpkg --install {' '.join(deb.name for deb in packages.debs)}")
        assert link.is_symlink()
        follow(*documented("Remove"))
        assert not link.is_symlink()
        assert {path.read_text() for path in (site, state)} == {"of the site\n"}
        folders = ("etc/sharectl", "var/lib/sharectl")
        assert [path for path in left() if not path.startswith(folders)] == []
        follow("apt purge sharectl sharectl-node")
        assert left() == set()
