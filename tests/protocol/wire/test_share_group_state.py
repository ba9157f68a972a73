"""Records of ``__share_group_state`` as bytes: those of the schemas, and back again."""

from __future__ import annotations

import pytest

from rejoin.protocol.records.share_group_state import (
    ShareRecordType,
    ShareSnapshotValue,
    ShareStateBatch,
    ShareStateRecord,
    ShareStateValue,
    ShareUpdateValue,
)
from rejoin.protocol.records.share_partitions import SharePartitionKey
from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.state_topics.share_group_state import key_bytes, read_key, read_record, value_bytes

KEY = SharePartitionKey("orders", "AAAAAAAAAAEAAAAAAAAAAQ", 7)
BATCH = ShareStateBatch(first_offset=10, last_offset=11, delivery_state=2, delivery_count=3)
SNAPSHOT = ShareSnapshotValue(
    snapshot_epoch=1,
    state_epoch=2,
    leader_epoch=3,
    start_offset=10,
    delivery_complete_count=2,
    create_timestamp=5,
    write_timestamp=6,
    state_batches=(BATCH,),
)
UPDATE = ShareUpdateValue(snapshot_epoch=1, leader_epoch=3, start_offset=-1, state_batches=())

KEY_FIELDS = "00066f7264657273" + "0000000000000001" * 2 + "00000007"
BATCH_FIELDS = "000000000000000a" + "000000000000000b" + "02" + "0003" + "00"
"""Two offsets, state and count, and no tagged field."""


def test_a_key_begins_with_the_type_of_the_record() -> None:
    assert key_bytes(KEY, ShareRecordType.SNAPSHOT).hex() == "0000" + KEY_FIELDS
    assert key_bytes(KEY, ShareRecordType.UPDATE).hex() == "0001" + KEY_FIELDS


def test_a_snapshot_has_its_count_as_a_tagged_field() -> None:
    fields = "00000001" + "00000002" + "00000003" + "000000000000000a" + "0000000000000005" + "0000000000000006"
    tagged = "01" + "00" + "04" + "00000002"
    assert value_bytes(SNAPSHOT).hex() == "0000" + fields + "02" + BATCH_FIELDS + tagged


def test_an_update_leaves_out_a_count_that_is_not_known() -> None:
    assert value_bytes(UPDATE).hex() == "0000" + "00000001" + "00000003" + "ff" * 8 + "01" + "00"


@pytest.mark.parametrize("value", [SNAPSHOT, UPDATE])
def test_a_record_is_read_as_it_was_written(value: ShareStateValue) -> None:
    record = ShareStateRecord(KEY, value)
    key, data = key_bytes(record.key, record.type), value_bytes(value)
    assert read_key(key) == (record.type, KEY)
    assert read_record(key, data) == record


def test_a_tombstone_has_no_value() -> None:
    key = key_bytes(KEY, ShareRecordType.SNAPSHOT)
    assert read_record(key, None) == ShareStateRecord(KEY, None)


def test_a_key_of_another_type_is_skipped() -> None:
    key = bytes.fromhex("0002" + KEY_FIELDS)
    assert read_key(key) is None
    assert read_record(key, b"\0\0") is None


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("00", "", "begins with two bytes"),
        ("0000" + "0006", "0000", "no ShareStateKey"),
        ("0000" + KEY_FIELDS, "0001", "a value of version 1: expected 0"),
        ("0000" + KEY_FIELDS, "0000" + "00000001", "no ShareSnapshotValue"),
        ("0001" + KEY_FIELDS, "0000" + "00000001", "no ShareUpdateValue"),
    ],
)
def test_bytes_that_are_no_record_are_refused(key: str, value: str, problem: str) -> None:
    with pytest.raises(RecordsError, match=problem):
        read_record(bytes.fromhex(key), bytes.fromhex(value))
