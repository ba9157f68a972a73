"""Results by partition, in the order of the request: the form of several responses about offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import LONGEST_CACHED
from rejoin.protocol.message import Response, Struct
from rejoin.protocol.types import ZERO_UUID, TopicPartition

MOST_CACHED: Final = 16
"""Responses about more partitions are not kept in a cache."""


class RequestedPartition(Protocol):
    """A partition that a request names."""

    @property
    def partition_index(self) -> int: ...


class RequestedTopic(Protocol):
    """A topic that a request names, with some of its partitions."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Iterable[RequestedPartition]: ...


R = TypeVar("R", bound=Response)


class ResultTypes(NamedTuple, Generic[R]):
    """The models of such a response: the whole, a topic in it, and a partition in that."""

    response: type[R]
    topic: type[Struct]
    partition: type[Struct]


class IdentifiedTopic(RequestedTopic, Protocol):
    """The same, where newer versions have the topic's id."""

    @property
    def topic_id(self) -> str: ...


_Names: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""Topics, each with the partitions that are named."""


def response_of(
    types: ResultTypes[R],
    requested: Sequence[RequestedTopic],
    errors: Mapping[TopicPartition, ErrorCode],
    others: ErrorCode,
) -> R:
    """A result for each partition that a request names: ``others`` where ``errors`` has none."""
    if not errors and len(requested) == 1:
        name = requested[0].name
        indexes = tuple([each.partition_index for each in requested[0].partitions])
        if len(indexes) <= MOST_CACHED and len(name) <= LONGEST_CACHED:
            # Members commit the same few partitions all day, and no response changes once it is made.
            response: R = _shared_response(types, name, indexes, others)
            return response
    names = tuple([(topic.name, tuple([each.partition_index for each in topic.partitions])) for topic in requested])
    return _response(types, names, errors, others)


def response_by_id(
    types: ResultTypes[R],
    requested: Sequence[IdentifiedTopic],
    errors: Mapping[TopicPartition, ErrorCode],
    others: ErrorCode,
) -> R:
    """The same with the ids of the topics, where the request has any."""
    if all(topic.topic_id == ZERO_UUID for topic in requested):
        return response_of(types, requested, errors, others)
    new_response: Any = types.response
    new_topic: Any = types.topic
    topics = []
    for topic in requested:
        results = [
            _result(types.partition, index, errors.get(TopicPartition(topic.name, index), others))
            for index in [each.partition_index for each in topic.partitions]
        ]
        topics.append(new_topic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(results)))
    response: R = new_response(topics=tuple(topics))
    return response


def _response(types: ResultTypes[R], names: _Names, errors: Mapping[TopicPartition, ErrorCode], others: ErrorCode) -> R:
    new_response: Any = types.response
    new_topic: Any = types.topic
    topics = []
    for name, indexes in names:
        if errors:
            found = [_result(types.partition, each, errors.get(TopicPartition(name, each), others)) for each in indexes]
        else:
            found = [_result(types.partition, each, others) for each in indexes]
        topics.append(new_topic(name=name, partitions=tuple(found)))
    response: R = new_response(topics=tuple(topics))
    return response


@lru_cache(maxsize=4_096)
def _shared_response(types: ResultTypes[Any], name: str, indexes: tuple[int, ...], error: ErrorCode) -> Any:
    """The response about one topic with one error for all."""
    return _response(types, ((name, indexes),), {}, error)


@lru_cache(maxsize=4_096)
def _result(partition_type: Any, partition_index: int, error_code: ErrorCode) -> Any:
    """The result of one partition. They do not change, and coordinators give few different ones, all day."""
    return partition_type(partition_index=partition_index, error_code=error_code)
