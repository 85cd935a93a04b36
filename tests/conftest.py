"""Options of the whole test run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from poolbox.spec import SUITES
from sharectl.condor.library import CondorProcess
from sharectl.report import as_json

settings.register_profile("dev", deadline=None, max_examples=50)
# The same examples for the same commit: what is found by chance is found in everyday runs.
settings.register_profile("ci", deadline=None, max_examples=100, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-golden``, and the versions of tests on pools."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the golden tests see as what they expect",
    )
    parser.addoption(
        "--suite",
        choices=SUITES,
        help="Debian suite whose HTCondor runs (POOLBOX_SUITE, or trixie)",
    )
    parser.addoption(
        "--semantics-suite",
        choices=SUITES,
        help="suite on which tests marked `semantics` run as well",
    )


@pytest.fixture(scope="module")
def htcondor() -> Iterator[CondorProcess]:
    """HTCondor's library in a process."""
    with CondorProcess(deadline_seconds=60) as process:
        yield process


@pytest.fixture(autouse=True)
def documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold every document that a command prints in this process against its schema."""
    dumps = as_json.dumps

    def checked(kind: str, content: Any) -> str:
        from tests.schemas import problems  # noqa: PLC0415 - few tests print JSON

        text = dumps(kind, content)
        wrong = problems(json.loads(text))
        assert wrong == [], f"{kind}: {'; '.join(wrong)}: packaging/json_documents.yaml"
        return text

    monkeypatch.setattr(as_json, "dumps", checked)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Comparison of a text with a file in ``tests/golden``; ``--update-golden`` writes it."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        expected = path.read_text(encoding="utf-8")
        assert text == expected, f"run pytest --update-golden and look at {path}"

    return compare


@pytest.fixture
def listing(
    golden: Callable[[str, str], None],
) -> Callable[[str, Callable[[str], Iterable[str]], int], None]:
    """Outcomes of the inputs in a golden file, so many lines of it that are JSON strings."""

    def compare(name: str, outcome: Callable[[str], Iterable[str]], cases: int) -> None:
        path = Path(__file__).parent / "golden" / name
        inputs = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] == '"']
        assert len(inputs) == cases
        lines = (
            [text, *(f"  {line}" for line in outcome(json.loads(text))), ""] for text in inputs
        )
        golden(name, "\n".join(line for rows in lines for line in rows))

    return compare
