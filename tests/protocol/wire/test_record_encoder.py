"""Batches that are written record by record are those that the reader and the one-by-one writer know."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rejoin.protocol.wire.compression import CompressionType
from rejoin.protocol.wire.record_batch import is_intact, parse_header
from rejoin.protocol.wire.record_encoder import BatchBuilder, encode_record, signed_varint, with_producer_state
from rejoin.protocol.wire.records import DefaultRecord, read_batch, read_varint

SOME_BYTES = st.one_of(st.none(), st.binary(max_size=40), st.sampled_from([b"x" * size for size in (63, 64, 5_000)]))
HEADERS = st.lists(st.tuples(st.text(max_size=3), SOME_BYTES), max_size=3).map(tuple)
TIMES = st.integers(0, 2**45)


@given(st.integers(-(2**31), 2**31 - 1))
def test_numbers_are_written_as_they_are_read(number: int) -> None:
    written = signed_varint(number)
    assert read_varint(written, 0) == (number, len(written))


@given(
    st.lists(st.tuples(TIMES, SOME_BYTES, SOME_BYTES, HEADERS), min_size=1, max_size=5),
    st.sampled_from(list(CompressionType)),
)
def test_a_batch_is_read_as_it_was_built(
    records: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    codec: CompressionType,
) -> None:
    builder = BatchBuilder(records[0][0])
    for timestamp, key, value, headers in records:
        encoded = encode_record(timestamp - builder.base_timestamp, builder.count, key, value, headers)
        builder.append(encoded, timestamp)
    batch = builder.seal(codec, producer_id=7, producer_epoch=2, base_sequence=40)
    assert is_intact(batch)
    header = parse_header(batch)
    assert (header.codec, header.producer_id, header.producer_epoch, header.base_sequence) == (codec, 7, 2, 40)
    assert header.max_timestamp == max(timestamp for timestamp, *_ in records)
    assert read_batch(batch) == [
        DefaultRecord(index, timestamp - records[0][0], key, value, headers)
        for index, (timestamp, key, value, headers) in enumerate(records)
    ]
    renumbered = with_producer_state(batch, 8, 0, 0)
    assert is_intact(renumbered)
    assert parse_header(renumbered).with_fields(crc=0) == header.with_fields(
        crc=0, producer_id=8, producer_epoch=0, base_sequence=0
    )


def test_a_batch_is_the_one_that_kafka_writes() -> None:
    # Kafka: the vector of one record, "a" at 1700000000000, without a producer.
    builder = BatchBuilder(1_700_000_000_000)
    builder.append(encode_record(0, 0, None, b"a"), 1_700_000_000_000)
    assert builder.seal(CompressionType.NONE).hex() == (
        "000000000000000000000039ffffffff02965a94b10000000000000000018bcfe568000000018bcfe56800ffffffffffffffff"
        "ffffffffffff000000010e00000001026100"
    )
