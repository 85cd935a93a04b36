#!/usr/bin/python3 -IS
"""JOB_CTL: tells a node which group it holds back and which it helps.

A STARTD_CRON job of HTCondor. It asks the startd that runs it for the cores of each group, and, at
the same time, target.py, which lies beside this file, for the node's target: "alice 56 cms 8".
Every run publishes all of these attributes:

  t1_CurrentJobs            "alice:64:lhcb:3": cores by group, the held-back group first, then the
                            largest; "none:0" without jobs
  t1_TargetGroups           {"alice", "cms"}: group held back, group helped; {"none", "none"}
                            without a target
  t1_Targetcores            {56, 8}: most cores of the first group, cores that a job of the second
                            requests; {0, 0} without a target
  t1_TargetUntil            end of the target, Unix seconds; 0 without a target
  t1_TargetSequence         number of its plan; 0 without a target
  t1_MulticorePending       true if multicore jobs wait that could run, of a group not far over its
                            share
  t1_MulticorePendingUntil  end of that, Unix seconds
  t1_JobCtlReason           ok, or a code below: why there is no target
  t1_JobCtlTime             time of this run, Unix seconds
  t1_SharectlVersion        version of these files, as `sharectl --version` has it

A group is the longest name, of --groups and of the plan, that AccountingGroup begins with; if there
are no names its first part; else "other". The valid source with the highest sequence decides,
unless a higher one was accepted before. Without a valid source the highest exit status decides.

When what it publishes changes, the startd is to send the slot's ad at once, for the negotiator to
see: a line "- update:true" asks for it. Some releases of HTCondor before 25.7.2 send no ad of a
slot then. --update-program does it there, and needs WRITE for the user of this job. It leaves
t1_UpdateTime in the ad.
"""

import os
import select
import sys
import time

VERSION = "0.1.0"
HANDED_ON = "--host --max-age-seconds --key-file --pool --identity --ca-file"
OPTIONS = {  # default, lowest and highest value (0 and 0: a text), meaning
    "--source": ("file:/var/lib/sharectl/sharectl.txt", 0, 0, "sources, with commas: see below"),
    "--groups": ("", 0, 0, "groups to count, with commas, besides those of the plan"),
    "--state": ("/var/lib/condor/job_ctl.state", 0, 0, "memory between runs, on a local disk"),
    "--condor-status": ("condor_status", 0, 0, "path of condor_status, or its name on PATH"),
    "--startd": ("", 0, 0, "name or address of a startd; empty: the startd that runs this job"),
    "--timeout-seconds": ("10", 1, 300, "time until this job ends and kills its children"),
    "--update-program": ("", 0, 0, "condor_update_machine_ad, where HTCondor needs it: see below"),
    "--target-program": ("", 0, 0, "command in the place of target.py"),
    **dict.fromkeys(HANDED_ON.split(), ("", 0, 0, "handed to target.py: see below")),
}
REASONS = {  # exit status, meaning; more of them below, in target.py
    "internal-error": (1, "a fault of this program, or no process could be started"),
    "bad-arguments": (2, "an option is wrong: mend STARTD_CRON_<name>_ARGS"),
    "timeout": (75, "--timeout-seconds are over: the startd, a source or a file system hangs"),
    "no-startd": (75, "condor_status cannot be run, or had no answer from the startd"),
    "startd-garbled": (76, "the answer is not what condor_status prints"),
    "backwards": (77, "a higher sequence was accepted before: an old copy, or two centres publish"),
    "disagree": (77, "sources have different targets of one sequence"),
    "no-state": (78, "the state file cannot be written: mend the folder of --state"),
    "target-garbled": (78, "target.py cannot be run or is of another version: install all files"),
}
AD = """\
t1_CurrentJobs = "%(jobs)s"
t1_TargetGroups = {"%(held_back)s", "%(helped)s"}
t1_Targetcores = {%(cap)d, %(request)d}
t1_TargetUntil = %(target_until)d
t1_TargetSequence = %(target_sequence)d
t1_MulticorePending = %(pending)s
t1_MulticorePendingUntil = %(until)d
t1_JobCtlReason = "%(code)s"
t1_JobCtlTime = %(now)d
t1_SharectlVersion = "%(version)s"
"""
NEWS = "- update:true\n"
BUSY = 'PartitionableSlot=!=True && BackfillSlot=!=True && member(State, {"Claimed", "Preempting"})'
COLUMNS = (  # a user's text may have line ends, and megabytes
    "ifThenElse(%s, Cpus ?: 0, 0)" % BUSY,
    'replaceAll("[^A-Za-z0-9_.@-]", substr(AccountingGroup, 0, 256), "?")',
)
LINES = ["source", "reason", "sequence", "until", "order", "groups"]  # of target.py, in this order
WHOLE, PENDING = ("ok", "no-line"), ("True", "False", "undefined")
NO_TARGET = ("none", "0", "none", "0", "undefined")
STATE = "job_ctl 1, --pool %s: highest sequence accepted, last published\n%d\n%s\n"
GROUP_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
MAX_GROUP_LENGTH, MAX_NAMED_GROUPS, MAX_SOURCES, MAX_DIGITS, MAX_DETAIL = 64, 32, 8, 10, 1000
MAX_JOBS_BYTES, MAX_OUTPUT_BYTES = 8000, 2097152
POLL_SECONDS, TOO_LATE, SKEW_SECONDS = 0.0003, -1, 300


