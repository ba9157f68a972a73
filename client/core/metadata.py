"""The topics this consumer needs to know: asked for when that changes, after errors, and when they have grown old.

Updates that are asked for are numbered, so that a caller can wait for an answer to its own (:func:`seen`).

Source: Kafka's Metadata, ConsumerMetadata and ConsumerCoordinator.MetadataSnapshot.
"""

from __future__ import annotations

from rejoin.client.assignors import ClusterView
from rejoin.client.core import requests
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import InvalidTopicError, KafkaError, TopicAuthorizationError
from rejoin.client.core.in_flight_requests import send
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight, TopicInfo
from rejoin.client.core.state.fetching import LeaderAndEpoch
from rejoin.client.core.state.membership import MetadataSnapshot
from rejoin.client.core.step_context import StepContext
from rejoin.client.core.subscription import SubscriptionType
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.cluster.metadata import MetadataResponse, MetadataResponseTopic
from rejoin.protocol.registry import METADATA
from rejoin.protocol.types import TopicPartition


def request_update(state: ConsumerState) -> int:
    """Ask again as soon as the backoff allows, and return the number of this update."""
    state.metadata.update_requested = True
    state.metadata.last_update += 1
    return state.metadata.last_update


def wanted_update(state: ConsumerState, ctx: StepContext) -> int:
    """The number of the update that is wanted or due already, or 0 when what is known will do."""
    if not is_stale(state, ctx):
        return 0
    return state.metadata.last_update if state.metadata.update_requested else request_update(state)


def seen(state: ConsumerState, update: int) -> bool:
    """True when an answer has come that was asked for no earlier than update ``update``."""
    return state.metadata.update_seen >= update


def is_stale(state: ConsumerState, ctx: StepContext) -> bool:
    """True when an update is wanted or due."""
    metadata = state.metadata
    if metadata.update_requested or metadata.refreshed_at is None:
        return True
    return ctx.now >= metadata.refreshed_at + ctx.config.metadata_max_age_ms


def may_refresh(state: ConsumerState, ctx: StepContext) -> bool:
    """True when the last update is long enough ago for another one."""
    last = state.metadata.refreshed_at
    return last is None or ctx.now >= last + ctx.config.retry_backoff_ms


def ensure_fresh(state: ConsumerState, ctx: StepContext) -> None:
    """Ask for an update that is wanted, as soon as the backoff allows; else wake when one is due."""
    metadata = state.metadata
    if not is_stale(state, ctx):
        assert metadata.refreshed_at is not None
        ctx.wake(metadata.refreshed_at + ctx.config.metadata_max_age_ms)
    elif metadata.request_id is None:
        if ctx.now < metadata.retry_at:
            ctx.wake(metadata.retry_at)
        else:
            _send(state, ctx)


def raise_error(state: ConsumerState) -> None:
    """Raise, once, what made an update impossible."""
    if state.metadata.error is not None:
        error, state.metadata.error = state.metadata.error, None
        raise error


def _send(state: ConsumerState, ctx: StepContext) -> None:
    subscription, metadata = state.subscription, state.metadata
    topics = None if subscription.type is SubscriptionType.AUTO_PATTERN else subscription.metadata_topics()
    if topics is not None and state.cluster.asked_topics:
        topics = tuple(sorted({*topics, *state.cluster.asked_topics}))
    request = requests.metadata(topics, create=ctx.config.allow_auto_create_topics, version=ctx.version(METADATA))
    metadata.update_in_flight = metadata.last_update
    metadata.request_id = send(state, ctx, request, _answered, _failed)


