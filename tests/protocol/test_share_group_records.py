"""The records of share groups in JSON and in bytes."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.coordinator.storage.codec import decode, encode
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.records.groups import share_groups
from rejoin.protocol.records.groups.group_parts import AssignmentEpoch, TargetPartitions, TopicPartitions
from rejoin.protocol.records.keyed import KeyedRecord
from rejoin.protocol.wire.keyed_records import key_bytes, value_bytes

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
UUID = bytes(15) + b"\1"

MEMBER = share_groups.ShareGroupMemberMetadataRecord.of(
    "g",
    "m",
    share_groups.ShareGroupMemberMetadataValue(client_id="c", client_host="/h", subscribed_topic_names=("t",)),
)
GROUP = share_groups.ShareGroupMetadataRecord.of("g", share_groups.ShareGroupMetadataValue(epoch=2, metadata_hash=-1))
TARGET_EPOCH = share_groups.ShareGroupTargetAssignmentMetadataRecord.of(
    "g", AssignmentEpoch(assignment_epoch=2, assignment_timestamp=5)
)
TARGET = share_groups.ShareGroupTargetAssignmentMemberRecord.of(
    "g",
    "m",
    TargetPartitions(topic_partitions=(TopicPartitions(topic_id=ID, partitions=(3,)),)),
)
CURRENT = share_groups.ShareGroupCurrentMemberAssignmentRecord.of(
    "g",
    "m",
    share_groups.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=2, previous_member_epoch=0, state=0, assigned_partitions=()
    ),
)
STATE = share_groups.ShareGroupStatePartitionMetadataRecord.of(
    "g",
    share_groups.ShareGroupStatePartitionMetadataValue(
        initializing_topics=(),
        initialized_topics=(share_groups.StateTopicPartitions(topic_id=ID, topic_name="t", partitions=(0,)),),
        deleting_topics=(share_groups.DeletingTopic(topic_id=ID, topic_name="u"),),
    ),
)

# Kafka: keys are not flexible, values are from version 0 on.
BYTES: dict[str, tuple[KeyedRecord[Any, Any], bytes, bytes]] = {
    "member": (MEMBER, b"\0\x0a\0\1g\0\1m", b"\0\0" + b"\0" + b"\2c" + b"\3/h" + b"\2\2t" + b"\0"),
    "group": (GROUP, b"\0\x0b\0\1g", b"\0\0" + b"\0\0\0\2" + b"\xff" * 8 + b"\0"),
    "target epoch": (
        TARGET_EPOCH,
        b"\0\x0c\0\1g",
        b"\0\0" + b"\0\0\0\2" + b"\1\0\x08" + b"\0\0\0\0\0\0\0\5",
    ),
    "target": (
        TARGET,
        b"\0\x0d\0\1g\0\1m",
        b"\0\0" + b"\2" + UUID + b"\2\0\0\0\3" + b"\0" + b"\0",
    ),
    "current": (CURRENT, b"\0\x0e\0\1g\0\1m", b"\0\0" + b"\0\0\0\2" + b"\0\0\0\0" + b"\0" + b"\1" + b"\0"),
    "state": (
        STATE,
        b"\0\x0f\0\1g",
        b"\0\0" + b"\1" + b"\2" + UUID + b"\2t" + b"\2\0\0\0\0" + b"\0" + b"\2" + UUID + b"\2u\0" + b"\0",
    ),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_are_as_in_kafka_s_definitions(name: str) -> None:
    record, key, value = BYTES[name]
    assert key_bytes(record) == key
    assert value_bytes(record) == value


@pytest.mark.parametrize("name", BYTES)
def test_a_log_gives_back_what_it_was_given(name: str) -> None:
    record = BYTES[name][0]
    tombstone = type(record)(record.key)
    for each in (record, tombstone):
        assert decode(OFFSETS_TOPIC, [encode(each)]) == (each,)
