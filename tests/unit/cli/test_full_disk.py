"""`sharectl disable` as root where nothing can be written: it does what needs no room."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.model import Plan, Target
from sharectl.publish import text
from sharectl.publish.disabled_file import DisabledFile
from tests.unit.cli.conftest import configured

FULL = 'mount -t tmpfs -o size=64k none "$1" && cp "$2"/* "$1"; head -c 1M /dev/zero > "$1/ballast"'
LIMITED = 'cp "$2"/* "$1"; : > "$1/lock"; ulimit -f 0'
"""No file can grow by a byte, whatever is removed."""
NAMESPACE = ("unshare", "--map-root-user", "--mount", "bash", "-c")
AFTER = '"$3" -m sharectl disable --reason cooling --config "$1/sharectl.yaml" 2>&1; echo "code $?"'
SHOWN = 'cp "$1/disabled" "$1/sharectl.txt" "$4"; rm -f "$1/ballast"; exit 0'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files to put on the disk: a configuration and a plan with a target."""
    made, now = tmp_path / "made", int(time.time())
    made.mkdir()
    file = configured(made, "")
    file.write_text(file.read_text().replace(str(made), str(tmp_path / "disk")))
    target = (Target("cn-1", "alice", 56, "cms", 8),)
    plan = Plan(now - 60, now - 60, now + 3000, ("alice", "cms"), target, "targets")
    (made / "sharectl.txt").write_text(text.render(plan))
    return made


def disable_on(disk: str, folder: Path, result: Path) -> str:
    """Output of the command as root on that disk; ``result`` gets the two files that it wrote."""
    place = folder.parent / "disk"
    place.mkdir()
    result.mkdir()
    script = f"{disk}\n{AFTER}\nulimit -f unlimited 2>/dev/null\n{SHOWN}"
    done = subprocess.run(
        [*NAMESPACE, script, "bash", str(place), str(folder), sys.executable, str(result)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    return done.stdout


def test_on_a_full_disk_it_is_off_and_the_old_file_gives_room(folder: Path) -> None:
    result = folder.parent / "result"
    output = disable_on(FULL, folder, result)
    assert "code 74" in output
    assert "run this as root" not in output
    assert "No space left on device; make room; an empty file is there instead" in output
    assert "sharectl is disabled all the same" in output
    assert DisabledFile(result).disabled() is not None
    assert text.FilePublisher(result / "sharectl.txt").look()[0].targets == 0


def test_where_nothing_can_be_written_the_file_of_targets_is_removed(folder: Path) -> None:
    result = folder.parent / "result"
    output = disable_on(LIMITED, folder, result)
    assert "code 74" in output
    assert "no file is there now, so that nodes have no target from it" in output
    assert f"no targets at {folder.parent}/disk/sharectl.txt" in output
    assert "sharectl is disabled all the same" in output
    assert sorted(path.name for path in result.iterdir()) == ["disabled"]
