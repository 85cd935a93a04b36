"""START of a site and Requirements of jobs in the twin, as HTCondor's own library evaluates them.

Answers are kept by the values of the attributes that an expression reads, so that the library is
asked once for each combination. The twin's clock stands for time().
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from marshal import dumps
from pathlib import Path
from typing import Any, NamedTuple, Optional

import sharectl
from sharectl.condor.ads import ad_of, expression, is_true, value_of
from sharectl.condor.configuration import MAX_BYTES, ConfigSource, expand, read_text
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.expressions import (
    MAX_CHARACTERS,
    MY,
    TARGET,
    UNSCOPED,
    is_balanced,
    references,
    with_clock,
)
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.errors import InputError
from sharectl.files.files import read_regular
from sharectl.words import quoted

CLOCK = "t1_Clock"
"""Attribute of both ads: the twin's time, whole seconds."""
TRIAL_BYTES = 2**28
SNIPPET = Path(sharectl.__file__).parent / "check" / "execute-point.conf"
"""``config.d/60-sharectl-execute-point.conf`` of this version."""
EXECUTE_POINT = "60-sharectl-execute-point.conf"

_UNREPEATABLE = re.compile(
    r"\b(random|usermap|userhome|currenttime|daytime)\(|\b(abstime|formattime)\(\s*\)",
    re.IGNORECASE,
)
"""Functions whose value is not of the simulation: chance, files and clock of this machine."""
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_READS_ALL = re.compile(
    r"\beval\(|\b(?:MY|TARGET)\b(?!\s*\.)|(?:^|[(,=&|<>!{+*/:?-])\s*\.\s*[a-z]",
    re.IGNORECASE,
)
"""Signs of names that only an evaluation tells."""
_MOMENT = "currenttime"
_ScopedName = tuple[tuple[str, ...], str]
"""Scopes in which an attribute is looked for, the first one first, and its name in lower case."""
_LONE_BACKSLASH = re.compile(r'\\(?!")')


