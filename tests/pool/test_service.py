"""The units under a systemd that is PID 1, with a pool that wants a token for READ."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from poolbox.waiting import wait_for
from tests.pool.booted import SOURCE, Machine, with_checkout

# What the package does.
INSTALL = f"""
cd {SOURCE}/systemd
cp sharectl.service sharectl.timer sharectl@.service sharectl@.timer /usr/lib/systemd/system/
install -D -m 0644 sharectl.sysusers.conf /usr/lib/sysusers.d/sharectl.conf
install -D -m 0644 sharectl.tmpfiles.conf /usr/lib/tmpfiles.d/sharectl.conf
systemd-sysusers sharectl.conf
systemd-tmpfiles --create sharectl.conf
systemctl daemon-reload
"""
YAML = """\
groups:
  cms: {pledge_hs06: 300}
  atlas: {pledge_hs06: 200}
"""
SIGNED = "signing_key_file: /etc/sharectl/keys\n"
FAILED = "Failed with result 'exit-code'"
PUBLISHED = ("stat", "-c", "%y", "/var/lib/sharectl/sharectl.txt")
OFTEN = """\
[Timer]
OnUnitActiveSec=
OnBootSec=1s
OnUnitActiveSec=2s
AccuracySec=1s
"""
MINT = "umask 077; condor_token_create -identity reader@example.org -authz READ"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A machine on which sharectl is installed; nothing is switched on.

    Its pydantic is Debian's, which before forky is older than sharectl needs.
    """
    with with_checkout("forky") as running:
        running.run("sh", "-ec", INSTALL)
        running.write("/etc/sharectl/sharectl.yaml", YAML + SIGNED)
        running.write("/etc/sharectl/keys", f"2026a {'ab' * 32}\n")
        running.run("sh", "-c", "chgrp sharectl /etc/sharectl/keys; chmod 0640 /etc/sharectl/keys")
        query = ("condor_status", "-collector", "-af", "Name")
        wait_for(lambda: "box" in running.run(*query, check=False).stdout, "the collector answers")
        yield running


def ended_well(machine: Machine, service: str) -> bool:
    machine.run("systemctl", "start", service, check=False)
    return machine.shown(service, "Result") == "success"


def test_a_cycle_works_within_the_rights_of_the_service_once_it_has_the_token(
    machine: Machine,
) -> None:
    assert not ended_well(machine, "sharectl.service"), "the pool wants a token"
    journal = machine.journal("sharectl.service")
    assert "status=75/TEMPFAIL" in journal, "it asked the pool: no credential is missing"
    assert "does not know this user by any method" in journal, journal
    assert "condor_token_create -identity sharectl@example.org" in journal, journal

    machine.run("sh", "-c", f"{MINT} > /etc/sharectl/pool.token")
    assert ended_well(machine, "sharectl.service"), machine.journal("sharectl.service")
    assert re.search('complete=true .* reason="', machine.journal("sharectl.service"))
    assert machine.shown("sharectl.service", "MemoryDenyWriteExecute") == "yes"
    facts = machine.run("stat", "-c", "%n %U %a", *("/var/lib/sharectl", "/etc/sharectl")).stdout
    assert facts.splitlines() == ["/var/lib/sharectl sharectl 755", "/etc/sharectl root 755"]
    owners = machine.run("sh", "-c", "stat -c %U /var/lib/sharectl/*").stdout.split()
    assert len(owners) > 3
    assert set(owners) == {"sharectl"}
    as_condor = ("setpriv", "--reuid=condor", "--regid=condor", "--clear-groups")
    targets = machine.run(*as_condor, "cat", "/var/lib/sharectl/sharectl.txt").stdout
    assert targets.splitlines()[-1].startswith("# signature: hmac-sha256 2026a ")
    assert machine.run(*as_condor, "cat", "/etc/sharectl/pool.token", check=False).returncode


def test_a_cycle_that_fails_shows_as_failed_and_the_timer_goes_on(machine: Machine) -> None:
    machine.run("sh", "-c", f"{MINT} > /etc/sharectl/pool.token")
    machine.write("/etc/systemd/system/sharectl.timer.d/often.conf", OFTEN)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", "--now", "sharectl.timer")

    def published() -> str:
        return machine.run(*PUBLISHED, check=False).stdout

    def publishes_again() -> None:
        before = published()
        wait_for(lambda: published() != before, "the timer starts a cycle that publishes")

    publishes_again()
    # A timer that is due starts the next run at once: what the unit shows may be over by then.
    failures = machine.journal("sharectl.service").count(FAILED)
    machine.run("mv", "/etc/sharectl/pool.token", "/etc/sharectl/away")
    wait_for(lambda: machine.journal("sharectl.service").count(FAILED) > failures, "one fails")
    machine.run("mv", "/etc/sharectl/away", "/etc/sharectl/pool.token")
    publishes_again()

    machine.run("systemctl", "disable", "--now", "sharectl.timer")
    over, state = ("inactive", "failed"), ("sharectl.service", "ActiveState")
    wait_for(lambda: machine.shown(*state) in over, "the last cycle ends")
    assert machine.run("pgrep", "-u", "sharectl", check=False).stdout == ""
    assert "sharectl" not in machine.run("systemctl", "list-timers", "--all", "--no-pager").stdout
    assert "sharectl" not in machine.run("ls", "/run", "/run/credentials").stdout


def test_a_cycle_is_skipped_where_the_negotiator_does_not_run(machine: Machine) -> None:
    folder = "/etc/systemd/system/sharectl.service.d"
    drop_in = f"{SOURCE}/systemd/sharectl.negotiator.conf"
    machine.run("sh", "-c", f"{MINT} > /etc/sharectl/pool.token")
    machine.run("install", "-D", "-m", "0644", drop_in, f"{folder}/negotiator.conf")
    machine.run("systemctl", "daemon-reload")
    assert ended_well(machine, "sharectl.service"), machine.journal("sharectl.service")
    before = machine.run(*PUBLISHED).stdout

    other = "[Service]\nEnvironment=_CONDOR_NETWORK_HOSTNAME=cm-2.example.org\n"
    machine.write(f"{folder}/other-host.conf", other)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "sharectl.service")
    assert "exec-condition" in machine.journal("sharectl.service")
    assert machine.shown("sharectl.service", "ActiveState") == "inactive", "it is no failure"
    assert machine.run(*PUBLISHED).stdout == before

    machine.run("mv", "/etc/sharectl/pool.token", "/etc/sharectl/away")
    assert not ended_well(machine, "sharectl.service"), "no collector answers"
    assert machine.shown("sharectl.service", "ActiveState") == "failed"
