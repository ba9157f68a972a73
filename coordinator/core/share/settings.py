"""The settings by which share-partitions work: a group's own, else the broker's. Each is read when it is used.

Kafka: GroupConfigManager, ShareGroupConfigProvider. A value outside the broker's bounds is brought inside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rejoin.coordinator.core.cluster.features import SHARE_VERSION, ClusterFeatures
from rejoin.coordinator.core.groups.modern.group_settings import HasSettings
from rejoin.coordinator.core.groups.share.group_settings import ShareSettings
from rejoin.coordinator.core.inputs import Millis

FIRST_WITH_DEAD_LETTERS: Final = 2
"""The level of ``share.version`` from which on rejected records may go to a topic (KIP-1191)."""

EARLIEST: Final = "earliest"
BY_DURATION: Final = "by_duration:"


class SharePartitionSettings:
    """Effective settings of one share group, for its share-partitions."""

    __slots__ = ("_features", "_group_id", "_of")

    def __init__(
        self,
        group_id: str,
        of: HasSettings,
        configs: Mapping[str, Mapping[str, str]],
        features: ClusterFeatures,
    ) -> None:
        """``of`` has the broker's settings, ``configs`` those that groups have of their own, by group id."""
        self._group_id = group_id
        self._of = ShareSettings(of, configs)
        self._features = features

    @property
    def lock_duration_ms(self) -> Millis:
        return self._of.record_lock_duration_ms(self._group_id)

    @property
    def delivery_count_limit(self) -> int:
        return self._of.delivery_count_limit(self._group_id)

    @property
    def max_record_locks(self) -> int:
        return self._of.max_record_locks(self._group_id)

    @property
    def allows_renewal(self) -> bool:
        return self._of.may_renew(self._group_id)

    @property
    def dead_letter_topic(self) -> str:
        """The topic for records that are rejected or delivered too often; empty where there is none."""
        has_feature = self._features.level(SHARE_VERSION) >= FIRST_WITH_DEAD_LETTERS
        return self._of.dead_letter_topic(self._group_id) if has_feature else ""

    @property
    def has_dead_letters(self) -> bool:
        return bool(self.dead_letter_topic)

    @property
    def copies_records(self) -> bool:
        """Whether dead letters have key and value of the records."""
        return self._of.copies_dead_letters(self._group_id)

    @property
    def reads_committed(self) -> bool:
        """Whether records of open and aborted transactions are left out."""
        return self._of.reads_committed(self._group_id)

    @property
    def offset_reset(self) -> str:
        """The first offset of a share-partition that has none: latest, earliest, or by_duration with a length."""
        return self._of.offset_reset(self._group_id)
