"""The subject of a request, whatever its API: groups, members, topics, partitions. Rules match on it.

Each field says what it names (:class:`~rejoin.protocol.types.Entity`), so nothing here knows any API.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from rejoin.protocol.embedded.consumer_protocol import subscription_topics
from rejoin.protocol.fields import FieldSpec, fields_of
from rejoin.protocol.message import Request
from rejoin.protocol.types import Entity, TopicPartition

RESOURCES: Final = {2: Entity.TOPIC_NAME, 32: Entity.GROUP_ID}
"""Entities of resources with settings, by Kafka's number of their type."""

Named: TypeAlias = Callable[[str], str | None]
"""The name of the topic with an id, or none where there is no such topic."""


@dataclass(slots=True)
class Traits:
    """Everything that a request names."""

    groups: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)
    instances: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    partitions: set[TopicPartition] = field(default_factory=set)
    transactional_ids: set[str] = field(default_factory=set)


def _unnamed(_: str) -> None:
    """Ids of topics say nothing to those who do not know the topics."""


def traits_of(request: Request, version: int, named: Named = _unnamed) -> Traits:
    """Traits of a request in this version. ``named`` finds the name of a topic by its id."""
    traits = Traits()
    _read(request, version, traits, "", named)
    return traits


def _read(part: BaseModel, version: int, traits: Traits, topic: str, named: Named) -> None:
    """Add what a struct names. Its partitions are of the topic that it names itself, or else of the one around it."""
    for spec in _naming(type(part)):
        value: Any = getattr(part, spec.name)
        if value is None or not spec.versions.carries(version):
            continue
        if spec.entity is Entity.TOPIC_NAME and not spec.is_array:
            topic = value
        elif spec.entity is Entity.TOPIC_ID:
            topic = named(value) or topic
            _add(traits, Entity.TOPIC_NAME, topic, topic)
        elif spec.entity is Entity.RESOURCE_NAME:
            kind: Any = getattr(part, "resource_type", None)
            _add(traits, RESOURCES.get(kind), value, value)
        for each in value if spec.is_array else (value,):
            if spec.struct is not None:
                _read(each, version, traits, topic, named)
            else:
                _add(traits, spec.entity, each, topic)


def _add(traits: Traits, entity: Entity | None, value: Any, topic: str) -> None:
    match entity:
        case Entity.GROUP_ID | Entity.COORDINATOR_KEY:
            traits.groups.add(value)
        case Entity.MEMBER_ID:
            traits.members.add(value)
        case Entity.GROUP_INSTANCE_ID:
            traits.instances.add(value)
        case Entity.TRANSACTIONAL_ID:
            traits.transactional_ids.add(value)
        case Entity.TOPIC_NAME if value:
            traits.topics.add(value)
        case Entity.PARTITION if topic:
            traits.partitions.add(TopicPartition(topic, value))
        case Entity.SUBSCRIPTION:
            traits.topics.update(subscription_topics(value) or ())


@cache
def entities_of(request: type[BaseModel], version: int) -> frozenset[Entity]:
    """Entities that a request of this version can name."""
    found: set[Entity] = set()
    for spec in _naming(request):
        if spec.versions.carries(version):
            found.update(() if spec.entity is None else (spec.entity,))
            found |= frozenset() if spec.struct is None else entities_of(spec.struct, version)
    return frozenset(found)


@cache
def _naming(model: type[BaseModel]) -> tuple[FieldSpec, ...]:
    """The fields that name something, or whose structs do; a topic's name and id before the partitions of the topic."""
    found = [spec for spec in fields_of(model) if spec.entity is not None or (spec.struct and _naming(spec.struct))]
    return tuple(sorted(found, key=lambda spec: spec.entity not in (Entity.TOPIC_NAME, Entity.TOPIC_ID)))
