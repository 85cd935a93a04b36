#!/usr/bin/python3 -IS
"""target.py: what a source says about this node's target, or why it is refused.

job_ctl.py runs it for each source. By hand, with the options of the node (condor_config_val
STARTD_CRON_JOB_CTL_ARGS):
  target.py --source file:/shared/sharectl.txt,collector: --identity condor@pool --host cn-609-05-06

For each source it prints source, reason (a code), sequence, until (Unix seconds), order and groups.
The order "alice 56 cms 8 True" means: hold alice back to 56 cores, help jobs of cms that request 8,
and multicore jobs wait that could run (True, False, or undefined). It changes nothing. Sources:

  file:/path                     a file that all nodes see; links are followed; a file that
                                 everybody may write to is refused
  https://host/path              a web server: see target_https.py below
  collector:, collector:ADDRESS  this node's ad in its collector or in another one: see
                                 target_collector.py below

One wrong line, or an end in the past, refuses the whole document. A line is
"cn-609-05-06 alice 56 cms 8". The header has lines "# sharectl: 1" (the format), sequence,
generated, valid_until, targets (number of lines) and groups, and may have pool, multicore_pending
(0 or 1) and signature. A file without "# sharectl: ", written by hand, is valid for
--max-age-seconds after its last change. With --pool only documents of that pool are valid. With
--key-file the last line of a document of file: and https: must be "# signature: hmac-sha256 KEYID
HEX", by one of the keys, over all bytes before it. The key file has one or two lines "KEYID HEX",
64 to 128 hexadecimal digits, belongs to root or the reader, and has mode 0640.
"""

import os
import sys
import time

OPTIONS = {  # default, lowest and highest value (0 and 0: a text), meaning
    "--source": ("file:/var/lib/sharectl/sharectl.txt", 0, 0, "where to look"),
    "--host": ("", 0, 0, "this node's name, short or full; empty: its host name"),
    "--max-age-seconds": ("3600", 1, 86400, "life of a file that does not tell its end"),
    "--key-file": ("", 0, 0, "keys, one of which has signed; empty: signatures do not matter"),
    "--pool": ("", 0, 0, "name of the pool that a document must be for; empty: any"),
    "--identity": ("", 0, 0, "AuthenticatedIdentity that targets in a collector: must have"),
    "--ca-file": ("", 0, 0, "certificates to trust for https:; empty: the system's"),
    "--state": ("", 0, 0, "job_ctl's file; what a web server had is kept beside it"),
    "--groups": ("", 0, 0, "groups that targets may name besides the document's, with commas"),
    "--condor-status": ("condor_status", 0, 0, "path of condor_status, or its name on PATH"),
    "--timeout-seconds": ("10", 1, 300, "a web server or a collector has seven tenths of it"),
}
REASONS = {  # exit status, meaning; of several the highest counts
    "ok": (0, "there is a target"),
    "no-line": (0, "the document is right, and has no line for this node"),
    "no-file": (0, "there is no such file"),
    "expired": (0, "no longer valid: nothing new has come, or this node's clock is ahead"),
    "internal-error": (1, "a fault of this program, or no process could be started"),
    "bad-arguments": (2, "an option is wrong: mend STARTD_CRON_<name>_ARGS"),
    "unreadable": (76, "the file cannot be read"),
    "unsafe": (76, "not a regular file, or everybody may write to it"),
    "too-big": (76, "the file is larger than 1 MiB"),
    "truncated": (76, "the end of the last line is missing, or whole lines are"),
    "malformed": (76, "not ASCII, an unknown format, or a line is not as it should be"),
    "unknown-group": (76, "a target's group is neither in --groups nor in the document's own list"),
    "duplicate-node": (76, "more than one line is for this node"),
    "future": (76, "made in the future, or valid for more than a day: compare the clocks"),
    "other-pool": (77, "not for --pool"),
    "unsigned": (77, "there is a --key-file, but no signature"),
    "bad-signature": (77, "altered after it was signed, or signed with a key not in --key-file"),
    "no-key": (78, "the key file cannot be read"),
    "unsafe-key": (78, "the key file is another user's, or others have rights on it: chmod 0640"),
    "bad-key": (78, "the key file has not one or two lines KEYID HEX"),
    "source-garbled": (78, "the program for a source does not run or fit: install all files"),
}
ANSWER = """\
source %(source)s
reason %(code)s
sequence %(sequence)d
until %(until)d
order %(order)s
groups %(groups)s
"""
PLACES = {"file": "/", "https": "//", "collector": ""}  # what a source goes on with
HERE = os.path.dirname(os.path.realpath(__file__))
PROGRAMS = {"https": "target_https.py", "collector": "target_collector.py"}
NO_TARGET = "none 0 none 0"
PENDING = {"1": "True", "0": "False", "": "undefined"}
ORDER = ("held_back", "cap_cores", "helped", "request_cores")
MALFORMED = "line %d: %a %.0s%a: write node " + " ".join(ORDER)
NUMBERS = ("targets", "generated", "valid_until", "sequence")
GROUP_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
MAX_GROUP_LENGTH, MAX_NODE_LENGTH, MAX_CORES, MAX_KEY_ID, MAX_KEYS = 64, 253, 100000, 32, 2
MAX_DIGITS, MAX_DETAIL, MAX_BYTES = 10, 1000, 1048576
MAX_CLOCK_SKEW_SECONDS, DAY_SECONDS = 300, 86400


