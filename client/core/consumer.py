"""The one door: a consumer as a function of what happened and when.

    for effect in consumer.step(Polled(timeout_ms=500), now):
        apply(effect)                  # Send, CallListener, PollReturned, or an event to publish, in order
    consumer.next_deadline()           # when to call again, or None

Kafka's consumer has two threads, the user's and the heartbeat's. Here both are looked at whenever anything happens: the
user's goes on only while a call of the user's is open (poll, a synchronous commit, a question, close), heartbeats
always. An answer to JoinGroup that comes between two polls waits for the next one, as it does in Kafka.

Source: Kafka's ClassicKafkaConsumer, ConsumerCoordinator.poll.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from rejoin.client.assignors import Assignor
from rejoin.client.config import ConsumerConfig
from rejoin.client.core import metadata, poll, quiescence
from rejoin.client.core.effects import CallDone, CommitDone, Effect, OffsetsFound, PollFailed, PollReturned
from rejoin.client.core.errors import IllegalStateError, InvalidGroupIdError, KafkaError
from rejoin.client.core.group import closing, describe, heartbeats, join_attempt, listener, lookup, membership
from rejoin.client.core.group.consumer import rounds
from rejoin.client.core.group.consumer.state import ConsumerMembership
from rejoin.client.core.group.describe import MembershipView
from rejoin.client.core.group.streams.state import StreamsApplication, StreamsMembership
from rejoin.client.core.in_flight_requests import fail_lost_requests
from rejoin.client.core.inputs import (
    Answered,
    Assigned,
    CallbackDone,
    Closed,
    CommitAsked,
    CommittedAsked,
    Elapsed,
    Failed,
    Input,
    Millis,
    OffsetAndMetadata,
    OffsetReset,
    OffsetsAsked,
    Paused,
    Polled,
    PositionAsked,
    Processed,
    RebalanceEnforced,
    Resumed,
    ShutdownAsked,
    Sought,
    Subscribed,
    TasksMeasured,
    Unsubscribed,
    Woken,
)
from rejoin.client.core.offsets import commits, queries
from rejoin.client.core.quiescence import Quiescence, RecordProgress
from rejoin.client.core.state.consumer import ClosePhase, ConsumerState
from rejoin.client.core.state.membership import Generation, MemberState
from rejoin.client.core.step_context import Deserializer, LogEnd, StepContext, by_topic
from rejoin.client.core.subscription import SubscriptionType
from rejoin.journal.events.client import Subscribing
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import JOIN_GROUP, Api
from rejoin.protocol.types import TopicPartition

CLOSED = "this consumer is closed"
ENFORCED_REASON = "rebalance enforced by user"


class ConsumerCore:
    """One consumer.

    ``jitter`` gives a number in [0, 1) each time a backoff is chosen. ``versions`` makes it speak an older version of
    some APIs. ``log_end`` is for drivers that know where a partition's log ends; without it ListOffsets is asked.
    ``member_id`` is what a member of a consumer group is known by; a classic one gets its id from the coordinator.
    ``application`` makes it a thread of a Kafka Streams application, and a member of a streams group.
    ``reads_records`` reads them by Fetch; then keys and values are what the ``deserializers`` make of them.

    Raises ValueError when the assignors have no rebalance protocol in common.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        assignors: Sequence[Assignor],
        jitter: Callable[[], float],
        *,
        versions: Mapping[Api, int] | None = None,
        log_end: LogEnd | None = None,
        reads_records: bool = False,
        deserializers: tuple[Deserializer | None, Deserializer | None] = (None, None),
        member_id: str = "",
        application: StreamsApplication | None = None,
    ) -> None:
        self.config = config
        self._ctx = StepContext(
            config, assignors, jitter, {} if versions is None else versions, log_end, reads_records, deserializers
        )
        self._state = ConsumerState()
        if application is not None:
            self._state.membership = StreamsMembership(member_id, application=application)
        elif config.group_protocol == "consumer":
            self._state.membership = ConsumerMembership(member_id)

    def number_requests_from(self, first: int) -> None:
        """Let the numbers of requests begin here, as a driver may want that knows them by their size."""
        self._state.requests.last_id = first

    # -- the door

    def step(self, what: Input, now: Millis) -> list[Effect]:
        """Handle an input and due timers; return the effects, in order."""
        state, ctx = self._state, self._ctx
        ctx.begin(now)
        if state.closing.phase is ClosePhase.CLOSED:
            _refuse(ctx, what)
            return ctx.effects
        _take_in(state, ctx, what)
        while fail_lost_requests(state, ctx):
            pass
        _advance(state, ctx)
        while fail_lost_requests(state, ctx):
            _advance(state, ctx)
        return ctx.effects

    def next_deadline(self) -> Millis | None:
        """When to come back with ``Elapsed`` at the latest, or none."""
        return None if self._state.closing.phase is ClosePhase.CLOSED else self._ctx.next_wake

    # -- queries

    @property
    def member_state(self) -> MemberState:
        return self._state.member_state

    @property
    def generation(self) -> Generation:
        """The membership as it is now."""
        return self._state.generation

    @property
    def group_generation(self) -> Generation:
        """The membership that the last assignment belongs to: what a transaction would carry."""
        return self._state.group_generation

    @property
    def is_leader(self) -> bool:
        return self._state.is_leader

    def describe(self) -> MembershipView:
        """This member as it knows itself."""
        return describe.of_member(self._state)

    @property
    def is_stable(self) -> bool:
        """True for a stable member that knows no reason to join again."""
        return self._state.is_stable

    @property
    def closed(self) -> bool:
        return self._state.closing.phase is ClosePhase.CLOSED

    @property
    def polling(self) -> bool:
        """True while a poll has not returned."""
        return self._state.poll is not None

    @property
    def requests_in_flight(self) -> int:
        """How many requests have no answer yet."""
        return len(self._state.requests.in_flight)

    def assignment(self) -> list[TopicPartition]:
        """Partitions that this consumer owns, by topic and partition."""
        return self._state.subscription.owned()

    def topic_errors(self) -> Mapping[str, ErrorCode]:
        """Why the last Metadata answer lacks topics, which are asked for until they are there."""
        return self._state.metadata.topic_errors

    def subscribed_topics(self) -> tuple[str, ...]:
        """Subscribed topics; with a pattern, those known to match."""
        subscription = self._state.subscription
        return subscription.topics if subscription.automatic else ()

    def paused(self) -> list[TopicPartition]:
        subscription = self._state.subscription
        return [partition for partition in subscription.owned() if subscription.assignment[partition].paused]

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to be handed out, of each owned partition that has one."""
        owned = self._state.subscription.assignment
        return {p: position for p in sorted(owned) if (position := owned[p].position) is not None}

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Offsets for a commit of all records that were handed out."""
        return self._state.subscription.consumed()

    def lag(self, partition: TopicPartition) -> int | None:
        """Records between position and end as far as both are known. Raises IllegalStateError if not owned."""
        owned = self._state.subscription.partition_state(partition)
        if owned.position is None or owned.end is None:
            return None
        return max(0, owned.end - owned.position)

    # -- skipping time in which nothing new happens

    def quiescence(self) -> Quiescence | None:
        """The instants of a quiet member, or none while anything but heartbeats and empty polls is to come."""
        return quiescence.quiescence(self._state, self._ctx)

    def resume_after_progress(self, now: Millis, progress: RecordProgress) -> None:
        """Set a quiet member to where handing out and processing records would have brought it.

        A commit that is open then is not part of it: step with its ``CommitAsked`` afterwards.
        """
        quiescence.resume_after_progress(self._state, self._ctx, now, progress)

    def resume_unwaited_commit(
        self, kind: Literal["auto", "async"], offsets: Mapping[TopicPartition, int], at: Millis
    ) -> list[Effect]:
        """Put an automatic or asynchronous commit in flight that was sent at an instant."""
        self._ctx.begin(at)
        commits.resume_unwaited(self._state, self._ctx, kind, offsets)
        return self._ctx.effects

    @property
    def next_auto_commit_at(self) -> Millis | None:
        """When the next automatic commit is due at the earliest; none where that is not known yet."""
        return self._state.commits.next_auto_at

    def partitions_in_order(self) -> list[TopicPartition]:
        """Partitions that this consumer owns, in the order in which they return records next."""
        return list(self._state.subscription.assignment)

    def resume_after_idle(
        self,
        now: Millis,
        *,
        poll_returns_at: Millis,
        heartbeat_at: Millis | None = None,
        session_expires_at: Millis | None = None,
        metadata_refreshed_at: Millis | None = None,
    ) -> None:
        """Set the instants of a quiet member forward to what playing the skipped time would have left behind.

        An instant that is not given stays. The poll interval counts from ``now``: the user polled all the time.
        """
        quiescence.resume_after_idle(
            self._state,
            self._ctx,
            now,
            poll_returns_at=poll_returns_at,
            heartbeat_at=heartbeat_at,
            session_expires_at=session_expires_at,
            metadata_refreshed_at=metadata_refreshed_at,
        )


