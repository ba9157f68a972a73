"""The settings by which share-partitions work: a group's own, else the broker's. Each is read when it is used.

Kafka: GroupConfigManager, ShareGroupConfigProvider. A value outside the broker's bounds is brought inside them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.cluster.features import SHARE_VERSION, ClusterFeatures
from rejoin.coordinator.core.inputs import Millis

LOCK_DURATION: Final = "share.record.lock.duration.ms"
DELIVERY_COUNT_LIMIT: Final = "share.delivery.count.limit"
MAX_RECORD_LOCKS: Final = "share.partition.max.record.locks"
RENEW_ENABLE: Final = "share.renew.acknowledge.enable"
OFFSET_RESET: Final = "share.auto.offset.reset"
ISOLATION_LEVEL: Final = "share.isolation.level"
DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
COPY_RECORD: Final = "errors.deadletterqueue.copy.record.enable"

FIRST_WITH_DEAD_LETTERS: Final = 2
"""The level of ``share.version`` from which on rejected records may go to a topic (KIP-1191)."""

LATEST: Final = "latest"
EARLIEST: Final = "earliest"
BY_DURATION: Final = "by_duration:"

_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE,
)
"""ISO-8601 as Java's Duration.parse reads it."""


def duration_ms(text: str) -> Millis | None:
    """An ISO-8601 duration such as PT1H30M in milliseconds, or none for a text that is none."""
    found = _DURATION.fullmatch(text)
    if (
        found is None
        or text[-1:] in "PTpt"
        or not any(found.group(part) for part in ("days", "hours", "minutes", "seconds"))
    ):
        return None
    days, hours, minutes = (int(found.group(part) or 0) for part in ("days", "hours", "minutes"))
    seconds = float((found.group("seconds") or "0").replace(",", "."))
    length = int(((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1_000)
    return -length if found.group("sign") == "-" else length


class SharePartitionSettings:
    """Effective settings of one share group, for its share-partitions."""

    __slots__ = ("_configs", "_features", "_group_id", "_settings")

    def __init__(
        self,
        group_id: str,
        settings: Settings,
        configs: Mapping[str, Mapping[str, str]],
        features: ClusterFeatures,
    ) -> None:
        """``configs`` has the settings that groups have of their own, by group id."""
        self._group_id = group_id
        self._settings = settings
        self._configs = configs
        self._features = features

    def _own(self, name: str) -> str | None:
        return self._configs.get(self._group_id, {}).get(name)

    def _number(self, name: str, otherwise: int, least: int, most: int) -> int:
        own = self._own(name)
        return otherwise if own is None else min(max(int(own), least), most)

    @property
    def lock_duration_ms(self) -> Millis:
        broker = self._settings
        return self._number(
            LOCK_DURATION,
            broker.group_share_record_lock_duration_ms,
            broker.group_share_min_record_lock_duration_ms,
            broker.group_share_max_record_lock_duration_ms,
        )

    @property
    def delivery_count_limit(self) -> int:
        broker = self._settings
        return self._number(
            DELIVERY_COUNT_LIMIT,
            broker.group_share_delivery_count_limit,
            broker.group_share_min_delivery_count_limit,
            broker.group_share_max_delivery_count_limit,
        )

    @property
    def max_record_locks(self) -> int:
        broker = self._settings
        return self._number(
            MAX_RECORD_LOCKS,
            broker.group_share_partition_max_record_locks,
            broker.group_share_min_partition_max_record_locks,
            broker.group_share_max_partition_max_record_locks,
        )

    @property
    def allows_renewal(self) -> bool:
        return (self._own(RENEW_ENABLE) or "true").lower() == "true"

    @property
    def dead_letter_topic(self) -> str:
        """The topic for records that are rejected or delivered too often; empty where there is none."""
        if self._features.level(SHARE_VERSION) < FIRST_WITH_DEAD_LETTERS:
            return ""
        return self._own(DEAD_LETTER_TOPIC) or ""

    @property
    def has_dead_letters(self) -> bool:
        return bool(self.dead_letter_topic)

    @property
    def copies_records(self) -> bool:
        """Whether dead letters have key and value of the records."""
        return (self._own(COPY_RECORD) or "false").lower() == "true"

    @property
    def reads_committed(self) -> bool:
        """Whether records of open and aborted transactions are left out."""
        return self._own(ISOLATION_LEVEL) == "read_committed"

    @property
    def offset_reset(self) -> str:
        """The first offset of a share-partition that has none: latest, earliest, or by_duration with a length."""
        return self._own(OFFSET_RESET) or LATEST
