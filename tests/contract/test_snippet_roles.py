"""`sharectl snippets`: shown, tried, put in place and taken away, and nothing of others touched."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from sharectl.check.snippets import ROLES
from sharectl.cli.main import main

CHECKOUT = Path(__file__).parents[2]
PROGRAM = f"STARTD_CRON_JOB_CTL_EXECUTABLE = {CHECKOUT}/startd_cron/job_ctl.py\n"
SITE = "START = TARGET.JobUniverse == 5\nSTARTD_ATTRS = $(STARTD_ATTRS) Rack\nRack = 7\n"
EXECUTE = ROLES["execute"]


class Machine:
    """Configuration of HTCondor in a folder, and the command on it."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.main_file = root / "condor_config"
        self.folder = root / "config.d"
        self.folder.mkdir()
        self.main_file.write_text(
            f"USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR = {self.folder}\n"
            "DAEMON_LIST = MASTER, STARTD, SCHEDD\n"
        )
        self.write("20-site.conf", SITE)
        self.write("98-programs.conf", PROGRAM)
        self._capsys = capsys

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, action: str, role: str = "execute", *more: str) -> tuple[int, str, str]:
        code = main(["snippets", action, "--role", role, *more])
        return (code, *self._capsys.readouterr())

    @property
    def files(self) -> dict[str, bytes]:
        """Name → content of everything in the folder, temporary files too."""
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}


@pytest.fixture
def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Machine:
    for name in os.environ:
        if name.lower().startswith("_condor_"):
            monkeypatch.delenv(name)
    made = Machine(tmp_path, capsys)
    monkeypatch.setenv("CONDOR_CONFIG", str(made.main_file))
    return made


@pytest.mark.parametrize("name", ROLES)
def test_the_snippet_of_each_role_is_put_in_place_and_taken_away(
    name: str, machine: Machine
) -> None:
    role, before = ROLES[name], machine.files
    shipped = (CHECKOUT / "config.d" / role.file).read_text()
    umask = os.umask(0o077)
    try:
        code, out, err = machine.run("install", name, "--yes")
    finally:
        os.umask(umask)
    path = machine.folder / role.file
    assert (code, out.splitlines()[-2:]) == (
        0,
        [f"{path}: in place; to apply it, run:", "  condor_reconfig"],
    )
    assert f"+{shipped.splitlines()[0]}" in out
    assert ("DAEMON_LIST has no DEFRAG" in err) == (name == "central")
    assert path.read_text().startswith(shipped)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert machine.files.keys() == {*before, role.file}
    assert machine.run("install", name)[0] == 0
    code, out, err = machine.run("remove", name, "--yes")
    assert (code, err, machine.files) == (0, "", before)
    assert f"-{shipped.splitlines()[0]}" in out
    assert machine.run("remove", name) == (0, f"{path}: not there, nothing to do\n", "")


def test_without_yes_it_is_shown_only(machine: Machine) -> None:
    before = machine.files
    code, out, err = machine.run("install")
    assert (code, machine.files) == (1, before)
    assert "+# sharectl on an execute point" in out
    assert "--yes" in err


def test_a_later_file_that_breaks_it_is_named(machine: Machine) -> None:
    later = machine.write("99-local.conf", "# ours\nSTART = TARGET.RequestCpus < 9\n")
    before = machine.files
    code, out, err = machine.run("install", "execute", "--yes")
    assert (code, machine.files) == (1, before)
    assert f"\n{later}:2: START drops the value of {machine.folder / EXECUTE.file}:" in out
    assert "the trial above failed" in err
    findings = out.rpartition("\n+")[2].splitlines()[1:]
    assert len(findings) == 2
    assert [line for line in findings if not line.startswith(f"{later}:2: ")] == []


def test_programs_that_are_missing_are_named(machine: Machine) -> None:
    machine.write("98-programs.conf", "")
    code, out, _ = machine.run("install", "execute", "--yes")
    assert (code, "/usr/libexec/sharectl/job_ctl.py" in out.splitlines()[-1]) == (1, True)


