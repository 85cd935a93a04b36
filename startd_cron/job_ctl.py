#!/usr/bin/python3 -I
"""JOB_CTL: tells a node which group it holds back and which it helps, from a file that all nodes share.

A STARTD_CRON job of HTCondor. It asks the startd that runs it how many cores each group holds, and looks for the
node's line in the file, such as "cn-609-05-06 alice 56 cms 8". Published, all of it at every run:

  t1_CurrentJobs   "alice:64:lhcb:3:atlas:5": cores by group, the held-back group first, then by cores; "none:0".
  t1_TargetGroups  {"alice", "cms"}: the group held back, the group helped; {"none", "none"} without a target.
  t1_Targetcores   {56, 8}: most cores the first may hold, cores a job of the second must request; {0, 0} without.
  t1_TargetUntil   When the target ends by itself, Unix seconds; 0 without a target.
  t1_JobCtlReason  ok, or why there is no target: one of the codes below.
  t1_JobCtlTime    When this job ran, Unix seconds.

A group is the first part of AcctGroup, in lower case; where --groups or the file name any, all others are "other".
A file that is wrong anywhere is refused as a whole. Without a target jobs start as if this job were not there.
Options come from STARTD_CRON_<name>_ARGS; details of a failure go to standard error.
"""

import os
import select
import sys
import time

OPTIONS = {  # default, lowest and highest value (0 and 0: a text), meaning
    "--file": ("/shared/sharectl.txt", 0, 0, "the targets of all nodes"),
    "--max-age-seconds": ("3600", 1, 86400, "life of a file that does not say until when it is valid"),
    "--host": ("", 0, 0, "this node's name in the file, short or full; empty: the startd's Machine"),
    "--groups": ("", 0, 0, "groups to count by name, with commas, besides those that the file names"),
    "--condor-status": ("condor_status", 0, 0, "that command, by its path or as found on PATH"),
    "--startd": ("", 0, 0, "name or address of a startd; empty: the one that runs this job"),
    "--timeout-seconds": ("10", 1, 300, "after so long this job ends itself"),
}
REASONS = {  # exit status, meaning
    "ok": (0, "there is a target"),
    "no-line": (0, "the file has no line for this node"),
    "no-file": (0, "there is no such file"),
    "expired": (0, "the file is no longer valid"),
    "internal-error": (1, "a fault of this program, or no process could be started"),
    "bad-arguments": (2, "an option is wrong: mend STARTD_CRON_<name>_ARGS"),
    "unreadable": (65, "the file cannot be read"),
    "unsafe": (65, "not a regular file, or everybody may write to it"),
    "too-big": (65, "the file is larger than 1 MiB"),
    "truncated": (65, "the end of the last line is missing, or whole lines are"),
    "malformed": (65, "not ASCII, an unknown format, or a line is not as it should be"),
    "unknown-group": (65, "a target's group is neither in --groups nor in the file's own list"),
    "duplicate-node": (65, "more than one line is for this node"),
    "future": (65, "made in the future, or valid for more than a day: compare the clocks"),
    "timeout": (75, "not through in --timeout-seconds: the startd or the file system of --file hangs"),
    "no-startd": (75, "condor_status cannot be run, or had no answer from the startd"),
    "startd-garbled": (75, "the answer is not what condor_status prints"),
}
REASON, TIME = "t1_JobCtlReason", "t1_JobCtlTime"
FOUND = ("t1_CurrentJobs", "t1_TargetGroups", "t1_Targetcores", "t1_TargetUntil")
FAIL_SAFE = dict(zip(FOUND, ("none:0", ("none", "none"), (0, 0), 0)))
NO_TARGET = ("none", "0", "none", "0", "0")
HELD = 'PartitionableSlot =!= True && BackfillSlot =!= True && member(State, {"Claimed", "Preempting"})'
COLUMNS = ("Machine", "ifThenElse(%s, Cpus ?: 0, 0)" % HELD, "AccountingGroup")
ORDER = ("held_back", "cap_cores", "helped", "request_cores")
MALFORMED = "line %d: %a %.0s%a: write node " + " ".join(ORDER)
NUMBERS = ("targets", "generated", "valid_until")
GROUP_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
NODE_CHARACTERS = GROUP_CHARACTERS | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ.")
PLAIN_CHARACTERS = frozenset(map(chr, range(0x20, 0x7F))) - frozenset('"\\')  # escaped in more than one way
MAX_GROUP_LENGTH, MAX_NODE_LENGTH, MAX_CORES, MAX_NAMED_GROUPS = 64, 253, 100000, 32
MAX_CLOCK_SKEW_SECONDS, MAX_VALIDITY_SECONDS, MAX_DIGITS, MAX_DETAIL = 300, 86400, 10, 1000
MAX_BYTES, MAX_AD_BYTES = 1048576, 9000  # of an ad HTCondor is sure to read nine blocks of 1 KiB


