"""One try to join: JoinGroup, as leader the assignor, then SyncGroup. The join loop decides what its outcome means.

Always true: there is at most one attempt, and an answer to JoinGroup or SyncGroup belongs to it.

Source: Kafka's AbstractCoordinator (JoinGroupResponseHandler, SyncGroupResponseHandler) and
ConsumerCoordinator.onLeaderElected.
"""

from __future__ import annotations

from rejoin.client.core import metadata, requests
from rejoin.client.core.errors import (
    CodedError,
    GroupAuthorizationError,
    IllegalStateError,
    KafkaError,
    UnexpectedError,
    UnjoinedGroupError,
)
from rejoin.client.core.group import heartbeat_timers, lookup, membership
from rejoin.client.core.group.leader import compute_assignment, read_members
from rejoin.client.core.in_flight_requests import send
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.state.membership import Generation, MemberState, PendingJoin
from rejoin.client.core.step_context import StepContext, by_topic
from rejoin.client.core.subscription import SubscriptionType
from rejoin.journal.events.client import AssignmentSkipped, Fenced, GenerationJoined, GroupSynced, JoinSent
from rejoin.protocol.embedded.consumer_protocol import Subscription, decode_assignment, encode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.groups.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupResponse
from rejoin.protocol.registry import JOIN_GROUP, SYNC_GROUP
from rejoin.protocol.types import TopicPartition


def needed(state: ConsumerState, ctx: StepContext) -> bool:
    """True when this consumer has to join, or is about to."""
    # Kafka: ConsumerCoordinator.rejoinNeededOrPending.
    join = state.join
    if join.assigned_from is not None and not join.assigned_from.matches(join.snapshot):
        membership.request_rejoin_unless_asked(state, ctx, "cached metadata has changed")
        return True
    if join.joined_topics is not None and join.joined_topics != state.subscription.topics:
        membership.request_rejoin_unless_asked(state, ctx, "subscription has changed")
        return True
    return state.rejoin_needed or join.attempt is not None


def follow_metadata(state: ConsumerState, ctx: StepContext) -> None:
    """Match the pattern against current metadata, and remember the topics that a leader watches."""
    # Kafka: maybeUpdateSubscriptionMetadata.
    if state.metadata.version <= state.join.snapshot.version:
        return
    if state.subscription.type is SubscriptionType.AUTO_PATTERN:
        state.subscription.change_topics(metadata.matching(state, ctx))
    state.join.snapshot = metadata.snapshot(state, ctx)


# -- JoinGroup


def send_join(state: ConsumerState, ctx: StepContext) -> PendingJoin:
    state.member_state = MemberState.PREPARING_REBALANCE
    join, generation = state.join, state.generation
    if join.rebalance_began_at is None:
        join.rebalance_began_at = ctx.now
    topics = state.subscription.topics
    owned = tuple(state.subscription.owned())
    join.joined_topics = topics
    request = requests.join_group(
        ctx.config,
        ctx.group_id,
        generation.member_id,
        _protocols(state, ctx, topics, owned),
        state.rejoin_reason,
        ctx.version(JOIN_GROUP),
    )
    join.attempt = PendingJoin(ctx.now)
    ctx.emit(
        JoinSent(
            reason=state.rejoin_reason,
            topics=list(topics),
            owned=by_topic(owned),
            **membership.identity(state, ctx),
        )
    )
    send(
        state,
        ctx,
        request,
        _join_answered,
        _failed,
        to=state.coordinator,
        generation=generation,
        timeout_ms=ctx.config.join_timeout_ms,
    )
    return join.attempt


def _protocols(
    state: ConsumerState, ctx: StepContext, topics: tuple[str, ...], owned: tuple[TopicPartition, ...]
) -> tuple[JoinGroupRequestProtocol, ...]:
    generation_id, rack = state.generation.generation_id, ctx.config.client_rack or None
    return tuple(
        JoinGroupRequestProtocol(
            name=name,
            metadata=encode_subscription(
                Subscription(topics, assignor.subscription_user_data(topics), owned, generation_id, rack)
            ),
        )
        for name, assignor in ctx.assignors.items()
    )


