"""Comments of config.d: defaults, files, commands and attributes that they name are so.

Each other sentence is tied in config_comments.txt to the test that would fail if it were false: a
new sentence, or another wording, needs its test there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sharectl.cli.main import VERBS

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config.d"
FILES = sorted(path for path in CONFIG.rglob("*") if path.suffix in (".conf", ".cpf", ".map"))
TEXT = {path.relative_to(CONFIG).as_posix(): path.read_text() for path in FILES}
_SENTENCE = re.compile(r"(?<=[.]) (?=\S)(?!When:)")
HELD = {
    pattern: {
        sentence: test
        for row in rows.strip().splitlines()
        for words, _, test in [row.rpartition(" -> ")]
        for sentence in _SENTENCE.split(words)
    }
    for pattern, _, rows in (
        part.partition("\n")
        for part in Path(__file__).with_name("config_comments.txt").read_text().split("\n## ")[1:]
    )
}
"""Files -> their sentences, each with the test behind it."""
_DEFAULT = re.compile(r"(?:Boolean|Seconds|Cores), default (True|False|\d+)\.")
_SET = re.compile(r"#?(?:STARTD\.|SLOT_TYPE_\d_)?([A-Za-z]\w+) *@?=|(?:if|use) ")
_PARAMS = """
import json, sys, htcondor2
print(json.dumps({name: htcondor2.param.get(name) for name in json.load(sys.stdin)}, default=str))
"""


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Comments of a file, and the line behind each."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        words = line.strip()
        if words.startswith("#") and not _SET.match(words) and not words.startswith("# ----"):
            block.append(words.lstrip("# "))
        elif block:
            yield " ".join(block), words
            block = []


def sentences(name: str) -> Iterator[tuple[str, str]]:
    """Sentences of a file, and the line behind the comment of each."""
    for block, line in blocks(TEXT[name]):
        for sentence in _SENTENCE.split(block):
            yield sentence, line


def section(name: str) -> str:
    """Pattern of the section of config_comments.txt that a file belongs to."""
    return next(pattern for pattern in HELD if Path(name).match(pattern))


def test_defaults_are_those_of_htcondor_or_of_the_file() -> None:
    rows: list[tuple[str, str, str, str]] = []
    for name in TEXT:
        for sentence, line in sentences(name):
            match, knob = _DEFAULT.fullmatch(sentence), _SET.match(line)
            if match:
                assert knob, f"{name}: {sentence}"
                rows.append((name, knob[1], match[1], line[knob.end() :].strip()))
    asked = subprocess.run(
        [sys.executable, "-c", _PARAMS],
        input=json.dumps([knob for _, knob, _, _ in rows]),
        env={"PATH": os.environ["PATH"], "CONDOR_CONFIG": os.devnull},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    known = json.loads(asked.stdout)
    for name, setting, default, value in rows:
        real = value if setting.startswith("SHARECTL_") else known[setting]
        assert str(real).lower() == default.lower(), f"{name}: {setting} is {real}"
    assert len(rows) > 15


@pytest.mark.parametrize("name", TEXT)
def test_files_commands_and_attributes_exist(name: str) -> None:
    words = " ".join(block for block, _ in blocks(TEXT[name]))
    for path in re.findall(r"\bdocs/[\w-]+\.md|\bexamples/[\w.-]+\.\w+", words):
        assert (ROOT / path).exists() or (CONFIG / path).exists(), path
    for pattern in re.findall(r"\b\d\d-[\w.*-]+\.conf", words):
        assert [*CONFIG.rglob(pattern)], pattern
    for verb in re.findall(r"`sharectl ([a-z]+)", words):
        assert verb in VERBS, verb
    code = "\n".join(TEXT.values()) + (ROOT / "startd_cron" / "job_ctl.py").read_text()
    code += (CONFIG / "examples" / "overheat.py").read_text()
    for attribute in re.findall(r"\bt1_\w+", words):
        uses = re.findall(rf"^(?!\s*# ).*\b{attribute}", code, re.MULTILINE)
        assert uses, attribute


@pytest.mark.parametrize("name", TEXT)
def test_each_sentence_has_its_test(name: str) -> None:
    held = HELD[section(name)]
    for sentence, _ in sentences(name):
        if _DEFAULT.fullmatch(sentence):
            continue
        assert sentence in held, f"{name}: {sentence}: name the test that would fail"
        path, _, function = held[sentence].partition("::")
        assert f"def {function}(" in (ROOT / "tests" / path).read_text(), held[sentence]


def test_no_sentence_is_held_that_is_gone() -> None:
    seen: dict[str, set[str]] = {pattern: set() for pattern in HELD}
    for name in TEXT:
        seen[section(name)].update(sentence for sentence, _ in sentences(name))
    gone = {pattern: rows.keys() - seen[pattern] for pattern, rows in HELD.items()}
    assert not any(gone.values()), gone
