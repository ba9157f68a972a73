"""Appends: what happens when one ends, and which error a client gets when the log fails.

A decision goes on when its append has ended, and looks at the state anew then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Protocol

from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.records.keyed import Record
from rejoin.protocol.types import TopicPartition


class AppendCompletion(ABC):
    """The completion of an append."""

    __slots__ = ()

    @abstractmethod
    def ended(self, error: ErrorCode) -> None:
        """The append is durable (``NONE``), or failed with the log's own error. Called once."""

    def ended_late(self, error: ErrorCode) -> None:  # noqa: B027 - most have nothing to do then
        """The append had timed out, and now ends: durable after all, or failed."""


@dataclass(slots=True)
class AppendInFlight:
    """An append that has not ended."""

    append_id: int
    records: tuple[Record, ...]
    deadline: Millis
    completion: AppendCompletion
    timed_out: bool = False


class ShardLog(Protocol):
    """The log of one partition, as the state machine on it sees it."""

    partition: TopicPartition
    epoch: int

    @property
    def is_writing(self) -> bool:
        """Whether any append is in flight."""

    def append(self, records: tuple[Record, ...], completion: AppendCompletion) -> None:
        """Ask for records to be written, all or none; the completion is called when that has ended.

        Without records, it is called when everything before has ended.
        """

    def order_appends(self) -> None:
        """Put the appends in flight in the order in which they were asked for, after one was put in late."""


RESPONSE_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Errors that a client gets when the log fails; others pass unchanged.

Kafka: CoordinatorOperationExceptionHelper, GroupMetadataManager.appendGroupMetadataErrorToResponseError.
"""


def response_error_of_write(error: ErrorCode) -> ErrorCode:
    """The error a client gets for an error of the log."""
    return RESPONSE_ERRORS.get(error, error)


def response_error_of_read(error: ErrorCode) -> ErrorCode:
    """The error that a stable fetch gets for an error of the log: one that older consumers retry on a fetch, too."""
    # Kafka: GroupCoordinatorService.fetchOffsets maps 3, 19 and 7 to NOT_COORDINATOR.
    response = response_error_of_write(error)
    return ErrorCode.NOT_COORDINATOR if response is ErrorCode.COORDINATOR_NOT_AVAILABLE else response