def _join_answered(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response) -> None:
    assert isinstance(response, JoinGroupResponse)
    attempt = state.join.attempt
    assert attempt is not None, "a JoinGroup belongs to an attempt"
    error = response.error_code
    if error is not ErrorCode.NONE:
        attempt.outcome = _react_to_join(state, ctx, error, response, sent)
    elif response.protocol_type not in {None, requests.PROTOCOL_TYPE}:
        attempt.outcome = CodedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    elif state.member_state is not MemberState.PREPARING_REBALANCE:
        attempt.outcome = UnjoinedGroupError("the membership ended while JoinGroup was in flight")
    else:
        _begin_generation(state, ctx, attempt, response)


def _begin_generation(
    state: ConsumerState, ctx: StepContext, attempt: PendingJoin, response: JoinGroupResponse
) -> None:
    state.member_state = MemberState.COMPLETING_REBALANCE
    heartbeat_timers.enable(state, ctx)
    state.generation = Generation(response.generation_id, response.member_id, response.protocol_name or None)
    ctx.emit(
        GenerationJoined(
            protocol=response.protocol_name or "",
            leader=response.leader,
            member_count=len(response.members),
            waited_ms=ctx.now - attempt.started_at,
            **membership.identity(state, ctx),
        )
    )
    if response.leader == response.member_id:
        _lead(state, ctx, attempt, response)
    else:
        _send_sync(state, ctx, attempt, {})


def _react_to_join(
    state: ConsumerState, ctx: StepContext, error: ErrorCode, response: JoinGroupResponse, sent: RequestInFlight
) -> KafkaError:
    match reaction("JoinGroup", error):
        case Reaction.FORGET_COORDINATOR:
            lookup.forget(state, ctx, f"error response {error.name}")
        case Reaction.FORGET_MEMBERSHIP:
            if sent.generation == state.generation:
                membership.reset_on_error(state, ctx, "JOIN_GROUP", error)
        case Reaction.TAKE_MEMBER_ID:
            state.generation = Generation(-1, response.member_id, None)
            reason = f"need to re-join with the given member-id: {response.member_id}"
            membership.request_rejoin(state, ctx, reason)
        case Reaction.RAISE_UNEXPECTED:
            return UnexpectedError("JoinGroup", error)
    return _error_for(state, ctx, error, sent)


def _error_for(state: ConsumerState, ctx: StepContext, error: ErrorCode, sent: RequestInFlight) -> KafkaError:
    if error is ErrorCode.FENCED_INSTANCE_ID:
        ctx.emit(Fenced(api=sent.api.name, **membership.identity(state, ctx)))
        return membership.fenced_error(ctx)
    if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return GroupAuthorizationError(f"not authorized for group {ctx.group_id}")
    if error is ErrorCode.GROUP_MAX_SIZE_REACHED:
        return CodedError(error, f"group {ctx.group_id} already has as many members as it may")
    return CodedError(error)


def _failed(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError) -> None:
    attempt = state.join.attempt
    assert attempt is not None, "a JoinGroup or SyncGroup belongs to an attempt"
    attempt.outcome = problem


# -- leading


def _lead(state: ConsumerState, ctx: StepContext, attempt: PendingJoin, response: JoinGroupResponse) -> None:
    try:
        if response.protocol_name not in ctx.assignors:
            raise IllegalStateError(f"the coordinator chose assignor {response.protocol_name!r}, not one of ours")
        attempt.candidates = read_members(response)
    except KafkaError as error:
        attempt.outcome = error
        return
    attempt.skip_assignment = response.skip_assignment
    if state.subscription.watch_group_topics(attempt.candidates.topics):
        metadata.request_update(state)
    attempt.metadata_update = metadata.wanted_update(state, ctx)
    lead_on(state, ctx, attempt)


