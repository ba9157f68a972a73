"""Errors of a consumer's calls, with Kafka's names.

The core carries these as values, in effects; only the Python API raises them. ``java_name`` is the simple name of
Kafka's exception class, which travels to the coordinator in the reason of the next JoinGroup (KIP-800).
"""

from __future__ import annotations

from collections.abc import Iterable

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition

_IRREGULAR = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    ErrorCode.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
    ErrorCode.NETWORK_EXCEPTION: "NetworkException",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
}


def java_name(error: ErrorCode) -> str:
    """The simple name of Kafka's exception class for an error code."""
    name = _IRREGULAR.get(error)
    return name or "".join(part.capitalize() for part in error.name.split("_")) + "Exception"


class KafkaError(Exception):
    """The base of everything a consumer raises on purpose. ``retriable``: the same call may succeed later."""

    java_name: str = "KafkaException"
    retriable: bool = False


class CodedError(KafkaError):
    """An error code that the coordinator answered, where Kafka raises the code's own exception."""

    def __init__(self, error: ErrorCode, message: str = "") -> None:
        super().__init__(message or f"{error.name} ({error.value})")
        self.error = error
        self.retriable = error.retriable
        self.java_name = java_name(error)


class StaleMemberEpochError(CodedError):
    """The member's epoch has moved on; with the epoch of the next heartbeat the same may succeed."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.STALE_MEMBER_EPOCH)
        self.retriable = True


class DisconnectError(KafkaError):
    """The connection was lost, or the answer took too long: the request may have arrived or not."""

    java_name = "DisconnectException"
    retriable = True


class CoordinatorGivenUpError(DisconnectError):
    """The request waited for a coordinator that has moved or is gone: lost with all others there."""


class CoordinatorNotAvailableError(KafkaError):
    """The coordinator is not known at the moment."""

    java_name = "CoordinatorNotAvailableException"
    retriable = True


class KafkaTimeoutError(KafkaError):
    """A call did not get done in its time."""

    java_name = "TimeoutException"
    retriable = True


class CommitFailedError(KafkaError):
    """Offsets cannot be committed: this consumer is no member any more, and rejoins at the next poll."""

    java_name = "CommitFailedException"


class RetriableCommitFailedError(KafkaError):
    """An asynchronous commit failed and was not repeated; the cause says why."""

    java_name = "RetriableCommitFailedException"
    retriable = True


class RebalanceInProgressError(KafkaError):
    """Offsets cannot be committed now: poll until the rebalance is over, then commit again."""

    java_name = "RebalanceInProgressException"


class FencedInstanceIdError(KafkaError):
    """Another consumer joined with the same group instance id. Do not go on."""

    java_name = "FencedInstanceIdException"


class GroupAuthorizationError(KafkaError):
    """No right to use this group."""

    java_name = "GroupAuthorizationException"


class TopicAuthorizationError(KafkaError):
    """No right to use these topics."""

    java_name = "TopicAuthorizationException"

    def __init__(self, topics: Iterable[str]) -> None:
        self.topics = tuple(topics)
        super().__init__(f"not authorized for topics: {', '.join(self.topics)}")


class RecordTooLargeError(KafkaError):
    """A record that is larger than the settings of the producer allow."""

    java_name = "RecordTooLargeException"


class InvalidRecordError(KafkaError):
    """A record that the broker refuses, or one in a batch with such a record."""

    java_name = "InvalidRecordException"


class InvalidTopicError(KafkaError):
    """A topic name that Kafka does not allow."""

    java_name = "InvalidTopicException"


class InvalidGroupIdError(KafkaError):
    """The call needs a group, and this consumer has none."""

    java_name = "InvalidGroupIdException"


class NoOffsetForPartitionError(KafkaError):
    """Nothing is committed for these partitions, and ``auto.offset.reset`` is none."""

    java_name = "NoOffsetForPartitionException"

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions = tuple(partitions)
        names = ", ".join(f"{topic}-{partition}" for topic, partition in self.partitions)
        super().__init__(f"no committed offset and no reset policy for: {names}")


class OffsetOutOfRangeError(KafkaError):
    """A position lies outside its partition, and ``auto.offset.reset`` is none."""

    java_name = "OffsetOutOfRangeException"


class LogTruncationError(OffsetOutOfRangeError):
    """Records that were read are gone from the partition, and ``auto.offset.reset`` is none (KIP-320).

    ``end_offset`` is where the logs part, or -1 if that is not known.
    """

    java_name = "LogTruncationException"

    def __init__(self, partition: TopicPartition, position: int, end_offset: int) -> None:
        self.partition = partition
        self.end_offset = end_offset
        where = f"at {end_offset}" if end_offset >= 0 else "at an offset that is not known"
        super().__init__(f"the log of {partition} was truncated {where}: position {position} is gone")


class CorruptRecordError(KafkaError):
    """A record batch is damaged. The position stays before it; seek beyond it to go on."""

    java_name = "CorruptRecordException"

    def __init__(self, partition: TopicPartition, offset: int, problem: str) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(f"damaged records of {partition} at offset {offset}: {problem}")


class RecordDeserializationError(KafkaError):
    """A deserializer raised, which is the cause. The position stays at the record; seek beyond it to go on."""

    java_name = "RecordDeserializationException"

    def __init__(self, partition: TopicPartition, offset: int, problem: str) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(f"the record of {partition} at offset {offset} cannot be deserialized: {problem}")


class WakeupError(KafkaError):
    """``wakeup`` was called."""

    java_name = "WakeupException"


class UnjoinedGroupError(KafkaError):
    """JoinGroup was answered after the heartbeat had taken the member out of the group."""

    java_name = "UnjoinedGroupException"
    retriable = True


class ListenerError(KafkaError):
    """A rebalance listener raised; its exception is the cause. The consumer itself is intact."""


class AssignorFailedError(KafkaError):
    """The assignor of this leader raised, or its answer breaks a rule. The group rejoins at the next poll.

    ``partition`` and ``member_id`` are those of the fault, None where it concerns none.
    """

    def __init__(self, message: str, partition: TopicPartition | None = None, member_id: str | None = None) -> None:
        super().__init__(message)
        self.partition = partition
        self.member_id = member_id


class AuthenticationError(KafkaError):
    """The broker refused the login: the mechanism, the user or what proves it is wrong."""

    java_name = "SaslAuthenticationException"


class WrongProtocolError(KafkaError):
    """The address answers in another protocol than it was asked in."""


class ProducerFencedError(KafkaError):
    """Another producer has the same transactional id, or the transaction took too long. Do not go on."""

    java_name = "ProducerFencedException"


class TransactionAbortedError(KafkaError):
    """The record was dropped before it was sent, since its transaction is aborted."""

    java_name = "TransactionAbortedException"


class UnsupportedVersionError(KafkaError):
    """A node speaks no version of a request that this client speaks."""

    java_name = "UnsupportedVersionException"


class IllegalStateError(KafkaError):
    """The call makes no sense in the state the consumer is in, or the coordinator said something impossible."""

    java_name = "IllegalStateException"


class MissingSourceTopicError(KafkaError):
    """Source topics of an application do not exist, and were not created in time."""

    java_name = "MissingSourceTopicException"


class TopologyError(KafkaError):
    """The topics of an application do not fit its topology, or its tasks do not."""

    java_name = "TopologyException"


class ApplicationShutdownError(KafkaError):
    """A thread of the application asked all instances to shut down."""

    java_name = "StreamsException"


class UnexpectedError(KafkaError):
    """The coordinator answered an error that this request should never get."""

    def __init__(self, what: str, error: ErrorCode) -> None:
        super().__init__(f"unexpected error in {what}: {error.name} ({error.value})")
        self.error = error
