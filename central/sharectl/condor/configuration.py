"""A configuration of HTCondor, expanded by HTCondor's own parser.

What HTCondor takes for a boolean in its configuration (string_is_boolean_param in
src/condor_utils/condor_config.cpp).

``True``, ``1``, ``False`` and ``0`` in any letters; any other text is evaluated as an expression,
whose value is to be a boolean or a number. Words such as ``Yes``, ``t`` or ``on`` are names of
attributes that are not there, so no booleans.

Where HTCondor's configuration files say what: only to name the place of a finding, never to know a
value.

What a macro is worth, HTCondor's own parser says (`condor_config`).

What HTCondor's parser says of a configuration that it refuses, told of the operator's own files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Optional

from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.errors import InputError
from sharectl.files.files import read_regular
from sharectl.words import quoted

_LITERALS = {"true": True, "1": True, "false": False, "0": False}
_BLANKS = " \t\n\v\f\r"


def literal(text: str) -> Optional[bool]:
    """The boolean that a text is as it stands; None for one that HTCondor would evaluate."""
    return _LITERALS.get(text.strip(_BLANKS).lower())


def booleans(texts: Iterable[str], htcondor: CondorProcess) -> dict[str, Optional[bool]]:
    """Text → the boolean that HTCondor takes it for; None for what is none."""
    found = {text: literal(text) for text in texts}
    asked = sorted(text for text, value in found.items() if value is None and text.strip(_BLANKS))
    rows = htcondor.evaluate(asked, [{}], [{}]) if asked else []
    return {
        **found,
        **{text: _of_value(row[0][0]) for text, row in zip(asked, rows) if row is not None},
    }


def boolean_here(text: str) -> Optional[bool]:
    """The boolean that a text is, evaluated in this process, which may hang on a hostile one; None for what is none."""
    from sharectl.condor.child import UNREADABLE, expression, outcome

    known = literal(text)
    if known is not None:
        return known
    try:
        return _of_value(outcome(expression(text).eval()))
    except UNREADABLE:
        return None


def _of_value(value: object) -> Optional[bool]:
    return bool(value) if isinstance(value, (bool, int, float)) else None


_ASSIGNMENT = re.compile(
    r"\s*(?P<name>[\w.]+)\s*(?:@=(?P<tag>\w+)\s*|(?P<sign>[=:])(?P<text>.*))", re.DOTALL
)
_INCLUDE = re.compile(
    r"\s*@?include\s*(?:ifexist\s*)?:\s*(?P<path>[^|\s](?:[^|]*[^|\s])?)\s*", re.IGNORECASE
)
_STATEMENT = re.compile(
    r"\s*@?(use|include|if|elif|else|endif|error|warning)\b(?!\s*=)", re.IGNORECASE
)
_REFERENCE = re.compile(r"\$\w*\(\s*(?P<name>[\w.]+)(?=(?P<open>\$?))")
MAX_INCLUDES = 64
MAX_BYTES = 2**24
"""Part of a file that is looked at."""


@dataclass(frozen=True)
class Definition:
    """One assignment of a macro, or another statement that may refer to some."""

    name: str
    """Empty for a statement that assigns nothing: use, if, error, warning."""
    text: str
    """What was assigned, or the statement, as written, not expanded."""
    file: Path
    line: int
    """Where it begins, from 1."""

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"

    @property
    def references(self) -> frozenset[str]:
        """Macros that it is made of, lower case; ``a_*`` for a name such as ``a_$(B)``."""
        return frozenset(
            match["name"].lower() + ("*" if match["open"] else "")
            for match in _REFERENCE.finditer(self.text)
        )

    @property
    def appends(self) -> bool:
        """Whether it keeps what the macro was before."""
        return self.name.lower() in self.references


def definitions_in(files: Iterable[Path]) -> tuple[Definition, ...]:
    """Every assignment in ``files`` and in what they include, in the order of reading, both branches of each if."""
    return tuple(
        definition
        for file in files
        for definition in _definitions(file, frozenset({file.resolve()}))
    )


def in_force(assignments: Sequence[Definition]) -> tuple[Definition, ...]:
    """Those of one macro that its value is made of, the last first: back to the last that does not append."""
    found: list[Definition] = []
    for definition in reversed(assignments):
        found.append(definition)
        if not definition.appends:
            break
    return tuple(found)


def circle(definitions: Iterable[Definition]) -> tuple[Definition, ...]:
    """Assignments that refer to each other in a circle, the first again at the end; empty if there are none."""
    by_name: dict[str, list[Definition]] = {}
    for definition in definitions:
        by_name.setdefault(definition.name.lower(), []).append(definition)
    made_of = {name: in_force(assignments) for name, assignments in by_name.items() if name}
    done: set[str] = set()
    return next((found for name in made_of if (found := _circle_from(name, made_of, done))), ())


def _circle_from(
    first: str, made_of: Mapping[str, Sequence[Definition]], done: set[str]
) -> tuple[Definition, ...]:
    """Return the first circle on a way from that macro; adds to ``done`` the macros from which there is none."""
    if first in done:
        return ()

    def steps(name: str) -> Iterator[tuple[Definition, str]]:
        return (
            (step, reference)
            for step in made_of.get(name, ())
            for reference in sorted(step.references - {name})
        )

    trail, ahead = [first], [steps(first)]  # no recursion: the way may be long
    path: list[Definition] = []
    while ahead:
        step = next(ahead[-1], None)
        if step is None:
            ahead.pop()
            done.add(trail.pop())
            del path[-1:]
            continue
        definition, name = step
        if name in trail:
            found = [*path, definition][trail.index(name) :]
            return (*found, found[0])
        if name not in done:
            trail.append(name)
            path.append(definition)
            ahead.append(steps(name))
    return ()


def _definitions(file: Path, seen: frozenset[Path]) -> Iterator[Definition]:
    lines = iter(_logical_lines(file))
    for number, line in lines:
        include = _INCLUDE.fullmatch(line)
        if include is not None:
            included = _file_at(file.parent / include["path"])
            if included is not None and included not in seen and len(seen) < MAX_INCLUDES:
                yield from _definitions(included, seen | {included})
            continue
        match = None if _STATEMENT.match(line) else _ASSIGNMENT.fullmatch(line)
        if match is None:
            yield Definition("", line.strip(), file, number)
            continue
        text = match["text"] or ""
        if match["tag"]:
            text = "\n".join(_until(lines, "@" + match["tag"]))
        yield Definition(match["name"], text.strip(), file, number)


def _file_at(path: Path) -> Optional[Path]:
    """Return the path without links; None if there is no file, or there can be none of that name."""
    try:
        resolved = path.resolve()
        return resolved if resolved.is_file() else None
    except (
        OSError,
        ValueError,
        RuntimeError,
    ):  # too long, a character that no name has, links in a circle
        return None


def _until(lines: Iterator[tuple[int, str]], end: str) -> Iterator[str]:
    for _, line in lines:
        if line.strip().lower() == end.lower():
            return
        yield line


def _logical_lines(file: Path) -> list[tuple[int, str]]:
    """Number of the first line, and text, of each line with its continuations; without comments."""
    found: list[tuple[int, str]] = []
    continues = False
    content, _ = read_regular(file, MAX_BYTES)
    for number, raw in enumerate((content or b"").decode("utf-8", "replace").splitlines(), 1):
        line = raw.rstrip()
        if line.lstrip().startswith("#"):
            continue
        text = line.removesuffix("\\")
        if continues:
            found[-1] = (found[-1][0], found[-1][1] + text)
        elif text.strip() or text != line:
            found.append((number, text))
        continues = text != line
    return [(number, text) for number, text in found if text.strip()]


INSTALLED = ("/etc/condor/condor_config", "/usr/local/etc/condor_config")
"""Where HTCondor's daemons look for their first file when CONDOR_CONFIG does not name it."""

