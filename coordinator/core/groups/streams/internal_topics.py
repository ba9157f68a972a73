"""Internal topics of streams groups: they are made in the name of the member whose heartbeat finds them missing.

A response does not wait for them. What prevents their creation stands in the status of the responses after it.

Kafka: KafkaApis.handleStreamsGroupHeartbeat, AutoTopicCreationManager.createStreamsInternalTopics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from rejoin.coordinator.core.groups.streams.topology.configured import MissingTopic
from rejoin.coordinator.core.groups.streams.topology.configuring import MOST_NAMED
from rejoin.coordinator.core.groups.streams.topology.problems import some_of
from rejoin.coordinator.core.inputs import Context, Millis
from rejoin.coordinator.core.step_context import StepContext
from rejoin.journal.events.streams_groups import StreamsInternalTopicsCreated
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import hash_map_order
from rejoin.protocol.messages.streams.streams_group_heartbeat import (
    StreamsGroupHeartbeatResponse,
    StreamsGroupStatus,
    StreamsStatus,
)
from rejoin.protocol.messages.topics.create_topics import CreatableTopic, CreatableTopicConfig, CreatableTopicResult

_OnCreated: TypeAlias = Callable[[Sequence[CreatableTopicResult]], None]

MOST_ERRORS: Final = 1_000
"""Errors that are remembered, of all groups. Kafka: as many."""

INTERVALS_OF_ERROR: Final = 2
"""Heartbeat intervals for which an error is remembered, and its topic is not tried again."""


class TopicMaker(Protocol):
    """The maker of topics for the clients of this node."""

    def may_create(self, name: str, context: Context) -> bool:
        """Whether the principal of a request has the right to."""

    def create_for(self, topics: Sequence[CreatableTopic], context: Context, on_created: _OnCreated) -> None:
        """Create topics as a CreateTopics of this principal does."""


class _Error(NamedTuple):
    text: str
    until: Millis


class InternalTopics:
    """The internal topics that this node is making, and those that it could not make."""

    def __init__(self, ctx: StepContext, topics: TopicMaker) -> None:
        self._ctx = ctx
        self._topics = topics
        self._in_flight: set[str] = set()
        self._errors: dict[str, _Error] = {}
        self._unauthorized: dict[str, list[str]] = {}
        """By group the topics that its members may not create."""

    def answered(
        self,
        group_id: str,
        response: StreamsGroupHeartbeatResponse,
        missing: Mapping[str, MissingTopic],
        context: Context,
    ) -> StreamsGroupHeartbeatResponse:
        """The response to a member whose group lacks these topics, which are being made from now on."""
        refused = [name for name in missing if not self._topics.may_create(name, context)]
        if refused:
            detail = f"The principal may not create {some_of(refused, MOST_NAMED)}."
            if self._unauthorized.get(group_id) != refused:
                # Of a member that asks again and again only the first time is an event.
                _make_room(self._unauthorized)
                self._unauthorized[group_id] = refused
                self._emit(group_id, refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED.name, detail)
            return _with_detail(response, detail)
        now = self._ctx.now
        for name in [name for name in missing if name in self._errors and self._errors[name].until <= now]:
            del self._errors[name]
        failed = [f"{name} ({self._errors[name].text})" for name in missing if name in self._errors]
        wanted = [name for name in missing if name not in self._in_flight and name not in self._errors]
        if wanted:
            self._in_flight.update(wanted)
            topics = [_creatable(name, missing[name]) for name in wanted]
            until = now + INTERVALS_OF_ERROR * response.heartbeat_interval_ms
            self._topics.create_for(topics, context, partial(self._created, group_id, wanted, until))
        return _with_detail(response, f"Not created: {some_of(failed, MOST_NAMED)}.") if failed else response

    def _created(
        self, group_id: str, names: Sequence[str], until: Millis, results: Sequence[CreatableTopicResult]
    ) -> None:
        self._in_flight.difference_update(names)
        made = [each.name for each in results if each.error_code is ErrorCode.NONE]
        if made:
            self._emit(group_id, made, None, None)
        for result in results:
            if result.error_code is ErrorCode.NONE:
                continue
            self._errors.pop(result.name, None)
            _make_room(self._errors)
            self._errors[result.name] = _Error(result.error_message or result.error_code.name, until)
            self._emit(group_id, [result.name], result.error_code.name, result.error_message)

    def _emit(self, group_id: str, topics: list[str], error: str | None, reason: str | None) -> None:
        self._ctx.emit(StreamsInternalTopicsCreated(group_id=group_id, topics=topics, error=error, reason=reason))


def _make_room(errors: dict[str, Any]) -> None:
    """Forget the oldest errors beyond the most that are remembered."""
    while len(errors) >= MOST_ERRORS:
        del errors[next(iter(errors))]


def _creatable(name: str, topic: MissingTopic) -> CreatableTopic:
    """A topic as it is asked for: with the settings that the application gives, and no others."""
    settings = {each.key: each.value for each in topic.info.topic_configs}
    return CreatableTopic(
        name=name,
        num_partitions=topic.partitions,
        replication_factor=topic.info.replication_factor or -1,
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key, value=settings[key]) for key in hash_map_order([*settings])),
    )


def _with_detail(response: StreamsGroupHeartbeatResponse, detail: str) -> StreamsGroupHeartbeatResponse:
    """The response with more words in its status about internal topics."""
    status = tuple(
        StreamsGroupStatus(status_code=each.status_code, status_detail=f"{each.status_detail} {detail}")
        if each.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS
        else each
        for each in response.status or ()
    )
    return response.model_copy(update={"status": status})
