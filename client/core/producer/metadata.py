"""The topics that records are sent to, and who leads their partitions.

Asked for when a new topic is needed, after errors that a change of leaders explains, and when it has grown old.
Kafka: Metadata, ProducerMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable

from rejoin.client.core import requests
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import InvalidTopicError, TopicAuthorizationError
from rejoin.client.core.producer.context import ProducerContext
from rejoin.client.core.producer.state import KnownLeader, MetadataSent, ProducerCoreState, TopicState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.cluster.metadata import MetadataResponse, MetadataResponseTopic
from rejoin.protocol.messages.leader_hints import LeaderIdAndEpoch, NodeEndpoint
from rejoin.protocol.registry import METADATA
from rejoin.protocol.types import TopicPartition

_UNKNOWN = KnownLeader(None, -1)


def leader_of(state: ProducerCoreState, partition: TopicPartition) -> KnownLeader:
    """Who leads a partition, as far as it is known."""
    topic = state.topics.get(partition.topic)
    if topic is None or partition.partition >= len(topic.leaders):
        return _UNKNOWN
    return topic.leaders[partition.partition]


def request_update(state: ProducerCoreState) -> None:
    """Ask again as soon as the backoff allows."""
    state.metadata.update_requested = True


def ensure_fresh(state: ProducerCoreState, ctx: ProducerContext) -> None:
    """Ask for an update that is wanted or due, as soon as the backoff allows."""
    metadata = state.metadata
    if metadata.request_id is not None or not state.topics:
        return
    due = ctx.now if metadata.refreshed_at is None else metadata.refreshed_at + ctx.config.metadata_max_age_ms
    at = metadata.retry_at if metadata.update_requested else max(due, metadata.retry_at)
    if ctx.now < at:
        ctx.wake(at)
        return
    _forget_idle_topics(state, ctx)
    if not state.topics:
        return
    topics = list(state.topics)
    request = requests.metadata(topics, create=True, version=ctx.version(METADATA))
    metadata.update_requested = False
    metadata.request_id = ctx.send(state, request, MetadataSent(frozenset(topics)))


def _forget_idle_topics(state: ProducerCoreState, ctx: ProducerContext) -> None:
    # Kafka: ProducerMetadata.retainTopic.
    oldest = ctx.now - ctx.config.metadata_max_idle_ms
    waited_for = {parked.produced.topic for parked in state.parked}
    for name, topic in list(state.topics.items()):
        is_idle = topic.used_at < oldest and name not in waited_for
        if is_idle and not any(queue.batches or queue.in_flight for queue in topic.queues.values()):
            del state.topics[name]


def answered(state: ProducerCoreState, ctx: ProducerContext, sent: MetadataSent, response: MetadataResponse) -> None:
    """Take in the cluster's metadata."""
    metadata = state.metadata
    metadata.request_id = None
    metadata.problem = ""
    metadata.refreshed_at = ctx.now
    metadata.version += 1
    endpoints = {broker.node_id: Endpoint(broker.node_id, broker.host, broker.port) for broker in response.brokers}
    again = False
    for described in response.topics:
        topic = state.topics.get(described.name or "")
        if topic is None:
            continue
        match described.error_code:
            case ErrorCode.NONE:
                topic.error = None
                again |= not _take_leaders(topic, described, endpoints)
            case ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                topic.error = TopicAuthorizationError([topic.name])
            case ErrorCode.INVALID_TOPIC_EXCEPTION:
                topic.error = InvalidTopicError(f"invalid topic: {topic.name!r}")
            case _:
                # It does not exist yet, or has no leader: ask until it does.
                topic.error = None
                again = True
    _back_off(state, ctx, again=again)
    metadata.update_requested |= again or not state.topics.keys() <= sent.topics


def _take_leaders(topic: TopicState, described: MetadataResponseTopic, endpoints: dict[int, Endpoint]) -> bool:
    """Take in the leaders of a topic; false where one is missing."""
    leaders = [_UNKNOWN] * len(described.partitions)
    for partition in described.partitions:
        index = partition.partition_index
        if index >= len(leaders):
            continue
        leader = KnownLeader(endpoints.get(partition.leader_id), partition.leader_epoch)
        # Kafka: Metadata.updateLatestMetadata. What is older than known already is stale, and not taken.
        known = topic.leaders[index] if index < len(topic.leaders) else _UNKNOWN
        leaders[index] = known if -1 < leader.epoch < known.epoch else leader
    topic.leaders = leaders
    return all(leader.endpoint is not None for leader in leaders)


def failed(state: ProducerCoreState, ctx: ProducerContext, problem: str) -> None:
    """There is no answer: ask again later."""
    state.metadata.request_id = None
    state.metadata.problem = problem
    state.metadata.update_requested = True
    _back_off(state, ctx, again=True)


def _back_off(state: ProducerCoreState, ctx: ProducerContext, *, again: bool) -> None:
    metadata = state.metadata
    metadata.retry_at = ctx.now + ctx.backoff(metadata.attempts)
    metadata.attempts = metadata.attempts + 1 if again else 0


def take_hint(
    state: ProducerCoreState, partition: TopicPartition, hint: LeaderIdAndEpoch, endpoints: Iterable[NodeEndpoint]
) -> None:
    """A broker that does not lead a partition named the one that does (KIP-951)."""
    topic = state.topics.get(partition.topic)
    if hint.leader_id < 0 or hint.leader_epoch < 0 or topic is None or partition.partition >= len(topic.leaders):
        return
    if hint.leader_epoch <= topic.leaders[partition.partition].epoch:
        return
    for node in endpoints:
        if node.node_id == hint.leader_id:
            endpoint = Endpoint(node.node_id, node.host, node.port)
            topic.leaders[partition.partition] = KnownLeader(endpoint, hint.leader_epoch)
