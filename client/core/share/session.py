"""The share session with one node: its epoch, and the partitions that the node knows to be part of it.

A request carries only differences. Source: Kafka's ShareSessionHandler.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from rejoin.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rejoin.protocol.types import TopicIdPartition

OPENING_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LARGEST_EPOCH: Final = 2**31 - 1

SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
"""Errors after which the next request opens a new session."""


class SessionChange(NamedTuple):
    """Partitions that a request adds to a session, and those that it takes out."""

    added: list[TopicIdPartition]
    forgotten: list[TopicIdPartition]


class ShareSessionHandler:
    """One session."""

    def __init__(self) -> None:
        self.epoch = OPENING_EPOCH
        self.partitions: list[TopicIdPartition] = []

    @property
    def is_open(self) -> bool:
        """Whether the node knows this session: only then can a request carry acknowledgements."""
        return self.epoch != OPENING_EPOCH

    def change_to(self, wanted: Collection[TopicIdPartition]) -> SessionChange:
        """Read exactly these partitions from the next request on."""
        known = set(self.partitions) if self.is_open else set()
        added = [each for each in wanted if each not in known]
        forgotten = [each for each in self.partitions if each not in wanted] if self.is_open else []
        self.partitions = [*(each for each in self.partitions if each in wanted and each in known), *added]
        return SessionChange(added, forgotten)

    def answered(self, error: ErrorCode) -> bool:
        """Take in the error of a response as a whole; false if there was one."""
        if error in SESSION_ERRORS:
            self.reset()
            return False
        # Kafka: ShareRequestMetadata.nextEpoch. The node counts a request that it refused for another reason.
        self.epoch = 1 if self.epoch == _LARGEST_EPOCH else self.epoch + 1
        return error is ErrorCode.NONE

    def reset(self) -> None:
        """Open a new session with the next request."""
        self.epoch = OPENING_EPOCH