def _answered(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response) -> None:
    assert isinstance(response, MetadataResponse)
    metadata = state.metadata
    metadata.request_id = None
    racks = {broker.node_id: broker.rack for broker in response.brokers}
    topics: dict[str, TopicInfo] = {}
    metadata.topic_errors = {}
    again = False
    forbidden: list[str] = []
    for topic in response.topics:
        name = topic.name or ""
        match topic.error_code:
            case ErrorCode.NONE:
                topics[name] = _read_topic(topic, racks)
            case ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                forbidden.append(name)
            case ErrorCode.INVALID_TOPIC_EXCEPTION:
                metadata.error = InvalidTopicError(f"invalid topic: {name!r}")
            case _:
                # Kafka: a topic that does not exist yet is asked for again until it does.
                metadata.topic_errors[name] = topic.error_code
                again = True
    if ctx.reads_records:
        _learn_leaders(state, response)
    elif state.membership is not None:
        known = {topic.name or "": topic.topic_id for topic in response.topics if topic.error_code is ErrorCode.NONE}
        state.cluster.topic_ids |= known
    if forbidden:
        metadata.error = TopicAuthorizationError(forbidden)
    metadata.topics = topics
    metadata.version += 1
    metadata.update_seen = metadata.update_in_flight
    metadata.refreshed_at = ctx.now
    metadata.update_requested = again or metadata.update_seen != metadata.last_update
    metadata.attempts = metadata.attempts + 1 if again else 0
    metadata.retry_at = ctx.now + ctx.backoff(metadata.attempts - 1) if again else ctx.now


def _learn_leaders(state: ConsumerState, response: MetadataResponse) -> None:
    """Take in nodes and leaders; a leader of an older epoch than is known does not count."""
    # Kafka: Metadata.updateLatestMetadata.
    cluster = state.cluster
    cluster.nodes = {node.node_id: Endpoint(node.node_id, node.host, node.port) for node in response.brokers}
    for topic in response.topics:
        if topic.error_code is not ErrorCode.NONE or topic.name is None:
            continue
        is_new = cluster.topic_ids.get(topic.name) != topic.topic_id
        cluster.topic_ids[topic.name] = topic.topic_id
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition_index)
            known = cluster.leaders.get(key)
            if known is None or is_new or partition.leader_epoch >= known.epoch or partition.leader_epoch < 0:
                cluster.leaders[key] = LeaderAndEpoch(partition.leader_id, partition.leader_epoch)


def _failed(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError) -> None:
    metadata = state.metadata
    metadata.request_id = None
    metadata.update_requested = True
    metadata.retry_at = ctx.now + ctx.backoff(metadata.attempts)
    metadata.attempts += 1


def matching(state: ConsumerState, ctx: StepContext) -> list[str]:
    """Known topics that match the subscribed pattern."""
    hide = ctx.config.exclude_internal_topics
    return [
        name
        for name, topic in state.metadata.topics.items()
        if not (topic.internal and hide) and state.subscription.matches(name)
    ]


def snapshot(state: ConsumerState, ctx: StepContext) -> MetadataSnapshot:
    """The topics of the subscription, and of the group for its leader, as they are known now."""
    racks_count = bool(ctx.config.client_rack)
    topics = state.metadata.topics
    return MetadataSnapshot(
        state.metadata.version,
        {
            name: (
                topics[name].partitions,
                tuple(frozenset(racks) for racks in topics[name].racks) if racks_count else (),
            )
            for name in state.subscription.metadata_topics()
            if name in topics
        },
    )


def cluster(state: ConsumerState) -> ClusterView:
    """The topics as an assignor sees them."""
    topics = state.metadata.topics
    return ClusterView(
        {name: topic.partitions for name, topic in topics.items()},
        {name: topic.racks for name, topic in topics.items()},
    )


_CACHE: dict[int, tuple[MetadataResponseTopic, dict[int, str | None], TopicInfo]] = {}
"""The topics that were read last, by identity: consumers that share an answer need not each read it."""

_CACHE_SIZE = 64
_MOST_PARTITIONS = 10_000
"""Larger topics are read each time: they must not stay in memory behind their consumers."""


def _read_topic(topic: MetadataResponseTopic, racks: dict[int, str | None]) -> TopicInfo:
    cached = _CACHE.get(id(topic))
    if cached is not None and cached[0] is topic and cached[1] == racks:
        return cached[2]
    if len(_CACHE) >= _CACHE_SIZE:
        _CACHE.clear()
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    info = TopicInfo(
        len(partitions),
        tuple(tuple(racks.get(node) for node in partition.replica_nodes) for partition in partitions),
        topic.is_internal,
    )
    if len(partitions) <= _MOST_PARTITIONS:
        _CACHE[id(topic)] = (topic, racks, info)
    return info