FOLDERS, EXCLUDED, FILES = (
    "LOCAL_CONFIG_DIR",
    "LOCAL_CONFIG_DIR_EXCLUDE_REGEXP",
    "LOCAL_CONFIG_FILE",
)
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

        A macro of HTCondor's own that is a number or a boolean is evaluated when it is asked for;
        one that refers to it has its text.
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
            if self.main_file is not None
            or not name.lower().startswith(("_condor_", "condor_config"))
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
        Folder of snippets, on top of HTCondor's defaults; None for the configuration of this
        machine.
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
        raise InputError(
            [f"{directory}: no such folder; name one with HTCondor configuration files"]
        )
    if directory is not None and not with_local:
        return Source(directory)
    candidates = [os.environ["CONDOR_CONFIG"]] if os.environ.get("CONDOR_CONFIG") else INSTALLED
    main_file = next((Path(name) for name in candidates if Path(name).is_file()), None)
    if main_file is None:
        raise InputError(
            [
                (
                    f"{' and '.join(candidates)}: no configuration of HTCondor here; name a folder "
                    "of snippets to check"
                )
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
    folders = tuple(
        dict.fromkeys(Path(word) for word in re.split(r"[\s,]+", found.get(FOLDERS, "")) if word)
    )
    excluded = re.compile(found.get(EXCLUDED) or r"(?!)")
    files = [] if source.main_file is None else [source.main_file]
    files += [file for folder in folders for file in files_read(folder, excluded)]
    files += [
        path for word in found.get(FILES, "").split(",") if (path := Path(word.strip())).is_file()
    ]
    definitions = definitions_in(dict.fromkeys(files))
    going_round = circle(definitions)
    if going_round:
        raise UnreadableConfigurationError(
            f"{' → '.join(definition.name for definition in going_round)}: macros that refer to "
            "each other in a "
            "circle; HTCondor hangs when it needs one",
            going_round[0].place,
        )
    names = dict.fromkeys(
        (*macros, *(definition.name for definition in definitions if definition.name))
    )
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
            if source.directory is None
            or source.directory.resolve() in definition.file.resolve().parents
        ),
    )


