"""The join loop: prepare, JoinGroup, SyncGroup, complete; what the group assigns changes here and nowhere else.

The loop is entered from poll only and goes as far as it can each time. What it waits for is in the ``PendingJoin``
(Kafka's join future), in the commit before a rebalance, or in the listener.

Source: Kafka's AbstractCoordinator.joinGroupIfNeeded and ConsumerCoordinator (onJoinPrepare, onJoinComplete).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rejoin.client.assignors import Assignor, RebalanceProtocol
from rejoin.client.core import metadata
from rejoin.client.core.effects import CallbackKind
from rejoin.client.core.errors import CodedError, IllegalStateError, KafkaError
from rejoin.client.core.group import join_attempt, listener, lookup, membership
from rejoin.client.core.inputs import Millis
from rejoin.client.core.offsets import commits
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.state.membership import NO_GENERATION, Generation, MemberState
from rejoin.client.core.step_context import StepContext, by_topic
from rejoin.client.core.subscription import SubscriptionType
from rejoin.journal.events.client import (
    AssignmentRefused,
    ListenerFailed,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
)
from rejoin.protocol.embedded.consumer_protocol import Assignment, decode_assignment
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.types import TopicPartition

LOOP_AT_ONCE = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
    }
)
"""A failed attempt with one of these is followed by the next without a pause."""


@dataclass(slots=True)
class Completion:
    """An assignment that is being adopted, while the listener is called once or twice."""

    generation: Generation
    assignor: Assignor
    assignment: Assignment
    added: list[TopicPartition]
    revoked: list[TopicPartition]
    problem: BaseException | None = None


def raise_listener_error(state: ConsumerState) -> None:
    """Raise, once, what the listener raised while no poll could raise it."""
    if state.listener_error is not None:
        error, state.listener_error = state.listener_error, None
        raise error


# -- the loop


def advance(state: ConsumerState, ctx: StepContext) -> bool:
    """Go on with the join loop; true when no rejoin is needed any more, false while something is waited for.

    Raises what poll must raise.
    """
    while join_attempt.needed(state, ctx):
        if state.in_listener or not lookup.ensure_for_user(state, ctx):
            return False
        if state.needs_prepare:
            state.needs_prepare = False
            if not _prepare(state, ctx):
                state.needs_prepare = state.needs_prepare or not state.in_listener
                return False
            continue
        attempt = state.join.attempt
        if attempt is None:
            if ctx.now < state.join.retry_at:
                ctx.wake(state.join.retry_at)
                return False
            attempt = join_attempt.send_join(state, ctx)
        if attempt.outcome is None:
            return False
        if isinstance(attempt.outcome, KafkaError):
            _attempt_failed(state, ctx, attempt.outcome)
        else:
            _attempt_succeeded(state, ctx, attempt.outcome)
    return True


def _attempt_failed(state: ConsumerState, ctx: StepContext, error: KafkaError) -> None:
    state.join.attempt = None
    code = error.error if isinstance(error, CodedError) else None
    if code is not ErrorCode.MEMBER_ID_REQUIRED:
        membership.request_rejoin(state, ctx, f"rebalance failed due to {error.java_name}")
    if code in LOOP_AT_ONCE:
        return
    if not error.retriable:
        raise error
    state.join.retry_at = ctx.now + ctx.config.retry_backoff_ms


def _attempt_succeeded(state: ConsumerState, ctx: StepContext, assignment: bytes) -> None:
    if state.generation_was_reset or state.member_state is not MemberState.STABLE:
        state.join.attempt = None
        reason = (
            "rebalance failed since the generation/state was modified by heartbeat thread to "
            f"{state.generation}/{state.member_state.name} before the rebalance callback triggered"
        )
        membership.reset(state, ctx, reason)
        return
    # Kafka: the attempt stays until complete ends well, so that what raised there is gone through again.
    _complete(state, ctx, assignment)


# -- prepare


def _prepare(state: ConsumerState, ctx: StepContext) -> bool:
    """Commit, and give up what must be given up; false while that is not finished."""
    join, config = state.join, ctx.config
    if join.prepare_until is None:
        join.prepare_until = ctx.now + config.max_poll_interval_ms
    if config.enable_auto_commit and not _committed_before_rebalance(state, ctx, join.prepare_until):
        return False
    owned = state.subscription.owned()
    if state.generation.generation_id == NO_GENERATION.generation_id or not state.generation.member_id:
        if owned:
            _give_up(state, ctx, "lost", owned, [])
            return False
    elif ctx.rebalance_protocol is RebalanceProtocol.EAGER:
        # Kafka: the listener is called even when there is nothing to give up.
        _give_up(state, ctx, "revoked", owned, [])
        return False
    else:
        topics = set(state.subscription.topics)
        unwanted = [partition for partition in owned if partition.topic not in topics]
        if unwanted:
            kept = [partition for partition in owned if partition.topic in topics]
            _give_up(state, ctx, "revoked", unwanted, kept)
            return False
    _prepared(state)
    return True


def _committed_before_rebalance(state: ConsumerState, ctx: StepContext, until: Millis) -> bool:
    """True when the automatic commit is over, one way or another; it is repeated until ``until``."""
    join = state.join
    if join.commit is None:
        if ctx.now < join.commit_retry_at < until:
            ctx.wake(join.commit_retry_at)
            return False
        if ctx.rebalance_protocol is RebalanceProtocol.EAGER:
            # Kafka: a record that is returned from here on would never be committed.
            state.subscription.mark_pending_revocation()
        join.commit = commits.commit_for_rebalance(state, ctx)
    commit = join.commit
    if ctx.now < until:
        if not commit.done:
            ctx.wake(until)
            return False
        if commit.error is not None and commit.error.retriable:
            join.commit = None
            join.commit_retry_at = ctx.now + ctx.config.retry_backoff_ms
            ctx.wake(join.commit_retry_at)
            return False
    return True


def _give_up(
    state: ConsumerState,
    ctx: StepContext,
    kind: CallbackKind,
    partitions: list[TopicPartition],
    keep: list[TopicPartition],
) -> None:
    def given_up(error: BaseException | None) -> None:
        if error is not None and listener.stops_at_once(error):
            _raise_later(state, ctx, kind, error)
            return
        state.subscription.assign(keep)
        emit_given_up(state, ctx, kind, partitions)
        _prepared(state)
        if error is not None:
            _raise_later(state, ctx, kind, error)

    listener.call(state, ctx, kind, partitions, given_up)


def emit_given_up(state: ConsumerState, ctx: StepContext, kind: CallbackKind, partitions: list[TopicPartition]) -> None:
    """Partitions were given up: revoked, or lost."""
    if partitions:
        event = PartitionsLost if kind == "lost" else PartitionsRevoked
        ctx.emit(event(partitions=by_topic(partitions), **membership.identity(state, ctx)))


def _prepared(state: ConsumerState) -> None:
    state.is_leader = False
    state.subscription.group_topics = ()
    state.join.prepare_until = None
    state.join.commit = None
    state.join.commit_retry_at = 0


def _raise_later(state: ConsumerState, ctx: StepContext, kind: CallbackKind, error: BaseException) -> None:
    """The poll that goes on after the listener raises this."""
    emit_listener_failed(state, ctx, kind, error)
    state.listener_error = listener.raised_by_listener(error)


def emit_listener_failed(state: ConsumerState, ctx: StepContext, kind: CallbackKind, error: BaseException) -> None:
    problem = f"{type(error).__name__}: {error}"
    ctx.emit(ListenerFailed(callback=kind, problem=problem, **membership.identity(state, ctx)))


# -- complete


def _complete(state: ConsumerState, ctx: StepContext, data: bytes) -> None:
    generation = state.generation
    if not state.is_leader:
        state.join.assigned_from = None
    assignor = ctx.assignors.get(generation.protocol or "")
    if assignor is None:
        raise IllegalStateError(f"the coordinator chose assignor {generation.protocol!r}, not one of ours")
    state.group_generation = generation
    try:
        assignment = decode_assignment(data)
    except ValueError as error:
        raise IllegalStateError(
            f"the assignment of {len(data)} bytes cannot be read: {error}; did the leader forget this member?"
        ) from error
    assigned, owned = sorted(set(assignment.partitions)), state.subscription.owned()
    if not state.subscription.accepts(assigned):
        ctx.emit(AssignmentRefused(partitions=by_topic(assigned), **membership.identity(state, ctx)))
        membership.request_rejoin(state, ctx, "received assignment does not match the current subscription")
        _completed(state)
        return
    kept = set(assigned) & set(owned)
    completion = Completion(
        generation,
        assignor,
        assignment,
        added=[partition for partition in assigned if partition not in kept],
        revoked=[partition for partition in owned if partition not in kept],
    )
    if ctx.rebalance_protocol is RebalanceProtocol.COOPERATIVE and completion.revoked:
        listener.call(state, ctx, "revoked", completion.revoked, lambda error: _revoked(state, ctx, completion, error))
    else:
        _adopt(state, ctx, completion)


def _revoked(state: ConsumerState, ctx: StepContext, completion: Completion, error: BaseException | None) -> None:
    """Partitions for other members are revoked; a follow-up rebalance hands them over."""
    if error is not None:
        if listener.stops_at_once(error):
            _raise_later(state, ctx, "revoked", error)
            return
        emit_listener_failed(state, ctx, "revoked", error)
        completion.problem = error
    emit_given_up(state, ctx, "revoked", completion.revoked)
    membership.request_rejoin(state, ctx, "need to revoke partitions and re-join")
    _adopt(state, ctx, completion)


def _adopt(state: ConsumerState, ctx: StepContext, completion: Completion) -> None:
    """Own the leader's assignment, and call the listener with the new partitions, even if there are none."""
    assigned = completion.assignment.partitions
    _follow_leaders_topics(state, assigned)
    try:
        completion.assignor.on_assignment(completion.assignment, completion.generation.generation_id)
    except Exception as error:
        completion.problem = completion.problem or error
    commits.restart_auto_timer(state, ctx)
    state.subscription.assign(set(assigned))
    ctx.emit(PartitionsAssigned(partitions=by_topic(completion.added), **membership.identity(state, ctx)))
    listener.call(state, ctx, "assigned", completion.added, lambda error: _adopted(state, ctx, completion, error))


def _follow_leaders_topics(state: ConsumerState, assigned: Sequence[TopicPartition]) -> None:
    """A leader that knows more topics than we do may give us some that match our pattern."""
    # Kafka: maybeUpdateJoinedSubscription.
    subscription, joined = state.subscription, state.join.joined_topics
    if subscription.type is not SubscriptionType.AUTO_PATTERN or joined is None:
        return
    new = {topic for topic, _ in assigned} - set(joined)
    if new:
        if subscription.change_topics({*subscription.topics, *new}):
            metadata.request_update(state)
        state.join.joined_topics = tuple(sorted({*joined, *new}))


def _adopted(state: ConsumerState, ctx: StepContext, completion: Completion, error: BaseException | None) -> None:
    if error is not None:
        if listener.stops_at_once(error):
            _raise_later(state, ctx, "assigned", error)
            return
        emit_listener_failed(state, ctx, "assigned", error)
    problem = completion.problem or error
    if problem is None:
        _completed(state)
    else:
        state.listener_error = problem if isinstance(problem, KafkaError) else listener.raised_by_listener(problem)


def _completed(state: ConsumerState) -> None:
    state.join.attempt = None
    state.needs_prepare = True
