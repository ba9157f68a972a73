"""One try to join: JoinGroup, as leader the assignor, then SyncGroup. What its outcome means is for the join loop.

Always true: there is at most one attempt, and an answer to JoinGroup or SyncGroup belongs to it.

Source: Kafka's AbstractCoordinator (JoinGroupResponseHandler, SyncGroupResponseHandler) and
ConsumerCoordinator.onLeaderElected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rejoin.client.assignors import Assignor, RebalanceProtocol
from rejoin.client.core import requests
from rejoin.client.core.errors import (
    CodedError,
    GroupAuthorizationError,
    IllegalStateError,
    KafkaError,
    UnexpectedError,
    UnjoinedGroupError,
)
from rejoin.client.core.heartbeat import Heartbeat
from rejoin.client.core.inputs import Millis
from rejoin.client.core.leader import Candidates, compute_assignment, read_members
from rejoin.client.core.lookup import Lookup
from rejoin.client.core.membership import Membership, MemberState
from rejoin.client.core.metadata import Metadata, Snapshot
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.step_context import Generation, InFlight, StepContext, by_topic
from rejoin.client.core.subscription import Kind, SubscriptionState
from rejoin.journal.events.client import AssignmentSkipped, Fenced, GenerationJoined, GroupSynced, JoinSent
from rejoin.protocol.embedded.consumer_protocol import Subscription, decode_assignment, encode_subscription
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.groups.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from rejoin.protocol.messages.groups.sync_group import SyncGroupResponse
from rejoin.protocol.registry import JOIN_GROUP, SYNC_GROUP


@dataclass(slots=True)
class Attempt:
    """One try to join: JoinGroup, then SyncGroup. ``outcome`` is the assignment, or why there is none."""

    started_at: Millis
    outcome: bytes | KafkaError | None = None
    leading: Candidates | None = None
    skips: bool = False
    """As leader: the group's assignment stands, nothing is computed."""
    update: int = 0
    """As leader: the metadata update that must be seen before the assignor runs."""


