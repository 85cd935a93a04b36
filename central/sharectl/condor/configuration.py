"""Configuration of HTCondor: values from its own parser, places from the text of the files."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePath
from typing import NamedTuple, Optional

from sharectl.condor.library import DEFAULTS, CondorProcess, UnreadableConfigurationError
from sharectl.errors import InputError
from sharectl.files.files import read_regular

_INSTALLED = ("/etc/condor/condor_config", "/usr/local/etc/condor_config")
"""First file of HTCondor's daemons when CONDOR_CONFIG does not name it."""
FOLDERS, FILES = "LOCAL_CONFIG_DIR", "LOCAL_CONFIG_FILE"
EXCLUDED = "LOCAL_CONFIG_DIR_EXCLUDE_REGEXP"
_MAX_INCLUDES = 64
MAX_BYTES = 2**24
"""Part of a file that is read."""

_ISOLATED = f"\n{FOLDERS} =\n{FILES} =\nUSER_CONFIG_FILE =\n"
"""Text after which HTCondor reads no further file."""
_PROBE = "SHARECTL_CHECK_PROBE_"
_LITERALS = {"true": True, "1": True, "false": False, "0": False}
_STARTDS = "STARTD."
_BLANKS = " \t\n\v\f\r"
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
_COMMAND = re.compile(r"@?include\b(?:[^:=]*\bcommand\b|.*\|)", re.IGNORECASE)
_DUMP = re.compile(r"\s*# Configuration from \w+", re.IGNORECASE)
_DUMPED_AT = re.compile(r"\s*# at: (?P<file>.+?)(?:, line (?P<line>\d+).*)?\s*")


def words_of(listed: str) -> list[str]:
    """Items of a knob that is a list."""
    return re.findall(r"[^\s,]+", listed)


# ---- Booleans


def literal(text: str) -> Optional[bool]:
    """Boolean of ``True``, ``False``, ``1`` or ``0``; None for any other text."""
    return _LITERALS.get(text.strip(_BLANKS).lower())


def booleans(texts: Iterable[str], htcondor: CondorProcess) -> dict[str, Optional[bool]]:
    """Text → the boolean that HTCondor takes it for (string_is_boolean_param); None if invalid."""
    values = {text: literal(text) for text in texts}
    rest = [text for text, value in values.items() if value is None and text.strip(_BLANKS)]
    for text, rows in zip(rest, htcondor.evaluate(rest) if rest else []):
        if rows and isinstance(rows[0][0], (bool, int, float)):
            values[text] = bool(rows[0][0])
    return values


# ---- Text of files


@dataclass(frozen=True)
class Definition:
    """Assignment of a macro, or another statement that may refer to some."""

    name: str
    """Empty for a statement that assigns nothing: use, if, error, warning."""
    text: str
    """As written, not expanded."""
    file: Path
    line: int
    """First line, from 1."""

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"

    @cached_property
    def references(self) -> frozenset[str]:
        """Macros in its text, lower case; ``a_*`` for a name such as ``a_$(B)``."""
        return frozenset(
            match["name"].lower() + ("*" if match["open"] else "")
            for match in _REFERENCE.finditer(self.text)
        )

    @property
    def appends(self) -> bool:
        """True if it keeps the earlier value of the macro."""
        return self.name.lower() in self.references


def definitions_in(files: Iterable[Path]) -> tuple[Definition, ...]:
    """Assignments in files and their includes, in the order of reading; both branches of an if."""
    return tuple(definition for file in files for definition in _of_file(file, frozenset()))


def _of_file(file: Path, seen: frozenset[Path]) -> Iterator[Definition]:
    content = read_regular(file, MAX_BYTES)[0] or b""
    yield from _of_text(content.decode("utf-8", "replace"), file, seen | {file.resolve()})


def _of_text(content: str, file: Path, seen: frozenset[Path]) -> Iterator[Definition]:
    lines = _logical_lines(content)
    for number, line in lines:
        include = _INCLUDE.fullmatch(line)
        match = None if _STATEMENT.match(line) else _ASSIGNMENT.fullmatch(line)
        if include is not None:
            included = _file_at(file.parent / include["path"])
            if included is not None and included not in seen and len(seen) < _MAX_INCLUDES:
                yield from _of_file(included, seen)
        elif match is None:
            yield Definition("", line.strip(), file, number)
        else:
            text = _until(lines, match["tag"]) if match["tag"] else match["text"]
            yield Definition(match["name"], text.strip(), file, number)


