"""Subscriptions of a consumer group's members, counted: topics by name, regular expressions, assignors.

Kafka: ModernGroup, ConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from rejoin.coordinator.core.groups.consumer.model.member import ConsumerMemberMetadata
from rejoin.coordinator.core.groups.modern.epochs import SubscriptionKind
from rejoin.coordinator.core.inputs import Millis
from rejoin.protocol.java import copied_set_order, utf16_sorted


class TopicCount(NamedTuple):
    """How many members name a topic, and how many resolved expressions contain it."""

    by_name: int = 0
    by_regex: int = 0


class ResolvedRegex(NamedTuple):
    """The topics that an expression stood for, in the topics of a version, at an instant."""

    topics: frozenset[str]
    version: int
    resolved_at: Millis


NOT_COUNTED = TopicCount()


@dataclass(slots=True)
class Subscriptions:
    """The subscriptions of one group. Counts are kept with each change, so that no question costs all members."""

    topics: dict[str, TopicCount] = field(default_factory=dict)
    regexes: dict[str, int] = field(default_factory=dict)
    """How many members have each expression."""
    resolved: dict[str, ResolvedRegex] = field(default_factory=dict)
    server_assignors: dict[str, int] = field(default_factory=dict)
    classic_members: int = 0
    classic_protocols: dict[str, int] = field(default_factory=dict)
    has_changed: bool = False
    """Whether topics or expressions were counted since the type was asked for."""

    def count(self, metadata: ConsumerMemberMetadata, by: int) -> None:
        """Count a member in (1) or out (-1)."""
        for topic in metadata.topic_names:
            self._count_topic(topic, by, 0)
        if metadata.topic_regex:
            self.has_changed = True
            add(self.regexes, metadata.topic_regex, by)
        if metadata.server_assignor is not None:
            add(self.server_assignors, metadata.server_assignor, by)
        if metadata.classic is not None:
            self.classic_members += by
            for name in dict.fromkeys(protocol.name for protocol in metadata.classic.protocols):
                add(self.classic_protocols, name, by)

    def replace(self, before: ConsumerMemberMetadata, after: ConsumerMemberMetadata) -> None:
        """Count the changes of a member. Equal parts of both sides are not touched."""
        for topic in before.topic_names - after.topic_names:
            self._count_topic(topic, -1, 0)
        for topic in after.topic_names - before.topic_names:
            self._count_topic(topic, 1, 0)
        if before.topic_regex != after.topic_regex:
            self.has_changed = True
            if before.topic_regex:
                add(self.regexes, before.topic_regex, -1)
            if after.topic_regex:
                add(self.regexes, after.topic_regex, 1)
        if before.server_assignor != after.server_assignor:
            if before.server_assignor is not None:
                add(self.server_assignors, before.server_assignor, -1)
            if after.server_assignor is not None:
                add(self.server_assignors, after.server_assignor, 1)
        if before.classic != after.classic:
            self._replace_classic(before, after)

    def _replace_classic(self, before: ConsumerMemberMetadata, after: ConsumerMemberMetadata) -> None:
        for metadata, by in ((before, -1), (after, 1)):
            if metadata.classic is not None:
                self.classic_members += by
                for name in dict.fromkeys(protocol.name for protocol in metadata.classic.protocols):
                    add(self.classic_protocols, name, by)

    def resolve(self, regex: str, after: ResolvedRegex | None) -> ResolvedRegex | None:
        """Set or clear the topics of an expression; returns the ones before."""
        before = self.resolved.pop(regex, None)
        for topic in before.topics if before is not None else ():
            self._count_topic(topic, 0, -1)
        if after is not None:
            self.resolved[regex] = after
            for topic in after.topics:
                self._count_topic(topic, 0, 1)
        return before

    def _count_topic(self, topic: str, by_name: int, by_regex: int) -> None:
        self.has_changed = True
        before = self.topics.get(topic, NOT_COUNTED)
        after = TopicCount(before.by_name + by_name, before.by_regex + by_regex)
        if after == NOT_COUNTED:
            self.topics.pop(topic, None)
        else:
            self.topics[topic] = after

    def topics_of(self, metadata: ConsumerMemberMetadata) -> Iterable[str]:
        """The topics of a member: those it names, and those of its expression as far as it is resolved."""
        resolved = self.resolved.get(metadata.topic_regex) if metadata.topic_regex else None
        if resolved is None:
            return metadata.topic_names
        return metadata.topic_names | resolved.topics

    def ordered_topics_of(self, metadata: ConsumerMemberMetadata) -> list[str]:
        """Topic names in the order of the Java sets that Kafka makes from records, whose topics are sorted.

        Kafka: UnionSet. A member's names come behind the topics of its expression, unless there are more names.
        """
        resolved = self.resolved.get(metadata.topic_regex) if metadata.topic_regex else None
        by_regex = frozenset[str]() if resolved is None else resolved.topics
        sets = sorted((by_regex, metadata.topic_names), key=len, reverse=True)
        return list(dict.fromkeys(name for names in sets for name in copied_set_order(utf16_sorted(names))))

    def without(self, dropped: Collection[str]) -> dict[str, TopicCount]:
        """The topics, but for those of an expression that is dropped, as far as nothing else counts them."""
        if not dropped:
            return self.topics
        left = {name: TopicCount(*count) for name, count in self.topics.items() if name not in dropped}
        for name in dropped:
            by_name, by_regex = self.topics[name]
            if by_name or by_regex > 1:
                left[name] = TopicCount(by_name, by_regex - 1)
        return left

    def type_for(self, members: int, dropped: Collection[str] = ()) -> SubscriptionKind:
        """Whether all of so many members subscribe alike. Names count, whether there are such topics or not."""
        counts = self.without(dropped).values()
        if self.regexes:
            is_one_for_all = list(self.regexes.values()) == [members]
            alike = is_one_for_all and all(count == (0, 1) for count in counts)
        else:
            alike = all(count.by_name == members for count in counts)
        return SubscriptionKind.HOMOGENEOUS if alike else SubscriptionKind.HETEROGENEOUS

    def supports_classic(self, names: Iterable[str]) -> bool:
        """Whether all classic members support one of these protocols; without any, whether there is one."""
        members = self.classic_members
        return any(not members or self.classic_protocols.get(name) == members for name in names)


def add(counts: dict[str, int], key: str, by: int) -> None:
    """Count a key; keys with a count of 0 are dropped."""
    left = counts.get(key, 0) + by
    if left:
        counts[key] = left
    else:
        del counts[key]
