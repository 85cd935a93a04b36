"""The configuration that is rendered, byte for byte.

That of the examples is shipped as ``config.d/examples/70-consumption-*.conf``: ``pytest
--update-golden`` writes it.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.consumption.file import example, examples

FOLDER = Path(__file__).parent / "consumption"
SHIPPED = Path(__file__).parents[2] / "config.d" / "examples"
CASES = [*examples(), "slot-types", "beside-startd"]


def policies(case: str) -> str:
    golden = FOLDER / f"{case}.yaml"
    return example(case) if case in examples() else golden.read_text(encoding="utf-8")


def rendered(case: str) -> Path:
    """File with the rendered policies of ``case``."""
    return (
        SHIPPED / f"70-consumption-{case}.conf" if case in examples() else FOLDER / f"{case}.conf"
    )


def test_every_shipped_policy_is_an_example() -> None:
    shipped = {*SHIPPED.glob("70-consumption-*.conf")}
    assert shipped == {
        SHIPPED / f"70-consumption-{name}.conf" for name in (*examples(), "access-point")
    }


@pytest.mark.parametrize("case", CASES)
def test_rendered(
    case: str,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    path = tmp_path / f"{case}.yaml"
    path.write_text(policies(case), encoding="utf-8")
    assert main(["consumption", "render", str(path)]) == 0
    seen = capsys.readouterr()
    expected = rendered(case)
    if request.config.getoption("--update-golden"):
        expected.write_text(seen.out, encoding="utf-8")
    assert seen.out == expected.read_text(encoding="utf-8")


def test_an_example_can_be_rendered_through_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["consumption", "examples", "memory-centric"]) == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(capsys.readouterr().out.encode())))
    assert main(["consumption", "render", "-"]) == 0
    assert capsys.readouterr().out == rendered("memory-centric").read_text(encoding="utf-8")


def test_examples_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["consumption", "examples"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(examples())
    with pytest.raises(SystemExit):
        main(["consumption", "examples", "static"])
    assert "did you mean static-slot?" in capsys.readouterr().err
