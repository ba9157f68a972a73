"""What logs keep: retention by time and size, compaction, and producers that are forgotten."""

from __future__ import annotations

from rejoin.protocol.wire.records import read_batch
from tests.coordinator.core.partitions.real_topic import RealTopic, batch

MINUTE_MS = 60_000
CHECK_MS = 5 * MINUTE_MS
DAY_MS = 24 * 60 * MINUTE_MS


def kept(driven: RealTopic) -> list[tuple[int, str | None, str | None]]:
    """Offset, key and value of every record."""
    return [
        (each.base_offset + record.offset_delta, text(record.key), text(record.value))
        for each in driven.partition().log.batches
        for record in read_batch(each.data)
    ]


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def test_records_are_deleted_when_they_are_too_old() -> None:
    driven = RealTopic()
    driven.configure(retention_ms=10 * MINUTE_MS)
    driven.produce(batch("old", at=driven.now))
    driven.elapse(8 * MINUTE_MS)
    driven.produce(batch("new", at=driven.now))
    driven.elapse(CHECK_MS)
    log = driven.partition().log
    assert (log.log_start_offset, [each.base_offset for each in log.batches]) == (0, [0, 1])
    driven.elapse(CHECK_MS)
    assert (log.log_start_offset, [each.base_offset for each in log.batches]) == (1, [1])
    driven.elapse(DAY_MS)
    assert (log.log_start_offset, log.end_offset, log.batches) == (2, 2, [])
    driven.elect()
    assert driven.partition().log.log_start_offset == 2


def test_records_are_deleted_when_there_are_too_many() -> None:
    driven = RealTopic()
    size = len(batch("x"))
    driven.configure(retention_bytes=2 * size)
    for _ in range(5):
        driven.produce(batch("x", at=driven.now))
    driven.elapse(CHECK_MS)
    assert [each.base_offset for each in driven.partition().log.batches] == [3, 4]


def test_a_compacted_topic_is_not_deleted_from() -> None:
    driven = RealTopic()
    driven.configure(cleanup_policy=("compact",), retention_ms=1)
    driven.produce(batch("a", keys=("k",), at=driven.now))
    driven.elapse(DAY_MS)
    assert kept(driven) == [(0, "k", "a")]


def test_the_last_record_of_each_key_stays_with_its_offset() -> None:
    driven = RealTopic()
    driven.configure(cleanup_policy=("compact",))
    driven.produce(batch("1", "2", "3", keys=("a", "b", "a"), at=driven.now))
    driven.produce(batch("4", keys=("b",), at=driven.now))
    driven.produce(batch("5", keys=("c",), at=driven.now))
    driven.produce(batch("6", keys=("c",), at=driven.now))
    driven.elapse(CHECK_MS)
    # The newest batch is left alone, and so is what it makes obsolete until something follows it.
    assert kept(driven) == [(2, "a", "3"), (3, "b", "4"), (4, "c", "5"), (5, "c", "6")]
    before = kept(driven)
    driven.elect()
    assert kept(driven) == before
    assert driven.produce(batch("7", keys=("d",), at=driven.now)).base_offset == 6


def test_a_producers_sequence_outlives_its_compacted_records() -> None:
    driven = RealTopic()
    driven.configure(cleanup_policy=("compact",))
    mine = {"producer_id": 7, "producer_epoch": 0}
    driven.produce(batch("1", keys=("a",), at=driven.now, base_sequence=0, **mine))
    driven.produce(batch("2", keys=("a",), at=driven.now))
    driven.produce(batch("3", keys=("b",), at=driven.now))
    driven.elapse(CHECK_MS)
    assert kept(driven) == [(1, "a", "2"), (2, "b", "3")]
    driven.elect()
    again = driven.produce(batch("1", keys=("a",), at=driven.now, base_sequence=0, **mine))
    assert again.base_offset == 0


def test_silent_producers_are_forgotten_by_the_time_of_their_records() -> None:
    driven = RealTopic(producer_id_expiration_ms=DAY_MS)
    old = batch("a", producer_id=7, producer_epoch=3, base_sequence=0, at=driven.now - 2 * DAY_MS)
    new = batch("a", producer_id=8, producer_epoch=3, base_sequence=0, at=driven.now)
    driven.produce(old)
    driven.produce(new)
    driven.elapse(10 * MINUTE_MS)
    assert list(driven.partition().producers.entries) == [8]
    assert driven.produce(old).base_offset == 2


def test_after_a_restart_only_the_last_batch_is_recognized() -> None:
    driven = RealTopic()
    batches = [batch("a", producer_id=7, producer_epoch=0, base_sequence=each, at=driven.now) for each in range(3)]
    for each in batches:
        driven.produce(each)
    assert driven.produce(batches[0]).base_offset == 0
    driven.elect()
    assert driven.produce(batches[2]).base_offset == 2
    assert driven.produce(batches[1]).error_code == 45


def test_nothing_is_looked_for_where_there_is_nothing() -> None:
    driven = RealTopic()
    timers = {view.timer for view in driven.node.timers()}
    assert not timers & {"cleaning", "producer_expiry"}
