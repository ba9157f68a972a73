"""Committing offsets: the user's commits, the automatic ones, and which of them are repeated.

Always true: a synchronous commit ends exactly once; an asynchronous one is tried once, and its answer waits here until
the user polls, commits or closes.

Source: Kafka's ConsumerCoordinator (commitOffsetsSync, commitOffsetsAsync, OffsetCommitResponseHandler).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

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
    StaleMemberEpochError,
    TopicAuthorizationError,
    UnexpectedError,
)
from rejoin.client.core.group import lookup, membership
from rejoin.client.core.in_flight_requests import send
from rejoin.client.core.inputs import CommitAsked, OffsetAndMetadata
from rejoin.client.core.reactions import Reaction, reaction
from rejoin.client.core.state.consumer import ConsumerState, RequestInFlight
from rejoin.client.core.state.membership import NO_GENERATION, MemberState
from rejoin.client.core.state.offsets import PendingCommit
from rejoin.client.core.step_context import StepContext, offsets_by_topic
from rejoin.journal.events.client import CommitFailed, CommitKind, CommitSucceeded, Fenced
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.message import Response
from rejoin.protocol.messages.offsets.offset_commit import OffsetCommitResponse
from rejoin.protocol.types import TopicPartition

OLD_MEMBERSHIP = (
    "these partitions now belong to another member: max.poll.interval.ms has passed between two polls, or the "
    "session has ended"
)
REBALANCING = "the group is rebalancing; poll until that is over, then commit again"


def ask(state: ConsumerState, ctx: StepContext, asked: CommitAsked) -> None:
    """Begin a commit of the user's."""
    token = asked.token
    if ctx.config.group_id is None:
        ctx.emit(CommitDone(token, InvalidGroupIdError("commit needs a group.id")))
        return
    offsets = state.subscription.consumed() if asked.offsets is None else dict(sorted(asked.offsets.items()))
    try:
        run_completed(state, ctx)
    except KafkaError as error:
        ctx.emit(CommitDone(token, error))
        return
    if asked.sync:
        timeout = ctx.config.default_api_timeout_ms if asked.timeout_ms is None else asked.timeout_ms
        wait_for(state, ctx, "sync", offsets, timeout, lambda error: ctx.emit(CommitDone(token, error)))
    else:
        _commit_async(state, ctx, PendingCommit("async", offsets, token))


def wait_for(
    state: ConsumerState,
    ctx: StepContext,
    kind: CommitKind,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    timeout_ms: int,
    then: Callable[[KafkaError | None], None],
) -> None:
    """Commit, repeating what may be repeated until ``timeout_ms`` is over, and say how it ended."""
    state.commits.sync.append(PendingCommit(kind, offsets, None, ctx.now + timeout_ms, then))


# -- automatic commits


def restart_auto_timer(state: ConsumerState, ctx: StepContext) -> None:
    state.commits.next_auto_at = ctx.now + ctx.config.auto_commit_interval_ms


def auto_commit_if_due(state: ConsumerState, ctx: StepContext) -> None:
    """Commit every position in the background when the interval is over."""
    if not ctx.config.enable_auto_commit:
        return
    if state.commits.next_auto_at is None:
        restart_auto_timer(state, ctx)
    assert state.commits.next_auto_at is not None
    if ctx.now >= state.commits.next_auto_at:
        restart_auto_timer(state, ctx)
        _auto_commit(state, ctx, "auto")


def wake_for_auto_commit(state: ConsumerState, ctx: StepContext) -> None:
    if ctx.config.enable_auto_commit and state.commits.next_auto_at is not None:
        ctx.wake(max(state.commits.next_auto_at, ctx.now))


def commit_for_rebalance(state: ConsumerState, ctx: StepContext) -> PendingCommit:
    """Commit every position before partitions are given up; the caller waits and repeats."""
    return _auto_commit(state, ctx, "rebalance")


def _auto_commit(state: ConsumerState, ctx: StepContext, kind: CommitKind) -> PendingCommit:
    commit = PendingCommit(kind, state.subscription.consumed())
    _commit_async(state, ctx, commit)
    return commit


