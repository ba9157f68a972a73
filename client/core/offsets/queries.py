"""The user's questions: committed offsets, offsets by time, positions. Repeated until their time is over.

Source: Kafka's ClassicKafkaConsumer (committed, position, endOffsets, offsetsForTimes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from rejoin.client.core import metadata, requests
from rejoin.client.core.effects import Endpoint, OffsetsFound
from rejoin.client.core.errors import (
    CodedError,
    InvalidGroupIdError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationError,
)
from rejoin.client.core.fetch.leaders import by_leader
from rejoin.client.core.group import lookup, membership
from rejoin.client.core.in_flight_requests import cancel, send
from rejoin.client.core.inputs import CommittedAsked, OffsetsAsked, PositionAsked
from rejoin.client.core.offsets import positions
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.state.offsets import Query
from rejoin.client.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.records.list_offsets import ListOffsetsResponse
from rejoin.protocol.registry import LIST_OFFSETS, OFFSET_FETCH
from rejoin.protocol.types import TopicPartition

OffsetsOf = Mapping[TopicPartition, int | None]


def ask(state: ConsumerState, ctx: StepContext, asked: CommittedAsked | OffsetsAsked | PositionAsked) -> None:
    """Take in a question."""
    timeout = ctx.config.default_api_timeout_ms if asked.timeout_ms is None else asked.timeout_ms
    attempt: Callable[[ConsumerState, StepContext, Query], None]
    match asked:
        case CommittedAsked():
            attempt = partial(_ask_committed, tuple(sorted(set(asked.partitions))))
        case OffsetsAsked():
            attempt = partial(_ask_offsets, dict(sorted(asked.timestamps.items())))
        case PositionAsked():
            attempt = partial(_ask_position, asked.partition)
    state.queries.append(Query(asked.token, ctx.now + timeout, attempt))


def advance(state: ConsumerState, ctx: StepContext) -> None:
    """Send, repeat or give up."""
    for query in list(state.queries):
        if not query.in_flight and ctx.now >= query.retry_at:
            try:
                query.attempt(state, ctx, query)
            except KafkaError as error:
                _attempt_failed(state, ctx, query, error)
        if query in state.queries:
            if ctx.now >= query.expires_at:
                _end(state, ctx, query, {}, KafkaTimeoutError("timed out before an answer arrived"))
                continue
            ctx.wake(query.expires_at)
            if not query.in_flight and query.retry_at > ctx.now:
                ctx.wake(query.retry_at)


def _ask_committed(
    partitions: tuple[TopicPartition, ...], state: ConsumerState, ctx: StepContext, query: Query
) -> None:
    if ctx.config.group_id is None:
        raise InvalidGroupIdError("committed offsets need a group.id")
    if not partitions:
        _end(state, ctx, query, {})
        return
    if not lookup.ensure_for_user(state, ctx):
        return

    def read(sent: RequestInFlight, response: Response) -> OffsetsOf:
        committed = positions.read_committed(state, ctx, sent, response)
        query.metadata = {partition: each.metadata for partition, each in committed.items() if each is not None}
        return {partition: None if each is None else each.offset for partition, each in committed.items()}

    request = requests.offset_fetch(ctx.group_id, partitions, ctx.version(OFFSET_FETCH), membership.fetcher(state))
    _send(state, ctx, query, request, read, to=state.coordinator)


def _ask_offsets(
    timestamps: Mapping[TopicPartition, int], state: ConsumerState, ctx: StepContext, query: Query
) -> None:
    if not timestamps:
        _end(state, ctx, query, {})
        return
    query.found = {}
    led, unknown = by_leader(state, ctx, timestamps)
    if unknown:
        query.retry_at = ctx.now + ctx.config.retry_backoff_ms
        return
    for node, partitions in led.items():
        asked = {partition: timestamps[partition] for partition in partitions}
        request = requests.list_offsets(asked, ctx.config.isolation_level, ctx.version(LIST_OFFSETS))
        _send(state, ctx, query, request, partial(_read_offsets, state), to=node)


def _read_offsets(state: ConsumerState, sent: RequestInFlight, response: Response) -> OffsetsOf:
    assert isinstance(response, ListOffsetsResponse)
    found: dict[TopicPartition, int | None] = {}
    for partition, error, offset in requests.listed_offsets(response):
        if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise TopicAuthorizationError([partition.topic])
        if error is not ErrorCode.NONE:
            metadata.request_update(state)
            raise CodedError(error)
        found[partition] = offset if offset >= 0 else None
    return found


def _ask_position(partition: TopicPartition, state: ConsumerState, ctx: StepContext, query: Query) -> None:
    owned = state.subscription.partition_state(partition)
    if owned.position is None:
        positions.update(state, ctx)
    if owned.position is not None:
        _end(state, ctx, query, {partition: owned.position})


def _send(
    state: ConsumerState,
    ctx: StepContext,
    query: Query,
    request: Request,
    read: Callable[[RequestInFlight, Response], OffsetsOf],
    to: Endpoint | None,
) -> None:
    query.in_flight.add(send(state, ctx, request, partial(_answered, query, read), partial(_failed, query), to=to))


def _answered(
    query: Query,
    read: Callable[[RequestInFlight, Response], OffsetsOf],
    state: ConsumerState,
    ctx: StepContext,
    sent: RequestInFlight,
    response: Response,
) -> None:
    query.in_flight.discard(sent.request_id)
    try:
        query.found.update(read(sent, response))
    except KafkaError as error:
        _attempt_failed(state, ctx, query, error)
    else:
        if not query.in_flight:
            _end(state, ctx, query, query.found)


def _failed(query: Query, state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError) -> None:
    query.in_flight.discard(sent.request_id)
    _attempt_failed(state, ctx, query, problem)


def _attempt_failed(state: ConsumerState, ctx: StepContext, query: Query, problem: KafkaError) -> None:
    if not problem.retriable:
        _end(state, ctx, query, {}, problem)
        return
    for request_id in query.in_flight:
        cancel(state, ctx, request_id)
    query.in_flight.clear()
    query.retry_at = ctx.now + ctx.backoff(query.attempts)
    query.attempts += 1


def _end(
    state: ConsumerState, ctx: StepContext, query: Query, offsets: OffsetsOf, error: KafkaError | None = None
) -> None:
    if query in state.queries:
        state.queries.remove(query)
        ctx.emit(OffsetsFound(query.token, offsets, query.metadata, error))
