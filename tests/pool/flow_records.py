"""What is kept of a pool on which jobs flow: cycles of sharectl, and looks at its nodes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cycle:
    """One run of ``sharectl cycle``, and what nodes could read before and after it."""

    began: float
    """Unix seconds."""
    exit_code: int
    said: str
    before: bytes
    after: bytes


@dataclass(frozen=True)
class Look:
    """A steered node at one moment, as its own startd says."""

    at: int
    """Unix seconds; so are the other times."""
    node: str
    active: bool
    """Whether START acts on a target."""
    until: int
    sequence: int
    reason: str
    published_until: int
    """Until when the last published file is valid."""

    @property
    def outlived(self) -> bool:
        """Whether START acts on a target that nobody stands for any more."""
        return self.active and (
            self.at >= self.published_until or self.until > self.published_until
        )
