"""Heartbeats of groups whose coordinator assigns: when they are sent, their fields, the reactions to responses.

Source: Kafka's AbstractHeartbeatRequestManager, ConsumerHeartbeatRequestManager and ShareHeartbeatRequestManager.
"""

from __future__ import annotations

from typing import Final, TypeVar

from rejoin.client.core.errors import (
    CodedError,
    CoordinatorGivenUpError,
    GroupAuthorizationError,
    KafkaError,
    TopicAuthorizationError,
)
from rejoin.client.core.group import lookup, membership
from rejoin.client.core.group.consumer import transitions
from rejoin.client.core.group.consumer.state import (
    HAS_NO_GROUP,
    IS_LEAVING,
    JOIN_EPOCH,
    SENDS_AT_ONCE,
    SENDS_NOTHING,
    TAKES_ASSIGNMENTS,
    ConsumerMembership,
    LocalAssignment,
    MembershipState,
    SentFields,
)
from rejoin.client.core.group.streams import heartbeats as streams
from rejoin.client.core.group.streams.state import StreamsMembership
from rejoin.client.core.in_flight_requests import send
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.step_context import StepContext, by_topic
from rejoin.journal.events.client import (
    AssignmentAcknowledged,
    GroupJoined,
    HeartbeatFailed,
    TargetAssignmentReceived,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Request, Response
from rejoin.protocol.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    OwnedTopicPartitions,
)
from rejoin.protocol.messages.share.share_group_heartbeat import (
    ShareAssignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from rejoin.protocol.types import TopicPartition

EMPTY_ASSIGNMENT_PAUSE_MS: Final = 400
"""Pause of a share consumer before it takes note of an assignment without partitions, in ms.

A share group's first partitions are initialised after the first member has joined. Source: recorded from Java 4.4.
"""

_Response = ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse | StreamsGroupHeartbeatResponse
_Value = TypeVar("_Value")


def advance(state: ConsumerState, ctx: StepContext) -> None:
    """Send a heartbeat if one is due, else say when the next one is."""
    member = transitions.member_of(state)
    if member.state in SENDS_NOTHING:
        return
    if not lookup.ensure(state, ctx):
        return
    is_leaving = member.state is MembershipState.LEAVING
    if member.request_id is not None and not is_leaving:
        return
    if is_leaving or (member.state in SENDS_AT_ONCE and ctx.now >= member.retry_at):
        _send(state, ctx)
        return
    due_at = max(member.due_at, member.retry_at)
    if member.state in SENDS_AT_ONCE:
        due_at = member.retry_at
    if ctx.now >= due_at:
        _send(state, ctx)
    else:
        ctx.wake(due_at)


def _send(state: ConsumerState, ctx: StepContext) -> None:
    member = transitions.member_of(state)
    request = _request(state, ctx, member)
    member.due_at = ctx.now + member.interval_ms
    request_id = send(state, ctx, request, _answered, _failed, to=state.coordinator, generation=state.generation)
    match member.state:
        case MembershipState.LEAVING:
            # Kafka: the answer is not waited for.
            member.request_id = None
            transitions.left(state, ctx)
            return
        case MembershipState.JOINING:
            member.joined_at = ctx.now
        case MembershipState.ACKNOWLEDGING:
            _report_acknowledgement(state, ctx, member)
            member.enter(MembershipState.STABLE if member.is_reconciled else MembershipState.RECONCILING)
    member.request_id = request_id


def _report_acknowledgement(state: ConsumerState, ctx: StepContext, member: ConsumerMembership) -> None:
    ctx.emit(
        AssignmentAcknowledged(
            partitions=by_topic(state.subscription.owned()),
            reconciliation_ms=ctx.now - member.target_received_at,
            **membership.identity(state, ctx),
        )
    )


def _request(state: ConsumerState, ctx: StepContext, member: ConsumerMembership) -> Request:
    """All fields when it joins, else those that differ from what was last sent."""
    if isinstance(member, StreamsMembership):
        return streams.request(ctx, member)
    config = ctx.config
    joins = member.state is MembershipState.JOINING
    now = _fields(state, ctx, member)
    before, member.sent = member.sent, now
    if state.share is not None:
        leaves = member.state is MembershipState.LEAVING
        return ShareGroupHeartbeatRequest(
            group_id=ctx.group_id,
            member_id=member.member_id,
            member_epoch=member.epoch,
            rack_id=config.client_rack or None if joins else None,
            subscribed_topic_names=() if leaves else _if_new(now.topics, before.topics, joins, None),
        )
    has_new_regex = now.regex != before.regex or (joins and now.regex is not None)
    return ConsumerGroupHeartbeatRequest(
        group_id=ctx.group_id,
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=config.group_instance_id,
        rack_id=config.client_rack or None if joins else None,
        rebalance_timeout_ms=_if_new(now.rebalance_timeout_ms, before.rebalance_timeout_ms, joins, -1),
        subscribed_topic_names=_if_new(now.topics, before.topics, joins, None),
        subscribed_topic_regex=(now.regex or "") if has_new_regex else None,
        server_assignor=_if_new(now.assignor, before.assignor, joins, None),
        topic_partitions=_owned(member.current) if joins or now.assignment != before.assignment else None,
    )


def _fields(state: ConsumerState, ctx: StepContext, member: ConsumerMembership) -> SentFields:
    """All fields of a heartbeat."""
    config, subscription = ctx.config, state.subscription
    return SentFields(
        config.max_poll_interval_ms,
        () if subscription.regex is not None else subscription.topics,
        subscription.regex,
        config.group_remote_assignor or None,
        member.current,
    )


def has_said_all(state: ConsumerState, ctx: StepContext) -> bool:
    """Whether the coordinator has been sent everything about this member."""
    member = transitions.member_of(state)
    return member.sent == _fields(state, ctx, member)


def _if_new(now: _Value, before: _Value, joins: bool, otherwise: _Value) -> _Value:
    return now if joins or now != before else otherwise


def _owned(assignment: LocalAssignment) -> tuple[OwnedTopicPartitions, ...]:
    return tuple(
        OwnedTopicPartitions(topic_id=topic_id, partitions=tuple(sorted(partitions)))
        for topic_id, partitions in assignment.partitions.items()
    )


def _answered(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response) -> None:
    assert isinstance(response, _Response)
    member = transitions.member_of(state)
    is_last = member.request_id == sent.request_id
    if is_last:
        member.request_id = None
    if response.error_code is not ErrorCode.NONE:
        if is_last or member.state in IS_LEAVING:
            _refused(state, ctx, response)
        return
    if not is_last or member.state in HAS_NO_GROUP or member.state is MembershipState.LEAVING:
        return
    member.attempts = member.retry_at = 0
    member.due_at += response.heartbeat_interval_ms - member.interval_ms
    member.interval_ms = response.heartbeat_interval_ms
    if response.member_epoch != member.epoch:
        joins = member.epoch == JOIN_EPOCH
        transitions.set_epoch(state, response.member_epoch)
        if joins:
            ctx.emit(GroupJoined(waited_ms=ctx.now - member.joined_at, **membership.identity(state, ctx)))
    if isinstance(response, StreamsGroupHeartbeatResponse):
        assert isinstance(member, StreamsMembership), "a thread of an application sent the request"
        streams.take_response(state, ctx, member, response)
    elif response.assignment is not None and member.state in TAKES_ASSIGNMENTS:
        _take_target(state, ctx, response.assignment)


def _take_target(state: ConsumerState, ctx: StepContext, assignment: HeartbeatAssignment | ShareAssignment) -> None:
    """The coordinator says what this member should have now."""
    member = transitions.member_of(state)
    partitions = {each.topic_id: frozenset(each.partitions) for each in assignment.topic_partitions}
    if member.target.epoch < 0 or member.target.partitions != partitions:
        member.target = LocalAssignment(member.target.epoch + 1, partitions)
        member.target_received_at = ctx.now
        names = transitions.topic_names(state)
        known = [
            TopicPartition(names[each], index) for each in partitions if each in names for index in partitions[each]
        ]
        ctx.emit(
            TargetAssignmentReceived(
                partitions=by_topic(sorted(known)),
                unknown_topics=len(partitions.keys() - names.keys()),
                **membership.identity(state, ctx),
            )
        )
    if state.share is not None and not partitions:
        member.retry_at = ctx.now + EMPTY_ASSIGNMENT_PAUSE_MS
    transitions.follow_target(member)


def _refused(state: ConsumerState, ctx: StepContext, response: _Response) -> None:
    member, error = transitions.member_of(state), response.error_code
    member.forget_sent()
    ctx.emit(HeartbeatFailed(problem=error.name, **membership.identity(state, ctx)))
    if error is ErrorCode.GROUP_ID_NOT_FOUND and member.state in (*IS_LEAVING, MembershipState.UNSUBSCRIBED):
        return
    match reaction("ConsumerGroupHeartbeat", error):
        case Reaction.FORGET_COORDINATOR:
            lookup.forget(state, ctx, f"error response {error.name}")
            member.attempts = member.retry_at = member.due_at = 0
        case Reaction.BACK_OFF:
            _back_off(member, ctx)
        case Reaction.FORGET_MEMBERSHIP:
            member.attempts = member.retry_at = 0
            transitions.fence(state, ctx)
        case Reaction.RAISE_TOPICS:
            member.failure = TopicAuthorizationError(state.subscription.topics)
            _back_off(member, ctx)
        case _ if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            transitions.fail(state, GroupAuthorizationError(f"not authorized for group {ctx.group_id}"))
        case _ if error is ErrorCode.FENCED_INSTANCE_ID:
            transitions.fail(state, membership.fenced_error(ctx))
        case _:
            transitions.fail(state, CodedError(error, f"{error.name}: {response.error_message or 'no reason given'}"))


def _failed(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError) -> None:
    member = transitions.member_of(state)
    if member.request_id != sent.request_id:
        return
    member.request_id = None
    member.forget_sent()
    if not isinstance(problem, CoordinatorGivenUpError):
        ctx.emit(HeartbeatFailed(problem=str(problem), **membership.identity(state, ctx)))
    _back_off(member, ctx)


def _back_off(member: ConsumerMembership, ctx: StepContext) -> None:
    member.retry_at = ctx.now + ctx.backoff(member.attempts)
    member.due_at = min(member.due_at, member.retry_at)
    member.attempts += 1
