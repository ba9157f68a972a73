"""The requests of a share consumer's core: sessions, acknowledgements, errors, leaders that move."""

from __future__ import annotations

from typing import Any

import pytest

from rejoin.client.core.errors import (
    CodedError,
    CorruptRecordError,
    DisconnectError,
    IllegalStateError,
    KafkaTimeoutError,
    RecordDeserializationError,
    UnsupportedVersionError,
)
from rejoin.client.core.share.batches import acknowledgement_batches
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.share.acknowledgements import AcknowledgeType, ShareLeader
from rejoin.protocol.registry import SHARE_ACKNOWLEDGE, SHARE_FETCH
from rejoin.protocol.types import TopicPartition
from tests.client.core.fetch.test_batches import batch, plain
from tests.client.share.bench import ShareBench, acquired, fetched, taken_in

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def offsets(bench: ShareBench) -> list[int]:
    """Offsets of the last poll's records."""
    records = bench.polls.pop()
    assert isinstance(records, list)
    return [record.offset for record in records]


def failure(bench: ShareBench) -> Exception:
    """The error of the last poll."""
    error = bench.polls.pop()
    assert isinstance(error, Exception)
    return error


def code(error: object) -> ErrorCode | None:
    return error.error if isinstance(error, CodedError) else None


def with_records(**settings: Any) -> ShareBench:
    """A consumer that has records 0 to 2 of t-0."""
    bench = ShareBench(**settings)
    bench.join()
    assert bench.sent() == ["ShareFetch 0 t-0 t-1"]
    bench.respond(fetched("t", acquired(0, (0, 2, 1))))
    assert offsets(bench) == [0, 1, 2]
    return bench


# -- acknowledgement batches


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ({}, []),
        ({5: 1, 6: 1, 7: 1}, [(5, 7, (1,))]),
        ({0: 1, 1: 2, 2: 3, 3: 1}, [(0, 3, (1, 2, 3, 1))]),
        ({3: 1, 0: 1, 1: 1}, [(0, 1, (1,)), (3, 3, (1,))]),
        ({n: 1 if n < 10 else 2 for n in range(12)}, [(0, 11, (1,) * 10 + (2, 2))]),
        ({n: 1 if n < 11 else 2 for n in range(13)}, [(0, 10, (1,)), (11, 12, (2,))]),
        ({n: 0 if n == 0 else 1 for n in range(12)}, [(0, 0, (0,)), (1, 11, (1,))]),
    ],
)
def test_acknowledgements_are_runs_of_offsets(types: dict[int, int], expected: list[object]) -> None:
    batches = acknowledgement_batches(types)
    assert [(each.first_offset, each.last_offset, each.acknowledge_types) for each in batches] == expected


# -- polls and acknowledgements


def test_implicit_acknowledgements_travel_with_the_next_fetch() -> None:
    bench = with_records()
    bench.poll()
    assert bench.sent() == ["ShareFetch 1 t-0 0..2:1"]
    assert bench.callbacks == []
    bench.respond(fetched("t", acquired(0)))
    (done,) = bench.callbacks
    assert (done.partition, done.offsets, done.error) == (T0, (0, 1, 2), None)


def test_an_explicit_consumer_decides_about_each_record() -> None:
    bench = with_records(share_acknowledgement_mode="explicit")
    assert bench.acknowledge("t", 0, 0, AcknowledgeType.ACCEPT) is None
    assert bench.acknowledge("t", 0, 1, AcknowledgeType.ACCEPT) is None
    assert bench.acknowledge("t", 0, 1, AcknowledgeType.RELEASE) is None, "the last word counts"
    bench.poll()
    assert isinstance(failure(bench), IllegalStateError)
    assert bench.core.records_in_flight() == {T0: [2]}
    assert isinstance(bench.acknowledge("t", 0, 7, AcknowledgeType.ACCEPT), IllegalStateError)
    bench.acknowledge("t", 0, 2, AcknowledgeType.REJECT)
    bench.poll()
    assert bench.sent() == ["ShareFetch 1 t-0 0..2:123"]
    assert isinstance(bench.acknowledge("t", 0, 2, AcknowledgeType.ACCEPT), IllegalStateError), "it is sent already"


def test_an_implicit_consumer_acknowledges_nothing_itself() -> None:
    bench = with_records()
    assert isinstance(bench.acknowledge("t", 0, 0, AcknowledgeType.ACCEPT), IllegalStateError)


def test_a_poll_needs_a_subscription() -> None:
    bench = ShareBench()
    bench.poll()
    assert isinstance(failure(bench), IllegalStateError)


