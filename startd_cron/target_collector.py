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
import signal
import sys

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
MAX_DIGITS, MAX_DETAIL, MAX_OUTPUT_BYTES = 10, 1000, 2097152


class JobError(Exception):
    """Why there is no document: a code of `REASONS`, and details for standard error."""


def check(options: "dict[str, str]") -> "list[str]":
    """Problems of the options beyond those of `parse_arguments`."""
    wrong = []
    if not HOST.fullmatch(options["--host"]):
        wrong.append("--host %a: write its name" % options["--host"])
    if options["--collector"] and not ADDRESS.fullmatch(options["--collector"]):
        wrong.append("--collector %a: write host or host:port" % options["--collector"])
    if not options["--identity"]:
        wrong.append("--identity: write who may advertise targets")
    return wrong


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
    argv = [options["--condor-status"], *where, "-any", "-constraint", constraint, "-af:V"]
    status, output = printed([*argv, *COLUMNS])
    *lines, rest = output.decode("ascii", "replace").split("\n")
    if status:
        raise JobError("no-collector", "condor_status: wait status %d" % status)
    if rest:
        raise JobError("collector-garbled", "last words %a" % rest)
    documents = [document(ad) for ad in own_ads(lines, options["--identity"])]
    return ("ok", max(documents)[2]) if documents else ("no-ad", "")


def is_number(text: str) -> bool:
    """True for a whole number of at most `MAX_DIGITS` digits."""
    return not text.strip("0123456789") and 0 < len(text) <= MAX_DIGITS


def printed(argv: "list[str]") -> "tuple[int, bytes]":
    """Wait status and output of a command, which is killed if this program gives up."""
    pipe, pipe_end = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.dup2(pipe_end, 1)
            os.execvp(argv[0], argv)  # noqa: S606  # no shell: what it gets is what is written here
        except OSError as error:
            complain("cannot-run", "%s: %s" % (argv[0], error))
        finally:
            os._exit(127)
    os.close(pipe_end)
    try:
        with open(pipe, "rb") as stream:
            output = stream.read(MAX_OUTPUT_BYTES)
        return os.waitpid(pid, 0)[1], output  # a tool that wrote more ended by SIGPIPE
    except JobError:
        os.kill(pid, signal.SIGKILL)
        raise


def too_late(_signal: int, _frame: object) -> None:
    """Raise JobError wherever the program is."""
    raise JobError("timeout", "not through in --timeout-seconds")


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
            wanted = "write a whole number from %d to %d" % (lowest, highest)
            problems.append("%s %a: %s" % (option, text, wanted))
    return values, problems


def complain(code: str, detail: object) -> str:
    """``code``; the detail goes to standard error."""
    line = "%s: %s: %a\n" % (os.path.basename(__file__), code, str(detail)[:MAX_DETAIL])
    os.write(2, line.encode())
    return code


def main(argv: "list[str]") -> int:
    """Exit status, one of `REASONS`."""
    if argv == ["--help"]:
        rows = [*OPTIONS.items(), *REASONS.items()]
        lines = ["  %-18s %s (%s)" % (name, row[-1], row[0]) for name, row in rows]
        text = "\n".join([__doc__, *lines, ""])
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
        signal.signal(signal.SIGALRM, too_late)
        signal.alarm(int(options["--timeout-seconds"]))
        code, text = find(options)
    except Exception as error:  # noqa: BLE001  # whatever it is, the answer is complete
        fault = error.args if isinstance(error, JobError) else ("internal-error", repr(error))
        code = complain(*fault)
    signal.alarm(0)
    os.write(1, (code + "\n" + text).encode())
    return REASONS[code][0]


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # the interpreter's own exit takes 2 ms
