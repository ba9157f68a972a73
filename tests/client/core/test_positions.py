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
from rejoin.protocol.errors import ErrorCode as E
from tests.client.core.lab import Lab, tp

T0, T1 = tp("t-0", "t-1")


def test_a_committed_offset_goes_before_the_policy() -> None:
    lab = Lab(committed={"t-0": 7}, ends={"t-0": 10, "t-1": 10}, auto_offset_reset="earliest")
    lab.stable("t-0", "t-1")
    lab.poll()
    assert lab.core.positions() == {T0: 10, T1: 10}
    found = [(event.origin, event.positions) for event in lab.events if event.name == "positions_found"]  # type: ignore[attr-defined]
    assert found == [("committed", {"t": {0: 7}}), ("earliest", {"t": {1: 0}})]


def test_latest_starts_at_the_end() -> None:
    lab = Lab(ends={"t-0": 10}).stable("t-0")
    assert lab.core.positions() == {T0: 10}
    lab.ends["t-0"] = 12
    lab.advance(500)
    assert "poll -> t-0[10,12)" in lab.take()


def test_no_policy_raises_from_every_poll() -> None:
    lab = Lab(auto_offset_reset="none").stable("t-0")
    lab.poll()
    assert [type(error) for error in lab.raised] == [NoOffsetForPartitionError] * 2


def test_poll_returns_at_most_max_poll_records_and_partitions_take_turns() -> None:
    lab = Lab(committed={"t-0": 0, "t-1": 0}, ends={"t-0": 5, "t-1": 5}, max_poll_records=3, enable_auto_commit=False)
    lab.stable("t-0", "t-1")
    for _ in range(4):
        lab.poll(0)
    assert [effect.ranges for effect in lab.returned] == [
        (RecordRange("t", 0, 0, 3),),
        (RecordRange("t", 1, 0, 3),),
        (RecordRange("t", 0, 3, 5), RecordRange("t", 1, 3, 4)),
        (RecordRange("t", 1, 4, 5),),
        (),
    ]


def test_a_poll_may_ask_for_fewer_records_and_for_some_partitions() -> None:
    lab = Lab(committed={"t-0": 0, "t-1": 0}, ends={"t-0": 5, "t-1": 5}, max_poll_records=3, enable_auto_commit=False)
    lab.stable("t-0", "t-1")
    lab.step(Polled(0, max_records=2, partitions=frozenset([T1])))
    assert lab.returned[-1].ranges == (RecordRange("t", 1, 0, 2),)


def test_ends_are_asked_as_often_as_an_idle_fetch_comes_back() -> None:
    lab = Lab(committed={"t-0": 0}, enable_auto_commit=False)
    lab.auto.discard("ListOffsets")
    lab.stable("t-0")
    lab.answer("ListOffsets")
    lab.advance(499)
    assert not lab.is_open("ListOffsets")
    lab.advance(1)
    lab.ends["t-0"] = 2
    lab.answer("ListOffsets")
    assert lab.take()[-1] == "poll -> t-0[0,2)"
    lab.poll(100)
    assert lab.is_open("ListOffsets"), "after records the next fetch goes out at once"


def test_paused_partitions_return_nothing_and_are_not_asked_about() -> None:
    lab = Lab(committed={"t-0": 0, "t-1": 0}, ends={"t-0": 5, "t-1": 5}, enable_auto_commit=False, max_poll_records=1)
    lab.stable("t-0", "t-1")
    lab.step(Paused((T0,)))
    for _ in range(3):
        lab.poll(0)
    assert {r.partition for effect in lab.returned[1:] for r in effect.ranges} == {1}
    assert lab.core.paused() == [T0]
    lab.step(Resumed((T0,)))
    lab.poll(0)
    assert lab.returned[-1].ranges[0].partition == 0


def test_seeking() -> None:
    lab = Lab(committed={"t-0": 0}, ends={"t-0": 5}, enable_auto_commit=False)
    lab.stable("t-0")
    lab.step(Sought((T0,), 2))
    lab.poll(0)
    assert lab.returned[-1].ranges == (RecordRange("t", 0, 2, 5),)
    lab.step(Sought((T0,), OffsetReset.EARLIEST))
    lab.poll()
    assert lab.returned[-1].ranges == (RecordRange("t", 0, 0, 5),)
    lab.step(Sought((T0,), OffsetReset.LATEST))
    lab.poll(0)
    assert lab.core.positions() == {T0: 5}


