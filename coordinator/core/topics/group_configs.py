"""The settings that a group may have of its own. The broker has their defaults and bounds. Kafka: GroupConfig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.groups.consumer import group_settings as consumer
from rejoin.coordinator.core.groups.modern.group_settings import GroupNumber
from rejoin.coordinator.core.groups.share import group_settings as share
from rejoin.coordinator.core.groups.share.group_settings import (
    ASSIGNOR_OFFLOAD,
    BY_DURATION,
    DLQ_COPY,
    DLQ_TOPIC,
    ISOLATION_LEVEL,
    OFFSET_RESET,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    RENEW_ENABLE,
)
from rejoin.coordinator.core.groups.streams import group_settings as streams
from rejoin.coordinator.core.topics.brokers.dynamic_configs import DynamicConfigs
from rejoin.coordinator.core.topics.config_entries import ConfigEntry, ConfigValueSource
from rejoin.coordinator.core.topics.configs import ConfigDef, ConfigError, ConfigSource, ConfigType, parsed, shown
from rejoin.coordinator.core.topics.node_configs import of_setting
from rejoin.protocol.brokers.releases import has_reached
from rejoin.protocol.units import iso_duration_ms

NUMBERS: Final = (
    *consumer.TIMINGS.numbers,
    *share.TIMINGS.numbers,
    share.LOCK_DURATION,
    share.DELIVERY_LIMIT,
    share.RECORD_LOCKS,
    *streams.NUMBERS,
)
"""Settings for which the broker has a default, a lower and an upper bound."""

SESSIONS: Final = tuple(
    (timings.session_timeout.name, timings.heartbeat_interval.name)
    for timings in (consumer.TIMINGS, share.TIMINGS, streams.TIMINGS)
)
"""Session timeouts, each with the heartbeat interval that must be shorter."""


SINCE_4_3: Final = (share.DELIVERY_LIMIT.name, share.RECORD_LOCKS.name, RENEW_ENABLE)
"""Settings of share groups that no group has before. Kafka: KIP-1240."""


def group_definitions(settings: Settings) -> dict[str, ConfigDef]:
    """The settings of groups, by name."""
    numbers = (_number(settings, number) for number in NUMBERS)
    others = (*_of_share_groups(settings), *_of_streams_groups(settings))
    later = () if has_reached(settings.emulator_as_kafka, "4.3") else SINCE_4_3
    return {definition.name: definition for definition in (*numbers, *others) if definition.name not in later}


def _number(settings: Settings, number: GroupNumber) -> ConfigDef:
    """A number whose default and bounds are settings of the broker."""
    least, most = number.bounds(settings)
    kind = ConfigType.LONG if number is streams.RECOVERY_LAG else ConfigType.INT
    return ConfigDef(number.name, kind, str(number.default(settings)), number.synonym, least, most)


def _of_share_groups(settings: Settings) -> tuple[ConfigDef, ...]:
    """The settings of share groups that are no numbers."""
    offloads = str(settings.group_share_assignor_offload_enable).lower()
    return (
        ConfigDef(ASSIGNOR_OFFLOAD, ConfigType.BOOLEAN, offloads, f"group.{ASSIGNOR_OFFLOAD}"),
        ConfigDef(OFFSET_RESET, ConfigType.STRING, "latest"),
        ConfigDef(ISOLATION_LEVEL, ConfigType.STRING, READ_UNCOMMITTED, values=(READ_COMMITTED, READ_UNCOMMITTED)),
        ConfigDef(RENEW_ENABLE, ConfigType.BOOLEAN, "true"),
        ConfigDef(DLQ_TOPIC, ConfigType.STRING, ""),
        ConfigDef(DLQ_COPY, ConfigType.BOOLEAN, "false"),
    )


def _of_streams_groups(settings: Settings) -> tuple[ConfigDef, ...]:
    """The settings of streams groups that are no numbers."""
    tags = settings.group_streams_rack_aware_assignment_tags
    offloads = str(settings.group_streams_assignor_offload_enable).lower()
    return (
        ConfigDef(streams.ASSIGNOR_OFFLOAD, ConfigType.BOOLEAN, offloads, f"group.{streams.ASSIGNOR_OFFLOAD}"),
        ConfigDef(streams.ASSIGNOR_NAME, ConfigType.STRING, "", values=("", *streams.ASSIGNORS)),
        ConfigDef(streams.RACK_TAGS, ConfigType.LIST, tags, f"group.{streams.RACK_TAGS}"),
    )


def of_group(brokers: DynamicConfigs, configs: Mapping[str, str]) -> tuple[ConfigEntry, ...]:
    """All settings of a group, by name: its own, else the broker's."""
    entries = []
    for name, definition in sorted(group_definitions(brokers.effective).items()):
        candidates: tuple[ConfigValueSource, ...] = ()
        if definition.synonym is not None:
            started_with = of_setting(brokers.at_start, definition.synonym.replace(".", "_")).candidates
            given = (ConfigValueSource(definition.synonym, *each) for each in brokers.given(definition.synonym))
            candidates = (*given, *started_with)
        own_value = configs.get(name)
        if own_value is not None:
            own = ConfigValueSource(name, shown(definition, own_value), ConfigSource.DYNAMIC_GROUP_CONFIG)
            candidates = (own, *candidates)
        default = ConfigValueSource(name, definition.default, ConfigSource.DEFAULT_CONFIG)
        _, value, source = candidates[0] if candidates else default
        entries.append(ConfigEntry(name, value, source, definition.type, False, candidates))
    return tuple(entries)


def check_group(configs: Mapping[str, str], definitions: Mapping[str, ConfigDef]) -> None:
    """Raise :class:`ConfigError` where no group can have these settings."""
    for name in configs:
        if name not in definitions:
            raise ConfigError(f"{name[:200]!r} is not a setting of a group; expected one of {', '.join(definitions)}")
    for name, text in configs.items():
        parsed(definitions[name], text)
    if not _is_offset_reset(configs.get(OFFSET_RESET, "latest")):
        raise ConfigError(
            f"{OFFSET_RESET}={configs[OFFSET_RESET][:200]}: expected earliest, latest or by_duration:PnDTnHnMnS"
        )
    tags = configs.get(streams.RACK_TAGS)
    if tags is not None and len(set(parts := _parts(tags))) < len(parts):
        raise ConfigError(f"{streams.RACK_TAGS}={tags[:200]}: expected each tag once")
    for session_name, heartbeat_name in SESSIONS:
        session, heartbeat = (
            parsed(definition, configs.get(definition.name, definition.default))
            for definition in (definitions[session_name], definitions[heartbeat_name])
        )
        assert isinstance(session, int), "it is a number"
        assert isinstance(heartbeat, int), "it is a number"
        if session <= heartbeat:
            raise ConfigError(f"{session_name} ({session}) must be more than {heartbeat_name} ({heartbeat})")


def _parts(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def _is_offset_reset(text: str) -> bool:
    """Whether share groups can begin so. Kafka: ShareGroupAutoOffsetResetStrategy; upper and lower case differ."""
    strategy, colon, length = text.partition(":")
    if strategy != BY_DURATION:
        return text in ("earliest", "latest")
    try:
        return bool(colon) and iso_duration_ms(length) >= 0
    except ValueError:
        return False