INCLUDE = "include ifexist : /usr/share/sharectl/config.d/60-sharectl-execute-point.conf\n"
EDITED = EXECUTE.content.replace("GRACE_SECONDS = 480", "GRACE_SECONDS = 60\x1b[31m")


@pytest.mark.parametrize("action", ["install", "remove"])
@pytest.mark.parametrize(
    ("content", "shown"),
    [(EDITED, "-SHARECTL_GRACE_SECONDS = 60\\x1b[31m\n"), (INCLUDE, f"-{INCLUDE}")],
)
def test_an_edited_snippet_is_shown_and_left_alone(
    action: str, content: str, shown: str, machine: Machine
) -> None:
    machine.write(EXECUTE.file, content)
    before = machine.files
    code, out, err = machine.run(action, "execute", "--yes")
    assert (code, machine.files) == (1, before)
    assert shown in out
    assert "somebody edited the file" in err


def test_a_snippet_of_an_earlier_version_is_ours(machine: Machine) -> None:
    stamp = EXECUTE.content[len(EXECUTE.text) :].rpartition(" ")[0]
    text = "SHARECTL_ENABLED = True\n"
    earlier = f"{text}{stamp} {hashlib.sha256(text.encode()).hexdigest()}\n"
    path = machine.write(EXECUTE.file, earlier)
    assert machine.run("install", "execute", "--yes")[0] == 0
    assert path.read_text() == EXECUTE.content
    path.write_text(earlier)
    assert machine.run("remove", "execute", "--yes")[0] == 0
    # A copy by hand, without the last line.
    path.write_text(EXECUTE.text)
    assert machine.run("remove", "execute", "--yes")[0] == 0
    assert not path.exists()


def test_a_removal_that_would_stop_jobs_is_refused(machine: Machine) -> None:
    machine.write("99-local.conf", "SLOT_TYPE_1_START = $(START) && ($(t1_clauses))\n")
    assert machine.run("install", "execute", "--yes")[0] == 0
    before = machine.files
    code, out, _ = machine.run("remove", "execute", "--yes")
    assert (code, machine.files) == (1, before)
    assert f"\n{machine.folder}/99-local.conf:1: " in out


def test_the_last_folder_is_taken_or_one_that_htcondor_reads(
    machine: Machine, tmp_path: Path
) -> None:
    (own := tmp_path / "own.d").mkdir()
    (own / "98-programs.conf").write_text(PROGRAM)
    (tmp_path / "other").mkdir()
    with machine.main_file.open("a") as file:
        file.write(f"LOCAL_CONFIG_DIR = {machine.folder}, {own}, {tmp_path}/missing\n")
    assert machine.run("install", "execute", "--yes")[0] == 0
    assert (own / EXECUTE.file).exists()
    assert machine.run("remove", "execute", "--yes")[0] == 0
    folder = str(machine.folder)
    assert machine.run("install", "access", "--yes", "--config-dir", folder)[0] == 0
    assert ROLES["access"].file in machine.files
    code, _, err = machine.run("install", "access", "--yes", "--config-dir", f"{tmp_path}/other")
    assert (code, "HTCondor does not read it" in err) == (65, True)


def refused(machine: Machine) -> str:
    """Reason of a refusal, of which nothing remains."""
    before = machine.files
    code, _, err = machine.run("install", "execute", "--yes")
    assert (code, machine.files) == (65, before)
    return err


def test_a_link_is_refused(machine: Machine, tmp_path: Path) -> None:
    (machine.folder / EXECUTE.file).symlink_to(tmp_path / "condor_config")
    assert "is a link" in refused(machine)


def test_a_configuration_that_htcondor_cannot_read_is_refused(machine: Machine) -> None:
    broken = machine.write("30-broken.conf", "if version >= \nSTART = True\n")
    assert f"{broken}:" in refused(machine)


def test_a_machine_without_htcondor_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDOR_CONFIG", "/nonexistent/condor_config")
    assert "no configuration of HTCondor here" in refused(machine)
