"""``python -m poolbox``: a pool in the background, and commands and jobs in it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Union

from poolbox import background
from poolbox.box import Box
from poolbox.errors import PoolboxError
from poolbox.spec import SUITES, BoxSpec

SIGNALLED = 128
DESCRIPTION = """\
A real HTCondor pool on this machine: a central manager, access points and execute points, each with
its daemons and configuration, in one sandbox without privileges. It runs the HTCondor of this
machine if condor_master is on PATH. Otherwise it builds one from Debian's packages, once, in the
cache (XDG_CACHE_HOME or ~/.cache, sharectl/poolbox)."""
EPILOG = """\
example:
  python -m poolbox up --nodes 8 --group cms=0.5 --group atlas=0.5
  echo 'executable = /bin/sleep
        arguments = 60
        accounting_group = cms
        accounting_group_user = alice
        queue 10' | python -m poolbox submit -
  python -m poolbox run condor_q -global -allusers
  python -m poolbox down

exit codes: 0 done, 1 failed, 2 usage; `run` exits as its command does."""


UP_EPILOG = """\
$(LOCAL_DIR)/../../shared in configuration is the shared folder, whatever its
name. sharectl's snippet on every execute point, with the scripts from here:
  echo 'SHARECTL_SOURCE = file:$(LOCAL_DIR)/../../shared/sharectl.txt
        STARTD_CRON_JOB_CTL_EXECUTABLE = '$PWD'/startd_cron/job_ctl.py
        STARTD_CRON_MC_GRACE_EXECUTABLE = '$PWD'/startd_cron/mc_grace.py' > node.conf
  python -m poolbox up --execute-config config.d/60-sharectl-execute-point.conf \\
      --execute-config node.conf
  python -m poolbox status   # the shared folder, for publish: [{file: …}]"""


def main(argv: Sequence[str]) -> int:
    """Exit code: of the command of `run`, 0, or 1 with one message on standard error."""
    arguments = parser().parse_args(argv)
    try:
        code: int = arguments.verb(arguments)
    except PoolboxError as problem:
        print(f"poolbox: {problem}", file=sys.stderr)
        return problem.exit_code
    except KeyboardInterrupt:
        return SIGNALLED + 2
    return code