class JobError(Exception):
    """A fault that ends a run: a code of `REASONS`, and details for standard error."""


def is_number(text: str) -> bool:
    """True for a whole number of at most `MAX_DIGITS` digits."""
    return not text.strip("0123456789") and 0 < len(text) <= MAX_DIGITS


def is_group(text: str) -> bool:
    """True for a group's name: parts ``[a-z0-9][a-z0-9_-]*`` with dots, not none or other."""
    if len(text) > MAX_GROUP_LENGTH or text in ("none", "other"):
        return False
    parts = text.split(".")
    return all(part and part[0] not in "_-" and GROUP_CHARACTERS.issuperset(part) for part in parts)


class Answer:
    """Answer of a source, or the one that decides: exit status, code, plan, order, groups."""

    def __init__(self, status: int, code: str, order: "tuple[str, ...]" = NO_TARGET) -> None:
        self.status, self.code, self.groups = status, code, ""
        self.sequence = self.until = 0
        self.held_back, cap, self.helped, request, self.pending = self.order = order
        self.cap, self.request = int(cap), int(request)


def parse_target(status: int, output: bytes) -> Answer:
    """Answer of a source, from the wait status and the output of target.py."""
    rows = [line.partition(" ") for line in output.decode("ascii", "replace").split("\n")]
    if [row[0] for row in rows] == [*LINES, ""] and not status & 0xFF:
        texts = {name: text for name, _, text in rows}
        code, order = texts["reason"], tuple(texts["order"].split(" "))
        if is_order(order, code) and is_number(texts["sequence"]) and is_number(texts["until"]):
            answer = Answer(status >> 8, code, order)
            answer.sequence, answer.until = int(texts["sequence"]), int(texts["until"])
            answer.groups = texts["groups"]
            return answer
    code = "timeout" if status == TOO_LATE else "target-garbled"
    return refused(code, "target.py: wait status %d, output %a" % (status, output[:MAX_DETAIL]))


def is_order(order: "tuple[str, ...]", code: str) -> bool:
    """True for the words of an order that fit a code, which is one too."""
    if len(order) != len(NO_TARGET) or not GROUP_CHARACTERS.issuperset(code):
        return False
    held_back, cap, helped, request, pending = order
    is_target = is_group(held_back) and is_group(helped)
    fits = is_target if code == "ok" else order[:4] == NO_TARGET[:4]
    return fits and is_number(cap) and is_number(request) and pending in PENDING


def refused(code: str, detail: object) -> Answer:
    """Answer without a target, for a reason of this program."""
    return Answer(REASONS[complain(code, detail)][0], code)


def choose(answers: "list[Answer]", accepted: int) -> Answer:
    """Answer that decides; ``accepted`` is the highest sequence of earlier runs."""
    whole = [answer for answer in answers if answer.code in WHOLE]
    highest = max((answer.sequence for answer in whole), default=0)
    best = [answer for answer in whole if answer.sequence == highest]
    orders = {answer.order for answer in best}
    if not best:
        chosen = max(answers, key=lambda answer: answer.status)
    elif 0 < highest < accepted:
        chosen = refused("backwards", "sequence %d after %d" % (highest, accepted))
    elif len(orders) > 1:
        chosen = refused("disagree", "sequence %d: %s" % (highest, sorted(orders)))
    else:
        chosen = min(best, key=lambda answer: answer.until)
    chosen.groups = ",".join({answer.groups for answer in best or answers})
    return chosen