def _refuse_fifos(folder: Optional[Path]) -> None:
    """UnreadableConfigurationError for a FIFO that HTCondor would open, and wait for whoever writes into it."""
    found = (
        sorted(path for path in folder.iterdir() if path.is_fifo()) if folder is not None else []
    )
    for path in found:
        if not path.name.startswith("."):
            raise UnreadableConfigurationError(
                f"{path.name} is a FIFO, for whose writer daemons wait", str(path)
            )


def files_read(folder: Path, excluded: re.Pattern[str]) -> list[Path]:
    """Files of a folder that HTCondor reads, in its order."""
    if not folder.is_dir():
        return []
    return sorted(
        path for path in folder.iterdir() if path.is_file() and not excluded.search(path.name)
    )


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
    values = process.values(
        [_PROBE + name for name in macros], source.root_file(macros), environment
    )
    return {name[len(_PROBE) :]: text for name, text in values.items()}


def evaluator() -> CondorProcess:
    """HTCondor with its defaults, whatever this machine's configuration is: to read and evaluate expressions."""
    source = Source()
    return CondorProcess(source.root_file(), source.environment)


_NEXT = re.compile(r"; (?=Config source |Configuration Error |Error: )")
_AT = re.compile(
    r'(?:Config source (?P<kind>Error|Warning) "(?P<file>[^"]*)", Line (?P<line>\d+)(?:, '
    r"Include Depth \d+)?: ?"
    r"|Configuration Error Line (?P<last_line>\d+) while reading config source "
    r"(?P<last_file>[^;]+);? ?)(?P<reason>.*)",
    re.DOTALL,
)
_PREFIX = re.compile(r"(?:Error: |Config source )")


@dataclass(frozen=True)
class Given:
    """A file that an operator has given."""

    name: str
    """As the operator calls it."""
    lines: Sequence[str]


def given_file(path: Path) -> Given:
    """A file under its own name; without lines if it cannot be read."""
    try:
        content, _ = read_regular(path, MAX_BYTES)
    except OSError:
        content = None
    return Given(str(path), (content or b"").decode("utf-8", "replace").splitlines())


def retold(
    error: UnreadableConfigurationError, given: Mapping[str, Given], hidden: str = ""
) -> UnreadableConfigurationError:
    """The same refusal with its reasons alone, at the innermost line that they are about.

    Parameters
    ----------
    given
        File, as HTCondor calls it → the operator's; the line of one of them is shown where HTCondor
        gives no reason.
    hidden
        Folder of files that are not the operator's; empty for none.
    """
    pieces = [piece for piece in _pieces(str(error)) if not piece.is_warning]
    if not any(piece.file for piece in pieces):
        return error
    reasons = "; ".join(dict.fromkeys(piece.reason for piece in pieces if piece.reason))
    where = next((piece for piece in pieces if piece.line and not piece.is_in(hidden, given)), None)
    if where is None:
        return UnreadableConfigurationError(reasons or "it gives no reason")
    own = given.get(where.file)
    text = own.lines[where.line - 1].strip() if own and where.line <= len(own.lines) else ""
    unread = f"it cannot read {quoted(text)}" if text else "it cannot read that line"
    return UnreadableConfigurationError(
        reasons or unread, f"{own.name if own else where.file}:{where.line}"
    )


@dataclass(frozen=True)
class _Piece:
    """A line of what it says."""

    reason: str
    file: str = ""
    line: int = 0
    is_warning: bool = False

    def is_in(self, hidden: str, given: Mapping[str, Given]) -> bool:
        """Whether it is about a file that is not the operator's."""
        return bool(hidden) and self.file.startswith(f"{hidden}/") and self.file not in given


def _pieces(text: str) -> Iterator[_Piece]:
    for part in _NEXT.split(text):
        match = _AT.fullmatch(part)
        if match is None:
            yield _Piece(_PREFIX.sub("", part, count=1))
            continue
        yield _Piece(
            match["reason"].strip(),
            match["file"] or match["last_file"] or "",
            int(match["line"] or match["last_line"]),
            match["kind"] == "Warning",
        )
