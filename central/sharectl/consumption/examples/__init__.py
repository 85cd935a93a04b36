"""Ready examples of consumption policies: YAML files whose first line says what they are for."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from sharectl.errors import InputError
from sharectl.words import quoted

_FOLDER = Path(__file__).parent


def examples() -> dict[str, str]:
    """Name → what the example is for, in a line."""
    return {path.stem: _first_line(path) for path in sorted(_FOLDER.glob("*.yaml"))}


def example(name: str) -> str:
    """YAML text of the example ``name``.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    names = list(examples())
    if name not in names:
        near = get_close_matches(name, names, n=1)
        advice = f"did you mean {near[0]}?" if near else f"write one of {', '.join(names)}"
        raise InputError([f"there is no example {quoted(name)}; {advice}"])
    return (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def _first_line(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
