"""The settings that a group may have of its own. The broker has their defaults and bounds. Kafka: GroupConfig."""

from __future__ import annotations

from collections.abc import Mapping

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.groups.consumer.group_settings import (
    ASSIGNMENT_INTERVAL,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
)
from rejoin.coordinator.core.inputs import Millis
from rejoin.coordinator.core.topics.config_entries import ConfigEntry, ConfigValueSource
from rejoin.coordinator.core.topics.configs import ConfigDef, ConfigError, ConfigSource, ConfigType, parsed, shown
from rejoin.coordinator.core.topics.node_configs import of_setting


def group_definitions(settings: Settings) -> dict[str, ConfigDef]:
    """The settings of groups, by name."""
    # Differs: Kafka's groups also have settings for share and streams groups.
    table: dict[str, tuple[Millis, Millis, Millis]] = {
        ASSIGNMENT_INTERVAL: (
            settings.group_consumer_assignment_interval_ms,
            settings.group_consumer_min_assignment_interval_ms,
            settings.group_consumer_max_assignment_interval_ms,
        ),
        HEARTBEAT_INTERVAL: (
            settings.group_consumer_heartbeat_interval_ms,
            settings.group_consumer_min_heartbeat_interval_ms,
            settings.group_consumer_max_heartbeat_interval_ms,
        ),
        SESSION_TIMEOUT: (
            settings.group_consumer_session_timeout_ms,
            settings.group_consumer_min_session_timeout_ms,
            settings.group_consumer_max_session_timeout_ms,
        ),
    }
    return {
        name: ConfigDef(name, ConfigType.INT, str(default), f"group.{name}", least, most)
        for name, (default, least, most) in table.items()
    }


def of_group(settings: Settings, configs: Mapping[str, str]) -> tuple[ConfigEntry, ...]:
    """All settings of a group, by name: its own, else the broker's."""
    entries = []
    for name, definition in sorted(group_definitions(settings).items()):
        assert definition.synonym is not None, "the broker has a setting for each of a group"
        candidates = of_setting(settings, definition.synonym.replace(".", "_")).candidates
        given = configs.get(name)
        if given is not None:
            own = ConfigValueSource(name, shown(definition, given), ConfigSource.DYNAMIC_GROUP_CONFIG)
            candidates = (own, *candidates)
        _, value, source = candidates[0]
        entries.append(ConfigEntry(name, value, source, definition.type, False, candidates))
    return tuple(entries)


def check_group(configs: Mapping[str, str], definitions: Mapping[str, ConfigDef]) -> None:
    """Raise :class:`ConfigError` where no group can have these settings."""
    for name in configs:
        if name not in definitions:
            raise ConfigError(f"{name[:200]!r} is not a setting of a group; expected one of {', '.join(definitions)}")
    session, heartbeat = (
        parsed(definition, configs.get(definition.name, definition.default))
        for definition in (definitions[SESSION_TIMEOUT], definitions[HEARTBEAT_INTERVAL])
    )
    if ASSIGNMENT_INTERVAL in configs:
        parsed(definitions[ASSIGNMENT_INTERVAL], configs[ASSIGNMENT_INTERVAL])
    assert isinstance(session, int), "it is a number"
    assert isinstance(heartbeat, int), "it is a number"
    if session <= heartbeat:
        raise ConfigError(f"{SESSION_TIMEOUT} ({session}) must be more than {HEARTBEAT_INTERVAL} ({heartbeat})")
