"""Settings as DescribeConfigs lists them for a node. Kafka: KafkaConfig."""

from __future__ import annotations

from typing import Final

from pydantic import SecretStr

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import Broker
from rejoin.coordinator.core.topics.broker_configs import broker_configs
from rejoin.coordinator.core.topics.brokers.dynamic_configs import ALL_BROKERS, DynamicConfigs
from rejoin.coordinator.core.topics.config_entries import (
    ConfigEntry,
    ConfigValueSource,
    GivenValue,
    GivenValues,
    is_sensitive,
    of_cluster,
)
from rejoin.coordinator.core.topics.configs import TOPIC_CONFIGS, ConfigSource, ConfigType
from rejoin.coordinator.settings.topic_defaults import TopicDefaults
from rejoin.protocol.brokers.listener_address import addresses_text

LOG_DIR: Final = "/rejoin"
"""The one directory of a node, by name; where its logs really are is of no use to a client."""

MOST_DESCRIBED_PARTITIONS: Final = 2_000
"""Kafka: max.request.partition.size.limit."""

_DEFAULT, _STATIC = ConfigSource.DEFAULT_CONFIG, ConfigSource.STATIC_BROKER_CONFIG
_TOPIC_DEFAULTS: Final = TopicDefaults.model_fields.keys()
_HIDDEN: Final = frozenset(
    {
        "group.consumer.assignor.offload.enable",
        "group.consumer.regex.refresh.interval.ms",
        "group.share.assignor.offload.enable",
        "group.share.initialize.retry.interval.ms",
        "group.streams.acceptable.recovery.lag",
        "group.streams.assignor.offload.enable",
        "group.streams.max.warmup.replicas",
        "group.streams.min.task.offset.interval.ms",
        "group.streams.num.warmup.replicas",
        "group.streams.task.offset.interval.ms",
        "producer.id.expiration.check.interval.ms",
    }
)
"""Kafka: defineInternal. They can be set, and are not described."""


def of_node(configs: DynamicConfigs, node: Broker | None) -> tuple[ConfigEntry, ...]:
    """All settings of a node, by name: Kafka's, those of this emulator, and unknown ones that it was given.

    What ``node`` advertises stands for its listeners where no setting names them, and has the ports that were bound.
    A setting of Kafka that cannot be set here has Kafka's default.
    """
    settings = configs.at_start
    entries = {name: _entry(name, None) for name in broker_configs()}
    for field, info in type(settings).model_fields.items():
        name = info.alias or field
        if field not in _TOPIC_DEFAULTS and name not in _HIDDEN:
            entries[name] = of_setting(settings, field)
    given = dict(configs.defaults)
    of_topics = set()
    for definition in TOPIC_CONFIGS.values():
        candidates = of_cluster(definition, given.get(definition.name, ()))
        if candidates:
            name = candidates[0].name
            of_topics.add(name)
            entries[name] = ConfigEntry(*candidates[0], definition.type, broker_configs()[name].read_only, candidates)
    for name, value in _fixed(settings, node).items():
        entries[name] = _entry(name, value)
    for name in configs.names():
        if name not in of_topics:
            entries[name] = _with_given(name, entries.get(name), configs.given(name))
    return tuple(sorted(entries.values(), key=lambda entry: entry.name))


def of_all_nodes(configs: DynamicConfigs) -> tuple[ConfigEntry, ...]:
    """The settings that were given to all nodes, by name."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    found = {
        name: _with_given(name, None, (GivenValue(value, source),)) for name, value in configs.of(ALL_BROKERS).items()
    }
    for definition in TOPIC_CONFIGS.values():
        if definition.in_cluster and definition.synonym is not None and definition.synonym not in found:
            nearest = of_cluster(definition, dict(configs.defaults).get(definition.name, ()))[0]
            found[nearest.name] = ConfigEntry(*nearest, definition.type, False, (nearest,))
    return tuple(entry for _, entry in sorted(found.items()))


def _with_given(name: str, entry: ConfigEntry | None, given: GivenValues) -> ConfigEntry:
    """A setting with the values that it was given while its node ran."""
    known = broker_configs().get(name)
    kind = ConfigType.UNKNOWN if known is None else known.type
    hidden = is_sensitive(kind, ConfigSource.DYNAMIC_BROKER_CONFIG)
    own = tuple(ConfigValueSource(name, None if hidden else value, source) for value, source in given)
    candidates = (*own, *(() if entry is None else entry.candidates))
    return ConfigEntry(*candidates[0], kind, known is None or known.read_only, candidates)


def _fixed(settings: Settings, node: Broker | None) -> dict[str, str | None]:
    """Settings whose value does not come from one of this emulator's."""
    addresses = addresses_text(node.endpoints) if node is not None and node.endpoints else None
    values = {
        "node.id": str(settings.broker_id),
        # A node does both: it serves clients, and decides on topics.
        "process.roles": "broker,controller",
        "broker.rack": None if node is None else node.rack,
        "log.dirs": LOG_DIR,
        # Partitions are led by the replica that was elected until it fails.
        "auto.leader.rebalance.enable": "false",
    }
    if addresses is not None:
        values["advertised.listeners"] = addresses
        values["listeners"] = settings.listeners or addresses
    return values


def of_setting(settings: Settings, field: str) -> ConfigEntry:
    """One of the settings that a node is started with."""
    info = type(settings).model_fields[field]
    name, value, default = info.alias or field, getattr(settings, field), info.get_default()
    if name in broker_configs():
        return _entry(name, _text(value))
    # Differs: a setting of this emulator is listed among Kafka's.
    shown = (ConfigValueSource(name, _text(default), _DEFAULT),) if _text(default) else ()
    if value != default:
        shown = (ConfigValueSource(name, _text(value), _STATIC), *shown)
    return _listed(name, _type_of(default), read_only=True, candidates=shown)


def _entry(name: str, value: str | None) -> ConfigEntry:
    """A setting of Kafka with its value here, which counts as set at the start where it is not Kafka's default."""
    kind, read_only, default = broker_configs()[name]
    candidates = [] if default is None else [ConfigValueSource(name, default, _DEFAULT)]
    if value not in {None, default} and not (value == "" and default is None):
        candidates.insert(0, ConfigValueSource(name, value, _STATIC))
    return _listed(name, kind, read_only=read_only, candidates=tuple(candidates))


def _listed(name: str, kind: ConfigType, *, read_only: bool, candidates: tuple[ConfigValueSource, ...]) -> ConfigEntry:
    nearest = candidates[0] if candidates else ConfigValueSource(name, None, _DEFAULT)
    return ConfigEntry(*nearest, kind, read_only, candidates)


def _type_of(default: object) -> ConfigType:
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
