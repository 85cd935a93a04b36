"""A configuration of HTCondor, expanded by HTCondor's own parser."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Optional

from sharectl.adapters.condor_files import Definition, circle, definitions_in, in_force
from sharectl.adapters.condor_process import CondorProcess, UnreadableConfigurationError
from sharectl.errors import InputError

INSTALLED = ("/etc/condor/condor_config", "/usr/local/etc/condor_config")
"""Where HTCondor's daemons look for their first file when CONDOR_CONFIG does not name it."""

FOLDERS, EXCLUDED, FILES = "LOCAL_CONFIG_DIR", "LOCAL_CONFIG_DIR_EXCLUDE_REGEXP", "LOCAL_CONFIG_FILE"
_PROBE = "SHARECTL_CHECK_PROBE_"


@dataclass(frozen=True)
class Source:
    """What HTCondor is to read."""

    directory: Optional[Path] = None
    """Folder of snippets, read last; None for none."""
    main_file: Optional[Path] = None
    """The configuration of this machine, read first; None for HTCondor's defaults."""

    def root_file(self, probes: Iterable[str] = ()) -> str:
        """Text of the file that makes HTCondor read it, with a macro for each of ``probes``.

        A macro of HTCondor's own that is a number or a boolean is evaluated when it is asked for; one that
        refers to it has its text.
        """
        lines = [f"{_PROBE}{name} = $({name})" for name in probes]
        if self.main_file is not None:
            lines.append(f"include : {self.main_file.resolve()}")
        else:
            lines += ["USER_CONFIG_FILE =", f"{FOLDERS} ="]
        if self.directory is not None:
            lines.append(f"{FOLDERS} = $({FOLDERS}), {self.directory.resolve()}")
        return "\n".join(lines) + "\n"

    @property
    def environment(self) -> dict[str, str]:
        """Environment of this process; without what it says of HTCondor, unless this machine is meant."""
        return {
            name: value
            for name, value in os.environ.items()
            if self.main_file is not None or not name.lower().startswith(("_condor_", "condor_config"))
        }


@dataclass(frozen=True)
class Configuration:
    """What HTCondor made of a `Source`."""

    source: Source
    folders: tuple[Path, ...]
    """Folders of configuration files, in the order of reading."""
    excluded: re.Pattern[str]
    """File names that HTCondor leaves out of them."""
    definitions: tuple[Definition, ...]
    values: Mapping[str, str]
    """Macro, lower case → its expanded text; without those that are not set, or empty."""
    judged: frozenset[Path]
    """Files whose faults are to be found: those of the folder given, or else all."""

    def text(self, macro: str) -> str:
        """Expanded text of a macro, empty if it is not set."""
        return self.values.get(macro.lower(), "")

    def words(self, macro: str) -> tuple[str, ...]:
        """Items of a macro that is a list."""
        return tuple(word for word in re.split(r"[\s,]+", self.text(macro)) if word)

    def assignments(self, macro: str) -> tuple[Definition, ...]:
        """Every assignment of a macro, in the order of reading."""
        return self._by_name.get(macro.lower(), ())

    def place(self, macro: str) -> str:
        """``file:line`` where a macro got its value; the name itself if no file set it."""
        found = self.assignments(macro)
        return found[-1].place if found else macro

    def is_judged(self, definition: Definition) -> bool:
        """Whether faults of that assignment are to be found."""
        return definition.file in self.judged

    def made_of(self, macro: str) -> tuple[Definition, ...]:
        """Assignments that went into a macro, its own first; of one that appends, those before it too."""
        found: dict[Definition, None] = {}
        waiting = [macro.lower()]
        seen = set(waiting)
        while waiting:
            for definition in in_force(self.assignments(waiting.pop(0))):
                found[definition] = None
                referred = self._named(definition.references) - seen
                waiting += sorted(referred)
                seen |= referred
        return tuple(found)

    def _named(self, references: frozenset[str]) -> set[str]:
        """Macros that references with a ``*`` at their end may mean, and the others as they are."""
        return {
            name
            for reference in references
            for name in (
                [known for known in self._by_name if known.startswith(reference[:-1])]
                if reference.endswith("*")
                else [reference]
            )
        }

    @cached_property
    def _by_name(self) -> dict[str, tuple[Definition, ...]]:
        found: dict[str, list[Definition]] = {}
        for definition in self.definitions:
            found.setdefault(definition.name.lower(), []).append(definition)
        return {name: tuple(assignments) for name, assignments in found.items()}


