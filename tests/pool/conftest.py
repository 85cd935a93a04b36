"""Pools for the tests: one for each module that has a ``SPEC``, and any other by `open_box`.

``--suite`` or POOLBOX_SUITE chooses HTCondor 23.9.6 (trixie, the default) or 25.14.1 (forky). Where
no pool can be had the tests are skipped, and fail when POOL_REQUIRED is 1.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Callable, NoReturn

import pytest

from poolbox import Box, BoxSpec, CannotBuildError
from poolbox.root import htcondor_version
from poolbox.spec import SUITES
from sharectl.condor.pool_look import Version, version_of
from tests.pool.built_packages import Packages, packages_of
from tests.pool.deployed import publish
from tests.pool.sharectl_command import Sharectl

HERE = Path(__file__).parent
OpenBox = Callable[..., AbstractContextManager[Box]]
LONGEST = (
    *("test_twin", "test_documents", "test_faults_of_delivery", "test_faults_of_daemons"),
    *("test_groups_of_claims", "test_slot_practice_nodes", "test_clock_steps", "test_loop"),
    *("test_cadence", "test_grace_and_failures", "test_cores_that_no_job_takes"),
    "test_consumption_examples",
)
"""Files that take minutes: they begin, and none is left last."""
# Boxes that are open now, whose logs belong into the report of a test that fails now.
OPEN: list[Box] = []


def unavailable(reason: object) -> NoReturn:
    """Skip a test that this machine cannot run; fail it where POOL_REQUIRED is 1."""
    (pytest.fail if os.environ.get("POOL_REQUIRED") == "1" else pytest.skip)(str(reason))


def chosen_suite(config: pytest.Config) -> str:
    """The suite asked for, by option or by environment."""
    suite: str = (
        config.getoption("--suite", default=None) or os.environ.get("POOLBOX_SUITE") or SUITES[0]
    )
    if suite not in SUITES:
        raise pytest.UsageError(f"POOLBOX_SUITE={suite}: write one of {', '.join(SUITES)}")
    return suite


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say which HTCondor ran."""
    suites = [chosen_suite(config), config.getoption("--semantics-suite", default=None)]
    ran = [f"{htcondor_version(suite)} ({suite})" for suite in suites if suite]
    terminalreporter.write_line(
        f"HTCondor of the pool tests: {', its semantics also on '.join(ran)}"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything below this folder: it needs a pool. `LONGEST` begin."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.pool)
    items.sort(key=lambda item: [*LONGEST, item.path.stem].index(item.path.stem))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Scheduler for ``--dist loadfile`` that gives a file's suites to different workers."""
    scheduling: Any = importlib.import_module("xdist.scheduler")

    def scope(nodeid: str) -> str:
        words = re.split(r"[\[\]-]", nodeid)
        file = Path(words[0].partition("::")[0]).stem
        return "".join([file, *(set(words) & set(SUITES))])

    scheduler = scheduling.LoadScopeScheduling(config, log)
    scheduler._split_scope = scope  # noqa: SLF001  # as its subclasses do
    return scheduler if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show the daemons' logs with every failure."""
    report: pytest.TestReport = yield  # type: ignore[assignment]  # what a hook wrapper receives
    if report.failed:
        report.sections.extend(
            (f"logs of {box.directory.name} in {item.name}", box.log_tail()) for box in OPEN
        )
    return report  # type: ignore[return-value]  # and gives back


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests marked `semantics` on a second HTCondor too, if there is to be one."""
    second = metafunc.config.getoption("--semantics-suite", None)
    if second and "pool_suite" in metafunc.fixturenames:
        marked = metafunc.definition.get_closest_marker("semantics") is not None
        suites = [chosen_suite(metafunc.config), second]
        chosen = dict.fromkeys(suites if marked else suites[:1])
        metafunc.parametrize("pool_suite", chosen, indirect=True, scope="session")


@pytest.fixture(scope="session")
def pool_suite(request: pytest.FixtureRequest) -> str:
    """Debian suite whose HTCondor the pools run."""
    suite: str = getattr(request, "param", None) or chosen_suite(request.config)
    return suite


@pytest.fixture
def pool_version(pool_suite: str) -> Version:
    """Version of HTCondor that the pools run; a test's own, because a pool may have to be made."""
    return version_of(htcondor_version(pool_suite))


@pytest.fixture(scope="session")
def packages(pool_suite: str, tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Debs, RPMs, wheel and sdist for the suite's Python."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    try:
        return packages_of(pool_suite, shared)
    except CannotBuildError as reason:
        unavailable(reason)


@pytest.fixture(scope="session")
def open_box(pool_suite: str) -> OpenBox:
    """Opens the box of a `BoxSpec` on the session's suite, for any scope."""

    @contextlib.contextmanager
    def opened(spec: BoxSpec) -> Iterator[Box]:
        box = Box(dataclasses.replace(spec, suite=pool_suite))
        try:
            box.start()
        except CannotBuildError as reason:
            unavailable(reason)
        OPEN.append(box)
        try:
            yield box
        finally:
            OPEN.remove(box)
            box.stop()
        left = box.processes()
        assert not left, f"the box left processes behind: {left}"

    return opened


@pytest.fixture(scope="module")
def pool(request: pytest.FixtureRequest, open_box: OpenBox) -> Iterator[Box]:
    """The pool of the module's ``SPEC``, and what the module's ``prepare`` makes of it."""
    with open_box(request.module.SPEC) as running:
        if prepare := getattr(request.module, "prepare", None):
            prepare(running)
        yield running


@pytest.fixture
def box(pool: Box) -> Iterator[Box]:
    """The module's pool, without jobs and targets after each test."""
    yield pool
    publish(pool)
    pool.remove_jobs()


@pytest.fixture
def sharectl(box: Box, tmp_path: Path) -> Sharectl:
    """The command on the module's pool."""
    return Sharectl(box, tmp_path)
