#!/usr/bin/python3 -IS
"""MC_GRACE: keeps the cores of a multicore job for another multicore job, for a while.

A STARTD_CRON job of HTCondor. It asks the startd that runs it for the free cores of each
partitionable slot. Every run publishes all of these attributes:

  MC_GRACE          expression, true in a partitionable slot whose --cpus cores are free for less
                    than --grace-seconds. It becomes true by itself when cores become free between
                    two runs, and false on time. False without a slot to guard, and after a fault.
  t1_McGraceReason  ok, or a code below: why MC_GRACE is False, or begins again
  t1_McGraceTime    time of this run, Unix seconds

A file keeps the time since when cores are free. Cores that are taken and given back between two
runs have no grace: a period of about a minute is short enough. Options come from
STARTD_CRON_<name>_ARGS. Details of a fault go to standard error.
"""

import os
import select
import sys
import time

OPTIONS = {  # default, lowest and highest value (0 and 0: a text), meaning
    "--cpus": ("8", 1, 100000, "free cores worth guarding"),
    "--grace-seconds": ("480", 0, 86400, "how long they are kept for multicore jobs"),
    "--state": ("/var/lib/condor/mc_grace.state", 0, 0, "file with the time since cores are free"),
    "--condor-status": ("condor_status", 0, 0, "path of condor_status, or its name on PATH"),
    "--startd": ("", 0, 0, "name or address of a startd; empty: the startd that runs this job"),
    "--timeout-seconds": ("10", 1, 300, "after so long this job ends itself"),
}
REASONS = {  # exit status, meaning
    "ok": (0, "every partitionable slot was looked at"),
    "nothing-to-guard": (0, "no partitionable slot has --cpus cores in all"),
    "fresh-start": (0, "works, but the state file was of no use and is written anew"),
    "internal-error": (1, "a fault of this program, or no process could be started"),
    "bad-arguments": (2, "an option is wrong: mend STARTD_CRON_<name>_ARGS"),
    "no-state": (74, "the state file cannot be written: mend the folder of --state"),
    "timeout": (75, "--timeout-seconds are over: the startd or the file system of --state hangs"),
    "no-startd": (75, "condor_status cannot be run, or had no answer from the startd"),
    "startd-garbled": (75, "the answer is not what condor_status prints"),
}
REASON, TIME = "t1_McGraceReason", "t1_McGraceTime"
FAIL_SAFE: "dict[str, object]" = {"MC_GRACE": False}
GUARDED = "ifThenElse(PartitionableSlot =?= True && BackfillSlot =!= True, TotalSlotCpus ?: 0, 0)"
COLUMNS = ("SlotID ?: 0", GUARDED, "Cpus ?: 0", "NumDynamicSlotsTime ?: 0")
STATE_TITLE = "mc_grace 1, --cpus %s: slots, and since when they are free"
MAX_STATE_BYTES = 4096
# Quotes and backslashes are escaped in more than one way.
PLAIN_CHARACTERS = frozenset(map(chr, range(0x20, 0x7F))) - frozenset('"\\')
MAX_DIGITS, MAX_DETAIL = 10, 1000
MAX_BYTES, MAX_AD_BYTES = 1048576, 9000  # of an ad HTCondor is sure to read nine blocks of 1 KiB


class JobError(Exception):
    """A fault that ends a run: a code of `REASONS`, and details for standard error."""


def parse_slots(lines: "list[str]", cpus: int) -> "dict[int, tuple[int, int]]":
    """SlotID -> free cores and second of the last change, of slots of ``cpus`` cores or more."""
    try:
        rows = [[int(float(word)) for word in line.split(" ")] for line in lines]
        return {slot: (free, changed) for slot, total, free, changed in rows if total >= cpus}
    except (ValueError, OverflowError) as error:
        raise JobError("startd-garbled", error) from None


