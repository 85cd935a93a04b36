#!/usr/bin/python3 -IS
"""target_https.py: the document of a web server for the nodes.

target.py runs it for a source https://host/path. It prints a first line, ok or a code below, and
then the document as the server has it, which target.py judges. By hand:
  target_https.py --url https://cm.example.org/sharectl.txt

The server's certificate must be valid for its name, and of an authority that this machine trusts,
or that of --ca-file. Answers other than 200 and 304 are faults. It follows at most three
redirections, on the same host and port only. It uses no proxies, whatever the environment says, and
sends no credentials. With --cache it keeps the document and its ETag: a server without news need
not send the document again.
"""

import http.client
import os
import signal
import socket
import ssl
import sys
import urllib.parse

OPTIONS = {  # default, lowest and highest value (0 and 0: a text), meaning
    "--url": ("", 0, 0, "https://host/path or https://host:port/path"),
    "--cache": ("", 0, 0, "file that keeps what the server had; empty: none"),
    "--ca-file": ("", 0, 0, "certificates of authorities to trust, PEM; empty: the system's"),
    "--connect-seconds": ("3", 1, 300, "life of an attempt to connect, and of the handshake"),
    "--read-seconds": ("3", 1, 300, "after so long without a byte the server is given up"),
    "--timeout-seconds": ("7", 1, 300, "after so long this program ends itself"),
}
REASONS = {  # exit status, meaning
    "ok": (0, "there is a document"),
    "internal-error": (1, "a fault of this program"),
    "bad-arguments": (2, "an option is wrong: mend STARTD_CRON_<name>_ARGS"),
    "timeout": (75, "the server hangs, or is too slow"),
    "no-host": (75, "the name of the server cannot be resolved"),
    "no-connection": (75, "the server cannot be reached, or broke off"),
    "http-status": (75, "the server answered neither 200 nor 304"),
    "http-garbled": (76, "the answer is not HTTP, or not complete"),
    "too-big": (76, "the document is larger than 1 MiB"),
    "tls-failed": (77, "the server speaks no TLS that this node accepts"),
    "bad-certificate": (77, "its certificate is not valid, or not for its name: see --ca-file"),
    "redirected": (77, "the server sends elsewhere: write that address, if it is right"),
    "bad-ca-file": (78, "the file has no certificates, or cannot be read"),
}
CACHE_TITLE = "target_https 1 %s\n%s\n"  # address and ETag
REDIRECTIONS, MAX_REDIRECTIONS = (301, 302, 303, 307, 308), 3
OK, NOT_MODIFIED, HTTPS_PORT = 200, 304, 443
PRINTABLE = frozenset(map(chr, range(0x21, 0x7F)))
MAX_URL_LENGTH, MAX_ETAG_LENGTH = 2000, 256
MAX_DIGITS, MAX_DETAIL, MAX_PLACE, MAX_BYTES = 10, 1000, 200, 1048576
FAULTS = (  # the first that fits
    (ssl.CertificateError, "bad-certificate"),
    (socket.timeout, "timeout"),
    (socket.gaierror, "no-host"),
    (ssl.SSLEOFError, "no-connection"),
    (ssl.SSLError, "tls-failed"),
    (OSError, "no-connection"),
    (http.client.HTTPException, "http-garbled"),
    (UnicodeError, "bad-arguments"),
    (ValueError, "http-garbled"),
)


class JobError(Exception):
    """Why there is no document: a code of `REASONS`, and details for standard error."""


def is_number(text: str) -> bool:
    """True for a whole number of at most `MAX_DIGITS` digits."""
    return not text.strip("0123456789") and 0 < len(text) <= MAX_DIGITS


def split(url: str) -> "tuple[str, int, str]":
    """Host, port and path of an https address. Raises JobError."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname or "", HTTPS_PORT if parts.port is None else parts.port
    except ValueError as error:
        raise JobError("bad-arguments", error) from None
    plain = PRINTABLE.issuperset(url) and len(url) <= MAX_URL_LENGTH
    if parts.scheme != "https" or not host or not port or "@" in parts.netloc or not plain:
        raise JobError("bad-arguments", "--url %a: write https://host/path" % url)
    return host, port, (parts.path or "/") + ("?" + parts.query if parts.query else "")


def follow(url: str, place: str) -> str:
    """Address of a Location on the same server. Raises JobError for all others."""
    try:
        # An address with a scheme is whole: urljoin would mend one without a host.
        moved = place if urllib.parse.urlsplit(place).scheme else urllib.parse.urljoin(url, place)
        plain = PRINTABLE.issuperset(place)  # urlsplit drops some others
        if place and plain and split(moved)[:2] == split(url)[:2]:
            return moved
    except (ValueError, JobError):  # no address
        pass
    raise JobError("redirected", "to %s from %s" % (place[:MAX_PLACE], url))


def read_cache(path: str, url: str) -> "tuple[str, bytes]":
    """ETag and document that are kept of the address; both empty without any."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with open(descriptor, "rb") as stream:
            ours = os.path.isfile(descriptor) and os.fstat(descriptor).st_uid in (0, os.geteuid())
            content = stream.read(2 * MAX_BYTES) if ours else b""
    except OSError:
        return "", b""
    _, etag, document = [*content.split(b"\n", 2), b"", b""][:3]
    etag_text = etag.decode("ascii", "replace")
    kept = content.startswith((CACHE_TITLE % (url, etag_text)).encode()) and is_etag(etag_text)
    return (etag_text, document) if kept else ("", b"")


