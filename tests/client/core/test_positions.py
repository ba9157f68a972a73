"""Where a consumer starts, which records it returns, and how it learns of new ones."""

from __future__ import annotations

from rejoin.client.core.errors import (
    IllegalStateError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from rejoin.client.core.inputs import (
    Assigned,
    CommittedAsked,
    OffsetReset,
    OffsetsAsked,
    Paused,
    Polled,
    PositionAsked,
    RecordRange,
    Resumed,
    Sought,
)
from rejoin.journal.events.client import PositionsFound
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.bench import Bench, tp

T0, T1 = tp("t-0", "t-1")


def test_a_committed_offset_goes_before_the_policy() -> None:
    bench = Bench(committed={"t-0": 7}, ends={"t-0": 10, "t-1": 10}, auto_offset_reset="earliest")
    bench.stable("t-0", "t-1")
    bench.poll()
    assert bench.core.positions() == {T0: 10, T1: 10}
    found = [(event.origin, event.positions) for event in bench.events if isinstance(event, PositionsFound)]
    assert found == [("committed", {"t": {0: 7}}), ("earliest", {"t": {1: 0}})]


def test_latest_starts_at_the_end() -> None:
    bench = Bench(ends={"t-0": 10}).stable("t-0")
    assert bench.core.positions() == {T0: 10}
    bench.ends["t-0"] = 12
    bench.advance(500)
    assert "poll -> t-0[10,12)" in bench.take()


def test_no_policy_raises_from_every_poll() -> None:
    bench = Bench(auto_offset_reset="none").stable("t-0")
    bench.poll()
    assert [type(error) for error in bench.raised] == [NoOffsetForPartitionError] * 2


def test_poll_returns_at_most_max_poll_records_from_partitions_in_rotation() -> None:
    bench = Bench(
        committed={"t-0": 0, "t-1": 0}, ends={"t-0": 5, "t-1": 5}, max_poll_records=3, enable_auto_commit=False
    )
    bench.stable("t-0", "t-1")
    for _ in range(4):
        bench.poll(0)
    assert [effect.ranges for effect in bench.returned] == [
        (RecordRange("t", 0, 0, 3),),
        (RecordRange("t", 1, 0, 3),),
        (RecordRange("t", 0, 3, 5), RecordRange("t", 1, 3, 4)),
        (RecordRange("t", 1, 4, 5),),
        (),
    ]


def test_a_poll_may_ask_for_fewer_records_and_for_some_partitions() -> None:
    bench = Bench(
        committed={"t-0": 0, "t-1": 0}, ends={"t-0": 5, "t-1": 5}, max_poll_records=3, enable_auto_commit=False
    )
    bench.stable("t-0", "t-1")
    bench.step(Polled(0, max_records=2, partitions=frozenset([T1])))
    assert bench.returned[-1].ranges == (RecordRange("t", 1, 0, 2),)


def test_ends_are_asked_as_often_as_an_idle_fetch_comes_back() -> None:
    bench = Bench(committed={"t-0": 0}, enable_auto_commit=False)
    bench.auto.discard("ListOffsets")
    bench.stable("t-0")
    bench.answer("ListOffsets")
    bench.advance(499)
    assert not bench.is_open("ListOffsets")
    bench.advance(1)
    bench.ends["t-0"] = 2
    bench.answer("ListOffsets")
    assert bench.take()[-1] == "poll -> t-0[0,2)"
    bench.poll(100)
    assert bench.is_open("ListOffsets"), "after records the next fetch goes out at once"


def test_paused_partitions_return_nothing_and_are_not_asked_about() -> None:
    bench = Bench(
        committed={"t-0": 0, "t-1": 0}, ends={"t-0": 5, "t-1": 5}, enable_auto_commit=False, max_poll_records=1
    )
    bench.stable("t-0", "t-1")
    bench.step(Paused((T0,)))
    for _ in range(3):
        bench.poll(0)
    assert {r.partition for effect in bench.returned[1:] for r in effect.ranges} == {1}
    assert bench.core.paused() == [T0]
    bench.step(Resumed((T0,)))
    bench.poll(0)
    assert bench.returned[-1].ranges[0].partition == 0


def test_seeking() -> None:
    bench = Bench(committed={"t-0": 0}, ends={"t-0": 5}, enable_auto_commit=False)
    bench.stable("t-0")
    bench.step(Sought((T0,), 2))
    bench.poll(0)
    assert bench.returned[-1].ranges == (RecordRange("t", 0, 2, 5),)
    bench.step(Sought((T0,), OffsetReset.EARLIEST))
    bench.poll()
    assert bench.returned[-1].ranges == (RecordRange("t", 0, 0, 5),)
    bench.step(Sought((T0,), OffsetReset.LATEST))
    bench.poll(0)
    assert bench.core.positions() == {T0: 5}


def test_a_position_behind_the_end_of_its_log_is_reset_by_the_policy() -> None:
    bench = Bench(committed={"t-0": 9}, ends={"t-0": 5}, enable_auto_commit=False)
    bench.stable("t-0")
    bench.poll(0)
    assert bench.core.positions() == {T0: 5}
    bench = Bench(committed={"t-0": 9}, ends={"t-0": 5}, enable_auto_commit=False, auto_offset_reset="none")
    bench.stable("t-0")
    bench.poll(0)
    assert isinstance(bench.raised[-1], OffsetOutOfRangeError)


def test_a_reset_is_repeated_after_the_backoff() -> None:
    bench = Bench(ends={"t-0": 5})
    bench.auto.discard("ListOffsets")
    bench.stable("t-0")
    bench.answer("ListOffsets", E.UNKNOWN_TOPIC_OR_PARTITION)
    assert not bench.is_open("ListOffsets")
    bench.advance(100)
    bench.fail("ListOffsets")
    bench.advance(100)
    bench.answer("ListOffsets")
    assert bench.core.positions() == {T0: 5}


def test_an_offset_fetch_for_another_assignment_is_not_listened_to() -> None:
    bench = Bench(
        assignors=["cooperative-sticky"],
        committed={"t-0": 1, "t-1": 2},
        ends={"t-0": 1, "t-1": 2},
        enable_auto_commit=False,
    )
    bench.auto.discard("OffsetFetch")
    bench.stable("t-0")
    late = bench.find("OffsetFetch")
    bench.advance(3_000)
    bench.answer("Heartbeat", E.REBALANCE_IN_PROGRESS)
    bench.rejoin("t-0", "t-1", generation=2)
    assert late not in bench.open
    bench.answer("OffsetFetch")
    assert bench.core.positions() == {T0: 1, T1: 2}


def test_partitions_can_be_read_without_a_group() -> None:
    bench = Bench(group_id=None, ends={"t-0": 5}, auto_offset_reset="earliest")
    bench.step(Assigned((T0,)))
    bench.poll()
    assert bench.take() == ["poll -> t-0[0,5)"], "no coordinator is asked"


def test_a_driver_that_knows_the_logs_spares_the_questions() -> None:
    bench = Bench(group_id=None, auto_offset_reset="earliest", log_end=lambda partition, now: now // 100_000)
    bench.step(Assigned((T0,)))
    bench.poll(200_000)
    assert bench.take() == ["poll -> t-0[0,10)"]
    bench.poll(200_000)
    assert bench.core.next_deadline() == bench.now + bench.config.fetch_max_wait_ms
    bench.advance(100_000)
    assert bench.take() == ["poll -> t-0[10,11)"]
    assert "ListOffsets" not in bench.asked


def test_committed_is_asked_of_the_coordinator() -> None:
    bench = Bench(committed={"t-0": 7})
    bench.step(CommittedAsked("asked", (T0, T1)))
    bench.find_coordinator()
    assert bench.found("asked") == {T0: 7, T1: None}


def test_committed_is_repeated_until_its_time_is_over() -> None:
    bench = Bench()
    bench.auto.discard("OffsetFetch")
    bench.step(CommittedAsked("asked", (T0,), timeout_ms=1_000))
    bench.find_coordinator()
    bench.answer("OffsetFetch", E.COORDINATOR_LOAD_IN_PROGRESS)
    bench.advance(100)
    bench.answer("OffsetFetch", partition_error=E.UNSTABLE_OFFSET_COMMIT)
    bench.advance(900)
    assert isinstance(bench.done_with("asked"), KafkaTimeoutError)


def test_offsets_by_time() -> None:
    bench = Bench(ends={"t-0": 7})
    bench.step(OffsetsAsked("asked", {T0: -1, T1: -2}))
    assert bench.found("asked") == {T0: 7, T1: 0}


def test_a_position_is_waited_for() -> None:
    bench = Bench(committed={"t-0": 7})
    bench.step(Assigned((T0,)))
    bench.step(PositionAsked("asked", T0))
    assert bench.done_with("asked") is None
    bench.find_coordinator()
    assert bench.found("asked") == {T0: 7}
    bench.step(PositionAsked("other", T1))
    assert isinstance(bench.done_with("other"), IllegalStateError)