class JobError(Exception):
    """Why a source is refused: a code of `REASONS`, and details for standard error."""


def is_number(text: str) -> bool:
    """True for a whole number of at most `MAX_DIGITS` digits."""
    return not text.strip("0123456789") and 0 < len(text) <= MAX_DIGITS


def is_group(text: str) -> bool:
    """True for a group's name: parts ``[a-z0-9][a-z0-9_-]*`` with dots, not none or other."""
    if len(text) > MAX_GROUP_LENGTH or text in ("none", "other"):
        return False
    parts = text.split(".")
    return all(part and part[0] not in "_-" and GROUP_CHARACTERS.issuperset(part) for part in parts)


def is_node(text: str) -> bool:
    """True for a name that a host may have."""
    characters = text.lower().replace(".", "")
    return GROUP_CHARACTERS.issuperset(characters) and 0 < len(text) <= MAX_NODE_LENGTH


def is_order(text: str) -> bool:
    """True for the words of an order: group held back, cap, group helped, requested cores."""
    words = text.split(" ")
    held_back, cap, helped, request = words if len(words) == len(ORDER) else ORDER
    sized = is_number(cap) and is_number(request) and int(cap) <= MAX_CORES >= int(request) > 0
    return sized and is_group(held_back) and is_group(helped) and held_back != helped


