"""Why a daemon does not answer a query: no such host, nobody listens, no connection, or READ is denied.

HTCondor's library says "Failed communication" of all of them. To be asked in the process that has
asked the daemon.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from sharectl.condor.deadline import words

COLLECTOR_PORT = 9618
CONNECT_SECONDS = 3.0
NOBODY = "unauthenticated@unmapped"
"""As whom a daemon knows those who did not authenticate."""

_ADDRESS = re.compile(
    r"<?(?:\[(?P<v6>[^]]+)\]|(?P<host>[^:?<>\s]+))(?::(?P<port>\d{1,5}))?(?P<more>\?[^>]*)?>?"
)


class Address(NamedTuple):
    """Where a daemon is, as an address of HTCondor says it."""

    host: str
    port: int
    more: str
    """Parameters, with their question mark."""


def address_of(text: str) -> Optional[Address]:
    """Parts of such as ``cm.example.org``, ``[::1]:9618`` or ``<10.0.0.1:9618?sock=schedd>``; None if it is no address."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        return None
    return Address(
        match["v6"] or match["host"], int(match["port"] or COLLECTOR_PORT), match["more"] or ""
    )


def why_collector(collector: Optional[str], error: Exception) -> str:
    """Why the collector at that address, or the first of this machine's configuration, did not answer."""
    import htcondor2

    named = collector or str(htcondor2.param.get("COLLECTOR_HOST", ""))
    return _why((re.split(r"[,\s]+", named.strip()) or [""])[0], "COLLECTOR", error)


def why_daemon(location: Mapping[str, str], daemon: str, error: Exception) -> str:
    """Why the daemon (its name in HTCondor's configuration, such as SCHEDD) at ``location`` did not answer."""
    return _why(location.get("MyAddress", ""), daemon, error)


def _why(text: str, daemon: str, error: Exception) -> str:
    address = address_of(text)
    if type(error).__name__ != "HTCondorException" or address is None:
        return words(error)
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, OverflowError) as problem:
        said = getattr(problem, "strerror", None) or problem
        return f"no such host: {address.host} ({said}); correct the name, or DNS or /etc/hosts here"
    place = f"{address.host}:{address.port}"
    try:
        with socket.create_connection(
            (str(found[0][4][0]), address.port), CONNECT_SECONDS
        ) as connection:
            ip = connection.getpeername()[0]
    except ConnectionRefusedError:
        return (
            f"nobody listens at {place}: {daemon} does not run there, or has another port; see its "
            "log there"
        )
    except OSError as problem:
        return (
            f"no connection to {place}: {problem.strerror or problem}; see whether that machine "
            "is up, and for a firewall "
            "between"
        )
    host = f"[{ip}]" if ":" in ip else ip
    return _refused(f"<{host}:{address.port}{address.more}>", daemon) or words(error)


def _refused(sinful: str, daemon: str) -> Optional[str]:
    """Why READ is denied to this process; None if it is not."""
    if _ping(sinful, "READ") is not None:
        return None
    # Everybody who can authenticate, or need not, may do nothing.
    known = _ping(sinful, "DC_NOP")
    if known is None:
        return (
            "it does not know this user by any method that both have; see "
            "SEC_CLIENT_AUTHENTICATION_METHODS here, "
            f"{daemon}.SEC_READ_AUTHENTICATION_METHODS there, and whether `condor_token_list` "
            "here has a token for it"
        )
    identity, method = known.get("MyRemoteUserName", NOBODY), known.get("AuthMethods", "no method")
    whom = "the identity of a token of it" if identity == NOBODY else identity
    return (
        f"READ is denied to {identity} (by {method}): write {daemon}.ALLOW_READ = "
        f"$({daemon}.ALLOW_READ) {whom} there, see "
        "that no DENY_READ names it, and condor_reconfig"
    )


def _ping(sinful: str, command: str) -> Optional[Any]:
    import classad2
    import htcondor2

    try:
        seen = htcondor2.ping(classad2.ClassAd({"MyAddress": sinful}), command)
    except (htcondor2.HTCondorException, ValueError):
        return None
    return seen if seen.get("AuthorizationSucceeded", True) else None
