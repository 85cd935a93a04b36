#!/usr/bin/python3 -IS
"""target_collector.py: this node's target in a collector, as a document.

target.py runs it for a source collector: or collector:ADDRESS. It prints a first line, ok or a code
below, and then the document of the newest ad: the node's, or the plan's if that is newer, which has
no line for this node. target.py judges the document. By hand:
  target_collector.py --identity condor@pool --host cn-609-05-06.example.org

Anybody who may advertise to the collector can send such an ad. Only ads count whose
AuthenticatedIdentity, which the collector writes, is --identity. The central manager's is printed
by: condor_status -any -const 'MyType == "SharectlTarget"' -af AuthenticatedIdentity.

  node's ad  MyType = "SharectlTarget", t1_TargetNode (short or full name), t1_TargetSequence,
             t1_TargetGenerated, t1_TargetValidUntil, t1_TargetGroups, t1_Targetcores,
             t1_TargetKnownGroups; optional t1_TargetPool and t1_MulticorePending (boolean)
  plan's ad  MyType = "SharectlPlan", Name = "sharectl", without node, groups and cores
"""

import os
import re
import select
import sys
import time

OPTIONS = {  # default, lowest and highest value (0 and 0: a text), meaning
    "--identity": ("", 0, 0, "who may advertise targets, as AuthenticatedIdentity has it"),
    "--host": ("", 0, 0, "this node's name, short or full; empty: its host name"),
    "--collector": ("", 0, 0, "address of a collector; empty: the node's own"),
    "--condor-status": ("condor_status", 0, 0, "path of condor_status, or its name on PATH"),
    "--timeout-seconds": ("7", 1, 300, "after so long this program ends itself"),
}
REASONS = {  # exit status, meaning
    "ok": (0, "there is a document"),
    "no-ad": (0, "the collector has neither a plan nor a target for this node"),
    "internal-error": (1, "a fault of this program, or no process could be started"),
    "bad-arguments": (2, "an option is wrong: mend STARTD_CRON_<name>_ARGS"),
    "timeout": (75, "the collector hangs"),
    "no-collector": (75, "condor_status cannot be run, or had no answer from the collector"),
    "collector-garbled": (76, "the answer is not what condor_status prints"),
    "bad-ad": (76, "an attribute of the ad is missing, or has not the right type"),
    "forged": (77, "only others than --identity have advertised a plan, or a target for this node"),
}
COLUMNS = (
    "AuthenticatedIdentity", "t1_TargetNode", "t1_TargetSequence", "t1_TargetGenerated",
    "t1_TargetValidUntil", "t1_TargetGroups", "t1_Targetcores", "t1_TargetKnownGroups",
    "t1_TargetPool", "t1_MulticorePending",
)  # fmt: skip
CONSTRAINT = (
    'MyType == "SharectlTarget"'
    ' && (t1_TargetNode == "%s" || t1_TargetNode == "%s" || split(t1_TargetNode, ".")[0] == "%s")'
    ' || MyType == "SharectlPlan" && Name == "sharectl"'
)
IDENTITY = re.compile(r'"((?:[^"\\]|\\.)*)" (.*)')
NAME, NUMBER, PENDING = r'"([A-Za-z0-9_.:-]+)"', "([0-9]{1,10})", {"true": "1", "false": "0"}
ABOUT = (NUMBER, NUMBER, NUMBER)
REST = (r'"([a-z0-9_.,-]*)"', "(?:undefined|%s)" % NAME, "(true|false|undefined)")
ORDER = (r"\{ ?%s, ?%s ?\}" % (NAME, NAME), r"\{ ?%s, ?%s ?\}" % (NUMBER, NUMBER))
TARGET = re.compile(" ".join((NAME, *ABOUT, *ORDER, *REST)))
PLAN = re.compile(" ".join(("undefined", *ABOUT, "undefined", "undefined", *REST)))
DOCUMENT = """\
# sharectl: 1
# sequence: %s
# generated: %s
# valid_until: %s
# groups: %s
# targets: %d
"""
HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}")
ADDRESS = re.compile(r"(?!-)[!-~]{1,1000}")
MAX_DIGITS, MAX_DETAIL, POLL_SECONDS, TOO_LATE, MAX_OUTPUT_BYTES = 10, 1000, 0.0003, -1, 2097152


