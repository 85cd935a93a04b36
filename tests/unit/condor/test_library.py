"""HTCondor's library in a process, its refusals, and the version of an installed HTCondor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sharectl.condor.configuration import ConfigSource, expand
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError, refusal
from tests.fakes import Listing


def test_a_process_that_hung_or_died_is_started_again(tmp_path: Path) -> None:
    """A FIFO among the snippets waits for a writer; a broken line ends HTCondor's parser."""
    (fifos := tmp_path / "fifos").mkdir()
    os.mkfifo(fifos / "70-site.conf")
    (broken := tmp_path / "broken").mkdir()
    (broken / "a.conf").write_text("FOO BAR\n")
    with CondorProcess(deadline_seconds=3) as process:
        with pytest.raises(UnreadableConfigurationError, match="no answer in 3 s"):
            expand(ConfigSource(fifos), ("START",), process)
        with pytest.raises(UnreadableConfigurationError) as caught:
            expand(ConfigSource(broken), ("START",), process)
        assert caught.value.place == f"{broken / 'a.conf'}:1"
        assert expand(ConfigSource(), ("START",), process)


def test_a_refusal_names_the_operators_own_line(tmp_path: Path, listing: Listing) -> None:
    """HTCondor's texts, also for files that are read through another one, and for a folder's."""
    file = tmp_path / "a.conf"
    file.write_text("A = 1\nFOO BAR\n")

    def outcome(text: str) -> list[str]:
        error = refusal(text.replace("FILE", str(file)), "/made")
        place = f"{error and error.place}: {error}"
        return [place.replace(str(file), "FILE")]

    listing("condor/refusals.txt", outcome, 6)