def _file_at(path: Path) -> Optional[Path]:
    try:
        resolved = path.resolve()
        return resolved if resolved.is_file() else None
    except (OSError, ValueError, RuntimeError):  # too long, NUL, links in a circle
        return None


def _until(lines: Iterator[tuple[int, str]], tag: str) -> str:
    """Lines up to the one that is ``@tag``."""
    text = []
    for _, line in lines:
        if line.strip().lower() == f"@{tag}".lower():
            break
        text.append(line)
    return "\n".join(text)


def _logical_lines(content: str) -> Iterator[tuple[int, str]]:
    """Number of the first line, and text, of each line with its continuations; no comments."""
    first, text = 0, ""
    for number, raw in enumerate(content.splitlines(), 1):
        line = raw.rstrip()
        if line.lstrip().startswith("#"):
            continue
        first, text = first or number, text + line.removesuffix("\\")
        if line.endswith("\\"):
            continue
        if text.strip():
            yield first, text
        first, text = 0, ""
    if text.strip():
        yield first, text


def without_daemon(name: str) -> str:
    """Name of a macro that is for startds alone (``STARTD.START``), without the daemon."""
    return name[len(_STARTDS) :] if name.upper().startswith(_STARTDS) else name


def in_force(assignments: Sequence[Definition]) -> tuple[Definition, ...]:
    """Assignments that make up a macro's value, the last first: back to one that appends not."""
    first = max((n for n, part in enumerate(assignments) if not part.appends), default=0)
    return tuple(assignments[first:][::-1])


def circle(definitions: Iterable[Definition]) -> tuple[Definition, ...]:
    """Assignments that refer to each other in a circle, the first again at the end; or none."""
    steps = {
        name: {name_of: part for part in in_force(parts) for name_of in part.references - {name}}
        for name, parts in _by_name(definitions).items()
        if name
    }
    try:
        TopologicalSorter(steps).prepare()
    except CycleError as error:
        names = error.args[1][::-1]
        path = [steps[name][following] for name, following in zip(names, names[1:])]
        return (*path, path[0])
    return ()


def _by_name(definitions: Iterable[Definition]) -> dict[str, list[Definition]]:
    by_name: dict[str, list[Definition]] = {}
    for definition in definitions:
        by_name.setdefault(definition.name.lower(), []).append(definition)
    return by_name


# ---- Values


