"""Effects of a producer, which its driver applies in the order in which they came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rejoin.client.core.effects import CallDone, Send
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.inputs import Millis, Token
from rejoin.protocol.types import TopicPartition


@dataclass(slots=True)
class SendBlocked:
    """The record waits for metadata or for memory: its caller should wait for ``SendUnblocked`` or ``RecordFailed``."""

    token: Token


@dataclass(slots=True)
class SendUnblocked:
    """The record is in a batch now."""

    token: Token


@dataclass(slots=True)
class RecordFailed:
    """The record was never sent."""

    token: Token
    error: KafkaError


@dataclass(slots=True)
class BatchDone:
    """The records of a batch are stored from ``base_offset`` on (-1: unknown), or ``error`` says why they failed.

    ``record_errors`` has the errors of single records, by their index; ``error`` is that of all others.
    """

    partition: TopicPartition
    tokens: Sequence[Token]
    timestamps: Sequence[Millis]
    base_offset: int = -1
    log_append_time: Millis = -1
    error: KafkaError | None = None
    record_errors: Mapping[int, KafkaError] = field(default_factory=dict)


ProducerEffect: TypeAlias = Send | SendBlocked | SendUnblocked | RecordFailed | BatchDone | CallDone
"""``Send`` with acks of 0 has no answer: its driver hands in an ``Answered`` once the request is written."""
