"""The settings of consumer groups: the broker's, and each group's own. Kafka: GroupConfigManager."""

from __future__ import annotations

from typing import Final

from rejoin.coordinator.core.groups.consumer.model.rules import rules_of
from rejoin.coordinator.core.groups.modern.group_settings import OwnSettings
from rejoin.coordinator.core.inputs import Millis

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"


class GroupSettings(OwnSettings):
    """Effective settings of each group, with the bounds of the broker."""

    def session_timeout_ms(self, group_id: str) -> Millis:
        of = self._settings
        bounds = of.group_consumer_min_session_timeout_ms, of.group_consumer_max_session_timeout_ms
        return self.of(group_id, SESSION_TIMEOUT, of.group_consumer_session_timeout_ms, *bounds)

    def heartbeat_interval_ms(self, group_id: str) -> Millis:
        of = self._settings
        bounds = of.group_consumer_min_heartbeat_interval_ms, of.group_consumer_max_heartbeat_interval_ms
        return self.of(group_id, HEARTBEAT_INTERVAL, of.group_consumer_heartbeat_interval_ms, *bounds)

    def assignment_interval_ms(self, group_id: str) -> Millis:
        if not rules_of(self._settings.emulator_as_kafka).has_assignment_interval:
            return 0
        of = self._settings
        bounds = of.group_consumer_min_assignment_interval_ms, of.group_consumer_max_assignment_interval_ms
        return self.of(group_id, ASSIGNMENT_INTERVAL, of.group_consumer_assignment_interval_ms, *bounds)