@dataclass(frozen=True)
class ConfigSource:
    """Files that HTCondor is to read."""

    directory: Optional[Path] = None
    """Folder of snippets, read last."""
    main_file: Optional[Path] = None
    """Configuration of this machine, read first; None for HTCondor's defaults."""
    text: str = ""
    """Statements in the place of a folder."""
    folders: tuple[Path, ...] = ()
    """Folders of snippets in the place of those that the configuration names; empty for these."""

    def root_file(self, probes: Iterable[str] = ()) -> str:
        """Text of the file that makes HTCondor read it, with a macro for each of ``probes``."""
        # HTCondor evaluates its macros that are numbers; one that refers to them has their text.
        lines = [f"{_PROBE}{name} = $({name})" for name in probes]
        main = self.main_file
        lines.append(DEFAULTS if main is None else f"include : {main.resolve()}")
        if self.folders:
            lines.append(f"{FOLDERS} = {', '.join(map(str, self.folders))}")
        if self.directory is not None:
            lines.append(f"{FOLDERS} = $({FOLDERS}), {self.directory.resolve()}")
        if self.text:
            lines += [self.text, _ISOLATED]
        return "\n".join(lines) + "\n"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that configure HTCondor on this machine, if its configuration is meant."""
        return {
            name: text
            for name, text in os.environ.items()
            if self.main_file is not None and name.lower().startswith("_condor_")
        }


@dataclass(frozen=True)
class Configuration:
    """Macros and their places, as HTCondor reads a `ConfigSource`."""

    name: str
    """For people: a path, or this machine."""
    source: ConfigSource
    definitions: tuple[Definition, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    """Macro, lower case → its expanded text; without those that are not set, or empty."""
    is_whole: bool = False
    """True if it is all that a machine reads, and not a part of it."""

    def text(self, macro: str) -> str:
        """Expanded text of a macro, empty if it is not set."""
        return self.values.get(macro.lower(), "")

    def words(self, *macros: str) -> tuple[str, ...]:
        """Items of macros that are lists."""
        return tuple(word for macro in macros for word in words_of(self.text(macro)))

    def texts(self, names: Iterable[str]) -> dict[str, str]:
        """Macro → its expanded text, of those that are set."""
        return {name: text for name in names if (text := self.text(name))}

    def assignments(self, macro: str) -> tuple[Definition, ...]:
        """Assignments of a macro, in the order of reading."""
        return tuple(self._assignments.get(macro.lower(), ()))

    def place(self, macro: str) -> str:
        """``file:line`` of the last assignment; the name itself if no file sets the macro."""
        written = self.assignments(macro)
        return written[-1].place if written else macro

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders of configuration files, in the order of reading."""
        return tuple(dict.fromkeys(map(Path, self.words(FOLDERS))))

    @property
    def excluded(self) -> re.Pattern[str]:
        """Names of files that HTCondor leaves out of them."""
        return re.compile(self.text(EXCLUDED) or r"(?!)")

    def is_judged(self, definition: Definition) -> bool:
        """True if faults of that assignment count: it is in the folder, where there is one."""
        folder = self.source.directory
        return folder is None or folder.resolve() in definition.file.resolve().parents

    def made_of(self, macro: str) -> tuple[Definition, ...]:
        """Assignments that went into a macro, its own first."""
        parts: dict[Definition, None] = {}
        waiting = [macro.lower()]
        for name in waiting:
            for definition in in_force(self.assignments(name)):
                parts[definition] = None
                # ``a_*`` may be each macro that begins so.
                begins = tuple(n[:-1] for n in definition.references if n.endswith("*"))
                names = {n for n in self._assignments if begins and n.startswith(begins)}
                names |= {n for n in definition.references if not n.endswith("*")}
                waiting += sorted(names.difference(waiting))
        return tuple(parts)

    @cached_property
    def _assignments(self) -> dict[str, list[Definition]]:
        by_name = _by_name(self.definitions)
        # A startd takes its own assignments before those for all daemons.
        for name in [name for name in by_name if without_daemon(name) != name]:
            by_name.setdefault(without_daemon(name), []).extend(by_name[name])
        return by_name


def source_of(directory: Optional[Path]) -> ConfigSource:
    """Folder of snippets, or the configuration of this machine; raises InputError."""
    if directory is not None:
        if not directory.is_dir():
            problem = f"{directory}: no folder; name one with HTCondor configuration files"
            raise InputError([problem])
        return ConfigSource(directory)
    named = os.environ.get("CONDOR_CONFIG")
    candidates = [named] if named else _INSTALLED
    main_file = next((Path(name) for name in candidates if Path(name).is_file()), None)
    if main_file is None:
        problem = f"{' and '.join(candidates)}: no configuration of HTCondor here"
        raise InputError([f"{problem}; name a folder of snippets to check"])
    return ConfigSource(None, main_file)


def read(source: ConfigSource, macros: Sequence[str], process: CondorProcess) -> Configuration:
    """Values of what files set, and of ``macros``. Raises UnreadableConfigurationError."""
    name = str(source.directory or "this machine")
    main = source.main_file
    first = Configuration(name, source, is_whole=main is not None)
    first = _with_values(first, (FOLDERS, EXCLUDED, FILES), process)
    files = [main] if main is not None else []
    for folder in filter(Path.is_dir, first.folders):
        entries = sorted(path for path in folder.iterdir() if path.is_file())
        files += [path for path in entries if not first.excluded.search(path.name)]
    local = [Path(word.strip()) for word in first.text(FILES).split(",")]
    files += [path for path in local if path.is_file()]
    whole = replace(first, definitions=definitions_in(dict.fromkeys(files)))
    return _with_values(whole, (FOLDERS, EXCLUDED, *macros), process)


