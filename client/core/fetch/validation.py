"""Whether a position still exists in the leader's log, after the leader may have changed (KIP-320).

A position with a leader epoch is checked with the leader: where that epoch ends earlier, the log was truncated, and
the consumer has read records that are gone.

Source: Kafka's SubscriptionState (maybeValidatePosition, maybeCompleteValidation) and OffsetFetcher.
"""

from __future__ import annotations

from functools import partial

from rejoin.client.core import metadata
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import KafkaError, LogTruncationError, TopicAuthorizationError
from rejoin.client.core.fetch import requests
from rejoin.client.core.fetch.leaders import leader_of
from rejoin.client.core.in_flight_requests import send
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.step_context import StepContext
from rejoin.client.core.subscription import PartitionState
from rejoin.protocol.message import Response
from rejoin.protocol.messages.records.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from rejoin.protocol.registry import OFFSET_FOR_LEADER_EPOCH
from rejoin.protocol.types import TopicPartition


def is_valid(state: ConsumerState, ctx: StepContext, topic_partition: TopicPartition, owned: PartitionState) -> bool:
    """Whether records may be fetched from a position; without an epoch there is nothing to hold it against."""
    if owned.epoch < 0:
        return True
    _, current = leader_of(state, topic_partition)
    return current < 0 or owned.validated_for == current


def validate(state: ConsumerState, ctx: StepContext) -> None:
    """Ask the leaders about positions that are not known to be valid, each node in one request."""
    due: dict[Endpoint, dict[TopicPartition, tuple[int, int]]] = {}
    for topic_partition, owned in state.subscription.assignment.items():
        if owned.position is None or is_valid(state, ctx, topic_partition, owned):
            continue
        node, current = leader_of(state, topic_partition)
        if node is None:
            metadata.request_update(state)
        elif ctx.now < owned.retry_at:
            ctx.wake(owned.retry_at)
        else:
            owned.retry_at = ctx.now + ctx.config.request_timeout_ms
            due.setdefault(node, {})[topic_partition] = (current, owned.epoch)
    for node, epochs in due.items():
        request = requests.offset_for_leader_epoch(epochs, ctx.version(OFFSET_FOR_LEADER_EPOCH))
        assignment = state.subscription.assignment
        positions = {each: (assignment[each].position, current) for each, (current, _) in epochs.items()}
        send(state, ctx, request, partial(_answered, positions), partial(_failed, positions), to=node)


_Positions = dict[TopicPartition, tuple[int | None, int]]
"""The position that was asked about, and the leader epoch it was asked in."""


def _answered(
    positions: _Positions, state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response
) -> None:
    assert isinstance(response, OffsetForLeaderEpochResponse)
    for topic in response.topics:
        for answer in topic.partitions:
            topic_partition = TopicPartition(topic.topic, answer.partition)
            owned = state.subscription.assignment.get(topic_partition)
            position, current = positions.get(topic_partition, (None, -1))
            if owned is None or position is None or owned.position != position:
                continue
            match reaction("OffsetForLeaderEpoch", answer.error_code):
                case Reaction.ACCEPT:
                    owned.validated_for, owned.retry_at = current, 0
                    if answer.end_offset < 0 or answer.leader_epoch < 0 or answer.end_offset < position:
                        truncated(state, ctx, topic_partition, owned, answer.end_offset)
                case Reaction.RAISE_TOPICS:
                    state.positions.error = TopicAuthorizationError([topic_partition.topic])
                case _:
                    metadata.request_update(state)
                    owned.retry_at = ctx.now + ctx.config.retry_backoff_ms


def _failed(
    positions: _Positions, state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError
) -> None:
    metadata.request_update(state)
    for topic_partition in positions:
        owned = state.subscription.assignment.get(topic_partition)
        if owned is not None:
            owned.retry_at = ctx.now + ctx.config.retry_backoff_ms


def truncated(
    state: ConsumerState, ctx: StepContext, topic_partition: TopicPartition, owned: PartitionState, end_offset: int
) -> None:
    """The log ends before the position; ``end_offset`` is where they part, or -1 if that is not known."""
    # Kafka: maybeCompleteValidation. With a reset policy the consumer goes on where the logs part.
    policy = ctx.reset_policy()
    if policy is None:
        state.positions.error = LogTruncationError(topic_partition, owned.position or 0, end_offset)
    elif end_offset < 0:
        owned.ask_reset(policy)
    else:
        owned.seek(end_offset)
