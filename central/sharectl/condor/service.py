"""Questions of root, asked as the service's user with its token.

Root may read on its host what the service may not: its answers would tell nothing of cycles.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import sys
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Optional

USER = "sharectl"
"""User of the units."""
_SETTINGS = Path("/etc/sharectl")
TOKENS = "_CONDOR_SEC_TOKEN_DIRECTORY"
"""Environment variable of HTCondor: folder with a copy of the service's token."""
NO_TOKEN = b"#\n"
"""Content of the copy where there is no token: HTCondor takes it for a comment."""

_RUNTIME = Path("/run")
_SERVICE: ContextVar[Optional[pwd.struct_passwd]] = ContextVar("service", default=None)
"""Account that children act as. `TOKENS` does not tell it: root may have tokens of others there."""
_METHODS = ("SEC_CLIENT_AUTHENTICATION_METHODS", "SEC_DEFAULT_AUTHENTICATION_METHODS")


def pool_of(configuration: Path) -> Optional[str]:
    """Pool of the `sharectl@POOL.service` with that configuration; None for `sharectl.service`."""
    is_one_of_several = configuration.parent == _SETTINGS and configuration.stem != "sharectl"
    return configuration.stem if is_one_of_several else None


@contextlib.contextmanager
def asking_as_service(configuration: Path) -> Iterator[None]:
    """Let root's children act as the service with that configuration, where its user is there."""
    token = _SETTINGS / f"{pool_of(configuration) or 'pool'}.token"
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(KeyError, OSError):
            account = pwd.getpwnam(USER)
            made = tempfile.TemporaryDirectory(prefix="sharectl-", dir=_RUNTIME)
            folder = stack.enter_context(made)
            copy = Path(folder, token.name)
            copy.touch(mode=0o600)
            copy.write_bytes(token.read_bytes() if token.is_file() else NO_TOKEN)
            # The folder last: in a folder of the service's root would write through its links.
            for path in (copy, folder):
                os.chown(path, account.pw_uid, account.pw_gid)
            former = {name: text for name, text in os.environ.items() if name == TOKENS}
            os.environ[TOKENS] = folder
            stack.callback(os.environ.update, former)
            stack.callback(os.environ.pop, TOKENS, None)
            acting = _SERVICE.set(account)
            stack.callback(_SERVICE.reset, acting)
        yield


def become_service() -> None:
    """Become the service's user, in a child of root within `asking_as_service`."""
    account = _SERVICE.get()
    if account is None:
        return
    os.initgroups(account.pw_name, account.pw_gid)
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
    bindings: Any = sys.modules.get("htcondor2")
    if bindings is not None:
        # The service has a /tmp that no daemon sees: HTCondor's method FS fails there.
        methods = next(filter(None, (str(bindings.param.get(name, "")) for name in _METHODS)), "")
        usable = [name for name in re.split(r"[\s,]+", methods) if not name.startswith("FS")]
        bindings.param[_METHODS[0]] = ",".join(usable)


def token_remedy(daemon: str, domain: str) -> str:
    """Remedy for a process that a daemon (``SCHEDD``) does not know; ``domain`` is UID_DOMAIN."""
    copy = next(iter(Path(os.environ.get(TOKENS, os.devnull)).glob("*.token")), None)
    if copy is None:
        user = pwd.getpwuid(os.geteuid())
        return (
            "get a token with `condor_token_fetch`, or as root on the central manager run "
            f"`condor_token_create -identity {user.pw_name}@{domain} -authz READ`, and put it into "
            f"{user.pw_dir}/.condor/tokens.d/pool here, owned by {user.pw_name}, mode 0600"
        )
    token = _SETTINGS / copy.name
    if copy.read_bytes().strip() in (b"", NO_TOKEN.strip()):
        return (
            "as root on the central manager run `(umask 077 && condor_token_create -identity "
            f"{USER}@{domain} -authz READ > {token})`"
        )
    return (
        f"it refuses the token in {token}: see that the {daemon.lower()}'s machine has the pool's "
        "signing key, /etc/condor/passwords.d/POOL, and that "
        f"{daemon}.SEC_READ_AUTHENTICATION_METHODS there has IDTOKENS, or make another token"
    )