class JobError(Exception):
    """Why there is no document: a code of `REASONS`, and details for standard error."""


def check(options: "dict[str, str]") -> "list[str]":
    """Problems of the options beyond those of `parse_arguments`."""
    wrong = (
        []
        if HOST.fullmatch(options["--host"])
        else ["--host %a: write its name" % options["--host"]]
    )
    if options["--collector"] and not ADDRESS.fullmatch(options["--collector"]):
        wrong.append("--collector %a: write host or host:port" % options["--collector"])
    return (
        wrong if options["--identity"] else [*wrong, "--identity: write who may advertise targets"]
    )


def own_ads(lines: "list[str]", identity: str) -> "list[str]":
    """Rest of the lines of ads by ``identity``. Raises JobError if there are only others."""
    matches = [IDENTITY.fullmatch(line) for line in lines]
    own = [match.group(2) for match in matches if match and match.group(1) == identity]
    if lines and not own:
        others = sorted({match.group(1) if match else "?" for match in matches})
        raise JobError("forged", "only from %s" % ", ".join(others))
    return own


def document(rest: str) -> "tuple[int, int, str]":
    """Sequence, targets and text of the document of an ad. Raises JobError if it is invalid."""
    target, plan = TARGET.fullmatch(rest), PLAN.fullmatch(rest)
    if target:
        node, sequence, generated, until, held_back, helped, cap, request, *about = target.groups()
        lines = ["%s %s %s %s %s\n" % (node, held_back, cap, helped, request)]
    elif plan:
        (sequence, generated, until, *about), lines = plan.groups(), []
    else:
        raise JobError("bad-ad", rest)
    groups, pool, pending = about
    more = "# pool: %s\n" % pool if pool else ""
    more += "# multicore_pending: %s\n" % PENDING[pending] if pending in PENDING else ""
    head = DOCUMENT % (sequence, generated, until, groups, len(lines))
    return int(sequence), len(lines), head + more + "".join(lines)


def find(options: "dict[str, str]") -> "tuple[str, str]":
    """Code and document. Raises JobError without a valid ad."""
    host = options["--host"]
    constraint = CONSTRAINT % (host, host.split(".", 1)[0], host)
    where = ["-pool", options["--collector"]] if options["--collector"] else []
    argv = [
        options["--condor-status"],
        *where,
        "-any",
        "-constraint",
        constraint,
        "-af:V",
        *COLUMNS,
    ]
    end = time.monotonic() + int(options["--timeout-seconds"])
    status, output = gather({"": start(argv)}, end)[""]
    *lines, rest = output.decode("ascii", "replace").split("\n")
    if status:
        raise JobError(
            "timeout" if status == TOO_LATE else "no-collector",
            "condor_status: wait status %d" % status,
        )
    if rest:
        raise JobError("collector-garbled", "last words %a" % rest)
    documents = [document(ad) for ad in own_ads(lines, options["--identity"])]
    return ("ok", max(documents)[2]) if documents else ("no-ad", "")


def is_number(text: str) -> bool:
    """True for a whole number of at most `MAX_DIGITS` digits."""
    return not text.strip("0123456789") and 0 < len(text) <= MAX_DIGITS


def become(argv: "list[str]") -> None:
    """Turn this process into a command."""
    os.execvp(argv[0], argv)  # noqa: S606  # no shell: what it gets is what is written here


