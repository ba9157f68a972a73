"""Fetched batches become records: fields, gaps, codecs, aborted transactions, damage."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from rejoin.client.core.errors import CorruptRecordError
from rejoin.client.core.fetch.consumer_record import TimestampType
from rejoin.client.core.fetch.fetched import FetchedBatches
from rejoin.protocol.messages.records.fetch import AbortedTransaction
from rejoin.protocol.types import TopicPartition
from rejoin.protocol.wire.compression import CompressionType, compress
from rejoin.protocol.wire.record_batch import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    sealed,
)
from rejoin.protocol.wire.records import ControlRecordType, DefaultRecord, EndTransactionMarker, write_records

PARTITION = TopicPartition("t", 3)
AT = 1_700_000_000_000


def batch(
    base: int,
    records: Sequence[DefaultRecord],
    *,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    last_delta: int | None = None,
    max_timestamp: int = AT,
    epoch: int = 5,
) -> bytes:
    """A batch as a broker has it."""
    delta = max(record.offset_delta for record in records) if last_delta is None else last_delta
    header = BatchHeader(
        base, 0, epoch, MAGIC, 0, attributes, delta, AT, max_timestamp, producer_id, NO_PRODUCER_EPOCH, NO_SEQUENCE,
        len(records),
    )  # fmt: skip
    return sealed(header, bytes(compress(attributes & 7, write_records(records))))


def plain(count: int, start: int = 0) -> list[DefaultRecord]:
    return [DefaultRecord(index, index, None, b"%d" % (start + index)) for index in range(count)]


def marker(base: int, producer_id: int, kind: ControlRecordType) -> bytes:
    record = EndTransactionMarker(kind, 0).as_record()
    return batch(base, [record], attributes=TRANSACTIONAL_BIT | CONTROL_BIT, producer_id=producer_id)


def fetched(
    data: bytes, offset: int = 0, aborted: Sequence[tuple[int, int]] | None = None, *, check_crcs: bool = True
) -> FetchedBatches:
    transactions = None
    if aborted is not None:
        transactions = [AbortedTransaction(producer_id=pid, first_offset=first) for pid, first in aborted]
    return FetchedBatches(PARTITION, offset, data, transactions, check_crcs=check_crcs)


def values(batches: FetchedBatches, most: int = 1_000) -> list[bytes]:
    return [record.value for record in batches.take(most)]


@pytest.mark.parametrize("codec", CompressionType)
def test_a_record_has_all_its_fields_whatever_the_codec(codec: CompressionType) -> None:
    written = [
        DefaultRecord(0, 7, b"key", b"value", (("a", b"1"), ("b", None))),
        DefaultRecord(1, -3, None, None),
        DefaultRecord(2, 0, b"", b""),
    ]
    first, second, third = fetched(batch(100, written, attributes=codec), 100).take(10)
    assert first == (
        "t",
        3,
        100,
        AT + 7,
        b"key",
        b"value",
        (("a", b"1"), ("b", None)),
        TimestampType.CREATE_TIME,
        5,
        None,
    )
    assert (second.offset, second.timestamp, second.key, second.value, second.headers) == (101, AT - 3, None, None, ())
    assert (third.key, third.value) == (b"", b"")


def test_the_broker_s_own_time_is_that_of_every_record() -> None:
    batches = fetched(batch(0, plain(2), attributes=LOG_APPEND_TIME_BIT, max_timestamp=AT + 50))
    assert [(each.timestamp, each.timestamp_type) for each in batches.take(2)] == [
        (AT + 50, TimestampType.LOG_APPEND_TIME)
    ] * 2


def test_records_of_any_sizes_are_read_as_they_were_written() -> None:
    dice = random.Random(7)
    sizes = [0, 1, 62, 63, 64, 65, 127, 128, 8_190, 8_191, 8_192, 20_000]
    for _ in range(40):
        written = [
            DefaultRecord(
                index * dice.choice((1, 1, 70, 9_000)),
                dice.choice((0, 1, -1, 63, 64, -64, -65, 8_191, 8_192, 2_000_000, -(2**40))),
                None if dice.random() < 0.3 else dice.randbytes(dice.choice(sizes)),
                None if dice.random() < 0.1 else dice.randbytes(dice.choice(sizes)),
                () if dice.random() < 0.8 else (("h", dice.randbytes(3)),),
            )
            for index in range(dice.randrange(1, 12))
        ]
        made = fetched(batch(0, written)).take(100)
        assert [(r.offset, r.timestamp - AT, r.key, r.value, r.headers) for r in made] == [
            (r.offset_delta, r.timestamp_delta, r.key, r.value, r.headers) for r in written
        ]


def test_records_are_handed_out_piece_by_piece_and_the_position_follows_gaps() -> None:
    compacted = [DefaultRecord(index, 0, None, b"%d" % index) for index in (1, 4, 6)]
    batches = fetched(batch(10, compacted, last_delta=9) + batch(20, plain(2)), 12)
    assert [record.offset for record in batches.take(1)] == [14]
    assert batches.next_offset == 15
    assert [record.offset for record in batches.take(1)] == [16]
    assert batches.next_offset == 20
    assert [record.offset for record in batches.take(9)] == [20, 21]
    assert (batches.next_offset, batches.epoch, batches.take(1)) == (22, 5, [])


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    data = batch(0, plain(2)) + batch(2, plain(2))
    for end in (len(data) - 1, len(data) - 60, len(data) // 2 + 5):
        batches = fetched(data[:end])
        assert (values(batches), batches.next_offset) == ([b"0", b"1"], 2)


def test_aborted_transactions_and_markers_are_skipped_when_only_committed_records_are_read() -> None:
    transactional = TRANSACTIONAL_BIT
    data = b"".join(
        (
            batch(0, plain(2, 0), attributes=transactional, producer_id=7),
            batch(2, plain(2, 2), attributes=transactional, producer_id=8),
            batch(4, plain(1, 4)),
            marker(5, 7, ControlRecordType.ABORT),
            batch(6, plain(2, 6), attributes=transactional, producer_id=7),
            marker(8, 8, ControlRecordType.COMMIT),
            marker(9, 7, ControlRecordType.COMMIT),
        )
    )
    committed = fetched(data, 0, [(7, 0)])
    assert (values(committed), committed.next_offset) == ([b"2", b"3", b"4", b"6", b"7"], 10)
    assert values(fetched(data, 0)) == [b"0", b"1", b"2", b"3", b"4", b"6", b"7"]


def test_damage_is_an_error_at_its_offset_after_the_records_before_it() -> None:
    damaged = bytearray(batch(2, plain(3)))
    damaged[-2] ^= 1
    batches = fetched(batch(0, plain(2)) + bytes(damaged))
    assert values(batches) == [b"0", b"1"]
    with pytest.raises(CorruptRecordError, match="damaged records of t-3 at offset 2: the checksum is") as caught:
        batches.take(1)
    assert (caught.value.partition, caught.value.offset, batches.next_offset) == (PARTITION, 2, 2)
    assert values(fetched(bytes(damaged), 2, check_crcs=False))[0] == b"0"


def test_flipped_bits_are_damage_and_never_another_exception() -> None:
    dice = random.Random(3)
    whole = batch(0, [DefaultRecord(i, i, b"k%d" % i, b"v" * i, (("h", b"x"),) if i % 3 else ()) for i in range(20)])
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(61, len(data))] ^= 1 << dice.randrange(8)
        try:
            fetched(bytes(data), check_crcs=False).take(100)
        except CorruptRecordError:
            continue
