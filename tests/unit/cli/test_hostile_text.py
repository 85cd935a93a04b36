"""No text from outside steers a terminal or begins a line, whatever verb quotes it."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import pytest

from tests.unit.cli.conftest import configured
from tests.verbs import Ended, Verb, all_verbs, run

FORGED = "forged"
CONTROLS = "\x1b[31m\r\x07\x7f\x9b\u0085\u2028\u202e\udcff"
HOSTILE = f"x{CONTROLS}\n{FORGED}\n"
KEY = json.dumps(HOSTILE)
CONTENTS = {
    "key": f'{{"schema_version": 1, {KEY}: {KEY}}}',
    "values": json.dumps([{"GlobalJobId": HOSTILE, HOSTILE: HOSTILE, "JobStatus": 4}]),
    "yaml": f"groups: {{{KEY}: {{pledge_hs06: {KEY}}}}}\n{KEY}: {KEY}\n? [{KEY}]\n",
    "text": f"A{HOSTILE}A{CONTROLS} = {CONTROLS}\n2 {CONTROLS} alice 6 x 1\n",
}
"""Kind -> content of a file of strangers."""
ABSENT = {"scenarios": "absent.yaml", "scenario": "absent.yaml"}
FILES = ("FILE", "DIR", "SCENARIO", "NAME[,…]")


def assert_harmless(ended: Ended, words: object) -> None:
    """Assert that an output has no control character, and no line that text from outside made."""
    for output in (ended.out, ended.err):
        bad = {
            character for character in output if not (character.isprintable() or character == "\n")
        }
        assert not bad, (words, output)
        assert not [
            line
            for line in output.split("\n")
            if line.removeprefix("sharectl: ").startswith(FORGED)
        ], (words, output)


def with_value(verb: Verb, action: argparse.Action, value: str, config: Path) -> list[str]:
    """Arguments of a verb, in which one option or argument has ``value``."""
    words = verb.arguments({**ABSENT, "output": f"{config.parent}/out"}, config)
    if action.option_strings:
        return [*words, f"{max(action.option_strings, key=len)}={value}"]
    return verb.arguments({**ABSENT, f"{verb} {action.dest}": value}, config)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    more = "pool: {collector: '127.0.0.1:1', collector_deadline_seconds: 5}\n"
    return configured(tmp_path, more)


@pytest.mark.parametrize("verb", all_verbs(), ids=str)
def test_arguments(verb: Verb, config: Path) -> None:
    words = verb.arguments(ABSENT, config)
    assert_harmless(run([*words, HOSTILE, f"--{HOSTILE}={HOSTILE}"]), "unknown")
    assert_harmless(run([*verb.words[:-1], HOSTILE]), "verb")
    for action in verb.actions:
        if action.nargs != 0:
            words = with_value(verb, action, HOSTILE, config)
            assert_harmless(run(words, lambda: os.chdir(config.parent)), words)


@pytest.mark.parametrize("verb", all_verbs(), ids=str)
def test_files_of_strangers(verb: Verb, config: Path) -> None:
    folder = config.parent / f"f{CONTROLS}\n{FORGED}"
    folder.mkdir()
    for kind, content in CONTENTS.items():
        path = folder / f"{kind}.yaml"
        path.write_text(content, encoding="utf-8", errors="surrogateescape")
        for action in verb.actions:
            if action.metavar in FILES:
                words = with_value(verb, action, str(path), config)
                assert_harmless(run(words), (kind, words))


@pytest.mark.parametrize("kind", CONTENTS)
def test_own_files(kind: str, config: Path) -> None:
    for name in ("state.json", "places.json", "disabled", "cric.json", "ledger.sqlite"):
        path = config.parent / name
        path.write_text(CONTENTS[kind], encoding="utf-8", errors="surrogateescape")
        for words in ("status", "status --json", "cycle", "pledges", "plan --diff", "enable"):
            assert_harmless(run([*words.split(), "--config", str(config)]), (name, words))
        path.unlink(missing_ok=True)
