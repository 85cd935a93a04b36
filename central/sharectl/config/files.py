"""Files of a configuration: those that cycles write, and those that nothing may replace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional, Union

from sharectl.config.model import OWN_FILES, Config
from sharectl.errors import ConfigError, StateError
from sharectl.files.yaml import ValuePath, place
from sharectl.words import shown

CONDOR_CONFIG = "/etc/condor/condor_config"

Identities = frozenset[Union[str, tuple[int, int]]]
"""Paths that lead to a file; device and inode of a file that is there."""
Identify = Callable[[Path], Identities]


@dataclass(frozen=True)
class NamedFile:
    """A file, and the place that names it."""

    name: str
    path: Path
    at: ValuePath = ()
    """Place in the configuration; empty if it is not named there."""
    is_read: bool = False
    """Read and never written."""
    is_folder: bool = False
    rotated: int = 0
    """Older files beside it, with a dot and a number behind the name."""

    @property
    def use(self) -> str:
        """Use of it, such as ``is written by publish[0].file too``."""
        return f"is read: {self.name}" if self.is_read else f"is written by {self.name} too"


def written(config: Config) -> list[NamedFile]:
    """Files that cycles write where the configuration says so."""
    history, cric = config.history, config.pledges.cric
    rows: list[tuple[ValuePath, Optional[Path], int]] = [
        (("history", "errors_log"), history.errors_log, history.errors_log_keep),
        (("history", "jobs_file"), history.jobs_file, 0),
        (("pledges", "cric", "copy_file"), cric.copy_file if cric else None, 0),
    ]
    for number, way in enumerate(config.publish or ()):
        rows += [(at, path, 0) for at, path in way.written_files(number)]
    return [
        NamedFile(place(at), path, at, rotated=rotated or 0)
        for at, path, rotated in rows
        if path is not None
    ]


def kept(config: Config, file: Path) -> list[NamedFile]:
    """Files that sharectl keeps in ``state_directory``, or reads; ``file`` is the configuration."""
    folder, cric = config.state_directory, config.pledges.cric
    own: list[NamedFile] = []
    if folder is not None:
        own = [NamedFile(f"state_directory.{name}", folder / name) for name in OWN_FILES]
        own.append(NamedFile("state_directory.ledger", folder / "ledger", is_folder=True))
    read: dict[str, Optional[Path]] = {
        "the configuration itself": file.absolute(),
        "signing_key_file": config.signing_key_file,
        "pledges.negotiator.file": config.pledges.negotiator.file,
        "pledges.cric.ca_file": cric.ca_file if cric else None,
        "pledges.cric.ca_directory": cric.ca_directory if cric else None,
        "HTCondor's configuration": Path(os.environ.get("CONDOR_CONFIG", CONDOR_CONFIG)),
    }
    for number, way in enumerate(config.publish or ()):
        read[f"publish[{number}].https.ca_file"] = way.https.ca_file if way.https else None
    return own + [
        NamedFile(name, path, is_read=True, is_folder=name.endswith("directory"))
        for name, path in read.items()
        if path is not None
    ]


def clashes(config: Config, file: Path, identify: Identify) -> Iterator[tuple[ValuePath, str]]:
    """Places that name a file to write which is one of the others, and the remedy."""
    seen = kept(config, file)
    for mine in written(config):
        other = _clash(mine, seen, identify)
        if other is not None:
            yield mine.at, f"{shown(str(mine.path))} {other.use}; write a path of its own"
        seen.append(mine)


def as_written(path: Path) -> Identities:
    """A path as it is written, without ``..``; nothing is looked up."""
    return frozenset([os.path.normpath(path)])


def on_disk(path: Path) -> Identities:
    """Paths that links lead to on this machine, and the file itself."""
    paths: Identities = frozenset(
        (
            os.path.join(os.path.realpath(path.parent), path.name),  # noqa: PTH118 - a text
            os.path.realpath(path),
        )
    )
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return paths
    return paths | {(facts.st_dev, facts.st_ino)}


def refuse_clashes(config: Config, file: Path) -> None:
    """ConfigError if a file to write is, on this machine, another one that sharectl uses."""
    problems = [f"{place(at)}: {message}" for at, message in clashes(config, file, on_disk)]
    if problems:
        raise ConfigError(problems)


def refuse_output(path: Path, config: Config, file: Path, own: Sequence[NamedFile] = ()) -> None:
    """StateError if an option names a place that sharectl reads, keeps or writes in cycles."""
    other = _clash(NamedFile("", path), [*own, *kept(config, file), *written(config)], on_disk)
    if other is None:
        return
    if other.is_folder:
        why = f"it is in {other.path}, where sharectl keeps its own files"
    else:
        why = f"sharectl reads it ({other.name})" if other.is_read else f"cycles write {other.path}"
    raise StateError(f"{path}: not written: {why}; name a file elsewhere")


def _clash(file: NamedFile, others: Iterable[NamedFile], identify: Identify) -> Optional[NamedFile]:
    """First of ``others`` that writing ``file`` would change; None without one."""
    mine = _with_rotated(file, identify)
    return next((other for other in others if _meet(mine, other, identify)), None)


def _with_rotated(file: NamedFile, identify: Identify) -> Identities:
    older = (f"{file.path}.{number}" for number in range(1, file.rotated + 1))
    return identify(file.path).union(os.path.normpath(path) for path in older)


def _meet(mine: Identities, other: NamedFile, identify: Identify) -> bool:
    theirs = _with_rotated(other, identify)
    folders = tuple(f"{path}/" for path in theirs if isinstance(path, str))
    inside = any(isinstance(path, str) and path.startswith(folders) for path in mine)
    return bool(mine & theirs) or (other.is_folder and inside)
