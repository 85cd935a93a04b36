"""``sharectl completion``: what a shell needs to complete the command."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sharectl.cli import options

SHELLS = ("bash", "zsh", "fish")
_EPILOG = 'For the running shell: eval "$(sharectl completion bash)"; packages bring the files.'


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="one of %(choices)s")


def _run(arguments: argparse.Namespace) -> int:
    """Print the completion of all verbs."""
    import shtab

    from sharectl.cli.main import build_parser, installed_verbs

    parser = build_parser(*installed_verbs())
    for action in _actions(parser):
        if action.help == argparse.SUPPRESS:
            action.help = None  # shtab takes no verbs that a group of --help lists
        if action.type in (Path, options.path, options.output):
            completer = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE
            action.complete = completer  # type: ignore[attr-defined] # where shtab looks for it
    print(shtab.complete(parser, arguments.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Options and arguments of a parser and of all verbs in it."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list of them
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            parsers: dict[str, Any] = action.choices
            for verb in parsers.values():
                yield from _actions(verb)


VERBS = {"completion": options.Verb(_run, _add, shared=(), epilog=_EPILOG)}
