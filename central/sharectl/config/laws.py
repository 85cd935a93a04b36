"""Laws that are loaded: `learned` with its policy, and those that other packages have installed.

An installed law runs in a separate process: it cannot end, stop or change a cycle.

A package installs a law as an entry point of the group `sharectl.laws`. It names a function that
takes the file of `control.policy`, None without it, and returns a
`sharectl.control.laws.LawStep`.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import sys
import time
import weakref
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional

from sharectl.condor.deadline import end_with, limit_memory
from sharectl.config.groups import place_of
from sharectl.config.load import steering_of
from sharectl.config.model import OBSERVE, Config
from sharectl.control.laws import (
    LAWS,
    LEARNED,
    LOADED,
    Control,
    LawStep,
    Move,
    Reading,
    checked,
    words_of,
)
from sharectl.control.steering import SteeringConfig
from sharectl.errors import ConfigError, NewerFileError
from sharectl.plan.plan import PlanConfig
from sharectl.shares.groups import GroupTree
from sharectl.words import printable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PATIENCE_SECONDS = 20.0
"""Time that a law may take in all, without steps of less than `STEP_SECONDS`."""
STEP_SECONDS = 0.1
_MORE_BYTES = 2**31
"""Memory of a law."""
_MOST_BYTES = 2**20


class LawProcess:
    """Step of a law that a child loads and runs, as `LawStep`.

    The child leads a process group, and has no file of its parent but the channel. After it ended,
    or answered too late, every step fails. A process that is forked later starts its own.
    """

    def __init__(self, load: Callable[[], LawStep]) -> None:
        """Load the law; raises ValueError if that fails."""
        self._load = load
        self._start()

    def _start(self) -> None:
        self._problem, self._patience_seconds = "", PATIENCE_SECONDS
        self._channel, far = socket.socketpair()
        self._owner = os.getpid()
        pid = os.fork()
        if pid == 0:
            _serve(self._load, far, self._owner)
        far.close()
        self._end = weakref.finalize(self, _end, pid, self._owner, self._channel)
        self._ask(b"")

    def __call__(self, state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Move:
        """Answer of the law; raises ValueError if it failed."""
        if self._owner != os.getpid():
            self._start()
        return Move(*self._ask(pickle.dumps((dict(state), reading, dt_seconds))))

    def _ask(self, question: bytes) -> Any:
        began, answer = time.monotonic(), b""
        try:
            self._channel.settimeout(max(0.001, self._patience_seconds))
            if question:  # a law that failed to load has closed the channel after its answer
                self._channel.sendall(question)
            while not answer.endswith(b"\n") and len(answer) < _MOST_BYTES:
                left_seconds = began + self._patience_seconds - time.monotonic()
                self._channel.settimeout(max(0.001, left_seconds))
                answer += self._channel.recv(_MOST_BYTES) or b"\n"
            value, problem = json.loads(answer)
        except Exception as error:
            late = isinstance(error, socket.timeout)
            words = f"no answer in {PATIENCE_SECONDS:g} s" if late else "its process ended"
            self._problem = self._problem or words
            self._end()
            raise ValueError(self._problem) from error
        seconds = time.monotonic() - began
        self._patience_seconds -= seconds if seconds > STEP_SECONDS else 0.0
        if problem:
            raise ValueError(problem)
        return value


def _serve(load: Callable[[], LawStep], channel: socket.socket, parent: int) -> NoReturn:
    """Load the law and answer questions in the child, until the parent ends it."""
    try:
        os.setpgid(0, 0)
        end_with(parent)
        limit_memory(_MORE_BYTES)
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nothing, standard)
        os.closerange(3, channel.fileno())
        os.closerange(channel.fileno() + 1, 2**16)
        sys.stdout = sys.stderr = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        questions = channel.makefile("rb")
        laws: list[LawStep] = []
        answer: Any = None
        problem = ""
        while not problem or laws:
            answer, problem = None, ""
            try:
                if laws:
                    answer = checked(laws[0](*pickle.load(questions)))  # noqa: S301 - of the parent
                else:
                    laws.append(load())
            except BaseException as error:  # noqa: BLE001 - a stranger's code may raise anything
                problem = words_of(error)
            channel.sendall(json.dumps((answer, problem)).encode() + b"\n")
    finally:
        os._exit(1)


def _end(pid: int, owner: int, channel: socket.socket) -> None:
    """End the child and all that it started in its group."""
    channel.close()
    if owner == os.getpid():
        os.kill(pid, signal.SIGKILL)  # it may not lead its group yet
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


GROUP = "sharectl.laws"
MAX_BYTES = 2**16
"""Size of a policy of `learned` that is still read."""
_MOST_DIGESTED = 2**26
"""Bytes of a policy of an installed law that count for its digest."""
_MOST_PROBLEMS, _MOST_WORDS = 10, 300
"""Problems of a policy in a message, and characters of each."""


def names() -> list[str]:
    """Names of all laws, sharectl's first."""
    own = [*LAWS, *LOADED]
    return [*own, *sorted(installed().keys() - set(own))]


def installed() -> Mapping[str, set[EntryPoint]]:
    """Name of each installed law, and its entry points: two where packages have the same name."""
    from importlib import metadata

    points: dict[str, set[EntryPoint]] = {}
    for package in metadata.distributions():
        for point in package.entry_points:
            if point.group == GROUP:
                points.setdefault(point.name, set()).add(point)
    return points


