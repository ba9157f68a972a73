"""The records of streams groups in JSON, as Kafka 4.4 converts them, and in bytes."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest

from rejoin.protocol.records.groups import streams_groups
from rejoin.protocol.records.groups.group_parts import AssignmentEpoch, GroupPart, MemberPart
from rejoin.protocol.records.keyed import KeyedRecord
from rejoin.protocol.records.table import STREAMS_GROUP_TYPES
from rejoin.protocol.streams.topology import (
    CopartitionGroup,
    StreamsKeyValue,
    StreamsTopicInfo,
    Subtopology,
    UserEndpoint,
)
from rejoin.protocol.wire.keyed_records import key_bytes, value_bytes
from tests.paths import ROOT

SEQUENCES: Final = ROOT / "tests/golden/streams-groups/streams-groups.jsonl.gz"

BY_KEY: Final = {record_type.key_versions[0]: record_type for record_type in STREAMS_GROUP_TYPES}


def recorded() -> Iterator[dict[str, Any]]:
    """The records of streams groups that Kafka's coordinator wrote."""
    with gzip.open(SEQUENCES, "rt") as lines:
        for line in lines:
            for step in json.loads(line)["steps"]:
                yield from (record for record in step["records"] if record["type"] in BY_KEY)


def versioned(version: int, data: Any) -> str:
    return json.dumps({"version": version, "data": data}, separators=(",", ":"), ensure_ascii=False)


def read(record: dict[str, Any]) -> KeyedRecord[Any, Any]:
    value = None if record["value"] is None else versioned(record["version"], record["value"])
    return BY_KEY[record["type"]].read(versioned(record["type"], record["key"]), value, -1)


def test_types_have_kafka_s_names_and_keys() -> None:
    assert {key: record_type.name for key, record_type in BY_KEY.items()} == {
        17: "StreamsGroupMetadata",
        19: "StreamsGroupMemberMetadata",
        20: "StreamsGroupTargetAssignmentMetadata",
        21: "StreamsGroupTargetAssignmentMember",
        22: "StreamsGroupCurrentMemberAssignment",
        23: "StreamsGroupTopology",
    }


def test_recorded_records_are_read_and_written_as_they_are() -> None:
    seen: Counter[tuple[int, bool]] = Counter()
    for kafkas in recorded():
        record = read(kafkas)
        seen[kafkas["type"], record.value is None] += 1
        assert record.key.as_json() == versioned(kafkas["type"], kafkas["key"])
        if record.value is not None:
            assert record.value.as_json() == versioned(kafkas["version"], kafkas["value"])
        key, value = record.key.data, None if record.value is None else record.value.data
        match record:
            case GroupPart():
                assert type(record).of(key.group_id, value) == record
            case MemberPart():
                assert type(record).of(key.group_id, key.member_id, value) == record
        # Keys are not flexible: two bytes of the version, and each text with the two of its length.
        assert key_bytes(record) == b"".join(
            (kafkas["type"].to_bytes(2), *(len(text).to_bytes(2) + text.encode() for text in kafkas["key"].values()))
        )
        assert (value_bytes(record) is None) == (kafkas["value"] is None)
    assert {key for key, _ in seen} == BY_KEY.keys()
    assert {(key, is_tombstone) for key in BY_KEY for is_tombstone in (False, True)} == seen.keys()


