"""The role of packaging/ansible, run by Ansible on a fresh Debian."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from poolbox import CannotBuildError
from poolbox.root_copy import as_root, root_copy, run_as_root
from tests.pool.built_packages import Packages
from tests.pool.conftest import unavailable
from tests.pool.sharectl_command import CHECKOUT

PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
ROLES = CHECKOUT / "packaging/ansible/roles"
OFFLINE = "deb [trusted=yes] file:{folder} ./\n"
APT = 'APT::Sandbox::User "root";\nAcquire::Check-Valid-Until "false";\n'
GROUPS = {"cms": {"pledge_hs06": 800}, "atlas": {"pledge_hs06": 200}}
SECONDS = 3600
RECONFIG = "#!/bin/sh\necho reconfig >> /var/log/reconfigs\n"
"""In the place of condor_reconfig: no daemon runs in this root."""


def publish_debs(debs: list[Path], folder: Path) -> str:
    """Make a folder a repository of the debs; returns the line of sources.list."""
    folder.mkdir()
    stanzas = []
    for deb in debs:
        control = subprocess.run(
            ["dpkg-deb", "--field", str(deb)], check=True, capture_output=True, text=True
        )
        content = deb.read_bytes()
        (folder / deb.name).write_bytes(content)
        stanzas.append(
            f"{control.stdout}Filename: ./{deb.name}\nSize: {len(content)}\n"
            f"SHA256: {hashlib.sha256(content).hexdigest()}\n"
        )
    (folder / "Packages").write_text("\n".join(stanzas))
    return OFFLINE.format(folder=folder)


class Host:
    """A Debian that Ansible reaches by a program in the place of ssh."""

    def __init__(self, root: Path, folder: Path, repository: Path) -> None:
        self.root, self.folder = root, folder
        ssh = folder / "ssh"
        argv = shlex.join(as_root(root, (repository,)))
        ssh.write_text(f'#!/bin/sh\nfor command; do :; done\nexec {argv} "$command"\n')
        ssh.chmod(0o755)

    def play(self, variables: dict[str, object], expect: int = 0) -> str:
        play = {"hosts": "all", "roles": [{"role": "sharectl", "vars": variables}]}
        book = self.folder / "site.yml"
        book.write_text(yaml.safe_dump([play]))
        how = {
            "ansible_pipelining": True,
            "ansible_ssh_executable": str(self.folder / "ssh"),
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_ssh_transfer_method": "piped",
        }
        environment = {
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "ANSIBLE_ROLES_PATH": str(ROLES),
        }
        done = subprocess.run(
            [str(PLAYBOOK), "-i", "node,", str(book), "-e", json.dumps(how)],
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    @property
    def reconfigs(self) -> int:
        log = self.root / "var/log/reconfigs"
        return log.read_text().count("reconfig") if log.exists() else 0


@pytest.fixture
def host(pool_suite: str, packages: Packages, tmp_path: Path) -> Iterator[Host]:
    if not PLAYBOOK.exists():
        unavailable("ansible-core needs Python 3.11")
    repository = tmp_path / "repository"
    line = publish_debs(packages.debs, repository)
    with contextlib.ExitStack() as stack:
        try:
            root = stack.enter_context(root_copy(pool_suite))
        except CannotBuildError as reason:
            unavailable(reason)
        (root / "etc/apt/apt.conf.d/99box").write_text(APT)
        (root / "etc/apt/sources.list.d/sharectl.list").write_text(line)
        # Ansible's module of apt wants it, and installs it itself where it may.
        run_as_root(root, "apt-get update && apt-get install --yes python3-apt", (repository,))
        reconfig = root / "usr/sbin/condor_reconfig"
        reconfig.unlink()  # a link to the cache's
        reconfig.write_text(RECONFIG)
        reconfig.chmod(0o755)
        yield Host(root, tmp_path, repository)


def test_the_role_installs_both_halves_and_checks_the_configuration(host: Host) -> None:
    site: dict[str, object] = {
        "sharectl_host": ["central", "execute-point"],
        "sharectl_configuration": {"mode": "observe", "groups": GROUPS},
        "sharectl_knobs": {"SHARECTL_GRACE_SECONDS": 240},
        "sharectl_power_hs06": 640,
        "sharectl_token": "not a token",
    }
    host.play(site)
    assert yaml.safe_load(host.read("etc/sharectl/sharectl.yaml"))["groups"] == GROUPS
    node = "etc/condor/config.d/60-sharectl-execute-point.conf"
    assert (host.root / host.read(node).split()[-1].removeprefix("/")).is_file()
    value = run_as_root(host.root, "condor_config_val SHARECTL_GRACE_SECONDS t1_wn_hs06").stdout
    assert value.split() == ["240", "640"]
    assert (host.root / "etc/sharectl/pool.token").stat().st_mode & 0o777 == 0o600
    assert host.reconfigs == 1

    assert "changed=0" in host.play(site)
    assert host.reconfigs == 1

    before = host.read("etc/sharectl/sharectl.yaml")
    wrong = {**site, "sharectl_configuration": {"groups": GROUPS, "modus": "observe"}}
    assert "modus" in host.play(wrong, expect=2)
    assert host.read("etc/sharectl/sharectl.yaml") == before
