"""Asking CRIC's server: HTTPS with a verified certificate, one deadline for all of it, nothing followed elsewhere."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Optional, Union

from sharectl.adapters.cric_answer import MAX_BYTES
from sharectl.adapters.deadline import Question, ask_all, limit_memory
from sharectl.adapters.wording import shown

_NOT_MODIFIED = 304
_OK = 200
_REDIRECTS = range(300, 400)
_CHUNK_BYTES = 2**16
_MOST_MEMORY_BYTES = 8 * MAX_BYTES
"""What the process that asks may take: to a chunk of -1 bytes urllib3 takes all that ever comes."""
_AGENT = {"User-Agent": "sharectl", "Accept": "application/json"}


@dataclass(frozen=True)
class ServerAccess:
    """How the server is reached."""

    ca_file: Optional[Path] = None
    """Certificates by which it is known; None for the folder, or else those that this machine trusts."""
    ca_directory: Optional[Path] = None
    proxy: Optional[str] = None
    deadline_seconds: float = 30.0


@dataclass(frozen=True)
class Validators:
    """What tells the server which answer is known already."""

    etag: Optional[str] = None
    last_modified: Optional[str] = None

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a request that wants an answer only if it is another."""
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class Answered:
    """What the server answered."""

    content: Optional[bytes] = None
    """None if there is a problem, or the known answer still holds."""
    validators: Validators = Validators()
    problem: Optional[str] = None
    seconds: float = 0.0

    @property
    def unchanged(self) -> bool:
        """Whether the server says that the known answer still holds."""
        return self.content is None and self.problem is None


def ask(url: str, access: ServerAccess, known: Validators = Validators()) -> Answered:
    """What the server says at ``url``; never raises, and never takes longer than the deadline.

    The process that asks is ended at the deadline: a server may send a byte a second for ever.
    """
    import requests  # noqa: F401 - loaded before the question forks

    question = Question(partial(_ask, url, access, known), access.deadline_seconds)
    answer = ask_all({"server": question})["server"]
    if answer.value is None:
        return Answered(problem=f"{url}: {answer.source.problem}", seconds=answer.source.seconds)
    found: Answered = answer.value
    problem = f"{url}: {found.problem}" if found.problem is not None else None
    return Answered(found.content, found.validators, problem, answer.source.seconds)


def _ask(url: str, access: ServerAccess, known: Validators) -> Answered:
    import requests

    limit_memory(_MOST_MEMORY_BYTES)
    trusted = _trusted(access)
    if isinstance(trusted, Path) and not trusted.exists():
        return Answered(
            problem=f"there are no certificates at {trusted}; see pledges.cric.ca_file and .ca_directory"
        )
    with requests.Session() as session:
        # Neither the environment's proxies, nor its certificates, nor the user's ~/.netrc.
        session.trust_env = False
        session.proxies = {"https": access.proxy} if access.proxy else {}
        try:
            with session.get(
                url,
                headers={**_AGENT, **known.headers},
                verify=str(trusted) if isinstance(trusted, Path) else trusted,
                timeout=access.deadline_seconds,
                allow_redirects=False,
                stream=True,
            ) as response:
                return _answered(response, known)
        except (requests.RequestException, OSError, ValueError) as error:
            return Answered(problem=_words(error))
        except MemoryError:
            return Answered(problem=f"cannot be asked: its answer needs more than {_MOST_MEMORY_BYTES} bytes")


def _answered(response: object, known: Validators) -> Answered:
    import requests

    assert isinstance(response, requests.Response)  # noqa: S101 - the type is loaded late
    status, headers = response.status_code, response.headers
    if status == _NOT_MODIFIED and known.headers:
        return Answered(validators=known)
    if status in _REDIRECTS:
        where = shown(str(headers.get("Location")))
        return Answered(problem=f"redirects to {where}; write the right place as pledges.cric.url")
    if status != _OK:
        return Answered(problem=f"the server answers {status} {shown(str(response.reason))}")
    content = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        content += chunk
        if len(content) > MAX_BYTES:
            return Answered(problem=f"sends more than {MAX_BYTES} bytes; it is no list of federations")
    return Answered(bytes(content), _validators(headers))


def _validators(headers: Mapping[str, str]) -> Validators:
    def sound(name: str) -> Optional[str]:
        value = headers.get(name)
        usable = value is not None and len(value) <= 256 and value.isascii() and value.isprintable()  # noqa: PLR2004
        return value if usable else None

    return Validators(sound("ETag"), sound("Last-Modified"))


def _trusted(access: ServerAccess) -> Union[Path, bool]:
    """Certificates to verify by: those named, else this machine's, else those that came with `requests`."""
    if access.ca_file or access.ca_directory:
        return access.ca_file or access.ca_directory or True
    ours = ssl.get_default_verify_paths()
    return next((Path(found) for found in (ours.cafile, ours.capath) if found), True)


def _words(error: Exception) -> str:
    """What went wrong, without the layers it came through."""
    innermost: BaseException = error
    while (
        cause := getattr(innermost, "reason", None) or innermost.__cause__ or innermost.__context__
    ) is not None:
        if not isinstance(cause, BaseException):
            break
        innermost = cause
    said = str(innermost) or type(innermost).__name__
    return f"cannot be asked: {shown(said) if len(said) < 60 else said[:300]}"  # noqa: PLR2004
