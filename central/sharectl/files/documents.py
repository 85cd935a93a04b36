"""Documents: JSON objects with a schema version, in files that are replaced whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union, cast

from sharectl.errors import REPORT, NewerFileError, StateError
from sharectl.files import files

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
Content = dict[str, Any]

_READS = 1
"""Schema version of all documents."""
_MOST_DIGITS = 18
_REPORT = f"the file stays as it was; {REPORT}"


class DocumentError(ValueError):
    """Invalid content of a document; ``problems`` has all of them, and neither place nor remedy."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Document:
    """A document of sharectl in its file."""

    path: Path
    max_bytes: int

    def read(self, parse: Callable[[Content], T]) -> Optional[T]:
        """Value that ``parse`` makes of the content; None if there is no file.

        Raises OSError, NewerFileError, and DocumentError if the content is invalid: ``parse`` may
        raise what a wrong type, value or key raises.
        """
        try:
            text, _ = files.read_regular(self.path, self.max_bytes + 1)
        except FileNotFoundError:
            return None
        if text is None or len(text) > self.max_bytes:
            raise DocumentError(f"no regular file of at most {self.max_bytes} bytes")
        try:
            return parse(self._content(text))
        except DocumentError:
            raise
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise DocumentError(f"not JSON: {error}") from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DocumentError(f"{type(error).__name__}: {error}") from error

    def _content(self, text: bytes) -> Content:
        """Content without its schema version."""
        content = json.loads(text, parse_int=_whole_number)
        if not isinstance(content, dict):
            raise DocumentError("not a JSON object")
        version = content.pop("schema_version", None)
        if type(version) is int and version > _READS:
            raise NewerFileError(self.path, version)
        if version != _READS:
            raise DocumentError(f"schema_version is not {_READS}")
        return content

    def replace(self, content: Mapping[str, Any]) -> None:
        """Put a new file in the place of the old one, which stays if `read` would refuse the new.

        Values may be dataclasses. Raises StateError, also as `files.replace`.
        """
        try:
            # A line for each key: indented JSON takes ten times as long.
            lines = (
                f"  {json.dumps(key)}: {json.dumps(value, default=vars, allow_nan=False)}"
                for key, value in {"schema_version": _READS, **content}.items()
            )
            text = "{\n" + ",\n".join(lines) + "\n}"
        except ValueError as error:
            raise StateError(f"{self.path}: not written: {error}; {_REPORT}") from error
        if len(text) >= self.max_bytes:
            size = f"{len(text)} bytes are more than {self.max_bytes}"
            raise StateError(f"{self.path}: not written: {size}; {_REPORT}")
        files.replace(self.path, [text, "\n"])


def record(kind: type[T], content: Any) -> T:
    """Dataclass ``kind`` of plain data; see `record_of`."""
    try:
        text = json.dumps(content, allow_nan=False)
    except ValueError as error:
        raise DocumentError(str(error)) from error
    return record_of(kind, text)


def record_of(kind: type[T], text: Union[str, bytes]) -> T:
    """Dataclass ``kind``, or a type made of such, of JSON: all fields by name and type.

    Raises DocumentError with all fields that are unknown, missing, or of another type.
    """
    from pydantic import ValidationError

    try:
        value: T = _adapter(cast("Any", kind)).validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise DocumentError(*problems) from error
    return value


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _whole_number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise DocumentError(f"a number has {len(digits)} digits")
    return int(digits)