# -- what happened


def _take_in(state: ConsumerState, ctx: StepContext, what: Input) -> None:
    match what:
        case Answered() | Failed():
            _take_answer(state, ctx, what)
        case Elapsed():
            pass
        case Polled():
            poll.begin(state, ctx, what)
        case CallbackDone():
            listener.done(state, what.error)
        case Processed():
            membership.emit_processed(state, ctx, what)
        case CommitAsked():
            commits.ask(state, ctx, what)
        case CommittedAsked() | OffsetsAsked() | PositionAsked():
            queries.ask(state, ctx, what)
        case Subscribed() | Assigned() | Unsubscribed():
            _choose(state, ctx, what)
        case Sought() | Paused() | Resumed():
            _move(state, what)
        case RebalanceEnforced():
            # Kafka: enforceRebalance.
            membership.request_rejoin(state, ctx, what.reason or ENFORCED_REASON)
        case TasksMeasured() | ShutdownAsked():
            _take_from_thread(state, what)
        case Closed():
            _begin_close(state, ctx, what)
        case Woken():
            state.woken = True


def _refuse(ctx: StepContext, what: Input) -> None:
    """Answer what happens to a consumer that is closed."""
    error = IllegalStateError(CLOSED)
    match what:
        case Polled():
            ctx.emit(PollFailed(error))
        case CommitAsked():
            ctx.emit(CommitDone(what.token, error))
        case CommittedAsked() | OffsetsAsked() | PositionAsked():
            ctx.emit(OffsetsFound(what.token, {}, {}, error))
        case Subscribed() | Assigned() | Unsubscribed():
            ctx.emit(CallDone(what.token, error))
        case Closed():
            ctx.emit(CallDone(what.token))
        case _:
            pass