def test_a_position_behind_the_end_of_its_log_is_reset_by_the_policy() -> None:
    lab = Lab(committed={"t-0": 9}, ends={"t-0": 5}, enable_auto_commit=False)
    lab.stable("t-0")
    lab.poll(0)
    assert lab.core.positions() == {T0: 5}
    lab = Lab(committed={"t-0": 9}, ends={"t-0": 5}, enable_auto_commit=False, auto_offset_reset="none")
    lab.stable("t-0")
    lab.poll(0)
    assert isinstance(lab.raised[-1], OffsetOutOfRangeError)


def test_a_reset_is_repeated_after_the_backoff() -> None:
    lab = Lab(ends={"t-0": 5})
    lab.auto.discard("ListOffsets")
    lab.stable("t-0")
    lab.answer("ListOffsets", E.UNKNOWN_TOPIC_OR_PARTITION)
    assert not lab.is_open("ListOffsets")
    lab.advance(100)
    lab.fail("ListOffsets")
    lab.advance(100)
    lab.answer("ListOffsets")
    assert lab.core.positions() == {T0: 5}


def test_an_offset_fetch_for_another_assignment_is_not_listened_to() -> None:
    lab = Lab(
        assignors=["cooperative-sticky"],
        committed={"t-0": 1, "t-1": 2},
        ends={"t-0": 1, "t-1": 2},
        enable_auto_commit=False,
    )
    lab.auto.discard("OffsetFetch")
    lab.stable("t-0")
    late = lab.find("OffsetFetch")
    lab.advance(3_000)
    lab.answer("Heartbeat", E.REBALANCE_IN_PROGRESS)
    lab.rejoin("t-0", "t-1", generation=2)
    assert late not in lab.open
    lab.answer("OffsetFetch")
    assert lab.core.positions() == {T0: 1, T1: 2}


def test_partitions_can_be_read_without_a_group() -> None:
    lab = Lab(group_id=None, ends={"t-0": 5}, auto_offset_reset="earliest")
    lab.step(Assigned((T0,)))
    lab.poll()
    assert lab.take() == ["poll -> t-0[0,5)"], "no coordinator is asked"


def test_a_driver_that_knows_the_logs_spares_the_questions() -> None:
    lab = Lab(group_id=None, auto_offset_reset="earliest", log_end=lambda partition, now: now // 100_000)
    lab.step(Assigned((T0,)))
    lab.poll(200_000)
    assert lab.take() == ["poll -> t-0[0,10)"]
    lab.poll(200_000)
    assert lab.core.next_deadline() == lab.now + lab.config.fetch_max_wait_ms
    lab.advance(100_000)
    assert lab.take() == ["poll -> t-0[10,11)"]
    assert "ListOffsets" not in lab.asked


def test_committed_is_asked_of_the_coordinator() -> None:
    lab = Lab(committed={"t-0": 7})
    lab.step(CommittedAsked("asked", (T0, T1)))
    lab.find_coordinator()
    assert lab.found("asked") == {T0: 7, T1: None}


def test_committed_is_repeated_until_its_time_is_over() -> None:
    lab = Lab()
    lab.auto.discard("OffsetFetch")
    lab.step(CommittedAsked("asked", (T0,), timeout_ms=1_000))
    lab.find_coordinator()
    lab.answer("OffsetFetch", E.COORDINATOR_LOAD_IN_PROGRESS)
    lab.advance(100)
    lab.answer("OffsetFetch", partition_error=E.UNSTABLE_OFFSET_COMMIT)
    lab.advance(900)
    assert isinstance(lab.done_with("asked"), KafkaTimeoutError)


def test_offsets_by_time() -> None:
    lab = Lab(ends={"t-0": 7})
    lab.step(OffsetsAsked("asked", {T0: -1, T1: -2}))
    assert lab.found("asked") == {T0: 7, T1: 0}


def test_a_position_is_waited_for() -> None:
    lab = Lab(committed={"t-0": 7})
    lab.step(Assigned((T0,)))
    lab.step(PositionAsked("asked", T0))
    assert lab.done_with("asked") is None
    lab.find_coordinator()
    assert lab.found("asked") == {T0: 7}
    lab.step(PositionAsked("other", T1))
    assert isinstance(lab.done_with("other"), IllegalStateError)