def read_state(path: str, cpus: int, now: int) -> "dict[int, int]":
    """SlotID -> second since when it is free, 0 if it is not; empty without a file.

    Raises OSError for a file that cannot be read, ValueError for one that is not of this job, is
    for another number of ``cpus``, or comes from the future.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return {}
    with open(descriptor, "rb") as stream:
        # A FIFO may give None.
        content = stream.read(MAX_STATE_BYTES) if os.path.isfile(descriptor) else b""
    title, *lines, rest = content.decode("ascii").split("\n")
    since = {int(slot): int(second) for slot, second in map(str.split, lines)}
    is_past = all(0 <= second <= now for second in since.values())
    if title != STATE_TITLE % cpus or rest or not is_past:
        wanted = "%s: not written by this job, with --cpus %s, before %d"
        raise ValueError(wanted % (path, cpus, now))
    return since


def write_state(path: str, cpus: int, since: "dict[int, int]") -> None:
    """Replace the state file. Raises JobError."""
    text = "\n".join([STATE_TITLE % cpus, *("%d %d" % row for row in sorted(since.items())), ""])
    try:
        if os.path.lexists(path + ".new"):
            os.unlink(path + ".new")  # of a run that was killed
        descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with open(descriptor, "wb") as stream:
            stream.write(text.encode())
        os.replace(path + ".new", path)
    except OSError as error:
        raise JobError("no-state", error) from None


def remember(
    before: "dict[int, int]",
    slots: "dict[int, tuple[int, int]]",
    cpus: int,
    grace_seconds: int,
    now: int,
) -> "dict[int, int]":
    """SlotID -> second since when ``cpus`` cores are free, or 0; ``before``: of the last run.

    Cores that have become free did so when the startd last made or ended a dynamic slot, or
    earlier. That second is not believed if grace were over by now although the last run saw the
    cores taken.
    """
    since = {}
    for slot, (free, changed) in slots.items():
        seen = before.get(slot)
        earliest = 1 if seen is None else now - grace_seconds
        begin = seen or (changed if earliest <= changed <= now else now)
        since[slot] = begin if free >= cpus else 0
    return since


def grace(since: "dict[int, int]", cpus: int, grace_seconds: int, now: int) -> object:
    """Value of MC_GRACE: bytes of an expression, or False.

    Cores that are free count until their time is over. Cores that are taken count from the moment
    they are free, and that is less than the grace time ago for so long from ``now``.
    """
    clauses = []
    for slot, second in sorted(since.items()):
        seen, deadline = (cpus, second + grace_seconds) if second else (0, now + grace_seconds)
        if deadline > now:
            clause = "(MY.SlotID ?: %d) == %d && (MY.Cpus ?: %d) >= %d && time() < %d"
            clauses.append(clause % (slot, slot, seen, cpus, deadline))
    text = "MY.DynamicSlot =!= True && ((%s))" % ") || (".join(clauses)
    return text.encode() if clauses else False


def observe(options: "dict[str, str]", now: int) -> "tuple[str, dict[str, object]]":
    """Code and attributes of one look at the node. Raises JobError."""
    cpus, grace_seconds = int(options["--cpus"]), int(options["--grace-seconds"])
    path = options["--state"]
    tool = start_tool(options)
    try:
        code, before = "ok", read_state(path, cpus, now)
    except (OSError, ValueError) as error:
        code, before = failed("fresh-start", error)[0], {}
    slots = parse_slots(finish_tool(*tool), cpus)
    if not slots:
        return "nothing-to-guard", FAIL_SAFE
    since = remember(before, slots, cpus, grace_seconds, now)
    if since != before:
        write_state(path, cpus, since)
    return code, {"MC_GRACE": grace(since, cpus, grace_seconds, now)}


def is_number(text: str) -> bool:
    """True for a whole number of at most `MAX_DIGITS` digits."""
    return not text.strip("0123456789") and 0 < len(text) <= MAX_DIGITS


def literal(value: object) -> str:
    """``value`` as ClassAd text, bytes as an expression. Raises ValueError for another type."""
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return str(value)
    if isinstance(value, bytes) and b"\n" not in value:
        return value.decode("ascii")
    if isinstance(value, str) and PLAIN_CHARACTERS.issuperset(value):
        return '"' + value + '"'
    raise ValueError("no ClassAd literal: %a" % (value,))


def render_ad(attributes: "dict[str, object]") -> str:
    """Lines ``name = value`` for HTCondor. ValueError as `literal`, or above `MAX_AD_BYTES`."""
    text = "".join("%s = %s\n" % (name, literal(value)) for name, value in attributes.items())
    if len(text) > MAX_AD_BYTES:
        raise ValueError("an ad of %d bytes" % len(text))
    return text


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


def start_tool(options: "dict[str, str]") -> "tuple[list[str], int, int]":
    """Command, process id and output pipe of condor_status for the startd's slots."""
    # Process id and address of the startd, and more.
    inherited = os.environ.get("CONDOR_INHERIT", "").split()
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
    """Lines of condor_status, one a slot. Raises JobError without any."""
    with open(pipe, "rb") as stream:
        *lines, rest = stream.read(MAX_BYTES).decode("ascii", "replace").split("\n")
    status = os.waitpid(pid, 0)[1]  # a tool that wrote more ended by SIGPIPE
    if status or rest or not lines:
        detail = "%s: wait status %#x, last words %a" % (" ".join(argv[:3]), status, rest)
        raise JobError("no-startd", detail)
    return lines


def failed(code: str, detail: object) -> "tuple[str, str]":
    """``code`` and the fail-safe ad; the detail goes to standard error."""
    line = "%s: %s: %a\n" % (os.path.basename(__file__), code, str(detail)[:MAX_DETAIL])
    os.write(2, line.encode())
    return code, render_ad(FAIL_SAFE)


def run(options: "dict[str, str]", now: int) -> "tuple[str, str]":
    """Code and ad of one look at the node; raises nothing."""
    try:
        code, attributes = observe(options, now)
        return code, render_ad(attributes)
    except JobError as error:
        return failed(*error.args)
    except Exception as error:  # noqa: BLE001  # whatever it is, the ad is complete
        return failed("internal-error", repr(error))


def run_apart(options: "dict[str, str]", now: int) -> "tuple[str, str]":
    """`run` in a child with a deadline: a hung file system heeds no signal but SIGKILL."""
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
        # It may not have made its group yet.
        (os.killpg if os.getpgid(pid) == pid else os.kill)(pid, 9)
        return failed("timeout", "not through in %s s" % options["--timeout-seconds"])
    with open(pipe) as stream:
        code, _, text = stream.read().partition("\n")
    os.waitpid(pid, 0)
    return (code, text) if text else failed("internal-error", "the process died")


def main(argv: "list[str]") -> int:
    """Exit status of a whole run, one of `REASONS`."""
    if argv == ["--help"]:
        rows = [*OPTIONS.items(), *REASONS.items()]
        lines = ["  %-18s %s (%s)" % (name, row[-1], row[0]) for name, row in rows]
        text = "\n".join([__doc__, *lines, ""])
        try:
            os.write(1, text.encode())
        except OSError:  # nobody reads it
            return 1
        return 0
    now = int(time.time())
    options, problems = parse_arguments(argv)
    try:
        if problems:
            code, text = failed("bad-arguments", "; ".join(problems))
        else:
            code, text = run_apart(options, now)
    except OSError as error:
        code, text = failed("internal-error", error)
    os.write(1, (text + render_ad({REASON: code, TIME: now})).encode())
    return REASONS[code][0]


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # the interpreter's own exit takes 2 ms
