"""Positions: found where the group committed, else by the reset policy.

Source: Kafka's ConsumerCoordinator.initWithCommittedOffsetsIfNeeded, OffsetFetcher.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from rejoin.client.core import metadata, requests
from rejoin.client.core.errors import (
    CodedError,
    GroupAuthorizationError,
    KafkaError,
    NoOffsetForPartitionError,
    StaleMemberEpochError,
    TopicAuthorizationError,
    UnexpectedError,
)
from rejoin.client.core.fetch.leaders import by_leader
from rejoin.client.core.group import lookup, membership
from rejoin.client.core.in_flight_requests import cancel, send
from rejoin.client.core.inputs import Millis, OffsetAndMetadata, OffsetReset, Reset
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.state.membership import Generation
from rejoin.client.core.state.offsets import CommittedFetch
from rejoin.client.core.step_context import StepContext, offsets_by_topic
from rejoin.journal.events.client import PositionsFound
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.offsets.offset_fetch import OffsetFetchResponse
from rejoin.protocol.messages.records.list_offsets import ListOffsetsResponse
from rejoin.protocol.registry import LIST_OFFSETS, OFFSET_FETCH
from rejoin.protocol.types import TopicPartition


def update(state: ConsumerState, ctx: StepContext) -> bool:
    """Go on finding positions; false while committed offsets are waited for, and poll with them.

    Raises what poll must raise.
    """
    if state.positions.error is not None:
        error, state.positions.error = state.positions.error, None
        raise error
    without = [(p, each) for p, each in state.subscription.assignment.items() if each.position is None]
    if not without:
        return True
    starting = tuple(sorted(partition for partition, each in without if each.reset is None))
    if starting:
        if ctx.config.group_id is not None and not _start_where_committed(state, ctx, starting):
            return False
        _start_by_policy(state, ctx)
    _send_resets(state, ctx)
    return True


# -- committed offsets


def _start_where_committed(state: ConsumerState, ctx: StepContext, partitions: tuple[TopicPartition, ...]) -> bool:
    positions, generation = state.positions, state.stable_generation
    fetch = positions.committed
    if fetch is not None and (fetch.partitions != partitions or fetch.generation != generation):
        # Kafka: PendingCommittedOffsetRequest. The question has changed; the old answer does not count.
        cancel(state, ctx, fetch.request_id)
        fetch = positions.committed = None
    if fetch is None:
        if ctx.now < positions.retry_at:
            ctx.wake(positions.retry_at)
        elif lookup.ensure_for_user(state, ctx):
            positions.committed = _fetch_committed(state, ctx, partitions, generation)
        return False
    if fetch.error is not None:
        positions.committed = None
        if not fetch.error.retriable:
            raise fetch.error
        positions.retry_at = ctx.now + ctx.backoff(positions.attempts)
        positions.attempts += 1
        ctx.wake(positions.retry_at)
        return False
    if fetch.offsets is None:
        return False
    positions.committed = None
    positions.attempts = 0
    _seek_to_committed(state, ctx, fetch.offsets)
    return True


def _seek_to_committed(
    state: ConsumerState, ctx: StepContext, offsets: Mapping[TopicPartition, OffsetAndMetadata | None]
) -> None:
    found: dict[TopicPartition, int] = {}
    for partition, committed in offsets.items():
        owned = state.subscription.assignment.get(partition)
        if owned is not None and owned.position is None and owned.reset is None and committed is not None:
            owned.seek(committed.offset, committed.leader_epoch if ctx.reads_records else -1)
            found[partition] = committed.offset
    _emit_found(state, ctx, "committed", found)


def _fetch_committed(
    state: ConsumerState, ctx: StepContext, partitions: tuple[TopicPartition, ...], generation: Generation | None
) -> CommittedFetch:
    fetch = CommittedFetch(partitions, generation)
    request = requests.offset_fetch(ctx.group_id, partitions, ctx.version(OFFSET_FETCH), membership.fetcher(state))
    fetch.request_id = send(
        state,
        ctx,
        request,
        partial(_committed_answered, fetch),
        partial(_committed_failed, fetch),
        to=state.coordinator,
    )
    return fetch


def _committed_answered(
    fetch: CommittedFetch, state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response
) -> None:
    try:
        fetch.offsets = read_committed(state, ctx, sent, response)
    except KafkaError as error:
        fetch.error = error


def _committed_failed(
    fetch: CommittedFetch, state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError
) -> None:
    fetch.error = problem


def read_committed(
    state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """The committed offset of each partition, or None. Raises the response's error."""
    # Kafka: OffsetFetchResponseHandler.
    assert isinstance(response, OffsetFetchResponse)
    error = requests.offset_fetch_error(response, sent.version)
    if error is not ErrorCode.NONE:
        raise _group_error(state, ctx, error)
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
    forbidden: dict[str, None] = {}
    unstable = False
    for partition, committed in requests.fetched_offsets(response, sent.version):
        error = committed.error_code
        if error is ErrorCode.NONE:
            offset, epoch = committed.committed_offset, committed.committed_leader_epoch
            found = OffsetAndMetadata(offset, committed.metadata or "", epoch)
            offsets[partition] = found if offset >= 0 else None
        elif error is ErrorCode.UNSTABLE_OFFSET_COMMIT:
            unstable = True
        elif reaction("OffsetFetch", error) is Reaction.RAISE_TOPICS:
            forbidden[partition.topic] = None
        else:
            raise UnexpectedError(f"OffsetFetch for {partition.topic}-{partition.partition}", error)
    if forbidden:
        raise TopicAuthorizationError(forbidden)
    if unstable:
        raise CodedError(ErrorCode.UNSTABLE_OFFSET_COMMIT)
    return offsets


