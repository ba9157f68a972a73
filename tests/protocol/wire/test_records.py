"""Records inside batches: read and written as an independent implementation does; damaged ones are refused."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pytest
from aiokafka.record import default_records as aiokafka
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoin.protocol.wire.compression import CompressionType, compress, decompress
from rejoin.protocol.wire.errors import CompressionError, RecordsError
from rejoin.protocol.wire.record_encoder import signed_varint
from rejoin.protocol.wire.record_scan import RecordScan, scan_records
from rejoin.protocol.wire.records import (
    ControlRecordType,
    DefaultRecord,
    EndTransactionMarker,
    read_batch,
    read_records,
    write_records,
)

HEADER_BYTES = 61

ONE_RECORD = bytes.fromhex(
    "000000000000000000000039ffffffff02965a94b10000000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff"
    "000000010e00000001026100"
)
TWO_RECORDS = bytes.fromhex(
    "000000000000000000000046ffffffff02203bddcb0010000000010000018bcfe568000000018bcfe568010000000000000005000000000000"
    "000000020e0000000102610018000202026b02760202680231"
)

PACKED_BY_CLIENTS = {
    # What clients sent to a broker that accepted it: two records, "CODEC 1" and "CODEC 2" a millisecond later.
    CompressionType.GZIP: "H4sIAAAAAAACA5NgYGBg5EmvyixQMGSQYGBignKMGAAHtPGeGgAAAA==",
    CompressionType.SNAPPY: "glNOQVBQWQAAAAABAAAAAQAAACIe9B0AHAAAAAEQc25hcHB5IDEAHAACAgEQc25hcHB5IDIA",
    CompressionType.LZ4: "BCJNGGBAghgAAIAWAAAAAQpsejQgMQAWAAICAQpsejQgMgAAAAAA",
    CompressionType.ZSTD: "KLUv/SAa0QAAGAAAAAEMenN0ZCAxABgAAgIBDHpzdGQgMgA=",
}

CODECS = tuple(CompressionType)

NULLABLE = st.none() | st.binary(max_size=300)
RECORDS = st.lists(
    st.tuples(
        NULLABLE,
        NULLABLE,
        st.lists(st.tuples(st.text(max_size=8), NULLABLE), max_size=3),
        st.integers(-(2**62), 2**62) | st.integers(0, 2**41),
    ),
    min_size=1,
    max_size=8,
)


def test_a_record_that_kafka_wrote() -> None:
    assert read_batch(ONE_RECORD) == [DefaultRecord(0, 0, None, b"a")]
    assert write_records([DefaultRecord(0, 0, None, b"a")]) == ONE_RECORD[HEADER_BYTES:]


def test_two_records_with_key_and_header_that_kafka_wrote() -> None:
    records = [DefaultRecord(0, 0, None, b"a"), DefaultRecord(1, 1, b"k", b"v", (("h", b"1"),))]
    assert read_batch(TWO_RECORDS) == records
    assert write_records(records) == TWO_RECORDS[HEADER_BYTES:]


@pytest.mark.parametrize("codec", PACKED_BY_CLIENTS, ids=lambda codec: codec.name.lower())
def test_records_that_clients_packed(codec: CompressionType) -> None:
    data = decompress(codec, base64.b64decode(PACKED_BY_CLIENTS[codec]))
    name = codec.name.lower().encode()
    assert read_records(data, 2) == [
        DefaultRecord(0, 0, None, name + b" 1"),
        DefaultRecord(1, 1, None, name + b" 2"),
    ]


@given(RECORDS, st.sampled_from(CODECS))
@settings(max_examples=60, deadline=None)
def test_batches_of_aiokafka_are_read(
    records: Sequence[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]], codec: CompressionType
) -> None:
    builder = aiokafka.DefaultRecordBatchBuilder(2, int(codec), False, -1, -1, -1, 1 << 20)
    first = records[0][3]
    for offset, (key, value, headers, timestamp) in enumerate(records):
        # Timestamps are relative to the first one, and a difference must fit 64 bits.
        builder.append(offset, timestamp=first + abs(timestamp) % 2**40, key=key, value=value, headers=headers)
    base = first + abs(first) % 2**40
    assert read_batch(bytes(builder.build())) == [
        DefaultRecord(offset, first + abs(timestamp) % 2**40 - base, key, value, tuple(headers))
        for offset, (key, value, headers, timestamp) in enumerate(records)
    ]


@given(RECORDS, st.sampled_from(CODECS))
@settings(max_examples=60, deadline=None)
def test_aiokafka_reads_what_is_written(
    records: Sequence[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]], codec: CompressionType
) -> None:
    mine = [
        DefaultRecord(offset, timestamp % 2**40, key, value, tuple(headers))
        for offset, (key, value, headers, timestamp) in enumerate(records)
    ]
    packed = compress(codec, write_records(mine))
    header = bytearray(ONE_RECORD[:HEADER_BYTES])
    header[8:12] = (HEADER_BYTES - 12 + len(packed)).to_bytes(4, "big")
    header[21:23] = int(codec).to_bytes(2, "big")
    header[27:35] = bytes(8)
    header[57:61] = len(mine).to_bytes(4, "big")
    assert [
        DefaultRecord(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
        for record in aiokafka.DefaultRecordBatch(bytes(header + packed))
    ] == mine


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
@pytest.mark.parametrize("data", [b"", b"x", b"ab" * 200_000], ids=["nothing", "a byte", "blocks"])
def test_each_codec_unpacks_what_it_packed(codec: CompressionType, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


def test_snappy_comes_raw_as_well() -> None:
    # A literal of five bytes, without any framing: librdkafka's form.
    assert bytes(decompress(CompressionType.SNAPPY, b"\x05\x10hello")) == b"hello"


def test_several_gzip_members_are_one_stream() -> None:
    data = bytes(compress(CompressionType.GZIP, b"one ")) + bytes(compress(CompressionType.GZIP, b"two"))
    assert bytes(decompress(CompressionType.GZIP, data)) == b"one two"


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec], ids=lambda codec: codec.name.lower())
def test_what_unpacks_to_too_much_is_refused(codec: CompressionType) -> None:
    packed = compress(codec, bytes(1_000_000))
    with pytest.raises(CompressionError, match="more than 999999 bytes"):
        decompress(codec, packed, 999_999)
    assert len(decompress(codec, packed, 1_000_000)) == 1_000_000


def test_a_length_that_snappy_cannot_reach_reserves_no_memory() -> None:
    with pytest.raises(CompressionError, match="unpack to more"):
        decompress(CompressionType.SNAPPY, b"\xff\xff\xff\x0f\x00x")


def test_unknown_codecs_are_refused() -> None:
    with pytest.raises(CompressionError, match="codec 5: expected 0 to 4"):
        decompress(5, b"")


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec], ids=lambda codec: codec.name.lower())
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_data_gives_one_type_of_error(codec: CompressionType, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, b"some records and some more of the same records " * 5))
    kind = data.draw(st.sampled_from(["cut", "flip", "noise"]))
    at = data.draw(st.integers(0, len(packed) - 1))
    if kind == "cut":
        del packed[at:]
    elif kind == "flip":
        packed[at] ^= data.draw(st.integers(1, 255))
    else:
        packed[:] = data.draw(st.binary(max_size=60))
    try:
        unpacked = decompress(codec, bytes(packed), 1 << 16)
    except CompressionError:
        return
    assert len(unpacked) <= 1 << 16


@given(st.binary(max_size=60), st.integers(-3, 20))
@settings(max_examples=150, deadline=None)
def test_noise_is_refused_or_read_whole(data: bytes, count: int) -> None:
    try:
        records = read_records(data, count)
    except RecordsError:
        return
    assert len(records) == max(count, 0)


@pytest.mark.parametrize(
    ("data", "count", "problem"),
    [
        (b"", 1, "ends too early"),
        (b"\x0e\x00\x00\x00\x01\x02a", 1, "record 0 of 7 bytes"),
        (ONE_RECORD[HEADER_BYTES:], 2, "record 1 of 2 at 8 ends too early"),
        (TWO_RECORDS[HEADER_BYTES:], 1, "13 bytes behind the last of 1 records"),
        (b"\x0e\x00\x00\x00\x01\x7ea\x00", 1, "a field of 63 bytes"),
        (b"\x0e\x00\x00\x00\x01\x02a\x02", 1, "1 headers: 0 bytes follow"),
        (b"\x10\x00\x00\x00\x01\x02a\x00\x00", 1, "beside its end"),
        (b"\x14\x00\x00\x00\x01\x02a\x02\x01\x01", 1, "record 0 of 10 bytes"),
        (b"\x12\x00\x00\x00\x01\x02a\x02\x01\x01", 1, "a header that has no key"),
        (b"\x12\x00\x00\x00\x01\x02a\x02\x03\x01", 1, "a header that has no key"),
        (b"\x0e\x00\x00\x00\x01\x02a\x01", 1, "-1 headers"),
        (b"\xff\xff\xff\xff\xff\x01", 1, "more than 32 bits"),
    ],
)
def test_damaged_records_are_refused(data: bytes, count: int, problem: str) -> None:
    with pytest.raises(RecordsError, match=problem):
        read_records(data, count)


@pytest.mark.parametrize("length", [-1, -2, -64, -300, -(2**31)])
def test_every_negative_length_is_null(length: int) -> None:
    """Kafka: DefaultRecord.readFrom. A real 4.4 stores such records, packed or not."""
    null, header = signed_varint(length), b"\x02\x02h" + signed_varint(length)
    for body, key, value, headers in (
        (b"\x00\x00\x00" + null + b"\x02v\x00", None, b"v", ()),
        (b"\x00\x00\x00\x02k" + null + b"\x00", b"k", None, ()),
        (b"\x00\x00\x00" + null + null + header, None, None, (("h", None),)),
    ):
        data = signed_varint(len(body)) + body
        assert read_records(data, 1) == [DefaultRecord(0, 0, key, value, headers)]
        assert scan_records(data, 0, 1, len(data)) == RecordScan(0, 0, True)


@pytest.mark.parametrize("control_type", list(ControlRecordType))
def test_markers_are_read_as_they_are_written(control_type: ControlRecordType) -> None:
    marker = EndTransactionMarker(control_type, 7)
    record = marker.as_record()
    assert (record.key, record.value) == (bytes((0, 0, 0, control_type)), bytes((0, 0, 0, 0, 0, 7)))
    assert EndTransactionMarker.of(record) == marker


def test_a_leader_change_is_no_marker() -> None:
    assert EndTransactionMarker.of(DefaultRecord(0, 0, b"\x00\x00\x00\x02", b"")) is None
    with pytest.raises(RecordsError, match="expected version and type"):
        EndTransactionMarker.of(DefaultRecord(0, 0, None, b""))
