"""Fetch sessions: what is remembered, what is left out of responses, and which session gives way to which."""

from __future__ import annotations

from itertools import count
from random import Random

from rejoin.coordinator.core.fetch.sessions import (
    EVICTION_MS,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    MAX_EPOCH,
    MOST_PARTITIONS,
    Answered,
    FetchContext,
    FetchKey,
    FetchResult,
    FetchSessions,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.records.fetch import FetchablePartitionResponse, FetchPartition
from rejoin.protocol.types import ZERO_UUID


def sessions(
    slots: int = 1_000, names: dict[str, str] | None = None, most_partitions: int = MOST_PARTITIONS
) -> FetchSessions:
    ids = count(1)
    return FetchSessions(slots, lambda: f"{next(ids):032x}", ({} if names is None else names).get, most_partitions)


def key(partition: int) -> FetchKey:
    return FetchKey("t", ZERO_UUID, partition)


def asked(partition: int, offset: int = 0) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)


def wanted(*partitions: int, offset: int = 0) -> dict[FetchKey, FetchPartition]:
    return {key(index): asked(index, offset) for index in partitions}


def data(index: int, end: int = 0, records: bytes = b"", error: ErrorCode = ErrorCode.NONE) -> Answered:
    """A partition as it was read."""
    high_watermark = end if error is ErrorCode.NONE else -1
    start = 0 if error is ErrorCode.NONE else -1
    return {
        key(index): FetchablePartitionResponse(
            partition_index=index,
            error_code=error,
            high_watermark=high_watermark,
            log_start_offset=start,
            records=records,
        )
    }


def indexes(context: FetchContext) -> list[int]:
    return [each.key.partition for each in context.wanted]


def begin(cache: FetchSessions, *partitions: int, now: int = 0) -> int:
    """A session of these partitions, all of them empty; its id, or 0 where there is no room."""
    context = cache.context(0, INITIAL_EPOCH, wanted(*partitions), (), uses_topic_ids=False, now=now)
    empty: Answered = {}
    for index in partitions:
        empty |= data(index)
    return context.respond(empty, now).session_id


def go_on(cache: FetchSessions, session_id: int, epoch: int, now: int = 0, *partitions: int) -> FetchContext:
    return cache.context(session_id, epoch, wanted(*partitions), (), uses_topic_ids=False, now=now)


def test_a_partition_is_left_out_until_it_has_news() -> None:
    cache = sessions()
    session = begin(cache, 0, 1)
    assert go_on(cache, session, 1).respond(data(0) | data(1), 0).partitions == {}
    news = data(1, end=1, records=b"batch")
    assert go_on(cache, session, 2).respond(data(0) | news, 0) == FetchResult(ErrorCode.NONE, session, news)
    assert go_on(cache, session, 3).respond(data(0) | data(1, end=1), 0).partitions == {}


