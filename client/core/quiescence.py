"""Quiescence: what lets a driver skip the time in which a consumer does nothing new.

A member is quiet while it polls without a result, sends heartbeats and refreshes its metadata, and all of that goes
well. A driver that knows the answers need not play these exchanges: it remembers the :class:`Quiescence`, skips them,
and hands the new instants back with ``ConsumerCore.resume_after_idle``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rejoin.client.core import metadata
from rejoin.client.core.effects import Endpoint
from rejoin.client.core.group import heartbeat_timers
from rejoin.client.core.group.consumer import rounds
from rejoin.client.core.inputs import Millis
from rejoin.client.core.state.consumer import ConsumerState, Poll
from rejoin.client.core.step_context import StepContext
from rejoin.client.core.subscription import SubscriptionType
from rejoin.protocol.types import TopicPartition

NEVER: Final[Millis] = 1 << 60
"""An instant after all others."""


NOT_RESTORED: Final[Mapping[str, str]] = {
    "requests.last_id": "a number for requests, which is never compared",
    "heartbeat.request": "a memory of the last request, made again where it is none",
    "commits.next_auto_at": "unused without automatic commits",
}
"""State in which a consumer that was skipped may differ from one that was played, and why that has no effect.

Everything else must be equal, including fields that are added later: a test compares the whole state.
"""

POLL_STEPS: Final[Mapping[str, str]] = {
    "metadata.raise_error": "no error of metadata is kept",
    "join_loop.raise_listener_error": "no listener has run",
    "join_attempt.follow_metadata": "the topics are as the last join saw them",
    "commits.run_completed": "commits that went well call nothing that is waited for",
    "rounds.raise_failure": "the membership has not failed",
    "heartbeats.poll_heartbeat": "heartbeats have not failed; the poll interval restarts",
    "lookup.ensure_for_user": "the coordinator is known",
    "join_attempt.needed": "the member is stable",
    "join_loop.advance": "the member is stable",
    "commits.auto_commit_if_due": "played in short",
    "commits.wake_for_auto_commit": "played in short",
    "positions.update": "every partition has its position",
    "validation.validate": "records are not fetched in a simulation",
    "buffer.take": "records are not fetched in a simulation",
    "fetcher.send_fetches": "records are not fetched in a simulation",
    "fetching.take": "played in short",
    "fetching.refresh_ends": "ends of logs are a function of time",
}
"""The steps of a poll, and why a driver may leave each out while a member is quiet. A test compares the two."""


@dataclass(frozen=True, slots=True)
class Quiescence:
    """A quiet member: stable, with a position in every partition, in a poll, and with no request in flight.

    Every other input than ``Elapsed`` ends it. Until then the consumer's instants are these: the session and the poll
    interval restart with each heartbeat answer and each poll.
    """

    coordinator: Endpoint
    heartbeat_at: Millis
    """When the next heartbeat is sent; each follows the last by ``heartbeat_interval_ms``."""
    heartbeat_interval_ms: Millis
    """``heartbeat.interval.ms``, or in a consumer group what the coordinator has said."""
    poll_returns_at: Millis
    metadata_refreshed_at: Millis
    """When the last Metadata answer came; the next request follows after ``metadata.max.age.ms``."""
    session_expires_at: Millis
    """When the member gives its session up; in a consumer group it never does."""
    poll_expires_at: Millis


def quiescence(state: ConsumerState, ctx: StepContext) -> Quiescence | None:
    """The instants of a quiet member, or none while anything but heartbeats and empty polls is to come."""
    poll, coordinator, refreshed_at = state.poll, state.coordinator, state.metadata.refreshed_at
    if poll is None or coordinator is None or refreshed_at is None or state.requests.in_flight:
        return None
    member, heartbeat = state.membership, state.heartbeat
    is_stable = _is_stable(state) if member is None else rounds.is_stable(state, ctx)
    if not (is_stable and _calls_are_quiet(state) and _metadata_is_quiet(state, ctx)):
        return None
    return Quiescence(
        coordinator=coordinator,
        heartbeat_at=heartbeat.due_at if member is None else member.due_at,
        heartbeat_interval_ms=ctx.config.heartbeat_interval_ms if member is None else member.interval_ms,
        poll_returns_at=poll.until,
        metadata_refreshed_at=refreshed_at,
        session_expires_at=heartbeat.session_expires_at if member is None else NEVER,
        poll_expires_at=heartbeat.poll_expires_at if member is None else member.poll_expires_at,
    )


def _is_stable(state: ConsumerState) -> bool:
    """Whether a member of a classic group has nothing to do but to send heartbeats."""
    heartbeat = state.heartbeat
    return (
        state.is_stable
        and state.needs_prepare
        and state.join.joined_topics == state.subscription.topics
        and heartbeat.enabled
        and heartbeat.failure is None
        and heartbeat.attempts == 0
    )


def _calls_are_quiet(state: ConsumerState) -> bool:
    """Whether no call of the user's is open but the poll, and every partition has its position."""
    subscription = state.subscription
    return (
        not state.in_listener
        and not state.deferred_join_answers
        and not state.woken
        and not state.closing.begun
        and not state.queries
        and state.commits.idle
        and not state.lookup.callbacks
        and subscription.type is SubscriptionType.AUTO_TOPICS
        and state.positions.error is None
        and all(each.position is not None for each in subscription.assignment.values())
    )