def read_file(path: str) -> "tuple[bytes, os.stat_result]":
    """Content and status of a file. Raises JobError for one that is unsafe or unreadable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # or a FIFO would be waited for
        with open(descriptor, "rb") as stream:
            facts, is_file = os.fstat(descriptor), os.path.isfile(descriptor)
            if not is_file or facts.st_mode & 0o002 or facts.st_size > MAX_BYTES:
                code = "too-big" if facts.st_size > MAX_BYTES else "unsafe"
                why = "others may write to it" if is_file else "not a regular file"
                detail = (path, code if code == "too-big" else why, facts.st_size, facts.st_mode)
                raise JobError(code, "%s: %s: %d bytes, mode %#o" % detail)
            return stream.read(MAX_BYTES), facts
    except OSError as error:
        code = "no-file" if isinstance(error, FileNotFoundError) else "unreadable"
        raise JobError(code, "%s: %s" % (path, error.strerror)) from None


def read_keys(path: str) -> "dict[bytes, bytes]":
    """Key id -> key. Raises JobError for a file that is unsafe or invalid."""
    try:
        content, facts = read_file(path)
    except JobError as error:
        code = "unsafe-key" if error.args[0] == "unsafe" else "no-key"
        raise JobError(code, error.args[1]) from None
    if facts.st_mode & 0o027 or facts.st_uid not in (0, os.geteuid()):
        raise JobError("unsafe-key", "%s: owner %d, mode %#o" % (path, facts.st_uid, facts.st_mode))
    lines = content.decode("ascii", "replace").split("\n")
    rows = [line.split() for line in lines if line.strip() and line.lstrip()[0] != "#"]
    keys = {words[0]: words[-1] for words in rows}
    right = {len(words) for words in rows} == {2} and len(rows) == len(keys) <= MAX_KEYS
    for name, key in keys.items():
        right = right and len(name) <= MAX_KEY_ID and GROUP_CHARACTERS.issuperset(name)
        right = right and len(key) in range(64, 130, 2) and not key.strip("0123456789abcdefABCDEF")
    if not right:
        raise JobError("bad-key", "%s: write one or two lines KEYID HEX" % path)
    return {name.encode(): bytes.fromhex(key) for name, key in keys.items()}


def check_signature(content: bytes, keys: "dict[bytes, bytes]") -> None:
    """Raise JobError unless the last line is a signature, by one of ``keys``, of all before."""
    import hmac  # noqa: PLC0415  # it takes longer to import than the rest of this file

    body, _, words = content.rpartition(b"\n# signature: ")
    if not words.endswith(b"\n") or b"\n" in words[:-1] or not body:
        raise JobError("unsigned", "the last line is %a" % content[-MAX_KEY_ID:])
    method, key_id, digest = [*words.split(b" "), b"", b""][:3]
    right = hmac.new(keys.get(key_id, b""), body + b"\n", "sha256").hexdigest().encode() + b"\n"
    if method != b"hmac-sha256" or key_id not in keys or not hmac.compare_digest(digest, right):
        why = "in --key-file, but the signature is not its"
        why = why if key_id in keys else "not in --key-file"
        raise JobError("bad-signature", "key id %s: %s" % (key_id.decode("ascii", "replace"), why))


def parse(
    content: bytes, changed: int, options: "dict[str, str]", named: "set[str]", now: int
) -> "tuple[int, int, str, list[tuple[str, str]]]":
    """Sequence, end, pending, orders by node, if valid ``now``; ``changed`` is 0 for no file.

    Adds the groups of the document to ``named``.
    """
    try:
        *lines, rest = content.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        raise JobError("malformed", error) from None
    headings = [line[2:] for line in lines if line.startswith("# ")]
    header = dict(line.partition(": ")[::2] for line in reversed(headings))  # the first one counts
    numbered = [row for row in enumerate(lines, 1) if row[1][:1] not in ("", "#")]
    rows = [(number, *line.partition(" ")) for number, line in numbered]
    orders = set(filter(is_order, {order for _, _, _, order in rows}))  # many nodes, few orders
    cut = "sharectl" in header and (rest or "targets" not in header)  # the head ends with it
    if "sharectl" not in header and changed:
        numbers = (len(rows), changed, changed + int(options["--max-age-seconds"]), 0)
        header = {"sharectl": "1", **dict(zip(NUMBERS, map(str, numbers)))}
    groups = {group for group in header.get("groups", "").split(",") if group}
    pending = PENDING.get(header.get("multicore_pending", ""), "")
    wrong = [MALFORMED % row for row in rows if row[3] not in orders or not is_node(row[1])]
    bad_groups = [group for group in groups if not is_group(group)]
    bad_numbers = [name for name in NUMBERS if not is_number(header.get(name, ""))]
    wrong += ["# groups: %a: write a-z, 0-9, _ and -" % group for group in bad_groups]
    wrong += ["# %s: write a number" % name for name in bad_numbers]
    if not pending:
        wrong.append("# multicore_pending: %a: write 0 or 1" % header["multicore_pending"])
    if header.get("sharectl") != "1":
        wrong.append("# sharectl: %a: write 1" % header.get("sharectl", ""))
    wrong = ["the end is missing behind %a" % (rest or lines[-1])] if cut else wrong
    if wrong:
        raise JobError("truncated" if cut else "malformed", "; ".join(wrong))
    count, begin, end, sequence = (int(header[name]) for name in NUMBERS)
    if rest or count != len(rows):
        detail = "%d of %d lines, no newline after %a" % (len(rows), count, rest)
        raise JobError("truncated", detail)
    if options["--pool"] not in ("", header.get("pool")):
        raise JobError("other-pool", "for %a" % header.get("pool"))
    named |= groups
    strangers = {group for order in orders for group in order.split(" ")[::2]} - named
    if named and strangers:
        raise JobError("unknown-group", ", ".join(sorted(strangers)))
    future = max(begin, sequence) > now + MAX_CLOCK_SKEW_SECONDS or end - begin > DAY_SECONDS
    if future or end <= now:
        code = "future" if future else "expired"
        raise JobError(code, "%d to %d, number %d" % (begin, end, sequence))
    return sequence, end, pending, [(node.lower(), order) for _, node, _, order in rows]


def fetch(source: str, options: "dict[str, str]") -> "tuple[int, str, bytes]":
    """Exit status, code and document by the program of that kind of source, which ends itself."""
    kind, _, place = source.partition(":")
    seconds = str(max(1, int(options["--timeout-seconds"]) * 7 // 10))  # job_ctl has to hear of it
    argv = [sys.executable, "-IS", os.path.join(HERE, PROGRAMS[kind]), "--timeout-seconds", seconds]
    if kind == "https":
        cache = options["--state"] and options["--state"] + "." + source[:150].replace("/", "_")
        argv += ["--url", source, "--cache", cache, "--ca-file", options["--ca-file"]]
    else:
        argv += ["--collector", place, "--condor-status", options["--condor-status"]]
        argv += ["--identity", options["--identity"], "--host", options["--host"]]
    pipe, pipe_end = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.dup2(pipe_end, 1)
            os.execv(argv[0], argv)  # noqa: S606  # no shell: what it gets is what is written here
        finally:
            os._exit(127)
    os.close(pipe_end)
    with open(pipe, "rb") as stream:
        head, _, content = stream.read(2 * MAX_BYTES).partition(b"\n")
    status, code = os.waitpid(pid, 0)[1], head.decode("ascii", "replace")
    if status & 0xFF or not code or not GROUP_CHARACTERS.issuperset(code):
        detail = "%s: wait status %d, output %a" % (PROGRAMS[kind], status, code)
        raise JobError("source-garbled", detail)
    return status >> 8, code, content


class Answer:
    """Answer of a source: exit status, code, sequence, end, order and groups."""

    def __init__(self, source: str, groups: str) -> None:
        self.source, self.groups = ascii(source)[1:-1], groups
        self.status, self.code = 0, "no-line"
        self.sequence = self.until = 0
        self.order = NO_TARGET + " undefined"

    def refuse(self, code: str, detail: object) -> None:
        """Answer with a reason of this program."""
        self.status, self.code = REASONS[complain(code, detail)][0], code


def look(source: str, options: "dict[str, str]", now: int) -> Answer:
    """Answer of one source; raises nothing."""
    named = set(filter(None, options["--groups"].split(",")))
    answer = Answer(source, ",".join(sorted(named)))
    try:
        read(answer, source, options, named, now)
    except JobError as error:
        answer.refuse(*error.args)
    except Exception as error:  # noqa: BLE001  # whatever it is, the answer is complete
        answer.refuse("internal-error", repr(error))
    answer.groups = ",".join(sorted(named))
    return answer


def read(
    answer: Answer, source: str, options: "dict[str, str]", named: "set[str]", now: int
) -> None:
    """Read a source into its answer. Raises JobError if it is refused."""
    kind, _, place = source.partition(":")
    changed = 0
    if kind == "file":
        content, facts = read_file(place)
        changed = max(1, int(facts.st_mtime))
    else:
        answer.status, code, content = fetch(source, options)
        if code != "ok":
            answer.code = code
            return
    if options["--key-file"] and kind != "collector":
        check_signature(content, read_keys(options["--key-file"]))
    sequence, until, pending, targets = parse(content, changed, options, named, now)
    host = options["--host"]
    short = host.split(".", 1)[0]
    mine = [o for node, o in targets if node in (host, short) or node.split(".", 1)[0] == host]
    if len(mine) > 1:
        raise JobError("duplicate-node", host)
    answer.code = "ok" if mine else "no-line"
    answer.sequence, answer.until = sequence, until
    answer.order = (mine or [NO_TARGET])[0] + " " + pending


def check(options: "dict[str, str]") -> "list[str]":
    """Problems of the options beyond those of `parse_arguments`."""
    wrong = []
    for source in options["--source"].split(","):
        kind, _, place = source.partition(":")
        if kind not in PLACES or not place.startswith(PLACES[kind]):
            wrong.append("--source %a: write file:/path, https://host/path or collector:" % source)
        if kind == "collector" and not options["--identity"]:
            wrong.append("--source %s needs --identity: who may advertise targets" % source)
    if not is_node(options["--host"]):
        wrong.append("--host %a: write its name" % options["--host"])
    return wrong


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
    """Highest exit status of all sources, one of `REASONS`."""
    if argv == ["--help"]:
        rows = [*OPTIONS.items(), *REASONS.items()]
        lines = ["  %-18s %s (%s)" % (name, row[-1], row[0]) for name, row in rows]
        text = "\n".join([__doc__, *lines, ""])
        try:
            os.write(1, text.encode())
        except OSError:  # nobody reads it
            return 1
        for name in PROGRAMS.values():
            program = [sys.executable, "-IS", os.path.join(HERE, name), *argv]
            os.spawnv(os.P_WAIT, sys.executable, program)  # noqa: S606
        return 0
    options, problems = parse_arguments(argv)
    options["--host"] = (options["--host"] or os.uname().nodename).lower()
    problems += check(options)
    worst = 0
    fault = complain("bad-arguments", "; ".join(problems)) if problems else ""
    for source in options["--source"].split(","):
        if fault:
            answer = Answer(source, "")
            answer.status, answer.code = REASONS[fault][0], fault
        else:
            answer = look(source, options, int(time.time()))
        worst = max(worst, answer.status)
        os.write(1, (ANSWER % vars(answer)).encode())
    return worst


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # the interpreter's own exit takes 2 ms
