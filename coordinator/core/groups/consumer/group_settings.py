"""The settings of consumer groups: the broker's, and each group's own. Kafka: GroupConfigManager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Millis

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"


class GroupSettings:
    """Effective settings of each group. A group's own settings take effect with the next heartbeat of each member."""

    def __init__(self, settings: Settings, configs: Mapping[str, Mapping[str, str]]) -> None:
        self._settings = settings
        self._configs = configs

    def session_timeout_ms(self, group_id: str) -> Millis:
        return self._of(group_id, SESSION_TIMEOUT, self._settings.group_consumer_session_timeout_ms)

    def heartbeat_interval_ms(self, group_id: str) -> Millis:
        return self._of(group_id, HEARTBEAT_INTERVAL, self._settings.group_consumer_heartbeat_interval_ms)

    def assignment_interval_ms(self, group_id: str) -> Millis:
        return self._of(group_id, ASSIGNMENT_INTERVAL, self._settings.group_consumer_assignment_interval_ms)

    def _of(self, group_id: str, name: str, otherwise: Millis) -> Millis:
        if not self._configs:
            return otherwise
        own = self._configs.get(group_id)
        return otherwise if own is None or name not in own else int(own[name])