def _metadata_is_quiet(state: ConsumerState, ctx: StepContext) -> bool:
    known, join = state.metadata, state.join
    return (
        known.error is None
        and not metadata.is_stale(state, ctx)
        and known.version <= join.snapshot.version
        # The next request would name the topics that are known: a leader's may differ from its own.
        and sorted(known.topics) == sorted(state.subscription.metadata_topics())
        and metadata.snapshot(state, ctx).topics == join.snapshot.topics
        and (join.assigned_from is None or join.assigned_from.matches(join.snapshot))
    )


@dataclass(frozen=True, slots=True)
class RecordProgress:
    """How far a consumer has come that was played in short: what it was handed out, and its instants.

    ``partitions`` are in the order in which they give records next, each with its position and the log's end as it was
    last seen. ``poll_returns_at`` is none while no poll runs; ``fetch_at`` is when the poll looks for records next.
    """

    partitions: Mapping[TopicPartition, tuple[int, int]]
    poll_returns_at: Millis | None
    fetch_at: Millis
    polled_at: Millis
    heartbeat_at: Millis
    session_expires_at: Millis
    auto_commit_at: Millis | None
    """When the next automatic commit is due, if there are any."""


def resume_after_progress(state: ConsumerState, ctx: StepContext, now: Millis, progress: RecordProgress) -> None:
    """Bring a consumer to where playing it would have; see ``ConsumerCore.resume_after_progress``."""
    ctx.begin(now)
    assignment = state.subscription.assignment
    for partition, (position, end) in progress.partitions.items():
        owned = assignment.pop(partition)
        owned.position, owned.end = position, end
        assignment[partition] = owned
    poll_expires_at = progress.polled_at + ctx.config.max_poll_interval_ms
    _set_heartbeat(state, progress.heartbeat_at, progress.session_expires_at)
    if state.membership is None:
        state.heartbeat.poll_expires_at = poll_expires_at
        ctx.wake(min(progress.heartbeat_at, progress.session_expires_at, poll_expires_at))
    else:
        state.membership.poll_expires_at = poll_expires_at
        ctx.wake(min(progress.heartbeat_at, poll_expires_at))
    state.commits.next_auto_at = progress.auto_commit_at
    state.poll = None
    if progress.poll_returns_at is not None:
        state.poll = Poll(progress.poll_returns_at, ctx.config.max_poll_records, None)
        ctx.wake(min(progress.poll_returns_at, progress.fetch_at))
        if progress.auto_commit_at is not None:
            ctx.wake(max(progress.auto_commit_at, now))
    if state.metadata.request_id is None and state.metadata.refreshed_at is not None:
        ctx.wake(state.metadata.refreshed_at + ctx.config.metadata_max_age_ms)


def resume_after_idle(
    state: ConsumerState,
    ctx: StepContext,
    now: Millis,
    *,
    poll_returns_at: Millis,
    heartbeat_at: Millis | None,
    session_expires_at: Millis | None,
    metadata_refreshed_at: Millis | None,
) -> None:
    """Set the instants of a quiet member forward; see ``ConsumerCore.resume_after_idle``."""
    poll, member, known = state.poll, state.membership, state.metadata
    assert poll is not None, "a quiet member is in a poll"
    ctx.begin(now)
    poll.until = poll_returns_at
    _set_heartbeat(state, heartbeat_at, session_expires_at)
    if metadata_refreshed_at is not None:
        known.refreshed_at = metadata_refreshed_at
    if member is None:
        heartbeat_timers.polled(state, ctx)
    else:
        member.poll_expires_at = now + ctx.config.max_poll_interval_ms
    ctx.wake(min(state.heartbeat.due_at if member is None else member.due_at, poll.until))
    if known.request_id is None and known.refreshed_at is not None:
        ctx.wake(known.refreshed_at + ctx.config.metadata_max_age_ms)


def _set_heartbeat(state: ConsumerState, due_at: Millis | None, session_expires_at: Millis | None) -> None:
    """Set when the next heartbeat is due, and when the session ends; an instant that is not given stays."""
    member, heartbeat = state.membership, state.heartbeat
    if member is not None:
        member.due_at = member.due_at if due_at is None else due_at
        return
    heartbeat.due_at = heartbeat.due_at if due_at is None else due_at
    if session_expires_at is not None:
        heartbeat.session_expires_at = session_expires_at