def start(argv: "list[str]") -> "tuple[int, int]":
    """Process id and output pipe of a command, which leads a new process group."""
    pipe, pipe_end = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setpgid(0, 0)
            os.dup2(pipe_end, 1)
            become(argv)
        except Exception as error:  # noqa: BLE001  # nobody else will report it
            complain("cannot-run", "%s: %s" % (argv[0], error))
        finally:
            os._exit(127)
    os.close(pipe_end)
    return pid, pipe


def gather(children: "dict[str, tuple[int, int]]", end: float) -> "dict[str, tuple[int, bytes]]":
    """Wait status and output of each child; `TOO_LATE` after ``end``, monotonic seconds."""
    outputs = {pipe: bytearray() for _, pipe in children.values()}
    waiting = set(outputs)
    while waiting and time.monotonic() < end:
        for pipe in select.select(waiting, [], [], max(0.0, end - time.monotonic()))[0]:
            part = os.read(pipe, 65536)
            outputs[pipe] += part
            if not part or len(outputs[pipe]) > MAX_OUTPUT_BYTES:
                waiting.remove(pipe)
                os.close(pipe)  # a child that writes more ends by SIGPIPE
    return {
        name: (finish(pid, end), bytes(outputs[pipe])) for name, (pid, pipe) in children.items()
    }


def finish(pid: int, end: float) -> int:
    """Wait status of a child, whose process group is killed then, or at ``end``.

    A child that cannot be killed is not waited for.
    """
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while not os.waitid(os.P_PID, pid, options) and time.monotonic() < end:
        select.select([], [], [], POLL_SECONDS)
    ended = os.waitid(os.P_PID, pid, options)
    (os.killpg if os.getpgid(pid) == pid else os.kill)(pid, 9)  # it may not have made its group yet
    return os.waitpid(pid, 0)[1] if ended else TOO_LATE


def parse_arguments(argv: "list[str]") -> "tuple[dict[str, str], list[str]]":
    """Value of every option, and all problems of ``argv``."""
    values = {option: row[0] for option, row in OPTIONS.items()}
    problems = ["%a has no value" % argv[-1]] if len(argv) % 2 else []
    for option, text in zip(argv[::2], argv[1::2]):
        _, lowest, highest, _ = OPTIONS.get(option, ("", 0, 0, ""))
        if option not in OPTIONS:
            problems.append("%a: write one of %s" % (option, ", ".join(OPTIONS)))
        elif not highest or (is_number(text) and lowest <= int(text) <= highest):
            values[option] = text
        else:
            problems.append(
                "%s %a: write a whole number from %d to %d" % (option, text, lowest, highest)
            )
    return values, problems


def complain(code: str, detail: object) -> str:
    """``code``; the detail goes to standard error."""
    os.write(
        2, ("%s: %s: %a\n" % (os.path.basename(__file__), code, str(detail)[:MAX_DETAIL])).encode()
    )
    return code


def main(argv: "list[str]") -> int:
    """Exit status, one of `REASONS`."""
    if argv == ["--help"]:
        rows = [
            (name, row[-1], row[0]) for table in (OPTIONS, REASONS) for name, row in table.items()
        ]
        text = "\n".join([__doc__, *map("  %-18s %s (%s)".__mod__, rows), ""])
        try:
            os.write(1, text.encode())
        except OSError:  # nobody reads it
            return 1
        return 0
    options, problems = parse_arguments(argv)
    options["--host"] = options["--host"] or os.uname().nodename
    problems += check(options)
    text = ""
    try:
        if problems:
            raise JobError("bad-arguments", "; ".join(problems))  # noqa: TRY301  # all faults go one way
        code, text = find(options)
    except Exception as error:  # noqa: BLE001  # whatever it is, the answer is complete
        code = complain(
            *error.args if isinstance(error, JobError) else ("internal-error", repr(error))
        )
    os.write(1, (code + "\n" + text).encode())
    return REASONS[code][0]


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # the interpreter's own exit takes 2 ms