def resume_unwaited(
    state: ConsumerState, ctx: StepContext, kind: CommitKind, offsets: Mapping[TopicPartition, int]
) -> None:
    """Send a commit of these positions for which no call waits."""
    positions = {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()}
    _commit_async(state, ctx, PendingCommit(kind, positions))


# -- asynchronous commits


def _commit_async(state: ConsumerState, ctx: StepContext, commit: PendingCommit) -> None:
    state.commits.async_open += 1
    if not commit.offsets or state.coordinator is not None:
        _attempt(state, ctx, commit)
        return

    def found(problem: KafkaError | None) -> None:
        if problem is None:
            _attempt(state, ctx, commit)
        else:
            _attempt_ended(state, ctx, commit, problem)

    lookup.when_known(state, ctx, found)


def run_completed(state: ConsumerState, ctx: StepContext) -> None:
    """Hand out the answers of asynchronous commits, oldest first.

    Raises FencedInstanceIdError, at every call, once a commit has met that.
    """
    # Kafka: invokeCompletedOffsetCommitCallbacks.
    commits = state.commits
    if commits.fenced:
        raise membership.fenced_error(ctx)
    while commits.completed:
        commit = commits.completed.popleft()
        error = commit.error
        if commit.kind != "async":
            if error is not None and error.retriable:
                commits.next_auto_at = ctx.now + ctx.config.retry_backoff_ms
            continue
        if error is not None and error.retriable:
            wrapped = RetriableCommitFailedError(f"offsets were not committed: {error}")
            wrapped.__cause__ = error
            error = wrapped
        ctx.emit(CommitDone(commit.token, error))


# -- synchronous commits


def advance(state: ConsumerState, ctx: StepContext) -> None:
    """Send, repeat or give up on synchronous commits."""
    for commit in list(state.commits.sync):
        _advance(state, ctx, commit)


def _advance(state: ConsumerState, ctx: StepContext, commit: PendingCommit) -> None:
    if not commit.offsets and state.commits.async_open and ctx.now < commit.expires_at:
        # Kafka: invokePendingAsyncCommits. Earlier asynchronous commits are answered first.
        ctx.wake(commit.expires_at)
        return
    if commit.request_id is None and ctx.now >= commit.retry_at:
        try:
            if not commit.offsets or lookup.ensure_for_user(state, ctx):
                _attempt(state, ctx, commit)
        except KafkaError as error:
            _finish(state, ctx, commit, error)
    if commit not in state.commits.sync:
        return
    if ctx.now >= commit.expires_at:
        problem = KafkaTimeoutError("timed out; the offsets may or may not be committed")
        _finish(state, ctx, commit, problem)
        return
    ctx.wake(commit.expires_at)
    if commit.request_id is None and commit.retry_at > ctx.now:
        ctx.wake(commit.retry_at)


def _finish(state: ConsumerState, ctx: StepContext, commit: PendingCommit, error: KafkaError | None) -> None:
    state.commits.sync.remove(commit)
    try:
        run_completed(state, ctx)
    except KafkaError as fenced:
        error = fenced
    assert commit.then is not None, "a synchronous commit has a caller that waits for it"
    commit.then(error)


# -- one attempt


def _attempt(state: ConsumerState, ctx: StepContext, commit: PendingCommit) -> None:
    """Kafka's sendOffsetCommitRequest: some attempts fail without a request."""
    if not commit.offsets:
        _attempt_ended(state, ctx, commit, None)
        return
    problem = _refused_here(state, commit)
    if problem is not None:
        _attempt_ended(state, ctx, commit, problem)
        return
    as_member = state.subscription.automatic
    generation = state.generation if as_member else NO_GENERATION
    request = requests.offset_commit(ctx.config, ctx.group_id, generation, commit.offsets, as_member=as_member)
    commit.request_id = send(
        state,
        ctx,
        request,
        partial(_answered, commit),
        partial(_failed, commit),
        to=state.coordinator,
        generation=generation,
    )


