"""Configurations to be checked: a folder, a file, this machine's, or what ``condor_config_val -dump`` printed of a node.

A dump comes from another machine and is not trusted: only its plain assignments reach HTCondor's parser, never a
statement that reads another file or runs a command.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from sharectl.adapters.condor_config import Configuration, Source, expand, read, reader, source_of
from sharectl.adapters.condor_files import MAX_BYTES, Definition, circle, definitions_in
from sharectl.adapters.condor_process import CondorProcess, UnreadableConfigurationError
from sharectl.adapters.condor_refusals import Given, given_file, retold
from sharectl.adapters.consumption_check_texts import refuse_others
from sharectl.adapters.files import read_regular
from sharectl.errors import InputError

STDIN = Path("-")
THIS_MACHINE = "this machine"

_HEADER = re.compile(r"\s*# Configuration from \w+", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][\w.]*)\s*(?:@=(?P<tag>\w+)|=(?P<text>.*))")
_WRITTEN_AT = re.compile(r"\s*# at: (?P<file>.+?)(?:, line (?P<line>\d+).*)?\s*")
_STATEMENTS = frozenset({"use", "include", "if", "elif", "else", "endif", "error", "warning"})
_COMMAND = re.compile(r"\s*@?include\b(?:[^:=]*\bcommand\b|.*\|)", re.IGNORECASE)
_ISOLATED = ("LOCAL_CONFIG_DIR", "LOCAL_CONFIG_FILE", "USER_CONFIG_FILE")
"""What makes HTCondor read further files: those of this machine are not the node's."""
_TYPED = re.compile(r"SLOT_TYPE_\d", re.IGNORECASE)
_NOBODYS_FILE = "<"
"""A place that begins so is no file: ``<Default>``, ``<Detected>``, ``<Environment>``."""


@dataclass(frozen=True)
class Input:
    """One configuration, and how much of a node's it is."""

    name: str
    configuration: Configuration
    is_whole: bool
    """Whether it is all that a node reads, and not only a part of it."""


@dataclass(frozen=True)
class Printed:
    """What a dump says."""

    definitions: tuple[Definition, ...]
    assignments: str
    """Text for HTCondor's parser."""


def inputs(
    paths: Sequence[Path], macros: Sequence[str], *, with_local: bool = False
) -> list[tuple[Input, Optional[UnreadableConfigurationError]]]:
    """Each configuration, read; with the error if HTCondor refuses it.

    Parameters
    ----------
    paths
        Folders and files; ``-`` for standard input, none for the configuration of this machine.
    macros
        What is wanted expanded, whether or not a file sets it.
    with_local
        Put each folder on top of the configuration of this machine.

    Raises
    ------
    InputError
        If a path is neither folder nor file, or may not be read, or is no folder where one is to be put on top.
    """
    problems = [
        f"{path}: no such file or folder; name HTCondor configuration, a dump, or -"
        for path in paths
        if path != STDIN and not path.exists()
    ]
    if with_local:
        problems += [_no_folder(path) for path in paths if path == STDIN or path.is_file()]
    if problems:
        raise InputError(problems)
    if not paths:
        return [_read_source(THIS_MACHINE, None, macros, with_local=False)]
    with _Parser() as parser:
        return [
            _read_source(str(path), path, macros, with_local=with_local)
            if path != STDIN and path.is_dir()
            else _read_text(path, macros, parser)
            for path in paths
        ]


def _no_folder(path: Path) -> str:
    """What is wrong with ``--with-local`` beside something else than a folder."""
    remedy = "write it into a folder of its own" if path == STDIN else f"name its folder, {path.parent}"
    return (
        f"{path}: --with-local puts folders on top of this machine's configuration, and this is none; {remedy}, "
        "or leave --with-local out"
    )


class _Parser:
    """HTCondor's parser, in one process for all files until one of them ends it."""

    def __init__(self) -> None:
        self._process: Optional[CondorProcess] = None

    def __enter__(self) -> _Parser:  # noqa: PYI034 - Self came with Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def expand(self, source: Source, names: Sequence[str]) -> dict[str, str]:
        """Macro → expanded text; UnreadableConfigurationError if HTCondor refuses the source."""
        if self._process is None:
            self._process = CondorProcess(Source().root_file(), Source().environment)
        try:
            return expand(source, names, self._process)
        except UnreadableConfigurationError:
            self._end()
            raise

    def _end(self) -> None:
        if self._process is not None:
            self._process.__exit__(None, None, None)
        self._process = None


def _read_source(
    name: str, folder: Optional[Path], macros: Sequence[str], *, with_local: bool
) -> tuple[Input, Optional[UnreadableConfigurationError]]:
    source = source_of(folder, with_local=with_local)
    with reader(source) as process:
        try:
            configuration = read(source, macros, process)
        except UnreadableConfigurationError as error:
            files = sorted(folder.resolve().iterdir()) if folder is not None else []
            given = {str(file): given_file(file) for file in files if file.is_file()}
            return Input(name, _nothing(source), is_whole=False), retold(error, given)
    return Input(name, configuration, is_whole=source.main_file is not None), None


