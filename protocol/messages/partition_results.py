"""Results by partition, in the order in which Kafka answers them: the form of several responses about offsets."""

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


_ANSWERED_FIRST: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)
"""Errors of partitions of which the group is not asked."""


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
    """A topic of a request whose newer versions have the topic's id."""

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
    return _response(types, _names(requested), errors, others)


def response_by_id(
    types: ResultTypes[R],
    requested: Sequence[IdentifiedTopic],
    errors: Mapping[TopicPartition, ErrorCode],
    others: ErrorCode,
) -> R:
    """A result for each partition, with the ids of the topics, where the request has any."""
    if all(topic.topic_id == ZERO_UUID for topic in requested):
        return response_of(types, requested, errors, others)
    ids = {topic.name: topic.topic_id for topic in requested}
    response: Any = _response(types, _names(requested), errors, others)
    # Without errors the topics are those of the request, in its order; their names may not be known.
    of_topics = [ids[topic.name] for topic in response.topics] if errors else [topic.topic_id for topic in requested]
    named = tuple(
        topic.model_copy(update={"topic_id": topic_id})
        for topic, topic_id in zip(response.topics, of_topics, strict=True)
    )
    found: R = response.model_copy(update={"topics": named})
    return found


def _names(requested: Sequence[RequestedTopic]) -> _Names:
    return tuple([(topic.name, tuple([each.partition_index for each in topic.partitions])) for topic in requested])


def _response(types: ResultTypes[R], names: _Names, errors: Mapping[TopicPartition, ErrorCode], others: ErrorCode) -> R:
    new_response: Any = types.response
    new_topic: Any = types.topic
    if errors and not _ANSWERED_FIRST.isdisjoint(errors.values()):
        names = _refused_first(names, errors)
    topics = []
    for name, indexes in names:
        if errors:
            found = [_result(types.partition, each, errors.get(TopicPartition(name, each), others)) for each in indexes]
        else:
            found = [_result(types.partition, each, others) for each in indexes]
        topics.append(new_topic(name=name, partitions=tuple(found)))
    response: R = new_response(topics=tuple(topics))
    return response


def _refused_first(names: _Names, errors: Mapping[TopicPartition, ErrorCode]) -> _Names:
    """Each topic once, partitions that are refused before the group is asked first.

    Kafka: OffsetCommitResponse.Builder. The broker merges the answer of the group into its own refusals, by topic.
    Where nothing is refused, topics stay as the request has them, also one that is named twice.
    """
    refused: dict[str, list[int]] = {}
    asked: dict[str, list[int]] = {}
    for name, indexes in names:
        for index in indexes:
            is_refused = errors.get(TopicPartition(name, index)) in _ANSWERED_FIRST
            (refused if is_refused else asked).setdefault(name, []).append(index)
    merged = refused | {name: refused.get(name, []) + indexes for name, indexes in asked.items()}
    return tuple([(name, tuple(indexes)) for name, indexes in merged.items()])


@lru_cache(maxsize=4_096)
def _shared_response(types: ResultTypes[Any], name: str, indexes: tuple[int, ...], error: ErrorCode) -> Any:
    """The response about one topic with one error for all."""
    return _response(types, ((name, indexes),), {}, error)


@lru_cache(maxsize=4_096)
def _result(partition_type: Any, partition_index: int, error_code: ErrorCode) -> Any:
    """The result of one partition. They do not change, and coordinators give few different ones, all day."""
    return partition_type(partition_index=partition_index, error_code=error_code)
