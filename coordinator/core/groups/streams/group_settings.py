"""The settings of streams groups: the broker's, and each group's own. Kafka: GroupConfig, GroupCoordinatorConfig."""

from __future__ import annotations

from typing import ClassVar, Final

from rejoin.coordinator.core.groups.modern.group_settings import GroupNumber, MemberTimings, OwnSettings
from rejoin.coordinator.core.inputs import Millis

TIMINGS: Final = MemberTimings("streams")
STANDBY_REPLICAS: Final = GroupNumber("streams.num.standby.replicas", 0, "group.streams.max.standby.replicas")
INITIAL_DELAY: Final = GroupNumber("streams.initial.rebalance.delay.ms", 0, 2**31 - 1)
TASK_OFFSET_INTERVAL: Final = GroupNumber("streams.task.offset.interval.ms", most=2**31 - 1)
WARMUP_REPLICAS: Final = GroupNumber("streams.num.warmup.replicas", 0, "group.streams.max.warmup.replicas")
RECOVERY_LAG: Final = GroupNumber("streams.acceptable.recovery.lag", 0, 2**63 - 1)
ASSIGNOR_NAME: Final = "streams.assignor.name"
RACK_TAGS: Final = "streams.rack.aware.assignment.tags"
ASSIGNOR_OFFLOAD: Final = "streams.assignor.offload.enable"

ASSIGNORS: Final = ("sticky",)
"""Names of the assignors that a group may choose."""

NUMBERS: Final = (
    *TIMINGS.numbers,
    STANDBY_REPLICAS,
    INITIAL_DELAY,
    TASK_OFFSET_INTERVAL,
    WARMUP_REPLICAS,
    RECOVERY_LAG,
)
"""Settings for which the broker has a default and bounds."""

STANDBY_CONFIG: Final = "num.standby.replicas"
TAGS_CONFIG: Final = "rack.aware.assignment.tags"
"""The settings that an assignor is given, as the record of an epoch names them."""


class StreamsSettings(OwnSettings):
    """Effective settings of each group, with the bounds of the broker."""

    timings: ClassVar[MemberTimings] = TIMINGS

    def initial_delay_ms(self, group_id: str) -> Millis:
        return self.number(group_id, INITIAL_DELAY)

    def task_offset_interval_ms(self, group_id: str) -> Millis:
        return self.number(group_id, TASK_OFFSET_INTERVAL)

    def recovery_lag(self, group_id: str) -> int:
        """The offsets by which a task may lag behind and count as restored."""
        return self.number(group_id, RECOVERY_LAG)

    def keeps_refined_targets(self, group_id: str) -> bool:
        """Whether targets are remembered as they were first used. Kafka: while there might be warm-up tasks."""
        return self.number(group_id, WARMUP_REPLICAS) > 0

    def rack_tags(self, group_id: str) -> list[str]:
        """Keys of the tags that every member should have."""
        text = self.text(group_id, RACK_TAGS, self._settings.group_streams_rack_aware_assignment_tags)
        return [each.strip() for each in text.split(",") if each.strip()]

    def assignor(self, group_id: str) -> str:
        """The name of the assignor of the next target."""
        chosen = self.text(group_id, ASSIGNOR_NAME, "")
        return chosen if chosen in ASSIGNORS else ASSIGNORS[0]

    def assignment_configs(self, group_id: str) -> dict[str, str]:
        """The settings that an epoch is made with; another value of one of them bumps it."""
        configs = {STANDBY_CONFIG: str(self.number(group_id, STANDBY_REPLICAS))}
        tags = self.rack_tags(group_id)
        if tags:
            configs[TAGS_CONFIG] = ",".join(tags)
        return configs
