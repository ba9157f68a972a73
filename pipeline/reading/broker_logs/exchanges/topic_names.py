"""Topics by name: newer requests name them by their ids, which Metadata and CreateTopics resolve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

TopicNames: TypeAlias = Mapping[str, str]
"""Names of topics by id. A topic that no answer names goes by its id."""

NAMING: Final = ("METADATA", "CREATE_TOPICS")
"""Requests whose answers have names of topics beside their ids."""
_ZERO: Final = "AAAAAAAAAAAAAAAAAAAAAA"


def named_topics(response: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Ids with names, from an answer of :data:`NAMING`."""
    for topic in objects(response.get("topics")):
        topic_id, name = topic.get("topicId"), topic.get("name")
        if isinstance(topic_id, str) and topic_id not in ("", _ZERO) and isinstance(name, str) and name:
            yield topic_id, name


def counted_topics(response: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Names with numbers of partitions, from an answer to Metadata."""
    for topic in objects(response.get("topics")):
        name, indexes = topic.get("name"), [each.get("partitionIndex") for each in objects(topic.get("partitions"))]
        counted = [each for each in indexes if type(each) is int]
        if counted and isinstance(name, str) and name and not topic.get("errorCode"):
            yield name, max(counted) + 1


def topic_of(topic: Mapping[str, Any], names: TopicNames) -> str:
    """The name of a topic in a body, else its id."""
    for field in ("name", "topic", "topicName"):
        name = topic.get(field)
        if isinstance(name, str) and name:
            return name
    topic_id = str(topic.get("topicId") or "")
    return names.get(topic_id, topic_id)


def objects(value: object) -> Iterator[dict[str, Any]]:
    """The objects of a list; none of what is no list."""
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def numbers(value: object) -> list[int]:
    """The numbers of a list of partitions."""
    return [each for each in value if type(each) is int] if isinstance(value, list) else []


def partitions_in(topics: object, names: TopicNames) -> list[tuple[str, int]]:
    """Topics with numbers of partitions, in order."""
    return sorted(
        (topic_of(topic, names), number) for topic in objects(topics) for number in numbers(topic.get("partitions"))
    )


def partition_rows(partitions: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    """Partitions as the events table has them."""
    return [{"topic": topic, "partition": number} for topic, number in partitions]
