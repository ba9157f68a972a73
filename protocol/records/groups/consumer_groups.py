"""The records of consumer groups (KIP-848) in ``__consumer_offsets``: keys 3 to 8, and 16.

Source: Kafka's ``ConsumerGroup...Key`` and ``ConsumerGroup...Value`` of 4.4. Each part of a group has a record of its
own, so a change writes no more than what changed. A tagged field is written unless it has its default. Kafka's default
of two of them is an empty value, and null is another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, TypeAlias

from rejoin.protocol.records.data import RecordData
from rejoin.protocol.records.groups.group_parts import (
    VALUE_VERSION,
    AssignmentEpoch,
    GroupPart,
    MemberPart,
    TargetPartitions,
)
from rejoin.protocol.records.keyed import KeyedRecord, VersionedData
from rejoin.protocol.types import (
    Bytes,
    GroupId,
    GroupInstanceId,
    In,
    Int8,
    Int32,
    Int64,
    PartitionIndex,
    TopicId,
    TopicName,
)

REGULAR_EXPRESSION_KEY: Final = 16


@dataclass(slots=True, kw_only=True)
class ConsumerGroupMetadataValue(RecordData):
    """The group epoch, and the hash of the topics that the group is subscribed to."""

    epoch: Int32
    metadata_hash: Annotated[Int64, In(0, tag=0)] = 0


@dataclass(slots=True)
class ConsumerGroupMetadataRecord(GroupPart[ConsumerGroupMetadataValue]):
    """A group, or its end."""

    key_version: ClassVar[int] = 3


@dataclass(slots=True, kw_only=True)
class PartitionRacks(RecordData):
    """The racks of a partition's replicas."""

    partition: PartitionIndex
    racks: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class SubscribedTopicMetadata(RecordData):
    """A topic that the group is subscribed to, as it was."""

    topic_id: TopicId
    topic_name: TopicName
    num_partitions: Int32
    partition_metadata: tuple[PartitionRacks, ...]


@dataclass(slots=True, kw_only=True)
class ConsumerGroupPartitionMetadataValue(RecordData):
    """The topics of a group. Kafka 4.0 wrote it; newer ones write the tombstone of what they find."""

    topics: tuple[SubscribedTopicMetadata, ...]


@dataclass(slots=True)
class ConsumerGroupPartitionMetadataRecord(GroupPart[ConsumerGroupPartitionMetadataValue]):
    """The topics of a group, or their end."""

    key_version: ClassVar[int] = 4


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class ClassicProtocol(RecordData):
    """An assignor of a classic member, with the subscription it sent for it."""

    name: str
    metadata: Bytes


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class ClassicMemberMetadata(RecordData):
    """Additional fields of a member that uses the classic protocol."""

    session_timeout_ms: Int32 = 0
    supported_protocols: tuple[ClassicProtocol, ...] = ()


NO_CLASSIC_METADATA: Final = ClassicMemberMetadata()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupMemberMetadataValue(RecordData):
    """A member as it described itself. Without classic metadata it uses the consumer protocol."""

    instance_id: GroupInstanceId | None = None
    rack_id: str | None = None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[TopicName, ...]
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: str | None = None
    # Kafka: ConsumerGroupMemberMetadataValue.json. The default is an empty struct, so a modern member writes a null.
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, In(0, tag=0)] = NO_CLASSIC_METADATA


@dataclass(slots=True)
class ConsumerGroupMemberMetadataRecord(MemberPart[ConsumerGroupMemberMetadataValue]):
    """A member's own description, or the end of the member."""

    key_version: ClassVar[int] = 5


@dataclass(slots=True)
class ConsumerGroupTargetAssignmentMetadataRecord(GroupPart[AssignmentEpoch]):
    """The epoch of a group's target assignment, or its end."""

    key_version: ClassVar[int] = 6


@dataclass(slots=True)
class ConsumerGroupTargetAssignmentMemberRecord(MemberPart[TargetPartitions]):
    """The target assignment of a member, or its end."""

    key_version: ClassVar[int] = 7


@dataclass(slots=True, kw_only=True)
class CurrentTopicPartitions(RecordData):
    """Partitions of one topic that a member holds, each with the member epoch at which it got it.

    Brokers of before 4.3 write no epochs; they are read as none.
    """

    topic_id: TopicId
    partitions: tuple[PartitionIndex, ...]
    assignment_epochs: Annotated[tuple[Int32, ...] | None, In(0, tag=0)] = ()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupCurrentMemberAssignmentValue(RecordData):
    """A member's assignment, and partitions to revoke. States: 0 stable, 1 unrevoked, 2 unreleased partitions."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[CurrentTopicPartitions, ...]
    partitions_pending_revocation: tuple[CurrentTopicPartitions, ...]


@dataclass(slots=True)
class ConsumerGroupCurrentMemberAssignmentRecord(MemberPart[ConsumerGroupCurrentMemberAssignmentValue]):
    """The current assignment of a member, or its end."""

    key_version: ClassVar[int] = 8


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class ConsumerGroupRegularExpressionKey(RecordData):
    """Which regular expression of which group."""

    group_id: GroupId
    regular_expression: str


@dataclass(slots=True, kw_only=True)
class ConsumerGroupRegularExpressionValue(RecordData):
    """The topics that matched, with the version and the time of the metadata that they were found in."""

    topics: tuple[TopicName, ...]
    version: Int64
    timestamp: Int64


@dataclass(slots=True)
class ConsumerGroupRegularExpressionRecord(
    KeyedRecord[ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue]
):
    """The topics of a regular expression, or its end."""


ConsumerGroupRecord: TypeAlias = (
    ConsumerGroupMetadataRecord
    | ConsumerGroupPartitionMetadataRecord
    | ConsumerGroupMemberMetadataRecord
    | ConsumerGroupTargetAssignmentMetadataRecord
    | ConsumerGroupTargetAssignmentMemberRecord
    | ConsumerGroupCurrentMemberAssignmentRecord
    | ConsumerGroupRegularExpressionRecord
)
"""A record of a consumer group."""


def regular_expression_record(
    group_id: str, expression: str, value: ConsumerGroupRegularExpressionValue | None
) -> ConsumerGroupRegularExpressionRecord:
    """The record of a regular expression's topics; a tombstone without a value."""
    data = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression)
    versioned = None if value is None else VersionedData(VALUE_VERSION, value)
    return ConsumerGroupRegularExpressionRecord(VersionedData(REGULAR_EXPRESSION_KEY, data), versioned)
