"""The table of record types: each version of a value has its own fields, and a new type is one entry."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from rejoin.coordinator.storage.codec import PLAIN, Entry, Unreadable, decode, encode
from rejoin.protocol.records.consumer_offsets import (
    OFFSETS_TOPIC,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetRecord,
    group_record,
    offset_record,
)
from rejoin.protocol.records.data import RecordData
from rejoin.protocol.records.keyed import KeyedRecord, VersionedData
from rejoin.protocol.records.table import (
    CONSUMER_GROUP_TYPES,
    GROUP_METADATA,
    OFFSET_COMMIT,
    RECORD_TYPES,
    SHARE_GROUP_TYPES,
    STREAMS_GROUP_TYPES,
    Owner,
    RecordType,
)
from rejoin.protocol.types import Int32

OFFSET = OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9, expire_timestamp=77)
MEMBER = MemberMetadata(
    member_id="m-1",
    group_instance_id="i",
    client_id="c",
    client_host="/h",
    rebalance_timeout=60,
    session_timeout=10,
    subscription=b"\xfb\xff",
    assignment=b"",
)
GROUP = GroupMetadataValue(
    protocol_type="consumer", generation=3, protocol="range", leader="m-1", current_state_timestamp=8, members=(MEMBER,)
)

OFFSET_FIELDS = {
    # Kafka: OffsetCommitValue.json
    0: ["offset", "metadata", "commitTimestamp"],
    1: ["offset", "metadata", "commitTimestamp", "expireTimestamp"],
    2: ["offset", "metadata", "commitTimestamp"],
    3: ["offset", "leaderEpoch", "metadata", "commitTimestamp"],
    4: ["offset", "leaderEpoch", "metadata", "commitTimestamp"],
}
OF_GROUP = ["protocolType", "generation", "protocol", "leader", "members"]
OF_MEMBER = ["memberId", "clientId", "clientHost", "sessionTimeout", "subscription", "assignment"]
GROUP_FIELDS = {
    # Kafka: GroupMetadataValue.json; what each version adds to the group and to its members
    0: (set(), set()),
    1: (set(), {"rebalanceTimeout"}),
    2: ({"currentStateTimestamp"}, {"rebalanceTimeout"}),
    3: ({"currentStateTimestamp"}, {"rebalanceTimeout", "groupInstanceId"}),
    4: ({"currentStateTimestamp"}, {"rebalanceTimeout", "groupInstanceId"}),
}


def offset_of(version: int, key_version: int = 1) -> OffsetRecord:
    key = OffsetCommitKey(group="g", topic="t", partition=4)
    return OffsetRecord(
        key=VersionedData(version=key_version, data=key),
        value=VersionedData(version=version, data=OFFSET),
    )


def group_of(version: int) -> GroupRecord:
    return GroupRecord(
        key=VersionedData(version=2, data=GroupMetadataKey(group="g")),
        value=VersionedData(version=version, data=GROUP),
    )


def written(record: KeyedRecord[Any, Any]) -> Any:
    value = encode(record).value
    assert value is not None
    return json.loads(value)


@pytest.mark.parametrize("version", OFFSET_FIELDS)
def test_an_offset_has_the_fields_of_its_version(version: int) -> None:
    said = written(offset_of(version))
    assert said["version"] == version
    assert list(said["data"]) == OFFSET_FIELDS[version]


@pytest.mark.parametrize("version", GROUP_FIELDS)
def test_a_group_and_its_members_have_the_fields_of_their_version(version: int) -> None:
    said = written(group_of(version))
    of_group, of_member = GROUP_FIELDS[version]
    assert said["version"] == version
    assert said["data"].keys() == {*OF_GROUP, *of_group}
    assert said["data"]["members"][0].keys() == {*OF_MEMBER, *of_member}


@pytest.mark.parametrize("key_version", [0, 1])
@pytest.mark.parametrize("version", OFFSET_FIELDS)
def test_an_offset_is_read_back_as_it_was_written(version: int, key_version: int) -> None:
    entry = encode(offset_of(version, key_version))
    assert [encode(record) for record in decode(OFFSETS_TOPIC, [entry])] == [entry]


@pytest.mark.parametrize("version", GROUP_FIELDS)
def test_a_group_is_read_back_as_it_was_written(version: int) -> None:
    entry = encode(group_of(version))
    assert [encode(record) for record in decode(OFFSETS_TOPIC, [entry])] == [entry]


def test_what_a_coordinator_writes_is_kafkas_version() -> None:
    """Kafka: GroupCoordinatorRecordHelpers. An expiry of the offset's own has a place in version 1 only."""
    usual = offset_record("g", "t", 0, replace(OFFSET, expire_timestamp=-1))
    assert usual.value is not None
    assert (usual.key.version, usual.value.version) == (1, 3)
    expiring = offset_record("g", "t", 0, OFFSET)
    assert expiring.value is not None
    assert expiring.value.version == 1
    group = group_record("g", GROUP)
    assert group.value is not None
    assert (group.key.version, group.value.version) == (2, 3)


