"""Keys of sections, with type, default and bounds, from the fields of their records.

Values that are neither numbers nor plain words have a notation: paths, names, addresses, shares and
choices of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from decimal import Decimal
from functools import cache, reduce
from pathlib import Path
from typing import Any, Callable, Optional, Union, get_args, get_origin, get_type_hints

from sharectl.files.yaml import ValuePath
from sharectl.plan.nodes import Controlled, ControlledConstraint, ControlledHosts, ControlledShare
from sharectl.settings import Setting, setting_of
from sharectl.words import quoted

MAX_EXPRESSION = 2000
"""Characters of an expression of a consumption policy."""
MAX_CONSTRAINT = 4096
"""Characters: HTCondor's parser goes one level down the stack for each parenthesis."""
POOL_CHECKS = (
    *("versions", "reach", "clocks", "files", "timer", "cycles", "targets"),
    *("groups", "leftovers", "cron", "start", "nodes", "cores", "defrag"),
)
"""Checks of `sharectl check pool`, which `sharectl.check` has with their words."""
UNMAPPED = "unmapped"
"""Domain of the identity of clients that HTCondor could not authenticate."""
UNITS = {"hs06": "HS06", "seconds": "seconds", "bytes": "bytes", "cores": "cores"}
"""Unit at the end of a key → its name in a sentence."""


@dataclass(frozen=True)
class Key:
    """Key of a section."""

    name: str
    attributes: tuple[str, ...]
    """Way to its value in the record, through inline records."""
    hint: Any
    """Type of its value, without Optional."""
    optional: bool
    default: Any
    setting: Setting

    @property
    def section(self) -> Optional[type]:
        """Section that it holds: itself, or as an entry of its list or mapping."""
        entry = {tuple: 0, Mapping: 1}.get(get_origin(self.hint))
        hint = self.hint if entry is None else get_args(self.hint)[entry]
        sound = isinstance(hint, type) and is_dataclass(hint) and not self.setting.kind
        return hint if sound else None

    @property
    def range(self) -> str:
        """Numbers that it may be, such as ``whole number, 60 to 86400 seconds``."""
        bounds = self.setting
        kind = "whole number" if self.hint is int else "number"
        above = "" if bounds.above is None else "above "
        unit = UNITS.get(self.name.rpartition("_")[2], "")
        least = bounds.above or bounds.least or 0
        return f"{kind}, {above}{least:.16g} to {bounds.most or 0:.16g} {unit}".rstrip()

    def admits(self, number: float) -> bool:
        """Return whether a number is within the bounds."""
        least, above, most = self.setting.least, self.setting.above, self.setting.most
        is_least = (least is None or number >= least) and (above is None or number > above)
        return is_least and (most is None or number <= most)


@cache
def keys_of(section: Any) -> Mapping[str, Key]:
    """Name → key of a section, in order, with those of its inline records."""
    keys: dict[str, Key] = {}
    hints: dict[str, Any] = get_type_hints(section)
    for field in fields(section):
        setting = setting_of(field)
        if setting is None:
            continue
        hint = hints[field.name]
        optional = get_origin(hint) is Union and type(None) in get_args(hint)
        if optional:
            hint = Union[tuple(kind for kind in get_args(hint) if kind is not type(None))]
        if setting.inline:
            for name, key in keys_of(hint).items():
                keys[name] = replace(key, attributes=(field.name, *key.attributes))
        else:
            name, made = setting.key or field.name, field.default_factory
            default = field.default if made is MISSING else made()
            keys[name] = Key(name, (field.name,), hint, optional, default, setting)
    return keys


def items_of(record: Any) -> Iterator[tuple[Key, Any]]:
    """Key and value of a section, with those of its inline records."""
    section: Any = type(record)
    for key in keys_of(section).values():
        yield key, reduce(getattr, key.attributes, record)


def record_of(section: type, values: Mapping[str, Any]) -> Any:
    """Record of a section; a key without a value has its default."""
    arguments: dict[str, Any] = {}
    for field in fields(section):
        setting = setting_of(field)
        if setting is not None and setting.inline:
            arguments[field.name] = record_of(type(field.default), values)
        elif setting is not None and (setting.key or field.name) in values:
            arguments[field.name] = values[setting.key or field.name]
    return section(**arguments)