def source_of(directory: Optional[Path], *, with_local: bool) -> Source:
    """The configuration to read.

    Parameters
    ----------
    directory
        Folder of snippets, on top of HTCondor's defaults; None for the configuration of this machine.
    with_local
        Put the folder on top of the configuration of this machine instead.

    Raises
    ------
    InputError
        If it is no folder, or this machine has no configuration.
    """
    if directory is not None and directory.is_file():
        raise InputError([f"{directory}: this is a file; name its folder, {directory.parent}"])
    if directory is not None and not directory.is_dir():
        raise InputError([f"{directory}: no such folder; name one with HTCondor configuration files"])
    if directory is not None and not with_local:
        return Source(directory)
    candidates = [os.environ["CONDOR_CONFIG"]] if os.environ.get("CONDOR_CONFIG") else INSTALLED
    main_file = next((Path(name) for name in candidates if Path(name).is_file()), None)
    if main_file is None:
        raise InputError(
            [
                f"{' and '.join(candidates)}: no configuration of HTCondor here; name a folder of snippets to check"
            ]
        )
    return Source(directory, main_file)


def reader(source: Source) -> CondorProcess:
    """A process that can read ``source``, any number of times."""
    return CondorProcess(Source().root_file(), source.environment)


def read(
    source: Source,
    macros: Sequence[str],
    process: CondorProcess,
    overrides: Optional[Mapping[str, str]] = None,
) -> Configuration:
    """What HTCondor makes of ``source``; ``macros`` are expanded besides those that the files set.

    Parameters
    ----------
    process
        The `reader` of that source.
    overrides
        Macro → text that it is to have instead.

    Raises
    ------
    UnreadableConfigurationError
        If HTCondor refuses it.
    """
    _refuse_fifos(source.directory)
    found = expand(source, (FOLDERS, EXCLUDED, FILES), process)
    folders = tuple(dict.fromkeys(Path(word) for word in re.split(r"[\s,]+", found.get(FOLDERS, "")) if word))
    excluded = re.compile(found.get(EXCLUDED) or r"(?!)")
    files = [] if source.main_file is None else [source.main_file]
    files += [file for folder in folders for file in files_read(folder, excluded)]
    files += [path for word in found.get(FILES, "").split(",") if (path := Path(word.strip())).is_file()]
    definitions = definitions_in(dict.fromkeys(files))
    going_round = circle(definitions)
    if going_round:
        raise UnreadableConfigurationError(
            f"{' → '.join(definition.name for definition in going_round)}: macros that refer to each other in a "
            "circle; HTCondor hangs when it needs one",
            going_round[0].place,
        )
    names = dict.fromkeys((*macros, *(definition.name for definition in definitions if definition.name)))
    values = expand(source, tuple(names), process, overrides)
    return Configuration(
        source=source,
        folders=folders,
        excluded=excluded,
        definitions=definitions,
        values={name.lower(): value for name, value in values.items()},
        judged=frozenset(
            definition.file
            for definition in definitions
            if source.directory is None or source.directory.resolve() in definition.file.resolve().parents
        ),
    )


def _refuse_fifos(folder: Optional[Path]) -> None:
    """UnreadableConfigurationError for a FIFO that HTCondor would open, and wait for whoever writes into it."""
    found = sorted(path for path in folder.iterdir() if path.is_fifo()) if folder is not None else []
    for path in found:
        if not path.name.startswith("."):
            raise UnreadableConfigurationError(
                f"{path.name} is a FIFO, for whose writer daemons wait", str(path)
            )


def files_read(folder: Path, excluded: re.Pattern[str]) -> list[Path]:
    """Files of a folder that HTCondor reads, in its order."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_file() and not excluded.search(path.name))


def expand(
    source: Source,
    macros: Sequence[str],
    process: CondorProcess,
    overrides: Optional[Mapping[str, str]] = None,
) -> dict[str, str]:
    """Macro → expanded text; without those that are not set, or empty.

    Parameters
    ----------
    process
        The `reader` of that source.
    overrides
        Macro → text that it is to have instead.

    Raises
    ------
    UnreadableConfigurationError
        If HTCondor refuses the configuration.
    """
    environment = {f"_CONDOR_{name}": value for name, value in (overrides or {}).items()}
    values = process.values([_PROBE + name for name in macros], source.root_file(macros), environment)
    return {name[len(_PROBE) :]: text for name, text in values.items()}


def evaluator() -> CondorProcess:
    """HTCondor with its defaults, whatever this machine's configuration is: to read and evaluate expressions."""
    source = Source()
    return CondorProcess(source.root_file(), source.environment)
