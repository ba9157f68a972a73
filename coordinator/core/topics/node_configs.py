"""Settings as DescribeConfigs lists them for a node. Kafka: KafkaConfig."""

from __future__ import annotations

from typing import Final

from pydantic import SecretStr

from rejoin.coordinator.config import Settings, TopicDefaults, changed_defaults
from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.core.topics.config_entries import ConfigEntry, ConfigValueSource, of_cluster
from rejoin.coordinator.core.topics.configs import TOPIC_CONFIGS, ConfigSource, ConfigType
from rejoin.protocol.brokers.listener_address import addresses_text

LOG_DIR: Final = "/rejoin"
"""The one directory of a node, by name; where its logs really are is of no use to a client."""

MOST_DESCRIBED_PARTITIONS: Final = 2_000
"""Kafka: max.request.partition.size.limit."""

_DEFAULT, _STATIC = ConfigSource.DEFAULT_CONFIG, ConfigSource.STATIC_BROKER_CONFIG
_TOPIC_DEFAULTS: Final = TopicDefaults.model_fields.keys()
_TYPES: Final = {
    "advertised.listeners": ConfigType.LIST,
    "connections.max.idle.ms": ConfigType.LONG,
    "connections.max.reauth.ms": ConfigType.LONG,
    "group.consumer.assignors": ConfigType.LIST,
    "group.coordinator.rebalance.protocols": ConfigType.LIST,
    "listeners": ConfigType.LIST,
    "log.retention.check.interval.ms": ConfigType.LONG,
    "offsets.retention.check.interval.ms": ConfigType.LONG,
    "offsets.topic.replication.factor": ConfigType.SHORT,
    "replica.lag.time.max.ms": ConfigType.LONG,
    "sasl.enabled.mechanisms": ConfigType.LIST,
    "sasl.oauthbearer.expected.audience": ConfigType.LIST,
    "transaction.state.log.replication.factor": ConfigType.SHORT,
}
"""Kafka's types where the settings' own do not say them: other numbers are INT, other texts STRING."""


def of_node(settings: Settings, node: Broker | None) -> tuple[ConfigEntry, ...]:
    """All settings of a node, by name: its own, those that are defaults of its topics, and what cannot be set here.

    What ``node`` advertises stands for its listeners where no setting names them, and has the ports that were bound.
    """
    entries = [of_setting(settings, field) for field in type(settings).model_fields if field not in _TOPIC_DEFAULTS]
    if node is not None and node.endpoints:
        bound = {"advertised.listeners"} if settings.listeners else {"advertised.listeners", "listeners"}
        text = addresses_text(node.endpoints)
        entries = [_with_addresses(each, text) if each.name in bound else each for each in entries]
    entries += _fixed(settings, None if node is None else node.rack)
    changed = dict(changed_defaults(settings))
    for definition in TOPIC_CONFIGS.values():
        candidates = of_cluster(definition, changed.get(definition.name))
        if candidates:
            entries.append(ConfigEntry(*candidates[0], definition.type, True, candidates))
    listed = {entry.name for entry in entries}
    entries += [
        _fixed_entry(name, ConfigType.LONG) for name in ("log.retention.ms", "log.roll.ms") if name not in listed
    ]
    return tuple(sorted(entries))


def _with_addresses(entry: ConfigEntry, addresses: str) -> ConfigEntry:
    value = ConfigValueSource(entry.name, addresses, entry.source)
    return ConfigEntry(*value, entry.type, entry.read_only, (value, *entry.candidates[1:]))


def _fixed(settings: Settings, rack: str | None) -> list[ConfigEntry]:
    """Settings of Kafka that are no settings here, and have one value."""
    return [
        _fixed_entry("node.id", ConfigType.INT, static=str(settings.broker_id)),
        # A node does both: it serves clients, and decides on topics.
        _fixed_entry("process.roles", ConfigType.LIST, static="broker,controller"),
        _fixed_entry("broker.rack", ConfigType.STRING, static=rack),
        _fixed_entry("log.dirs", ConfigType.LIST, static=LOG_DIR),
        _fixed_entry("log.retention.hours", ConfigType.INT, "168"),
        _fixed_entry("log.retention.minutes", ConfigType.INT),
        _fixed_entry("log.roll.hours", ConfigType.INT, "168"),
        _fixed_entry("log.cleaner.enable", ConfigType.BOOLEAN, "true"),
        _fixed_entry("delete.topic.enable", ConfigType.BOOLEAN, "true"),
        # Partitions are led by the replica that was elected until it fails.
        _fixed_entry("auto.leader.rebalance.enable", ConfigType.BOOLEAN, "true", "false"),
        _fixed_entry("max.request.partition.size.limit", ConfigType.INT, str(MOST_DESCRIBED_PARTITIONS)),
        _fixed_entry("remote.log.storage.system.enable", ConfigType.BOOLEAN, "false"),
        _fixed_entry("transaction.two.phase.commit.enable", ConfigType.BOOLEAN, "false"),
    ]


def _fixed_entry(name: str, kind: ConfigType, default: str | None = None, static: str | None = None) -> ConfigEntry:
    values = ((static, _STATIC), (default, _DEFAULT))
    return _entry(
        name, kind, tuple(ConfigValueSource(name, text, source) for text, source in values if text is not None)
    )


def of_setting(settings: Settings, field: str) -> ConfigEntry:
    """One of the settings that a node is started with."""
    info = type(settings).model_fields[field]
    name, value, default = info.alias or field, getattr(settings, field), info.get_default()
    kind = _type_of(name, default)
    if name == "broker.id":
        default = -1  # Kafka: a node without an id makes one; none is without one here.
    candidates = [] if value == default else [ConfigValueSource(name, _text(value), _STATIC)]
    # Kafka: what may have no value has null for a default, which is not listed.
    text = None if kind is ConfigType.STRING and not default else _text(default)
    if text is not None:
        candidates.append(ConfigValueSource(name, text, _DEFAULT))
    return _entry(name, kind, tuple(candidates))


def _entry(name: str, kind: ConfigType, candidates: tuple[ConfigValueSource, ...]) -> ConfigEntry:
    nearest = candidates[0] if candidates else ConfigValueSource(name, None, _DEFAULT)
    return ConfigEntry(*nearest, kind, True, candidates)


def _type_of(name: str, default: object) -> ConfigType:
    if name in _TYPES:
        return _TYPES[name]
    match default:
        case bool():
            return ConfigType.BOOLEAN
        case int():
            return ConfigType.INT
        case float() | None:
            return ConfigType.DOUBLE
        case tuple():
            return ConfigType.LIST
        case SecretStr():
            return ConfigType.PASSWORD
    return ConfigType.STRING


def _text(value: object) -> str | None:
    match value:
        case None | SecretStr():
            return None
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(value)
    return str(value)
