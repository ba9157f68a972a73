"""Those who wait for the offsets log. Deciding goes on when an append has ended, and looks at the world anew then."""

from __future__ import annotations

from typing import Protocol

from protocol.errors import ErrorCode
from protocol.records import Record


class Waiter:
    """Whoever waits for an append to end."""

    __slots__ = ()

    def ended(self, error: ErrorCode) -> None:
        """The append is durable (``NONE``), or failed with the log's own error. Called once."""
        raise NotImplementedError

    def late(self, error: ErrorCode) -> None:
        """The append had been given up as timed out, and now ends: durable after all, or failed."""


class Appender(Protocol):
    """The offsets log as the groups see it."""

    def append(self, records: tuple[Record, ...], waiter: Waiter) -> None:
        """Ask for records to be written, all or none, and have the waiter told how it ended."""
