"""Which records are handed out: those between a position and the end of its log.

Records do not exist here. A partition's log is known by its end alone; a fetch is "the records from the position up to
the end". Ends are asked for by ListOffsets as often as an idle fetch would come back (``fetch.max.wait.ms``), unless
the driver of this consumer knows the logs (``log_end``).

Source: Kafka's Fetcher.
"""

from __future__ import annotations

from collections.abc import Collection

from rejoin.client.core import metadata, requests
from rejoin.client.core.errors import KafkaError, OffsetOutOfRangeError, TopicAuthorizationError
from rejoin.client.core.in_flight_requests import send
from rejoin.client.core.inputs import OffsetReset, RecordRange
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.step_context import StepContext
from rejoin.client.core.subscription import PartitionState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.records.list_offsets import ListOffsetsResponse
from rejoin.protocol.registry import LIST_OFFSETS
from rejoin.protocol.types import TopicPartition


def take(
    state: ConsumerState, ctx: StepContext, max_records: int, only: Collection[TopicPartition] | None
) -> tuple[RecordRange, ...]:
    """Up to ``max_records`` records, from each partition in rotation; their positions move on."""
    subscription, left, taken = state.subscription, max_records, []
    for partition, owned in list(subscription.assignment.items()):
        if left <= 0:
            break
        if not owned.fetchable or (only is not None and partition not in only):
            continue
        if ctx.log_end is not None:
            log_end = ctx.log_end(partition, ctx.now)
            if log_end is None:
                _fetch_failed(state, partition)
                continue
            _set_end(state, ctx, partition, owned, log_end)
        start, end = owned.position, owned.end
        if start is None or end is None or start >= end:
            continue
        owned.position = min(end, start + left)
        left -= owned.position - start
        taken.append(RecordRange(*partition, start, owned.position))
        subscription.move_to_end(partition)
    return tuple(taken)


def _fetch_failed(state: ConsumerState, partition: TopicPartition) -> None:
    """Do what a Fetch of a topic that is gone leads to: a look at the metadata, unless that lacks the topic already."""
    if partition.topic in state.metadata.topics and not state.metadata.update_requested:
        metadata.request_update(state)


def _set_end(
    state: ConsumerState, ctx: StepContext, partition: TopicPartition, owned: PartitionState, end: int
) -> None:
    owned.end = end
    if owned.position is None or owned.position <= end:
        return
    policy = ctx.reset_policy()
    if policy is not None:
        owned.ask_reset(policy)
    else:
        name = f"{partition.topic}-{partition.partition}"
        problem = OffsetOutOfRangeError(f"position {owned.position} of {name} lies behind its end {end}")
        state.positions.error = problem


def refresh_ends(state: ConsumerState, ctx: StepContext) -> None:
    """Ask for the ends of the partitions that have nothing left, as a fetch would wait for them."""
    if ctx.log_end is not None:
        ctx.wake(ctx.now + max(1, ctx.config.fetch_max_wait_ms))
        return
    ends = state.log_ends
    if ends.request_id is not None:
        return
    assignment = state.subscription.assignment
    empty = [
        partition
        for partition, owned in assignment.items()
        if owned.fetchable and (owned.end is None or (owned.position or 0) >= owned.end)
    ]
    if not empty:
        return
    unknown = any(assignment[partition].end is None for partition in empty)
    if ctx.now < ends.due_at and not unknown:
        ctx.wake(ends.due_at)
        return
    request = ends.request
    if request is None or ends.partitions != empty:
        timestamps = dict.fromkeys(sorted(empty), OffsetReset.LATEST.value)
        request = requests.list_offsets(timestamps, ctx.config.isolation_level, ctx.version(LIST_OFFSETS))
        ends.partitions, ends.request = empty, request
    ends.request_id = send(state, ctx, request, _ends_answered, _ends_failed)


def _ends_answered(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response) -> None:
    assert isinstance(response, ListOffsetsResponse)
    state.log_ends.request_id = None
    wait = ctx.config.fetch_max_wait_ms
    for partition, error, offset in requests.listed_offsets(response):
        owned = state.subscription.assignment.get(partition)
        if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            state.positions.error = TopicAuthorizationError([partition.topic])
        elif error is not ErrorCode.NONE:
            metadata.request_update(state)
            if owned is not None:
                owned.end = owned.position
        elif owned is not None:
            _set_end(state, ctx, partition, owned, offset)
            if owned.position is not None and owned.position < offset:
                wait = 0  # A fetch comes back at once when there is something.
    state.log_ends.due_at = sent.sent_at + wait


def _ends_failed(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError) -> None:
    state.log_ends.request_id = None
    state.log_ends.due_at = ctx.now + max(ctx.config.retry_backoff_ms, ctx.config.fetch_max_wait_ms)
    for owned in state.subscription.assignment.values():
        if owned.end is None:
            owned.end = owned.position  # As if there were nothing, until the next answer.
