"""The one door: a share consumer as a function of what happened and when.

    for effect in consumer.step(Polled(timeout_ms=500), now):
        apply(effect)                  # Send, PollReturned, AcknowledgementsCommitted, or an event, in order
    consumer.next_deadline()           # when to call again, or None

Membership goes on in the background, as for a member of a consumer group. Records are fetched while the user polls;
acknowledgements travel with the next ShareFetch, or by ShareAcknowledge when the user commits or closes.

Source: Kafka's ShareConsumerImpl, ShareMembershipManager and ShareConsumeRequestManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rejoin.client.config import ConsumerConfig
from rejoin.client.core import metadata
from rejoin.client.core.effects import CallDone, Effect, PollFailed, PollReturned
from rejoin.client.core.errors import IllegalStateError, KafkaError
from rejoin.client.core.group import closing, describe, lookup, membership
from rejoin.client.core.group.consumer import rounds
from rejoin.client.core.group.consumer.state import ConsumerMembership
from rejoin.client.core.group.describe import MembershipView
from rejoin.client.core.in_flight_requests import fail_lost_requests
from rejoin.client.core.inputs import (
    Answered,
    Closed,
    Failed,
    Millis,
    Polled,
    Processed,
    Subscribed,
    Unsubscribed,
    Woken,
)
from rejoin.client.core.share import acknowledging, poll
from rejoin.client.core.share.inputs import RecordAcknowledged, ShareCommitAsked, ShareInput
from rejoin.client.core.share.state import AcknowledgeCall, ShareConsumerState
from rejoin.client.core.state.consumer import ClosePhase, ConsumerState
from rejoin.client.core.step_context import Deserializer, StepContext
from rejoin.journal.events.client import Subscribing
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.registry import Api
from rejoin.protocol.types import TopicPartition

CLOSED: Final = "this consumer is closed"


class ShareConsumerCore:
    """One share consumer. ``member_id`` is its id in the group for as long as it lives.

    ``jitter`` gives a number in [0, 1) each time a backoff is chosen. ``versions`` makes it speak an older version of
    some APIs. ``explicit`` demands an acknowledgement of each record; ``limit_records`` asks for the acquire mode
    record_limit.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        jitter: Callable[[], float],
        *,
        member_id: str,
        explicit: bool = False,
        limit_records: bool = False,
        versions: Mapping[Api, int] | None = None,
        deserializers: tuple[Deserializer | None, Deserializer | None] = (None, None),
    ) -> None:
        self.config = config
        self._ctx = StepContext(config, [], jitter, {} if versions is None else versions, None, True, deserializers)
        self._share = ShareConsumerState(explicit, limit_records)
        self._state = ConsumerState(membership=ConsumerMembership(member_id), share=self._share)
        self._closing: AcknowledgeCall | None = None

    def number_requests_from(self, first: int) -> None:
        """Let the numbers of requests begin here, as a driver may want that knows them by their size."""
        self._state.requests.last_id = first

    # -- the door

    def step(self, what: ShareInput, now: Millis) -> list[Effect]:
        """Handle an input and due timers; return the effects, in order."""
        state, ctx = self._state, self._ctx
        ctx.begin(now)
        if self.closed:
            _refuse(ctx, what)
            return ctx.effects
        self._take_in(what)
        while fail_lost_requests(state, ctx):
            pass
        self._advance()
        while fail_lost_requests(state, ctx):
            self._advance()
        return ctx.effects

    def next_deadline(self) -> Millis | None:
        """When to come back with ``Elapsed`` at the latest, or none."""
        return None if self.closed else self._ctx.next_wake

    # -- queries

    @property
    def closed(self) -> bool:
        return self._state.closing.phase is ClosePhase.CLOSED

    @property
    def polling(self) -> bool:
        """True while a poll has not returned."""
        return self._state.poll is not None

    @property
    def requests_in_flight(self) -> int:
        """How many requests have no response yet."""
        return len(self._state.requests.in_flight)

    @property
    def lock_timeout_ms(self) -> Millis | None:
        """How long records stay acquired, as the last response says; none before the first."""
        return self._share.lock_timeout_ms

    def describe(self) -> MembershipView:
        """This member as it knows itself."""
        return describe.of_member(self._state)

    def assignment(self) -> list[TopicPartition]:
        """Partitions that this consumer reads, perhaps with others, by topic and partition."""
        return self._state.subscription.owned()

    def topic_errors(self) -> Mapping[str, ErrorCode]:
        """Why the last Metadata response lacks topics, which are asked for until they are there."""
        return self._state.metadata.topic_errors

    def subscribed_topics(self) -> tuple[str, ...]:
        return self._state.subscription.topics

    def records_in_flight(self) -> dict[TopicPartition, list[int]]:
        """Offsets of the records that polls have returned and that are not acknowledged yet."""
        found: dict[TopicPartition, list[int]] = {}
        for source, delivery in self._share.deliveries.items():
            undecided = delivery.records.keys() - delivery.acknowledged.keys()
            found.setdefault(source.name, []).extend(sorted(undecided))
        return {partition: offsets for partition, offsets in sorted(found.items()) if offsets}

    # -- what happened

    def _take_in(self, what: ShareInput) -> None:
        state, ctx = self._state, self._ctx
        match what:
            case Answered() | Failed():
                lookup.take_response(state, ctx, what)
            case Polled():
                poll.begin(state, ctx, what)
            case RecordAcknowledged():
                acknowledging.acknowledge(state, ctx, what)
            case ShareCommitAsked():
                acknowledging.commit(state, ctx, what)
            case Subscribed(topics=(), pattern=None, regex=None) | Unsubscribed():
                closing.unsubscribe(state, ctx, what.token)
            case Subscribed():
                self._subscribe(what)
            case Closed():
                self._begin_close(what)
            case Processed():
                membership.emit_processed(state, ctx, what)
            case Woken():
                state.woken = True
            case _:
                pass

    def _subscribe(self, what: Subscribed) -> None:
        state, ctx = self._state, self._ctx
        try:
            if what.pattern is not None or what.regex is not None:
                raise IllegalStateError("a share group reads topics by name, not by a pattern")
            if not all(topic.strip() for topic in what.topics):
                raise IllegalStateError("a topic name must not be blank")
            if state.subscription.subscribe(what.topics):
                metadata.request_update(state)
        except KafkaError as error:
            ctx.emit(CallDone(what.token, error))
            return
        assert state.membership is not None, "a share consumer is a member"
        state.membership.is_subscription_new = True
        ctx.emit(Subscribing(topics=list(state.subscription.topics), pattern=None, partitions={}, **ctx.identity))
        ctx.emit(CallDone(what.token))

    def _begin_close(self, what: Closed) -> None:
        """Close the sessions with the acknowledgements that are left, then leave the group."""
        state, ctx, share = self._state, self._ctx, self._share
        if state.closing.begun:
            ctx.emit(CallDone(what.token, IllegalStateError("the consumer is being closed")))
            return
        if state.poll is not None:
            poll.end(state, ctx, PollReturned())
        closing.close(state, ctx, what)
        if not what.leave:
            return
        # Kafka: records that the user has not decided about are released by the end of the session.
        acknowledging.collect(share)
        waiting = acknowledging.take_pending(share, share.pending)
        for node_id, session in share.sessions.items():
            if session.is_open:
                waiting.setdefault(node_id, {})
        if waiting:
            self._closing = acknowledging.begin(share, waiting, state.closing.until, closes=True)
            state.closing.phase = ClosePhase.COMMITTING

    # -- what is due

    def _advance(self) -> None:
        state, ctx, share = self._state, self._ctx, self._share
        rounds.advance(state, ctx)
        if share.calls:
            acknowledging.advance(state, ctx)
        if state.closing.begun:
            self._advance_close()
        if state.poll is not None:
            poll.advance(state, ctx, state.poll)
            if share.calls:
                acknowledging.advance(state, ctx)
        if not state.closing.begun and state.subscription.automatic:
            metadata.ensure_fresh(state, ctx)

    def _advance_close(self) -> None:
        state, ctx = self._state, self._ctx
        acknowledging.run_callbacks(self._share, ctx)
        if self._closing is not None and (self._closing.is_done or ctx.now >= state.closing.until):
            self._closing = None
            state.closing.phase = ClosePhase.AWAITING_ASYNC
        elif self._closing is not None:
            ctx.wake(state.closing.until)
        closing.advance(state, ctx)


def _refuse(ctx: StepContext, what: ShareInput) -> None:
    """Answer what happens to a consumer that is closed."""
    error = IllegalStateError(CLOSED)
    match what:
        case Polled():
            ctx.emit(PollFailed(error))
        case ShareCommitAsked():
            ctx.emit(CallDone(what.token, error))
        case Subscribed() | Unsubscribed() | RecordAcknowledged():
            ctx.emit(CallDone(what.token, error))
        case Closed():
            ctx.emit(CallDone(what.token))
        case _:
            pass