def test_each_key_version_means_one_type() -> None:
    of_consumer_groups = dict(zip((3, 4, 5, 6, 7, 8, 16), CONSUMER_GROUP_TYPES, strict=True))
    of_share_groups = dict(zip((10, 11, 12, 13, 14, 15), SHARE_GROUP_TYPES, strict=True))
    of_streams_groups = dict(zip((17, 19, 20, 21, 22, 23), STREAMS_GROUP_TYPES, strict=True))
    of_offsets = {0: OFFSET_COMMIT, 1: OFFSET_COMMIT}
    types = {**of_offsets, 2: GROUP_METADATA, **of_consumer_groups, **of_share_groups, **of_streams_groups}
    assert RECORD_TYPES[OFFSETS_TOPIC] == types


def test_a_key_whose_version_stands_last_is_read() -> None:
    key = '{"data":{"group":"g"},"version":2}'
    assert decode(OFFSETS_TOPIC, [(PLAIN, key, None)]) == (group_record("g", None),)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ('{"version":18,"data":{"group":"g"}}', None, "keys have no version 18"),
        ('{"version":2,"data":{"group":"g","topic":"t"}}', None, "topic"),
        (
            '{"version":1,"data":{"group":"g","topic":"t","partition":0}}',
            '{"version":5,"data":{"offset":1,"metadata":"","commitTimestamp":1}}',
            "OffsetCommit has no version 5",
        ),
    ],
)
def test_what_the_table_does_not_know_is_refused(key: str, value: str | None, problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        decode(OFFSETS_TOPIC, [(PLAIN, key, value)])


@dataclass(slots=True, unsafe_hash=True, kw_only=True)
class ShareGroupMetadataKey(RecordData):
    """The key of a group of a kind that is not served, KIP-932."""

    group_id: str


@dataclass(slots=True, kw_only=True)
class ShareGroupMetadataValue(RecordData):
    """Its epoch."""

    epoch: Int32


@dataclass(slots=True)
class ShareGroupMetadataRecord(KeyedRecord[ShareGroupMetadataKey, ShareGroupMetadataValue]):
    """The record of such a group."""


def test_a_new_type_of_record_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Entry(PLAIN, '{"version":11,"data":{"groupId":"g"}}', '{"version":0,"data":{"epoch":7}}')
    with pytest.raises(Unreadable):
        decode(OFFSETS_TOPIC, [kept])
    record_type = RecordType("ShareGroupMetadata", Owner.CONSUMER_GROUPS, (11, 11), (0, 0), 0, ShareGroupMetadataRecord)
    monkeypatch.setitem(RECORD_TYPES[OFFSETS_TOPIC], 11, record_type)
    (record,) = decode(OFFSETS_TOPIC, [kept])
    assert isinstance(record, ShareGroupMetadataRecord)
    assert record.value is not None
    assert record.value.data.epoch == 7
    assert encode(record) == kept


@pytest.mark.parametrize("text", ["", 'a"b\\c/', "\x00\x1f\x7f\n\t\r\b\f", "Größe ∑ 𝄞", "a" * 300])
@pytest.mark.parametrize("has_instance", [True, False])
def test_json_is_what_pydantic_writes_and_reads(text: str, has_instance: bool) -> None:
    member = replace(MEMBER, member_id=text, group_instance_id=text if has_instance else None)
    group = replace(GROUP, leader=text, members=(member, MEMBER))
    adapter = TypeAdapter(GroupMetadataValue)
    assert group.to_json(4) == adapter.dump_json(group, by_alias=True).decode()
    assert adapter.validate_json(group.to_json(4)) == group


def test_half_a_surrogate_pair_is_not_stored() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        encode(group_record("\ud800", None))
