"""HTCondor's library, where this machine's configuration is faulty, or does not answer."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from poolbox.waiting import HANG_SECONDS, wait_for
from sharectl.condor.deadline import MARK, end_marked
from sharectl.errors import INTERRUPTED

SOON = """
import sys
from sharectl.cli.main import run
from sharectl.condor import loading
loading.LOAD_SECONDS = int(sys.argv.pop(1))
run(heeds_ctrl_c=True)
"""
"""The command, with its first argument as the deadline of the library."""
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
TARGETS = "# sharectl: 1\nwn-1 alice 8 cms 8\n"


class Ended(NamedTuple):
    """End of a command."""

    code: int
    out: str
    err: str


class Machine:
    """Configurations of HTCondor and of sharectl."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.targets = folder / "sharectl.txt"
        self.targets.write_text(TARGETS)
        (folder / "snippets").mkdir()
        self.yaml = folder / "sharectl.yaml"
        self.yaml.write_text(
            f"groups: {{alice: {{pledge_hs06: 1}}, cms: {{pledge_hs06: 1}}}}\n"
            f"state_directory: {folder}\npublish: [{{collector: {{}}}}, {{file: {self.targets}}}]\n"
        )

    def run(self, named: str, *words: str, seconds: int = 60) -> Ended:
        """Run a command with CONDOR_CONFIG as ``named``, as a user whom files may refuse."""
        with self.start(named, *words, seconds=seconds) as command:
            try:
                out, err = command.communicate(timeout=HANG_SECONDS)
            finally:
                command.kill()
        return Ended(command.returncode, out, err)

    def start(self, named: str, *words: str, seconds: int) -> subprocess.Popen[str]:
        """Start a command; the library has ``seconds``."""
        return subprocess.Popen(
            [sys.executable, "-c", SOON, str(seconds), *words, "--config", str(self.yaml)],
            env={**os.environ, "CONDOR_CONFIG": named},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=drop_rights_on_files,  # noqa: PLW1509 - no threads
        )


def drop_rights_on_files() -> None:
    """Have files refuse root too."""
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[str]:
    """Path of a program that does not end."""
    program = tmp_path / "sleeper"
    program.symlink_to("/bin/sleep")
    yield str(program)
    # A killed process is there for a moment more on a busy machine.
    wait_for(lambda: not running(str(program)), "the end of the program")


def content_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


FAULTS = {
    "missing": "{first}: HTCondor finds no such file",
    "empty": "CONDOR_CONFIG is empty: HTCondor finds no such file",
    "folder": "{snippet.parent}: HTCondor finds no such file, or it is a fol",
    "circle": "{snippet}:1: HTCondor cannot use it: includes nested too deep",
    "syntax": '{snippet}:1: HTCondor cannot use it: it cannot read "FOO BAR"',
    "unreadable": "{first}: HTCondor cannot use it: Can't read config source {snippet}",
    "unreadable-first": "{first}: HTCondor cannot use it: Can't read global config source {first}",
}
"""Fault of CONDOR_CONFIG → begin of its message."""


def faulty(machine: Machine, fault: str) -> tuple[str, str]:
    """CONDOR_CONFIG with a fault, and the begin of its message."""
    first = machine.folder / "condor_config"
    snippet = machine.folder / "snippets" / "site.conf"
    snippet.write_text(f"include : {snippet}\n" if fault == "circle" else "FOO BAR\n")
    if fault != "missing":
        first.write_text(f"LOCAL_CONFIG_DIR = {snippet.parent}\n")
    if fault.startswith("unreadable"):
        (snippet if fault == "unreadable" else first).chmod(0)
    named = {"empty": "", "folder": str(snippet.parent)}.get(fault, str(first))
    return named, FAULTS[fault].format(first=first, snippet=snippet)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_configuration_is_a_message_with_place_and_remedy(
    machine: Machine, fault: str
) -> None:
    named, message = faulty(machine, fault)
    ended = machine.run(named, "cycle")
    assert (ended.code, ended.out, ended.err.count("\n")) == (78, "", 1), ended.err
    assert ended.err.startswith(f"sharectl: {message}")
    assert "CONDOR_CONFIG" in ended.err
    assert machine.targets.read_text() == TARGETS


