"""Those who wait for the offsets log. Deciding goes on when an append has ended, and looks at the world anew then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.consumer_offsets import Record


class Waiter(ABC):
    """Whoever waits for an append to end."""

    __slots__ = ()

    @abstractmethod
    def ended(self, error: ErrorCode) -> None:
        """The append is durable (``NONE``), or failed with the log's own error. Called once."""

    def late(self, error: ErrorCode) -> None:  # noqa: B027 - most have nothing to do then
        """The append had been given up as timed out, and now ends: durable after all, or failed."""


class Appender(Protocol):
    """The offsets log as the groups see it."""

    def append(self, records: tuple[Record, ...], waiter: Waiter) -> None:
        """Ask for records to be written, all or none, and have the waiter told how it ended."""
