"""What the checks of consumption policies look at: the slot types that a configuration makes, and what each has.

A knob of a slot is looked for as the startd does (SlotType::param in
src/condor_startd.V6/Resource.cpp): with SLOT_TYPE_<N>_ before it, then without, then what HTCondor
has for its default.

Files that are no configuration of HTCondor: what `sharectl consumption render` reads, and what is
no text at all.

Configurations to be checked: a folder, a file, this machine's, or what ``condor_config_val -dump``
printed of a node.

A dump comes from another machine and is not trusted: only its plain assignments reach HTCondor's
parser, never a statement that reads another file or runs a command.

What knobs of slots are set to, and which custom resources a node has.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Optional

from sharectl.condor.configuration import (
    MAX_BYTES,
    Configuration,
    Definition,
    Given,
    Source,
    booleans,
    circle,
    definitions_in,
    expand,
    given_file,
    read,
    reader,
    retold,
    source_of,
)
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.consumption.asks import in_sequence, matches
from sharectl.consumption.cost import Match
from sharectl.errors import InputError
from sharectl.files.files import read_regular

_TO_RENDER = re.compile(
    r"""^(?:startd|slot_types|["'](?:startd|slot_types)["'])\s*:\s*(?:\{.*|\#.*|&\w+\s*)?$""",
    re.MULTILINE,
)
_BLANKS = "\t\n\r\f\v\x1b"
_MOST_ODD = 0.1
"""Part of a text that may be characters which no text has: a comment in another encoding has some."""


def refuse_others(content: str, path: Path) -> None:
    """InputError for what is no configuration; HTCondor would take YAML for one that sets nothing of ours."""
    odd = sum(not character.isprintable() and character not in _BLANKS for character in content)
    odd += content.count("\ufffd")
    if "\0" in content or odd > _MOST_ODD * len(content):
        raise InputError(
            [
                (
                    f"{path}: is no text, so it is no configuration; name HTCondor configuration, "
                    "or a dump of it"
                )
            ]
        )
    if match := _TO_RENDER.search(content):
        line = content.count("\n", 0, match.start()) + 1
        name = path if str(path) != "-" else "FILE"
        shown = f"sharectl consumption render {name} | sharectl consumption check -"
        problem = (
            f"{path}:{line}: is YAML for `sharectl consumption render`, and no configuration; render "
            f"it first: {shown}"
        )
        raise InputError([problem])


STDIN = Path("-")
THIS_MACHINE = "this machine"

_HEADER = re.compile(r"\s*# Configuration from \w+", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][\w.]*)\s*(?:@=(?P<tag>\w+)|=(?P<text>.*))")
_WRITTEN_AT = re.compile(r"\s*# at: (?P<file>.+?)(?:, line (?P<line>\d+).*)?\s*")
_STATEMENTS = frozenset({"use", "include", "if", "elif", "else", "endif", "error", "warning"})
_COMMAND = re.compile(r"\s*@?include\b(?:[^:=]*\bcommand\b|.*\|)", re.IGNORECASE)
_ISOLATED = ("LOCAL_CONFIG_DIR", "LOCAL_CONFIG_FILE", "USER_CONFIG_FILE")
"""What makes HTCondor read further files: those of this machine are not the node's."""
_INPUT_TYPED = re.compile(r"SLOT_TYPE_\d", re.IGNORECASE)
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
        If a path is neither folder nor file, or may not be read, or is no folder where one is to be
        put on top.
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
    remedy = (
        "write it into a folder of its own" if path == STDIN else f"name its folder, {path.parent}"
    )
    return (
        f"{path}: --with-local puts folders on top of this machine's configuration, and this is "
        f"none; {remedy}, "
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
            else {
                str(copy if path == STDIN else path.resolve()): Given(
                    str(path), content.splitlines()
                )
            }
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
            f"{' → '.join(found.name for found in going_round)}: macros that refer to each "
            "other in a circle",
            going_round[0].place,
        )
        return Input(str(path), _nothing(source), is_whole=False), error
    try:
        defaults = parser.expand(Source(), names) if is_dump else {}
        values = parser.expand(source, names)
    except UnreadableConfigurationError as refused:
        return Input(str(path), _nothing(source), is_whole=False), refused
    if is_dump:
        # A dump has all that HTCondor has a default for; what is empty means something only for a
        # slot type.
        definitions = tuple(
            found
            for found in definitions
            if values.get(found.name, "") != defaults.get(found.name, "")
            or found.file != path
            or _INPUT_TYPED.match(found.name)
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
        raise InputError(
            [f"{path}: is no regular file; name a file, a folder, or - for standard input"]
        )
    return content.decode("utf-8", "replace")


def _refuse_commands(path: Path, definitions: Iterable[Definition]) -> None:
    """InputError for a file that runs a command when it is read: it may be anybody's."""
    content = _content(path).splitlines() if path != STDIN else []
    places = [f"{path}:{number}" for number, line in enumerate(content, 1) if _COMMAND.match(line)]
    places += [
        found.place for found in definitions if not found.name and _COMMAND.match(found.text)
    ]
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


GPUS, GPUS_FOUND = "GPUs", "MACHINE_RESOURCE_INVENTORY_GPUs"
"""The asset, and the knob that ``use feature:GPUs`` sets; newer startds look for GPUs without it."""
DETECT_GPUS = "STARTD_DETECT_GPUS"
"""How the startd looks for GPUs; it does not where that is empty."""

_RESOURCE = re.compile(r"MACHINE_RESOURCE_(?P<scripted>INVENTORY_)?(?P<name>\w+)", re.IGNORECASE)
_OF_GPUS = re.compile(r"(STARTD\.)?(SLOT_TYPE_\d+_)?CONSUMPTION_GPUS", re.IGNORECASE)
_OF_SCHEDDS, _OF_NEGOTIATORS = ("SCHEDD",), ("NEGOTIATOR",)
READERS = {
    "CONSUMPTION_POLICY": ("STARTD",),
    "CLAIM_PARTITIONABLE_LEFTOVERS": ("SCHEDD", "STARTD"),
    "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS": ("SCHEDD", "STARTD"),
    "CLAIM_RECYCLING_CONSIDER_LIMITS": _OF_SCHEDDS,
    "SCHEDD_USE_SLOT_WEIGHT": _OF_SCHEDDS,
    # HTCondor's own CLAIM_PARTITIONABLE_LEFTOVERS is $(NEGOTIATOR_USE_SLOT_WEIGHTS).
    "NEGOTIATOR_USE_SLOT_WEIGHTS": ("NEGOTIATOR", "SCHEDD", "STARTD"),
    "NEGOTIATOR_DEPTH_FIRST": _OF_NEGOTIATORS,
    "NEGOTIATOR_CONSIDER_PREEMPTION": _OF_NEGOTIATORS,
    "NEGOTIATOR_MATCHLIST_CACHING": _OF_NEGOTIATORS,
    "FORCE_NEGOTIATOR_SLOT_WEIGHT": _OF_NEGOTIATORS,
    "ALLOW_PSLOT_PREEMPTION": _OF_NEGOTIATORS,
}
"""Knob that is a boolean → the daemons that read it."""
OF_TYPES = ("PARTITIONABLE", "CONSUMPTION_POLICY", "BACKFILL", "HIDDEN")
"""Booleans that a slot type may have of its own."""
_BOOLEAN = re.compile(
    rf"(\w+\.)?({'|'.join(READERS)}|SLOT_TYPE_\d+_({'|'.join(OF_TYPES)}))", re.IGNORECASE | re.ASCII
)
_MAY_NAME_GPUS = re.compile(
    r"SLOT_TYPE_\d+|(STARTD\.)?(SLOT_TYPE_\d+_)?SLOT_?WEIGHT", re.IGNORECASE
)


@dataclass(frozen=True)
class Setting:
    """What a knob is for slots of one type."""

    macro: str
    """The name under which it is set, or would be."""
    text: str
    """Expanded; HTCondor's own default if no file sets it."""
    place: str
    """``file:line``; the macro if no file sets it."""
    is_default: bool = False


def setting(configuration: Configuration, number: int, knob: str, default: str) -> Setting:
    """What a knob is for slots of a type."""
    own = f"SLOT_TYPE_{number}_{knob}"
    # A name with the daemon's before it goes before the one without: HTCondor reads the
    # configuration as a startd.
    for name in (f"STARTD.{own}", own):
        if written := configuration.assignments(name):
            return Setting(written[-1].name, configuration.text(name), configuration.place(name))
    for name in (f"STARTD.{knob}", knob):
        text, written = configuration.text(name), configuration.assignments(name)
        if written and text:
            return Setting(written[-1].name, text, configuration.place(name))
    return Setting(
        knob, configuration.text(knob) or default, configuration.place(knob), is_default=True
    )


def written_booleans(configuration: Configuration) -> dict[str, str]:
    """Knob that a file sets, and that is to be a boolean → its text; without those that are empty."""
    names = {definition.name.upper(): definition.name for definition in configuration.definitions}
    texts = {name: configuration.text(name) for name in names.values() if _BOOLEAN.fullmatch(name)}
    return {name: text for name, text in texts.items() if text.strip()}


def booleans_of(configuration: Configuration, htcondor: CondorProcess) -> dict[str, Optional[bool]]:
    """Text of any knob that is to be a boolean → what HTCondor takes it for, None for what is none.

    Raises
    ------
    UnreadableConfigurationError
        If HTCondor's library gives no answer.
    """
    defaults = [configuration.text(knob) for knob in READERS]
    return booleans([*defaults, *written_booleans(configuration).values()], htcondor)


def resources_of(configuration: Configuration, *, has_gpus: bool = False) -> dict[str, Setting]:
    """Custom resources, as the startd finds them (MachAttributes::init_machine_resources)."""
    allowed = [word.lower() for word in configuration.words("MACHINE_RESOURCE_NAMES")]
    found: dict[str, Setting] = {}
    for definition in configuration.definitions:
        match = _RESOURCE.fullmatch(definition.name)
        text = configuration.text(definition.name)
        if match is None or match["name"].upper() == "NAMES" or not text:
            continue
        known = next(
            (name for name in found if name.lower() == match["name"].lower()), match["name"]
        )
        if not allowed or known.lower() in allowed:
            found[known] = Setting(definition.name, text, definition.place)
    if GPUS.lower() not in map(str.lower, found) and (not allowed or GPUS.lower() in allowed):
        found.update(_gpus(configuration, has_gpus=has_gpus))
    return found


def _gpus(configuration: Configuration, *, has_gpus: bool) -> Iterator[tuple[str, Setting]]:
    """GPUs that the startd finds by itself: by the feature, or as knobs of slots count on them."""
    text = configuration.text(GPUS_FOUND)
    named = [
        definition.place
        for definition in configuration.definitions
        if _OF_GPUS.fullmatch(definition.name)
        or (
            _MAY_NAME_GPUS.fullmatch(definition.name)
            and re.search(rf"\b{GPUS}\b", definition.text, re.IGNORECASE)
        )
    ]
    if text or named or has_gpus:
        yield GPUS, Setting(GPUS_FOUND, text, named[0] if named else GPUS_FOUND)


Ad = Mapping[str, str]
POLICY, WEIGHT, NUM_CLAIMS = "CONSUMPTION_POLICY", "SLOT_WEIGHT", "NUM_CLAIMS"
SCHEDD_WEIGHT, SCHEDD_USES_WEIGHT = "SCHEDD_SLOT_WEIGHT", "SCHEDD_USE_SLOT_WEIGHT"
LEFTOVERS = "CLAIM_PARTITIONABLE_LEFTOVERS"
ATTRIBUTE_LISTS = ("STARTD_ATTRS", "STARTD_EXPRS")
STANDARD_ASSETS = ("Cpus", "Memory", "Disk")
NEGOTIATORS = (
    "NEGOTIATOR_USE_SLOT_WEIGHTS",
    "NEGOTIATOR_NUM_THREADS",
    "NEGOTIATOR_DEPTH_FIRST",
    "FORCE_NEGOTIATOR_SLOT_WEIGHT",
    "ALLOW_PSLOT_PREEMPTION",
    "NEGOTIATOR_CONSIDER_PREEMPTION",
    "NEGOTIATOR_MATCHLIST_CACHING",
)
REQUESTS = {
    asset: f"MODIFY_REQUEST_EXPR_REQUEST{asset.upper()}" for asset in ("Cpus", "Disk", "Memory")
}
"""Asset → what the startd makes of a request of it, in its order."""
MAX_SLOT_TYPES = 10
"""HTCondor's own default of that knob."""

MACROS = (
    POLICY,
    WEIGHT,
    NUM_CLAIMS,
    LEFTOVERS,
    *(f"CONSUMPTION_{asset.upper()}" for asset in STANDARD_ASSETS),
    *ATTRIBUTE_LISTS,
    *NEGOTIATORS,
    *REQUESTS.values(),
    "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS",
    "CLAIM_RECYCLING_CONSIDER_LIMITS",
    "MACHINE_RESOURCE_NAMES",
    GPUS_FOUND,
    DETECT_GPUS,
    "MAX_SLOT_TYPES",
    "DAEMON_LIST",
    "GROUP_NAMES",
    "START",
    "NUM_SLOTS",
    SCHEDD_WEIGHT,
    SCHEDD_USES_WEIGHT,
    "SLOT_TYPE_0_PARTITIONABLE",
    "NUM_CPUS",
    "MEMORY",
    "DETECTED_MEMORY",
    "RESERVED_MEMORY",
)
"""What the checks want expanded, whether or not a file sets it."""

_SUBJECT_TYPED = re.compile(
    r"(?:STARTD\.)?(?:NUM_)?(?:SLOT_TYPE|SLOTS_TYPE)_(?P<number>\d+)(?:_(?P<knob>\w+))?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SlotType:
    """Slots of one type of one node."""

    number: int
    partitionable: bool
    policies: Mapping[str, Setting]
    """Asset, as it is called in the slot → its CONSUMPTION knob."""
    policy: Setting
    """CONSUMPTION_POLICY."""
    wants_policy: bool
    """What HTCondor takes that for."""
    is_misread: bool
    """Whether that or PARTITIONABLE is no boolean, so that what follows is not what is meant."""
    weight: Setting
    claims: Setting
    """NUM_CLAIMS; empty text for HTCondor's own."""
    shares: str
    """SLOT_TYPE_<N>, such as ``cpus=50%, memory=50%``."""
    count: int = 1
    """Slots of that type that the node has."""

    @property
    def name(self) -> str:
        """For people: knobs without a type are for every slot of the node."""
        return f"slot type {self.number}" if self.number else "every slot"

    @property
    def has_policy(self) -> bool:
        """Whether a consumption policy is on, and the slot one that can have it."""
        return self.partitionable and self.wants_policy


@dataclass(frozen=True)
class Node:
    """One configuration that is given, and the slots that it makes."""

    input: Input
    slot_types: tuple[SlotType, ...]
    unused_types: tuple[int, ...]
    """Types that are described but of which the node has no slot."""
    resources: Mapping[str, Setting]
    """Custom resource → the knob that declares it."""
    booleans: Mapping[str, Optional[bool]]
    """Text of a knob that is to be a boolean → what HTCondor takes it for, None for what is none."""

    @property
    def configuration(self) -> Configuration:
        """What HTCondor made of it."""
        return self.input.configuration

    def is_on(self, knob: str) -> bool:
        """Whether a boolean knob is true."""
        return self.boolean(knob) is True

    def boolean(self, knob: str) -> Optional[bool]:
        """What a boolean knob is; None if it is not set, or no boolean."""
        return self.booleans.get(self.configuration.text(knob))

    def runs(self, daemon: str) -> bool:
        """Whether DAEMON_LIST has it."""
        return daemon in {word.upper() for word in self.configuration.words("DAEMON_LIST")}

    @property
    def is_access_point(self) -> bool:
        """Whether it has a schedd and no startd, so no slots."""
        return self.runs("SCHEDD") and not self.runs("STARTD")

    @property
    def with_policy(self) -> tuple[SlotType, ...]:
        """Slot types that follow a consumption policy."""
        return tuple(slot for slot in self.slot_types if slot.has_policy)

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """Attributes of its slots that the configuration gives, name → expression."""
        names = [word for macro in ATTRIBUTE_LISTS for word in self.configuration.words(macro)]
        return {name: text for name in names if (text := self.configuration.text(name))}


@dataclass(frozen=True)
class Subject:
    """All configurations that are given, and what their operator says of a node."""

    nodes: tuple[Node, ...]
    htcondor: CondorProcess
    """Reads and evaluates expressions."""
    size: Mapping[str, float] = field(default_factory=dict)
    """Asset, lower case → amount in one slot, HTCondor's units, where the operator has said it."""
    _tried: dict[str, list[list[Match]]] = field(default_factory=dict)

    def matches(self, slots: Sequence[Ad], jobs: Sequence[Ad]) -> list[list[Match]]:
        """What each slot makes of each job; asked once, however many checks and equal nodes want to know it."""
        key = json.dumps([slots, jobs])
        if key not in self._tried:
            self._tried[key] = matches(self.htcondor, slots, jobs, most=1)
        return self._tried[key]

    def in_sequence(self, slots: Sequence[Ad], jobs: Sequence[Ad]) -> list[list[Match]]:
        """What each slot makes of the jobs one after another; asked once."""
        key = json.dumps(["in sequence", slots, jobs])
        if key not in self._tried:
            self._tried[key] = in_sequence(self.htcondor, slots, jobs)
        return self._tried[key]

    @cached_property
    def slots(self) -> tuple[tuple[Node, SlotType], ...]:
        """Every slot type that follows a policy, with its node."""
        return tuple((node, slot) for node in self.nodes for slot in node.with_policy)

    @cached_property
    def readable(self) -> Mapping[str, str]:
        """Text of every policy and weight → as HTCondor prints it again; without those that it cannot read."""
        texts = sorted(
            {
                setting.text
                for _, slot in self.slots
                for setting in (*slot.policies.values(), slot.weight)
            }
        )
        printed = self.htcondor.canonical(texts) if texts else []
        return {
            text: again for text, again in zip(texts, printed) if again is not None and text.strip()
        }

    @cached_property
    def sound(self) -> tuple[tuple[Node, SlotType], ...]:
        """Those of `slots` whose policies and weight HTCondor can read, so that they can be tried."""
        return tuple(
            (node, slot)
            for node, slot in self.slots
            if all(
                setting.text in self.readable for setting in (*slot.policies.values(), slot.weight)
            )
        )


def node_of(given: Input, htcondor: CondorProcess, *, has_gpus: bool = False) -> Node:
    """The slots that a configuration makes; ``has_gpus`` where it is known that the startd will find some."""
    configuration = given.configuration
    read = booleans_of(configuration, htcondor)
    resources = resources_of(configuration, has_gpus=has_gpus)
    assets = (*STANDARD_ASSETS, *resources)
    numbers, unused = _types(given)
    slot_types = tuple(_slot_type(configuration, number, assets, read) for number in numbers)
    return Node(given, slot_types, unused, resources, read)


def typed(knob: str) -> Optional[tuple[int, str]]:
    """N and the rest of ``SLOT_TYPE_<N>_<REST>`` (or NUM_SLOTS_TYPE_<N>, whose rest is empty); None for others."""
    match = _SUBJECT_TYPED.fullmatch(knob)
    return (int(match["number"]), match["knob"] or "") if match else None


def _slot_type(
    configuration: Configuration,
    number: int,
    assets: Iterable[str],
    read: Mapping[str, Optional[bool]],
) -> SlotType:
    partitionable = setting(configuration, number, "PARTITIONABLE", "")
    policy = setting(configuration, number, POLICY, "False")
    # The startd goes by the knob of all types where that of one type is no boolean
    # (SlotType::type_param_boolean).
    texts = (policy.text, *(configuration.text(knob) for knob in (f"STARTD.{POLICY}", POLICY)))
    wanted = [read[text] for text in texts if read.get(text) is not None]
    own = bool(configuration.assignments(f"SLOT_TYPE_{number}_PARTITIONABLE"))
    # A snippet may leave it to the site's own file; type 0, HTCondor's one slot, is partitionable
    # by itself.
    left_open = number == 0 or not configuration.assignments(f"SLOT_TYPE_{number}")
    return SlotType(
        number=number,
        partitionable=read.get(partitionable.text) is True if own else left_open,
        policies={
            asset: setting(
                configuration,
                number,
                f"CONSUMPTION_{asset}",
                f"ifThenElse(TARGET.Request{asset} =?= undefined, 0, TARGET.Request{asset})",
            )
            for asset in assets
        },
        policy=policy,
        wants_policy=bool(wanted and wanted[0]),
        is_misread=any(
            knob.text and read.get(knob.text, False) is None for knob in (partitionable, policy)
        ),
        weight=setting(configuration, number, WEIGHT, "Cpus"),
        claims=setting(configuration, number, NUM_CLAIMS, ""),
        shares=configuration.text(f"SLOT_TYPE_{number}"),
        count=int(count)
        if (count := configuration.text(f"NUM_SLOTS_TYPE_{number}").strip()).isdecimal()
        else 1,
    )


def _types(given: Input) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Slot types of which the node has slots, and those that are described in vain."""
    configuration = given.configuration
    numbered: Sequence[int] = sorted(
        {found[0] for definition in configuration.definitions if (found := typed(definition.name))}
    )
    counts = {
        number: configuration.text(f"NUM_SLOTS_TYPE_{number}").strip()
        for number in numbered
        if number
    }
    present = tuple(number for number, count in counts.items() if count not in ("", "0"))
    described = tuple(number for number in numbered if number and number not in present)
    if given.is_whole:
        return present or _plain(configuration), described
    # Part of a configuration may count on another part that has the slots.
    assumed = tuple(
        number
        for number in described
        if counts[number] == "" and not configuration.assignments(f"SLOT_TYPE_{number}")
    )
    there = tuple(sorted((*present, *assumed)))
    unused = tuple(number for number in described if number not in assumed)
    return there or _plain(configuration), unused


def _plain(configuration: Configuration) -> tuple[int, ...]:
    return () if configuration.text("NUM_SLOTS").strip() == "0" else (0,)
