"""The types of Kafka's fields, what a field names, and which versions carry it.

Integers are bounded by their width. Bytes are base64 in JSON. A type says what the field is on the wire
(:class:`WireType`) and, where it matters, what it names (:class:`Entity`): both are read by ``fields.py``.
"""

from __future__ import annotations

import base64
import binascii
from enum import StrEnum
from typing import Annotated, Final, NamedTuple, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, StringConstraints, ValidationInfo

from rejoin.protocol.records.batch_run import BatchRun, whole


class WireType(StrEnum):
    """The types of Kafka's message definitions, by the names they have there."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT64 = "float64"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"
    UUID = "uuid"


class Entity(StrEnum):
    """The kind of thing that a field names.

    Kafka: ``entityType`` of the message definitions. The last ones are ours; the definitions have none for them.
    """

    GROUP_ID = "groupId"
    TOPIC_NAME = "topicName"
    TRANSACTIONAL_ID = "transactionalId"
    PRODUCER_ID = "producerId"
    BROKER_ID = "brokerId"
    COORDINATOR_KEY = "coordinatorKey"
    MEMBER_ID = "memberId"
    GROUP_INSTANCE_ID = "groupInstanceId"
    PARTITION = "partition"
    SUBSCRIPTION = "subscription"
    TOPIC_ID = "topicId"
    RESOURCE_NAME = "resourceName"


Int8 = Annotated[int, WireType.INT8, Field(ge=-(2**7), le=2**7 - 1)]
Int16 = Annotated[int, WireType.INT16, Field(ge=-(2**15), le=2**15 - 1)]
UInt16 = Annotated[int, WireType.UINT16, Field(ge=0, le=2**16 - 1)]
Int32 = Annotated[int, WireType.INT32, Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, WireType.INT64, Field(ge=-(2**63), le=2**63 - 1)]


def _bytes_from_base64(value: object, info: ValidationInfo) -> object:
    return _decoded(value) if info.mode == "json" and isinstance(value, str) else value


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as problem:
        raise ValueError(f"expected base64 in the standard alphabet with padding: {problem}") from None


def _bytes_to_base64(value: BatchBytes | BatchRun) -> str:
    return binascii.b2a_base64(whole(value), newline=False).decode("ascii")


Bytes = Annotated[
    bytes,
    BeforeValidator(_bytes_from_base64),
    PlainSerializer(_bytes_to_base64, return_type=str, when_used="json"),
]
"""Bytes in Python, base64 with the standard alphabet and padding in JSON, as Kafka's own JSON has them."""


BatchBytes: TypeAlias = bytes | memoryview
"""Record batches: bytes of their own, or a view of memory that they share with others."""


def _record_batches(value: object, info: ValidationInfo) -> BatchBytes | BatchRun:
    if isinstance(value, bytes | memoryview | BatchRun):
        return value
    if info.mode == "json" and isinstance(value, str):
        return _decoded(value)
    raise ValueError("expected base64" if info.mode == "json" else "expected bytes")


Records = Annotated[
    BatchBytes,
    WireType.RECORDS,
    PlainValidator(_record_batches),
    PlainSerializer(_bytes_to_base64, return_type=str, when_used="json"),
]
"""Record batches as opaque bytes; base64 in JSON, as bytes are."""

FetchedRecords = Annotated[
    BatchBytes | BatchRun,
    WireType.RECORDS,
    PlainValidator(_record_batches),
    PlainSerializer(_bytes_to_base64, return_type=str, when_used="json"),
]
"""Record batches that a log has; many of them are not copied."""

KafkaUuid = Annotated[str, WireType.UUID, StringConstraints(pattern=r"^[A-Za-z0-9_-]{22}$")]
"""A topic id as Kafka prints it: 16 bytes in 22 characters of URL-safe base64 without padding."""

TopicId = Annotated[KafkaUuid, Entity.TOPIC_ID]
"""The id of a topic that a request is about."""

ZERO_UUID: Final = "A" * 22

GroupId = Annotated[str, Entity.GROUP_ID]
MemberId = Annotated[str, Entity.MEMBER_ID]
GroupInstanceId = Annotated[str, Entity.GROUP_INSTANCE_ID]
TopicName = Annotated[str, Entity.TOPIC_NAME]
TransactionalId = Annotated[str, Entity.TRANSACTIONAL_ID]
ResourceName = Annotated[str, Entity.RESOURCE_NAME]
CoordinatorKey = Annotated[str, Entity.COORDINATOR_KEY]
"""A group id or a transactional id, as the key type beside it says."""

PartitionIndex = Annotated[Int32, Entity.PARTITION]
"""A partition of the topic that is named beside the list it stands in."""

ProducerId = Annotated[Int64, Entity.PRODUCER_ID]
BrokerId = Annotated[Int32, Entity.BROKER_ID]
SubscriptionBytes = Annotated[Bytes, Entity.SUBSCRIPTION]
"""A member's subscription in the embedded consumer protocol, where the group speaks it."""


class TopicPartition(NamedTuple):
    """A partition of a topic. Equal to, and hashed like, the plain tuple ``(topic, partition)``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicIdPartition(NamedTuple):
    """A partition of one topic, which is another when a topic is made again under its name."""

    topic_id: str
    partition: int
    topic: str

    def __str__(self) -> str:
        return f"{self.topic_id}:{self.topic}-{self.partition}"


LogPartition: TypeAlias = TopicPartition | TopicIdPartition
"""A partition that has a log: of an internal topic by name, of others by topic id."""


class In(NamedTuple):
    """The versions of its message that carry a field: from ``since`` up to and including ``until`` (none: the newest).

    ``needed`` marks a request field without a default: a request of these versions must have it. ``nullable`` is the
    first version in which the field may be null, where that is not the first that carries it. ``tag`` is the number of
    a field that a flexible version writes among its tagged fields, and leaves out when it has its default.
    """

    since: int
    until: int | None = None
    needed: bool = False
    nullable: int | None = None
    tag: int | None = None

    def carries(self, version: int) -> bool:
        return self.since <= version and (self.until is None or version <= self.until)

    def __str__(self) -> str:
        return f"v{self.since}+" if self.until is None else f"v{self.since} to v{self.until}"
