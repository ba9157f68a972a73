"""The records of consumer groups in JSON and in bytes, as Kafka 4.4 converts and writes them."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from rejoin.coordinator.storage.codec import PLAIN, Entry, decode, encode
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC
from rejoin.protocol.records.groups import consumer_groups
from rejoin.protocol.records.groups.group_parts import GroupPart, MemberPart
from rejoin.protocol.records.keyed import KeyedRecord, Record
from rejoin.protocol.wire.keyed_records import key_bytes, value_bytes
from tests.paths import ROOT
from tests.suite.cases import for_each

LINES: Final = (ROOT / "tests/golden/consumer-group-records.jsonl").read_text().splitlines()
"""Made from recorded records with Kafka's own converters (``conformance/kafka/RecordBytes.java``)."""

KAFKAS: Final[list[dict[str, Any]]] = [json.loads(line) for line in LINES]


def dumped(versioned: dict[str, Any]) -> str:
    return json.dumps(versioned, separators=(",", ":"), ensure_ascii=False)


def entry_of(kafkas: dict[str, Any]) -> Entry:
    """The record as a log keeps it."""
    key = dumped({"version": kafkas["type"], "data": kafkas["key"]})
    value = kafkas["value"]
    return Entry(PLAIN, key, None if value is None else dumped({"version": kafkas["version"], "data": value}))


def record_of(kafkas: dict[str, Any]) -> KeyedRecord[Any, Any]:
    record: Record
    (record,) = decode(OFFSETS_TOPIC, [entry_of(kafkas)])
    assert isinstance(record, KeyedRecord)
    return record


@for_each("kafkas", KAFKAS)
def test_json_is_kafkas(kafkas: dict[str, Any]) -> None:
    assert encode(record_of(kafkas)) == entry_of(kafkas)


@for_each("kafkas", KAFKAS)
def test_bytes_are_kafkas(kafkas: dict[str, Any]) -> None:
    record = record_of(kafkas)
    assert base64.b64encode(key_bytes(record)).decode() == kafkas["keyBytes"]
    value = value_bytes(record)
    assert (None if value is None else base64.b64encode(value).decode()) == kafkas.get("valueBytes")


def test_every_type_has_a_value_and_a_tombstone() -> None:
    found = {(kafkas["type"], kafkas["value"] is None) for kafkas in KAFKAS}
    assert found == {(key, is_tombstone) for key in (1, 3, 4, 5, 6, 7, 8, 16) for is_tombstone in (False, True)}


def rebuilt(record: KeyedRecord[Any, Any]) -> KeyedRecord[Any, Any]:
    """The same record made by the helpers."""
    key: Any = record.key.data
    value: Any = None if record.value is None else record.value.data
    match record:
        case GroupPart():
            return type(record).of(key.group_id, value)
        case MemberPart():
            return type(record).of(key.group_id, key.member_id, value)
        case consumer_groups.ConsumerGroupRegularExpressionRecord():
            return consumer_groups.regular_expression_record(key.group_id, key.regular_expression, value)
    return record


@for_each("kafkas", KAFKAS)
def test_helpers_make_the_versions_that_kafka_writes(kafkas: dict[str, Any]) -> None:
    record = record_of(kafkas)
    assert rebuilt(record) == record


def test_records_of_before_tags_were_added_are_read() -> None:
    """Kafka 4.0 writes no assignment epochs and no hash; a missing one is not the null that others write."""
    entries = [
        Entry(PLAIN, '{"version":3,"data":{"groupId":"g"}}', '{"version":0,"data":{"epoch":7}}'),
        Entry(
            PLAIN,
            '{"version":8,"data":{"groupId":"g","memberId":"m"}}',
            '{"version":0,"data":{"memberEpoch":7,"previousMemberEpoch":6,"state":0,"assignedPartitions":'
            '[{"topicId":"Amssu3wTSBWZtdqZaf-Hlw","partitions":[0]}],"partitionsPendingRevocation":[]}}',
        ),
    ]
    group, current = decode(OFFSETS_TOPIC, entries)
    assert isinstance(group, consumer_groups.ConsumerGroupMetadataRecord)
    assert isinstance(current, consumer_groups.ConsumerGroupCurrentMemberAssignmentRecord)
    assert group.value is not None
    assert group.value.data.metadata_hash == 0
    assert current.value is not None
    assert current.value.data.assigned_partitions[0].assignment_epochs == ()
    assert [encode(record) for record in (group, current)] == entries
