"""Compaction takes away what does not count, and nothing else."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoin.coordinator.storage.codec import checksum, decode, encode
from rejoin.coordinator.storage.compaction import (
    compacted,
    doomed,
    doomed_query,
    doomed_query_sqlite,
    doomed_with_transactions_query,
    has_transactions_query,
)
from rejoin.coordinator.storage.sqlite import partition_index
from rejoin.coordinator.storage.sqlite.check import findings
from rejoin.coordinator.storage.sqlite.database import migrate
from rejoin.coordinator.storage.sqlite.partition_index import PartitionIndex
from rejoin.coordinator.storage.sqlite.schema import STEPS, set_columns
from rejoin.protocol.records.consumer_offsets import OFFSETS_TOPIC, offsets_partition
from rejoin.protocol.records.keyed import Record, TransactionMarker
from tests.coordinator.storage.helpers import gone, group, marker, offset
from tests.coordinator.storage.histories import history, replayed

HISTORIES = st.builds(
    lambda seed, steps: history(random.Random(seed), steps), st.integers(0, 2**32), st.integers(0, 60)
)


def doomed_in_sql(records: Sequence[Record]) -> list[int]:
    """The same question to SQLite."""
    connection = sqlite3.connect(":memory:")
    for step in STEPS:
        connection.executescript(step)
    for position, record in enumerate(records):
        entry = encode(record)
        row = (
            position,
            0,
            0,
            entry.producer_id,
            checksum(offsets_partition(0), position, entry),
            entry.key,
            entry.value,
        )
        connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    of = "partition_id = 0"
    has_transactions = bool(connection.execute(has_transactions_query(of)).fetchone()[0])
    query = doomed_with_transactions_query(of, "position") if has_transactions else doomed_query(of)
    found = [position for (position,) in connection.execute(query)]
    if not has_transactions:
        assert [position for position, *_ in connection.execute(doomed_query_sqlite([0]))] == found
    connection.close()
    return found


@given(HISTORIES)
def test_a_reader_of_the_rest_knows_the_same(records: list[Record]) -> None:
    assert replayed(compacted(records)) == replayed(records)


@given(HISTORIES, st.floats(0, 1))
def test_removing_may_stop_anywhere(records: list[Record], share: float) -> None:
    order = sorted(doomed(records))
    removed = set(order[: round(share * len(order))])
    assert replayed([record for index, record in enumerate(records) if index not in removed]) == replayed(records)


@given(HISTORIES)
def test_what_a_database_would_remove_is_the_same(records: list[Record]) -> None:
    assert doomed_in_sql(records) == sorted(doomed(records))


@given(HISTORIES, st.integers(1, 30))
def test_what_goes_before_it_is_counted_is_never_missed(records: list[Record], size: int) -> None:
    """The index catches up after each few records."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, Path("memory"), STEPS)
    index = PartitionIndex(is_any_read=lambda: False)
    index.opened(connection)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_index, "_CATCH_UP_RECORDS", 8)
        for begin in range(0, len(records), size):
            connection.execute("BEGIN")
            index.write(
                connection, offsets_partition(0), 0, [encode(record) for record in records[begin : begin + size]]
            )
            set_columns(connection, index.before_commit(connection))
            connection.execute("COMMIT")
            index.committed()
    assert list(findings(connection)) == []
    found = decode(OFFSETS_TOPIC, connection.execute("SELECT producer_id, key, value FROM log ORDER BY position"))
    connection.close()
    assert len(found) >= len(records) - len(doomed(records))
    assert replayed(found) == replayed(records)


@given(HISTORIES)
def test_once_is_enough(records: list[Record]) -> None:
    assert doomed(compacted(records)) == set()


@given(HISTORIES)
def test_without_open_transactions_there_is_one_record_for_each_key(records: list[Record]) -> None:
    left = compacted([*records, marker(7), marker(8)])
    keys = [record.key for record in left if not isinstance(record, TransactionMarker)]
    assert len(keys) == len(set(keys))
    assert all(record.value is not None for record in left if not isinstance(record, TransactionMarker))
    # An end of a transaction is there for a record that it made count.
    assert sum(isinstance(record, TransactionMarker) for record in left) <= len(keys)


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 9)), max_size=30))
def test_what_is_left_keeps_its_order(steps: list[tuple[int, int | None]]) -> None:
    records = [gone(key) if value is None else offset(value, partition=key) for key, value in steps]
    kept: dict[object, Record] = {}
    for record in records:
        assert not isinstance(record, TransactionMarker)
        kept.pop(record.key, None)
        if record.value is not None:
            kept[record.key] = record
    assert compacted(records) == list(kept.values())


@pytest.mark.parametrize(
    ("records", "left"),
    [
        pytest.param([group(1), group(2)], [group(2)], id="generations"),
        pytest.param([offset(1), gone()], [], id="tombstone"),
        pytest.param([offset(1), offset(2, producer_id=9)], [0, 1], id="an open transaction changes nothing yet"),
        pytest.param([offset(1), offset(2, producer_id=9), marker()], [1, 2], id="a committed one does"),
        pytest.param([offset(1), offset(2, producer_id=9), marker(committed=False)], [0], id="an aborted one does not"),
        pytest.param([offset(2, producer_id=9), offset(1), marker()], [1], id="the last written counts"),
        pytest.param([offset(2, producer_id=9), gone(), marker()], [], id="a tombstone ends what is held"),
        pytest.param([offset(2, producer_id=9), marker(8)], [0], id="another producer's end"),
        pytest.param([offset(2, producer_id=9), offset(3, producer_id=9)], [1], id="held twice"),
    ],
)
def test_which_records_count(records: list[Record], left: list[Record | int]) -> None:
    assert compacted(records) == [records[each] if isinstance(each, int) else each for each in left]