@pytest.mark.parametrize("fault", ["missing", "syntax"])
def test_a_monitor_has_its_line(machine: Machine, fault: str) -> None:
    named, message = faulty(machine, fault)
    ended = machine.run(named, "status", "--nagios")
    line, *details = ended.out.splitlines()
    assert (ended.code, ended.err) == (3, "")
    assert line.startswith(f"SHARECTL UNKNOWN - {message}"[:130])
    assert len(line) <= 140
    assert "in CONDOR_CONFIG" in " ".join(details)


@pytest.mark.parametrize("fault", ["missing", "syntax"])
def test_targets_are_withdrawn_from_files_although_collectors_cannot_be_asked(
    machine: Machine, fault: str
) -> None:
    named, message = faulty(machine, fault)
    ended = machine.run(named, "disable", "--reason", "test")
    assert ended.code in (74, 78)
    assert message in ended.err
    assert "wn-1" not in machine.targets.read_text()
    assert (machine.folder / "disabled").exists()


def silent(machine: Machine, kind: str, program: str) -> str:
    """CONDOR_CONFIG that does not answer."""
    first, fifo = machine.folder / "condor_config", machine.folder / "snippets" / "fifo"
    os.mkfifo(fifo)
    if kind == "fifo":
        return str(fifo)
    texts = {
        "snippet": f"LOCAL_CONFIG_DIR = {fifo.parent}\n",
        "command": f"include command : {program} 1000\n",
        "piped": f"include : {program} 1000 |\n",
        # Neither a session nor a parent of its own hides it.
        "background": f"include command : /bin/sh {machine.folder}/script\n",
        "circle": "COLLECTOR_HOST = $(A)\nA = $(COLLECTOR_HOST)\n",
    }
    (machine.folder / "script").write_text(f"setsid {program} 1000 &\n{program} 1000\n")
    first.write_text(texts[kind])
    return str(first)


@pytest.mark.parametrize("kind", ["fifo", "snippet", "command", "piped", "background", "circle"])
def test_a_configuration_that_does_not_answer_is_given_up(
    machine: Machine, sleeper: str, kind: str
) -> None:
    named = silent(machine, kind, sleeper)
    ended = machine.run(named, "snapshot", seconds=2)
    assert ended.code == 78
    assert ended.err.startswith(f"sharectl: {named}: HTCondor has not read it within 2 s")
    assert "in CONDOR_CONFIG" in ended.err


@pytest.mark.parametrize("kind", ["fifo", "command"])
def test_ctrl_c_ends_a_load_and_the_commands_of_the_configuration(
    machine: Machine, sleeper: str, kind: str
) -> None:
    named = silent(machine, kind, sleeper)
    with machine.start(named, "snapshot", seconds=1000) as command:
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
        try:
            wait_for(lambda: len(children.read_text().split()) == 1, "the load")
            time.sleep(0.5)  # a wait for a FIFO cannot be seen
            command.send_signal(signal.SIGINT)
            _, err = command.communicate(timeout=HANG_SECONDS)
        finally:
            command.kill()
    assert (command.returncode, err) == (INTERRUPTED, "sharectl: interrupted\n")


def running(program: str) -> bool:
    return any(program.encode() in content_of(f) for f in Path("/proc").glob("[0-9]*/cmdline"))


def test_a_process_without_the_mark_is_not_ended() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"], env={MARK: "another"}) as other:
        try:
            end_marked(f"{MARK}=another, longer")
            assert other.poll() is None
            end_marked(f"{MARK}=another")
            assert other.wait(HANG_SECONDS) == -signal.SIGKILL
        finally:
            other.kill()