@cache
def sections_of(top: Any) -> Mapping[ValuePath, type]:
    """Path of each section, ``*`` for any name or number; of several paths the shortest."""
    sections: dict[ValuePath, type] = {(): top}
    todo: list[ValuePath] = [()]
    for path in todo:
        for name, key in keys_of(sections[path]).items():
            section = key.section
            if section is not None and section not in sections.values():
                at = (*path, name) if key.hint is section else (*path, name, "*")
                sections[at] = section
                todo.append(at)
    order = ["", *keys_of(top)]
    return dict(sorted(sections.items(), key=lambda row: order.index(str((*row[0], "")[0]))))


# ---- notations


class WrongError(ValueError):
    """A value cannot be used; ``at`` is the path of the fault within it."""

    def __init__(self, message: str, *at: Union[str, int]) -> None:
        super().__init__(message)
        self.at = at


_WORDS = frozenset(("true", "false", "undefined", "error", "none", "all"))
_PATTERN = re.compile(r"[A-Za-z0-9.*?_\-\[\]!]{1,253}")
_SEVERAL = re.compile(r"[A-Za-z0-9.*?_\-\[\]!; ]+[{,][A-Za-z0-9.*?_\-\[\]!{},; ]*")
"""Hosts with commas or braces: as an expression they could be valid, and reserve no node."""
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?|\.[0-9]+")
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
_FORMS = (
    'write "*", host patterns such as [wn-0*, wn-117.example.org], a share such as "50%", or '
    "a ClassAd constraint"
)


def read_share(value: Any) -> float:
    """Part of the nodes, such as ``"50%"``."""
    match = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise WrongError('a share is a percentage in quotes; write such as "50%"')
    if Decimal(match[1]) > 100:  # noqa: PLR2004 - percent
        raise WrongError(f'{value} is more nodes than there are; write at most "100%"')
    return float(Decimal(match[1]) / 100)


def write_share(ratio: float) -> str:
    """Text that `read_share` reads as ``ratio``."""
    percent = Decimal(repr(float(ratio))) * 100
    return f"{percent.normalize():f}%"


def read_controlled(value: Any) -> Controlled:
    """Choice of nodes: a pattern, a list of patterns, a share or a constraint.

    A list holds patterns and parentheses a constraint, also where they could be another: ``[GPU]``,
    ``(GPU)``.
    """
    patterns = value if isinstance(value, list) else []
    for number, pattern in enumerate(patterns):
        if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern):
            problem = "is not a host pattern; write host names, with * ? [0-9] where they vary"
            raise WrongError(f"{quoted(str(pattern))} {problem}", number)
    if patterns:
        return ControlledHosts(tuple(patterns))
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        raise WrongError(f"it selects no nodes; {_FORMS}")
    if _SHARE.fullmatch(text):
        return ControlledShare(read_share(text))
    if text.lower() in _WORDS or _NUMBER.fullmatch(text):
        raise WrongError(f"{text} could be a host or an expression; {_FORMS}")
    if _SEVERAL.fullmatch(text):
        raise WrongError(f"several hosts are a list, and braces are no pattern; {_FORMS}")
    return ControlledHosts((text,)) if _PATTERN.fullmatch(text) else _constraint(text)


def write_controlled(controlled: Controlled) -> Union[str, list[str]]:
    """Shortest value that `read_controlled` reads as ``controlled``."""
    if isinstance(controlled, ControlledShare):
        return write_share(controlled.ratio)
    if isinstance(controlled, ControlledConstraint):
        return controlled.expression
    return "*" if controlled.patterns == ("*",) else list(controlled.patterns)


def _law(text: str) -> str:
    from sharectl.control.laws import STEPS

    if text not in STEPS:
        raise WrongError(f"{quoted(text)} is invalid; write one of {', '.join(STEPS)}")
    return text


def _constraint(text: str) -> Controlled:
    from sharectl.condor.expressions import constraint_fault

    if len(text) > MAX_CONSTRAINT:
        raise WrongError(f"a constraint has at most {MAX_CONSTRAINT} characters; shorten it")
    fault = constraint_fault(text)
    if fault:
        raise WrongError(f"{quoted(text)} {fault}; {_FORMS}")
    return ControlledConstraint(text)


def absolute_path(text: str) -> Path:
    """Path of a file or folder."""
    path = Path(text)
    if not path.is_absolute() or not path.name or not text.isprintable():
        raise WrongError(f"{quoted(text)} is not an absolute path; write one that begins with /")
    return path


def _metrics_file(text: str) -> Path:
    path = absolute_path(text)
    if path.suffix != ".prom":
        raise WrongError(f"{quoted(text)}: node_exporter reads *.prom alone; write such a name")
    return path