def read_text(
    name: str, content: str, macros: Sequence[str], process: CondorProcess
) -> Configuration:
    """A snippet, or a whole configuration as ``condor_config_val -dump -verbose`` prints it.

    ``name`` is the path of the file, or another name for people. Raises InputError if it runs a
    command, because anybody may have written it, and UnreadableConfigurationError.
    """
    if any(_DUMP.match(line) for line in content.splitlines()[:5]):
        return _read_dump(name, content, macros, process)
    definitions = tuple(_of_text(content, Path(name), frozenset({Path(name).resolve()})))
    commands = [part.place for part in definitions if not part.name and _COMMAND.match(part.text)]
    if commands:
        problem = "runs a command to get configuration; check its folder, or what "
        problem += "condor_config_val -dump -verbose prints"
        raise InputError([f"{place}: {problem}" for place in commands])
    with tempfile.TemporaryDirectory(prefix="sharectl-") as folder:
        path = Path(name).resolve()
        if not path.is_file():
            path = Path(folder) / "configuration"
            path.write_text(content, encoding="utf-8")
        source = ConfigSource(text=f"include : {path}")
        try:
            return _with_values(Configuration(name, source, definitions), macros, process)
        except UnreadableConfigurationError as error:
            problem, place = (text.replace(str(path), name) for text in (str(error), error.place))
            raise UnreadableConfigurationError(problem, place) from None


def _read_dump(
    name: str, content: str, macros: Sequence[str], process: CondorProcess
) -> Configuration:
    definitions = dumped(content, Path(name))
    if all(part.file == Path(name) for part in definitions):
        raise InputError([f"{name}: a dump without places; write condor_config_val -dump -verbose"])
    text = "\n".join(f"{part.name} = {part.text}" for part in definitions)
    written = tuple(part for part in definitions if not str(part.file).startswith("<"))
    whole = Configuration(name, ConfigSource(text=text), written, is_whole=True)
    return _with_values(whole, macros, process)


def dumped(content: str, path: Path) -> tuple[Definition, ...]:
    """Assignments of a dump, which is not trusted: none reads a file or runs a command."""
    definitions: list[Definition] = []
    lines = enumerate(content.splitlines(), 1)
    for number, line in lines:
        at = _DUMPED_AT.fullmatch(line)
        if at is not None and definitions:
            moved = replace(definitions[-1], file=Path(at["file"]), line=int(at["line"] or 0))
            definitions[-1] = moved
        match = None if _STATEMENT.match(line) else _ASSIGNMENT.fullmatch(line.rstrip())
        if match is None or match["sign"] == ":" or not re.match(r"[A-Za-z_]", match["name"]):
            continue
        text = _until(lines, match["tag"]) if match["tag"] else match["text"]
        # A backslash at the end would join it with the next line.
        text = " ".join(text.split()).rstrip("\\")
        if not _STATEMENT.match(f"{match['name']} "):
            definitions.append(Definition(match["name"], text, path, number))
    return tuple(definitions)


def _with_values(
    configuration: Configuration, macros: Iterable[str], process: CondorProcess
) -> Configuration:
    """The configuration with its macros expanded; UnreadableConfigurationError for a circle."""
    ring = circle(configuration.definitions)
    if ring:
        names = " → ".join(definition.name for definition in ring)
        problem = f"{names}: macros that refer to each other in a circle"
        raise UnreadableConfigurationError(problem, ring[0].place)
    written = (definition.name for definition in configuration.definitions if definition.name)
    names_wanted = tuple(dict.fromkeys((*macros, *written)))
    values = expand(configuration.source, names_wanted, process)
    return replace(configuration, values={name.lower(): text for name, text in values.items()})


def expand(
    source: ConfigSource,
    macros: Sequence[str],
    process: CondorProcess,
    overrides: Optional[Mapping[str, str]] = None,
) -> dict[str, str]:
    """Macro → expanded text, of those that are set; ``overrides`` has texts in place of values."""
    environment = {f"_CONDOR_{name}": text for name, text in (overrides or {}).items()}
    probes = [f"{_PROBE}{name}" for name in macros]
    values = process.values(probes, source.root_file(macros), {**source.environment, **environment})
    return {name[len(_PROBE) :]: text for name, text in values.items()}