class Joining:
    """The attempt that runs now, if any, and what the last one was made from."""

    def __init__(
        self,
        ctx: StepContext,
        subscription: SubscriptionState,
        metadata: Metadata,
        lookup: Lookup,
        membership: Membership,
        heartbeat: Heartbeat,
        assignors: Mapping[str, Assignor],
        protocol: RebalanceProtocol,
    ) -> None:
        self.attempt: Attempt | None = None
        self.is_leader = False
        self.assignors = assignors
        self.protocol = protocol
        self.snapshot = metadata.snapshot()
        """The topics as the last poll saw them."""
        self.assigned_from: Snapshot | None = None
        """As leader: the topics as the assignment was computed from them."""
        self.joined_topics: tuple[str, ...] | None = None
        """The subscription that the last JoinGroup carried."""
        self._ctx = ctx
        self._subscription = subscription
        self._metadata = metadata
        self._lookup = lookup
        self._membership = membership
        self._heartbeat = heartbeat
        self._rebalance_began_at: Millis | None = None

    def needed(self) -> bool:
        """True when this consumer has to join, or is about to."""
        # Kafka: ConsumerCoordinator.rejoinNeededOrPending.
        if self.assigned_from is not None and not self.assigned_from.matches(self.snapshot):
            self._membership.request_rejoin_unless_asked("cached metadata has changed")
            return True
        if self.joined_topics is not None and self.joined_topics != self._subscription.topics:
            self._membership.request_rejoin_unless_asked("subscription has changed")
            return True
        return self._membership.rejoin_needed or self.attempt is not None

    def follow_metadata(self) -> None:
        """Match the pattern against what is known now, and remember what a leader watches."""
        # Kafka: maybeUpdateSubscriptionMetadata.
        if self._metadata.version <= self.snapshot.version:
            return
        if self._subscription.kind is Kind.PATTERN:
            self._subscription.change_topics(self._metadata.matching())
        self.snapshot = self._metadata.snapshot()

    @property
    def joining(self) -> bool:
        """True while JoinGroup or SyncGroup has no outcome yet."""
        return self.attempt is not None and self.attempt.outcome is None

    # -- JoinGroup

    def send_join(self) -> None:
        ctx, membership = self._ctx, self._membership
        membership.state = MemberState.PREPARING_REBALANCE
        if self._rebalance_began_at is None:
            self._rebalance_began_at = ctx.now
        topics = self._subscription.topics
        owned = tuple(self._subscription.owned())
        rack = ctx.config.client_rack or None
        self.joined_topics = topics
        protocols = tuple(
            JoinGroupRequestProtocol(
                name=name,
                metadata=encode_subscription(
                    Subscription(
                        topics,
                        assignor.subscription_user_data(topics),
                        owned,
                        membership.generation.generation_id,
                        rack,
                    )
                ),
            )
            for name, assignor in self.assignors.items()
        )
        reason = membership.rejoin_reason
        request = requests.join_group(
            ctx.config,
            membership.group_id,
            membership.generation.member_id,
            protocols,
            reason,
            ctx.version(JOIN_GROUP),
        )
        self.attempt = Attempt(ctx.now)
        ctx.effects.append(JoinSent(reason=reason, topics=list(topics), owned=by_topic(owned), **membership.shown))
        ctx.send(
            request,
            self._join_answered,
            self._failed,
            to=self._lookup.coordinator,
            generation=membership.generation,
            timeout_ms=ctx.config.join_timeout_ms,
        )

    def _join_answered(self, sent: InFlight, response: Response) -> None:
        assert isinstance(response, JoinGroupResponse)
        attempt, membership = self.attempt, self._membership
        assert attempt is not None, "a JoinGroup belongs to an attempt"
        error = response.error_code
        if error is not ErrorCode.NONE:
            attempt.outcome = self._react_to_join(error, response, sent)
        elif response.protocol_type not in {None, requests.PROTOCOL_TYPE}:
            attempt.outcome = CodedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif membership.state is not MemberState.PREPARING_REBALANCE:
            attempt.outcome = UnjoinedGroupError("the membership ended while JoinGroup was on its way")
        else:
            membership.state = MemberState.COMPLETING_REBALANCE
            self._heartbeat.enable(self._ctx.now)
            membership.generation = Generation(
                response.generation_id, response.member_id, response.protocol_name or None
            )
            self._ctx.effects.append(
                GenerationJoined(
                    protocol=response.protocol_name or "",
                    leader=response.leader,
                    members=len(response.members),
                    waited_ms=self._ctx.now - attempt.started_at,
                    **membership.shown,
                )
            )
            if response.leader == response.member_id:
                self._lead(attempt, response)
            else:
                self._sync({})

    def _react_to_join(self, error: ErrorCode, response: JoinGroupResponse, sent: InFlight) -> KafkaError:
        membership = self._membership
        match reaction("JoinGroup", error):
            case Reaction.FORGET_COORDINATOR:
                self._lookup.forget(f"error response {error.name}")
            case Reaction.FORGET_MEMBERSHIP:
                if sent.generation == membership.generation:
                    membership.reset_on_error("JOIN_GROUP", error)
            case Reaction.TAKE_MEMBER_ID:
                membership.generation = Generation(-1, response.member_id, None)
                membership.request_rejoin(f"need to re-join with the given member-id: {response.member_id}")
            case Reaction.RAISE_UNEXPECTED:
                return UnexpectedError("JoinGroup", error)
        return self._error_for(error, sent)

    def _error_for(self, error: ErrorCode, sent: InFlight) -> KafkaError:
        if error is ErrorCode.FENCED_INSTANCE_ID:
            self._ctx.effects.append(Fenced(api=sent.api.name, **self._membership.shown))
            return self._membership.fenced_error()
        if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return GroupAuthorizationError(f"not authorized for group {self._ctx.config.group_id}")
        if error is ErrorCode.GROUP_MAX_SIZE_REACHED:
            return CodedError(error, f"group {self._ctx.config.group_id} already has as many members as it may")
        return CodedError(error)

    def _failed(self, sent: InFlight, problem: KafkaError) -> None:
        assert self.attempt is not None, "a JoinGroup or SyncGroup belongs to an attempt"
        self.attempt.outcome = problem

    # -- leading

    def _lead(self, attempt: Attempt, response: JoinGroupResponse) -> None:
        try:
            if response.protocol_name not in self.assignors:
                raise IllegalStateError(f"the coordinator chose assignor {response.protocol_name!r}, not one of ours")
            attempt.leading = read_members(response)
        except KafkaError as error:
            attempt.outcome = error
            return
        attempt.skips = response.skip_assignment
        if self._subscription.watch_group_topics(attempt.leading.topics):
            self._metadata.request_update()
        attempt.update = self._metadata.wanted_update()
        self.lead_on()

    def lead_on(self) -> None:
        """As leader: assign, once the topics of the whole group are known."""
        attempt, membership = self.attempt, self._membership
        if attempt is None or attempt.leading is None or attempt.outcome is not None:
            return
        if membership.state is not MemberState.COMPLETING_REBALANCE:
            # Differs: Kafka's heartbeat thread cannot run while the leader waits for metadata; ours goes on.
            attempt.leading = None
            attempt.outcome = CodedError(ErrorCode.ILLEGAL_GENERATION)
            return
        if not self._metadata.seen(attempt.update):
            self._metadata.ensure_fresh()
            return
        candidates, attempt.leading = attempt.leading, None
        assignor = self.assignors[membership.generation.protocol or ""]
        try:
            self._metadata.raise_error()
            self.follow_metadata()
            self.is_leader = True
            assignments: dict[str, bytes] = {}
            if attempt.skips:
                # Kafka: KIP-814. The leader still watches the topics, now that it is back.
                self._ctx.effects.append(AssignmentSkipped(**membership.shown))
            else:
                assignments = compute_assignment(
                    self._ctx, membership, self._metadata, assignor, self.protocol, candidates
                )
            self.assigned_from = self.snapshot
        except KafkaError as error:
            # Kafka: thrown from poll; heartbeats go on, and the next poll joins again, which frees the others.
            attempt.outcome = error
            return
        self._sync(assignments)

    # -- SyncGroup

    def _sync(self, assignments: dict[str, bytes]) -> None:
        membership, ctx = self._membership, self._ctx
        if self._lookup.coordinator is None:
            assert self.attempt is not None
            self.attempt.outcome = self._lookup.not_available()
            return
        request = requests.sync_group(
            ctx.config, membership.group_id, membership.generation, assignments, ctx.version(SYNC_GROUP)
        )
        ctx.send(
            request,
            self._sync_answered,
            self._failed,
            to=self._lookup.coordinator,
            generation=membership.generation,
        )

    def _sync_answered(self, sent: InFlight, response: Response) -> None:
        assert isinstance(response, SyncGroupResponse)
        attempt, membership = self.attempt, self._membership
        assert attempt is not None, "a SyncGroup belongs to an attempt"
        error = response.error_code
        if error is not ErrorCode.NONE:
            attempt.outcome = self._react_to_sync(error, sent)
        elif response.protocol_type not in {None, requests.PROTOCOL_TYPE}:
            attempt.outcome = CodedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif membership.was_reset or membership.state is not MemberState.COMPLETING_REBALANCE:
            attempt.outcome = CodedError(ErrorCode.ILLEGAL_GENERATION)
        elif response.protocol_name not in {None, membership.generation.protocol}:
            attempt.outcome = CodedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        else:
            membership.state = MemberState.STABLE
            membership.rejoin_needed = False
            membership.rejoin_reason = ""
            began = self._ctx.now if self._rebalance_began_at is None else self._rebalance_began_at
            self._rebalance_began_at = None
            attempt.outcome = response.assignment
            self._tell_received(response.assignment, self._ctx.now - began)

    def _tell_received(self, data: bytes, rebalance_ms: int) -> None:
        try:
            assigned = decode_assignment(data).partitions
        except ValueError:
            return
        self._ctx.effects.append(
            GroupSynced(
                assigned=by_topic(assigned),
                owned=by_topic(self._subscription.owned()),
                rebalance_ms=rebalance_ms,
                **self._membership.shown,
            )
        )

    def _react_to_sync(self, error: ErrorCode, sent: InFlight) -> KafkaError:
        match reaction("SyncGroup", error):
            case Reaction.FORGET_COORDINATOR:
                self._lookup.forget(f"error response {error.name}")
            case Reaction.FORGET_MEMBERSHIP | Reaction.FORGET_GENERATION:
                if sent.generation == self._membership.generation:
                    self._membership.reset_on_error("SYNC_GROUP", error)
            case Reaction.RAISE_UNEXPECTED:
                return UnexpectedError("SyncGroup", error)
        return self._error_for(error, sent)


def common_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The most advanced rebalance protocol that every assignor can serve. Raises ValueError when there is none."""
    shared = [
        protocol for protocol in RebalanceProtocol if all(protocol in assignor.protocols for assignor in assignors)
    ]
    if not shared:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ValueError(f"the assignors {names} have no rebalance protocol in common")
    return max(shared, key=lambda protocol: protocol.value)
