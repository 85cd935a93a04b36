"""Write sharectl.1 and sharectl.yaml.5: ``python packaging/man.py DIR``.

The first is made from the parser of the command, the second from docs/configuration.md. Their date
is SOURCE_DATE_EPOCH, so that the same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from argparse_manpage.manpage import Manpage
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sharectl import __version__
from sharectl.cli.main import VERBS, build_parser
from sharectl.errors import EXIT_CODES

REFERENCE = Path(__file__).parents[1] / "docs" / "configuration.md"
ABOUT = {
    "sharectl": "keep the groups of an HTCondor pool at their promised shares",
    "sharectl.yaml": "configuration of sharectl",
}
_SEE = {
    "sharectl": ".BR sharectl.yaml (5),\n.BR condor_status (1)",
    "sharectl.yaml": ".BR sharectl (1)",
}
_REQUEST = re.compile(r"^(?=[.'])", re.MULTILINE)
_LONG_WORD = re.compile(r"\S{60,}")
_BREAKS = re.compile(r"(?<=[/?&])")
_FONTS = {"strong_open": r"\fB", "em_open": r"\fI", "strong_close": r"\fR", "em_close": r"\fR"}


# ---- the command


def command_page() -> str:
    """Page of the command, with every verb and its epilog."""
    os.environ["COLUMNS"] = "10000"  # a usage is one line, which the reader's terminal breaks
    parser = build_parser(*VERBS)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = None
    for action in parser._actions:  # noqa: SLF001 - a page has all verbs, not those of --help alone
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            action.help = None
    for verb in _parsers(parser):
        verb.description = _as_written(verb.epilog or "")  # its help is there already
    page = Manpage(parser, format="single-commands-section")
    page.description, page.section = ABOUT["sharectl"], 1
    page.date = _date()
    page.source, page.manual = f"sharectl {__version__}", "sharectl"
    page.add_section("exit status", "=", _exit_codes())
    page.add_section("see also", "=", _SEE["sharectl"])
    head, _, body = str(page).partition("\n")
    return _tidy(f"{head.replace(chr(92), '')}\n{body}")


def _tidy(page: str) -> str:
    """Page whose lines are not stretched, with paragraphs in the place of blank lines."""
    page = page.replace("\n", "\n.ad l\n.nh\n", 1)
    page = re.sub(r"\n\n+", "\n.PP\n", re.sub(r"\n+(?=\n\.)", "", page))
    return re.sub(r"^(\.S[HS] .*\n)\.PP\n", r"\1", page, flags=re.MULTILINE)


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list of them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for verb in action.choices.values():
                yield verb
                yield from _parsers(verb)


def _as_written(epilog: str) -> str:
    """Epilog in requests of roff that keep its lines, where it has several."""
    text = _REQUEST.sub(" ", epilog.replace("%%", "%").strip("\n"))
    return f".nf\n{text}\n.fi" if "\n" in text else text


def _date() -> str:
    """Day of the sources, in UTC: argparse-manpage takes that of the time zone."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def _exit_codes() -> str:
    return "\n".join(f".TP\n.B {code}\n{_text(words)}" for code, words in EXIT_CODES.items())


# ---- the configuration


def reference_page() -> str:
    """Page of the configuration file."""
    name = "sharectl.yaml"
    tokens = MarkdownIt("commonmark").enable("table").parse(REFERENCE.read_text(encoding="utf-8"))
    page = "\n".join(
        (
            f'.TH {name.upper()} 5 "{_date()}" "sharectl {__version__}" sharectl',
            f".SH NAME\n{name} \\- {ABOUT[name]}",
            ".SH DESCRIPTION",
            *_blocks(tokens[3:]),  # the title is the name
            f".SH SEE ALSO\n{_SEE[name]}\n",
        )
    )
    return _tidy(page)


def _blocks(tokens: Sequence[Token]) -> Iterator[str]:
    cells: list[str] = []
    for before, token in zip(tokens, tokens[1:]):
        if token.type == "fence":
            yield f".PP\n.nf\n{_text(token.content.rstrip())}\n.fi"
        elif token.type == "tr_open":
            cells = []
        elif token.type == "tr_close" and cells:
            key, values, default, meaning = cells
            fallback = default if default.startswith("required") else f"default: {default}"
            yield f".TP\n{key}\n{meaning}\n{values}; {fallback}."
        elif token.type == "inline" and before.type == "heading_open":
            yield f".SH {_inline(token)}"
        elif token.type == "inline" and before.type == "td_open":
            cells.append(_inline(token))
        elif token.type == "inline" and before.type == "paragraph_open":
            yield (".IP \\(bu 2\n" if before.level else ".PP\n") + _inline(token)


def _inline(token: Token) -> str:
    """Text in roff, code and emphasis in their fonts; of a link its text."""
    parts = []
    for child in token.children or ():
        if child.type == "code_inline":
            code = _LONG_WORD.sub(lambda word: _BREAKS.sub(r"\\:", word[0]), _text(child.content))
            parts.append(rf"\fB{code}\fR")
        elif child.type == "softbreak":
            parts.append("\n")
        else:
            parts.append(_FONTS.get(child.type, _text(child.content)))
    return _REQUEST.sub(r"\\&", "".join(parts))


def _text(text: str) -> str:
    return _REQUEST.sub(r"\\&", text.replace("\\", r"\e").replace("-", r"\-"))


def main(folder: Path) -> None:
    """Write both pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sharectl.1").write_text(command_page(), encoding="utf-8")
    (folder / "sharectl.yaml.5").write_text(reference_page(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