def count_cores(status: int, output: bytes, groups: "set[str]", cores: "dict[str, int]") -> None:
    """Add the cores of the slots of condor_status to ``cores``, by group. Raises JobError."""
    *lines, rest = output.decode("ascii", "replace").split("\n")
    if status or rest or not lines:
        raise JobError("timeout" if status == TOO_LATE else "no-startd", "status %d" % status)
    for line in lines:
        try:
            text, account = line.split(" ", 1)
            held = int(float(text))
        except (ValueError, OverflowError) as error:
            raise JobError("startd-garbled", error) from None
        name = account.partition('"')[2].rstrip('"').split("@", 1)[0].lower()
        name = (name.rpartition(".")[0] or name) + "."  # without the user
        names = groups or filter(is_group, [*cores, name.split(".", 1)[0]][:MAX_NAMED_GROUPS])
        if held > 0:
            above = (group for group in names if name.startswith(group + "."))
            group = max(above, key=len, default="other")
            cores[group] = cores.get(group, 0) + held


def observe(options: "dict[str, str]", accepted: int) -> "tuple[str, Answer]":
    """Cores by group, and the answer that decides. Raises JobError."""
    named = {name for name in options["--groups"].split(",") if name}
    sources = [source for source in options["--source"].split(",") if source]
    if not all(map(is_group, named)) or not 0 < len(sources) <= MAX_SOURCES:
        wanted = "--groups %s: a-z, 0-9, _, -; --source: 1 to 8"
        raise JobError("bad-arguments", wanted % options["--groups"])
    # First, it is the slower one.
    tool = [options["--condor-status"], "-direct", startd_of(options), "-af:V", *COLUMNS]
    children = {"": start(tool)}
    children.update((source, start(target_command(source, options))) for source in sources)
    ends = gather(children, time.monotonic() + int(options["--timeout-seconds"]))
    answer = choose([parse_target(*ends[source]) for source in sources], accepted)
    named.update(filter(is_group, answer.groups.split(",")))
    cores = {answer.held_back: 0} if answer.code == "ok" else {}
    count_cores(*ends[""], named, cores)
    names = sorted(cores, key=lambda name: (name != answer.held_back, -cores[name], name))
    jobs = ":".join("%s:%d" % (name, cores[name]) for name in names) or "none:0"
    if len(jobs) > MAX_JOBS_BYTES:
        raise JobError("internal-error", "%d bytes of groups, HTCondor reads 9 KiB" % len(jobs))
    return jobs, answer


def target_command(source: str, options: "dict[str, str]") -> "list[str]":
    """Argv of target.py for one source; the program is "" if --target-program names no other."""
    argv = options["--target-program"].split() or [""]
    for option, text in options.items():
        if text and option not in ("--startd", "--target-program", "--update-program"):
            argv += [option, text]
    return [*argv, "--source", source]


def startd_of(options: "dict[str, str]") -> str:
    """Name or address of the startd; its address is second in CONDOR_INHERIT."""
    inherited = os.environ.get("CONDOR_INHERIT", "").split()[1:2]
    return options["--startd"] or [*inherited, os.uname().nodename][0]


def send_ads(options: "dict[str, str]", now: int) -> int:
    """Exit status of having the startd send its ads, which it does a second later."""
    command = [options["--update-program"], "-name", startd_of(options)]
    try:
        pipe, pipe_end = os.pipe()
        os.write(pipe_end, b"t1_UpdateTime = %d\n\n" % now)
        os.close(pipe_end)
        os.dup2(pipe, 0)
        os.set_inheritable(0, True)  # noqa: FBT003  # it is the pipe if HTCondor gave no descriptor 0
        end = time.monotonic() + int(options["--timeout-seconds"])
        fault: object = gather({"": start(command)}, end)[""][0]
    except OSError as error:
        fault = error
    if fault:
        complain("not-sent", "%s: %s" % (command[0], fault))
    return 75 if fault else 0


