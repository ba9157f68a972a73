"""Which Fetch is sent when, and what its answer means: one in flight to each node, for what is not buffered.

Source: Kafka's AbstractFetch (prepareFetchRequests, handleFetchSuccess) and FetchCollector.handleInitializeErrors.
"""

from __future__ import annotations

from functools import partial

from rejoin.client.core import metadata
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import (
    CodedError,
    CorruptRecordError,
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationError,
    UnexpectedError,
)
from rejoin.client.core.fetch import requests, validation
from rejoin.client.core.fetch.fetched import FetchedBatches
from rejoin.client.core.fetch.leaders import leader_of, learn_leader
from rejoin.client.core.fetch.session import (
    FINAL_EPOCH,
    NO_SESSION,
    FetchContents,
    FetchSessionHandler,
    PartitionRequest,
)
from rejoin.client.core.in_flight_requests import send
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.state.fetching import BufferedFetch
from rejoin.client.core.step_context import StepContext
from rejoin.client.core.subscription import PartitionState
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.records.fetch import (
    FIRST_FETCH_WITH_TOPIC_IDS,
    FetchablePartitionResponse,
    FetchResponse,
)
from rejoin.protocol.records.batch_run import whole
from rejoin.protocol.registry import FETCH
from rejoin.protocol.types import ZERO_UUID, TopicPartition


def send_fetches(state: ConsumerState, ctx: StepContext) -> None:
    """Send a Fetch to each node that has none in flight and leads something to be read."""
    fetching = state.fetching
    # Kafka: what is buffered would drop out of the node's session, so a node waits until all it gave is handed out.
    # What is buffered of a paused partition holds up no other.
    assignment = state.subscription.assignment
    waiting = [each.partition for each in fetching.buffered if each.partition in assignment]
    hosts_buffered = {leader_of(state, each)[0] for each in waiting if assignment[each].fetchable}
    wanted: dict[Endpoint, dict[TopicPartition, PartitionRequest]] = {}
    for partition, owned in assignment.items():
        if not owned.fetchable or not validation.is_valid(state, ctx, partition, owned):
            continue
        leader, epoch = leader_of(state, partition)
        if leader is not None and leader in hosts_buffered:
            continue
        node = _read_replica(state, ctx, owned) or leader
        if node is None:
            metadata.request_update(state)
            continue
        retry_at = fetching.retry_at.get(node.node_id, 0)
        if ctx.now < retry_at:
            ctx.wake(retry_at)
        elif node.node_id not in fetching.in_flight:
            assert owned.position is not None, "a fetchable partition has a position"
            owned.validated_for = epoch
            topic_id = state.cluster.topic_ids.get(partition.topic, ZERO_UUID)
            wanted.setdefault(node, {})[partition] = PartitionRequest(
                topic_id, owned.position, epoch, ctx.config.max_partition_fetch_bytes
            )
    for node, partitions in wanted.items():
        session = fetching.sessions.setdefault(node.node_id, FetchSessionHandler())
        _send(state, ctx, node, session.build(partitions))


def close_sessions(state: ConsumerState, ctx: StepContext) -> None:
    """End the sessions with all nodes; the answers are not waited for."""
    # Kafka: prepareCloseFetchSessionRequests.
    for node_id, session in state.fetching.sessions.items():
        node = state.cluster.nodes.get(node_id)
        if node is not None and session.session_id != NO_SESSION:
            _send(state, ctx, node, FetchContents(session.session_id, FINAL_EPOCH, {}, [], uses_topic_ids=True), 0)


def _send(
    state: ConsumerState, ctx: StepContext, node: Endpoint, contents: FetchContents, timeout_ms: int | None = None
) -> None:
    version = ctx.version(FETCH)
    if not contents.uses_topic_ids:
        version = min(version, FIRST_FETCH_WITH_TOPIC_IDS - 1)
    asked = {partition: wanted.offset for partition, wanted in state.fetching.sessions[node.node_id].partitions.items()}
    names = {topic_id: topic for topic, topic_id in state.cluster.topic_ids.items()}
    state.fetching.in_flight[node.node_id] = send(
        state,
        ctx,
        requests.fetch(ctx.config, contents, version),
        partial(_answered, node, asked, names),
        partial(_failed, node),
        to=node,
        version=version,
        timeout_ms=timeout_ms,
    )


