"""Reasons for which a topology cannot run."""

from __future__ import annotations

from collections.abc import Sequence

from rejoin.protocol.errors import ErrorCode


class InvalidTopologyError(Exception):
    """A topology that no topics of the cluster can make run."""

    def __init__(self, error: ErrorCode = ErrorCode.STREAMS_INVALID_TOPOLOGY) -> None:
        super().__init__(error.name)
        self.error = error


class WrongPartitionsError(Exception):
    """Topics whose numbers of partitions do not fit each other, in words."""


def some_of(names: Sequence[str], most: int) -> str:
    """The first names, and how many there are besides."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