def run_target(argv: "list[str]") -> int:
    """Exit status of target.py, in this process: another interpreter takes 10 ms more."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    import target  # noqa: PLC0415  # after the fork: a faulty file must not end this job

    return target.main(argv)


def start(argv: "list[str]") -> "tuple[int, int]":
    """Process id and output pipe of a command, or of target.py, which leads a process group."""
    pipe, pipe_end = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setpgid(0, 0)
            os.dup2(pipe_end, 1)
            if not argv[0]:
                os._exit(run_target(argv[1:]))
            os.execvp(argv[0], argv)  # noqa: S606  # no shell: what it gets is what is written here
        except Exception as error:  # noqa: BLE001  # nobody else will report it
            complain("cannot-run", "%s: %s" % (argv[0] or "target.py", error))
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
    """Wait status of a child; its process group is killed then, or at ``end`` without a wait."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while not os.waitid(os.P_PID, pid, options) and time.monotonic() < end:
        select.select([], [], [], POLL_SECONDS)
    ended = os.waitid(os.P_PID, pid, options)
    (os.killpg if os.getpgid(pid) == pid else os.kill)(pid, 9)  # it may not have made its group yet
    return os.waitpid(pid, 0)[1] if ended else TOO_LATE


def read_state(options: "dict[str, str]", latest: int) -> "tuple[int, str]":
    """Highest sequence accepted, at most ``latest``, and last publication; 0 and "" if unknown."""
    try:
        descriptor = os.open(options["--state"], os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with open(descriptor, "rb") as stream:
            is_file = os.path.isfile(descriptor)
            content = stream.read(MAX_JOBS_BYTES if is_file else 0).decode("ascii")
        _, sequence, last, _ = content.split("\n")
        if content == STATE % (options["--pool"], int(sequence), last) and int(sequence) <= latest:
            return int(sequence), last
    except (OSError, ValueError) as error:
        content = str(error)
    if os.path.lexists(options["--state"]):  # or it is the first run
        complain("fresh-start", "%a: of another job or --pool, or from the future" % content)
    return 0, ""


def remember(options: "dict[str, str]", sequence: int, last: str) -> bool:
    """Replace the state file; returns False if that fails."""
    path = options["--state"]
    try:
        if os.path.lexists(path + ".new"):
            os.unlink(path + ".new")  # of a run that was killed, or a FIFO that nobody reads
        descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with open(descriptor, "wb") as stream:
            stream.write((STATE % (options["--pool"], sequence, last)).encode())
        os.replace(path + ".new", path)
    except OSError as error:
        return not complain("no-state", error)
    return True


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


def ad_of(jobs: str, answer: Answer, now: int) -> str:
    """Attributes that a run publishes; an answer that is not "ok" has no target."""
    values = {**vars(answer), "jobs": jobs, "now": now, "version": VERSION}
    values["target_until"] = answer.until if answer.code == "ok" else 0
    values["target_sequence"] = answer.sequence if answer.code == "ok" else 0
    return AD % values


def run(options: "dict[str, str]", problems: "list[str]", now: int) -> "tuple[int, str]":
    """Exit status and output of a whole run; raises nothing."""
    accepted, before = read_state(options, now + SKEW_SECONDS)
    jobs = "none:0"
    try:
        if problems:
            raise JobError("bad-arguments", "; ".join(problems))  # noqa: TRY301  # all faults go one way
        jobs, answer = observe(options, accepted)
    except JobError as error:
        answer = refused(*error.args)
    except Exception as error:  # noqa: BLE001  # whatever it is, the ad is complete
        answer = refused("internal-error", repr(error))
    has_end = answer.code == "ok" and answer.until > 0
    last = " ".join([*answer.order, str(has_end), answer.code])
    is_new = last != before
    is_newer = answer.sequence > accepted
    written = (is_newer or is_new) and remember(options, max(accepted, answer.sequence), last)
    if is_newer and not written:
        answer = Answer(REASONS["no-state"][0], "no-state")
    return answer.status, ad_of(jobs, answer, now) + (NEWS if written and is_new else "")


def main(argv: "list[str]") -> int:
    """Exit status of a whole run, one of `REASONS`."""
    options, problems = parse_arguments(argv)
    if argv == ["--help"]:
        rows = [*OPTIONS.items(), *REASONS.items()]
        lines = ["  %-18s %s (%s)" % (name, row[-1], row[0]) for name, row in rows]
        text = "\n".join([__doc__, *lines, ""])
        try:
            os.write(1, text.encode())
        except OSError:  # nobody reads it
            return 1
        return run_target(argv)
    status, text = run(options, problems, int(time.time()))
    os.write(1, text.encode())
    if text.endswith(NEWS) and options["--update-program"]:
        status = send_ads(options, int(time.time())) or status
    return status


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # the interpreter's own exit takes 2 ms