def _refused_here(state: ConsumerState, commit: PendingCommit) -> KafkaError | None:
    for (topic, partition), offset in commit.offsets.items():
        if offset.offset < 0:
            return IllegalStateError(f"invalid offset {offset.offset} for {topic}-{partition}")
    if state.coordinator is None:
        return lookup.not_available()
    if state.subscription.automatic and state.stable_generation is None:
        if state.rebalancing:
            return RebalanceInProgressError(REBALANCING)
        return CommitFailedError(f"not part of an active group: {OLD_MEMBERSHIP}")
    return None


def _answered(
    commit: PendingCommit, state: ConsumerState, ctx: StepContext, sent: RequestInFlight, response: Response
) -> None:
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
            _attempt_ended(state, ctx, commit, _react(state, ctx, error, sent))
            return
    _attempt_ended(state, ctx, commit, TopicAuthorizationError(forbidden) if forbidden else None)


def _failed(
    commit: PendingCommit, state: ConsumerState, ctx: StepContext, sent: RequestInFlight, problem: KafkaError
) -> None:
    _attempt_ended(state, ctx, commit, problem)


def _react(state: ConsumerState, ctx: StepContext, error: ErrorCode, sent: RequestInFlight) -> KafkaError:
    unchanged = sent.generation == (state.generation if state.subscription.automatic else NO_GENERATION)
    preparing = state.member_state is MemberState.PREPARING_REBALANCE
    match reaction("OffsetCommit", error):
        case Reaction.BACK_OFF:
            return CodedError(error)
        case Reaction.TAKE_EPOCH:
            return StaleMemberEpochError()
        case Reaction.FORGET_COORDINATOR:
            lookup.forget(state, ctx, f"error response {error.name}")
            return CodedError(error)
        case Reaction.REJOIN:
            membership.request_rejoin(state, ctx, "offset commit failed since group is already rebalancing")
            return RebalanceInProgressError(REBALANCING)
        case Reaction.FENCED if unchanged:
            ctx.emit(Fenced(api=sent.api.name, **membership.identity(state, ctx)))
            return membership.fenced_error(ctx)
        case Reaction.FORGET_MEMBERSHIP | Reaction.FORGET_GENERATION | Reaction.FENCED if not unchanged and preparing:
            return RebalanceInProgressError(REBALANCING)
        case Reaction.FORGET_MEMBERSHIP if state.membership is not None:
            # Kafka: CommitRequestManager. The heartbeats of a consumer group's member say what becomes of it.
            return CommitFailedError(OLD_MEMBERSHIP)
        case Reaction.FORGET_MEMBERSHIP | Reaction.FORGET_GENERATION:
            membership.reset_on_error(state, ctx, "OFFSET_COMMIT", error)
            return CommitFailedError(OLD_MEMBERSHIP)
        case Reaction.FENCED:
            return CommitFailedError(OLD_MEMBERSHIP)
        case Reaction.RAISE if error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return GroupAuthorizationError(f"not authorized for group {ctx.group_id}")
        case Reaction.RAISE:
            return CodedError(error)
        case _:
            return UnexpectedError("OffsetCommit", error)


def _attempt_ended(state: ConsumerState, ctx: StepContext, commit: PendingCommit, problem: KafkaError | None) -> None:
    commits = state.commits
    commit.request_id = None
    commit.error = problem
    if commit.offsets:
        _emit_ended(state, ctx, commit, problem)
    if commit.then is None:
        commit.done = True
        commits.async_open -= 1
        commits.completed.append(commit)
        commits.fenced = commits.fenced or isinstance(problem, FencedInstanceIdError)
    elif commit not in commits.sync:
        return  # Its time was over before this answer came.
    elif problem is None or not problem.retriable:
        _finish(state, ctx, commit, problem)
    else:
        commit.retry_at = ctx.now + ctx.backoff(commit.attempts)
        commit.attempts += 1


def _emit_ended(state: ConsumerState, ctx: StepContext, commit: PendingCommit, problem: KafkaError | None) -> None:
    offsets = offsets_by_topic(commit.offsets)
    member = membership.identity(state, ctx)
    if problem is None:
        ctx.emit(CommitSucceeded(kind=commit.kind, positions=offsets, **member))
    else:
        ctx.emit(
            CommitFailed(
                kind=commit.kind, positions=offsets, problem=str(problem), retriable=problem.retriable, **member
            )
        )
