"""From nothing to a steered node and to removal, by the commands of the pages alone.

The machine is a Debian with systemd, and with HTCondor and its security as Debian packages it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from poolbox.waiting import wait_for
from tests.pool.booted import NAMES, Machine, booted
from tests.pool.built_packages import Packages
from tests.pool.documents import blocks, commands

STARTED, PACKAGES, MONITORING = "getting-started.md", "packages.md", "monitoring.md"
FOLDER = "/root/packages"
SITE = "/etc/sharectl/sharectl.yaml"
USER, PLUGIN_USER = "alice", "nagios"
FINDINGS = {"sharectl status": {0, 1}, "sharectl check pool": {0, 1}}
"""Exit codes of commands that report what the reader has not done yet."""
CORES = 16
SMALL_POOL = {"nodes": {"controlled": "100%"}}
"""Larger share than the page's, as it says."""
METRICS = "curl -s http://localhost:9100/metrics | grep ^sharectl_"
PLUGIN = f"runuser -u {PLUGIN_USER} -- sharectl status --nagios"
# Building the machine's root, once, takes minutes.
pytestmark = [pytest.mark.semantics, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def machine(pool_suite: str, packages: Packages) -> Iterator[Machine]:
    """The machine, with the built packages in a folder of root, and two users."""
    with booted(pool_suite, NAMES, {packages.folder: "/packages"}) as running:
        running.run("cp", "--recursive", "/packages", FOLDER)
        for user in (USER, PLUGIN_USER):
            running.run("useradd", "--create-home", user)
        yield running


def follow(machine: Machine, page: str, heading: str) -> dict[str, str]:
    """Do what a page says below a heading; returns commands with their output."""
    printed: dict[str, str] = {}
    for block in blocks(page, heading):
        if block.language == "yaml":
            change(machine, yaml.safe_load(block.text))
            continue
        for command in commands(block):
            if command.startswith("make "):
                continue  # in a checkout, elsewhere
            user = USER if command.startswith("condor_submit") else "root"
            folder = FOLDER if user == "root" else "/tmp"  # noqa: S108 - of the machine
            shell = ("runuser", "-u", user, "--", "sh", "-c", f"cd {folder} && {command}")
            # At a terminal apt asks before it removes.
            done = machine.run(*shell, check=False, text="y\n")
            allowed = next((FINDINGS[one] for one in FINDINGS if one in command), {0})
            journal = machine.journal("sharectl.service")
            assert done.returncode in allowed, f"{command}\n{done.stdout}{done.stderr}{journal}"
            printed[command.partition(" #")[0].strip()] = done.stdout + done.stderr
            if command.startswith("systemctl restart condor"):
                wait(machine, "condor_status -af Name", "slot1@")
            if "accounting_group=cms" in command:
                wait(machine, "condor_q -all -af JobStatus | grep -c 2", str(CORES))
    return printed


def wait(machine: Machine, command: str, text: str) -> None:
    shell = ("sh", "-c", command)
    wait_for(lambda: text in machine.run(*shell, check=False).stdout, f"{command}: {text}")


def change(machine: Machine, keys: dict[str, Any]) -> None:
    """Change keys of the configuration, and keep what else stands there."""
    site = yaml.safe_load(machine.run("cat", SITE).stdout)
    machine.write(SITE, yaml.safe_dump({**site, **keys, **SMALL_POOL}))


def states_of(machine: Machine) -> dict[str, str]:
    """Check of `sharectl check pool` -> its state."""
    printed = machine.run("sharectl", "check", "pool", "--json", check=False).stdout
    states: dict[str, str] = json.loads(printed)["states"]
    return states


def acting(machine: Machine) -> Any:
    printed = machine.run("sharectl", "status", "--json", check=False).stdout
    return json.loads(printed)["nodes"]["with_target"]


def start_of(machine: Machine) -> str:
    return machine.run("condor_config_val", "-startd", "START").stdout


def test_a_reader_of_the_pages_gets_to_a_steered_node_and_back(machine: Machine) -> None:
    follow(machine, STARTED, "1. See it")
    follow(machine, STARTED, "2. Install")
    written = machine.run("cat", SITE).stdout
    assert yaml.safe_load(written)["groups"].keys() == {"cms", "atlas"}
    assert "No quotas, because GROUP_NAMES of the negotiator is empty." in written
    printed = follow(machine, STARTED, "3. Look")
    assert "schedd cm.example.org" in printed["sharectl snapshot"]

    printed = follow(machine, STARTED, "4. Measure")
    assert "complete" in printed["sharectl status"]
    states = states_of(machine)
    assert {states[name] for name in ("reach", "timer", "cycles")} == {"ok"}
    follow(machine, PACKAGES, "Central manager")

    site = start_of(machine)
    follow(machine, STARTED, "5. Prepare nodes")
    follow(machine, PACKAGES, "Execute point")
    assert start_of(machine) != site
    wait(machine, "condor_status -af t1_wn_hs06 t1_JobCtlReason", "640 no-")

    printed = follow(machine, STARTED, "6. Steer")
    assert "recommended" not in printed["sharectl check config"]
    wait_for(lambda: acting(machine) == 1, "the node acts on its target")
    machine.run("sharectl", "status")

    printed = follow(machine, MONITORING, "Switch it on")
    assert "\nsharectl_target_nodes 1" in printed[METRICS]
    printed = follow(machine, MONITORING, "Nagios and Icinga")
    assert printed[PLUGIN].startswith("SHARECTL OK - ")

    follow(machine, STARTED, "Leave")
    wait_for(lambda: acting(machine) == 0, "the node has no target")
    follow(machine, PACKAGES, "Remove")
    assert start_of(machine) == site
    assert "sharectl" not in machine.run("systemctl", "list-timers", "--all", "--no-pager").stdout
    assert "No such file" in machine.run("ls", "/usr/bin/sharectl", check=False).stderr
