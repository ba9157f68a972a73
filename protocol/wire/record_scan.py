"""A look at every record of a batch without making any: whether they are well formed, and their timestamps.

Records of one layout often follow each other: all lengths are the same. Such a run is compared column by column, which
takes a tenth of the time of reading record by record. Batches of one producer are often alike as well: what the last
batch of a size and number of records was made of is tried first, which takes a third of that again.

Kafka: DefaultRecordBatch.iterator, DefaultRecordBatch.skipKeyValueIterator.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from rejoin.protocol.wire.errors import RecordsError
from rejoin.protocol.wire.records import read_long_number, read_record

_LONGEST_RUN: Final = 1024
_MOST_RUNS: Final = 4
"""Of more runs than that no pattern is kept."""
_MOST_PATTERNS: Final = 64
_SHORTEST_RUN: Final = 8
_NEXT_TRY: Final = 32
"""So many records are read one by one before a run is looked for again."""
_EVEN: Final = bytes(range(0, 128, 2))
_EVEN_WITH_MORE: Final = bytes(range(128, 256, 2))
"""The first byte of a number of 0 and more: alone, and with a second byte behind it."""
_LAST: Final = bytes(range(128))
_TWO_BYTES_FROM: Final = 64
_THREE_BYTES_FROM: Final = 8_192
_LOW: Final = bytes((2 * number & 127) | 128 for number in range(_THREE_BYTES_FROM))
_HIGH: Final = bytes(2 * number >> 7 for number in range(_THREE_BYTES_FROM))
"""The two bytes of each offset delta that takes two."""


_Layout: TypeAlias = tuple[int, int, int, int, int, int, int, int]
"""Where a record without headers begins, its timestamp, its offset, the length of its key, the key, the length of its
value, the value, and where it ends."""


class RecordScan(NamedTuple):
    """Findings about a batch's records. Offsets in order count 0, 1, 2, …"""

    smallest_timestamp_delta: int
    largest_timestamp_delta: int
    has_offsets_in_order: bool


class _Pattern(NamedTuple):
    """The common part of batches with the same runs of records.

    ``constant`` are their columns that do not differ, with what is in them, and ``times`` for each run the columns of
    its timestamps.
    """

    constant: tuple[tuple[slice, bytes], ...]
    times: tuple[tuple[slice, ...], ...]


_patterns: Final[dict[tuple[int, int, int], _Pattern]] = {}
"""By where records begin, how many they are and where they end."""


def scan_records(data: bytes, at: int, count: int, size_of_all: int) -> RecordScan:
    """Check exactly ``count`` records, unpacked, from a position on up to ``size_of_all``.

    Raises :class:`RecordsError` as :func:`~rejoin.protocol.wire.records.read_records` does.
    """
    pattern = _patterns.get((at, count, size_of_all))
    if pattern is not None:
        known = _matched(data, pattern)
        if known is not None:
            return known
    runs: list[tuple[_Layout, int]] = []
    try:
        end, scan = _scan(data, at, count, size_of_all, runs)
    except IndexError:
        raise RecordsError(f"the last of {count} records ends too early") from None
    if end != size_of_all:
        raise RecordsError(f"{size_of_all - end} bytes behind the last of {count} records")
    if len(runs) <= _MOST_RUNS and sum(number for _, number in runs) == count and scan.has_offsets_in_order:
        if len(_patterns) >= _MOST_PATTERNS:
            _patterns.clear()
        _patterns[at, count, size_of_all] = _pattern(data, runs)
    return scan


