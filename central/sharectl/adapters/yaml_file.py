"""A YAML file of an operator: its text, and the lines that say what is wrong in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sharectl.adapters import pipes
from sharectl.adapters.yaml_syntax import Fault, column_of, line_of, place
from sharectl.adapters.yaml_syntax import Path as ValuePath
from sharectl.errors import ConfigError

MAX_BYTES = 2**20
"""Size of a file that is still read."""
PIPE_SECONDS = 5.0
"""How long a pipe may be silent."""
MAX_PROBLEMS = 100
"""Problems that are listed one by one."""


def text_of(path: Path, least: str, how: str = "") -> str:
    """Text of the file at ``path``; in an error ``least`` says what to write where there is none, ``how`` how to name it.

    Raises
    ------
    ConfigError
        If it cannot be read.
    """
    try:
        with pipes.open_bytes(path, PIPE_SECONDS) as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigError([f"{path}: there is no such file; {least}, or name another file{how}"]) from error
    except IsADirectoryError as error:
        raise ConfigError([f"{path}: is a directory; name a file in it"]) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError([f"{path}: cannot be read: {reason}; check its owner and mode"]) from error
    if len(content) > MAX_BYTES:
        raise ConfigError(
            [f"{path}: has more than {MAX_BYTES} bytes, so it is no configuration; name another file"]
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise ConfigError(
            [f"{path}:{line}: byte 0x{byte:02X} is not UTF-8; save the file as UTF-8"]
        ) from error


def not_following(faults: Iterable[Fault], refused: Iterable[ValuePath]) -> list[Fault]:
    """``faults`` but for those that are there only since a value was refused: below it, at it, or in what holds it."""
    refused = set(refused)
    holding = {path[:length] for path in refused for length in range(len(path))}

    def follows(at: ValuePath) -> bool:
        return at in holding or any(at[:length] in refused for length in range(len(at) + 1))

    return [fault for fault in faults if not follows(fault.path or ())]


def problem_lines(name: str, text: str, faults: Iterable[Fault]) -> list[str]:
    """``NAME:LINE: where: what is wrong; what to write instead``, in the order of the lines."""
    ordered = sorted(faults, key=lambda fault: fault.index)
    lines = [_line(name, text, fault) for fault in ordered[:MAX_PROBLEMS]]
    if len(ordered) > MAX_PROBLEMS:
        line = line_of(text, ordered[MAX_PROBLEMS].index)
        lines.append(
            f"{name}:{line}: {len(ordered) - MAX_PROBLEMS} more problems from here on; mend these first"
        )
    return lines


def _line(name: str, text: str, fault: Fault) -> str:
    line = line_of(text, fault.index)
    if fault.path is None:
        return f"{name}:{line}:{column_of(text, fault.index)}: {fault.message}"
    where = f"{place(fault.path)}: " if fault.path else ""
    return f"{name}:{line}: {where}{fault.message}"
