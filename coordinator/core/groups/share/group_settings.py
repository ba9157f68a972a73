"""The settings of share groups: the broker's, and each group's own. Kafka: GroupConfig, ShareGroupConfig."""

from __future__ import annotations

from typing import ClassVar, Final

from rejoin.coordinator.core.groups.modern.group_settings import GroupNumber, MemberTimings, OwnSettings
from rejoin.coordinator.core.inputs import Millis

TIMINGS: Final = MemberTimings("share")
LOCK_DURATION: Final = GroupNumber("share.record.lock.duration.ms")
DELIVERY_LIMIT: Final = GroupNumber("share.delivery.count.limit")
RECORD_LOCKS: Final = GroupNumber("share.partition.max.record.locks")
ASSIGNOR_OFFLOAD: Final = "share.assignor.offload.enable"
OFFSET_RESET: Final = "share.auto.offset.reset"
ISOLATION_LEVEL: Final = "share.isolation.level"
RENEW_ENABLE: Final = "share.renew.acknowledge.enable"
DLQ_TOPIC: Final = "errors.deadletterqueue.topic.name"
DLQ_COPY: Final = "errors.deadletterqueue.copy.record.enable"

READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"
BY_DURATION: Final = "by_duration"


class ShareSettings(OwnSettings):
    """Effective settings of each group, with the bounds of the broker."""

    timings: ClassVar[MemberTimings] = TIMINGS

    def record_lock_duration_ms(self, group_id: str) -> Millis:
        return self.number(group_id, LOCK_DURATION)

    def delivery_count_limit(self, group_id: str) -> int:
        return self.number(group_id, DELIVERY_LIMIT)

    def max_record_locks(self, group_id: str) -> int:
        return self.number(group_id, RECORD_LOCKS)

    def offset_reset(self, group_id: str) -> str:
        """Text of the policy: ``latest``, ``earliest``, or ``by_duration:`` and an ISO 8601 duration."""
        return self.text(group_id, OFFSET_RESET, "latest")

    def reads_committed(self, group_id: str) -> bool:
        return self.text(group_id, ISOLATION_LEVEL, READ_UNCOMMITTED) == READ_COMMITTED

    def may_renew(self, group_id: str) -> bool:
        return self.text(group_id, RENEW_ENABLE, "true").strip().lower() == "true"

    def dead_letter_topic(self, group_id: str) -> str:
        """Name of the group's dead-letter topic; empty where it has none."""
        return self.text(group_id, DLQ_TOPIC, "").strip()

    def copies_dead_letters(self, group_id: str) -> bool:
        """Whether a dead letter has the record's key and value, too."""
        return self.text(group_id, DLQ_COPY, "false").strip().lower() == "true"

    # --- the coordinator

    @property
    def initialize_retry_ms(self) -> Millis:
        """After this an initialisation without an answer is tried again."""
        of = self._settings
        return max(of.group_share_initialize_retry_interval_ms, of.offsets_commit_timeout_ms)
