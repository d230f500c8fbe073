"""The errors that the store raises."""

from __future__ import annotations

from crowdtree.errors import CrowdtreeError

__all__ = ["NotFound", "Refused", "Unavailable"]


class NotFound(CrowdtreeError):
    """The row does not exist, or belongs to another campaign."""


class Refused(CrowdtreeError):
    """A worker's request was refused: a code for programs, a sentence for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unavailable(CrowdtreeError):
    """The database cannot be reached; nothing was acknowledged, so the request can be repeated."""
