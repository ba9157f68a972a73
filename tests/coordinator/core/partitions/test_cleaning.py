"""What logs keep: retention by time and size, compaction, and producers that are forgotten."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rejoin.coordinator.core.partitions.cleaning import is_worth_compacting, retained_from
from rejoin.protocol.wire.records import read_batch
from tests.coordinator.core.partitions.real_topic import RealTopic, batch

MINUTE_MS = 60_000
CHECK_MS = 5 * MINUTE_MS
BACKOFF_MS = 15_000
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


def compacted_topic(*, settings: dict[str, Any] | None = None, **config: Any) -> RealTopic:
    driven = RealTopic(**settings or {})
    driven.configure(**{"cleanup_policy": ("compact",), **config})
    return driven


def write(driven: RealTopic, *keys: str) -> None:
    """A batch for each key."""
    for key in keys:
        driven.produce(batch("x", keys=(key,), at=driven.now))


def offsets(driven: RealTopic) -> list[int]:
    return [offset for offset, _, _ in kept(driven)]


def looks(driven: RealTopic, length_ms: int) -> list[int]:
    """Let time pass; returns after how long each look at compacted logs was."""
    began, found = driven.now, []
    while (due := driven.next_deadline()) is not None and due <= began + length_ms:
        found += [due - began for timer in driven.node.due(due) if timer.timer == "compaction"]
        driven.fire()
    driven.now = began + length_ms
    return found


def test_a_compacted_log_is_looked_at_after_the_backoff_of_the_cleaner() -> None:
    driven = compacted_topic()
    write(driven, "a", "a", "b")
    driven.elapse(BACKOFF_MS - 1)
    assert offsets(driven) == [0, 1, 2]
    driven.elapse(1)
    assert offsets(driven) == [1, 2]


def test_deletion_does_not_come_with_the_backoff_of_the_cleaner() -> None:
    driven = RealTopic()
    driven.configure(retention_ms=1)
    driven.produce(batch("old", at=driven.now))
    driven.elapse(CHECK_MS - 1)
    assert offsets(driven) == [0]
    driven.elapse(1)
    assert offsets(driven) == []


def test_old_records_of_a_compacted_topic_are_deleted_by_the_cleaner() -> None:
    driven = compacted_topic(cleanup_policy=("compact", "delete"), retention_ms=MINUTE_MS)
    write(driven, "a", "b")
    assert looks(driven, DAY_MS) == [BACKOFF_MS, MINUTE_MS + 1]
    assert (offsets(driven), driven.partition().log.log_start_offset) == ([], 2)


@pytest.mark.parametrize(("ratio", "appended"), [(0.0, 1), (0.5, 11), (0.9, 91)])
def test_a_log_is_compacted_when_more_of_it_is_dirty_than_the_ratio(ratio: float, appended: int) -> None:
    driven = compacted_topic(min_cleanable_dirty_ratio=ratio)
    log = driven.partition().log
    write(driven, *"0123456789", "a")
    driven.elapse(BACKOFF_MS)
    assert log.compacted_up_to == 10, "each key is there once, and the newest batch stays"
    write(driven, *["a"] * (appended - 1))
    driven.elapse(DAY_MS)
    assert log.compacted_up_to == 10
    write(driven, "a")
    driven.elapse(BACKOFF_MS)
    assert log.compacted_up_to == 10 + appended


def test_nothing_is_dirty_enough_for_a_ratio_of_one() -> None:
    driven = compacted_topic(min_cleanable_dirty_ratio=1.0)
    write(driven, "a", "a", "a")
    assert looks(driven, DAY_MS) == [BACKOFF_MS]
    assert offsets(driven) == [0, 1, 2]


def test_a_log_that_was_dirty_for_too_long_is_compacted_whatever_its_ratio() -> None:
    driven = compacted_topic(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=MINUTE_MS)
    write(driven, "a", "a", "a")
    assert looks(driven, DAY_MS) == [BACKOFF_MS, MINUTE_MS + 1]
    assert offsets(driven) == [1, 2]


def test_records_that_are_too_young_are_not_compacted() -> None:
    driven = compacted_topic(min_compaction_lag_ms=MINUTE_MS, min_cleanable_dirty_ratio=0.0)
    write(driven, "a", "a")
    assert looks(driven, BACKOFF_MS) == [BACKOFF_MS]
    write(driven, "a", "a")
    assert offsets(driven) == [0, 1, 2, 3]
    assert looks(driven, DAY_MS) == [BACKOFF_MS, MINUTE_MS - BACKOFF_MS, MINUTE_MS]
    assert offsets(driven) == [2, 3]


def test_without_a_lag_records_of_the_future_are_compacted_too() -> None:
    driven = compacted_topic()
    for _ in range(3):
        driven.produce(batch("x", keys=("a",), at=driven.now + 10 * MINUTE_MS))
    driven.elapse(BACKOFF_MS)
    assert offsets(driven) == [1, 2]


def test_a_topic_that_becomes_compacted_is_looked_at() -> None:
    driven = RealTopic()
    write(driven, "a", "a", "b")
    driven.elapse(DAY_MS)
    driven.configure(cleanup_policy=("compact",))
    driven.elapse(BACKOFF_MS)
    assert offsets(driven) == [1, 2]
    driven.configure(cleanup_policy=("delete",), retention_ms=1)
    driven.elapse(CHECK_MS)
    assert offsets(driven) == []


def test_logs_that_have_not_changed_are_not_looked_at() -> None:
    driven = RealTopic(log_cleanup_policy="compact")
    driven.create("many", 50)
    for index in range(50):
        driven.produce(batch("x", keys=("a",), at=driven.now), index=index, topic="many")
    assert looks(driven, DAY_MS) == [BACKOFF_MS]
    driven.produce(batch("x", keys=("a",), at=driven.now), index=7, topic="many")
    assert looks(driven, DAY_MS) == [BACKOFF_MS]


@pytest.mark.parametrize("seed", range(20))
def test_a_log_that_is_left_out_has_nothing_to_be_found(seed: int) -> None:
    """As if each log were looked at in every millisecond."""
    rng = random.Random(seed)
    config = {
        "cleanup_policy": rng.choice([("compact",), ("compact", "delete")]),
        "min_cleanable_dirty_ratio": rng.choice([0.0, 0.5, 0.95]),
        "min_compaction_lag_ms": rng.choice([0, 300]),
        "max_compaction_lag_ms": rng.choice([400, 2**63 - 1]),
        "retention_ms": rng.choice([500, -1]),
    }
    driven = compacted_topic(settings={"log_cleaner_backoff_ms": 0}, **config)
    for _ in range(200):
        if rng.random() < 0.6:
            at = driven.now - rng.randrange(-100, 300)
            driven.produce(batch("x", keys=(rng.choice("abcd"),), at=at))
        driven.elapse(rng.choice([0, 1, 20, 100]))
        log, led = driven.partition().log, driven.partition()
        assert not is_worth_compacting(log, led.config, driven.now)
        assert retained_from(log, led.config, driven.now) == log.log_start_offset


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
    assert not timers & {"cleaning", "compaction", "producer_expiry"}