DAEMONS = "DAEMON_LIST"
_STARTD, _SCHEDD, _NEGOTIATOR = "STARTD", "SCHEDD", "NEGOTIATOR"
_READERS = {
    r"(SLOT_TYPE_\d+_)?(CONSUMPTION_\w+|NUM_CLAIMS|START|CLAIM_WORKLIFE)": (_STARTD,),
    r"STARTD_(ATTRS|EXPRS|LATCH_EXPRS|PARTITIONABLE_SLOT_ATTRS|JOB_ATTRS|CRON_\w+)": (_STARTD,),
    r"DEFAULT_DRAINING_START_EXPR|ADVERTISE_PSLOT_ROLLUP_INFORMATION": (_STARTD,),
    r"(CLAIM_PARTITIONABLE_LEFTOVERS|ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS)": (_SCHEDD, _STARTD),
    r"SCHEDD_(USE_SLOT_WEIGHT|SLOT_WEIGHT|CLASSAD_USER_MAP_NAMES)": (_SCHEDD,),
    r"JOB_TRANSFORM_\w+|SUBMIT_REQUIREMENT_\w+|(IMMUTABLE|PROTECTED)_JOB_ATTRS": (_SCHEDD,),
    # HTCondor's own CLAIM_PARTITIONABLE_LEFTOVERS is $(NEGOTIATOR_USE_SLOT_WEIGHTS).
    r"NEGOTIATOR_USE_SLOT_WEIGHTS": (_NEGOTIATOR, _SCHEDD, _STARTD),
    r"GROUP_(NAMES|QUOTA_\S+|ACCEPT_SURPLUS\S*|AUTOREGROUP\S*)": (_NEGOTIATOR,),
    r"NEGOTIATOR_(DEPTH_FIRST|NUM_THREADS|(MIN_)?INTERVAL|CYCLE_DELAY)": (_NEGOTIATOR,),
    r"NEGOTIATOR_(SLOT_(POOLSIZE_)?CONSTRAINT|ALLOW_QUOTA_OVERSUBSCRIPTION)": (_NEGOTIATOR,),
    r"DEFRAG_\w+": ("DEFRAG",),
}
"""Knobs, upper case → daemons that read them, by HTCondor's source."""
_TABLE = {re.compile(knobs): daemons for knobs, daemons in _READERS.items()}
_SUBSYSTEMS = frozenset(
    ("MASTER", "COLLECTOR", _NEGOTIATOR, _SCHEDD, _STARTD, "DEFRAG", "SHADOW", "STARTER")
)
_ROLE = re.compile(r"@?use\s+role\b", re.IGNORECASE)


def readers_of(knob: str) -> tuple[str, ...]:
    """Daemons that read a knob, which has no prefix; empty if that is not known."""
    upper = knob.upper()
    return next((daemons for knobs, daemons in _TABLE.items() if knobs.fullmatch(upper)), ())


def daemons_of(configuration: Configuration) -> Optional[frozenset[str]]:
    """Daemons that DAEMON_LIST starts; None if the configuration does not say which."""
    written = in_force(configuration.assignments(DAEMONS))
    has_roles = any(not part.name and _ROLE.match(part.text) for part in configuration.definitions)
    # What a part of a configuration adds to is not known.
    is_open = not configuration.is_whole and bool(written) and written[-1].appends
    if not (written or has_roles) or (is_open and not has_roles):
        return None
    names = [word.upper() for word in configuration.words(DAEMONS)]
    # A second daemon of a kind has another name, and the program of the first.
    programs = [PurePath(configuration.text(name).strip()).name for name in names]
    return frozenset((*names, *(name.upper().removeprefix("CONDOR_") for name in programs)))


class Unread(NamedTuple):
    """A knob that no daemon reads where it is set."""

    part: Definition
    readers: tuple[str, ...]
    """Daemons that read it elsewhere, or without its prefix."""
    is_elsewhere: bool
    """False if its prefix names a daemon that does not read it, on no machine."""


def unread(configuration: Configuration) -> Iterator[Unread]:
    """Knobs of judged files that no daemon reads here."""
    daemons = daemons_of(configuration)
    for part in {part.name.upper(): part for part in configuration.definitions}.values():
        prefix, _, knob = part.name.upper().rpartition(".")
        readers = readers_of(knob)
        if not readers or not configuration.is_judged(part):
            continue
        if prefix in _SUBSYSTEMS.difference(readers):
            yield Unread(part, readers, is_elsewhere=False)
        elif daemons is not None and daemons.isdisjoint([prefix] if prefix in readers else readers):
            yield Unread(part, readers, is_elsewhere=True)
