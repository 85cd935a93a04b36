"""Files of a configuration: those that cycles write, and all that sharectl reads or keeps, which nothing may replace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional, Union

from sharectl.config.model import OWN_FILES, Config
from sharectl.config.places import Place
from sharectl.errors import ConfigError, StateError
from sharectl.files.yaml import place
from sharectl.words import shown

CONDOR_CONFIG = "/etc/condor/condor_config"

Identity = Union[str, tuple[int, int]]
"""A path, or device and inode of a file that is there."""


@dataclass(frozen=True)
class NamedFile:
    """A file, and where it is named."""

    name: str
    path: Path
    at: Place = ()
    """Where the configuration names it; empty if it does not."""
    is_read: bool = False
    """Whether sharectl only reads it."""
    is_folder: bool = False
    rotated: int = 0
    """Older files beside it, with a dot and a number behind the name."""

    @property
    def words(self) -> str:
        """What sharectl does with it, such as ``is written by publish[0].file``."""
        return f"is read: {self.name}" if self.is_read else f"is written by {self.name} too"


def written(config: Config) -> list[NamedFile]:
    """Files that cycles write where the configuration says so."""
    history = config.history
    rows: list[tuple[Place, Optional[Path]]] = [
        (("history", "jobs_file"), history.jobs_file),
        (
            ("pledges", "cric", "copy_file"),
            config.pledges.cric.copy_file if config.pledges.cric else None,
        ),
        *(row for number, way in enumerate(config.publish) for row in way.written_files(number)),
    ]
    log: Place = ("history", "errors_log")
    return [
        NamedFile(place(log), history.errors_log, log, rotated=history.errors_log_keep),
        *(NamedFile(place(at), path, at) for at, path in rows if path is not None),
    ]


def kept(config: Config, file: Path) -> list[NamedFile]:
    """Files that sharectl keeps in ``state_directory``, or reads; ``file`` is the configuration's own."""
    folder, pledges = config.state_directory, config.pledges
    cric = pledges.cric
    own = [NamedFile(f"state_directory.{name}", folder / name) for name in OWN_FILES]
    read: list[tuple[str, Optional[Path]]] = [
        ("the configuration itself", file.absolute()),
        ("signing_key_file", config.signing_key_file),
        ("pledges.negotiator.file", pledges.negotiator.file),
        ("pledges.cric.ca_file", cric.ca_file if cric else None),
        *(
            (f"publish[{number}].https.ca_file", way.https.ca_file)
            for number, way in enumerate(config.publish)
            if way.https is not None
        ),
        ("HTCondor's configuration", Path(os.environ.get("CONDOR_CONFIG", CONDOR_CONFIG))),
    ]
    return [
        *own,
        NamedFile("state_directory.ledger", folder / "ledger", is_folder=True),
        *(NamedFile(name, path, is_read=True) for name, path in read if path is not None),
        *(
            [
                NamedFile(
                    "pledges.cric.ca_directory", cric.ca_directory, is_read=True, is_folder=True
                )
            ]
            if cric and cric.ca_directory
            else []
        ),
    ]


def clashes(
    config: Config, file: Path, identities: Callable[[Path], frozenset[Identity]]
) -> Iterator[tuple[Place, str]]:
    """Where the configuration names a file to write that is one of the others, and what to write instead."""
    seen = kept(config, file)
    for mine in written(config):
        other = clash(mine, seen, identities)
        if other is not None:
            yield mine.at, f"{shown(str(mine.path))} {other.words}; write a path of its own"
        seen.append(mine)


def clash(
    file: NamedFile, others: Iterable[NamedFile], identities: Callable[[Path], frozenset[Identity]]
) -> Optional[NamedFile]:
    """First of ``others`` that writing ``file`` would change; None if there is none."""
    mine = _all_of(file, identities)
    return next((other for other in others if _meet(mine, other, identities)), None)


def as_written(path: Path) -> frozenset[Identity]:
    """A path as it is written, without ``..``; nothing is looked up."""
    return frozenset([os.path.normpath(path)])


def on_disk(path: Path) -> frozenset[Identity]:
    """All that a path leads to on this machine: its place, where links lead, and the file itself."""
    found: set[Identity] = {
        os.path.join(os.path.realpath(path.parent), path.name),  # noqa: PTH118 - a text
        os.path.realpath(path),
    }
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return frozenset(found)
    return frozenset([*found, (facts.st_dev, facts.st_ino)])


def refuse_clashes(config: Config, file: Path) -> None:
    """ConfigError if a file that is to be written is, on this machine, another one that sharectl uses."""
    found = list(clashes(config, file, on_disk))
    if found:
        raise ConfigError([f"{place(at)}: {message}" for at, message in found])


def refuse_output(path: Path, config: Config, file: Path, own: Sequence[NamedFile] = ()) -> None:
    """StateError if an option names a place to write that sharectl reads, keeps or writes in cycles."""
    other = clash(NamedFile("", path), [*own, *kept(config, file), *written(config)], on_disk)
    if other is None:
        return
    if other.is_folder:
        why = f"it is in {other.path}, where sharectl keeps its own files"
    else:
        why = f"sharectl reads it ({other.name})" if other.is_read else f"cycles write {other.path}"
    raise StateError(f"{path}: not written: {why}; name a file elsewhere")


def _all_of(
    file: NamedFile, identities: Callable[[Path], frozenset[Identity]]
) -> frozenset[Identity]:
    names = (
        file.path.with_name(f"{file.path.name}.{number}") for number in range(1, file.rotated + 1)
    )
    return identities(file.path).union(os.path.normpath(name) for name in names)


def _meet(
    mine: frozenset[Identity], other: NamedFile, identities: Callable[[Path], frozenset[Identity]]
) -> bool:
    if mine & _all_of(other, identities):
        return True
    folders = [f"{folder}/" for folder in identities(other.path) if isinstance(folder, str)]
    return other.is_folder and any(
        isinstance(path, str) and path.startswith(tuple(folders)) for path in mine
    )
