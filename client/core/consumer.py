"""The one door: a consumer as a function of what happened and when.

    for effect in consumer.step(Polled(timeout_ms=500), now):
        apply(effect)                  # Send, CallListener, PollReturned, or an event to publish, in order
    consumer.next_deadline()           # when to knock again, or None

Kafka's consumer has two threads, the user's and the heartbeat's. Here both are looked at whenever anything happens: the
user's goes on only while a call of the user's is open (poll, a synchronous commit, a question, close), heartbeats
always. An answer to JoinGroup that comes between two polls waits for the next one, as it does in Kafka.

Source: Kafka's ClassicKafkaConsumer, ConsumerCoordinator.poll.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rejoin.client.assignors import Assignor
from rejoin.client.config import ConsumerConfig
from rejoin.client.core.commits import Commits
from rejoin.client.core.departure import Departure, Phase
from rejoin.client.core.effects import CallDone, CommitDone, Effect, OffsetsFound, PollReturned, Raised
from rejoin.client.core.errors import (
    DisconnectError,
    IllegalStateError,
    InvalidGroupIdError,
    KafkaError,
    WakeupError,
)
from rejoin.client.core.heartbeat import Heartbeat
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
    OffsetReset,
    OffsetsAsked,
    Paused,
    Polled,
    PositionAsked,
    Processed,
    RebalanceEnforced,
    Resumed,
    Sought,
    Subscribed,
    Token,
    Unsubscribed,
    Woken,
)
from rejoin.client.core.joining import Joining, common_protocol
from rejoin.client.core.listener import Listener
from rejoin.client.core.lookup import Lookup
from rejoin.client.core.membership import Membership, MemberState
from rejoin.client.core.metadata import Metadata
from rejoin.client.core.positions import LogEnd, Positions
from rejoin.client.core.queries import Queries
from rejoin.client.core.quiescence import Quiescence
from rejoin.client.core.rebalance import Rebalance
from rejoin.client.core.step_context import Generation, InFlight, StepContext, by_topic
from rejoin.client.core.subscription import Kind, SubscriptionState
from rejoin.journal.events.client import Range, RecordsProcessed, Subscribing
from rejoin.protocol.message import Response
from rejoin.protocol.registry import JOIN_GROUP, Api
from rejoin.protocol.types import TopicPartition

CLOSED = "this consumer is closed"
ENFORCED_REASON = "rebalance enforced by user"


@dataclass(slots=True)
class Poll:
    """The poll that runs now."""

    until: Millis
    most: int
    only: frozenset[TopicPartition] | None
    update: int = 0
    """With a pattern: the metadata update to be seen before joining."""


class ConsumerCore:
    """One consumer.

    ``jitter`` gives a number in [0, 1) each time a backoff is chosen. ``versions`` makes it speak an older version of
    some APIs. ``log_end`` tells where a partition's log ends, for drivers that know; without it ListOffsets is asked.

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
    ) -> None:
        self.config = config
        self._ctx = ctx = StepContext(config, jitter, versions or {})
        self._subscription = subscription = SubscriptionState()
        self._heartbeat = heartbeat = Heartbeat(config)
        self._lookup = lookup = Lookup(ctx, heartbeat)
        self._metadata = metadata = Metadata(ctx, subscription)
        self._membership = membership = Membership(ctx, lookup, heartbeat)
        self._listener = listener = Listener(ctx)
        self._commits = commits = Commits(ctx, subscription, lookup, membership)
        self._joining = joining = Joining(
            ctx,
            subscription,
            metadata,
            lookup,
            membership,
            heartbeat,
            {assignor.name: assignor for assignor in assignors},
            common_protocol(assignors),
        )
        self._rebalance = rebalance = Rebalance(
            ctx, subscription, metadata, lookup, membership, joining, commits, listener
        )
        self._positions = positions = Positions(ctx, subscription, metadata, lookup, membership, log_end)
        self._queries = Queries(ctx, subscription, lookup, membership, positions)
        self._departure = Departure(ctx, subscription, lookup, membership, heartbeat, commits, listener, rebalance)
        self._poll: Poll | None = None
        self._woken = False
        self._held: list[Answered | Failed] = []

    # -- the door

    def step(self, what: Input, now: Millis) -> list[Effect]:
        """Take in what happened and do what is due; return what shall be done, in order."""
        ctx = self._ctx
        ctx.begin(now)
        if self._departure.phase is Phase.CLOSED:
            self._refuse(what)
            return ctx.effects
        self._take_in(what)
        while ctx.fail_lost_requests():
            pass
        self._advance()
        while ctx.fail_lost_requests():
            self._advance()
        return ctx.effects

    def next_deadline(self) -> Millis | None:
        """When to come back with ``Elapsed`` at the latest, or none."""
        return None if self._departure.phase is Phase.CLOSED else self._ctx.next_wake

    # -- looking

    @property
    def member_state(self) -> MemberState:
        return self._membership.state

    @property
    def generation(self) -> Generation:
        """The membership as it is now."""
        return self._membership.generation

    @property
    def group_generation(self) -> Generation:
        """The membership that the last assignment belongs to: what a transaction would carry."""
        return self._rebalance.group_generation

    @property
    def is_leader(self) -> bool:
        return self._joining.is_leader

    @property
    def settled(self) -> bool:
        """True for a stable member that knows no reason to join again."""
        membership = self._membership
        stable = membership.state is MemberState.STABLE and not membership.rejoin_needed
        return stable and self._joining.attempt is None

    @property
    def closed(self) -> bool:
        return self._departure.phase is Phase.CLOSED

    @property
    def polling(self) -> bool:
        """True while a poll has not returned."""
        return self._poll is not None

    def assignment(self) -> list[TopicPartition]:
        """What this consumer owns, by topic and partition."""
        return self._subscription.owned()

    def subscribed_topics(self) -> tuple[str, ...]:
        """Subscribed topics; with a pattern, those known to match."""
        return self._subscription.topics if self._subscription.automatic else ()

    def paused(self) -> list[TopicPartition]:
        return [p for p in self._subscription.owned() if self._subscription.assignment[p].paused]

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to be handed out, of each owned partition that has one."""
        states = self._subscription.assignment
        return {p: position for p in sorted(states) if (position := states[p].position) is not None}

    def lag(self, partition: TopicPartition) -> int | None:
        """Records between position and end as far as both are known. Raises IllegalStateError if not owned."""
        state = self._subscription.of(partition)
        if state.position is None or state.end is None:
            return None
        return max(0, state.end - state.position)

    def known_partitions(self, topic: str) -> int | None:
        """How many partitions the topic has as far as this consumer knows."""
        known = self._metadata.topics.get(topic)
        return None if known is None else known.partitions

    @property
    def requests_in_flight(self) -> int:
        """How many requests have no answer yet."""
        return len(self._ctx.in_flight)

    # -- skipping time in which nothing happens

    def quiescence(self) -> Quiescence | None:
        """The instants of a quiet member, or none while anything but heartbeats and empty polls is to come."""
        poll, coordinator, refreshed_at = self._poll, self._lookup.coordinator, self._metadata.refreshed_at
        if poll is None or coordinator is None or refreshed_at is None or self._ctx.in_flight or not self._is_quiet():
            return None
        heartbeat = self._heartbeat
        return Quiescence(
            coordinator=coordinator,
            heartbeat_at=heartbeat.due_at,
            poll_returns_at=poll.until,
            metadata_refreshed_at=refreshed_at,
            session_expires_at=heartbeat.session_expires_at,
            poll_expires_at=heartbeat.poll_expires_at,
        )

    def _is_quiet(self) -> bool:
        membership, heartbeat, metadata, joining = self._membership, self._heartbeat, self._metadata, self._joining
        subscription = self._subscription
        return (
            self.settled
            and membership.needs_prepare
            and joining.joined_topics == subscription.topics
            and heartbeat.enabled
            and heartbeat.failure is None
            and heartbeat.attempts == 0
            and not self._listener.busy
            and not self._held
            and not self._woken
            and not self._departure.closing
            and not self._queries.open
            and self._commits.idle
            and not self._lookup.awaited
            and subscription.kind is Kind.TOPICS
            and metadata.error is None
            and not metadata.stale
            and metadata.version <= joining.snapshot.version
            # The next request would name the topics that are known: a leader's may differ from its own.
            and sorted(metadata.topics) == sorted(subscription.metadata_topics())
            and metadata.snapshot().topics == joining.snapshot.topics
            and (joining.assigned_from is None or joining.assigned_from.matches(joining.snapshot))
            and self._positions.error is None
            and all(state.position is not None for state in subscription.assignment.values())
        )

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
        poll, heartbeat, metadata = self._poll, self._heartbeat, self._metadata
        assert poll is not None, "a quiet member is in a poll"
        poll.until = poll_returns_at
        if heartbeat_at is not None:
            heartbeat.due_at = heartbeat_at
        if session_expires_at is not None:
            heartbeat.session_expires_at = session_expires_at
        if metadata_refreshed_at is not None:
            metadata.refreshed_at = metadata_refreshed_at
        heartbeat.polled(now)
        due = min(heartbeat.due_at, poll.until)
        if not metadata.in_flight and metadata.refreshed_at is not None:
            due = min(due, metadata.refreshed_at + self.config.metadata_max_age_ms)
        self._ctx.next_wake = due

    # -- what happened

    def _take_in(self, what: Input) -> None:
        match what:
            case Answered() | Failed():
                self._answer(what)
            case Elapsed():
                pass
            case Polled():
                self._begin_poll(what)
            case CallbackDone():
                self._listener.done(what.error)
            case Processed():
                self._tell_processed(what)
            case CommitAsked():
                self._commits.ask(what)
            case CommittedAsked() | OffsetsAsked() | PositionAsked():
                self._queries.ask(what)
            case Subscribed() | Assigned() | Unsubscribed():
                self._choose(what)
            case Sought() | Paused() | Resumed():
                self._move(what)
            case RebalanceEnforced():
                # Kafka: enforceRebalance.
                self._membership.request_rejoin(what.reason or ENFORCED_REASON)
            case Closed():
                self._begin_close(what)
            case Woken():
                self._woken = True

    def _refuse(self, what: Input) -> None:
        error = IllegalStateError(CLOSED)
        match what:
            case Polled():
                self._ctx.effects.append(Raised(error))
            case CommitAsked():
                self._ctx.effects.append(CommitDone(what.token, error))
            case CommittedAsked() | OffsetsAsked() | PositionAsked():
                self._ctx.effects.append(OffsetsFound(what.token, {}, {}, error))
            case Subscribed() | Assigned() | Unsubscribed():
                self._ctx.effects.append(CallDone(what.token, error))
            case Closed():
                self._ctx.effects.append(CallDone(what.token))
            case _:
                pass

    def _answer(self, what: Answered | Failed) -> None:
        sent = self._ctx.in_flight.get(what.request_id)
        if sent is None:
            return  # Cancelled, or of a consumer that was closed.
        if sent.api is JOIN_GROUP and not self._user_is_here:
            # Kafka: heartbeats are off while JoinGroup waits, so nobody but the user's thread reads its answer.
            self._held.append(what)
            return
        del self._ctx.in_flight[what.request_id]
        self._deliver(sent, what)

    def _deliver(self, sent: InFlight, what: Answered | Failed) -> None:
        if isinstance(what, Answered):
            response: Response = what.response
            sent.on_answer(sent, response)
            return
        if sent.to is not None and sent.to == self._lookup.coordinator:
            # Kafka: CoordinatorResponseHandler.onFailure. A timeout disconnects as well.
            self._lookup.forget(what.failure.value)
        sent.on_failure(sent, DisconnectError(f"{sent.api.name}: {what.detail or what.failure.value}"))

    @property
    def _user_is_here(self) -> bool:
        return self._poll is not None or self._commits.waited_for or self._queries.open or self._departure.closing

    def _tell_processed(self, what: Processed) -> None:
        if what.ranges:
            ranges = [
                Range(topic=topic, partition=partition, start=start, end=end)
                for topic, partition, start, end in what.ranges
            ]
            self._ctx.effects.append(RecordsProcessed(ranges=ranges, **self._membership.shown))

    # -- choosing what to read

    def _choose(self, what: Subscribed | Assigned | Unsubscribed) -> None:
        try:
            self._choose_or_raise(what)
        except KafkaError as error:
            self._ctx.effects.append(CallDone(what.token, error))

    def _choose_or_raise(self, what: Subscribed | Assigned | Unsubscribed) -> None:
        subscription = self._subscription
        match what:
            case Subscribed(pattern=None, topics=()) | Assigned(partitions=()) | Unsubscribed():
                self._departure.unsubscribe(what.token)
                return
            case Subscribed():
                if self.config.group_id is None:
                    raise InvalidGroupIdError("a subscription needs a group.id; assign partitions without one")
                self._subscribe(what)
            case Assigned():
                if any(not topic for topic, _ in what.partitions):
                    raise IllegalStateError("a partition without a topic cannot be assigned")
                if self.config.group_id is not None:
                    self._commits.auto_commit_if_due()
                if subscription.assign_manually(what.partitions):
                    self._metadata.request_update()
        self._ctx.effects.append(
            Subscribing(
                topics=list(subscription.topics),
                pattern=subscription.pattern.pattern if subscription.pattern else None,
                partitions=by_topic(subscription.assignment) if subscription.kind is Kind.ASSIGNED else {},
                **self._ctx.who,
            )
        )
        self._ctx.effects.append(CallDone(what.token))

    def _subscribe(self, what: Subscribed) -> None:
        if what.pattern is not None:
            if not what.pattern:
                raise IllegalStateError("an empty pattern matches no topic")
            self._subscription.subscribe_pattern(what.pattern)
            self._subscription.change_topics(self._metadata.matching())
            self._metadata.request_update()
            return
        if not all(topic.strip() for topic in what.topics):
            raise IllegalStateError("a topic name must not be blank")
        if self._subscription.subscribe(what.topics):
            self._metadata.request_update()

    def _move(self, what: Sought | Paused | Resumed) -> None:
        # A partition that was given up a moment ago is passed over: whoever asked may not know yet.
        states = [
            self._subscription.assignment[partition]
            for partition in what.partitions
            if partition in self._subscription.assignment
        ]
        for state in states:
            match what:
                case Sought(to=OffsetReset() as reset):
                    state.ask_reset(reset)
                case Sought(to=int(offset)):
                    state.seek(offset)
                case _:
                    state.paused = isinstance(what, Paused)

    # -- poll

    def _begin_poll(self, what: Polled) -> None:
        if self._poll is not None:
            self._ctx.effects.append(Raised(IllegalStateError("a poll is running already")))
        elif self._subscription.kind is Kind.NONE:
            self._ctx.effects.append(Raised(IllegalStateError("not subscribed to any topics or partitions")))
        else:
            most = self.config.max_poll_records if what.max_records is None else what.max_records
            self._poll = Poll(self._ctx.now + max(0, what.timeout_ms), most, what.partitions)

    def _begin_close(self, what: Closed) -> None:
        if self._departure.closing:
            self._ctx.effects.append(CallDone(what.token, IllegalStateError("the consumer is being closed")))
            return
        if self._poll is not None and not self._listener.busy:
            self._end_poll(PollReturned())
        self._departure.close(what)

    def _end_poll(self, how: PollReturned | Raised) -> None:
        self._poll = None
        if self._heartbeat.enabled:
            self._ctx.wake(self._heartbeat.poll_expires_at)
        self._ctx.effects.append(how)

    def _advance(self) -> None:
        """Let both of Kafka's threads go as far as they can."""
        if self._held and self._user_is_here:
            held, self._held = self._held, []
            for answer in held:
                self._answer(answer)
        self._membership.user_is_polling = self._poll is not None and not self._listener.busy
        if not self._departure.closing:
            self._membership.beat()
        self._joining.lead_on()
        self._commits.advance()
        self._queries.advance()
        if self._departure.closing:
            self._departure.advance()
        if self._poll is not None and not self._listener.busy:
            self._run_poll(self._poll)
        if self._lookup.awaited:
            self._lookup.ensure()
        if self._subscription.kind is not Kind.NONE and not self._departure.closing:
            self._metadata.ensure_fresh()

    def _run_poll(self, poll: Poll) -> None:
        now = self._ctx.now
        try:
            if self._woken:
                self._woken = False
                raise WakeupError("woken")
            blocked = not self._update_assignment(poll)
            if self._listener.busy:
                return
            if self._departure.closing:
                self._end_poll(PollReturned())
                return
            if not blocked or now >= poll.until:
                ranges = self._positions.take(poll.most, poll.only)
                if ranges:
                    self._positions.refresh_ends()
                    self._end_poll(PollReturned(ranges))
                    return
                self._positions.refresh_ends()
        except KafkaError as error:
            self._end_poll(Raised(error))
            return
        if now >= poll.until:
            self._end_poll(PollReturned())
        else:
            self._ctx.wake(poll.until)

    def _update_assignment(self, poll: Poll) -> bool:
        """False while something is waited for that keeps Kafka's poll from looking at records.

        Raises what poll must raise.
        """
        # Kafka: updateAssignmentMetadataIfNeeded. A join that goes on does not stop records of what is kept.
        self._metadata.raise_error()
        if self.config.group_id is not None:
            self._rebalance.raise_problem()
            self._joining.follow_metadata()
            self._commits.run_completed()
            if self._subscription.automatic:
                self._membership.poll_heartbeat()
                if not self._lookup.ensure_for_user():
                    return False
                if self._joining.needed():
                    if not self._pattern_is_fresh(poll):
                        return False
                    if not self._rebalance.advance():
                        return True
            self._commits.auto_commit_if_due()
            self._commits.wake_for_auto_commit()
        return self._positions.update()

    def _pattern_is_fresh(self, poll: Poll) -> bool:
        """With a pattern: look at the topics again before joining, so that one new topic costs one rebalance."""
        # Differs: Kafka refreshes whenever poll's loop comes by; here once for each poll and not during a join.
        if self._subscription.kind is not Kind.PATTERN or self._joining.attempt is not None:
            return True
        if poll.update == 0:
            poll.update = -1
            if self._metadata.refreshable():
                poll.update = self._metadata.request_update()
            elif self._metadata.stale:
                poll.update = self._metadata.wanted_update()
        if poll.update > 0 and not self._metadata.seen(poll.update):
            self._metadata.ensure_fresh()
            return False
        self._joining.follow_metadata()
        return True


__all__ = ["ConsumerCore", "Token"]
