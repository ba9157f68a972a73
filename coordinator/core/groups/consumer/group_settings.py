"""The settings of consumer groups: the broker's, and each group's own. Kafka: GroupConfigManager."""

from __future__ import annotations

from typing import ClassVar, Final

from rejoin.coordinator.core.groups.consumer.model.rules import rules_of
from rejoin.coordinator.core.groups.modern.group_settings import MemberTimings, OwnSettings
from rejoin.coordinator.core.inputs import Millis

TIMINGS: Final = MemberTimings("consumer")


class GroupSettings(OwnSettings):
    """Effective settings of each group, with the bounds of the broker."""

    timings: ClassVar[MemberTimings] = TIMINGS

    def assignment_interval_ms(self, group_id: str) -> Millis:
        if not rules_of(self._settings.emulator_as_kafka).has_assignment_interval:
            return 0
        return super().assignment_interval_ms(group_id)
