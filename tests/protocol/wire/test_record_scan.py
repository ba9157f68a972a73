"""Records that are looked at without being made: the same are refused, and the same is seen, as when they are read."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.record_scan import RecordScan, scan_records
from rejoin.protocol.wire.records import DefaultRecord, read_records, write_records

BYTES = (0, 1, 2, 3, 126, 127, 128, 129, 254, 255)


def seen(data: bytes, count: int) -> RecordScan | None:
    """What reading every record shows; none where that is refused."""
    try:
        records = read_records(data, count)
    except RecordsError:
        return None
    times = [record.timestamp_delta for record in records]
    in_order = [record.offset_delta for record in records] == list(range(count))
    return RecordScan(min(times), max(times), in_order)


def scanned(data: bytes, count: int) -> RecordScan | None:
    try:
        return scan_records(data, 0, count, len(data))
    except RecordsError:
        return None


def uniform(
    count: int, *, key: bytes | None = None, size: int = 1, per_ms: int = 5, start: int = 0
) -> list[DefaultRecord]:
    """Records of one layout, some in each millisecond."""
    return [DefaultRecord(index, start + index // per_ms, key, bytes(size)) for index in range(count)]


def varied(dice: random.Random, count: int) -> list[DefaultRecord]:
    """Records in runs of different lengths, some with headers, without keys or values, out of order or far away."""
    records: list[DefaultRecord] = []
    while len(records) < count:
        key, value = dice.choice((None, b"", b"key", bytes(200))), dice.choice((None, b"", b"value", bytes(300)))
        headers = dice.choice(((), (), (("h", b"1"),)))
        time = dice.choice((0, 0, 5, 60, 8_000, 2**40, -3))
        for _ in range(dice.choice((1, 2, 9, 40, 300))):
            time += dice.choice((0, 0, 0, 1))
            offset = len(records) if dice.random() < 0.999 else 7
            records.append(DefaultRecord(offset, time, key, value, headers))
    return records


def changes(data: bytes) -> Iterator[bytes]:
    """Every change of one byte to one of some values, and every cut."""
    for at in range(len(data)):
        for byte in BYTES:
            yield data[:at] + bytes((byte,)) + data[at + 1 :]
        yield data[:at]


@pytest.mark.parametrize(
    "records",
    [uniform(14), uniform(12, key=b"k", start=80), uniform(12, start=-1)],
    ids=["one-byte", "two-byte-times", "before-the-first"],
)
def test_one_changed_byte_is_seen_alike(records: list[DefaultRecord]) -> None:
    data = write_records(records)
    assert scan_records(data, 0, len(records), len(data)) == seen(data, len(records))
    for changed in changes(data):
        assert scanned(changed, len(records)) == seen(changed, len(records)), changed.hex()


def test_a_changed_byte_within_a_long_run() -> None:
    records = uniform(300)
    data = write_records(records)
    dice = random.Random(1)
    for _ in range(400):
        at = dice.randrange(len(data))
        changed = data[:at] + bytes((dice.choice(BYTES),)) + data[at + 1 :]
        assert scanned(changed, len(records)) == seen(changed, len(records)), changed.hex()


def test_timestamps_that_never_end() -> None:
    data = bytearray(write_records(uniform(20)))
    size = len(data) // 20
    for at in range(size + 2, len(data), size):
        data[at] = 0x80
    assert scanned(bytes(data), 20) == seen(bytes(data), 20)


def test_records_of_all_kinds() -> None:
    dice = random.Random(2)
    for _ in range(40):
        records = varied(dice, dice.choice((1, 30, 700)))
        data = write_records(records)
        assert scan_records(b"ahead" + data + b"\0\0\0", 5, len(records), 5 + len(data)) == seen(data, len(records))
        assert scanned(data, len(records) + 1) is None
        assert scanned(data, len(records) - 1) is None


@pytest.mark.parametrize("count", [63, 64, 65, 8_191, 8_193, 8_300])
def test_offsets_of_one_two_and_three_bytes(count: int) -> None:
    data = write_records(uniform(count, per_ms=3_000))
    assert scan_records(data, 0, count, len(data)) == RecordScan(0, (count - 1) // 3_000, True)


def test_batches_that_are_alike_are_looked_at_alike() -> None:
    # Their runs are known from the first one; keys, values and times differ, and in some the sizes, too.
    dice = random.Random(3)
    for count in (9, 16, 64, 145, 1_040):
        for key_size, size in ((0, 1), (4, 100), (10, 1_000)):
            for _ in range(6):
                records = [
                    DefaultRecord(index, dice.choice((0, 1, 50, 90)), dice.randbytes(key_size), dice.randbytes(size))
                    for index in range(count)
                ]
                if dice.random() < 0.3:
                    # As many bytes in all, with another record in the middle.
                    at = dice.randrange(1, count)
                    longer, shorter = records[at - 1], records[at]
                    records[at - 1] = longer._replace(value=bytes(size + 1))
                    records[at] = shorter._replace(value=bytes(size - 1))
                data = write_records(records)
                assert scan_records(data, 0, count, len(data)) == seen(data, count)