PAIR: Final = StreamsKeyValue(key="k", value="v")
TASKS: Final = (streams_groups.StoredTaskIds(subtopology_id="0", partitions=(1,)),)
KEPT: Final = streams_groups.CurrentTaskIds(subtopology_id="0", partitions=(1,), assignment_epochs=(2,))
TOPIC: Final = StreamsTopicInfo(name="c", partitions=0, replication_factor=1, topic_configs=(PAIR,))
COPARTITION: Final = CopartitionGroup(source_topics=(0,), source_topic_regex=(), repartition_source_topics=(1,))
SUBTOPOLOGY: Final = Subtopology(
    subtopology_id="0",
    source_topics=("t",),
    source_topic_regex=(),
    state_changelog_topics=(TOPIC,),
    repartition_sink_topics=("r",),
    repartition_source_topics=(),
    copartition_groups=(COPARTITION,),
)
PAIR_BYTES: Final = b"\2k\2v\0"
TASKS_BYTES: Final = b"\2" + b"\2" + b"0" + b"\2\0\0\0\1" + b"\0"
BYTES: Final[tuple[tuple[KeyedRecord[Any, Any], bytes], ...]] = (
    (
        streams_groups.StreamsGroupMetadataRecord.of(
            "g",
            streams_groups.StreamsGroupMetadataValue(
                epoch=2, metadata_hash=-1, validated_topology_epoch=0, last_assignment_configs=(PAIR,)
            ),
        ),
        b"\0\0\0\2" + b"\xff" * 8 + b"\2" + b"\0\4\0\0\0\0" + b"\1\6" + b"\2" + PAIR_BYTES,
    ),
    (
        streams_groups.StreamsGroupMemberMetadataRecord.of(
            "g",
            "m",
            streams_groups.StreamsGroupMemberMetadataValue(
                client_id="c",
                client_host="/h",
                rebalance_timeout_ms=5,
                topology_epoch=0,
                process_id="p",
                user_endpoint=UserEndpoint(host="h", port=65_535),
                client_tags=(PAIR,),
            ),
        ),
        b"\0\0" + b"\2c\3/h" + b"\0\0\0\5" + b"\0\0\0\0" + b"\2p" + b"\1\2h\xff\xff\0" + b"\2" + PAIR_BYTES + b"\0",
    ),
    (
        streams_groups.StreamsGroupTargetAssignmentMetadataRecord.of("g", AssignmentEpoch(assignment_epoch=2)),
        b"\0\0\0\2\0",
    ),
    (
        streams_groups.StreamsGroupTargetAssignmentMemberRecord.of(
            "g",
            "m",
            streams_groups.StreamsGroupTargetAssignmentMemberValue(
                active_tasks=TASKS, standby_tasks=(), warmup_tasks=TASKS
            ),
        ),
        TASKS_BYTES + b"\1" + TASKS_BYTES + b"\0",
    ),
    (
        streams_groups.StreamsGroupCurrentMemberAssignmentRecord.of(
            "g",
            "m",
            streams_groups.StreamsGroupCurrentMemberAssignmentValue(
                member_epoch=2,
                previous_member_epoch=1,
                state=1,
                active_tasks=(KEPT,),
                standby_tasks=TASKS,
                warmup_tasks=(),
                active_tasks_pending_revocation=(),
                standby_tasks_pending_revocation=(),
                warmup_tasks_pending_revocation=(),
            ),
        ),
        b"\0\0\0\2\0\0\0\1\1"
        + (b"\2" + b"\2" + b"0" + b"\2\0\0\0\1" + b"\1\0\5\2\0\0\0\2")
        + (TASKS_BYTES + b"\1" * 4 + b"\0"),
    ),
    (
        streams_groups.StreamsGroupTopologyRecord.of(
            "g", streams_groups.StreamsGroupTopologyValue(epoch=1, subtopologies=(SUBTOPOLOGY,))
        ),
        b"\0\0\0\1\2"
        + (b"\2" + b"0" + b"\2\2t" + b"\1")
        + (b"\2" + b"\2c\0\0\0\0\0\1" + b"\2" + PAIR_BYTES + b"\0")
        + (b"\2\2r" + b"\1")
        + (b"\2" + b"\2\0\0" + b"\1" + b"\2\0\1" + b"\0")
        + b"\0\0",
    ),
)


@pytest.mark.parametrize(("record", "expected"), BYTES, ids=lambda each: type(each).__name__)
def test_bytes_of_values_are_as_in_kafka_s_definitions(record: KeyedRecord[Any, Any], expected: bytes) -> None:
    assert value_bytes(record) == b"\0\0" + expected