def test_control_records_and_compacted_ones_are_gaps() -> None:
    bench = ShareBench()
    bench.join()
    data = batch(0, plain(2)) + batch(4, plain(1, 4))
    bench.respond(fetched("t", acquired(0, (0, 6, 1), data=data)))
    assert offsets(bench) == [0, 1, 4]
    bench.poll()
    assert bench.sent() == ["ShareFetch 1 t-0 0..6:1100100"]


def test_records_that_are_not_acquired_are_not_shown() -> None:
    bench = ShareBench()
    bench.join()
    data = batch(0, plain(6))
    bench.respond(fetched("t", acquired(0, (1, 2, 3), (4, 4, 1), data=data)))
    records = bench.polls.pop()
    assert isinstance(records, list)
    assert [(record.offset, record.delivery_count) for record in records] == [(1, 3), (2, 3), (4, 1)]


def test_a_record_that_cannot_be_deserialized_is_released() -> None:
    def number(value: bytes) -> int:
        if value == b"1":
            raise ValueError("one")
        return int(value)

    bench = ShareBench(deserializers=(None, number))
    bench.join()
    bench.respond(fetched("t", acquired(0, (0, 2, 1))))
    assert offsets(bench) == [0, 2]
    bench.poll()
    assert isinstance(failure(bench), RecordDeserializationError)
    bench.poll()
    assert bench.sent() == ["ShareFetch 1 t-0 0..2:121"]


def test_a_damaged_batch_is_rejected() -> None:
    bench = ShareBench()
    bench.join()
    damaged = bytearray(batch(0, plain(2)))
    damaged[-1] ^= 1
    bench.respond(fetched("t", acquired(0, (0, 3, 1), data=bytes(damaged) + batch(2, plain(2, 2)))))
    assert isinstance(failure(bench), CorruptRecordError)
    bench.poll()
    assert offsets(bench) == [2, 3]
    assert bench.sent() == ["ShareAcknowledge 1 t-0 0..1:3"]


# -- commits


def test_a_commit_reports_each_partition() -> None:
    bench = ShareBench()
    bench.join()
    bench.respond(fetched("t", acquired(0, (0, 1, 1)), acquired(1, (5, 5, 2))))
    bench.commit()
    assert bench.sent() == ["ShareAcknowledge 1 t-0 0..1:1 t-1 5..5:1"]
    bench.respond(taken_in("t", (0, ErrorCode.NONE), (1, ErrorCode.INVALID_RECORD_STATE)))
    (results,) = bench.commits
    assert results[T0] is None
    assert code(results[T1]) is ErrorCode.INVALID_RECORD_STATE


def test_a_commit_repeats_what_is_retriable_until_its_time_is_over() -> None:
    bench = with_records(default_api_timeout_ms=1_000)
    bench.commit()
    bench.respond(taken_in("t", (0, ErrorCode.COORDINATOR_NOT_AVAILABLE)))
    assert (bench.sent(), bench.commits) == ([], [])
    bench.advance(200)
    assert bench.sent() == ["ShareAcknowledge 2 t-0 0..2:1"]
    bench.respond(taken_in("t", (0, ErrorCode.COORDINATOR_NOT_AVAILABLE)))
    while not bench.commits:
        bench.advance(100)
        if bench.sent():
            bench.respond(taken_in("t", (0, ErrorCode.COORDINATOR_NOT_AVAILABLE)))
    assert isinstance(bench.commits[0][T0], KafkaTimeoutError)


def test_a_commit_without_acknowledgements_ends_at_once() -> None:
    bench = ShareBench()
    bench.join()
    bench.commit()
    assert bench.commits == [{}]


def test_a_commit_waits_for_the_fetch_to_the_same_node() -> None:
    bench = with_records()
    bench.poll()
    bench.respond(fetched("t", acquired(0), acquired(1, (0, 0, 1))))
    assert offsets(bench) == [0]
    bench.poll(0)
    bench.commit()
    assert bench.sent() == ["ShareFetch 2 t-1 0..0:1"]
    bench.respond(fetched("t", acquired(1)))
    assert bench.commits == [{}]


def test_a_renewed_record_is_returned_by_the_next_poll() -> None:
    bench = with_records(share_acknowledgement_mode="explicit")
    for offset, kind in ((0, AcknowledgeType.RENEW), (1, AcknowledgeType.ACCEPT), (2, AcknowledgeType.ACCEPT)):
        bench.acknowledge("t", 0, offset, kind)
    bench.poll()
    assert bench.sent() == ["ShareFetch 1 t-0 0..2:411 no-records renews"]
    bench.respond(fetched("t", acquired(0)))
    assert offsets(bench) == [0]