def lead_on(state: ConsumerState, ctx: StepContext, attempt: PendingJoin) -> None:
    """As leader: assign, once the topics of the whole group are known."""
    if attempt.candidates is None or attempt.outcome is not None:
        return
    if state.member_state is not MemberState.COMPLETING_REBALANCE:
        # Differs: Kafka's heartbeat thread cannot run while the leader waits for metadata; ours goes on.
        attempt.candidates = None
        attempt.outcome = CodedError(ErrorCode.ILLEGAL_GENERATION)
        return
    if not metadata.seen(state, attempt.metadata_update):
        metadata.ensure_fresh(state, ctx)
        return
    candidates, attempt.candidates = attempt.candidates, None
    assignments: dict[str, bytes] = {}
    try:
        metadata.raise_error(state)
        follow_metadata(state, ctx)
        state.is_leader = True
        if attempt.skip_assignment:
            # Kafka: KIP-814. The leader still watches the topics, now that it is back.
            ctx.emit(AssignmentSkipped(**membership.identity(state, ctx)))
        else:
            assignments = compute_assignment(state, ctx, candidates)
        state.join.assigned_from = state.join.snapshot
    except KafkaError as error:
        # Kafka: thrown from poll; heartbeats go on, and the next poll joins again, which frees the others.
        attempt.outcome = error
        return
    _send_sync(state, ctx, attempt, assignments)


# -- SyncGroup


def _send_sync(state: ConsumerState, ctx: StepContext, attempt: PendingJoin, assignments: dict[str, bytes]) -> None:
    if state.coordinator is None:
        attempt.outcome = lookup.not_available()
        return
    generation = state.generation
    request = requests.sync_group(ctx.config, ctx.group_id, generation, assignments, ctx.version(SYNC_GROUP))
    send(state, ctx, request, _sync_answered, _failed, to=state.coordinator, generation=generation)


def _sync_answered(state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response) -> None:
    assert isinstance(response, SyncGroupResponse)
    attempt = state.join.attempt
    assert attempt is not None, "a SyncGroup belongs to an attempt"
    error = response.error_code
    if error is not ErrorCode.NONE:
        attempt.outcome = _react_to_sync(state, ctx, error, sent)
    elif response.protocol_type not in {None, requests.PROTOCOL_TYPE}:
        attempt.outcome = CodedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    elif state.generation_was_reset or state.member_state is not MemberState.COMPLETING_REBALANCE:
        attempt.outcome = CodedError(ErrorCode.ILLEGAL_GENERATION)
    elif response.protocol_name not in {None, state.generation.protocol}:
        attempt.outcome = CodedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    else:
        _become_stable(state, ctx, attempt, response.assignment)


def _become_stable(state: ConsumerState, ctx: StepContext, attempt: PendingJoin, assignment: bytes) -> None:
    state.member_state = MemberState.STABLE
    state.rejoin_needed = False
    state.rejoin_reason = ""
    began = ctx.now if state.join.rebalance_began_at is None else state.join.rebalance_began_at
    state.join.rebalance_began_at = None
    attempt.outcome = assignment
    try:
        assigned = decode_assignment(assignment).partitions
    except ValueError:
        return  # The join loop raises it.
    ctx.emit(
        GroupSynced(
            partitions=by_topic(assigned),
            owned=by_topic(state.subscription.owned()),
            rebalance_ms=ctx.now - began,
            **membership.identity(state, ctx),
        )
    )


def _react_to_sync(state: ConsumerState, ctx: StepContext, error: ErrorCode, sent: RequestInFlight) -> KafkaError:
    match reaction("SyncGroup", error):
        case Reaction.FORGET_COORDINATOR:
            lookup.forget(state, ctx, f"error response {error.name}")
        case Reaction.FORGET_MEMBERSHIP | Reaction.FORGET_GENERATION:
            if sent.generation == state.generation:
                membership.reset_on_error(state, ctx, "SYNC_GROUP", error)
        case Reaction.RAISE_UNEXPECTED:
            return UnexpectedError("SyncGroup", error)
    return _error_for(state, ctx, error, sent)