def with_laws(steering: SteeringConfig) -> SteeringConfig:
    """``steering`` with its laws loaded; raises ConfigError with all problems of laws that act.

    A shadow law that cannot be loaded fails in every cycle instead: it must not stop one.
    """
    loaded, of_acting, _ = _with_laws(steering)
    if of_acting:
        raise ConfigError(of_acting)
    return loaded


def problems(steering: SteeringConfig) -> list[str]:
    """Problems of all laws, also of one that is a shadow."""
    _, of_acting, of_shadows = _with_laws(steering)
    return list(dict.fromkeys((*of_shadows, *of_acting)))


def _with_laws(steering: SteeringConfig) -> tuple[SteeringConfig, list[str], list[str]]:
    """``steering`` with its laws loaded, problems of those that act, and those of shadows."""
    of_acting: list[str] = []
    of_shadows: list[str] = []

    def loaded(control: Control, place: str) -> Control:
        shadow = control.shadow
        if shadow is not None:
            faults: list[str] = []
            step = _loaded(shadow.law, shadow.policy, "control.shadow", faults)
            shadow = replace(shadow, loaded=partial(_fail, faults[0]) if faults else step)
            of_shadows.extend(faults)
        step = _loaded(control.law, control.policy, place, of_acting)
        return replace(control, loaded=step, shadow=shadow)

    control = loaded(steering.control, "control")
    by_group = {
        name: loaded(of_group, f"{place_of(name)}.control")
        for name, of_group in steering.by_group.items()
    }
    steering = replace(steering, control=control, by_group=by_group)
    return steering, list(dict.fromkeys(of_acting)), of_shadows


def policy_digests(steering: SteeringConfig) -> dict[str, Optional[str]]:
    """Path of each policy that a law may read, and its SHA-256; None if it is unreadable."""
    controls = (steering.control, *steering.by_group.values())
    laws = [(control.law, control.policy) for control in controls]
    laws += [(control.shadow.law, control.shadow.policy) for control in controls if control.shadow]
    paths = {policy for law, policy in laws if law not in LAWS and policy is not None}
    return {str(path): _digest(path) for path in sorted(paths)}


def plan_config_of(
    config: Config, tree: GroupTree, *, offline: bool = False, withdraws: bool = False
) -> PlanConfig:
    """Settings of plans for groups of these pledges.

    ``offline`` is for a list of jobs, which has no blocks of cores. Laws are loaded, and raise
    ConfigError, unless a plan only ``withdraws`` targets.
    """
    steering = steering_of(config)
    return PlanConfig(
        pledge_hs06=tree.steered_hs06,
        own_hs06=tree.own_hs06,
        limits=config.control.limits,
        validity_seconds=config.validity_seconds,
        controlled=config.nodes.controlled,
        steering=steering if withdraws else with_laws(steering),
        strategy=config.control.strategy,
        give_up=None if offline else config.control.give_up,
        observes=config.mode == OBSERVE,
    )


def _digest(path: Path) -> Optional[str]:
    from sharectl.files.files import read_regular

    with contextlib.suppress(OSError):
        content, _ = read_regular(path, _MOST_DIGESTED)
        return None if content is None else sha256(content).hexdigest()
    return None


def _loaded(
    name: str, policy: Optional[Path], place: str, problems: list[str]
) -> Optional[LawStep]:
    """Step of a law; None of one that is not loaded, or with a problem."""
    if name in LAWS:
        return None
    try:
        return _learned(policy) if name == LEARNED else _of_package(name, policy)
    except ConfigError as error:
        problems += [f"{place}.{problem}" for problem in error.problems]
    return None


def _learned(path: Optional[Path]) -> LawStep:
    from sharectl.control.learned import Policy, faults, law_of
    from sharectl.files.documents import Document, DocumentError, record

    if path is None:
        wanted = f"law: {LEARNED} acts by a policy"
        raise ConfigError([f"{wanted}; write policy: FILE beside it (docs/control.md)"])
    remedy = "write it by `sharectl learn`, or name another"
    try:
        policy = Document(path, MAX_BYTES).read(lambda content: record(Policy, content))
        problems = [] if policy is None else list(faults(policy))
    except DocumentError as error:
        problems = list(error.problems)
    except OSError as error:
        problems = [f"cannot be read: {error.strerror or error}"]
    except NewerFileError as error:
        problems = [f"schema_version {error.version} is of a newer sharectl"]
    words = [printable(problem, _MOST_WORDS) for problem in problems[:_MOST_PROBLEMS]]
    lines = [f"policy: {path}: {problem}; {remedy}" for problem in words]
    if more := len(problems) - len(words):
        lines.append(f"policy: {path}: and {more} more problems")
    if lines:
        raise ConfigError(lines)
    if policy is None:
        raise ConfigError([f"policy: there is no {path} on this machine; {remedy}"])
    return law_of(policy)


def _of_package(name: str, policy: Optional[Path]) -> LawStep:
    points = sorted(installed().get(name, ()))
    values = ", ".join(point.value for point in points)
    if len(points) > 1:
        raise ConfigError([f"law: {name} is installed twice, as {values}; remove one of them"])

    def load() -> LawStep:
        step: Any = points[0].load()(policy)
        if not callable(step):
            made = f"{values} made {type(step).__name__}, which cannot be called"
            raise ValueError(made)  # noqa: TRY004 - as others
        law: LawStep = step
        return law

    try:
        return LawProcess(load)
    except ValueError as error:
        remedy = "mend or remove its package, or write another law"
        problem = f"law: {name} ({values}) cannot be loaded: {error}; {remedy}"
        raise ConfigError([problem]) from error


def _fail(problem: str, *_arguments: object) -> NoReturn:
    """Step of a law that could not be loaded."""
    raise ValueError(problem)