def test_an_old_broker_cannot_renew() -> None:
    bench = with_records(
        share_acknowledgement_mode="explicit",
        share_acquire_mode="record_limit",
        versions={SHARE_FETCH: 1, SHARE_ACKNOWLEDGE: 1},
    )
    assert isinstance(bench.acknowledge("t", 0, 0, AcknowledgeType.RENEW), UnsupportedVersionError)


# -- sessions


@pytest.mark.parametrize("error", [ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH])
def test_a_lost_session_is_opened_again_and_its_acknowledgements_fail(error: ErrorCode) -> None:
    bench = with_records()
    bench.poll()
    bench.respond(fetched("t", error=error))
    assert [code(done.error) for done in bench.callbacks] == [error]
    assert bench.sent() == ["ShareFetch 0 t-0 t-1"]


def test_after_another_error_the_session_goes_on() -> None:
    bench = with_records()
    bench.poll()
    bench.respond(fetched("t", error=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert bench.sent() == []
    bench.advance(100)
    assert bench.sent() == ["ShareFetch 2"]


def test_a_lost_connection_opens_another_session() -> None:
    bench = with_records()
    bench.poll()
    bench.disconnect()
    assert isinstance(bench.callbacks[0].error, DisconnectError)
    bench.advance(100)
    assert bench.sent() == ["ShareFetch 0 t-0 t-1"]


def test_acknowledgements_without_a_session_fail() -> None:
    bench = with_records()
    bench.poll()
    bench.respond(fetched("t", acquired(0), acquired(1, (7, 7, 1))))
    offsets(bench)
    bench.commit()
    bench.disconnect()
    assert isinstance(bench.commits.pop()[T1], DisconnectError)
    bench.commit()
    assert bench.commits == [{}]


def test_close_sends_what_is_left_and_ends_the_session_before_it_leaves() -> None:
    bench = with_records(share_acknowledgement_mode="explicit")
    bench.acknowledge("t", 0, 1, AcknowledgeType.ACCEPT)
    bench.close()
    assert bench.sent() == ["ShareAcknowledge -1 t-0 1..1:1"]
    bench.respond(taken_in("t", (0, ErrorCode.NONE)))
    assert bench.sent() == ["ShareGroupHeartbeat -1 []"]
    assert not bench.core.closed
    bench.beat(-1)
    assert bench.core.closed
    assert bench.calls[-1] is None


def test_close_does_not_wait_for_ever() -> None:
    bench = with_records()
    bench.close()
    bench.advance(30_000)
    assert bench.core.closed
    bench.poll()
    assert isinstance(failure(bench), IllegalStateError)


# -- leaders


def test_a_new_leader_gets_the_next_fetch_and_no_acknowledgements_of_the_old_one() -> None:
    bench = ShareBench(leaders=(1, 2))
    bench.join()
    assert bench.sent() == ["ShareFetch 0 t-0", "ShareFetch@2 0 t-1"]
    bench.respond(fetched("t", acquired(0, (0, 2, 1))))
    assert offsets(bench) == [0, 1, 2]
    bench.respond(fetched("t"))
    bench.poll(0)
    bench.leaders = [2, 2]
    moved = acquired(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, acknowledged=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert bench.sent() == ["ShareFetch 1 t-0 0..2:1", "ShareFetch@2 1"]
    bench.respond(fetched("t", moved.model_copy(update={"current_leader": ShareLeader(leader_id=2, leader_epoch=2)})))
    bench.respond(fetched("t"))
    assert [code(done.error) for done in bench.callbacks] in ([], [ErrorCode.NOT_LEADER_OR_FOLLOWER])
    bench.advance(100)
    bench.poll(0)
    assert bench.sent() == ["ShareFetch@2 2 t-0", "ShareFetch -1 no-records"]
    assert [code(done.error) for done in bench.callbacks] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_with_a_record_limit_one_node_is_asked_at_a_time() -> None:
    bench = ShareBench(leaders=(1, 2), share_acquire_mode="record_limit")
    bench.join()
    assert bench.sent() == ["ShareFetch 0 t-0"]
    bench.respond(fetched("t"))
    assert bench.sent() == ["ShareFetch@2 0 t-1"], "in rotation"
    bench.respond(fetched("t", acquired(1, (0, 0, 1))))
    offsets(bench)
    bench.poll()
    assert bench.sent() == ["ShareFetch 1", "ShareFetch@2 1 t-1 0..0:1 no-records"]
