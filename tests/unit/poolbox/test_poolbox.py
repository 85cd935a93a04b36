"""The poolbox without a pool: command line, configuration, sandbox, waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path, PurePath

import pytest

from poolbox.__main__ import main
from poolbox.background import runtime_directory
from poolbox.configuration import Installation, addresses, host_configurations
from poolbox.errors import BoxFailedError, CommandError, DeadlineError, PoolboxError, SpecError
from poolbox.spec import BoxSpec, ExecutePoint
from poolbox.waiting import HANG_SECONDS, wait_for

CHECKOUT = Path(__file__).parents[3]
A_POOL_TEST = (
    "tests/pool/test_box.py::test_a_box_is_of_its_suite_on_the_loopback_and_sees_the_checkout"
)
HERE = Installation(
    *(Path(path) for path in ("/usr", "/usr/libexec/condor", "/usr/lib/condor", "/usr/sbin"))
)


@pytest.fixture(autouse=True)
def _runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_usage_errors_exit_with_2_and_failures_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        ("up --nodes 0", "0: write a number of at least 1"),
        ("up --group cms=many", "cms=many: write NAME=CORES or NAME=SHARE"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(arguments.split())
        assert message in capsys.readouterr().err
    for arguments, message in (
        ("status", "poolbox: no pool named 'default' (there is: none); start it"),
        ("status --name ../x", "poolbox: name '../x': write letters"),
        ("up --config /no/such.config", "poolbox: /no/such.config: cannot be read"),
    ):
        assert main(arguments.split()) == 1
        assert capsys.readouterr().err.startswith(message)


def test_a_runtime_folder_of_others_is_refused(tmp_path: Path) -> None:
    runtime_directory().chmod(0o777)
    with pytest.raises(PoolboxError, match="not a folder that only you can write to"):
        runtime_directory()
    (tmp_path / "poolbox").rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    (tmp_path / "poolbox").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PoolboxError, match="not a folder that only you can write to"):
        runtime_directory()


@pytest.mark.parametrize(
    ("required", "outcome", "exit_code"), [("0", "1 skipped", 0), ("1", "1 error", 1)]
)
def test_a_pool_test_is_skipped_unless_a_pool_is_required(
    required: str, outcome: str, exit_code: int, tmp_path: Path
) -> None:
    bare = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "POOL_REQUIRED": required}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", A_POOL_TEST],
        env={**os.environ, **bare},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout
    assert outcome in done.stdout
    assert "Install: apt install bubblewrap mmdebstrap uidmap" in done.stdout


def test_all_problems_of_an_impossible_pool_are_named_at_once() -> None:
    nodes = (ExecutePoint("wn-1", cores=0), ExecutePoint("wn-2", memory_mib=-1))
    groups = {"c m": 1, "cms": 1.5, "b": -1, "c": True, "d": float("nan")}
    with pytest.raises(SpecError) as raised:
        BoxSpec(nodes, access_points=("AP 1", "../ap"), suite="sid", groups=groups).check()
    places = [problem.split(":")[0] for problem in raised.value.problems]
    hosts = ["host 'AP 1'", "host '../ap'", "execute point wn-1", "execute point wn-2"]
    quotas = ["group 'c m'", *(f"group {name}" for name in ("cms", "b", "c", "d"))]
    assert places == ["suite 'sid'", *hosts, *quotas]
    with pytest.raises(SpecError, match="named 2 times"):
        BoxSpec(access_points=("cm-1.example.org",)).check()


def configuration(spec: BoxSpec, host: str) -> dict[str, str]:
    return host_configurations(spec, host, PurePath("/box/hosts") / host, 20001, HERE)


def test_configuration_of_the_box_comes_before_the_roles_and_the_nodes_own() -> None:
    node = ExecutePoint(config="node\n")
    spec = BoxSpec((node,), config="box\n", execute_config="execute\n", access_config="access\n")
    texts = configuration(spec, node.name)
    names = sorted(name for name in texts if name.startswith("config.d"))
    assert [texts[name] for name in names] == ["box\n", "execute\n", "node\n"]
    access_point = configuration(spec, "ap-1.example.org")
    assert access_point["config.d/20-role.config"] == "access\n"


def test_a_pool_as_shipped_has_addresses_paths_and_sizes_of_ours_alone() -> None:
    spec = BoxSpec(as_shipped=True)
    hosts = addresses(spec)
    assert len(set(hosts.values())) == len(hosts)
    for host, address in hosts.items():
        text = configuration(spec, host)["condor_config"]
        assert f"NETWORK_INTERFACE = {address}\n" in text
        ours = {line.partition(" =")[0] for line in text.splitlines() if " = " in line}
        of_tests = ("INTERVAL", "ALLOW_", "SEC_DEFAULT", "USE_SHARED_PORT", "RunBenchmarks")
        assert [name for name in ours for word in of_tests if word in name] == []


def test_a_wait_ends_with_the_first_true_value_at_its_deadline_or_by_an_error() -> None:
    answers = iter([[], None, ["seen"]])
    assert wait_for(lambda: next(answers), "an answer") == ["seen"]

    def failing(error: Exception) -> bool:
        raise error

    with pytest.raises(DeadlineError, match=r"(?s)pigs fly\ncondor_q exited with 1: no schedd"):
        wait_for(lambda: failing(CommandError(["condor_q"], 1, "", "no schedd")), "pigs fly", 0)
    with pytest.raises(BoxFailedError):
        wait_for(lambda: failing(BoxFailedError("the box has ended")), "pigs fly", 600)
