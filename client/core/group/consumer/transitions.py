"""The moves of a member between its states: joining, being fenced, leaving, failing.

Source: Kafka's AbstractMembershipManager.
"""

from __future__ import annotations

from collections.abc import Callable

from rejoin.client.core.effects import CallbackKind
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.group import listener, membership
from rejoin.client.core.group.consumer.state import (
    HAS_NO_GROUP,
    IS_LEAVING,
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerMembership,
    MembershipState,
)
from rejoin.client.core.group.streams.state import StreamsMembership
from rejoin.client.core.group.streams.tasks import NO_TASKS, StreamsTasks, by_subtopology
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.state.membership import Generation, MemberState
from rejoin.client.core.step_context import StepContext, by_topic
from rejoin.journal.events.client import (
    Fenced,
    GroupLeft,
    ListenerFailed,
    PartitionsLost,
    PartitionsRevoked,
    PollTimeoutExceeded,
)
from rejoin.journal.events.streams_members import StreamsTasksGivenUp
from rejoin.protocol.types import TopicPartition

Then = Callable[[KafkaError | None], None]


def member_of(state: ConsumerState) -> ConsumerMembership:
    """The membership of a consumer that uses the consumer protocol."""
    assert state.membership is not None, "this consumer uses the classic protocol"
    return state.membership


def topic_names(state: ConsumerState) -> dict[str, str]:
    """The names of topics by their ids."""
    return member_of(state).topic_names | {topic_id: name for name, topic_id in state.cluster.topic_ids.items()}


def set_epoch(state: ConsumerState, epoch: int) -> None:
    """The member's epoch has changed; commits and transactions carry it from now on."""
    member = member_of(state)
    member.epoch = epoch
    is_member = epoch > JOIN_EPOCH
    state.member_state = MemberState.STABLE if is_member else MemberState.UNJOINED
    state.generation = state.group_generation = Generation(epoch if is_member else -1, member.member_id, None)


def join(state: ConsumerState) -> None:
    member = member_of(state)
    set_epoch(state, JOIN_EPOCH)
    member.enter(MembershipState.JOINING)
    member.joins += 1
    member.forget_assignments()
    member.topic_names = {}
    member.retry_at = member.attempts = 0


def follow_target(member: ConsumerMembership) -> None:
    """Go on where the target says: take it over, or be stable."""
    if not member.is_reconciled:
        member.enter(MembershipState.RECONCILING)
    elif member.state in (MembershipState.JOINING, MembershipState.RECONCILING):
        member.enter(MembershipState.STABLE)


def fence(state: ConsumerState, ctx: StepContext) -> None:
    """The coordinator has given up on this member: what it owned may have other owners. It joins again at once."""
    member = member_of(state)
    if member.state in IS_LEAVING:
        # Kafka: being fenced while it leaves means that it has left.
        _end(state, ctx)
        return
    if member.state in HAS_NO_GROUP:
        return
    ctx.emit(Fenced(api=_api(state), **membership.identity(state, ctx)))
    member.enter(MembershipState.FENCED)
    set_epoch(state, JOIN_EPOCH)


def _api(state: ConsumerState) -> str:
    if state.share is not None:
        return "ShareGroupHeartbeat"
    return "StreamsGroupHeartbeat" if isinstance(state.membership, StreamsMembership) else "ConsumerGroupHeartbeat"


def fail(state: ConsumerState, error: KafkaError) -> None:
    """Nothing helps: the next poll raises it, and no heartbeat is sent any more."""
    member = member_of(state)
    if member.state in HAS_NO_GROUP and member.state is not MembershipState.UNSUBSCRIBED:
        return
    member.enter(MembershipState.FATAL)
    member.failure = error


def release_lost(state: ConsumerState, ctx: StepContext) -> None:
    """A member that is out of the group calls the listener, on the user's thread, and comes back."""
    member = member_of(state)
    if state.in_listener or not state.may_change_assignment:
        return
    if member.state is MembershipState.FENCED or (member.state is MembershipState.STALE and not member.is_poll_expired):
        give_up(state, ctx, "lost", lambda _: _come_back(state))


def _come_back(state: ConsumerState) -> None:
    state.subscription.assign(())
    if member_of(state).state in (MembershipState.FENCED, MembershipState.STALE):
        join(state)


def give_up(state: ConsumerState, ctx: StepContext, kind: CallbackKind, then: Then) -> None:
    """Call the listener for all that is owned, if anything is."""
    give_up_some(state, ctx, kind, state.subscription.owned(), then, member_of(state).tasks_given_up())


