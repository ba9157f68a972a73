"""This consumer as a member of its group: its state and generation, heartbeats, and leaving.

Always true: heartbeats are sent in COMPLETING_REBALANCE and STABLE only; an answer counts against the generation at the
time its request was sent; whoever resets the generation also asks for a rejoin.

Source: Kafka's AbstractCoordinator.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from rejoin.client.core import requests
from rejoin.client.core.errors import CoordinatorGivenUpError, FencedInstanceIdError, KafkaError
from rejoin.client.core.heartbeat import Heartbeat
from rejoin.client.core.lookup import Lookup
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.step_context import NO_GENERATION, Generation, InFlight, StepContext
from rejoin.journal.events.client import (
    Fenced,
    GroupLeft,
    HeartbeatFailed,
    MembershipReset,
    PollTimeoutExceeded,
    RejoinRequested,
)
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from rejoin.protocol.registry import LEAVE_GROUP

POLL_TIMEOUT_REASON = "consumer poll timeout has expired."
CLOSED_REASON = "the consumer is being closed"
UNSUBSCRIBED_REASON = "the consumer unsubscribed from all topics"
LEAVING_REASON = "consumer pro-actively leaving the group"


class MemberState(Enum):
    """Where this consumer stands with its group."""

    UNJOINED = auto()
    PREPARING_REBALANCE = auto()
    COMPLETING_REBALANCE = auto()
    STABLE = auto()


REBALANCING = frozenset({MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE})
BEATING = frozenset({MemberState.COMPLETING_REBALANCE, MemberState.STABLE})


class Membership:
    """The member. ``needs_prepare``: what is owned must be looked at before the next JoinGroup."""

    def __init__(self, ctx: StepContext, lookup: Lookup, heartbeat: Heartbeat) -> None:
        self.state = MemberState.UNJOINED
        self.generation = NO_GENERATION
        self.rejoin_needed = True
        self.rejoin_reason = ""
        self.needs_prepare = True
        self.user_is_polling = False
        self._ctx = ctx
        self._lookup = lookup
        self._heartbeat = heartbeat
        self._request: HeartbeatRequest | None = None

    @property
    def group_id(self) -> str:
        group_id = self._ctx.config.group_id
        assert group_id is not None, "only a consumer with a group is a member"
        return group_id

    @property
    def shown(self) -> dict[str, Any]:
        """The member's identity, as events carry it."""
        generation = self.generation
        return {**self._ctx.who, "member_id": generation.member_id, "generation": generation.generation_id}

    @property
    def rebalancing(self) -> bool:
        return self.state in REBALANCING

    @property
    def generation_if_stable(self) -> Generation | None:
        return self.generation if self.state is MemberState.STABLE else None

    @property
    def was_reset(self) -> bool:
        """True when there is no generation; the member id may have been kept."""
        return self.generation.generation_id == NO_GENERATION.generation_id and self.generation.protocol is None

    # -- asking for a rejoin, and forgetting

    def request_rejoin(self, reason: str) -> None:
        """Join again at the next poll, telling the coordinator why."""
        self.rejoin_needed = True
        self.rejoin_reason = reason
        self._ctx.effects.append(RejoinRequested(reason=reason, **self.shown))

    def request_rejoin_unless_asked(self, reason: str) -> None:
        if not self.rejoin_needed:
            self.request_rejoin(reason)

    def reset(self, reason: str, *, keep_member_id: bool = False) -> None:
        """Forget the generation, and the member id unless it may still be good; rejoin at the next poll."""
        before = self.shown
        self.state = MemberState.UNJOINED
        member_id = self.generation.member_id if keep_member_id else ""
        self.generation = Generation(-1, member_id, None)
        self._ctx.effects.append(MembershipReset(reason=reason, member_id_kept=keep_member_id, **before))
        self.request_rejoin(reason)
        self.needs_prepare = True

    def reset_on_error(self, api: str, error: ErrorCode) -> None:
        """Reset because of an answer; an illegal generation keeps the member id, which may still be good."""
        # Kafka: resetStateOnResponseError.
        reason = f"encountered {error.name} from {api} response"
        self.reset(reason, keep_member_id=error is ErrorCode.ILLEGAL_GENERATION)

    # -- heartbeats

    def poll_heartbeat(self) -> None:
        """The user polled: raise what stopped the heartbeats, else count the poll interval anew."""
        failure = self._heartbeat.failure
        if failure is not None:
            # Kafka: the failed thread is dropped; joining starts another.
            self._heartbeat.failure = None
            self._heartbeat.enabled = False
            raise failure
        self._heartbeat.polled(self._ctx.now)

    def beat(self) -> None:
        """What Kafka's heartbeat thread does in one round."""
        heartbeat, ctx, now = self._heartbeat, self._ctx, self._ctx.now
        if not heartbeat.enabled or heartbeat.failure is not None:
            return
        if self.state not in BEATING:
            heartbeat.enabled = False
            return
        if self.user_is_polling:
            # Kafka: each round of poll's own loop restarts the poll timer.
            heartbeat.polled(now)
        if self._lookup.ensure() and now >= heartbeat.session_expires_at:
            # Kafka: the session is the coordinator's to end; we only stop believing in this coordinator.
            self._lookup.forget("session timed out without receiving a heartbeat response")
            self._lookup.ensure()
        if self._lookup.coordinator is None:
            return
        if now >= heartbeat.poll_expires_at:
            self._exceed_poll_interval()
            return
        if now >= heartbeat.due_at:
            self._send_heartbeat()
        ctx.wake(min(heartbeat.due_at, heartbeat.session_expires_at, heartbeat.poll_expires_at))

    def _exceed_poll_interval(self) -> None:
        interval = self._ctx.config.max_poll_interval_ms
        self._ctx.effects.append(PollTimeoutExceeded(max_poll_interval_ms=interval, **self.shown))
        self.leave(POLL_TIMEOUT_REASON)
        self._heartbeat.enabled = False

    def _send_heartbeat(self) -> None:
        generation, request = self.generation, self._request
        if (
            request is None
            or request.generation_id != generation.generation_id
            or request.member_id != generation.member_id
        ):
            request = self._request = requests.heartbeat(self._ctx.config, self.group_id, generation)
        self._heartbeat.sent(self._ctx.now)
        self._ctx.send(
            request,
            self._heartbeat_answered,
            self._heartbeat_failed,
            to=self._lookup.coordinator,
            generation=generation,
        )

    def _heartbeat_answered(self, sent: InFlight, response: Response) -> None:
        assert isinstance(response, HeartbeatResponse)
        error = response.error_code
        if error is ErrorCode.NONE:
            self._heartbeat.answered(self._ctx.now)
            return
        unchanged = sent.generation == self.generation
        match reaction("Heartbeat", error):
            case Reaction.FORGET_COORDINATOR:
                self._tell_failed_heartbeat(error.name)
                self._lookup.forget(f"error response {error.name}")
                self._back_off_heartbeat()
            case Reaction.REJOIN:
                if self.state is MemberState.STABLE:
                    self.request_rejoin("group is already rebalancing")
                self._heartbeat.answered(self._ctx.now)
            case Reaction.FORGET_MEMBERSHIP | Reaction.FORGET_GENERATION if unchanged:
                self._tell_failed_heartbeat(error.name)
                self.reset_on_error("HEARTBEAT", error)
                self._back_off_heartbeat()
            case Reaction.FENCED if unchanged:
                self._fence(sent)
            case Reaction.FORGET_MEMBERSHIP | Reaction.FORGET_GENERATION | Reaction.FENCED:
                # About a membership that is over: the answer is good news about the coordinator and nothing else.
                self._heartbeat.answered(self._ctx.now)
            case _:
                self._tell_failed_heartbeat(error.name)
                self._back_off_heartbeat()

    def _heartbeat_failed(self, sent: InFlight, problem: KafkaError) -> None:
        # Several can be in flight, one an interval. That the coordinator was lost, and why, is told already, once.
        if not isinstance(problem, CoordinatorGivenUpError):
            self._tell_failed_heartbeat(str(problem))
        self._back_off_heartbeat()

    def _tell_failed_heartbeat(self, problem: str) -> None:
        self._ctx.effects.append(HeartbeatFailed(problem=problem, **self.shown))

    def _back_off_heartbeat(self) -> None:
        self._heartbeat.failed(self._ctx.now, self._ctx.backoff(self._heartbeat.attempts))

    def _fence(self, sent: InFlight) -> None:
        self._ctx.effects.append(Fenced(api=sent.api.name, **self.shown))
        self.reset_on_error("HEARTBEAT", ErrorCode.FENCED_INSTANCE_ID)
        self._heartbeat.failure = self.fenced_error()

    def fenced_error(self) -> FencedInstanceIdError:
        instance_id = self._ctx.config.group_instance_id
        return FencedInstanceIdError(f"another consumer joined as group.instance.id {instance_id}")

    # -- leaving

    def leave(self, reason: str) -> int | None:
        """Give up the place in the group; the request id of the LeaveGroup, or none where none is sent.

        A static member says nothing: the coordinator keeps its place until the session ends.
        """
        # Kafka: maybeLeaveGroup. Sent once, never repeated.
        request_id = None
        tells = (
            not self._ctx.config.is_static
            and self._lookup.coordinator is not None
            and self.state is not MemberState.UNJOINED
            and bool(self.generation.member_id)
        )
        if self.generation.member_id:
            self._ctx.effects.append(GroupLeft(reason=reason, told=tells, **self.shown))
        if tells:
            request = requests.leave_group(
                self.group_id, self.generation.member_id, reason, self._ctx.version(LEAVE_GROUP)
            )
            request_id = self._ctx.send(
                request, self._left, self._leave_failed, to=self._lookup.coordinator, generation=self.generation
            )
        self.reset(LEAVING_REASON)
        return request_id

    def _left(self, sent: InFlight, response: Response) -> None:
        """Nothing follows from the answer: the place was given up when the request was sent."""

    def _leave_failed(self, sent: InFlight, problem: KafkaError) -> None:
        """Nothing follows from a failure: the coordinator will end the session in time."""
