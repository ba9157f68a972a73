"""The join loop: prepare, JoinGroup, SyncGroup, complete; what is owned changes here and nowhere else.

The loop is entered from poll only and goes as far as it can each time. What it waits for is in the ``Attempt`` (Kafka's
join future), in the commit before a rebalance, or in the listener.

Source: Kafka's AbstractCoordinator.joinGroupIfNeeded and ConsumerCoordinator (onJoinPrepare, onJoinComplete).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rejoin.client.assignors import Assignor, RebalanceProtocol
from rejoin.client.core.commits import Commit, Commits
from rejoin.client.core.effects import CallbackKind
from rejoin.client.core.errors import CodedError, IllegalStateError, KafkaError
from rejoin.client.core.inputs import Millis
from rejoin.client.core.joining import Joining
from rejoin.client.core.listener import Listener, raised_by_listener, stops_at_once
from rejoin.client.core.lookup import Lookup
from rejoin.client.core.membership import Membership, MemberState
from rejoin.client.core.metadata import Metadata
from rejoin.client.core.step_context import Generation, StepContext, by_topic
from rejoin.client.core.subscription import Kind, SubscriptionState
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
    """An assignment on its way to the user, while the listener is called once or twice."""

    generation: Generation
    assignor: Assignor
    assignment: Assignment
    added: list[TopicPartition]
    revoked: list[TopicPartition]
    problem: BaseException | None = None


class Rebalance:
    """This consumer's side of its group's rebalances."""

    def __init__(
        self,
        ctx: StepContext,
        subscription: SubscriptionState,
        metadata: Metadata,
        lookup: Lookup,
        membership: Membership,
        joining: Joining,
        commits: Commits,
        listener: Listener,
    ) -> None:
        self.group_generation = membership.generation
        """The generation of the last assignment, as ``group_metadata`` shows it."""
        self._ctx = ctx
        self._subscription = subscription
        self._metadata = metadata
        self._lookup = lookup
        self._membership = membership
        self._joining = joining
        self._commits = commits
        self._listener = listener
        self._retry_at: Millis = 0
        self._prepare_until: Millis | None = None
        self._commit: Commit | None = None
        self._commit_retry_at: Millis = 0
        self._problem: KafkaError | None = None

    def raise_problem(self) -> None:
        """Raise, once, what the listener raised while nobody could be told."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem

    # -- the loop

    def advance(self) -> bool:
        """Go on with the join loop; true when no rejoin is needed any more, false while something is waited for.

        Raises what poll must raise.
        """
        while self._joining.needed():
            if self._listener.busy or not self._lookup.ensure_for_user():
                return False
            if self._membership.needs_prepare:
                self._membership.needs_prepare = False
                if not self._prepare():
                    self._membership.needs_prepare = self._membership.needs_prepare or not self._listener.busy
                    return False
                continue
            if self._joining.attempt is None:
                if self._ctx.now < self._retry_at:
                    self._ctx.wake(self._retry_at)
                    return False
                self._joining.send_join()
            assert self._joining.attempt is not None
            outcome = self._joining.attempt.outcome
            if outcome is None:
                return False
            if isinstance(outcome, KafkaError):
                self._attempt_failed(outcome)
            else:
                self._attempt_succeeded(outcome)
        return True

    def _attempt_failed(self, error: KafkaError) -> None:
        self._joining.attempt = None
        code = error.error if isinstance(error, CodedError) else None
        if code is not ErrorCode.MEMBER_ID_REQUIRED:
            self._membership.request_rejoin(f"rebalance failed due to {error.java_name}")
        if code in LOOP_AT_ONCE:
            return
        if not error.retriable:
            raise error
        self._retry_at = self._ctx.now + self._ctx.config.retry_backoff_ms

    def _attempt_succeeded(self, assignment: bytes) -> None:
        membership = self._membership
        if membership.was_reset or membership.state is not MemberState.STABLE:
            self._joining.attempt = None
            membership.reset(
                "rebalance failed since the generation/state was modified by heartbeat thread to "
                f"{membership.generation}/{membership.state.name} before the rebalance callback triggered"
            )
            return
        # Kafka: the attempt stays until complete ends well, so that what raised there is gone through again.
        self._complete(membership.generation, assignment)

    def _completed(self) -> None:
        self._joining.attempt = None
        self._membership.needs_prepare = True

    # -- prepare

    def _prepare(self) -> bool:
        """Commit, and give up what must be given up; false while that is not finished."""
        now, config = self._ctx.now, self._ctx.config
        if self._prepare_until is None:
            self._prepare_until = now + config.max_poll_interval_ms
        if config.enable_auto_commit and not self._committed_before_rebalance(self._prepare_until):
            return False
        generation, owned = self._membership.generation, self._subscription.owned()
        if generation.generation_id == -1 or not generation.member_id:
            if owned:
                self._give_up("lost", owned, [])
                return False
        elif self._joining.protocol is RebalanceProtocol.EAGER:
            # Kafka: the listener is called even when there is nothing to give up.
            self._give_up("revoked", owned, [])
            return False
        else:
            topics = set(self._subscription.topics)
            unwanted = [partition for partition in owned if partition.topic not in topics]
            if unwanted:
                self._give_up("revoked", unwanted, [partition for partition in owned if partition.topic in topics])
                return False
        self._prepared()
        return True

    def _committed_before_rebalance(self, until: Millis) -> bool:
        """True when the automatic commit is over, one way or another; it is repeated until ``until``."""
        ctx = self._ctx
        if self._commit is None:
            if ctx.now < self._commit_retry_at < until:
                ctx.wake(self._commit_retry_at)
                return False
            if self._joining.protocol is RebalanceProtocol.EAGER:
                # Kafka: nothing may be returned from here on, or it would be committed by nobody.
                self._subscription.mark_pending_revocation()
            self._commit = self._commits.commit_for_rebalance()
        commit = self._commit
        if ctx.now < until:
            if not commit.done:
                ctx.wake(until)
                return False
            if commit.error is not None and commit.error.retriable:
                self._commit = None
                self._commit_retry_at = ctx.now + ctx.config.retry_backoff_ms
                ctx.wake(self._commit_retry_at)
                return False
        return True

    def _give_up(self, kind: CallbackKind, partitions: list[TopicPartition], keep: list[TopicPartition]) -> None:
        def given_up(error: BaseException | None) -> None:
            if stops_at_once(error):
                self._raise_later(kind, error)
                return
            self._subscription.assign(keep)
            self.tell_given_up(kind, partitions)
            self._prepared()
            if error is not None:
                self._raise_later(kind, error)

        self._listener.call(kind, partitions, given_up)

    def tell_given_up(self, kind: CallbackKind, partitions: list[TopicPartition]) -> None:
        """Partitions went, in good order or not."""
        if partitions:
            event = PartitionsLost if kind == "lost" else PartitionsRevoked
            self._ctx.effects.append(event(partitions=by_topic(partitions), **self._membership.shown))

    def _prepared(self) -> None:
        self._joining.is_leader = False
        self._subscription.group_topics = ()
        self._prepare_until = None
        self._commit = None
        self._commit_retry_at = 0

    def _raise_later(self, kind: CallbackKind, error: BaseException | None) -> None:
        """The poll that goes on after the listener raises this."""
        assert error is not None
        self.tell_listener_failed(kind, error)
        self._problem = raised_by_listener(error)

    def tell_listener_failed(self, kind: CallbackKind, error: BaseException) -> None:
        """The listener raised."""
        problem = f"{type(error).__name__}: {error}"
        self._ctx.effects.append(ListenerFailed(callback=kind, problem=problem, **self._membership.shown))

    # -- complete

    def _complete(self, generation: Generation, data: bytes) -> None:
        if not self._joining.is_leader:
            self._joining.assigned_from = None
        assignor = self._joining.assignors.get(generation.protocol or "")
        if assignor is None:
            raise IllegalStateError(f"the coordinator chose assignor {generation.protocol!r}, not one of ours")
        self.group_generation = generation
        try:
            assignment = decode_assignment(data)
        except ValueError as error:
            raise IllegalStateError(
                f"the assignment of {len(data)} bytes cannot be read: {error}; did the leader forget this member?"
            ) from error
        assigned, owned = sorted(set(assignment.partitions)), self._subscription.owned()
        if not self._subscription.accepts(assigned):
            self._ctx.effects.append(AssignmentRefused(assigned=by_topic(assigned), **self._membership.shown))
            self._membership.request_rejoin("received assignment does not match the current subscription")
            self._completed()
            return
        kept = set(assigned) & set(owned)
        completion = Completion(
            generation,
            assignor,
            assignment,
            added=[partition for partition in assigned if partition not in kept],
            revoked=[partition for partition in owned if partition not in kept],
        )
        if self._joining.protocol is RebalanceProtocol.COOPERATIVE and completion.revoked:
            self._listener.call("revoked", completion.revoked, lambda error: self._moved_away(completion, error))
        else:
            self._adopt(completion)

    def _moved_away(self, completion: Completion, error: BaseException | None) -> None:
        """What goes to other members was given up; a follow-up rebalance hands it over."""
        if error is not None:
            if stops_at_once(error):
                self._raise_later("revoked", error)
                return
            self.tell_listener_failed("revoked", error)
            completion.problem = error
        self.tell_given_up("revoked", completion.revoked)
        self._membership.request_rejoin("need to revoke partitions and re-join")
        self._adopt(completion)

    def _adopt(self, completion: Completion) -> None:
        """Own what the leader decided, and tell the listener what is new, even if nothing is."""
        assigned = completion.assignment.partitions
        self._follow_leaders_topics(assigned)
        try:
            completion.assignor.on_assignment(completion.assignment, completion.generation.generation_id)
        except Exception as error:
            completion.problem = completion.problem or error
        self._commits.restart_auto_timer()
        self._subscription.assign(set(assigned))
        self._ctx.effects.append(PartitionsAssigned(partitions=by_topic(completion.added), **self._membership.shown))
        self._listener.call("assigned", completion.added, lambda error: self._adopted(completion, error))

    def _follow_leaders_topics(self, assigned: Sequence[TopicPartition]) -> None:
        """A leader that knows more topics than we do may give us some that match our pattern."""
        # Kafka: maybeUpdateJoinedSubscription.
        if self._subscription.kind is not Kind.PATTERN or self._joining.joined_topics is None:
            return
        new = {topic for topic, _ in assigned} - set(self._joining.joined_topics)
        if new:
            if self._subscription.change_topics({*self._subscription.topics, *new}):
                self._metadata.request_update()
            self._joining.joined_topics = tuple(sorted({*self._joining.joined_topics, *new}))

    def _adopted(self, completion: Completion, error: BaseException | None) -> None:
        if error is not None:
            if stops_at_once(error):
                self._raise_later("assigned", error)
                return
            self.tell_listener_failed("assigned", error)
        problem = completion.problem or error
        if problem is None:
            self._completed()
        else:
            self._problem = problem if isinstance(problem, KafkaError) else raised_by_listener(problem)
