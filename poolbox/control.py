"""The client of `poolbox.init`: one request a connection over the box's control socket."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

from poolbox.errors import BoxFailedError, PoolboxError

ANSWER_BYTES = 1 << 16
CREDENTIALS = struct.Struct("3i")


@contextlib.contextmanager
def connected(directory: Path, timeout_seconds: Optional[float]) -> Iterator[socket.socket]:
    """Connection to the init of the box in that directory. Raises BoxFailedError."""
    try:
        folder = os.open(directory, os.O_PATH)
    except OSError as problem:
        raise BoxFailedError(f"no pool runs in {directory} ({problem})") from None
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_seconds)
            try:
                # Through the descriptor: a Unix address holds 107 bytes, a path may be longer.
                connection.connect(f"/proc/self/fd/{folder}/control")
            except OSError as problem:
                raise BoxFailedError(f"no pool runs in {directory} ({problem})") from None
            yield connection
    finally:
        os.close(folder)


def ask(
    directory: Path,
    operation: str,
    streams: Sequence[int] = (),
    timeout_seconds: Optional[float] = 60.0,
    **arguments: object,
) -> dict[str, Any]:
    """Answer of init; ``{}`` if the box ended. Raises TimeoutError."""
    request = json.dumps({"operation": operation, **arguments}).encode() + b"\n"
    answer = b""
    with connected(directory, timeout_seconds) as connection:
        # The descriptors travel with the first bytes; the rest, if any, follows.
        sent = socket.send_fds(connection, [request], list(streams)) if streams else 0
        if sent < len(request):
            connection.sendall(request[sent:])
        try:
            while chunk := connection.recv(ANSWER_BYTES):
                answer += chunk
        except socket.timeout:  # not a TimeoutError before Python 3.10
            raise TimeoutError(f"{operation}: no answer in {timeout_seconds} s") from None
        except ConnectionError:
            pass  # the box has ended: no answer
    if not answer:
        return {}
    decoded: dict[str, Any] = json.loads(answer)
    if "error" in decoded:
        raise PoolboxError(decoded["error"])
    return decoded


def init_pid(directory: Path) -> int:
    """Pid of the box's init as this process sees it, whatever its pid inside."""
    with connected(directory, 10.0) as connection:
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    pid: int = CREDENTIALS.unpack(peer)[0]
    return pid
