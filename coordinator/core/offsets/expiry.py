"""When committed offsets have outlived their retention. Kafka: OffsetMetadataManager.cleanupExpiredOffsets."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.groups.group import Group
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.offsets.store import GroupOffsets
from rejoin.protocol.types import TopicPartition

MILLIS_PER_MINUTE: Final = 60_000


def expired_partitions(
    group: Group, offsets: GroupOffsets, settings: Settings, now: Millis
) -> list[TopicPartition] | None:
    """Partitions whose offsets are too old; none while the offsets of this group do not expire at all."""
    retained_from = group.offsets_retained_from()
    if retained_from is None:
        return None
    retention_ms = settings.offsets_retention_minutes * MILLIS_PER_MINUTE
    return [
        partition
        for partition, value in sorted(offsets.stored.items())
        if not group.is_subscribed_to(partition.topic)
        and not offsets.is_pending(partition)
        and now >= (value.expire_timestamp if value.expire_timestamp != -1 else retained_from(value) + retention_ms)
    ]