class Condition:
    """An expression of an ad about another one, such as START or Requirements.

    ``place`` is for messages. ``my`` and ``target`` are expressions that the two ads have beside
    their values, and before a value of the same name: attribute in lower case -> text. One that
    HTCondor cannot read is left out, as its daemons do. Raises InputError if ``text`` or another
    one cannot be used.
    """

    most_kept = 200_000
    """Answers that are kept, some 50 MB."""
    trial_seconds = 20.0
    """Deadline of the first look at an expression, which takes some 10 ms in a child."""

    def __init__(
        self,
        text: str,
        place: str,
        my: Optional[Mapping[str, str]] = None,
        target: Optional[Mapping[str, str]] = None,
    ) -> None:
        self.place = place
        sides = {MY: my or {}, TARGET: target or {}}
        own = [(side, name) for side, texts in sides.items() for name in texts]
        written = [text, *(sides[side][name] for side, name in own)]
        if any(len(part) > MAX_CHARACTERS for part in written):
            raise self._error(f"is longer than {MAX_CHARACTERS} characters; write less")
        first, *others = self._tried(partial(_printed, written))
        if first is None:
            raise self._error(f"HTCondor cannot read {quoted(text)}; write a ClassAd expression")
        attributes = {key: printed for key, printed in zip(own, others) if printed is not None}
        reached, reads, self._scoped_names = _reads(first, attributes)
        unrepeatable = next(filter(None, map(_unrepeatable, reached)), None)
        if unrepeatable:
            problem = f"{unrepeatable}() is not of the simulation; write time(), or leave it out"
            raise self._error(problem)
        self.reads_time = any(_clocked(part) != part for part in reached)
        self.reads_all = any(_READS_ALL.search(_STRING.sub('""', part)) for part in reached)
        """Whether it may read other attributes than those below."""
        self.my_names = reads[MY]
        """Attributes of its own ad that it reads, in lower case."""
        self.target_names = reads[TARGET]
        """Attributes of the other ad that it reads, in lower case."""
        self._tree = expression(_clocked(first))
        self._own: dict[str, dict[str, Any]] = {MY: {}, TARGET: {}}
        for (side, name), part in attributes.items():
            self._own[side][name] = expression(_clocked(part))
        self._ads = {side: ad_of(texts) for side, texts in self._own.items()}
        self._memo: dict[bytes, bool] = {}
        self._second = -1
        self._is_tried = False

    @property
    def names(self) -> tuple[Optional[tuple[str, ...]], Optional[tuple[str, ...]]]:
        """Attributes of the first ad and of the second that it may read; None for all."""
        return (None, None) if self.reads_all else (self.my_names, self.target_names)

    def without_owner(self, my: Container[str], target: Container[str]) -> list[tuple[str, str]]:
        """Attributes that neither expression nor ad has: scope by which it is read, and name.

        ``my`` and ``target`` are names that the two ads have, in lower case.
        """
        has = {MY: my, TARGET: target}
        return [
            (scopes[0], written)
            for (scopes, name), written in self._scoped_names.items()
            # A job need not request what it does not use.
            if name != _MOMENT and not name.startswith("request")
            if not any(name in has[scope] for scope in scopes)
        ]

    @property
    def kept(self) -> int:
        """Answers that are kept now."""
        return len(self._memo)

    def is_true(self, my: Mapping[str, Any], target: Mapping[str, Any], now: float) -> bool:
        """Tell if it is true for two ads: attribute in lower case -> value, None without one.

        Values are numbers, booleans, texts, and lists of these. Raises InputError if its first
        evaluation does not end.
        """
        if self.reads_time and int(now) != self._second:
            self._memo.clear()
            self._second = int(now)
        if self.reads_all:
            my, target = dict(sorted(my.items())), dict(sorted(target.items()))
            key = dumps((tuple(my.items()), tuple(target.items())), 2)
        else:
            mine = tuple(map(my.get, self.my_names))
            key = dumps((mine, tuple(map(target.get, self.target_names))), 2)
        answer = self._memo.get(key)
        if answer is None:
            if len(self._memo) >= self.most_kept:
                self._memo.clear()
            answer = self._memo[key] = self._evaluated(my, target, now)
        return answer

    def _evaluated(self, my: Mapping[str, Any], target: Mapping[str, Any], now: float) -> bool:
        self._fill(MY, my, self.my_names, now)
        self._fill(TARGET, target, self.target_names, now)
        ads = self._ads[MY], self._ads[TARGET]
        if not self._is_tried:
            self._tried(partial(_truth, self._tree, *ads))
            self._is_tried = True
        return _truth(self._tree, *ads)

    def _fill(
        self, side: str, values: Mapping[str, Any], names: tuple[str, ...], now: float
    ) -> None:
        """Bring an ad up to date: only attributes that are read cost time."""
        own = self._own[side]
        if self.reads_all:
            self._ads[side] = ad_of(own)
            names = tuple(name for name in values if name not in own)
        ad = self._ads[side]
        for name in names:
            value = values.get(name)
            if value is not None:
                ad[name] = list(value) if isinstance(value, tuple) else value
            elif name in ad:
                del ad[name]
        ad[CLOCK] = int(now)

    def _tried(self, ask: Any) -> Any:
        """Answer of a child: it may end or hang with the expressions of a stranger."""
        answer = ask_all({"": Question(ask, self.trial_seconds, more_bytes=TRIAL_BYTES)})[""]
        if answer.source.problem is not None:
            problem = f"HTCondor cannot evaluate it: {answer.source.problem}; write it simpler"
            raise self._error(problem)
        return answer.value

    def _error(self, problem: str) -> InputError:
        return InputError([f"{self.place}: {problem}"])


class SiteStart(Condition):
    """START of a node."""

    def admits(self, slot: Mapping[str, Any], job: Mapping[str, Any], now: float) -> bool:
        """Tell if it admits a job; attributes are as of `Condition.is_true`."""
        return self.is_true(slot, job, now)


class JobRequirements(Condition):
    """Requirements of a job."""

    def accepts(self, job: Mapping[str, Any], slot: Mapping[str, Any], now: float) -> bool:
        """Tell if a slot meets them; attributes are as of `Condition.is_true`."""
        return self.is_true(job, slot, now)


def _truth(tree: Any, my: Any, target: Any) -> bool:
    return is_true(value_of(tree, my, target))


def _printed(texts: Sequence[str]) -> list[Optional[str]]:
    """Each expression of a configuration as HTCondor prints it; None for an unreadable one."""
    trees = (
        # A comment ends with its line, and a backslash escapes nothing but a quote.
        expression(_LONE_BACKSLASH.sub(r"\\\\", f"({text}\n)")) if is_balanced(text) else None
        for text in texts
    )
    return [None if tree is None else str(tree) for tree in trees]


def _clocked(text: str) -> str:
    return with_clock(text, CLOCK)


def _unrepeatable(text: str) -> str:
    """Function that a simulation cannot repeat; empty without one."""
    match = _UNREPEATABLE.search(_STRING.sub('""', text))
    return (match[1] or match[2]) if match else ""


