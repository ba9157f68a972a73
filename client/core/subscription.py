"""The user's subscription, the assignment, and the position in each partition.

Always true: ``assignment`` is in the order in which its partitions give records next.

Source: Kafka's SubscriptionState.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from enum import Enum, auto

from rejoin.client.core.errors import IllegalStateError
from rejoin.client.core.inputs import Millis, OffsetAndMetadata, Reset
from rejoin.protocol.types import TopicPartition


class SubscriptionType(Enum):
    """Kind of subscription; the kinds exclude one another until ``unsubscribe``."""

    NONE = auto()
    AUTO_TOPICS = auto()
    AUTO_PATTERN = auto()
    USER_ASSIGNED = auto()


class PartitionState:
    """One partition this consumer owns. ``position`` is the next record to hand out, none while it is looked up."""

    __slots__ = (
        "end",
        "epoch",
        "paused",
        "pending_revocation",
        "position",
        "read_replica",
        "read_replica_until",
        "reset",
        "retry_at",
        "validated_for",
    )

    def __init__(self) -> None:
        self.position: int | None = None
        self.epoch = -1
        """Leader epoch of the record before the position, or -1."""
        self.validated_for = -1
        """The epoch of the leader that the position was last found to be valid for."""
        self.read_replica = -1
        """The node to read from in place of the leader, or -1."""
        self.read_replica_until: Millis = 0
        self.end: int | None = None
        """End of the partition's log as far as it is known."""
        self.reset: Reset | None = None
        """Set while the position has to come from the log's beginning or end."""
        self.retry_at: Millis = 0
        self.paused = False
        self.pending_revocation = False

    def seek(self, position: int, epoch: int = -1) -> None:
        self.position = position
        self.epoch, self.validated_for = epoch, -1
        self.reset = None
        self.retry_at = 0

    def ask_reset(self, reset: Reset) -> None:
        self.position = None
        self.reset = reset
        self.retry_at = 0

    @property
    def fetchable(self) -> bool:
        return self.position is not None and not self.paused and not self.pending_revocation


class SubscriptionState:
    """The subscription and the assignment."""

    def __init__(self) -> None:
        self.type = SubscriptionType.NONE
        self.topics: tuple[str, ...] = ()
        """Subscribed topics in ascending order; with a pattern, those known to match it."""
        self.pattern: re.Pattern[str] | None = None
        self.regex: str | None = None
        """A regular expression that the coordinator matches, in the syntax of RE2."""
        self.group_topics: tuple[str, ...] = ()
        """As leader: the topics of the whole group, which are watched too."""
        self.assignment: dict[TopicPartition, PartitionState] = {}

    @property
    def automatic(self) -> bool:
        """True when the group decides what this consumer reads."""
        return self.type is SubscriptionType.AUTO_TOPICS or self.type is SubscriptionType.AUTO_PATTERN

    def _choose(self, chosen: SubscriptionType) -> None:
        if self.type not in {SubscriptionType.NONE, chosen}:
            raise IllegalStateError(
                "subscription to topics, partitions and pattern are mutually exclusive; unsubscribe first"
            )
        self.type = chosen

    def subscribe(self, topics: Iterable[str]) -> bool:
        """Subscribe to topics; true when that changes anything."""
        self._choose(SubscriptionType.AUTO_TOPICS)
        return self.change_topics(topics)

    def subscribe_pattern(self, pattern: str) -> None:
        """Subscribe to all topics whose whole name matches. Raises IllegalStateError for a bad pattern."""
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise IllegalStateError(f"bad pattern {pattern!r}: {error}") from error
        self._choose(SubscriptionType.AUTO_PATTERN)
        self.pattern, self.regex = compiled, None

    def subscribe_regex(self, regex: str) -> None:
        """Subscribe to a pattern that the coordinator matches; the topics come with the assignment."""
        self._choose(SubscriptionType.AUTO_PATTERN)
        self.pattern, self.regex = None, regex

    def change_topics(self, topics: Iterable[str]) -> bool:
        changed = tuple(sorted(set(topics)))
        if changed == self.topics:
            return False
        self.topics = changed
        return True

    def assign_manually(self, partitions: Iterable[TopicPartition]) -> bool:
        """Own exactly these; true when the topics changed."""
        self._choose(SubscriptionType.USER_ASSIGNED)
        wanted = sorted(set(partitions))
        if wanted == sorted(self.assignment):
            return False
        self._replace(wanted)
        return self.change_topics(topic for topic, _ in wanted)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Own the group's assignment; partitions that stay keep their positions."""
        self._replace(sorted(partitions))

    def _replace(self, partitions: Iterable[TopicPartition]) -> None:
        before = self.assignment
        self.assignment = {partition: before.get(partition) or PartitionState() for partition in partitions}

    def unsubscribe(self) -> None:
        self.type = SubscriptionType.NONE
        self.topics = self.group_topics = ()
        self.pattern = self.regex = None
        self._replace(())

    def matches(self, topic: str) -> bool:
        """True when the pattern matches a topic's whole name."""
        return self.pattern is not None and self.pattern.fullmatch(topic) is not None

    def accepts(self, partitions: Iterable[TopicPartition]) -> bool:
        """True when an assignment holds nothing but topics this consumer subscribes to."""
        # Kafka: SubscriptionState.checkAssignmentMatchedSubscription.
        topics = dict.fromkeys(topic for topic, _ in partitions)
        if self.pattern is not None:
            return all(self.matches(topic) for topic in topics)
        return all(topic in self.topics for topic in topics)

    def watch_group_topics(self, topics: Collection[str]) -> bool:
        """As leader, watch the topics of the whole group; true when some of them are not our own."""
        self.group_topics = tuple(sorted(topics))
        return not set(self.group_topics) <= set(self.topics)

    def metadata_topics(self) -> tuple[str, ...]:
        """The topics this consumer must know about."""
        if not self.group_topics:
            return self.topics
        return tuple(sorted({*self.group_topics, *self.topics}))

    def owned(self) -> list[TopicPartition]:
        """Partitions that this consumer owns, by topic and partition."""
        return sorted(self.assignment)

    def partition_state(self, partition: TopicPartition) -> PartitionState:
        """The state of an owned partition. Raises IllegalStateError for another."""
        state = self.assignment.get(partition)
        if state is None:
            raise IllegalStateError(f"no current assignment for partition {partition[0]}-{partition[1]}")
        return state

    def mark_pending_revocation(self) -> None:
        """Return no more records: all partitions are about to be revoked."""
        for state in self.assignment.values():
            state.pending_revocation = True

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Every position, as a commit without offsets commits it."""
        return {
            partition: OffsetAndMetadata(
                self.assignment[partition].position or 0, leader_epoch=self.assignment[partition].epoch
            )
            for partition in self.owned()
            if self.assignment[partition].position is not None
        }

    def move_to_end(self, partition: TopicPartition) -> None:
        """Let the other partitions go first next time."""
        self.assignment[partition] = self.assignment.pop(partition)