def _take_from_thread(state: ConsumerState, what: TasksMeasured | ShutdownAsked) -> None:
    member = state.membership
    assert isinstance(member, StreamsMembership), "only a thread of an application has tasks"
    if isinstance(what, TasksMeasured):
        member.offsets, member.end_offsets = dict(what.offsets), dict(what.end_offsets)
    else:
        member.wants_shutdown = True


def _take_answer(state: ConsumerState, ctx: StepContext, what: Answered | Failed) -> None:
    sent = state.requests.in_flight.get(what.request_id)
    if sent is None:
        return  # Cancelled.
    if sent.api is JOIN_GROUP and not state.user_is_waiting:
        # Kafka: heartbeats are off while JoinGroup waits, so the user's thread alone reads its answer.
        state.deferred_join_answers.append(what)
        return
    lookup.take_response(state, ctx, what)


def _begin_close(state: ConsumerState, ctx: StepContext, what: Closed) -> None:
    if state.closing.begun:
        ctx.emit(CallDone(what.token, IllegalStateError("the consumer is being closed")))
        return
    if state.user_is_polling:
        poll.end(state, ctx, PollReturned())
    closing.close(state, ctx, what)


# -- choosing what to read


def _choose(state: ConsumerState, ctx: StepContext, what: Subscribed | Assigned | Unsubscribed) -> None:
    try:
        _choose_or_raise(state, ctx, what)
    except KafkaError as error:
        ctx.emit(CallDone(what.token, error))