def _group_error(state: ConsumerState, ctx: StepContext, error: ErrorCode) -> KafkaError:
    match reaction("OffsetFetch", error):
        case Reaction.TAKE_EPOCH:
            return StaleMemberEpochError()
        case Reaction.FORGET_COORDINATOR:
            lookup.forget(state, ctx, f"error response {error.name}")
            return CodedError(error)
        case Reaction.RAISE:
            return GroupAuthorizationError(f"not authorized for group {ctx.group_id}")
        case _ if error.retriable:
            return CodedError(error)
        case _:
            return UnexpectedError("OffsetFetch", error)


# -- resets


def _start_by_policy(state: ConsumerState, ctx: StepContext) -> None:
    policy = ctx.reset_policy()
    nowhere = []
    for partition, owned in state.subscription.assignment.items():
        if owned.position is None and owned.reset is None:
            if policy is None:
                nowhere.append(partition)
            else:
                owned.ask_reset(policy)
    if nowhere:
        raise NoOffsetForPartitionError(sorted(nowhere))


def _send_resets(state: ConsumerState, ctx: StepContext) -> None:
    due: dict[TopicPartition, Reset] = {}
    for partition, owned in state.subscription.assignment.items():
        if owned.reset is None:
            continue
        if ctx.now < owned.retry_at:
            ctx.wake(owned.retry_at)
        else:
            due[partition] = owned.reset
            owned.retry_at = ctx.now + ctx.config.request_timeout_ms
    if not due:
        return
    if ctx.log_end is not None:
        for partition, reset in due.items():
            # Synthetic logs have no records by time; only their end is known here.
            offset = 0 if reset is OffsetReset.EARLIEST else ctx.log_end(partition, ctx.now) or 0
            _reset_to(state, ctx, partition, reset, offset)
        return
    led, unknown = by_leader(state, ctx, sorted(due))
    _retry_resets(state, unknown, ctx.now + ctx.config.retry_backoff_ms)
    if unknown:
        ctx.wake(ctx.now + ctx.config.retry_backoff_ms)
    for node, partitions in led.items():
        asked = {partition: due[partition] for partition in partitions}
        timestamps = {partition: timestamp_of(reset) for partition, reset in asked.items()}
        request = requests.list_offsets(timestamps, ctx.config.isolation_level, ctx.version(LIST_OFFSETS))
        send(state, ctx, request, partial(_resets_answered, asked), partial(_resets_failed, asked), to=node)


def timestamp_of(reset: Reset) -> int:
    """The timestamp in ListOffsets."""
    return reset.value if isinstance(reset, OffsetReset) else reset


def _resets_answered(
    due: Mapping[TopicPartition, Reset],
    state: ConsumerState,
    ctx: StepContext,
    sent: RequestInFlight,
    response: Response,
) -> None:
    assert isinstance(response, ListOffsetsResponse)
    again: dict[TopicPartition, Reset] = {}
    for partition, error, offset in requests.listed_offsets(response):
        if partition not in due:
            continue
        if error is ErrorCode.NONE and offset < 0:
            # Kafka: no record is that new, so the position is the end.
            _reset_later(state, partition, due[partition])
        elif error is ErrorCode.NONE:
            _reset_to(state, ctx, partition, due[partition], offset)
        elif error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            state.positions.error = TopicAuthorizationError([partition.topic])
        else:
            again[partition] = due[partition]
    if again:
        metadata.request_update(state)
        _retry_resets(state, again, ctx.now + ctx.config.retry_backoff_ms)


def _resets_failed(
    due: Mapping[TopicPartition, Reset],
    state: ConsumerState,
    ctx: StepContext,
    sent: RequestInFlight,
    problem: KafkaError,
) -> None:
    _retry_resets(state, due, ctx.now + ctx.config.retry_backoff_ms)


def _retry_resets(state: ConsumerState, partitions: Collection[TopicPartition], at: Millis) -> None:
    for partition in partitions:
        owned = state.subscription.assignment.get(partition)
        if owned is not None:
            owned.retry_at = at


def _reset_later(state: ConsumerState, partition: TopicPartition, reset: Reset) -> None:
    owned = state.subscription.assignment.get(partition)
    if owned is not None and owned.reset == reset:
        owned.ask_reset(OffsetReset.LATEST)


def _reset_to(state: ConsumerState, ctx: StepContext, partition: TopicPartition, reset: Reset, offset: int) -> None:
    owned = state.subscription.assignment.get(partition)
    if owned is None or owned.reset != reset:
        return  # Given up, or sought elsewhere meanwhile.
    owned.seek(offset)
    origin = reset.name.lower() if isinstance(reset, OffsetReset) else "duration"
    _emit_found(state, ctx, origin, {partition: offset})


def _emit_found(state: ConsumerState, ctx: StepContext, origin: str, offsets: Mapping[TopicPartition, int]) -> None:
    if offsets:
        fields = {"origin": origin, "positions": offsets_by_topic(offsets), **membership.identity(state, ctx)}
        ctx.emit(PositionsFound.model_validate(fields))
