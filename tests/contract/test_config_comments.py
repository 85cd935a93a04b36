"""Comments of config.d: defaults, files, commands and attributes that they name are so."""

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


def test_defaults_are_those_of_htcondor_or_of_the_file() -> None:
    rows: list[tuple[str, str, str, str]] = []
    for name, text in TEXT.items():
        for block, line in blocks(text):
            knob = _SET.match(line)
            for default in _DEFAULT.findall(block):
                assert knob, f"{name}: {block}"
                rows.append((name, knob[1], default, line[knob.end() :].strip()))
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