def text_like(pattern: str, problem: str, placeholders: str = "") -> Callable[[str], str]:
    """Reader of text that has to match ``pattern`` but for ``placeholders``."""
    matches, free = re.compile(pattern).fullmatch, re.compile(placeholders)

    def read(text: str) -> str:
        if not matches(free.sub("", text)):
            raise WrongError(f"{quoted(text)} {problem}")
        return text

    return read


def _identity(text: str) -> str:
    _is_identity(text)
    if text.rpartition("@")[2] == UNMAPPED:
        fact = "is the identity of all clients that HTCondor could not authenticate"
        raise WrongError(f"{quoted(text)} {fact}; give sharectl a token, and write its identity")
    return text


def _expression(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > MAX_EXPRESSION:
        raise WrongError("an expression is one line of text; write one, such as TARGET.RequestCpus")
    if "$" in text or text.rstrip().endswith("\\"):
        raise WrongError(f"{quoted(text)} has a macro or a continued line; write the whole value")
    return text.strip()


_is_identity = text_like(
    r"[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,190}",
    "is not an identity; write it as HTCondor does, such as sharectl@example.org",
)
_daemon = text_like(
    r"(?!\w+://)[!-~]{1,256}", "is not a name or address; write such as ap-1.example.org"
)
_pool_name = text_like(
    r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}",
    "is not a pool name; write letters, digits, _ . : and -, a letter or digit first, at most 128",
)
_cric_name = text_like(
    r"[A-Za-z0-9][A-Za-z0-9 ._()/+-]{0,99}",
    "is not a name in CRIC; write it as CRIC shows it, such as IT-INFN-CNAF",
)
_HTTPS = r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/"
_cric_url = text_like(
    _HTTPS + r"[A-Za-z0-9._~%/+?&=;-]*",
    "is invalid; write https://HOST[:PORT]/PATH[?QUERY], without user; {year} stands for the year "
    "of the pledges, {previous_year} for the one before",
    r"\{(year|previous_year)\}",
)
_url = text_like(
    _HTTPS + r"[A-Za-z0-9._~%/+-]*[A-Za-z0-9._~%+-]",
    "is invalid; write https://HOST[:PORT]/PATH, without user, query, comma or blank, such as "
    "https://cm.example.org/sharectl.txt",
)
_pool_check = text_like(
    "|".join(POOL_CHECKS), f"is not a check of `check pool`; write one of {', '.join(POOL_CHECKS)}"
)
_proxy = text_like(
    r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?", "is not a proxy; write http://HOST:PORT"
)


def one_line(text: Any) -> str:
    """Text that is one line; raises WrongError."""
    if not isinstance(text, str) or not text.isprintable() or len(text) > MAX_EXPRESSION:
        raise WrongError(f"write one line of text, at most {MAX_EXPRESSION} characters")
    return text


def _shared_cores(value: Any) -> str:
    """NUM_CPUS of a node whose claims share cores."""
    text = str(value).strip()
    if re.fullmatch(r"[1-9]\d{0,5}( ?\* ?\$\(DETECTED_CPUS\))?", text):
        return text
    raise WrongError(f"{quoted(text)} is invalid; write such as 40, or 4 * $(DETECTED_CPUS)")


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Notation:
    """Notation of a value."""

    words: str
    """Values that may be written, for the reference."""
    read: Callable[[Any], Any]
    """Value of YAML's data; raises `WrongError`."""
    write: Callable[[Any], Any] = _as_it_is
    """Plain data that ``read`` takes."""


NOTATIONS: dict[str, Notation] = {
    "share": Notation("share", read_share, write_share),
    "nodes": Notation(
        "pattern, list of patterns, share, constraint", read_controlled, write_controlled
    ),
    "law": Notation("`latest`, `ewma`, `pid`, `learned`", _law),
    "metrics file": Notation("path, `*.prom`", _metrics_file, str),
    "pool check": Notation("check", _pool_check),
    "daemon": Notation("host name or address", _daemon),
    "pool name": Notation("text", _pool_name),
    "cric name": Notation("text", _cric_name),
    "cric url": Notation("text", _cric_url),
    "proxy": Notation("text", _proxy),
    "url": Notation("text", _url),
    "identity": Notation("text", _identity),
    "expression": Notation("ClassAd expression", _expression),
    "shared cores": Notation("whole number, N * $(DETECTED_CPUS)", _shared_cores),
    "text": Notation("text", one_line),
}
"""`Setting.kind` → its notation; a package with kinds of its own adds theirs."""
