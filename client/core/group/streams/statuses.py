"""Conditions of a streams group that its members learn of, and those that end an application.

Source: Kafka's StreamThread.handleStreamsRebalanceData.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rejoin.client.core.errors import (
    ApplicationShutdownError,
    KafkaError,
    MissingSourceTopicError,
    TopologyError,
)
from rejoin.client.core.group import membership
from rejoin.client.core.group.consumer import transitions
from rejoin.client.core.group.consumer.state import HAS_NO_GROUP
from rejoin.client.core.group.streams.state import StreamsMembership
from rejoin.client.core.state.consumer import ConsumerState
from rejoin.client.core.step_context import StepContext
from rejoin.journal.events.streams_members import StreamsStatusReceived
from rejoin.protocol.messages.streams.streams_group_heartbeat import StreamsGroupStatus, StreamsStatus

NOT_READY: Final = frozenset(
    {
        StreamsStatus.MISSING_SOURCE_TOPICS,
        StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
        StreamsStatus.MISSING_INTERNAL_TOPICS,
        StreamsStatus.ASSIGNMENT_DELAYED,
    }
)
"""Conditions under which a thread polls and processes nothing."""

INTERVALS_WITHOUT_SOURCES: Final = 2
"""Heartbeat intervals for which an application waits for its source topics before it fails."""


def is_group_ready(member: StreamsMembership) -> bool:
    """Whether the application may process records."""
    return not any(each.status_code in NOT_READY for each in member.statuses)


def take(
    state: ConsumerState, ctx: StepContext, member: StreamsMembership, given: tuple[StreamsGroupStatus, ...]
) -> None:
    """Take in the conditions that a response names. Each response names all that apply."""
    if given != member.statuses:
        named = [f"{_name(each.status_code)}: {each.status_detail}" for each in given]
        ctx.emit(StreamsStatusReceived(statuses=named, **membership.identity(state, ctx)))
    member.statuses = given
    codes = {each.status_code for each in given}
    if StreamsStatus.MISSING_SOURCE_TOPICS not in codes:
        member.sources_missing_since = None
    elif member.sources_missing_since is None:
        member.sources_missing_since = ctx.now
    if StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS in codes:
        transitions.fail(state, TopologyError(_detail(given, StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS)))
    elif StreamsStatus.SHUTDOWN_APPLICATION in codes:
        transitions.fail(state, ApplicationShutdownError(_detail(given, StreamsStatus.SHUTDOWN_APPLICATION)))


def expire(state: ConsumerState, ctx: StepContext, member: StreamsMembership) -> None:
    """Fail when source topics have been missing for too long."""
    since = member.sources_missing_since
    if since is None or member.state in HAS_NO_GROUP:
        return
    until = since + INTERVALS_WITHOUT_SOURCES * member.interval_ms
    if ctx.now < until:
        ctx.wake(until)
    else:
        transitions.fail(state, MissingSourceTopicError(_detail(member.statuses, StreamsStatus.MISSING_SOURCE_TOPICS)))


def unknown_subtopologies(names: Iterable[str]) -> KafkaError:
    """The error of an assignment with tasks that this application does not have."""
    return TopologyError(f"the coordinator assigned tasks of unknown subtopologies: {', '.join(sorted(names))}")


def _detail(given: Iterable[StreamsGroupStatus], code: StreamsStatus) -> str:
    return next((each.status_detail for each in given if each.status_code == code), code.name)


def _name(code: int) -> str:
    return next((each.name for each in StreamsStatus if each == code), f"STATUS_{code}")
