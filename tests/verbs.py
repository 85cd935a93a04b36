"""Every verb of the command line, and runs as a shell, cron or a person starts them."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

from sharectl.cli.main import VERBS, build_parser, main

DEADLINE_SECONDS = 500
RAISED, FLUSH_FAILED = 121, 120
"""Exit codes of an exception, and of Python where the last flush of stdout fails."""
LEAST = {
    "explain group name": "cms",
    "explain node name": "wn-0",
    "reason": "cooling",
    "over": "control.law=latest",
    "request": "cpus=1",
}
"""Argument of a verb -> a value that it takes; that of others is 1."""


@dataclass(frozen=True)
class Verb:
    """A verb with its subject, such as ``explain node``."""

    words: tuple[str, ...]
    parser: argparse.ArgumentParser

    def __str__(self) -> str:
        return " ".join(self.words)

    @property
    def actions(self) -> list[argparse.Action]:
        """Options and arguments, but for ``--help``."""
        return [action for action in self.parser._actions if action.dest != "help"]  # noqa: SLF001 - no other way

    def arguments(self, values: dict[str, str], config: Path) -> list[str]:
        """The least that the verb has to be given; ``values`` by dest, or by words and dest."""
        given, values = list(self.words), {**LEAST, **values}
        for action in self.actions:
            value = values.get(f"{self} {action.dest}", values.get(action.dest, "1"))
            choices = list(action.choices or ())
            if action.dest == "config" and action.option_strings:
                given += ["--config", str(config)]
            elif action.option_strings and action.required:
                given.append(action.option_strings[-1])
                if action.nargs != 0:
                    given.append(choices[0] if choices else value)
            elif not action.option_strings and (
                action.nargs not in ("?", "*") or f"{self} {action.dest}" in values
            ):
                given.append(choices[0] if choices else value)
        return given


def all_verbs() -> list[Verb]:
    """Every verb that can be run."""
    return [
        verb for name in VERBS for verb in _below((), build_parser(name)) if verb.words[0] == name
    ]


def _below(words: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[Verb]:
    parts = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
    for part in parts:
        for name, below in part.choices.items():
            yield from _below((*words, name), below)
    if not parts:
        # Some add their arguments only once they are to parse.
        with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            parser.parse_known_args([])
        yield Verb(words, parser)


class Terminal(io.StringIO):
    """Output that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Ended:
    """What became of a run."""

    code: int
    """Below 0: the signal that ended it."""
    out: str
    err: str

    @property
    def words(self) -> str:
        """Output with its lines joined."""
        return " ".join(self.out.split())

    @property
    def json(self) -> dict[str, Any]:
        """Output as JSON, of a command that went well."""
        assert self.code == 0, self.err
        content: dict[str, Any] = json.loads(self.out)
        return content


def run(arguments: Sequence[str], before: Callable[[], object] = lambda: None) -> Ended:
    """Run the command in a forked process with no stdin; ``before`` changes that process."""
    pipes = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        code = FLUSH_FAILED
        try:
            signal.alarm(DEADLINE_SECONDS)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, (_, end) in enumerate(pipes, 1):
                os.dup2(end, number)
            os.closerange(3, 256)
            sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
            set_output("utf-8")
            before()
            code = _code(arguments)
            sys.stdout.flush()
        finally:
            os._exit(code)
    for _, end in pipes:
        os.close(end)
    out, err = (_whole(end) for end, _ in pipes)
    _, status = os.waitpid(pid, 0)
    return Ended(os.waitstatus_to_exitcode(status), out, err)


def set_output(encoding: str, numbers: Sequence[int] = (1, 2)) -> None:
    """Make standard output and error anew of their descriptors."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream: Optional[Any] = None
        if number in numbers:
            raw = io.BufferedWriter(io.FileIO(number, "wb", closefd=False))
            stream = io.TextIOWrapper(raw, encoding=encoding, line_buffering=number == 2)
        setattr(sys, name, stream)


def _code(arguments: Sequence[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException as error:  # noqa: BLE001 - as Python itself shows it
        sys.excepthook(type(error), error, error.__traceback__)
        return RAISED


def _whole(end: int) -> str:
    with os.fdopen(end, "rb") as stream:
        return stream.read().decode("utf-8", "replace")