def _read_replica(state: ConsumerState, ctx: StepContext, owned: PartitionState) -> Endpoint | None:
    """The replica that the leader named to read from, as long as that holds (KIP-392)."""
    if owned.read_replica < 0:
        return None
    node = state.cluster.nodes.get(owned.read_replica)
    if node is None or ctx.now >= owned.read_replica_until:
        owned.read_replica = -1
        return None
    return node


# -- answers


def _failed(node: Endpoint, state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError) -> None:
    fetching = state.fetching
    fetching.in_flight.pop(node.node_id, None)
    fetching.sessions[node.node_id].failed()
    fetching.retry_at[node.node_id] = ctx.now + ctx.config.retry_backoff_ms
    for owned in state.subscription.assignment.values():
        if owned.read_replica == node.node_id:
            owned.read_replica = -1
    # Kafka: a lost connection makes NetworkClient ask for the metadata again.
    metadata.request_update(state)


def _answered(
    node: Endpoint,
    asked: dict[TopicPartition, int],
    names: dict[str, str],
    state: ConsumerState,
    ctx: StepContext,
    sent: RequestInFlight,
    response: Response,
) -> None:
    assert isinstance(response, FetchResponse)
    fetching = state.fetching
    fetching.in_flight.pop(node.node_id, None)
    fetching.retry_at.pop(node.node_id, None)
    answers = dict(requests.fetched_partitions(response, names))
    if not fetching.sessions[node.node_id].answered(response.error_code, response.session_id, answers):
        if response.error_code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR or not answers:
            metadata.request_update(state)
        fetching.retry_at[node.node_id] = ctx.now + ctx.config.retry_backoff_ms
        return
    for endpoint in response.node_endpoints:
        state.cluster.nodes.setdefault(endpoint.node_id, Endpoint(endpoint.node_id, endpoint.host, endpoint.port))
    for partition, answer in answers.items():
        owned = state.subscription.assignment.get(partition)
        if owned is None or owned.position != asked.get(partition):
            continue  # Kafka: a stale answer, to an offset from which the position has moved.
        if answer.error_code is not ErrorCode.NONE:
            _partition_failed(state, ctx, partition, owned, answer)
        else:
            _buffer(state, ctx, partition, owned, answer)


def _buffer(
    state: ConsumerState,
    ctx: StepContext,
    partition: TopicPartition,
    owned: PartitionState,
    answer: FetchablePartitionResponse,
) -> None:
    assert owned.position is not None
    is_committed_only = ctx.config.isolation_level == "read_committed"
    owned.end = answer.last_stable_offset if is_committed_only else answer.high_watermark
    if answer.preferred_read_replica >= 0:
        owned.read_replica = answer.preferred_read_replica
        owned.read_replica_until = ctx.now + ctx.config.metadata_max_age_ms
    epoch, end = answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset
    if epoch >= 0:
        validation.truncated(state, ctx, partition, owned, end)
    elif answer.records:
        aborted = (answer.aborted_transactions or ()) if is_committed_only else None
        batches = FetchedBatches(
            partition, owned.position, whole(answer.records), aborted, check_crcs=ctx.config.check_crcs
        )
        state.fetching.buffered.append(BufferedFetch(partition, batches))


def _partition_failed(
    state: ConsumerState,
    ctx: StepContext,
    partition: TopicPartition,
    owned: PartitionState,
    answer: FetchablePartitionResponse,
) -> None:
    error = answer.error_code
    match reaction("Fetch", error):
        case Reaction.REFRESH_METADATA:
            metadata.request_update(state)
            learn_leader(state, partition, answer.current_leader.leader_id, answer.current_leader.leader_epoch)
            owned.read_replica = -1
        case Reaction.RESET_POSITION if owned.read_replica >= 0:
            owned.read_replica = -1
        case Reaction.RESET_POSITION:
            policy = ctx.reset_policy()
            if policy is None:
                text = f"position {owned.position} is out of range for partition {partition}"
                state.positions.error = OffsetOutOfRangeError(text)
            else:
                owned.ask_reset(policy)
        case Reaction.RAISE_TOPICS:
            state.positions.error = TopicAuthorizationError([partition.topic])
        case Reaction.RAISE if error is ErrorCode.CORRUPT_MESSAGE:
            state.positions.error = CorruptRecordError(partition, owned.position or 0, "the broker says so")
        case Reaction.RAISE:
            state.positions.error = CodedError(error)
        case Reaction.RAISE_UNEXPECTED:
            state.positions.error = UnexpectedError(f"Fetch of {partition}", error)
        case _:
            pass  # The next Fetch may do better.