def parser() -> argparse.ArgumentParser:
    """The command line of ``python -m poolbox``."""
    top = argparse.ArgumentParser(
        prog="python -m poolbox",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = top.add_subparsers(required=True, metavar="up | down | status | run | submit")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--name", default="default", help="which pool, when there are several (%(default)s)"
    )
    for name, verb, text in VERBS:
        added = verbs.add_parser(
            name,
            parents=[common],
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=EPILOGS.get(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(verb=verb)
        ARGUMENTS[name](added)
    return top


def up(arguments: argparse.Namespace) -> int:
    """Start a pool in the background."""
    spec = BoxSpec.of_equal_nodes(
        arguments.nodes,
        arguments.cores,
        arguments.memory_mib,
        arguments.power_hs06,
        access_points=tuple(
            f"ap-{number}.example.org" for number in range(1, arguments.access_points + 1)
        ),
        suite=arguments.suite,
        groups=dict(arguments.group),
        as_shipped=arguments.as_shipped,
        **{
            name: "".join(_text(path) for path in getattr(arguments, name))
            for name, _whose in CONFIGURATIONS
        },
    )
    box = Box(spec)
    background.start(arguments.name, box)
    return _print_status(box)


def down(arguments: argparse.Namespace) -> int:
    """End the pool."""
    print(f"ended, and deleted {background.stop(arguments.name)}")
    return 0


def status(arguments: argparse.Namespace) -> int:
    """Print hosts, daemons and slots."""
    return _print_status(background.find(arguments.name))


def run(arguments: argparse.Namespace) -> int:
    """Run a command on this terminal's streams."""
    if not arguments.command:
        raise PoolboxError("run: name a command, such as: run condor_q -global")
    code = background.find(arguments.name).run_on_streams(
        arguments.command, (0, 1, 2), host=arguments.host
    )
    return code if code >= 0 else SIGNALLED - code


def submit(arguments: argparse.Namespace) -> int:
    """Submit jobs and print their cluster id."""
    box = background.find(arguments.name)
    print(box.submit(_text(arguments.file), arguments.access_point))
    return 0


def _up_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--suite",
        choices=SUITES,
        default="trixie",
        help="trixie has 23.9.6, forky 25.14.1 (%(default)s)",
    )
    verb.add_argument(
        "--nodes", type=_positive, default=2, metavar="N", help="execute points (%(default)s)"
    )
    verb.add_argument(
        "--cores", type=_positive, default=8, metavar="N", help="cores of each (%(default)s)"
    )
    verb.add_argument(
        "--memory-mib",
        type=_positive,
        default=16384,
        metavar="N",
        help="memory of each (%(default)s)",
    )
    verb.add_argument(
        "--power-hs06", type=float, default=80.0, metavar="X", help="power of each (%(default)s)"
    )
    verb.add_argument(
        "--access-points",
        type=_positive,
        default=2,
        metavar="N",
        help="access points (%(default)s)",
    )
    verb.add_argument(
        "--group",
        type=_group,
        action="append",
        default=[],
        metavar="NAME=QUOTA",
        help="accounting group; 40 is a quota in cores, 0.4 a share of the pool; repeatable",
    )
    verb.add_argument(
        "--as-shipped",
        action="store_true",
        help="HTCondor's own intervals, security, shared_port and benchmarks, not the short "
        "intervals and open doors of tests; changes are seen after minutes",
    )
    for name, whose in CONFIGURATIONS:
        verb.add_argument(
            f"--{name.replace('_', '-')}",
            action="append",
            default=[],
            metavar="FILE",
            help=f"HTCondor configuration {whose}, - for standard input; may be repeated",
        )


def _run_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--host", help="whose configuration the command sees (the central manager's)")
    verb.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="CMD", help="the command and its arguments"
    )


def _submit_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--access-point", metavar="HOST", help="where to submit (the first access point)"
    )
    verb.add_argument(
        "file",
        metavar="FILE",
        help="a submit description, - for standard input; its paths are inside",
    )


def _no_arguments(_verb: argparse.ArgumentParser) -> None:
    pass


VERBS = (
    ("up", up, "start a pool in the background and wait until it is complete"),
    ("down", down, "end the pool and delete everything it wrote"),
    ("status", status, "show its hosts, daemons and slots"),
    ("run", run, "run a command inside, as the pool's user"),
    ("submit", submit, "submit jobs and print their cluster id"),
)
CONFIGURATIONS = (
    ("config", "for every daemon"),
    ("central_config", "for the central manager alone"),
    ("access_config", "for access points alone"),
    (
        "execute_config",
        "for execute points alone, where snippets of config.d/ and consumption policies belong",
    ),
)
"""Field of `BoxSpec` and option, and whom it is for."""
ARGUMENTS = {
    "up": _up_arguments,
    "down": _no_arguments,
    "status": _no_arguments,
    "run": _run_arguments,
    "submit": _submit_arguments,
}


EPILOGS = {"up": UP_EPILOG}


def _print_status(box: Box) -> int:
    for host, daemons in box.daemons().items():
        names = [daemon.program.replace("condor_", "") for daemon in daemons]
        print(f"{host:24} {' '.join(sorted(names)) or 'down'}")
    print(box.run(["condor_status"]).stdout.strip())
    print(f"shared folder: {box.shared_directory}")
    print(
        "for HTCondor tools outside: export "
        f"CONDOR_CONFIG={box.client_environment['CONDOR_CONFIG']}"
    )
    return 0


def _text(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise PoolboxError(f"{path}: cannot be read: {problem}") from None


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: write a number of at least 1")
    return number


def _group(text: str) -> tuple[str, Union[int, float]]:
    name, _equals, quota = text.partition("=")
    try:
        return name, float(quota) if "." in quota else int(quota)
    except ValueError:
        message = f"{text}: write NAME=CORES or NAME=SHARE, such as cms=40 or cms=0.4"
        raise argparse.ArgumentTypeError(message) from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