def give_up_some(
    state: ConsumerState,
    ctx: StepContext,
    kind: CallbackKind,
    partitions: list[TopicPartition],
    then: Then,
    tasks: StreamsTasks = NO_TASKS,
) -> None:
    """Call the listener for partitions or tasks, if there are any; ``then`` is called with its exception."""
    if not partitions and not tasks:
        then(None)
        return

    def called(error: BaseException | None) -> None:
        identity = membership.identity(state, ctx)
        if partitions:
            event = PartitionsLost if kind == "lost" else PartitionsRevoked
            ctx.emit(event(partitions=by_topic(partitions), **identity))
        if tasks:
            active, standby = by_subtopology(tasks.active), by_subtopology((*tasks.standby, *tasks.warmup))
            ctx.emit(StreamsTasksGivenUp(reason=kind, active=active, standby=standby, **identity))
        then(raised(state, ctx, kind, error))

    listener.call(state, ctx, kind, partitions, called, tasks or None)


def raised(
    state: ConsumerState, ctx: StepContext, kind: CallbackKind, error: BaseException | None
) -> KafkaError | None:
    """The listener's exception, in the form in which a poll raises it."""
    if error is None:
        return None
    problem = f"{type(error).__name__}: {error}"
    ctx.emit(ListenerFailed(callback=kind, problem=problem, **membership.identity(state, ctx)))
    return listener.raised_by_listener(error)


# -- leaving


def leave(state: ConsumerState, ctx: StepContext, reason: str, then: Then, *, stays: bool = False) -> None:
    """Revoke all partitions and leave; ``stays`` leaves a dynamic member in the group until its session ends.

    Kafka: AbstractMembershipManager.leaveGroup. The heartbeat that leaves is sent once, and never repeated.
    """
    member = member_of(state)
    if member.state in HAS_NO_GROUP:
        state.subscription.assign(())
        if member.state is not MembershipState.FATAL:
            member.state = MembershipState.UNSUBSCRIBED
        then(None)
        return
    kind: CallbackKind = "revoked" if member.epoch > JOIN_EPOCH else "lost"
    member.enter(MembershipState.PREPARE_LEAVING)

    def given_up(error: KafkaError | None) -> None:
        state.subscription.assign(())
        if member.state is MembershipState.PREPARE_LEAVING:
            sends = state.coordinator is not None and (ctx.config.is_static or not stays)
            ctx.emit(GroupLeft(reason=reason, notified=sends, **membership.identity(state, ctx)))
            _begin_to_leave(state, ctx)
            if not sends:
                _end(state, ctx)
        then(error)

    give_up(state, ctx, kind, given_up)


def _begin_to_leave(state: ConsumerState, ctx: StepContext) -> None:
    member = member_of(state)
    member.enter(MembershipState.LEAVING)
    set_epoch(state, STATIC_LEAVE_EPOCH if ctx.config.is_static else LEAVE_EPOCH)
    member.forget_assignments()


def left(state: ConsumerState, ctx: StepContext) -> None:
    """The heartbeat that leaves is on its way: nothing is waited for."""
    member = member_of(state)
    if member.is_poll_expired:
        member.enter(MembershipState.STALE)
        member.forget_sent()
        member.attempts = member.retry_at = 0
    else:
        _end(state, ctx)


def _end(state: ConsumerState, ctx: StepContext) -> None:
    member = member_of(state)
    member.enter(MembershipState.UNSUBSCRIBED)
    set_epoch(state, JOIN_EPOCH)
    member.forget_sent()
    member.forget_assignments()


def expire_poll(state: ConsumerState, ctx: StepContext) -> None:
    """No poll for ``max.poll.interval.ms``: leave, and come back with the next poll."""
    member = member_of(state)
    if state.coordinator is None:
        # Kafka: AbstractHeartbeatRequestManager.poll looks at the poll timer when it could send a heartbeat.
        return
    if member.state in HAS_NO_GROUP or member.state in IS_LEAVING or ctx.now < member.poll_expires_at:
        return
    interval = ctx.config.max_poll_interval_ms
    ctx.emit(PollTimeoutExceeded(max_poll_interval_ms=interval, **membership.identity(state, ctx)))
    ctx.emit(GroupLeft(reason=membership.POLL_TIMEOUT_REASON, notified=True, **membership.identity(state, ctx)))
    member.is_poll_expired = True
    member.enter(MembershipState.PREPARE_LEAVING)
    _begin_to_leave(state, ctx)