def _reads(
    text: str, attributes: Mapping[tuple[str, str], str]
) -> tuple[list[str], dict[str, tuple[str, ...]], dict[_ScopedName, str]]:
    """Expressions that an evaluation of ``text`` reaches, the values that it reads, and its words.

    ``attributes``: scope and attribute in lower case -> expression. The values are attributes of
    either ad in lower case, by scope; words are names as they are written.
    """
    scoped_names: dict[_ScopedName, str] = {}
    other = {MY: TARGET, TARGET: MY}
    reached = [text]
    waiting = [(MY, text)]
    seen: dict[tuple[str, str], None] = {}
    while waiting:
        side, part = waiting.pop()
        for reference in references(part):
            name = reference.name.lower()
            scopes = {MY: (side,), TARGET: (other[side],)}.get(reference.scope, (side, other[side]))
            if reference.scope == UNSCOPED and (side, name) in attributes:
                # HTCondor looks into the other ad for a name that its own has not.
                scopes = (side,)
            if not any((scope, name) in attributes for scope in scopes):
                scoped_names.setdefault((scopes, name), reference.name)
            for key in ((scope, name) for scope in scopes):
                if key in seen:
                    continue
                seen[key] = None
                if key in attributes:
                    reached.append(attributes[key])
                    waiting.append((key[0], attributes[key]))
    values = {
        side: tuple(
            name for scope, name in seen if scope == side and (scope, name) not in attributes
        )
        for side in (MY, TARGET)
    }
    return reached, values, scoped_names


# ---- snippets


class NodeStart(NamedTuple):
    """START of a node with the files of its site."""

    site: str
    """START of the site's files alone."""
    start: str
    """START with sharectl's snippet: `site` and its clauses."""
    attributes: Mapping[str, str]
    """Attribute in lower case that the node publishes (STARTD_ATTRS) -> expression."""


def start_of_snippets(paths: Iterable[Path]) -> NodeStart:
    """START of a node that reads a site's files, and sharectl's snippet after them.

    A file named as the snippet is the site's copy of it, and is read in its place.

    Raises InputError for files that HTCondor cannot use, that run commands, or that throw the
    clauses of the snippet away.
    """
    site = [path.resolve() for path in paths]
    whole = site if any(path.name == EXECUTE_POINT for path in site) else [*site, SNIPPET]
    with CondorProcess() as process:
        problems = [problem for path in site for problem in _problems(path, process)]
        if problems:
            raise InputError(problems)
        try:
            alone, _ = _start_of([p for p in site if p.name != EXECUTE_POINT], process)
            start, attributes = _start_of(whole, process)
            clauses = expand(_reading(whole), ["t1_clauses"], process).get("t1_clauses", "")
        except UnreadableConfigurationError as error:
            raise InputError([f"{error.place or site[0]}: {error}"]) from None
    if not clauses or clauses not in start:
        problem = "START has not sharectl's clauses: a file read after the snippet replaces it"
        raise InputError([f"{whole[-1]}: {problem}; name the snippet last, or write $(START)"])
    return NodeStart(alone, start, attributes)


def _problems(path: Path, process: CondorProcess) -> list[str]:
    """Faults of one file, with their places."""
    try:
        content, _ = read_regular(path, MAX_BYTES)
        if content is None:
            return [f"{path}: this is no file; name a file of HTCondor's configuration"]
        read_text(str(path), content.decode("utf-8", "replace"), [], process)
    except OSError as error:
        return [f"{path}: {error.strerror}; name a file of HTCondor's configuration"]
    except UnreadableConfigurationError as error:
        return [f"{error.place or path}: {error}"]
    except InputError as error:
        return list(error.problems)
    return []


def _reading(paths: Iterable[Path]) -> ConfigSource:
    return ConfigSource(text="\n".join(f"include : {path}" for path in paths))


def _start_of(paths: Iterable[Path], process: CondorProcess) -> tuple[str, dict[str, str]]:
    """START of the first slot type, and the expressions that its slots publish."""
    source = _reading(paths)
    macros = expand(source, ["START", "SLOT_TYPE_1_START", "STARTD_ATTRS"], process)
    names = re.split(r"[\s,]+", macros.get("STARTD_ATTRS", "").strip())
    attributes = expand(source, [name for name in names if name], process)
    start = macros.get("SLOT_TYPE_1_START") or macros.get("START") or "True"
    return start, {name.lower(): text for name, text in attributes.items()}
