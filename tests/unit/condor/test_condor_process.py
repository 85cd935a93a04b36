from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sharectl.condor.configuration import Source, read, reader
from sharectl.condor.library import UnreadableConfigurationError

PARENT = """
import os, sys
from sharectl.condor.configuration import Source, expand, reader
source = Source()
with reader(source) as process:
    expand(source, ("SPOOL",), process)
    print(process._process.pid, flush=True)
    hanging = Source(main_file=__import__("pathlib").Path(sys.argv[1]))
    expand(hanging, ("SPOOL",), process)
"""


def has_ended(pid: int) -> bool:
    """Whether there is no such process, or only its exit status."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            in "ZX"
        )
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_child_that_hangs_ends_with_its_parent(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = [sys.executable, "-c", PARENT, str(fifo)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            time.sleep(0.5)  # it opens the FIFO, and nobody writes into it
            assert not has_ended(child)
            assert parent.poll() is None
        finally:
            parent.send_signal(signal.SIGKILL)
    end = time.monotonic() + 10
    while not has_ended(child) and time.monotonic() < end:
        time.sleep(0.02)
    ended = has_ended(child)
    if not ended:
        os.kill(child, signal.SIGKILL)
    assert ended


def test_a_fifo_among_the_snippets_is_named(tmp_path: Path) -> None:
    fifo = tmp_path / "70-site.conf"
    os.mkfifo(fifo)
    source = Source(tmp_path)
    with (
        reader(source) as process,
        pytest.raises(UnreadableConfigurationError, match="is a FIFO") as caught,
    ):
        read(source, (), process)
    assert caught.value.place == str(fifo)
