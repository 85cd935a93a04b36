"""Connection to a daemon without HTCondor's library, which says "failed communication" of all.

It tells apart: no such host, nobody listens, nobody behind shared_port, a daemon that hangs.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from typing import NamedTuple, Optional

COLLECTOR_PORT = 9618
CONNECT_SECONDS = 3.0
HAND_ON_SECONDS = 1.0
"""shared_port has closed a connection by then that it cannot hand on."""
BUSY_SECONDS = 5.0
"""A daemon that works has looked at a command by then."""

_ADDRESS = re.compile(
    r"<?(?:\[(?P<v6>[^]]+)\]|(?P<host>[^:?<>\s,]+))(?::(?P<port>\d{1,5}))?"
    r"(?P<more>\?[^>]*)?>?(?=[,\s]|$)"
)
_ENDPOINT = re.compile(r"[?&]sock=([^&>]+)")
_SHARED_PORT_CONNECT, _DC_AUTHENTICATE = 75, 60010
"""Commands of HTCondor's protocol: hand on this connection; a command with security follows."""


class Address(NamedTuple):
    """Address of a daemon."""

    host: str
    port: int
    more: str
    """Parameters such as ``?sock=schedd_23_5ac4``; empty without any."""


class Peer(NamedTuple):
    """Daemon that looks at commands."""

    sinful: str
    """Its address, as HTCondor writes it."""
    is_local: bool
    """True if it runs on this machine."""


class UnreachableError(Exception):
    """A daemon does not look at commands: the fact, and the remedy."""


def address_of(written: str) -> Optional[Address]:
    """First address of a text such as ``cm.example.org:9618, cm-2.example.org``, or None."""
    match = _ADDRESS.match(written.strip())
    if match is None:
        return None
    host, port = match["v6"] or match["host"], int(match["port"] or COLLECTOR_PORT)
    return Address(host, port, match["more"] or "")


def peer_at(address: Address, daemon: str) -> Peer:
    """Daemon (``SCHEDD``) at an address. Raises UnreachableError if it looks at no command."""
    host, port, more = address
    place = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), CONNECT_SECONDS) as connection:
            ip, own_ip = connection.getpeername()[0], connection.getsockname()[0]
            fault = _fault(connection, more)
    except (socket.gaierror, UnicodeError, OverflowError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise UnreachableError(
            f"no such host: {host} ({reason}); correct the name, or DNS or /etc/hosts here"
        ) from None
    except ConnectionRefusedError:
        raise UnreachableError(
            f"nobody listens at {place}: {daemon} does not run there, or has another port; see its "
            "log there"
        ) from None
    except OSError as problem:
        raise UnreachableError(
            f"no connection to {place}: {problem.strerror or problem}; see whether that machine "
            "is up, and for a firewall between"
        ) from None
    if fault:
        raise UnreachableError(fault.format(place=place, daemon=daemon))
    return Peer(f"<{f'[{ip}]' if ':' in ip else ip}:{port}{more}>", ip == own_ip)


def _fault(connection: socket.socket, more: str) -> str:
    """Fault of the listener at an invalid command that is sent in two parts; empty without one.

    A daemon waits for the second part, and ends the connection after it. shared_port hands the
    connection on after the first part, or closes it if nobody takes it.
    """
    half = struct.pack(">q", _DC_AUTHENTICATE)
    first, second = struct.pack(">BI", 1, 2 * len(half)) + half, bytes(len(half))
    if name := _ENDPOINT.search(more):
        # Name of the daemon, of this client (none), seconds to hand it on, no further arguments.
        request = struct.pack(">q", _SHARED_PORT_CONNECT) + name[1].encode() + b"\0\0"
        request += struct.pack(">qq", int(BUSY_SECONDS), 0)
        first = struct.pack(">BI", 1, len(request)) + request + first
    if _closes(connection, first, HAND_ON_SECONDS):
        return (
            "shared_port answers at {place}, and {daemon} behind it does not: it does not run "
            "there, or has just started; see its log and MasterLog there"
        )
    if not _closes(connection, second, BUSY_SECONDS):
        return (
            "{place} takes a command and does not answer: {daemon} is busy or hangs; see its log "
            "there"
        )
    return ""


def _closes(connection: socket.socket, part: bytes, patience_seconds: float) -> bool:
    """Send a part of a command, and return whether the other end closes the connection then."""
    end = time.monotonic() + patience_seconds
    connection.settimeout(patience_seconds)
    try:
        connection.sendall(part)
        while connection.recv(4096):
            left_seconds = end - time.monotonic()
            if left_seconds <= 0:  # it sends without end
                return False
            connection.settimeout(left_seconds)
    except socket.timeout:
        return False
    except ConnectionError:
        pass
    return True