class JobError(Exception):
    """What keeps a run from its result: a code of `REASONS`, and details for standard error."""


def is_group(text: str) -> bool:
    """Whether ``text`` may be a group's name: ``[a-z0-9][a-z0-9_-]{0,63}``, but neither none nor other."""
    plain = GROUP_CHARACTERS.issuperset(text) and text[:1] not in "_-" and len(text) <= MAX_GROUP_LENGTH
    return plain and text not in ("none", "other")


def is_node(text: str) -> bool:
    """Whether ``text`` may be the name of a host."""
    return NODE_CHARACTERS.issuperset(text) and 0 < len(text) <= MAX_NODE_LENGTH


def is_order(text: str) -> bool:
    """Whether ``text`` is the group held back, its cap, the group helped and the cores that its jobs request."""
    words = text.split(" ")
    held_back, cap, helped, request = words if len(words) == len(ORDER) else ORDER
    sized = is_number(cap) and is_number(request) and int(cap) <= MAX_CORES >= int(request) > 0
    return sized and is_group(held_back) and is_group(helped) and held_back != helped


def read_file(path: str) -> "tuple[str, int]":
    """Text of the file and Unix second of its last change; JobError if it is not fit to be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # or a FIFO would be waited for
        with open(descriptor, "rb") as stream:
            facts = os.fstat(descriptor)
            if not os.path.isfile(descriptor) or facts.st_mode & 0o002 or facts.st_size > MAX_BYTES:
                code = "too-big" if facts.st_size > MAX_BYTES else "unsafe"
                raise JobError(code, "%s: %d bytes, mode %#o" % (path, facts.st_size, facts.st_mode))
            text = stream.read(MAX_BYTES).decode("ascii")
    except UnicodeDecodeError as error:
        raise JobError("malformed", error) from None
    except OSError as error:
        raise JobError("no-file" if isinstance(error, FileNotFoundError) else "unreadable", error) from None
    return text, int(facts.st_mtime)


def parse(
    text: str, begin: int, end: int, known: "set[str]", now: int
) -> "tuple[list[tuple[str, str]], int]":
    """Nodes with their orders, and until when; JobError unless valid ``now``. Adds listed groups to ``known``."""
    *lines, rest = text.split("\n")
    header = dict(line[2:].partition(": ")[::2] for line in reversed(lines) if line.startswith("# "))
    rows = [(n, *line.partition(" ")) for n, line in enumerate(lines, 1) if line[:1] not in ("", "#")]
    orders = set(filter(is_order, {order for _, _, _, order in rows}))  # many nodes, few orders
    if "sharectl" not in header:
        header = {"sharectl": "1", **dict(zip(NUMBERS, map(str, (len(rows), begin, end))))}
    groups = {group for group in header.get("groups", "").split(",") if group}
    wrong = [MALFORMED % row for row in rows if row[3] not in orders or not is_node(row[1])]
    wrong += ["# groups: %a: write a-z, 0-9, _ and -" % group for group in groups if not is_group(group)]
    wrong += ["# %s: write a number" % name for name in NUMBERS if not is_number(header.get(name, ""))]
    if wrong or header["sharectl"] != "1":
        raise JobError("malformed", "; ".join(wrong) or "# sharectl: %a: write 1" % header["sharectl"])
    count, begin, end = (int(header[name]) for name in NUMBERS)
    if rest or count != len(rows):
        raise JobError("truncated", "%d of %d lines, no newline after %a" % (len(rows), count, rest))
    known |= groups
    strangers = {group for order in orders for group in order.split(" ")[::2]} - known
    if known and strangers:
        raise JobError("unknown-group", ", ".join(sorted(strangers)))
    future = begin > now + MAX_CLOCK_SKEW_SECONDS or end - begin > MAX_VALIDITY_SECONDS
    if future or end <= now:
        raise JobError("future" if future else "expired", "made at %d, valid until %d" % (begin, end))
    return [(node.lower(), order) for _, node, _, order in rows], end


def count_cores(lines: "list[str]", known: "set[str]", cores: "dict[str, int]") -> None:
    """Add to ``cores``, by group, those of the slots that condor_status printed; JobError if it did not."""
    for line in lines:
        try:
            _, text, account = line.split(" ", 2)
            held = int(float(text))
        except (ValueError, OverflowError) as error:
            raise JobError("startd-garbled", error) from None
        name = account.partition('"')[2].rstrip('"').split("@", 1)[0].split(".", 1)[0].lower()
        listed = name in known if known else name in cores or len(cores) < MAX_NAMED_GROUPS
        if held:
            name = name if listed and is_group(name) else "other"
            cores[name] = cores.get(name, 0) + held


def observe(options: "dict[str, str]", now: int) -> "tuple[str, dict[str, object]]":
    """Code and attributes of one look at the node and at the file; JobError without an answer from the startd."""
    known = {name for name in options["--groups"].split(",") if name}
    if not all(map(is_group, known)):
        raise JobError("bad-arguments", "--groups %s: write names of a-z, 0-9, _ and -" % options["--groups"])
    tool, max_age_seconds = start_tool(options), int(options["--max-age-seconds"])
    try:
        text, changed = read_file(options["--file"])
        code, (targets, end) = "no-line", parse(text, changed, changed + max_age_seconds, known, now)
    except JobError as error:
        code, (targets, end) = failed(*error.args)[0], ([], 0)
    lines = finish_tool(*tool)
    host = (options["--host"] or lines[0].split(" ", 1)[0].strip('"')).lower()
    names = (host, host.split(".", 1)[0])
    mine = [order for node, order in targets if node in names or node.split(".", 1)[0] == host]
    if mine:
        code = "ok" if len(mine) == 1 else failed("duplicate-node", "%d lines for %s" % (len(mine), host))[0]
    held_back, cap, helped, request, until = [*mine[0].split(" "), str(end)] if code == "ok" else NO_TARGET
    cores = {held_back: 0} if code == "ok" else {}
    count_cores(lines, known, cores)
    order = sorted(cores, key=lambda name: (name != held_back, -cores[name], name))
    jobs = ":".join("%s:%d" % (name, cores[name]) for name in order) or "none:0"
    return code, dict(zip(FOUND, (jobs, (held_back, helped), (int(cap), int(request)), int(until))))


def is_number(text: str) -> bool:
    """Whether ``text`` is a whole number, and not a long one."""
    return not text.strip("0123456789") and 0 < len(text) <= MAX_DIGITS


def literal(value: object) -> str:
    """``value`` as ClassAd text, bytes as an expression; ValueError for what HTCondor would misread."""
    if isinstance(value, (list, tuple)):
        return "{" + ", ".join(map(literal, value)) + "}"
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return str(value)
    if isinstance(value, bytes) and b"\n" not in value:
        return value.decode("ascii")
    if isinstance(value, str) and PLAIN_CHARACTERS.issuperset(value):
        return '"' + value + '"'
    raise ValueError("no ClassAd literal: %a" % (value,))


def render_ad(attributes: "dict[str, object]") -> str:
    """Lines ``name = value`` for HTCondor; ValueError as `literal`, or for more than it is sure to read."""
    text = "".join("%s = %s\n" % (name, literal(value)) for name, value in attributes.items())
    if len(text) > MAX_AD_BYTES:
        raise ValueError("an ad of %d bytes" % len(text))
    return text


def parse_arguments(argv: "list[str]") -> "tuple[dict[str, str], list[str]]":
    """Value of every option, given or by default, and all that is wrong with ``argv``."""
    values = {option: row[0] for option, row in OPTIONS.items()}
    problems = ["%a has no value" % argv[-1]] if len(argv) % 2 else []
    for option, text in zip(argv[::2], argv[1::2]):
        _, lowest, highest, _ = OPTIONS.get(option, ("", 0, 0, ""))
        if option not in OPTIONS:
            problems.append("%a: write one of %s" % (option, ", ".join(OPTIONS)))
        elif not highest or (is_number(text) and lowest <= int(text) <= highest):
            values[option] = text
        else:
            problems.append("%s %a: write a whole number from %d to %d" % (option, text, lowest, highest))
    return values, problems


def start_tool(options: "dict[str, str]") -> "tuple[list[str], int, int]":
    """Command, process id and output of condor_status, which asks the startd for the `COLUMNS` of its slots."""
    inherited = os.environ.get("CONDOR_INHERIT", "").split()  # process id and address of the startd, and more
    startd = options["--startd"] or (inherited[1:2] or [os.uname().nodename])[0]
    argv = [options["--condor-status"], "-direct", startd, "-af:V", *COLUMNS]
    pipe, pipe_end = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.dup2(pipe_end, 1)
            os.execvp(argv[0], argv)  # noqa: S606  # no shell: what it gets is what is written here
        finally:
            os._exit(127)
    os.close(pipe_end)
    return argv, pid, pipe


def finish_tool(argv: "list[str]", pid: int, pipe: int) -> "list[str]":
    """Its lines, one for every slot; JobError if there are none."""
    with open(pipe, "rb") as stream:
        *lines, rest = stream.read(MAX_BYTES).decode("ascii", "replace").split("\n")
    status = os.waitpid(pid, 0)[1]  # a tool with more to say has died of the closed pipe
    if status or rest or not lines:
        raise JobError("no-startd", "%s: wait status %#x, last words %a" % (" ".join(argv[:3]), status, rest))
    return lines


def failed(code: str, detail: object) -> "tuple[str, str]":
    """``code`` and the fail-safe ad; the detail goes to standard error."""
    os.write(2, ("%s: %s: %a\n" % (os.path.basename(__file__), code, str(detail)[:MAX_DETAIL])).encode())
    return code, render_ad(FAIL_SAFE)


def run(options: "dict[str, str]", now: int) -> "tuple[str, str]":
    """Code and ad of one look at the node; raises nothing."""
    try:
        code, found = observe(options, now)
        return code, render_ad(found)
    except JobError as error:
        return failed(*error.args)
    except Exception as error:  # noqa: BLE001  # whatever it is, the ad is complete
        return failed("internal-error", repr(error))


def run_apart(options: "dict[str, str]", now: int) -> "tuple[str, str]":
    """The same in time, from a process of its own: one that a file system hangs heeds no signal but SIGKILL."""
    pipe, pipe_end = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setpgid(0, 0)
            os.write(pipe_end, "\n".join(run(options, now)).encode())
        finally:
            os._exit(0)
    os.close(pipe_end)
    if not select.select([pipe], [], [], float(options["--timeout-seconds"]))[0]:
        os.killpg(pid, 9)  # the module signal takes longer to import than all of this file
        return failed("timeout", "not through in %s s" % options["--timeout-seconds"])
    with open(pipe) as stream:
        code, _, text = stream.read().partition("\n")
    os.waitpid(pid, 0)
    return (code, text) if text else failed("internal-error", "the process died")


def main(argv: "list[str]") -> int:
    """Exit status of a whole run, as `REASONS` has it."""
    if argv == ["--help"]:
        rows = [(name, row[-1], row[0]) for table in (OPTIONS, REASONS) for name, row in table.items()]
        print(__doc__, *map("  %-18s %s (%s)".__mod__, rows), sep="\n", flush=True)
        return 0
    now = int(time.time())
    options, problems = parse_arguments(argv)
    try:
        code, text = failed("bad-arguments", "; ".join(problems)) if problems else run_apart(options, now)
    except OSError as error:
        code, text = failed("internal-error", error)
    os.write(1, (text + render_ad({REASON: code, TIME: now})).encode())
    return REASONS[code][0]


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # the interpreter's own way out takes 2 ms
