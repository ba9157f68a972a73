"""Headers and checksums of record batches, against bytes of a real broker's clients."""

from __future__ import annotations

import google_crc32c
import pytest

from rejoin.protocol.wire.record_batch import (
    HEADER_SIZE,
    MAGIC_AT,
    MAX_SEQUENCE,
    checksum,
    checksum_of_copies,
    crc_of,
    increment_sequence,
    parse_header,
    sealed,
)

ONE_RECORD = bytes.fromhex(
    "000000000000000000000039ffffffff02965a94b10000000000000000018bcfe568000000018bcfe56800"
    "ffffffffffffffffffffffffffff000000010e00000001026100"
)
TRANSACTIONAL = bytes.fromhex(
    "000000000000000000000046ffffffff02203bddcb0010000000010000018bcfe568000000018bcfe56801"
    "0000000000000005000000000000000000020e0000000102610018000202026b02760202680231"
)


def test_a_header_is_read_field_by_field() -> None:
    header = parse_header(TRANSACTIONAL)
    assert (header.size, header.last_offset_delta, header.records_count) == (82, 1, 2)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (5, 0, 0, 1)
    assert header.max_timestamp == header.base_timestamp + 1 == 1_700_000_000_001
    assert header.is_transactional
    assert not header.is_control
    assert header.pack() == TRANSACTIONAL[:HEADER_SIZE]


def test_the_checksum_is_that_of_kafkas_clients() -> None:
    for batch in (ONE_RECORD, TRANSACTIONAL):
        assert crc_of(batch) == parse_header(batch).crc
        assert sealed(parse_header(batch), batch[HEADER_SIZE:]) == batch


def test_offset_and_epoch_need_no_new_checksum() -> None:
    header = parse_header(ONE_RECORD).with_position(77, 3)
    batch = header.pack_start() + ONE_RECORD[MAGIC_AT:]
    assert header == parse_header(batch)
    assert (header.base_offset, header.partition_leader_epoch, len(batch)) == (77, 3, len(ONE_RECORD))
    assert crc_of(batch) == header.crc


def test_sequences_begin_again_at_zero() -> None:
    assert increment_sequence(MAX_SEQUENCE, 1) == 0
    assert increment_sequence(MAX_SEQUENCE - 1, 1) == MAX_SEQUENCE
    assert increment_sequence(3, 2) == 5


@pytest.mark.parametrize("size", [0, 1, 61, 65_536, 65_537, 200_001])
def test_the_checksum_is_the_same_with_and_without_copies(size: int) -> None:
    data = memoryview(bytes(range(256)) * 800)[5 : 5 + size]
    assert checksum(data) == checksum_of_copies(data) == google_crc32c.value(bytes(data))
