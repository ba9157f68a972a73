"""Which ShareFetch is sent when, and what its response means.

Source: Kafka's ShareConsumeRequestManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial

from rejoin.client.core import metadata
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.errors import (
    CodedError,
    CorruptRecordError,
    GroupAuthorizationError,
    KafkaError,
    TopicAuthorizationError,
    UnexpectedError,
)
from rejoin.client.core.fetch.fetched import FetchedBatches
from rejoin.client.core.fetch.leaders import leader_of
from rejoin.client.core.group.consumer import transitions
from rejoin.client.core.in_flight_requests import send
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.share.acknowledging import (
    NOT_SENT,
    begin,
    complete,
    fail_all,
    follow_leader,
    renews,
    take_pending,
)
from rejoin.client.core.share.batches import acknowledgement_batches
from rejoin.client.core.share.session import FINAL_EPOCH, SESSION_ERRORS, SessionChange, ShareSessionHandler
from rejoin.client.core.share.state import (
    Acknowledgements,
    AcquiredBatches,
    DeliverySource,
    ShareConsumerState,
    named,
    share_of,
)
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.share.acknowledgements import FIRST_WITH_RENEWALS
from rejoin.protocol.messages.share.share_fetch import (
    ForgottenShareTopic,
    ShareFetchablePartition,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopic,
)
from rejoin.protocol.records.batch_run import whole
from rejoin.protocol.registry import SHARE_FETCH
from rejoin.protocol.types import TopicIdPartition, TopicPartition

ByPartition = Mapping[TopicIdPartition, Acknowledgements]

RECORD_LIMIT = 1
"""The acquire mode that never gives more records than were asked for."""


def send_fetches(state: ConsumerState, ctx: StepContext) -> None:
    """Ask each node for records of what it leads, with the acknowledgements of what it delivered."""
    share = share_of(state)
    wanted = _wanted(state)
    _redirect(state, ctx, share, wanted)
    with_session = [state.cluster.nodes[each] for each in share.sessions if each in state.cluster.nodes]
    nodes = list(dict.fromkeys([*wanted, *with_session]))
    asked = _node_to_ask(share, list(wanted)) if share.limits_records else None
    for node in nodes:
        node_id, partitions = node.node_id, wanted.get(node, [])
        retry_at = share.retry_at.get(node_id, 0)
        if node_id in share.in_flight:
            continue
        if ctx.now < retry_at:
            ctx.wake(retry_at)
            continue
        session = share.sessions.setdefault(node_id, ShareSessionHandler())
        taken = take_pending(share, [each for each in share.pending if each.node_id == node_id]).get(node_id, {})
        if taken and not session.is_open:
            fail_all(share, node_id, taken, CodedError(ErrorCode.NETWORK_EXCEPTION, NOT_SENT))
            taken = {}
        asks = bool(partitions) and (asked is None or asked == node_id)
        if not partitions and not taken:
            if session.is_open:
                _send(state, ctx, node, FINAL_EPOCH, session.change_to(()), {}, asks=False)
        elif asks or taken:
            epoch = session.epoch
            _send(state, ctx, node, epoch, session.change_to(partitions), taken, asks=asks)


def _wanted(state: ConsumerState) -> dict[Endpoint, list[TopicIdPartition]]:
    wanted: dict[Endpoint, list[TopicIdPartition]] = {}
    for partition in state.subscription.assignment:
        node, _ = leader_of(state, partition)
        topic_id = state.cluster.topic_ids.get(partition.topic)
        if node is None or topic_id is None:
            metadata.request_update(state)
        else:
            wanted.setdefault(node, []).append(TopicIdPartition(topic_id, partition.partition, partition.topic))
    return wanted


def _node_to_ask(share: ShareConsumerState, nodes: list[Endpoint]) -> int:
    """With a limit of records: the one node that may be asked for some, in rotation; -1 while one is being asked."""
    if share.asking in share.in_flight:
        return -1
    free = sorted(node.node_id for node in nodes if node.node_id not in share.in_flight)
    return next((each for each in free if each > share.asking), free[0] if free else -1)


def _redirect(
    state: ConsumerState, ctx: StepContext, share: ShareConsumerState, wanted: Mapping[Endpoint, list[TopicIdPartition]]
) -> None:
    """Send acknowledgements of partitions that are no longer read from their node without a ShareFetch."""
    read_from = {(node.node_id, partition) for node, partitions in wanted.items() for partition in partitions}
    elsewhere: list[DeliverySource] = []
    for source in [each for each in share.pending if each not in read_from]:
        leader, _ = leader_of(state, source.name)
        if leader is not None and leader.node_id != source.node_id:
            # Kafka: the new leader has not heard of these records.
            types = share.pending.pop(source)
            error = CodedError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            complete(share, source.node_id, source.partition, types, error)
        else:
            elsewhere.append(source)
    if elsewhere:
        begin(share, take_pending(share, elsewhere), ctx.now + ctx.config.default_api_timeout_ms)


def _send(
    state: ConsumerState,
    ctx: StepContext,
    node: Endpoint,
    epoch: int,
    change: SessionChange,
    acknowledgements: dict[TopicIdPartition, Acknowledgements],
    *,
    asks: bool,
) -> None:
    share, config, version = share_of(state), ctx.config, ctx.version(SHARE_FETCH)
    renewing = renews(acknowledgements)
    asks = asks and not renewing
    topics: dict[str, list[ShareFetchPartition]] = {}
    for partition in dict.fromkeys([*change.added, *acknowledgements]):
        batches = acknowledgement_batches(acknowledgements.get(partition, {}))
        each = ShareFetchPartition(partition_index=partition.partition, acknowledgement_batches=batches)
        topics.setdefault(partition.topic_id, []).append(each)
    forgotten: dict[str, list[int]] = {}
    for partition in () if epoch == FINAL_EPOCH else change.forgotten:
        forgotten.setdefault(partition.topic_id, []).append(partition.partition)
    has_modes = version >= FIRST_WITH_RENEWALS
    request = ShareFetchRequest(
        group_id=ctx.group_id,
        member_id=transitions.member_of(state).member_id,
        share_session_epoch=epoch,
        max_wait_ms=config.fetch_max_wait_ms if asks else 0,
        min_bytes=config.fetch_min_bytes if asks else 0,
        max_bytes=config.fetch_max_bytes if asks else 0,
        max_records=config.max_poll_records if asks else 0,
        batch_size=config.max_poll_records if asks else 0,
        share_acquire_mode=RECORD_LIMIT if share.limits_records and has_modes else 0,
        is_renew_ack=renewing,
        topics=tuple(ShareFetchTopic(topic_id=each, partitions=tuple(found)) for each, found in topics.items()),
        forgotten_topics_data=tuple(
            ForgottenShareTopic(topic_id=each, partitions=tuple(found)) for each, found in forgotten.items()
        ),
    )
    if asks:
        share.asking = node.node_id
    names = {each.topic_id: each.topic for each in [*share.sessions[node.node_id].partitions, *acknowledgements]}
    share.in_flight[node.node_id] = send(
        state,
        ctx,
        request,
        partial(_answered, node.node_id, epoch == FINAL_EPOCH, names, acknowledgements),
        partial(_failed, node.node_id, acknowledgements),
        to=node,
        version=version,
    )


# -- responses


def _failed(
    node_id: int,
    acknowledgements: ByPartition,
    state: ConsumerState,
    ctx: StepContext,
    sent: RequestInFlight,
    problem: KafkaError,
) -> None:
    share = share_of(state)
    share.in_flight.pop(node_id, None)
    share.sessions[node_id].reset()
    share.retry_at[node_id] = ctx.now + ctx.config.retry_backoff_ms
    fail_all(share, node_id, acknowledgements, problem)
    metadata.request_update(state)


def _answered(
    node_id: int,
    closes: bool,
    names: Mapping[str, str],
    acknowledgements: ByPartition,
    state: ConsumerState,
    ctx: StepContext,
    sent: RequestInFlight,
    response: Response,
) -> None:
    assert isinstance(response, ShareFetchResponse)
    share = share_of(state)
    share.in_flight.pop(node_id, None)
    share.retry_at.pop(node_id, None)
    is_good = share.sessions[node_id].answered(response.error_code)
    if closes:
        del share.sessions[node_id]
    if not is_good:
        fail_all(share, node_id, acknowledgements, CodedError(response.error_code))
        _refused(state, ctx, node_id, response.error_code)
        return
    if response.acquisition_lock_timeout_ms > 0:
        share.lock_timeout_ms = response.acquisition_lock_timeout_ms
    left = dict(acknowledgements)
    for topic in response.responses:
        for answer in topic.partitions:
            name = names.get(topic.topic_id)
            if name is None:
                continue
            partition = TopicIdPartition(topic.topic_id, answer.partition_index, name)
            types = left.pop(partition, None)
            if types is not None:
                _acknowledged(state, node_id, partition, types, answer, response)
            _take_partition(state, ctx, DeliverySource(node_id, partition), answer, response)
    fail_all(share, node_id, left, CodedError(ErrorCode.UNKNOWN_SERVER_ERROR))


def _refused(state: ConsumerState, ctx: StepContext, node_id: int, error: ErrorCode) -> None:
    if error in SESSION_ERRORS:
        return
    share_of(state).retry_at[node_id] = ctx.now + ctx.config.retry_backoff_ms
    _react(state, ctx, None, error)


def _react(state: ConsumerState, ctx: StepContext, partition: TopicPartition | None, error: ErrorCode) -> None:
    share = share_of(state)
    match reaction("ShareFetch", error):
        case Reaction.RAISE_TOPICS:
            share.error = TopicAuthorizationError([partition.topic] if partition else state.subscription.topics)
        case Reaction.RAISE if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            share.error = GroupAuthorizationError(f"not authorized for group {ctx.group_id}")
        case Reaction.RAISE if error is ErrorCode.CORRUPT_MESSAGE and partition is not None:
            share.error = CorruptRecordError(partition, 0, "the broker says so")
        case Reaction.RAISE:
            share.error = CodedError(error)
        case Reaction.RAISE_UNEXPECTED:
            share.error = UnexpectedError("ShareFetch" + (f" of {partition}" if partition else ""), error)
        case _:
            pass  # The next ShareFetch may do better.


def _acknowledged(
    state: ConsumerState,
    node_id: int,
    partition: TopicIdPartition,
    types: Acknowledgements,
    answer: ShareFetchablePartition,
    response: ShareFetchResponse,
) -> None:
    error = answer.acknowledge_error_code
    if error is not ErrorCode.NONE:
        follow_leader(state, named(partition), error, answer.current_leader, response.node_endpoints)
    complete(share_of(state), node_id, partition, types, None if error is ErrorCode.NONE else CodedError(error))


def _take_partition(
    state: ConsumerState,
    ctx: StepContext,
    source: DeliverySource,
    answer: ShareFetchablePartition,
    response: ShareFetchResponse,
) -> None:
    error, name = answer.error_code, source.name
    if error is not ErrorCode.NONE:
        if not follow_leader(state, name, error, answer.current_leader, response.node_endpoints):
            share_of(state).retry_at[source.node_id] = ctx.now + ctx.config.retry_backoff_ms
            _react(state, ctx, name, error)
        return
    acquired = [(each.first_offset, each.last_offset, each.delivery_count) for each in answer.acquired_records]
    if acquired:
        acquired.sort()
        # Records of aborted transactions are not acquired, so that nothing is left out here.
        batches = FetchedBatches(name, acquired[0][0], whole(answer.records), None, check_crcs=ctx.config.check_crcs)
        share_of(state).buffered.append(AcquiredBatches(source, batches, deque(acquired)))