def _scan(
    data: bytes, at: int, count: int, size_of_all: int, runs: list[tuple[_Layout, int]]
) -> tuple[int, RecordScan]:
    """Where the last record ends, and what all are like.

    Puts into ``runs`` each layout that some records have, and how many they are.
    """
    smallest, largest, in_order = 2**63, -(2**63), True
    index = next_try = 0
    # One loop with few calls and no objects: it runs for every record that is produced. Numbers stay as they are on
    # the wire: twice the value, odd below 0, so that the length of null is odd. Most have one byte or two.
    while index < count:
        start, length, at = at, data[at], at + 1
        if length > 127:
            length, at = (length + (data[at] - 1 << 7), at + 1) if data[at] < 128 else _longer(data, start)
        end = at + (length >> 1)
        if length & 1 or end > size_of_all:
            raise RecordsError(f"record {index} of {length >> 1} bytes at {start}: {size_of_all - at} follow")
        timestamp_at = at + 1
        delta, offset_at = data[timestamp_at], at + 2
        if delta > 127:
            second = data[offset_at]
            delta, offset_at = (delta + (second - 1 << 7), at + 3) if second < 128 else _longer(data, timestamp_at, 64)
        delta = (delta >> 1) ^ -(delta & 1)
        if not smallest <= delta <= largest:
            smallest, largest = min(smallest, delta), max(largest, delta)
        number, key_length_at = data[offset_at], offset_at + 1
        if number > 127:
            second, key_at = data[key_length_at], key_length_at + 1
            number, key_length_at = (number + (second - 1 << 7), key_at) if second < 128 else _longer(data, offset_at)
        if number != 2 * index:
            in_order = False
        key_size, key_at = data[key_length_at], key_length_at + 1
        if key_size > 127:
            key_size, key_at = _longer(data, key_length_at)
        value_length_at = key_at + (0 if key_size & 1 else key_size >> 1)
        size, value_at = data[value_length_at], value_length_at + 1
        if size > 127:
            second, last = data[value_at], value_at + 1
            size, value_at = (size + (second - 1 << 7), last) if second < 128 else _longer(data, value_length_at)
        last = value_at + (0 if size & 1 else size >> 1)
        index += 1
        if last != end - 1 or data[last]:
            read_record(data, at, end)  # it has headers, or is damaged
        elif index >= next_try:
            layout = (start, timestamp_at, offset_at, key_length_at, key_at, value_length_at, value_at, end)
            run, low, high = _run(data, layout, min(count - index, (size_of_all - end) // (end - start)), index)
            next_try = index + (run or _NEXT_TRY)
            if run:
                smallest, largest = min(smallest, low), max(largest, high)
                runs.append((layout, run + 1))
                index, end = next_try, end + run * (end - start)
        at = end
    return at, RecordScan(smallest, largest, in_order)


def _longer(data: bytes, at: int, bits: int = 32) -> tuple[int, int]:
    """A number of many bytes as it is on the wire, and the position behind it."""
    value, behind = read_long_number(data, at, bits)
    return (value << 1) ^ (value >> 63), behind


# --- runs


def _run(data: bytes, layout: _Layout, most: int, index: int) -> tuple[int, int, int]:
    """How many records behind one have its layout, or 0; their smallest and largest timestamp delta.

    ``index`` is the number of the first one behind it; there is room for no more than ``most``.
    """
    start, timestamp_at, offset_at, key_length_at, *_, end = layout
    if data[end : end + 2] != data[start : start + 2]:
        return 0, 0, 0
    stride = end - start
    longer_from = _TWO_BYTES_FROM if index < _TWO_BYTES_FROM else _THREE_BYTES_FROM
    run = min(_LONGEST_RUN, most, longer_from - index)
    if run < _SHORTEST_RUN or offset_at - timestamp_at > 2:
        return 0, 0, 0
    behind = stride * run + 1
    deltas = _smallest_and_largest([data[at + stride : at + behind : stride] for at in range(timestamp_at, offset_at)])
    if deltas is None:
        return 0, 0, 0
    for at in _sizes(layout):
        if data[at + stride : at + behind : stride].count(data[at]) != run:
            return 0, 0, 0
    offsets = [data[at + stride : at + behind : stride] for at in range(offset_at, key_length_at)]
    expected = (_EVEN,) if index < _TWO_BYTES_FROM else (_LOW, _HIGH)
    if offsets != [column[index : index + run] for column in expected]:
        return 0, 0, 0
    return run, *deltas


def _sizes(layout: _Layout) -> tuple[int, ...]:
    """Where a record has its sizes, and how many headers it has."""
    start, timestamp_at, _, key_length_at, key_at, value_length_at, value_at, end = layout
    lengths = *range(start, timestamp_at - 1), *range(key_length_at, key_at), *range(value_length_at, value_at)
    return *lengths, end - 1


def _smallest_and_largest(columns: list[bytes]) -> tuple[int, int] | None:
    """Of numbers of 0 and more, all of them in one byte or all in two; none where there are others."""
    if len(columns) == 1:
        (numbers,) = columns
        first = numbers[0]
        if numbers.count(first) == len(numbers):
            return None if first & 129 else (first >> 1, first >> 1)  # as where all were made in one millisecond
        return None if numbers.translate(None, _EVEN) else (min(numbers) >> 1, max(numbers) >> 1)
    low, high = columns
    if low.translate(None, _EVEN_WITH_MORE) or high.translate(None, _LAST):
        return None
    (least_high, least_low), (most_high, most_low) = min(zip(high, low, strict=True)), max(zip(high, low, strict=True))
    return least_high << 6 | (least_low & 127) >> 1, most_high << 6 | (most_low & 127) >> 1


# --- batches that are alike


def _pattern(data: bytes, runs: list[tuple[_Layout, int]]) -> _Pattern:
    """The pattern of a batch that is well formed, and whose records are all in these runs."""
    constant: list[tuple[slice, bytes]] = []
    times: list[tuple[slice, ...]] = []
    for layout, number in runs:
        start, timestamp_at, offset_at, key_length_at, *_, end = layout
        stride = end - start
        behind = stride * (number - 1) + 1
        for at in (*_sizes(layout), *range(offset_at, key_length_at)):
            column = slice(at, at + behind, stride)
            constant.append((column, data[column]))
        times.append(tuple(slice(at, at + behind, stride) for at in range(timestamp_at, offset_at)))
    return _Pattern(tuple(constant), tuple(times))


def _matched(data: bytes, pattern: _Pattern) -> RecordScan | None:
    """The scan of a batch that follows the pattern; none if it does not."""
    for column, expected in pattern.constant:
        if data[column] != expected:
            return None
    smallest, largest = 2**63, -(2**63)
    for columns in pattern.times:
        deltas = _smallest_and_largest([data[column] for column in columns])
        if deltas is None:
            return None
        smallest, largest = min(smallest, deltas[0]), max(largest, deltas[1])
    return RecordScan(smallest, largest, has_offsets_in_order=True)
