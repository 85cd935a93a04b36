"""Laws of a package that is not sharectl, and policies of the law `learned`."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, NoReturn, Optional

from sharectl.control.laws import LawStep, Move, Reading

POLICY: dict[str, Any] = {
    "schema_version": 1,
    "features": ["error", "error_idle"],
    "weights": [1.0, -0.5],
    "half_life_seconds": 7200.0,
    "training": {
        "scenarios": ["small-site"],
        "seeds": [1, 2],
        "date": "2026-01-01",
        "score": -1.5,
        "score_before": -2.0,
        "method": "by hand",
    },
}


def write_policy(folder: Path, **changes: Any) -> Path:
    """A policy in a file, with other values of some of its keys."""
    path = folder / "policy.json"
    path.write_text(json.dumps({**POLICY, **changes}), encoding="utf-8")
    return path


def install(folder: Path, **laws: str) -> None:
    """A package with entry points of laws, once ``folder`` is on ``sys.path``."""
    metadata = folder / f"laws_of_{os.getpid()}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: laws\nVersion: 1\n")
    rows = "".join(f"{name} = {value}\n" for name, value in laws.items())
    (metadata / "entry_points.txt").write_text(f"[sharectl.laws]\n{rows}")


def half(policy: Optional[Path]) -> LawStep:
    """Law that moves half of the error, or of what its file says, and counts its steps."""
    part = 0.5 if policy is None else float(policy.read_text(encoding="utf-8"))

    def step(state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Move:
        del dt_seconds
        return Move({"steps": state.get("steps", 0.0) + 1}, reading.error_hs06 * part)

    return step


def broken(policy: Optional[Path]) -> LawStep:
    """Law that fails in every step."""
    del policy

    def step(state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Move:
        raise ZeroDivisionError(f"{len(state)} {reading.most_hs06} {dt_seconds}"[:3])

    return step


def exits(policy: Optional[Path]) -> LawStep:
    """Entry point that ends the process."""
    raise SystemExit(f"no law with {policy}")


def nothing(policy: Optional[Path]) -> None:
    """Entry point without a law."""
    del policy


def at_loading(_policy: Optional[Path]) -> NoReturn:
    """Entry point that ends the process as if all were well."""
    os._exit(0)


class Odd(BaseException):
    """No Exception."""


def _endless() -> None:
    while True:
        pass


def _files_closed() -> None:
    os.closerange(0, 100)


def _memory() -> None:
    bytearray(2**40)


def _grandchild() -> None:
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)


def _world() -> None:
    os.chdir("/")
    os.environ.clear()
    random.seed(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("noise", flush=True)
    os.write(1, b"noise")
    os.write(2, b"noise")


def _raise(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


FAULTS: dict[str, Callable[[], object]] = {
    "exit": lambda: os._exit(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "abort": os.abort,
    "endless": _endless,
    "files": _files_closed,
    "memory": _memory,
    "grandchild": _grandchild,
    "SystemExit": _raise(SystemExit(0)),
    "GeneratorExit": _raise(GeneratorExit()),
    "KeyboardInterrupt": _raise(KeyboardInterrupt()),
    "Odd": _raise(Odd("odd")),
}


def faulty(policy: Optional[Path]) -> LawStep:
    """Law with the fault that its file names."""
    fault = (policy or Path()).read_text(encoding="utf-8")

    def step(_state: Mapping[str, float], reading: Reading, _dt_seconds: float) -> Move:
        _world()
        FAULTS.get(fault, dict)()
        return Move({}, float("nan") if fault == "nan" else reading.error_hs06)

    return step
