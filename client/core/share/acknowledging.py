"""Acknowledgements: what the user says about delivered records, and the ShareAcknowledge requests of commits.

Source: Kafka's ShareConsumerImpl, ShareFetch and ShareConsumeRequestManager.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Final

from rejoin.client.core import metadata
from rejoin.client.core.effects import AcknowledgementCallback, AcknowledgementsCommitted, CallDone, Endpoint
from rejoin.client.core.errors import (
    CodedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
)
from rejoin.client.core.fetch.leaders import learn_leader
from rejoin.client.core.group.consumer import transitions
from rejoin.client.core.in_flight_requests import send
from rejoin.client.core.inputs import Token
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.share.batches import acknowledgement_batches
from rejoin.client.core.share.inputs import RecordAcknowledged, ShareCommitAsked
from rejoin.client.core.share.session import FINAL_EPOCH
from rejoin.client.core.share.state import (
    AcknowledgeCall,
    Acknowledgements,
    Completed,
    DeliverySource,
    ShareConsumerState,
    named,
    share_of,
)
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.step_context import StepContext
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.leader_hints import NodeEndpoint
from rejoin.protocol.messages.share.acknowledgements import FIRST_WITH_RENEWALS, AcknowledgeType, ShareLeader
from rejoin.protocol.messages.share.share_acknowledge import (
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopic,
)
from rejoin.protocol.registry import SHARE_ACKNOWLEDGE
from rejoin.protocol.types import TopicIdPartition, TopicPartition

Unread = Collection[tuple[str, int, int]]
ByNode = dict[int, dict[TopicIdPartition, Acknowledgements]]
ByPartition = Mapping[TopicIdPartition, Acknowledgements]

NOT_SENT: Final = "the session with the node is not open, so its records were not acknowledged"

# -- what the user says


def acknowledge(state: ConsumerState, ctx: StepContext, what: RecordAcknowledged) -> None:
    """Note the type of one record; a later one replaces it until it is sent."""
    ctx.emit(CallDone(what.token, _noted(state, ctx, what)))


def _noted(state: ConsumerState, ctx: StepContext, what: RecordAcknowledged) -> KafkaError | None:
    share = share_of(state)
    if not share.is_explicit:
        return IllegalStateError("share.acknowledgement.mode is implicit: each poll accepts the records of the last")
    if what.type == AcknowledgeType.RENEW and ctx.version(SHARE_ACKNOWLEDGE) < FIRST_WITH_RENEWALS:
        return UnsupportedVersionError("the broker cannot renew locks: it speaks no version 2 of ShareAcknowledge")
    for source, delivery in share.deliveries.items():
        if source.name == (what.topic, what.partition) and what.offset in delivery.records:
            delivery.acknowledged[what.offset] = int(what.type)
            return None
    where = f"{what.topic}-{what.partition}"
    return IllegalStateError(f"the record of {where} at offset {what.offset} is not waiting to be acknowledged")


def accept_delivered(share: ShareConsumerState, unread: Unread = ()) -> None:
    """In implicit mode: accept what the user has, except for records that were not handed out yet."""
    if share.is_explicit:
        return
    for source, delivery in share.deliveries.items():
        for offset in delivery.records:
            if (*source.name, offset) not in unread:
                delivery.acknowledged[offset] = AcknowledgeType.ACCEPT


def collect(share: ShareConsumerState) -> None:
    """Move what the user has acknowledged to the acknowledgements that are to be sent."""
    for source, delivery in list(share.deliveries.items()):
        for offset, kind in delivery.acknowledged.items():
            record = delivery.records.pop(offset)
            if kind == AcknowledgeType.RENEW:
                share.renewing.setdefault(source, {})[offset] = record
        if delivery.acknowledged:
            share.pending.setdefault(source, {}).update(delivery.acknowledged)
            delivery.acknowledged = {}
        if not delivery.records:
            del share.deliveries[source]


def take_pending(
    share: ShareConsumerState, sources: Iterable[DeliverySource]
) -> dict[int, dict[TopicIdPartition, Acknowledgements]]:
    """Acknowledgements of these sources, by node; they are taken out."""
    taken: ByNode = {}
    for source in list(sources):
        acknowledgements = share.pending.pop(source, None)
        if acknowledgements:
            taken.setdefault(source.node_id, {})[source.partition] = acknowledgements
    return taken


def renews(acknowledgements: ByPartition) -> bool:
    """Whether any lock is to be renewed."""
    return any(AcknowledgeType.RENEW in each.values() for each in acknowledgements.values())


# -- results


def complete(
    share: ShareConsumerState,
    node_id: int,
    partition: TopicIdPartition,
    acknowledgements: Acknowledgements,
    error: KafkaError | None,
    call: AcknowledgeCall | None = None,
) -> None:
    """Acknowledgements have their result. Renewed records go back to the user."""
    source = DeliverySource(node_id, partition)
    renewing = share.renewing.get(source, {})
    for offset, kind in acknowledgements.items():
        record = renewing.pop(offset, None) if kind == AcknowledgeType.RENEW else None
        if record is not None and error is None:
            share.renewed.setdefault(source, {})[offset] = record
    if not renewing:
        share.renewing.pop(source, None)
    share.completed.append(Completed(named(partition), tuple(sorted(acknowledgements)), error))
    if call is not None:
        call.results[named(partition)] = call.results.get(named(partition)) or error


def fail_all(
    share: ShareConsumerState, node_id: int, of: ByPartition, error: KafkaError, call: AcknowledgeCall | None = None
) -> None:
    """All acknowledgements of a request have failed."""
    for partition, acknowledgements in of.items():
        complete(share, node_id, partition, acknowledgements, error, call)


def run_callbacks(share: ShareConsumerState, ctx: StepContext) -> None:
    """Hand results to the user's callback; only while a call of the user's is open."""
    while share.completed:
        done = share.completed.popleft()
        ctx.emit(AcknowledgementCallback(done.partition, done.offsets, done.error))


def follow_leader(
    state: ConsumerState,
    partition: TopicPartition,
    error: ErrorCode,
    leader: ShareLeader,
    endpoints: Iterable[NodeEndpoint],
) -> bool:
    """Look for a new leader if the error of a partition says so; false for other errors."""
    if reaction("ShareFetch", error) is not Reaction.REFRESH_METADATA:
        return False
    for node in endpoints:
        state.cluster.nodes.setdefault(node.node_id, Endpoint(node.node_id, node.host, node.port))
    metadata.request_update(state)
    if leader.leader_epoch > 0:  # Kafka: a reply without a hint has 0 for both.
        learn_leader(state, partition, leader.leader_id, leader.leader_epoch)
    return True


# -- commits


def commit(state: ConsumerState, ctx: StepContext, what: ShareCommitAsked) -> None:
    """Send all acknowledgements by ShareAcknowledge."""
    share = share_of(state)
    accept_delivered(share, what.unread)
    collect(share)
    timeout = ctx.config.default_api_timeout_ms if what.timeout_ms is None else what.timeout_ms
    begin(share, take_pending(share, share.pending), ctx.now + timeout, what.token)


def begin(
    share: ShareConsumerState,
    waiting: ByNode,
    until: int,
    token: Token = None,
    *,
    closes: bool = False,
) -> AcknowledgeCall:
    """Send acknowledgements as soon as their nodes have answered what is in flight."""
    call = AcknowledgeCall(token, until, waiting, closes=closes)
    share.calls.append(call)
    return call


def advance(state: ConsumerState, ctx: StepContext) -> None:
    """Send what can be sent, and end the calls that have all their results."""
    share = share_of(state)
    for call in share.calls:
        for node_id in list(call.waiting):
            _advance_node(state, ctx, share, call, node_id)
    for call in [each for each in share.calls if each.is_done]:
        share.calls.remove(call)
        if call.token is not None:
            run_callbacks(share, ctx)
            ctx.emit(AcknowledgementsCommitted(call.token, call.results))


def _advance_node(
    state: ConsumerState, ctx: StepContext, share: ShareConsumerState, call: AcknowledgeCall, node_id: int
) -> None:
    waiting = call.waiting[node_id]
    session, node = share.sessions.get(node_id), state.cluster.nodes.get(node_id)
    if ctx.now >= call.until:
        del call.waiting[node_id]
        fail_all(share, node_id, waiting, KafkaTimeoutError("no result of the acknowledgements in time"), call)
    elif session is None or not session.is_open or node is None:
        # Kafka: a session cannot begin with acknowledgements.
        del call.waiting[node_id]
        fail_all(share, node_id, waiting, CodedError(ErrorCode.NETWORK_EXCEPTION, NOT_SENT), call)
    elif node_id in share.in_flight:
        ctx.wake(call.until)
    elif ctx.now < call.retry_at:
        ctx.wake(min(call.retry_at, call.until))
    else:
        del call.waiting[node_id]
        _send(state, ctx, share, call, node, waiting)
        ctx.wake(call.until)


def _send(
    state: ConsumerState,
    ctx: StepContext,
    share: ShareConsumerState,
    call: AcknowledgeCall,
    node: Endpoint,
    acknowledgements: dict[TopicIdPartition, Acknowledgements],
) -> None:
    topics: dict[str, list[ShareAcknowledgePartition]] = {}
    for partition, types in acknowledgements.items():
        topics.setdefault(partition.topic_id, []).append(
            ShareAcknowledgePartition(
                partition_index=partition.partition, acknowledgement_batches=acknowledgement_batches(types)
            )
        )
    request = ShareAcknowledgeRequest(
        group_id=ctx.group_id,
        member_id=transitions.member_of(state).member_id,
        share_session_epoch=FINAL_EPOCH if call.closes else share.sessions[node.node_id].epoch,
        is_renew_ack=renews(acknowledgements),
        topics=tuple(ShareAcknowledgeTopic(topic_id=each, partitions=tuple(found)) for each, found in topics.items()),
    )
    call.in_flight.add(node.node_id)
    share.in_flight[node.node_id] = send(
        state,
        ctx,
        request,
        partial(_answered, call, node.node_id, acknowledgements),
        partial(_failed, call, node.node_id, acknowledgements),
        to=node,
    )


def _failed(
    call: AcknowledgeCall,
    node_id: int,
    acknowledgements: dict[TopicIdPartition, Acknowledgements],
    state: ConsumerState,
    ctx: StepContext,
    sent: RequestInFlight,
    problem: KafkaError,
) -> None:
    share = share_of(state)
    share.in_flight.pop(node_id, None)
    call.in_flight.discard(node_id)
    share.sessions[node_id].reset()
    fail_all(share, node_id, acknowledgements, problem, call)
    metadata.request_update(state)


def _answered(
    call: AcknowledgeCall,
    node_id: int,
    acknowledgements: dict[TopicIdPartition, Acknowledgements],
    state: ConsumerState,
    ctx: StepContext,
    sent: RequestInFlight,
    response: Response,
) -> None:
    assert isinstance(response, ShareAcknowledgeResponse)
    share = share_of(state)
    share.in_flight.pop(node_id, None)
    call.in_flight.discard(node_id)
    session = share.sessions[node_id]
    is_good = session.answered(response.error_code)
    if call.closes:
        session.reset()
    if not is_good:
        if response.error_code.retriable and session.is_open:
            _retry(call, ctx, node_id, acknowledgements)
        else:
            fail_all(share, node_id, acknowledgements, CodedError(response.error_code), call)
        return
    if response.acquisition_lock_timeout_ms > 0:
        share.lock_timeout_ms = response.acquisition_lock_timeout_ms
    answers = {
        (topic.topic_id, each.partition_index): each for topic in response.responses for each in topic.partitions
    }
    again: dict[TopicIdPartition, Acknowledgements] = {}
    for partition, types in acknowledgements.items():
        answer = answers.get((partition.topic_id, partition.partition))
        error = ErrorCode.UNKNOWN_SERVER_ERROR if answer is None else answer.error_code
        if answer is not None and error is not ErrorCode.NONE:
            moved = follow_leader(state, named(partition), error, answer.current_leader, response.node_endpoints)
            if error.retriable and not moved and session.is_open:
                again[partition] = types
                continue
        complete(share, node_id, partition, types, None if error is ErrorCode.NONE else CodedError(error), call)
    if again:
        _retry(call, ctx, node_id, again)


def _retry(
    call: AcknowledgeCall, ctx: StepContext, node_id: int, acknowledgements: dict[TopicIdPartition, Acknowledgements]
) -> None:
    call.waiting[node_id] = acknowledgements
    call.retry_at = ctx.now + ctx.backoff(call.attempts)
    call.attempts += 1
