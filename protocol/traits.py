"""What a request is about, whatever its API: groups, members, topics, partitions. Rules match on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rejoin.protocol.embedded.consumer_protocol import subscription_topics
from rejoin.protocol.message import Request
from rejoin.protocol.messages.groups.join_group import JoinGroupRequest


@dataclass(slots=True)
class Traits:
    """Everything that a request names. Places are topic and partition."""

    groups: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)
    instances: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    places: set[tuple[str, int]] = field(default_factory=set)


def traits_of(request: Request, version: int) -> Traits:
    """Read a request's fields by the names that Kafka gives them, which are the same in every API."""
    traits = Traits()
    _read_who(request, traits)
    for name in getattr(request, "groups_names", ()):
        traits.groups.add(name)
    for entry in getattr(request, "groups", None) or ():
        if isinstance(entry, str):
            traits.groups.add(entry)
        else:
            _read_who(entry, traits)
            _read_topics(entry, traits)
    traits.groups.update(getattr(request, "coordinator_keys", ()))
    if isinstance(key := getattr(request, "key", None), str) and version < 4:
        traits.groups.add(key)
    for member in getattr(request, "members", ()):
        _read_who(member, traits)
    _read_topics(request, traits)
    for name in getattr(request, "topic_names", ()):
        traits.topics.add(name)
    for marker in getattr(request, "markers", ()):
        _read_topics(marker, traits)
    if isinstance(request, JoinGroupRequest):
        for protocol in request.protocols:
            traits.topics.update(subscription_topics(protocol.metadata) or ())
    return traits


def _read_who(part: Any, traits: Traits) -> None:
    for name, found in (
        ("group_id", traits.groups),
        ("member_id", traits.members),
        ("group_instance_id", traits.instances),
    ):
        value = getattr(part, name, None)
        if value is not None:
            found.add(value)


def _read_topics(part: Any, traits: Traits) -> None:
    for topic in getattr(part, "topics", None) or ():
        name = topic if isinstance(topic, str) else getattr(topic, "name", None)
        if not name:
            continue
        traits.topics.add(name)
        for partition in getattr(topic, "partitions", None) or ():
            traits.places.add((name, partition if isinstance(partition, int) else partition.partition_index))
        for index in getattr(topic, "partition_indexes", None) or ():
            traits.places.add((name, index))