def _choose_or_raise(state: ConsumerState, ctx: StepContext, what: Subscribed | Assigned | Unsubscribed) -> None:
    match what:
        case Subscribed(pattern=None, regex=None, topics=()) | Assigned(partitions=()) | Unsubscribed():
            closing.unsubscribe(state, ctx, what.token)
            return
        case Subscribed():
            _subscribe(state, ctx, what)
        case Assigned():
            _assign(state, ctx, what)
    subscription = state.subscription
    by_hand = subscription.type is SubscriptionType.USER_ASSIGNED
    ctx.emit(
        Subscribing(
            topics=list(subscription.topics),
            pattern=subscription.pattern.pattern if subscription.pattern else None,
            partitions=by_topic(subscription.assignment) if by_hand else {},
            **ctx.identity,
        )
    )
    ctx.emit(CallDone(what.token))


def _subscribe(state: ConsumerState, ctx: StepContext, what: Subscribed) -> None:
    if ctx.config.group_id is None:
        raise InvalidGroupIdError("a subscription needs a group.id; assign partitions without one")
    if state.membership is not None:
        state.membership.is_subscription_new = True
    if what.regex is not None:
        if state.membership is None:
            raise IllegalStateError("a regular expression is matched by the coordinator: set group_protocol='consumer'")
        if not what.regex.strip():
            raise IllegalStateError("an empty regular expression matches no topic")
        state.subscription.subscribe_regex(what.regex)
        metadata.request_update(state)
        return
    if what.pattern is not None:
        if not what.pattern:
            raise IllegalStateError("an empty pattern matches no topic")
        state.subscription.subscribe_pattern(what.pattern)
        state.subscription.change_topics(metadata.matching(state, ctx))
        metadata.request_update(state)
        return
    if not all(topic.strip() for topic in what.topics):
        raise IllegalStateError("a topic name must not be blank")
    if state.subscription.subscribe(what.topics):
        metadata.request_update(state)


def _assign(state: ConsumerState, ctx: StepContext, what: Assigned) -> None:
    if any(not topic for topic, _ in what.partitions):
        raise IllegalStateError("a partition without a topic cannot be assigned")
    if ctx.config.group_id is not None:
        commits.auto_commit_if_due(state, ctx)
    if state.subscription.assign_manually(what.partitions):
        metadata.request_update(state)


def _move(state: ConsumerState, what: Sought | Paused | Resumed) -> None:
    # A partition that was given up a moment ago is passed over: the caller may not know yet.
    assignment = state.subscription.assignment
    for owned in [assignment[partition] for partition in what.partitions if partition in assignment]:
        match what:
            case Sought(to=OffsetReset() as reset):
                owned.ask_reset(reset)
            case Sought(to=int(offset)):
                owned.seek(offset)
            case _:
                owned.paused = isinstance(what, Paused)


# -- what is due


def _advance(state: ConsumerState, ctx: StepContext) -> None:
    """Let both of Kafka's threads go as far as they can."""
    is_closing = state.closing.begun
    if state.deferred_join_answers and state.user_is_waiting:
        deferred, state.deferred_join_answers = state.deferred_join_answers, []
        for answer in deferred:
            _take_answer(state, ctx, answer)
    if state.membership is not None:
        rounds.advance(state, ctx)
    elif state.heartbeat.enabled and not is_closing:
        heartbeats.advance(state, ctx)
    if state.join.attempt is not None:
        join_attempt.lead_on(state, ctx, state.join.attempt)
    if state.commits.sync:
        commits.advance(state, ctx)
    if state.queries:
        queries.advance(state, ctx)
    if is_closing:
        closing.advance(state, ctx)
    if state.poll is not None and state.listener_done is None:
        poll.advance(state, ctx, state.poll)
    if state.lookup.callbacks:
        lookup.ensure(state, ctx)
    if not is_closing and (state.subscription.type is not SubscriptionType.NONE or state.cluster.asked_topics):
        metadata.ensure_fresh(state, ctx)
