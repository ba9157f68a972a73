"""Inputs of a producer: each arrives with the time, through its one door.

A token stands for a record or for a caller that waits: the core keeps it and gives the same object back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

from rejoin.client.core.inputs import Answered, Elapsed, Failed, GroupMetadata, Millis, OffsetAndMetadata, Token
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.record_encoder import Headers


class Produced(NamedTuple):
    """The user sends a record. Its token comes back in one ``BatchDone`` or ``RecordFailed``.

    Without a partition, one is chosen; without a timestamp, the record has the time of this step.
    """

    token: Token
    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: Millis | None = None


@dataclass(slots=True)
class Flushed:
    """Send all that was produced, now. Answered by ``CallDone`` when each of these records is done."""

    token: Token


@dataclass(slots=True)
class ProducerClosed:
    """Send all that was produced, then close. Answered by ``CallDone``.

    What is not done after ``timeout_ms``, if that is given, has failed.
    """

    token: Token
    timeout_ms: Millis | None = None


class TransactionCall(Enum):
    """Calls of a user, by their names in Java."""

    INIT = "initTransactions"
    BEGIN = "beginTransaction"
    SEND_OFFSETS = "sendOffsetsToTransaction"
    COMMIT = "commitTransaction"
    ABORT = "abortTransaction"


@dataclass(slots=True)
class TransactionCalled:
    """The user begins or ends a transaction, or commits ``offsets`` of ``group`` in it. Answered by ``CallDone``."""

    token: Token
    call: TransactionCall
    offsets: Mapping[TopicPartition, OffsetAndMetadata] = field(default_factory=dict)
    group: GroupMetadata | None = None


@dataclass(slots=True)
class Disconnected:
    """A connection was closed by its node. With acks of 0 that is all that a producer learns of an error."""


ProducerInput: TypeAlias = (
    Produced | Flushed | TransactionCalled | ProducerClosed | Answered | Failed | Disconnected | Elapsed
)