def _read_text(
    path: Path, macros: Sequence[str], parser: _Parser
) -> tuple[Input, Optional[UnreadableConfigurationError]]:
    content = _content(path)
    refuse_others(content, path)
    is_dump = any(_HEADER.match(line) for line in content.splitlines()[:5])
    with tempfile.TemporaryDirectory(prefix="sharectl-") as folder:
        copy = Path(folder) / "configuration"
        if is_dump:
            said = printed(content, path)
            definitions, text = said.definitions, said.assignments
        elif path == STDIN:
            copy.write_text(content, encoding="utf-8")
            definitions = tuple(replace(found, file=path) for found in definitions_in([copy]))
            text = f"include : {copy}\n"
        else:
            definitions, text = definitions_in([path]), f"include : {path.resolve()}\n"
        if not is_dump:
            _refuse_commands(path, definitions)
        root = Path(folder) / "root"
        isolated = "".join(f"{name} =\n" for name in _ISOLATED)
        root.write_text(isolated + text + isolated, encoding="utf-8")
        expanded, refused = _expanded(
            path, Source(main_file=root), definitions, macros, parser, is_dump=is_dump
        )
        known = (
            {}
            if is_dump
            else {str(copy if path == STDIN else path.resolve()): Given(str(path), content.splitlines())}
        )
        return expanded, refused and retold(refused, known, folder)


def _expanded(
    path: Path,
    source: Source,
    definitions: tuple[Definition, ...],
    macros: Sequence[str],
    parser: _Parser,
    *,
    is_dump: bool,
) -> tuple[Input, Optional[UnreadableConfigurationError]]:
    names = tuple(dict.fromkeys((*macros, *(found.name for found in definitions if found.name))))
    going_round = circle(definitions)
    if going_round:
        error = UnreadableConfigurationError(
            f"{' → '.join(found.name for found in going_round)}: macros that refer to each other in a circle",
            going_round[0].place,
        )
        return Input(str(path), _nothing(source), is_whole=False), error
    try:
        defaults = parser.expand(Source(), names) if is_dump else {}
        values = parser.expand(source, names)
    except UnreadableConfigurationError as refused:
        return Input(str(path), _nothing(source), is_whole=False), refused
    if is_dump:
        # A dump has all that HTCondor has a default for; what is empty means something only for a slot type.
        definitions = tuple(
            found
            for found in definitions
            if values.get(found.name, "") != defaults.get(found.name, "")
            or found.file != path
            or _TYPED.match(found.name)
        )
    configuration = _configuration(source, definitions, values)
    return Input(str(path), configuration, is_whole=is_dump), None


def _configuration(
    source: Source, definitions: Iterable[Definition], values: Mapping[str, str]
) -> Configuration:
    definitions = tuple(definitions)
    return Configuration(
        source=source,
        folders=(),
        excluded=re.compile(r"(?!)"),
        definitions=definitions,
        values={name.lower(): text for name, text in values.items()},
        judged=frozenset(found.file for found in definitions),
    )


def _nothing(source: Source) -> Configuration:
    return _configuration(source, (), {})


def _content(path: Path) -> str:
    if path == STDIN:
        return sys.stdin.buffer.read(MAX_BYTES).decode("utf-8", "replace")
    content, _ = read_regular(path, MAX_BYTES)
    if content is None:
        raise InputError([f"{path}: is no regular file; name a file, a folder, or - for standard input"])
    return content.decode("utf-8", "replace")


def _refuse_commands(path: Path, definitions: Iterable[Definition]) -> None:
    """InputError for a file that runs a command when it is read: it may be anybody's."""
    content = _content(path).splitlines() if path != STDIN else []
    places = [f"{path}:{number}" for number, line in enumerate(content, 1) if _COMMAND.match(line)]
    places += [found.place for found in definitions if not found.name and _COMMAND.match(found.text)]
    if places:
        raise InputError(
            [
                f"{place}: runs a command to get configuration; check the folder it is in, or what "
                "condor_config_val -dump prints"
                for place in dict.fromkeys(places)
            ]
        )


def printed(content: str, path: Path) -> Printed:
    """Assignments of a dump, at the places that it names, or else at its own lines."""
    definitions: list[Definition] = []
    kept: list[str] = []
    lines = enumerate(content.splitlines(), 1)
    for number, line in lines:
        at = _WRITTEN_AT.fullmatch(line)
        if at is not None and definitions:
            definitions[-1] = _moved(definitions[-1], at["file"], at["line"])
            continue
        match = _ASSIGNMENT.fullmatch(line.rstrip())
        if match is None or match["name"].lower() in _STATEMENTS:
            continue
        text = (match["text"] or "").strip()
        if match["tag"]:
            text = " ".join(_until(lines, "@" + match["tag"]))
        # A backslash at the end would join it with the next line.
        text = " ".join(text.split()).rstrip("\\")
        definitions.append(Definition(match["name"], text, path, number))
        if match["name"].upper() not in _ISOLATED:
            kept.append(f"{match['name']} = {text}\n")
    written = tuple(found for found in definitions if not str(found.file).startswith(_NOBODYS_FILE))
    return Printed(written, "".join(kept))


def _moved(definition: Definition, file: str, line: Optional[str]) -> Definition:
    return replace(definition, file=Path(file), line=int(line or 0))


def _until(lines: Iterator[tuple[int, str]], end: str) -> Iterator[str]:
    for _, line in lines:
        if line.strip().lower() == end.lower():
            return
        yield line.strip()
