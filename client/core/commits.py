"""Committing offsets: the user's commits, the automatic ones, and which of them are repeated.

Always true: a synchronous commit ends exactly once; an asynchronous one is tried once, and its answer waits here until
the user polls, commits or closes.

Source: Kafka's ConsumerCoordinator (commitOffsetsSync, commitOffsetsAsync, OffsetCommitResponseHandler).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from rejoin.client.core import requests
from rejoin.client.core.effects import CommitDone
from rejoin.client.core.errors import (
    CodedError,
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    IllegalStateError,
    InvalidGroupIdError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    RetriableCommitFailedError,
    TopicAuthorizationError,
    UnexpectedError,
)
from rejoin.client.core.inputs import CommitAsked, Millis, OffsetAndMetadata, Token
from rejoin.client.core.lookup import Lookup
from rejoin.client.core.membership import Membership, MemberState
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.step_context import NO_GENERATION, InFlight, StepContext, offsets_by_topic
from rejoin.client.core.subscription import SubscriptionState
from rejoin.journal.events.client import CommitFailed, CommitKind, CommitSucceeded, Fenced
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitResponse
from rejoin.protocol.types import TopicPartition

OLD_MEMBERSHIP = (
    "the group has given these partitions to somebody else: more than max.poll.interval.ms may have passed "
    "between two polls, or the session ended"
)
REBALANCING = "the group is rebalancing; poll until that is over, then commit again"


class Commit:
    """One commit. ``done`` and ``error`` say how the last attempt, or the whole, ended."""

    __slots__ = (
        "attempts",
        "done",
        "error",
        "expires_at",
        "kind",
        "offsets",
        "request_id",
        "retry_at",
        "then",
        "token",
    )

    def __init__(
        self,
        kind: CommitKind,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        token: Token = None,
        expires_at: Millis = 0,
        then: Callable[[KafkaError | None], None] | None = None,
    ) -> None:
        self.kind = kind
        self.offsets = offsets
        self.token = token
        self.expires_at = expires_at
        self.then = then
        """Set for a commit that somebody waits for: told once, how it ended for good."""
        self.attempts = 0
        self.retry_at: Millis = 0
        self.request_id: int | None = None
        self.done = False
        self.error: KafkaError | None = None

    @property
    def is_sync(self) -> bool:
        return self.then is not None


class Commits:
    """All commits of one consumer."""

    def __init__(
        self, ctx: StepContext, subscription: SubscriptionState, lookup: Lookup, membership: Membership
    ) -> None:
        self._ctx = ctx
        self._subscription = subscription
        self._lookup = lookup
        self._membership = membership
        self._waited_for: list[Commit] = []
        self._completed: deque[Commit] = deque()
        self._async_open = 0
        self._fenced = False
        self._next_auto_at: Millis | None = None

    @property
    def waited_for(self) -> bool:
        """True while somebody waits for a synchronous commit."""
        return bool(self._waited_for)

    @property
    def async_open(self) -> bool:
        """True while an asynchronous commit has no answer."""
        return self._async_open > 0

    @property
    def idle(self) -> bool:
        """True when no commit is under way and none has an answer to hand out."""
        return not (self._waited_for or self._async_open or self._completed)

    # -- what the user asks

    def ask(self, asked: CommitAsked) -> None:
        token = asked.token
        if self._ctx.config.group_id is None:
            self._ctx.effects.append(CommitDone(token, InvalidGroupIdError("commit needs a group.id")))
            return
        offsets = self._subscription.consumed() if asked.offsets is None else dict(sorted(asked.offsets.items()))
        try:
            self.run_completed()
        except KafkaError as error:
            self._ctx.effects.append(CommitDone(token, error))
            return
        if asked.sync:
            timeout = self._ctx.config.default_api_timeout_ms if asked.timeout_ms is None else asked.timeout_ms
            self.wait_for("sync", offsets, timeout, lambda error: self._ctx.effects.append(CommitDone(token, error)))
        else:
            self._commit_async(Commit("async", offsets, token))

    def wait_for(
        self,
        kind: CommitKind,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        timeout_ms: int,
        then: Callable[[KafkaError | None], None],
    ) -> None:
        """Commit, repeating what may be repeated until ``timeout_ms`` is over, and say how it ended."""
        self._waited_for.append(Commit(kind, offsets, None, self._ctx.now + timeout_ms, then))

    # -- automatic commits

    def restart_auto_timer(self) -> None:
        self._next_auto_at = self._ctx.now + self._ctx.config.auto_commit_interval_ms

    def auto_commit_if_due(self) -> None:
        """Commit every position in the background when the interval is over."""
        if not self._ctx.config.enable_auto_commit:
            return
        if self._next_auto_at is None:
            self.restart_auto_timer()
        assert self._next_auto_at is not None
        if self._ctx.now >= self._next_auto_at:
            self.restart_auto_timer()
            self._auto_commit("auto")

    def wake_for_auto_commit(self) -> None:
        if self._ctx.config.enable_auto_commit and self._next_auto_at is not None:
            self._ctx.wake(max(self._next_auto_at, self._ctx.now))

    def commit_for_rebalance(self) -> Commit:
        """Commit every position before partitions are given up; the caller waits and repeats."""
        return self._auto_commit("rebalance")

    def _auto_commit(self, kind: CommitKind) -> Commit:
        commit = Commit(kind, self._subscription.consumed())
        self._commit_async(commit)
        return commit

    # -- asynchronous commits

    def _commit_async(self, commit: Commit) -> None:
        self._async_open += 1
        if not commit.offsets or self._lookup.coordinator is not None:
            self._attempt(commit)
            return

        def found(problem: KafkaError | None) -> None:
            if problem is None:
                self._attempt(commit)
            else:
                self._attempt_ended(commit, problem)

        self._lookup.when_known(found)

    def run_completed(self) -> None:
        """Hand out the answers of asynchronous commits, oldest first.

        Raises FencedInstanceIdError, at every call, once a commit has met that.
        """
        # Kafka: invokeCompletedOffsetCommitCallbacks.
        if self._fenced:
            raise self._membership.fenced_error()
        while self._completed:
            commit = self._completed.popleft()
            error = commit.error
            if commit.kind != "async":
                if error is not None and error.retriable:
                    self._next_auto_at = self._ctx.now + self._ctx.config.retry_backoff_ms
                continue
            if error is not None and error.retriable:
                wrapped = RetriableCommitFailedError(f"offsets were not committed: {error}")
                wrapped.__cause__ = error
                error = wrapped
            self._ctx.effects.append(CommitDone(commit.token, error))

    # -- synchronous commits

    def advance(self) -> None:
        """Send, repeat or give up on what somebody waits for."""
        for commit in list(self._waited_for):
            self._advance(commit)

    def _advance(self, commit: Commit) -> None:
        ctx = self._ctx
        if not commit.offsets and self.async_open and ctx.now < commit.expires_at:
            # Kafka: invokePendingAsyncCommits. Earlier asynchronous commits are answered first.
            ctx.wake(commit.expires_at)
            return
        if commit.request_id is None and ctx.now >= commit.retry_at:
            try:
                if not commit.offsets or self._lookup.ensure_for_user():
                    self._attempt(commit)
            except KafkaError as error:
                self._finish(commit, error)
        if commit not in self._waited_for:
            return
        if ctx.now >= commit.expires_at:
            self._finish(commit, KafkaTimeoutError("time is over, and the offsets are not known to be committed"))
            return
        ctx.wake(commit.expires_at)
        if commit.request_id is None and commit.retry_at > ctx.now:
            ctx.wake(commit.retry_at)

    def _finish(self, commit: Commit, error: KafkaError | None) -> None:
        self._waited_for.remove(commit)
        try:
            self.run_completed()
        except KafkaError as fenced:
            error = fenced
        assert commit.then is not None, "nobody waits for this commit"
        commit.then(error)

    # -- one attempt

    def _attempt(self, commit: Commit) -> None:
        """Kafka's sendOffsetCommitRequest: some attempts fail without asking anybody."""
        if not commit.offsets:
            self._attempt_ended(commit, None)
            return
        problem = self._refused_here(commit)
        if problem is not None:
            self._attempt_ended(commit, problem)
            return
        as_member = self._subscription.automatic
        generation = self._membership.generation if as_member else NO_GENERATION
        request = requests.offset_commit(
            self._ctx.config, self._membership.group_id, generation, commit.offsets, as_member=as_member
        )
        commit.request_id = self._ctx.send(
            request,
            lambda sent, response: self._answered(commit, sent, response),
            lambda _, problem: self._attempt_ended(commit, problem),
            to=self._lookup.coordinator,
            generation=generation,
        )

    def _refused_here(self, commit: Commit) -> KafkaError | None:
        for (topic, partition), offset in commit.offsets.items():
            if offset.offset < 0:
                return IllegalStateError(f"invalid offset {offset.offset} for {topic}-{partition}")
        if self._lookup.coordinator is None:
            return self._lookup.not_available()
        if self._subscription.automatic and self._membership.generation_if_stable is None:
            if self._membership.rebalancing:
                return RebalanceInProgressError(REBALANCING)
            return CommitFailedError(f"not part of an active group: {OLD_MEMBERSHIP}")
        return None

    def _answered(self, commit: Commit, sent: InFlight, response: Response) -> None:
        assert isinstance(response, OffsetCommitResponse)
        forbidden: list[str] = []
        for topic in response.topics:
            for partition in topic.partitions:
                error = partition.error_code
                if error is ErrorCode.NONE:
                    continue
                if reaction("OffsetCommit", error) is Reaction.RAISE_TOPICS:
                    if topic.name not in forbidden:
                        forbidden.append(topic.name)
                    continue
                # Kafka: the first error that is not about authorization decides for the whole commit.
                self._attempt_ended(commit, self._react(error, sent))
                return
        self._attempt_ended(commit, TopicAuthorizationError(forbidden) if forbidden else None)

    def _react(self, error: ErrorCode, sent: InFlight) -> KafkaError:
        membership = self._membership
        unchanged = sent.generation == (membership.generation if self._subscription.automatic else NO_GENERATION)
        preparing = membership.state is MemberState.PREPARING_REBALANCE
        match reaction("OffsetCommit", error):
            case Reaction.BACK_OFF:
                return CodedError(error)
            case Reaction.FORGET_COORDINATOR:
                self._lookup.forget(f"error response {error.name}")
                return CodedError(error)
            case Reaction.REJOIN:
                membership.request_rejoin("offset commit failed since group is already rebalancing")
                return RebalanceInProgressError(REBALANCING)
            case Reaction.FENCED if unchanged:
                self._ctx.effects.append(Fenced(api=sent.api.name, **membership.shown))
                return membership.fenced_error()
            case Reaction.FORGET_MEMBERSHIP | Reaction.FORGET_GENERATION | Reaction.FENCED if (
                not unchanged and preparing
            ):
                return RebalanceInProgressError(REBALANCING)
            case Reaction.FORGET_MEMBERSHIP | Reaction.FORGET_GENERATION:
                membership.reset_on_error("OFFSET_COMMIT", error)
                return CommitFailedError(OLD_MEMBERSHIP)
            case Reaction.FENCED:
                return CommitFailedError(OLD_MEMBERSHIP)
            case Reaction.RAISE if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                return GroupAuthorizationError(f"not authorized for group {self._ctx.config.group_id}")
            case Reaction.RAISE:
                return CodedError(error)
            case _:
                return UnexpectedError("OffsetCommit", error)

    def _attempt_ended(self, commit: Commit, problem: KafkaError | None) -> None:
        commit.request_id = None
        commit.error = problem
        if commit.offsets:
            self._tell(commit, problem)
        if not commit.is_sync:
            commit.done = True
            self._async_open -= 1
            self._completed.append(commit)
            self._fenced = self._fenced or isinstance(problem, FencedInstanceIdError)
        elif commit not in self._waited_for:
            return  # Its time was over before this answer came.
        elif problem is None or not problem.retriable:
            self._finish(commit, problem)
        else:
            commit.retry_at = self._ctx.now + self._ctx.backoff(commit.attempts)
            commit.attempts += 1

    def _tell(self, commit: Commit, problem: KafkaError | None) -> None:
        offsets = offsets_by_topic(commit.offsets)
        shown = self._membership.shown
        if problem is None:
            self._ctx.effects.append(CommitSucceeded(kind=commit.kind, offsets=offsets, **shown))
        else:
            self._ctx.effects.append(
                CommitFailed(
                    kind=commit.kind, offsets=offsets, problem=str(problem), retriable=problem.retriable, **shown
                )
            )
