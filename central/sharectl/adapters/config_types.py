"""What the sections of the configuration file are made of: their base, their common types, their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Union

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from sharectl.adapters.wording import quoted

MAX_HS06 = 1e12
"""A thousand times the power of all the world's pools: beyond it, a unit was mistaken."""


def wrong(message: str, *at: Union[str, int]) -> PydanticCustomError:
    """Error of a validator; ``at`` is the path of the fault within the value that was validated."""
    return PydanticCustomError("sharectl", "{message}", {"message": message, "at": at})


class Section(BaseModel):
    """A mapping of the file: no unknown keys, no conversions between types, no NaN."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


def _absolute(path: Path) -> Path:
    if not path.is_absolute() or not path.name:
        raise wrong(f"{quoted(str(path))} is no absolute path; write one that begins with /")
    if not str(path).isprintable():
        raise wrong(f"{quoted(str(path))} holds a character that cannot be seen; remove it")
    return path


AbsolutePath = Annotated[Path, Field(strict=False), AfterValidator(_absolute)]
DaemonName = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[!-~]+$")]
"""A daemon's name or address: printable ASCII without blanks."""