def test_a_partition_comes_again_after_an_error() -> None:
    cache = sessions()
    session = begin(cache, 0)
    failed = data(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert go_on(cache, session, 1).respond(failed, 0).partitions == failed
    assert go_on(cache, session, 2).respond(failed, 0).partitions == failed
    assert go_on(cache, session, 3).respond(data(0), 0).partitions == data(0)
    assert go_on(cache, session, 4).respond(data(0), 0).partitions == {}


def test_partitions_that_gave_records_come_last_the_next_time() -> None:
    cache = sessions()
    session = begin(cache, 0, 1, 2)
    first = go_on(cache, session, 1)
    assert indexes(first) == [0, 1, 2]
    first.respond(data(0, 1, b"batch") | data(1) | data(2), 0)
    assert indexes(go_on(cache, session, 2)) == [1, 2, 0]


def test_partitions_are_added_changed_and_forgotten() -> None:
    cache = sessions()
    session = begin(cache, 0, 1)
    context = cache.context(session, 1, wanted(1, 2, offset=7), [key(0)], uses_topic_ids=False, now=0)
    assert [(each.key.partition, each.asked.fetch_offset) for each in context.wanted] == [(1, 7), (2, 7)]
    gone = cache.context(session, 2, {}, [key(1), key(2)], uses_topic_ids=False, now=0)
    assert gone.respond({}, 0) == FetchResult(ErrorCode.NONE, 0, {})
    assert go_on(cache, session, 3).respond({}, 0).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_wrong_epoch_leaves_the_session_as_it_is() -> None:
    cache = sessions()
    session = begin(cache, 0)
    for epoch in (2, 9, MAX_EPOCH):
        refused = go_on(cache, session, epoch).respond({}, 0)
        assert refused == FetchResult(ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, {})
    assert go_on(cache, session, 1).respond(data(0), 0).session_id == session


def test_a_request_that_waits_is_overtaken_by_the_next_of_its_session() -> None:
    cache = sessions()
    session = begin(cache, 0)
    waits = go_on(cache, session, 1)
    overtakes = go_on(cache, session, 2)
    assert waits.respond(data(0), 0).error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert overtakes.respond(data(0), 0).error is ErrorCode.NONE


def test_epochs_start_over_at_one() -> None:
    cache = sessions()
    session = begin(cache, 0)
    cache._sessions[session].epoch = MAX_EPOCH
    assert go_on(cache, session, MAX_EPOCH).respond(data(0), 0).error is ErrorCode.NONE
    assert go_on(cache, session, 1).respond(data(0), 0).error is ErrorCode.NONE


def test_names_and_ids_are_not_mixed() -> None:
    cache = sessions()
    session = begin(cache, 0)
    mixed = cache.context(session, 1, {}, (), uses_topic_ids=True, now=0)
    assert mixed.respond({}, 0).error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert go_on(cache, session, 1).respond(data(0), 0).error is ErrorCode.NONE


def test_an_id_keeps_the_name_that_it_once_had() -> None:
    names: dict[str, str] = {}
    cache = sessions(names=names)
    by_id = {FetchKey(None, "id", 0): asked(0)}
    context = cache.context(0, INITIAL_EPOCH, by_id, (), uses_topic_ids=True, now=0)
    session = context.respond({FetchKey(None, "id", 0): data(0)[key(0)]}, 0).session_id
    assert [each.topic for each in context.wanted] == [None]
    for epoch, known in ((1, {"id": "orders"}), (2, {})):
        names.clear()
        names |= known
        context = cache.context(session, epoch, {}, (), uses_topic_ids=True, now=0)
        assert [each.topic for each in context.wanted] == ["orders"]


def test_the_final_epoch_closes_a_session() -> None:
    cache = sessions()
    session = begin(cache, 0)
    closing = go_on(cache, session, FINAL_EPOCH, 0, 1)
    assert indexes(closing) == [1]
    assert closing.respond(data(1), 0) == FetchResult(ErrorCode.NONE, 0, data(1))
    assert len(cache) == 0


def test_without_room_there_is_no_session() -> None:
    cache = sessions(slots=2)
    assert begin(cache, 0)
    assert begin(cache, 0)
    assert begin(cache, 0, 1, 2) == 0
    assert begin(sessions(slots=0), 0) == 0


def test_a_session_that_is_not_used_gives_way() -> None:
    cache = sessions(slots=2)
    first, second = begin(cache, 0), begin(cache, 0, now=1)
    go_on(cache, first, 1, EVICTION_MS)
    assert begin(cache, 0, now=EVICTION_MS + 1) == 0
    assert begin(cache, 0, now=EVICTION_MS + 2)
    assert go_on(cache, second, 1).respond({}, 0).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert go_on(cache, first, 2).respond(data(0), 0).error is ErrorCode.NONE


def test_a_session_that_is_used_gives_way_only_to_a_larger_one() -> None:
    cache = sessions(slots=2)
    large, small = begin(cache, 0, 1, 2), begin(cache, 0)
    now = EVICTION_MS + 1
    go_on(cache, large, 1, now)
    go_on(cache, small, 1, now)
    assert begin(cache, 0, now=now) == 0
    assert begin(cache, 0, 1, now=now)
    assert go_on(cache, small, 2, now).respond({}, 0).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert go_on(cache, large, 2, now).respond(data(0), 0).error is ErrorCode.NONE


def kept(cache: FetchSessions) -> int:
    return sum(len(session.partitions) for session in cache._sessions.values())


def test_all_sessions_together_have_a_bound_of_partitions() -> None:
    cache = sessions(most_partitions=100)
    begun = [begin(cache, *range(30)) for _ in range(10)]
    assert [bool(session_id) for session_id in begun] == [True] * 3 + [False] * 7
    assert (len(cache), cache.cached_partitions, kept(cache)) == (3, 90, 90)
    assert begin(cache, *range(101)) == 0
    # Those that are not used any more give way, as many as it takes.
    assert begin(cache, *range(80), now=EVICTION_MS + 1)
    assert (len(cache), cache.cached_partitions, kept(cache)) == (1, 80, 80)


def test_a_session_that_outgrows_the_bound_ends() -> None:
    cache = sessions(most_partitions=50)
    first, second = begin(cache, *range(20)), begin(cache, *range(20))
    assert indexes(go_on(cache, first, 1, 0, *range(30))) == list(range(30))
    context = go_on(cache, second, 1, 0, *range(25))
    assert context.respond({}, 0) == FetchResult(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, {})
    assert (len(cache), cache.cached_partitions, kept(cache)) == (1, 30, 30)


def test_what_is_cached_is_counted() -> None:
    random, cache, open_sessions = Random(7), sessions(slots=5, most_partitions=60), dict[int, int]()
    for now in range(0, 100 * EVICTION_MS, EVICTION_MS // 4):
        some = random.sample(range(40), random.randrange(1, 20))
        if open_sessions and random.random() < 0.7:
            session_id, epoch = random.choice(list(open_sessions.items()))
            open_sessions[session_id] = epoch + 1
            gone = [key(index) for index in random.sample(range(40), 10)]
            choices = (epoch, epoch, epoch, FINAL_EPOCH)
            cache.context(session_id, random.choice(choices), wanted(*some), gone, uses_topic_ids=False, now=now)
        elif session_id := begin(cache, *some, now=now):
            open_sessions[session_id] = 1
        assert kept(cache) == cache.cached_partitions <= 60
