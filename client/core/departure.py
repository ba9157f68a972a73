"""Unsubscribing and closing: what is said to the user and to the group, in which order.

Source: Kafka's ConsumerCoordinator.close, onLeavePrepare and ClassicKafkaConsumer.unsubscribe.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias

from rejoin.client.config import CLOSE_TIMEOUT_MS
from rejoin.client.core.commits import Commits
from rejoin.client.core.effects import CallbackKind, CallDone
from rejoin.client.core.errors import KafkaError
from rejoin.client.core.heartbeat import Heartbeat
from rejoin.client.core.inputs import Closed, Millis, Token
from rejoin.client.core.listener import Listener, raised_by_listener
from rejoin.client.core.lookup import Lookup
from rejoin.client.core.membership import CLOSED_REASON, UNSUBSCRIBED_REASON, Membership
from rejoin.client.core.rebalance import Rebalance
from rejoin.client.core.step_context import StepContext
from rejoin.client.core.subscription import SubscriptionState
from rejoin.journal.events.client import ConsumerClosed

_Then: TypeAlias = Callable[[KafkaError | None], None]


class Phase(IntEnum):
    """How far close has come."""

    OPEN = 0
    COMMITTING = 1
    AWAITING_ASYNC = 2
    GIVING_UP = 3
    AWAITING_ANSWERS = 4
    CLOSED = 5


class Departure:
    """Leaves the group, with or without closing the consumer."""

    def __init__(
        self,
        ctx: StepContext,
        subscription: SubscriptionState,
        lookup: Lookup,
        membership: Membership,
        heartbeat: Heartbeat,
        commits: Commits,
        listener: Listener,
        rebalance: Rebalance,
    ) -> None:
        self.phase = Phase.OPEN
        self._ctx = ctx
        self._subscription = subscription
        self._lookup = lookup
        self._membership = membership
        self._heartbeat = heartbeat
        self._commits = commits
        self._listener = listener
        self._rebalance = rebalance
        self._token: Token = None
        self._leave = True
        self._until: Millis = 0
        self._error: KafkaError | None = None

    @property
    def closing(self) -> bool:
        return self.phase is not Phase.OPEN

    # -- unsubscribe

    def unsubscribe(self, token: Token) -> None:
        """Give up what is owned, leave the group, read nothing any more. Nothing is committed."""

        def given_up(error: KafkaError | None) -> None:
            if error is None:
                if self._ctx.config.group_id is not None:
                    self._membership.leave(UNSUBSCRIBED_REASON)
                self._subscription.unsubscribe()
            # Kafka: when the listener raises, the consumer stays in the group, without partitions.
            self._ctx.effects.append(CallDone(token, error))

        self._give_up_all(given_up)

    def _give_up_all(self, then: _Then) -> None:
        owned = self._subscription.owned()
        if not self._subscription.automatic or not owned:
            then(None)
            return
        generation = self._membership.generation
        out = generation.generation_id == -1 or not generation.member_id or self._membership.rebalancing
        kind: CallbackKind = "lost" if out else "revoked"

        def called(error: BaseException | None) -> None:
            self._subscription.assign(())
            self._rebalance.tell_given_up(kind, owned)
            if error is not None:
                self._rebalance.tell_listener_failed(kind, error)
            then(None if error is None else raised_by_listener(error))

        self._listener.call(kind, owned, called)

    # -- close

    def close(self, asked: Closed) -> None:
        """Begin to close; :meth:`advance` goes on with it."""
        timeout = CLOSE_TIMEOUT_MS if asked.timeout_ms is None else asked.timeout_ms
        self._token = asked.token
        self._leave = asked.leave and self._ctx.config.internal_leave_group_on_close
        self._until = self._ctx.now + min(timeout, self._ctx.config.request_timeout_ms)
        self.phase = Phase.COMMITTING
        if self._ctx.config.group_id is None:
            self.phase = Phase.AWAITING_ANSWERS
        elif self._ctx.config.enable_auto_commit and asked.leave:
            self._commits.wait_for("close", self._subscription.consumed(), self._until - self._ctx.now, self._committed)
        else:
            self._committed(None)

    def _committed(self, error: KafkaError | None) -> None:
        # Kafka: as with every automatic commit, a failure is told and not raised.
        self.phase = Phase.AWAITING_ASYNC

    def advance(self) -> None:
        """Go on closing as far as possible."""
        ctx = self._ctx
        expired = ctx.now >= self._until
        if self.phase is Phase.AWAITING_ASYNC and not self._listener.busy:
            if self._lookup.awaited and not expired:
                ctx.wake(self._until)
                self._lookup.ensure()
            else:
                self._stop()
        if self.phase is Phase.AWAITING_ANSWERS:
            waits = any(request.to is not None for request in ctx.in_flight.values())
            if waits and not expired:
                ctx.wake(self._until)
            else:
                self._end()

    def _stop(self) -> None:
        self.phase = Phase.GIVING_UP
        self._heartbeat.enabled = False
        if not self._leave:
            self.phase = Phase.AWAITING_ANSWERS
            return

        def given_up(error: KafkaError | None) -> None:
            self._error = error
            if error is None:
                # Kafka: a listener that raises here also prevents the LeaveGroup.
                self._membership.leave(CLOSED_REASON)
            self.phase = Phase.AWAITING_ANSWERS

        self._give_up_all(given_up)

    def _end(self) -> None:
        self.phase = Phase.CLOSED
        try:
            self._commits.run_completed()
        except KafkaError as error:
            self._error = self._error or error
        for request_id in list(self._ctx.in_flight):
            self._ctx.cancel(request_id)
        self._ctx.effects.append(ConsumerClosed(**self._ctx.who))
        self._ctx.effects.append(CallDone(self._token, self._error))
