"""Features of the cluster: each has a level that all nodes have agreed on (KIP-584).

A level that was never changed is the one of the settings; UpdateFeatures changes it by a record of the topics log.

Kafka: FeatureControlManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rejoin.coordinator.config import END_TXN_KEY, FIRST_END_WITH_EPOCH_BUMP, Settings
from rejoin.protocol.brokers.offered_versions import offered
from rejoin.protocol.brokers.releases import has_reached
from rejoin.protocol.records.topics import FeatureLevelData, FeatureLevelRecord

TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"
NEWEST_LEVELS: Final = {TRANSACTION_VERSION: 2, GROUP_VERSION: 1, SHARE_VERSION: 2, STREAMS_VERSION: 1}
CONSUMER_GROUP_HEARTBEAT_KEY: Final = 68
SHARE_GROUP_HEARTBEAT_KEY: Final = 76
STREAMS_GROUP_HEARTBEAT_KEY: Final = 88
FIRST_RELEASE_WITH_SHARES: Final = "4.2"
"""4.1 has share groups as a preview: they are off until an administrator raises the level."""
FIRST_RELEASE_WITH_DEAD_LETTERS: Final = "4.4"


class ClusterFeatures:
    """The features that this node supports, and the level of each."""

    def __init__(self, settings: Settings) -> None:
        served = offered(settings.emulator_as_kafka)
        self.supported: dict[str, int] = {}
        """The highest level of each."""
        if served[END_TXN_KEY][1] >= FIRST_END_WITH_EPOCH_BUMP:
            self.supported[TRANSACTION_VERSION] = NEWEST_LEVELS[TRANSACTION_VERSION]
        if CONSUMER_GROUP_HEARTBEAT_KEY in served:
            self.supported[GROUP_VERSION] = NEWEST_LEVELS[GROUP_VERSION]
        if SHARE_GROUP_HEARTBEAT_KEY in served:
            has_dead_letters = has_reached(settings.emulator_as_kafka, FIRST_RELEASE_WITH_DEAD_LETTERS)
            self.supported[SHARE_VERSION] = NEWEST_LEVELS[SHARE_VERSION] if has_dead_letters else 1
        if STREAMS_GROUP_HEARTBEAT_KEY in served:
            self.supported[STREAMS_VERSION] = NEWEST_LEVELS[STREAMS_VERSION]
        self._settings = settings
        self._changed: dict[str, int] = {}
        self.changes = 0
        """How often a level was changed."""
        self.transaction_version = 0
        self.group_version = 0
        self.streams_version = 0
        self._derive()

    def _derive(self) -> None:
        self.transaction_version = self.level(TRANSACTION_VERSION)
        self.group_version = self.level(GROUP_VERSION)
        self.streams_version = self.level(STREAMS_VERSION)

    def level(self, feature: str) -> int:
        """The level of a feature; 0 is that of one that is not there."""
        newest = self.supported.get(feature, 0)
        first = newest
        if feature == TRANSACTION_VERSION:
            first = self._settings.transaction_version
        elif feature == SHARE_VERSION and not has_reached(self._settings.emulator_as_kafka, FIRST_RELEASE_WITH_SHARES):
            first = 0
        return min(self._changed.get(feature, first), newest)

    def set_level(self, data: FeatureLevelData) -> None:
        """Apply a record that changes a level."""
        self._changed[data.name] = data.feature_level
        self.changes += 1
        self._derive()

    def forget_changes(self) -> None:
        """Reset all levels to their first values."""
        self._changed.clear()
        self._derive()

    def records(self) -> tuple[FeatureLevelRecord, ...]:
        """The records that restore the current levels."""
        return feature_records(self._changed.items())


def feature_records(levels: Iterable[tuple[str, int]]) -> tuple[FeatureLevelRecord, ...]:
    """A record for each level."""
    return tuple([FeatureLevelRecord(data=FeatureLevelData(name=name, feature_level=level)) for name, level in levels])
