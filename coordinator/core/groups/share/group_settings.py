"""The settings of share groups: the broker's, and each group's own. Kafka: GroupConfig, ShareGroupConfig."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.groups.modern.group_settings import OwnSettings
from rejoin.coordinator.core.inputs import Millis

SESSION_TIMEOUT: Final = "share.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "share.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "share.assignment.interval.ms"
ASSIGNOR_OFFLOAD: Final = "share.assignor.offload.enable"
LOCK_DURATION: Final = "share.record.lock.duration.ms"
DELIVERY_LIMIT: Final = "share.delivery.count.limit"
RECORD_LOCKS: Final = "share.partition.max.record.locks"
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

    def session_timeout_ms(self, group_id: str) -> Millis:
        of = self._settings
        bounds = of.group_share_min_session_timeout_ms, of.group_share_max_session_timeout_ms
        return self.of(group_id, SESSION_TIMEOUT, of.group_share_session_timeout_ms, *bounds)

    def heartbeat_interval_ms(self, group_id: str) -> Millis:
        of = self._settings
        bounds = of.group_share_min_heartbeat_interval_ms, of.group_share_max_heartbeat_interval_ms
        return self.of(group_id, HEARTBEAT_INTERVAL, of.group_share_heartbeat_interval_ms, *bounds)

    def assignment_interval_ms(self, group_id: str) -> Millis:
        of = self._settings
        bounds = of.group_share_min_assignment_interval_ms, of.group_share_max_assignment_interval_ms
        return self.of(group_id, ASSIGNMENT_INTERVAL, of.group_share_assignment_interval_ms, *bounds)

    # --- records

    def record_lock_duration_ms(self, group_id: str) -> Millis:
        of = self._settings
        bounds = of.group_share_min_record_lock_duration_ms, of.group_share_max_record_lock_duration_ms
        return self.of(group_id, LOCK_DURATION, of.group_share_record_lock_duration_ms, *bounds)

    def delivery_count_limit(self, group_id: str) -> int:
        of = self._settings
        bounds = of.group_share_min_delivery_count_limit, of.group_share_max_delivery_count_limit
        return self.of(group_id, DELIVERY_LIMIT, of.group_share_delivery_count_limit, *bounds)

    def max_record_locks(self, group_id: str) -> int:
        of = self._settings
        bounds = of.group_share_min_partition_max_record_locks, of.group_share_max_partition_max_record_locks
        return self.of(group_id, RECORD_LOCKS, of.group_share_partition_max_record_locks, *bounds)

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
