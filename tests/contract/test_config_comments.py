"""Comments of config.d: defaults, files, commands and attributes that they name are so.

Sentences of the files in config_comments.txt are each tied to the test that would fail if they were
false: a new sentence, or another wording, needs its test there.
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
HELD = dict(
    part.partition("\n")[::2]
    for part in Path(__file__).with_name("config_comments.txt").read_text().split("\n## ")[1:]
)
"""File -> its sentences, each with `-> TEST` behind it."""
TEXT = {path.relative_to(CONFIG).as_posix(): path.read_text() for path in FILES}
_PARAMS = """
import json, sys, htcondor2
print(json.dumps({name: htcondor2.param.get(name) for name in json.load(sys.stdin)}, default=str))
"""
_HEADING = ("Where:", "When:")
"""Begins of sentences on the installation, which no test holds."""


def comments(text: str) -> Iterator[str]:
    """Comments of a file, one a block."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.lstrip().startswith("#") and not re.match(r"\s*#[A-Za-z_]+ *=", line):
            block.append(line.lstrip(" #"))
        elif block:
            yield " ".join(" ".join(block).split())
            block = []


def knobs_with_defaults() -> Iterator[tuple[str, str, str, str]]:
    """File, knob, the default that its comment tells, and its value in the file."""
    knob = re.compile(
        r"((?:^[ ]*#.*\n)+)^ *#?(?:SLOT_TYPE_\d_)?([A-Z]\w+) *@?= *(.*)", re.MULTILINE
    )
    for name, text in TEXT.items():
        for block, knob_name, value in knob.findall(text):
            words = " ".join(line.strip(" #") for line in block.splitlines())
            default = re.search(r"\bdefault (?:is )?(True|False|\d+)\b(?! %)", words)
            if default:
                yield name, knob_name, default[1], value


def test_defaults_are_those_of_htcondor_or_of_the_file() -> None:
    rows = list(knobs_with_defaults())
    names = sorted({knob for _, knob, _, _ in rows})
    asked = subprocess.run(
        [sys.executable, "-c", _PARAMS],
        input=json.dumps(names),
        env={"PATH": os.environ["PATH"], "CONDOR_CONFIG": os.devnull},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    known = json.loads(asked.stdout)
    checked = 0
    for name, knob, default, value in rows:
        real = value if knob.startswith("SHARECTL_") else known[knob]
        if re.fullmatch(r"(?!None)\w+", str(real)):
            checked += 1
            assert str(real).lower() == default.lower(), f"{name}: {knob}"
    assert checked > 20


@pytest.mark.parametrize("name", TEXT)
def test_files_commands_and_attributes_exist(name: str) -> None:
    words = " ".join(comments(TEXT[name]))
    for path in re.findall(r"\bdocs/[\w-]+\.md|\bexamples/[\w.-]+\.\w+", words):
        assert (ROOT / path).exists() or (CONFIG / path).exists(), path
    for verb in re.findall(r"`sharectl ([a-z]+)|`(explain|status|report|replay|snapshot)\b", words):
        assert "".join(verb) in VERBS, verb
    code = "\n".join(TEXT.values()) + (ROOT / "startd_cron" / "job_ctl.py").read_text()
    code += (CONFIG / "examples" / "overheat.py").read_text()
    for attribute in re.findall(r"\bt1_\w+", words):
        uses = re.findall(rf"^(?!\s*#).*\b{attribute}\b", code, re.MULTILINE)
        assert uses or attribute == "t1_wn_hs06", attribute


@pytest.mark.parametrize("name", HELD)
def test_each_sentence_has_its_test(name: str) -> None:
    rows = [row.rpartition(" -> ")[::2] for row in HELD[name].strip().splitlines()]
    sentences = [
        sentence
        for sentence in re.split(r"(?<=[.]) (?=\S)", " ".join(comments(TEXT[name])))
        if not sentence.startswith(_HEADING)
    ]
    assert [sentence for sentence, _ in rows] == sentences
    for sentence, test in rows:
        path, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / path).read_text(), sentence