def is_etag(text: str) -> bool:
    """True for an ETag that may go back to the server."""
    return PRINTABLE.issuperset(text) and 0 < len(text) <= MAX_ETAG_LENGTH


def write_cache(path: str, url: str, etag: str, document: bytes) -> None:
    """Keep a document; after a fault the next run asks for all of it."""
    try:
        if os.path.lexists(path + ".new"):
            os.unlink(path + ".new")  # of a run that was killed, or a FIFO that nobody reads
        descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with open(descriptor, "wb") as stream:
            stream.write((CACHE_TITLE % (url, etag)).encode() + document)
        os.replace(path + ".new", path)
    except OSError as error:
        complain("not-kept", error)


def trust(ca_file: str) -> ssl.SSLContext:
    """Context that verifies the chain and the name of the server."""
    try:
        made = ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise JobError("bad-ca-file", "%s: %s" % (ca_file, error)) from None
    if hasattr(ssl, "TLSVersion"):  # Python 3.7
        made.minimum_version = ssl.TLSVersion.TLSv1_2
    return made


def ask(url: str, etag: str, options: "dict[str, str]") -> http.client.HTTPResponse:
    """Answer of the server after all redirections, its body not read yet."""
    verified = trust(options["--ca-file"])
    for _ in range(MAX_REDIRECTIONS + 1):
        host, port, path = split(url)
        seconds = int(options["--connect-seconds"])
        connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=verified)
        connection.connect()
        connection.sock.settimeout(int(options["--read-seconds"]))
        headers = {"User-Agent": "sharectl", "Connection": "close"}
        if etag:
            headers["If-None-Match"] = etag
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        if answer.status not in REDIRECTIONS:
            return answer
        url = follow(url, answer.getheader("Location") or "")
    place = url[:MAX_PLACE]
    raise JobError("redirected", "more than %d times, at last to %s" % (MAX_REDIRECTIONS, place))


def receive(answer: http.client.HTTPResponse) -> bytes:
    """Body of the answer. Raises JobError if it is incomplete or too big."""
    too_big = JobError("too-big", "more than %d bytes" % MAX_BYTES)
    if (answer.length or 0) > MAX_BYTES:
        raise too_big
    body, part = bytearray(), b"x"
    while part:  # a chunk of -1 bytes is all that ever comes to read(), and some of it to read1()
        part = answer.read1(MAX_BYTES + 1 - len(body))
        body += part
        if len(body) > MAX_BYTES:
            raise too_big
    if answer.length:
        raise JobError("http-garbled", "%d bytes are missing" % answer.length)
    return bytes(body)


def fetch(options: "dict[str, str]") -> bytes:
    """Document of the server. Raises JobError."""
    url, cache = options["--url"], options["--cache"]
    etag, kept = read_cache(cache, url)
    try:
        answer = ask(url, etag, options)
        if answer.status == NOT_MODIFIED and etag:
            return kept
        if answer.status != OK:
            raise JobError("http-status", "%d %s" % (answer.status, answer.reason))
        document = receive(answer)
    except tuple(fault for fault, _ in FAULTS) as error:
        code = next(code for fault, code in FAULTS if isinstance(error, fault))
        # Python 3.6 has no other sign.
        unverified = getattr(error, "reason", "") == "CERTIFICATE_VERIFY_FAILED"
        raise JobError("bad-certificate" if unverified else code, error) from None
    tag = answer.getheader("ETag") or ""
    if cache and is_etag(tag):
        write_cache(cache, url, tag, document)
    return document


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
    code, document = "ok", b""
    try:
        if problems:
            raise JobError("bad-arguments", "; ".join(problems))  # noqa: TRY301  # all faults go one way
        signal.signal(signal.SIGALRM, too_late)
        signal.alarm(int(options["--timeout-seconds"]))
        document = fetch(options)
        signal.alarm(0)
    except Exception as error:  # noqa: BLE001  # whatever it is, the answer is complete
        signal.alarm(0)
        fault = error.args if isinstance(error, JobError) else ("internal-error", repr(error))
        code = complain(*fault)
    sys.stdout.buffer.write(code.encode() + b"\n" + document)
    sys.stdout.flush()
    return REASONS[code][0]


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # the interpreter's own way out takes longer
